"""One collective call that MPI prepares once (MPI 4): it is started again and again, on memory of its own."""

from __future__ import annotations

import numpy as np

from ...errors import CommError
from .calls import mpi_comm
from .messages import Messages, Transfer
from .method import Method

__all__ = ["Persistent"]


class Persistent(Method):
    """`MPI_Alltoallv_init`."""

    __slots__ = ("_found", "_packed", "_request")

    def __init__(self, messages: Messages) -> None:
        comm = mpi_comm(messages.comm, "persistent")
        kind = comm.datatype(messages.dtype)
        super().__init__(held=sum(messages.sizes) * messages.dtype.itemsize)
        self._packed, arrived = (np.empty(size, messages.dtype) for size in messages.sizes)
        self._found = [arrived[part.at] for part in messages.coming]
        try:
            self._request = comm.handle.Alltoallv_init(
                [self._packed, (messages.sends, None), kind], [arrived, (messages.receives, None), kind]
            )
        except NotImplementedError:
            raise CommError(
                "this MPI has no persistent collectives, which came with MPI 4\nwrite method='auto' or 'alltoallv'"
            ) from None

    def __call__(self, transfer: Transfer) -> None:
        transfer.pack(self._packed)
        self._request.Start()
        transfer.unpack_after(self._request.Wait, self._found)
