"""No packing: MPI itself picks the elements out of the blocks, by datatypes (Dalcin et al. 2019, listings 2 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copy.regions import offsets, whole
from .calls import mpi_comm
from .messages import Messages, Transfer
from .method import Method

__all__ = ["Alltoallw"]


class Alltoallw(Method):
    """`MPI_Alltoallw` with a datatype per message, made once. For steps that only move elements."""

    __slots__ = ("_handle", "_made", "_receiving", "_sending")
    unpacks = False

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "alltoallw")
        self._handle = comm.handle
        super().__init__()
        kind = comm.datatype(messages.dtype)
        leaving, coming = offsets(messages.step.before, messages.step.after, messages.rank)
        self._made: list[Any] = []  # MPI's datatypes are freed with these
        ends = []
        for parts, offsets_of in ((messages.leaving, leaving), (messages.coming, coming)):
            types, counts = [kind] * comm.size, [0] * comm.size
            for part in parts:
                if part.region.size:
                    places = [each * messages.dtype.itemsize for each in offsets_of[part.region.peer]]
                    self._made.append(comm.product(kind, places))
                    types[part.peer], counts[part.peer] = self._made[-1].kind, 1
            ends.append((counts, [0] * comm.size, types))
        self._sending, self._receiving = ends

    def __call__(self, transfer: Transfer) -> None:
        block, out = transfer.block, transfer.out
        if transfer.before:
            block = np.empty_like(block)
            whole(block.shape).copy(transfer.block, block, before=transfer.before)
        (counts, displacements, types), (receives, at, kinds) = self._sending, self._receiving
        self._handle.Alltoallw(
            [block, (counts, displacements), types],
            [out, (receives, at), kinds],
        )
        Transfer(transfer.messages, block, out, transfer.packed, transfer.arrived).copy_kept()
        if transfer.after:
            whole(out.shape).copy(out, out, after=transfer.after)
