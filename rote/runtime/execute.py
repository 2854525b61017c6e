"""Running a plan on real ranks: bind it to a communicator once, then execute it.

Binding finds this rank's messages, makes the sub-communicators and keeps the buffers; executing is pack, one
collective per step, unpack. What a rank keeps goes straight from block to block.

All that a program needs beside the blocks at its two ends lies in one piece of memory, its workspace: the blocks
between two steps take turns at both ends of it, the packed messages of a step lie between them. So a program never
holds more than the most that one of its steps needs, which is what the cost of a plan counts as its peak.

Factors (twiddles, scales) are multiplied in while elements are packed or unpacked, which costs no sweep of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import CommError, LayoutError, PlanError
from ..layout.distribution import Distribution
from ..layout.grid import Grid, ravel
from .comm import Comm
from .packing import Region, direct_regions, identity, receive_regions, send_regions, whole
from .pieces import Factor
from .shelf import keep, lend

__all__ = ["Program", "bind", "check_grid"]

Array = npt.NDArray[Any]
_WHOLE = ("allreduce", "reduce", "broadcast")  # the collectives that leave blocks as they are
_KEPT = 64  # programs that one communicator keeps


def bind(plan: Plan, comm: Comm) -> Program:
    """The program of this rank for a plan. Collective; the communicator keeps the last programs it has bound.

    Raises:
        CommError: the grid of the plan has another number of ranks than the communicator.
    """
    return keep(comm, "programs", plan, lambda: Program(plan, comm), _KEPT)


def check_grid(grid: Grid, comm: Comm) -> None:
    """Refuse a grid that has another number of ranks than the communicator."""
    if grid.size != comm.size:
        raise CommError(
            f"grid {grid} has {grid.size} ranks, but the communicator has {comm.size}; "
            f"start {grid.size} ranks or give another grid"
        )


class Program:
    """A plan bound to a communicator: call it with this rank's block before, and get its block after.

    Its workspace is shared by all programs of the communicator; results are new arrays, or `out`.
    """

    __slots__ = ("_comm", "_plan", "_shapes", "_sizes", "_steps", "_workspace")

    def __init__(self, plan: Plan, comm: Comm) -> None:
        check_grid(plan.source.grid, comm)
        self._plan = plan
        self._comm = comm
        self._steps = [_Bound(step, plan.dtype, comm) for step in plan.steps]
        self._shapes = [plan.source.local_shape(comm.rank)]  # of the blocks before, between and after the steps
        self._shapes += [step.after.local_shape(comm.rank) for step in plan.steps]
        self._sizes = [0, *(prod(shape) for shape in self._shapes[1:-1]), 0]  # of those in the workspace
        needed = zip(self._steps, pairwise(self._sizes), strict=False)  # without steps there is nothing between
        self._workspace = max((sum(bound.buffer_sizes) + sum(ends) for bound, ends in needed), default=0)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beside the blocks before and after the plan; all three make up its peak."""
        return self._workspace * self._plan.dtype.itemsize

    def __call__(
        self,
        block: Array,
        out: Array | None = None,
        *,
        before: Sequence[npt.ArrayLike] = (),
        after: Sequence[npt.ArrayLike] = (),
    ) -> Array:
        """The block after the plan; written into `out` if that is given.

        Args:
            block: this rank's, which stays as it is; copied first if it is not C-contiguous.
            out: of the shape of the block after the plan.
            before: factors of the tensor; each is broadcast to this rank's block before the plan, and multiplied in
                as that is packed. Of the plan's dtype and C-contiguous they are used as they are, else copied.
            after: the same of the block after the plan, multiplied in as that is unpacked.

        Raises:
            LayoutError: `block` or `out` has another shape or dtype than this rank's block, or a factor does not fit.
            PlanError: a factor is for a partial tensor that is not a sum.
        """
        source, target, dtype = self._plan.source, self._plan.target, self._plan.dtype
        self._check(block, self._shapes[0], source, "the block")
        if out is None:
            out = np.empty(self._shapes[-1], dtype)
        else:
            self._check(out, self._shapes[-1], target, "out")
        first = self._factors(before, self._shapes[0], source, "before")
        last = self._factors(after, self._shapes[-1], target, "after")
        block = np.asarray(block, order="C")
        end = out if out.flags.c_contiguous else np.empty(out.shape, dtype)
        if not self._steps:
            whole(end.shape).copy(block, end, before=first, after=last)
        workspace = lend(self._comm, "workspace", self._workspace, dtype)
        for number, bound in enumerate(self._steps, 1):
            ends = number == len(self._steps)
            result = end if ends else self._between(workspace, number)
            place = workspace[self._sizes[number - number % 2] :]
            bound.run(block, result, place, first if number == 1 else (), last if ends else ())
            block = result
        if end is not out:
            out[...] = end
        return out

    def _between(self, workspace: Array, number: int) -> Array:
        """The block after the step of some number: at the left end of the workspace if even, at the right if odd."""
        size = self._sizes[number]
        part = workspace[len(workspace) - size :] if number % 2 else workspace[:size]
        return part.reshape(self._shapes[number])

    def _check(self, block: Array, shape: tuple[int, ...], dist: Distribution, name: str) -> None:
        if block.shape != shape or block.dtype != self._plan.dtype:
            rank, wanted = self._comm.rank, f"{shape} {self._plan.dtype}"
            raise LayoutError(f"{name} of rank {rank} is {block.shape} {block.dtype}, but {dist} wants {wanted}")

    def _factors(
        self, arrays: Sequence[npt.ArrayLike], shape: tuple[int, ...], dist: Distribution, name: str
    ) -> list[Factor]:
        """Factors of a block of some shape, in the plan's dtype."""
        if not len(arrays):
            return []
        if isinstance(arrays, np.ndarray):
            raise LayoutError(f"`{name}` is a sequence of factors, not an array; write {name}=(array,)")
        if dist.partial and dist.layout.op != "sum":
            raise PlanError(
                f"`{name}` multiplies each contribution, which is right for sums only, and {dist.layout} is not one; "
                "multiply where the tensor is not partial"
            )
        found = []
        for number, array in enumerate(map(np.asarray, arrays)):
            fault = ""
            if not np.can_cast(array.dtype, self._plan.dtype, "same_kind"):
                fault = f"is no factor of {self._plan.dtype}; convert it first"
            elif not _broadcasts(array.shape, shape):
                fault = f"does not broadcast to the block of {shape} in {dist}"
            if fault:
                rank = self._comm.rank
                raise LayoutError(f"{name}[{number}] of rank {rank} is {array.shape} {array.dtype}, which {fault}")
            memory = np.asarray(array, self._plan.dtype, order="C")
            found.append(Factor(memory, np.broadcast_to(memory, shape).strides))
        return found


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another."""
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in zip(shape[::-1], wanted[::-1], strict=False))


class _Bound:
    """One step, bound to this rank's sub-communicator and its messages."""

    __slots__ = ("_comm", "_dtype", "_incoming", "_outgoing", "_root", "buffer_sizes", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], comm: Comm) -> None:
        source, target, grid = step.before, step.after, step.before.grid
        self.step = step
        self._dtype = dtype
        self._comm = comm if step.kind in LOCAL else _sub(comm, grid, step.grid_modes)
        self._root = _place(grid, step.grid_modes, _root(step))
        direct = step.kind not in ("allgather", "reduce_scatter")  # these two collectives also carry a rank's own part
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
        self.buffer_sizes = self._outgoing.size, self._incoming.size  # elements
        if step.kind in _WHOLE:  # a block is its own buffer; but one that is reduced elsewhere must stay as it is
            lost = step.kind == "reduce" and self._comm.rank != self._root
            self.buffer_sizes = prod(source.local_shape(comm.rank)) * lost, 0

    def run(self, block: Array, out: Array, buffer: Array, before: Sequence[Factor], after: Sequence[Factor]) -> None:
        """Take this rank's block through the step, into `out`; messages are packed in `buffer`."""
        source, target = self.step.before, self.step.after
        if target.partial:
            out[...] = identity(target.layout.op, self._dtype)
        if self.step.kind in _WHOLE:
            self._run_whole(block, out, buffer, before, after)
            return
        send, receive = self.buffer_sizes
        packed, arrived = _cut(buffer, 0, send), _cut(buffer, send, receive)
        if self.step.kind not in LOCAL:
            self._communicate(block, packed, arrived, before)
        op = source.layout.op
        late = source.partial and op != "sum"  # what is multiplied must not be reduced afterwards
        factors = () if late else after
        for region, part in self._incoming.parts:
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
        self, block: Array, out: Array, buffer: Array, before: Sequence[Factor], after: Sequence[Factor]
    ) -> None:
        """The whole block is the message."""
        kind, op = self.step.kind, self.step.before.layout.op
        receives = kind == "allreduce" or kind == "broadcast" or self._comm.rank == self._root
        sends = kind != "broadcast" or self._comm.rank == self._root
        work = out if receives else buffer[: block.size].reshape(block.shape)
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


def _cut(buffer: Array, start: int, size: int) -> Array:
    """A part of a buffer. MPI refuses two at one address, and in NumPy the empty ones begin where the buffer does."""
    return buffer[start : start + size] if size else np.empty(0, buffer.dtype)


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
