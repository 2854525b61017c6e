"""Methods that run a step by one collective call of MPI: an all-to-all, or the one that the step is named after.

The one-sided method, in which each rank writes its messages into the memory of their receivers, is here as well. Large
messages go in pieces: each is packed, sent and unpacked before the next, so that most of it stays in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, cast

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ..comm.protocol import Array, MpiHandle
from ..copy.regions import Region, identity, long_runs, offsets, whole
from ..copy.strided import Copy, run
from .messages import Messages, Method, Segment, Transfer, mpi_comm, place

__all__ = [
    "Allgather",
    "Alltoallv",
    "Alltoallw",
    "Local",
    "Nonblocking",
    "Persistent",
    "Put",
    "ReduceScatter",
    "Whole",
    "in_pieces",
]


class Alltoallv(Method):
    """All messages in one collective call.

    On one node, a rank does not pack messages that are a few long runs of its block: MPI copies them from the block,
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
        self._in_block: tuple[Any, Any] | None = None  # the places of messages in the block, and in the new block
        self._in_new_block: tuple[Any, Any] | None = None
        self._made: list[Any] = []  # keeps MPI's datatypes alive
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
            parts = in_pieces(self.messages, None in (self._in_block, self._in_new_block))
            self._pieces = [Alltoallv(part, whole=True) for part in parts]
        # A piece is unpacked before the next one is packed, so the two blocks must not be where messages are.
        if self._pieces and self._can_be_cut(transfer):
            ends = transfer.block, transfer.out, transfer.packed, transfer.arrived
            copies = transfer.keeping()
            for method in self._pieces:
                copies += method.bound(Transfer(method.messages, *ends, transfer.before, transfer.after))
            return copies
        block, out, packed, arrived = transfer.block, transfer.out, transfer.packed, transfer.arrived
        fills = self._in_new_block is not None and transfer.unpacker is None and not transfer.after
        leaves = self._in_block is not None and not transfer.before
        leaves = leaves and not np.may_share_memory(block, out if fills else arrived)
        fills = fills and not np.may_share_memory(out, block if leaves else packed)
        if leaves and self._in_block:
            before, sends = list[Copy](), [block, *self._in_block]
        else:
            before, sends = transfer.packing(packed), [packed, *self._packed]
        if fills and self._in_new_block:
            after, receives = transfer.keeping(), [out, *self._in_new_block]
        else:
            after, receives = transfer.unpacking(self.received(transfer)), [arrived, *self._arrived]
        return [*before, partial(self._handle.Alltoallw, sends, receives), *after]

    def _can_be_cut(self, transfer: Transfer) -> bool:
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
        super().__init__(messages)
        self.sizes: tuple[int, int] = 0, 0
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
        super().__init__(messages)
        comm = mpi_comm(messages.comm, "nonblocking")
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

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = 0, 0
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

    def received(self, transfer: Transfer) -> list[Array]:
        return [transfer.arrived]

    def carry(self, transfer: Transfer) -> None:
        messages = self.messages
        op = messages.step.before.layout.op
        messages.comm.reduce_scatter(transfer.packed, transfer.arrived, messages.sends, op)


class Whole(Method):
    """`MPI_Allreduce`, `MPI_Reduce` and `MPI_Bcast`: a block is its own buffer."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        step, comm = messages.step, messages.comm
        self._root = place(step.before.grid, step.grid_modes, _root(step))
        lost = step.kind == "reduce" and comm.rank != self._root  # the block is reduced elsewhere and must not change
        self.sizes: tuple[int, int] = prod(step.before.local_shape(messages.rank)) * lost, 0

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


_PIECE = 1 << 22  # bytes of a piece of a message: with half a MiB, MPI takes many times as long
_LEAST = 4  # the fewest pieces that pay


def in_pieces(messages: Messages, copied: bool) -> list[Messages]:
    """The pieces of a rank's messages, which all use the same packed memory in turn; none if the messages are small.

    All ranks have the same number of pieces, and both ends of a message cut it in the same way. Messages that are
    reduced, or that no rank packs or unpacks, stay whole. Collective if some rank has a large block.

    Args:
        copied: whether this rank packs the messages that leave, or unpacks those that come.
    """
    ends = messages.step.before, messages.step.after
    block = max(prod(dist.max_local_shape()) for dist in ends) * messages.dtype.itemsize
    if block < _LEAST * _PIECE or any(dist.partial for dist in ends):
        return []
    largest = max(*messages.sends, *messages.receives) * messages.dtype.itemsize
    sizes, copies = zip(*messages.comm.allgather_object((largest, copied)), strict=True)
    number = max(sizes) // _PIECE
    if number < _LEAST or not any(copies):
        return []
    return [messages.cut(partial(_piece, k, number)) for k in range(number)]


def _piece(k: int, number: int, region: Region) -> dict[int, tuple[int, int]]:
    """Piece `k` of a message, as a range of its first mode that is long enough, or else of its longest one."""
    mode = next((m for m, n in enumerate(region.shape) if n >= number), None)
    if mode is None:
        mode = max(range(len(region.shape)), key=lambda m: region.shape[m], default=0)
    n = region.shape[mode]
    return {mode: (n * k // number, n * (k + 1) // number)}


class Put(Method):
    """`MPI_Put` between two fences, into the window of the communicator."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = mpi_comm(messages.comm, "put")
        packed, arrived = messages.sizes
        self._kind = comm.datatype(messages.wire)
        self._window = _Window.of(comm, arrived * messages.wire.itemsize)
        self.sizes: tuple[int, int] = packed, 0
        self.held: int = arrived * messages.wire.itemsize
        starts = list(accumulate(messages.receives, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [*transfer.packing(transfer.packed), partial(self._put, transfer)]

    def _put(self, transfer: Transfer) -> None:
        """Put the packed messages, and unpack those that come. The window may be another one than in earlier runs."""
        messages, window, dtype = self.messages, self._window.window, self.messages.wire
        window.Fence()
        for region, peer, at in messages.leaving:
            if region.size:
                where = [self._offsets[peer] * dtype.itemsize, region.size, self._kind]
                window.Put([transfer.packed[at], region.size, self._kind], peer, where)
        window.Fence()
        arrived = self._window.memory[: sum(messages.receives) * dtype.itemsize].view(dtype)
        run(transfer.unpacking([arrived[part.at] for part in messages.coming]))


class _Window:
    """The one window of a communicator, which grows. Messages in it are unpacked before the next fence."""

    __slots__ = ("memory", "window")

    def __init__(self) -> None:
        self.window: Any = None
        self.memory: Array = np.empty(0, np.uint8)

    @classmethod
    def of(cls, comm: Any, nbytes: int) -> _Window:
        """The window of a communicator, with at least `nbytes` bytes on this rank. Collective."""
        window = cast(_Window, comm.cache.setdefault("window", cls()))
        if any(comm.allgather_object(window.window is None or nbytes > window.memory.nbytes)):
            most = max(nbytes, window.memory.nbytes, 1)
            if window.window is not None:
                window.memory = np.empty(0, np.uint8)
                window.window.Free()
            window.window, window.memory = comm.window(most)
        return window
