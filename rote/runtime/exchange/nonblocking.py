"""One collective call that returns at once: what the rank keeps is copied while messages are on their way."""

from __future__ import annotations

from .calls import mpi_comm
from .messages import Messages, Transfer
from .method import Method

__all__ = ["Nonblocking"]


class Nonblocking(Method):
    """`MPI_Ialltoallv`."""

    __slots__ = ("_handle", "_kind", "_messages")

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "nonblocking")
        self._handle, self._kind = comm.handle, comm.datatype(messages.dtype)
        self._messages = messages
        super().__init__(messages.sizes)

    def __call__(self, transfer: Transfer) -> None:
        messages = self._messages
        transfer.pack()
        started = self._handle.Ialltoallv(
            [transfer.packed, (messages.sends, None), self._kind],
            [transfer.arrived, (messages.receives, None), self._kind],
        )
        transfer.unpack_after(started.Wait)
