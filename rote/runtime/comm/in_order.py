"""Reductions of floats in rank order, ((a0 + a1) + a2) + …, by processes that share memory.

MPI chooses the order in which its own reductions combine contributions, and how they compare NaNs. Threads and
`simulate` combine in rank order. Processes of one node do so here, and so every transport gives the same bits.

Few elements are gathered on every rank, which combines them all: one call of MPI, on any number of nodes. Of many, each
rank writes its contributions into memory that all ranks read, waits for the others, and combines a part, which all
ranks read after another barrier. There are two such memories, which take turns: when all ranks have come to a barrier,
none reads what was written before the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate
from typing import Any

import numpy as np

from ...layout.layout import Op
from .chunks import chunks, combined
from .protocol import Array, Comm

__all__ = ["InOrder", "reduced", "rounds"]

_TILE = 1 << 19  # bytes of each of the two memories of a rank
_FEW = 1 << 14  # bytes of all ranks together, up to which each rank combines all elements


def rounds(comm: Comm, dtype: np.dtype[Any], op: Op) -> bool:
    """Whether the order of a reduction shows in its bits: not of integers, nor of what two ranks add or multiply."""
    return dtype.char in "fdgFDG" and dtype.isnative and comm.size >= (3 if op in ("sum", "prod") else 2)


def reduced(comm: Comm, buffer: Array, op: Op, root: int | None = None) -> bool:
    """Combine the buffers of all ranks, in place on the root, or on all ranks if there is none. Collective.

    Returns:
        False, and nothing is done, for what MPI may reduce: what does not round, and many elements of several nodes.
    """
    if not rounds(comm, buffer.dtype, op):
        return False
    if buffer.nbytes * comm.size <= _FEW:
        rows = np.empty((comm.size, buffer.size), buffer.dtype)
        comm.allgatherv(buffer, rows.reshape(-1), [buffer.size] * comm.size)
        if root is None or root == comm.rank:
            buffer[...] = _combined(list(rows), op)
        return True
    in_order = InOrder.of(comm)
    if in_order is not None:
        in_order.reduce(comm, buffer, op, root)
    return in_order is not None


class InOrder:
    """Reductions on one communicator, which keeps this in its cache; so this does not keep the communicator."""

    __slots__ = ("_memory", "_turn", "_views")

    def __init__(self, memory: Sequence[Array]) -> None:
        self._memory, self._turn = memory, 0
        self._views: dict[np.dtype[Any], list[list[Array]]] = {}

    @classmethod
    def of(cls, comm: Comm) -> InOrder | None:
        """The reductions of a communicator; None if its ranks cannot share memory. Collective."""
        if "in order" not in comm.cache:
            memory = comm.allocate_shared(2 * _TILE)
            comm.cache["in order"] = None if memory is None else cls(memory)
        found: InOrder | None = comm.cache["in order"]
        return found

    def reduce(self, comm: Comm, buffer: Array, op: Op, root: int | None = None) -> None:
        """Combine large buffers of all ranks, in place on the root, or on all ranks if there is none. Collective."""
        size, me = comm.size, comm.rank
        receives = root is None or root == me
        for chunk in chunks(buffer, _TILE // buffer.itemsize):
            rows, n = self._next(buffer.dtype), chunk.size
            rows[me][:n] = chunk
            comm.barrier()
            ends = [n * rank // size for rank in range(size + 1)]
            own = slice(ends[me], ends[me + 1])
            rows[me][own] = _combined([row[own] for row in rows], op)
            comm.barrier()
            if receives:
                for row, start, end in zip(rows, ends[:-1], ends[1:], strict=True):
                    chunk[start:end] = row[start:end]

    def reduce_scatter(self, comm: Comm, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        """Give every rank its part of the combined `send`, some elements of all parts at a time. Collective."""
        most = _TILE // send.itemsize // comm.size
        starts = [0, *accumulate(counts)]
        for first in range(0, max(counts), most):
            rows = self._next(send.dtype)
            own = rows[comm.rank]
            for rank, count in enumerate(counts):
                n = min(max(count - first, 0), most)
                own[rank * most : rank * most + n] = send[starts[rank] + first : starts[rank] + first + n]
            comm.barrier()
            part, at = recv[first : first + most], comm.rank * most
            if part.size:
                part[...] = _combined([row[at : at + part.size] for row in rows], op)

    def _next(self, dtype: np.dtype[Any]) -> list[Array]:
        """The memories of all ranks that are written next."""
        views = self._views.get(dtype)
        if views is None:
            halves = [[each[at : at + _TILE] for each in self._memory] for at in (0, _TILE)]
            views = self._views[dtype] = [[each.view(dtype) for each in half] for half in halves]
        self._turn = 1 - self._turn
        return views[self._turn]


def _combined(rows: Sequence[Array], op: Op) -> Array:
    """The rows combined in rank order.

    What NumPy raises or warns of is left out, because one rank alone would raise it, between two barriers. Inside
    `floating_errors` NumPy calls a function in place of raising, and this goes on.
    """
    with nullcontext() if "call" in np.geterr().values() else np.errstate(all="ignore"):
        return combined(rows, op)
