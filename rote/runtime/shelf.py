"""What is bound to a communicator is kept there: made once, the least recently used given up."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from .comm import Comm

__all__ = ["keep"]

T = TypeVar("T")


def keep(comm: Comm, shelf: str, key: Hashable, make: Callable[[], T], most: int) -> T:
    """The thing that `make` made for a key, from a shelf of the communicator that holds the `most` last used.

    All ranks use their shelves alike, so that making and giving up may be collective.

    >>> from rote.runtime import world
    >>> [keep(world(), "doc", n, lambda: object(), 2) is keep(world(), "doc", n, object, 2) for n in range(3)]
    [True, True, True]
    """
    kept = cast("OrderedDict[Hashable, Any]", comm.cache.setdefault(shelf, OrderedDict()))
    if key not in kept:
        kept[key] = make()
        if len(kept) > most:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return cast(T, kept[key])
