"""Two-phase transfers: blocks whose elements lie scattered in a file, moved as rows and by plans between ranks.

A system moves long runs of a file many times faster than single elements. So ranks read rows, one piece of the file
after the other, and a compiled plan takes each piece to the layout that is wanted; writing is the same backwards
(Thakur, Gropp and Lusk 1999, section 3.2). What a rank holds beside its block is a piece, and what the plan needs:
a few times 4 MiB. All is one piece where the view does not read mode 0 as it is, or where short rows are in blocks
within a cyclic split.

Ranks that hold the same rows of the first mode are a group, whose rows are theirs alone: a group moves elements among
its own ranks only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..compiler.compile import compile
from ..layout.distribution import Distribution, Split, mode_set
from ..layout.grid import Grid
from ..layout.indexset import EMPTY, IndexSet
from ..layout.layout import Layout
from ..layout.splits import local_extents
from .comm.collective_errors import collective_errors
from .comm.protocol import Array, Comm, Path
from .comm.rawfile import LONG_RUN
from .exchange.messages import sub_comm
from .files import LARGE, in_rows, longest_run, run_length, writes
from .program import bind

__all__ = ["Staging"]

PIECE = 1 << 22
"""Bytes of a piece, per rank: they stay in a cache, and take longer than ranks need to meet."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The way of a tensor between its distribution and rows of a file in C order.

    Attributes:
        dist: the distribution.
        mode: the mode of its view that is the tensor's mode 0; -1 if there is none, and all goes in one piece.
        kept: the splits of that mode whose coordinates say the rows of a group.
        grid_modes: those along which the ranks of a group differ.
        grid: of a group.
        lying: the layout of a group's rows on its ranks.
        rows: the layout in which they are read or written.
        step: the rows of a piece.
    """

    dist: Distribution
    mode: int
    kept: tuple[Split, ...]
    grid_modes: tuple[int, ...]
    grid: Grid
    lying: Layout
    rows: Layout
    step: int

    @classmethod
    def of(cls, dist: Distribution, itemsize: int, comm: Comm, writing: bool) -> Staging | None:
        """The staging of a tensor; None for one that is small, or moves as fast as it lies.

        Long runs do; and ranks of one node read scattered elements from the file's pages, which are there once.
        """
        if not dist.shape or prod(dist.max_local_shape()) * itemsize < LARGE:
            return None
        if not _reordered(dist) and (run_length(dist) * itemsize >= LONG_RUN or (_on_one_node(comm) and not writing)):
            return None
        mode = next((m for m, digits in enumerate(dist.digits) if [*digits] == [(0, 1, dist.shape[0])]), -1)
        row = prod(dist.shape[1:]) * itemsize
        splits = dist.splits[mode] if mode >= 0 else ()
        kept = next(
            splits[:n]
            for n in range(len(splits), -1, -1)
            if n == 0 or longest_run(splits[:n], dist.shape[0]) * row >= LONG_RUN
        )
        names = {s.grid_mode for s in kept}
        grid_modes = tuple(g for g in range(dist.grid.order) if g not in names)
        grid = Grid(tuple(dist.grid.shape[g] for g in grid_modes))
        extent = max(local_extents(kept, dist.shape[0]))
        step, left = extent, splits[len(kept) :]
        if mode >= 0 and all(s.kind.name == "cyclic" for s in left):  # then some rows lie as all of them do
            again = prod([s.parts * s.kind.sizes[0] for s in left])
            step = min(max(grid.size * PIECE // row // again, 1) * again, extent)
        lying = _among(dist, grid_modes)
        return cls(dist, mode, kept, grid_modes, grid, lying, in_rows(lying, (step, *dist.shape[1:]), grid), step)

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
            if piece.rows.shape[0]:
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
            if piece.rows.shape[0]:
                bind(compile(piece.lying, piece.rows, block.dtype), piece.group)(block[piece.place], piece.buffer)
            part = (piece.index, piece.buffer) if writes(self.dist, comm.rank) else nothing
            comm.write(path, offset, self.dist.shape, *part)
            advance(block[piece.place].nbytes)

    def _pieces(self, comm: Comm, dtype: np.dtype[Any]) -> Iterator[_Piece]:
        """The pieces, one after the other, as many on every rank; one buffer is that of all."""
        group = sub_comm(comm, self.dist.grid, self.grid_modes)
        at = self.dist.grid.coordinates(comm.rank)
        held = mode_set(self.kept, self.dist.shape[0], tuple(at[s.grid_mode] for s in self.kept))
        memory, first = np.empty(0, dtype), 0
        for start in range(0, max(local_extents(self.kept, self.dist.shape[0])), self.step):
            part = held.select(IndexSet.interval(start, start + self.step))
            shape = (len(part), *self.dist.shape[1:])
            rows, lying = self.rows.on(shape, self.grid), self.lying.on(shape, self.grid)
            own, *others = rows.index_sets(group.rank)
            extents = rows.local_shape(group.rank)
            if start == 0:  # no piece is larger
                with collective_errors(comm):
                    memory = np.empty(prod(extents), dtype)
            place: tuple[slice, ...] = ()
            if self.mode >= 0:
                stop = first + lying.local_shape(group.rank)[self.mode]
                place, first = (*(slice(None),) * self.mode, slice(first, stop)), stop
            buffer = memory[: prod(extents)].reshape(extents)
            yield _Piece((part.select(own), *others), place, rows, lying, buffer, group)


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


def _on_one_node(comm: Comm) -> bool:
    """Whether all ranks share the pages of files."""
    return len(set(comm.nodes())) == 1


def _in_native_order(block: Array) -> Array:
    """A block as it is, under the dtype that plans take: bytes are moved, not numbers."""
    return block.view(block.dtype.newbyteorder("="))


def _reordered(dist: Distribution) -> bool:
    """Whether blocks hold the elements in another order than the file."""
    digits = [digit for mode in dist.digits for digit in mode]
    return digits != sorted(digits, key=lambda digit: (digit.mode, -digit.weight))


def _among(dist: Distribution, grid_modes: Sequence[int]) -> Layout:
    """The layout of what ranks share that differ along some grid modes only, which are numbered anew.

    Of a partial tensor coordinate 0 has the values.
    """
    number = {g: n for n, g in enumerate(grid_modes)}
    modes = tuple(
        tuple(replace(entry, grid_mode=number[entry.grid_mode]) for entry in mode if entry.grid_mode in number)
        for mode in dist.layout.modes
    )
    rooted = tuple((number[g], at) for g, at in dist.layout.rooted) + tuple((number[g], 0) for g in dist.partial)
    return Layout(modes, dist.layout.view, rooted=tuple(sorted(rooted)))
