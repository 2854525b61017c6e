"""The volumes between two splits over one long grid mode, without a table of all pairs of coordinates.

If both split one mode, a split deals out tiles in turn. If a split has one turn, each coordinate holds one interval,
which overlaps a cyclic range of the other side's tiles: sums of such ranges take as long as there are coordinates. The
pattern of two splits repeats after a common period, in which a split of that very period has one turn. Where no period
divides the other, the segments between the ends of all tiles of one common period are counted one by one.

If they split modes that are read differently, each into runs, the elements that two runs have in common are a sum over
boxes of digits. Two runs meet if they have common values of the digits that both sides split.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..grammar.nodes import Kind
from ..layout.kinds import Split, Stretch, run_starts, split, stretches
from ..layout.view import Digit
from .components import Reading, counting, number_of, segments

__all__ = ["Along", "along"]

Ints = npt.NDArray[np.int64]
Side = tuple[Stretch, ...]

_SEGMENTS = 1 << 20  # segments that are counted one by one
_AROUND = 1 << 22  # values, each of which has an entry in a table
_AT_ONCE = 1 << 15  # runs, whose boxes stay in cache
_FEW = 16  # stretches: each is compared with all coordinates of the other side


class Along(NamedTuple):
    """Counts by coordinate of a grid mode, which splits a component on both sides.

    Attributes:
        sent, received: the number of coordinates to which each one sends, and from which it receives, itself included.
        kept: the number of elements that lie at the coordinate on both sides.
    """

    sent: Ints
    received: Ints
    kept: Ints


@memoized(2)  # the volumes keep what is made of it
def along(source: Reading, target: Reading) -> Along | None:
    """Count the messages and the kept elements of a component that is split once on each side over many ranks.

    None if the component is another one, or if its tiles fit each other badly.
    """
    before, after = ([split for _, splits, _ in side for split in splits] for side in (source, target))
    if len(before) != 1 or len(after) != 1 or before[0][1] != after[0][1]:
        return None
    (old, p), (new, _) = before[0], after[0]
    if len(source) != 1 or len(target) != 1 or source[0][0] != target[0][0]:
        return _by_runs(source, target)
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


Box = tuple[Any, dict[Digit, tuple[Any, Any]]]
"""The number of elements at each value of the digits that both sides split, and the ranges of those that have one."""


class _Runs(NamedTuple):
    """The run of indices, from `begin` up to `end`, at each coordinate of a mode that reads several digits."""

    digits: tuple[Digit, ...]
    begin: Ints
    end: Ints

    def boxes(self, shared: Sequence[Digit]) -> list[Box]:
        """The elements of a run, in boxes: those below its end, less those below its begin.

        Those below an index have a smaller digit after equal ones:

            (a b) with 3 values of b, below 7     a < 2, any b      6 elements
                                                  a = 2, b < 1      1 element
        """
        boxes = list[Box]()
        wide: Any = 0
        for sign, left in ((1, self.end), (-1, self.begin)):
            equal = dict[Digit, tuple[Any, Any]]()
            for k, digit in enumerate(self.digits, 1):
                weight = prod([later.size for later in self.digits[k:]])
                at = left // weight
                left = left - at * weight
                number = sign * prod([later.size for later in self.digits[k:] if later not in shared])
                if digit in shared:
                    boxes.append((number, equal | {digit: (0, at)}))
                    equal = equal | {digit: (at, at + 1)}
                elif equal:
                    boxes.append((number * at, equal))
                else:
                    wide = wide + number * at
        return [(wide, {}), *boxes]

    def arcs(self, shared: Sequence[Digit], around: int) -> tuple[Ints, Ints]:
        """Where the values of neighbouring digits begin in each run, of `around` in turn, and how many it has."""
        weight = prod([digit.size for digit in self.digits[self.digits.index(shared[-1]) + 1 :]]) if shared else 1
        first, last = self.begin // weight, (self.end - 1) // weight
        length = np.where(self.end > self.begin, np.minimum(last - first + 1, around), 0)
        return (first % around).astype(np.int64), length.astype(np.int64)


def _runs(source: Reading, target: Reading) -> tuple[_Runs, _Runs] | None:
    """The runs on both sides, if each splits one mode into runs, and both read the same digits; else None."""
    every = [{digit for digits, _, _ in side for digit in digits} for side in (source, target)]
    sides = [[mode for mode in side if mode[1]] for side in (source, target)]
    if every[0] != every[1] or [*map(len, sides)] != [1, 1] or not number_of(source):
        return None
    runs = []
    for (digits, splits, n), *_ in sides:
        begin = run_starts(tuple([Split(g, *split) for g, split in enumerate(splits)]), n)
        if begin is None:
            return None
        begin = begin.astype(counting(number_of(source)))
        runs.append(_Runs(digits, begin, np.append(begin[1:], n)))
    return runs[0], runs[1]


def _in_common(before: _Runs, after: _Runs, total: int) -> Ints:
    """The elements in common of runs on both sides, in arrays that broadcast."""
    shared = [digit for digit in before.digits if digit in after.digits]
    left = total // prod([digit.size for digit in {*before.digits, *after.digits}])
    common: Any = 0
    for (number, ranges), (more, others) in product(before.boxes(shared), after.boxes(shared)):
        part = number * more
        for digit in shared:
            ends = [each[digit] for each in (ranges, others) if digit in each] or [(0, digit.size)]
            low, high = reduce(np.maximum, [begin for begin, _ in ends]), reduce(np.minimum, [end for _, end in ends])
            part = part * np.maximum(high - low, 0)
        common = common + part
    return np.asarray(common * left)


def _by_runs(source: Reading, target: Reading) -> Along | None:
    """The counts from runs, if the digits that both sides split are neighbours in both, in the same order."""
    runs = _runs(source, target)
    if runs is None:
        return None
    shared = tuple([digit for digit in runs[0].digits if digit in runs[1].digits])
    for digits, _, _ in runs if shared else ():
        first = digits.index(shared[0])
        if digits[first : first + len(shared)] != shared:
            return None
    around = prod([digit.size for digit in shared])
    arcs = [each.arcs(shared, around) for each in runs] if around <= _AROUND else []
    if not arcs or any(len(_lengths(length)) > _FEW for _, length in arcs):
        return None
    kept = []
    for start in range(0, len(runs[0].begin), _AT_ONCE):
        some = [each._replace(begin=each.begin[start:][:_AT_ONCE], end=each.end[start:][:_AT_ONCE]) for each in runs]
        kept.append(_in_common(some[0], some[1], number_of(source)))
    return Along(_met(arcs[0], arcs[1], around), _met(arcs[1], arcs[0], around), np.concatenate(kept))


def _met(mine: tuple[Ints, Ints], theirs: tuple[Ints, Ints], around: int) -> Ints:
    """How many of their arcs of a circle each of mine meets: those that begin at most a length before it ends."""
    met: Ints = np.zeros(len(mine[0]), np.int64)
    for length in _lengths(theirs[1]):
        begins = np.bincount(theirs[0][theirs[1] == length], minlength=around)
        below = np.concatenate([[0], np.cumsum([begins, begins])])
        first = (mine[0] - length + 1) % around
        met += (mine[1] > 0) * (below[first + np.minimum(mine[1] + length - 1, around)] - below[first])
    return met


def _lengths(lengths: Ints) -> list[int]:
    """The different lengths of arcs that are not empty."""
    return np.flatnonzero(np.bincount(lengths[lengths > 0])).tolist()
