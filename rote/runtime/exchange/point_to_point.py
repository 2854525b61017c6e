"""Messages between pairs of ranks (Duy and Ozaki 2014, section 3.2.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..comm.chunks import chunks
from ..comm.protocol import Array
from ..copy.strided import Copy, run
from .messages import Messages, Transfer
from .method import Method, Packed, mpi_comm

__all__ = ["Calls", "Isend", "Sendrecv", "Waitsome"]


Rounds = list[tuple[list[int], list[int]]]


class Calls:
    """Calls that send and receive the messages of a step one by one; large messages go in several parts."""

    __slots__ = ("_handle", "_kind", "_most")

    def __init__(self, messages: Messages, name: str) -> None:
        comm = mpi_comm(messages.comm, name)
        self._handle, self._kind, self._most = comm.handle, comm.datatype(messages.wire), comm.most

    def send(self, message: Array, peer: int) -> list[Any]:
        """Start to send a message."""
        start = self._handle.Isend
        return [start([chunk, chunk.size, self._kind], peer) for chunk in chunks(message, self._most)]

    def receive(self, message: Array, peer: int) -> list[Any]:
        """Start to receive a message."""
        start = self._handle.Irecv
        return [start([chunk, chunk.size, self._kind], peer) for chunk in chunks(message, self._most)]


def rounds(messages: Messages, together: int | None) -> Rounds:
    """The numbers of the messages that leave and come in each round, without empty messages.

    In a round, a rank sends to the next `together` ranks after it, and receives from as many before it. So both sides
    have a message in the same round, and not all ranks send to one. If `together` is None, there is one round.
    """
    ranks, me = messages.comm.size, messages.comm.rank
    step = together or ranks
    leaving = sorted(((part.peer - me) % ranks, n) for n, part in enumerate(messages.leaving) if part.region.size)
    coming = sorted(((me - part.peer) % ranks, n) for n, part in enumerate(messages.coming) if part.region.size)

    def within(pairs: list[tuple[int, int]], start: int) -> list[int]:
        return [n for distance, n in pairs if start <= distance < start + step]

    turns = ((within(leaving, start), within(coming, start)) for start in range(0, ranks, step))
    return [turn for turn in turns if any(turn)]


class Isend(Packed):
    """`MPI_Isend` and `MPI_Irecv` to and from all ranks, or `together` ranks at a time, then `MPI_Waitall`.

    In Duy and Ozaki (2014) these are Isend_Waitall and Isend_Waitall_Block.
    """

    def __init__(self, messages: Messages, together: int | None = None) -> None:
        super().__init__(messages)
        self._calls = Calls(messages, "isend")
        self._rounds = rounds(messages, together)

    def carry(self, transfer: Transfer) -> None:
        for leaving, coming in self._rounds:
            started = list[Any]()
            for number in coming:
                started += self._calls.receive(*transfer.arriving(number))
            for number in leaving:
                started += self._calls.send(*transfer.departing(number))
            started[0].Waitall(started)


class Waitsome(Method):
    """`MPI_Isend` and `MPI_Irecv`, then `MPI_Waitsome`: messages that have come are unpacked while others travel.

    If the order matters, as in a reduction, or messages are packed in the memory of `out`, it waits for all first. In
    Duy and Ozaki (2014) these are Isend_Waitsome and Isend_Waitsome_Block.
    """

    unpacks = False

    def __init__(self, messages: Messages, together: int | None = None) -> None:
        self._calls = Calls(messages, "waitsome")
        self._rounds = rounds(messages, together)
        self._ordered = messages.ordered
        self.sizes: tuple[int, int] = messages.sizes

    def bound(self, transfer: Transfer) -> list[Copy]:
        before = transfer.packing(transfer.packed)
        if self._ordered or np.may_share_memory(transfer.out, transfer.packed):
            return [*before, partial(self._exchange, transfer, [], {}), *transfer.unpacking()]
        unpacking = {}
        for number, message in enumerate(transfer.where()):
            unpacking[number] = transfer.unpacking_one(number, message)
        return [*before, partial(self._exchange, transfer, transfer.keeping(), unpacking), *transfer.scaling()]

    def _exchange(self, transfer: Transfer, keeping: list[Copy], unpacking: dict[int, list[Copy]]) -> None:
        """Exchange the packed messages. While they travel, keep what is kept, and unpack each that has come."""
        for leaving, coming in self._rounds:
            receiving = [self._calls.receive(*transfer.arriving(number))[0] for number in coming]
            sending = [self._calls.send(*transfer.departing(number))[0] for number in leaving]
            run(keeping)
            keeping = []
            left = len(receiving)
            while left:
                done = receiving[0].Waitsome(receiving) or ()
                left -= len(done)
                for number in done:
                    run(unpacking.get(coming[number], ()))
            if sending:
                sending[0].Waitall(sending)
        run(keeping)  # there was no message


class Sendrecv(Packed):
    """In turn i, `MPI_Sendrecv` to the rank i places after this one, and from the rank i places before it."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = mpi_comm(messages.comm, "sendrecv")
        self._handle, self._kind = comm.handle, comm.datatype(messages.wire)
        self._nobody = comm.nobody
        nothing = slice(0, 0)
        leaving = {part.peer: part.at for part in messages.leaving}
        coming = {part.peer: part.at for part in messages.coming}
        ranks, me = comm.size, comm.rank
        turns = [((me + turn) % ranks, (me - turn) % ranks) for turn in range(ranks)]
        self._turns = [(to, leaving.get(to, nothing), origin, coming.get(origin, nothing)) for to, origin in turns]

    def carry(self, transfer: Transfer) -> None:
        for to, leaves, origin, comes in self._turns:
            send, receive = transfer.packed[leaves], transfer.arrived[comes]
            if not len(send) and not len(receive):
                continue
            if not send.size:
                to = self._nobody
            if not receive.size:
                origin = self._nobody
            self._handle.Sendrecv([send, send.size, self._kind], to, 0, [receive, receive.size, self._kind], origin)
