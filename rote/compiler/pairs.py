"""The pairs of coordinates that have elements of a factor in common, counted without a table of all pairs.

Coordinates are linear in the digits of a lattice, and say what the digits are on which they depend. So coordinates on
this side fix some digits. Of the others, those on which coordinates of the other side depend say with how many of these
they have elements in common, and all of them say how many elements there are:

    shape (4, 2, 4)   rows (0, 2, 1, 0)  here       coordinate 5 fixes digits 0 and 1 at 2 and 1;
                           (0, 0, 4, 1)  there      digit 2 leaves 4 coordinates there, one element with each

Different lattices may have the same pairs. So those of small lattices are listed, each pair once, and of the large ones
if they may have some in common. All volumes, and the matrix of messages, are sums over these pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..lattice import Lattice, Row
from ..layout.grid import row_major
from .overlaps import Intervals, TooManyPiecesError

__all__ = ["Pairs", "pairs_of"]

Array = npt.NDArray[Any]
Weighted = tuple[Lattice, int]  # of pairs, and the number of elements of each pair

_LARGE = 1 << 12  # pairs of a lattice, which are not listed
_LISTED = 1 << 26  # pairs, which take some gigabytes


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs of coordinates of a factor that have elements in common.

    Attributes:
        parts: the number of coordinates of each split of the source, then of the target.
        large: lattices of pairs, none of which is in two of them, each with the number of elements of a pair.
        rows: per split, the coordinates of all pairs of other lattices.
        elements: how many elements these pairs have there.
        alone: 1 for each of these pairs that is in no large lattice, else 0.
    """

    parts: tuple[int, ...]
    large: tuple[tuple[Lattice, int], ...]
    rows: Array
    elements: Array
    alone: Array

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.rows.nbytes + self.elements.nbytes + self.alone.nbytes

    def met(self, at: Mapping[int, Any]) -> tuple[Array, Array]:
        """At coordinates given by row, in arrays that broadcast: the elements, and the pairs that have some."""
        keys: Array = np.zeros(self.rows.shape[1], np.int64)
        place: Any = 0
        number = 1
        for k, value in at.items():
            p = self.parts[k]
            keys, place, number = keys * p + self.rows[k], place * p + value, number * p

        if number > max(_LARGE, len(keys)):  # too many for a table
            listed, keys = np.unique(keys, return_inverse=True)
            nearest, number = np.searchsorted(listed, place), len(listed)
            place = np.where(np.append(listed, -1)[nearest] == place, nearest, number)  # the last is that of no pair

        counts = []
        for weights in (self.elements, self.alone):
            total = np.zeros(number + 1, weights.dtype)
            np.add.at(total, keys, weights)
            counts.append(total[place])
        for lattice, size in self.large:
            inside, others = _inside(lattice, at)
            counts = [counts[0] + inside * (size * others), counts[1] + inside * others]
        return np.asarray(counts[0], self.elements.dtype), np.asarray(counts[1])


def pairs_of(lattices: Sequence[Lattice], parts: tuple[int, ...], counter: np.dtype[Any]) -> Pairs:
    """The pairs of coordinates in some lattices, whose first rows are the coordinates of both sides.

    Args:
        parts: the number of coordinates of each of these rows.
        counter: the dtype of numbers of elements.

    Raises:
        TooManyPiecesError: they make too long a list.
    """
    if type(lattices) is Intervals:
        alone = np.ones(len(lattices), np.int64)
        return Pairs(parts, (), lattices.rows[:-2], lattices.lengths.astype(counter), alone)

    weighted = [_of_coordinates(lattice, len(parts)) for lattice in lattices]
    large = _large_of(weighted)
    few = [(box, size) for box, size in weighted if not large or box.size <= _LARGE or box.listed]
    rows, elements = _listed(few, parts, counter)

    alone = np.ones(elements.shape, np.int64)
    for lattice, _ in large:
        alone &= ~_inside(lattice, dict(enumerate(rows)))[0]
    return Pairs(parts, tuple(large), rows, elements, alone)


def _large_of(weighted: Sequence[Weighted]) -> list[Weighted]:
    """The lattices of too many pairs to list them, if no two of these have a pair in common; else none."""
    large = [(box, size) for box, size in weighted if box.size > _LARGE and not box.listed]
    disjoint = all(_disjoint(one, other) for (one, _), (other, _) in combinations(large, 2))
    return large if disjoint else []


def _listed(few: Sequence[Weighted], parts: tuple[int, ...], counter: np.dtype[Any]) -> tuple[Array, Array]:
    """The pairs of these lattices, each once: their coordinates by row, and their elements."""
    number = sum([lattice.size for lattice, _ in few])
    if number > _LISTED:
        raise TooManyPiecesError(
            f"the tiles of the two layouts fit each other so badly that {number} pairs of ranks would have to be "
            "counted one by one\nwrite tiles or extents that divide each other, or use fewer ranks"
        )

    # A key is the place of a pair in a table of all pairs, which is made if it is no longer than the list.
    strides = row_major(parts)
    keys = [Lattice(lattice.shape, (lattice.offset(strides),)).values(0) for lattice, _ in few]
    if prod(parts) <= max(_LARGE, number):
        table = np.zeros(prod(parts), counter)
        for key, (_, size) in zip(keys, few, strict=True):
            np.add.at(table, key, size)
        pairs = np.flatnonzero(table)
        elements = table[pairs]
    else:
        pairs, place = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_inverse=True)
        elements = np.zeros(len(pairs), counter)
        sizes, times = np.array([size for _, size in few], counter), [lattice.size for lattice, _ in few]
        np.add.at(elements, place, np.repeat(sizes, np.array(times, np.int64)))

    rows = np.array(np.unravel_index(pairs, parts) if parts else (), np.int64).reshape(len(parts), len(pairs))
    return rows, elements


def _of_coordinates(lattice: Lattice, number: int) -> Weighted:
    """The digits of a lattice on which its first rows depend, and the number of elements at each of their values."""
    rows = lattice.rows[:number]
    if lattice.listed:
        return Lattice(lattice.shape, rows), 1
    axes = [axis for axis, steps in enumerate([*zip(*rows, strict=True)][1:]) if any(steps)]
    shape = tuple([lattice.shape[axis] for axis in axes])
    coordinates = tuple([(row[0], *[row[axis + 1] for axis in axes]) for row in rows])
    return Lattice(shape, coordinates), lattice.size // prod(shape)


def _disjoint(one: Lattice, other: Lattice) -> bool:
    """Whether some coordinate has no value in common: by what divides its steps, or by its least and greatest value."""
    return any(map(_differ, zip(one.rows, other.rows, strict=True), [(one.shape, other.shape)] * len(one.rows)))


def _differ(rows: tuple[Row, Row], shapes: tuple[Sequence[int], Sequence[int]]) -> bool:
    (least, most), (begin, end) = map(_span, rows, shapes)
    common = gcd(*rows[0][1:], *rows[1][1:])
    return least > end or begin > most or bool(common and (least - begin) % common)


def _span(row: Row, shape: Sequence[int]) -> tuple[int, int]:
    return row[0], row[0] + sum([step * (n - 1) for n, step in zip(shape, row[1:], strict=True)])


def _inside(lattice: Lattice, at: Mapping[int, Any]) -> tuple[Array, int]:
    """Where some rows have given values in a lattice, and the number of values of the digits that these leave open.

    In a row, each step is larger than all smaller ones can add up to, so the largest step says its digit first.
    """
    digits, inside = dict[int, Any](), np.True_
    for k, value in at.items():
        left = value - lattice.rows[k][0]
        for step, axis in sorted([(step, axis) for axis, step in enumerate(lattice.rows[k][1:]) if step], reverse=True):
            digit, left = np.divmod(left, step)
            inside = inside & (digit >= 0) & (digit < lattice.shape[axis])
            inside = inside & (digits.setdefault(axis, digit) == digit)
        inside = inside & (left == 0)
    return np.asarray(inside), prod([n for axis, n in enumerate(lattice.shape) if axis not in digits])
