"""Memory that the ranks of a communicator share, as workspace of all its exchanges: two halves that take turns.

What a rank writes into its half before a barrier, others read after it. They may still be reading when it goes on to
the next exchange, which has the other half; and when it comes back to this one, there was a barrier in between.
"""

from __future__ import annotations

from typing import cast

from .comm import Array, Comm

__all__ = ["Room"]

_LINE = 64  # bytes: each half begins with a line of the cache


class Room:
    """The shared memory of one communicator; found and grown by `of`."""

    __slots__ = ("_halves", "_sizes", "_turn")

    def __init__(self, ranks: int) -> None:
        self._sizes = [0] * ranks
        self._halves: tuple[list[Array], list[Array]] = [], []
        self._turn = 0

    @classmethod
    def of(cls, comm: Comm, nbytes: int) -> Room | None:
        """The room of a communicator, in which this rank has so many bytes or more in each half. Collective.

        None, on all ranks, if they cannot share memory.
        """
        found = cast("Room | None", comm.cache.setdefault("room", cls(comm.size)))
        needs = comm.allgather_object(max(-(-nbytes // _LINE), 1) * _LINE)
        if found is not None and any(need > size for need, size in zip(needs, found._sizes, strict=True)):
            found._halves = [], []  # the old memory goes before the new comes
            found._sizes = [max(pair) for pair in zip(needs, found._sizes, strict=True)]
            shared = comm.share(2 * found._sizes[comm.rank])
            if shared is None:
                found = comm.cache["room"] = None
            else:
                pairs = list(zip(shared, found._sizes, strict=True))
                found._halves = [memory[:n] for memory, n in pairs], [memory[n:] for memory, n in pairs]
        return found

    def take(self) -> list[Array]:
        """The halves of all ranks whose turn it is."""
        self._turn = 1 - self._turn
        return self._halves[self._turn]
