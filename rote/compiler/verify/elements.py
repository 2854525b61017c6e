"""The arithmetic of a certificate: which elements lie at coordinates and local indices that are linear in digits.

A box of elements is its shape and one number that is linear in its digits. `mode_set` alone says which elements lie at
which coordinates. The elements of a set are linear along digits that step by whole periods, and within a run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...grammar.nodes import BLOCK, Kind
from ...lattice import Lattice, Row
from ...layout.indexset import IndexSet
from ...layout.kinds import Split, mode_set
from ...layout.view import to_tensor
from ..movement.components import Reading

__all__ = [
    "Box",
    "Boxes",
    "Listed",
    "Side",
    "boxes_of",
    "elements_at",
    "index_of",
    "listed",
    "numbered",
    "solutions",
    "spread",
    "surplus",
    "values",
    "varied",
]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Elements = tuple[At, Row]  # a box: its shape, and the row-major indices within a component
Differences = dict[int, int]  # by place; 0 at all other places
Splits = tuple[tuple[Kind, int], ...]

_FEW = 64  # up to so many coordinates, the set of each is looked at


class Side(NamedTuple):
    """The coordinate along each split of one side, and the local index along each of its modes: numbers, or lists."""

    at: tuple[Any, ...]
    local: tuple[Any, ...]


class Box(NamedTuple):
    """A lattice of a movement, its rows by side."""

    shape: At
    source: Side
    target: Side


class Listed(NamedTuple):
    """The elements of a movement that are listed one by one, by side."""

    source: Side
    target: Side


Boxes = tuple[Box, ...] | Listed


def boxes_of(source: Reading, target: Reading, lattices: Sequence[Lattice]) -> Boxes:
    """The lattices of a movement as boxes: coordinates of both sides come first in their rows, then local indices."""
    given, taken = (sum([len(splits) for _, splits, _ in reading]) for reading in (source, target))
    end, last = given + taken, given + taken + len(source)
    boxes = []
    for lattice in lattices:
        rows = lattice.rows
        if lattice.listed:
            rows = tuple([start + table for start, table in rows])
        sides = Side(rows[:given], rows[end:last]), Side(rows[given:end], rows[last:])
        if lattice.listed:
            return Listed(*sides)
        boxes.append(Box(lattice.shape, *sides))
    return tuple(boxes)


def elements_at(reading: Reading, shape: At, side: Side, extents: dict[int, int]) -> Row:
    """The row-major indices, within a component, of the elements at these coordinates and local indices."""
    numbers, coordinates = [0] * (len(shape) + 1), iter(side.at)
    for (digits, splits, extent), local in zip(reading, side.local, strict=True):
        index = _index_row(splits, extent, shape, [*islice(coordinates, len(splits))], local)
        for digit in reversed(digits):
            size, weight = max(digit.size, 1), digit.weight * _stride(extents, digit.mode)
            value, index = _divided(index, shape, size)
            numbers = [n + part * weight for n, part in zip(numbers, value, strict=True)]
    return tuple(numbers)


def _divided(row: Row, shape: At, size: int) -> tuple[Row, Row]:
    """The remainder and the quotient of a linear number by a size, if both are linear in the digits.

    Raises:
        PlanError: one of them is not linear.
    """
    least, most = _range(row, shape)
    if least >= 0 and most < size:
        return row, (0,) * len(row)
    rest, whole = tuple([n % size for n in row]), tuple([n // size for n in row])
    if _range(rest, shape)[1] >= size:
        raise PlanError(f"a number of a box, {row} of digits below {shape}, is not linear in its digits by {size}")
    return rest, whole


def _range(row: Row, shape: At) -> tuple[int, int]:
    """The least and the greatest value of a linear number in a box that is not empty."""
    least = most = row[0]
    for step, n in zip(row[1:], shape, strict=True):
        if step > 0:
            most += step * (n - 1)
        else:
            least += step * (n - 1)
    return least, most


def _index_row(splits: Splits, extent: int, shape: At, at: list[Row], local: Row) -> Row:
    """The index along a view mode at some coordinates and local indices, if it is linear in the digits."""
    named = numbered(splits)
    axes = varied(at)
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    along = [(local[axis + 1], shape[axis]) for axis in rest]
    if len(splits) == 1 and prod([shape[axis] for axis in axes]) > _FEW and not any(local[axis + 1] for axis in axes):
        translated = _translated(splits[0], extent, shape, at[0], local)
        if translated is not None:
            return translated
    starts: dict[At, int] = {}
    slopes: dict[int, int] = {}
    for digits in product(*[range(shape[axis]) for axis in axes]):
        where = values(at, axes, digits)
        for c, split in zip(where, named, strict=True):
            if not 0 <= c < split.parts:
                raise PlanError(f"there are no coordinates {where} along {splits}")
        starts[digits], steps = _image(mode_set(named, extent, where), _value(local, axes, digits), along)
        changes = dict(zip(rest, steps, strict=True))
        slopes = slopes or changes
        if changes != slopes:
            raise PlanError(f"a box of {splits} over {extent} is not linear in its local indices")
    begin = starts[(0,) * len(axes)]
    for k, axis in enumerate(axes):
        next_along_axis = (0,) * k + (1,) + (0,) * (len(axes) - k - 1)
        slopes[axis] = starts[next_along_axis] - begin
    index = (begin, *[slopes[axis] for axis in range(len(shape))])
    for digits, start in starts.items():
        if _value(index, axes, digits) != start:
            raise PlanError(f"a box of {splits} over {extent} is not linear in its coordinates")
    return index


def _translated(split: tuple[Kind, int], extent: int, shape: At, at: Row, local: Row) -> Row | None:
    """The index along a mode with one split, if the sets of all coordinates are one set, shifted; else None.

    They are for tiles in turn and for balanced blocks of one length, as long as coordinates do not wrap around. So the
    first coordinate says how local indices become indices, and each other one adds a tile's length.
    """
    (kind, parts), named = split, numbered((split,))
    first, last = _range(at, shape)
    if kind.is_cyclic:
        tile, wrap = kind.tile, kind.at
    elif kind == BLOCK:
        tile, wrap = extent // parts, extent % parts  # the parts below `wrap` have one index more
        tile += last < wrap
    else:
        return None
    if first < 0 or last >= parts or first < wrap <= last:
        return None
    rest = [axis for axis, step in enumerate(at[1:]) if not step]
    begin, steps = _image(mode_set(named, extent, at[:1]), local[0], [(local[axis + 1], shape[axis]) for axis in rest])
    slopes = dict(zip(rest, steps, strict=True))
    index = (begin, *[slopes.get(axis, step * tile) for axis, step in enumerate(at[1:])])
    lowest, highest = _range(index, shape)
    return index if lowest >= 0 and highest < extent else None


def numbered(splits: Splits) -> tuple[Split, ...]:
    """Splits of one mode over grid modes that are numbered in order."""
    return tuple([Split(g, kind, parts) for g, (kind, parts) in enumerate(splits)])


def _value(row: Row, axes: Sequence[int], digits: At) -> int:
    """The value of a linear number if some digits have these values and the others are 0."""
    number: int = row[0]
    for axis, n in zip(axes, digits, strict=True):
        number += row[axis + 1] * n
    return number


def values(rows: Sequence[Row], axes: Sequence[int], digits: At) -> At:
    """The values of linear numbers if some digits have these values and the others are 0."""
    return tuple([_value(row, axes, digits) for row in rows])


def solutions(shape: At, rows: Sequence[Row], wanted: At) -> Iterator[At]:
    """The digits, along the axes on which linear numbers depend, at which these have the wanted values.

    If each step of a number is larger than all smaller ones can add up to, division finds the only digits there may be.
    """
    axes = varied(rows)
    digits: dict[int, int] = {}
    for row, value in zip(rows, wanted, strict=True):
        left = value - row[0] - sum([row[axis + 1] * k for axis, k in digits.items()])
        steps = sorted([(row[axis + 1], axis) for axis in axes if row[axis + 1] and axis not in digits])
        reach = 0
        for step, axis in steps:
            if step <= reach:
                yield from _tried(shape, rows, wanted)
                return
            reach += step * (shape[axis] - 1)
        for step, axis in reversed(steps):
            digits[axis], left = divmod(left, step)
            if not 0 <= digits[axis] < shape[axis]:
                return
        if left:
            return
    yield tuple([digits[axis] for axis in axes])


def _tried(shape: At, rows: Sequence[Row], wanted: At) -> Iterator[At]:
    """The digits at which linear numbers have the wanted values, of all that there are."""
    axes = varied(rows)
    for digits in product(*[range(shape[axis]) for axis in axes]):
        if values(rows, axes, digits) == wanted:
            yield digits


def _image(held: IndexSet, start: int, along: list[tuple[int, int]]) -> tuple[int, At]:
    """The elements of a set at positions that are linear in some digits, as a linear number: its start and its steps.

    `along` has the step and the extent of each digit.
    """
    last = start
    for step, n in along:
        last += step * (n - 1)
    if start < 0 or last >= len(held):
        raise PlanError(f"positions from {start} on, {along}, are not all in {held}")
    first, width = held.at(start), held.width
    slopes, inner, end = [], [], 0
    for step, n in along:
        turns, within = divmod(step, width)
        if within:
            slopes.append(held.at(start + step) - first)
            inner.append((step, n, slopes[-1]))
            end += step * (n - 1)
        else:  # a whole number of periods: the same elements, shifted by these periods
            slopes.append(turns * held.period)
    if inner and held.at(start + end) - first != end:  # else the elements are consecutive
        for digits in product(*[range(n) for _, n, _ in inner]):
            position, element = start, first
            for (step, _, slope), k in zip(inner, digits, strict=True):
                position, element = position + step * k, element + slope * k
            if held.at(position) != element:
                raise PlanError(f"elements of {held} from position {start} on, {along}, are not evenly spaced")
    return first, tuple(slopes)


def listed(reading: Reading, side: tuple[tuple[Array, ...], tuple[Array, ...]], extents: dict[int, int]) -> Array:
    """The elements at coordinates and local indices that are listed one by one."""
    coordinates, elements = iter(side[0]), np.zeros(len(side[1][0]), np.int64)
    for (digits, splits, extent), local in zip(reading, side[1], strict=True):
        named = numbered(splits)
        at, index = [*islice(coordinates, len(splits))], np.full(len(local), -1)
        for where in product(*[range(split.parts) for split in named]):
            held = mode_set(named, extent, where).to_array()
            mine = (local >= 0) & (local < len(held))
            for c, k in zip(at, where, strict=True):
                mine &= c == k
            index[mine] = held[local[mine]]
        if (index < 0).any():
            raise PlanError(f"local indices or coordinates are outside of {splits} over {extent}")
        for m, added in to_tensor(digits, index).items():
            elements += added * _stride(extents, m)
    return elements


def surplus(boxes: Iterable[Elements], number: int) -> Differences:
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


def _add_corners(taken: dict[frozenset[int], Differences], box: Elements, times: int) -> None:
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


def spread(elements: Elements) -> Array:
    """The elements of a box, one by one."""
    shape, (start, *steps) = elements
    numbers: Array = np.array([start])
    for n, step in zip(shape, steps, strict=True):
        numbers = (numbers[:, None] + step * np.arange(n)).reshape(-1)
    return numbers


def varied(rows: Sequence[Row]) -> list[int]:
    """The axes of the digits on which some linear numbers depend."""
    columns = zip(*rows, strict=True)
    return [axis for axis, column in enumerate(columns, -1) if axis >= 0 and any(column)]


def index_of(element: int, extents: dict[int, int]) -> At:
    """The indices of an element along the tensor's modes of a component."""
    return tuple(element // _stride(extents, m) % max(n, 1) for m, n in extents.items())


def _stride(extents: dict[int, int], mode: int) -> int:
    """The stride of a tensor's mode, row-major within a component."""
    return prod([max(n, 1) for m, n in extents.items() if m > mode])
