"""MPI's objects that nobody holds any more, freed at times that are known.

The garbage collector comes in the middle of any call, on any thread: also where mpi4py holds its locks, for which a
communicator that is freed then would wait for ever, or beside a call of MPI's on another thread.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["UnusedHandles"]

T = TypeVar("T")


class UnusedHandles:
    """MPI's objects whose holders are gone: they are freed when the next ones are made.

    Args:
        finalized: whether MPI has ended, which leaves nothing to free.
        failure: what MPI raises.
    """

    def __init__(self, finalized: Callable[[], bool], failure: type[Exception]) -> None:
        self._finalized, self._failure = finalized, failure
        self._handles: deque[Any] = deque()

    def when_gone(self, holder: object, handles: Iterable[Any]) -> weakref.finalize[[Iterable[Any]], Any]:
        """Take these as soon as their holder is gone; not at the end, where MPI ends by itself."""
        gone = weakref.finalize(holder, self._handles.extend, handles)
        gone.atexit = False  # a rank that failed must not wait for others there
        return gone

    def free(self) -> None:
        """Free what has come together."""
        with suppress(IndexError):  # there is none, or another thread has taken the last
            while not self._finalized():
                handle = self._handles.popleft()
                if handle:  # freed before, it is MPI's null
                    handle.Free()

    def make(self, make: Callable[[], T]) -> T:
        """A communicator, of which MPICH has 2048: where none is left, those in cycles of garbage are freed first.

        Collective, and so is a failure: what is made must be unused on all ranks, and each collects its own garbage.
        """
        self.free()
        try:
            return make()
        except self._failure:
            gc.collect()
            self.free()
            return make()
