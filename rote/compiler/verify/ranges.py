"""Counts by coordinate of one long grid mode, from ranges of coordinates instead of pairs.

If one split on each side of a component is over very many coordinates, the pairs that have elements in common are too
many to list. Each coordinate of one side mostly has elements in common with a few ranges of the other side:

    block over 8 -> block(3) over 8, of 24 indices:  coordinate 4 holds 12 to 14, and meets the range 4 to 4
    block over 8 -> cyclic over 8, of 24 indices:    coordinate 4 holds 12 to 14, and meets the range 4 to 6
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...lattice import Lattice, Row
from ..peers import RECEIVES, SENDS

__all__ = ["Ranges", "ranges_of", "varied"]

Array = npt.NDArray[Any]

_RANGES = 8  # per coordinate: more are too many


class Ranges(NamedTuple):
    """Counts by coordinate of one grid mode, which splits a component on both sides: senders first, then receivers.

    Attributes:
        elements: the number of elements at each coordinate.
        peers: the number of coordinates of the other side with which each one has elements in common.
        kept: the number of elements that are at the same coordinate on both sides.
    """

    elements: tuple[Array, Array]
    peers: tuple[Array, Array]
    kept: Array


def ranges_of(lattices: Sequence[Lattice], number: int, counter: np.dtype[Any]) -> Ranges | None:
    """Count the pairs of `number` coordinates on each side that have elements in common.

    Each coordinate of one side mostly has elements in common with a few ranges of coordinates of the other side. Their
    union, and the sums over it, take as long as there are ranges. None if neither side makes few ranges.
    """
    for side in (SENDS, RECEIVES):
        lines = _lines(lattices, side, number, counter)
        if lines is None:
            continue
        near, begin, end, size = lines

        both, elements = np.zeros((2, number), counter)
        np.add.at(both, near, size * ((begin <= near) & (near < end)))
        np.add.at(elements, near, size * (end - begin))

        # Each coordinate has a line of its own, on which its ranges are cut so that none overlaps another.
        order = np.lexsort((begin, near))
        first, line = begin[order], near[order] * (number + 1)
        last = line + end[order]
        reached = np.maximum.accumulate(np.concatenate([[0], last]))[:-1]
        start, stop = np.maximum(line + first, reached), np.maximum(last, reached)

        peers = np.zeros(number, np.int64)
        np.add.at(peers, near[order], stop - start)

        others = _sum_over(begin, end, size, number), _sum_over(start - line, stop - line, np.ones_like(line), number)
        if side == SENDS:
            return Ranges((elements, others[0]), (peers, others[1]), both)
        return Ranges((others[0], elements), (others[1], peers), both)
    return None


def _lines(
    lattices: Sequence[Lattice], side: int, number: int, counter: np.dtype[Any]
) -> tuple[Array, Array, Array, Array] | None:
    """Ranges of pairs: per range, the coordinate on this side, the first and last of the other, the elements per pair.

    None if the coordinates of the other side leave gaps, or if this side has more than a few ranges per coordinate.
    """
    ranged, weights, total = [np.zeros((3, 0), np.int64)], [np.zeros(0, counter)], 0

    for lattice in lattices:
        near, far = lattice.rows[side], lattice.rows[1 - side]
        fixed = [axis for axis, step in enumerate(near[1:]) if step]
        free = [axis for axis in varied([far]) if axis not in fixed]

        length = 1
        for axis in sorted(free, key=lambda axis: far[axis + 1]):
            if far[axis + 1] != length:
                return None
            length *= lattice.shape[axis]

        shape = tuple([lattice.shape[axis] for axis in fixed])
        total += prod(shape)
        if total > _RANGES * number:
            return None

        along = Lattice(shape, tuple([(row[0], *[row[axis + 1] for axis in fixed]) for row in (near, far)]))
        begin = along.values(1)
        ranged.append(np.array([along.values(0), begin, begin + length]))
        weights.append(np.full(len(begin), lattice.size // (prod(shape) * length), counter))

    coordinate, begin, end = np.concatenate(ranged, axis=1)
    return coordinate, begin, end, np.concatenate(weights)


def _sum_over(begin: Array, end: Array, weight: Array, number: int) -> Array:
    """The sum of the weights of the ranges that contain each coordinate."""
    edges = np.zeros(number + 1, weight.dtype)
    np.add.at(edges, begin, weight)
    np.add.at(edges, end, -weight)
    summed: Array = np.cumsum(edges[:-1])
    return summed


def varied(rows: Sequence[Row]) -> list[int]:
    """The axes of the digits on which some linear numbers depend."""
    columns = zip(*rows, strict=True)
    return [axis for axis, column in enumerate(columns, -1) if axis >= 0 and any(column)]
