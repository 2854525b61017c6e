"""Caches of a communicator: values by key, workspace, memory shared by its ranks, and calls prepared for addresses.

Any thread may use the communicator of a single rank, and several threads may use it at once, so each thread has its own
cache. A communicator of several ranks is used by one thread of each rank at a time, and has one cache.

All exchanges and walks of a communicator use the same shared memory, and its reductions a small one of their own. Such
memory has two halves. Ranks write into one half before a barrier and read from it after the barrier. A rank that goes
on while others still read writes into the other half. Before it returns to the first half there is another barrier.
Where two halves would be too much memory, both are written as one piece, and each time there is another barrier.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from .agreement import CHECKS, agree, gathered
from .protocol import Array, BoundToRun, Comm
from .segments import LINE, at_line

__all__ = ["AtAddresses", "CachingComm", "DoubleBuffer", "cached", "in_halves", "shared_workspace"]

T = TypeVar("T")
Cache = dict[Hashable, Any]

_UNKNOWN = object()  # of a value that is not cached, for None is a value
_MOST = 32  # places whose calls are kept; the blocks of a loop alternate between fewer places


class CachingComm(BoundToRun):
    """The part of a communicator that does not depend on its transport: its rank, its size, and its cache."""

    __slots__ = ("__weakref__", "_caches", "rank", "size")

    def __init__(self, rank: int, size: int) -> None:
        self.rank: int = rank
        self.size: int = size
        self._caches = _CachePerThread([]) if size == 1 else SimpleNamespace(cache={})

    @property
    def cache(self) -> Cache:
        """Objects that belong to this communicator and are freed with it."""
        cache: Cache = self._caches.cache
        return cache

    def Dup(self) -> Any:
        """A communicator of the same ranks."""
        return cast(Comm, self).split(0, self.rank)

    def Free(self) -> None:
        """Drop what is kept on the communicator, which is freed when the last reference to it is gone."""
        self.cache.clear()


class _CachePerThread(threading.local):
    """The caches of a single rank's communicator: one per thread; a new thread takes over the cache of an ended one.

    >>> caches = _CachePerThread([])
    >>> caches.cache["main"] = 1
    >>> for _ in range(2):
    ...     thread = threading.Thread(target=lambda: print(dict(caches.cache), caches.cache.update(b=2)))
    ...     thread.start()
    ...     thread.join()
    {} None
    {'b': 2} None
    """

    def __init__(self, free: list[Cache]) -> None:  # called anew by every thread, with the same list
        self._kept = _ThreadCache(free)
        self.cache: Cache = self._kept.cache


class _ThreadCache:
    """A cache that is given back when its thread ends, for only the thread holds this object."""

    __slots__ = ("_free", "cache")

    def __init__(self, free: list[Cache]) -> None:
        self._free = free
        try:
            self.cache = free.pop()
        except IndexError:
            self.cache = {}

    def __del__(self) -> None:
        self._free.append(self.cache)


def cached(
    comm: Comm,
    kind: str,
    key: Hashable,
    make: Callable[[], T],
    most: int,
    call: Callable[[], tuple[str, Sequence[object]]] | None = None,
) -> T:
    """The value that `make` made for a key. Of each kind, a communicator keeps the `most` last used values.

    All ranks use their caches in the same way, so making and dropping a value may be collective.

    Args:
        call: gives the name and the arguments of a call of all ranks, which they compare by `agree` before `make`;
            whenever they call this, if `CHECKS` is set.

    >>> from rote.runtime import world
    >>> [cached(world(), "doc", n, lambda: object(), 2) is cached(world(), "doc", n, object, 2) for n in range(3)]
    [True, True, True]
    """
    values: OrderedDict[Hashable, T] | None = comm.cache.get(kind)
    if values is None:
        values = comm.cache[kind] = OrderedDict()
    value: Any = values.get(key, _UNKNOWN)
    if call is not None and (CHECKS or value is _UNKNOWN):
        agree(comm, *call())

    if value is _UNKNOWN:
        value = values[key] = make()
        if len(values) > most:
            values.popitem(last=False)
    else:
        values.move_to_end(key)
    typed: T = value  # `cast` would be a call more
    return typed


def shared_workspace(comm: Comm, nbytes: int) -> Array:
    """The workspace of a communicator, grown to at least `nbytes` bytes. All callers get the same memory.

    >>> from rote.runtime import world
    >>> a, b = (shared_workspace(world(), nbytes) for nbytes in (32, 24))
    >>> a.nbytes, b.nbytes, np.shares_memory(a, b)
    (32, 32, True)
    """
    memory: Array | None = comm.cache.get("workspace")
    if memory is None or memory.nbytes < nbytes:
        memory = comm.cache["workspace"] = None  # free the old memory before allocating
        memory = comm.cache["workspace"] = at_line(nbytes)
    return memory


class DoubleBuffer:
    """Shared memory of one communicator, freed when nobody holds it any more. `of` finds that of its exchanges.

    Attributes:
        comm: the communicator.
        halves: both halves of each rank.
        reading: the halves that others may have been reading since the last barrier.
        prepared: calls that hold views, which are dropped when the halves grow.
    """

    # Two moves of two ranks; what is read is in brackets. One barrier is enough between them, as the halves differ.
    #
    #   rank 0   write [0]   |         | read [0] of both   write [1]   |         | read [1] of both
    #   rank 1   write [0]   | barrier | read [0] of both   write [1]   | barrier | read [1] of both
    __slots__ = ("__weakref__", "_memories", "comm", "halves", "prepared", "reading")

    def __init__(self, comm: Comm) -> None:
        self.comm: Comm = comm
        self.halves: list[tuple[Array, Array]] = []
        self._memories: list[Array] = []
        self.reading: frozenset[int] = frozenset()
        self.prepared: weakref.WeakSet[AtAddresses[Any]] = weakref.WeakSet[AtAddresses[Any]]()

    @classmethod
    def of(cls, comm: Comm, nbytes: int, halved: bool = True) -> DoubleBuffer | None:
        """The double buffer of a communicator, with at least `nbytes` bytes of this rank in each half. Collective.

        If not `halved`, both halves together have so many. None on all ranks, now and later, if they cannot share
        memory.
        """
        reference = comm.cache.get("double buffer", lambda: None)
        if reference is None:
            return None

        double_buffer: DoubleBuffer = reference() or cls(comm)
        comm.cache["double buffer"] = weakref.ref(double_buffer)
        lines = -(-nbytes // (LINE if halved else 2 * LINE))
        sizes = gathered(comm, "shared memory", (max(lines, 1) * LINE, double_buffer.nbytes))
        if any(need > size for need, size in sizes) and not double_buffer.grow([max(pair) for pair in sizes]):
            comm.cache["double buffer"] = None
            return None
        return double_buffer

    @property
    def nbytes(self) -> int:
        """The bytes of each half of this rank."""
        return self.halves[self.comm.rank][0].nbytes if self.halves else 0

    def grow(self, sizes: list[int]) -> bool:
        """Allocate halves of so many bytes, by rank; False if that is impossible. Collective."""
        self.halves, self._memories = [], []  # free the old memory before allocating
        for prepared in [*self.prepared]:
            prepared.kept.clear()
        memories = self.comm.allocate_shared(2 * sizes[self.comm.rank])
        if memories is None:
            return False
        self._memories = memories
        self.halves = [(memory[:size], memory[size:]) for memory, size in zip(memories, sizes, strict=True)]
        self.reading = frozenset()
        return True

    def next_piece(self, halved: bool) -> tuple[list[Callable[[], object]], list[Array]]:
        """Memory of all ranks, to be written now and read after the next barrier: a half, or both as one piece.

        Calls come first: a barrier where others may be reading all that could be written.
        """
        if not halved:
            waits, memories = bool(self.reading), self._memories
            self.reading = frozenset((0, 1))
        else:
            free = {0, 1} - self.reading
            half = min(free, default=0)
            waits, memories = not free, [pair[half] for pair in self.halves]
            self.reading = frozenset((half,))
        return [self.comm.barrier] if waits else [], memories

    def barrier(self) -> None:
        """Wait for all ranks: afterwards all earlier writes are visible and all earlier reads are done."""
        self.comm.barrier()
        self.reading = frozenset()


def in_halves(double_buffer: DoubleBuffer, make: Callable[[], list[Callable[[], object]]]) -> Callable[[], None]:
    """One call for several in the halves of shared memory, made once for the halves that others may be reading.

    While it makes the calls, `make` sets the halves of `double_buffer` that others may be reading after them.
    """
    prepared: AtAddresses[tuple[list[Callable[[], object]], frozenset[int]]] = AtAddresses(double_buffer)

    def run() -> None:
        reading = double_buffer.reading
        made = prepared.kept.get(reading)
        if made is None:
            made = prepared.kept[reading] = make(), double_buffer.reading
        for call in made[0]:
            call()
        double_buffer.reading = made[1]

    return run


class AtAddresses(Generic[T]):
    """Calls prepared for C-contiguous arrays, by their addresses. It keeps `_MOST` entries and drops the oldest first.

    An entry serves all arrays of these shapes and dtypes that ever lie there, and keeps none alive: the caller does.

    Args:
        double_buffer: the memory that ranks share, if calls hold views of it; all entries are dropped when it grows.

    >>> prepared, block = AtAddresses(), np.zeros(2)
    >>> fill = prepared([block], lambda arrays: lambda: arrays[0].fill(1))
    >>> fill()
    >>> block, prepared([block], lambda arrays: None) is fill
    (array([1., 1.]), True)
    """

    __slots__ = ("__weakref__", "kept")

    def __init__(self, double_buffer: DoubleBuffer | None = None) -> None:
        self.kept: dict[Hashable, T] = {}
        if double_buffer is not None:
            double_buffer.prepared.add(self)

    def __call__(self, arrays: Sequence[Array], make: Callable[[list[Array]], T], state: Hashable = None) -> T:
        """The result of `make` for arrays at these addresses and for a state; `make` must keep no other arrays."""
        place: tuple[Hashable, ...] = (state,)
        for array in arrays:
            place += (array.__array_interface__["data"][0],)
        prepared = self.kept.get(place)
        if prepared is None:
            if len(self.kept) >= _MOST:
                del self.kept[next(iter(self.kept))]
            prepared = self.kept[place] = make([np.asarray(_Interface(array.__array_interface__)) for array in arrays])
        return prepared


class _Interface:
    """The address, shape and dtype of an array, without a reference to its memory."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
