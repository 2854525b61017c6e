"""Values that are worked out once, however many threads ask for them at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["once"]

P = ParamSpec("P")
T = TypeVar("T")


class _Value:
    """A value, or a place for it: whoever holds the lock makes it, and the others wait for that."""

    __slots__ = ("lock", "made", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: Any = None


def once(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember the `most` last values of a function of hashable arguments, each of which one thread makes.

    In-process ranks plan the same at the same time, and `functools.lru_cache` would let each of them do it. Errors are
    not kept: every thread that asks has its own.

    >>> made = []
    >>> @once(8)
    ... def double(n):
    ...     made.append(n)
    ...     return 2 * n
    >>> double(2), double(2), made
    (4, 4, [2])
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        kept: OrderedDict[Hashable, _Value] = OrderedDict()
        guard = threading.Lock()

        @wraps(make)
        def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (args, *sorted(kwargs.items())) if kwargs else args
            with guard:
                place = kept.setdefault(key, _Value())
                kept.move_to_end(key)
                if len(kept) > most:
                    kept.popitem(last=False)
            if not place.made:
                with place.lock:
                    if not place.made:
                        place.value = make(*args, **kwargs)
                        place.made = True
            value: T = place.value
            return value

        return remembered

    return decorate
