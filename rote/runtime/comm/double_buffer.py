"""Memory that the ranks of a communicator share, as workspace of all its exchanges and walks: two halves.

What a rank writes into its half before a barrier, others read after it. They may still be reading when it goes on: it
writes into the other half then. When it comes back to this one, there was a barrier in between.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from .protocol import Array, Comm

__all__ = ["DoubleBuffer"]

_LINE = 64  # bytes of a line of the cache, with which each half begins: so it is whole items of any dtype


class Tenant(Protocol):
    """A holder of views of the two halves."""

    def leave(self) -> None:
        """Let go of all views: the halves are about to be others."""
        ...


class DoubleBuffer:
    """The shared memory of one communicator, which lives as long as anybody holds it; looked up and grown by `of`.

    Attributes:
        comm: of the ranks.
        halves: per rank, both.
        read: which of them others may be reading since the last barrier; -1 for none.
        tenants: whom to tell when the halves grow.
    """

    __slots__ = ("__weakref__", "_size", "comm", "halves", "read", "tenants")

    def __init__(self, comm: Comm) -> None:
        self.comm: Comm = comm
        self.halves: list[tuple[Array, Array]] = []
        self.read: int = -1
        self.tenants: weakref.WeakSet[Tenant] = weakref.WeakSet[Tenant]()
        self._size = 0

    @classmethod
    def of(cls, comm: Comm, nbytes: int) -> DoubleBuffer | None:
        """The double buffer of a communicator, in each half of which this rank has so many bytes or more. Collective.

        None, on all ranks and from then on, if they cannot share memory.
        """
        kept = comm.cache.get("double buffer", lambda: None)
        if kept is None:
            return None
        double_buffer: DoubleBuffer = kept() or cls(comm)
        comm.cache["double buffer"] = weakref.ref(double_buffer)
        sizes = comm.allgather_object((max(-(-nbytes // _LINE), 1) * _LINE, double_buffer._size))
        if any(need > size for need, size in sizes) and not double_buffer._grow([max(pair) for pair in sizes]):
            comm.cache["double buffer"] = None
            return None
        return double_buffer

    def _grow(self, sizes: list[int]) -> bool:
        """Get halves of other sizes; whether that was possible."""
        self.halves = []  # the old memory goes before the new comes
        for tenant in [*self.tenants]:
            tenant.leave()
        self._size = sizes[self.comm.rank]
        memories = self.comm.allocate_shared(2 * self._size)
        if memories is None:
            return False
        self.halves = [(memory[:size], memory[size:]) for memory, size in zip(memories, sizes, strict=True)]
        self.read = -1
        return True

    @property
    def free(self) -> int:
        """The half that nobody else is reading."""
        return int(self.read == 0)

    def next_half(self) -> list[Array]:
        """The free halves of all ranks, which are read after the next barrier."""
        self.read = self.free
        return [pair[self.read] for pair in self.halves]

    def meet(self) -> None:
        """Wait for all ranks: whatever they wrote is there, and they have read what they wanted."""
        self.comm.barrier()
        self.read = -1
