"""A move and the transform behind it in one sweep: tiles are read out of the ranks' blocks, and transformed in cache.

A rank's new block is cut into tiles that have all points of one axis. Of every block that has a part of a tile the part
is read, the tile is transformed, and stored: nothing is packed, sent or unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.runtime.pieces import Strided
from rote.runtime.reading import Reading

from .kernels import ALIGNMENT, Kernel, fftw_plan, scratch_bytes, view
from .passes import CACHED, CHUNK, BoundKernel, padded

__all__ = ["Box", "Gather", "boxes", "gathers", "whole"]

Array = npt.NDArray[Any]
Index = tuple[slice, ...]
_FEW = 16  # boxes that one piece may fall into


@dataclass(frozen=True, slots=True)
class Box:
    """Elements that are evenly spaced along every mode of a block, and in the memory that they are read from.

    Attributes:
        peer: the rank whose memory that is.
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
        """Along a mode, which of its elements lie in a range of the block, and where in that range."""
        at, step = self.starts[mode], self.steps[mode]
        first = max(0, -((at - start) // step))
        last = min(self.counts[mode], -((at - stop) // step))
        if first >= last:
            return None
        begin = at + first * step - start
        return slice(first, last), slice(begin, begin + (last - first - 1) * step + 1, step)


def boxes(reading: Reading, order: int) -> tuple[Box, ...] | None:
    """What a rank reads, as boxes of its new block of some order; None if it is no few boxes, or reduced."""
    if not reading.copies:
        return None
    found: list[Box] = []
    for region in reading.regions:
        for piece in region.pieces:
            some = list(_boxes(piece, region.peer, order)) if isinstance(piece, Strided) else []
            if not 0 < len(some) <= _FEW:
                return None
            found += some
    return tuple(found)


def _boxes(piece: Strided, peer: int, order: int) -> Iterator[Box]:
    """A piece as boxes: of the dimensions that lead along one mode, all but the longest are taken apart."""
    (shape, here, there), (source_strides, _) = piece.views, piece.strides
    offset, strides = here.lies(source_strides)
    along: list[list[int]] = [[] for _ in range(order)]  # per mode the dimensions that lead along it
    for d, pairs in enumerate(there.steps):
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
    for mode, index in there.origin:
        origin[mode] += index
    step_of = [dict(pairs) for pairs in there.steps]
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


def gathers(kernel: Kernel) -> bool:
    """Whether a kernel may read its block out of boxes: some axis is complex on both sides."""
    return kernel.kind in ("fft", "ifft") or (kernel.kind == "irfft" and len(kernel.axes) > 1)


class Gather:
    """A kernel that reads its block out of boxes. One thread (one rank) uses it.

    The axis that is transformed while it is read is the first one that is complex on both sides. The modes before all
    axes are cut into parts; the other axes of a part follow while it is in cache.

    Args:
        kernel: one that `gathers`, of a rank's new block.
        found: the boxes that make it up.
        factors: of the new block, which are multiplied in as it is read.
        scratch: what the kernels of the other axes are planned on.
    """

    __slots__ = (
        "_axis",
        "_boxes",
        "_columns",
        "_factors",
        "_parts",
        "_plan",
        "_rest",
        "_room",
        "_tile",
        "_within",
        "kernel",
    )

    def __init__(
        self, kernel: Kernel, found: tuple[Box, ...], factors: Sequence[Array], scratch: tuple[Array, Array]
    ) -> None:
        self.kernel, self._boxes = kernel, found
        shape, first = kernel.shape, min(kernel.axes)
        real = kernel.axes[-1] if kernel.kind == "irfft" else None
        axis = min(a for a in kernel.axes if a != real)
        self._factors = [np.broadcast_to(factor, shape) for factor in factors]
        rest = tuple(a for a in kernel.axes if a != axis)
        ends = (shape, kernel.dtype), (kernel.out_shape, kernel.out_dtype)
        one = [prod(extents[first:]) * dtype.itemsize for extents, dtype in ends]  # bytes along the other modes
        cut = bool(rest) and not any(nbytes % ALIGNMENT for nbytes in one)  # parts begin where FFTW's plans may
        parts = list(product(*_ranges(shape[:first], CHUNK // max(*one, 1) if cut else prod(shape[:first]))))
        columns = max(8, CACHED // max(shape[axis] * kernel.dtype.itemsize, 1))
        longest = tuple(max((_length(part[m]) for part in parts), default=0) for m in range(first))
        self._room: Array | None = None
        if real is not None:
            self._room = scratch_bytes(int(np.prod((*longest, *shape[first:]))) * kernel.dtype.itemsize)
        kernels: dict[tuple[int, ...], BoundKernel] = {}
        self._parts: list[_Part] = []
        for part in parts if 0 not in shape else ():
            lengths = (*map(_length, part), *shape[first:])
            if rest and lengths not in kernels:
                there = (*lengths[:first], *kernel.out_shape[first:])
                kernels[lengths] = BoundKernel(replace(kernel, axes=rest, shape=lengths, out_shape=there), scratch)
            ranges = _ranges([1 if m == axis else n for m, n in enumerate(lengths)], columns)
            ranges[axis] = [slice(0, lengths[axis])]
            starts = [r.start for r in part] + [0] * (len(shape) - first)
            own = tuple(_tile(tile, starts, found) for tile in product(*ranges))
            self._parts.append(_Part(part, lengths, own, kernels.get(lengths)))
        tiles = [tile for part in self._parts for tile in part.tiles]
        largest = [max((_length(tile.room[m]) for tile in tiles), default=1) for m in range(len(shape))]
        self._tile = padded(tuple(largest), kernel.dtype)
        self._plan = fftw_plan(kernel, (axis,), self._tile, self._tile)

    def __call__(self, memories: Sequence[Array], target: Array) -> None:
        """Transform what lies in the memories of all peers, each one-dimensional and of the kernel's dtype."""
        dtype, filled, execute = self.kernel.dtype, self._tile, self._plan.execute
        views = [
            np.ndarray(
                box.counts,
                dtype,
                memories[box.peer],
                box.offset * dtype.itemsize,
                [n * dtype.itemsize for n in box.strides],
            )
            for box in self._boxes
        ]
        for part in self._parts:
            there = target[part.of]
            room = there if self._room is None else view(self._room, part.shape, dtype)
            for tile in part.tiles:
                for box, taken, into in tile.reads:
                    if self._factors:
                        self._multiply(views[box][taken], tile.block, into)
                    else:
                        filled[into] = views[box][taken]
                execute()
                room[tile.room] = filled[tile.filled]
            if part.rest is not None:
                part.rest(room, there)

    def _multiply(self, values: Array, block: Index, into: Index) -> None:
        """Fill a part of the tile with values times the factors."""
        target = self._tile[into]
        for factor in self._factors:
            np.multiply(values, factor[block][into], out=target)
            values = target


@dataclass(frozen=True, slots=True)
class _Tile:
    """A range of a block that is transformed at once.

    Attributes:
        block: the range; `room` is the same within its part.
        filled: what it fills of the memory for a tile.
        reads: the number of a box, what is taken of it, and where that lies in the tile.
    """

    block: Index
    room: Index
    filled: Index
    reads: tuple[tuple[int, Index, Index], ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a block: its range along the first modes, its shape, its tiles, and the kernel of the other axes."""

    of: Index
    shape: tuple[int, ...]
    tiles: tuple[_Tile, ...]
    rest: BoundKernel | None


def _tile(room: Index, starts: Sequence[int], found: Sequence[Box]) -> _Tile:
    block = tuple(slice(r.start + n, r.stop + n) for r, n in zip(room, starts, strict=True))
    reads = []
    for number, box in enumerate(found):
        pairs = [box.within(mode, along.start, along.stop) for mode, along in enumerate(block)]
        some = [pair for pair in pairs if pair is not None]
        if len(some) == len(pairs):
            reads.append((number, tuple(a for a, _ in some), tuple(b for _, b in some)))
    return _Tile(block, room, tuple(slice(0, _length(r)) for r in room), tuple(reads))


def _ranges(extents: Sequence[int], budget: int) -> list[list[slice]]:
    """Ranges along modes whose products have at most so many elements, or 1: the last modes go first.

    >>> _ranges((2, 3, 4), 8)
    [[slice(0, 1, None), slice(1, 2, None)], [slice(0, 2, None), slice(2, 3, None)], [slice(0, 4, None)]]
    """
    found = []
    for n in reversed(extents):
        step = max(1, min(n, budget))
        budget //= step
        found.append([slice(at, min(at + step, n)) for at in range(0, n, step)])
    return found[::-1]


def _length(one: slice) -> int:
    return int(one.stop - one.start)
