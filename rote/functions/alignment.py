"""Moves of tensors to the layouts that functions need: plain ones, or with some modes whole, by the cheapest plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..compiler.compile import compile
from ..compiler.step import as_array
from ..grammar.nodes import BLOCK, Entry
from ..layout.grid import Grid
from ..layout.layout import Distribution, Layout
from .distributed import Distributed
from .moves import moved

__all__ = ["cheapest", "in_blocks", "made_whole", "plain", "replicated"]

T = TypeVar("T", bound=Distributed)


def plain(x: T, cause: str) -> T:
    """The tensor in a plain layout: without a view, and neither partial nor rooted.

    A partial tensor is reduced, and a rooted one is broadcast. A tensor with a view moves to blocks of one mode, the
    one for which that costs least.
    """
    lay, dist = x.distribution.layout, x.distribution
    if lay.view is None and not lay.partial and not lay.rooted:
        return x
    if lay.view is None:
        return moved(x, Layout(lay.modes), cause)
    candidates = in_blocks(len(dist.shape), dist.grid)
    return moved(x, cheapest(dist, x.local.dtype, candidates or [Layout(())]), cause)


def in_blocks(order: int, grid: Grid) -> list[Layout]:
    """The layouts that split one mode alone, over the whole grid: one layout for each mode of a tensor.

    >>> print(*in_blocks(2, Grid((2, 3))))
    block[(0,1),()] block[(),(0,1)]
    """
    over = tuple([Entry(g, BLOCK) for g in range(grid.order)])
    empty: tuple[Entry, ...] = ()
    return [Layout((*[empty] * mode, over, *[empty] * (order - mode - 1))) for mode in range(order)]


def made_whole(x: T, modes: Collection[int], cause: str) -> T:
    """A plain tensor with some modes whole on every rank.

    The grid modes that split them split another mode instead, the one for which that costs least. They are replicated
    only if no other mode is left.
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


def replicated(values: npt.ArrayLike, x: T) -> T:
    """A replicated tensor, made of an array that every rank holds whole, on the grid and the ranks of `x`.

    Raises:
        TypeError: the array has a mask.
    """
    array = as_array(values)
    return x._on(array, Layout(((),) * array.ndim).on(array.shape, x.distribution.grid))


def cheapest(source: Distribution, dtype: np.dtype[Any], candidates: Iterable[Layout]) -> Layout:
    """The candidate to which a tensor moves in the least time; the first of several that are equal.

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
