"""The inverse problem for one mode: find the chain of splits that gives every coordinate the run that it holds.

Runs are (start, length, step). The outermost split is found first, from the digit of the rank that decides in which
part a run lies. The same question then remains for local indices, among which the runs are runs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..grammar.nodes import Kind
from . import kinds
from .divisors import divisors
from .indexset import Ints

__all__ = ["BLOCKS", "Axis", "Link", "find_chain"]

BLOCKS = (Kind("block"), Kind("ceil"), Kind("floor"))
"""The kinds without sizes that cut indices into consecutive parts."""

_TRIES = 3000  # digits to try before giving up; if a chain exists, few are needed


class Axis(NamedTuple):
    """A digit of the rank: `rank // stride % size`."""

    stride: int
    size: int


class Link(NamedTuple):
    """One split of a chain: the digit of the rank over which it splits, and its kind."""

    axis: Axis
    kind: Kind


@dataclass(frozen=True, slots=True)
class _Question:
    """The runs to explain: mode 0 of the arrays counts the parts of the known splits, and each axis is another mode."""

    axes: tuple[Axis, ...]
    extents: Ints
    start: Ints
    length: Ints
    step: Ints

    @property
    def answered(self) -> bool:
        """Whether every run fills its extent."""
        whole = (self.start == 0) & ((self.step == 1) | (self.length <= 1))
        return bool(((self.length == self.extents) & (whole | (self.length == 0))).all())

    def outer(self, at: int, size: int, low: int) -> _Question:
        """The question with one digit of an axis moved to mode 1; the digits above and below it stay as axes."""
        stride, total = self.axes[at]
        high = total // (size * low)
        axes = (*self.axes[:at], Axis(stride * low * size, high), Axis(stride, low), *self.axes[at + 1 :])

        def moved(values: Ints) -> Ints:
            shape = (*values.shape[: at + 1], high, size, low, *values.shape[at + 2 :])
            return np.moveaxis(values.reshape(shape), at + 2, 1)

        return _Question(axes, self.extents, moved(self.start), moved(self.length), moved(self.step))

    def within(self, kind: Kind) -> _Question | None:
        """The question that remains after a split over mode 1, or None if some run does not lie in its part."""
        size = self.start.shape[1]
        ones = (1,) * (self.start.ndim - 2)
        extents = self.extents.reshape(-1, 1, *ones)
        parts = kinds.extent(kind, size, self.extents[:, None], np.arange(size)[None, :])
        lengths = self.length.reshape(*self.length.shape[:2], -1).sum(axis=2)
        if not np.array_equal(np.broadcast_to(parts, lengths.shape), lengths):
            return None
        digit = np.arange(size).reshape(1, -1, *ones)
        some, more = self.length > 0, self.length > 1
        last = self.start + (self.length - 1) * self.step
        places = []
        for index, held in ((self.start, some), (self.start + self.step, more), (last, some)):
            owner, local = kinds.split(kind, size, extents, np.where(held, index, 0))
            if (held & (owner != digit)).any():
                return None
            places.append(local)
        first, second, end = places
        step = np.where(more, second - first, 1)
        if (some & (end != first + (self.length - 1) * step)).any() or (step < 1).any():
            return None
        rest = self.start.shape[2:]
        start, length, step = (v.reshape(-1, *rest) for v in (np.where(some, first, 0), self.length, step))
        return _Question(self.axes, lengths.reshape(-1), start, length, step)

    def kinds(self) -> Iterator[Kind]:
        """The possible kinds of a split over mode 1, from the lengths of its parts."""
        size = self.start.shape[1]
        lengths = self.length.reshape(*self.length.shape[:2], -1).sum(axis=2)
        yield from (*BLOCKS, Kind("cyclic", (1,)))
        widest = int(lengths[:, 0].max(initial=0))
        if widest and (self.extents <= size * widest).all():
            yield Kind("block", (widest,))
        if len(lengths) and (lengths == lengths[0]).all():
            yield Kind("block", tuple(map(int, lengths[0])))
        zero = ((self.start == 0) & (self.length > 0)).reshape(*lengths.shape, -1).any(axis=(0, 2))
        at = int(zero.argmax())  # where the first tile lies; the start of the second is the length of a tile
        beside = (at + 1) % size
        starts = self.start[:, beside][self.length[:, beside] > 0]
        tile = int(starts.min()) if starts.size else max(int(self.extents.max(initial=1)), 1)
        if tile:
            yield Kind("cyclic", (tile,), at)


def find_chain(axes: tuple[Axis, ...], extent: int, start: Ints, length: Ints, step: Ints) -> tuple[Link, ...] | None:
    """The splits of a mode, the outermost first, that give each coordinate its run; None if there are none.

    Args:
        axes: the digits of the rank on which the runs depend.
        extent: the extent of the mode.
        start, length, step: the runs, as arrays with one mode per axis; runs of length 0 have start 0 and step 1.

    The time is proportional to the number of runs.

    >>> start = np.array([[0, 3], [5, 8]])
    >>> length, step = np.array([[3, 2], [3, 2]]), np.ones((2, 2), int)
    >>> [str(link.kind.sizes) for link in find_chain((Axis(2, 2), Axis(1, 2)), 10, start, length, step)]
    ['()', '()']
    """
    tries = 0

    def solve(question: _Question) -> tuple[Link, ...] | None:
        nonlocal tries
        if all(axis.size == 1 for axis in question.axes):
            plain = question.extents.reshape(-1, *(1,) * len(question.axes))
            return () if _Question((), plain, question.start, question.length, question.step).answered else None
        for at, size, low in _digits(question.axes):
            tries += 1
            if tries > _TRIES:
                return None
            outer = question.outer(at, size, low)
            for kind in outer.kinds():
                left = outer.within(kind)
                if left is not None:  # another kind would leave the same question
                    rest = solve(left)
                    if rest is not None:
                        return (Link(Axis(question.axes[at].stride * low, size), kind), *rest)
                    break
        return None

    return solve(_Question(axes, np.array([extent]), start[None], length[None], step[None]))


def _digits(axes: tuple[Axis, ...]) -> list[tuple[int, int, int]]:
    """All digits of all axes, the largest first, as (axis, size, size of the digits below)."""
    digits = []
    for at, axis in enumerate(axes):
        for size in divisors(axis.size)[1:]:
            digits += [(at, size, low) for low in divisors(axis.size // size)]
    return sorted(digits, key=lambda digit: -digit[1])
