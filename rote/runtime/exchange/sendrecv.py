"""One pair of ranks after the other (Duy and Ozaki 2014, section 3.2.1: Sendrecv)."""

from __future__ import annotations

from .calls import mpi_comm
from .messages import Messages, Transfer
from .method import Packed

__all__ = ["Sendrecv"]


class Sendrecv(Packed):
    """In turn i, `MPI_Sendrecv` to the rank i behind this one and from the rank i before it."""

    __slots__ = ("_handle", "_kind", "_nobody", "_turns")

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm = mpi_comm(messages.comm, "sendrecv")
        self._handle, self._kind = comm.handle, comm.datatype(messages.dtype)
        self._nobody = comm.nobody
        nothing = slice(0, 0)
        leaving = {part.peer: part.at for part in messages.leaving}
        coming = {part.peer: part.at for part in messages.coming}
        ranks, me = comm.size, comm.rank
        turns = [((me + turn) % ranks, (me - turn) % ranks) for turn in range(ranks)]
        self._turns = [(to, leaving.get(to, nothing), origin, coming.get(origin, nothing)) for to, origin in turns]

    def carry(self, transfer: Transfer) -> None:
        """Exchange messages with one pair of ranks after the other."""
        for to, leaves, origin, comes in self._turns:
            send, receive = transfer.packed[leaves], transfer.arrived[comes]
            if not len(send) and not len(receive):
                continue
            ends = to if send.size else self._nobody, origin if receive.size else self._nobody
            self._handle.Sendrecv(
                [send, send.size, self._kind], ends[0], 0, [receive, receive.size, self._kind], ends[1]
            )
