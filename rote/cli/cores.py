"""How many cores there are, and that threads are no more than these."""

from __future__ import annotations

import os
import platform

from ..errors import RoteError, counted
from ..runtime.comm import Comm

__all__ = ["cores", "refuse_too_many"]


def cores() -> int:
    """How many cores this process may use."""
    return len(_mine())


def refuse_too_many(comm: Comm, threads: int) -> None:
    """Refuse several threads per rank if a host has not as many cores for them. Collective.

    Raises (the same on all ranks):
        RoteError: it has not. One thread per rank is never refused, however many ranks there are.
    """
    if threads == 1:
        return
    told = comm.allgather_object((platform.node(), _mine()))
    for host in dict.fromkeys(host for host, _ in told):
        there = [mine for name, mine in told if name == host]
        free = min(len(frozenset().union(*there)), len(there) * min(map(len, there)))
        wanted, fits = len(there) * threads, free // len(there)
        if wanted > free:
            cure = f"write --threads {fits}, or start fewer ranks" if fits > 1 else "leave --threads out"
            raise RoteError(
                f"{threads} threads on each of {counted(len(there), 'rank')} are {wanted}, and {host} has "
                f"{counted(free, 'core')} for them\n{cure}; mpiexec may bind ranks to fewer cores than there are"
            )


def _mine() -> frozenset[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
