"""`.npy` files: any number of ranks, in any layout, read and write one file in parallel.

Each rank moves its own elements between its block and their positions in the file (`regions.file_region`). Large blocks
whose elements are scattered in the file are staged: ranks write, and on several nodes read, rows of the file, and
compiled plans move these between the ranks (`Staging`). The ranks of one node read without: they share the pages of the
file, from which each copies its own elements.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ..compiler.compile import compile
from ..errors import RoteError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.indexset import EMPTY, IndexSet
from ..layout.kinds import Split, local_extents, mode_set
from ..layout.layout import Layout
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import LONG_RUN, SMALL_PART, FilePart, plainly, transfer
from ..runtime.exchange.messages import sub_comm
from ..runtime.plans import bind
from ..runtime.regions import file_region, is_reordered
from .checks import WHOLE_COPY, check_dtype, check_file, reason
from .layouts import LARGE, in_rows, longest_run, run_length, writes
from .stored import Contents, Field, StoredTensor, pick_step
from .transfer import Advance, Draft, replacing, reserve
from .versions import Opened, Replaced, Version, one_version

__all__ = ["Staging", "contents_npy", "fill_npy", "is_npy", "read_header", "write_npy"]

PIECE = 1 << 22
"""Bytes of a staged piece, per rank: small enough for a cache, large enough to outweigh the ranks' synchronization."""

_LONGEST, _SHOWN = 10_000, 120  # bytes of a header that NumPy reads, and of a wrong one that an error shows


class _Elements(NamedTuple):
    """Where the elements are in a `.npy` file."""

    offset: int  # the byte at which they begin
    fortran_order: bool  # whether mode 0 runs fastest, rather than the last mode


def contents_npy(path: Path, step: int | None, name: str | None = None) -> Contents:
    """The contents of a `.npy` file, read by only this rank: one tensor, and no steps."""
    return Contents({"data": read_header(path)}, {}, pick_step(path, step, (), True))


def fill_npy(path: Path, stored: StoredTensor, dist: Distribution, comm: Comm, block: Array, advance: Advance) -> None:
    """Read the tensor in a `.npy` file into this rank's block. Collective; each rank reads its own part.

    On one node, and for blocks below 1 MiB, no memory beyond the block is needed. Otherwise, blocks need a few pieces
    of 4 MiB, or at most three more blocks where they cannot be read in pieces (`Staging`).
    """
    offset, fortran_order = stored.place
    staging = None
    if not fortran_order and stored.window is None:
        staging = Staging.of(dist, stored.dtype.itemsize, comm, writing=False)

    with one_version(path, comm, _opened(path, stored)) as number:
        if staging is not None:
            staging.read(path, number, offset, block, comm, advance)
            return
        if stored.window is not None:
            _read_window(path, number, stored, dist, block, comm, advance)
            return

        def part() -> FilePart:
            region = file_region(dist, comm.rank, fortran_order, writing=False)
            return FilePart(path, offset, dist.shape, region, block, writing=False, file=number)

        transfer(comm, part, advance)


def _read_window(
    path: Path, number: int | None, stored: StoredTensor, dist: Distribution, block: Array, comm: Comm, advance: Advance
) -> None:
    """Read a rank's block of a part of the tensor. A file in Fortran order is the transposed tensor in C order."""
    shape, places = stored.shape, (EMPTY,) * len(stored.shape)
    spread = np.empty([0] * len(shape), block.dtype)
    if block.size:
        places, spread = stored.places(dist.index_sets(comm.rank)), stored.spread(block)
    if stored.place.fortran_order:
        shape, places, spread = shape[::-1], places[::-1], spread.T

    piece = np.asarray(spread, order="C")
    transfer(comm, lambda: FilePart.at(path, stored.place.offset, shape, places, piece, False, number), advance)
    if piece is not spread:
        spread[...] = piece


def write_npy(
    path: Path, parts: Sequence[Field], comm: Comm, attributes: Mapping[str, Any], step: int | None, advance: Advance
) -> None:
    """Write all ranks' parts of one tensor as a `.npy` file, byte for byte as `numpy.save` would. Collective.

    Each rank writes its own part; of the replicas, only those at coordinate 0 write. A large tensor whose ranks hold
    only short runs of the file is redistributed into rows, which needs as much memory as reading on several nodes.
    The file gets its name, exactly `path` (no suffix is added), when it is complete. It replaces an existing file in
    one step; on any failure that file stays as it was, and nothing else is left in the folder. If `path` is a link,
    the file that it points to is replaced.
    """
    block, dist = parts[0].block, parts[0].dist

    with replacing(path, comm, lambda draft: _begin(draft, path, dist, block.dtype)) as draft, plainly(path):
        with collective_errors(comm):
            offset = os.path.getsize(draft.path) - prod(dist.shape) * block.dtype.itemsize
            block = np.asarray(block, order="C")

        staging = Staging.of(dist, block.dtype.itemsize, comm, writing=True)
        if staging is not None:
            staging.write(draft.path, offset, block, comm, advance)
            return

        def part() -> FilePart:
            region = file_region(dist, comm.rank, False, writing=True)
            if not writes(dist, comm.rank):
                region = replace(region, pieces=())
            return FilePart(draft.path, offset, dist.shape, region, block, writing=True)

        transfer(comm, part, advance)


def is_npy(path: Path) -> bool:
    """Whether a file begins as a `.npy` file does."""
    with open(path, "rb") as file:
        return file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX


def read_header(path: Path) -> StoredTensor:
    """The tensor in a `.npy` file (versions 1 to 3), by its header, read by only this rank.

    A file may be longer than its header says, as in NumPy.
    """
    name = os.fspath(path)
    check_file(path)
    with open(path, "rb") as file:
        stored = _header(file, name)
        has = os.fstat(file.fileno()).st_size

    check_dtype(stored.dtype, name)
    needs = stored.place.offset + prod(stored.shape) * stored.dtype.itemsize
    if has < needs:
        raise RoteError(
            f"{name} is truncated: shape {stored.shape} and dtype {stored.dtype} need {needs} bytes, but it has {has}\n"
            f"{WHOLE_COPY}"
        )
    return stored


def _header(file: BinaryIO, name: str) -> StoredTensor:
    """The tensor that the header of an open file describes. A header that does not end is damaged, another is wrong."""
    magic = file.read(npy.MAGIC_LEN)
    if magic[:6] != npy.MAGIC_PREFIX[: len(magic)] or not magic:
        start = f"it begins with {magic!r}" if magic else "it is empty"
        hint = "numpy.load it and save one of its arrays" if magic[:2] == b"PK" else "write one with numpy.save"
        raise RoteError(f"{name} is not a .npy file: {start}\n{hint}")

    # Versions 2 and 3 differ only in the encoding of field names, and Rote's arrays have no fields.
    lengths, version = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}, magic[6:]
    if len(version) == 2 and version not in lengths:
        number = ".".join(map(str, version))
        raise RoteError(f"{name}: version {number} of the format is not known\nsave the array with numpy.save")

    length = file.read(lengths.get(version, 4))
    begins = npy.MAGIC_LEN + len(length)
    ends = begins + int.from_bytes(length, "little")
    if len(length) < lengths.get(version, 4) or os.fstat(file.fileno()).st_size < ends:
        raise RoteError(f"{name} is truncated: it ends within its .npy header\n{WHOLE_COPY}")

    read = npy.read_array_header_1_0 if version == b"\1\0" else npy.read_array_header_2_0
    file.seek(npy.MAGIC_LEN)
    try:
        if ends - begins > _LONGEST:  # NumPy reads it before it refuses it, however long it is
            raise ValueError(f"it has {ends - begins} bytes, more than {_LONGEST}")
        shape, fortran_order, dtype = read(file)
        if any(isinstance(n, bool) or not 0 <= n < 2**63 for n in shape):
            raise ValueError(f"shape is not valid: {shape}")
    except OSError:
        raise
    except Exception as error:  # a wrong header can make NumPy's parser raise nearly anything
        file.seek(begins)
        text = file.read(min(ends - begins, _SHOWN)).decode("latin1").strip()
        raise RoteError(
            f"{name} has a .npy header that is not valid: {reason(error)}, in {text!r}\n"
            "write it as numpy.save does, such as {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4)}"
        ) from None
    return StoredTensor(shape, dtype, place=_Elements(ends, fortran_order))


@contextmanager
def _opened(path: Path, stored: StoredTensor) -> Iterator[Opened[int]]:
    """The descriptor of the file that has this name now; refused unless it is the one whose header was read."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # without it, a pipe would wait for a writer
    try:
        version = Version.of(os.fstat(number))

        header = None
        with suppress(RoteError), open(number, "rb", closefd=False) as file:  # another program may be writing it
            header = _header(file, os.fspath(path))
        if header is None or (header, header.place) != (stored, stored.place):
            raise Replaced.at(path)

        yield Opened(number, version, lambda: Version.of(os.fstat(number)))
    finally:
        os.close(number)


def _begin(draft: Draft, path: Path, dist: Distribution, dtype: np.dtype[Any]) -> None:
    """Give a file its header and its full size, and allocate space for it on the disk if parts are small.

    Small parts may be written through mapped pages, which need reserved space. System calls report a full disk
    themselves, and are faster if they allocate space as they write.
    """
    with plainly(path):
        with open(draft.path, "r+b") as file:
            descr = npy.dtype_to_descr(dtype)
            npy.write_array_header_1_0(file, {"shape": dist.shape, "fortran_order": False, "descr": descr})
            size = file.tell() + prod(dist.shape) * dtype.itemsize
            file.truncate(size)
        if prod(dist.max_local_shape()) * dtype.itemsize < SMALL_PART:
            reserve(draft.path, size)


# --- rows of the file, in pieces -------------------------------------------------------------------------------------


def on_one_node(comm: Comm) -> bool:
    """Whether all ranks are on one node, and so share the pages of files."""
    return len(set(comm.nodes())) == 1


# A piece of four rows, on two ranks, of a matrix whose columns are cyclic; the numbers are the ranks. Each rank reads
# two whole rows, which are one long run of the file, instead of every other element of four.
#
#     as read from the file, in rows      in the ranks' blocks
#         0 0 0 0 0 0                       0 1 0 1 0 1
#         0 0 0 0 0 0          plan         0 1 0 1 0 1
#         1 1 1 1 1 1         ------>       0 1 0 1 0 1
#         1 1 1 1 1 1                       0 1 0 1 0 1


@dataclass(frozen=True, slots=True)
class Staging:
    """The transfer of a tensor between its distribution and rows of a file in C order.

    Long runs of a file are read many times faster than single elements. So a transfer has two phases: ranks read rows,
    one piece of the file after the other, and a compiled plan moves each piece to the wanted layout; writing does the
    reverse (Thakur, Gropp and Lusk 1999, section 3.2). Beside its block a rank holds one piece and the plan's buffers:
    a few times 4 MiB. The tensor is cut into pieces along a mode that leaves long runs both in the file and in the
    blocks; for a transposed view, that is a mode between the first and the last. The whole tensor is one piece if the
    view has no such mode unchanged, or if blocks within a cyclic split make short rows.

    Ranks that hold the same long runs of the file form a group, and no other rank holds these runs. So elements move
    only within groups, and a rank that is alone in its group sends nothing.
    """

    dist: Distribution
    among_groups: tuple[tuple[Split, ...], ...]  # per mode of the tensor, the splits that divide it among groups
    grid_modes: tuple[int, ...]  # along which the ranks of a group differ
    grid: Grid  # of a group
    blocks: Layout  # of a group's part on the group's ranks
    rows: Layout  # in which a piece of the part is read or written
    mode: int = -1  # of the tensor, along which the part is cut into pieces; -1 if there is only one
    place: int = -1  # the mode of the view that is this mode
    step: int = 1  # the extent of a piece along the mode

    @classmethod
    def of(cls, dist: Distribution, itemsize: int, comm: Comm, writing: bool) -> Staging | None:
        """The staging of a tensor; None if it is small, or if direct access is as fast.

        Direct access is as fast for long runs, and for reading by ranks of one node, from the file's pages.
        """
        if not dist.shape or prod(dist.max_local_shape()) * itemsize < LARGE:
            return None
        if on_one_node(comm) and not writing:
            return None
        if not is_reordered(dist) and run_length(dist) * itemsize >= LONG_RUN:
            return None

        # The outer splits that leave long runs divide the file among groups; ranks of one differ along the rest.
        places = _places(dist)
        among_groups: list[tuple[Split, ...]] = [()] * len(dist.shape)
        for m, v in places.items():
            among_groups[m] = _of_long_runs(dist.splits[v], dist.shape[m], prod(dist.shape[m + 1 :]) * itemsize)
        between = {split.grid_mode for split in chain(*among_groups)}
        grid_modes = tuple(g for g in range(dist.grid.order) if g not in between)

        grid = Grid(tuple(dist.grid.shape[g] for g in grid_modes))
        blocks = _among(dist, grid_modes)
        shape = tuple(max(local_extents(splits, n)) for splits, n in zip(among_groups, dist.shape, strict=True))
        whole = cls(dist, tuple(among_groups), grid_modes, grid, blocks, in_rows(blocks, shape, grid))

        best, highest = whole, (0, 0)
        for mode, place in sorted(places.items()):
            cut, quality = whole._cut(mode, place, shape, itemsize)
            if quality > highest:
                best, highest = cut, quality
        return best

    def _cut(self, mode: int, place: int, shape: tuple[int, ...], itemsize: int) -> tuple[Staging, tuple[int, int]]:
        """The transfer with a part of some shape cut along a mode of the tensor, and how good that is.

        It is better if a rank reads or writes longer runs of the file, up to `LONG_RUN` bytes; then, if more elements
        of a piece are contiguous in a block: cut along the block's fastest mode, each piece would touch the whole
        block. If pieces cannot be cut, or are too large or their runs too short, it is the transfer as it is.
        """
        dist, grid = self.dist, self.grid
        within = dist.splits[place][len(self.among_groups[mode]) :]
        if not all(split.kind.is_cyclic for split in within):  # other pieces would not be split as the whole part is
            return self, (0, 0)

        # A step is a multiple of the period of the splits, so that every piece is split as the first one is.
        period = prod([split.parts * split.kind.tile for split in within])
        slice_bytes = prod(shape[:mode]) * prod(shape[mode + 1 :]) * itemsize
        step = min(max(grid.size * PIECE // slice_bytes // period, 1) * period, shape[mode])
        piece = (*shape[:mode], step, *shape[mode + 1 :])
        rows = in_rows(self.blocks, piece, grid)

        # Modes after the last that a rank has in part are whole, so they lengthen the runs.
        largest = rows.on(piece, grid).max_local_shape()
        last = max((m for m, extent in enumerate(dist.shape) if largest[m] < extent), default=0)
        row = prod(dist.shape[last + 1 :]) * itemsize
        run = min(largest[last], longest_run(self.among_groups[last], dist.shape[last])) * row
        if mode and (run < LONG_RUN or step * slice_bytes > grid.size * PIECE):
            return self, (0, 0)

        contiguous = max(step // prod([s.parts for s in within]), 1) * prod(dist.max_local_shape()[place + 1 :])
        return replace(self, rows=rows, mode=mode, place=place, step=step), (min(run, LONG_RUN), contiguous)

    def read(self, path: Path, file: int | None, offset: int, block: Array, comm: Comm, advance: Advance) -> None:
        """Read this rank's block of the array that begins at byte `offset` of an open file, in C order. Collective.

        If the tensor is partial, a block that the reduction ignores is not changed. The block is C-contiguous, in
        either byte order; `advance` is called with the bytes of it that were read since the last call.
        """
        block = _in_native_order(block)
        for piece in self._pieces(comm, block.dtype):
            elements = path, offset, self.dist.shape, piece.index, piece.buffer
            transfer(comm, partial(FilePart.at, *elements, writing=False, file=file))
            if prod(piece.rows.shape):
                out = block[piece.place] if self.dist.contributes(comm.rank) else None
                bind(compile(piece.rows, piece.blocks, block.dtype), piece.group)(piece.buffer, out)

            advance(block[piece.place].nbytes)

    def write(self, path: Path, offset: int, block: Array, comm: Comm, advance: Advance) -> None:
        """Write this rank's block, the inverse of `read`, into a file that already has its full size. Collective."""
        block = _in_native_order(block)
        order = len(self.dist.shape)
        nothing = (EMPTY,) * order, np.empty((0,) * order, block.dtype)

        for piece in self._pieces(comm, block.dtype):
            if prod(piece.rows.shape):
                bind(compile(piece.blocks, piece.rows, block.dtype), piece.group)(block[piece.place], piece.buffer)
            index, data = (piece.index, piece.buffer) if writes(self.dist, comm.rank) else nothing
            transfer(comm, partial(FilePart.at, path, offset, self.dist.shape, index, data, writing=True))
            advance(block[piece.place].nbytes)

    def _pieces(self, comm: Comm, dtype: np.dtype[Any]) -> Iterator[_Piece]:
        """The pieces in turn, equally many on every rank; all of them use one buffer."""
        group = sub_comm(comm, self.dist.grid, self.grid_modes)
        at = self.dist.grid.coordinates(comm.rank)
        sets = []  # per mode, what the ranks of this group hold
        for splits, extent in zip(self.among_groups, self.dist.shape, strict=True):
            sets.append(mode_set(splits, extent, tuple(at[s.grid_mode] for s in splits)))

        mode, step = self.mode, self.step
        along = max(local_extents(self.among_groups[mode], self.dist.shape[mode])) if mode >= 0 else 1
        memory, first = np.empty(0, dtype), 0
        for start in range(0, along, step):
            part = list(sets)
            if mode >= 0:
                part[mode] = sets[mode].select(IndexSet.interval(start, start + step))
            shape = tuple(map(len, part))
            rows, blocks = self.rows.on(shape, self.grid), self.blocks.on(shape, self.grid)

            in_part = rows.index_sets(group.rank)
            index = tuple(whole.select(own_rows) for whole, own_rows in zip(part, in_part, strict=True))
            extents = rows.local_shape(group.rank)
            if start == 0:  # the first piece is the largest
                with collective_errors(comm):
                    memory = np.empty(prod(extents), dtype)

            place: tuple[slice, ...] = ()
            if mode >= 0:
                stop = first + blocks.local_shape(group.rank)[self.place]
                place, first = (*(slice(None),) * self.place, slice(first, stop)), stop
            yield _Piece(index, place, rows, blocks, memory[: prod(extents)].reshape(extents), group)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    index: tuple[IndexSet, ...]  # the elements of the file that this rank reads into `buffer`, or writes from it
    place: tuple[slice, ...]  # the part of the rank's block that the piece fills
    rows: Distribution  # of the piece over the group's ranks, as they access the file
    blocks: Distribution  # of the piece over the group's ranks, in their blocks
    buffer: Array
    group: Comm


def _places(dist: Distribution) -> dict[int, int]:
    """The modes of the tensor that the view reads unchanged, each with its mode of the view."""
    plain = {digits[0].mode: v for v, digits in enumerate(dist.digits) if len(digits) == 1}
    return {mode: v for mode, v in plain.items() if dist.view_shape[v] == dist.shape[mode]}


def _of_long_runs(splits: tuple[Split, ...], extent: int, row: int) -> tuple[Split, ...]:
    """The longest prefix of a mode's splits that leaves long runs of the file; an index of the mode has `row` bytes."""
    numbers = range(len(splits), 0, -1)
    return next((splits[:n] for n in numbers if longest_run(splits[:n], extent) * row >= LONG_RUN), ())


def _in_native_order(block: Array) -> Array:
    """The block's bytes under the native dtype, which plans accept; moving does not interpret the numbers."""
    return block.view(block.dtype.newbyteorder("="))


def _among(dist: Distribution, grid_modes: Sequence[int]) -> Layout:
    """The layout of a group's part on the ranks that differ only along some grid modes, which are renumbered from 0.

    Grid modes over which the tensor is partial become rooted at coordinate 0.
    """
    number = {g: n for n, g in enumerate(grid_modes)}
    modes = []
    for mode in dist.layout.modes:
        entries = [entry for entry in mode if entry.grid_mode in number]
        modes.append(tuple([replace(entry, grid_mode=number[entry.grid_mode]) for entry in entries]))
    rooted = [(number[g], at) for g, at in (*dist.layout.rooted, *((g, 0) for g in dist.partial))]
    return Layout(tuple(modes), dist.layout.view, rooted=tuple(sorted(rooted)))
