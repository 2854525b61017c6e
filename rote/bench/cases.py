"""What `rote bench` times: a work, the cases that do it, and the rounds in which each case runs and is checked.

A *work* is a transform forward and backward, or a swap of slabs, on an array whose spectrum is known. A *case* is one
library, on so many ranks or threads, with a work. Cases run one after the other, round after round, so that a
disturbance of the machine affects all alike. In each round a case is set up anew, so that the placement of its memory
pages does not decide; plans and tuning are kept. It runs once, is checked, and is then timed over as many repetitions
as fill `SPAN`, at least one.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from math import ceil, inf
from operator import mul
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import RoteError, counted
from ..host import cores
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Array, Comm
from ..runtime.comm.threads import alone, run_threads

__all__ = ["SPAN", "Array", "Case", "Job", "Mesh", "Missing", "Prepare", "Round", "Timing", "Work", "check_values"]
__all__ += ["cores_of_all", "fill", "measure", "mesh", "on_all", "oversubscribed", "run_cases", "transform_job"]

SPAN = 0.1  # seconds that the repetitions of one round fill
_MOST = 10_000  # the most repetitions of a round

Mesh: TypeAlias = Sequence[Array]  # the global indices of a block, an array per mode, which broadcast to it


class Round(NamedTuple):
    """The outcome of a round: seconds of the slowest rank, and what the `Job` says."""

    seconds: float
    library: str = ""
    predicted: float | None = None


class Missing(RoteError):
    """A case cannot run; the text says why, and how to change that."""


@dataclass(frozen=True, slots=True)
class Work:
    """Transform an array forward and backward, a real one to half a spectrum, or move it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ranks: int  # or threads, for libraries without ranks
    move: bool = False  # from slabs of mode 0 to slabs of mode 1

    @property
    def real(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def points(self) -> str:
        """The shape in the notation of the command line."""
        return "x".join(map(str, self.shape))

    @property
    def spectrum(self) -> tuple[int, ...]:
        """The shape of the spectrum.

        >>> Work((8, 9, 10), np.dtype("f8"), 1).spectrum
        (8, 9, 6)
        """
        return (*self.shape[:-1], self.shape[-1] // 2 + 1) if self.real else self.shape

    @property
    def wide(self) -> np.dtype[Any]:
        """The dtype of the spectrum."""
        return np.result_type(self.dtype, "c8")

    def __str__(self) -> str:
        done = "r2c" if self.real else "c2c"
        if self.move:
            done = "slab swap"
        return f"{done} {self.points} {self.dtype.kind}{self.dtype.itemsize}"


@dataclass(frozen=True, slots=True)
class Job:
    """A work that is ready to run."""

    steps: Sequence[Callable[[], Array]]  # each returns a block, which the next one may overwrite
    checks: Sequence[Callable[[Array], None]]  # per step: raises a RoteError if the block is wrong
    close: Callable[[], None] = lambda: None
    library: str = ""  # that transforms, with its build; empty if nothing is transformed
    predicted: float | None = None  # seconds, of what Rote plans on a machine


Prepare: TypeAlias = Callable[[Comm, Work], Job]


@dataclass(frozen=True, slots=True)
class Case:
    """A library with a work."""

    group: str  # its name on the command line
    variant: str  # its algorithm or layout; empty if it has only one
    on: str  # "MPI ranks" or "threads", `count` of them
    count: int
    work: Work
    ranks: int | None  # of the communicator that run it, from rank 0 on; if None, rank 0 alone, on all cores
    run: Callable[[Comm], Round]  # one round, on a communicator of these ranks

    @property
    def name(self) -> str:
        """The name in the tables."""
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
class Timing:
    """The seconds of a case per round, its library and its predicted seconds; or the reason why it is missing."""

    case: Case
    seconds: list[float] = field(default_factory=list)
    missing: str = ""
    library: str = ""
    predicted: float | None = None

    @property
    def median(self) -> float:
        return median(self.seconds)


# --- arrays whose spectrum is known: the product of one vector per mode ----------------------------------------------


def _vectors(work: Work) -> list[Array]:
    """One vector per mode, the same on all ranks."""
    random = np.random.default_rng(0)
    vectors: list[Array] = [random.standard_normal(n) for n in work.shape]
    if work.real:
        return vectors
    return [vector + 1j * random.standard_normal(len(vector)) for vector in vectors]


def mesh(shape: Sequence[int], starts: Sequence[int] | None = None) -> Mesh:
    """The indices of a whole array, or of a box in it that begins elsewhere."""

    begins = [0] * len(shape) if starts is None else starts
    return np.ix_(*map(np.arange, begins, np.add(begins, shape)))


def fill(work: Work, where: Mesh, block: Array) -> None:
    """Fill a block of a work's array with its values."""
    if block.size:
        *first, last = (vector[index] for vector, index in zip(_vectors(work), where, strict=True))
        np.multiply(reduce(mul, first), last, out=block, casting="same_kind")


def check_values(work: Work, where: Mesh, block: Array, scale: float = 1.0, spectrum: bool = False) -> None:
    """Refuse a block of a work's array, or of its spectrum, whose first or last row is not `scale` times what it is."""
    if not block.size:
        return

    limit = 1e-3 if work.dtype.char in "fF" else 1e-9

    vectors = _vectors(work)
    if spectrum:  # of a product of vectors: the product of their spectra
        vectors = [*map(np.fft.fft, vectors)]

    # Two rows, so that the check costs little beside the transform.
    for row in (slice(0, 1), slice(-1, None)):
        indices = [index[row] if len(index) > 1 else index for index in where]

        expected = scale * reduce(mul, (vector[index] for vector, index in zip(vectors, indices, strict=True)))
        error = np.abs(block[row] - expected).max() / np.abs(expected).max()
        if not error < limit:
            raise RoteError(f"the results of {work} are wrong, by {error:.1e} of the largest value")


def transform_job(
    work: Work,
    steps: tuple[Callable[[], Array], Callable[[], Array]],
    x: Array,
    wheres: tuple[Mesh, Mesh],
    scales: tuple[float, float] = (1.0, 1.0),
    close: Callable[[], None] = lambda: None,
    library: str = "",
) -> Job:
    """A job that fills x, and transforms it forward and backward; the steps return the spectrum, and x again.

    `wheres` are the global indices of this rank's blocks of x and of the spectrum, `scales` the factors by which the
    results of the steps are larger than numpy.fft's.
    """
    fill(work, wheres[0], x)
    check_spectrum = partial(check_values, work, wheres[1], scale=scales[0], spectrum=True)
    return Job(steps, (check_spectrum, partial(check_values, work, wheres[0], scale=scales[1])), close, library)


# --- rounds ----------------------------------------------------------------------------------------------------------


def on_all(group: str, variant: str, run: Callable[[Comm], Round], work: Work, mpi: bool) -> Case:
    """A case that runs on MPI's ranks or on threads of this process."""
    p = work.ranks
    if mpi:
        return Case(group, variant, "MPI ranks", p, work, p, run)
    return Case(group, variant, "threads", p, work, None, lambda comm: run_threads(run, p)[0])


def measure(prepare: Prepare, work: Work, comm: Comm, span: float | None = None) -> Round:
    """One round of a case that runs in this process, for `span` seconds; `SPAN` if None. Collective."""
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
    return Round(seconds, job.library, job.predicted)


def _timed(comm: Comm, steps: Sequence[Callable[[], Any]], repetitions: int) -> float:
    comm.barrier()

    start = perf_counter()
    for _ in range(repetitions):
        for step in steps:
            step()

    most = np.array([perf_counter() - start])
    comm.allreduce_in_place(most, "max")
    return float(most[0]) / repetitions


def run_cases(comm: Comm, cases: Sequence[Case], rounds: int) -> list[Timing]:
    """Run the cases one after the other for some rounds; return the results, with rank 0's times. Collective.

    All ranks raise a RoteError if Rote cannot do a work, or if its results are wrong.
    """
    results = [*map(Timing, cases)]

    comms = {None: alone(), comm.size: comm}
    for ranks in sorted({case.ranks or 0 for case in cases} - {0, comm.size}):
        comms[ranks] = comm.split(int(comm.rank >= ranks), comm.rank)

    usable = cores_of_all(comm)
    for result in results * rounds:  # all cases in each round, so that a disturbance of the machine affects all alike
        if not result.missing:
            _run_round(comm, result, comms, usable)
    return results


def _run_round(comm: Comm, result: Timing, comms: dict[int | None, Comm], usable: set[int]) -> None:
    """One round of one case; ranks that do not run it sleep."""
    case, outcome, failure = result.case, Round(inf), None

    if comm.rank < (case.ranks or 1):
        try:
            with _bound_to(usable) if case.ranks is None else nullcontext():
                outcome = case.run(comms[case.ranks])
        except Exception as error:  # another library may raise anything
            failure = error

    if comm.size > 1:  # ranks that wait in a barrier of MPI's own occupy their cores, in this one they sleep
        from ..runtime.comm.mpi import MpiComm, all_come

        if isinstance(comm, MpiComm):
            all_come(comm.handle, inf)

    # An error of Rote is one, on all ranks; another library that fails is a line of the report.
    with collective_errors(comm):
        if failure is not None and case.ours:
            raise failure

    reason = ""
    if failure is not None:
        reason = str(failure) or type(failure).__name__
        if not isinstance(failure, Missing):
            reason = f"fails: {reason.splitlines()[0]}"

    outcome, result.missing = comm.allgather_object((outcome, reason))[0]

    if not result.missing:
        result.seconds.append(outcome.seconds)
        result.library, result.predicted = outcome.library, outcome.predicted


def cores_of_all(comm: Comm) -> set[int]:
    """The cores of all ranks of this host, for threads: mpiexec may bind each rank to one core. Collective."""
    usable: set[int] = set()
    for host, theirs in comm.allgather_object((platform.node(), cores())):
        if host == platform.node():
            usable |= theirs
    return usable


def oversubscribed(comm: Comm, count: int, usable: int) -> str:
    """A warning if `count` threads, or the MPI ranks of a host, outnumber its usable cores; else empty. Collective."""
    host, text = "this machine", ""
    if comm.size > 1:
        host = platform.node()
        count = comm.allgather_object(host).count(host)

    if count > usable:
        on = f"{counted(count, 'rank')} on {counted(usable, 'core')} of {host}"
        text = f"oversubscribed: {on}; times include waiting for a core"

    return str(max(comm.allgather_object(text)))


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
