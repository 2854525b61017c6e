"""Memory of blocks, which the next ones take up: some that others of the node can map, who read blocks as they lie.

A segment is a file in memory, which a peer opens through /proc as `shared_memory` has it. To make one costs as much as
several copies of it. So there is one only for a block that will be read again and again, or of a size of which others
have been packed to be read; and a segment whose block is gone is kept for the next.

Whoever reads a block meets its owner before and after. In between no other may lie in its place.

A large block that no other process reads lies in a segment of this process alone: the C library would give its pages
back to the system when it is gone, and to get others takes the next block as long as to be copied.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...caches import register
from . import shared_memory
from .protocol import Array

__all__ = ["LEAST", "BlockPlace", "empty", "expect", "place_of", "reach"]

LEAST = 1 << 16
"""Bytes of a block for which it pays to be read where it lies: a second meeting costs as much as to copy so many."""

_GRAIN = 1 << 16  # bytes, of which a segment is a multiple: blocks of nearly one size take turns in it
_LARGE = 1 << 23  # bytes of a block whose pages the C library does not keep
_IDLE = 1 << 26  # bytes of segments without a block that are kept, at least
_RECENT = 16  # blocks that were made last: all that lay in segments at once meanwhile may be kept
_MOST = 64  # segments that others can map, each of which holds a descriptor
_SIZES = 64  # sizes of blocks that are remembered to have been packed
_MARK = struct.Struct("=qq")
_REACHED = 256  # segments of others that stay mapped


class BlockPlace(NamedTuple):
    """Where a block lies, in words for other processes: numbers alone, as `allgatherv` carries them.

    Attributes:
        pid, fd: of the process whose segment it is, and its descriptor there; 0 if the block is in no segment.
        mark, more: what the segment begins with, which no other does.
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
class _Segment:
    """A segment of a process: where it lies, for others if they can map it, and its bytes."""

    pid: int
    place: BlockPlace | None
    memory: Array

    @classmethod
    def make(cls, size: int, shown: bool) -> _Segment:
        if not shown:
            return cls(os.getpid(), None, np.empty(size, np.uint8))
        text = os.urandom(_MARK.size)
        mark, more = _MARK.unpack(text)
        fd, memory = shared_memory.make_part(text, size)
        return cls(os.getpid(), BlockPlace(os.getpid(), fd, mark, more, size), memory)


class _Lease:
    """The segment that a block lies in, given back when the last array on it is gone."""

    def __init__(self, segment: _Segment) -> None:
        self.segment = segment
        self.__array_interface__ = segment.memory.__array_interface__
        weakref.finalize(self, _pool.give_back, segment).atexit = False


class _Pool:
    """The segments of this process, and what it has learnt of the sizes of its blocks."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.expected = False
        self.refused = False
        self.sizes: OrderedDict[int, None] = OrderedDict()
        self.lock = threading.Lock()
        self.idle: list[_Segment] = []  # the one given back last comes last
        self.leased = 0  # bytes
        self.number = 0  # of those that others can map
        self._recent: deque[int] = deque(maxlen=_RECENT)  # bytes that were leased when each of the last had been taken
        self._calls = [0, 0]  # that a segment was there for, and that it was not
        self._returned: deque[_Segment] = deque()

    def take(self, nbytes: int, shown: bool) -> _Segment | None:
        """A segment of so many bytes or a few more, that others can map if it is shown; None if that is refused."""
        with self.lock:
            self._settle()
            size = -(-nbytes // _GRAIN) * _GRAIN
            alike = [n for n, segment in enumerate(self.idle) if (segment.place is not None) == shown]
            fits = [n for n in alike if size <= self.idle[n].memory.size <= size + size // 4]
            if fits:
                segment = self.idle.pop(fits[-1])
            elif shown and (self.refused or self.number >= _MOST):
                return None
            else:
                try:
                    segment = _Segment.make(size, shown)
                except (AttributeError, OSError):
                    self.refused = True
                    return None
                self.number += shown
            self._calls[not fits] += 1
            self.leased += segment.memory.size
            self._recent.append(self.leased)
            return segment

    def give_back(self, segment: _Segment) -> None:
        """Take a segment whose block is gone. At any time, by the garbage collector: also while the lock is held."""
        if segment.pid != os.getpid():
            return  # a forked process has the blocks of its parent, and must not write into them
        self._returned.append(segment)
        if self.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self.lock.release()

    def cache_info(self) -> tuple[int, int, int, int]:
        """Calls and sizes, as `functools.lru_cache` has them; in bytes of memory that is kept without a block."""
        with self.lock:
            self._settle()
            return self._calls[0], self._calls[1], self._most, sum(segment.memory.size for segment in self.idle)

    def cache_clear(self) -> None:
        """Give all memory without a block back to the system."""
        with self.lock:
            self._recent.clear()
            self._calls = [0, 0]
            self._settle(0)

    @property
    def _most(self) -> int:
        """Bytes that may be kept: so that blocks and these are no more than there were blocks at once, or a few."""
        return max(max(self._recent, default=0) - self.leased, _IDLE)

    def _settle(self, most: int | None = None) -> None:
        while self._returned:
            segment = self._returned.popleft()
            self.idle.append(segment)
            self.leased -= segment.memory.size
            if segment.place is None:
                shared_memory.lend(segment.memory)
        if most is None:
            most = self._most
        kept = sum(segment.memory.size for segment in self.idle)
        while kept > most:
            segment = self.idle.pop(0)
            kept -= segment.memory.size
            if segment.place is not None:
                self.number -= 1
                shared_memory.discard(segment.memory)  # others may have it mapped, so that to unmap it frees nothing
                os.close(segment.place.fd)


_NAME = f"{__name__}.empty"  # in the register of caches
_pool = _Pool()
register(_NAME, _pool)
_reached: OrderedDict[BlockPlace, Array] = OrderedDict()
_reaching = threading.Lock()


def _forked() -> None:
    """In a process that was forked: segments are its parent's."""
    global _pool, _reaching
    _pool, _reaching = _Pool(), threading.Lock()
    register(_NAME, _pool)
    _reached.clear()


os.register_at_fork(after_in_child=_forked)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], lasting: bool = False) -> Array:
    """A new block, C-contiguous and not set yet, in a segment if that pays; one that others can map if they read it.

    Args:
        lasting: whether it will be read again and again, if other processes read blocks of this one at all.

    >>> empty((2, 3), np.dtype("f8")).shape
    (2, 3)
    """
    nbytes, segment = prod(shape) * dtype.itemsize, None
    if nbytes >= LEAST and (nbytes in _pool.sizes or (lasting and _pool.expected)):
        segment = _pool.take(nbytes, shown=True)
    if segment is None and nbytes >= _LARGE:
        segment = _pool.take(nbytes, shown=False)
    if segment is None:
        return np.empty(shape, dtype)
    return np.asarray(_Lease(segment))[:nbytes].view(dtype).reshape(shape)


def expect(nbytes: int = 0) -> None:
    """Learn that blocks of this process are read by others; and that one of so many bytes had to be packed."""
    _pool.expected = True
    if nbytes >= LEAST and nbytes not in _pool.sizes:
        _pool.sizes[nbytes] = None
        while len(_pool.sizes) > _SIZES:
            _pool.sizes.popitem(last=False)


def place_of(block: Array) -> BlockPlace | None:
    """Where a C-contiguous block lies; None if other processes cannot read it."""
    base: Any = block
    while type(base) is np.ndarray:
        base = base.base
    if type(base) is not _Lease:
        return None
    segment = base.segment
    if segment.place is None or segment.pid != _pool.pid:
        return None
    offset = block.__array_interface__["data"][0] - segment.memory.__array_interface__["data"][0]
    return segment.place._replace(offset=offset)


def reach(place: BlockPlace) -> Array:
    """The bytes of the segment in which another process has a block, from the block on.

    Raises:
        OSError: it is not to be had.
    """
    segment = place._replace(offset=0)
    with _reaching:
        memory = _reached.get(segment)
        if memory is None:
            mark = _MARK.pack(place.mark, place.more)
            memory = _reached[segment] = shared_memory.reach_part(place.pid, place.fd, mark, place.size)
            if len(_reached) > _REACHED:
                _reached.popitem(last=False)
        else:
            _reached.move_to_end(segment)
    return memory[place.offset :]
