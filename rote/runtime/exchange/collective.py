"""Methods that run a step by one collective call of MPI: an all-to-all, or the one that the step is named after.

The one-sided method, in which each rank writes its messages into the memory of their receivers, is here as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ...layout.layout import identity
from ..comm.protocol import MpiHandle
from ..copies import Copy, run
from ..regions import long_runs, offsets, whole
from .messages import Messages, Method, Segment, Transfer, rank_within

__all__ = ["Allgather", "Alltoallv", "Alltoallw", "Local", "Nonblocking", "Persistent", "Put", "ReduceScatter", "Whole"]


class _Datatypes(NamedTuple):
    """The message of each rank where it lies in a block: counts and starts, datatypes, and what keeps them alive."""

    where: tuple[list[int], list[int]]
    kinds: list[Any]
    made: list[Any]

    @classmethod
    def of(cls, comm: MpiHandle, dtype: np.dtype[Any], places: Mapping[int, Sequence[Any]]) -> _Datatypes:
        """The datatypes of messages at these offsets, in bytes, by rank."""
        kind, made = comm.datatype(dtype), list[Any]()
        counts, starts, kinds = [0] * comm.size, [0] * comm.size, [kind] * comm.size
        for peer, offsets_of in places.items():
            made.append(comm.product(kind, offsets_of))
            counts[peer], starts[peer], kinds[peer] = 1, made[-1].start, made[-1].kind
        return cls((counts, starts), kinds, made)


class Alltoallv(Method):
    """All messages in one collective call.

    On one node, a rank does not pack messages that are a few long runs of its block: MPI copies them from the block,
    as fast as if they were packed. Likewise, messages that fill a few long runs of the new block arrive in their place.
    (Between nodes MPI would pack them in memory of its own.) All ranks of the node then call `MPI_Alltoallw`, whether
    they pack or not.
    """

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm, size = messages.comm, messages.dtype.itemsize
        self._handle: Any = None
        self._in_block: _Datatypes | None = None  # the places of messages in the block
        self._in_new_block: _Datatypes | None = None
        if messages.wire != messages.dtype:  # packing rounds the elements
            return
        if not isinstance(comm, MpiHandle) or len(set(comm.nodes())) > 1:  # MPI would pack by itself, and more slowly
            return
        if prod(messages.step.before.view_shape) * size * comm.size > comm.most:  # bytes are counted, not elements
            return

        self._handle, kinds = comm.handle, [comm.datatype(messages.dtype)] * comm.size
        self._packed = _with_offsets(messages.sends, size), kinds
        self._arrived = _with_offsets(messages.receives, size), kinds
        self._in_block = self._runs(comm, messages.leaving, packs=True)
        if not messages.ordered:
            self._in_new_block = self._runs(comm, messages.coming, packs=False)

    def _runs(self, comm: MpiHandle, segments: Sequence[Segment], packs: bool) -> _Datatypes | None:
        """The places of messages in a block; None if some message has short or many runs."""
        dtype, places = self.messages.dtype, dict[int, Sequence[Any]]()
        for segment in segments:
            if segment.region.size:
                runs = long_runs(segment.region, dtype.itemsize, packs)
                if runs is None:
                    return None
                places[segment.peer] = [(runs,)]
        return _Datatypes.of(comm, dtype, places)

    def bound(self, transfer: Transfer) -> list[Copy]:
        if self._handle is None:
            return super().bound(transfer)

        # MPI reads and writes at once: it reads no memory that it writes.
        block, out, packed, arrived = transfer.block, transfer.out, transfer.packed, transfer.arrived
        fills = self._in_new_block is not None and transfer.unpacker is None and not transfer.after
        leaves = self._in_block is not None and not transfer.before
        leaves = leaves and not np.may_share_memory(block, out if fills else arrived)
        fills = fills and not np.may_share_memory(out, block if leaves else packed)

        if leaves and self._in_block:
            before, sends = list[Copy](), [block, *self._in_block[:2]]
        else:
            before, sends = transfer.packing(packed), [packed, *self._packed]

        if fills and self._in_new_block:
            after, receives = transfer.keeping(), [out, *self._in_new_block[:2]]
        else:
            after, receives = transfer.unpacking(), [arrived, *self._arrived]
        return [*before, partial(self._handle.Alltoallw, sends, receives), *after]

    def carry(self, transfer: Transfer) -> None:
        messages = self.messages
        messages.comm.alltoallv(transfer.packed, messages.sends, transfer.arrived, messages.receives)


class Alltoallw(Method):
    """`MPI_Alltoallw`: MPI itself reads and writes the elements in the blocks, by datatypes that are made once.

    It serves steps that only move elements (Dalcin et al. 2019, listings 2 and 3).
    """

    packs = unpacks = False

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = messages.mpi
        self._handle = comm.handle
        if messages.wire != messages.dtype:
            raise CommError(
                f"alltoallw sends elements out of the blocks themselves, and cannot round them to {messages.wire}\n"
                "write method='auto' or 'alltoallv', or leave wire out"
            )

        self._ends = list[_Datatypes]()  # of the old block and the new one
        places = offsets(messages.step.movement, messages.rank, messages.dtype.itemsize)
        for segments, of_ranks in zip((messages.leaving, messages.coming), places, strict=True):
            of_peers = {segment.peer: of_ranks[segment.region.peer] for segment in segments if segment.region.size}
            self._ends.append(_Datatypes.of(comm, messages.dtype, of_peers))

    def bound(self, transfer: Transfer) -> list[Copy]:
        block, out = transfer.block, transfer.out
        copies = list[Copy]()
        if transfer.before:
            block = np.empty_like(block)
            copies += whole(block.shape).bound(transfer.block, block, before=transfer.before)
        copies.append(partial(self._handle.Alltoallw, [block, *self._ends[0][:2]], [out, *self._ends[1][:2]]))
        if self.messages.kept is not None:
            _, region = self.messages.kept
            copies += region.bound(block, out)
        if transfer.after:
            copies += whole(out.shape).bound(out, out, after=transfer.after)
        return copies


class Nonblocking(Method):
    """`MPI_Ialltoallv`: while messages travel, the rank copies the elements that it keeps."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = messages.mpi
        self._handle, self._kind = comm.handle, comm.datatype(messages.wire)
        self._request: Any = None

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [
            *transfer.packing(transfer.packed),
            partial(self._start, transfer),
            *transfer.unpacking_after(self._wait),
        ]

    def _start(self, transfer: Transfer) -> None:
        sends = [transfer.packed, (self.messages.sends, None), self._kind]
        receives = [transfer.arrived, (self.messages.receives, None), self._kind]
        self._request = self._handle.Ialltoallv(sends, receives)

    def _wait(self) -> None:
        self._request.Wait()


class Persistent(Method):
    """`MPI_Alltoallv_init` (MPI 4): a call that is prepared once, on memory of its own, and started repeatedly."""

    packs = False

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = messages.mpi
        kind = comm.datatype(messages.wire)
        self.memory_bytes: int = sum(messages.sizes) * messages.wire.itemsize
        self._packed, arrived = (np.empty(size, messages.wire) for size in messages.sizes)
        self._arrived = [arrived[segment.at] for segment in messages.coming]
        try:
            self._request = comm.handle.Alltoallv_init(
                [self._packed, (messages.sends, None), kind], [arrived, (messages.receives, None), kind]
            )
        except NotImplementedError:
            raise CommError(
                "this MPI has no persistent collectives, which came with MPI 4\nwrite method='auto' or 'alltoallv'"
            ) from None

    def bound(self, transfer: Transfer) -> list[Copy]:
        unpacking = transfer.unpacking_after(self._request.Wait, self._arrived)
        return [*transfer.packing(self._packed), self._request.Start, *unpacking]


class Local(Method):
    """The method of steps in which no rank needs elements of another: it has no messages."""

    def bound(self, transfer: Transfer) -> list[Copy]:
        return transfer.unpacking()


class Allgather(Method):
    """`MPI_Allgatherv`: each rank packs one message, which all ranks receive."""

    def carry(self, transfer: Transfer) -> None:
        self.messages.comm.allgatherv(transfer.packed, transfer.arrived, self.messages.receives)


class ReduceScatter(Method):
    """`MPI_Reduce_scatter`: a rank receives one message, the reduction of all ranks' parts for one region."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = sum(messages.sends), max(messages.receives)

    def bound(self, transfer: Transfer) -> list[Copy]:
        unpacking = transfer.unpacking([transfer.arrived])
        return [*transfer.packing(transfer.packed), partial(self.carry, transfer), *unpacking]

    def carry(self, transfer: Transfer) -> None:
        messages = self.messages
        op = messages.step.before.layout.op
        messages.comm.reduce_scatter(transfer.packed, transfer.arrived, messages.sends, op)


class Whole(Method):
    """`MPI_Allreduce`, `MPI_Reduce` and `MPI_Bcast`: a block is its own buffer."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        step, comm = messages.step, messages.comm
        self._root = rank_within(step.before.grid, step.grid_modes, _root(step))
        # A block that is reduced elsewhere must not change, so a copy of it takes part.
        is_copied = step.kind == "reduce" and comm.rank != self._root
        self.sizes: tuple[int, int] = (prod(step.before.local_shape(messages.rank)) if is_copied else 0), 0

    def bound(self, transfer: Transfer) -> list[Copy]:
        step, comm = self.messages.step, self.messages.comm
        kind, op, block, out = step.kind, step.before.layout.op, transfer.block, transfer.out
        copies = list[Copy]()
        if step.after.partial:
            copies.append(partial(out.fill, identity(op, self.messages.dtype)))

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
    return counts, [itemsize * n for n in accumulate(counts[:-1], initial=0)]


class Put(Method):
    """`MPI_Put` into the window of the communicator, a flush, and a barrier.

    Two fences would do by the standard. But between hosts a fence of MPICH 5.0 over libfabric's tcp may return before
    the data arrive. A flush completes the messages where they go, and after the barrier all ranks have flushed.
    """

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm, (packed, arrived) = messages.mpi, messages.sizes
        self._kind = comm.datatype(messages.wire)
        self.sizes: tuple[int, int] = packed, 0
        self.memory_bytes: int = arrived * messages.wire.itemsize
        _grow_window(comm, self.memory_bytes)

        starts = list(accumulate(messages.receives, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]

    @property
    def memory(self) -> object:
        return self.messages.comm

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [*transfer.packing(transfer.packed), partial(self._put, transfer)]

    def _put(self, transfer: Transfer) -> None:
        """Put the packed messages, and unpack those that come. The window may be another one than in earlier runs."""
        messages, dtype = self.messages, self.messages.wire
        window, memory = messages.comm.cache["window"]

        messages.comm.barrier()  # what earlier runs received is unpacked
        window.Lock_all()
        for region, peer, at in messages.leaving:
            if region.size:
                where = [self._offsets[peer] * dtype.itemsize, region.size, self._kind]
                window.Put([transfer.packed[at], region.size, self._kind], peer, where)
        window.Flush_all()
        messages.comm.barrier()  # all messages have arrived
        window.Sync()
        window.Unlock_all()

        arrived = memory[: self.memory_bytes].view(dtype)
        run(transfer.unpacking([arrived[segment.at] for segment in messages.coming]))


def _grow_window(comm: Any, nbytes: int) -> None:
    """Give a communicator a window of at least so many bytes on this rank. Collective.

    All methods share it: messages in it are unpacked before the next barrier.
    """
    window, memory = comm.cache.get("window", (None, np.empty(0)))
    if any(comm.allgather_object(window is None or nbytes > memory.nbytes)):
        if window is not None:
            del comm.cache["window"]
            window.Free()
        comm.cache["window"] = comm.window(max(nbytes, memory.nbytes, 1))
