"""The elements of a lattice, from coordinates and local indices, and whether each element is in one lattice.

On one side, coordinates and local indices say which elements a lattice has: a number that is linear in its digits. The
proof does this arithmetic itself, and shares none with what makes lattices:

    `elements`           the numbers of the elements of a lattice, as one side has them
    `check_intervals`    the same for many intervals at a time
    `surplus`            the numbers that are not in one lattice, but in none or in several
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice, product
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...grammar.nodes import Kind
from ...lattice import Lattice, Row
from ...layout.grid import row_major
from ...layout.kinds import Split, Stretch, extent, mode_set, part_extents, run_starts, stretches
from ...layout.view import to_tensor
from ..overlaps import Intervals, Reading, extents_of

__all__ = ["Box", "check_intervals", "elements", "span", "surplus"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Box = tuple[At, Row]  # a shape of digits, and a number that is linear in them
Corners = dict[int, int]  # differences of counts, by place; 0 at all other places


# --- which elements are at coordinates and local indices ---------------------------------------------------------


def elements(reading: Reading, lattice: Lattice, at: Sequence[Row], local: Sequence[Row]) -> Row:
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

        # The index along a mode of the view is a number whose digits are those of the tensor's modes.
        for digit in reversed(digits):
            value, index = _divided(index, lattice.shape, digit.size)
            weight = digit.weight * strides[digit.mode]
            numbers = [number + part * weight for number, part in zip(numbers, value, strict=True)]
        if any(index):
            raise PlanError(f"local indices, {row} of digits below {lattice.shape}, are outside of {n} indices")
    return tuple(numbers)


def _index(splits: Sequence[Split], n: int, shape: At, at: Sequence[Row], local: Row) -> Row:
    """The index along a view mode of `n` indices, at some coordinates and local indices.

    From outside inwards, coordinates say which stretch each split has; from inside outwards, a local index is the
    number of a round and a place in a tile. A round has a tile for each coordinate:

        coordinates     0     1     2     0     1     2          local index of the first tile at coordinate 1: 0 1
        indices        0 1   2 3   4 5   6 7   8 9  10 11                           of the second one there:   2 3
    """
    dealt = []
    for depth, ((_, kind, p), row) in enumerate(zip(splits, at, strict=True), 1):
        least, most = span(row, shape)
        if least < 0 or most >= p:
            raise PlanError(f"there are no coordinates {least} to {most} along {kind} over {p}")
        dealt.append((row, p, _stretch_at(kind, p, n, least, most)))

        if depth < len(splits):
            extents = sorted({*extent(kind, p, n, np.arange(least, most + 1)).tolist()})
            if len(extents) > 1 and not all(inner.kind.tile for inner in splits[depth:]):
                raise PlanError(f"coordinates {least} to {most} along {kind} over {p} have several extents, {extents}")
            n = extents[-1]

    for row, p, stretch in reversed(dealt):
        if stretch.parts > 1:
            local = _in_rounds(local, row, shape, p, stretch)
        local = (local[0] + stretch.start, *local[1:])

        least, most = span(local, shape)
        if least < stretch.start or most >= stretch.stop:
            raise PlanError(f"indices {least} to {most} are outside of {stretch}")
    return local


def _in_rounds(local: Row, coordinate: Row, shape: At, p: int, stretch: Stretch) -> Row:
    """The place in a stretch of a local index at a coordinate: in a tile, of which each round has one a coordinate."""
    place, number = _divided(local, shape, stretch.tile)
    part, _ = _divided((coordinate[0] - stretch.first, *coordinate[1:]), shape, p)
    length = stretch.parts * stretch.tile
    columns = zip(number, part, place, strict=True)
    return tuple([k * length + c * stretch.tile + within for k, c, within in columns])


def _stretch_at(kind: Kind, p: int, n: int, least: int, most: int) -> Stretch:
    """The stretch of a split that has some coordinates."""
    every = stretches(kind, p, n)
    number = bisect_right(every, least, key=attrgetter("first")) - 1 if len(every) > 1 else 0
    if every:
        stretch = every[number]
        if stretch.parts == p or stretch.first <= least <= most < stretch.first + stretch.parts:
            return stretch
    raise PlanError(f"no indices are dealt out to all coordinates {least} to {most} along {kind} over {p}")


def _divided(row: Row, shape: At, size: int) -> tuple[Row, Row]:
    """The remainder and the quotient of a linear number by a size, if both are linear in the digits.

    Raises:
        PlanError: one of them is not linear.
    """
    least, most = span(row, shape)
    if least >= 0 and most < size:
        return row, (0,) * len(row)

    # Both are linear if the remainders of the steps never add up to the size: then nothing is carried.
    rest, whole = tuple([n % size for n in row]), tuple([n // size for n in row])
    if span(rest, shape)[1] >= size:
        raise PlanError(f"a number of a lattice, {row} of digits below {shape}, is not linear in its digits by {size}")
    return rest, whole


def span(row: Row, shape: At) -> tuple[int, int]:
    """The least and the greatest value of a linear number, or of a list of numbers."""
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
    coordinates, numbers = iter(at), np.zeros(lattice.size, np.int64)

    for (digits, splits, n), (start, table) in zip(reading, local, strict=True):
        along, position, index = [*islice(coordinates, len(splits))], start + table, np.full(lattice.size, -1)

        for place in product(*[range(split.parts) for split in splits]):
            indices = mode_set(splits, n, place).to_array()
            here = (position >= 0) & (position < len(indices))
            for (first, rest), c in zip(along, place, strict=True):
                here &= first + rest == c
            index[here] = indices[position[here]]

        if (index < 0).any():
            raise PlanError(f"local indices or coordinates are outside of {splits} over {n}")
        for m, added in to_tensor(digits, index).items():
            numbers += added * strides[m]
    return numbers


def check_intervals(source: Reading, target: Reading, intervals: Intervals) -> None:
    """Refuse intervals that are not, in order, all indices of a mode, and each a part of a run on both sides.

    A run begins after those of all coordinates before its own, and has as many indices as splits leave there.
    """
    local, row = intervals.rows[-2:], 0

    for (_, splits, n), first, shape in zip((*source, *target), local, intervals.shapes, strict=True):
        if run_starts(splits, n) is None or shape != tuple([split.parts for split in splits]):
            raise PlanError(f"{splits} do not cut {n} indices into one run for each coordinate")

        lengths = part_extents(splits, n).reshape(-1)
        at = np.ravel_multi_index(tuple(intervals.rows[row : row + len(shape)]), shape)
        index = (np.cumsum(lengths) - lengths)[at] + first

        wrong = (first < 0) | (intervals.lengths < 1) | (first + intervals.lengths > lengths[at])
        wrong |= np.cumsum(intervals.lengths) - intervals.lengths != index

        if wrong.any() or int(intervals.lengths.sum()) != n:
            k = int(np.argmax(wrong))
            raise PlanError(
                f"elements, {index[k : k + 1].tolist()} first, are not in one interval at their coordinates"
            )
        row += len(shape)


# --- each element once -------------------------------------------------------------------------------------------


def surplus(boxes: Iterable[Box], number: int) -> Corners:
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
    sums: dict[frozenset[int], Corners] = {}  # by the steps of the differences
    _add_corners(sums, ((number,), (0, 1)), -1)
    for box in boxes:
        _add_corners(sums, box, 1)

    for step in sorted(set().union(*sums), reverse=True):
        further: dict[frozenset[int], Corners] = {}
        for steps, differences in sums.items():
            total = further.setdefault(steps | {step}, defaultdict(int))
            for place, count in differences.items():
                if count:
                    total[place] += count
                    if step not in steps:
                        total[place + step] -= count
        sums = further

    ((_, total),) = sums.items()
    return {place: count for place, count in sorted(total.items()) if count}


def _add_corners(sums: dict[frozenset[int], Corners], box: Box, times: int) -> None:
    """Add the differences of a box by its own steps, `times` times."""
    shape, (start, *steps) = box
    digits = [(step, n) for step, n in zip(steps, shape, strict=True) if n != 1]
    different = frozenset(dict(digits))
    if len(different) < len(digits) or min(different, default=1) < 1:
        raise PlanError(f"box {box} has two digits of one step, or one whose step is not positive")

    corners = [(start, times)]
    for step, n in digits:
        corners += [(place + step * n, -count) for place, count in corners]

    total = sums.setdefault(different, defaultdict(int))
    for place, count in corners:
        total[place] += count
