"""MPI objects that are no longer used are freed here, at known times.

The garbage collector may run in the middle of any call, on any thread. If mpi4py holds its locks then, freeing a
communicator would wait for them for ever; and another thread may be in a call of MPI.
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
    """MPI objects whose holders are gone. They are freed when the next ones are made.

    Args:
        finalized: whether MPI has been finalized; then there is nothing to free.
        failure: the type of the exceptions that MPI raises.
    """

    def __init__(self, finalized: Callable[[], bool], failure: type[Exception]) -> None:
        self._finalized, self._failure = finalized, failure
        self._handles: deque[Any] = deque()

    def when_gone(self, holder: object, handles: Iterable[Any]) -> weakref.finalize[[Iterable[Any]], Any]:
        """Collect the handles when their holder is gone; not at exit, where MPI frees them itself."""
        gone = weakref.finalize(holder, self._handles.extend, handles)
        gone.atexit = False  # a rank that failed must not wait for others there
        return gone

    def free(self) -> None:
        """Free the collected handles."""
        with suppress(IndexError):  # there are none, or another thread has taken the last
            while not self._finalized():
                handle = self._handles.popleft()
                if handle:  # a handle that was freed before is MPI's null handle
                    handle.Free()

    def make(self, make: Callable[[], T]) -> T:
        """Make a communicator. MPICH has 2048; if none is left, free those in garbage cycles and try again.

        Collective. A failure is collective too: a communicator must be unused on all ranks, and each rank collects its
        own garbage.
        """
        self.free()
        try:
            return make()
        except self._failure:
            gc.collect()
            self.free()
            return make()
