"""A small shape and grid with which to draw a layout, which has no sizes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import inf, prod

import numpy as np

from ..errors import LayoutError
from ..grammar.nodes import Tile
from .kinds import extent
from .layout import Layout, distribute

__all__ = ["example_grid", "example_shape"]

_MOST = 1 << 10  # ranks, none of which is to be empty; pictures of more list but a few
_DOUBLED = 10  # times, at most


def example_grid(*layouts: Layout) -> tuple[int, ...]:
    """Two ranks along each grid mode, or more if block sizes, a first tile or a root need them.

    >>> from rote import parse
    >>> example_grid(parse("[(0:block(3,5,2)),()]|(1@2)"))
    (3, 3)
    """
    order = 1 + max(chain(*(layout.grid_modes for layout in layouts)), default=0)
    grid = [2] * order
    for layout in layouts:
        for entry in chain.from_iterable(layout.modes):
            g, kind = entry.grid_mode, entry.kind
            grid[g] = max(grid[g], len(kind.sizes), kind.at + 1)
        for g, at in layout.rooted:
            grid[g] = max(grid[g], at + 1)
    return tuple(grid)


def example_shape(layout: Layout, grid: tuple[int, ...], *others: Layout) -> tuple[int, ...]:
    """Extents that fit the layout: 8 for the modes of a vector or matrix, else 4, unless block sizes need others.

    Extents are doubled, once or repeatedly, if fewer parts are empty then, in this layout and in others on the grid.

    >>> from rote import parse
    >>> example_shape(parse("[(0:block(3,5,2)),()]"), (3,)), example_shape(parse("[(0:cyclic(8)),()]"), (3,))
    ((10, 8), (32, 8))
    """
    shape = _usual_shape(layout, grid)
    for m in range(len(shape) if prod(grid) <= _MOST else 0):
        larger = [(*shape[:m], shape[m] << k, *shape[m + 1 :]) for k in range(_DOUBLED)]
        shape = min(larger, key=lambda extents: _empty_parts((layout, *others), extents, grid))
    return shape


def _empty_parts(layouts: Sequence[Layout], shape: tuple[int, ...], grid: tuple[int, ...]) -> float:
    """How many parts of modes are empty; infinitely many if a layout does not fit."""
    try:
        dists = [distribute(layout, shape, grid) for layout in layouts]
    except LayoutError:
        return inf
    empty = 0
    for splits, n in chain(*(zip(dist.splits, dist.view_shape, strict=True) for dist in dists)):
        parts = [n]
        for s in splits:
            parts = [each for left in parts for each in extent(s.kind, s.parts, left, np.arange(s.parts)).tolist()]
        empty += parts.count(0)
    return empty


def _usual_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that fit the layout, in which parts may be empty."""
    usual = 8 if layout.order < 3 else 4
    wanted = [usual] * layout.order
    for m, mode in enumerate(layout.modes):
        if not mode or mode[0].kind.name != "block" or mode[0].grid_mode >= len(grid):
            continue
        sizes = mode[0].kind.sizes
        if len(sizes) == 1:
            wanted[m] = min(usual, sizes[0] * grid[mode[0].grid_mode])
        elif sizes:
            wanted[m] = sum(sizes)
    if layout.view is None:
        return tuple(wanted)
    shape: list[int] = []
    for item in layout.view.items:
        if not isinstance(item, Tile):
            shape += [usual] * len(item.names)
        else:
            known, free = prod(item.given), len(item.given) < len(item.parts)
            shape.append(-(-usual // known) * known if free else known)
    return tuple(shape)
