"""The messages of one step on one rank: what goes to whom, what comes from whom, and what the rank keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

__all__ = ["WHOLE", "Messages", "Segment", "Transfer", "counts", "place", "run", "sub_comm"]

WHOLE = ("allreduce", "reduce", "broadcast")
"""The kinds of steps that leave blocks as they are: nothing is packed."""


class Segment(NamedTuple):
    """A message.

    Attributes:
        region: between a block and the message.
        peer: the rank on the other side, within the communicator of the step's grid modes.
        at: where it lies in packed memory.
    """

    region: Region
    peer: int
    at: slice


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """All messages of one step on one rank; made by `of`.

    Attributes:
        step, dtype: what moves.
        comm: of the ranks that differ along the step's grid modes only; `rank` is that within the whole grid.
        leaving, coming: the messages; what comes is in the order of ranks, in which it is reduced.
        kept: what leads from block to block on this rank, if that does not travel, and before which of `coming`.
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
        """The messages of a rank of the whole grid's communicator; what the rank keeps is one if it is `carried`.

        An allgather and a reduce_scatter carry it anyway, and in steps that leave blocks as they are there is none.
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
        """The elements of all that leaves, and of all that comes."""
        return sum(self.sends), sum(self.receives)

    @property
    def ordered(self) -> bool:
        """Whether it matters in which order the messages are unpacked, or the block is not made of them alone."""
        if self.step.after.partial or (self.kept is not None and self.kept[1].combine):
            return True
        return any(part.region.combine for part in self.coming)


class Transfer:
    """One run of a step: from a block, through packed memory, to the block after it.

    Attributes:
        messages: of the step.
        block, out: C-contiguous; the block is never written to, unless memory for what arrives lies there.
        packed, arrived: of the sizes that the method asks for, and of the dtype that travels. Messages may be packed
            where `out` is, and may arrive where the block is if what the rank keeps travels with them: all are packed
            before the first may arrive, and all have left before the first is unpacked.
        before, after: factors of the two blocks.
        unpacker: called instead of unpacking, if given, with each of `messages.coming` in that order.
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
        self.unpacker: Callable[[Sequence[Array]], None] | None = None

    def pack(self, memory: Array | None = None) -> None:
        """Pack all messages, into other memory if that is given."""
        if memory is None:
            memory = self.packed
        run(self.packing(memory))

    def packing(self, memory: Array) -> list[Copy]:
        """The copies that pack all messages into some memory; they may run again and again."""
        copies = list[Copy]()
        for region, _, at in self.messages.leaving:
            copies += region.bound(self.block, memory[at], before=self.before)
        return copies

    def unpack(self, received: Sequence[Array] | None = None) -> None:
        """Take all messages and what the rank keeps into `out`, in the order of ranks.

        Args:
            received: where each of `messages.coming` is; in `arrived`, if not given.
        """
        if received is None:
            received = self.where()
        run(self.unpacking(received))

    def unpacking(self, received: Sequence[Array]) -> list[Copy]:
        """The copies that `unpack` makes of messages that are received there; they may run again and again."""
        if self.unpacker is not None:
            return [partial(self.unpacker, received)]
        messages, op = self.messages, self._op
        copies, target = list[Copy](), messages.step.after
        if target.partial:  # where nothing comes, it has what the reduction ignores
            copies.append(partial(self.out.fill, identity(target.layout.op, messages.dtype)))
        parts = list[Contribution]()
        for part, message in zip(messages.coming, received, strict=False):
            parts.append((part.region, message, ()))
        if messages.kept is not None:
            turn, kept = messages.kept
            parts.insert(turn, (kept, self.block, self.before))
        copies += joined(parts, self.out, op, self._factors)
        if self._late and self.after:
            copies.append(self.scale_late)
        return copies

    def unpack_after(
        self, wait: Callable[[], object], received: Sequence[Array] | None = None, ready: Sequence[bool] = ()
    ) -> None:
        """Take messages that are on their way until `wait` returns: what is here is unpacked meanwhile.

        Args:
            wait: returns when all have come, and those that this rank sends have left.
            received: as `unpack` has it.
            ready: which of them are here already; none, if not given.
        """
        messages = self.messages
        if received is None:
            received = self.where()
        if self.unpacker is not None or messages.ordered or np.may_share_memory(self.out, self.packed):
            wait()
            self.unpack(received)
            return
        self.copy_kept()
        for number, arrived in enumerate(ready):
            if arrived:
                self.unpack_one(number, received[number])
        wait()
        for number, message in enumerate(received):
            if not (ready and ready[number]):
                self.unpack_one(number, message)
        self.scale_late()

    def departing(self, number: int) -> tuple[Array, int]:
        """One of `messages.leaving`, and the rank that it goes to."""
        _, peer, at = self.messages.leaving[number]
        return self.packed[at], peer

    def arriving(self, number: int) -> tuple[Array, int]:
        """One of `messages.coming`, and the rank that it comes from."""
        _, peer, at = self.messages.coming[number]
        return self.arrived[at], peer

    def where(self) -> list[Array]:
        """The messages that come, where they arrive if nothing else is said."""
        return [self.arrived[part.at] for part in self.messages.coming]

    def copy_kept(self) -> None:
        """Take what the rank keeps to its place."""
        run(self.keeping())

    def keeping(self) -> list[Copy]:
        """The copies that take what the rank keeps to its place; they may run again and again."""
        kept = self.messages.kept
        return [] if kept is None else kept[1].bound(self.block, self.out, self._op, self.before, self._factors)

    def unpack_one(self, number: int, message: Array) -> None:
        """Unpack one of `messages.coming`."""
        self.messages.coming[number].region.copy(message, self.out, self._op, after=self._factors)

    def scale_late(self) -> None:
        """Multiply the block by the factors that wait until the last message is unpacked."""
        if self._late and self.after:
            whole(self.out.shape).copy(self.out, self.out, after=self.after)

    @property
    def _op(self) -> Op:
        return self.messages.step.before.layout.op

    @property
    def _late(self) -> bool:
        """Whether factors wait for the end: what is multiplied must not be reduced afterwards, unless by a sum."""
        return bool(self.messages.step.before.partial) and self._op != "sum"

    @property
    def _factors(self) -> Sequence[Factor]:
        return () if self._late else self.after


def run(copies: Iterable[Copy]) -> None:
    """Run copies, one after the other."""
    for copy in copies:
        copy()


def _laid(step: Step, grid: Grid, regions: Sequence[Region]) -> tuple[Segment, ...]:
    """Messages one after the other in packed memory."""
    segments, at = list[Segment](), 0
    for region in regions:
        peer = place(grid, step.grid_modes, grid.coordinates(region.peer))
        segments.append(Segment(region, peer, slice(at, at + region.size)))
        at += region.size
    return tuple(segments)


def counts(parts: Sequence[Segment], ranks: int) -> tuple[int, ...]:
    """The elements of messages, of which a rank has one at most, by rank."""
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
