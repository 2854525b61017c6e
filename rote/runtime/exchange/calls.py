"""MPI's own calls, for methods that our `Comm` has no words for."""

from __future__ import annotations

from typing import Any

from ...errors import CommError
from ..comm.chunks import chunks
from ..comm.protocol import Array, Comm
from .messages import Messages

__all__ = ["Calls", "Rounds", "mpi_comm", "rounds"]

Rounds = list[tuple[list[int], list[int]]]


def mpi_comm(comm: Comm, name: str) -> Any:
    """A communicator as one of MPI's.

    Raises:
        CommError: these ranks do not talk through MPI; `name` is the method that wants it.
    """
    if not hasattr(comm, "handle"):
        raise CommError(
            f"{name} is a method of MPI's, and these ranks are threads of one process\n"
            "start them with mpiexec, or write method='auto'"
        )
    return comm


class Calls:
    """Messages of a step that are sent and received one by one; large ones in several parts."""

    __slots__ = ("_handle", "_kind", "_most")

    def __init__(self, messages: Messages, name: str) -> None:
        comm = mpi_comm(messages.comm, name)
        self._handle, self._kind, self._most = comm.handle, comm.datatype(messages.dtype), comm.most

    def send(self, message: Array, peer: int) -> list[Any]:
        """Start to send a message."""
        start = self._handle.Isend
        return [start([chunk, chunk.size, self._kind], peer) for chunk in chunks(message, self._most)]

    def receive(self, message: Array, peer: int) -> list[Any]:
        """Start to receive a message."""
        start = self._handle.Irecv
        return [start([chunk, chunk.size, self._kind], peer) for chunk in chunks(message, self._most)]


def rounds(messages: Messages, together: int | None) -> Rounds:
    """The numbers of the messages that leave and that come in each round; empty messages are none.

    In a round a rank sends to the next so many behind it, and receives from as many before it: both sides of a message
    have it in the same round, and no rank is the goal of all. All messages are in one round without a number.
    """
    ranks, me = messages.comm.size, messages.comm.rank
    step = together or ranks
    leaving = sorted(((part.peer - me) % ranks, n) for n, part in enumerate(messages.leaving) if part.region.size)
    coming = sorted(((me - part.peer) % ranks, n) for n, part in enumerate(messages.coming) if part.region.size)

    def within(pairs: list[tuple[int, int]], start: int) -> list[int]:
        return [n for distance, n in pairs if start <= distance < start + step]

    turns = ((within(leaving, start), within(coming, start)) for start in range(0, ranks, step))
    return [turn for turn in turns if any(turn)]
