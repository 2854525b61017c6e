"""The one-sided method: each rank writes its messages into the memory of their receivers."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any, cast

import numpy as np

from ..comm.protocol import Array
from ..copy.strided import Copy, run
from .messages import Messages, Transfer
from .method import Method, mpi_comm

__all__ = ["Put"]


class Put(Method):
    """`MPI_Put` between two fences, into the window of the communicator."""

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "put")
        packed, arrived = messages.sizes
        self._kind = comm.datatype(messages.wire)
        self._messages = messages
        self._window = _Window.of(comm, arrived * messages.wire.itemsize)
        self.sizes: tuple[int, int] = (packed, 0)
        self.held: int = arrived * messages.wire.itemsize
        starts = list(accumulate(messages.receives, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [*transfer.packing(transfer.packed), partial(self._put, transfer)]

    def _put(self, transfer: Transfer) -> None:
        """Put the packed messages, and unpack those that come. The window may be another one than in earlier runs."""
        messages, window, dtype = self._messages, self._window.window, self._messages.wire
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
