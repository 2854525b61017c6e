"""Ranks that can reach each other's memory read the others' blocks directly: nothing is sent, and nothing is packed.

Threads of one process share references to their blocks (`Direct`). Processes of one node map each other's blocks, or
read the messages that others have packed in shared memory (`Shared`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ..comm import segments
from ..comm.agreement import ranks_apart
from ..comm.cache import AtAddresses, DoubleBuffer, InHalves
from ..comm.protocol import Array, Comm
from ..copy.regions import Contribution, Region, identity, joined, read_regions, whole
from ..copy.strided import Copy, Factor, run
from .messages import Messages, Method, Transfer, place

__all__ = ["NOTHING", "Direct", "Reading", "Shared"]


NOTHING: Mapping[int, Any] = MappingProxyType({})
"""No blocks, factors or messages of any rank."""


class Reading:
    """One step, bound to a rank that reads the elements that it needs from the others' blocks.

    A barrier must come first, after which all blocks are complete. No block may change until all ranks have read.

    Attributes:
        step: the step.
        regions: the regions to read, one per rank that is read from, in the order of reduction.
    """

    __slots__ = ("_dtype", "regions", "step")

    def __init__(self, step: Step, dtype: np.dtype[Any], rank: int) -> None:
        self.step: Step = step
        self.regions: tuple[Region, ...] = read_regions(step.before, step.after, rank)
        self._dtype = dtype

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions to read, with the ranks of their blocks, as in `Move`; None if no kernel can read them."""
        if scaled or self.step.after.partial or any(region.combine for region in self.regions):
            return None
        return [(region.peer, region) for region in self.regions]

    def copies(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] = NOTHING,
        packed: Mapping[int, tuple[Region, Array]] = NOTHING,
    ) -> list[Copy]:
        """The copies that read this rank's new block into `out`; they may run repeatedly.

        Args:
            blocks: the blocks of all ranks, or of the peers that are read from.
            out: the new block, C-contiguous.
            after: factors of `out`.
            before: by rank, factors of its block.
            packed: by rank, a message to read instead of its block: its region, and the message.
        """
        source, target = self.step.before, self.step.after
        op = source.layout.op
        copies: list[Copy] = []
        if target.partial:
            copies.append(partial(out.fill, identity(target.layout.op, self._dtype)))
        late = source.partial and op != "sum"  # elements must not be multiplied before they are reduced
        parts = list[Contribution]()
        for region in self.regions:
            if region.peer in packed:
                parts.append((*packed[region.peer], ()))
            else:
                parts.append((region, blocks[region.peer], before.get(region.peer, ())))
        copies += joined(parts, out, op, () if late else after)
        if late and after:
            copies += whole(out.shape).bound(out, out, after=after)
        return copies


class Direct(Method):
    """Ranks of one process share references to their blocks, and wait for each other before and after they read."""

    unpacks = False
    reads_blocks = True

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = 0, 0
        step, grid = messages.step, messages.step.before.grid
        self._comm = messages.comm
        if self._comm.share_reference(None) is None:
            raise CommError("these ranks are not threads of one process, and cannot read each other's blocks")
        self._reading = Reading(step, messages.dtype, messages.rank)
        self._call = (step, messages.dtype)
        peers = {region.peer for region in self._reading.regions}
        self._places = {peer: place(grid, step.grid_modes, grid.coordinates(peer)) for peer in peers}
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()

    def __call__(self, transfer: Transfer) -> None:
        blocks, factors = self._shown(transfer)

        def made(arrays: list[Array]) -> list[Copy]:
            out, *others = arrays
            return self._reading.copies(dict(zip(blocks, others, strict=True)), out, transfer.after, factors)

        run(self._prepared([transfer.out, *blocks.values()], made))
        self._comm.barrier()

    def bound(self, transfer: Transfer) -> list[Copy]:
        blocks, factors = self._shown(transfer)
        barrier = self._comm.barrier  # called before blocks are read, and after
        return [barrier, *self._reading.copies(blocks, transfer.out, transfer.after, factors), barrier]

    def _shown(self, transfer: Transfer) -> tuple[dict[int, Array], dict[int, Sequence[Factor]]]:
        """The blocks that this rank reads, and their factors; all ranks share references to theirs now."""
        shared = self._comm.share_reference((self._call, transfer.block, transfer.before))
        assert shared is not None, "it was possible when the method was made"
        blocks, factors = dict[int, Array](), dict[int, Sequence[Factor]]()
        for peer, at in self._places.items():
            if not isinstance(shared[at], tuple) or shared[at][0] != self._call:
                raise ranks_apart()  # that rank is in another call, and its block is another's
            _, blocks[peer], factors[peer] = shared[at]
        return blocks, factors


_REFUSED = "blocks of others are refused"  # this key in a communicator's cache says that blocks cannot be mapped


Stages = tuple[str, ...]  # of a run, see `Shared._calls`
_PACKED: Stages = ("pack", "barrier", "unpack")  # no block is read directly


class Shared(Method):
    """Each rank reads the elements that it needs from the others' blocks, between two barriers.

    If others cannot map a block, its rank packs messages in shared memory, and the others unpack them there. If all
    blocks are packed, or all are small, one barrier is enough.
    """

    unpacks = False
    reads_blocks = True

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = 0, 0
        comm, step, dtype = messages.comm, messages.step, messages.dtype
        nbytes = sum(messages.sends) * dtype.itemsize
        self.held: int = 2 * nbytes
        double_buffer = DoubleBuffer.of(comm, nbytes)
        if double_buffer is None:
            raise CommError(
                "these ranks cannot share memory: they are on several nodes, or the system refuses it\n"
                "write method='auto', or one that sends messages"
            )
        self._double_buffer = double_buffer
        self._prepared: AtAddresses[list[Copy]] = AtAddresses(double_buffer)
        starts = [0] * comm.size  # where the message to each rank begins
        if step.kind != "allgather":  # in an allgather, one message goes to all
            starts = list(accumulate(messages.sends, initial=0))
        block = prod(step.before.local_shape(messages.rank)) * dtype.itemsize
        others = comm.allgather_object((starts, block))
        self._offsets = [theirs[comm.rank] for theirs, _ in others]
        self._reading: Reading | None = None
        self._places = dict[int, int]()  # by a peer's rank in the whole grid, its rank in the communicator
        if max(size for _, size in others) >= segments.LEAST:
            self._reading = Reading(step, dtype, messages.rank)
            grid = step.before.grid
            peers = [region.peer for region in self._reading.regions]
            self._places = {peer: place(grid, step.grid_modes, grid.coordinates(peer)) for peer in peers}

    def __call__(self, transfer: Transfer) -> None:
        comm, halves = self.messages.comm, self._double_buffer.next_half()
        if self._reading is None or _REFUSED in comm.cache:
            run(self._kept_calls(transfer, halves, _PACKED))
            return
        own = self._own(transfer)
        if own is None:
            run(self._kept_calls(transfer, halves, ("pack",)))
        places = _show(comm, own)  # takes the place of the barrier between packing and reading
        if not any(places):
            run(self._kept_calls(transfer, halves, ("unpack",)))
            return
        blocks = self._reached(places)
        if blocks is not None:
            run(self._kept_calls(transfer, halves, ("read",), blocks))
        if not _all(comm, blocks is not None):  # takes the place of the barrier after reading
            comm.cache[_REFUSED] = True
            self(transfer)

    def bound(self, transfer: Transfer) -> list[Copy]:
        comm, stages, blocks = self.messages.comm, _PACKED, NOTHING
        if self._reading is not None and _REFUSED not in comm.cache:
            own = self._own(transfer)
            places = _show(comm, own)
            reached = self._reached(places)
            if not _all(comm, reached is not None):
                comm.cache[_REFUSED] = True
            elif reached is not None and any(places):
                stages, blocks = (*("pack",) * (own is None), "barrier", "read", "barrier"), reached

        def calls(read: int) -> tuple[list[Copy], int]:
            halves = self._double_buffer.next_half()
            return self._calls(transfer, halves, stages, blocks), self._double_buffer.read

        return [InHalves(self._double_buffer, calls)]

    def _kept_calls(
        self, transfer: Transfer, halves: Sequence[Array], stages: Stages, blocks: Mapping[int, Array] = NOTHING
    ) -> list[Copy]:
        """The calls of a run, made once for the addresses of its blocks and of the others' blocks."""

        def made(arrays: list[Array]) -> list[Copy]:
            kept = copy(transfer)
            kept.block, kept.out, *others = arrays
            return self._calls(kept, halves, stages, dict(zip(blocks, others, strict=True)))

        # Addresses alone do not tell which half is written now, nor whose blocks are read.
        state = stages, self._double_buffer.read, *blocks
        return self._prepared([transfer.block, transfer.out, *blocks.values()], made, state)

    def _calls(
        self, transfer: Transfer, halves: Sequence[Array], stages: Stages, blocks: Mapping[int, Array]
    ) -> list[Copy]:
        """The calls of some stages: pack, barrier, and either unpack or read directly where blocks can be reached."""
        calls = list[Copy]()
        for stage in stages:
            if stage == "pack":
                calls += transfer.packing(self._packed(halves))
            elif stage == "unpack":
                calls += transfer.unpacking(self._received(halves))
            elif stage == "read":
                calls += self._reads(transfer, halves, blocks)
            else:
                calls.append(self.messages.comm.barrier)
        return calls

    def _own(self, transfer: Transfer) -> segments.BlockPlace | None:
        """The place where others can read this rank's block; None if it must be packed for them."""
        own = None if transfer.before else segments.place_of(transfer.block)
        if own is None:
            segments.expect(transfer.block.nbytes)
        return own

    def _reached(self, places: Sequence[segments.BlockPlace | None]) -> dict[int, Array] | None:
        """The readable blocks of others, by rank in the whole grid; None if some block cannot be mapped."""
        messages, blocks = self.messages, dict[int, Array]()
        dtype, source = messages.dtype, messages.step.before
        try:
            for peer, at in self._places.items():
                found = places[at]
                if found is not None and peer != messages.rank:
                    nbytes = prod(source.local_shape(peer)) * dtype.itemsize
                    blocks[peer] = segments.reach(found)[:nbytes].view(dtype)
        except OSError:
            return None
        return blocks

    def _reads(self, transfer: Transfer, halves: Sequence[Array], blocks: Mapping[int, Array]) -> list[Copy]:
        """The copies from some ranks' blocks, and from the messages that the others have packed."""
        messages, reading = self.messages, self._reading
        assert reading is not None, "blocks have places where they are read"
        received = {}
        for segment, message in zip(messages.coming, self._received(halves), strict=True):
            received[segment.peer] = segment.region, message
        own = messages.rank
        packed = {peer: received[at] for peer, at in self._places.items() if peer not in blocks and peer != own}
        every = {**blocks, own: transfer.block}
        return reading.copies(every, transfer.out, transfer.after, {own: transfer.before}, packed)

    def _packed(self, halves: Sequence[Array]) -> Array:
        dtype, mine = self.messages.dtype, halves[self.messages.comm.rank]
        packed: Array = mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype)
        return packed

    def _received(self, halves: Sequence[Array]) -> list[Array]:
        """The messages to this rank, at the places where the others pack them."""
        dtype, received = self.messages.dtype, []
        for region, peer, _ in self.messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(halves[peer][start : start + region.size * dtype.itemsize].view(dtype))
        return received


def _show(comm: Comm, own: segments.BlockPlace | None) -> list[segments.BlockPlace | None]:
    """The places of all ranks' blocks, None if others cannot read one. All ranks have called when it returns."""
    width = len(segments.BlockPlace._fields)
    places = np.empty((comm.size, width), np.int64)
    comm.allgatherv(np.array(own or segments.BlockPlace(), np.int64), places.reshape(-1), [width] * comm.size)
    return [segments.BlockPlace(*row) if row[0] else None for row in places.tolist()]


def _all(comm: Comm, fine: bool) -> bool:
    """Whether a condition holds on all ranks. All ranks have called when it returns."""
    flag: Any = np.array([fine], np.int64)
    comm.allreduce_in_place(flag, "min")
    return bool(flag[0])
