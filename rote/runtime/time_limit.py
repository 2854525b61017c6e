"""The time that all timing together may take: contests share it, and all ranks agree on what is left of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

import numpy as np

from .comm.protocol import Comm

__all__ = ["TimeLimit", "allowed", "time_limit", "within"]


class TimeLimit:
    """So many seconds from now on; as text, how many they were."""

    __slots__ = ("_until", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds
        self._until = perf_counter() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left by this rank's clock; below 0 if they are over."""
        return self._until - perf_counter()

    def __str__(self) -> str:
        return f"{self.seconds:g} s"


within: ContextVar[TimeLimit | None] = ContextVar("within", default=None)
"""The limit that is in force, if there is one."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let all timing inside take so many seconds together, about; as long as it likes if None. Alike on all ranks.

    Inside of another limit, that one goes on.
    """
    token = within.set(within.get() or (None if seconds is None else TimeLimit(seconds)))
    try:
        yield
    finally:
        within.reset(token)


def allowed(comm: Comm, seconds: float) -> float:
    """The part of some seconds that a contest may take: at most half of what is left, for others follow. Collective.

    The same on all ranks: by the clock of the one that is latest. 0 if nothing is left.

    >>> from rote.runtime import world
    >>> with time_limit(3.0):
    ...     1.4 < allowed(world(), 60.0) <= 1.5, allowed(world(), 1.0)
    (True, 1.0)
    """
    limit = within.get()
    if limit is None:
        return seconds
    left = np.array([limit.left])
    comm.allreduce(left, "min")
    return max(0.0, min(seconds, float(left[0]) / 2))
