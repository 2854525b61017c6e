"""Memory that the processes of one node share: each rank makes a part, and maps the parts of the others.

MPI has shared windows for this, but freeing them is collective, which a garbage collector cannot do. The system frees
an unnamed file in memory when the last process unmaps it. A mapping needs no descriptor, so `share` closes all before
it returns: there is one part per rank of the node, and often a limit of 1024 descriptors.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import warnings
import weakref
from functools import cache
from typing import Any

import numpy as np

from .protocol import Array, Comm

__all__ = ["discard", "lend", "make_part", "reach_part", "share"]

_PAGE = mmap.PAGESIZE
_HUGE = 1 << 21  # bytes of a huge page
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not name; other kernels refuse the advice
_FAILED = ctypes.c_void_p(-1).value  # the result of an mmap that fails

_told = threading.local()  # per rank: whether it, or another rank of one of its communicators, has warned


def share(comm: Comm, nbytes: int) -> list[Array] | None:
    """Memory from every rank that all ranks can read and write; None if some cannot. Collective.

    The first time that the system refuses, one rank warns.
    """
    mark = os.urandom(16)
    fd, parts, fault = None, list[Array](), ""
    try:
        try:
            fd, mine = make_part(mark, nbytes)
        except (AttributeError, OSError, MemoryError) as error:
            fault = str(error)
        offers = comm.allgather_object(None if fault else (os.getpid(), fd, mark, nbytes))
        try:
            if None not in offers:
                parts = [mine if rank == comm.rank else reach_part(*offer) for rank, offer in enumerate(offers)]
        except OSError as error:
            fault = str(error)
        faults = comm.allgather_object(fault)
    finally:
        if fd is not None:
            os.close(fd)
    if any(faults):
        _tell(comm.rank, faults)
        return None
    return parts


def _tell(rank: int, faults: list[str]) -> None:
    """Warn on the lowest rank that was refused, unless it has warned, or seen a warning, before."""
    first = next(n for n, fault in enumerate(faults) if fault)
    if rank == first and not hasattr(_told, "fault"):
        warnings.warn(f"ranks send messages, for they cannot share memory: {faults[first]}", RuntimeWarning, 2)
    _told.fault = faults[first]


def _length(nbytes: int) -> int:
    """The size of a file in bytes: a page for its mark, and the memory itself."""
    return _PAGE + max(nbytes, 1)


def make_part(mark: bytes, nbytes: int) -> tuple[int, Array]:
    """Make a part of shared memory, identified by a mark: its descriptor, through which others map it, and its bytes.

    Raises:
        AttributeError, OSError: the system does not support it, or refuses it now.
        MemoryError: the machine has not so much memory.
    """
    np.empty(nbytes, np.uint8)  # refused if it is beyond all memory; a file would grow until the system kills a process
    fd = os.memfd_create("rote")
    try:
        os.posix_fallocate(fd, 0, _length(nbytes))  # else a page that cannot be had later would kill the process
        memory = _map(fd, _length(nbytes))
    except BaseException:
        os.close(fd)
        raise
    _system().madvise(memory.__array_interface__["data"][0], memory.nbytes, _POPULATE_WRITE)  # faster than page faults
    memory[:16] = np.frombuffer(mark, np.uint8)
    return fd, memory[_PAGE : _PAGE + nbytes]


def reach_part(pid: int, number: int, mark: bytes, nbytes: int) -> Array:
    """Map the part that another process has made.

    Raises:
        OSError: it cannot be mapped, or the number stands for another file, on another node or in a container.
    """
    path = f"/proc/{pid}/fd/{number}"
    fd = os.open(path, os.O_RDWR)
    try:
        same = os.fstat(fd).st_size == _length(nbytes)
        memory = _map(fd, _length(nbytes)) if same else None
    finally:
        os.close(fd)
    if memory is None or memory[:16].tobytes() != mark:
        raise OSError(f"{path} is not what another rank has made")
    return memory[_PAGE : _PAGE + nbytes]


def discard(part: Array) -> None:
    """Give the pages of a part back to the system, even if processes have it mapped; they then read zeros."""
    if part.nbytes:
        _system().madvise(part.__array_interface__["data"][0], part.nbytes, mmap.MADV_REMOVE)


def lend(memory: Array) -> None:
    """Let the system take the pages of private memory if it runs short; otherwise they stay for the next use.

    Only whole huge pages are offered, so that none is split. No effect if the system does not support this.
    """
    begin = memory.__array_interface__["data"][0]
    first, last = -(-begin // _HUGE) * _HUGE, (begin + memory.nbytes) // _HUGE * _HUGE
    if first < last and hasattr(mmap, "MADV_FREE"):
        _system().madvise(first, last - first, mmap.MADV_FREE)


def _map(fd: int, length: int) -> Array:
    """Map the bytes of a file. Python's `mmap` is not used, since it keeps a descriptor of its own."""
    return np.asarray(_Mapping(fd, length))


class _Mapping:
    """The pages of a file, unmapped when the last array on them is gone."""

    def __init__(self, fd: int, length: int) -> None:
        system = _system()
        address = system.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        weakref.finalize(self, system.munmap, address, length).atexit = False
        if hasattr(mmap, "MADV_HUGEPAGE"):
            system.madvise(address, length, mmap.MADV_HUGEPAGE)  # only advice: a kernel without huge pages refuses it
        self.__array_interface__ = {"data": (address, False), "shape": (length,), "typestr": "|u1", "version": 3}


@cache
def _system() -> Any:
    """The functions of the C library that Python does not offer in this form."""
    calls = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    calls.mmap.argtypes, calls.mmap.restype = (address, size, number, number, number, ctypes.c_long), address
    calls.munmap.argtypes = (address, size)
    calls.madvise.argtypes = (address, size, number)
    return calls
