"""The proof of one component: each of its elements goes to one place on both sides, for all ranks at once.

A movement describes a component by a few lattices, whose rows are the coordinates on both sides, then the local indices
on both sides (see `overlaps`). This file reads the rows, and does its own arithmetic on them:
1. coordinates and local indices of one side say which elements a lattice has; both sides must have the same ones, in
   the same order (`elements`);
2. the lattices must contain each element once (`surplus`);
3. then they say which elements two ranks have in common (`Proof.row`), and how many (`Proof.shared`).

How many is a sum over pairs of coordinates. These are listed (`Proof.pairs`), but for the pairs of a few lattices that
have very many (`Proof.large`), and for splits over very many coordinates on both sides (`Proof.ranges`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from math import gcd, prod
from operator import contains
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...errors import PlanError
from ...lattice import Lattice, Row
from ...layout.distribution import Distribution
from ...layout.grid import row_major, unravel
from ..factor import Factor
from ..movement import Part
from ..overlaps import Intervals, Reading, counting, extents_of, splits_of
from ..peers import RECEIVES, SENDS
from .elements import Box, check_intervals, elements, span, surplus
from .ranges import Ranges, ranges_of, varied

__all__ = ["Ends", "Proof", "ProvedComponent", "prove", "rank_at"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]

_MANY = 1 << 18  # pairs of coordinates that share elements: more are counted as ranges, where they are ranges
_LARGE = 1 << 12  # pairs in a lattice of which not all pairs are listed
_LISTED = 1 << 22  # pairs, which take half a second
_FEW = 8  # lattices: up to so many, all are looked at


class Proof:
    """The proof of a component, independent of the numbers of its modes and grid modes.

    Attributes:
        lattices: its elements.
        at, local: the rows of coordinates, and of local indices, on both sides.
        parts: the number of coordinates of each split of the source, then of the target.
        counter: the dtype of numbers of elements.
    """

    def __init__(self, source: Reading, target: Reading, lattices: Sequence[Lattice]) -> None:
        self.parts: tuple[int, ...] = tuple(splits_of(source, target))
        before, both = len(splits_of(source)), len(self.parts)
        self.at: tuple[slice, slice] = slice(0, before), slice(before, both)
        self.local: tuple[slice, slice] = slice(both, both + len(source)), slice(both + len(source), None)
        self.lattices: Sequence[Lattice] = lattices
        self.extents: dict[int, int] = extents_of(source)
        self.counter: np.dtype[Any] = counting(prod(self.extents.values()))
        self._rows: dict[tuple[int, At, tuple[range, ...]], dict[At, list[Lattice]]] = {}
        self._tables: dict[At, tuple[Array | None, Array, Array]] = {}

    # --- which elements two ranks have in common ---------------------------------------------------------------------

    def row(self, side: int, here: At, partners: tuple[range, ...]) -> dict[At, list[Lattice]]:
        """The elements at some coordinates on one side, by their coordinates on the other side, if these are partners.

        The rows of the lattices are the local indices in the sender's block, then in the receiver's.
        """
        if (side, here, partners) not in self._rows:
            values = dict(enumerate(here, self.at[side].start))
            for k, along in enumerate(partners, self.at[1 - side].start):
                if len(along) == 1:
                    values[k] = along[0]

            grouped: dict[At, list[Lattice]] = {}
            for lattice in self._near(values) if all(partners) else ():
                for there, piece in self._pieces(lattice, self.at[1 - side], values):
                    if all(map(contains, partners, there)):
                        grouped.setdefault(there, []).append(piece)
            self._rows[side, here, partners] = grouped
        return self._rows[side, here, partners]

    def _near(self, values: dict[int, int]) -> Sequence[Lattice]:
        """The lattices that may have elements at these coordinates, by row."""
        if len(self.lattices) <= _FEW:
            return self.lattices

        near = np.full(len(self.lattices), True)
        if type(self.lattices) is Intervals:
            for k, c in values.items():
                near &= self.lattices.rows[k] == c
        else:
            least, most = self._bounds
            for k, c in values.items():
                near &= (least[:, k] <= c) & (c <= most[:, k])
        return [self.lattices[number] for number in np.flatnonzero(near).tolist()]

    @cached_property
    def _bounds(self) -> Array:
        """The least and the greatest value of each row of coordinates, in each lattice."""
        spans = [[span(row, lattice.shape) for row in self._coordinates(lattice)] for lattice in self.lattices]
        return np.moveaxis(np.array(spans, np.int64), -1, 0)

    def _pieces(self, lattice: Lattice, other: slice, values: dict[int, int]) -> Iterator[tuple[At, Lattice]]:
        """The elements of a lattice at these coordinates, in pieces by the coordinates on the other side."""
        if lattice.listed:
            yield from self._listed_pieces(lattice, other, values)
            return
        inside, digits = _digits_at(lattice, values)
        if not inside:
            return

        # Of the digits that the coordinates leave open, some change those on the other side: a piece for each value.
        there, local = lattice.rows[other], lattice.rows[self.at[1].stop :]
        columns = [*zip(*there, strict=True)]
        changing, left = list[int](), list[int]()
        for axis in range(len(lattice.shape)):
            if axis not in digits:
                (changing if columns and any(columns[axis + 1]) else left).append(axis)

        shape = tuple(map(lattice.shape.__getitem__, left))
        for numbers in product(*map(range, map(lattice.shape.__getitem__, changing))):
            fixed = digits | dict(zip(changing, numbers, strict=True))
            rows = []
            for row in local:
                rows.append((_value(row, fixed), *map(row[1:].__getitem__, left)))
            yield tuple([_value(row, fixed) for row in there]), Lattice(shape, tuple(rows))

    def _listed_pieces(self, lattice: Lattice, other: slice, values: dict[int, int]) -> Iterator[tuple[At, Lattice]]:
        """As `_pieces`, of elements that are listed one by one."""
        here = np.full(lattice.size, True)
        for k, c in values.items():
            here &= lattice.values(k) == c
        if not here.any():
            return

        places = np.array([start + table for start, table in lattice.rows[other]], np.int64).reshape(-1, lattice.size)
        for there in np.unique(places[:, here], axis=1).T:
            picked = here & (places == there[:, None]).all(axis=0)
            rows = [(start, table[picked]) for start, table in lattice.rows[self.at[1].stop :]]
            yield tuple(there.tolist()), Lattice((int(picked.sum()),), tuple(rows))

    # --- how many elements coordinates have in common ----------------------------------------------------------------

    @cached_property
    def large(self) -> Sequence[Lattice]:
        """Lattices of too many pairs of coordinates to list. No two have a pair in common; mostly there are none.

        Raises:
            PlanError: the other pairs are too many to list.
        """
        if type(self.lattices) is Intervals:
            return ()

        numbers = [self._pairs_of(lattice) for lattice in self.lattices]
        if sum(numbers) <= _MANY:
            return ()

        # Large lattices are counted each for itself, so none may have a pair that another one has.
        large = [box for box, n in zip(self.lattices, numbers, strict=True) if n > _LARGE and not box.listed]
        spans = [[(*span(row, box.shape), gcd(*row[1:])) for row in self._coordinates(box)] for box in large]
        if not all(any(map(_disjoint, one, other)) for one, other in combinations(spans, 2)):
            large = []

        left = sum(numbers) - sum(map(self._pairs_of, large))
        if left > _LISTED:
            raise PlanError(
                f"the tiles of the two layouts fit each other so badly that {left} pairs of coordinates would have to "
                "be listed\nwrite tiles or extents that divide each other, or a layout between the two, or use fewer "
                "ranks"
            )
        return large

    def _coordinates(self, lattice: Lattice) -> Sequence[Row]:
        return lattice.rows[: self.at[1].stop]

    def _pairs_of(self, lattice: Lattice) -> int:
        """The number of pairs of coordinates in a lattice; in a list, that of elements."""
        return lattice.size if lattice.listed else self._others(lattice, {})

    def _others(self, lattice: Lattice, digits: Container[int]) -> int:
        """The number of combinations of the digits on which coordinates depend, without some digits."""
        return prod([lattice.shape[axis] for axis in varied(self._coordinates(lattice)) if axis not in digits])

    def _in_large(self, lattice: Lattice, at: dict[int, Array]) -> tuple[Array, int, int]:
        """At some coordinates, by row: whether a lattice has elements; at how many others; and how many in all."""
        inside, digits = _digits_at(lattice, at)
        number = prod([n for axis, n in enumerate(lattice.shape) if axis not in digits])
        return np.asarray(inside), self._others(lattice, digits), number

    @cached_property
    def pairs(self) -> tuple[tuple[Array, ...], Array]:
        """The pairs of coordinates with elements in common that are not large, per split, and how many elements."""
        if type(self.lattices) is Intervals:  # the coordinates of some side change from each to the next
            return tuple(self.lattices.rows[:-2]), self.lattices.lengths.astype(self.counter)

        # A pair of coordinates is a key: its place in a table of all pairs, which is never made.
        keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, self.counter)]
        large = {*map(id, self.large)}

        for lattice in self.lattices:
            if id(lattice) in large:
                continue
            key = lattice.offset(row_major(self.parts), slice(len(self.parts)))
            axes = [0] if lattice.listed else varied(self._coordinates(lattice))
            shape = tuple([lattice.shape[axis] for axis in axes])
            keys.append(Lattice(shape, ((key[0], *[key[axis + 1] for axis in axes]),)).values(0))
            counts.append(np.full(len(keys[-1]), lattice.size // prod(shape), self.counter))

        pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
        sizes = np.zeros(len(pairs), self.counter)
        np.add.at(sizes, place, np.concatenate(counts))

        at: tuple[Array, ...] = tuple(np.unravel_index(pairs, self.parts)) if self.parts else ()
        return at, sizes

    @cached_property
    def alone(self) -> Array:
        """Whether each of these pairs is in no large lattice."""
        at, sizes = self.pairs
        alone = np.full(len(sizes), True)
        for lattice in self.large:
            alone &= ~self._in_large(lattice, dict(enumerate(at)))[0]
        return alone

    def shared(self, at: dict[int, Array]) -> tuple[Array, Array]:
        """At some coordinates, by row: the number of elements, and of pairs of coordinates that have some."""
        if self.ranges is not None:
            (side, place), *other = at.items()
            if not other:
                return self.ranges.elements[side][place], self.ranges.peers[side][place]
            if np.array_equal(place, other[0][1]):
                both = self.ranges.kept[place]
                return both, both > 0

        key: Any = 0
        for k, value in at.items():
            key = key * self.parts[k] + value
        keys, sizes, pairs = self._tables.get((*at,)) or self._table((*at,))

        # Only keys with elements are in the table; all others have the last, empty place.
        if keys is not None:
            nearest = np.searchsorted(keys, key)
            key = np.where(np.append(keys, -1)[nearest] == key, nearest, len(keys))

        sizes, pairs = sizes[key], pairs[key]
        for lattice in self.large:
            inside, others, number = self._in_large(lattice, at)
            sizes, pairs = sizes + inside * number, pairs + inside * others
        return np.asarray(sizes, self.counter), np.asarray(pairs)

    def _table(self, rows: At) -> tuple[Array | None, Array, Array]:
        """The sums over listed pairs at all coordinates of some rows, or at some keys and, at the end, at no other."""
        at, counts = self.pairs

        key: Array = np.zeros(len(counts), np.int64)
        for k in rows:
            key = key * self.parts[k] + at[k]

        keys, number = None, prod([self.parts[k] for k in rows])
        if number > _LARGE:
            keys, key = np.unique(key, return_inverse=True)
            number = len(keys) + 1

        sizes, pairs = np.zeros(number, self.counter), np.zeros(number, np.int64)
        np.add.at(sizes, key, counts)
        np.add.at(pairs, key, self.alone)
        if number <= _LARGE:
            self._tables[rows] = keys, sizes, pairs
        return keys, sizes, pairs

    @cached_property
    def ranges(self) -> Ranges | None:
        """The numbers of pairs, if one split on each side makes too many to list, and they are ranges; else None."""
        if (
            type(self.lattices) is Intervals
            or self.at != (slice(0, 1), slice(1, 2))
            or self.parts[0] != self.parts[1]
            or self.parts[0] ** 2 <= _MANY
            or any(lattice.listed for lattice in self.lattices)
            or sum(map(self._pairs_of, self.lattices)) <= _MANY
        ):
            return None
        return ranges_of(self.lattices, self.parts[0], self.counter)


class ProvedComponent(NamedTuple):
    """A proof, and on both sides the grid modes that split its component, in the order of the component's modes."""

    over: tuple[At, At]
    proof: Proof

    def row(self, side: int, g: int) -> int:
        """The row of the coordinates of a grid mode that splits the component on one side."""
        return int(self.proof.at[side].start) + self.over[side].index(g)


def prove(ends: Ends, part: Part) -> ProvedComponent:
    """Prove that the lattices of a component contain each element once, and that both sides have the same ones in each.

    Raises:
        PlanError: the proof fails; the text names the ranks and the first element.
    """
    over = _splitting(ends[SENDS], part.before), _splitting(ends[RECEIVES], part.after)
    try:
        return ProvedComponent(over, _proof(part.factor))
    except _DifferError as error:
        *at, element = error.args
        ranks = " to ".join(f"rank {rank_at(*side)}" for side in zip(ends, over, at, strict=True))
        text = f"from {ranks} go elements, {element} first of modes {part.before}"
        raise PlanError(f"{text}, not the same in the same order on both sides") from None


def _splitting(dist: Distribution, modes: At) -> At:
    """The grid modes that split some modes."""
    return tuple([split.grid_mode for mode in modes for split in dist.splits[mode]])


class _DifferError(Exception):
    """Elements that differ between the sides: coordinates on both sides, and the indices of one of them."""


@memoized(4096)  # the steps of other plans have components in common with these
def _proof(factor: Factor) -> Proof:
    source, target = factor.sides
    proof = Proof(source, target, factor.lattices)
    if type(proof.lattices) is Intervals:
        check_intervals(source, target, proof.lattices)
        return proof

    # What one side has at coordinates and local indices, the other must have, in the same order.
    boxes: list[Box] = []
    for lattice in proof.lattices:
        _check_coordinates(lattice, proof)
        sent = elements(source, lattice, lattice.rows[proof.at[SENDS]], lattice.rows[proof.local[SENDS]])
        received = elements(target, lattice, lattice.rows[proof.at[RECEIVES]], lattice.rows[proof.local[RECEIVES]])
        if not all(map(np.array_equal, sent, received)):
            raise _differing(proof, lattice, sent, received)
        boxes.append((lattice.shape, sent))

    # Then each element must be in one lattice, by counting.
    number = prod(proof.extents.values())
    if any(lattice.listed for lattice in proof.lattices):
        ((_, (_, listed)),) = boxes
        times = np.bincount(listed, minlength=number)
        wrong = {int(k): int(times[k]) - 1 for k in np.flatnonzero(times != 1)}
    else:
        wrong = surplus(boxes, number)

    if wrong:
        first = min(wrong)
        element = unravel(first, [*proof.extents.values()])
        raise PlanError(f"element {element} is in {1 + wrong[first]} boxes; each element is in one")
    return proof


def _differing(proof: Proof, lattice: Lattice, sent: Row, received: Row) -> _DifferError:
    """The error about the first element of a lattice that is another one on the other side."""
    if lattice.listed:
        k = int(np.argmax(sent[1] != received[1]))
        element, at = int(sent[0] + sent[1][k]), [int(start + table[k]) for start, table in lattice.rows]
    else:
        element, at = sent[0], [row[0] for row in lattice.rows]
    indices = unravel(element, [*proof.extents.values()])
    return _DifferError(at[proof.at[SENDS]], at[proof.at[RECEIVES]], indices)


def _check_coordinates(lattice: Lattice, proof: Proof) -> None:
    """Refuse coordinates in which a step is not larger than all smaller ones add up to, as `_digits_at` expects."""
    for row in () if lattice.listed else lattice.rows[: proof.at[1].stop]:
        reach = 0
        for step, n in sorted(zip(row[1:], lattice.shape, strict=True)):
            if step and step <= reach:
                raise PlanError(f"coordinates of a lattice, {row} of digits below {lattice.shape}, are not in order")
            reach += step * (n - 1)


def rank_at(dist: Distribution, over: At, at: Sequence[int]) -> int:
    """The rank at these coordinates along some grid modes, and at the root or at 0 along the others."""
    places = dict(dist.layout.rooted) | dict(zip(over, at, strict=True))
    return dist.grid.rank([places.get(g, 0) for g in range(dist.grid.order)])


def _digits_at(lattice: Lattice, values: Mapping[int, Any]) -> tuple[Any, dict[int, Any]]:
    """Whether some rows have these values at some digits, and these digits by axis: of numbers, or of whole arrays.

    Each step of a row is larger than all smaller ones can add up to, so division finds the only digits there may be.
    """
    inside: Any = True
    digits = dict[int, Any]()

    for k, value in values.items():
        start, *steps = lattice.rows[k]
        left = value - start
        for step, axis in sorted([(step, axis) for axis, step in enumerate(steps) if step], reverse=True):
            digit, left = divmod(left, step)
            inside = inside & (digit >= 0) & (digit < lattice.shape[axis]) & (digits.setdefault(axis, digit) == digit)
        inside = inside & (left == 0)
    return inside, digits


def _value(row: Row, digits: dict[int, int]) -> int:
    """The value of a linear number if some digits have these values and the others are 0."""
    number: int = row[0]
    for axis, digit in digits.items():
        number += row[axis + 1] * digit
    return number


def _disjoint(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two linear numbers have no value in common, by their least, their greatest, and what divides steps."""
    common = gcd(one[2], other[2])
    return one[0] > other[1] or other[0] > one[1] or bool(common and (one[0] - other[0]) % common)
