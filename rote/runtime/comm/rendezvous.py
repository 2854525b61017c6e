"""The rendezvous of in-process ranks: groups, meetings, and the detection of ranks that can no longer meet."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from ...errors import CommError
from .collective_errors import RemoteError, in_package, name_ranks

__all__ = ["RankGroup", "Released", "ThreadedRun"]


_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


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
        self._waiting: dict[int, tuple[RankGroup, str]] = {}
        self._gone: set[int] = set()
        self._errors: dict[int, BaseException] = {}
        self._verdict: CommError | None = None

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

    def waits(self, rank: int, group: RankGroup, call: str) -> None:
        """Note that a rank is about to wait. Called under the lock."""
        self._waiting[rank] = (group, call)
        if self._gone or len(self._waiting) == self.size:
            self._judge()

    def release(self, ranks: Sequence[int]) -> None:
        """Open the gates of the given ranks, if they wait. Called under the lock."""
        for rank in ranks:
            if self._waiting.pop(rank, None):
                self._gates[rank].release()

    def refuse(self, text: str) -> None:
        """End the run because the ranks do not meet. Called under the lock."""
        if not self.failed:
            cure = "all ranks of a communicator must make the same collective calls in the same order"
            self._verdict = CommError(f"{text}\n{cure}")
        self._stop()

    def ended(self, rank: int, error: BaseException | None = None) -> None:
        """Note that a rank has returned, or has raised an error."""
        with self.lock:
            self._gone.add(rank)
            if error is None:
                if self._waiting:
                    self._judge()
            elif not _follows(error):
                self._errors[rank] = error
                self._stop()

    def interrupt(self) -> None:
        """End the run from outside."""
        with self.lock:
            self._stop()

    def error(self) -> BaseException | None:
        """The error for which the run failed. If all ranks raised one error, the copy with its own traceback."""
        if self._verdict is not None or not self._errors:
            return self._verdict
        rank = min(self._errors, key=lambda rank: (isinstance(self._errors[rank].__cause__, RemoteError), rank))
        error = self._errors[rank]
        name_ranks(error, rank, self.size)
        return error

    def forget(self) -> None:
        """Drop the errors: their tracebacks keep the ranks' objects alive."""
        self._errors.clear()
        self._verdict = None

    def _stop(self) -> None:
        self.failed = True
        self.release(list(self._waiting))

    def _judge(self) -> None:
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


class Rendezvous:
    """One meeting of a group: the call and the value of each rank, and how many ranks are still missing."""

    __slots__ = ("calls", "held", "missing", "shared", "values")

    def __init__(self, size: int) -> None:
        self.calls: list[str] = [""] * size
        self.values: list[Any] = [None] * size
        self.missing: int = size
        self.held: bool = False
        self.shared: Any = None


class RankGroup:
    """The ranks of one communicator; `members` are their numbers in the run."""

    __slots__ = ("_meeting", "_run", "members", "size")

    def __init__(self, run: ThreadedRun, members: tuple[int, ...]) -> None:
        self._run = run
        self.members: tuple[int, ...] = members
        self.size: int = len(members)
        self._meeting = Rendezvous(self.size)

    def split(self, rank: int, color: int, key: int) -> tuple[RankGroup, int]:
        """The group of the ranks with this color, ordered by key, then rank; and this rank's place in it."""

        def ranks(values: list[Any], color: int) -> list[int]:
            keys = [(key, rank) for rank, (each, key) in enumerate(values) if each == color]
            return [rank for _, rank in sorted(keys)]

        def groups(values: list[Any]) -> dict[int, RankGroup]:
            by_color: dict[int, RankGroup] = {}
            for each in dict.fromkeys(color for color, _ in values):
                by_color[each] = RankGroup(self._run, tuple(self.members[r] for r in ranks(values, each)))
            return by_color

        meeting = self.meet(rank, "split", (color, key), groups)
        return meeting.shared[color], ranks(meeting.values, color).index(rank)

    def meet(
        self, rank: int, call: str, value: Any = None, make: Callable[[list[Any]], Any] | None = None
    ) -> Rendezvous:
        """Wait until all ranks of the group have come with the same call.

        `values` then has their values, in rank order, and `shared` what the last rank made of them with `make`.
        """
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
                self._meeting = Rendezvous(self.size)
                meeting.held = True
                if make is not None:
                    meeting.shared = make(meeting.values)
                run.release(self.members)
        if not last:
            run.wait(self.members[rank])
        # A meeting that was held counts, even if the run has failed since: a rank that learnt of its own error in it
        # must still raise that error.
        if not meeting.held:
            raise Released
        return meeting


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
