"""The contest: every contestant runs in turn, round after round, and is timed.

In each round a contestant is set up anew, so that the placement of its memory pages does not decide. It runs once, is
checked, and is then timed over as many repetitions as fill `SPAN`, at least one. It keeps earlier plans and tuning.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil, inf
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import RoteError, counted
from ..launcher import cores
from ..runtime.comm.collective_errors import all_come, collective_errors
from ..runtime.comm.protocol import Array, Comm
from ..runtime.comm.threads import alone, run_threads

__all__ = ["SPAN", "Contestant", "Job", "Missing", "Prepare", "Round", "Score", "Work", "cores_of_all", "hold"]
__all__ += ["measure", "on_all"]

SPAN = 0.1  # seconds that the repetitions of one round fill
_MOST = 10_000  # the most repetitions of a round


class Round(NamedTuple):
    """The outcome of a round: seconds of the slowest rank, and the libraries that transformed, with their builds."""

    seconds: float
    library: str = ""


class Missing(RoteError):
    """A contestant cannot take part; the text says why, and how to change that."""


@dataclass(frozen=True, slots=True)
class Work:
    """The task of a contest: transform an array forward and backward, a real one to half a spectrum, or move it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ranks: int  # or threads, for libraries without ranks
    move: bool = False  # from slabs of mode 0 to slabs of mode 1

    @property
    def real(self) -> bool:
        """Whether the array is real."""
        return self.dtype.kind == "f"

    @property
    def points(self) -> str:
        """The shape in the notation of the command line."""
        return "x".join(map(str, self.shape))

    def __str__(self) -> str:
        done = "r2c" if self.real else "c2c"
        if self.move:
            done = "slab swap"
        return f"{done} {self.points} {self.dtype.kind}{self.dtype.itemsize}"


@dataclass(frozen=True, slots=True)
class Job:
    """A work that is ready to run."""

    steps: Sequence[Callable[[], Array]]  # called in turn; each returns a block, which the next may overwrite
    checks: Sequence[Callable[[Array], None]]  # per step: raises a RoteError if the block is wrong
    close: Callable[[], None] = lambda: None
    library: str = ""  # that transforms, with its build; empty if nothing is transformed


Prepare: TypeAlias = Callable[[Comm, Work], Job]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A contestant with a work."""

    group: str  # the contestant's name on the command line
    variant: str  # its algorithm or layout; empty if it has only one
    on: str  # "MPI ranks" or "threads", `count` of them
    count: int
    work: Work
    ranks: int | None  # of the communicator that take part, from rank 0 on; if None, rank 0 alone, on all cores
    run: Callable[[Comm], Round]  # one round, on a communicator of these ranks

    @property
    def name(self) -> str:
        """The contestant's name in the tables."""
        group = "rote" if self.ours else self.group
        return f"{group} {self.variant}".strip()

    @property
    def where(self) -> str:
        """The number and kind of ranks or threads on which it runs."""
        return counted(self.count, self.on.removesuffix("s"))

    @property
    def ours(self) -> bool:
        """Whether it is Rote, whose errors are raised; those of others make them count as missing."""
        return self.group in ("rote", "threads")


@dataclass(slots=True)
class Score:
    """A contestant's seconds per round and its library; or the reason why it is missing."""

    contestant: Contestant
    seconds: list[float] = field(default_factory=list)
    missing: str = ""
    library: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return median(self.seconds)


def measure(prepare: Prepare, work: Work, comm: Comm, span: float | None = None) -> Round:
    """One round of a contestant that runs in this process, for `span` seconds; `SPAN` if None. Collective."""
    job = prepare(comm, work)
    for step, check in zip(job.steps, job.checks, strict=True):
        block = step()
        with collective_errors(comm):
            check(block)
        del block
    seconds = _timed(comm, job.steps, 1)
    repetitions = min(ceil((span or SPAN) / seconds), _MOST)
    if repetitions > 1:
        seconds = _timed(comm, job.steps, repetitions)
    job.close()
    return Round(seconds, job.library)


def on_all(group: str, variant: str, run: Callable[[Comm], Round], work: Work, mpi: bool) -> Contestant:
    """A contestant that runs on MPI's ranks or on threads of this process."""
    p = work.ranks
    if mpi:
        return Contestant(group, variant, "MPI ranks", p, work, p, run)
    return Contestant(group, variant, "threads", p, work, None, lambda comm: run_threads(run, p)[0])


def _timed(comm: Comm, steps: Sequence[Callable[[], Any]], repetitions: int) -> float:
    comm.barrier()
    start = perf_counter()
    for _ in range(repetitions):
        for step in steps:
            step()
    most = np.array([perf_counter() - start])
    comm.allreduce_in_place(most, "max")
    return float(most[0]) / repetitions


def hold(
    comm: Comm,
    contestants: Sequence[Contestant],
    rounds: int,
    after: Callable[[list[Score], float], object] = lambda lines, part: None,
) -> list[Score]:
    """Let the contestants run in turn for some rounds; return the scores, with rank 0's times. Collective.

    `after` is called after each turn with the scores so far and the fraction of turns done. All ranks raise a
    RoteError if Rote cannot do a work, or if its results are wrong.
    """
    lines = [*map(Score, contestants)]
    comms = {None: alone(), comm.size: comm}
    for ranks in sorted({contestant.ranks or 0 for contestant in contestants} - {0, comm.size}):
        comms[ranks] = comm.split(int(comm.rank >= ranks), comm.rank)
    usable = cores_of_all(comm)
    for turn, line in enumerate(lines * rounds, 1):
        if not line.missing:
            _turn(comm, line, comms, usable)
        after(lines, turn / (len(lines) * rounds))
    return lines


def _turn(comm: Comm, line: Score, comms: dict[int | None, Comm], usable: set[int]) -> None:
    """One round of one contestant; ranks that take no part sleep."""
    contestant, outcome, failure = line.contestant, Round(inf), None
    if comm.rank < (contestant.ranks or 1):
        try:
            with _bound_to(usable) if contestant.ranks is None else nullcontext():
                outcome = contestant.run(comms[contestant.ranks])
        except Exception as error:  # another library may raise anything
            failure = error
    _sleep_until_all_come(comm)
    with collective_errors(comm):
        if failure is not None and contestant.ours:
            raise failure
    outcome, line.missing = comm.allgather_object((outcome, _reason(failure)))[0]
    if not line.missing:
        line.seconds.append(outcome.seconds)
        line.library = outcome.library


def _reason(failure: Exception | None) -> str:
    if failure is None:
        return ""
    text = str(failure) or type(failure).__name__
    return text if isinstance(failure, Missing) else f"fails: {text.splitlines()[0]}"


def _sleep_until_all_come(comm: Comm) -> None:
    """A barrier in which waiting ranks sleep, because in MPI's own they occupy their cores."""
    if comm.size == 1:
        return
    from ..runtime.comm.mpi import MpiComm

    if isinstance(comm, MpiComm):
        all_come(comm, inf)


def cores_of_all(comm: Comm) -> set[int]:
    """The cores of all ranks of this host, for threads: mpiexec may bind each rank to one core. Collective."""
    usable: set[int] = set()
    for host, theirs in comm.allgather_object((platform.node(), cores())):
        if host == platform.node():
            usable |= theirs
    return usable


@contextmanager
def _bound_to(usable: set[int]) -> Iterator[None]:
    """Bind this thread, and any that it starts, to the given cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = cores()
    os.sched_setaffinity(0, usable)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
