"""In-process ranks: every rank is a thread, and collectives read directly from the other ranks' buffers.

NumPy copies, ufuncs and FFT libraries release the GIL, so the ranks run in parallel. All collectives are built from
meetings: each rank of a group brings the name of its call and a value, and leaves with the values of all. The last rank
checks that all made the same call. If ranks can no longer meet (one has ended or raised, or all wait), the run ends
with an error, so that a wrong program does not hang.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextvars import copy_context
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from ...errors import CommError
from ...layout.grid import integer
from ...layout.indexset import IndexSet
from ...layout.layout import Op
from .cache import CacheOfAll, CachePerThread
from .collective_errors import collective_errors
from .protocol import Array, BoundToRun, Path, inside
from .rawfile import check_file_part, move_part
from .rendezvous import RankGroup, Released, ThreadedRun
from .segments import at_line

__all__ = ["LocalComm", "alone", "run_threads"]

T = TypeVar("T")

_MOMENT = 1.0  # seconds that an interrupted run waits for all its ranks together

# On bool, add is the logical or, and multiply the logical and, as the protocol demands.
_OPS: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class LocalComm(BoundToRun):
    """The `Comm` of one in-process rank. Only that rank's thread may use it; any thread may if it is the only rank."""

    __slots__ = ("__weakref__", "_caches", "_group", "rank", "size")

    def __init__(self, group: RankGroup, rank: int) -> None:
        self._group = group
        self.rank: int = rank
        self.size: int = group.size
        self._caches = CachePerThread([]) if group.size == 1 else CacheOfAll()

    def __repr__(self) -> str:
        return f"<in-process rank {self.rank} of {self.size}>"

    @property
    def cache(self) -> dict[Hashable, Any]:
        return self._caches.cache

    def split(self, color: int, key: int) -> LocalComm:
        group, rank = self._group.split(self.rank, int(color), int(key))
        return LocalComm(group, rank)

    def barrier(self) -> None:
        self._group.meet(self.rank, "barrier")

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array, recv_counts: Sequence[int]) -> None:
        theirs = self._meet("alltoallv", (send, _ends(send_counts)))
        mine = _ends(recv_counts)
        # Each rank starts with its own part, then its right neighbour's, so that no two read one buffer at once.
        for step in range(self.size):
            source = (self.rank + step) % self.size
            buffer, ends = theirs[source]
            self._copy(recv, mine, source, buffer[ends[self.rank] : ends[self.rank + 1]])
        self._meet("alltoallv")

    def allgatherv(self, send: Array, recv: Array, recv_counts: Sequence[int]) -> None:
        theirs = self._meet("allgatherv", send)
        mine = _ends(recv_counts)
        for step in range(self.size):
            source = (self.rank + step) % self.size
            self._copy(recv, mine, source, theirs[source])
        self._meet("allgatherv")

    def bcast(self, buffer: Array, root: int) -> None:
        theirs = self._meet(f"bcast from {root}", buffer)
        if self.rank != root:
            self._copy(buffer, (0, buffer.size), 0, theirs[root])
        self._meet("bcast")

    def allreduce(self, buffer: Array, op: Op) -> None:
        self._reduce(f"allreduce {op}", buffer, op, None)

    def reduce(self, buffer: Array, op: Op, root: int) -> None:
        self._reduce(f"reduce {op} to {root}", buffer, op, root)

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        theirs = self._meet(f"reduce_scatter {op}", send)
        ends = _ends(counts)
        part = _combined(theirs, op, slice(ends[self.rank], ends[self.rank + 1]))
        self._copy(recv, (0, recv.size), 0, part)
        self._meet("reduce_scatter")

    def allocate_shared(self, nbytes: int) -> list[Array] | None:
        return self._meet("share", at_line(nbytes))

    def nodes(self) -> Sequence[int]:
        return (0,) * self.size

    def share_reference(self, value: T) -> list[T] | None:
        return self._group.meet(self.rank, "expose", value).values

    def allgather_object(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        # Pickled, as under MPI: every rank gets its own copy, and a value that MPI cannot carry fails here too.
        return [pickle.loads(each) for each in self._meet("allgather_object", pickle.dumps(value))]

    def read(self, path: Path, offset: int, shape: Sequence[int], index: Sequence[IndexSet], out: Array) -> None:
        with collective_errors(self):
            check_file_part(path, offset, shape, index, out, writing=False)
            move_part(path, offset, shape, index, out, writing=False)

    def write(self, path: Path, offset: int, shape: Sequence[int], index: Sequence[IndexSet], data: Array) -> None:
        with collective_errors(self):
            check_file_part(path, offset, shape, index, data, writing=True)
            move_part(path, offset, shape, index, data, writing=True)

    def _meet(self, call: str, value: Any = None) -> list[Any]:
        return self._group.meet(self.rank, call, value).values

    def _copy(self, target: Array, ends: Sequence[int], part: int, source: Array) -> None:
        """Copy into one part of `target`; the counts of both ranks must agree."""
        place = target[ends[part] : ends[part + 1]]
        if place.size != source.size:
            raise CommError(
                f"rank {self.rank} expects {place.size} elements from rank {part}, which sends {source.size}\n"
                "give counts that agree on both sides"
            )
        place[...] = source

    def _reduce(self, call: str, buffer: Array, op: Op, root: int | None) -> None:
        """Combine one part of all buffers on each rank; then the ranks that need the result copy all parts."""
        theirs = self._meet(call, buffer)
        ends = [buffer.size * rank // self.size for rank in range(self.size + 1)]
        part = _combined(theirs, op, slice(ends[self.rank], ends[self.rank + 1]))
        parts = self._meet(call, part)  # from here on no rank reads the buffers or changes a part
        if root is None or root == self.rank:
            for source in range(self.size):
                self._copy(buffer, ends, source, parts[source])


def _ends(counts: Sequence[int]) -> list[int]:
    """The ends of the parts: the running sums, from 0."""
    return list(accumulate(counts, initial=0))


def _combined(buffers: Sequence[Array], op: Op, part: slice) -> Array:
    """One part of all buffers combined in rank order, so that the result does not depend on timing."""
    total = buffers[0][part].copy()
    for buffer in buffers[1:]:
        _OPS[op](total, buffer[part], out=total)
    return total


def alone() -> LocalComm:
    """A communicator of one rank, for work that a rank does without the others.

    >>> alone().size
    1
    """
    return LocalComm(RankGroup(ThreadedRun(1), (0,)), 0)


def run_threads(fn: Callable[..., T], ranks: int, args: tuple[Any, ...] = ()) -> list[T]:
    """Run `fn(comm, *args)` on `ranks` in-process ranks, one thread each, and return their results in rank order.

    Arguments and errors are those of `rote.run`.

    >>> run_threads(lambda comm, word: word * comm.rank, ranks=3, args=("ab",))
    ['', 'ab', 'abab']
    """
    size = integer(ranks, "the number of ranks")
    if size < 1:
        raise CommError(f"there must be at least one rank, not {size}\nwrite ranks=1 or more")
    job = ThreadedRun(size)
    group = RankGroup(job, tuple(range(size)))
    results: dict[int, T] = {}

    def program(rank: int) -> None:
        token = inside.set(LocalComm(group, rank))
        try:
            results[rank] = fn(inside.get(), *args)
        except Released:
            job.ended(rank)
        except BaseException as error:
            job.ended(rank, error)
        else:
            job.ended(rank)
        finally:
            inside.reset(token)

    threads = []
    for rank in range(size):  # daemons: a rank that computes for ever must not keep an interrupted program alive
        run = copy_context().run
        threads.append(threading.Thread(target=run, args=(program, rank), name=f"rote rank {rank}", daemon=True))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:  # an interrupt: release the ranks, and give them a moment to clean up
        job.interrupt()
        until = time.monotonic() + _MOMENT
        for thread in threads:
            if thread.ident is not None:
                thread.join(timeout=max(until - time.monotonic(), 0.0))
        raise
    error = job.error()
    try:
        if error is not None:
            raise error
    finally:
        job.forget()
        error = None  # an error holds its traceback, which holds this frame
    return [results[rank] for rank in range(size)]
