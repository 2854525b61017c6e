"""Walks on hundreds of virtual ranks, by `rote.simulate`: the volumetric family on the grids of the papers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from families import moves_of, numbers
from virtual import walked

import rote
from rote.fft.families.choose import walk_of
from rote.fft.request import as_request

D = np.dtype("D")
TABLE_1 = [  # of Popovici et al. 2019: grids of order 1, 2 and 3 over 2 to 512 processes
    *((2,), (4,), (8,), (16,), (32,)),
    *((2, 2), (4, 2), (4, 4), (8, 2), (8, 8), (16, 8)),
    *((2, 2, 2), (4, 2, 2), (4, 4, 2), (4, 4, 4), (8, 4, 4)),
]


def transformed(algorithm, shape, grid):
    """A walk from where the tensor lies cyclically, and how far its spectrum is from numpy.fft's."""
    layout = f"[{','.join(f'({m})' if m < len(grid) else '()' for m in range(len(shape)))}]"
    source = rote.parse(layout).on(shape, grid)
    walk = walk_of(source, as_request(shape, tuple(range(len(shape))), "fft", D), algorithm)
    array = numbers(shape, "D")
    want = np.fft.fftn(array)
    return walk, np.abs(walked(walk, array) - want).max() / np.abs(want).max()


@pytest.mark.parametrize(
    "grid",
    [pytest.param(grid, marks=[pytest.mark.slow] * (prod(grid) > 32 or len(grid) == 3)) for grid in TABLE_1],
    ids=lambda grid: "x".join(map(str, grid)),
)
def test_grids_of_table_1(grid):
    """Law: on each grid of the table, of p² points per mode or 64, all modes take one all-to-all; cyclic in and out."""
    sizes = [max(p * p, 64 if len(grid) == 3 else 4) for p in grid]
    shape = (*sizes, *(3, 2)[: 3 - len(grid)]) if prod(sizes) < 1 << 17 else tuple(p * p for p in grid)
    walk, error = transformed("cyclic", shape, grid)
    assert error < 1e-14 and len(walk.moves) == 1 and walk.target == walk.source


@pytest.mark.parametrize("p", (2, *(pytest.param(each, marks=pytest.mark.slow) for each in (3, 6))))
def test_volumetric_on_a_cube_of_ranks(p):
    """p²·p²·p² points on p·p·p ranks: one all-to-all per mode over p ranks each, or one over all p³."""
    each, error = transformed("volumetric", (p * p,) * 3, (p,) * 3)
    assert error < 1e-14 and [plan.cost.messages for plan in each.moves] == [p - 1] * 3
    merged, error = transformed("cyclic", (p * p,) * 3, (p,) * 3)
    assert error < 1e-14 and [plan.cost.messages for plan in merged.moves] == [p**3 - 1]
    assert merged.source == merged.target == each.source == each.target


@pytest.mark.parametrize("moves", (3, pytest.param(4, marks=pytest.mark.slow)))
def test_group_cyclic_on_64_and_256_ranks(moves):
    """Four points on each of 4^k ranks: k all-to-alls, of 3 messages each; the last also puts digits in order."""
    ranks = 4**moves
    walk, error = transformed("cyclic", (4 * ranks,), (ranks,))
    assert error < 1e-14 and len(walk.moves) == moves_of(4 * ranks, ranks) == moves
    assert [plan.cost.messages for plan in walk.moves] == [*[3] * (moves - 1), 4]
    assert walk.source == walk.target
