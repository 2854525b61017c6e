"""Groups: elements of one component that lie at the same coordinates on the other side, and where in both blocks.

Both sides have them in one order. They are kept in lattices, or one by one where lattices would be too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .overlap import Row

__all__ = ["Group", "Lattice", "Listed", "spread"]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]


class Lattice(NamedTuple):
    """Elements that are evenly spaced in the blocks of both sides, along each of some digits.

    Attributes:
        shape: the number of values of each digit.
        own, opposite: per view mode of the component, the local index in the block of the own side and the other one.
    """

    shape: tuple[int, ...]
    own: tuple[Row, ...]
    opposite: tuple[Row, ...]


class Listed(NamedTuple):
    """Elements one by one: per view mode of the component, their local indices on the own side and the other one."""

    own: tuple[Ints, ...]
    opposite: tuple[Ints, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Elements of one component that lie at the same coordinates on the other side. Both sides have them in one order.

    Attributes:
        coordinates: those coordinates, as pairs (grid mode, coordinate).
        elements: where they are, in lattices, or one by one where lattices would be too many.
    """

    coordinates: tuple[tuple[int, int], ...]
    elements: tuple[Lattice, ...] | Listed

    def __len__(self) -> int:
        if isinstance(self.elements, Listed):
            return len(self.elements.own[0])
        return sum(prod(lattice.shape) for lattice in self.elements)

    @property
    def positions(self) -> tuple[Ints, ...]:
        """The local indices of all elements on the own side, per view mode of the component."""
        return self._positions(0)

    @property
    def opposite(self) -> tuple[Ints, ...]:
        """The local indices of all elements on the other side, per view mode of the component."""
        return self._positions(1)

    def lies(self, own: Sequence[int], opposite: Sequence[int]) -> bool:
        """Whether every element is at one place in both blocks, if these are their strides along the view modes."""
        if isinstance(self.elements, Listed):
            places = [
                sum((row * stride for row, stride in zip(rows, strides, strict=True)), np.zeros(len(self), np.int64))
                for rows, strides in zip(self.elements, (own, opposite), strict=True)
            ]
            return np.array_equal(places[0], places[1])
        return all(_flat(lattice.own, own) == _flat(lattice.opposite, opposite) for lattice in self.elements)

    def _positions(self, side: int) -> tuple[Ints, ...]:
        if isinstance(self.elements, Listed):
            return self.elements[side]
        rows = zip(*((lattice.own, lattice.opposite)[side] for lattice in self.elements), strict=True)
        return tuple(
            np.concatenate([spread(lattice.shape, row) for lattice, row in zip(self.elements, along, strict=True)])
            for along in rows
        )


def _flat(rows: tuple[Row, ...], strides: Sequence[int]) -> Row:
    """The sum of numbers, each times a stride."""
    return tuple(sum(n * stride for n, stride in zip(each, strides, strict=True)) for each in zip(*rows, strict=True))


def spread(shape: At, row: Row) -> Ints:
    """All values of a number that is linear in digits below `shape`, in row-major order of these."""
    values = np.full((), row[0], np.int64)
    for n, step in zip(shape, row[1:], strict=True):
        values = np.add.outer(values, step * np.arange(n))
    return values.reshape(-1)
