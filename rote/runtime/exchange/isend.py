"""Messages between pairs of ranks, and one wait for all (Duy and Ozaki 2014, section 3.2.1)."""

from __future__ import annotations

from .calls import Calls, rounds
from .messages import Messages, Transfer
from .method import Packed

__all__ = ["Isend"]


class Isend(Packed):
    """`MPI_Isend` and `MPI_Irecv` to and from all ranks, or so many at a time, then `MPI_Waitall`."""

    __slots__ = ("_calls", "_rounds")

    def __init__(self, messages: Messages, together: int | None = None) -> None:
        super().__init__(messages)
        self._calls = Calls(messages, "isend")
        self._rounds = rounds(messages, together)

    def carry(self, transfer: Transfer) -> None:
        """Start all messages of a round, and wait for them together."""
        for leaving, coming in self._rounds:
            started = [request for number in coming for request in self._calls.receive(*transfer.arriving(number))]
            started += [request for number in leaving for request in self._calls.send(*transfer.departing(number))]
            started[0].Waitall(started)
