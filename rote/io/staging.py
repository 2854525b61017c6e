"""Two-phase transfers: blocks whose elements lie scattered in a file, moved as rows and by plans between ranks.

A system moves long runs of a file many times faster than single elements. So ranks read rows, one piece of the file
after the other, and a compiled plan takes each piece to the layout that is wanted; writing is the same backwards
(Thakur, Gropp and Lusk 1999, section 3.2). What a rank holds beside its block is a piece, and what the plan needs:
a few times 4 MiB. A piece is cut along the mode that leaves long runs in the file and in the blocks: of a transposed
view, one between its ends. All is one piece where the view reads no such mode as it is, or where short rows are in
blocks within a cyclic split.

Ranks that hold the same long runs of the file are a group, whose runs are theirs alone: a group moves elements among
its own ranks only, and a rank that is its own group among none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..compiler.compile import compile
from ..layout.grid import Grid
from ..layout.indexset import EMPTY, IndexSet
from ..layout.kinds import Split, local_extents, mode_set
from ..layout.layout import Distribution, Layout
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Array, Comm, Path
from ..runtime.comm.rawfile import LONG_RUN
from ..runtime.exchange.messages import sub_comm
from ..runtime.program import bind
from .mapped import on_one_node
from .positions import LARGE, in_rows, is_reordered, longest_run, run_length, writes

__all__ = ["Staging"]

PIECE = 1 << 22
"""Bytes of a piece, per rank: they stay in a cache, and take longer than ranks need to meet."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The way of a tensor between its distribution and rows of a file in C order.

    Attributes:
        dist: the distribution.
        kept: per mode of the tensor, the splits whose coordinates say the part of a group.
        grid_modes: those along which the ranks of a group differ.
        grid: of a group.
        lying: the layout of a group's part on its ranks.
        cut: how the part is cut into pieces.
    """

    dist: Distribution
    kept: tuple[tuple[Split, ...], ...]
    grid_modes: tuple[int, ...]
    grid: Grid
    lying: Layout
    cut: _Cut

    @classmethod
    def of(cls, dist: Distribution, itemsize: int, comm: Comm, writing: bool) -> Staging | None:
        """The staging of a tensor; None for one that is small, or moves as fast as it lies.

        Long runs do; and ranks of one node read from the file's pages (`mapped`).
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
        lying = _among(dist, grid_modes)
        shape = tuple(max(local_extents(splits, n)) for splits, n in zip(kept, dist.shape, strict=True))
        whole = _Cut(-1, -1, 1, in_rows(lying, shape, grid), 0, 0, 0)
        cuts = []
        for m in sorted(places):
            left = dist.splits[places[m]][len(kept[m]) :]
            if all(s.kind.name == "cyclic" for s in left):  # along others, not even some rows lie as all of them do
                cuts.append(_cut(dist, m, places[m], kept, lying, shape, grid, itemsize))
        good = [cut for cut in cuts if cut.mode == 0 or (cut.run >= LONG_RUN and cut.nbytes <= grid.size * PIECE)]
        best = max(good, key=lambda cut: (min(cut.run, LONG_RUN), cut.beside)) if good else whole
        return cls(dist, kept, grid_modes, grid, lying, best)

    def read(self, path: Path, offset: int, block: Array, comm: Comm, advance: Callable[[int], None]) -> None:
        """Read this rank's block of the array that lies in C order from byte `offset` of a file. Collective.

        Of a partial tensor, a block that the reduction ignores is left as it is. Errors as of `Comm.read`.

        Args:
            block: C-contiguous, in either byte order.
            advance: called with the bytes of the block that have come.
        """
        block = _in_native_order(block)
        for piece in self._pieces(comm, block.dtype):
            comm.read(path, offset, self.dist.shape, piece.index, piece.buffer)
            if prod(piece.rows.shape):
                out = block[piece.place] if self.dist.contributes(comm.rank) else None
                bind(compile(piece.rows, piece.lying, block.dtype), piece.group)(piece.buffer, out)
            advance(block[piece.place].nbytes)

    def write(self, path: Path, offset: int, block: Array, comm: Comm, advance: Callable[[int], None]) -> None:
        """Write this rank's block, as `read` reads it, into a file that already has its full size. Collective.

        Args:
            block: as in `read`.
            advance: called with the bytes of the block that have gone.
        """
        block = _in_native_order(block)
        order = len(self.dist.shape)
        nothing = (EMPTY,) * order, np.empty((0,) * order, block.dtype)
        for piece in self._pieces(comm, block.dtype):
            if prod(piece.rows.shape):
                bind(compile(piece.lying, piece.rows, block.dtype), piece.group)(block[piece.place], piece.buffer)
            part = (piece.index, piece.buffer) if writes(self.dist, comm.rank) else nothing
            comm.write(path, offset, self.dist.shape, *part)
            advance(block[piece.place].nbytes)

    def _pieces(self, comm: Comm, dtype: np.dtype[Any]) -> Iterator[_Piece]:
        """The pieces, one after the other, as many on every rank; one buffer is that of all."""
        group = sub_comm(comm, self.dist.grid, self.grid_modes)
        at = self.dist.grid.coordinates(comm.rank)
        held = []
        for splits, extent in zip(self.kept, self.dist.shape, strict=True):
            held.append(mode_set(splits, extent, tuple(at[s.grid_mode] for s in splits)))
        mode, place_mode, step = self.cut.mode, self.cut.place, self.cut.step
        along = max(local_extents(self.kept[mode], self.dist.shape[mode])) if mode >= 0 else 1
        memory, first = np.empty(0, dtype), 0
        for start in range(0, along, step):
            part = list(held)
            if mode >= 0:
                part[mode] = held[mode].select(IndexSet.interval(start, start + step))
            shape = tuple(map(len, part))
            rows, lying = self.cut.rows.on(shape, self.grid), self.lying.on(shape, self.grid)
            index = tuple(each.select(own) for each, own in zip(part, rows.index_sets(group.rank), strict=True))
            extents = rows.local_shape(group.rank)
            if start == 0:  # no piece is larger
                with collective_errors(comm):
                    memory = np.empty(prod(extents), dtype)
            place: tuple[slice, ...] = ()
            if mode >= 0:
                stop = first + lying.local_shape(group.rank)[place_mode]
                place, first = (*(slice(None),) * place_mode, slice(first, stop)), stop
            yield _Piece(index, place, rows, lying, memory[: prod(extents)].reshape(extents), group)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A piece of a tensor on one rank.

    Attributes:
        index: the elements of the file that this rank reads or writes, in its `buffer`.
        place: the part of its block that the piece fills.
        rows, lying: how the piece lies on the ranks of the group for the file, and in their blocks.
        group: these ranks.
    """

    index: tuple[IndexSet, ...]
    place: tuple[slice, ...]
    rows: Distribution
    lying: Distribution
    buffer: Array
    group: Comm


class _Cut(NamedTuple):
    """A way to cut a part of a tensor into pieces.

    Attributes:
        mode: of the tensor, along which it is cut; -1 if all goes in one piece.
        place: the mode of the view that is this mode.
        step: its extent in a piece.
        rows: the layout in which a piece is read or written.
        nbytes: of a piece, on all ranks.
        run: about the bytes of a piece that lie side by side in the file.
        beside: about the elements of a piece that lie side by side in a block. Pieces across the mode that is fastest
            in the block would touch all of the block again and again.
    """

    mode: int
    place: int
    step: int
    rows: Layout
    nbytes: int
    run: int
    beside: int


def _places(dist: Distribution) -> dict[int, int]:
    """The modes of the tensor that are read as they are, and which modes of the view they are."""
    plain = {digits[0].mode: v for v, digits in enumerate(dist.digits) if len(digits) == 1}
    return {mode: v for mode, v in plain.items() if dist.view_shape[v] == dist.shape[mode]}


def _kept(splits: tuple[Split, ...], extent: int, row: int) -> tuple[Split, ...]:
    """The first splits of a mode, as many as leave long runs of the file; `row` bytes for each of its indices."""
    numbers = range(len(splits), 0, -1)
    return next((splits[:n] for n in numbers if longest_run(splits[:n], extent) * row >= LONG_RUN), ())


def _cut(
    dist: Distribution,
    mode: int,
    place: int,
    kept: tuple[tuple[Split, ...], ...],
    lying: Layout,
    shape: tuple[int, ...],
    grid: Grid,
    itemsize: int,
) -> _Cut:
    """The cut along a mode, for a part of a tensor of some shape."""
    left = dist.splits[place][len(kept[mode]) :]
    again = prod([s.parts * s.kind.sizes[0] for s in left])
    each = prod(shape[:mode]) * prod(shape[mode + 1 :]) * itemsize
    step = min(max(grid.size * PIECE // each // again, 1) * again, shape[mode])
    piece = (*shape[:mode], step, *shape[mode + 1 :])
    rows = in_rows(lying, piece, grid)
    own = rows.on(piece, grid).max_local_shape()
    last = max((m for m, extent in enumerate(dist.shape) if own[m] < extent), default=0)
    run = min(own[last], longest_run(kept[last], dist.shape[last])) * prod(dist.shape[last + 1 :]) * itemsize
    beside = max(step // prod([s.parts for s in left]), 1) * prod(dist.max_local_shape()[place + 1 :])
    return _Cut(mode, place, step, rows, step * each, run, beside)


def _in_native_order(block: Array) -> Array:
    """A block as it is, under the dtype that plans take: bytes are moved, not numbers."""
    return block.view(block.dtype.newbyteorder("="))


def _among(dist: Distribution, grid_modes: Sequence[int]) -> Layout:
    """The layout of what ranks share that differ along some grid modes only, which are numbered anew.

    Of a partial tensor coordinate 0 has the values.
    """
    number = {g: n for n, g in enumerate(grid_modes)}
    modes = []
    for mode in dist.layout.modes:
        entries = [entry for entry in mode if entry.grid_mode in number]
        modes.append(tuple([replace(entry, grid_mode=number[entry.grid_mode]) for entry in entries]))
    rooted = [(number[g], at) for g, at in (*dist.layout.rooted, *((g, 0) for g in dist.partial))]
    return Layout(tuple(modes), dist.layout.view, rooted=tuple(sorted(rooted)))
