"""Buffers of more elements than one call of MPI can count: before MPI 4, 2**31 - 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from ...layout.layout import Op
from .protocol import Array, Comm

__all__ = ["chunks", "gather_in_turn", "reduce_in_turn"]


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
        comm.bcast(part, rank)


def reduce_in_turn(comm: Comm, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
    """A reduce_scatter as a sequence of reductions, one to each rank."""
    for rank, (end, count) in enumerate(zip(accumulate(counts), counts, strict=True)):
        part = np.array(send[end - count : end])
        comm.reduce(part, op, rank)
        if rank == comm.rank:
            recv[...] = part
