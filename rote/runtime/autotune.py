"""The autotuner: candidates are timed in turn on all ranks, which agree on one and remember it.

Walks, kernels and methods of exchange give it their candidates, and a machine is calibrated by its clock. All turns are
taken round after round, so that a disturbance meets all candidates alike; a reading is that of the slowest rank, so
that all ranks decide alike.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from .. import wisdom
from ..errors import PlanError
from .comm.cache import cached
from .comm.collective_errors import collective_errors
from .comm.protocol import Comm
from .comm.threads import LocalComm
from .time_limit import within

__all__ = [
    "LIMITS",
    "TUNES",
    "Candidate",
    "Limits",
    "Progress",
    "Tune",
    "check_tune",
    "decided",
    "medians",
    "mpi_library",
    "ranking",
    "ranks_key",
    "reading",
    "recalled",
    "remembered",
    "timings",
]

Tune = Literal["model", "measure", "patient"]
TUNES: tuple[Tune, ...] = get_args(Tune)
"""How what is fast is found: by what is usual, at once; or by timing; patiently, of more ways, for longer."""

T = TypeVar("T")
Progress = Callable[[float], object]
Candidate = Callable[[float, Progress | None], float]
"""A turn of a candidate on this rank: its seconds, given those that the turn may take, about, and whom to tell."""

_ENDLESS = 1 << 60  # rounds
_SHORTEST = 1e-13  # seconds: no time is 0, whatever the noise
_KEPT = 256  # decisions that a communicator remembers


def middle(times: Sequence[float]) -> float:
    """The median of all readings but the first, which finds the caches cold; infinite if there is none."""
    from statistics import median  # not before something is timed

    return max(median(times[1:] or times or [inf]), _SHORTEST)


def least(times: Sequence[float]) -> float:
    """The shortest of some readings; infinite if there is none."""
    return min(times, default=inf)


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds by which candidates of one sort are timed, and one of them is taken.

    Attributes:
        seconds: by `Tune`, the most that all candidates may be timed for, about; a turn that is begun is ended.
        rounds: in which every candidate has a turn, at most.
        enough: rounds after which only the part `soon` of the seconds is used.
        each: whether every candidate has a turn, whatever it takes; the first one always has.
        behind: how many times as long as the best a candidate may take, after the first round and after later ones, to
            have another turn.
        better: part of the first candidate's time that another one must stay below to be taken.
        score: the time of a candidate, of all its readings.
    """

    seconds: dict[str, float]
    rounds: int = _ENDLESS
    enough: int = _ENDLESS
    soon: float = 1.0
    each: bool = False
    behind: tuple[float, float] = (inf, inf)
    better: float = 1.0
    score: Callable[[Sequence[float]], float] = middle


# Measured with complex128 on 2 ranks of one process, on 2 cores that other programs used as well (load 4 to 8).
LIMITS = {
    "method": Limits(
        # A slab swap by both methods of a node: 55 rounds in 0.5 s at 64 cubed, 4 at 128 cubed.
        {"measure": 0.5, "patient": 5.0},
        each=True,  # there are a handful, each as long as the swap itself: 10 to 120 ms a round
    ),
    "kernel": Limits(
        # Of 3 s, each field of the kernels of a slab walk has 0.45 s: 12 to 30 rounds at 64 cubed, 1 or 2 at 128 cubed.
        {"measure": 3.0, "patient": 20.0},
        rounds=30,  # 64 cubed: after 0.36 s, with nothing left to be learned
        # Of 4 equal kernels, the worst first reading is 2.4 times the best reading of all (median of 24 contests).
        # Medians of ten readings of one kernel lie within a factor of 1.53 to 1.56, in the quieter half of 40.
        behind=(3.0, 1.5),
        # The best of 3 equal kernels has 0.95 of the median of the first (median of 24 contests; in a tenth 0.72).
        better=0.96,
    ),
    "walk": Limits(
        # There and back, with binding: all turns of 3 walks in 4.5 s at 64 cubed, in 7.1 s at 128 cubed.
        {"measure": 10.0, "patient": 60.0},
        rounds=8,  # of small walks that are through their turns in a tenth of the time
        enough=2,  # two turns of one walk differ by a factor of 1.04 to 1.57: one alone may have been disturbed
        soon=0.1,
        behind=(1.5, 1.5),  # a turn is a median of up to eight rounds, so that the first one counts as any other
        better=0.97,  # two turns of one walk are 4 % apart at best
        score=least,
    ),
}
"""The thresholds of all that is timed."""


def check_tune(tune: str) -> None:
    """Refuse what is no way to find what is fast.

    Raises:
        PlanError: it is none.
    """
    if tune not in TUNES:
        raise PlanError(f"tune is one of {', '.join(TUNES)}; not {tune!r}")


# --- timing -----------------------------------------------------------------------------------------------------------


def timings(
    comm: Comm, candidates: Sequence[Candidate], seconds: float, limits: Limits, progress: Progress | None = None
) -> list[list[float]]:
    """The seconds of each candidate's turns, on the slowest rank. Collective; the same on all ranks.

    A turn is left out if it would not end in time, for all that is known of the candidate's last one.

    Args:
        candidates: as many on each rank; the first one is the usual one, which is never given up.
        seconds: the most that all may take, about.
        progress: called after each turn with the part that is done, of the time or of the turns.
    """
    start, spent, turn = perf_counter(), 0.0, 0
    times: list[list[float]] = [[] for _ in candidates]
    took = [0.0] * len(candidates)
    running = [*range(len(candidates))]
    turns = min(limits.rounds, limits.enough) * len(candidates)

    def tell(part: float) -> None:
        if progress is not None:
            progress(min(1.0, max(spent / seconds if seconds > 0 else 1.0, (turn + part) / turns)))

    for number in range(limits.rounds):
        begun = spent
        for n in running:
            turn = number * len(candidates) + n
            left = (seconds if number < limits.enough else limits.soon * seconds) - spent
            due = not times[n] and (n == 0 or limits.each)
            if due or took[n] < left:
                share = max(seconds - spent, 0.0) / max(turns - turn, len(candidates))
                comm.barrier()
                slowest = np.array([candidates[n](share, tell), perf_counter() - start])
                comm.allreduce(slowest, "max")
                before, (time, spent) = spent, slowest.tolist()
                times[n].append(max(time, _SHORTEST))
                took[n] = spent - before
                tell(1.0)
        if spent == begun:
            break
        within = limits.behind[number > 0] * min(map(least, times))
        running = [n for n in running if n == 0 or least(times[n]) <= within]
    if progress is not None:
        progress(1.0)
    return times


def ranking(times: Sequence[Sequence[float]], limits: Limits) -> list[int]:
    """The candidates that were timed, by time; the first one leads unless another is clearly faster.

    >>> ranking([[3.0, 1.0], [2.0, 0.99], [], [2.0, 2.0]], LIMITS["kernel"])
    [0, 1, 3]
    >>> ranking([[3.0, 1.0], [2.0, 0.9], [], [2.0, 2.0]], LIMITS["kernel"])
    [1, 0, 3]
    """
    scores = [*map(limits.score, times)]
    order = sorted((n for n, seconds in enumerate(scores) if n == 0 or seconds < inf), key=scores.__getitem__)
    fastest = order[0]
    if scores[fastest] < limits.better * scores[0] and least(times[fastest]) < least(times[0]):
        return order
    return [0, *(n for n in order if n)]


def medians(
    comm: Comm,
    calls: Sequence[Callable[[], object]],
    seconds: float,
    progress: Progress | None = None,
    rounds: int = _ENDLESS,
) -> list[float]:
    """The seconds that each of some collective calls takes, made in turn. Collective; the same on all ranks.

    Of every call, the time of the slowest rank; of every round but the first, the median.

    Args:
        seconds: the most that all rounds may take, about; one is always made.
        progress: called after each turn with the part of the time that has passed, or of the rounds.
        rounds: the most, however much time is left.
    """
    candidates = [partial(reading, comm, call) for call in calls]
    return [*map(middle, timings(comm, candidates, seconds, Limits({}, rounds, each=True), progress))]


def reading(comm: Comm, call: Callable[[], object], seconds: float, progress: Progress | None) -> float:
    """The seconds of a call that all ranks begin together, and that finds in the caches what it left there itself."""
    call()
    comm.barrier()
    start = perf_counter()
    call()
    return perf_counter() - start


# --- remembering ------------------------------------------------------------------------------------------------------


def mpi_library(comm: Comm) -> str:
    """The name and version of the MPI library that ranks talk through; empty for in-process ranks."""
    loaded = sys.modules.get("mpi4py.MPI")  # where ranks talk through it, it is
    if isinstance(comm, LocalComm) or loaded is None:
        return ""
    first = str(loaded.Get_library_version()).partition("\n")[0].partition(",")[0]
    return " ".join(first.replace("\0", "").split())


def ranks_key(comm: Comm, facts: Mapping[str, Any]) -> wisdom.Key:
    """The key of a decision that also depends on these ranks: how many on how many hosts, and their MPI. Collective."""
    hosts = len(set(comm.allgather_object(platform.node())))
    return wisdom.key({**facts, "ranks": comm.size, "hosts": hosts}, mpi_library(comm))


def recalled(comm: Comm, key: wisdom.Key, read: Callable[[Any], Any] | None = None) -> Any:
    """Recall on all ranks what rank 0 has for a key (see `wisdom.recall`); None if nothing. Collective."""
    value = None
    with collective_errors(comm):
        if comm.rank == 0:
            value = wisdom.recall(key, read)
    return comm.allgather_object(value)[0]


def remembered(comm: Comm, key: wisdom.Key, decision: Any) -> bool:
    """Let rank 0 remember a decision (see `wisdom.remember`); whether it is kept, on all ranks. Collective."""
    return bool(comm.allgather_object(comm.rank == 0 and wisdom.remember(key, decision))[0])


class _NothingFound(Exception):
    """There is no decision: no time was left to find one."""


def decided(
    comm: Comm, facts: Mapping[str, Any], tune: str, read: Callable[[Any], T], find: Callable[[], Any]
) -> T | None:
    """A decision on these ranks: as it was found before, or found now and kept as wisdom. Collective.

    Where nothing can be written, the communicator remembers the last ones. What is found within a `time_limit` serves
    those alone who have the same.

    Args:
        facts: all that it depends on beside the ranks, the machine and the versions.
        tune: how it is found, "measure" or "patient"; what was found patiently serves those who only measure, too.
        read: makes of the JSON value that is kept what the caller wants; what it may raise `wisdom.recall` says.
        find: gives such a value; all ranks take that of the first. None where no time is left: nothing is kept then.
    """
    keys = {name: ranks_key(comm, {**facts, "tune": name}) for name in dict.fromkeys(("patient", tune))}
    own = tune
    if within.get() is not None:
        own = f"{tune} within {within.get()}"
        keys[own] = ranks_key(comm, {**facts, "tune": own})

    def checked(kept: Any) -> Any:
        read(kept)
        return kept

    def make() -> T:
        for key in keys.values():
            known = recalled(comm, key, checked)
            if known is not None:
                return read(known)
        decision = comm.allgather_object(find())[0]
        if decision is None:
            raise _NothingFound
        remembered(comm, keys[own], decision)
        return read(decision)

    try:
        return cached(comm, "decisions", keys[own], make, _KEPT)
    except _NothingFound:
        return None
