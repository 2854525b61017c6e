"""Large blocks whose elements are scattered in a file: rows of the file, which plans move to the blocks.

Long runs of a file are read many times faster than single elements. So a transfer has two phases: ranks read rows, one
piece of the file after the other, and a compiled plan moves each piece to the wanted layout; writing does the reverse
(Thakur, Gropp and Lusk 1999, section 3.2). Beside its block a rank holds one piece and the plan's buffers: a few times
4 MiB. The tensor is cut into pieces along a mode that leaves long runs both in the file and in the blocks; for a
transposed view, that is a mode between the first and the last. The whole tensor is one piece if the view has no such
mode unchanged, or if blocks within a cyclic split make short rows.

Ranks that hold the same long runs of the file form a group, and no other rank holds these runs. So elements move only
within groups, and a rank that is alone in its group sends nothing.

The ranks of one node read in one phase: they share the pages of the file, from which each copies its own elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..compiler.compile import compile
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.indexset import EMPTY, IndexSet
from ..layout.kinds import Split, local_extents, mode_set
from ..layout.layout import Layout
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import LONG_RUN
from ..runtime.exchange.messages import sub_comm
from ..runtime.plans import bind
from ..runtime.regions import is_reordered
from .layouts import LARGE, in_rows, longest_run, run_length, writes

__all__ = ["Staging"]

PIECE = 1 << 22
"""Bytes of a piece, per rank: small enough for a cache, large enough to outweigh the synchronization of ranks."""


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
    """The transfer of a tensor between its distribution and rows of a file in C order."""

    dist: Distribution
    kept: tuple[tuple[Split, ...], ...]  # per mode of the tensor, the splits that divide it among groups
    grid_modes: tuple[int, ...]  # along which the ranks of a group differ
    grid: Grid  # of a group
    blocks: Layout  # of a group's part on the group's ranks
    cut: _Cut  # of the part into pieces

    @classmethod
    def of(cls, dist: Distribution, itemsize: int, comm: Comm, writing: bool) -> Staging | None:
        """The staging of a tensor; None if it is small, or if direct access is as fast.

        Direct access is as fast for long runs, and for reading by ranks of one node, from the file's pages.
        """
        if not dist.shape or prod(dist.max_local_shape()) * itemsize < LARGE:
            return None
        if (on_one_node(comm) and not writing) or (not is_reordered(dist) and run_length(dist) * itemsize >= LONG_RUN):
            return None
        places = _places(dist)
        splits_kept: list[tuple[Split, ...]] = [()] * len(dist.shape)
        for m, v in places.items():
            splits_kept[m] = _kept(dist.splits[v], dist.shape[m], prod(dist.shape[m + 1 :]) * itemsize)
        kept = tuple(splits_kept)
        names = {split.grid_mode for split in chain(*kept)}
        grid_modes = tuple(g for g in range(dist.grid.order) if g not in names)
        grid = Grid(tuple(dist.grid.shape[g] for g in grid_modes))
        blocks = _among(dist, grid_modes)
        shape = tuple(max(local_extents(splits, n)) for splits, n in zip(kept, dist.shape, strict=True))
        whole = _Cut(-1, -1, 1, in_rows(blocks, shape, grid), 0, 0, 0)
        cuts = []
        for m in sorted(places):
            left = dist.splits[places[m]][len(kept[m]) :]
            if all(s.kind.is_cyclic for s in left):  # other pieces would not be split as the whole part is
                cuts.append(_cut(dist, m, places[m], kept, blocks, shape, grid, itemsize))
        good = [cut for cut in cuts if cut.mode == 0 or (cut.run >= LONG_RUN and cut.nbytes <= grid.size * PIECE)]
        best = max(good, key=lambda cut: (min(cut.run, LONG_RUN), cut.contiguous)) if good else whole
        return cls(dist, kept, grid_modes, grid, blocks, best)

    def read(self, path: Path, offset: int, block: Array, comm: Comm, advance: Callable[[int], None]) -> None:
        """Read this rank's block of the array that begins at byte `offset` of a file, in C order. Collective.

        If the tensor is partial, a block that the reduction ignores is not changed. The block is C-contiguous, in
        either byte order; `advance` is called with the bytes of it that were read since the last call.
        """
        block = _in_native_order(block)
        for piece in self._pieces(comm, block.dtype):
            comm.read(path, offset, self.dist.shape, piece.index, piece.buffer)
            if prod(piece.rows.shape):
                out = block[piece.place] if self.dist.contributes(comm.rank) else None
                bind(compile(piece.rows, piece.blocks, block.dtype), piece.group)(piece.buffer, out)
            advance(block[piece.place].nbytes)

    def write(self, path: Path, offset: int, block: Array, comm: Comm, advance: Callable[[int], None]) -> None:
        """Write this rank's block, the inverse of `read`, into a file that already has its full size. Collective."""
        block = _in_native_order(block)
        order = len(self.dist.shape)
        nothing = (EMPTY,) * order, np.empty((0,) * order, block.dtype)
        for piece in self._pieces(comm, block.dtype):
            if prod(piece.rows.shape):
                bind(compile(piece.blocks, piece.rows, block.dtype), piece.group)(block[piece.place], piece.buffer)
            part = (piece.index, piece.buffer) if writes(self.dist, comm.rank) else nothing
            comm.write(path, offset, self.dist.shape, *part)
            advance(block[piece.place].nbytes)

    def _pieces(self, comm: Comm, dtype: np.dtype[Any]) -> Iterator[_Piece]:
        """The pieces in turn, equally many on every rank; all of them use one buffer."""
        group = sub_comm(comm, self.dist.grid, self.grid_modes)
        at = self.dist.grid.coordinates(comm.rank)
        sets = []
        for splits, extent in zip(self.kept, self.dist.shape, strict=True):
            sets.append(mode_set(splits, extent, tuple(at[s.grid_mode] for s in splits)))
        mode, place_mode, step = self.cut.mode, self.cut.place, self.cut.step
        along = max(local_extents(self.kept[mode], self.dist.shape[mode])) if mode >= 0 else 1
        memory, first = np.empty(0, dtype), 0
        for start in range(0, along, step):
            part = list(sets)
            if mode >= 0:
                part[mode] = sets[mode].select(IndexSet.interval(start, start + step))
            shape = tuple(map(len, part))
            rows, blocks = self.cut.rows.on(shape, self.grid), self.blocks.on(shape, self.grid)
            index = tuple(each.select(rows_of) for each, rows_of in zip(part, rows.index_sets(group.rank), strict=True))
            extents = rows.local_shape(group.rank)
            if start == 0:  # the first piece is the largest
                with collective_errors(comm):
                    memory = np.empty(prod(extents), dtype)
            place: tuple[slice, ...] = ()
            if mode >= 0:
                stop = first + blocks.local_shape(group.rank)[place_mode]
                place, first = (*(slice(None),) * place_mode, slice(first, stop)), stop
            yield _Piece(index, place, rows, blocks, memory[: prod(extents)].reshape(extents), group)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    index: tuple[IndexSet, ...]  # the elements of the file that this rank reads into `buffer`, or writes from it
    place: tuple[slice, ...]  # the part of the rank's block that the piece fills
    rows: Distribution  # of the piece over the group's ranks, as they access the file
    blocks: Distribution  # of the piece over the group's ranks, in their blocks
    buffer: Array
    group: Comm


class _Cut(NamedTuple):
    """A way to cut a part of a tensor into pieces.

    If pieces were cut along the block's fastest mode, each of them would touch the whole block.
    """

    mode: int  # of the tensor, along which it is cut; -1 if there is only one piece
    place: int  # the mode of the view that is this mode
    step: int  # the extent of a piece along the mode
    rows: Layout  # in which a piece is read or written
    nbytes: int  # of a piece, on all ranks together
    run: int  # about how many contiguous bytes of the file a rank reads or writes of a piece
    contiguous: int  # about how many elements of a piece are contiguous in a block


def _places(dist: Distribution) -> dict[int, int]:
    """The modes of the tensor that the view reads unchanged, each with its mode of the view."""
    plain = {digits[0].mode: v for v, digits in enumerate(dist.digits) if len(digits) == 1}
    return {mode: v for mode, v in plain.items() if dist.view_shape[v] == dist.shape[mode]}


def _kept(splits: tuple[Split, ...], extent: int, row: int) -> tuple[Split, ...]:
    """The longest prefix of a mode's splits that leaves long runs of the file; an index of the mode has `row` bytes."""
    numbers = range(len(splits), 0, -1)
    return next((splits[:n] for n in numbers if longest_run(splits[:n], extent) * row >= LONG_RUN), ())


def _cut(
    dist: Distribution,
    mode: int,
    place: int,
    kept: tuple[tuple[Split, ...], ...],
    blocks: Layout,
    shape: tuple[int, ...],
    grid: Grid,
    itemsize: int,
) -> _Cut:
    """The cut along a mode, for a group's part, of the given shape."""
    left = dist.splits[place][len(kept[mode]) :]
    again = prod([s.parts * s.kind.tile for s in left])
    each = prod(shape[:mode]) * prod(shape[mode + 1 :]) * itemsize
    step = min(max(grid.size * PIECE // each // again, 1) * again, shape[mode])
    piece = (*shape[:mode], step, *shape[mode + 1 :])
    rows = in_rows(blocks, piece, grid)
    largest = rows.on(piece, grid).max_local_shape()
    last = max((m for m, extent in enumerate(dist.shape) if largest[m] < extent), default=0)
    run = min(largest[last], longest_run(kept[last], dist.shape[last])) * prod(dist.shape[last + 1 :]) * itemsize
    contiguous = max(step // prod([s.parts for s in left]), 1) * prod(dist.max_local_shape()[place + 1 :])
    return _Cut(mode, place, step, rows, step * each, run, contiguous)


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
