"""Walks on hundreds of virtual ranks, by `rote.simulate`: the volumetric family on the grids of the papers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from families import moves_of, numbers
from virtual import walked

import rote
from rote.fft.choose import walk_of
from rote.fft.problem import problem

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
    walk = walk_of(source, problem(shape, tuple(range(len(shape))), "fft", D), algorithm)
    array = numbers(shape, "D")
    want = np.fft.fftn(array)
    return walk, np.abs(walked(walk, array) - want).max() / np.abs(want).max()


@pytest.mark.parametrize("grid", TABLE_1, ids=lambda grid: "x".join(map(str, grid)))
def test_grids_of_table_1(grid):
    """Law: on each grid of the table, of p² points per mode or 64, all modes take one all-to-all; cyclic in and out."""
    sizes = [max(p * p, 64 if len(grid) == 3 else 4) for p in grid]
    shape = (*sizes, *(3, 2)[: 3 - len(grid)]) if prod(sizes) < 1 << 17 else tuple(p * p for p in grid)
    walk, error = transformed("cyclic", shape, grid)
    assert error < 1e-14 and len(walk.moves) == 1 and walk.target == walk.source


def test_volumetric_on_512_ranks():
    """64³ points on 8x8x8 ranks: one all-to-all per mode over 8 ranks each, or one over all 512."""
    each, error = transformed("volumetric", (64, 64, 64), (8, 8, 8))
    assert error < 1e-14 and [plan.cost.messages for plan in each.moves] == [7, 7, 7]
    merged, error = transformed("cyclic", (64, 64, 64), (8, 8, 8))
    assert error < 1e-14 and [plan.cost.messages for plan in merged.moves] == [511]
    assert merged.source == merged.target == each.source == each.target


def test_group_cyclic_on_1024_ranks():
    """4096 points on 1024 ranks, four each: log 1024 / log 4 = 5 all-to-alls; the last also puts digits in order."""
    walk, error = transformed("cyclic", (4096,), (1024,))
    assert error < 1e-14 and len(walk.moves) == moves_of(4096, 1024) == 5
    assert [plan.cost.messages for plan in walk.moves] == [3, 3, 3, 3, 4]
    assert walk.source == walk.target
