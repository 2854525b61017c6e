"""Panels: parts of one letter's indices, that are moved and multiplied one after the other.

A product whose operands do not fit into memory together is cut along one letter. Its indices are read in periods, and
panel t takes the t-th tile of each period. A period is as long as the shortest block, so that each rank has a part of
each panel, and all ranks work on all panels:

    k of 16 indices, over 2 ranks, in 3 panels of tiles of 3, with the period 8

        index   0 1 2 3 4 5 6 7 | 8 9 . . . . . 15
        panel   0 0 0 1 1 1 2 2 | 0 0 0 1 1 1 2 2

If there are more panels than a block has indices, the period is several blocks long. Along a summed letter the products
of the panels are added. Along another letter each panel has its own part of the result; if that lies elsewhere, or is a
sum of contributions, it moves on by itself.

The elements of a panel stay where they are until it moves. They lie as a layout says, on fewer indices, if the mode is

    whole, or split cyclically by tiles whose rounds divide the panels' tiles      as before
    split once, in blocks of any kind                                              in blocks, whose sizes are counted
    split several times, in parts that are whole numbers of periods                as before

so several uneven splits of one mode, and modes of views, are not cut.

A panel of each operand moves, then these are multiplied, and then the next ones move: the moves and the products do not
overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import lcm, prod
from typing import NamedTuple

import numpy as np

from ...caches import memoized
from ...errors import counted
from ...grammar.nodes import BLOCK, Entry, Kind
from ...layout.distribution import Distribution
from ...layout.indexset import Ints
from ...layout.kinds import Split, part_extents

__all__ = ["Ends", "Panels", "most_panels", "panel_dists", "panels_of"]

Ends = tuple[Distribution, Distribution]
"""The distributions between which a tensor moves."""


class Panels(NamedTuple):
    """The panels of a letter: index k is in panel k % period // tile."""

    letter: str
    count: int  # type: ignore[assignment]
    tile: int
    period: int

    def __str__(self) -> str:
        return f"{counted(self.count, 'panel')} of {self.letter}"

    def cut(self, term: str, shape: Sequence[int]) -> bool:
        """Whether a tensor is cut into them; not if it lacks the letter, or broadcasts along it."""
        return self.letter in term and shape[term.index(self.letter)] > 1

    def among(self, indices: Ints, number: int) -> Ints:
        """The positions of those indices that are in a panel."""
        return np.flatnonzero(indices % self.period // self.tile == number)

    def below(self, n: Ints, number: Ints) -> Ints:
        """The numbers of indices below some n in some panels, in arrays that broadcast.

        >>> Panels("k", 3, 2, 6).below(np.array(10), np.arange(3))
        array([4, 4, 2])
        """
        rounds, rest = np.divmod(n, self.period)
        tile = np.clip(self.period - number * self.tile, 0, self.tile)
        return np.asarray(rounds * tile + np.clip(rest - number * self.tile, 0, tile))


def panels_of(letter: str, extent: int, count: int, modes: Iterable[Sequence[Split]]) -> Panels:
    """The panels of a letter, `count` or a few less, for modes that are split in some ways.

    If there are more of them than a block has indices, they are up to a block's number more, so that few differ.

    >>> block, cyclic = [Split(0, BLOCK, 2)], [Split(0, Kind("cyclic", (1,)), 4)]
    >>> panels_of("k", 16, 3, [block]), panels_of("k", 16, 3, [cyclic])
    (Panels(letter='k', count=3, tile=3, period=8), Panels(letter='k', count=2, tile=8, period=16))
    """
    modes = [*modes]
    parts = [prod([split.parts for split in splits if not split.kind.is_cyclic]) for splits in modes]
    round_ = lcm(*map(_round, modes))
    block = _up(-(-extent // max(parts, default=1)), round_)  # the shortest one of all modes
    tile = _up(-(-block // count), round_)

    # More panels than the block has rounds need a period of several blocks.
    period = min(block * max(1, -(-count * round_ // block)), _up(extent, round_))
    return Panels(letter, -(-period // tile), tile, period)


def most_panels(extent: int, modes: Iterable[Sequence[Split]]) -> int:
    """The most panels of a letter: one per index, but those of a block if a mode is split several times."""
    parts = [prod([split.parts for split in splits]) for splits in modes if len(splits) > 1]
    return max(1, extent // max(parts, default=1))


def _up(number: int, unit: int) -> int:
    """The least multiple of a unit, at least one, that is not below a number."""
    return max(1, -(-number // unit)) * unit


def _round(splits: Sequence[Split]) -> int:
    """The number of indices after which cyclic splits begin anew; 1 if there are none."""
    if not splits:
        return 1
    kind, parts, rest = splits[0].kind, splits[0].parts, _round(splits[1:])
    return lcm(kind.tile, rest) * parts if kind.is_cyclic else rest


@memoized(1024)
def panel_dists(dist: Distribution, mode: int, panels: Panels, first: int | None = None) -> tuple[Distribution, ...]:
    """The distributions of the panels of a tensor whose elements stay where they are; () if no layout says so.

    Args:
        first: of how many panels; None for all. Panel 0 is the largest.
    """
    layout = dist.layout
    if layout.view is not None:
        return ()

    n, splits = dist.shape[mode], dist.splits[mode]
    numbers = np.arange(panels.count if first is None else first)
    extents = panels.below(np.array(n), numbers)
    if _continues(splits, n, panels.period, panels.tile):
        by_extent = {extent: _of_extent(dist, mode, extent) for extent in {*extents.tolist()}}
        return tuple([by_extent[extent] for extent in extents.tolist()])

    if len(splits) > 1 or splits[0].kind.is_cyclic:
        return ()

    # Per panel, the sizes of its blocks. Few panels differ, and equal ones share a distribution.
    stops = np.cumsum(part_extents(splits, n))
    sizes = np.diff(panels.below(stops, numbers[:, None]), axis=1, prepend=0)
    distinct, inverse = np.unique(sizes, axis=0, return_inverse=True)
    dists = [_of_extent(dist, mode, int(blocks.sum()), _kind(blocks)) for blocks in distinct]
    return tuple([dists[number] for number in inverse.reshape(-1).tolist()])


def _continues(splits: Sequence[Split], n: int, period: int, tile: int) -> bool:
    """Whether the elements of each panel lie as all elements do."""
    if not splits:
        return True
    kind, parts = splits[0].kind, splits[0].parts

    if kind.is_cyclic:
        round_ = parts * kind.tile
        even = n % round_ == 0 or all(split.kind.is_cyclic for split in splits)  # inner blocks need equal parts
        good = even and tile % round_ == period % round_ == 0
        return good and _continues(splits[1:], n // parts, period // parts, tile // parts)

    return kind == BLOCK and n % (parts * period) == 0 and _continues(splits[1:], n // parts, period, tile)


def _kind(sizes: Ints) -> Kind:
    """The kind of blocks of some sizes."""
    parts, n = len(sizes), int(sizes.sum())
    balanced = n // parts + (np.arange(parts) < n % parts)
    return BLOCK if np.array_equal(sizes, balanced) else Kind("block", tuple(sizes.tolist()))


def _of_extent(dist: Distribution, mode: int, extent: int, kind: Kind | None = None) -> Distribution:
    """A distribution with another extent of one mode, and another kind of its one split."""
    layout = dist.layout
    if kind is not None:  # the same grid mode, with the blocks of a panel
        entry = Entry(dist.splits[mode][0].grid_mode, kind)
        layout = replace(layout, modes=(*layout.modes[:mode], (entry,), *layout.modes[mode + 1 :]))
    return Distribution(layout, (*dist.shape[:mode], extent, *dist.shape[mode + 1 :]), dist.grid)
