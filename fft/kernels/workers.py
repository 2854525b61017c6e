"""The threads of one rank: they do the items of a list at the same time.

Copies, and the transforms of all libraries, run without Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["spread"]

_Hand = TypeVar("_Hand")
_Item = TypeVar("_Item")

_POOL = ThreadPoolExecutor(256, "rote")  # of all ranks of this process; it starts a thread when all others work


def spread(do: Callable[[_Hand, _Item], object], hands: Sequence[_Hand], items: Sequence[_Item]) -> None:
    """Do all items, each with one hand, that does one item at a time; this thread is the first hand's.

    >>> found = []
    >>> spread(lambda hand, item: found.append(hand * item), [1, 10], range(4))
    >>> sorted(found)
    [0, 2, 10, 30]
    """
    if len(hands) == 1:
        _all(do, hands[0], items)
        return
    number = len(hands)
    others = [_POOL.submit(_all, do, hand, items[n::number]) for n, hand in enumerate(hands) if n]
    try:
        _all(do, hands[0], items[::number])
    finally:
        wait(others)  # they work in the caller's memory
    for other in others:
        other.result()


def _all(do: Callable[[_Hand, _Item], object], hand: _Hand, items: Sequence[_Item]) -> None:
    for item in items:
        do(hand, item)
