"""Steps that are more than messages between pairs of ranks, by the collectives that they are named after."""

from __future__ import annotations

from math import prod

from ...compiler.step import Step
from ..copy.regions import identity, whole
from .messages import Messages, Transfer, place
from .method import Method, Packed

__all__ = ["Allgather", "Local", "ReduceScatter", "Whole"]


class Local(Method):
    """No rank needs anything of another."""

    __slots__ = ()

    def __call__(self, transfer: Transfer) -> None:
        transfer.unpack()


class Allgather(Packed):
    """`MPI_Allgatherv` of one message, which all receive."""

    __slots__ = ()

    def carry(self, transfer: Transfer) -> None:
        """Carry the messages by one call of the collective."""
        self.messages.comm.allgatherv(transfer.packed, transfer.arrived, self.messages.receives)


class ReduceScatter(Packed):
    """`MPI_Reduce_scatter`: the parts of all ranks arrive as one."""

    __slots__ = ()

    def carry(self, transfer: Transfer) -> None:
        """Carry the messages by one call of the collective."""
        messages = self.messages
        op = messages.step.before.layout.op
        messages.comm.reduce_scatter(transfer.packed, transfer.arrived, messages.sends, op)


class Whole(Method):
    """`MPI_Allreduce`, `MPI_Reduce` and `MPI_Bcast`: a block is its own buffer."""

    __slots__ = ("_messages", "_root")

    def __init__(self, messages: Messages) -> None:
        step, comm = messages.step, messages.comm
        self._messages = messages
        self._root = place(step.before.grid, step.grid_modes, _root(step))
        lost = step.kind == "reduce" and comm.rank != self._root  # what is reduced elsewhere must stay as it is
        super().__init__((prod(step.before.local_shape(messages.rank)) * lost, 0))

    def __call__(self, transfer: Transfer) -> None:
        step, comm = self._messages.step, self._messages.comm
        kind, op, block, out = step.kind, step.before.layout.op, transfer.block, transfer.out
        if step.after.partial:
            out[...] = identity(op, self._messages.dtype)
        receives = kind == "allreduce" or kind == "broadcast" or comm.rank == self._root
        sends = kind != "broadcast" or comm.rank == self._root
        work = out if receives else transfer.packed.reshape(block.shape)
        if sends:
            whole(block.shape).copy(block, work, before=transfer.before)
        if kind == "allreduce":
            comm.allreduce(work.reshape(-1), op)
        elif kind == "reduce":
            comm.reduce(work.reshape(-1), op, self._root)
        else:
            comm.bcast(work.reshape(-1), self._root)
        if receives and transfer.after:
            whole(out.shape).copy(out, out, after=transfer.after)


def _root(step: Step) -> list[int]:
    """The coordinates of the root of a broadcast or a reduce (0 along grid modes that are not rooted)."""
    coordinates = [0] * step.before.grid.order
    end = {"broadcast": step.before, "reduce": step.after}.get(step.kind)
    for g, at in end.layout.rooted if end else ():
        coordinates[g] = at
    return coordinates
