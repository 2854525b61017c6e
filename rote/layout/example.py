"""A small shape and grid with which to draw a layout, which has no sizes of its own."""

from __future__ import annotations

from itertools import chain
from math import prod

from ..grammar.nodes import Tile
from .layout import Layout

__all__ = ["example_grid", "example_shape"]


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


def example_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that fit the layout: 8 for the modes of a vector or matrix, else 4, unless block sizes need others.

    >>> from rote import parse
    >>> example_shape(parse("[(0:block(3,5,2)),()]"), (3,))
    (10, 8)
    """
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
