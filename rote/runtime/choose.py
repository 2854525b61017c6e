"""Choosing by time: all ranks time candidates in turn, take the one that is clearly fastest, and remember it.

Walks, libraries and methods of exchange are chosen here, and calibration uses the same timing. A caller builds its
candidates, the usual one first, and calls `choose`; `decided` remembers the result as wisdom.

The machine's speed may change by a factor of two within minutes, and other work takes the cores away in bursts. The
ratio of two runs taken one after the other stays the same, except in rounds that a burst affects, on either side. So
candidates are timed in rounds, every other one backwards, and each is compared with the usual one by the median of
their ratios, round by round. Another candidate is taken only if it needs at most nine tenths of the time, and is surely
faster, which takes five rounds. Each time is that of the slowest rank, so that all ranks choose alike.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from math import ceil, comb, inf
from time import perf_counter
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from .. import wisdom
from ..errors import PlanError
from .comm.agreement import from_root
from .comm.cache import cached
from .comm.protocol import Comm
from .comm.threads import LocalComm
from .log import log

__all__ = ["BETTER", "FEWEST", "SECONDS", "TUNES", "Candidate", "LocalCall", "Progress", "TimeRatio"]
__all__ += ["Timed", "Tune", "allowed", "budget", "check_tune", "choose", "collective_call", "decided", "keeps"]
__all__ += ["medians", "middle", "mpi_library", "ranks_key", "recalled", "remembered", "rounds", "time_limit"]
__all__ += ["time_ratio", "timings"]

T = TypeVar("T")
Progress = Callable[[float], object]
Candidate = Callable[[float, Progress | None], float]
"""A timed run of a candidate on this rank: its seconds, given the approximate limit, and a progress callback."""

BETTER = 0.9
"""The part of the usual candidate's time that another one may take, at most, to be chosen."""

FEWEST = 5
"""The fewest rounds for a sure ratio: so many equal signs in a row occur by chance once in 2**5 times."""

_DOUBT = 1 / 2**FEWEST  # how often a bound of a ratio is wrong, at most
_ROUNDS = 40  # of a choice, at most
_ENDLESS = 1 << 60  # rounds, as many as the time allows
_ENOUGH = 3  # rounds after which only the usual candidate and the fastest go on, until it is known which to take
_SLOW = 3.0, 1.5  # times the fastest run: slower candidates have no other run, after the first round and later ones
_CALLS = 8  # in a run: a burst of other work that is shorter than all of them does not matter
_SHORT, _AGAIN = 2e-3, 2  # local calls of fewer seconds are made again in the first run; how often in later runs
_READABLE = 2e-4  # seconds: shorter local calls are repeated between two readings of the clock
_SHORTEST = 1e-13  # seconds: a time is never 0, whatever the noise
_KEPT = 256  # decisions that a communicator remembers


# --- how long timing may take -----------------------------------------------------------------------------------------

Tune = Literal["model", "measure", "patient"]
TUNES: tuple[Tune, ...] = get_args(Tune)
"""How to find a fast candidate: by the model, at once; by timing; or patiently, with more candidates, for longer."""

# Measured with complex128 on 2 ranks of one process, on 2 cores that other programs used as well (load 4 to 8).
SECONDS: dict[str, dict[str, float]] = {
    "method": {"measure": 2.0, "patient": 5.0},  # a slab swap by two methods: 55 rounds in 0.5 s at 64³, 4 at 128³
    "walk": {"measure": 10.0, "patient": 60.0},  # all runs of 3 walks, with binding: 4.5 s at 64³, 7.1 s at 128³
}
"""By the sort of candidates and by `Tune`, the most seconds for all of them, about; a run that has begun is ended."""

_LARGE, _LONGER = 1 << 26, 4.0  # a choice takes longer for blocks above so many bytes; at most so many times as long


def check_tune(tune: str) -> None:
    """Refuse a value that is not one of `TUNES`.

    Raises:
        PlanError: it is not.
    """
    if tune not in TUNES:
        raise PlanError(f"tune is one of {', '.join(TUNES)}; not {tune!r}")


# The limit in force, if there is one: its seconds, and the reading of this rank's clock at which they are over.
_within: ContextVar[tuple[float, float] | None] = ContextVar("within", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit all timing in the context to so many seconds together, about; None is no limit. The same on all ranks.

    Inside another limit, that one remains in force.
    """
    limit = _within.get()
    if limit is None and seconds is not None:
        limit = seconds, perf_counter() + seconds
    token = _within.set(limit)
    try:
        yield
    finally:
        _within.reset(token)


def allowed(comm: Comm, seconds: float) -> float:
    """The seconds, up to `seconds`, that a choice may take: at most half of those left, as others follow. Collective.

    The same on all ranks, by the clock of the rank with the least time left. 0 if nothing is left.

    >>> from rote.runtime import world
    >>> with time_limit(3.0):
    ...     1.4 < allowed(world(), 60.0) <= 1.5, allowed(world(), 1.0)
    (True, 1.0)
    """
    limit = _within.get()
    if limit is None:
        return seconds
    left = np.array([limit[1] - perf_counter()])
    comm.allreduce_in_place(left, "min")
    return max(0.0, min(seconds, float(left[0]) / 2))


def budget(comm: Comm, sort: str, tune: str, nbytes: int = 0) -> float:
    """The seconds that a choice may take: those of its sort, up to four times as many for large blocks. Collective.

    A `time_limit` may reduce them.

    Args:
        sort: a key of `SECONDS`.
        nbytes: bytes of the largest block, on all ranks.
    """
    return allowed(comm, min(_LONGER, max(1.0, nbytes / _LARGE)) * SECONDS[sort][tune])


# --- ratios -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """The ratio of a candidate's time to that of the usual one; the candidate is faster if it is below 1.

    Attributes:
        ratio: the median of all rounds; 1 if there were none.
        low, high: its bounds, each wrong at most once in 32 times; 0 and infinite if there were too few rounds.
    """

    ratio: float = 1.0
    low: float = 0.0
    high: float = inf

    @property
    def is_better(self) -> bool:
        """Whether the candidate is to be taken: it is surely faster, and by enough."""
        return self.high < 1.0 and self.ratio <= BETTER


def time_ratio(times: Sequence[float], usual: Sequence[float]) -> TimeRatio:
    """The ratio of a candidate's time to that of the usual one, from the runs of both in the same rounds.

    The only assumption about the noise is that it favours neither candidate. The bounds are those of the sign test,
    order statistics of the ratios (Hollander, Wolfe and Chicken 2014, Nonparametric Statistical Methods, sections 3.4
    to 3.6).

    Args:
        times, usual: seconds per round; rounds that only one of them had are left out. A failed run took forever.

    >>> time_ratio([1.0, 1.1, 5.0, 1.0, 1.2, 1.0], [2.0, 2.2, 2.0, 2.0, 2.4, 6.0])
    TimeRatio(ratio=0.5, low=0.16666666666666666, high=2.5)
    >>> time_ratio([1.0] * 4, [2.0] * 4)
    TimeRatio(ratio=0.5, low=0.0, high=inf)
    """
    ratios = sorted(inf if mine == inf else mine / its for mine, its in zip(times, usual, strict=False))
    if not ratios:
        return TimeRatio()
    number = len(ratios)
    ratio = (ratios[(number - 1) // 2] + ratios[number // 2]) / 2
    tail, beyond = 0.0, 0  # the chance of so few signs of one kind; the number of ratios beyond either bound
    while (tail := tail + comb(number, beyond) / 2**number) <= _DOUBT:
        beyond += 1
    return TimeRatio(ratio, ratios[beyond - 1], ratios[-beyond]) if beyond else TimeRatio(ratio)


# --- timing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """The candidates of a choice, by their numbers, and the seconds of each in each round.

    Attributes:
        order: those that were timed: the one that is taken first, then by their fastest runs.
        times: the seconds of each candidate's runs, on the slowest rank.
    """

    order: tuple[int, ...]
    times: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> int:
        """The candidate that is taken."""
        return self.order[0]

    def seconds(self, n: int) -> float:
        """The fastest run of a candidate, which no other work has lengthened; infinite if it had none."""
        return min(self.times[n], default=inf)


def choose(
    comm: Comm,
    candidates: Sequence[Candidate],
    seconds: float,
    progress: Progress | None = None,
    rounds: int = _ROUNDS,
    each: bool = False,
) -> Timed:
    """Time candidates in turn, and choose the usual one, which is the first, or a clearly faster one. Collective.

    The result is the same on all ranks. For the arguments, see `timings`.
    """
    times = timings(comm, candidates, seconds, progress, rounds, each, narrow=True)
    fastest = [min(row, default=inf) for row in times]
    order = sorted((n for n in range(len(times)) if n == 0 or fastest[n] < inf), key=fastest.__getitem__)
    if times and fastest[0] < inf and not time_ratio(times[order[0]], times[0]).is_better:
        order = [0, *(n for n in order if n)]
    return Timed(tuple(order), tuple(map(tuple, times)))


def timings(
    comm: Comm,
    candidates: Sequence[Candidate],
    seconds: float,
    progress: Progress | None = None,
    rounds: int = _ENDLESS,
    each: bool = False,
    narrow: bool = False,
) -> list[list[float]]:
    """The seconds of each candidate's runs, on the slowest rank. Collective; the same on all ranks.

    A run is skipped if it would not end in time, judging by the candidate's last run.

    Args:
        candidates: equally many on each rank; the first one is the usual one, which is never dropped.
        seconds: the most time for all runs, about.
        progress: called after each run with the part done, of the time or of the runs.
        rounds: the most rounds.
        each: whether every candidate has a run, even if time runs out; the first one always has.
        narrow: whether slow candidates are dropped, and timing ends when it is known which one to take.
    """
    start, spent, done = perf_counter(), 0.0, 0
    times: list[list[float]] = [[] for _ in candidates]
    took = [0.0] * len(candidates)
    running = [*range(len(candidates))]
    expected = rounds * len(candidates)  # timed runs
    if narrow and rounds > _ENOUGH:
        expected = _ENOUGH * len(candidates) + 2 * FEWEST

    def tell(part: float) -> None:
        if progress is not None:
            of_time = spent / seconds if seconds > 0 else 1.0
            progress(min(1.0, max(of_time, (done + part) / expected)))

    for number in range(rounds):
        begun = spent
        for n in running[::-1] if number % 2 else running:  # a machine that grows slower or faster favours none
            left = seconds - spent
            due = not times[n] and (n == 0 or each)
            if due or took[n] < left:
                share = max(left, 0.0) / max(expected - done, len(running))
                comm.barrier()
                slowest = np.array([candidates[n](share, tell), perf_counter() - start])
                comm.allreduce_in_place(slowest, "max")

                before, (time, spent) = spent, slowest.tolist()
                times[n].append(max(time, _SHORTEST))
                took[n] = spent - before
                tell(1.0)
            done += 1
        if spent == begun:  # no time was left for any
            break

        # Slow candidates go. After some rounds the usual one and the fastest stay, until it is known which to take.
        if narrow:
            fastest = [min(row, default=inf) for row in times]
            limit = (_SLOW[1] if number else _SLOW[0]) * min(fastest)
            running = [n for n in running if n == 0 or fastest[n] <= limit]
            if number + 1 >= _ENOUGH:
                first = min(running, key=fastest.__getitem__)
                running = [0, first]
                known = time_ratio(times[first], times[0])
                if first == 0 or known.high < BETTER or known.low > BETTER:
                    break

    if progress is not None:
        progress(1.0)
    return times


def collective_call(comm: Comm, call: Callable[[], object]) -> Candidate:
    """The runs of a call that all ranks begin together, with caches warm from a first call.

    A run takes as long as the fastest of up to eight calls: as many as the time allows, at least one.
    """

    def candidate(seconds: float, progress: Progress | None) -> float:
        call()
        return min(timings(comm, [partial(_call_time, comm, call)], seconds, progress, _CALLS)[0])

    return candidate


def _call_time(comm: Comm, call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
    comm.barrier()
    start = perf_counter()
    call()
    return perf_counter() - start


class LocalCall:
    """The runs of a call that needs no other rank; short calls are repeated between two readings of the clock.

    In the first run the call is made once, and again if it is short. Later runs give the fastest of three times, if
    there is time for them. A call that fails takes infinitely long.
    """

    __slots__ = ("_call", "_often")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self._often = call, 0

    def __call__(self, seconds: float, progress: Progress | None) -> float:
        try:
            time = self._timed(self._often or 1)
            if not self._often and time < _SHORT:
                time = self._timed(1)
            elif self._often and _AGAIN * self._often * time < seconds:
                time = min(time, *(self._timed(self._often) for _ in range(_AGAIN)))
        except Exception:  # whatever a library may refuse
            return inf
        self._often = ceil(_READABLE / time)
        return time

    def _timed(self, often: int) -> float:
        start = perf_counter()
        for _ in range(often):
            self._call()
        return (perf_counter() - start) / often


def middle(times: Sequence[float]) -> float:
    """The median of all readings but the first, made with cold caches; infinite if there are no readings."""
    return max(float(np.median(times[1:] or times or [inf])), _SHORTEST)


def rounds(
    comm: Comm, calls: Sequence[Callable[[], object]], seconds: float, progress: Progress | None = None
) -> list[list[float]]:
    """Time collective calls in turn; return the seconds of each in every round. Collective; the same on all ranks.

    A call takes as long as on its slowest rank, with caches warm from a first call.

    Args:
        seconds: the most time for all rounds, about; one round is always made.
        progress: called after each run with the part of the time that has passed.
    """

    def timed(call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
        call()
        return _call_time(comm, call, seconds, progress)

    return timings(comm, [partial(timed, call) for call in calls], seconds, progress, each=True)


def medians(
    comm: Comm, calls: Sequence[Callable[[], object]], seconds: float, progress: Progress | None = None
) -> list[float]:
    """The median seconds of collective calls, of all `rounds` but the first. Collective; the same on all ranks."""
    return [*map(middle, rounds(comm, calls, seconds, progress))]


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


def recalled(comm: Comm, key: wisdom.Key, read: Callable[[Any], Any] | None = None) -> Any:
    """Recall on all ranks rank 0's value for a key (see `wisdom.recall`); None if there is none. Collective."""
    return from_root(comm, lambda: wisdom.recall(key, read))


def remembered(comm: Comm, key: wisdom.Key, decision: Any) -> bool:
    """Let rank 0 remember a decision (see `wisdom.remember`); return whether it was kept, on all ranks. Collective."""
    return from_root(comm, lambda: wisdom.remember(key, decision))


def keeps(comm: Comm) -> bool:
    """Whether rank 0 keeps wisdom at all; the same on all ranks. Collective."""
    return from_root(comm, lambda: wisdom.folder() is not None)


class _NothingFound(Exception):
    """There is no decision, because no time was left to find one."""


def decided(
    comm: Comm, facts: Mapping[str, Any], tune: str, read: Callable[[Any], T], find: Callable[[], Any]
) -> T | None:
    """Recall a decision on these ranks, or find it now and keep it as wisdom. Collective.

    If nothing can be written, the communicator remembers the last decisions. A decision found within a `time_limit`
    serves only callers with the same limit.

    Args:
        facts: all that the decision depends on beside the ranks, the machine and the versions.
        tune: how to find it, "measure" or "patient"; a decision found patiently also serves "measure".
        read: converts the JSON value that is kept to a decision; `wisdom.recall` says which errors it may raise.
        find: returns such a value; all ranks use that of rank 0. None if no time is left; then nothing is kept.
    """
    limit = _within.get()
    here = tune if limit is None else f"{tune} within {limit[0]:g} s"
    keys = {name: ranks_key(comm, {**facts, "tune": name}) for name in dict.fromkeys(("patient", tune, here))}

    def checked(decision: Any) -> Any:
        read(decision)
        return decision

    def make() -> T:
        for key in keys.values():
            value = recalled(comm, key, checked)
            if value is not None:
                return read(value)

        value = comm.allgather_object(find())[0]
        if value is None:
            raise _NothingFound
        remembered(comm, keys[here], value)
        log(comm, "measured choice %s for %s", value, facts)
        return read(value)

    try:
        return cached(comm, "decisions", keys[here], make, _KEPT)
    except _NothingFound:
        return None
