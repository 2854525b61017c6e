"""Tensors brought to lie as a function needs them: plainly, or with some modes whole; always by the cheapest plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from ..caches import memoized
from ..compiler.compile import compile
from ..grammar.nodes import BLOCK, Entry
from ..layout.grid import Grid
from ..layout.layout import Distribution, Layout
from .distributed import Array, Distributed
from .moves import moved

__all__ = ["cheapest", "in_blocks", "made_whole", "plain", "replicated"]

T = TypeVar("T", bound=Distributed)


def plain(x: T, cause: str) -> T:
    """The tensor with every mode read as it is and every block its own values: no view, no roots, no contributions.

    A reduction takes it out of a partial layout, a broadcast out of a rooted one; out of a view it moves to blocks of
    the mode for which that costs least.
    """
    lay, dist = x.distribution.layout, x.distribution
    if lay.view is None and not lay.partial and not lay.rooted:
        return x
    if lay.view is None:
        return moved(x, Layout(lay.modes), cause)
    candidates = in_blocks(len(dist.shape), dist.grid)
    return moved(x, cheapest(dist, x.local.dtype, candidates or [Layout(())]), cause)


def in_blocks(order: int, grid: Grid) -> list[Layout]:
    """For each mode of a tensor the layout in which it alone is split, over the whole grid.

    >>> print(*in_blocks(2, Grid((2, 3))))
    block[(0,1),()] block[(),(0,1)]
    """
    over = tuple([Entry(g, BLOCK) for g in range(grid.order)])
    empty: tuple[Entry, ...] = ()
    return [Layout((*[empty] * mode, over, *[empty] * (order - mode - 1))) for mode in range(order)]


def made_whole(x: T, modes: Collection[int], cause: str) -> T:
    """A plain tensor with some modes whole on every rank.

    The grid modes that split them go to split another mode, for which that costs least; they are replicated only where
    no other mode is left.
    """
    x = plain(x, cause)
    lay = x.distribution.layout
    loose = [*chain(*(lay.modes[mode] for mode in modes))]
    if not loose:
        return x
    kept = list(lay.modes)
    for mode in modes:
        kept[mode] = ()
    added = tuple([Entry(entry.grid_mode, BLOCK) for entry in loose])
    others = [mode for mode in range(lay.order) if mode not in modes]
    candidates = [Layout((*kept[:mode], (*kept[mode], *added), *kept[mode + 1 :])) for mode in others]
    return moved(x, cheapest(x.distribution, x.local.dtype, candidates or [Layout(tuple(kept))]), cause)


def replicated(array: Array, x: T) -> T:
    """An array that every rank has whole as a tensor over the ranks of another, on its grid."""
    return x._on(array, Layout(((),) * array.ndim).on(array.shape, x.distribution.grid))


def cheapest(source: Distribution, dtype: np.dtype[Any], candidates: Iterable[Layout]) -> Layout:
    """The layout to which a tensor is moved in the least time, the first one of several.

    >>> from rote.layout.layout import parse
    >>> rows = parse("block[(0),()]").on((8, 6), 2)
    >>> print(cheapest(rows, np.dtype("f8"), [parse("[(),()]"), parse("block[(),(0)]")]))
    block[(),(0)]
    """
    return _cheapest(source, dtype, tuple(candidates))


@memoized(1024, once=True)
def _cheapest(source: Distribution, dtype: np.dtype[Any], candidates: tuple[Layout, ...]) -> Layout:
    if len(candidates) == 1:
        return candidates[0]

    def seconds(layout: Layout) -> float:
        return compile(source, replace(source, layout=layout), dtype).cost.seconds

    return min(candidates, key=seconds)
