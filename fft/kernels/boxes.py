"""A block as boxes: evenly spaced elements of the memories that it is read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import StridedCopy

__all__ = ["Box", "boxes", "whole"]

_FEW = 16  # boxes that one piece may fall into


@dataclass(frozen=True, slots=True)
class Box:
    """Elements that are evenly spaced along every mode of a block, and in the memory that they are read from.

    Attributes:
        peer: the number of that memory: the rank whose it is, or that of a message.
        offset: of the first one there, in elements.
        strides: there, in elements, per mode of the block.
        starts, steps, counts: where they lie along the modes of the block.
    """

    peer: int
    offset: int
    strides: tuple[int, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]

    def within(self, mode: int, start: int, stop: int) -> tuple[slice, slice] | None:
        """The slice of its elements that lie in a range of the block along a mode, and the slice of that range."""
        at, step = self.starts[mode], self.steps[mode]
        first = max(0, -((at - start) // step))
        last = min(self.counts[mode], -((at - stop) // step))
        if first >= last:
            return None
        begin = at + first * step - start
        return slice(first, last), slice(begin, begin + (last - first - 1) * step + 1, step)


def boxes(regions: Iterable[tuple[int, Region]], order: int) -> tuple[Box, ...] | None:
    """The boxes that a rank reads of its new block of some order; None if they are not few.

    Args:
        regions: each with the number of the memory that it is read from.
        order: of the block.
    """
    every: list[Box] = []
    for number, region in regions:
        for piece in region.pieces:
            boxes_of_piece = list(_boxes(piece, number, order)) if isinstance(piece, StridedCopy) else []
            if not 0 < len(boxes_of_piece) <= _FEW:
                return None
            every += boxes_of_piece
    return tuple(every)


def _boxes(piece: StridedCopy, peer: int, order: int) -> Iterator[Box]:
    """A piece as boxes: of the dimensions that lead along one mode, all but the longest are taken apart."""
    (shape, source, target), (source_strides, _) = piece.views, piece.strides
    offset, strides = source.lies(source_strides)
    along: list[list[int]] = [[] for _ in range(order)]  # per mode the dimensions that lead along it
    for d, pairs in enumerate(target.steps):
        modes = [mode for mode, step in pairs if step]
        if len(modes) > 1:
            return
        if modes:
            along[modes[0]].append(d)
        elif shape[d] > 1:
            return
    kept = [max(dims, key=lambda d: shape[d]) if dims else None for dims in along]
    apart = [d for dims, keep in zip(along, kept, strict=True) for d in dims if d != keep]
    origin = dict.fromkeys(range(order), 0)
    for mode, index in target.origin:
        origin[mode] += index
    step_of = [dict(pairs) for pairs in target.steps]
    if prod(shape[d] for d in apart) > _FEW:
        return
    for at in product(*(range(shape[d]) for d in apart)):
        moved = dict(zip(apart, at, strict=True))
        starts = [origin[m] + sum(n * step_of[d].get(m, 0) for d, n in moved.items()) for m in range(order)]
        begins = offset + sum(n * strides[d] for d, n in moved.items())
        gaps = [0 if d is None else strides[d] for d in kept]
        steps = [1 if d is None else step_of[d][mode] for mode, d in enumerate(kept)]
        counts = tuple(1 if d is None else shape[d] for d in kept)
        for mode, step in enumerate(steps):
            if step < 0:  # the other way round
                begins += (counts[mode] - 1) * gaps[mode]
                starts[mode] += (counts[mode] - 1) * step
                steps[mode], gaps[mode] = -step, -gaps[mode]
        yield Box(peer, begins, tuple(gaps), tuple(starts), tuple(steps), counts)


def whole(shape: tuple[int, ...]) -> tuple[Box, ...]:
    """A block that lies in one piece, as the only box."""
    strides = tuple(prod(shape[m + 1 :]) for m in range(len(shape)))
    return (Box(0, 0, strides, (0,) * len(shape), (1,) * len(shape), shape),)
