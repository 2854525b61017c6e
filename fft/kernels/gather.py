"""A move and the transform after it in one sweep: tiles are read out of the ranks' blocks and transformed in cache.

A block is made of boxes, which are evenly spaced elements of other memories. It is cut into parts along the modes
before all axes, and a part into tiles that have all points of one axis. Each tile is read from all boxes that have some
of it, transformed and stored: nothing is packed, sent or unpacked. Planes that fit the shared cache are read into their
place and transformed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from math import prod
from typing import NamedTuple

import numpy as np

from rote.layout.grid import row_major
from rote.runtime.comm.protocol import Array
from rote.runtime.comm.segments import at_line
from rote.runtime.copies import Copy, StridedCopy, run, times
from rote.runtime.operations import Scratch
from rote.runtime.regions import Region

from .kernel import ALIGNMENT, NEAR, Kernel, is_bad, is_small_power, view
from .passes import BoundKernel, TileMemory, composed
from .threads import OnThreads, Pool, bind_kernel, parallel_for, with_threads

__all__ = ["Box", "Gather", "Reads", "boxes", "gathers", "whole"]

Index = tuple[slice, ...]
Read = tuple[Array, Index]  # the values that are read into a tile, and their place in it

_MOST_BOXES = 16  # into which one piece may fall
_FEW = 16  # tiles whose calls are prepared one by one: with more, what a call costs is little of the whole
_IN_CACHE = 1 << 21  # bytes of a part that stays in a core's cache until its last pass


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
        """The slice of the box in a range of the block along a mode, and its place in that range."""
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

    Each region has the number of the memory from which it is read.
    """
    every: list[Box] = []
    for number, region in regions:
        for piece in region.pieces:
            boxes_of_piece = list(_boxes(piece, number, order)) if isinstance(piece, StridedCopy) else []
            if not 0 < len(boxes_of_piece) <= _MOST_BOXES:
                return None
            every += boxes_of_piece

    return tuple(every)


def _boxes(piece: StridedCopy, peer: int, order: int) -> Iterator[Box]:
    """A piece as boxes: of the digits that run along one mode, the longest stays, the others become boxes."""
    # A box has one evenly spaced run along each mode. A mode that is two digits of the piece is several boxes:
    #
    #     block-cyclic(2) over 2 ranks, from rank 0:   0 1 . . 4 5 . . 8 9     digits: 3 tiles of 2
    #     boxes: the tiles are the longer digit        0 . . . 4 . . . 8 .     and the same, from 1
    (offset, gaps), shape = piece.located(0), piece.shape

    rows = [[0] * (len(shape) + 1) for _ in range(order)]  # the index along each mode, linear in all digits
    first = 1
    for part in piece.parts:
        for mode, (start, *more) in zip(part.target, part.rows(1), strict=True):
            rows[mode][0] = start
            rows[mode][first : first + len(more)] = more
        first += len(part.lattice.shape)

    # A digit that runs along two modes at once, or along none, makes no boxes.
    along = [[axis for axis, step in enumerate(row[1:]) if step] for row in rows]
    every = [*chain(*along)]
    if len({*every}) < len(every) or any(n > 1 and axis not in every for axis, n in enumerate(shape)):
        return

    longest = [max(axes, key=lambda axis: shape[axis], default=-1) for axes in along]  # per mode; -1 if it has none
    spread = [axis for axis in every if axis not in longest]
    if prod([shape[axis] for axis in spread]) > _MOST_BOXES:
        return

    strides = tuple([gaps[axis] if axis >= 0 else 0 for axis in longest])
    steps = tuple([row[axis + 1] if axis >= 0 else 1 for row, axis in zip(rows, longest, strict=True)])
    counts = tuple([shape[axis] if axis >= 0 else 1 for axis in longest])

    for digits in product(*[range(shape[axis]) for axis in spread]):
        numbers = [offset, *[row[0] for row in rows]]
        for axis, n in zip(spread, digits, strict=True):
            numbers[0] += n * gaps[axis]
            for mode, row in enumerate(rows, 1):
                numbers[mode] += n * row[axis + 1]

        begin, *starts = numbers
        yield Box(peer, begin, strides, tuple(starts), steps, counts)


def whole(shape: tuple[int, ...]) -> tuple[Box, ...]:
    """A contiguous block as a single box."""
    return (Box(0, 0, row_major(shape), (0,) * len(shape), (1,) * len(shape), shape),)


class _TileRange(NamedTuple):
    """A range of a block that is transformed at once.

    For example, in a part of rows 4 to 8 of a block, axis 1 of 6 real points is transformed to 4 complex ones. The tile
    of rows 6 to 8 is read from two boxes, which have three columns each:

        block     [6:8, 0:6]    part      [2:4, 0:6]    filled    [0:2, 0:6]
        stored    [2:4, :]      done      [0:2, :]      reads     box 0 into [0:2, 0:3], box 1 into [0:2, 3:6]

    Attributes:
        block: the range in the block.
        part, filled: the range within its part, and within the memory for a tile.
        stored, done: the result's range within its part, with all of the axis, and within the memory for a tile.
        reads: the number of each box, the range of it, and its place in the tile.
    """

    block: Index
    part: Index
    filled: Index
    stored: Index
    done: Index
    reads: list[tuple[int, Index, Index]]


PartReads = list[tuple[_TileRange, list[Read]]]
"""The tiles of a part, each with its reads."""

Reads = list[PartReads]


class _Portion(NamedTuple):
    """A part of a block: its range along the first modes, its shape, its tiles, and the extents of the largest tile."""

    range: Index
    shape: tuple[int, ...]
    tiles: list[_TileRange]
    largest: tuple[int, ...]


def _tiles(ranges: list[list[slice]], starts: Sequence[int], boxes: Sequence[Box], axis: int) -> list[_TileRange]:
    """The tiles of a part that begins at `starts` in the block, from their ranges along each mode of the part."""
    within = []  # per mode, range and box: the part of the box in the range
    for mode, (along, start) in enumerate(zip(ranges, starts, strict=True)):
        within.append([[box.within(mode, r.start + start, r.stop + start) for box in boxes] for r in along])

    tiles = []
    for part, inside in zip(product(*ranges), product(*within), strict=True):
        reads = []
        for box, pairs in enumerate(zip(*inside, strict=True)):  # the ranges of one box along all modes
            met = [pair for pair in pairs if pair is not None]
            if len(met) == len(pairs):
                of_box, into = zip(*met, strict=True)
                reads.append((box, of_box, into))

        block = tuple(slice(r.start + n, r.stop + n) for r, n in zip(part, starts, strict=True))
        filled = tuple(slice(0, _length(r)) for r in part)

        stored, done = list(part), list(filled)
        stored[axis] = done[axis] = slice(None)  # a transform may change its number of points
        tiles.append(_TileRange(block, part, filled, tuple(stored), tuple(done), reads))
    return tiles


def _tile_ranges(extents: Sequence[int], budget: int) -> list[list[slice]]:
    """Ranges along modes whose products have at most `budget` elements, or 1; the last modes are kept whole first.

    >>> _tile_ranges((2, 3, 4), 8)
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


def _length(extent: slice) -> int:
    return int(extent.stop - extent.start)


def _tile_calls(
    tile: _TileRange,
    reads: Sequence[Read],
    memory: TileMemory | None,
    factors: Sequence[Array],
    scale: Array | None,
    out: Array,
) -> list[Copy]:
    """The calls, in order, that read, multiply, transform and store a tile of a part; they may be repeated.

    It is multiplied by `factors`, or by `scale`. Without a memory to transform it in, the tile is read and multiplied
    into its place in the part, and not transformed.
    """
    target = out[tile.part] if memory is None else memory.filled
    calls = list[Copy]()
    for values, into in reads:
        filled = target[into]
        every = [factor[tile.block][into] for factor in factors]
        if memory is None and scale is not None:
            every = [scale]

        # The copy itself multiplies by the first factor, and the others follow in place.
        if not every:
            calls.append(partial(filled.__setitem__, ..., values))
        for factor in every:
            calls.append(partial(times, values, factor, filled))
            values = filled
    if memory is None:
        return calls

    if scale is not None:
        part = target[tile.filled]
        if part.shape[1:] == target.shape[1:]:  # contiguous, which is faster than row by row
            part = memory.flat[: len(part) * (memory.flat.size // len(target))]
        calls.append(partial(np.multiply, part, scale, part))

    stored = partial(out[tile.stored].__setitem__, ..., memory.stored[tile.done])
    return [*calls, memory.run, stored]


# --- the kernel that reads them ---------------------------------------------------------------------------------------


def gathers(kernel: Kernel, ortho: bool) -> bool:
    """Whether a kernel may read its block out of boxes: not if `ortho` requires weights at the ends of its axes."""
    return kernel.config.fused and not (ortho and any(kernel.row.ortho))


class Gather:
    """A kernel that reads its block out of boxes. One thread (one rank) uses it.

    While the block is read, it is multiplied by `factors`, and one axis is transformed: the real one of a transform of
    real numbers, else the first one that is complex on both sides. The modes before all axes are cut into parts. The
    other axes of a part follow while the part is in cache; a part that is only copied (`_copies`) has all axes left.

    If there are as many parts as threads, or more, each thread does parts of its own. If there are fewer, all threads
    share the tiles of one part after the other. Of a block whose axes are 1 and 2:

        boxes of the ranks      tiles: axis 1     a part: axis 2     the new block
        | rank 0 |              |   |   |   |     |           |      | part 0 |
        | rank 1 |      ->      |   |   |   |  -> |           |  ->  | part 1 |
        | rank 2 |              |   |   |   |     |           |      | part 2 |
    """

    __slots__ = ("_boxes", "_factors", "_parts", "_pool", "_workers", "kernel")

    kernel: Kernel

    def __init__(
        self, kernel: Kernel, boxes: tuple[Box, ...], factors: Sequence[Array], scratch: Scratch, pool: Pool = None
    ) -> None:
        self.kernel, self._boxes, self._pool = kernel, boxes, pool
        shape, first, axis = kernel.shape, min(kernel.axes), _read_axis(kernel)
        at_once = _copies(kernel)
        rest = kernel.axes if at_once else tuple(a for a in kernel.axes if a != axis)

        scale = factors[0].astype(kernel.dtype) if len(factors) == 1 and not factors[0].ndim else None
        self._factors = [np.broadcast_to(factor, shape) for factor in factors] if scale is None else []

        # A part is as many rows as stay in cache from its first axis to its last; a tile, as many columns.
        ends = (shape, kernel.dtype), (kernel.out_shape, kernel.out_dtype)
        row_bytes = [prod(extents[first:]) * dtype.itemsize for extents, dtype in ends]  # bytes along the other modes
        cut = bool(rest) and not any(nbytes % ALIGNMENT for nbytes in row_bytes)  # parts begin where FFTW's plans can
        rows = prod(shape[:first])
        if cut:
            rows = max(1, min(rows, kernel.part_bytes // max(*row_bytes, 1)))
        part = replace(kernel, shape=(rows, *shape[first:]), out_shape=(rows, *kernel.out_shape[first:]))
        columns = max(8, part.tile_bytes // max(max(e[axis] * d.itemsize for e, d in ends), 1))

        self._parts: list[_Portion] = []
        indices = [] if 0 in shape else product(*_tile_ranges(shape[:first], rows))
        for index in indices:
            lengths = (*map(_length, index), *shape[first:])
            across = [*lengths]
            across[axis] = 1

            ranges = _tile_ranges(across, prod(across) if at_once else columns)
            ranges[axis] = [slice(0, lengths[axis])]
            starts = [r.start for r in index] + [0] * (len(shape) - first)
            largest = tuple(max(map(_length, along)) for along in ranges)
            self._parts.append(_Portion(index, lengths, _tiles(ranges, starts, boxes, axis), largest))

        threads = kernel.config.threads
        number = 1  # of workers, which share the threads
        if len(self._parts) >= threads:
            number, threads = threads, 1

        part_kernel, self._workers = with_threads(kernel, threads), list[_Worker]()
        if self._parts:
            for _ in range(number):
                self._workers.append(_Worker(part_kernel, rest, at_once, self._parts, scratch, scale, pool))

    def reads(self, memories: Sequence[Array]) -> Reads:
        """The views that every tile reads, of one-dimensional memories, perhaps of a narrower dtype."""
        views = [_view(memories[box.peer], box) for box in self._boxes]
        reads = Reads()
        for part in self._parts:
            reads.append([(tile, [(views[n][of_box], into) for n, of_box, into in tile.reads]) for tile in part.tiles])
        return reads

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

    A part that goes on in other axes, or in another dtype, may be read into memory of the worker's own, `first`:

        boxes of the ranks' blocks -> tile: the read axis -> first or block -> the other axes -> block
    """

    __slots__ = ("_dtype", "_memories", "_memory", "_pool", "_rests", "_scale")

    def __init__(
        self,
        kernel: Kernel,
        rest: tuple[int, ...],
        at_once: bool,
        parts: Sequence[_Portion],
        scratch: Scratch,
        scale: Array | None,
        pool: Pool,
    ) -> None:
        self._pool, self._scale, self._dtype = pool, scale, kernel.dtype
        first, axis = min(kernel.axes), _read_axis(kernel)

        largest = max((part.shape for part in parts), key=prod)
        later = kernel.row.real == "output" and bool(rest)  # the part stays complex until the last pass
        separate = bool(rest) and (
            (at_once and kernel.dtype != kernel.out_dtype) or _reads_into_scratch(kernel, largest)
        )
        self._memory = at_line(prod(largest) * kernel.dtype.itemsize) if later or separate else None

        inner = replace(kernel, out_shape=kernel.shape) if later else kernel
        shape = tuple(map(max, zip(*(part.largest for part in parts), strict=True)))
        number = min(kernel.config.threads, max(len(part.tiles) for part in parts))
        self._memories = [None if at_once else TileMemory(inner, axis, shape, later) for _ in range(number)]

        self._rests: dict[tuple[int, ...], BoundKernel | OnThreads] = {}
        shapes = dict.fromkeys(part.shape for part in parts) if rest else {}
        for lengths in shapes:
            out_shape = (*lengths[:first], *kernel.out_shape[first:])
            rest_kernel = replace(kernel, axes=rest, shape=lengths, out_shape=out_shape)
            if kernel.row.real == "input" and not at_once:  # its real axis is complex now
                rest_kernel = replace(rest_kernel, kind=kernel.row.others, shape=out_shape, dtype=kernel.out_dtype)
            self._rests[lengths] = bind_kernel(rest_kernel, scratch, pool=pool)

    def steps(
        self, part: _Portion, reads: PartReads, factors: Sequence[Array], target: Array, along: int
    ) -> Iterator[tuple[int, Copy]]:
        """A part in steps: tile by tile, or as one step if other axes follow or threads share the tiles."""
        start, stop = 0, part.shape[along]
        if along < len(part.range):
            start, stop = part.range[along].start, part.range[along].stop
        if self._rests or len(self._memories) > 1:
            yield stop, partial(self, part, reads, factors, target)
            return

        out = target[part.range]
        for tile, views in reads:
            yield (
                start + tile.part[along].stop,
                partial(run, _tile_calls(tile, views, self._memories[0], factors, self._scale, out)),
            )

    def __call__(self, part: _Portion, reads: PartReads, factors: Sequence[Array], target: Array) -> None:
        """Do a part."""
        run(self.bound(part, reads, factors, target))

    def bound(self, part: _Portion, reads: PartReads, factors: Sequence[Array], target: Array) -> list[Copy]:
        """The calls, in order, that do a part; they may be repeated."""
        out, calls = target[part.range], list[Copy]()
        first = out if self._memory is None else view(self._memory, part.shape, self._dtype)

        def read(memory: TileMemory | None, number: int) -> None:
            run(_tile_calls(*reads[number], memory, factors, self._scale, first))

        if len(self._memories) > 1:
            calls.append(partial(parallel_for, self._pool, read, self._memories, range(len(reads))))
        elif len(reads) > _FEW:  # to save memory, the calls of a tile are made when it is read
            calls += [partial(read, self._memories[0], number) for number in range(len(reads))]
        else:
            for tile, views in reads:
                calls += _tile_calls(tile, views, self._memories[0], factors, self._scale, first)

        return [*calls, *self._rests[part.shape].bound(first, out)] if self._rests else calls


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
    return (
        usual and prod(part) * kernel.dtype.itemsize <= _IN_CACHE and not is_small_power(kernel.shape[kernel.axes[-1]])
    )


def _read_axis(kernel: Kernel) -> int:
    """The axis that is transformed while the block is read."""
    real = kernel.axes[-1]
    if kernel.row.real == "input" or len(kernel.axes) == 1:
        return real
    return min(axis for axis in kernel.axes if kernel.row.real != "output" or axis != real)
