"""Pack, one `MPI_Alltoallv`, unpack."""

from __future__ import annotations

from ..messages import Messages, Transfer
from .method import Method

__all__ = ["Alltoallv"]


class Alltoallv(Method):
    """All messages in one collective call."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        super().__init__(messages.sizes)

    def __call__(self, transfer: Transfer) -> None:
        messages = self._messages
        transfer.pack()
        messages.comm.alltoallv(transfer.packed, messages.sends, transfer.arrived, messages.receives)
        transfer.unpack()
