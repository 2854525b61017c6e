"""What ScaLAPACK does with matrices that are split: the checks of `matrices`, and that it is the one that does it.

Run as a program, `python engines.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product

import matrices
import numpy as np
from matrices import GRIDS, laid, numbers
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


CHECKS: list[Callable[..., None]] = [check for name, check in globals().items() if name.startswith("check_")]
CHECKS += matrices.CHECKS


if __name__ == "__main__":
    rote.config(implicit="allow", linalg="scalapack")
    missing = library(world())
    assert not isinstance(missing, str), missing
    assert world().size in GRIDS
    report_checks(CHECKS, world(), sys.argv[1])
