"""The cache of a communicator: things that are made once for it, and buffers that all of them share.

A rank that is alone meets nobody, so any thread of its process may use its communicator, and several at once: each has
a cache of its own. A communicator of several ranks is used by one thread of each rank at a time, and has one cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from .protocol import Array, Comm

__all__ = ["CacheOfAll", "CachePerThread", "cached", "shared_workspace"]

T = TypeVar("T")
Cache = dict[Hashable, Any]


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
    """The thing, never None, that `make` made for a key; of a kind, the communicator keeps the `most` last used.

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


def shared_workspace(comm: Comm, name: str, nbytes: int) -> Array:
    """Memory of the communicator's, of so many bytes or more: whoever asks next for the same name gets the same.

    >>> from rote.runtime import world
    >>> a, b = (shared_workspace(world(), "doc", nbytes) for nbytes in (32, 24))
    >>> a.nbytes, b.nbytes, np.shares_memory(a, b)
    (32, 32, True)
    """
    memory: Array | None = comm.cache.get(("buffer", name))
    if memory is None or memory.nbytes < nbytes:
        memory = comm.cache["buffer", name] = None  # the old memory goes before the new comes
        memory = comm.cache["buffer", name] = np.empty(nbytes, np.uint8)
    return memory
