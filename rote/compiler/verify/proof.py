"""The proof of one component: each of its elements goes to one place on both sides, for all ranks at once.

A movement describes a component by a few lattices, whose rows are the coordinates on both sides, then the local indices
on both sides (see `overlaps`). This file reads the rows, and does its own arithmetic on them:
1. coordinates and local indices of one side say which elements a lattice has, as a number that is linear in its digits;
   both sides must have the same one (`_elements`);
2. the lattices must contain each element once (`surplus`);
3. then they say which elements two ranks have in common (`Proof.row`), and how many (`Proof.pairs`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, islice, product
from math import gcd, prod
from operator import attrgetter, contains
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...errors import PlanError
from ...grammar.nodes import Kind
from ...lattice import Lattice, Row
from ...layout.distribution import Distribution
from ...layout.grid import row_major, unravel
from ...layout.kinds import Split, Stretch, extent, mode_set, part_extents, run_starts, stretches
from ...layout.view import to_tensor
from ..factor import Factor
from ..movement import Part
from ..overlaps import Intervals, Reading, counting, extents_of, splits_of
from ..peers import RECEIVES, SENDS
from .ranges import Ranges, ranges_of, varied

__all__ = ["Ends", "Proof", "ProvedComponent", "prove", "rank_at", "surplus"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Box = tuple[At, Row]  # a shape of digits, and a number that is linear in them
Differences = dict[int, int]  # by place; 0 at all other places

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
        given, both = len(splits_of(source)), len(self.parts)
        self.at: tuple[slice, slice] = slice(0, given), slice(given, both)
        self.local: tuple[slice, slice] = slice(both, both + len(source)), slice(both + len(source), None)
        self.lattices: Sequence[Lattice] = lattices
        self.extents: dict[int, int] = extents_of(source)
        self.counter: np.dtype[Any] = counting(prod(self.extents.values()))
        self._rows: dict[tuple[int, At, tuple[range, ...]], dict[At, list[Lattice]]] = {}
        self._tables: dict[At, tuple[Array | None, Array, Array]] = {}

    def row(self, side: int, own: At, partners: tuple[range, ...]) -> dict[At, list[Lattice]]:
        """The elements at some coordinates on one side, by their coordinates on the other side, if these are partners.

        The rows of the lattices are the local indices in the sender's block, then in the receiver's.
        """
        if (side, own, partners) not in self._rows:
            wanted = dict(enumerate(own, self.at[side].start))
            for k, along in enumerate(partners, self.at[1 - side].start):
                if len(along) == 1:
                    wanted[k] = along[0]

            grouped: dict[At, list[Lattice]] = {}
            for lattice in self._near(wanted) if all(partners) else ():
                for where, elements in self._parts(lattice, self.at[1 - side], wanted):
                    if all(map(contains, partners, where)):
                        grouped.setdefault(where, []).append(elements)
            self._rows[side, own, partners] = grouped
        return self._rows[side, own, partners]

    def _near(self, wanted: dict[int, int]) -> Sequence[Lattice]:
        """The lattices that may have elements at these coordinates, by row."""
        if len(self.lattices) <= _FEW:
            return self.lattices

        near = np.full(len(self.lattices), True)
        if type(self.lattices) is Intervals:
            for k, c in wanted.items():
                near &= self.lattices.rows[k] == c
        else:
            for k, c in wanted.items():
                near &= (self._bounds[0][:, k] <= c) & (c <= self._bounds[1][:, k])
        return [self.lattices[number] for number in np.flatnonzero(near).tolist()]

    @cached_property
    def _bounds(self) -> Array:
        """The least and the greatest value of each row of coordinates, in each lattice."""
        spans = [[_span(row, each.shape) for row in each.rows[: self.at[1].stop]] for each in self.lattices]
        return np.moveaxis(np.array(spans, np.int64), -1, 0)

    def _parts(self, lattice: Lattice, other: slice, wanted: dict[int, int]) -> Iterator[tuple[At, Lattice]]:
        """The elements of a lattice at these coordinates, in parts by the coordinates on the other side."""
        if lattice.listed:
            yield from self._listed_parts(lattice, other, wanted)
            return
        found, digits = _digits_at(lattice, wanted)
        if not found:
            return
        away, local = lattice.rows[other], lattice.rows[self.at[1].stop :]
        columns = [*zip(*away, strict=True)]
        varied, left = list[int](), list[int]()
        for axis in range(len(lattice.shape)):
            if axis not in digits:
                (varied if columns and any(columns[axis + 1]) else left).append(axis)

        shape = tuple(map(lattice.shape.__getitem__, left))
        for values in product(*map(range, map(lattice.shape.__getitem__, varied))):
            fixed = digits | dict(zip(varied, values, strict=True))
            rows = []
            for row in local:
                rows.append((_value(row, fixed), *map(row[1:].__getitem__, left)))
            yield tuple([_value(row, fixed) for row in away]), Lattice(shape, tuple(rows))

    def _listed_parts(self, lattice: Lattice, other: slice, wanted: dict[int, int]) -> Iterator[tuple[At, Lattice]]:
        mine = np.full(lattice.size, True)
        for k, c in wanted.items():
            mine &= lattice.values(k) == c
        if mine.any():
            places = np.array([start + table for start, table in lattice.rows[other]], np.int64).reshape(
                -1, lattice.size
            )
            local = lattice.rows[self.at[1].stop :]
            for where in np.unique(places[:, mine], axis=1).T:
                picked = mine & (places == where[:, None]).all(axis=0)
                rows = [(start, table[picked]) for start, table in local]
                yield tuple(where.tolist()), Lattice((int(picked.sum()),), tuple(rows))

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

        large = [each for each, n in zip(self.lattices, numbers, strict=True) if n > _LARGE and not each.listed]
        spans = [[(*_span(row, each.shape), gcd(*row[1:])) for row in self._coordinates(each)] for each in large]
        for one, other in combinations(spans, 2):
            if not any(map(_apart, one, other)):
                large = []
                break

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

    def met(self, lattice: Lattice, wanted: dict[int, Array]) -> tuple[Array, int, int]:
        """At some coordinates, by row: whether a lattice has elements; at how many others; and how many in all."""
        found, digits = _digits_at(lattice, wanted)
        elements = prod([n for axis, n in enumerate(lattice.shape) if axis not in digits])
        return np.asarray(found), self._others(lattice, digits), elements

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
            alone &= ~self.met(lattice, dict(enumerate(at)))[0]
        return alone

    def shared(self, at: dict[int, Array]) -> tuple[Array, Array]:
        """At some coordinates, by row: the number of elements, and of pairs of coordinates that have some."""
        if self.ranges is not None:
            (side, place), *other = at.items()
            if not other:
                return self.ranges.elements[side][place], self.ranges.peers[side][place]
            if np.array_equal(place, other[0][1]):
                kept = self.ranges.kept[place]
                return kept, kept > 0

        wanted: Any = 0
        for k, value in at.items():
            wanted = wanted * self.parts[k] + value
        keys, elements, pairs = self._tables.get((*at,)) or self._table((*at,))

        # Only keys with elements are in the table; all others have the last, empty place.
        if keys is not None:
            found = np.searchsorted(keys, wanted)
            wanted = np.where(np.append(keys, -1)[found] == wanted, found, len(keys))

        elements, pairs = elements[wanted], pairs[wanted]
        for lattice in self.large:
            has, several, number = self.met(lattice, at)
            elements, pairs = elements + has * number, pairs + has * several
        return np.asarray(elements, self.counter), np.asarray(pairs)

    def _table(self, rows: At) -> tuple[Array | None, Array, Array]:
        """The sums over listed pairs at all coordinates of some rows, or at some keys and, at the end, at no other."""
        where, sizes = self.pairs

        key: Array = np.zeros(len(sizes), np.int64)
        for k in rows:
            key = key * self.parts[k] + where[k]

        keys, number = None, prod([self.parts[k] for k in rows])
        if number > _LARGE:
            keys, key = np.unique(key, return_inverse=True)
            number = len(keys) + 1

        elements, pairs = np.zeros(number, self.counter), np.zeros(number, np.int64)
        np.add.at(elements, key, sizes)
        np.add.at(pairs, key, self.alone)
        if number <= _LARGE:
            self._tables[rows] = keys, elements, pairs
        return keys, elements, pairs

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
        ranks = " to ".join(f"rank {rank_at(*each)}" for each in zip(ends, over, at, strict=True))
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
        _check_intervals(source, target, proof.lattices)
        return proof

    # What one side has at coordinates and local indices, the other must have, in the same order.
    boxes: list[Box] = []
    for lattice in proof.lattices:
        _check_coordinates(lattice, proof)
        elements = _elements(source, lattice, lattice.rows[proof.at[SENDS]], lattice.rows[proof.local[SENDS]])
        others = _elements(target, lattice, lattice.rows[proof.at[RECEIVES]], lattice.rows[proof.local[RECEIVES]])
        if not all(map(np.array_equal, elements, others)):
            k = int(np.argmax(elements[1] != others[1])) if lattice.listed else 0
            element = int(elements[0] + elements[1][k]) if lattice.listed else elements[0]
            at = [int(row[0] + row[1][k]) if lattice.listed else row[0] for row in lattice.rows]
            raise _DifferError(at[proof.at[SENDS]], at[proof.at[RECEIVES]], unravel(element, [*proof.extents.values()]))
        boxes.append((lattice.shape, elements))

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


def _check_intervals(source: Reading, target: Reading, found: Intervals) -> None:
    """Refuse intervals that are not, in order, all indices of a mode, and each a part of a run on both sides.

    A run begins after those of all coordinates before its own, and has as many indices as splits leave there.
    """
    local, row = found.rows[-2:], 0

    for (_, splits, n), first, shape in zip((*source, *target), local, found.shapes, strict=True):
        named = tuple([Split(g, *split) for g, split in enumerate(splits)])
        if run_starts(named, n) is None or shape != tuple([split.parts for split in named]):
            raise PlanError(f"{splits} do not cut {n} indices into one run for each coordinate")

        lengths = part_extents(named, n).reshape(-1)
        at = np.ravel_multi_index(tuple(found.rows[row : row + len(shape)]), shape)
        index = (np.cumsum(lengths) - lengths)[at] + first

        wrong = (first < 0) | (found.lengths < 1) | (first + found.lengths > lengths[at])
        wrong |= np.cumsum(found.lengths) - found.lengths != index

        if wrong.any() or int(found.lengths.sum()) != n:
            k = int(np.argmax(wrong))
            raise PlanError(
                f"elements, {index[k : k + 1].tolist()} first, are not in one interval at their coordinates"
            )
        row += len(shape)


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
    where = dict(dist.layout.rooted) | dict(zip(over, at, strict=True))
    return dist.grid.rank([where.get(g, 0) for g in range(dist.grid.order)])


# --- which elements are at coordinates and local indices ---------------------------------------------------------


def _elements(reading: Reading, lattice: Lattice, at: Sequence[Row], local: Sequence[Row]) -> Row:
    """The elements of a lattice, as row-major indices within the component, from coordinates and local indices.

    Raises:
        PlanError: they are not linear in the digits of the lattice, or there are no such coordinates or local indices.
    """
    extents, coordinates = extents_of(reading), iter(at)

    strides = dict(zip(extents, row_major([*extents.values()]), strict=True))
    if lattice.listed:
        return 0, _listed_elements(reading, lattice, at, local, strides)

    numbers = [0] * (len(lattice.shape) + 1)
    for (digits, splits, n), row in zip(reading, local, strict=True):
        index = _index(splits, n, lattice.shape, [*islice(coordinates, len(splits))], row)
        for digit in reversed(digits):
            value, index = _divided(index, lattice.shape, digit.size)
            weight = digit.weight * strides[digit.mode]
            numbers = [n + part * weight for n, part in zip(numbers, value, strict=True)]
        if any(index):
            raise PlanError(f"local indices, {row} of digits below {lattice.shape}, are outside of {n} indices")
    return tuple(numbers)


def _index(splits: Sequence[tuple[Kind, int]], n: int, shape: At, at: Sequence[Row], local: Row) -> Row:
    """The index along a view mode of `n` indices, at some coordinates and local indices.

    From outside inwards, coordinates say which stretch each split has; from inside outwards, a local index is the
    number of a round and a place in a tile. A round has a tile for each coordinate:

        coordinates     0     1     2     0     1     2          local index of the first tile at coordinate 1: 0 1
        indices        0 1   2 3   4 5   6 7   8 9  10 11                           of the second one there:   2 3
    """

    ways = []
    for depth, ((kind, p), row) in enumerate(zip(splits, at, strict=True), 1):
        least, most = _span(row, shape)
        if least < 0 or most >= p:
            raise PlanError(f"there are no coordinates {least} to {most} along {kind} over {p}")
        ways.append((row, p, _stretch_at(kind, p, n, least, most)))
        if depth < len(splits):
            extents = sorted({*extent(kind, p, n, np.arange(least, most + 1)).tolist()})
            if len(extents) > 1 and not all(inner.tile for inner, _ in splits[depth:]):
                raise PlanError(f"coordinates {least} to {most} along {kind} over {p} have several extents, {extents}")
            n = extents[-1]

    # From inside outwards: where a tile begins, and the place in it.
    for row, p, stretch in reversed(ways):
        if stretch.parts > 1:
            place, number = _divided(local, shape, stretch.tile)
            coordinate, _ = _divided((row[0] - stretch.first, *row[1:]), shape, p)
            length = stretch.parts * stretch.tile
            columns = zip(number, coordinate, place, strict=True)
            local = tuple([k * length + c * stretch.tile + within for k, c, within in columns])
        local = (local[0] + stretch.start, *local[1:])

        least, most = _span(local, shape)
        if least < stretch.start or most >= stretch.stop:
            raise PlanError(f"indices {least} to {most} are outside of {stretch}")
    return local


def _stretch_at(kind: Kind, p: int, n: int, least: int, most: int) -> Stretch:
    """The stretch of a split that has some coordinates."""
    found = _stretches(kind, p, n)
    number = bisect_right(found, least, key=attrgetter("first")) - 1 if len(found) > 1 else 0
    if found:
        stretch = found[number]
        if stretch.parts == p or stretch.first <= least <= most < stretch.first + stretch.parts:
            return stretch
    raise PlanError(f"no indices are dealt out to all coordinates {least} to {most} along {kind} over {p}")


_stretches = memoized(64)(stretches)  # for the pieces of a component, which may be thousands, as may be the stretches


def _divided(row: Row, shape: At, size: int) -> tuple[Row, Row]:
    """The remainder and the quotient of a linear number by a size, if both are linear in the digits.

    Raises:
        PlanError: one of them is not linear.
    """
    least, most = _span(row, shape)
    if least >= 0 and most < size:
        return row, (0,) * len(row)

    rest, whole = tuple([n % size for n in row]), tuple([n // size for n in row])
    if _span(rest, shape)[1] >= size:
        raise PlanError(f"a number of a lattice, {row} of digits below {shape}, is not linear in its digits by {size}")
    return rest, whole


def _span(row: Row, shape: At) -> tuple[int, int]:
    """The least and the greatest value of a linear number."""
    if len(row) == 2 and isinstance(row[1], np.ndarray):
        return int(row[0] + row[1].min(initial=0)), int(row[0] + row[1].max(initial=0))

    least = most = row[0]
    for step, n in zip(row[1:], shape, strict=True):
        if step > 0:
            most += step * (n - 1)
        else:
            least += step * (n - 1)
    return least, most


def _listed_elements(
    reading: Reading, lattice: Lattice, at: Sequence[Row], local: Sequence[Row], strides: dict[int, int]
) -> Array:
    """The elements of a list, from the sets of indices that all coordinates have."""
    coordinates, elements = iter(at), np.zeros(lattice.size, np.int64)

    for (digits, splits, n), (start, table) in zip(reading, local, strict=True):
        named = tuple([Split(g, *split) for g, split in enumerate(splits)])

        along, position, index = [*islice(coordinates, len(splits))], start + table, np.full(lattice.size, -1)
        for where in product(*[range(split.parts) for split in named]):
            held = mode_set(named, n, where).to_array()
            mine = (position >= 0) & (position < len(held))
            for (first, places), c in zip(along, where, strict=True):
                mine &= first + places == c
            index[mine] = held[position[mine]]

        if (index < 0).any():
            raise PlanError(f"local indices or coordinates are outside of {splits} over {n}")
        for m, added in to_tensor(digits, index).items():
            elements += added * strides[m]
    return elements


def _digits_at(lattice: Lattice, wanted: Mapping[int, Any]) -> tuple[Any, dict[int, Any]]:
    """Whether some rows have wanted values at some digits, and these digits by axis: of numbers, or of whole arrays.

    Each step of a row is larger than all smaller ones can add up to, so division finds the only digits there may be.
    """
    found: Any = True
    digits = dict[int, Any]()

    for k, value in wanted.items():
        start, *steps = lattice.rows[k]
        left = value - start
        for step, axis in sorted([(step, axis) for axis, step in enumerate(steps) if step], reverse=True):
            digit, left = divmod(left, step)
            found = found & (digit >= 0) & (digit < lattice.shape[axis]) & (digits.setdefault(axis, digit) == digit)
        found = found & (left == 0)
    return found, digits


def _value(row: Row, digits: dict[int, int]) -> int:
    """The value of a linear number if some digits have these values and the others are 0."""
    number: int = row[0]
    for axis, digit in digits.items():
        number += row[axis + 1] * digit
    return number


def _apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two linear numbers have no value in common, by their least, their greatest, and what divides steps."""
    common = gcd(one[2], other[2])
    return one[0] > other[1] or other[0] > one[1] or bool(common and (one[0] - other[0]) % common)


# --- each element once -------------------------------------------------------------------------------------------


def surplus(boxes: Iterable[Box], number: int) -> Differences:
    """How much more often than once each number below `number` is in boxes, as differences by all steps of the boxes.

    A difference by a step is the count of a number minus the count one step before. Running sums undo it, so nothing is
    lost. For evenly spaced numbers, the difference by their step has two entries: 1 at the first number and -1 at the
    place after the last. So for a box, the differences by the steps of all its digits are nonzero only at its corners.
    Adjacent boxes share corners, which cancel. The few corners left are then differenced by the steps of the other
    boxes. If each number is in one box, nothing is left, however the boxes lie. Otherwise the least place left is the
    first wrong number, and the value there is the number of boxes too many, or too few, that contain it.

    >>> surplus([((2, 3), (0, 5, 1)), ((4,), (3, 1))], 8)  # 0, 1, 2, 5, 6, 7 and 3, 4, 5, 6
    {5: 1, 7: -1, 10: -1, 12: 1}

    Raises:
        PlanError: a box has two digits with the same step, or one whose step is not positive.
    """

    taken: dict[frozenset[int], Differences] = {}  # by the steps of the differences
    _add_corners(taken, ((number,), (0, 1)), -1)
    for box in boxes:
        _add_corners(taken, box, 1)

    for step in sorted(set().union(*taken), reverse=True):
        further: dict[frozenset[int], Differences] = {}
        for steps, differences in taken.items():
            total = further.setdefault(steps | {step}, defaultdict(int))
            for place, count in differences.items():
                if count:
                    total[place] += count
                    if step not in steps:
                        total[place + step] -= count
        taken = further

    ((_, total),) = taken.items()
    return {place: count for place, count in sorted(total.items()) if count}


def _add_corners(taken: dict[frozenset[int], Differences], box: Box, times: int) -> None:
    """Add the differences of a box by its own steps, `times` times."""
    shape, (start, *steps) = box
    digits = [(step, n) for step, n in zip(steps, shape, strict=True) if n != 1]
    different = frozenset(dict(digits))
    if len(different) < len(digits) or min(different, default=1) < 1:
        raise PlanError(f"box {box} has two digits of one step, or one whose step is not positive")

    corners = [(start, times)]
    for step, n in digits:
        corners += [(place + step * n, -count) for place, count in corners]

    total = taken.setdefault(different, defaultdict(int))
    for place, count in corners:
        total[place] += count
