"""Memory that the processes of one node share: each rank makes a part, and maps the parts of the others.

MPI has shared windows for this, but they are freed collectively, which a garbage collector cannot be. A file in memory
without a name is freed by the system when the last process that maps it lets go.
"""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any

import numpy as np

from .comm import Array, Comm

__all__ = ["share"]

_PAGE = mmap.PAGESIZE


def share(comm: Comm, nbytes: int) -> list[Array] | None:
    """Memory of every rank that all ranks of a communicator can read and write; None if some cannot. Collective."""
    mark = secrets.token_bytes(16)
    fd = _make(max(nbytes, 1) + _PAGE)
    try:
        mine = None if fd is None else _map(fd)
        if mine is not None:
            mine[:16] = np.frombuffer(mark, np.uint8)
        told = comm.allgather_object(None if mine is None else (os.getpid(), fd, mark, nbytes))
        found = [mine if rank == comm.rank else _reach(each) for rank, each in enumerate(told)]
        reached = all(comm.allgather_object(all(each is not None for each in found)))
    finally:
        if fd is not None:
            os.close(fd)
    if not reached:
        return None
    return [each[_PAGE : _PAGE + of[3]] for each, of in zip(found, told, strict=True) if each is not None]


def _make(nbytes: int) -> int | None:
    """A file in memory of some length, all of which is there; None if the system has no such thing."""
    try:
        fd = os.memfd_create("rote")
    except (AttributeError, OSError):
        return None
    try:
        os.posix_fallocate(fd, 0, nbytes)  # or a page that is missing later would kill the process
    except OSError:
        os.close(fd)
        return None
    return fd


def _reach(told: Any) -> Array | None:
    """The memory that another rank told of, if it is on this node: under the same number may be another file."""
    if told is None:
        return None
    pid, number, mark, _ = told
    try:
        fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR)
    except OSError:
        return None
    try:
        found = _map(fd)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return found if found[:16].tobytes() == mark else None


def _map(fd: int) -> Array:
    memory = mmap.mmap(fd, 0)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)
