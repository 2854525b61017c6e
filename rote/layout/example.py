"""A small tensor and grid on which a layout can be drawn, for a layout has no sizes of its own."""

from __future__ import annotations

from math import prod

from ..grammar.nodes import Fuse, Tile
from .layout import Layout

__all__ = ["example_grid", "example_shape"]


def example_grid(*layouts: Layout) -> tuple[int, ...]:
    """Two ranks along each grid mode, more where sizes, a first tile or a root ask for them.

    >>> from rote import parse
    >>> example_grid(parse("[(0:block(3,5,2)),()]|(1@2)"))
    (3, 3)
    """
    entries = [e for layout in layouts for mode in layout.modes for e in mode]
    wanted = [(e.grid_mode, max(len(e.kind.sizes), e.kind.at + 1)) for e in entries]
    wanted += [(g, at + 1) for layout in layouts for g, at in layout.rooted]
    order = max((g for layout in layouts for g in layout.grid_modes), default=0) + 1
    return tuple(max([2, *(least for named, least in wanted if named == g)]) for g in range(order))


def example_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that the layout can have: 8 per mode of a matrix and 4 of a larger tensor, or what sizes ask for.

    >>> from rote import parse
    >>> example_shape(parse("[(0:block(3,5,2)),()]"), (3,))
    (10, 8)
    """
    usual = 8 if layout.order < 3 else 4
    wanted = [usual] * layout.order
    for m, mode in enumerate(layout.modes):
        if mode and mode[0].kind.name == "block" and mode[0].kind.sizes and mode[0].grid_mode < len(grid):
            sizes = mode[0].kind.sizes
            wanted[m] = sum(sizes) if len(sizes) > 1 else min(usual, sizes[0] * grid[mode[0].grid_mode])
    if layout.view is None:
        return tuple(wanted)
    shape: list[int] = []
    for item in layout.view.items:
        if isinstance(item, Tile):
            known = prod(size for _, size in item.parts if size is not None)
            free = any(size is None for _, size in item.parts)
            shape.append(-(-usual // known) * known if free else known)
        else:
            shape += [usual] * (len(item.names) if isinstance(item, Fuse) else 1)
    return tuple(shape)
