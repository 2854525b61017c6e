"""Ranks of one node: each packs into memory that all of them see, and unpacks out of the others'. Nothing is sent."""

from __future__ import annotations

from itertools import accumulate

from ...errors import CommError
from ..comm.double_buffer import DoubleBuffer
from .messages import Messages, Transfer
from .method import Method

__all__ = ["Shared"]


class Shared(Method):
    """Messages in shared memory, and one barrier."""

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
        messages = self._messages
        dtype, comm = messages.dtype, messages.comm
        halves = self._double_buffer.next_half()
        mine = halves[comm.rank]
        transfer.pack(mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype))
        comm.barrier()
        received = []
        for region, peer, _ in messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(halves[peer][start : start + region.size * dtype.itemsize].view(dtype))
        transfer.unpack(received)
