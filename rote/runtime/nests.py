"""Where the elements of a component lie in two arrays, as strided views of both.

A movement says of its elements that they are in runs, evenly spaced along each of some digits in both blocks; a message
has them one after the other. Where tiles do not fit each other there are too many runs, and elements are picked one by
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..compiler.movement import Group, Listed

__all__ = ["Along", "Both", "Places", "Shape", "Side"]

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
        start = sum(at * strides[mode] for mode, at in self.origin)
        return start, tuple(sum(step * strides[mode] for mode, step in pairs) for pairs in self.steps)


class Both(NamedTuple):
    """The same elements as a view of one array and as one of another."""

    shape: Shape
    here: Side
    there: Side

    def times(self, other: Both) -> Both:
        """The product of the elements of two components."""
        here = Side(self.here.origin + other.here.origin, self.here.steps + other.here.steps)
        there = Side(self.there.origin + other.there.origin, self.there.steps + other.there.steps)
        return Both(self.shape + other.shape, here, there)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The elements of one component in two arrays, each a block or a message.

    Attributes:
        group: the elements.
        here, there: the modes of either array along which they lie, and whether that is the own side's block (0), the
            other side's (1), or a message (2).
    """

    group: Group
    here: tuple[tuple[int, ...], int]
    there: tuple[tuple[int, ...], int]

    def __len__(self) -> int:
        return len(self.group)

    @property
    def number(self) -> int:
        """How many views they are; 0 if they are picked one by one."""
        return 0 if isinstance(self.group.elements, Listed) else len(self.group.elements)

    @property
    def views(self) -> list[Both]:
        """Views of them all."""
        found, first = list[Both](), 0
        for run in () if isinstance(self.group.elements, Listed) else self.group.elements:
            message = (first, *(prod(run.shape[axis + 1 :]) for axis in range(len(run.shape))))
            sides = run.here, run.there, (message,)
            shape, rows, others = _joined(run.shape, sides[self.here[1]], sides[self.there[1]])
            found.append(Both(shape, Side.of(self.here[0], rows), Side.of(self.there[0], others)))
            first += prod(run.shape)
        return found

    @property
    def lists(self) -> tuple[Along, Along]:
        """Where they lie, one by one."""
        sides = self.group.positions, self.group.opposite, (np.arange(len(self)),)
        (modes, side), (others, other) = self.here, self.there
        return tuple(zip(modes, sides[side], strict=True)), tuple(zip(others, sides[other], strict=True))


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
