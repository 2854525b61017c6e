"""One step of a plan on one rank: pack, one collective, unpack. What a rank keeps goes straight from block to block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..compiler.step import LOCAL, Step
from ..layout.grid import Grid, ravel
from .comm import Comm
from .packing import Region, direct_regions, identity, receive_regions, send_regions, whole
from .pieces import Factor

__all__ = ["Exchange"]

Array = npt.NDArray[Any]
_WHOLE = ("allreduce", "reduce", "broadcast")  # the collectives that leave blocks as they are


class Exchange:
    """One step, bound to this rank's sub-communicator and its messages.

    Attributes:
        step: itself.
        sizes: the elements that are packed before they travel, and those that have arrived before they are unpacked.
    """

    __slots__ = ("_comm", "_dtype", "_incoming", "_outgoing", "_root", "sizes", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], comm: Comm, carried: bool = False) -> None:
        source, target, grid = step.before, step.after, step.before.grid
        self.step = step
        self._dtype = dtype
        self._comm = comm if step.kind in LOCAL else _sub(comm, grid, step.grid_modes)
        self._root = _place(grid, step.grid_modes, _root(step))
        # these two collectives also carry what a rank keeps, and alltoallv does if it is asked to
        direct = step.kind not in ("allgather", "reduce_scatter") and (step.kind in LOCAL or not carried)
        if direct:
            outgoing, incoming = direct_regions(source, target, comm.rank)
        else:
            outgoing, incoming = (find(source, target, comm.rank) for find in (send_regions, receive_regions))
        if step.kind == "allgather":
            outgoing = outgoing[:1]  # the same part goes to all: it is packed once
        if step.kind == "reduce_scatter":
            incoming = incoming[:1]  # all parts that come are of one region: they arrive as one
        self._outgoing = _Buffer(step, grid, outgoing, self._comm.size, None)
        self._incoming = _Buffer(step, grid, incoming, self._comm.size, comm.rank if direct else None)
        self.sizes = self._outgoing.size, self._incoming.size
        if step.kind in _WHOLE:  # a block is its own buffer; but one that is reduced elsewhere must stay as it is
            lost = step.kind == "reduce" and self._comm.rank != self._root
            self.sizes = prod(source.local_shape(comm.rank)) * lost, 0

    def run(
        self,
        block: Array,
        out: Array,
        packed: Array,
        arrived: Array,
        before: Sequence[Factor] = (),
        after: Sequence[Factor] = (),
    ) -> None:
        """Take this rank's block through the step, into `out`.

        Args:
            block, out: C-contiguous.
            packed, arrived: of the two `sizes`. Messages may be packed where `out` is; and they may arrive where the
                block is, which is lost then, if what the rank keeps is carried with them.
            before, after: factors of the block, and of `out`.
        """
        if self.step.kind in _WHOLE:
            self._run_whole(block, out, packed, before, after)
            return
        if self.step.kind not in LOCAL:
            self._communicate(block, packed, arrived, before)
        source, target = self.step.before, self.step.after
        if target.partial:
            out[...] = identity(target.layout.op, self._dtype)
        op = source.layout.op
        late = source.partial and op != "sum"  # what is multiplied must not be reduced afterwards
        factors = () if late else after
        for region, part in self._incoming.parts:  # in the order of ranks, in which they are reduced
            if part is None:
                region.copy(block, out, op, before, factors)
            else:
                region.copy(arrived[part], out, op, after=factors)
        if late and after:
            whole(out.shape).copy(out, out, after=after)

    def _communicate(self, block: Array, packed: Array, arrived: Array, before: Sequence[Factor]) -> None:
        """Pack, and call the collective that the step is named after."""
        kind, outgoing, incoming = self.step.kind, self._outgoing, self._incoming
        for region, part in outgoing.parts:
            region.copy(block, packed[part], before=before)
        if kind == "allgather":
            self._comm.allgatherv(packed, arrived, incoming.counts)
        elif kind == "reduce_scatter":
            self._comm.reduce_scatter(packed, arrived, outgoing.counts, self.step.before.layout.op)
        else:
            self._comm.alltoallv(packed, outgoing.counts, arrived, incoming.counts)

    def _run_whole(
        self, block: Array, out: Array, packed: Array, before: Sequence[Factor], after: Sequence[Factor]
    ) -> None:
        """The whole block is the message."""
        kind, op = self.step.kind, self.step.before.layout.op
        if self.step.after.partial:
            out[...] = identity(op, self._dtype)
        receives = kind == "allreduce" or kind == "broadcast" or self._comm.rank == self._root
        sends = kind != "broadcast" or self._comm.rank == self._root
        work = out if receives else packed.reshape(block.shape)
        if sends:
            whole(block.shape).copy(block, work, before=before)
        if kind == "allreduce":
            self._comm.allreduce(work.reshape(-1), op)
        elif kind == "reduce":
            self._comm.reduce(work.reshape(-1), op, self._root)
        else:
            self._comm.bcast(work.reshape(-1), self._root)
        if receives and after:
            whole(out.shape).copy(out, out, after=after)


class _Buffer:
    """The regions of one side of a step, and where each lies in the packed buffer (nowhere if it stays on the rank)."""

    __slots__ = ("counts", "parts", "size")

    def __init__(self, step: Step, grid: Grid, regions: Sequence[Region], ranks: int, stays: int | None) -> None:
        self.counts = [0] * ranks
        self.parts: list[tuple[Region, slice | None]] = []
        self.size = 0
        for region in regions:
            if region.peer == stays:
                self.parts.append((region, None))
                continue
            self.counts[_place(grid, step.grid_modes, grid.coordinates(region.peer))] = region.size
            self.parts.append((region, slice(self.size, self.size + region.size)))
            self.size += region.size


def _sub(comm: Comm, grid: Grid, grid_modes: tuple[int, ...]) -> Comm:
    """The communicator of the ranks that differ from this one along `grid_modes` only; made once per communicator."""
    key = ("sub-grid", grid.shape, grid_modes)
    if key not in comm.cache:
        me = grid.coordinates(comm.rank)
        others = [g for g in range(grid.order) if g not in grid_modes]
        color = ravel([me[g] for g in others], [grid.shape[g] for g in others])
        whole = len(grid_modes) == grid.order
        comm.cache[key] = comm if whole else comm.split(color, _place(grid, grid_modes, me))
    return cast(Comm, comm.cache[key])


def _place(grid: Grid, grid_modes: tuple[int, ...], coordinates: Sequence[int]) -> int:
    """The number of a rank within its sub-grid."""
    return ravel([coordinates[g] for g in grid_modes], [grid.shape[g] for g in grid_modes])


def _root(step: Step) -> list[int]:
    """The coordinates of the root of a broadcast or a reduce (0 along grid modes that are not rooted)."""
    found = [0] * step.before.grid.order
    end = {"broadcast": step.before, "reduce": step.after}.get(step.kind)
    for g, at in end.layout.rooted if end else ():
        found[g] = at
    return found
