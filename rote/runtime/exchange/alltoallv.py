"""Pack, one `MPI_Alltoallv`, unpack."""

from __future__ import annotations

from .messages import Transfer
from .method import Packed

__all__ = ["Alltoallv"]


class Alltoallv(Packed):
    """All messages in one collective call."""

    __slots__ = ()

    def carry(self, transfer: Transfer) -> None:
        """Carry all messages by one call of Alltoallv."""
        messages = self.messages
        messages.comm.alltoallv(transfer.packed, messages.sends, transfer.arrived, messages.receives)
