"""Steps of several tensors over the same ranks: one message carries everything from one rank to another.

Each rank packs the messages of all steps as bytes, ordered by receiver and then by step. Both sides know all lengths,
so no lengths are sent. Ranks that share memory unpack directly from the sender's memory; others send the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ..comm.cache import DoubleBuffer, shared_workspace
from ..comm.protocol import Array
from ..copy.strided import run
from .messages import Messages, Segment, Transfer

__all__ = ["Bundle"]

_ALIGNED = 16  # bytes; each message starts at a multiple, which suits any dtype


class _Place(NamedTuple):
    """The place of a message: its step and number, the bytes before it, and its size in bytes."""

    step: int
    number: int
    start: int
    nbytes: int

    def of(self, memory: Array, dtype: np.dtype[np.generic]) -> Array:
        """The message, as a view of memory."""
        return memory[self.start : self.start + self.nbytes].view(dtype)


class Bundle:
    """The messages of several steps on one rank, bound together. Collective.

    Args:
        steps: the messages of each step, all over one communicator. They go between different ranks: elements that a
            rank keeps are not among them.
    """

    __slots__ = ("_coming", "_double_buffer", "_dtypes", "_leaving", "_offsets", "_receives", "_sends", "_steps")

    def __init__(self, steps: Sequence[Messages]) -> None:
        self._steps = tuple(steps)
        comm = steps[0].comm
        self._lay([each.dtype for each in steps])
        starts = list(accumulate(self._sends, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]
        self._double_buffer = DoubleBuffer.of(comm, sum(self._sends))
        if self._double_buffer is None:
            self._lay([each.wire for each in steps])

    def _lay(self, dtypes: Sequence[np.dtype[np.generic]]) -> None:
        """Give all messages their places; each step has its dtype."""
        ranks, steps, self._dtypes = self._steps[0].comm.size, self._steps, dtypes
        self._leaving, self._sends = _laid([*zip([each.leaving for each in steps], dtypes, strict=True)], ranks)
        self._coming, self._receives = _laid([*zip([each.coming for each in steps], dtypes, strict=True)], ranks)

    def __call__(self, transfers: Sequence[Transfer]) -> None:
        """Run the steps, each from block to block. The transfers need no memory for messages. Collective."""
        comm, double_buffer = self._steps[0].comm, self._double_buffer
        sends, receives = sum(self._sends), sum(self._receives)
        if double_buffer is None:
            workspace = shared_workspace(comm, sends + receives)
            packed, arrived = workspace[:sends], workspace[sends : sends + receives]
        else:
            halves = double_buffer.next_half()
            packed = halves[comm.rank]
        for place in self._leaving:
            region = self._steps[place.step].leaving[place.number].region
            region.copy(transfers[place.step].block, place.of(packed, self._dtypes[place.step]))
        if double_buffer is None:
            comm.alltoallv(packed, self._sends, arrived, self._receives)
        else:
            comm.barrier()
        received: list[list[Array]] = [[np.empty(0, each.dtype)] * len(each.coming) for each in self._steps]
        begins = list(accumulate(self._receives, initial=0))
        for place in self._coming:
            peer = self._steps[place.step].coming[place.number].peer
            if double_buffer is None:
                memory = arrived
            else:
                memory = halves[peer][self._offsets[peer] :]
                place = place._replace(start=place.start - begins[peer])
            received[place.step][place.number] = place.of(memory, self._dtypes[place.step])
        for transfer, arrays in zip(transfers, received, strict=True):
            run(transfer.unpacking(arrays))


def _laid(
    steps: Sequence[tuple[Sequence[Segment], np.dtype[np.generic]]], ranks: int
) -> tuple[list[_Place], list[int]]:
    """The places of the messages of all steps, ordered by peer, and the bytes per peer."""
    places, counts, start = list[_Place](), [0] * ranks, 0
    order = sorted((part.peer, step, n) for step, (parts, _) in enumerate(steps) for n, part in enumerate(parts))
    for peer, step, number in order:
        parts, dtype = steps[step]
        nbytes = parts[number].region.size * dtype.itemsize
        places.append(_Place(step, number, start, nbytes))
        taken = -(-nbytes // _ALIGNED) * _ALIGNED
        counts[peer] += taken
        start += taken
    return places, counts
