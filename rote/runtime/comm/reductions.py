"""Reductions of floats in rank order, ((a0 + a1) + a2) + …, by processes that share memory; and calls in chunks.

MPI chooses the order in which its own reductions combine contributions, and how they compare NaNs. Threads and
`simulate` combine in rank order. Processes of one node do so here, and so every transport gives the same bits.

Few elements are gathered on every rank, which combines them all: one call of MPI, on any number of nodes. Of many, each
rank writes its contributions into a half of a `DoubleBuffer`, waits for the others, and combines a part, which all
ranks read after another barrier.

Buffers of more elements than one call of MPI can count (before MPI 4, 2**31 - 1) are cut into chunks, or go from or to
one rank after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from typing import Any

import numpy as np

from ...errors import CommError
from ...layout.layout import Op
from ..regions import REDUCE
from .cache import DoubleBuffer
from .protocol import Array, Comm

__all__ = ["chunks", "combine", "combined", "gather_in_turn", "no_operation", "reduce_in_order", "reduce_in_turn"]
__all__ += ["reduce_scatter_in_order"]

_TILE = 1 << 19  # the most bytes of each half of a rank's memory
_GRAIN = 1 << 15  # bytes; the size of a half is a multiple, so that it seldom grows
_AT_ONCE = 1 << 16  # bytes of a result that are combined at once
_FEW = 1 << 14  # bytes of all ranks together, up to which each rank combines all elements


def reduce_in_order(comm: Comm, buffer: Array, op: Op, root: int | None = None) -> bool:
    """Combine the buffers of all ranks, in place on the root, or on all ranks if there is none. Collective.

    Returns:
        False, and nothing is done, for what MPI may reduce: what does not round, and many elements of several nodes.
    """
    if not _depends_on_order(comm, buffer.dtype, op):
        return False
    size, me, receives = comm.size, comm.rank, root is None or root == comm.rank

    if buffer.nbytes * size <= _FEW:
        gathered = np.empty((size, buffer.size), buffer.dtype)
        comm.allgatherv(buffer, gathered.reshape(-1), [buffer.size] * size)
        if receives:
            with _quiet():
                combine(list(gathered), op, [buffer])
        return True

    memory = _memory_of(comm, buffer.nbytes)
    if memory is None:
        return False

    # Each rank writes its row and combines one column, which then holds the result for all to read:
    #
    #   rank 0   | a0  b0  c0 |            | a   b0  c0 |
    #   rank 1   | a1  b1  c1 |  barrier   | a1  b   c1 |  barrier   a b c
    #   rank 2   | a2  b2  c2 |            | a2  b2  c  |
    for chunk in chunks(buffer, memory.nbytes // buffer.itemsize):
        rows, n = _next_rows(memory, buffer.dtype), chunk.size
        rows[me][:n] = chunk
        comm.barrier()

        ends = [n * rank // size for rank in range(size + 1)]
        column = slice(ends[me], ends[me + 1])
        with _quiet():
            combine([row[column] for row in rows], op, [rows[me][column]])
        comm.barrier()
        if receives:
            for row, start, end in zip(rows, ends[:-1], ends[1:], strict=True):
                chunk[start:end] = row[start:end]
    return True


def reduce_scatter_in_order(comm: Comm, send: Array, recv: Array, counts: Sequence[int], op: Op) -> bool:
    """Give every rank its part of the combined `send`, some elements of all parts at a time. Collective.

    Returns:
        False, and nothing is done, for what MPI may reduce, as `reduce_in_order` says.
    """
    ordered = _depends_on_order(comm, send.dtype, op)
    memory = _memory_of(comm, max(counts) * comm.size * send.itemsize) if ordered else None
    if memory is None:
        return False

    # The memory of a rank holds `most` elements for each rank, of which there may be fewer:  | for 0 | for 1 | … |
    most = memory.nbytes // send.itemsize // comm.size
    starts = [0, *accumulate(counts)]
    for first in range(0, max(counts), most):
        rows = _next_rows(memory, send.dtype)
        for rank, count in enumerate(counts):
            n = min(max(count - first, 0), most)
            rows[comm.rank][rank * most : rank * most + n] = send[starts[rank] + first : starts[rank] + first + n]
        comm.barrier()

        part, at = recv[first : first + most], comm.rank * most
        with _quiet():
            combine([row[at : at + part.size] for row in rows], op, [part])
    return True


def _depends_on_order(comm: Comm, dtype: np.dtype[Any], op: Op) -> bool:
    """Whether the order of a reduction shows in its bits: not of integers, nor of what two ranks add or multiply."""
    return dtype.char in "fdgFDG" and dtype.isnative and comm.size >= (3 if op in ("sum", "prod") else 2)


def _memory_of(comm: Comm, nbytes: int) -> DoubleBuffer | None:
    """The memory of a communicator for reductions of so many bytes; None if its ranks cannot share memory. Collective.

    Each half holds all bytes, up to a limit, and has one size on all ranks.
    """
    if "in order" not in comm.cache:
        comm.cache["in order"] = DoubleBuffer(comm)
    memory: DoubleBuffer | None = comm.cache["in order"]

    size = min(max(-(-nbytes // _GRAIN), 1) * _GRAIN, _TILE)
    if memory is not None and memory.nbytes < size and not memory.grow([size] * comm.size):
        memory = comm.cache["in order"] = None
    return memory


def _next_rows(memory: DoubleBuffer, dtype: np.dtype[Any]) -> list[Array]:
    """The halves of all ranks that are written next."""
    return [half.view(dtype) for half in memory.next_piece(halved=True)[1]]


def _quiet() -> AbstractContextManager[object]:
    """Leave out what NumPy raises or warns of, because one rank alone would raise it, between two barriers.

    Inside `floating_errors` NumPy calls a function in place of raising, and this goes on.
    """
    return nullcontext() if "call" in np.geterr().values() else np.errstate(all="ignore")


def combine(buffers: Sequence[Array], op: Op, targets: Sequence[Array]) -> None:
    """Combine the buffers of all ranks in rank order, as `combined`, into targets, which may be among the buffers.

    >>> total = np.zeros(1)
    >>> combine([np.array([1.0]), np.array([2.0]), total], "max", [total])
    >>> total
    array([2.])
    """
    number = _AT_ONCE // buffers[0].itemsize
    for start in range(0, max(buffers[0].size, 1), number):
        tile = slice(start, start + number)
        total = combined([buffer[tile] for buffer in buffers], op)
        for target in targets:
            target[tile] = total


def combined(buffers: Sequence[Array], op: Op) -> Array:
    """The buffers of all ranks combined in rank order, ((a0 + a1) + a2) + …: the same bits on every transport.

    >>> combined([np.array([1e16]), np.array([1.0]), np.array([-1e16])], "sum")
    array([0.])
    """
    if op not in REDUCE:
        raise no_operation(op)
    total = buffers[0].copy()
    for buffer in buffers[1:]:
        REDUCE[op](total, buffer, out=total)
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
