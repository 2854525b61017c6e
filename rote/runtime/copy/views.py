"""Strided views of the elements of a component in two arrays.

A movement describes its elements by lattices, which are evenly spaced along each of some digits in both blocks. In a
message they follow each other. If tiles do not fit each other, there would be too many lattices, and elements are
picked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from ...caches import memoized
from ...compiler.movement.components import Group, Lattice, Listed
from ...compiler.movement.overlap import joined
from ...layout.grid import row_major
from ...layout.indexset import Ints

__all__ = ["Along", "ArrayView", "GroupViews", "Lies", "Shape", "ViewPair", "group_views"]

Shape = tuple[int, ...]
Rows = tuple[Shape, ...]  # per mode: the start, then the step along each digit
Along = tuple[tuple[int, Ints], ...]  # the places of elements along some modes of an array: pairs (mode, indices)


class ArrayView(NamedTuple):
    """A view of one array: its origin, as pairs (mode, index), and pairs (mode, step) for each dimension."""

    origin: tuple[tuple[int, int], ...]
    steps: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, modes: Sequence[int], rows: Rows) -> ArrayView:
        """The view of places that are given by rows, along some modes."""
        origin, *steps = (tuple(zip(modes, along, strict=True)) for along in zip(*rows, strict=True))
        return cls(origin, tuple(steps))

    def lies(self, strides: Shape) -> tuple[int, Shape]:
        """The offset and the strides of the view in an array with these strides."""
        start, steps = 0, list[int]()  # loops are fast, and this is the slowest part of making a view
        for mode, at in self.origin:
            start += at * strides[mode]
        for pairs in self.steps:
            step = 0
            for mode, n in pairs:
                step += n * strides[mode]
            steps.append(step)
        return start, tuple(steps)


class ViewPair(NamedTuple):
    """Views of the same elements in two arrays."""

    shape: Shape
    source: ArrayView
    target: ArrayView

    def times(self, other: ViewPair) -> ViewPair:
        """The product of the elements of two components."""
        source = ArrayView(self.source.origin + other.source.origin, self.source.steps + other.source.steps)
        target = ArrayView(self.target.origin + other.target.origin, self.target.steps + other.target.steps)
        return ViewPair(self.shape + other.shape, source, target)


_NEAR = 8  # preceding lattices that a lattice may continue

Lies = tuple[tuple[int, ...], int]  # modes of an array, and whether it is this side's block, the other's, a message


@dataclass(frozen=True, slots=True, eq=False)
class GroupViews:
    """The elements of one component in two arrays, each a block or a message.

    Attributes:
        group: the elements.
        source, target: the modes of either array along which they lie, and whether the array is this side's block (0),
            the other side's (1), or a message (2).
        views: the views of all elements; none if they are picked one by one.
        size: the number of elements.
    """

    group: Group
    source: Lies
    target: Lies
    views: tuple[ViewPair, ...]
    size: int

    @property
    def lists(self) -> tuple[Along, Along]:
        """The positions of the elements, one by one, in the order of a message."""
        group = self.group
        if not isinstance(group.elements, Listed):
            group = Group(group.coordinates, _merged(group))
        sides = group.positions, group.opposite, (np.arange(self.size),)
        (modes, side), (others, other) = self.source, self.target
        return tuple(zip(modes, sides[side], strict=True)), tuple(zip(others, sides[other], strict=True))


@memoized(8192)
def group_views(group: Group, source: Lies, target: Lies) -> GroupViews:
    """The elements of one component in two arrays, with views of them."""
    views, first = list[ViewPair](), 0
    for lattice in _merged(group):
        message = (first, *row_major(lattice.shape))
        sides = lattice.own, lattice.opposite, (message,)
        rows = sides[source[1]]
        shape, both = joined(lattice.shape, (*rows, *sides[target[1]]))
        rows, others = both[: len(rows)], both[len(rows) :]
        views.append(ViewPair(shape, ArrayView.of(source[0], rows), ArrayView.of(target[0], others)))
        first += prod(lattice.shape)
    return GroupViews(group, source, target, tuple(views), len(group))


def _merged(group: Group) -> tuple[Lattice, ...]:
    """The lattices of a group, joined where one continues another on both sides."""
    lattices: list[Lattice] = []
    if isinstance(group.elements, Listed):
        return ()
    for lattice in group.elements:
        for k in range(max(0, len(lattices) - _NEAR), len(lattices)):
            longer = _longer(lattices[k], lattice)
            if longer is not None:
                lattices[k] = longer
                break
        else:
            lattices.append(lattice)
    return tuple(lattices)


def _longer(earlier: Lattice, later: Lattice) -> Lattice | None:
    """Two lattices joined along a digit, which one of them may lack; None if they cannot be joined."""
    wide = earlier if len(earlier.shape) >= len(later.shape) else later
    rows, later_rows = (*earlier.own, *earlier.opposite), (*later.own, *later.opposite)
    for axis in range(len(wide.shape)):
        at, lengths, rests = axis + 1, [], []
        steps = [row[at] for row in (*wide.own, *wide.opposite)]
        for lattice in (earlier, later):
            has = len(lattice.shape) == len(wide.shape)
            if has and [row[at] for row in (*lattice.own, *lattice.opposite)] != steps:
                break
            without = [lattice.shape, *[row[1:] for row in (*lattice.own, *lattice.opposite)]]
            if has:
                without = [(*each[:axis], *each[at:]) for each in without]
            lengths.append(lattice.shape[axis] if has else 1)
            rests.append(without)
        if len(rests) < 2:
            continue
        follows = all(b[0] == a[0] + lengths[0] * step for a, b, step in zip(rows, later_rows, steps, strict=True))
        if rests[0] == rests[1] and follows and len(earlier.shape) + len(later.shape) >= 2 * len(wide.shape) - 1:
            shape = (*wide.shape[:axis], sum(lengths), *wide.shape[at:])
            return Lattice(shape, _from(earlier.own, wide.own), _from(earlier.opposite, wide.opposite))
    return None


def _from(starts: Rows, rows: Rows) -> Rows:
    """Linear numbers with the starts of `starts` and the steps of `rows`."""
    return tuple([(start[0], *row[1:]) for start, row in zip(starts, rows, strict=True)])
