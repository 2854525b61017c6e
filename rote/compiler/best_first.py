"""Best-first search: results come in the order of their prices, and hardly anything else is ever priced.

A draft is what may become a result, with a lower bound on the price. The draft with the least bound is opened: to other
drafts, with sharper bounds; or it is a result itself, and no other draft can lead to a better one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, TypeVar

__all__ = ["Draft", "best_first"]

Draft = tuple[float, tuple[float, ...], Any]
"""A lower bound; numbers that decide between equal bounds; and a result, or a function that opens the draft."""

T = TypeVar("T")


def best_first(drafts: Iterable[Draft], result: type[T]) -> Iterator[tuple[float, T]]:
    """The results of some type, with their bounds, in the order of these.

    A draft may only lead to bounds that are no lower than its own. Of drafts whose bounds and numbers are equal, the
    one that was made first is opened first.

    >>> def halves(n):
    ...     return [(n / 2, (), "half"), (n, (), "whole")]
    >>> [*best_first([(1.0, (), lambda: halves(6.0)), (2.0, (), "two")], str)]
    [(2.0, 'two'), (3.0, 'half'), (6.0, 'whole')]
    """
    number = count()
    heap = [(bound, ties, next(number), draft) for bound, ties, draft in drafts]
    heapify(heap)

    while heap:
        bound, _, _, draft = heappop(heap)
        if isinstance(draft, result):
            yield bound, draft
            continue
        for more, ties, child in draft():
            heappush(heap, (more, ties, next(number), child))
