"""A block as boxes, which are evenly spaced elements of other memories, and the tiles in which it is read from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from math import prod
from typing import Any

import numpy as np

from rote.layout.grid import row_major, unravel
from rote.runtime.comm.protocol import Array
from rote.runtime.copy.regions import Region
from rote.runtime.copy.strided import Copy, StridedCopy, times

from .by_parts import prepare
from .kernel import Kernel, in_lines, padded, padded_lines

__all__ = ["BlockPart", "BoundTile", "Box", "CopiedTile", "PartReads", "Read", "ReadTile", "ReadTiles", "TileViews"]
__all__ += ["boxes", "length", "tile_ranges", "whole"]

Index = tuple[slice, ...]
Read = tuple[Array, Index]  # the values that are read into a tile, and their place in it

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
        # -(x // step) is x / step with the other sign, rounded up: the first element at `start`, or after it
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
    """A piece as boxes: of the digits that run along one mode, the longest stays, the others become boxes."""
    (offset, gaps), shape = piece.located(0), piece.shape
    rows = [[0] * (len(shape) + 1) for _ in range(order)]  # the index along each mode, linear in all digits
    first = 1
    for part in piece.parts:
        for mode, (start, *more) in zip(part.target, part.rows(1), strict=True):
            rows[mode][0] = start
            rows[mode][first : first + len(more)] = more
        first += len(part.lattice.shape)
    along = [[axis for axis, step in enumerate(row[1:]) if step] for row in rows]
    every = [*chain(*along)]
    if len({*every}) < len(every) or any(n > 1 and axis not in every for axis, n in enumerate(shape)):
        return
    kept = [max(axes, key=lambda axis: shape[axis], default=-1) for axes in along]
    apart = [axis for axes, longest in zip(along, kept, strict=True) for axis in axes if axis != longest]
    if prod([shape[axis] for axis in apart]) > _FEW:
        return
    strides = tuple([gaps[axis] if axis >= 0 else 0 for axis in kept])
    steps = tuple([row[axis + 1] if axis >= 0 else 1 for row, axis in zip(rows, kept, strict=True)])
    counts = tuple([shape[axis] if axis >= 0 else 1 for axis in kept])
    for digits in product(*[range(shape[axis]) for axis in apart]):
        numbers = [offset, *[row[0] for row in rows]]
        for axis, n in zip(apart, digits, strict=True):
            numbers[0] += n * gaps[axis]
            for mode, row in enumerate(rows, 1):
                numbers[mode] += n * row[axis + 1]
        begin, *starts = numbers
        yield Box(peer, begin, strides, tuple(starts), steps, counts)


def whole(shape: tuple[int, ...]) -> tuple[Box, ...]:
    """A contiguous block as a single box."""
    return (Box(0, 0, row_major(shape), (0,) * len(shape), (1,) * len(shape), shape),)


@dataclass(frozen=True, slots=True)
class ReadTile:
    """A range of a block that is transformed at once.

    Attributes:
        block: the range in the block.
        room, filled: the range within its part, and within the memory for a tile.
        stored, taken: the result's range within its part, with all of the axis, and within the memory for a tile.
        reads: the number of each box, the range that is taken of it, and its place in the tile.
    """

    block: Index
    room: Index
    filled: Index
    stored: Index
    taken: Index
    reads: tuple[tuple[int, Index, Index], ...]


class ReadTiles:
    """The tiles of a part. To save memory, a tile is made when it is asked for, from its range along each mode.

    Args:
        ranges: the ranges of the tiles along each mode of the part; along `axis` there is one range.
        starts: where the part begins in the block.
        boxes: the boxes that make up the block.
    """

    __slots__ = ("_axis", "_extents", "_ranges", "_starts", "_within", "largest")

    def __init__(self, ranges: list[list[slice]], starts: Sequence[int], boxes: Sequence[Box], axis: int) -> None:
        self._ranges, self._starts, self._axis = ranges, starts, axis
        self._extents = tuple(map(len, ranges))
        self.largest: tuple[int, ...] = tuple(max(map(length, along), default=0) for along in ranges)
        self._within = []  # per mode, range and box: the part of the box in the range
        for mode, (along, start) in enumerate(zip(ranges, starts, strict=True)):
            in_ranges = []
            for r in along:
                in_ranges.append([box.within(mode, r.start + start, r.stop + start) for box in boxes])
            self._within.append(in_ranges)

    def __len__(self) -> int:
        return prod(self._extents)

    def __getitem__(self, number: int) -> ReadTile:
        if not 0 <= number < len(self):
            raise IndexError(number)
        at = unravel(number, self._extents)
        room = tuple(along[k] for along, k in zip(self._ranges, at, strict=True))
        block = tuple(slice(r.start + n, r.stop + n) for r, n in zip(room, self._starts, strict=True))
        within = [along[k] for along, k in zip(self._within, at, strict=True)]
        reads = []
        for box, pairs in enumerate(zip(*within, strict=True)):  # the ranges of one box along all modes
            inside = [pair for pair in pairs if pair is not None]
            if len(inside) == len(pairs):
                taken_of_box, into = zip(*inside, strict=True)
                reads.append((box, taken_of_box, into))
        filled = tuple(slice(0, length(r)) for r in room)
        stored, taken = list(room), list(filled)
        stored[self._axis] = taken[self._axis] = slice(None)  # a transform may change its number of points
        return ReadTile(block, room, filled, tuple(stored), tuple(taken), tuple(reads))


PartReads = Sequence[tuple[ReadTile, list[Read]]]
"""The tiles of a part, each with its reads."""


class TileViews(PartReads):
    """The tiles of a part, each with its reads, whose views are made when a tile is asked for."""

    __slots__ = ("_tiles", "_views")

    def __init__(self, tiles: ReadTiles, views: Sequence[Array]) -> None:
        self._tiles, self._views = tiles, views

    def __len__(self) -> int:
        return len(self._tiles)

    def __getitem__(self, number: Any) -> Any:
        tile = self._tiles[number]
        return tile, [(self._views[box][taken], into) for box, taken, into in tile.reads]


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A part of a block: its range along the first modes, its shape, and its tiles."""

    range: Index
    shape: tuple[int, ...]
    tiles: ReadTiles


def tile_ranges(extents: Sequence[int], budget: int) -> list[list[slice]]:
    """Ranges along modes whose products have at most `budget` elements, or 1; the last modes are kept whole first.

    >>> tile_ranges((2, 3, 4), 8)
    [[slice(0, 1, None), slice(1, 2, None)], [slice(0, 2, None), slice(2, 3, None)], [slice(0, 4, None)]]
    """
    ranges = []
    for n in reversed(extents):
        step = max(1, min(n, budget))
        budget //= step
        number = -(-n // step)
        step = -(-n // max(number, 1)) or 1  # equal lengths, because whole tiles are transformed
        ranges.append([slice(at, min(at + step, n)) for at in range(0, n, step)])
    return ranges[::-1]


def length(extent: slice) -> int:
    """The number of indices of a range."""
    return int(extent.stop - extent.start)


class CopiedTile:
    """A tile that is only read: all axes of its part are transformed at once later."""

    __slots__ = ("_scale", "dtype")

    def __init__(self, dtype: np.dtype[Any], scale: Array | None) -> None:
        self.dtype: np.dtype[Any] = dtype
        self._scale = scale

    def bound(self, tile: ReadTile, reads: Sequence[Read], factors: Sequence[Array], room: Array) -> list[Copy]:
        """The calls, in order, that read a tile; they may be repeated."""
        whole, calls = room[tile.room], list[Copy]()
        for values, into in reads:
            filled = whole[into]
            every = [factor[tile.block][into] for factor in factors] if self._scale is None else [self._scale]
            if not every:
                calls.append(partial(filled.__setitem__, ..., values))
            for factor in every:
                calls.append(partial(times, values, factor, filled))
                values = filled
        return calls


class BoundTile:
    """Memory for a tile, and the transform of one axis in it."""

    __slots__ = ("_filled", "_flat", "_scale", "_stored", "_transform", "dtype")

    def __init__(self, kernel: Kernel, axis: int, shape: tuple[int, ...], stays: bool, scale: Array | None) -> None:
        self.dtype: np.dtype[Any] = kernel.dtype
        self._scale = scale
        memory = padded(shape, kernel.dtype)
        self._flat, self._filled = memory.reshape(-1), memory[..., : shape[-1]]
        self._stored = self._filled
        if in_lines(kernel, axis):
            self._stored = padded_lines(shape, axis, kernel.dtype)
        elif not kernel.in_place and not stays:
            out_shape = (*shape[:axis], kernel.out_shape[axis], *shape[axis + 1 :])
            self._stored = padded(out_shape, kernel.out_dtype)[..., : out_shape[-1]]
        ends = self._filled, self._stored
        if kernel.row.real == "both" and kernel.dtype.kind == "c":
            kernel = kernel.of_parts()
            ends = (self._filled.view(kernel.dtype).reshape(*shape, 2),) * 2
        self._transform = prepare(kernel, (axis,), *ends, 1).bound(*ends)

    def bound(self, tile: ReadTile, reads: Sequence[Read], factors: Sequence[Array], room: Array) -> list[Copy]:
        """The calls, in order, that read, transform and store a tile; they may be repeated."""
        whole, calls = self._filled, list[Copy]()
        for values, into in reads:
            filled = whole[into]
            if not factors:
                calls.append(partial(filled.__setitem__, ..., values))
            for factor in factors:
                calls.append(partial(times, values, factor[tile.block][into], filled))
                values = filled
        if self._scale is not None:
            part = whole[tile.filled]
            if part.shape[1:] == whole.shape[1:]:  # contiguous, which is faster than row by row
                part = self._flat[: len(part) * (self._flat.size // len(whole))]
            calls.append(partial(np.multiply, part, self._scale, part))
        stored = partial(room[tile.stored].__setitem__, ..., self._stored[tile.taken])
        return [*calls, self._transform, stored]
