"""The caches of functions: a decorator that caches values, and a register of all caches.

What belongs to a communicator (bound plans, workspaces, decisions) is kept by it: see `rote.runtime.comm.cache`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast
from weakref import WeakSet

__all__ = ["CacheInfo", "cache_info", "clear_caches", "memoized", "memoized_arrays", "register"]

P = ParamSpec("P")
T = TypeVar("T")

_REGISTER: dict[str, WeakSet[Any]] = {}  # by name, which several functions share if they are created per argument
_REGISTERING = threading.Lock()
_MAKING = threading.RLock()  # one for all functions: with one each, two that call each other could wait for ever
_LARGE = 1 << 19  # bytes of arrays
_nbytes = attrgetter("nbytes")
_GRAMMAR = "rote.grammar."  # its modules do not import Rote, so their caches are found by inspection


class CacheInfo(NamedTuple):
    """The state of a cache.

    Attributes
    ----------
    hits : int
        The calls that it answered.
    misses : int
        The calls that it did not answer.
    size : int
        The number of values that it holds.
    most : int
        The largest number that it may hold.

    Examples
    --------
    >>> import rote
    >>> rote.cache_info()["rote.layout.layout.parse"].most
    4096
    """

    hits: int
    misses: int
    size: int
    most: int


def memoized(most: int, once: bool = False, typed: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the `most` last used values of a function of hashable arguments, and register the cache.

    Calls go to `functools.lru_cache` itself, so that a cached value costs no more than there. Errors are not cached.

    Args:
        most: the number of values to keep.
        once: whether only one thread computes a value and others wait for it; without it, in-process ranks would all
            compute the same plan at the same time.
        typed: whether equal arguments of several types (1, 1.0, True) have values of their own.

    >>> made = []
    >>> @memoized(8)
    ... def double(n):
    ...     made.append(n)
    ...     return 2 * n
    >>> double(2), double(2), made
    (4, 4, [2])
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(most, typed)(make)
        if once:
            cached = _made_once(cached, most, typed)

        register(f"{make.__module__}.{make.__qualname__}", cached)
        return cast("Callable[P, T]", cached)  # keeps the argument types, which functools loses

    return decorate


def memoized_arrays(most: int, few: int = 4) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the `most` last used values of a function, but of those that have many bytes only the last `few`.

    A value is an array, or a tuple of arrays, or has its bytes as `nbytes`.
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        last = memoized(few)(make)

        @memoized(most)
        @wraps(make)
        def small(*args: P.args, **kwargs: P.kwargs) -> list[T]:
            return []  # the place of a value, which stays empty if the value is large

        @wraps(make)
        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            place = small(*args, **kwargs)
            if place:
                return place[0]

            value = last(*args, **kwargs)
            parts: Any = value if isinstance(value, tuple) else (value,)
            if sum(map(_nbytes, parts)) <= _LARGE:
                place.append(value)
            return value

        return cached

    return decorate


def _made_once(inner: Any, most: int, typed: bool) -> Any:
    """A cache around another one: threads that miss a value at the same time ask the other one in turn.

    So the first of them computes it, and the others find it.
    """

    @wraps(inner.__wrapped__)
    def in_turn(*args: Any, **kwargs: Any) -> Any:
        with _MAKING:
            return inner(*args, **kwargs)

    outer = lru_cache(most, typed)(in_turn)
    clear_outer = outer.cache_clear
    vars(outer)["cache_clear"] = lambda: (inner.cache_clear(), clear_outer())
    return outer


def register(name: str, cache: Any) -> None:
    """Register a cache under its function's name; it has `cache_info` and `cache_clear`, as `functools.lru_cache`."""
    with _REGISTERING:
        _REGISTER.setdefault(name, WeakSet()).add(cache)


def cache_info() -> dict[str, CacheInfo]:
    """Return the state of every function's cache in all loaded modules, by the function's name.

    Functions that are created per argument (the prices of a machine) are counted together. Bound plans and workspaces
    belong to a communicator and are freed with it; they are not counted. `rote.runtime.comm.segments.empty` has sizes
    in bytes: it is the memory of freed large blocks, which new blocks reuse. Blocks and this memory together never
    exceed the most that blocks took at one time, or 64 MiB.

    Returns
    -------
    dict[str, CacheInfo]
        `CacheInfo(hits, misses, size, most)` by the full name of the function, in the order of the names.

    Examples
    --------
    >>> import rote
    >>> layout = rote.parse("block[(0),()]")
    >>> before = rote.cache_info()["rote.layout.layout.parse"]
    >>> layout = rote.parse("block[(0),()]")
    >>> after = rote.cache_info()["rote.layout.layout.parse"]
    >>> after.hits - before.hits, after.misses - before.misses, after.size - before.size
    (1, 0, 0)
    """
    infos: dict[str, CacheInfo] = {}
    for name, caches in sorted(_caches(), key=itemgetter(0)):
        counts = [cache.cache_info() for cache in caches]
        hits, misses, most, size = (sum(n or 0 for n in column) for column in zip(*counts, strict=True))
        infos[name] = CacheInfo(hits, misses, size, most)

    return infos


def clear_caches() -> None:
    """Empty every function's cache: this frees memory, and later calls compute their results anew.

    Values in use stay as they are. A communicator keeps its bound plans, workspaces and decisions of the autotuner;
    wisdom stays in its folder, see `rote.wisdom.forget`.

    Examples
    --------
    >>> import rote
    >>> layout = rote.parse("block[(0),()]")
    >>> rote.clear_caches()
    >>> max(info.size for info in rote.cache_info().values())
    0
    >>> rote.parse("block[(0),()]") == layout
    True
    """
    for _, caches in _caches():
        for cache in caches:
            cache.cache_clear()


def _caches() -> Iterator[tuple[str, list[Any]]]:
    """The caches of each registered function, and of the functions of the grammar."""
    with _REGISTERING:
        registered = [(name, [*caches]) for name, caches in _REGISTER.items()]

    yield from ((name, caches) for name, caches in registered if caches)
    for module in [name for name in sys.modules if name.startswith(_GRAMMAR)]:
        for value in vars(sys.modules[module]).values():
            if hasattr(value, "cache_info") and value.__module__ == module:
                yield f"{module}.{value.__qualname__}", [value]
