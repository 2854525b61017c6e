"""The volumes between two splits over one long grid mode, without a table of all pairs of coordinates.

If both split one mode, a split deals out tiles in turn. If a split has one turn, each coordinate holds one interval,
which overlaps a cyclic range of the other side's tiles: sums of such ranges take as long as there are coordinates. The
pattern of two splits repeats after a common period, in which a split of that very period has one turn. Where no period
divides the other, the segments between the ends of all tiles of one common period are counted one by one.

If they split modes that are read differently, each coordinate of one side mostly shares elements with a few ranges of
coordinates of the other side, which follow from the boxes of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..grammar.nodes import Kind
from ..lattice import Lattice
from ..layout.kinds import Stretch, split, stretches
from .components import Reading, counting, number_of, overlaps_below, segments

__all__ = ["Along", "along"]

Ints = npt.NDArray[np.int64]
Side = tuple[Stretch, ...]

_SEGMENTS = 1 << 20  # segments that are counted one by one
_FEW = 16  # stretches: each is compared with all coordinates of the other side
_MANY = 1024  # coordinates: up to so many, boxes are not counted
_QUICK = 1 << 13  # boxes, which take a third of a second
_RANGES = 32  # per coordinate


class Along(NamedTuple):
    """Counts by coordinate of a grid mode, which splits a component on both sides.

    Attributes:
        sent, received: the number of coordinates to which each one sends, and from which it receives, itself included.
        kept: the number of elements that lie at the coordinate on both sides.
    """

    sent: Ints
    received: Ints
    kept: Ints


@memoized(1024)
def along(source: Reading, target: Reading) -> Along | None:
    """Count the messages and the kept elements of a component that is split once on each side over many ranks.

    None if the component is another one, or if its tiles fit each other badly.
    """
    before, after = ([split for _, splits, _ in side for split in splits] for side in (source, target))
    if len(before) != 1 or len(after) != 1 or before[0][1] != after[0][1]:
        return None
    (old, p), (new, _) = before[0], after[0]
    if len(source) != 1 or len(target) != 1 or source[0][0] != target[0][0]:
        boxes = overlaps_below(source, target, _QUICK) if p > _MANY else None
        return None if boxes is None else _by_boxes(boxes, p, counting(number_of(source)))
    runs = segments(source, target)
    if runs is not None:
        givers, takers = runs.places
        kept = np.zeros(p, counting(number_of(source)))
        np.add.at(kept, givers, runs.lengths * (givers == takers))
        return Along(np.bincount(givers, minlength=p), np.bincount(takers, minlength=p), kept)
    n = source[0][2]
    sides = stretches(old, p, n), stretches(new, p, n)
    common = _common_period(sides, n)
    within = [_clipped(side, min(n, common)) for side in sides]
    if sum(map(_tiles, within)) <= _SEGMENTS:
        return _by_segments((old, new), within, p, n, common)
    for k in (0, 1):
        if all(_turns(each) <= 1 for each in within[k]) and len(within[1 - k]) <= _FEW:
            messages = _overlapping(_Intervals(within[k], p), within[1 - k], p)
            times, rest = divmod(n, common)
            kept = times * _shared(_Intervals(within[k], p), within[1 - k], p)
            kept = kept + _shared(_Intervals(_clipped(sides[k], rest), p), _clipped(sides[1 - k], rest), p)
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
    starts = []
    for each in (each for side in within for each in side):  # NumPy rounds the length of a range of large numbers
        starts.append(each.start + each.tile * np.arange(-(-(each.stop - each.start) // each.tile)))
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
            self.end[at] = self.begin[at] + np.minimum(each.tile, each.stop - self.begin[at])


def _overlapping(intervals: _Intervals, side: Side, p: int) -> tuple[Ints, Ints]:
    """The number of coordinates of a side that each interval overlaps, and of intervals that overlap each one."""
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
    counter = counting(max([p * (each.tile + each.stop) for each in side], default=0))
    shared: Ints = np.zeros(p, counter)
    for each in side:
        turn = (np.arange(p) - each.first) % p
        start = turn.astype(counter) * each.tile
        below = []
        for end in (intervals.begin, intervals.end):
            place = (np.clip(end, each.start, each.stop) - each.start).astype(counter)
            whole = place // (each.parts * each.tile)
            rest = place - whole * (each.parts * each.tile)
            below.append(whole * each.tile + np.clip(rest - start, 0, each.tile))
        shared += (turn < each.parts) * (below[1] - below[0])
    return shared


def _by_boxes(boxes: Sequence[Lattice], p: int, counter: np.dtype[Any]) -> Along | None:
    """The counts from boxes of elements, if one side shares elements with a few ranges of the other's coordinates."""
    for side in (0, 1):
        ranges = _ranges(boxes, side, p, counter)
        if ranges is not None:
            own, begin, end, each = ranges
            kept: Ints = np.zeros(p, counter)
            np.add.at(kept, own, each * ((begin <= own) & (own < end)))
            met = _pairs(own, begin, end, p)
            return Along(met[side], met[1 - side], kept)
    return None


def _ranges(
    boxes: Sequence[Lattice], side: int, p: int, counter: np.dtype[Any]
) -> tuple[Ints, Ints, Ints, npt.NDArray[Any]] | None:
    """The ranges of the other side's coordinates: per range, the own coordinate, begin, end, and elements per pair."""
    ranges, elements, total = [np.zeros((3, 0), np.int64)], [np.zeros(0, counter)], 0
    for box in boxes:
        own, other = box.rows[side], box.rows[1 - side]
        digits = [*zip(box.shape, own[1:], other[1:], strict=True)]
        length = 1
        for n, _, step in sorted([digit for digit in digits if not digit[1] and digit[2]], key=lambda digit: digit[2]):
            if step != length:
                return None  # there are gaps between these coordinates
            length *= n
        at, begin = np.array([own[0]]), np.array([other[0]])
        for n, step, also in digits:
            if step:
                at = np.add.outer(at, step * np.arange(n)).reshape(-1)
                begin = np.add.outer(begin, also * np.arange(n)).reshape(-1)
        total += len(at)
        if total > _RANGES * p:
            return None
        ranges.append(np.array([at, begin, begin + length]))
        elements.append(np.full(len(at), prod([n for n, step, also in digits if not step and not also]), counter))
    own, first, stop = np.concatenate(ranges, axis=1)
    return own, first, stop, np.concatenate(elements)


def _pairs(own: Ints, begin: Ints, end: Ints, p: int) -> tuple[Ints, Ints]:
    """The number of different coordinates in the ranges of each own coordinate, and of ranges around each other one."""
    line = own * (p + 1)  # each own coordinate has a line for its ranges
    places = np.concatenate([line + begin, line + end])
    order = np.argsort(places, kind="stable")
    places = places[order]
    inside = np.cumsum(np.where(order < len(own), 1, -1))[:-1] > 0
    start, stop = places[:-1][inside], places[1:][inside]
    mine = np.zeros(p, np.int64)
    np.add.at(mine, start // (p + 1), stop - start)
    edges = np.bincount(start % (p + 1), minlength=p + 1) - np.bincount(stop - start + start % (p + 1), minlength=p + 1)
    return mine, np.cumsum(edges)[:p]
