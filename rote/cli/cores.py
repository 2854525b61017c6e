"""Threads are no more than there are cores for them."""

from __future__ import annotations

import platform

from ..errors import RoteError, counted
from ..runtime.comm.cores import cores
from ..runtime.comm.protocol import Comm

__all__ = ["refuse_too_many"]


def refuse_too_many(comm: Comm, threads: int) -> None:
    """Refuse several threads per rank if a host has not as many cores for them. Collective.

    Raises (the same on all ranks):
        RoteError: it has not. One thread per rank is never refused, however many ranks there are.
    """
    if threads == 1:
        return
    replies = comm.allgather_object((platform.node(), cores()))
    for host in dict.fromkeys(host for host, _ in replies):
        ranks_cores = [mine for name, mine in replies if name == host]
        free = min(len(frozenset().union(*ranks_cores)), len(ranks_cores) * min(map(len, ranks_cores)))
        wanted, fits = len(ranks_cores) * threads, free // len(ranks_cores)
        if wanted > free:
            cure = f"write --threads {fits}, or start fewer ranks" if fits > 1 else "leave --threads out"
            raise RoteError(
                f"{threads} threads on each of {counted(len(ranks_cores), 'rank')} are {wanted}, and {host} has "
                f"{counted(free, 'core')} for them\n{cure}; mpiexec may bind ranks to fewer cores than there are"
            )
