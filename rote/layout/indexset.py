"""Sets of indices as algebra: periodic runs of consecutive integers.

Every set that a chain of cyclic, block-cyclic and block splits can leave on a rank is periodic, so it is stored as one
period and two ends. Its size never depends on the number of ranks, and hardly on the number of elements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["EMPTY", "Cycles", "IndexSet", "Ints", "Selection", "Strided", "as_slice", "selection"]

Ints = npt.NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]


class Strided(NamedTuple):
    """The integers `start + i0*steps[0] + i1*steps[1] + …`, for all i below `shape` in row-major order."""

    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


class Cycles(NamedTuple):
    """The integers `start + k*period + r`, for every k below `number` and every r with a <= r < b, (a, b) in `runs`."""

    start: int
    number: int
    period: int
    runs: Runs


@dataclass(frozen=True, slots=True, eq=False)
class IndexSet:
    """The integers `start + k*period + r` below `stop`, for every k >= 0 and every r with a <= r < b, (a, b) in `runs`.

        0 1 2 3 4 5 6 7 8 9 10 11 12
            # # . #   # # . #  #        start 2, stop 11, period 5, runs ((0, 2), (3, 4))

    `start` is the least element, and `stop` is one more than the greatest. The runs are sorted, disjoint, do not touch
    and lie in [0, period). An interval has period 1. Two sets are equal if they hold the same elements.

    Examples
    --------
    >>> import rote
    >>> (evens,) = rote.parse("[(0)]").on(9, 2).index_sets(0)
    >>> list(evens), len(evens), 3 in evens
    ([0, 2, 4, 6, 8], 5, False)
    >>> (first,) = rote.parse("block[(0)]").on(9, 2).index_sets(0)
    >>> list(evens & first)
    [0, 2, 4]
    """

    start: int
    stop: int
    period: int
    runs: Runs

    @staticmethod
    def interval(start: int, stop: int) -> IndexSet:
        """The integers from `start` up to, not including, `stop`."""
        return IndexSet(start, stop, 1, ((0, 1),)) if start < stop else EMPTY

    @staticmethod
    def of_runs(runs: Iterable[tuple[int, int]], period: int, stop: int) -> IndexSet:
        """The canonical set of sorted, disjoint runs within one period, repeated from the first run up to `stop`."""
        joined: list[list[int]] = []
        for a, b in runs:
            if b <= a or a >= stop:
                continue
            if joined and joined[-1][1] == a:
                joined[-1][1] = b
            else:
                joined.append([a, b])
        if not joined:
            return EMPTY

        # A single run is an interval if it reaches to its own repetition, or if that would begin behind the end.
        start, end = joined[0]
        if len(joined) == 1 and end - start >= period:
            return IndexSet.interval(start, stop)
        if len(joined) == 1 and start + period >= stop:
            return IndexSet.interval(start, min(end, stop))

        # The last element is in the last period, or ends the run before `stop` there.
        relative = tuple((a - start, b - start) for a, b in joined)
        cycle, offset = divmod(stop - 1 - start, period)
        at = bisect_right(relative, (offset, period)) - 1
        last = start + cycle * period + min(offset, relative[at][1] - 1)
        return IndexSet(start, last + 1, period, relative)

    def __len__(self) -> int:
        if self.period == 1:
            return self.stop - self.start

        cycles, rest = divmod(self.stop - self.start, self.period)
        number = 0
        for a, b in self.runs:  # for a few runs a loop is fastest, here and below
            number += cycles * (b - a)
            if a < rest:
                number += min(b, rest) - a

        return number

    def __bool__(self) -> bool:
        return self.start < self.stop

    def __contains__(self, index: int) -> bool:
        offset = (index - self.start) % self.period
        return self.start <= index < self.stop and any(a <= offset < b for a, b in self.runs)

    def __iter__(self) -> Iterator[int]:
        for a, b in self.unroll(self.stop):
            yield from range(a, b)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSet) and len(self) == len(other) == len(self & other)

    def __hash__(self) -> int:
        return hash((self.start, self.stop, len(self)))

    @property
    def width(self) -> int:
        """The number of elements in one period."""
        width = 0
        for a, b in self.runs:
            width += b - a
        return width

    def cycles(self) -> tuple[Cycles, ...]:
        """The set as its whole periods, followed by the rest of one more.

        Examples
        --------
        >>> IndexSet(0, 9, 4, ((0, 2),)).cycles()
        (Cycles(start=0, number=2, period=4, runs=((0, 2),)), Cycles(start=8, number=1, period=4, runs=((0, 1),)))
        """
        number = len(self) // self.width
        last = self.start + number * self.period
        runs = tuple([(a, min(b, self.stop - last)) for a, b in self.runs if a < self.stop - last])
        both = Cycles(self.start, number, self.period, self.runs), Cycles(last, 1, self.period, runs)
        return tuple([cycles for cycles in both if cycles.number and cycles.runs])

    def unroll(self, stop: int, start: int = 0) -> Iterator[tuple[int, int]]:
        """The runs, or what is left of them, from `start` up to `stop`, one by one; an interval is one run."""
        start, stop = max(start, self.start), min(stop, self.stop)
        if self.runs == ((0, self.period),):
            if start < stop:
                yield start, stop
            return

        base = start - (start - self.start) % self.period
        while base < stop:
            for a, b in self.runs:
                low, high = max(base + a, start), min(base + b, stop)
                if low < high:
                    yield low, high

            base += self.period

    def run_around(self, element: int) -> tuple[int, int]:
        """The start and the stop of the run that holds an element."""
        if self.runs == ((0, self.period),):
            return self.start, self.stop
        offset = (element - self.start) % self.period
        a, b = next((a, b) for a, b in self.runs if a <= offset < b)
        return element - offset + a, min(element - offset + b, self.stop)

    def select(self, positions: IndexSet) -> IndexSet:
        """The elements at some positions, so that successive splits are compositions of sets.

        Law: `list(s.select(q)) == [list(s)[i] for i in q if i < len(s)]`.
        """
        if not self or not positions:
            return EMPTY

        # indices      2 3 . 5 . | 7 8 . 10 . | 12 …    width 3, period 5
        # positions    0 1 . 2 . | 3 4 .  5 . |  6 …    of which the even ones are wanted: period 2
        # picked       2     5   |   8        | 12 …    repeats after lcm(3, 2) positions, which is 10 indices
        width = self.width
        common = lcm(width, positions.period)
        end = min(positions.stop, len(self))
        period = common // width * self.period

        first = positions.start
        picked = self._runs_at(positions.unroll(min(end, first + common)))
        stop = self._element(end - 1) + 1 if end > first else 0
        return IndexSet.of_runs(picked, period, stop)

    def at(self, position: int) -> int:
        """The element at a position, counted from 0.

        Raises
        ------
        IndexError
            There is no such position.
        """
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._element(position)

    def _element(self, position: int) -> int:
        cycle, left = divmod(position, self.width)
        for a, b in self.runs:
            if left < b - a:
                return self.start + cycle * self.period + a + left
            left -= b - a
        raise IndexError(position)

    def _runs_at(self, positions: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The runs of elements at some runs of positions."""
        for low, high in positions:
            while low < high:
                element = self._element(low)
                stop = min(element + high - low, self.run_around(element)[1])
                yield element, stop
                low += stop - element

    def __and__(self, other: IndexSet) -> IndexSet:
        low, high = max(self.start, other.start), min(self.stop, other.stop)
        if low >= high:
            return EMPTY

        period = lcm(self.period, other.period)  # after which the common part repeats, so one such window shows it all
        window = min(high, low + period)
        return IndexSet.of_runs(_common(self.unroll(window, low), other.unroll(window, low)), period, high)

    def to_array(self) -> Ints:
        """The elements in ascending order."""
        if self.runs == ((0, 1),):
            return np.arange(self.start, self.stop, self.period, dtype=np.int64)

        cycle = np.concatenate([np.arange(a, b, dtype=np.int64) for a, b in self.runs])
        cycles = -(-(self.stop - self.start) // self.period)
        bases = self.start + self.period * np.arange(cycles, dtype=np.int64)
        elements: Ints = np.add.outer(bases, cycle).reshape(-1)
        return elements[: len(self)]  # the last period may be cut short

    def __str__(self) -> str:
        if not self:
            return "{}"
        runs = list(islice(self.unroll(self.stop), 9))
        words = [str(a) if b == a + 1 else f"{a}..{b - 1}" for a, b in runs[:8]]
        if len(runs) > 8:
            words.append("…")

        return f"{{{', '.join(words)}}}"


EMPTY = IndexSet(0, 0, 1, ((0, 1),))


def _common(ours: Iterator[tuple[int, int]], theirs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of sorted runs that both have."""
    other = next(theirs, None)
    for a, b in ours:
        while other is not None and other[0] < b:
            if other[1] > a:
                yield max(a, other[0]), min(b, other[1])
            if other[1] > b:
                break  # it may reach into our next run
            other = next(theirs, None)


Selection = tuple[Any, ...]
"""An index of NumPy that selects a product of lists, one per mode: only slices, or only open arrays."""


def selection(lists: Sequence[Ints]) -> Selection:
    """NumPy's index for a product of lists: slices, which copy fastest, if all lists are regular, else open arrays."""
    slices = [_as_slice(indices) for indices in lists]
    if None not in slices:
        return tuple(slices)
    return np.ix_(*lists)


def _as_slice(indices: Ints) -> slice | None:
    if len(indices) == 0:
        return slice(0, 0)

    first, last = int(indices[0]), int(indices[-1])
    step = int(indices[1]) - first if len(indices) > 1 else 1
    if step == 0 or last != first + step * (len(indices) - 1) or (np.diff(indices) != step).any():
        return None

    return as_slice(range(first, last + (1 if step > 0 else -1), step))


def as_slice(steps: range) -> slice:
    """The slice that selects a range of indices, none of which is negative."""
    if not steps:
        return slice(0, 0)
    return slice(steps.start, None if steps.stop < 0 else steps.stop, steps.step)
