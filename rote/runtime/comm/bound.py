"""Objects that live in one run, of which each rank has its own; communicators say what to write for mpi4py's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

__all__ = ["BoundToRun", "RankComm"]

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


class BoundToRun:
    """An object of which this run has one on each rank: a copy is itself, and it is not pickled."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is not pickled, for it lives in this run only\n"
            "where the pickle is read, take the communicator that rote.run gives there, and make the rest anew"
        )


class RankComm(BoundToRun):
    """A communicator that answers to the protocol's names, and to mpi4py's by saying which those are."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

        def __getattr__(self, name):
            """Refuse a name that communicators do not have."""
            cure = f"\nwrite {_NAMES[name]}" if name in _NAMES else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{cure}", name=name, obj=self)
