"""In-process ranks: every rank is a thread, and collectives read directly from the other ranks' buffers.

NumPy copies, ufuncs and FFT libraries release the GIL, so the ranks run in parallel. All collectives are built from
meetings: each rank of a group brings the name of its call and a value, and leaves with the values of all. The last rank
checks that all made the same call. If ranks can no longer meet (one has ended or raised, or all wait), the run ends
with an error, so that a wrong program does not hang.

Beside the calls of `Comm`, ranks have mpi4py's (`mpi4py_calls`), which are built in the same way.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import accumulate
from types import FrameType
from typing import Any, TypeVar

from ...errors import CommError
from ...layout.grid import MOST_PROCESSES, integer
from ...layout.layout import Op
from .agreement import RemoteError, in_package, name_ranks
from .mpi4py_calls import Mpi4pyCalls
from .protocol import Array, inside
from .reductions import combine
from .segments import at_line

__all__ = ["LocalComm", "alone", "check_threads", "run_threads"]

T = TypeVar("T")

_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_MOMENT = 1.0  # seconds that an interrupted run waits for all its ranks together
_SLICE = 0.25  # seconds after which a waiting run hears a signal that did not wake it


def check_threads(threads: int, call: str) -> None:
    """Refuse several threads in a process whose MPI was started for only one.

    Args:
        call: the call that starts them, for the error.

    Raises:
        CommError: there are several, and MPI's level of threads is that of a single one.
    """
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if threads == 1 or mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    if mpi.Query_thread() == mpi.THREAD_SINGLE:
        raise CommError(
            f"{call} has {threads} threads in this process, but MPI was started for one alone\n"
            'write mpi4py.rc.thread_level = "multiple", or "funneled", before the first import of mpi4py.MPI'
        )


class LocalComm(Mpi4pyCalls):
    """The `Comm` of one in-process rank. Only that rank's thread may use it; any thread may if it is the only rank."""

    __slots__ = ("_group",)

    def __init__(self, group: ThreadedRanks, rank: int) -> None:
        super().__init__(rank, group.size)
        self._group = group

    def __repr__(self) -> str:
        return f"<in-process rank {self.rank} of {self.size}>"

    def split(self, color: int, key: int) -> LocalComm:
        group, rank = self._group.split(self.rank, int(color), int(key))
        return LocalComm(group, rank)

    def Split(self, color: int = 0, key: int = 0) -> LocalComm | None:
        """mpi4py's call: None for a rank whose color is MPI.UNDEFINED, which is negative."""
        part = self.split(max(int(color), -1), key)
        return None if color < 0 else part

    def barrier(self) -> None:
        self._exchange("barrier")

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array, recv_counts: Sequence[int]) -> None:
        theirs = self._exchange("alltoallv", (send, _ends(send_counts)))
        mine = _ends(recv_counts)
        # Each rank starts with its own part, then its right neighbour's, so that no two read one buffer at once.
        for step in range(self.size):
            source = (self.rank + step) % self.size
            buffer, ends = theirs[source]
            self._copy(recv, mine, source, buffer[ends[self.rank] : ends[self.rank + 1]])
        self._exchange("alltoallv")

    def allgatherv(self, send: Array, recv: Array, recv_counts: Sequence[int]) -> None:
        theirs = self._exchange("allgatherv", send)
        mine = _ends(recv_counts)
        for step in range(self.size):
            source = (self.rank + step) % self.size
            self._copy(recv, mine, source, theirs[source])
        self._exchange("allgatherv")

    def bcast_in_place(self, buffer: Array, root: int) -> None:
        theirs = self._exchange(f"bcast from {root}", buffer)
        if self.rank != root:
            self._copy(buffer, (0, buffer.size), 0, theirs[root])
        self._exchange("bcast")

    def allreduce_in_place(self, buffer: Array, op: Op) -> None:
        self._reduce(f"allreduce {op}", buffer, op, None)

    def reduce_in_place(self, buffer: Array, op: Op, root: int) -> None:
        self._reduce(f"reduce {op} to {root}", buffer, op, root)

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        theirs = self._exchange(f"reduce_scatter {op}", send)
        ends = _ends(counts)
        self._combine([buffer[ends[self.rank] : ends[self.rank + 1]] for buffer in theirs], op, [recv])
        self._exchange("reduce_scatter")

    def allocate_shared(self, nbytes: int) -> list[Array] | None:
        return self._exchange("share", at_line(nbytes))

    def nodes(self) -> Sequence[int]:
        return (0,) * self.size

    def share_reference(self, value: T) -> list[T] | None:
        return self._exchange("expose", value)

    def allgather_object(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        # Pickled, as under MPI: every rank gets its own copy, and a value that MPI cannot carry fails here too.
        return [pickle.loads(data) for data in self._exchange("allgather_object", pickle.dumps(value))]

    def _exchange(self, call: str, value: Any = None) -> list[Any]:
        return self._group.exchange(self.rank, call, value)

    def _copy(self, target: Array, ends: Sequence[int], part: int, source: Array) -> None:
        """Copy into one part of `target`; the counts of both ranks must agree."""
        place = target[ends[part] : ends[part + 1]]
        self._expect(place.size, source.size, part)
        place[...] = source

    def _expect(self, count: int, sent: int, rank: int) -> None:
        """Refuse a count of elements from a rank that sends another."""
        if count != sent:
            raise CommError(
                f"rank {self.rank} expects {count} elements from rank {rank}, which sends {sent}\n"
                "give counts that agree on both sides"
            )

    def _reduce(self, call: str, buffer: Array, op: Op, root: int | None) -> None:
        """Combine one part of all buffers on each rank, and write it into the buffers that need the result."""
        theirs = self._exchange(call, buffer)
        start, end = (buffer.size * rank // self.size for rank in (self.rank, self.rank + 1))
        parts = [contribution[start:end] for contribution in theirs]
        self._combine(parts, op, parts if root is None else [parts[root]])  # no other rank reads or writes this part
        self._exchange(call)

    def _combine(self, parts: Sequence[Array], op: Op, targets: Sequence[Array]) -> None:
        for rank, part in enumerate(parts):
            self._expect(targets[0].size, part.size, rank)
        combine(parts, op, targets)


def _ends(counts: Sequence[int]) -> list[int]:
    return list(accumulate(counts, initial=0))


def alone() -> LocalComm:
    """A communicator of one rank, for work that a rank does without the others.

    Examples
    --------
    >>> import rote
    >>> rote.runtime.alone().size
    1
    """
    return LocalComm(ThreadedRanks(ThreadedRun(1), (0,)), 0)


def run_threads(fn: Callable[..., T], ranks: int, args: tuple[Any, ...] = ()) -> list[T]:
    """Run `fn(comm, *args)` on `ranks` in-process ranks, one thread each, and return their results in rank order.

    Arguments and errors are those of `rote.run`.

    >>> run_threads(lambda comm, word: word * comm.rank, ranks=3, args=("ab",))
    ['', 'ab', 'abab']
    """
    size = integer(ranks, "the number of ranks")
    if size < 1:
        raise CommError(f"there must be at least one rank, not {size}\nwrite ranks=1 or more")
    if size > MOST_PROCESSES:
        raise CommError(
            f"there are at most {MOST_PROCESSES:,} ranks, not {size:,}\nwrite about as many as there are cores"
        )

    check_threads(size, f"rote.run(…, ranks={size})")
    job = ThreadedRun(size)
    group = ThreadedRanks(job, tuple(range(size)))
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
            while thread.is_alive():  # a signal that came just before the wait, or to another thread, wakes nobody
                thread.join(_SLICE)
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


# --- meetings, and ranks that can no longer meet ----------------------------------------------------------------------


class Released(BaseException):
    """Ends a rank whose run has failed elsewhere. It is no `Exception`, so that a program's handlers let it pass."""


class ThreadedRun:
    """The state of one run: which ranks wait in which meetings, which have ended, and why the run failed.

    All state is changed under one lock. A rank waits at its own gate, which is opened once: by the last rank that comes
    to the meeting, or by `_stop`.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock: threading.Lock = threading.Lock()
        self.failed: bool = False
        self._gates = [threading.Lock() for _ in range(size)]
        for gate in self._gates:
            gate.acquire()
        self.threads: dict[int, int] = {}  # per rank, the number of its thread
        self._waiting: dict[int, tuple[ThreadedRanks, str]] = {}
        self._gone: set[int] = set()
        self._errors: dict[int, BaseException] = {}
        self._refusal: CommError | None = None

    @property
    def over(self) -> bool:
        """Whether no rank runs any more."""
        return len(self._gone) == self.size

    def call_of(self, rank: int, call: str) -> str:
        """What a rank is in, in words: a call of its communicator, or the line of the program that has led there."""
        return _line_of(sys._current_frames().get(self.threads.get(rank, 0))) or call

    def wait(self, rank: int) -> None:
        """Wait at the rank's gate. Called outside the lock."""
        self._gates[rank].acquire()

    def waits(self, rank: int, group: ThreadedRanks, call: str) -> None:
        """Note that a rank is about to wait. Called under the lock."""
        self._waiting[rank] = (group, call)
        if self._gone or len(self._waiting) == self.size:
            self._refuse_deadlock()

    def release(self, ranks: Sequence[int]) -> None:
        """Open the gates of the given ranks, if they wait. Called under the lock."""
        for rank in ranks:
            if self._waiting.pop(rank, None):
                self._gates[rank].release()

    def refuse(self, text: str) -> None:
        """End the run because the ranks do not meet. Called under the lock."""
        if not self.failed:
            hint = "all ranks of a communicator must make the same collective calls in the same order"
            self._refusal = CommError(f"{text}\n{hint}")
        self._stop()

    def ended(self, rank: int, error: BaseException | None = None) -> None:
        """Note that a rank has returned, or has raised an error."""
        with self.lock:
            self._gone.add(rank)
            if error is None:
                if self._waiting:
                    self._refuse_deadlock()
            elif not _follows(error):
                self._errors[rank] = error
                self._stop()

    def interrupt(self) -> None:
        """End the run from outside."""
        with self.lock:
            self._stop()

    def error(self) -> BaseException | None:
        """The error for which the run failed. If all ranks raised one error, the copy with its own traceback."""
        if self._refusal is not None or not self._errors:
            return self._refusal
        rank = min(self._errors, key=lambda rank: (isinstance(self._errors[rank].__cause__, RemoteError), rank))
        error = self._errors[rank]
        name_ranks(error, rank, self.size)
        return error

    def forget(self) -> None:
        """Drop the errors: their tracebacks keep the ranks' objects alive."""
        self._errors.clear()
        self._refusal = None

    def _stop(self) -> None:
        self.failed = True
        self.release(list(self._waiting))

    def _refuse_deadlock(self) -> None:
        """Refuse a run in which a rank would wait for ever."""
        for group, call in list(self._waiting.values()):
            gone = [rank for rank in group.members if rank in self._gone]
            if gone:
                waiting = [rank for rank in group.members if self._waiting.get(rank, (None,))[0] is group]
                have = "has" if len(gone) == 1 else "have"
                wait = "wait" + "s" * (len(waiting) == 1)
                within = self.call_of(waiting[0], call)
                return self.refuse(
                    f"{_names(waiting)} of {self.size} {wait} in {within} for {_names(gone)}, which {have} returned"
                )
        if self._waiting and len(self._waiting) + len(self._gone) == self.size:
            calls = []
            for rank, (group, call) in sorted(self._waiting.items()):
                others = [other for other in group.members if other != rank]
                calls.append(f"rank {rank} in {self.call_of(rank, call)} with {_names(others)}")
            return self.refuse(f"every rank waits for another: {', '.join(calls)}")
        return None


class _Rendezvous:
    """One meeting of a group: the call and the value of each rank, and how many ranks are still missing."""

    __slots__ = ("calls", "held", "missing", "values")

    def __init__(self, size: int) -> None:
        self.calls: list[str] = [""] * size
        self.values: list[Any] = [None] * size
        self.missing: int = size
        self.held: bool = False


class ThreadedRanks:
    """The ranks of one communicator; `members` are their numbers in the run."""

    __slots__ = ("_meeting", "_run", "members", "size")

    def __init__(self, run: ThreadedRun, members: tuple[int, ...]) -> None:
        self._run = run
        self.members: tuple[int, ...] = members
        self.size: int = len(members)
        self._meeting = _Rendezvous(self.size)

    def split(self, rank: int, color: int, key: int) -> tuple[ThreadedRanks, int]:
        """The group of the ranks with this color, ordered by key, then rank; and this rank's place in it."""
        pairs = self.exchange(rank, "split", (color, key))
        ranks = sorted((r for r in range(self.size) if pairs[r][0] == color), key=lambda r: pairs[r][1])
        mine = ThreadedRanks(self._run, tuple(self.members[r] for r in ranks)) if rank == ranks[0] else None
        groups = self.exchange(rank, "split", mine)
        return groups[ranks[0]], ranks.index(rank)

    def exchange(self, rank: int, call: str, value: Any = None) -> list[Any]:
        """Wait until all ranks of the group have come with the same call; the values of all, in rank order."""
        run = self._run
        with run.lock:
            if run.over and self.size > 1:
                raise CommError(
                    "the run of rote.run whose communicator this is has ended, and its ranks with it\n"
                    "return x.to_global() or x.local from the run, and make a new tensor of that"
                )
            if run.failed:
                raise Released

            meeting = self._meeting
            meeting.calls[rank] = call
            meeting.values[rank] = value
            meeting.missing -= 1

            last = not meeting.missing
            if not last:
                run.waits(self.members[rank], self, call)
            elif meeting.calls.count(call) != self.size:
                calls = zip(self.members, meeting.calls, strict=True)
                pairs = ", ".join(f"rank {who} {run.call_of(who, what)}" for who, what in calls)
                run.refuse(f"the ranks make different calls: {pairs}")
            else:
                self._meeting = _Rendezvous(self.size)
                meeting.held = True
                run.release(self.members)
        if not last:
            run.wait(self.members[rank])

        # A meeting that was held counts, even if the run has failed since: a rank that learnt of its own error in it
        # must still raise that error.
        if not meeting.held:
            raise Released
        return meeting.values


def _follows(error: BaseException) -> bool:
    """Whether an error is only the consequence of a release: raised by a handler while the rank was being released."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, Released):
        seen = seen.__context__
    return seen is not None


def _line_of(frame: FrameType | None) -> str:
    """The line of the program that has led to a frame; empty if it calls a communicator itself, or is not known."""
    within = False  # a function between the program and the communicator
    while frame is not None and in_package(frame.f_code.co_filename):
        within = within or not frame.f_code.co_filename.startswith(_HERE)
        frame = frame.f_back
    if frame is None or not within:
        return ""
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number, frame.f_globals).strip()
    place = f"{os.path.basename(file)}:{number}"
    return f"`{text}` ({place})" if text else place


def _names(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
