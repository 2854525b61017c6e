"""A move and the transform behind it in one sweep: tiles are read out of the ranks' blocks, and transformed in cache.

A rank's new block is cut into tiles that have all points of one axis. Of every block that has a part of a tile the part
is read, the tile is transformed, and stored: nothing is packed, sent or unpacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.runtime.copy.strided import Copy

from .backends import prepare
from .boxes import Box
from .kernel import (
    ALIGNMENT,
    CACHED,
    CHUNK,
    Kernel,
    in_lines,
    is_small_power,
    padded,
    padded_lines,
    scratch_bytes,
    view,
)
from .passes import BoundKernel, on_threads
from .tiles import BlockPart, Read, ReadTile, ReadTiles, TileViews, length, tile_ranges
from .workers import Pool, parallel_for

__all__ = ["Gather", "Reads", "gathers"]

Array = npt.NDArray[Any]
Reads = list[Sequence[tuple[ReadTile, list[Read]]]]  # by parts

_FEW = 16  # tiles whose calls are prepared one by one; where there are more, a call costs next to nothing
_APART = 1 << 21  # bytes of a part that stays in cache until its last pass
_KEPT = 4096  # tiles whose views are made once; of larger blocks they are made as they are read, or they were too many


def gathers(kernel: Kernel, ortho: bool = True) -> bool:
    """Whether a kernel may read its block out of boxes; if it is orthogonal, only where no face is weighted for it."""
    return kernel.config.fused and not (ortho and any(kernel.row.ortho))


class Gather:
    """A kernel that reads its block out of boxes. One thread (one rank) uses it.

    The axis that is transformed while it is read is the real one of a transform of real numbers, and else the first one
    that is complex on both sides. The modes before all axes are cut into parts; the other axes of a part follow while
    it is in cache. Threads share the parts, or the tiles of the only one.

    Args:
        kernel: one that `gathers`, of a rank's new block.
        found: the boxes that make it up.
        factors: of the new block, which are multiplied in as it is read.
        scratch: what the kernels of the other axes are planned on.
        pool: for the kernel's threads, if they are several.
    """

    __slots__ = ("_boxes", "_factors", "_hands", "_parts", "_pool", "kernel")

    kernel: Kernel

    def __init__(
        self,
        kernel: Kernel,
        boxes: tuple[Box, ...],
        factors: Sequence[Array],
        scratch: tuple[Array, Array],
        pool: Pool = None,
    ) -> None:
        self.kernel, self._boxes, self._pool = kernel, boxes, pool
        shape, first, axis = kernel.shape, min(kernel.axes), _read_axis(kernel)
        scale = factors[0].astype(kernel.dtype) if len(factors) == 1 and not factors[0].ndim else None
        self._factors = [] if scale is not None else [np.broadcast_to(factor, shape) for factor in factors]
        rest = tuple(a for a in kernel.axes if a != axis)
        ends = (shape, kernel.dtype), (kernel.out_shape, kernel.out_dtype)
        row_bytes = [prod(extents[first:]) * dtype.itemsize for extents, dtype in ends]  # bytes along the other modes
        cut = bool(rest) and not any(nbytes % ALIGNMENT for nbytes in row_bytes)  # parts begin where FFTW's plans may
        budget = (kernel.config.part or CHUNK) // max(*row_bytes, 1) if cut else prod(shape[:first])
        columns = max(8, (kernel.config.tile or CACHED) // max(max(e[axis] * d.itemsize for e, d in ends), 1))
        self._parts: list[BlockPart] = []
        for index in product(*tile_ranges(shape[:first], budget)) if 0 not in shape else ():
            lengths = (*map(length, index), *shape[first:])
            ranges = tile_ranges([1 if m == axis else n for m, n in enumerate(lengths)], columns)
            ranges[axis] = [slice(0, lengths[axis])]
            starts = [r.start for r in index] + [0] * (len(shape) - first)
            self._parts.append(BlockPart(index, lengths, ReadTiles(ranges, starts, boxes, axis)))
        threads = kernel.config.threads
        many = len(self._parts) >= threads
        part_kernel = on_threads(kernel, 1 if many else threads)
        workers = range((threads if many else 1) if self._parts else 0)
        self._hands = [_Worker(part_kernel, rest, self._parts, scratch, scale, pool) for _ in workers]

    def ready(self) -> None:
        """Make now all transforms that the first calls would make; what lies in scratch is lost."""
        for worker in self._hands:
            worker.ready()

    def reads(self, memories: Sequence[Array]) -> Reads:
        """The views that every tile reads of all peers' memories, each one-dimensional and of the kernel's dtype."""
        size = self.kernel.dtype.itemsize
        views = [
            np.ndarray(
                box.counts,
                self.kernel.dtype,
                memories[box.peer],
                box.offset * size,
                [n * size for n in box.strides],
            )
            for box in self._boxes
        ]
        views_of_parts = [TileViews(part.tiles, views) for part in self._parts]
        return [*map(list, views_of_parts)] if sum(map(len, views_of_parts)) <= _KEPT else [*views_of_parts]

    def steps(self, reads: Reads, target: Array) -> list[tuple[int, Callable[[], object]]]:
        """Steps that do the same, each with how far it reads: along the first mode, or the second behind an axis."""
        along = 0 if min(self.kernel.axes) > 0 else 1
        if len(self._hands) > 1 or not self._parts:
            return [(self.kernel.shape[along], partial(self, reads, target))] if self._parts else []
        return [
            step
            for part, tiles in zip(self._parts, reads, strict=True)
            for step in self._hands[0].steps(part, tiles, self._factors, target, along)
        ]

    def __call__(self, reads: Reads, target: Array) -> None:
        """Transform what is read into `target`."""
        if self._hands:
            items = list(zip(self._parts, reads, strict=True))
            parallel_for(self._pool, lambda worker, item: worker(*item, self._factors, target), self._hands, items)

    def bound(self, reads: Reads, target: Array) -> list[Copy]:
        """The calls, in order, that transform what is read by then into `target`, again and again."""
        if len(self._hands) != 1 or sum(map(len, reads)) > _FEW:
            return [partial(self, reads, target)]
        calls = list[Copy]()
        for part, part_reads in zip(self._parts, reads, strict=True):
            calls += self._hands[0].bound(part, part_reads, self._factors, target)
        return calls


class _Worker:
    """A worker that does part after part: tiles in which one axis is transformed, and the kernels of the other axes."""

    __slots__ = ("_pool", "_rests", "_room", "_tiles")

    def __init__(
        self,
        kernel: Kernel,
        rest: tuple[int, ...],
        parts: Sequence[BlockPart],
        scratch: tuple[Array, Array],
        scale: Array | None,
        pool: Pool,
    ) -> None:
        self._pool = pool
        first, axis = min(kernel.axes), _read_axis(kernel)
        largest = max((part.shape for part in parts), key=prod)
        later = kernel.row.real == "output" and bool(rest)  # what has been read stays complex until the last pass
        nbytes = prod(largest) * kernel.dtype.itemsize
        self._room = scratch_bytes(nbytes) if later or (rest and _reads_apart(kernel, nbytes)) else None
        inner = replace(kernel, out_shape=kernel.shape) if later else kernel
        shape = tuple(map(max, zip(*(part.tiles.largest for part in parts), strict=True)))
        number = min(kernel.config.threads, max(len(part.tiles) for part in parts))
        self._tiles = [_BoundTile(inner, axis, shape, later, scale) for _ in range(number)]
        self._rests: dict[tuple[int, ...], BoundKernel] = {}
        for lengths in {part.shape: None for part in parts} if rest else ():
            out_shape = (*lengths[:first], *kernel.out_shape[first:])
            rest_kernel = replace(kernel, axes=rest, shape=lengths, out_shape=out_shape)
            if kernel.row.real == "input":  # its real axis is no more
                rest_kernel = replace(rest_kernel, kind=kernel.row.others, shape=out_shape, dtype=kernel.out_dtype)
            self._rests[lengths] = BoundKernel(rest_kernel, scratch, pool=pool)

    def ready(self) -> None:
        """Make all transforms now; see `Gather.ready`."""
        for rest in self._rests.values():
            rest.ready()

    def steps(
        self,
        part: BlockPart,
        reads: Sequence[tuple[ReadTile, list[Read]]],
        factors: Sequence[Array],
        target: Array,
        along: int,
    ) -> Iterator[tuple[int, Callable[[], object]]]:
        """A part in steps: tile by tile, or all of it if other axes follow."""
        if self._rests or len(self._tiles) > 1:
            stop = part.range[along].stop if along < len(part.range) else part.shape[along]
            yield stop, partial(self, part, reads, factors, target)
            return
        out, start = target[part.range], part.range[along].start if along < len(part.range) else 0
        for number in range(len(reads)):
            tile, views = reads[number]
            yield start + tile.room[along].stop, partial(self._tiles[0], tile, views, factors, out)

    def __call__(
        self, part: BlockPart, reads: Sequence[tuple[ReadTile, list[Read]]], factors: Sequence[Array], target: Array
    ) -> None:
        room, out = self._ends(part, target)
        if len(self._tiles) == 1:
            run = self._tiles[0]
            for number in range(len(reads)):
                run(*reads[number], factors, room)
        else:
            parallel_for(
                self._pool, lambda tile, number: tile(*reads[number], factors, room), self._tiles, range(len(reads))
            )
        if self._rests:
            self._rests[part.shape](room, out)

    def bound(
        self, part: BlockPart, reads: Sequence[tuple[ReadTile, list[Read]]], factors: Sequence[Array], target: Array
    ) -> list[Copy]:
        """The calls, in order, that do a part, again and again."""
        if len(self._tiles) > 1:
            return [partial(self, part, reads, factors, target)]
        room, out = self._ends(part, target)
        calls = list[Copy]()
        for tile, views in reads:
            calls += self._tiles[0].bound(tile, views, factors, room)
        return [*calls, *self._rests[part.shape].bound(room, out)] if self._rests else calls

    def _ends(self, part: BlockPart, target: Array) -> tuple[Array, Array]:
        """Where the tiles of a part are stored, and where the part is in the end."""
        out = target[part.range]
        return out if self._room is None else view(self._room, part.shape, self._tiles[0].dtype), out


class _BoundTile:
    """Memory for a tile, and the transform of one axis in it."""

    __slots__ = ("_execute", "_filled", "_flat", "_scale", "_stored", "dtype")

    def __init__(self, kernel: Kernel, axis: int, shape: tuple[int, ...], stays: bool, scale: Array | None) -> None:
        self.dtype, self._scale = kernel.dtype, scale
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
        self._execute = prepare(kernel, (axis,), *ends, 1).execute

    def __call__(self, tile: ReadTile, reads: Sequence[Read], factors: Sequence[Array], room: Array) -> None:
        for call in self.bound(tile, reads, factors, room):
            call()

    def bound(self, tile: ReadTile, reads: Sequence[Read], factors: Sequence[Array], room: Array) -> list[Copy]:
        """The calls, in order, that do a tile, again and again."""
        whole, calls = self._filled, list[Copy]()
        for values, into in reads:
            filled = whole[into]
            if not factors:
                calls.append(partial(filled.__setitem__, ..., values))
            for factor in factors:
                calls.append(partial(np.multiply, values, factor[tile.block][into], filled))
                values = filled
        if self._scale is not None:
            part = whole[tile.filled]
            if part.shape[1:] == whole.shape[1:]:  # in one run, which is faster than row by row
                part = self._flat[: len(part) * (self._flat.size // len(whole))]
            calls.append(partial(np.multiply, part, self._scale, part))
        stored = partial(room[tile.stored].__setitem__, ..., self._stored[tile.taken])
        return [*calls, self._execute, stored]


def _reads_apart(kernel: Kernel, nbytes: int) -> bool:
    """Whether the first axis of a part goes to scratch that stays in cache, and the others from there to its block.

    So FFTW's last pass is not in place, and it alone writes the block, line after line.
    """
    usual = kernel.row.real == "neither" and kernel.config.library == "pyfftw"
    return usual and nbytes <= _APART and not is_small_power(kernel.shape[kernel.axes[-1]])


def _read_axis(kernel: Kernel) -> int:
    """The axis that is transformed while the block is read."""
    real = kernel.axes[-1]
    if kernel.row.real == "input" or len(kernel.axes) == 1:
        return real
    return min(axis for axis in kernel.axes if kernel.row.real != "output" or axis != real)
