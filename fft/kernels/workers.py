"""The threads of one rank, which share the items of a list.

Copies and the transforms of all libraries release Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from rote.runtime.comm.cache import cached
from rote.runtime.comm.protocol import Comm

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Pool", "helpers", "parallel_for"]

_Worker = TypeVar("_Worker")
_Item = TypeVar("_Item")

_KEPT = 4  # pools of different sizes that a communicator keeps

Pool: TypeAlias = "ThreadPoolExecutor | None"
"""The threads beside a rank's main thread; None if the main thread works alone."""


def helpers(comm: Comm, threads: int) -> Pool:
    """The threads beside a rank's main thread; its communicator keeps them, and they end with it."""
    if threads == 1:
        return None
    from concurrent.futures import ThreadPoolExecutor  # it imports logging, which one thread does not need

    return cached(comm, "threads", threads, lambda: ThreadPoolExecutor(threads - 1, "rote"), _KEPT)


def parallel_for(
    pool: Pool, do: Callable[[_Worker, _Item], object], workers: Sequence[_Worker], items: Sequence[_Item]
) -> None:
    """Do all items. Each worker does one item at a time; the first worker runs on this thread.

    Several workers need a pool.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> products = []
    >>> with ThreadPoolExecutor(1) as pool:
    ...     parallel_for(pool, lambda worker, item: products.append(worker * item), [1, 10], range(4))
    >>> sorted(products)
    [0, 2, 10, 30]
    """
    if len(workers) == 1:
        _all(do, workers[0], items)
        return
    assert pool is not None, "workers without threads"
    from concurrent.futures import wait

    number = len(workers)
    others = [pool.submit(_all, do, worker, items[n::number]) for n, worker in enumerate(workers) if n]
    try:
        _all(do, workers[0], items[::number])
    finally:
        wait(others)  # they work in the caller's memory
    for other in others:
        other.result()


def _all(do: Callable[[_Worker, _Item], object], worker: _Worker, items: Sequence[_Item]) -> None:
    for item in items:
        do(worker, item)
