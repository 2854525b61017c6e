"""The cores that a process may use."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> frozenset[int]:
    """The cores that this process may use; mpiexec may bind it to some of those that there are.

    >>> len(cores()) >= 1
    True
    """
    try:
        return frozenset(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not every system has it, nor lets everybody ask
        return frozenset(range(os.cpu_count() or 1))
