"""The numbers of pairs of coordinates that share elements, where the boxes of a proof make too many pairs to list.

If one long grid mode splits a mode on both sides, each coordinate of one side mostly shares elements with a few ranges
of coordinates of the other side. Their union, and the sums over it, take as long as there are ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..movement.components import counting
from .elements import Box

__all__ = ["Ranges", "ranges"]

Array = npt.NDArray[Any]

_FEW = 8  # ranges per coordinate


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Counts by coordinate of one grid mode, which splits a component on both sides: senders first, then receivers.

    Attributes:
        elements: the number of elements at each coordinate.
        peers: the number of coordinates of the other side with which each one shares elements.
        kept: the number of elements that each coordinate shares with itself.
    """

    elements: tuple[Array, Array]
    peers: tuple[Array, Array]
    kept: Array

    def talk(self) -> bool:
        """Whether two different coordinates share elements."""
        return bool(self.peers[0].sum() > np.count_nonzero(self.kept))


def ranges(boxes: Sequence[Box], number: int) -> Ranges | None:
    """Count the pairs of `number` coordinates on each side that share elements; None if no side makes few ranges."""
    for side in (0, 1):
        lines = _lines(boxes, side, number)
        if lines is not None:
            own, begin, end, each = lines
            kept: Array = np.zeros(number, each.dtype)
            np.add.at(kept, own, each * ((begin <= own) & (own < end)))
            elements = np.zeros(number, each.dtype)
            np.add.at(elements, own, each * (end - begin))
            pair = elements, _over(begin, end, each, number)
            peers = _union(own, begin, end, number)
            return Ranges(pair if side == 0 else pair[::-1], peers if side == 0 else peers[::-1], kept)
    return None


def _lines(boxes: Sequence[Box], side: int, number: int) -> tuple[Array, Array, Array, Array] | None:
    """Ranges of pairs: per range, the coordinate on this side, the first and last of the other, the elements per pair.

    None if the coordinates of the other side leave gaps, or if this side has more than a few ranges per coordinate.
    """
    counter = counting(sum(prod(box.shape) for box in boxes))
    ranged, weights, total = [], [np.zeros(0, counter)], 0
    for box in boxes:
        (near,), (far,) = (box.source.at, box.target.at) if side == 0 else (box.target.at, box.source.at)
        fixed, free, each = [], [], 1
        for n, step, away in zip(box.shape, near[1:], far[1:], strict=True):
            if step:
                fixed.append((n, step, away))
            elif away:
                free.append((away, n))
            else:
                each *= n
        length = _run(free)
        total += prod(n for n, _, _ in fixed)
        if not length or total > _FEW * number:
            return None
        own, begin = np.array([near[0]]), np.array([far[0]])
        for n, step, away in fixed:
            own = np.add.outer(own, step * np.arange(n)).reshape(-1)
            begin = np.add.outer(begin, away * np.arange(n)).reshape(-1)
        ranged.append(np.array([own, begin, begin + length]))
        weights.append(np.full(len(own), each, counter))
    joined = np.concatenate([np.zeros((3, 0), np.int64), *ranged], axis=1)
    return joined[0], joined[1], joined[2], np.concatenate(weights)


def _run(digits: list[tuple[int, int]]) -> int:
    """The number of values of a linear number, from steps and extents, if they follow each other, else 0."""
    length = 1
    for step, n in sorted(digits):
        if step != length:
            return 0
        length *= n
    return length


def _over(begin: Array, end: Array, weight: Array, number: int) -> Array:
    """The sum of the weights of the ranges that contain each coordinate."""
    edges = np.zeros(number + 1, weight.dtype)
    np.add.at(edges, begin, weight)
    np.add.at(edges, end, -weight)
    summed: Array = np.cumsum(edges[:-1])
    return summed


def _union(own: Array, begin: Array, end: Array, number: int) -> tuple[Array, Array]:
    """The pairs in any range, each counted once: their number per coordinate of this side, and of the other side."""
    order = np.lexsort((begin, own))
    own, begin, end = own[order], begin[order], end[order]
    line = own * (number + 1)  # each coordinate has a line of its own, on which its ranges are cut free of each other
    reached = np.maximum.accumulate(np.concatenate([[0], line + end]))[:-1]
    begin = np.minimum(np.maximum(line + begin, reached) - line, end)
    peers: Array = np.zeros(number, np.int64)
    np.add.at(peers, own, end - begin)
    return peers, _over(begin, end, np.ones_like(begin), number)
