"""The messages of one step on one rank: those that it sends, those that it receives, and the elements that it keeps.

A transfer moves them between two blocks; each method of exchange is a `Method` that runs transfers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from ...compiler.step import LOCAL, Step
from ...layout.grid import Grid, ravel
from ...layout.layout import Op, identity
from ..comm.agreement import agree
from ..comm.protocol import Array, Comm, MpiHandle
from ..copies import Copy, Factor, run
from ..regions import (
    Contribution,
    Region,
    direct_regions,
    joined,
    part_of,
    receive_regions,
    send_regions,
    whole,
)

__all__ = ["WHOLE", "Messages", "Method", "Segment", "Transfer", "assembled", "counts", "rank_within", "sub_comm"]


WHOLE = ("allreduce", "reduce", "broadcast")
"""The kinds of steps that work on whole blocks: nothing is packed."""


class Segment(NamedTuple):
    """A message: its elements in a block, the rank of `Messages.comm` on the other side, its place in packed memory."""

    region: Region
    peer: int
    at: slice


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """All messages of one step on one rank; made by `of`."""

    step: Step
    dtype: np.dtype[Any]
    comm: Comm  # of the ranks that differ along the step's grid modes only
    rank: int  # this rank's number in the whole grid
    leaving: tuple[Segment, ...]
    coming: tuple[Segment, ...]  # in the order of ranks, in which they are reduced
    # A position in the order of `coming`, and the region that this rank copies from block to block; None if there is
    # none, or a message carries it.
    kept: tuple[int, Region] | None
    sends: tuple[int, ...]  # elements per rank of `comm`
    receives: tuple[int, ...]
    # Whether memory that ranks share has two halves for the messages: that saves a barrier, and takes twice the bytes.
    halved: bool = True

    @property
    def wire(self) -> np.dtype[Any]:
        """The dtype of packed memory; elements are rounded as they are packed, and widened as they are unpacked."""
        return self.dtype if self.step.wire is None else self.step.wire

    @classmethod
    def of(cls, step: Step, dtype: np.dtype[Any], comm: Comm, carried: bool = False, halved: bool = True) -> Messages:
        """The messages of this rank, where `comm` is the whole grid's. If `carried`, kept elements are a message too.

        An allgather and a reduce_scatter always carry them; steps that work on whole blocks have no messages.
        """
        grid, rank = step.before.grid, comm.rank
        carried = carried or step.kind in ("allgather", "reduce_scatter")
        sub = comm if step.kind in LOCAL else sub_comm(comm, grid, step.grid_modes)
        move = step.movement
        outgoing: tuple[Region, ...] = ()
        incoming: tuple[Region, ...] = ()
        if carried:
            outgoing, incoming = send_regions(move, rank), receive_regions(move, rank)
        elif step.kind not in WHOLE:
            outgoing, incoming = direct_regions(move, rank)
        if step.kind == "allgather":
            outgoing = outgoing[:1]  # the same part goes to all: it is packed once

        staying = None
        for position, region in enumerate(incoming):
            if region.peer == rank and not carried:
                staying = position, region
                incoming = (*incoming[:position], *incoming[position + 1 :])

        leaving, coming = _segments(step, grid, outgoing), _segments(step, grid, incoming)
        sends, receives = counts(leaving, sub.size), counts(coming, sub.size)
        return cls(step, dtype, sub, rank, leaving, coming, staying, sends, receives, halved)

    def cut(self, ranges: Callable[[Region], dict[int, tuple[int, int]]], starts: tuple[int, int]) -> Messages:
        """The part of every message that lies in some ranges of its modes, without the elements that the rank keeps.

        Both ends know the shape of a message, and so cut it in the same way. The parts are contiguous in packed memory
        and in that of arrived messages, from `starts` on.
        """
        sides = list[tuple[Segment, ...]]()
        for segments, start, packs in zip((self.leaving, self.coming), starts, (True, False), strict=True):
            cut = list[Segment]()
            for region, peer, _ in segments:
                part = part_of(region, ranges(region), packs)
                if part.size:
                    cut.append(Segment(part, peer, slice(start, start + part.size)))
                    start += part.size
            sides.append(tuple(cut))

        sends, receives = (counts(side, self.comm.size) for side in sides)
        return replace(self, leaving=sides[0], coming=sides[1], kept=None, sends=sends, receives=receives)

    @property
    def mpi(self) -> MpiHandle:
        """The communicator, only for methods of MPI: `registry` refuses them on other ranks."""
        return cast(MpiHandle, self.comm)

    @property
    def sizes(self) -> tuple[int, int]:
        """The elements of all messages that leave, and of all that come."""
        return sum(self.sends), sum(self.receives)

    @property
    def ordered(self) -> bool:
        """Whether the order of unpacking matters, or the new block is filled by more than the messages."""
        if self.step.after.partial or (self.kept is not None and self.kept[1].combine):
            return True
        return any(segment.region.combine for segment in self.coming)


def assembled(step: Step, parts: Sequence[Contribution], out: Array, after: Sequence[Factor]) -> list[Copy]:
    """The calls that make the block after a step from its parts, in the order of reduction, and multiply it."""
    copies, op, target = list[Copy](), step.before.layout.op, step.after
    if target.partial:  # elements that receive nothing hold the identity of the reduction
        copies.append(partial(out.fill, identity(target.layout.op, out.dtype)))
    late = step.before.partial and op != "sum"  # elements must not be multiplied before they are reduced
    copies += joined(parts, out, op, () if late else after)
    if late and after:
        copies += whole(out.shape).bound(out, out, after=after)
    return copies


@dataclass(slots=True, eq=False)
class Transfer:
    """One step between given blocks: from a block, through packed memory, to the block after it.

    Its methods make calls, which may run repeatedly. Packed and arrived messages have the dtype that travels. `packed`
    may be in the memory of `out`, and `arrived` in that of `block` if messages carry the kept elements: all messages
    are packed before the first may arrive, and all have left before the first is unpacked.

    Attributes:
        block, out: the two blocks, C-contiguous. `block` is not written to, unless `arrived` is in its memory.
        before, after: factors of the two blocks.
        unpacker: if given, it makes the calls that take the place of unpacking, from all of `messages.coming` in order.
    """

    messages: Messages
    block: Array
    out: Array
    packed: Array
    arrived: Array
    before: Sequence[Factor] = ()
    after: Sequence[Factor] = ()
    unpacker: Callable[[Sequence[Array]], list[Copy]] | None = None

    def packing(self, memory: Array) -> list[Copy]:
        """The calls that pack all messages into memory."""
        copies = list[Copy]()
        for region, _, at in self.messages.leaving:
            copies += region.bound(self.block, memory[at], before=self.before)
        return copies

    def unpacking(self, received: Sequence[Array] | None = None) -> list[Copy]:
        """The calls that copy all messages, by default in `arrived`, and the kept elements to `out`, in rank order."""
        if received is None:
            received = self.where()
        if self.unpacker is not None:
            return self.unpacker(received)
        messages, parts = self.messages, list[Contribution]()
        for segment, message in zip(messages.coming, received, strict=False):
            parts.append((segment.region, message, ()))
        if messages.kept is not None:
            position, region = messages.kept
            parts.insert(position, (region, self.block, self.before))
        return assembled(messages.step, parts, self.out, self.after)

    def unpacking_after(
        self, wait: Copy, received: Sequence[Array] | None = None, ready: Sequence[bool] = ()
    ) -> list[Copy]:
        """The calls of `unpacking`, if messages are under way until `wait` returns: it is called as late as possible.

        `ready` says whether each message is here already; by default none is.
        """
        if received is None:
            received = self.where()
        # Nothing may be written where messages still leave, and reductions have their order.
        if self.unpacker is not None or self.messages.ordered or np.may_share_memory(self.out, self.packed):
            return [wait, *self.unpacking(received)]
        early, late = self.keeping(), list[Copy]()
        for number, message in enumerate(received):
            copies = early if ready and ready[number] else late
            copies += self.unpacking_one(number, message)
        return [*early, wait, *late, *self.scaling()]

    def unpacking_one(self, number: int, message: Array) -> list[Copy]:
        """The calls that unpack one of `messages.coming`, where the order does not matter."""
        return self.messages.coming[number].region.bound(message, self.out, self._op, after=self._factors)

    def keeping(self) -> list[Copy]:
        """The calls that copy the kept elements to their places."""
        if self.messages.kept is None:
            return []
        _, region = self.messages.kept
        return region.bound(self.block, self.out, self._op, self.before, self._factors)

    def scaling(self) -> list[Copy]:
        """The calls that multiply the block by factors that must wait until the last message is unpacked."""
        return whole(self.out.shape).bound(self.out, self.out, after=self.after) if self._late and self.after else []

    def departing(self, number: int) -> tuple[Array, int]:
        """One of `messages.leaving` in packed memory, and its receiver."""
        _, peer, at = self.messages.leaving[number]
        return self.packed[at], peer

    def arriving(self, number: int) -> tuple[Array, int]:
        """One of `messages.coming` in `arrived`, and its sender."""
        _, peer, at = self.messages.coming[number]
        return self.arrived[at], peer

    def where(self) -> list[Array]:
        """The places of all messages that come, in `arrived`."""
        return [self.arrived[segment.at] for segment in self.messages.coming]

    @property
    def _op(self) -> Op:
        return self.messages.step.before.layout.op

    @property
    def _late(self) -> bool:
        """Whether factors wait for the end: elements must not be multiplied before a reduction other than a sum."""
        return bool(self.messages.step.before.partial) and self._op != "sum"

    @property
    def _factors(self) -> Sequence[Factor]:
        return () if self._late else self.after


def _segments(step: Step, grid: Grid, regions: Sequence[Region]) -> tuple[Segment, ...]:
    segments, at = list[Segment](), 0
    for region in regions:
        peer = rank_within(grid, step.grid_modes, grid.coordinates(region.peer))
        segments.append(Segment(region, peer, slice(at, at + region.size)))
        at += region.size
    return tuple(segments)


def counts(segments: Sequence[Segment], ranks: int) -> tuple[int, ...]:
    """The elements of the message of each rank, 0 if it has none."""
    elements = [0] * ranks
    for segment in segments:
        elements[segment.peer] = segment.region.size
    return tuple(elements)


def sub_comm(comm: Comm, grid: Grid, grid_modes: tuple[int, ...], call: str = "") -> Comm:
    """The communicator of the ranks that differ from this one along `grid_modes` only; made once per communicator.

    Args:
        call: the name of the call, if ranks have not agreed on it.
    """
    key = ("sub-grid", grid.shape, grid_modes)
    if key not in comm.cache:
        me = grid.coordinates(comm.rank)
        others = [g for g in range(grid.order) if g not in grid_modes]
        color = ravel([me[g] for g in others], [grid.shape[g] for g in others])
        everybody = len(grid_modes) == grid.order
        if call and not everybody:
            agree(comm, call, (grid, grid_modes))
        comm.cache[key] = comm if everybody else comm.split(color, rank_within(grid, grid_modes, me))
    return cast(Comm, comm.cache[key])


def rank_within(grid: Grid, grid_modes: tuple[int, ...], coordinates: Sequence[int]) -> int:
    """The number of a rank within its sub-grid."""
    return ravel([coordinates[g] for g in grid_modes], [grid.shape[g] for g in grid_modes])


class Method:
    """A way for the messages of a step to reach their receivers, bound to one rank's `Messages`; binding is collective.

    All methods give the same blocks, bit for bit, but for sums between nodes (`registry`). The usual one packs all
    messages, exchanges them between two pieces of workspace, and then unpacks them.

    Attributes:
        messages: the messages of the step.
        name: its name in `METHODS`; empty for MPI's own collectives and for local steps.
        sizes: elements of workspace for packed messages, and for messages that arrive.
        memory_bytes: the bytes that it needs in memory beyond the workspace, such as shared memory.
        packs: whether messages are packed in workspace; else `sizes` are 0.
        unpacks: whether it unpacks only by the transfer's `unpacking` or `unpacking_after`.
        overlaps: whether messages travel while work on blocks goes on, so that they need memory where no block is.
        reads_blocks: whether ranks read each other's blocks, which they show when calls are made.

    Raises (when one is made, the same on all ranks): CommError if it cannot work on these ranks.
    """

    name: str = ""
    memory_bytes: int = 0
    packs: ClassVar[bool] = True
    unpacks: ClassVar[bool] = True
    overlaps: ClassVar[bool] = False
    reads_blocks: ClassVar[bool] = False

    def __init__(self, messages: Messages) -> None:
        self.messages: Messages = messages
        self.sizes: tuple[int, int] = messages.sizes if self.packs else (0, 0)

    @property
    def memory(self) -> object:
        """What its `memory_bytes` are part of: methods may have one memory in common."""
        return self

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of workspace for packed messages and for arrived ones, rounded up to whole elements of the block."""
        item, sent = self.messages.dtype.itemsize, self.messages.wire.itemsize
        packed, arrived = self.sizes
        return -(-packed * sent // item) * item, -(-arrived * sent // item) * item

    @property
    def coming(self) -> Sequence[Segment]:
        """The messages that come, in the order in which they are unpacked."""
        return self.messages.coming

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions to read, of messages and of the block (memory 0), as in `Move`; None if no kernel can."""
        staying = self.messages.kept
        if not self.unpacks or self.messages.ordered or (scaled and staying is not None):
            return None  # elements read from the block are not packed, which would multiply them by its factors
        regions = [(number, segment.region) for number, segment in enumerate(self.coming, 1)]
        return regions if staying is None else [*regions, (0, staying[1])]

    def bound(self, transfer: Transfer) -> list[Copy]:
        """Calls that run the step between the blocks of a transfer, repeatedly. Each run is collective.

        1. Pack: elements for other ranks are copied from `block` to `packed`, where those for one rank are contiguous,
           and are multiplied by the factors `before`.
        2. Exchange: `carry` takes each message of `packed` to its receiver, which finds it in `arrived`.
        3. Unpack: the messages in `arrived`, and from `block` the elements that this rank keeps, are copied to `out`,
           or reduced there in the order of ranks, and are multiplied by the factors `after`.

        Other methods leave steps out (`packs`, `unpacks`), or let them run at once: they keep or unpack elements while
        messages travel. To make the calls is collective only if the method `reads_blocks`.
        """
        return [*transfer.packing(transfer.packed), partial(self.carry, transfer), *transfer.unpacking()]

    def __call__(self, transfer: Transfer) -> None:
        """Run the step once. Collective over the communicator of the messages."""
        run(self.bound(transfer))

    def carry(self, transfer: Transfer) -> None:
        """Exchange the packed messages, so that those for this rank are in `arrived`."""
        raise NotImplementedError
