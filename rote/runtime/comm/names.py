"""The names of mpi4py's communicators, and which of Rote's to write for them; imported when one is missed."""

from __future__ import annotations

__all__ = ["missing"]

_NAMES = {
    "Get_rank": "comm.rank",
    "Get_size": "comm.size",
    "Split": "comm.split(color, key)",
    "Barrier": "comm.barrier()",
    "Bcast": "comm.bcast(buffer, root)",
    "Reduce": 'comm.reduce(buffer, "sum", root)',
    "Allreduce": 'comm.allreduce(buffer, "sum"), which sums in place',
    "Allgatherv": "comm.allgatherv(send, recv, counts)",
    "Alltoallv": "comm.alltoallv(send, send_counts, recv, recv_counts)",
    **dict.fromkeys(("allgather", "gather", "alltoall"), "comm.allgather_object(value)"),
    **dict.fromkeys(("send", "recv", "Send", "Recv"), "x.redistribute(layout), or ask mpi4py's own communicator"),
}


def missing(comm: object, name: str) -> str:
    """Say that a communicator has no attribute of this name, and for one of mpi4py's what to write.

    >>> print(missing(object(), "Get_rank"))
    'object' object has no attribute 'Get_rank'
    write comm.rank
    """
    cure = f"\nwrite {_NAMES[name]}" if name in _NAMES else ""
    return f"{type(comm).__name__!r} object has no attribute {name!r}{cure}"
