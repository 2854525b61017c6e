"""Processes of one node read each other's blocks directly, or the messages that others have packed in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...errors import CommError
from ..comm import segments
from ..comm.cache import AtAddresses, DoubleBuffer, InHalves
from ..comm.protocol import Array, Comm
from ..copy.strided import Copy, run
from .messages import Messages, Transfer, place
from .method import Method
from .shared import NOTHING, Reading

__all__ = ["Shared"]

_REFUSED = "blocks of others are refused"  # this key in a communicator's cache says that blocks cannot be mapped


class Shared(Method):
    """Each rank reads the elements that it needs from the others' blocks, between two barriers.

    If others cannot map a block, its rank packs messages in shared memory, and the others unpack them there. If all
    blocks are packed, or all are small, one barrier is enough.
    """

    unpacks = False
    meets = True

    def __init__(self, messages: Messages) -> None:
        comm, step, dtype = messages.comm, messages.step, messages.dtype
        self._messages = messages
        nbytes = sum(messages.sends) * dtype.itemsize
        self.held: int = 2 * nbytes
        double_buffer = DoubleBuffer.of(comm, nbytes)
        if double_buffer is None:
            raise CommError(
                "these ranks cannot share memory: they are on several nodes, or the system refuses it\n"
                "write method='auto', or one that sends messages"
            )
        self._double_buffer = double_buffer
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()
        double_buffer.tenants.add(self)
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

    def leave(self) -> None:
        """Let go of all views, as `Tenant` asks."""
        self._prepared.clear()

    def __call__(self, transfer: Transfer) -> None:
        comm, halves = self._messages.comm, self._double_buffer.next_half()
        if self._reading is None or _REFUSED in comm.cache:
            run(self._copies(transfer, halves, self._unread))
            return
        own = self._own(transfer)
        if own is None:
            run(self._copies(transfer, halves, self._packs))
        shown = _show(comm, own)
        if not any(shown):
            run(self._copies(transfer, halves, self._unpacks))
            return
        blocks = self._reached(shown)
        if blocks is not None:
            run(self._copies(transfer, halves, self._reads, blocks))
        if not _all(comm, blocks is not None):
            comm.cache[_REFUSED] = True
            self(transfer)

    def _copies(
        self,
        transfer: Transfer,
        halves: Sequence[Array],
        make: Callable[[Transfer, Sequence[Array], Mapping[int, Array]], list[Copy]],
        blocks: Mapping[int, Array] = NOTHING,
    ) -> list[Copy]:
        """The copies of a run, made once for the addresses of its blocks and of the others' blocks."""

        def made(arrays: list[Array]) -> list[Copy]:
            lying = copy(transfer)
            lying.block, lying.out, *others = arrays
            return make(lying, halves, dict(zip(blocks, others, strict=True)))

        state = make.__name__, self._double_buffer.read, *blocks
        return self._prepared([transfer.block, transfer.out, *blocks.values()], made, state)

    def bound(self, transfer: Transfer) -> list[Copy]:
        comm = self._messages.comm
        copies: Callable[[Sequence[Array]], list[Copy]] = partial(self._unread, transfer)
        if self._reading is not None and _REFUSED not in comm.cache:
            own = self._own(transfer)
            shown = _show(comm, own)
            blocks = self._reached(shown)
            if not _all(comm, blocks is not None):
                comm.cache[_REFUSED] = True
            elif any(shown):
                assert blocks is not None, "no rank was refused any"
                copies = partial(self._between, transfer, blocks, own is None)

        def calls(read: int) -> tuple[list[Copy], int]:
            return copies(self._double_buffer.next_half()), self._double_buffer.read

        return [InHalves(self._double_buffer, calls)]

    def _own(self, transfer: Transfer) -> segments.BlockPlace | None:
        """The place where others can read this rank's block; None if it must be packed for them."""
        own = None if transfer.before else segments.place_of(transfer.block)
        if own is None:
            segments.expect(transfer.block.nbytes)
        return own

    def _reached(self, shown: Sequence[segments.BlockPlace | None]) -> dict[int, Array] | None:
        """The readable blocks of others, by rank in the whole grid; None if some block cannot be mapped."""
        messages, blocks = self._messages, dict[int, Array]()
        dtype, source = messages.dtype, messages.step.before
        try:
            for peer, at in self._places.items():
                shows = shown[at]
                if shows is not None and peer != messages.rank:
                    nbytes = prod(source.local_shape(peer)) * dtype.itemsize
                    blocks[peer] = segments.reach(shows)[:nbytes].view(dtype)
        except OSError:
            return None
        return blocks

    def _unread(self, transfer: Transfer, halves: Sequence[Array], blocks: Mapping[int, Array] = NOTHING) -> list[Copy]:
        """All calls of a transfer in which every rank packs, in the half that nobody reads."""
        meet = self._messages.comm.barrier
        return [*self._packs(transfer, halves, blocks), meet, *self._unpacks(transfer, halves, blocks)]

    def _packs(self, transfer: Transfer, halves: Sequence[Array], blocks: Mapping[int, Array]) -> list[Copy]:
        return transfer.packing(self._packed(halves))

    def _unpacks(self, transfer: Transfer, halves: Sequence[Array], blocks: Mapping[int, Array]) -> list[Copy]:
        return transfer.unpacking(self._received(halves))

    def _between(
        self, transfer: Transfer, blocks: Mapping[int, Array], packs: bool, halves: Sequence[Array]
    ) -> list[Copy]:
        """All calls of a transfer in which some blocks are read directly."""
        meet = self._messages.comm.barrier
        packing = transfer.packing(self._packed(halves)) if packs else []
        return [*packing, meet, *self._reads(transfer, halves, blocks), meet]

    def _reads(self, transfer: Transfer, halves: Sequence[Array], blocks: Mapping[int, Array]) -> list[Copy]:
        """The copies from some ranks' blocks, and from the messages that the others have packed."""
        messages, reading = self._messages, self._reading
        assert reading is not None, "blocks are shown where they are read"
        received = {}
        for segment, message in zip(messages.coming, self._received(halves), strict=True):
            received[segment.peer] = segment.region, message
        own = messages.rank
        packed = {peer: received[at] for peer, at in self._places.items() if peer not in blocks and peer != own}
        every = {**blocks, own: transfer.block}
        return reading.copies(every, transfer.out, transfer.after, {own: transfer.before}, packed)

    def _packed(self, halves: Sequence[Array]) -> Array:
        """The memory that this rank packs into."""
        dtype, mine = self._messages.dtype, halves[self._messages.comm.rank]
        packed: Array = mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype)
        return packed

    def _received(self, halves: Sequence[Array]) -> list[Array]:
        """The messages to this rank, at the places where the others pack them."""
        dtype, received = self._messages.dtype, []
        for region, peer, _ in self._messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(halves[peer][start : start + region.size * dtype.itemsize].view(dtype))
        return received


def _show(comm: Comm, own: segments.BlockPlace | None) -> list[segments.BlockPlace | None]:
    """The places of all ranks' blocks, None if others cannot read one. All ranks have called when it returns."""
    width = len(segments.BlockPlace._fields)
    shown = np.empty((comm.size, width), np.int64)
    comm.allgatherv(np.array(own or segments.BlockPlace(), np.int64), shown.reshape(-1), [width] * comm.size)
    return [segments.BlockPlace(*row) if row[0] else None for row in shown.tolist()]


def _all(comm: Comm, fine: bool) -> bool:
    """Whether a condition holds on all ranks. All ranks have called when it returns."""
    flag: Any = np.array([fine], np.int64)
    comm.allreduce_in_place(flag, "min")
    return bool(flag[0])
