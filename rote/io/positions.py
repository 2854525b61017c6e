"""Positions of a block's elements in a file that holds the whole tensor.

A file is an array of digits in C or Fortran order; a block holds digits in the order of the view. Digits that are
neighbours in both are one axis of the file, so that plain layouts, tiles and fuses of neighbours move directly between
file and block. Other blocks are divided into a few products of sets of digits, each moved through a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from math import lcm, prod
from typing import Any

import numpy as np

from ..layout.distribution import Distribution
from ..layout.expressions import block as in_blocks
from ..layout.grid import Grid
from ..layout.indexset import EMPTY, IndexSet
from ..layout.kinds import Split, mode_set
from ..layout.layout import Entry, Layout
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm
from ..runtime.comm.rawfile import FilePart

__all__ = ["LARGE", "FileTransfer", "file_parts", "in_long_runs", "in_rows", "is_reordered", "is_scattered"]
__all__ += ["longest_run", "run_length", "storage_shape", "transfers", "writes"]

LARGE = 1 << 20
"""Bytes of a block from which on an exchange between ranks pays, if runs are short."""
_RUN = 1 << 12  # bytes that a file system handles at a time


@dataclass(frozen=True, slots=True)
class _Storage:
    """A file's elements as an array of `shape` in C order; view mode m reads its axes `axes[m]`, slowest first."""

    shape: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, dist: Distribution, fortran_order: bool) -> _Storage:
        """The storage of the digits that a view reads; digits that are neighbours in file and view are one axis."""
        digits = [*chain(*dist.digits)]
        mode_of = [m for m, mode in enumerate(dist.digits) for _ in mode]
        sign = -1 if fortran_order else 1
        shape: list[int] = []
        axes: dict[int, int] = {}  # the first digit of each axis -> the axis
        before = -1
        for k in sorted(range(len(digits)), key=lambda k: (sign * digits[k].mode, -digits[k].weight)):
            if shape and k == before + 1 and mode_of[k] == mode_of[before]:
                shape[-1] *= digits[k].size
            else:
                axes[k] = len(shape)
                shape.append(digits[k].size)
            before = k
        groups: list[list[int]] = [[] for _ in range(dist.order)]
        for k in sorted(axes):
            groups[mode_of[k]].append(axes[k])
        return cls(tuple(shape), tuple(map(tuple, groups)))


@dataclass(frozen=True, slots=True, eq=False)
class FileTransfer:
    """A transfer between the elements at `index` of the file's array and those at `place` of the block.

    If `block` is None, `buffer` is the block itself, or is empty. Otherwise `buffer` is separate memory, and
    `buffer.transpose(order)` has the block's order.
    """

    shape: tuple[int, ...]
    index: tuple[IndexSet, ...]
    buffer: Array
    block: Array | None = None
    place: tuple[Any, ...] = ()
    order: tuple[int, ...] = ()

    def put(self) -> None:
        """Copy elements that were read from the buffer into the block."""
        if self.block is not None:
            values = self.buffer.transpose(self.order)
            if isinstance(self.place[0], slice):  # reshaping only splits modes, so the result is still a view
                self.block[self.place].reshape(values.shape)[...] = values
            else:
                self.block[self.place] = values

    def take(self) -> None:
        """Copy elements that will be written from the block into the buffer."""
        if self.block is not None:
            values = self.buffer.transpose(self.order)
            values[...] = self.block[self.place].reshape(values.shape)


def transfers(block: Array, dist: Distribution, fortran_order: bool, moves: bool, comm: Comm) -> Iterator[FileTransfer]:
    """The transfers of a block, equally many on each rank; a rank that moves nothing has empty ones. Collective."""
    if 0 in dist.shape:
        return
    storage = _Storage.of(dist, fortran_order)
    order = len(storage.shape)
    nothing = FileTransfer(storage.shape, (EMPTY,) * order, np.empty((0,) * max(order, 1), block.dtype))
    index = dist.index_sets(comm.rank) if moves and block.size else None
    if storage.axes == tuple((axis,) for axis in range(order)):
        yield nothing if index is None else FileTransfer(storage.shape, index, block)
        return
    boxes = [] if index is None else list(_boxes(index, storage))
    inside = tuple(chain(*storage.axes))  # the order of the block
    for k in range(max(comm.allgather_object(len(boxes)))):
        transfer = nothing
        with collective_errors(comm):
            if k < len(boxes):
                places, held = boxes[k]
                buffer = np.empty([*map(len, held)], block.dtype)
                transfer = FileTransfer(storage.shape, held, buffer, block, _place(storage, places, held), inside)
        yield transfer


def storage_shape(dist: Distribution, fortran_order: bool) -> tuple[int, ...]:
    """The shape of a file as an array in C order, with the axes that a view reads."""
    return _Storage.of(dist, fortran_order).shape


def file_parts(
    block: Array, dist: Distribution, rank: int, fortran_order: bool
) -> Iterator[tuple[tuple[IndexSet, ...], Array]]:
    """The parts of a rank's block: positions in a file's array of `storage_shape`, and the elements in its order.

    The elements are a view of the block; or, if no view has them, a buffer, which the iterator copies into the block
    before it yields the next part.
    """
    storage = _Storage.of(dist, fortran_order)
    order = tuple(chain(*storage.axes))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    for places, index in _boxes(dist.index_sets(rank), storage):
        place = _place(storage, places, index)
        if isinstance(place[0], slice):  # reshaping only splits modes, so the result is still a view
            view: Array = block[place].reshape([len(index[axis]) for axis in order])
            yield index, view.transpose(inverse)
        else:
            buffer = np.empty([*map(len, index)], block.dtype)
            yield index, buffer
            block[place] = buffer.transpose(order)


def is_scattered(block: Array, dist: Distribution, rank: int) -> bool:
    """Whether a rank's block is more than a few long runs of a file in C order.

    >>> from rote.layout.layout import parse
    >>> [is_scattered(np.empty((512, 512)), parse(f"block[{m}]").on((512, 1024), 2), 0) for m in ("(),(0)", "(0),()")]
    [True, False]
    """
    storage = _Storage.of(dist, False)
    if storage.axes != tuple((axis,) for axis in range(dist.order)):
        return True
    return not FilePart("", 0, storage.shape, dist.index_sets(rank), block, writing=False).in_long_runs


def is_reordered(dist: Distribution) -> bool:
    """Whether blocks hold the elements in another order than a file in C order."""
    digits = [*chain(*dist.digits)]
    return digits != sorted(digits, key=lambda digit: (digit.mode, -digit.weight))


def _place(storage: _Storage, places: tuple[IndexSet, ...], index: tuple[IndexSet, ...]) -> tuple[Any, ...]:
    """The NumPy index of a box in a block: slices if possible, which NumPy copies much faster, else arrays."""
    if all(held.runs == ((0, 1),) for held in places):
        return tuple(slice(held.start, held.stop, held.period) for held in places)
    arrays, after = [], len(storage.shape)  # the number of axes of the file after those of a mode
    for held, group in zip(places, storage.axes, strict=True):
        after -= len(group)
        arrays.append(held.to_array().reshape(*(len(index[axis]) for axis in group), *(1,) * after))
    return tuple(arrays)


def _boxes(
    index: tuple[IndexSet, ...], storage: _Storage
) -> Iterator[tuple[tuple[IndexSet, ...], tuple[IndexSet, ...]]]:
    """A block as products of sets, each with its places per view mode and its positions per axis of the file."""
    modes = []
    for held, group in zip(index, storage.axes, strict=True):
        modes.append(list(_products(held, [storage.shape[axis] for axis in group])))
    for box in product(*modes):
        along: dict[int, IndexSet] = {}
        for group, (_, digits) in zip(storage.axes, box, strict=True):
            along.update(zip(group, digits, strict=True))
        yield tuple(places for places, _ in box), tuple(along[axis] for axis in range(len(along)))


def _products(held: IndexSet, sizes: Sequence[int]) -> Iterator[tuple[IndexSet, tuple[IndexSet, ...]]]:
    """A set of numbers as few products of sets of digits of given sizes: each product's places in the set, its digits.

    An interval over two digits gives three products: the end of one row, whole rows, the start of another.

    >>> [[list(digits) for digits in each] for _, each in _products(IndexSet.interval(2, 11), (4, 3))]
    [[[0], [2]], [[1, 2], [0, 1, 2]], [[3], [0, 1]]]
    """
    if len(sizes) == 1:
        yield IndexSet.interval(0, len(held)), (held,)
        return
    size = prod(sizes[1:])
    again = lcm(held.period, size) // size  # the period of the rows, except at the ends
    first, last = held.start // size, (held.stop - 1) // size
    low = first + (first + again <= last and _row(held, first, size) != _row(held, first + again, size))
    high = last + 1 - (last - again >= first and _row(held, last, size) != _row(held, last - again, size))
    for start, stop in ((first, low), (low, high), (high, last + 1)):
        alike: dict[IndexSet, list[int]] = {}
        for k in range(start, min(start + again, stop)):
            alike.setdefault(_row(held, k, size), []).append(k)
        for row, same in alike.items():
            begins = [held.count_below(k * size) for k in same]
            number = held.width * (again * size // held.period)  # of elements per period of rows
            runs = [(begin, begin + len(row)) for begin in begins]
            inside = IndexSet.of_runs(runs, number, held.count_below(stop * size))
            slow = IndexSet.of_runs([(k, k + 1) for k in same], again, stop)
            for places, digits in _products(row, sizes[1:]) if row else ():
                every = IndexSet.of_runs(places.unroll(len(row)), len(row), len(inside))
                yield inside.select(every), (slow, *digits)


def _row(held: IndexSet, k: int, size: int) -> IndexSet:
    """The part of a set in row k of `size` numbers, counted from the row's start."""
    row = held & IndexSet.interval(k * size, (k + 1) * size)
    return replace(row, start=row.start - k * size, stop=row.stop - k * size) if row else row


def writes(dist: Distribution, rank: int) -> bool:
    """Whether a rank writes its block to a file: one of the replicas does, and an idle rank does not.

    >>> from rote.layout.layout import parse
    >>> [writes(parse("block[(0)]").on(4, (2, 2)), rank) for rank in range(4)]
    [True, False, True, False]
    """
    coordinates = dist.grid.coordinates(rank)
    replica = any(c and dist.roles[g].name == "replicated" for g, c in enumerate(coordinates))
    return dist.holds(rank) and not replica


def in_long_runs(dist: Distribution, itemsize: int) -> Distribution:
    """The distribution in which a large tensor is written: its own, or blocks of the first modes if its runs are short.

    A file system writes single elements, as of a cyclic last mode, ten times slower than rows; one exchange between
    the ranks turns them into rows.
    """
    if (
        dist.layout.view is not None
        or prod(dist.max_local_shape()) * itemsize < LARGE
        or run_length(dist) * itemsize >= _RUN
    ):
        return dist
    rows = in_rows(dist.layout, dist.shape, dist.grid).on(dist.shape, dist.grid)
    whole = sum(map(len, rows.splits)) == sum(map(len, dist.splits))
    return rows if whole and run_length(rows) > run_length(dist) else dist


def in_rows(layout: Layout, shape: Sequence[int], grid: Grid) -> Layout:
    """The layout without a view in which ranks hold the longest runs of the file: blocks of the first modes.

    >>> from rote.layout.layout import parse
    >>> print(in_rows(parse("c b a: [(0),(),(1)]"), (3, 8, 8), Grid((2, 4))))
    block[(0),(1),()]
    """
    left = [entry.grid_mode for entry in chain(*layout.modes) if grid.shape[entry.grid_mode] > 1]
    modes: list[tuple[Entry, ...]] = []
    for extent in shape:
        taken: list[Entry] = []
        while left and grid.shape[left[0]] <= extent:
            extent //= grid.shape[left[0]]
            taken.append(in_blocks(left.pop(0)))
        modes.append(tuple(taken))
    return replace(layout, view=None, modes=tuple(modes))


def run_length(dist: Distribution) -> int:
    """About how many elements of a rank are contiguous in a file in the order of the view."""
    run = 1
    for mode, extent in zip(reversed(dist.splits), reversed(dist.view_shape), strict=True):
        run *= longest_run(mode, extent)
        if mode:
            break
    return run


def longest_run(splits: tuple[Split, ...], extent: int) -> int:
    """The length of the longest run along a mode at coordinate 0 of all its splits."""
    held = mode_set(splits, extent, (0,) * len(splits))
    return max([b - a for a, b in islice(held.unroll(held.stop), len(held.runs))], default=0)
