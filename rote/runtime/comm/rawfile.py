"""Raw files: parts of an array in a file, moved between the file and the blocks of ranks.

A part is a `Region` between the file, which holds the whole array, and a block. It moves in one of two ways:

- Long runs of the file go by system calls, directly between file and block. A file that ends early or a full disk is an
  error of the call.
- Scattered elements are copied between a mapping of the file and the block, as between two blocks: by tiles if their
  orders differ. Ranks that are threads share one mapping, because finding a page costs as much as copying half of it.
  To touch a page that has no place in the file or on the disk would kill the process. So the file's length is checked
  for each window, and only small parts are written so, for which whoever makes the file reserves its space.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, cast

import numpy as np

from ...errors import CommError
from ...layout.indexset import IndexSet
from ..copies import IndexedCopy, Piece, plain_copy
from ..regions import Region, indexed_region
from .agreement import collective_errors
from .protocol import Array, Comm, Path

__all__ = ["LONG_RUN", "SMALL_PART", "FilePart", "plainly", "transfer"]

LONG_RUN = 1 << 15
"""Bytes from which on a run is worth a system call of its own."""

SMALL_PART = 1 << 20
"""Bytes below which scattered elements are written through a mapping; the file's space must be reserved."""

_FEW = 16  # runs that are worth system calls, however short they are
_WINDOW = 1 << 26  # bytes that are moved at a time; after each window, progress is reported


def _ignored(moved: int) -> None:
    """The default of `advance`."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of an array in a raw file that this rank reads or writes.

    Attributes:
        path, offset: the file, and the byte at which the array begins.
        shape: the shape of the array.
        region: from the array to the block, or, for writing, from the block to the array.
        block: C-contiguous, of the file's dtype.
        writing: whether the block is written.
        file: the descriptor of the open file, which is then not opened by its name; `path` is for errors.
    """

    path: Path
    offset: int
    shape: Sequence[int]
    region: Region
    block: Array
    writing: bool
    file: int | None = None

    @classmethod
    def at(
        cls,
        path: Path,
        offset: int,
        shape: Sequence[int],
        index: Sequence[IndexSet],
        block: Array,
        writing: bool,
        file: int | None = None,
    ) -> FilePart:
        """The part at some positions of an array in C order.

        Args:
            path, offset, shape: the file, the byte at which the array begins, and its shape.
            index: per mode, the positions that this rank reads or writes. Ranks write disjoint elements, and a rank may
                have none: an empty index, or an empty block if the order is 0.
            block: C-contiguous, in the order of these positions, of the file's dtype.
            writing: whether the block is written, into a file that already has its full size.
            file: the descriptor of the open file.

        Raises: CommError when the block does not fit.

        >>> from rote import run
        >>> np.arange(6.0).tofile("numbers.raw")
        >>> def column(comm):
        ...     index, out = [IndexSet.interval(0, 2), IndexSet.interval(comm.rank, comm.rank + 1)], np.empty((2, 1))
        ...     transfer(comm, lambda: FilePart.at("numbers.raw", 0, (2, 3), index, out, writing=False))
        ...     return out.ravel().tolist()
        >>> run(column, ranks=3)
        [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
        """
        picked = tuple(len(positions) for positions in index)
        nothing = not shape and block.size == 0  # order 0 has no index to say that a rank holds nothing
        if len(picked) != len(shape) or (block.shape != picked and not nothing) or not block.flags.c_contiguous:
            raise CommError(
                f"a block of shape {block.shape} does not fit an index of shape {picked} into an array of shape "
                f"{tuple(shape)}\ngive one index per mode, and a C-contiguous block of the index's shape"
            )

        region = indexed_region(index, tuple(shape), writing) if block.size else Region(0, (0,), False, ())
        return cls(path, offset, shape, region, block, writing, file)

    def check(self) -> None:
        """Refuse a file that is too short, on this rank only: use `collective_errors`.

        Raises: OSError when the file cannot be opened, CommError when it is too short.
        """
        shape, dtype = tuple(self.shape), self.block.dtype
        with self._open() as file:
            has = os.fstat(file.fileno()).st_size
        needed = self.offset + self.nbytes
        if has < needed:
            raise CommError(
                f"file too short: {os.fspath(self.path)} has {has} bytes, and an array of shape {shape} and dtype "
                f"{dtype} from byte {self.offset} on ends at byte {needed}\n"
                "give the file's own shape and dtype, or a whole copy of the file"
            )

    @property
    def in_long_runs(self) -> bool:
        """Whether the elements lie in a few runs of the file, or in runs that are worth a system call each.

        >>> rows, columns, block = IndexSet.interval(0, 512), IndexSet.interval(0, 64), np.empty((512, 64))
        >>> parts = [FilePart.at("", 0, (512, extent), (rows, columns), block, False) for extent in (512, 64)]
        >>> [part.in_long_runs for part in parts]
        [False, True]
        """
        number = sum([_number_of_runs(piece, self.writing) for piece in self.region.pieces])
        return number * LONG_RUN <= max(self.block.nbytes, _FEW * LONG_RUN)

    def map(self) -> Array:
        """All elements of the array in the file, as mapped pages."""
        mode: Literal["r", "r+"] = "r+" if self.writing else "r"
        with self._open() as file:  # memmap's own open would have a buffer
            pages: np.memmap[Any, Any] = np.memmap(file, self.block.dtype, mode, self.offset, (math.prod(self.shape),))
        return pages

    def move(self, pages: Array | None, advance: Callable[[int], object] = _ignored) -> None:
        """Read the block, or write it, after a successful `check`: by its runs if there are no mapped pages.

        Raises: OSError that names the file; CommError when it ends before the block does.
        """
        if pages is None:
            self._move_runs(advance)
            return

        arrays = (self.block, pages) if self.writing else (pages, self.block)
        for piece in self.region.pieces:
            if isinstance(piece, IndexedCopy):
                self._check_end(pages)
                piece.bound(*arrays, None, (), ())()
                advance(self.block.nbytes)
                continue
            values, into, item = piece.arrays(*arrays)
            for window in _windows(*((into, values) if self.writing else (values, into))):
                self._check_end(pages)
                plain_copy(values[window], into[window], item)()
                advance(values[window].nbytes)
        if self.writing:
            cast(Any, pages).flush()

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """The runs that are contiguous in file and block: the first byte in the file, in the block, and the bytes.

        >>> rows, columns, whole = IndexSet.interval(0, 2), IndexSet.interval(1, 3), IndexSet.interval(0, 3)
        >>> list(FilePart.at("", 0, (2, 5, 3), (rows, columns, whole), np.empty((2, 2, 3), "u1"), False).runs())
        [(3, 0, 6), (18, 6, 6)]
        """
        size = self.block.itemsize
        for piece in self.region.pieces:
            for place, at, length in _runs_of(piece, self.writing):
                yield place * size, at * size, length * size

    @property
    def nbytes(self) -> int:
        """The bytes of the whole array in the file."""
        return math.prod(self.shape) * self.block.itemsize

    def _open(self) -> Any:
        mode = "r+b" if self.writing else "rb"
        if self.file is not None:
            return open(self.file, mode, buffering=0, closefd=False)
        return open(self.path, mode, buffering=0)

    def _check_end(self, pages: Array) -> None:
        if cast(Any, pages.base).size() < self.offset + self.nbytes:
            raise CommError(
                f"file too short: {os.fspath(self.path)} lost its end while it was read\n"
                "give a whole copy of the file, and leave it as it is meanwhile"
            )

    def _move_runs(self, advance: Callable[[int], object]) -> None:
        """Move the block by one system call for each run of the file, directly between file and block."""
        if not self.region.pieces:
            return
        data = memoryview(cast(Any, self.block.reshape(-1).view(np.uint8)))

        with plainly(self.path), self._open() as file:
            for place, at, length in self.runs():
                file.seek(self.offset + place)
                end = at + length
                while at < end:  # a signal, or the system's limit on one call, may leave a rest
                    part = data[at : min(at + _WINDOW, end)]
                    moved = file.write(part) if self.writing else file.readinto(part)
                    if not moved:
                        raise CommError(
                            f"file too short: {os.fspath(self.path)} ends in the middle of the array\n"
                            "give a whole copy of the file"
                        )
                    at += moved
                    advance(moved)


@contextmanager
def plainly(path: Path) -> Iterator[None]:
    """Let errors of the system name the user's file: calls on open files name none, others may name a draft."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from None


def transfer(comm: Comm, make: Callable[[], FilePart], advance: Callable[[int], object] = _ignored) -> None:
    """Move the part that `make` makes on each rank. Collective; an error of one rank is raised on all.

    Ranks of several nodes must not write to pages: a node writes back whole pages, with what others wrote beside.

    Args:
        advance: called with the bytes that were moved since the last call.
    """
    pages, one_node = None, len(set(comm.nodes())) == 1
    with collective_errors(comm):
        part = make()
        part.check()

        mappable = one_node and part.block.nbytes < SMALL_PART if part.writing else True
        if mappable and not part.in_long_runs:
            pages = part.map()
        if part.nbytes < SMALL_PART:  # of a small array each rank has its own mapping, and no other meeting
            part.move(pages, advance)
    if part.nbytes < SMALL_PART:
        return

    shared = comm.share_reference(pages)
    with collective_errors(comm):
        if pages is not None and shared is not None:
            pages = next(mapping for mapping in shared if mapping is not None)
        part.move(pages, advance)


def _number_of_runs(piece: Piece, writing: bool) -> int:
    """How many runs of a piece are contiguous in file and block; elements that are picked one by one count as one."""
    if isinstance(piece, IndexedCopy):
        return math.prod([part.lattice.size for part in piece.parts])
    return math.prod([n for _, _, n in piece.outer_digits(int(writing))[0]])


def _runs_of(piece: Piece, writing: bool) -> Iterator[tuple[int, int, int]]:
    """The runs of a piece: their places in the file and in the block, and their lengths, in elements."""
    sides = (1, 0) if writing else (0, 1)
    if isinstance(piece, IndexedCopy):
        places, ats = map(piece.offsets, sides)
        order = np.argsort(places)
        yield from ((place, at, 1) for place, at in zip(places[order].tolist(), ats[order].tolist(), strict=True))
        return

    digits, length = piece.outer_digits(sides[0])  # in the order of the file, so that the disk is read forwards
    (start, _), (first, _) = map(piece.located, sides)

    for values in product(*[range(n) for _, _, n in digits]):
        place, at = start, first
        for (step, block_step, _), value in zip(digits, values, strict=True):
            place += step * value
            at += block_step * value
        yield place, at, length


def _windows(file: Array, block: Array) -> Iterator[tuple[Any, ...]]:
    """Indices that cut two views of one shape, of a file and of a block, into windows.

    The axis that is cut leaves long runs in the file, and of such axes it leaves the longest runs in the block.
    """
    # The file is a b, the block is b a. Cut along a, the default, a window has whole rows of the file, but touches only
    # some columns of the block; cut along b, it has whole rows of the block, and shorter runs of the file.
    if file.nbytes <= _WINDOW:
        yield (...,)
        return

    steps = [max(_WINDOW * n // file.nbytes, 1) for n in file.shape]
    axes = range(file.ndim)
    long = [axis for axis in axes if _WINDOW * file.shape[axis] >= file.nbytes]
    long = [axis for axis in long if steps[axis] * file.strides[axis] >= LONG_RUN]
    outermost = max(axes, key=lambda axis: file.strides[axis])
    cut = max([outermost, *long], key=lambda axis: steps[axis] * block.strides[axis])

    for start in range(0, file.shape[cut], steps[cut]):
        yield (*(slice(None),) * cut, slice(start, start + steps[cut]), ...)
