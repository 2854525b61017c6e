"""Reading and writing a part of an array in a raw file, for both kinds of communicators.

Long runs of a file are read and written by system calls, directly between file and block. No page of the file is
mapped, so a file that ends early or a full disk is an error of the call, and does not kill the process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import product
from typing import Any, Literal, cast

import numpy as np

from ...errors import CommError
from ...layout.indexset import IndexSet, Strided
from .protocol import Array, Path

__all__ = ["LONG_RUN", "FilePart", "copy_part", "strided_parts"]

LONG_RUN = 1 << 15
"""Bytes from which on a run is worth a system call of its own."""

_FEW, _SMALL = 16, 128  # a part is copied by at most 16 views, or by more if they have 128 elements each on average


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of an array in a raw file that this rank reads or writes; for the arguments, see `Comm.read`."""

    path: Path
    offset: int
    shape: Sequence[int]
    index: Sequence[IndexSet]
    block: Array
    writing: bool

    def check(self) -> None:
        """Refuse a file or a block that does not fit the transfer. It checks this rank alone: use `collective_errors`.

        Raises: OSError when the file cannot be opened, CommError when it is too short or the block does not fit.
        """
        shape, block = tuple(self.shape), self.block
        with self._open() as file:
            has = os.fstat(file.fileno()).st_size
        needed = self.offset + math.prod(shape) * block.dtype.itemsize
        if has < needed:
            raise CommError(
                f"file too short: {os.fspath(self.path)} has {has} bytes, and an array of shape {shape} and dtype "
                f"{block.dtype} from byte {self.offset} on ends at byte {needed}\n"
                "give the file's own shape and dtype, or a whole copy of the file"
            )
        picked = tuple(len(held) for held in self.index)
        nothing = not shape and block.size == 0  # order 0 has no index to say that a rank holds nothing
        if len(picked) != len(shape) or (block.shape != picked and not nothing) or not block.flags.c_contiguous:
            raise CommError(
                f"a block of shape {block.shape} does not fit an index of shape {picked} into an array of shape "
                f"{shape}\ngive one index per mode, and a C-contiguous block of the index's shape"
            )

    def move(self) -> None:
        """Read the block, or write it, after a successful `check`.

        Scattered elements are copied through a mapping of the file: all ranks that do this must run on one node.

        Raises: OSError that names the file; CommError when it ends before the block does.
        """
        if not self.block.size:
            return
        if self.in_long_runs:
            self._move_runs()
            return
        with self._open() as file:  # memmap's own open would have a buffer
            mode: Literal["r", "r+"] = "r+" if self.writing else "r"
            pages: np.memmap[Any, Any] = np.memmap(file, self.block.dtype, mode, self.offset, tuple(self.shape))
        copy_part(pages, self.index, self.block, self.writing)
        if self.writing:
            pages.flush()

    @property
    def in_long_runs(self) -> bool:
        """Whether the elements lie in a few runs of the file, or in runs that are worth a system call each.

        >>> rows, columns, block = IndexSet.interval(0, 512), IndexSet.interval(0, 64), np.empty((512, 64))
        >>> parts = [FilePart("", 0, (512, extent), (rows, columns), block, False) for extent in (512, 64)]
        >>> [part.in_long_runs for part in parts]
        [False, True]
        """
        broken = self._broken
        if broken == 0 or not self.block.size:
            return True
        held = self.index[broken - 1]
        each = 1 if held.runs == ((0, held.period),) else sum([c.number * len(c.runs) for c in held.cycles()])
        number = math.prod(map(len, self.index[: broken - 1])) * each
        return number * LONG_RUN <= max(self.block.nbytes, _FEW * LONG_RUN)

    @property
    def _broken(self) -> int:
        """The number of modes up to the last one that is not held whole; the modes after it form one run."""
        broken = len(self.shape)
        while broken and len(self.index[broken - 1]) == self.shape[broken - 1]:
            broken -= 1
        return broken

    def _open(self) -> FileIO:
        return open(self.path, "r+b" if self.writing else "rb", buffering=0)

    def _move_runs(self) -> None:
        """Move the block by one system call for each run of the file, directly between file and block."""
        data = memoryview(cast(Any, self.block.reshape(-1).view(np.uint8)))
        try:
            with self._open() as file:
                for start, length in self._runs():
                    file.seek(self.offset + start)
                    part, data = data[:length], data[length:]
                    while part:  # a signal, or the system's limit on one call, may leave a rest
                        moved = file.write(part) if self.writing else file.readinto(part)
                        if not moved:
                            raise CommError(
                                f"file too short: {os.fspath(self.path)} ends in the middle of the array\n"
                                "give a whole copy of the file"
                            )
                        part = part[moved:]
        except OSError as error:  # the error of a call on an open file does not name the file
            if error.errno is None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(self.path)) from None

    def _runs(self) -> Iterator[tuple[int, int]]:
        """The runs of the file that hold the elements, in order: the first byte and the number of bytes.

        >>> rows, columns, whole = IndexSet.interval(0, 2), IndexSet.interval(1, 3), IndexSet.interval(0, 3)
        >>> list(FilePart("", 0, (2, 5, 3), (rows, columns, whole), np.empty((2, 2, 3), "u1"), False)._runs())
        [(3, 6), (18, 6)]
        """
        broken = self._broken
        unit = math.prod(self.shape[broken:]) * self.block.dtype.itemsize
        if broken == 0:
            yield 0, unit
            return
        extent = self.shape[broken - 1]
        for outer in product(*self.index[: broken - 1]):
            row = 0
            for place, n in zip(outer, self.shape, strict=False):
                row = row * n + place
            for a, b in self.index[broken - 1].unroll(extent):
                yield (row * extent + a) * unit, (b - a) * unit


def copy_part(
    array: Array,
    index: Sequence[IndexSet],
    block: Array,
    writing: bool,
    copy: Callable[[Array, Array], None] = np.copyto,
) -> None:
    """Copy the elements at some positions of a C-contiguous array to a block, or back.

    The runs of the index sets give strided views of both. If there are too many, lists of positions are used instead.

    Args:
        copy: called with the view to copy to and the view to copy from.
    """
    if math.prod([len(held.runs) for held in index]) > max(_FEW, block.size // _SMALL):
        listed = np.ix_(*[held.to_array() for held in index])
        if writing:
            array[listed] = block
        else:
            block[...] = array[listed]
        return
    for places, inside in strided_parts(index, block):
        outside = _view(array, places)
        if writing:
            copy(outside, inside)
        else:
            copy(inside, outside)


def strided_parts(index: Sequence[IndexSet], block: Array) -> Iterator[tuple[list[Strided], Array]]:
    """The parts of a block by the runs of its index sets: their places along the modes of the array, and their views.

    >>> parts = strided_parts([IndexSet(0, 9, 4, ((0, 2),))], np.arange(5))
    >>> [(places, part.tolist()) for places, part in parts]  # doctest: +NORMALIZE_WHITESPACE
    [([Strided(start=0, shape=(2, 2), steps=(4, 1))], [[0, 1], [2, 3]]),
     ([Strided(start=8, shape=(1, 1), steps=(4, 1))], 4)]
    """
    for pairs in product(*[list(_runs(held)) for held in index]):
        yield [place for place, _ in pairs], _view(block, [part for _, part in pairs])


def _runs(held: IndexSet) -> Iterator[tuple[Strided, Strided]]:
    """The elements of a set, by the runs of its period: the integers themselves, and their places in the set."""
    first = 0
    for start, count, period, runs in held.cycles():
        width = sum([b - a for a, b in runs])
        for a, b in runs:
            shape = count, b - a
            yield Strided(start + a, shape, (period, 1)), Strided(first, shape, (width, 1))
            first += b - a
        first += (count - 1) * width


def _view(array: Array, modes: Sequence[Strided]) -> Array:
    start, shape, strides = 0, list[int](), list[int]()
    for mode, stride in zip(modes, array.strides, strict=True):
        start += mode.start * stride
        for n, step in zip(mode.shape, mode.steps, strict=True):
            if n > 1:
                shape.append(n)
                strides.append(step * stride)
    if not array.flags.c_contiguous:
        corner = array[tuple([slice(mode.start, None) for mode in modes])]
        return np.lib.stride_tricks.as_strided(corner, shape, strides)
    view: Array = np.ndarray(shape, array.dtype, array, start, strides)
    return view
