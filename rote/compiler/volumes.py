"""The sizes of blocks, and counts by rank: arrays that broadcast over the ranks of a grid.

An array has one axis per grid mode, of extent 1 where all coordinates have the same count. So even splits take the same
memory and time on any grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from ..caches import memoized_arrays
from ..layout.distribution import Distribution
from ..layout.grid import Grid, row_major
from ..layout.kinds import numbered, part_extents
from .overlaps import counting

__all__ = ["block_sizes", "coordinates", "largest_block", "over_grid", "over_ranks", "places", "thin"]

Ints = npt.NDArray[np.int64]
_GRID_MODE = attrgetter("grid_mode")  # of a split


@memoized_arrays(8192, few=8)
def block_sizes(dist: Distribution) -> Ints:
    """The number of elements of each rank's block, in an array that broadcasts over the grid."""
    counter = counting(prod(dist.shape))
    if not dist.grid.shape:  # NumPy makes numbers of arrays of order 0
        return np.array([prod(dist.shape)], counter)

    sizes = np.array(1, counter, ndmin=len(dist.grid.shape))
    for mode, extent in zip(dist.splits, dist.view_shape, strict=True):
        table = part_extents(numbered(mode), extent)
        sizes = sizes * over_grid(table, [*map(_GRID_MODE, mode)], dist.grid.order)
    for g, at in dist.layout.rooted:
        sizes = sizes * over_grid((np.arange(dist.grid.shape[g]) == at).astype(np.int64), [g], dist.grid.order)
    return sizes


def largest_block(dist: Distribution) -> int:
    """The most elements that a rank holds."""
    return int(block_sizes(dist).max())


def over_grid(table: Ints, grid_modes: Sequence[int], order: int) -> Ints:
    """A table over some grid modes as an array that broadcasts over the whole grid."""
    table, shape = thin(table), [1] * order
    for axis, g in enumerate(grid_modes):
        shape[g] = table.shape[axis]
    if len(grid_modes) > 1:
        table = table.transpose(np.argsort(grid_modes))
    return table.reshape(shape)


def thin(table: Ints) -> Ints:
    """A table with extent 1 along each axis along which it does not change."""
    table = np.asarray(table)
    for axis in range(table.ndim):
        first = table[(slice(None),) * axis + (slice(1),)]
        if table.shape[axis] > 1 and (table == first).all():
            table = first
    return table


def places(grid: Grid, ranks: Grid) -> Sequence[Ints]:
    """The coordinates of all ranks, per grid mode, in arrays that broadcast over another grid of the same ranks."""
    digits = [*zip(ranks.shape, row_major(ranks.shape), np.ix_(*map(np.arange, ranks.shape)), strict=True)]
    axes = []
    for p, stride in zip(grid.shape, row_major(grid.shape), strict=True):
        number = np.zeros((1,) * ranks.order, np.int64)
        for q, step, digit in digits:
            if stride % (step * q) and step % (stride * p):  # else the coordinate does not depend on it
                number = number + step * digit
        axes.append(number // stride % p)
    return axes


def over_ranks(counts: Ints, grid: Grid, ranks: Grid) -> Ints:
    """Counts that broadcast over a grid, as ones that broadcast over another grid of the same ranks."""
    if grid.shape == ranks.shape or not grid.order:  # those of order 0 are in a list of one
        return counts
    nowhere = np.zeros((1,) * ranks.order, np.int64)
    axes = zip(places(grid, ranks), counts.shape, strict=True)
    return counts[tuple([at if n > 1 else nowhere for at, n in axes])]


def coordinates(ranks: Ints, grid: Grid) -> Sequence[Ints]:
    """The coordinates of ranks, per grid mode."""
    return np.unravel_index(ranks, grid.shape) if grid.order else ()
