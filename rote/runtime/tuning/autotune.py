"""The autotuner: all ranks time candidates in turn, agree on one, and remember it.

Walks, kernels and methods of exchange provide candidates, and calibration uses the same timing. Candidates are timed in
rounds, in alternating order, so that a disturbance affects all of them alike. Each reading is that of the slowest rank,
so that all ranks make the same decision. The first candidate is the model's own choice. It stays unless another one
leads by more than the spread of their ratios, round by round (see `rote.runtime.tuning.leads`).
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from ... import wisdom
from ..comm.cache import cached
from ..comm.collective_errors import from_root
from ..comm.protocol import Comm
from ..comm.threads import LocalComm
from .leads import FEWEST, lead
from .limits import Limits, within

__all__ = ["Candidate", "Progress", "decided", "fastest", "keeps", "least", "local_key", "medians", "mpi_library"]
__all__ += ["middle", "ranking", "ranks_key", "reading", "recalled", "remembered", "rounds", "timings"]

T = TypeVar("T")
Progress = Callable[[float], object]
Candidate = Callable[[float, Progress | None], float]
"""A turn of a candidate on this rank: returns its seconds, given the approximate limit, and a progress callback."""

_SHORTEST = 1e-13  # seconds: a time is never 0, whatever the noise
_CALLS = 8  # in a turn: a burst of other work that is shorter than all of them does not matter
_KEPT = 256  # decisions that a communicator remembers


def middle(times: Sequence[float]) -> float:
    """The median of all readings but the first, made with cold caches; infinite if there are no readings."""
    from statistics import median  # imported only if something is timed

    return max(median(times[1:] or times or [inf]), _SHORTEST)


def least(times: Sequence[float]) -> float:
    """The shortest reading; infinite if there is none."""
    return min(times, default=inf)


# --- timing -----------------------------------------------------------------------------------------------------------


def timings(
    comm: Comm, candidates: Sequence[Candidate], seconds: float, limits: Limits, progress: Progress | None = None
) -> list[list[float]]:
    """The seconds of each candidate's turns, on the slowest rank. Collective; the same on all ranks.

    Every other round goes backwards, so that a machine that grows slower or faster favours none. A turn is skipped if
    it would not end in time, judging by the candidate's last turn.

    Args:
        candidates: equally many on each rank; the first one is the usual one, which is never dropped.
        seconds: the most time for all turns, about.
        progress: called after each turn with the part done, of the time or of the turns.
    """
    start, spent, turn = perf_counter(), 0.0, 0
    times: list[list[float]] = [[] for _ in candidates]
    took = [0.0] * len(candidates)
    running = [*range(len(candidates))]
    turns = limits.rounds * len(candidates)
    if limits.enough < limits.rounds:
        turns = limits.enough * len(candidates) + 2 * FEWEST

    def tell(part: float) -> None:
        if progress is not None:
            of_time = spent / seconds if seconds > 0 else 1.0
            progress(min(1.0, max(of_time, (turn + part) / turns)))

    for number in range(limits.rounds):
        begun = spent
        order = running[::-1] if number % 2 else running
        for n in order:
            left = seconds - spent
            due = not times[n] and (n == 0 or limits.each)
            if due or took[n] < left:
                share = max(left, 0.0) / max(turns - turn, len(running))
                comm.barrier()
                slowest = np.array([candidates[n](share, tell), perf_counter() - start])
                comm.allreduce_in_place(slowest, "max")
                before, (time, spent) = spent, slowest.tolist()
                times[n].append(max(time, _SHORTEST))
                took[n] = spent - before
                tell(1.0)
            turn += 1
        if spent == begun:
            break
        within = limits.behind[number > 0] * min(map(least, times))
        running = [n for n in running if n == 0 or least(times[n]) <= within]
        if number + 1 >= limits.enough:
            leader = min(running, key=lambda n: least(times[n]))
            running = [0, leader]
            ahead = lead(times[leader], times[0])
            if leader == 0 or ahead.high < limits.better or ahead.low > limits.better:
                break
    if progress is not None:
        progress(1.0)
    return times


def ranking(times: Sequence[Sequence[float]], limits: Limits) -> list[int]:
    """The candidates that were timed, by their fastest turns; the first one leads unless another is clearly faster.

    It must be faster by its fastest turn, which no other work has lengthened, and by the ratios of its turns to those
    of the first candidate in the same rounds, of which there must be five or more.

    >>> limits = Limits({}, better=0.96)
    >>> ranking([[3.0, 1.0], [2.0, 0.9], [], [2.0, 2.0]], limits)
    [0, 1, 3]
    >>> ranking([[1.0, 1.1, 1.0, 3.0, 1.0], [0.9, 0.9, 0.8, 2.0, 0.9], []], limits)
    [1, 0]
    """
    scores = [*map(least, times)]
    order = sorted((n for n, seconds in enumerate(scores) if n == 0 or seconds < inf), key=scores.__getitem__)
    fastest, limit = order[0], limits.better
    if scores[0] == inf or (scores[fastest] < limit * scores[0] and lead(times[fastest], times[0]).high < limit):
        return order
    return [0, *(n for n in order if n)]


def medians(
    comm: Comm, calls: Sequence[Callable[[], object]], seconds: float, progress: Progress | None = None
) -> list[float]:
    """Time collective calls in turn; return the seconds of each. Collective; the same on all ranks.

    Each is the median of all rounds but the first. For the arguments, see `rounds`.
    """
    return [*map(middle, rounds(comm, calls, seconds, progress))]


def rounds(
    comm: Comm, calls: Sequence[Callable[[], object]], seconds: float, progress: Progress | None = None
) -> list[list[float]]:
    """Time collective calls in turn; return the seconds of each in every round. Collective; the same on all ranks.

    A call takes as long as on its slowest rank.

    Args:
        seconds: the most time for all rounds, about; one round is always made.
        progress: called after each turn with the part of the time that has passed.
    """
    candidates = [partial(reading, comm, call) for call in calls]
    return timings(comm, candidates, seconds, Limits({}, each=True), progress)


def reading(comm: Comm, call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
    """The seconds of a call that all ranks begin together, with caches warm from a first call."""
    call()
    return _call_time(comm, call, seconds, progress)


def fastest(comm: Comm, call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
    """The seconds of the fastest of up to eight such calls: as many as the time allows, at least one."""
    call()
    return least(timings(comm, [partial(_call_time, comm, call)], seconds, Limits({}, rounds=_CALLS), progress)[0])


def _call_time(comm: Comm, call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
    comm.barrier()
    start = perf_counter()
    call()
    return perf_counter() - start


# --- remembering ------------------------------------------------------------------------------------------------------


def mpi_library(comm: Comm) -> str:
    """The name and version of the MPI library in use; empty for in-process ranks."""
    loaded = sys.modules.get("mpi4py.MPI")  # loaded if ranks use it
    if isinstance(comm, LocalComm) or loaded is None:
        return ""
    first = str(loaded.Get_library_version()).partition("\n")[0].partition(",")[0]
    return " ".join(first.replace("\0", "").split())


def ranks_key(comm: Comm, facts: Mapping[str, Any]) -> wisdom.Key:
    """The key of a decision that also depends on the numbers of ranks and hosts, and on the MPI library. Collective."""
    hosts = len(set(comm.allgather_object(platform.node())))
    return wisdom.key({**facts, "ranks": comm.size, "hosts": hosts}, mpi_library(comm))


def local_key(facts: Mapping[str, Any]) -> wisdom.Key:
    """The key of a decision about local work, which does not depend on the number of ranks."""
    return wisdom.key(facts)


def recalled(comm: Comm, key: wisdom.Key, read: Callable[[Any], Any] | None = None) -> Any:
    """Recall on all ranks rank 0's value for a key (see `wisdom.recall`); None if there is none. Collective."""
    return from_root(comm, lambda: wisdom.recall(key, read))


def remembered(comm: Comm, key: wisdom.Key, decision: Any) -> bool:
    """Let rank 0 remember a decision (see `wisdom.remember`); return whether it was kept, on all ranks. Collective."""
    return bool(comm.allgather_object(comm.rank == 0 and wisdom.remember(key, decision))[0])


def keeps(comm: Comm) -> bool:
    """Whether rank 0 keeps wisdom at all; the same on all ranks. Collective."""
    return bool(comm.allgather_object(comm.rank == 0 and wisdom.folder() is not None)[0])


_renewed: ContextVar[set[wisdom.Key] | None] = ContextVar("renewed", default=None)  # the keys renewed so far


class _NothingFound(Exception):
    """There is no decision, because no time was left to find one."""


def decided(
    comm: Comm,
    facts: Mapping[str, Any],
    tune: str,
    read: Callable[[Any], T],
    find: Callable[[], Any],
    stands: Callable[[T], bool] = lambda decision: True,
) -> T | None:
    """Recall a decision on these ranks, or find it now and keep it as wisdom. Collective.

    If nothing can be written, the communicator remembers the last decisions. A decision found within a `time_limit`
    serves only callers with the same limit.

    Args:
        facts: all that the decision depends on beside the ranks, the machine and the versions.
        tune: how to find it, "measure" or "patient"; a decision found patiently also serves "measure".
        read: converts the JSON value that is kept to a decision; `wisdom.recall` says which errors it may raise.
        find: returns such a value; all ranks use that of rank 0. None if no time is left; then nothing is kept.
        stands: whether a kept decision still holds, the same on all ranks; called once. If it does not, the decision is
            found again, together with all decisions that this involves.
    """
    keys = {name: ranks_key(comm, {**facts, "tune": name}) for name in dict.fromkeys(("patient", tune))}
    own = tune
    if within.get() is not None:
        own = f"{tune} within {within.get()}"
        keys[own] = ranks_key(comm, {**facts, "tune": own})
    renewed = _renewed.get()
    if renewed is not None and keys[own] not in renewed:
        comm.cache.get("decisions", {}).pop(keys[own], None)

    def checked(kept: Any) -> Any:
        read(kept)
        return kept

    def make() -> T:
        recollections = {name: recalled(comm, key, checked) for name, key in keys.items()}
        known = {name: kept for name, kept in recollections.items() if kept is not None}
        fresh = renewed
        if known and fresh is None:
            decision = read(next(iter(known.values())))
            if stands(decision):
                return decision
            fresh = set()
        token = _renewed.set(fresh)
        try:
            value = comm.allgather_object(find())[0]
        finally:
            _renewed.reset(token)
        if value is None:
            raise _NothingFound
        if fresh is not None:
            fresh.add(keys[own])
        for name in dict.fromkeys([own, *known]):
            remembered(comm, keys[name], value)
        return read(value)

    try:
        return cached(comm, "decisions", keys[own], make, _KEPT)
    except _NothingFound:
        return None
