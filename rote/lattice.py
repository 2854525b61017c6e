"""Lattices: elements whose indices, coordinates and offsets are all linear in the same digits.

An index is a number with digits, and a layout assigns its digits to coordinates and local indices. So blocks, messages
and their common parts are made of a few lattices, whatever their number of elements. A lattice has a `shape` of digits
and rows, each a number that is linear in them: `start + i0*step0 + i1*step1 + …`. Elements are in row-major order of
the digits. Cyclic distribution of 12 elements over 3 ranks is one lattice with a coordinate and a local index:

    shape (4, 3)             digit 1 ->            coordinate 0 1 2
    rows  (0, 3, 1)  index        digit 0   0  1  2
          (0, 0, 1)  coordinate      |      3  4  5    local index 1
          (0, 1, 0)  local index     v      6  7  8    local index 2
                                            9 10 11

If tiles do not fit each other, there would be too many lattices. Such elements are listed in one lattice with a single
digit, in which each row has a table of values in the place of its step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Lattice", "Row", "Shape"]

Ints = npt.NDArray[np.int64]
Shape = tuple[int, ...]
Row = tuple[Any, ...]
"""A number that is linear in digits: its start, then its step along each digit, or a table of what a digit adds."""


@dataclass(slots=True, eq=False)  # nothing changes one; a frozen class takes twice as long, and there are many
class Lattice:
    """Elements at all combinations of some digits, with numbers that are linear in the digits.

    Operations on digits keep the values of all rows. Those that divide or combine numbers need steps that are not
    negative. A lattice is compared and hashed by identity, so that results of operations are cached quickly.

    Attributes:
        shape: the number of values of each digit.
        rows: the numbers.
    """

    shape: Shape
    rows: tuple[Row, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def listed(self) -> bool:
        """Whether the elements are listed one by one, as a single digit with tables."""
        return bool(self.rows) and type(self.rows[0][-1]) is np.ndarray

    def values(self, k: int) -> Ints:
        """All values of row k, in order.

        >>> Lattice((2, 3), ((5, 10, 1),)).values(0).tolist()
        [5, 6, 7, 15, 16, 17]
        """
        start, *steps = self.rows[k]
        if self.listed:
            return np.asarray(start + steps[0], np.int64)

        values = np.array(start, np.int64)
        for n, step in zip(self.shape, steps, strict=True):
            values = np.add.outer(values, step * np.arange(n))
        return values.reshape(-1)

    def having(self, row: Row) -> Lattice:
        """The same elements with one more row."""
        return Lattice(self.shape, (*self.rows, row))

    def offset(self, weights: Iterable[int], rows: slice = slice(None)) -> Row:
        """The sum of some rows, each times its weight, as another row: for strides as weights, offsets in an array."""
        total = [0] * (len(self.shape) + 1)
        for weight, row in zip(weights, self.rows[rows], strict=True):
            total = [n + weight * step for n, step in zip(total, row, strict=True)]
        return tuple(total)

    # --- parts --------------------------------------------------------------------------------------------------

    def slice(self, axis: int, start: int, stop: int) -> Lattice:
        """The elements in a range of one digit; a digit of which one value is left is dropped."""
        n, at = stop - start, axis + 1
        if n == self.shape[axis]:
            return self
        if n == 1:
            rows = tuple([(row[0] + start * row[at], *row[1:at], *row[at + 1 :]) for row in self.rows])
            return Lattice((*self.shape[:axis], *self.shape[at:]), rows)

        rows = tuple([(row[0] + start * row[at], *row[1:]) for row in self.rows])
        return Lattice((*self.shape[:axis], n, *self.shape[at:]), rows)

    def take(self, numbers: npt.NDArray[Any]) -> Lattice:
        """Some elements of a list, by their numbers, or by a mask."""
        rows = tuple([(start, table[numbers]) for start, table in self.rows])
        return Lattice((len(rows[0][1]),), rows)

    def split(self, axis: int, period: int) -> Lattice:
        """Read one digit as two, the second of which is below `period`, a divisor of the digit's number of values."""
        at = axis + 1
        shape = (*self.shape[:axis], self.shape[axis] // period, period, *self.shape[at:])
        return Lattice(shape, tuple([(*row[:at], row[at] * period, *row[at:]) for row in self.rows]))

    def between(self, k: int, start: int, stop: int) -> Iterator[Lattice]:
        """The elements for which row k is at least `start` and below `stop`, as few lattices."""
        if self.listed:
            values = self.values(k)
            yield self.take((values >= start) & (values < stop))
            return
        for part in self.cut(k, start)[1]:
            yield from part.cut(k, stop)[0]

    def cut(self, k: int, at: int) -> tuple[list[Lattice], list[Lattice]]:
        """The elements for which row k is below `at`, and the others.

        Values of a digit that are entirely below, or not, stay in one part; those between are cut along other digits:

            0 1 2 | 3      at=7: digit 0 is below, digit 2 is not, and digit 1 is cut
            4 5 6 | 7
           ------- --------
            8 9 10  11
        """
        start, *steps = self.rows[k]
        most = 0
        for step, n in zip(steps, self.shape, strict=True):
            most += step * (n - 1)

        if start + most < at:
            return [self], []
        if start >= at:
            return [], [self]

        # The digit of the largest step is cut first: the fewest of its values lie between.
        step, axis = max((step, axis) for axis, step in enumerate(steps) if self.shape[axis] > 1)
        n = self.shape[axis]
        under = max(0, -(-(at - start - most) // step) + n - 1)  # below this digit, all elements are below `at`
        over = min(n, -(-(at - start) // step))  # from this digit on, none is
        below = [self.slice(axis, 0, under)] if under else []
        others = [self.slice(axis, over, n)] if over < n else []

        for digit in range(under, over):
            low, high = self.slice(axis, digit, digit + 1).cut(k, at)
            below, others = below + low, high + others

        return below, others

    def fit(self, k: int, divisor: int) -> Iterator[Lattice]:
        """Parts in which row k can be divided step by step: quotient and remainder are linear in the digits."""
        start, *steps = self.rows[k]
        rest = start % divisor
        over = rest - divisor  # the largest sum of remainders, if no digit carries, is below 0
        for step, n in zip(steps, self.shape, strict=True):
            if step % divisor:
                over += step * (n - 1)
        if over < 0:
            yield self
            return

        # Else one digit is cut: that of the largest step that is no multiple, where the sum passes multiples.
        step, axis = max((step, axis) for axis, step in enumerate(steps) if step % divisor and self.shape[axis] > 1)
        n, period = self.shape[axis], divisor // gcd(step, divisor)
        others = over + divisor - rest - step * (n - 1)  # the most that other digits add
        edges, head = [0], -rest % divisor // step  # steps until a multiple is reached
        if not others and 0 < head < n and (rest + head * step) % divisor == 0:
            edges.append(head)
        elif n > period:
            whole = n // period * period
            yield from self.slice(axis, 0, whole).split(axis, period).fit(k, divisor)
            edges = [whole]
        else:
            while edges[-1] < n:
                begin = (rest + edges[-1] * step) % divisor
                edges.append(edges[-1] + max(1, (divisor - 1 - begin - others) // step + 1))  # below the next multiple
            edges.pop()

        for low, high in pairwise(dict.fromkeys([*edges, n])):
            yield from self.slice(axis, low, high).fit(k, divisor)

    def fix(self, first_values: Sequence[int | None]) -> list[tuple[Shape, Lattice]]:
        """The parts at which the first rows have these values, None for any value: these values, and the other rows.

        There is one part for each combination of values. In each of the first rows, a step must be larger than all
        smaller ones can add up to, as in coordinates.

        >>> elements = Lattice((4, 3), ((0, 0, 1), (0, 1, 0), (0, 3, 1)))
        >>> elements.fix((2, None))[1]
        ((2, 1), Lattice(shape=(), rows=((5,),)))
        """
        if self.listed:
            return self._picked(first_values)

        # Each value fixes the digits of its row, from the largest step down, as in a number with places.
        digits: dict[int, int] = {}
        for row, value in zip(self.rows, first_values, strict=False):
            if value is None:
                continue
            left = value - row[0]
            for axis, digit in digits.items():
                left -= row[axis + 1] * digit

            steps = [(step, axis) for axis, step in enumerate(row[1:]) if step and axis not in digits]
            for step, axis in sorted(steps, reverse=True):
                digits[axis], left = divmod(left, step)
                if not 0 <= digits[axis] < self.shape[axis]:
                    return []
            if left:
                return []

        # Of the other digits, those on which the first rows depend make a part for each of their values.
        number, free, varied = len(first_values), list[int](), list[int]()
        row_starts, *columns = [*zip(*self.rows, strict=True)] or [()] * (len(self.shape) + 1)
        for axis, column in enumerate(columns):
            if axis not in digits:
                (varied if any(column[:number]) else free).append(axis)

        shape = tuple(map(self.shape.__getitem__, free))
        left = [columns[axis][number:] for axis in free]
        fixed, parts = [*digits, *varied], list[tuple[Shape, Lattice]]()

        for values in product(*map(range, map(self.shape.__getitem__, varied))):
            starts: Sequence[int] = row_starts
            for axis, digit in zip(fixed, (*digits.values(), *values), strict=True):
                if digit:
                    starts = [start + digit * step for start, step in zip(starts, columns[axis], strict=True)]

            rows = tuple(zip(starts[number:], *left, strict=True))
            parts.append((tuple(starts[:number]), Lattice(shape, rows)))

        return parts

    def _picked(self, first_values: Sequence[int | None]) -> list[tuple[Shape, Lattice]]:
        """`fix` of a list."""
        number = len(first_values)
        inside = np.full(self.size, True)
        for k, value in enumerate(first_values):
            if value is not None:
                inside &= self.values(k) == value
        chosen: Ints = np.flatnonzero(inside)
        if not len(chosen):
            return []

        # Sorted by the first rows, elements of one part are neighbours.
        keys = np.array([self.values(k)[chosen] for k in range(number)], np.int64).reshape(number, len(chosen))
        order = np.lexsort(keys[::-1]) if number else np.arange(len(chosen))
        changes = (np.diff(keys[:, order]) != 0).any(axis=0)

        others, parts = Lattice(self.shape, self.rows[number:]), list[tuple[Shape, Lattice]]()
        for same in np.split(order, np.flatnonzero(changes) + 1):
            parts.append((tuple(keys[:, same[0]].tolist()), others.take(chosen[same])))

        return parts

    # --- the same elements in other digits ----------------------------------------------------------------------

    def join(self) -> Lattice:
        """The same elements in as few digits as the rows allow: neighbours that act as one digit are joined."""
        if self.listed:
            return self

        shape, rows = self.shape, self.rows
        for axis in reversed(range(len(shape))):
            at, n = axis + 1, shape[axis]
            if n == 1:
                shape = (*shape[:axis], *shape[at:])
                rows = tuple([(*row[:at], *row[at + 1 :]) for row in rows])
            elif at < len(shape) and all(row[at] == row[at + 1] * shape[at] for row in rows):
                shape = (*shape[:axis], n * shape[at], *shape[at + 1 :])
                rows = tuple([(*row[:at], *row[at + 1 :]) for row in rows])

        return Lattice(shape, rows)

    def then(self, later: Lattice) -> Lattice | None:
        """This lattice and a later one as one, longer along a digit that one of them may lack; None if that is none."""
        wide = self if len(self.shape) >= len(later.shape) else later
        if len(self.shape) + len(later.shape) < 2 * len(wide.shape) - 1:
            return None

        # They are joined along a digit if all else is equal, and the later one begins where the first one ends.
        for axis in range(len(wide.shape)):
            at, lengths, rests = axis + 1, [], []
            steps = [row[at] for row in wide.rows]
            for lattice in (self, later):
                has = len(lattice.shape) == len(wide.shape)
                if has and [row[at] for row in lattice.rows] != steps:
                    break

                rest = [lattice.shape, *[row[1:] for row in lattice.rows]]
                if has:
                    rest = [(*numbers[:axis], *numbers[at:]) for numbers in rest]
                lengths.append(lattice.shape[axis] if has else 1)
                rests.append(rest)

            if len(rests) < 2 or rests[0] != rests[1]:
                continue

            starts = [(a[0], b[0]) for a, b in zip(self.rows, later.rows, strict=True)]
            if all(b == a + lengths[0] * step for (a, b), step in zip(starts, steps, strict=True)):
                shape = (*wide.shape[:axis], sum(lengths), *wide.shape[at:])
                rows = [(start, *row[1:]) for (start, _), row in zip(starts, wide.rows, strict=True)]
                return Lattice(shape, tuple(rows))

        return None

    @staticmethod
    def listing(parts: Sequence[Lattice]) -> Lattice:
        """The elements of several lattices, one after the other, as a list."""
        rows = []
        for k in range(len(parts[0].rows)):
            rows.append((0, np.concatenate([part.values(k) for part in parts])))
        return Lattice((len(rows[0][1]),), tuple(rows))
