"""The components of a transition: the view modes of both sides that read the same digits of the tensor.

A group is the elements of a component that are at the same coordinates on the other side. It gives their places in both
blocks, in one order. Its elements are stored as lattices, or one by one if there would be too many lattices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...grammar.nodes import Kind
from ...layout.kinds import extent, split
from ...layout.layout import Distribution
from ...layout.view import Digit, from_tensor

__all__ = ["Component", "Group", "Lattice", "Listed", "Reading", "Row", "components", "counting", "extents_of"]
__all__ += ["number_of", "one_by_one", "readings", "splitting", "spread"]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]
Row = tuple[int, ...]
"""A number that is linear in the digits of a box: its start, then its step along each digit."""

_FEW, _MANY = np.dtype(np.int64), np.dtype(object)

Digits = tuple[tuple[Digit, ...], ...]
Reading = tuple[tuple[tuple[Digit, ...], tuple[tuple[Kind, int], ...], int], ...]
"""The data of some view modes that decide where elements lie: digits, kinds and parts of the splits, extent."""


class Component(NamedTuple):
    """View modes of the source and of the target that read the same digits of the tensor."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def modes(self, before: bool) -> tuple[int, ...]:
        """The modes of the source if `before`, else those of the target."""
        return self.before if before else self.after


def components(source: Distribution, target: Distribution) -> tuple[Component, ...]:
    """The components of a transition, ordered by the first digit of the tensor that they read."""
    return _components(source.digits, target.digits)


@memoized(4096)
def _components(before: Digits, after: Digits) -> tuple[Component, ...]:
    alike = _one_to_one(before, after, range(len(before)), range(len(after)))
    if alike is not None:
        return tuple(alike)
    groups: list[set[int]] = []  # modes of the tensor that view modes read together
    for digits in (*before, *after):
        modes = {digit.mode for digit in digits}
        joined = [group for group in groups if group & modes]
        groups = [group for group in groups if group not in joined] + [modes.union(*joined)]
    parts: list[Component] = []
    for group in sorted(groups, key=min):
        sources = [m for m, digits in enumerate(before) if digits[0].mode in group]
        targets = [m for m, digits in enumerate(after) if digits[0].mode in group]
        alike = _one_to_one(before, after, sources, targets)
        parts += alike or [Component(tuple(sources), tuple(targets))]
    return tuple(parts)


def _one_to_one(
    before: Digits, after: Digits, sources: Sequence[int], targets: Sequence[int]
) -> list[Component] | None:
    """A component for each of some modes, ordered by first digit, if both sides read the same digits; else None."""
    source_of = {before[m]: m for m in sources}
    target_of = {after[m]: m for m in targets}
    if source_of.keys() != target_of.keys() or not len(source_of) == len(sources) == len(targets):
        return None
    return [Component((source_of[digits],), (target_of[digits],)) for digits in sorted(source_of, key=_first)]


def splitting(dist: Distribution, modes: Iterable[int]) -> tuple[int, ...]:
    """The grid modes that split some view modes of a distribution, one mode after the other."""
    grid_modes = []
    for mode in modes:
        for each in dist.splits[mode]:
            grid_modes.append(each.grid_mode)
    return tuple(grid_modes)


@memoized(16384)
def readings(source: Distribution, target: Distribution, part: Component) -> tuple[Reading, Reading]:
    """The readings of both sides of a component; if both read the same digits, each mode counts as one digit."""
    alike = [source.digits[m] for m in part.before] == [target.digits[m] for m in part.after]
    return _reading(source, part.before, alike), _reading(target, part.after, alike)


@memoized(16384)
def _reading(dist: Distribution, modes: tuple[int, ...], alike: bool) -> Reading:
    reading = []
    for number, m in enumerate(modes):
        digits = (Digit(number, 1, dist.view_shape[m]),) if alike else dist.digits[m]
        splits = tuple([(split.kind, split.parts) for split in dist.splits[m]])
        reading.append((digits, splits, dist.view_shape[m]))
    return tuple(reading)


def _first(digits: tuple[Digit, ...]) -> tuple[int, int]:
    return digits[0].mode, -digits[0].weight


def extents_of(reading: Reading) -> dict[int, int]:
    """The extents of the tensor's modes of a component, in order."""
    extents: dict[int, int] = {}
    for digits, _, _ in reading:
        for digit in digits:
            extents[digit.mode] = extents.get(digit.mode, 1) * digit.size
    return dict(sorted(extents.items()))


def number_of(reading: Reading) -> int:
    """The number of elements of a component."""
    return prod(extents_of(reading).values())


def counting(most: int) -> np.dtype[Any]:
    """The dtype of counts up to `most`: int64, or Python's integers if bytes or sums of them may not fit 64 bits.

    >>> counting(2**40), counting(2**80)
    (dtype('int64'), dtype('O'))
    """
    return _FEW if most < 2**53 else _MANY


def one_by_one(reading: Reading, extents: dict[int, int]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    """The coordinates and local indices of every element of some tensor modes, one by one in ascending order."""
    number = prod(extents.values())
    tensor = dict(zip(extents, np.indices(tuple(extents.values())).reshape(len(extents), number), strict=True))
    at: list[Ints] = []
    local: list[Ints] = []
    for digits, splits, n in reading:
        index, left = from_tensor(digits, tensor), np.full(number, n)
        for kind, parts in splits:
            coordinate, index = split(kind, parts, left, index)
            left = extent(kind, parts, left, coordinate)
            at.append(coordinate)
        local.append(index)
    return tuple(at), tuple(local)


class Lattice(NamedTuple):
    """Elements that are evenly spaced in the blocks of both sides, along each of some digits.

    Attributes:
        shape: the number of values of each digit.
        own, opposite: per view mode of the component, the local index in the block of this side and of the other side.
    """

    shape: tuple[int, ...]
    own: tuple[Row, ...]
    opposite: tuple[Row, ...]


class Listed(NamedTuple):
    """Elements one by one: per view mode of the component, their local indices on this side and on the other side."""

    own: tuple[Ints, ...]
    opposite: tuple[Ints, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Elements of one component that lie at the same coordinates on the other side, in the same order on both sides.

    Attributes:
        coordinates: these coordinates, as pairs (grid mode, coordinate).
        elements: their places, as lattices, or one by one if there would be too many lattices.
    """

    coordinates: tuple[tuple[int, int], ...]
    elements: tuple[Lattice, ...] | Listed

    def __len__(self) -> int:
        if isinstance(self.elements, Listed):
            return len(self.elements.own[0])
        return sum(prod(lattice.shape) for lattice in self.elements)

    @property
    def positions(self) -> tuple[Ints, ...]:
        """The local indices of all elements on this side, per view mode of the component."""
        return self._positions(0)

    @property
    def opposite(self) -> tuple[Ints, ...]:
        """The local indices of all elements on the other side, per view mode of the component."""
        return self._positions(1)

    def lies(self, own: Sequence[int], opposite: Sequence[int]) -> bool:
        """Whether every element is at the same offset in both blocks, given their strides along the view modes."""
        if isinstance(self.elements, Listed):
            return np.array_equal(_places(self.elements.own, own), _places(self.elements.opposite, opposite))
        return all(_flat(lattice.own, own) == _flat(lattice.opposite, opposite) for lattice in self.elements)

    def _positions(self, side: int) -> tuple[Ints, ...]:
        if isinstance(self.elements, Listed):
            return self.elements[side]
        spread_out = []
        for lattice in self.elements:
            rows = (lattice.own, lattice.opposite)[side]
            spread_out.append([spread(lattice.shape, row) for row in rows])
        return tuple(map(np.concatenate, zip(*spread_out, strict=True)))


def _places(rows: tuple[Ints, ...], strides: Sequence[int]) -> Ints:
    """The offsets in a block of elements with these local indices, along modes of these strides."""
    places: Ints = np.zeros(len(rows[0]), np.int64)
    for row, stride in zip(rows, strides, strict=True):
        places += row * stride
    return places


def _flat(rows: tuple[Row, ...], strides: Sequence[int]) -> Row:
    """The sum of linear numbers, each times a stride."""
    total = [0] * len(rows[0])
    for row, stride in zip(rows, strides, strict=True):
        total = [n + m * stride for n, m in zip(total, row, strict=True)]
    return tuple(total)


def spread(shape: At, row: Row) -> Ints:
    """All values of a number that is linear in digits below `shape`, in row-major order of the digits."""
    values = np.full((), row[0], np.int64)
    for n, step in zip(shape, row[1:], strict=True):
        values = np.add.outer(values, step * np.arange(n))
    return values.reshape(-1)
