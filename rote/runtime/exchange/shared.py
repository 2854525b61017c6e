"""Ranks that reach each other's memory read what others have packed there, or their very blocks. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ..comm.double_buffer import DoubleBuffer
from ..comm.protocol import Array
from ..copy.regions import Region, identity, read_regions, whole
from ..copy.strided import Copy, Factor
from .messages import Messages, Transfer, place, run
from .method import Method

__all__ = ["Direct", "Reading", "Shared"]


class Reading:
    """One step, bound to a rank that reads what it needs in the others' blocks.

    Before, a barrier must tell that all blocks are there; and none may be changed until all ranks have read.

    Attributes:
        step: itself.
        regions: what is read, by the rank whose block it is read from, in the order in which it is reduced.
    """

    __slots__ = ("_dtype", "regions", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], rank: int) -> None:
        self.step: Step = step
        self.regions: tuple[Region, ...] = read_regions(step.before, step.after, rank)
        self._dtype = dtype

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions of all ranks' blocks that are read, as `Move` says; None if no kernel can."""
        if scaled or self.step.after.partial or any(region.combine for region in self.regions):
            return None
        return [(region.peer, region) for region in self.regions]

    def run(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] | None = None,
    ) -> None:
        """Read this rank's block after the step into `out`, times factors of it.

        Args:
            blocks: those of all ranks, or of the peers that are read from.
            out: C-contiguous.
            after: factors of `out`.
            before: by rank, factors of its block.
        """
        run(self.copies(blocks, out, after, before))

    def copies(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] | None = None,
    ) -> list[Copy]:
        """The copies that `run` makes; they may run again and again."""
        source, target = self.step.before, self.step.after
        op = source.layout.op
        copies: list[Copy] = []
        if target.partial:
            copies.append(partial(out.fill, identity(target.layout.op, self._dtype)))
        late = source.partial and op != "sum"  # what is multiplied must not be reduced afterwards
        for region in self.regions:
            factors = before[region.peer] if before else ()
            copies += region.bound(blocks[region.peer], out, op, factors, () if late else after)
        return [*copies, *whole(out.shape).bound(out, out, after=after)] if late and after else copies


class Direct(Method):
    """Ranks of one process show each other their blocks; they meet before these are read, and after."""

    __slots__ = ("_comm", "_places", "_reading")
    unpacks = False

    def __init__(self, messages: Messages) -> None:
        step, grid = messages.step, messages.step.before.grid
        self._comm = messages.comm
        if self._comm.share_reference(None) is None:
            raise CommError("these ranks are not threads of one process, and cannot read each other's blocks")
        super().__init__()
        self._reading = Reading(step, messages.dtype, messages.rank)
        peers = {region.peer for region in self._reading.regions}
        self._places = {peer: place(grid, step.grid_modes, grid.coordinates(peer)) for peer in peers}

    def __call__(self, transfer: Transfer) -> None:
        for copy in self._shown(transfer):
            copy()
        self._comm.barrier()

    def bound(self, transfer: Transfer) -> list[Copy]:
        meet = self._comm.barrier  # before blocks are read, and after
        return [meet, *self._shown(transfer), meet]

    def _shown(self, transfer: Transfer) -> list[Copy]:
        """The copies out of the blocks of all ranks, which show them to each other now."""
        shown = self._comm.share_reference((transfer.block, transfer.before))
        assert shown is not None, "it was possible when the method was made"
        blocks, factors = dict[int, Array](), dict[int, Sequence[Factor]]()
        for peer, at in self._places.items():
            blocks[peer], factors[peer] = shown[at]
        return self._reading.copies(blocks, transfer.out, transfer.after, factors)


class Shared(Method):
    """Each packs into memory that all of them see, and unpacks out of the others'; one barrier lies in between."""

    __slots__ = ("_double_buffer", "_messages", "_offsets")

    def __init__(self, messages: Messages) -> None:
        comm = messages.comm
        self._messages = messages
        nbytes = sum(messages.sends) * messages.dtype.itemsize
        super().__init__(held=2 * nbytes)
        double_buffer = DoubleBuffer.of(comm, nbytes)
        if double_buffer is None:
            raise CommError(
                "these ranks cannot share memory: they are on several nodes, or the system refuses it\n"
                "write method='auto', or one that sends messages"
            )
        self._double_buffer = double_buffer
        starts = [0] * comm.size  # where a message to a rank begins
        if messages.step.kind != "allgather":  # in which there is one, to all
            starts = list(accumulate(messages.sends, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]

    def __call__(self, transfer: Transfer) -> None:
        run(self._copies(transfer, self._double_buffer.next_half()))

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [_BoundShared(self._double_buffer, partial(self._copies, transfer))]

    def _copies(self, transfer: Transfer, halves: Sequence[Array]) -> list[Copy]:
        """All that a transfer does in one half of the memory of all ranks, in which nobody reads."""
        messages = self._messages
        dtype, mine = messages.dtype, halves[messages.comm.rank]
        packed = mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype)
        received = []
        for region, peer, _ in messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(halves[peer][start : start + region.size * dtype.itemsize].view(dtype))
        return [*transfer.packing(packed), messages.comm.barrier, *transfer.unpacking(received)]


class _BoundShared:
    """A transfer through shared memory, prepared for both of its halves.

    Args:
        double_buffer: the memory.
        copies: makes all that is done in one half of the memory of all ranks.
    """

    __slots__ = ("__weakref__", "_copies", "_double_buffer", "_prepared")

    def __init__(self, double_buffer: DoubleBuffer, copies: Callable[[Sequence[Array]], list[Copy]]) -> None:
        self._double_buffer, self._copies = double_buffer, copies
        self._prepared: list[list[Copy]] = []
        double_buffer.tenants.add(self)

    def leave(self) -> None:
        """Let go of all views, as `Tenant` asks."""
        self._prepared = []

    def __call__(self) -> None:
        double_buffer = self._double_buffer
        self._prepared = self._prepared or [self._copies(halves) for halves in zip(*double_buffer.halves, strict=True)]
        double_buffer.read = half = 1 if double_buffer.read == 0 else 0  # as `next_half` does, with a call less
        for copy in self._prepared[half]:
            copy()
