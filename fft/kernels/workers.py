"""The threads of one rank: they do the items of a list at the same time.

Copies, and the transforms of all libraries, run without Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["parallel_for"]

_Worker = TypeVar("_Worker")
_Item = TypeVar("_Item")

_POOL = ThreadPoolExecutor(256, "rote")  # of all ranks of this process; it starts a thread when all others work


def parallel_for(do: Callable[[_Worker, _Item], object], workers: Sequence[_Worker], items: Sequence[_Item]) -> None:
    """Do all items, each with one worker, that does one item at a time; this thread is the first worker's.

    >>> found = []
    >>> parallel_for(lambda worker, item: found.append(worker * item), [1, 10], range(4))
    >>> sorted(found)
    [0, 2, 10, 30]
    """
    if len(workers) == 1:
        _all(do, workers[0], items)
        return
    number = len(workers)
    others = [_POOL.submit(_all, do, worker, items[n::number]) for n, worker in enumerate(workers) if n]
    try:
        _all(do, workers[0], items[::number])
    finally:
        wait(others)  # they work in the caller's memory
    for other in others:
        other.result()


def _all(do: Callable[[_Worker, _Item], object], worker: _Worker, items: Sequence[_Item]) -> None:
    for item in items:
        do(worker, item)
