"""The volumes between two splits of one mode over one long grid mode, without a table of all pairs of coordinates.

A split deals out tiles in turn. If a split has one turn, each coordinate holds one interval, which meets a cyclic range
of the other side's tiles: sums of such ranges take as long as there are coordinates. The pattern of two splits repeats
after a common period, in which a split of that very period has one turn. Where no period divides the other, the
segments between the ends of all tiles of one common period are counted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...grammar.nodes import Kind
from ...layout.kinds import Stretch, split, stretches
from .components import Reading

__all__ = ["Along", "along"]

Ints = npt.NDArray[np.int64]
Side = tuple[Stretch, ...]

_SEGMENTS = 1 << 20  # segments that are counted one by one
_FEW = 16  # stretches: each is compared with all coordinates of the other side


class Along(NamedTuple):
    """Counts by coordinate of a grid mode, which splits a mode on both sides.

    Attributes:
        sent, received: the number of coordinates to which each one sends, and from which it receives, itself included.
        kept: the number of elements that lie at the coordinate on both sides.
    """

    sent: Ints
    received: Ints
    kept: Ints


@memoized(1024)
def along(source: Reading, target: Reading) -> Along | None:
    """Count the messages and the kept elements of a component of one mode, split once on each side over many ranks.

    None if the component is another one, or if its tiles fit each other badly.
    """
    if len(source) != 1 or len(target) != 1:
        return None
    (read, given, n), (also_read, taken, _) = source[0], target[0]
    if read != also_read or len(given) != 1 or len(taken) != 1:
        return None
    (old, p), (new, q) = given[0], taken[0]
    if p != q:
        return None
    sides = stretches(old, p, n), stretches(new, p, n)
    common = _common_period(sides, n)
    within = [_clipped(side, min(n, common)) for side in sides]
    if sum(map(_tiles, within)) <= _SEGMENTS:
        return _by_segments((old, new), within, p, n, common)
    for k in (0, 1):
        if all(_turns(each) <= 1 for each in within[k]) and len(within[1 - k]) <= _FEW:
            messages = _met(_Intervals(within[k], p), within[1 - k], p)
            times, rest = divmod(n, common)
            kept = times * _shared(_Intervals(within[k], p), within[1 - k], p)
            kept += _shared(_Intervals(_clipped(sides[k], rest), p), _clipped(sides[1 - k], rest), p)
            return Along(messages[k], messages[1 - k], kept)
    return None


def _common_period(sides: Sequence[Side], n: int) -> int:
    """The number of indices after which the coordinates on both sides repeat; n if they do not."""
    if not n or any(_turns(each) <= 1 for side in sides for each in side):
        return max(n, 1)
    return lcm(*[each.parts * each.tile for side in sides for each in side])


def _turns(each: Stretch) -> int:
    """How often the tiles of a stretch come round to its first coordinate."""
    return -(-(each.stop - each.start) // (each.parts * each.tile))


def _tiles(side: Side) -> int:
    return sum(-(-(each.stop - each.start) // each.tile) for each in side)


def _clipped(side: Side, n: int) -> Side:
    """The stretches of the indices below n alone."""
    return tuple([each._replace(stop=min(each.stop, n)) for each in side if each.start < n])


def _by_segments(kinds: tuple[Kind, Kind], within: Sequence[Side], p: int, n: int, common: int) -> Along:
    """The counts from all segments between the ends of tiles in one common period."""
    end = min(n, common)
    starts = [np.arange(each.start, each.stop, each.tile) for side in within for each in side]
    edges: Ints = np.unique(np.concatenate([np.zeros(0, np.int64), *starts]))
    senders, receivers = (split(kind, p, n, edges)[0] for kind in kinds)
    pairs = np.unique(senders * p + receivers)
    own = senders == receivers
    times, rest = divmod(n, common)
    lengths = times * np.diff(edges, append=end) + np.diff(np.minimum(edges, rest), append=rest)
    kept = np.zeros(p, np.int64)
    np.add.at(kept, senders[own], lengths[own])
    return Along(np.bincount(pairs // p, minlength=p), np.bincount(pairs % p, minlength=p), kept)


class _Intervals:
    """The interval of indices at each coordinate, from `begin` up to `end`, on a side that has one turn."""

    def __init__(self, side: Side, p: int) -> None:
        self.begin, self.end = np.zeros((2, p), np.int64)
        for each in side:
            turn = np.arange(-(-(each.stop - each.start) // each.tile))
            at = (turn + each.first) % p
            self.begin[at] = each.start + turn * each.tile
            self.end[at] = np.minimum(self.begin[at] + each.tile, each.stop)


def _met(intervals: _Intervals, side: Side, p: int) -> tuple[Ints, Ints]:
    """The number of coordinates of a side that each interval meets, and of intervals that each coordinate meets."""
    mine, theirs = np.zeros((2, p), np.int64)
    for each in side:
        begin, end = np.maximum(intervals.begin, each.start), np.minimum(intervals.end, each.stop)
        some = begin < end
        low, high = (begin[some] - each.start) // each.tile, (end[some] - 1 - each.start) // each.tile
        number = np.minimum(high - low + 1, each.parts)
        mine[some] += number
        first = low % each.parts
        last = first + number  # coordinates wrap around: the first follows the last
        edges = np.bincount(first, minlength=2 * p + 1) - np.bincount(last, minlength=2 * p + 1)
        ranges = np.cumsum(edges)
        turn = np.arange(each.parts)
        theirs[(turn + each.first) % p] += ranges[turn] + ranges[turn + each.parts]
    return mine, theirs


def _shared(intervals: _Intervals, side: Side, p: int) -> Ints:
    """The number of indices at each coordinate that are both in its interval and in its tiles."""
    shared: Ints = np.zeros(p, np.int64)
    for each in side:
        turn = (np.arange(p) - each.first) % p
        below = []
        for end in (intervals.begin, intervals.end):
            whole, rest = np.divmod(np.clip(end, each.start, each.stop) - each.start, each.parts * each.tile)
            below.append(whole * each.tile + np.clip(rest - turn * each.tile, 0, each.tile))
        shared += (turn < each.parts) * (below[1] - below[0])
    return shared
