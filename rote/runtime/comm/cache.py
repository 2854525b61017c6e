"""Caches of a communicator: values by key, workspace, memory shared by its ranks, and calls prepared for addresses.

Any thread may use the communicator of a single rank, and several threads may use it at once, so each thread has its own
cache. A communicator of several ranks is used by one thread of each rank at a time, and has one cache.

All exchanges and walks of a communicator use the same shared memory, which has two halves. Ranks write into one half
before a barrier and read from it after the barrier. A rank that goes on while others still read writes into the other
half. Before it returns to the first half there is another barrier.
"""

from __future__ import annotations

import marshal
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

import numpy as np

from ...errors import LayoutError
from .collective_errors import ranks_apart
from .protocol import Array, Comm
from .segments import LINE, at_line

__all__ = ["AtAddresses", "CacheOfAll", "CachePerThread", "DoubleBuffer", "InHalves", "cached", "gathered"]
__all__ += ["CHECKS", "refuse_others", "refuse_unlike", "shared_workspace"]

T = TypeVar("T")
Cache = dict[Hashable, Any]

CHECKS: bool = os.environ.get("ROTE_CHECK", "") not in ("", "0")
"""Whether ranks compare every call, not only the first with its arguments, and replicas of new tensors."""

_UNLIKE = (
    "{} is one call of all ranks, but not all give it the same arguments\n"
    "give every rank the same, and take what differs from x.local"
)
_MOST = 32  # places whose calls are kept; the blocks of a loop alternate between fewer places


class CacheOfAll:
    """The cache of a communicator of several ranks, whichever thread uses it."""

    __slots__ = ("cache",)

    def __init__(self) -> None:
        self.cache: Cache = {}


class CachePerThread(threading.local):
    """The caches of a single rank's communicator: one per thread; a new thread takes over the cache of an ended one.

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
    """A cache that is given back when its thread ends: only the thread holds the lease."""

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
    call: tuple[str, Sequence[object]] | None = None,
) -> T:
    """The value that `make` made for a key, never None. Of each kind, a communicator keeps the `most` last used values.

    All ranks use their caches in the same way, so making and dropping a value may be collective.

    Args:
        call: the name and the arguments of a call of all ranks, which they compare (`refuse_others`) before `make`;
            whenever they call this, if `CHECKS` is set.

    >>> from rote.runtime import world
    >>> [cached(world(), "doc", n, lambda: object(), 2) is cached(world(), "doc", n, object, 2) for n in range(3)]
    [True, True, True]
    """
    kept: OrderedDict[Hashable, T] | None = comm.cache.get(kind)
    if kept is None:
        kept = comm.cache[kind] = OrderedDict()
    value = kept.get(key)
    if call is not None and (value is None or CHECKS):
        refuse_others(comm, *call)
    if value is not None:
        kept.move_to_end(key)
        return value
    value = kept[key] = make()
    if len(kept) > most:
        kept.popitem(last=False)
    return value


def refuse_others(comm: Comm, name: str, key: Sequence[object]) -> None:
    """Refuse a call to which ranks give different arguments, with the same error on all ranks. Collective.

    Use it where a value is made and cached: it costs one small all-gather then, and nothing when the value is reused.

    Args:
        name: the name of the call.
        key: its arguments. Equal values must have equal parts, and different values different texts.

    Raises:
        LayoutError: the arguments differ.
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
    call = name, crc32(repr([*map(_parts, key)]).encode())
    calls = comm.allgather_object(call)
    if calls.count(call) == comm.size:
        return
    _refuse_mixed(calls)
    texts = comm.allgather_object([str(each) for each in key])
    other = next(rank for rank, call in enumerate(calls) if call != calls[0])
    pairs = zip_longest(texts[0], texts[other], fillvalue="nothing")
    first, second = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    raise LayoutError(
        f"{name} is one call of all ranks, but rank 0 gives it {first} and rank {other} {second}\n"
        "give every rank the same"
    )


def refuse_unlike(comm: Comm, name: str, key: Any) -> None:
    """Refuse a call to which ranks give other elements, as `refuse_others` does. Collective, in every call.

    The key is made of numbers, text, bytes and tuples of them, which are too many to be shown.
    """
    if comm.size == 1:
        return
    call = name, crc32(marshal.dumps(key, 0)), "elements"
    calls = comm.allgather_object(call)
    if calls.count(call) != comm.size:
        _refuse_mixed(calls)
        raise LayoutError(_UNLIKE.format(name))


def _refuse_mixed(calls: Sequence[object]) -> None:
    """Refuse different calls, and calls of one name of which ranks compare different things.

    Whatever ranks compare, their message is of one kind: `allgather_object`, of a tuple that begins with the name of
    the call. So ranks in different calls get each other's messages, and none waits.
    """
    tuples = [each for each in calls if isinstance(each, tuple) and each]
    if len(tuples) < len(calls) or any(each[0] != tuples[0][0] for each in tuples):
        raise ranks_apart(calls)
    if any(len(each) != len(tuples[0]) for each in tuples):
        raise LayoutError(_UNLIKE.format(tuples[0][0]))


def gathered(comm: Comm, call: str, value: T) -> list[T]:
    """The values of all ranks, which are in the same call; refused on all ranks if some are in another. Collective.

    >>> from rote.runtime import run
    >>> run(lambda comm: gathered(comm, "numbers", comm.rank), ranks=2)
    [[0, 1], [0, 1]]
    """
    messages = comm.allgather_object((call, value))
    if any(not isinstance(message, tuple) or message[:1] != (call,) for message in messages):
        raise ranks_apart(messages)
    return [message[1] for message in messages]


def _parts(value: object) -> object:
    """The parts that identify a value. Hashes do not: they differ between ranks, and values cache them as fields."""
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


class Tenant(Protocol):
    """An object that holds views of the two halves."""

    def leave(self) -> None:
        """Drop all views: the halves are about to be replaced."""
        ...


class DoubleBuffer:
    """The shared memory of one communicator, found and grown by `of`. It is freed when nobody holds it any more.

    Attributes:
        comm: the communicator.
        halves: both halves of each rank.
        read: the half that others may have been reading since the last barrier; -1 for none.
        tenants: the holders of views, which must drop them when the halves grow.
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
        """The double buffer of a communicator, with at least `nbytes` bytes of this rank in each half. Collective.

        None on all ranks, now and later, if they cannot share memory.
        """
        kept = comm.cache.get("double buffer", lambda: None)
        if kept is None:
            return None
        double_buffer: DoubleBuffer = kept() or cls(comm)
        comm.cache["double buffer"] = weakref.ref(double_buffer)
        sizes = gathered(comm, "shared memory", (max(-(-nbytes // LINE), 1) * LINE, double_buffer._size))
        if any(need > size for need, size in sizes) and not double_buffer._grow([max(pair) for pair in sizes]):
            comm.cache["double buffer"] = None
            return None
        return double_buffer

    def _grow(self, sizes: list[int]) -> bool:
        """Allocate halves of other sizes; False if that is impossible."""
        self.halves = []  # free the old memory before allocating
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
        """The halves of all ranks that nobody is reading, to be written now and read after the next barrier."""
        self.read = int(self.read == 0)
        return [pair[self.read] for pair in self.halves]

    def meet(self) -> None:
        """Wait for all ranks: afterwards all earlier writes are visible and all earlier reads are done."""
        self.comm.barrier()
        self.read = -1


class InHalves:
    """Calls in the halves of shared memory. They are prepared on demand, once per half that others may be reading.

    Args:
        double_buffer: the memory.
        calls: makes the calls if others may be reading a given half, with the half that they may read afterwards.
    """

    __slots__ = ("__weakref__", "_calls", "_double_buffer", "_prepared")

    def __init__(
        self, double_buffer: DoubleBuffer, calls: Callable[[int], tuple[list[Callable[[], object]], int]]
    ) -> None:
        self._double_buffer, self._calls = double_buffer, calls
        self._prepared: dict[int, tuple[list[Callable[[], object]], int]] = {}
        double_buffer.tenants.add(self)

    def leave(self) -> None:
        """Let go of all views, as `Tenant` asks."""
        self._prepared = {}

    def __call__(self) -> None:
        double_buffer, read = self._double_buffer, self._double_buffer.read
        prepared = self._prepared.get(read)
        if prepared is None:
            prepared = self._prepared[read] = self._calls(read)
        for call in prepared[0]:
            call()
        double_buffer.read = prepared[1]


class AtAddresses(Generic[T]):
    """Calls prepared for C-contiguous arrays, by their addresses. It keeps `_MOST` entries and drops the oldest first.

    An entry serves all arrays of these shapes and dtypes that ever lie there, and keeps none alive: the caller does.

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
        """The result of `make` for arrays at these addresses and for a state; `make` must keep no other arrays."""
        place: tuple[Hashable, ...] = (state,)
        for array in arrays:
            place += (array.__array_interface__["data"][0],)
        prepared = self._kept.get(place)
        if prepared is None:
            if len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            prepared = self._kept[place] = make([np.asarray(_Lying(array.__array_interface__)) for array in arrays])
        return prepared

    def clear(self) -> None:
        """Drop all entries."""
        self._kept.clear()


class _Lying:
    """The address, shape and dtype of an array, without a reference to its memory."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
