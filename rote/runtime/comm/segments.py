"""Segments: reused memory for blocks, some of which other processes of the node can map to read blocks directly.

A shared segment is a file in memory, which a peer opens through /proc. To make one costs as much as several copies of
it. So only blocks that may be read repeatedly get one (those of new tensors and of bound moves), and blocks of a size
that had to be packed before. A segment whose block is gone is kept for the next block.

A rank that reads a block meets its owner before and after. In between no other block may take its place.

A large block that no other process reads lies in a private segment: otherwise the C library would give its pages back
to the system when the block is gone, and getting pages for the next block would take as long as copying it.

The halves of shared memory that ranks exchange data through are such files, too: `share` makes one per rank. MPI has
shared windows for this, but freeing them is collective, which a garbage collector cannot do. The system frees an
unnamed file in memory when the last process unmaps it. A mapping needs no descriptor, so `share` closes all before it
returns: there is one part per rank of the node, and often a limit of 1024 descriptors.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import threading
import warnings
import weakref
from collections import deque
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized, register
from .protocol import Array, Comm

__all__ = ["LEAST", "LINE", "BlockAddress", "address_of", "at_line", "empty", "expect", "reach", "share"]

LEAST = 1 << 16
"""Bytes from which on it pays to read a block directly: the second meeting costs as much as copying so many bytes."""

LINE = 64
"""Bytes of a cache line. MKL takes up to 2.4 times as long if the vectors that it stores lie across two lines."""

_ANYWHERE = 1 << 12  # bytes of a block whose memory may begin anywhere: to find a line takes as long as to fill it
_GRAIN = 1 << 12  # bytes; the size of a segment is a multiple, so that blocks of nearly one size can reuse it
_LARGE = 1 << 23  # bytes from which on the C library does not keep a block's pages
_IDLE = 1 << 26  # bytes of segments without a block that may always be kept
_RECENT = 16  # the last blocks; as many bytes as were in use at once while they were made may be kept
_MOST = 64  # the most segments that others can map; each holds a descriptor
_SIZES = 64  # sizes of packed blocks that are remembered
_MARK = struct.Struct("=qq")
_PAGE = mmap.PAGESIZE
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not name; other kernels refuse the advice
_FAILED = ctypes.c_void_p(-1).value  # the result of an mmap that fails


class BlockAddress(NamedTuple):
    """The address of a block, for other processes. It consists of integers only, so that `allgatherv` can carry it.

    Attributes:
        pid, fd: the process that owns the segment, and its descriptor there; 0 if the block is in no segment.
        mark, more: the first bytes of the segment's file, which are unique to it.
        size: bytes of the segment.
        offset: bytes before the block.
    """

    pid: int = 0
    fd: int = 0
    mark: int = 0
    more: int = 0
    size: int = 0
    offset: int = 0


@dataclass(eq=False, slots=True)
class _Memory:
    """A segment of a process: its address, if other processes can map it, and its bytes."""

    pid: int
    address: BlockAddress | None
    memory: Array

    @classmethod
    def make(cls, size: int, mappable: bool) -> _Memory:
        if not mappable:
            return cls(os.getpid(), None, at_line(size))
        text = os.urandom(_MARK.size)
        mark, more = _MARK.unpack(text)
        fd, memory = _make_part(text, size)
        return cls(os.getpid(), BlockAddress(os.getpid(), fd, mark, more, size), memory)


class _BlockBase:
    """The base object of a block in a segment: when the last array on it is gone, the segment is given back."""

    def __init__(self, segment: _Memory) -> None:
        self.segment = segment
        self.__array_interface__ = segment.memory.__array_interface__
        weakref.finalize(self, _pool.give_back, segment).atexit = False


class _Pool:
    """The segments of this process, and which sizes of blocks others have read."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.expected = False
        self.refused = False
        self.sizes: deque[int] = deque(maxlen=_SIZES)
        self.lock = threading.Lock()
        self.idle: list[_Memory] = []  # in the order in which they were given back
        self.in_use = 0  # bytes
        self.number = 0  # of segments that others can map
        self._recent: deque[int] = deque(maxlen=_RECENT)  # bytes in use after each of the last segments was taken
        self._calls = [0, 0]  # calls that found a segment, and calls that did not
        self._returned: deque[_Memory] = deque()

    def take(self, nbytes: int, mappable: bool) -> _Memory | None:
        """A segment of `nbytes` bytes or a few more, which others can map if `mappable`; None if it cannot be had."""
        with self.lock:
            self._settle()
            size = -(-nbytes // _GRAIN) * _GRAIN
            fits = list[int]()
            for n, segment in enumerate(self.idle):
                if (segment.address is not None) == mappable and size <= segment.memory.size <= size + size // 4:
                    fits.append(n)

            if fits:
                segment = self.idle.pop(fits[-1])
            elif mappable and (self.refused or not self._has_room()):
                return None
            else:
                try:
                    segment = _Memory.make(size, mappable)
                except (AttributeError, OSError):
                    self.refused = True
                    return None
                except MemoryError:
                    return None
                if mappable:
                    self.number += 1

            self._calls[0 if fits else 1] += 1
            self.in_use += segment.memory.size
            self._recent.append(self.in_use)
            return segment

    def give_back(self, segment: _Memory) -> None:
        """Take back a segment whose block is gone. The garbage collector may call it even while the lock is held."""
        if segment.pid != os.getpid():
            return  # a forked process inherits its parent's blocks, and must not write into them
        self._returned.append(segment)
        if self.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self.lock.release()

    def cache_info(self) -> tuple[int, int, int, int]:
        """Hits, misses, limit and size as in `functools.lru_cache`; the last two in bytes kept without a block."""
        with self.lock:
            self._settle()
            return self._calls[0], self._calls[1], self._most, sum(segment.memory.size for segment in self.idle)

    def cache_clear(self) -> None:
        """Give all memory that holds no block back to the system."""
        with self.lock:
            self._recent.clear()
            self._calls = [0, 0]
            self._settle(0)

    @property
    def _most(self) -> int:
        """Bytes that may be kept: up to the recent peak of bytes in use less those in use now, but at least `_IDLE`."""
        return max(max(self._recent, default=0) - self.in_use, _IDLE)

    def _settle(self, most: int | None = None) -> None:
        while self._returned:
            segment = self._returned.popleft()
            self.idle.append(segment)
            self.in_use -= segment.memory.size

        if most is None:
            most = self._most
        idle_bytes = sum(segment.memory.size for segment in self.idle)
        while idle_bytes > most:
            idle_bytes -= self._drop(0)

    def _has_room(self) -> bool:
        """Whether others can map one segment more, if need be in place of the oldest that holds no block."""
        if self.number == _MOST:
            mappable = (n for n, segment in enumerate(self.idle) if segment.address is not None)
            oldest = next(mappable, None)
            if oldest is not None:
                self._drop(oldest)

        return self.number < _MOST

    def _drop(self, n: int) -> int:
        """Give a segment without a block back to the system; its bytes."""
        segment = self.idle.pop(n)
        if segment.address is not None:
            self.number -= 1
            _discard(segment.memory)  # others may have it mapped, so unmapping alone frees nothing
            os.close(segment.address.fd)
        return int(segment.memory.size)


_NAME = f"{__name__}.empty"  # in the register of caches
_pool = _Pool()
register(_NAME, _pool)


def _forked() -> None:
    """Start afresh in a forked process: the segments belong to its parent."""
    global _pool
    _pool = _Pool()
    register(_NAME, _pool)


if hasattr(os, "register_at_fork"):  # Windows and WebAssembly have no fork
    os.register_at_fork(after_in_child=_forked)


def at_line(nbytes: int) -> Array:
    """Uninitialized bytes that begin at a cache line, as those of `numpy.empty` seldom do.

    Pages that are never touched take no memory.

    >>> at_line(3).ctypes.data % LINE, at_line(3).nbytes
    (0, 3)
    """
    memory = np.empty(nbytes + LINE, np.uint8)
    begin = -memory.__array_interface__["data"][0] % LINE
    return memory[begin : begin + nbytes]


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], lasting: bool = False) -> Array:
    """A new, uninitialized C-contiguous block: in a segment if that pays, which others can map if they may read it.

    Unless it is small, it begins at a cache line.

    Args:
        lasting: whether it will be read repeatedly, if other processes read blocks of this one at all.

    >>> empty((2, 3), np.dtype("f8")).shape
    (2, 3)
    """
    # others may read it, 64 KiB and more      a shared segment, if one can be had
    # 8 MiB and more                           a private segment, whose pages stay
    # 4 KiB and more                           NumPy's memory, from a cache line on
    # less                                     NumPy's memory
    nbytes, segment = prod(shape) * dtype.itemsize, None
    if nbytes >= LEAST and (nbytes in _pool.sizes or (lasting and _pool.expected)):
        segment = _pool.take(nbytes, mappable=True)

    if segment is None and nbytes >= _LARGE:
        segment = _pool.take(nbytes, mappable=False)
    if segment is None and nbytes < _ANYWHERE:
        return np.empty(shape, dtype)
    try:
        memory = at_line(nbytes) if segment is None else np.asarray(_BlockBase(segment))[:nbytes]
    except MemoryError:
        return np.empty(shape, dtype)  # its error says the shape
    block: Array = memory.view(dtype).reshape(shape)
    return block


def expect(nbytes: int = 0) -> None:
    """Note that other processes may read blocks of this one, and that a block of `nbytes` bytes had to be packed."""
    _pool.expected = True
    if nbytes >= LEAST and nbytes not in _pool.sizes:
        _pool.sizes.append(nbytes)


def address_of(block: Array) -> BlockAddress | None:
    """The address of a C-contiguous block; None if other processes cannot read it."""
    base: Any = block
    while type(base) is np.ndarray:
        base = base.base
    if type(base) is not _BlockBase:
        return None
    segment = base.segment
    if segment.address is None or segment.pid != _pool.pid:
        return None
    offset = block.__array_interface__["data"][0] - segment.memory.__array_interface__["data"][0]
    return segment.address._replace(offset=offset)


def reach(address: BlockAddress) -> Array:
    """The bytes of another process's segment, from the start of a block on.

    Raises:
        OSError: the segment cannot be mapped.
    """
    return _reached(address._replace(offset=0))[address.offset :]


@memoized(256)
def _reached(segment: BlockAddress) -> Array:
    return _map_part(segment.pid, segment.fd, _MARK.pack(segment.mark, segment.more), segment.size)


# --- memory that all ranks of a node map ------------------------------------------------------------------------------

_warned = threading.local()  # per rank: whether it, or another rank of one of its communicators, has warned


def share(comm: Comm, nbytes: int) -> list[Array] | None:
    """Memory from every rank that all ranks can read and write; None if some cannot. Collective.

    The first time that the system refuses, one rank warns.
    """
    mark = os.urandom(16)
    fd, parts, fault = None, list[Array](), ""
    try:
        try:
            fd, mine = _make_part(mark, nbytes)
        except (AttributeError, OSError, MemoryError) as error:
            fault = str(error)
        offers = comm.allgather_object(None if fault else (os.getpid(), fd, mark, nbytes))
        try:
            if None not in offers:
                parts = [mine if rank == comm.rank else _map_part(*offer) for rank, offer in enumerate(offers)]
        except OSError as error:
            fault = str(error)

        faults = comm.allgather_object(fault)
    finally:
        if fd is not None:
            os.close(fd)
    if any(faults):
        _warn(comm.rank, faults)
        return None
    return parts


def _warn(rank: int, faults: list[str]) -> None:
    """Warn on the lowest rank that was refused, unless it has warned, or seen a warning, before."""
    first = next(n for n, fault in enumerate(faults) if fault)
    if rank == first and not hasattr(_warned, "fault"):
        warnings.warn(f"ranks send messages, for they cannot share memory: {faults[first]}", RuntimeWarning, 2)
    _warned.fault = faults[first]


def _length(nbytes: int) -> int:
    return _PAGE + max(nbytes, 1)


def _make_part(mark: bytes, nbytes: int) -> tuple[int, Array]:
    """Make a part of shared memory, identified by a mark: its descriptor, by which others map it, and its bytes."""
    _check_available(nbytes)
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


def _check_available(nbytes: int) -> None:
    """Refuse what is beyond all memory, by a MemoryError: a file would grow until the system kills a process."""
    try:
        mmap.mmap(-1, max(nbytes, 1)).close()
    except (OSError, OverflowError):
        raise MemoryError(f"{nbytes} bytes are beyond the memory of this machine") from None


def _map_part(pid: int, number: int, mark: bytes, nbytes: int) -> Array:
    """Map the part that another process has made."""
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


def _discard(part: Array) -> None:
    """Give the pages of a part back to the system, even if processes have it mapped; they then read zeros."""
    if part.nbytes:
        _system().madvise(part.__array_interface__["data"][0], part.nbytes, mmap.MADV_REMOVE)


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


@memoized(1)
def _system() -> Any:
    """The functions of the C library that Python does not offer in this form."""
    calls = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    calls.mmap.argtypes, calls.mmap.restype = (address, size, number, number, number, ctypes.c_long), address
    calls.munmap.argtypes = (address, size)
    calls.madvise.argtypes = (address, size, number)
    return calls
