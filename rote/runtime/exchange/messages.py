"""The messages of one step on one rank: those that it sends, those that it receives, and the elements that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from ...compiler.step import LOCAL, Step
from ...layout.grid import Grid, ravel
from ...layout.layout import Op
from ..comm.protocol import Array, Comm
from ..copy.regions import Contribution, Region, direct_regions, identity, joined, receive_regions, send_regions, whole
from ..copy.strided import Copy, Factor

__all__ = ["WHOLE", "Messages", "Segment", "Transfer", "counts", "place", "sub_comm"]

WHOLE = ("allreduce", "reduce", "broadcast")
"""The kinds of steps that work on whole blocks: nothing is packed."""


class Segment(NamedTuple):
    """A message.

    Attributes:
        region: the elements of the message in a block.
        peer: the rank on the other side, within the communicator of the step's grid modes.
        at: the place of the message in packed memory.
    """

    region: Region
    peer: int
    at: slice


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """All messages of one step on one rank; made by `of`.

    Attributes:
        step, dtype: the step and the dtype of its elements.
        comm: the communicator of the ranks that differ along the step's grid modes only.
        rank: this rank's number in the whole grid.
        leaving, coming: the messages. Those of `coming` are in the order of ranks, in which they are reduced.
        kept: a position among `coming`, and the region that this rank copies from block to block in that turn; None if
            there is none, or a message carries it.
        sends, receives: elements per rank of `comm`.
    """

    step: Step
    dtype: np.dtype[Any]
    comm: Comm
    rank: int
    leaving: tuple[Segment, ...]
    coming: tuple[Segment, ...]
    kept: tuple[int, Region] | None
    sends: tuple[int, ...]
    receives: tuple[int, ...]

    @property
    def wire(self) -> np.dtype[Any]:
        """The dtype of packed memory; elements are rounded as they are packed, and widened as they are unpacked."""
        return self.dtype if self.step.wire is None else self.step.wire

    @classmethod
    def of(cls, step: Step, dtype: np.dtype[Any], comm: Comm, carried: bool = False) -> Messages:
        """The messages of this rank, where `comm` is the whole grid's. If `carried`, kept elements are a message too.

        An allgather and a reduce_scatter always carry them; steps that work on whole blocks have no messages.
        """
        grid, rank = step.before.grid, comm.rank
        carried = carried or step.kind in ("allgather", "reduce_scatter")
        sub = comm if step.kind in LOCAL else sub_comm(comm, grid, step.grid_modes)
        ends = step.before, step.after, rank
        outgoing: tuple[Region, ...] = ()
        incoming: tuple[Region, ...] = ()
        if carried:
            outgoing, incoming = send_regions(*ends), receive_regions(*ends)
        elif step.kind not in WHOLE:
            outgoing, incoming = direct_regions(*ends)
        if step.kind == "allgather":
            outgoing = outgoing[:1]  # the same part goes to all: it is packed once
        kept = None
        for turn, region in enumerate(incoming):
            if region.peer == rank and not carried:
                kept = turn, region
                incoming = (*incoming[:turn], *incoming[turn + 1 :])
        leaving, coming = _laid(step, grid, outgoing), _laid(step, grid, incoming)
        sends, receives = counts(leaving, sub.size), counts(coming, sub.size)
        return cls(step, dtype, sub, rank, leaving, coming, kept, sends, receives)

    @property
    def sizes(self) -> tuple[int, int]:
        """The elements of all messages that leave, and of all that come."""
        return sum(self.sends), sum(self.receives)

    @property
    def ordered(self) -> bool:
        """Whether the order of unpacking matters, or the new block is not filled by the messages alone."""
        if self.step.after.partial or (self.kept is not None and self.kept[1].combine):
            return True
        return any(part.region.combine for part in self.coming)


class Transfer:
    """One step between given blocks: from a block, through packed memory, to the block after it.

    Its methods make calls, which may run repeatedly.

    Attributes:
        messages: the messages of the step.
        block, out: the two blocks, C-contiguous. `block` is not written to, unless `arrived` lies in its memory.
        packed, arrived: memory of the sizes that the method asks for, in the dtype that travels. `packed` may lie in
            the memory of `out`, and `arrived` in that of `block` if messages carry the kept elements: all messages are
            packed before the first may arrive, and all have left before the first is unpacked.
        before, after: factors of the two blocks.
        unpacker: if given, it makes the calls that take the place of unpacking, from all of `messages.coming` in order.
    """

    __slots__ = ("after", "arrived", "before", "block", "messages", "out", "packed", "unpacker")

    after: Sequence[Factor]
    arrived: Array
    before: Sequence[Factor]
    block: Array
    out: Array
    packed: Array

    def __init__(
        self,
        messages: Messages,
        block: Array,
        out: Array,
        packed: Array,
        arrived: Array,
        before: Sequence[Factor] = (),
        after: Sequence[Factor] = (),
    ) -> None:
        self.messages: Messages = messages
        self.block, self.out, self.packed, self.arrived = block, out, packed, arrived
        self.before, self.after = before, after
        self.unpacker: Callable[[Sequence[Array]], list[Copy]] | None = None

    def packing(self, memory: Array) -> list[Copy]:
        """The calls that pack all messages into memory."""
        copies = list[Copy]()
        for region, _, at in self.messages.leaving:
            copies += region.bound(self.block, memory[at], before=self.before)
        return copies

    def unpacking(self, received: Sequence[Array] | None = None) -> list[Copy]:
        """The calls that copy all messages and the kept elements into `out`, in the order of ranks.

        Args:
            received: each of `messages.coming`; by default they are in `arrived`.
        """
        if received is None:
            received = self.where()
        if self.unpacker is not None:
            return self.unpacker(received)
        messages, op = self.messages, self._op
        copies, target = list[Copy](), messages.step.after
        if target.partial:  # elements that receive nothing hold the identity of the reduction
            copies.append(partial(self.out.fill, identity(target.layout.op, messages.dtype)))
        parts = list[Contribution]()
        for part, message in zip(messages.coming, received, strict=False):
            parts.append((part.region, message, ()))
        if messages.kept is not None:
            turn, kept = messages.kept
            parts.insert(turn, (kept, self.block, self.before))
        copies += joined(parts, self.out, op, self._factors)
        return copies + self.scaling()

    def unpacking_after(
        self, wait: Copy, received: Sequence[Array] | None = None, ready: Sequence[bool] = ()
    ) -> list[Copy]:
        """The calls of `unpacking`, if messages are under way until `wait` returns: it is called as late as possible.

        Args:
            wait: returns when all messages have come, and those that this rank sends have left.
            received: as in `unpacking`.
            ready: whether each message is here already; by default none is.
        """
        if received is None:
            received = self.where()
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
        kept = self.messages.kept
        return [] if kept is None else kept[1].bound(self.block, self.out, self._op, self.before, self._factors)

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
        return [self.arrived[part.at] for part in self.messages.coming]

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


def _laid(step: Step, grid: Grid, regions: Sequence[Region]) -> tuple[Segment, ...]:
    """Segments for the regions, contiguous in packed memory."""
    segments, at = list[Segment](), 0
    for region in regions:
        peer = place(grid, step.grid_modes, grid.coordinates(region.peer))
        segments.append(Segment(region, peer, slice(at, at + region.size)))
        at += region.size
    return tuple(segments)


def counts(parts: Sequence[Segment], ranks: int) -> tuple[int, ...]:
    """The elements of the message of each rank, 0 if it has none."""
    elements = [0] * ranks
    for part in parts:
        elements[part.peer] = part.region.size
    return tuple(elements)


def sub_comm(comm: Comm, grid: Grid, grid_modes: tuple[int, ...]) -> Comm:
    """The communicator of the ranks that differ from this one along `grid_modes` only; made once per communicator."""
    key = ("sub-grid", grid.shape, grid_modes)
    if key not in comm.cache:
        me = grid.coordinates(comm.rank)
        others = [g for g in range(grid.order) if g not in grid_modes]
        color = ravel([me[g] for g in others], [grid.shape[g] for g in others])
        everybody = len(grid_modes) == grid.order
        comm.cache[key] = comm if everybody else comm.split(color, place(grid, grid_modes, me))
    return cast(Comm, comm.cache[key])


def place(grid: Grid, grid_modes: tuple[int, ...], coordinates: Sequence[int]) -> int:
    """The number of a rank within its sub-grid."""
    return ravel([coordinates[g] for g in grid_modes], [grid.shape[g] for g in grid_modes])
