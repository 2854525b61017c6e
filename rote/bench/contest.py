"""The contest: every contestant in turn, round after round, and what each took.

In each round a contestant is set up anew, so that no luck with the pages of its memory decides, runs once, is checked,
and is then timed over as many repetitions as fill `SPAN`, but once at least. What it planned and tuned before it
remembers.
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

__all__ = [
    "SPAN",
    "Contestant",
    "Job",
    "Missing",
    "Prepare",
    "Round",
    "Score",
    "Work",
    "cores_of_all",
    "hold",
    "measure",
    "on_all",
    "on_threads",
]

SPAN = 0.1  # seconds that the repetitions of one round fill
_MOST = 10_000  # repetitions


class Round(NamedTuple):
    """The outcome of a round: seconds of the slowest rank, and the libraries that transformed, with their builds."""

    seconds: float
    library: str = ""


class Missing(RoteError):
    """A contestant cannot take part; the text says why, and what would bring it in."""


@dataclass(frozen=True, slots=True)
class Work:
    """The task of a contest: transform an array forward and backward, or move its slabs.

    Attributes:
        shape, dtype: of the array; a real one is transformed to half a spectrum and back.
        ranks: over which it lies; threads, for those who know no ranks.
        move: whether it is moved, from slabs of mode 0 to slabs of mode 1, instead of transformed.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ranks: int
    move: bool = False

    @property
    def real(self) -> bool:
        """Whether the array is real."""
        return self.dtype.kind == "f"

    @property
    def points(self) -> str:
        """The shape as it is written on the command line."""
        return "x".join(map(str, self.shape))

    def __str__(self) -> str:
        done = "r2c" if self.real else "c2c"
        if self.move:
            done = "slab swap"
        return f"{done} {self.points} {self.dtype.kind}{self.dtype.itemsize}"


@dataclass(frozen=True, slots=True)
class Job:
    """A work that is ready to run.

    Attributes:
        steps: what is called in turn; each returns a block that the next may spoil.
        checks: per step, what raises a RoteError if the block is wrong.
        close: what ends it.
        library: that transforms, with its build; empty where nothing is transformed.
    """

    steps: Sequence[Callable[[], Array]]
    checks: Sequence[Callable[[Array], None]]
    close: Callable[[], None] = lambda: None
    library: str = ""


Prepare: TypeAlias = Callable[[Comm, Work], Job]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A contestant with a work.

    Attributes:
        group: the contestant's name on the command line.
        variant: which of its algorithms or layouts; empty if it has one.
        on, count: on what it runs, "MPI ranks" or "threads", and on how many.
        ranks: the ranks of the communicator that take part, from 0; rank 0 alone if None, on all cores.
        run: one round on a communicator of these ranks.
    """

    group: str
    variant: str
    on: str
    count: int
    work: Work
    ranks: int | None
    run: Callable[[Comm], Round]

    @property
    def name(self) -> str:
        """The contestant as the tables call it."""
        group = "rote" if self.ours else self.group
        return f"{group} {self.variant}".strip()

    @property
    def where(self) -> str:
        """On what it runs, and on how many."""
        return counted(self.count, self.on.removesuffix("s"))

    @property
    def ours(self) -> bool:
        """Whether it is Rote, whose errors are errors and no reason to be missing."""
        return self.group in ("rote", "threads")


@dataclass(slots=True)
class Score:
    """The seconds per round that a contestant took, and by which libraries; or why it is missing."""

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


def on_threads(prepare: Prepare, work: Work, comm: Comm) -> Round:
    """One round of a contestant whose ranks are threads of this process."""
    return run_threads(lambda team: measure(prepare, work, team), work.ranks)[0]


def on_all(group: str, variant: str, run: Callable[[Comm], Round], work: Work, mpi: bool) -> Contestant:
    """A contestant that any ranks can be: MPI's, or threads of this process."""
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
    comm.allreduce(most, "max")
    return float(most[0]) / repetitions


def hold(
    comm: Comm,
    contestants: Sequence[Contestant],
    rounds: int,
    after: Callable[[list[Score], float], object] = lambda lines, part: None,
) -> list[Score]:
    """Let the contestants run in turn, so many rounds; the lines are those of rank 0. Collective.

    Args:
        after: called after each turn with all lines, as far as they are known, and the part that is done.

    Raises (the same on all ranks): RoteError when Rote cannot do what is asked, or somebody's results are wrong.
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
    """One round of one contestant; those who take no part sleep."""
    contestant, outcome, failure = line.contestant, Round(inf), None
    if comm.rank < (contestant.ranks or 1):
        try:
            with _bound_to(usable) if contestant.ranks is None else nullcontext():
                outcome = contestant.run(comms[contestant.ranks])
        except Exception as error:  # whatever another library raises
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
    """A barrier that takes no core: MPI's own spins."""
    if comm.size == 1:
        return
    from ..runtime.comm.mpi import MpiComm

    if isinstance(comm, MpiComm):
        all_come(comm, inf)


def cores_of_all(comm: Comm) -> set[int]:
    """The cores of all ranks of this host: mpiexec binds a rank to one, where threads would crowd. Collective."""
    usable: set[int] = set()
    for host, theirs in comm.allgather_object((platform.node(), cores())):
        if host == platform.node():
            usable |= theirs
    return usable


@contextmanager
def _bound_to(usable: set[int]) -> Iterator[None]:
    """Let this thread, and what it starts, use some cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = cores()
    os.sched_setaffinity(0, usable)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
