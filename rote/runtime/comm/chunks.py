"""Buffers of more elements than one call of MPI can count (before MPI 4, 2**31 - 1), and buffers combined in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from ...errors import CommError
from ...layout.layout import Op
from .protocol import Array, Comm

__all__ = ["chunks", "combined", "gather_in_turn", "no_operation", "reduce_in_turn"]

# On bool, add is the logical or, and multiply the logical and, as the protocol demands.
_UFUNCS: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def combined(buffers: Sequence[Array], op: Op) -> Array:
    """The buffers of all ranks combined in rank order, ((a0 + a1) + a2) + …: the same bits on every transport.

    >>> combined([np.array([1e16]), np.array([1.0]), np.array([-1e16])], "sum")
    array([0.])
    """
    if op not in _UFUNCS:
        raise no_operation(op)
    total = buffers[0].copy()
    for buffer in buffers[1:]:
        _UFUNCS[op](total, buffer, out=total)
    return total


def no_operation(op: object) -> CommError:
    """The error for an operation that Rote's own calls do not have."""
    return CommError(
        f'an array is combined in place by "sum", "max", "min" or "prod", not {op!r}\n'
        "write comm.allreduce(value, op), as with mpi4py, for any other function"
    )


def chunks(buffer: Array, most: int) -> Iterator[Array]:
    """Cut a buffer into chunks of at most `most` elements; an empty buffer is one chunk.

    >>> [len(chunk) for chunk in chunks(np.zeros(5), 2)], [len(chunk) for chunk in chunks(np.zeros(0), 2)]
    ([2, 2, 1], [0])
    """
    for start in range(0, max(buffer.size, 1), most):
        yield buffer[start : start + most]


def gather_in_turn(comm: Comm, send: Array, recv: Array, counts: Sequence[int]) -> None:
    """An allgatherv as a sequence of broadcasts, one from each rank."""
    for rank, (end, count) in enumerate(zip(accumulate(counts), counts, strict=True)):
        part = recv[end - count : end]
        if rank == comm.rank:
            part[...] = send
        comm.bcast_in_place(part, rank)


def reduce_in_turn(comm: Comm, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
    """A reduce_scatter as a sequence of reductions, one to each rank."""
    for rank, (end, count) in enumerate(zip(accumulate(counts), counts, strict=True)):
        part = np.array(send[end - count : end])
        comm.reduce_in_place(part, op, rank)
        if rank == comm.rank:
            recv[...] = part
