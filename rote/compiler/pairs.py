"""The pairs of coordinates that have elements of a component in common, counted without a table of all pairs.

Coordinates are linear in the digits of a lattice, and say what the digits are on which they depend. So coordinates on
this side fix some digits. Of the others, those on which coordinates of the other side depend say with how many of these
they have elements in common, and all of them say how many elements there are:

    shape (4, 2, 4)   rows (0, 2, 1, 0)  here       coordinate 5 fixes digits 0 and 1 at 2 and 1;
                           (0, 0, 4, 1)  there      digit 2 leaves 4 coordinates there, one element with each

Different lattices may have the same pairs. So those of small lattices are listed, each pair once, and of the large ones
if they may have some in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..lattice import Lattice, Row
from ..layout.grid import row_major
from .components import Reading, counting, number_of, overlaps_below, segments, splits_of

__all__ = ["Pairs", "pairs_of"]

Array = npt.NDArray[Any]

_LATTICES = 1 << 12  # more take longer than a table
_LARGE = 1 << 12  # pairs of a lattice, which are not listed
_LISTED = 1 << 22  # pairs, which take half a second


class Pairs(NamedTuple):
    """The pairs of coordinates of a component that have elements in common.

    Attributes:
        parts: the number of coordinates of each split of the source, then of the target.
        large: lattices of pairs, none of which is in two of them, each with the number of elements of a pair.
        rows: per split, the coordinates of all pairs of other lattices.
        elements: how many elements these pairs have there.
        alone: whether these pairs are in no large lattice.
    """

    parts: tuple[int, ...]
    large: tuple[tuple[Lattice, int], ...]
    rows: Array
    elements: Array
    alone: Array

    def met(self, at: Mapping[int, Any]) -> tuple[Array, Array]:
        """At coordinates given by row, in arrays that broadcast: the elements, and the pairs that have some."""
        strides = dict(zip(at, row_major([self.parts[k] for k in at]), strict=True))
        keys: Array = np.zeros(self.rows.shape[1], np.int64)
        wanted: Array = np.zeros((), np.int64)
        for k, stride in strides.items():
            keys, wanted = keys + stride * self.rows[k], wanted + stride * np.asarray(at[k])
        number = prod([self.parts[k] for k in at])
        if number > _LARGE:  # too many for a table
            listed, keys = np.unique(keys, return_inverse=True)
            found, number = np.searchsorted(listed, wanted), len(listed)
            wanted = np.where(np.append(listed, -1)[found] == wanted, found, number)  # the last is that of no pair
        counts = []
        for weights in (self.elements, self.alone.astype(np.int64)):
            total = np.zeros(number + 1, weights.dtype)
            np.add.at(total, keys, weights)
            counts.append(total[wanted])
        for lattice, each in self.large:
            inside, others = _inside(lattice, at)
            counts = [counts[0] + inside * (each * others), counts[1] + inside * others]
        return np.asarray(counts[0], self.elements.dtype), np.asarray(counts[1])


@memoized(64)
def pairs_of(source: Reading, target: Reading) -> Pairs | None:
    """The pairs of a component; None if they would make too long a list."""
    parts, counter = tuple(splits_of(source, target)), counting(number_of(source))
    overlaps = overlaps_below(source, target, _LATTICES)
    if overlaps is None:
        runs = segments(source, target)
        if runs is None:
            return None
        return Pairs(parts, (), runs.rows[:-2], runs.lengths.astype(counter), np.full(len(runs), True))
    weighted = [_of_coordinates(lattice, len(parts)) for lattice in overlaps]
    large = [(lattice, each) for lattice, each in weighted if lattice.size > _LARGE]
    if not all(_apart(one, other) for (one, _), (other, _) in combinations(large, 2)):
        large = []
    few = [each for each in weighted if not large or each[0].size <= _LARGE]
    if sum([lattice.size for lattice, _ in few]) > _LISTED:
        return None
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, counter)]
    for lattice, each in few:
        key = lattice.offset(row_major(parts), slice(None))
        keys.append(Lattice(lattice.shape, (key,)).values(0))
        counts.append(np.full(lattice.size, each, counter))
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    elements = np.zeros(len(pairs), counter)
    np.add.at(elements, place, np.concatenate(counts))
    rows = np.array(np.unravel_index(pairs, parts) if parts else (), np.int64).reshape(len(parts), len(pairs))
    alone = np.full(len(pairs), True)
    for lattice, _ in large:
        alone &= ~_inside(lattice, dict(enumerate(rows)))[0]
    return Pairs(parts, tuple(large), rows, elements, alone)


def _of_coordinates(lattice: Lattice, number: int) -> tuple[Lattice, int]:
    """The digits of a lattice on which its first rows depend, and the number of elements at each of their values."""
    rows = lattice.rows[:number]
    axes = [axis for axis in range(len(lattice.shape)) if any(row[axis + 1] for row in rows)]
    shape = tuple([lattice.shape[axis] for axis in axes])
    kept = tuple([(row[0], *[row[axis + 1] for axis in axes]) for row in rows])
    return Lattice(shape, kept), lattice.size // prod(shape)


def _apart(one: Lattice, other: Lattice) -> bool:
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
    digits, found = dict[int, Any](), np.True_
    for k, value in at.items():
        left = value - lattice.rows[k][0]
        for step, axis in sorted([(step, axis) for axis, step in enumerate(lattice.rows[k][1:]) if step], reverse=True):
            digit, left = np.divmod(left, step)
            found = found & (digit >= 0) & (digit < lattice.shape[axis]) & (digits.setdefault(axis, digit) == digit)
        found = found & (left == 0)
    return np.asarray(found), prod([n for axis, n in enumerate(lattice.shape) if axis not in digits])
