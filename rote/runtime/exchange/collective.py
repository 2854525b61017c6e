"""Methods that run a step by one collective call of MPI: an all-to-all, or the one that the step is named after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ..comm.protocol import Array, MpiHandle
from ..copy.parts import long_runs
from ..copy.regions import identity, offsets, whole
from ..copy.strided import Copy
from .messages import Messages, Segment, Transfer, place
from .method import Method, Packed, mpi_comm
from .pieces import in_pieces

__all__ = ["Allgather", "Alltoallv", "Alltoallw", "Local", "Nonblocking", "Persistent", "ReduceScatter", "Whole"]


class Alltoallv(Packed):
    """All messages in one collective call.

    On one node, a rank does not pack messages that lie in a few long runs of its block: MPI copies them from the block,
    as fast as if they were packed. Likewise, messages that fill a few long runs of the new block arrive in their place.
    (Between nodes MPI would pack them in memory of its own.) All ranks of the node then call `MPI_Alltoallw`, whether
    they pack or not. If some ranks pack or unpack, large messages are cut into pieces.

    Args:
        messages: the messages of the step.
        whole: whether they are sent uncut, because they are pieces already.
    """

    def __init__(self, messages: Messages, whole: bool = False) -> None:
        super().__init__(messages)
        self._pieces: list[Alltoallv] | None = [] if whole else None  # None until all ranks bind
        comm, size = messages.comm, messages.dtype.itemsize
        self._handle: Any = None
        self._lying: tuple[Any, Any] | None = None  # the places of messages in the block, and in the new block
        self._landing: tuple[Any, Any] | None = None
        self._made: list[Any] = []  # keeps MPI's datatypes alive
        if messages.wire != messages.dtype:  # packing rounds the elements
            return
        if not isinstance(comm, MpiHandle) or len(set(comm.nodes())) > 1:
            return
        if prod(messages.step.before.view_shape) * size * comm.size > comm.most:  # bytes are counted, not elements
            return
        self._handle, kinds = comm.handle, [comm.datatype(messages.dtype)] * comm.size
        self._packed = _with_offsets(messages.sends, size), kinds
        self._arrived = _with_offsets(messages.receives, size), kinds
        self._lying = self._runs(comm, messages.leaving, packs=True)
        if not messages.ordered:
            self._landing = self._runs(comm, messages.coming, packs=False)

    def _runs(self, comm: MpiHandle, segments: Sequence[Segment], packs: bool) -> tuple[Any, Any] | None:
        """The counts, starts and datatypes of messages in a block; None if some message has short or many runs."""
        dtype = self.messages.dtype
        kind = comm.datatype(dtype)
        counts, starts, types = [0] * comm.size, [0] * comm.size, [kind] * comm.size
        parts = [part for part in segments if part.region.size]
        runs = [long_runs(part.region, dtype.itemsize, packs) for part in parts]
        for part, places in zip(parts, runs, strict=True):
            if places is None:
                return None
            made = comm.product(kind, [(places,)])
            self._made.append(made)
            counts[part.peer], starts[part.peer], types[part.peer] = 1, made.start, made.kind
        return (counts, starts), types

    def bound(self, transfer: Transfer) -> list[Copy]:
        if self._handle is None:
            return super().bound(transfer)
        if self._pieces is None:
            parts = in_pieces(self.messages, None in (self._lying, self._landing))
            self._pieces = [Alltoallv(part, whole=True) for part in parts]
        if self._pieces and self._apart(transfer):
            ends = transfer.block, transfer.out, transfer.packed, transfer.arrived
            copies = transfer.keeping()
            for method in self._pieces:
                copies += method.bound(Transfer(method.messages, *ends, transfer.before, transfer.after))
            return copies
        block, out, packed, arrived = transfer.block, transfer.out, transfer.packed, transfer.arrived
        lands = self._landing is not None and transfer.unpacker is None and not transfer.after
        lies = self._lying is not None and not transfer.before
        lies = lies and not np.may_share_memory(block, out if lands else arrived)
        lands = lands and not np.may_share_memory(out, block if lies else packed)
        if lies and self._lying:
            before, sends = list[Copy](), [block, *self._lying]
        else:
            before, sends = transfer.packing(packed), [packed, *self._packed]
        if lands and self._landing:
            behind, receives = transfer.keeping(), [out, *self._landing]
        else:
            behind, receives = transfer.unpacking(self.received(transfer)), [arrived, *self._arrived]
        return [*before, partial(self._handle.Alltoallw, sends, receives), *behind]

    def _apart(self, transfer: Transfer) -> bool:
        """Whether, on all ranks, pieces can be unpacked before later pieces are packed. Collective."""
        share = np.may_share_memory
        fine = transfer.unpacker is None and not share(transfer.out, transfer.packed)
        flag: Array = np.array([fine and not share(transfer.block, transfer.arrived)], np.int64)
        self.messages.comm.allreduce_in_place(flag, "min")
        return bool(flag[0])

    def carry(self, transfer: Transfer) -> None:
        messages = self.messages
        messages.comm.alltoallv(transfer.packed, messages.sends, transfer.arrived, messages.receives)


class Alltoallw(Method):
    """`MPI_Alltoallw`: MPI itself reads and writes the elements in the blocks, by datatypes that are made once.

    It serves steps that only move elements (Dalcin et al. 2019, listings 2 and 3).
    """

    unpacks = False

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "alltoallw")
        self._handle = comm.handle
        if messages.wire != messages.dtype:
            raise CommError(
                f"alltoallw sends elements out of the blocks themselves, and cannot round them to {messages.wire}\n"
                "write method='auto' or 'alltoallv', or leave wire out"
            )
        kind = comm.datatype(messages.dtype)
        leaving, coming = offsets(messages.step.before, messages.step.after, messages.rank, messages.dtype.itemsize)
        self._made: list[Any] = []  # keeps MPI's datatypes alive
        ends = []
        for parts, offsets_of in ((messages.leaving, leaving), (messages.coming, coming)):
            types, counts, starts = [kind] * comm.size, [0] * comm.size, [0] * comm.size
            for part in parts:
                if part.region.size:
                    made = comm.product(kind, offsets_of[part.region.peer])
                    self._made.append(made)
                    types[part.peer], counts[part.peer], starts[part.peer] = made.kind, 1, made.start
            ends.append(((counts, starts), types))
        self._sending, self._receiving = ends

    def bound(self, transfer: Transfer) -> list[Copy]:
        block, out, kept = transfer.block, transfer.out, transfer.messages.kept
        copies = list[Copy]()
        if transfer.before:
            block = np.empty_like(block)
            copies += whole(block.shape).bound(transfer.block, block, before=transfer.before)
        copies.append(partial(self._handle.Alltoallw, [block, *self._sending], [out, *self._receiving]))
        if kept is not None:
            copies += kept[1].bound(block, out)
        if transfer.after:
            copies += whole(out.shape).bound(out, out, after=transfer.after)
        return copies


class Nonblocking(Method):
    """`MPI_Ialltoallv`: while messages travel, the rank copies the elements that it keeps."""

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "nonblocking")
        self._handle, self._kind = comm.handle, comm.datatype(messages.wire)
        self._messages = messages
        self.sizes: tuple[int, int] = messages.sizes

    def bound(self, transfer: Transfer) -> list[Copy]:
        sends = [transfer.packed, (self._messages.sends, None), self._kind]
        receives = [transfer.arrived, (self._messages.receives, None), self._kind]
        started = list[Any]()

        def start() -> None:
            started[:] = [self._handle.Ialltoallv(sends, receives)]

        def wait() -> None:
            started.pop().Wait()

        return [*transfer.packing(transfer.packed), start, *transfer.unpacking_after(wait)]


class Persistent(Method):
    """`MPI_Alltoallv_init` (MPI 4): a call that is prepared once, on memory of its own, and started repeatedly."""

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "persistent")
        kind = comm.datatype(messages.wire)
        self.held: int = sum(messages.sizes) * messages.wire.itemsize
        self._packed, arrived = (np.empty(size, messages.wire) for size in messages.sizes)
        self._found = [arrived[part.at] for part in messages.coming]
        try:
            self._request = comm.handle.Alltoallv_init(
                [self._packed, (messages.sends, None), kind], [arrived, (messages.receives, None), kind]
            )
        except NotImplementedError:
            raise CommError(
                "this MPI has no persistent collectives, which came with MPI 4\nwrite method='auto' or 'alltoallv'"
            ) from None

    def bound(self, transfer: Transfer) -> list[Copy]:
        unpacking = transfer.unpacking_after(self._request.Wait, self._found)
        return [*transfer.packing(self._packed), self._request.Start, *unpacking]


class Local(Method):
    """The method of steps in which no rank needs elements of another."""

    def bound(self, transfer: Transfer) -> list[Copy]:
        return transfer.unpacking()


class Allgather(Packed):
    """`MPI_Allgatherv`: each rank packs one message, which all ranks receive."""

    def carry(self, transfer: Transfer) -> None:
        self.messages.comm.allgatherv(transfer.packed, transfer.arrived, self.messages.receives)


class ReduceScatter(Packed):
    """`MPI_Reduce_scatter`: a rank receives one message, the reduction of all ranks' parts for one region."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = sum(messages.sends), max(messages.receives)

    def received(self, transfer: Transfer) -> list[Array]:
        return [transfer.arrived]

    def carry(self, transfer: Transfer) -> None:
        messages = self.messages
        op = messages.step.before.layout.op
        messages.comm.reduce_scatter(transfer.packed, transfer.arrived, messages.sends, op)


class Whole(Method):
    """`MPI_Allreduce`, `MPI_Reduce` and `MPI_Bcast`: a block is its own buffer."""

    def __init__(self, messages: Messages) -> None:
        step, comm = messages.step, messages.comm
        self._messages = messages
        self._root = place(step.before.grid, step.grid_modes, _root(step))
        lost = step.kind == "reduce" and comm.rank != self._root  # the block is reduced elsewhere and must not change
        self.sizes: tuple[int, int] = prod(step.before.local_shape(messages.rank)) * lost, 0

    def bound(self, transfer: Transfer) -> list[Copy]:
        step, comm = self._messages.step, self._messages.comm
        kind, op, block, out = step.kind, step.before.layout.op, transfer.block, transfer.out
        copies = list[Copy]()
        if step.after.partial:
            copies.append(partial(out.fill, identity(op, self._messages.dtype)))
        receives = kind == "allreduce" or kind == "broadcast" or comm.rank == self._root
        sends = kind != "broadcast" or comm.rank == self._root
        work = out if receives else transfer.packed.reshape(block.shape)
        if sends:
            copies += whole(block.shape).bound(block, work, before=transfer.before)
        flat = work.reshape(-1)
        if kind == "allreduce":
            copies.append(partial(comm.allreduce_in_place, flat, op))
        elif kind == "reduce":
            copies.append(partial(comm.reduce_in_place, flat, op, self._root))
        else:
            copies.append(partial(comm.bcast_in_place, flat, self._root))
        if receives and transfer.after:
            copies += whole(out.shape).bound(out, out, after=transfer.after)
        return copies


def _root(step: Step) -> list[int]:
    """The coordinates of the root of a broadcast or a reduce; 0 along grid modes that are not rooted."""
    coordinates = [0] * step.before.grid.order
    end = {"broadcast": step.before, "reduce": step.after}.get(step.kind)
    if end is not None:
        for g, at in end.layout.rooted:
            coordinates[g] = at
    return coordinates


def _with_offsets(counts: Sequence[int], itemsize: int) -> tuple[Sequence[int], list[int]]:
    """The counts of contiguous messages, and the offset of each in bytes."""
    return counts, [itemsize * n for n in accumulate(counts[:-1], initial=0)]
