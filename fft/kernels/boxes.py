"""A block as boxes: evenly spaced elements of the memories from which it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from rote.layout.grid import row_major
from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import StridedCopy

__all__ = ["Box", "boxes", "whole"]

_FEW = 16  # boxes that one piece may fall into


@dataclass(frozen=True, slots=True)
class Box:
    """Elements that are evenly spaced along every mode of a block, and in the memory from which they are read.

    Attributes:
        peer: the number of that memory: its rank, or its message.
        offset: of the first element in that memory, in elements.
        strides: in that memory, in elements, per mode of the block.
        starts, steps, counts: the places of the elements along the modes of the block.
    """

    peer: int
    offset: int
    strides: tuple[int, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]

    def within(self, mode: int, start: int, stop: int) -> tuple[slice, slice] | None:
        """The slice of the box that lies in a range of the block along a mode, and where it lies in that range."""
        at, step = self.starts[mode], self.steps[mode]
        first = max(0, -((at - start) // step))
        last = min(self.counts[mode], -((at - stop) // step))
        if first >= last:
            return None
        begin = at + first * step - start
        return slice(first, last), slice(begin, begin + (last - first - 1) * step + 1, step)


def boxes(regions: Iterable[tuple[int, Region]], order: int) -> tuple[Box, ...] | None:
    """The boxes from which a rank reads its new block; None if a region has too many boxes or none.

    Args:
        regions: each with the number of the memory from which it is read.
        order: the order of the block.
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
    """A piece as boxes: of the dimensions that run along one mode, the longest stays, the others become boxes."""
    (shape, source, target), (source_strides, _) = piece.views, piece.strides
    offset, strides = source.lies(source_strides)
    along: list[list[int]] = [[] for _ in range(order)]  # per mode the dimensions that run along it
    for d, pairs in enumerate(target.steps):
        modes = [mode for mode, step in pairs if step]
        if len(modes) > 1:
            return
        if modes:
            along[modes[0]].append(d)
        elif shape[d] > 1:
            return
    origin, gaps, steps, counts = [0] * order, [0] * order, [1] * order, [1] * order
    for mode, index in target.origin:
        origin[mode] += index
    step_of = [dict(pairs) for pairs in target.steps]
    apart: list[tuple[int, int]] = []  # dimensions that become boxes, each with its mode
    for mode, dims in enumerate(along):
        if not dims:
            continue
        kept = max(dims, key=lambda d: shape[d])
        apart += [(d, mode) for d in dims if d != kept]
        gaps[mode], steps[mode], counts[mode] = strides[kept], step_of[kept][mode], shape[kept]
        if steps[mode] < 0:  # reversed: begin at the other end
            offset += (counts[mode] - 1) * gaps[mode]
            origin[mode] += (counts[mode] - 1) * steps[mode]
            steps[mode], gaps[mode] = -steps[mode], -gaps[mode]
    if prod(shape[d] for d, _ in apart) > _FEW:
        return
    for at in product(*(range(shape[d]) for d, _ in apart)):
        begins, starts = offset, [*origin]
        for n, (d, mode) in zip(at, apart, strict=True):
            begins += n * strides[d]
            starts[mode] += n * step_of[d][mode]
        yield Box(peer, begins, tuple(gaps), tuple(starts), tuple(steps), tuple(counts))


def whole(shape: tuple[int, ...]) -> tuple[Box, ...]:
    """A contiguous block as a single box."""
    return (Box(0, 0, row_major(shape), (0,) * len(shape), (1,) * len(shape), shape),)
