"""Messages are unpacked as they come (Duy and Ozaki 2014, section 3.2.1: Isend_Waitsome)."""

from __future__ import annotations

import numpy as np

from .calls import Calls, rounds
from .messages import Messages, Transfer
from .method import Method

__all__ = ["Waitsome"]


class Waitsome(Method):
    """`MPI_Isend` and `MPI_Irecv`, then `MPI_Waitsome`: what has come is unpacked while the rest is on its way.

    Where the order matters, as in a reduction, or where there is no place yet, all are awaited first.
    """

    __slots__ = ("_calls", "_ordered", "_rounds")
    unpacks = False

    def __init__(self, messages: Messages, together: int | None = None) -> None:
        self._calls = Calls(messages, "waitsome")
        self._rounds = rounds(messages, together)
        self._ordered = messages.ordered
        super().__init__(messages.sizes)

    def __call__(self, transfer: Transfer) -> None:
        transfer.pack()
        waits = self._ordered or np.may_share_memory(transfer.out, transfer.packed)
        kept = waits
        for leaving, coming in self._rounds:
            receiving = [self._calls.receive(*transfer.arriving(number))[0] for number in coming]
            sending = [self._calls.send(*transfer.departing(number))[0] for number in leaving]
            if not kept:  # meanwhile
                transfer.copy_kept()
                kept = True
            left = len(receiving)
            while left:
                done = receiving[0].Waitsome(receiving) or ()
                left -= len(done)
                for number in () if waits else done:
                    transfer.unpack_one(coming[number], transfer.arriving(coming[number])[0])
            if sending:
                sending[0].Waitall(sending)
        if waits:
            transfer.unpack()
            return
        if not kept:
            transfer.copy_kept()
        transfer.scale_late()
