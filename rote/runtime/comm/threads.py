"""In-process ranks: every rank is a thread, and collectives read directly from the other ranks' buffers.

NumPy copies, ufuncs and FFT libraries release the GIL, so the ranks run in parallel. All collectives are built from
meetings: each rank of a group brings the name of its call and a value, and leaves with the values of all. The last rank
checks that all made the same call. If ranks can no longer meet (one has ended or raised, or all wait), the run ends
with an error, so that a wrong program does not hang.

Beside the calls of `Comm`, ranks have mpi4py's, so that a program for mpi4py runs on `rote.run`, too: lower-case calls
take and return objects, which are pickled, and upper-case calls fill buffers. mpi4py is not imported: operations and
constants of MPI are recognised if the program has imported it.
"""

from __future__ import annotations

import operator
import pickle
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextvars import copy_context
from functools import reduce
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from ...errors import CommError
from ...layout.grid import integer
from ...layout.indexset import IndexSet
from ...layout.layout import Op
from .cache import CacheOfAll, CachePerThread
from .chunks import combined
from .collective_errors import collective_errors
from .protocol import Array, BoundToRun, Path, inside
from .rawfile import check_file_part, move_part
from .rendezvous import RankGroup, Released, ThreadedRun
from .segments import at_line

__all__ = ["MPI4PY_CALLS", "UFUNCS", "LocalComm", "alone", "checked_operation", "run_threads"]

T = TypeVar("T")

_MOMENT = 1.0  # seconds that an interrupted run waits for all its ranks together

MPI4PY_CALLS = (
    *("Get_rank", "Get_size", "bcast", "gather", "allgather", "scatter", "reduce", "allreduce", "alltoall"),
    *("Barrier", "Bcast", "Gather", "Allgather", "Scatter", "Reduce", "Allreduce", "Alltoall"),
)
"""The calls whose meaning is mpi4py's on every communicator of Rote."""

UFUNCS: dict[str, np.ufunc] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "LAND": np.logical_and,
    "LOR": np.logical_or,
    "LXOR": np.logical_xor,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
"""NumPy's functions for MPI's operations on buffers, by the names of the latter."""


def is_mpi(value: object, name: str) -> bool:
    """Whether a value is the object of this name in mpi4py.MPI, if the program has imported that."""
    module = sys.modules.get("mpi4py.MPI")
    known = getattr(module, name, None)
    return known is not None and type(value) is type(known) and bool(value == known)


def checked_operation(call: str, op: Any) -> Any:
    """The operation of a call that reduces; refused if it is none.

    Raises:
        CommError: it is a text, as for Rote's own calls, or cannot be called.
    """
    if callable(op):
        return op
    own, root = ("reduce", ", root=0") if call.lower() == "reduce" else ("allreduce", "")
    raise CommError(
        f"comm.{call} combines as mpi4py's does, which returns the result; its op is an operation, not {op!r}\n"
        f"write op=MPI.MAX, or op=max where mpi4py is not imported (np.maximum for buffers); "
        f'Rote\'s own call, in place on an array, is comm.{own}_in_place(array, "max"{root})'
    )


def ufunc_of(call: str, op: Any) -> np.ufunc:
    """NumPy's function of two buffers for an operation, which is mpi4py's or such a function.

    Raises:
        CommError: it is neither.
    """
    checked_operation(call, op)
    if isinstance(op, np.ufunc):
        return op
    for name, ufunc in UFUNCS.items():
        if is_mpi(op, name):
            return ufunc
    raise CommError(
        f"comm.{call} combines buffers by MPI's {', '.join(UFUNCS)} or NumPy's functions, as np.maximum; not {op!r}\n"
        f"write comm.{call.lower()}(value, op), which calls op(a, b) for objects"
    )


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

    def bcast_in_place(self, buffer: Array, root: int) -> None:
        theirs = self._meet(f"bcast from {root}", buffer)
        if self.rank != root:
            self._copy(buffer, (0, buffer.size), 0, theirs[root])
        self._meet("bcast")

    def allreduce_in_place(self, buffer: Array, op: Op) -> None:
        self._reduce(f"allreduce {op}", buffer, op, None)

    def reduce_in_place(self, buffer: Array, op: Op, root: int) -> None:
        self._reduce(f"reduce {op} to {root}", buffer, op, root)

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        theirs = self._meet(f"reduce_scatter {op}", send)
        ends = _ends(counts)
        part = combined([each[ends[self.rank] : ends[self.rank + 1]] for each in theirs], op)
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

    # mpi4py's calls, by its names, with its arguments and results. On MPI ranks they are mpi4py's own.

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Split(self, color: int = 0, key: int = 0) -> Any:
        """The communicator of the ranks that give this color, ordered by key; None if the color is MPI.UNDEFINED."""
        part = self.split(max(int(color), -1), key)
        return None if color < 0 else part

    def Dup(self) -> Any:
        return self.split(0, self.rank)

    def Free(self) -> None:
        """Drop what is kept on the communicator, which is freed when the last reference to it is gone."""
        self.cache.clear()

    def Barrier(self) -> None:
        self._meet("Barrier")

    # Objects. They are pickled, as under MPI: every rank gets its own copy.

    def bcast(self, obj: Any, root: int = 0) -> Any:
        data = self._meet(f"bcast from {root}", pickle.dumps(obj) if self.rank == root else b"")
        return pickle.loads(data[self._root(root)])

    def allgather(self, sendobj: Any) -> list[Any]:
        return [pickle.loads(data) for data in self._meet("allgather", pickle.dumps(sendobj))]

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        data = self._meet(f"gather to {root}", pickle.dumps(sendobj))
        return [pickle.loads(each) for each in data] if self.rank == self._root(root) else None

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        data = self._meet(f"scatter from {root}", self._pickles("scatter", sendobj) if self.rank == root else [])
        return pickle.loads(data[self._root(root)][self.rank])

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        return [pickle.loads(data[self.rank]) for data in self._meet("alltoall", self._pickles("alltoall", sendobj))]

    def reduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = operator.add, root: int = 0) -> Any:
        checked_operation("reduce", op)
        values = self.gather(sendobj, root)
        return None if values is None else reduce(op, values)

    def allreduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = operator.add) -> Any:
        checked_operation("allreduce", op)
        return reduce(op, self.allgather(sendobj))

    # Buffers: contiguous arrays, or lists that begin with one. All ranks give one dtype, and MPI.IN_PLACE as in MPI.

    def Bcast(self, buf: Any, root: int = 0) -> None:
        mine = _flat(buf)
        self._fill(mine, self._meet(f"Bcast from {root}", mine)[self._root(root)])

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = np.add, root: int = 0) -> None:
        self._reduce_buffers(
            f"Reduce to {root}", sendbuf, recvbuf, ufunc_of("Reduce", op), self.rank == self._root(root)
        )

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = np.add) -> None:
        self._reduce_buffers("Allreduce", sendbuf, recvbuf, ufunc_of("Allreduce", op), True)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        self._gather_buffers(f"Gather to {root}", sendbuf, recvbuf, self.rank == self._root(root))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        self._gather_buffers("Allgather", sendbuf, recvbuf, True)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        from_root = self.rank == self._root(root)
        theirs = self._meet(f"Scatter from {root}", _flat(sendbuf) if from_root else None)
        part = self._part(theirs[root], self.rank)
        self._fill(None if from_root and is_mpi(recvbuf, "IN_PLACE") else _flat(recvbuf), part)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        target = _flat(recvbuf)
        theirs = self._meet("Alltoall", target if is_mpi(sendbuf, "IN_PLACE") else _flat(sendbuf))
        self._fill(target, np.concatenate([self._part(each, self.rank) for each in theirs]))

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
        part = combined([each[ends[self.rank] : ends[self.rank + 1]] for each in theirs], op)
        parts = self._meet(call, part)  # from here on no rank reads the buffers or changes a part
        if root is None or root == self.rank:
            for source in range(self.size):
                self._copy(buffer, ends, source, parts[source])

    def _reduce_buffers(self, call: str, sendbuf: Any, recvbuf: Any, ufunc: np.ufunc, receives: bool) -> None:
        in_place = is_mpi(sendbuf, "IN_PLACE")
        target = _flat(recvbuf) if receives or in_place else None
        theirs = self._meet(f"{call} by {ufunc.__name__}", target if in_place else _flat(sendbuf))
        total = None
        if receives:
            total = theirs[0].copy()
            for each in theirs[1:]:  # in rank order, so that the result does not depend on timing
                self._same(total, each)
                ufunc(total, each, out=total, casting="unsafe")  # logical functions give bool
        self._fill(target if receives else None, total)

    def _gather_buffers(self, call: str, sendbuf: Any, recvbuf: Any, receives: bool) -> None:
        target, in_place = _flat(recvbuf) if receives else None, is_mpi(sendbuf, "IN_PLACE")
        mine = self._part(target, self.rank) if in_place and target is not None else _flat(sendbuf)
        theirs = self._meet(call, mine)
        self._fill(target, np.concatenate(theirs) if receives else None)

    def _root(self, root: int) -> int:
        """The root of a call, if there is such a rank."""
        if 0 <= root < self.size:
            return root
        raise CommError(f"there is no rank {root} of {self.size}\nwrite root=0 to {self.size - 1}")

    def _pickles(self, call: str, objects: Sequence[Any] | None) -> list[bytes]:
        """An object for each rank, pickled."""
        if objects is None or len(objects) != self.size:
            given = "None" if objects is None else f"{len(objects)}"
            raise CommError(f"comm.{call} sends one object to each of {self.size} ranks, not {given}")
        return [pickle.dumps(each) for each in objects]

    def _fill(self, target: Array | None, result: Array | None) -> None:
        """Fill a buffer of this rank as soon as no rank reads any of the buffers that all have given."""
        result = None if target is None or result is None else np.array(result)
        self._meet("the end of a call of mpi4py's")
        if target is not None and result is not None:
            self._same(target, result)
            target[...] = result

    def _part(self, buffer: Array, rank: int) -> Array:
        """The part of a buffer that belongs to a rank."""
        count = buffer.size // self.size
        if count * self.size != buffer.size:
            raise CommError(f"a buffer of {buffer.size} elements has no equal parts for {self.size} ranks")
        return buffer[count * rank : count * (rank + 1)]

    def _same(self, mine: Array, other: Array) -> None:
        """Refuse buffers that do not fit each other."""
        if (mine.size, mine.dtype) != (other.size, other.dtype):
            raise CommError(
                f"rank {self.rank} has a buffer of {mine.size} {mine.dtype}, for {other.size} {other.dtype}\n"
                "give buffers of one dtype whose sizes fit each other"
            )


def _ends(counts: Sequence[int]) -> list[int]:
    """The ends of the parts: the running sums, from 0."""
    return list(accumulate(counts, initial=0))


def _flat(spec: Any) -> Array:
    """The elements of a buffer: of an array, or of a list that begins with one and may have a count and MPI's type."""
    parts = list(spec) if isinstance(spec, list | tuple) else [spec]
    array = np.asarray(parts[0]) if parts and hasattr(parts[0], "__array_interface__") else None
    if array is None or not (array.flags.c_contiguous or array.flags.f_contiguous):
        what = "None" if spec is None else type(parts[0]).__name__ if array is None else "an array with gaps"
        text = f"a buffer is a contiguous array, or [array, MPI.TYPE]; not {what}"
        raise CommError(f"{text}\nsend np.ascontiguousarray(x)")
    flat = array.reshape(-1, order="A")
    return flat[: parts[1]] if len(parts) > 1 and isinstance(parts[1], int) else flat


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
        job.threads[rank] = threading.get_ident()
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
