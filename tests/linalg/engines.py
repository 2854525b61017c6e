"""What ScaLAPACK does with matrices that are split: the checks of `matrices`, and that it is the one that does it.

Run as a program, `python engines.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from threading import Event, Thread

import matrices
import numpy as np
from matrices import GRIDS, LAYOUTS, laid, numbers, size
from parts import report_checks
from tensors import agreed_error

import rote
from rote import DistTensor
from rote.linalg import routines
from rote.linalg.library import library
from rote.runtime import Comm, world


def check_it_is_used(comm: Comm) -> None:
    """Large matrices go to ScaLAPACK by themselves, small ones do not; no rank gets a whole matrix."""
    called: list[str] = []
    original = routines._call
    routines._call = lambda name, *args, **options: called.append(name) or original(name, *args, **options)  # type: ignore
    try:
        with rote.config(linalg="auto", gather="error"):
            for n, expected in ((40, []), (300, ["cholesky"])):
                a = numbers((n, n), "f8")
                x = laid(a @ a.T + n * np.eye(n), "block[(0),(1)]", comm)
                with rote.trace() as moves:
                    np.linalg.cholesky(x)
                assert called == expected
            received = max(move.nbytes for move in moves)
            assert received <= 8 * n * n / comm.size * 1.2
    finally:
        routines._call = original


def check_sub_communicators(comm: Comm) -> None:
    """Ranks of a sub-communicator work by themselves, and what BLACS made for it is freed with it."""
    a = numbers((80, 80), "f8")
    for turn in range(40):
        part = comm.split(comm.rank % 2, comm.rank)
        if part.size > 1 and turn % 2 == comm.rank % 2:
            x = DistTensor.from_global(a, "block[(0),()]", part)
            np.testing.assert_allclose(np.linalg.inv(x).to_global() @ a, np.eye(80), atol=1e-9)
        del part


def check_halves(comm: Comm) -> None:
    """Two halves of the ranks solve at the same time, each its own systems in its own layout."""
    half = 2 * comm.rank // comm.size
    part = comm.split(half, comm.rank)
    n = 70 + 11 * half
    a, b = numbers((n, n), "f8", half), numbers((n, 3), "f8", half)
    positive = a @ a.T + n * np.eye(n)

    for text in ("block[(0),()]", "[(),(0)]"):
        x, y = (DistTensor.from_global(z, text, part) for z in (positive, b))
        factor, solution = np.linalg.cholesky(x).to_global(), np.linalg.solve(x, y).to_global()
        w, v = (z.to_global() for z in np.linalg.eigh(x))
        assert np.linalg.norm(factor @ factor.T - positive) <= 1e-13 * size(positive)
        assert np.linalg.norm(positive @ solution - b) <= 1e-13 * size(positive) * size(solution)
        assert np.linalg.norm(positive @ v - v * w) <= 1e-13 * n * size(positive)
    comm.barrier()


def check_extreme_elements(comm: Comm) -> None:
    """Eigenvalues scale with the matrix, up to the largest and down to the least elements of a dtype."""
    for dtype, exponent in product(("f8", "c16", "f4"), (-1, 1)):
        a = numbers((90, 90), dtype)
        a = a + a.conj().T
        scale = a.real.dtype.type(2.0 ** (exponent * (np.finfo(dtype).maxexp - 20)))
        for lower in (True, False):
            read = (np.tril if lower else np.triu)(a * scale)
            values, vectors = (z.to_global() for z in np.linalg.eigh(laid(read, LAYOUTS[0], comm), "UL"[lower]))
            eps = 50 * float(np.finfo(dtype).eps) * size(a)
            assert np.linalg.norm(a @ vectors - vectors * (values / scale)) <= eps
            np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(a), rtol=0, atol=eps)


def check_right_sides(comm: Comm) -> None:
    """A residual at sizes of several tiles for each rank."""
    for dtype in ("f8", "c16"):
        n = 700
        a, b = numbers((n, n), dtype), numbers((n, 5), dtype, 1)
        x, y = laid(a, "block[(0),(1)]", comm), laid(b, "[(0),()]", comm)
        residual = a @ np.linalg.solve(x, y).to_global() - b
        assert np.linalg.norm(residual) <= 3 * np.linalg.norm(a @ np.linalg.solve(a, b) - b) + 1e-12
        hermitian = (a + a.conj().T) / 2
        w, v = (part.to_global() for part in np.linalg.eigh(laid(hermitian, "block[(0),(1)]", comm)))
        assert np.linalg.norm(hermitian @ v - v * w) <= 1e-11 * n


def check_orthogonal_factors(comm: Comm) -> None:
    """Factors of matrices that are not tall: Q is orthonormal, R is triangular with a diagonal that is not negative."""
    for shape, dtype in product(((40, 40), (40, 30), (30, 40), (130, 100)), ("f8", "c16", "f4")):
        a = numbers(shape, dtype)
        x = laid(a, "block[(0),(1)]", comm)
        Q, R = np.linalg.qr(x)
        assert Q.layout == R.layout == x.layout
        q, r, k = Q.to_global(), R.to_global(), min(shape)
        eps = 50 * float(np.finfo(dtype).eps)
        assert (q.shape, r.shape, q.dtype, r.dtype) == ((shape[0], k), (k, shape[1]), a.dtype, a.dtype)
        assert np.linalg.norm(q @ r - a) <= eps * np.linalg.norm(a)
        assert np.linalg.norm(q.conj().T @ q - np.eye(k)) <= eps * k**0.5
        assert not np.tril(r, -1).any() and (np.diagonal(r).real >= 0).all()


def check_memory(comm: Comm) -> None:
    """Workspaces that no node has memory for are refused on all ranks, before they are there."""
    x = laid(np.eye(70), "block[(0),(1)]", comm)
    original = routines.memory
    routines.memory = lambda: 10_000
    try:
        agreed_error(comm, "run it on more nodes", np.linalg.eigh, x)
    finally:
        routines.memory = original
    assert np.linalg.eigh(x).eigenvalues.to_global().tolist() == [1.0] * 70


def check_bytes(comm: Comm) -> None:
    """Law: beside operand and result a solver takes 2.2 blocks at most, of eigenvectors 5; shared memory counts."""
    if comm.size != 4:
        return
    slack = 2 << 20  # of what MKL keeps for itself
    small = laid(np.eye(300), "block[(0),()]", comm)

    for function, n, columns, results, limit in (
        (np.linalg.cholesky, 2048, 0, 1, 2.2),
        (np.linalg.solve, 2048, 16, 0, 2.2),
        (np.linalg.eigh, 700, 0, 1, 5),
    ):
        function(small, *[np.ones((300, 16))] * bool(columns))
        x = DistTensor.from_function(lambda i, j: 1 / (1 + abs(i - j)) + 5.0 * (i == j), (n, n), "block[(0),()]", comm)
        right = [DistTensor.from_global(np.ones((n, columns)), "block[(0),()]", comm)] * bool(columns)
        taken = most_bytes(comm, partial(function, x, *right))
        assert taken <= (results + limit) * x.local.nbytes + slack, (function.__name__, taken / x.local.nbytes)


def most_bytes(comm: Comm, call: Callable[[], object]) -> int:
    """The most bytes that a rank of this node takes during a call; of shared memory, each has its part."""
    before, sizes, done = _bytes(), [0], Event()

    def watch() -> None:
        while not done.wait(0.002):
            sizes.append(_bytes() - before)

    watching = Thread(target=watch)
    watching.start()
    try:
        result = call()
        sizes.append(_bytes() - before)
    finally:
        done.set()
        watching.join()
    del result
    return max(comm.allgather_object(max(sizes)))


def _bytes() -> int:
    """The bytes of memory that a process has, a part of what it shares with others."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(text.partition("\nPss:")[2].split()[0])


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]
CHECKS += matrices.CHECKS


if __name__ == "__main__":
    rote.config(implicit="allow", linalg="scalapack")
    missing = library(world())
    assert not isinstance(missing, str), missing
    assert world().size in GRIDS
    report_checks(CHECKS, world(), sys.argv[1])
