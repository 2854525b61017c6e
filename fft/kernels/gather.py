"""A move and the transform after it in one sweep: tiles are read out of the ranks' blocks and transformed in cache.

A rank's new block is cut into tiles that have all points of one axis. Each tile is read from all blocks that have a
part of it, transformed and stored: nothing is packed, sent or unpacked. Planes that fit the shared cache are read
into their place and transformed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

import numpy as np

from rote.runtime.comm.protocol import Array
from rote.runtime.comm.segments import at_line
from rote.runtime.copy.strided import Copy, run

from .by_parts import composed
from .kernel import ALIGNMENT, NEAR, Kernel, is_bad, is_small_power, view
from .passes import BoundKernel
from .threads import OnThreads, Pool, bind_kernel, parallel_for, with_threads
from .tiles import BlockPart, BoundTile, Box, CopiedTile, PartReads, ReadTiles, TileViews, length, tile_ranges

__all__ = ["Gather", "Reads", "gathers"]

Reads = list[PartReads]

_FEW = 16  # tiles whose calls are prepared one by one; with more tiles the cost of a call hardly matters
_APART = 1 << 21  # bytes of a part that stays in a core's cache until its last pass
_KEPT = 4096  # tiles whose views are kept; for more tiles views are made while they are read, to save memory


def gathers(kernel: Kernel, ortho: bool) -> bool:
    """Whether a kernel may read its block out of boxes: not if `ortho` requires weights at the ends of its axes."""
    return kernel.config.fused and not (ortho and any(kernel.row.ortho))


class Gather:
    """A kernel that reads its block out of boxes. One thread (one rank) uses it.

    While the block is read, one axis is transformed: the real one of a transform of real numbers, else the first one
    that is complex on both sides. The modes before all axes are cut into parts. The other axes of a part follow while
    the part is in cache. Threads share the parts, or the tiles of a single part. Of a block whose axes are 1 and 2:

        boxes of the ranks      tiles: axis 1     a part: axis 2     the new block
        | rank 0 |              |   |   |   |     |           |      | part 0 |
        | rank 1 |      ->      |   |   |   |  -> |           |  ->  | part 1 |
        | rank 2 |              |   |   |   |     |           |      | part 2 |

    Args:
        kernel: the kernel of a rank's new block, for which `gathers` is true.
        boxes: the boxes that make up the block.
        factors: arrays by which the block is multiplied while it is read.
        scratch: memory on which the kernels of the other axes are planned.
        pool: the kernel's threads, if there are several.
    """

    __slots__ = ("_boxes", "_factors", "_parts", "_pool", "_workers", "kernel")

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
        at_once = _copies(kernel)
        scale = factors[0].astype(kernel.dtype) if len(factors) == 1 and not factors[0].ndim else None
        self._factors = [np.broadcast_to(factor, shape) for factor in factors] if scale is None else []
        rest = kernel.axes if at_once else tuple(a for a in kernel.axes if a != axis)
        ends = (shape, kernel.dtype), (kernel.out_shape, kernel.out_dtype)
        row_bytes = [prod(extents[first:]) * dtype.itemsize for extents, dtype in ends]  # bytes along the other modes
        cut = bool(rest) and not any(nbytes % ALIGNMENT for nbytes in row_bytes)  # parts begin where FFTW's plans can
        rows = prod(shape[:first])
        if cut:
            rows = max(1, min(rows, kernel.part_bytes // max(*row_bytes, 1)))
        part = replace(kernel, shape=(rows, *shape[first:]), out_shape=(rows, *kernel.out_shape[first:]))
        columns = max(8, part.tile_bytes // max(max(e[axis] * d.itemsize for e, d in ends), 1))
        self._parts: list[BlockPart] = []
        indices = [] if 0 in shape else product(*tile_ranges(shape[:first], rows))
        for index in indices:
            lengths = (*map(length, index), *shape[first:])
            across = [*lengths]
            across[axis] = 1
            ranges = tile_ranges(across, prod(across) if at_once else columns)
            ranges[axis] = [slice(0, lengths[axis])]
            starts = [r.start for r in index] + [0] * (len(shape) - first)
            self._parts.append(BlockPart(index, lengths, ReadTiles(ranges, starts, boxes, axis)))
        threads = kernel.config.threads
        number = 1  # of workers, which share the threads
        if len(self._parts) >= threads:
            number, threads = threads, 1
        part_kernel, self._workers = with_threads(kernel, threads), list[_Worker]()
        if self._parts:
            for _ in range(number):
                self._workers.append(_Worker(part_kernel, rest, at_once, self._parts, scratch, scale, pool))

    def ready(self) -> None:
        """Prepare now all transforms that the first calls would prepare; scratch is overwritten."""
        for worker in self._workers:
            worker.ready()

    def reads(self, memories: Sequence[Array]) -> Reads:
        """The views of the peers' memories that every tile reads.

        Each memory is one-dimensional, of the kernel's dtype or a narrower one: elements are widened as they are read.
        """
        views = [_view(memories[box.peer], box) for box in self._boxes]
        views_of_parts = [TileViews(part.tiles, views) for part in self._parts]
        return [*map(list, views_of_parts)] if sum(map(len, views_of_parts)) <= _KEPT else [*views_of_parts]

    def steps(self, reads: Reads, target: Array) -> list[tuple[int, Copy]]:
        """The work in steps, each with the index along the kernel's `step_axis` up to which it reads."""
        along = self.kernel.step_axis
        if len(self._workers) > 1:
            return [(self.kernel.shape[along], partial(self, reads, target))]
        steps: list[tuple[int, Copy]] = []
        for part, tiles in zip(self._parts, reads, strict=True):
            steps += self._workers[0].steps(part, tiles, self._factors, target, along)
        return steps

    def bound(self, reads: Reads, target: Array) -> list[Copy]:
        """The calls, in order, that read the block and transform it into `target`; they may be repeated."""
        if len(self._workers) > 1:
            return [partial(self._share, reads, target)]
        calls, few = list[Copy](), sum(map(len, reads)) <= _FEW
        for part, part_reads in zip(self._parts, reads, strict=True):
            if few:
                calls += self._workers[0].bound(part, part_reads, self._factors, target)
            else:  # to save memory, the calls of a part are made when it runs
                calls.append(partial(self._workers[0], part, part_reads, self._factors, target))
        return calls

    def __call__(self, reads: Reads, target: Array) -> None:
        """Read the block, and transform it into `target`."""
        run(self.bound(reads, target))

    def _share(self, reads: Reads, target: Array) -> None:
        items = list(zip(self._parts, reads, strict=True))
        parallel_for(self._pool, lambda worker, item: worker(*item, self._factors, target), self._workers, items)


def _view(memory: Array, box: Box) -> Array:
    size = memory.itemsize
    return np.ndarray(box.counts, memory.dtype, memory, box.offset * size, [n * size for n in box.strides])


class _Worker:
    """A worker that does part after part: it transforms one axis in tiles, then the other axes by their kernels.

    A part that goes on in other axes, or in another dtype, may be read into a room of the worker's own:

        boxes of the others' blocks -> tile: the read axis -> room or block -> the other axes -> block
    """

    __slots__ = ("_pool", "_rests", "_room", "_tiles")

    def __init__(
        self,
        kernel: Kernel,
        rest: tuple[int, ...],
        at_once: bool,
        parts: Sequence[BlockPart],
        scratch: tuple[Array, Array],
        scale: Array | None,
        pool: Pool,
    ) -> None:
        self._pool = pool
        first, axis = min(kernel.axes), _read_axis(kernel)
        largest = max((part.shape for part in parts), key=prod)
        later = kernel.row.real == "output" and bool(rest)  # the part stays complex until the last pass
        separate = bool(rest) and (
            (at_once and kernel.dtype != kernel.out_dtype) or _reads_into_scratch(kernel, largest)
        )
        self._room = at_line(prod(largest) * kernel.dtype.itemsize) if later or separate else None
        inner = replace(kernel, out_shape=kernel.shape) if later else kernel
        shape = tuple(map(max, zip(*(part.tiles.largest for part in parts), strict=True)))
        number = min(kernel.config.threads, max(len(part.tiles) for part in parts))
        self._tiles: list[CopiedTile | BoundTile]
        if at_once:
            self._tiles = [CopiedTile(kernel.dtype, scale)] * number
        else:
            self._tiles = [BoundTile(inner, axis, shape, later, scale) for _ in range(number)]
        self._rests: dict[tuple[int, ...], BoundKernel | OnThreads] = {}
        shapes = dict.fromkeys(part.shape for part in parts) if rest else {}
        for lengths in shapes:
            out_shape = (*lengths[:first], *kernel.out_shape[first:])
            rest_kernel = replace(kernel, axes=rest, shape=lengths, out_shape=out_shape)
            if kernel.row.real == "input" and not at_once:  # its real axis is complex now
                rest_kernel = replace(rest_kernel, kind=kernel.row.others, shape=out_shape, dtype=kernel.out_dtype)
            self._rests[lengths] = bind_kernel(rest_kernel, scratch, pool=pool)

    def ready(self) -> None:
        """Prepare all transforms now; see `Gather.ready`."""
        for rest in self._rests.values():
            rest.ready()

    def steps(
        self, part: BlockPart, reads: PartReads, factors: Sequence[Array], target: Array, along: int
    ) -> Iterator[tuple[int, Copy]]:
        """A part in steps: tile by tile, or as one step if other axes follow."""
        start, stop = 0, part.shape[along]
        if along < len(part.range):
            start, stop = part.range[along].start, part.range[along].stop
        if self._rests or len(self._tiles) > 1:
            yield stop, partial(self, part, reads, factors, target)
            return
        out = target[part.range]
        for number in range(len(reads)):
            tile, views = reads[number]
            yield start + tile.room[along].stop, partial(run, self._tiles[0].bound(tile, views, factors, out))

    def __call__(self, part: BlockPart, reads: PartReads, factors: Sequence[Array], target: Array) -> None:
        """Do a part."""
        run(self.bound(part, reads, factors, target))

    def bound(self, part: BlockPart, reads: PartReads, factors: Sequence[Array], target: Array) -> list[Copy]:
        """The calls, in order, that do a part; they may be repeated."""
        (room, out), calls = self._ends(part, target), list[Copy]()

        def read(tile: CopiedTile | BoundTile, number: int) -> None:
            run(tile.bound(*reads[number], factors, room))

        if len(self._tiles) > 1:
            calls.append(partial(parallel_for, self._pool, read, self._tiles, range(len(reads))))
        elif len(reads) > _FEW:  # to save memory, the calls of a tile are made when it is read
            calls += [partial(read, self._tiles[0], number) for number in range(len(reads))]
        else:
            for tile, views in reads:
                calls += self._tiles[0].bound(tile, views, factors, room)
        return [*calls, *self._rests[part.shape].bound(room, out)] if self._rests else calls

    def _ends(self, part: BlockPart, target: Array) -> tuple[Array, Array]:
        """The memory in which the tiles of a part are stored, and that for the finished part."""
        out = target[part.range]
        if self._room is None:
            return out, out
        return view(self._room, part.shape, self._tiles[0].dtype), out


def _copies(kernel: Kernel) -> bool:
    """Whether a part is only copied, and then all its axes are transformed in cache, as in a contiguous block.

    In planes that fit the shared cache, ducc0 takes 0.6 to 0.9 of the time that it takes in tiles, FFTW 0.8 to 1. Rows,
    which are then contiguous, as FFTW and ducc0 want them, take 0.8 to 1.1.
    """
    first, prefers_tiles = min(kernel.axes), kernel.backend.prefers_tiles
    near = first > 0 and prod(kernel.shape[first:]) * kernel.dtype.itemsize <= NEAR
    if not near or composed(kernel):
        return False
    if len(kernel.axes) == 1:
        rows = first == len(kernel.shape) - 1 and kernel.row.real == "neither"
        return rows and prefers_tiles
    row = replace(kernel, shape=(1, *kernel.shape[first:]), axes=tuple(axis - first + 1 for axis in kernel.axes))
    return prefers_tiles or not any(is_bad(row, axis) for axis in row.axes)


def _reads_into_scratch(kernel: Kernel, part: tuple[int, ...]) -> bool:
    """Whether the first axis of a part is written to scratch in cache, and the other axes from there to the block.

    Then FFTW's last pass is not in place, and only this pass writes the block, line after line.
    """
    usual = kernel.row.real == "neither" and kernel.backend.line_to_line
    return usual and prod(part) * kernel.dtype.itemsize <= _APART and not is_small_power(kernel.shape[kernel.axes[-1]])


def _read_axis(kernel: Kernel) -> int:
    """The axis that is transformed while the block is read."""
    real = kernel.axes[-1]
    if kernel.row.real == "input" or len(kernel.axes) == 1:
        return real
    return min(axis for axis in kernel.axes if kernel.row.real != "output" or axis != real)
