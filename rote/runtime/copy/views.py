"""Where the elements of a component lie in two arrays, as strided views of both.

A movement says of its elements that they are in runs, evenly spaced along each of some digits in both blocks; a message
has them one after the other. Where tiles do not fit each other there are too many runs, and elements are picked one by
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...compiler.groups import Group, Listed, Run

__all__ = ["Along", "Both", "Places", "Shape", "Side", "places"]

Ints = npt.NDArray[np.int64]
Shape = tuple[int, ...]
Rows = tuple[Shape, ...]  # per mode: where it begins, then its step along each digit
Along = tuple[tuple[int, Ints], ...]  # where elements lie along some modes of an array: pairs (mode, indices)


class Side(NamedTuple):
    """A view of one array: where it begins, as pairs (mode, index), and pairs (mode, step) for each dimension."""

    origin: tuple[tuple[int, int], ...]
    steps: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, modes: Sequence[int], rows: Rows) -> Side:
        """The view of places along some modes."""
        origin, *steps = (tuple(zip(modes, along, strict=True)) for along in zip(*rows, strict=True))
        return cls(origin, tuple(steps))

    def lies(self, strides: Shape) -> tuple[int, Shape]:
        """The offset and the strides of the view, of an array that has some strides."""
        start, steps = 0, list[int]()  # in loops, for this is what takes longest of making a view
        for mode, at in self.origin:
            start += at * strides[mode]
        for pairs in self.steps:
            step = 0
            for mode, n in pairs:
                step += n * strides[mode]
            steps.append(step)
        return start, tuple(steps)


class Both(NamedTuple):
    """The same elements as a view of one array and as one of another."""

    shape: Shape
    source: Side
    target: Side

    def times(self, other: Both) -> Both:
        """The product of the elements of two components."""
        source = Side(self.source.origin + other.source.origin, self.source.steps + other.source.steps)
        target = Side(self.target.origin + other.target.origin, self.target.steps + other.target.steps)
        return Both(self.shape + other.shape, source, target)


_NEAR = 8  # runs before one that it may go on from

Lies = tuple[tuple[int, ...], int]  # modes of an array, and whether it is the own side's block, the other's, a message


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The elements of one component in two arrays, each a block or a message.

    Attributes:
        group: the elements.
        source, target: the modes of either array along which they lie, and whether that is the own side's block (0),
            the other side's (1), or a message (2).
        views: of them all; none if they are picked one by one.
        size: their number.
    """

    group: Group
    source: Lies
    target: Lies
    views: tuple[Both, ...]
    size: int

    @property
    def lists(self) -> tuple[Along, Along]:
        """Where they lie, one by one, in the order of a message."""
        listed = isinstance(self.group.elements, Listed)
        group = self.group if listed else Group(self.group.coordinates, _merged(self.group))
        sides = group.positions, group.opposite, (np.arange(self.size),)
        (modes, side), (others, other) = self.source, self.target
        return tuple(zip(modes, sides[side], strict=True)), tuple(zip(others, sides[other], strict=True))


@lru_cache(maxsize=8192)
def places(group: Group, source: Lies, target: Lies) -> Places:
    """The elements of one component in two arrays, with views of them."""
    views, first = list[Both](), 0
    for run in _merged(group):
        message = (first, *(prod(run.shape[axis + 1 :]) for axis in range(len(run.shape))))
        sides = run.own, run.opposite, (message,)
        shape, rows, others = _joined(run.shape, sides[source[1]], sides[target[1]])
        views.append(Both(shape, Side.of(source[0], rows), Side.of(target[0], others)))
        first += prod(run.shape)
    return Places(group, source, target, tuple(views), len(group))


def _merged(group: Group) -> tuple[Run, ...]:
    """The runs of a group, with those joined of which one goes on where another ends, on both sides."""
    runs: list[Run] = []
    for run in () if isinstance(group.elements, Listed) else group.elements:
        for k in range(max(0, len(runs) - _NEAR), len(runs)):
            longer = _longer(runs[k], run)
            if longer is not None:
                runs[k] = longer
                break
        else:
            runs.append(run)
    return tuple(runs)


def _longer(earlier: Run, later: Run) -> Run | None:
    """Two runs as one along a digit of theirs, which one of them may not have; None if they are not."""
    wide = earlier if len(earlier.shape) >= len(later.shape) else later
    rows, later_rows = (*earlier.own, *earlier.opposite), (*later.own, *later.opposite)
    for axis in range(len(wide.shape)):
        at, lengths, rests = axis + 1, [], []
        steps = [row[at] for row in (*wide.own, *wide.opposite)]
        for run in (earlier, later):
            has = len(run.shape) == len(wide.shape)
            if has and [row[at] for row in (*run.own, *run.opposite)] != steps:
                break
            lengths.append(run.shape[axis] if has else 1)
            without = (run.shape, *(row[1:] for row in (*run.own, *run.opposite)))
            rests.append([(*each[:axis], *each[at:]) for each in without] if has else [*without])
        if len(rests) < 2:
            continue
        follows = all(b[0] == a[0] + lengths[0] * step for a, b, step in zip(rows, later_rows, steps, strict=True))
        if rests[0] == rests[1] and follows and len(earlier.shape) + len(later.shape) >= 2 * len(wide.shape) - 1:
            shape = (*wide.shape[:axis], sum(lengths), *wide.shape[at:])
            own, opposite = (
                tuple((begin[0], *row[1:]) for begin, row in zip(starts, side, strict=True))
                for starts, side in ((earlier.own, wide.own), (earlier.opposite, wide.opposite))
            )
            return Run(shape, own, opposite)
    return None


def _joined(shape: Shape, rows: Rows, others: Rows) -> tuple[Shape, Rows, Rows]:
    """The same elements with every two dimensions joined that one could be; those of one element are left out."""
    for axis in reversed(range(len(shape))):
        at, every = axis + 1, (*rows, *others)
        whole = at < len(shape) and all(row[at] == row[at + 1] * shape[at] for row in every)
        if shape[axis] != 1 and not whole:
            continue
        inner = shape[at] if whole else 1
        if whole:
            shape = (*shape[:axis], shape[axis] * inner, *shape[at + 1 :])
        else:
            shape = (*shape[:axis], *shape[at:])
        rows, others = (tuple((*row[:at], *row[at + 1 :]) for row in side) for side in (rows, others))
    return shape, rows, others
