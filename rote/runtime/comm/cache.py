"""Things that are made once and used again: of a communicator, memory of its programs and ranks, calls at addresses.

A rank that is alone meets nobody, so any thread of its process may use its communicator, and several at once: each has
a cache of its own. A communicator of several ranks is used by one thread of each rank at a time, and has one cache.

The memory that ranks share is workspace of all exchanges and walks of a communicator, in two halves. What a rank writes
into its half before a barrier, others read after it. They may still be reading when it goes on: it writes into the
other half then. When it comes back to this one, there was a barrier in between.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

import numpy as np

from ...errors import LayoutError
from .collective_errors import ranks_apart
from .protocol import Array, Comm

__all__ = ["AtAddresses", "CacheOfAll", "CachePerThread", "DoubleBuffer", "cached", "refuse_others", "shared_workspace"]

T = TypeVar("T")
Cache = dict[Hashable, Any]

_LINE = 64  # bytes of a line of the cache, with which each half begins: so it is whole items of any dtype
_MOST = 32  # places of which the calls are kept: blocks of a loop take turns in fewer


class CacheOfAll:
    """The cache of several ranks' communicator, for whichever thread uses it."""

    __slots__ = ("cache",)

    def __init__(self) -> None:
        self.cache: Cache = {}


class CachePerThread(threading.local):
    """The caches of one rank's communicator: a thread has its own, and leaves it to the next when it ends.

    >>> caches = CachePerThread([])
    >>> caches.cache["main"] = 1
    >>> for _ in range(2):
    ...     thread = threading.Thread(target=lambda: print(dict(caches.cache), caches.cache.update(b=2)))
    ...     thread.start()
    ...     thread.join()
    {} None
    {'b': 2} None
    """

    def __init__(self, free: list[Cache]) -> None:  # called anew by every thread, with the same list
        self._lease = _Lease(free)
        self.cache: Cache = self._lease.cache


class _Lease:
    """A cache that is given back when its thread, which alone holds this, has ended."""

    __slots__ = ("_free", "cache")

    def __init__(self, free: list[Cache]) -> None:
        self._free = free
        try:
            self.cache = free.pop()
        except IndexError:
            self.cache = {}

    def __del__(self) -> None:
        self._free.append(self.cache)


def cached(comm: Comm, kind: str, key: Hashable, make: Callable[[], T], most: int) -> T:
    """The value that `make` made for a key, never None: of a kind, the communicator keeps the `most` last used.

    All ranks use their caches alike, so that making and giving up may be collective.

    >>> from rote.runtime import world
    >>> [cached(world(), "doc", n, lambda: object(), 2) is cached(world(), "doc", n, object, 2) for n in range(3)]
    [True, True, True]
    """
    kept: OrderedDict[Hashable, T] = comm.cache.setdefault(kind, OrderedDict())
    value = kept.get(key)
    if value is not None:
        kept.move_to_end(key)
        return value
    value = kept[key] = make()
    if len(kept) > most:
        kept.popitem(last=False)
    return value


def refuse_others(comm: Comm, name: str, key: Sequence[object]) -> None:
    """Refuse a call to which ranks give different arguments; the same error on all. Collective.

    For what is made and kept: it costs one small all-gather then, and nothing when it is used again.

    Args:
        name: of the call.
        key: its arguments: values of which equal ones have equal parts, and different ones different texts.

    Raises:
        LayoutError: they differ.
        CommError: some ranks are in another call.

    >>> from rote.runtime import run
    >>> run(lambda comm: refuse_others(comm, "fftn", ("float64" if comm.rank else "float32", "auto")), ranks=2)
    Traceback (most recent call last):
    ...
    rote.LayoutError: fftn is one call of all ranks, but rank 0 gives it float32 and rank 1 float64
    give every rank the same
    raised on rank 0 of 2
    """
    if comm.size == 1:
        return
    number = crc32(repr([*map(_parts, key)]).encode())
    calls = comm.allgather_object((name, number))
    if calls.count((name, number)) == comm.size:
        return
    if not all(isinstance(call, tuple) and call[:1] == (name,) for call in calls):
        raise ranks_apart()
    texts = comm.allgather_object([str(each) for each in key])
    other = next(rank for rank, call in enumerate(calls) if call != calls[0])
    first, second = next((pair for pair in zip(texts[0], texts[other], strict=True) if pair[0] != pair[1]), ("", ""))
    raise LayoutError(
        f"{name} is one call of all ranks, but rank 0 gives it {first} and rank {other} {second}\n"
        "give every rank the same"
    )


def _parts(value: object) -> object:
    """A value as tuples of what tells it from others: ranks hash text otherwise, and remember it with values."""
    if isinstance(value, tuple):
        return [*map(_parts, value)]
    if not is_dataclass(value):
        return str(value)
    parts = []
    for field in fields(value):
        if field.compare:
            parts.append(_parts(getattr(value, field.name)))
    return parts


def shared_workspace(comm: Comm, nbytes: int) -> Array:
    """Memory of the communicator's, of so many bytes or more: whoever asks next gets the same.

    >>> from rote.runtime import world
    >>> a, b = (shared_workspace(world(), nbytes) for nbytes in (32, 24))
    >>> a.nbytes, b.nbytes, np.shares_memory(a, b)
    (32, 32, True)
    """
    memory: Array | None = comm.cache.get("workspace")
    if memory is None or memory.nbytes < nbytes:
        memory = comm.cache["workspace"] = None  # the old memory goes before the new comes
        memory = comm.cache["workspace"] = np.empty(nbytes, np.uint8)
    return memory


class Tenant(Protocol):
    """A holder of views of the two halves."""

    def leave(self) -> None:
        """Let go of all views: the halves are about to be others."""
        ...


class DoubleBuffer:
    """The shared memory of one communicator, which lives as long as anybody holds it; looked up and grown by `of`.

    Attributes:
        comm: of the ranks.
        halves: per rank, both.
        read: which of them others may be reading since the last barrier; -1 for none.
        tenants: whom to tell when the halves grow.
    """

    __slots__ = ("__weakref__", "_size", "comm", "halves", "read", "tenants")

    def __init__(self, comm: Comm) -> None:
        self.comm: Comm = comm
        self.halves: list[tuple[Array, Array]] = []
        self.read: int = -1
        self.tenants: weakref.WeakSet[Tenant] = weakref.WeakSet[Tenant]()
        self._size = 0

    @classmethod
    def of(cls, comm: Comm, nbytes: int) -> DoubleBuffer | None:
        """The double buffer of a communicator, in each half of which this rank has so many bytes or more. Collective.

        None, on all ranks and from then on, if they cannot share memory.
        """
        kept = comm.cache.get("double buffer", lambda: None)
        if kept is None:
            return None
        double_buffer: DoubleBuffer = kept() or cls(comm)
        comm.cache["double buffer"] = weakref.ref(double_buffer)
        sizes = comm.allgather_object((max(-(-nbytes // _LINE), 1) * _LINE, double_buffer._size))
        if any(need > size for need, size in sizes) and not double_buffer._grow([max(pair) for pair in sizes]):
            comm.cache["double buffer"] = None
            return None
        return double_buffer

    def _grow(self, sizes: list[int]) -> bool:
        """Get halves of other sizes; whether that was possible."""
        self.halves = []  # the old memory goes before the new comes
        for tenant in [*self.tenants]:
            tenant.leave()
        self._size = sizes[self.comm.rank]
        memories = self.comm.allocate_shared(2 * self._size)
        if memories is None:
            return False
        self.halves = [(memory[:size], memory[size:]) for memory, size in zip(memories, sizes, strict=True)]
        self.read = -1
        return True

    def next_half(self) -> list[Array]:
        """The halves of all ranks that nobody is reading, which are read after the next barrier."""
        self.read = int(self.read == 0)
        return [pair[self.read] for pair in self.halves]

    def meet(self) -> None:
        """Wait for all ranks: whatever they wrote is there, and they have read what they wanted."""
        self.comm.barrier()
        self.read = -1


class AtAddresses(Generic[T]):
    """Calls prepared for C-contiguous arrays, by where these lie; of `_MOST` places, the oldest go first.

    It knows the addresses alone. So it is good for all arrays of the same shapes and dtypes that ever lie there, and
    nobody's memory waits for it; whoever asks holds the arrays until the calls have run.

    >>> prepared, block = AtAddresses(), np.zeros(2)
    >>> fill = prepared([block], lambda arrays: lambda: arrays[0].fill(1))
    >>> fill()
    >>> block, prepared([block], lambda arrays: None) is fill
    (array([1., 1.]), True)
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, T] = {}

    def __call__(self, arrays: Sequence[Array], make: Callable[[list[Array]], T], state: Hashable = None) -> T:
        """The result of `make` for arrays that lie where these do, and in some state; it must not keep others."""
        place = (state, *[array.__array_interface__["data"][0] for array in arrays])
        prepared = self._kept.get(place)
        if prepared is None:
            prepared = make([np.asarray(_Lying(array.__array_interface__)) for array in arrays])
            if len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[place] = prepared
        return prepared

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


class _Lying:
    """The place, shape and dtype of an array, without its memory."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
