"""What prepared runs between two tensors must do, as functions of a communicator: on threads and under mpiexec.

Run as a program, `python prepared.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import random
import sys
import weakref
from collections.abc import Callable
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_layout, pick_shape
from effort import passed
from execute.methods import on_nodes
from parts import report_checks, share

import rote
from rote import DistTensor, LayoutError
from rote.fft import FFT
from rote.runtime import Comm, world
from rote.runtime.comm.protocol import MpiHandle

CASES, EVERY = 40, 4  # random transitions, of which a quick run looks at one in nine
CALLS = {  # Python functions of a transform, of a move and of a field's transform into a tensor, by ranks
    "alone": (7, 19, 10),
    "mpi": (11, 23, 14),
    "threads": (15, 33, 18),
}


def tensor(shape: tuple[int, ...], layout: Any, comm: Comm, seed: int, grid: Any = None) -> DistTensor:
    """Numbers of a seed."""
    return DistTensor.from_global(np.random.default_rng(seed).random(shape), layout, comm, grid)


def same(found: DistTensor, want: DistTensor) -> None:
    """Two tensors, bit by bit."""
    assert found.distribution == want.distribution and found.local.dtype == want.local.dtype
    np.testing.assert_array_equal(found.local, want.local, str(found))


def check_moves(comm: Comm, part: str) -> None:
    """Moves into tensors, of several pairs in any order, are those into new ones: any layout to any."""
    for seed in share(range(CASES), part, EVERY, comm.size, of=2):
        rng = random.Random(f"{comm.size} {seed}")
        grid, shape = pick_grid(rng.choice, comm.size), pick_shape(rng.choice)
        first, second = (pick_layout(rng.choice, shape, grid) for _ in range(2))
        starts = [tensor(shape, first, comm, n, grid) for n in range(3)]
        ends = [starts[0].redistribute(second) for _ in range(2)]
        for turn in range(10):
            x, out = rng.choice(starts), rng.choice(ends)
            x.local[...] += turn
            want = x.redistribute(second)
            assert x.redistribute(second, out=out) is out
            same(out, want)


def check_ranks_differ(comm: Comm) -> None:
    """A rank may give another tensor than the others do, prepared before or new: its values are taken."""
    shape, layouts = (4, 6), ("block[(0),()]", "block[(),(0)]")
    a, b = (tensor(shape, layouts[0], comm, n) for n in (1, 2))
    out, twin = (a.redistribute(layouts[1]) for _ in range(2))
    for x in (a, b, a, b):
        x.redistribute(layouts[1], out=out)
    a.redistribute(layouts[1], out=twin)
    mixed = DistTensor((b if comm.rank else a).local.copy(), a.distribution, comm)
    want = mixed.redistribute(layouts[1])
    for _ in range(2):
        same((b if comm.rank else a).redistribute(layouts[1], out=out), want)
        same((mixed if comm.rank else a).redistribute(layouts[1], out=twin if comm.rank else out), want)


def check_shared_memory(comm: Comm) -> None:
    """Tensors of one buffer, also of neighbouring ranks, are moved as if they were not."""
    x = tensor((4 * comm.size,), "block[(0)]", comm, 3)
    buffers = comm.share_reference(x.local)
    theirs = buffers[(comm.rank + 1) % comm.size] if buffers else x.local
    for memory in (x.local, theirs):
        out = DistTensor(memory, rote.parse("[(0)]").on(x.shape, x.grid), comm)
        for turn in range(3):
            comm.barrier()
            x.local[...] = np.arange(4) + 100 * comm.rank + turn
            want = x.redistribute("[(0)]")
            x.redistribute("[(0)]", out=out)
            comm.barrier()
            same(out, want)


def check_transforms(comm: Comm) -> None:
    """Transforms into tensors have the bits of those into new ones, whatever moves and grows in between."""
    shapes = ("c16", (8, 6, 4)), ("f8", (5, 7, 6)), ("f4", (16, 1, 9)), ("c8", (3, 2))
    for (dtype, shape), method in product(shapes, ("auto", "alltoallv")):
        f, rng = FFT(shape, comm=comm, dtype=dtype, method=method), random.Random(7)
        xs = [f.empty_input() for _ in range(3)]
        Xs, backs = [f.empty_output() for _ in range(2)], [f.empty_input() for _ in range(2)]
        for turn in range(12):
            x, X, back = rng.choice(xs), rng.choice(Xs), rng.choice(backs)
            x.local[...] = np.random.default_rng([turn, comm.rank]).random(x.local.shape)
            if turn % 4 == 3:  # others take the memory that ranks share, and make it larger
                n = 64 * (turn + 1)
                tensor((n, 6), "block[(0),()]", comm, turn).redistribute("block[(),(0)]")
                FFT((n, 8), comm=comm).forward(
                    DistTensor.zeros((n, 8), FFT((n, 8), comm=comm).input_layout, comm, dtype="c16")
                )
            norm = rng.choice([None, None, None, "ortho"])
            want = f.forward(x, norm=norm)
            assert f.forward(x, out=X, norm=norm) is X
            same(X, want)
            wanted_back = f.backward(X, norm=norm)
            same(f.backward(X, out=back, norm=norm), wanted_back)
            same(X, want)
        if f.input_distribution == f.output_distribution and f.input_dtype == f.output_dtype:
            for _ in range(3):
                want = f.forward(xs[0])
                same(f.forward(xs[0], out=xs[0]), want)


def check_fields(comm: Comm) -> None:
    """Fields into tensors have the bits of those into new ones: of any number of batches, also where a rank gives
    another tensor than the others do, and in the memory of the input."""
    fields = (
        ((8, 6, 4), "c16", (3,)),
        ((8, 6, 4), "f8", (2, 17)),
        ((5, 7, 3), "f4", (2,)),
        ((6, 2), "c8", (0,)),
        ((64, 48, 50), "c16", (3,)),
    )
    for (shape, dtype, components), method in product(fields, ("auto", "alltoallv")):
        f = FFT(shape, comm=comm, dtype=dtype, method=method)
        X, back, *xs = f.empty_output(components), *(f.empty_input(components) for _ in range(3))
        for turn in range(6):
            x = xs[turn % 2]
            x.local[...] = np.random.default_rng([turn, comm.rank]).random(x.local.shape)
            want = f.forward(x)
            given = DistTensor(x.local.copy(), x.distribution, comm) if turn == 4 and comm.rank == 0 else x
            same(f.forward(given, out=X), want)
            wanted_back = f.backward(X)
            same(f.backward(X, out=back), wanted_back)
            same(X, want)
        if xs[0].local.size == X.local.size and dtype[0] == "c":
            out = DistTensor(xs[0].local.reshape(X.local.shape), X.distribution, comm)
            for turn in range(3):
                comm.barrier()
                xs[0].local[...] = turn + comm.rank
                want = f.forward(xs[0])
                same(f.forward(xs[0], out=out), want)


def check_nodes(comm: Comm) -> None:
    """On several nodes, of which each reads its own blocks, a rank may give another tensor than the others do."""
    if comm.size != 4 or not isinstance(comm, MpiHandle):
        return
    with on_nodes(2):
        here = comm.split(0, comm.rank)
        for method in ("auto", "nodes", "two-level", "nonblocking", "waitsome", "put"):
            f = FFT((24, 40, 32), "block[(0),(1),()]", comm=here, grid=(2, 2), method=method)
            xs, X = [f.empty_input() for _ in range(2)], f.empty_output()
            for turn in range(6):
                x = xs[turn % 2 if here.rank == 1 else 0]
                x.local[...] = np.random.default_rng([turn, here.rank]).random(x.local.shape)
                want = f.forward(x)
                same(f.forward(x, out=X), want)


def check_refusals(comm: Comm) -> None:
    """What does not fit is refused before and after something was prepared."""
    f = FFT((8, 6, 4), comm=comm)
    x, X = f.empty_input(), f.empty_output()
    x.local[...] = 1
    wrong = DistTensor.zeros((8, 6), "block[(0),()]", comm, dtype="c16")
    for _ in range(3):
        f.forward(x, out=X), x.redistribute(x.layout, out=x)
        for call in (
            lambda: f.forward(x, out=wrong),
            lambda: f.forward(wrong, out=X),
            lambda: f.forward(x, out=X, norm="none"),
            lambda: x.redistribute(x.layout, out=wrong),
        ):
            try:
                call()
            except LayoutError:
                continue
            raise AssertionError("nothing is refused")


def check_memory_goes(comm: Comm) -> None:
    """What was prepared keeps no block of a tensor that is gone, neither of the input nor of the output."""
    f = FFT((8, 6, 4), comm=comm)
    keeps = f.empty_input()
    keeps.local[...] = 1
    blocks = []
    for turn in range(3):
        x, out = (f.empty_input() for _ in range(2))
        x.local[...] = turn
        X, moved = f.empty_output(), x.redistribute("block[(),(),(0)]")
        for _ in range(2):
            f.forward(x, out=X), f.backward(X, out=out), f.forward(keeps, out=X)
            x.redistribute("block[(),(),(0)]", out=moved), keeps.redistribute("block[(),(),(0)]", out=moved)
        blocks += [weakref.ref(each.local) for each in (x, X, out, moved)]
        del x, X, out, moved
    comm.barrier()
    assert not any(block() is not None for block in blocks)
    comm.barrier()


def check_effort(comm: Comm) -> None:
    """A prepared transform passes few Python functions, as many for any small size; so do a prepared move, and a field
    whose components go together."""
    ranks = "alone" if comm.size == 1 else "mpi" if isinstance(comm, MpiHandle) else "threads"
    for n, method in product((4, 8, 16), ("auto", "alltoallv")):
        if method != "auto" and ranks == "threads":
            continue  # in-process ranks show each other their blocks before each run
        f = FFT((n, n, n), "block[(0),(),()]", comm=comm, method=method)
        x, X = f.empty_input(), f.empty_output()
        x.local[...] = 1
        moved = x.redistribute("block[(),(0),()]")
        field, spectra = f.empty_input((3,)), f.empty_output((3,))
        field.local[...] = 1
        calls = (
            lambda: f.forward(x, out=X),  # noqa: B023
            lambda: x.redistribute("block[(),(0),()]", out=moved),  # noqa: B023
            lambda: f.forward(field, out=spectra),  # noqa: B023
        )
        new = passed(lambda: f.forward(x))  # noqa: B023 - called here
        assert len(new) > 30, "the count sees nothing"
        for call, most in zip(calls, CALLS[ranks], strict=True):
            for _ in range(4):
                call()
            names = passed(call)
            assert len(names) <= most + (comm.size > 2) * 10, names
    assert prod(x.local.shape) * 16 < 1 << 20


CHECKS: list[Callable[..., None]] = [
    check_moves,
    check_ranks_differ,
    check_shared_memory,
    check_transforms,
    check_fields,
    check_nodes,
    check_refusals,
    check_memory_goes,
    check_effort,
]

if __name__ == "__main__":
    report_checks(CHECKS, world(), sys.argv[1])
