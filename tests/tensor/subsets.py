"""What tensors on some of the ranks must do, as functions of a communicator: on threads and under mpiexec.

Run as a program, `python subsets.py some|rest`, it makes the checks of that part on the world and prints one line.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from itertools import permutations, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import factorings, pick_grid, pick_layout, pick_shape
from parts import report_checks, share

import rote
from rote import DistTensor, Grid, LayoutError
from rote.runtime import Comm, world

CASES, EVERY = 120, 5  # random layouts, of which a quick run looks at one in eleven


def numbers(shape: tuple[int, ...]) -> Any:
    """An array whose elements are their own numbers."""
    return np.arange(prod(shape), dtype="i8").reshape(shape) + 1


def refused(text: str, call: Callable[[], object]) -> None:
    """A call raises an error that says so."""
    try:
        call()
    except LayoutError as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"{text}: nothing is refused")


def check_grid_comms(comm: Comm) -> None:
    """The communicator of grid modes is that of the ranks with the same coordinates along all others, row by row."""
    for shape in (shape for order in (1, 2, 3) for shape in factorings(comm.size, order)):
        x = DistTensor.zeros((), "[]", comm, shape)
        me = x.grid.coordinates(comm.rank)
        for picked in (modes for n in range(len(shape) + 1) for modes in permutations(range(len(shape)), n)):
            others = [g for g in range(len(shape)) if g not in picked]
            every = [x.grid.rank(at) for at in product(*map(range, shape)) if all(at[g] == me[g] for g in others)]
            part = x.grid_comm(*picked)
            assert part.allgather_object(comm.rank) == every and part.rank == every.index(comm.rank)
            assert x.grid_comm(*picked) is part
        for wrong in ((len(shape),), (-1,), (0, 0)):
            refused("has the modes", partial(x.grid_comm, *wrong))


def check_there_and_back(comm: Comm, part: str) -> None:
    """A rooted tensor of any layout is one of those who hold it, with the same values, and comes back as it was."""
    for seed in share(range(CASES), part, EVERY, comm.size, of=2):
        pick = random.Random(f"{comm.size} {seed}").choice
        grid, shape = pick_grid(pick, comm.size), pick_shape(pick)
        layout = pick_layout(pick, shape, grid)
        x = DistTensor.from_global(numbers(shape), layout, comm, grid)
        if not layout.rooted:
            refused("is not rooted", x.on_roots)
            refused("is not rooted", lambda: DistTensor.from_roots(None, layout, shape, comm, grid))  # noqa: B023
            continue
        y = x.on_roots()
        assert (y is not None) == x.distribution.holds(comm.rank)
        if y is not None:
            assert y.local is x.local and not y.layout.rooted and y.shape == shape
            assert y.grid.size == y.comm.size == prod(p for g, p in enumerate(grid) if g not in dict(layout.rooted))
            np.testing.assert_array_equal(y.to_global(), numbers(shape))
            y = DistTensor.from_global(2 * numbers(shape), y.layout, y.comm, y.grid)  # the others know nothing of it
        z = DistTensor.from_roots(y, layout, shape, comm, grid)
        assert z.distribution == x.distribution and z.comm is comm and (y is None or z.local is y.local)
        np.testing.assert_array_equal(z.to_global(), 2 * numbers(shape))


def check_what_is_no_subset(comm: Comm) -> None:
    """A tensor where there should be none, none where there should be one, or another one: refused on all ranks."""
    if comm.size == 1:
        return
    grid, layout = (comm.size, 1), "[()]|(0)"
    alone = comm.split(comm.rank, 0)
    x = DistTensor.zeros(6, "[()]", alone, (1,))
    mine = comm.rank == 0
    assert DistTensor.from_roots(x if mine else None, layout, 6, comm, grid).distribution.holds(0)
    wrong = (
        ("a tensor is given", lambda: DistTensor.from_roots(x, layout, 6, comm, grid)),
        ("none is given", lambda: DistTensor.from_roots(None, layout, 6, comm, grid)),
        ("gives", lambda: DistTensor.from_roots(x if mine else None, layout, 7, comm, grid)),
    )
    for text, call in wrong:
        refused(text, call)


def check_wildcards(comm: Comm) -> None:
    """A grid in which -1 stands is the one that the number of ranks says, wherever a grid is taken."""
    x = DistTensor.from_global(numbers((4, 6)), "block[(0),(1)]", comm, (1, -1))
    assert x.grid == Grid((1, comm.size))
    y = x.redistribute("block[(0),(1)]", grid=(-1, 1))
    assert y.grid == Grid((comm.size, 1)) and y.to_global().tolist() == x.to_global().tolist()
    assert x.move_to("block[(0)()]", grid=-1)().grid == Grid((comm.size,))
    f = rote.fft.FFT((4, 6, 8), "block[(0),(1),()]", (-1, 1), comm)
    assert f.grid == f.empty_input().grid == Grid((comm.size, 1))
    refused("no grid of shape", lambda: DistTensor.zeros((4, 6), "block[(0),(1)]", comm, (comm.size + 1, -1)))


CHECKS: list[Callable[..., None]] = [check_grid_comms, check_there_and_back, check_what_is_no_subset, check_wildcards]

if __name__ == "__main__":
    report_checks(CHECKS, world(), sys.argv[1])
