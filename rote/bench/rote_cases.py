"""Rote as a contestant: transforms by an algorithm, and the swap of slabs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import product

from ..fft.plan import FFT
from ..layout.layout import Distribution, distribute, parse
from ..runtime.comm.protocol import Array, Comm
from ..runtime.tuning.limits import Tune
from ..tensor import DistTensor
from .arrays import check_values, fill, transform_job
from .contest import Contestant, Job, Prepare, Work, measure, on_all
from .machine import build

__all__ = ["contestants", "one_rank", "slabs"]


_THREADS = ("auto", "shared", "alltoallv")  # the methods that need no MPI


def contestants(
    work: Work,
    algorithms: Sequence[str],
    methods: Sequence[str],
    restore: bool,
    mpi: bool,
    tunes: Sequence[Tune] = ("measure",),
) -> list[Contestant]:
    """Rote on MPI's ranks, if there are several, and on threads of one process; each tuning is one contestant."""
    contest: list[Contestant] = []
    for method in methods:
        said = "" if method == "auto" else method
        prepared: list[tuple[str, Prepare]] = []
        if work.move:
            prepared.append((said, partial(move, method)))
        else:
            for name, tune in product(algorithms, tunes):
                words = [name, said, "" if tune == "measure" else tune]
                prepared.append((" ".join(filter(None, words)), partial(transform, name, method, restore, tune)))
        for name, go in prepared:
            run = partial(measure, go, work)
            contest.append(on_all("rote", name, run, work, mpi))
            if mpi and method in _THREADS:
                contest.append(on_all("threads", name, run, work, False))
    return sorted(contest, key=lambda contestant: contestant.on != "MPI ranks")


def one_rank(work: Work, threads: int) -> Contestant:
    """Rote on one rank with several threads, which have the whole array and send nothing."""
    prepare = partial(transform, "auto", "auto", False, "measure", threads=threads)
    return Contestant("threads", "one rank", "threads", threads, work, None, partial(measure, prepare, work))


def transform(algorithm: str, method: str, restore: bool, tune: Tune, comm: Comm, work: Work, threads: int = 1) -> Job:
    """A transform by an algorithm, in the layouts that it prefers; `restore` gives the spectrum the input's layout."""
    with suppress(ImportError):  # so that mkl_fft has several threads: Rote later loads MKL for one
        import_module("mkl_fft")
    make = partial(FFT, work.shape, comm=comm, dtype=work.dtype, algorithm=algorithm)
    make = partial(make, tune=tune, method=method, threads=threads)
    fft = make()
    if restore:
        begins = fft.input_layout
        fft = make(layout=begins, grid=fft.grid, output=begins)
    source, target = fft.walk.source, fft.walk.target
    x = DistTensor.zeros(work.shape, source.layout, comm, source.grid, work.dtype)
    outputs: dict[str, DistTensor] = {}  # the first run allocates it, later runs write to it

    def forward() -> Array:
        outputs["X"] = fft.forward(x, outputs.get("X"))
        return outputs["X"].local

    def backward() -> Array:
        outputs["y"] = fft.backward(outputs["X"], outputs.get("y"))
        return outputs["y"].local

    wheres = source.tensor_indices(comm.rank), target.tensor_indices(comm.rank)
    return transform_job(work, (forward, backward), x.local, wheres, library="; ".join(map(build, fft.libraries)))


def move(method: str, comm: Comm, work: Work) -> Job:
    """A job that swaps slabs by `redistribute`."""
    source, target = slabs(work)
    x, y = (DistTensor.empty(work.shape, d.layout, comm, d.grid, work.dtype) for d in (source, target))
    fill(work, source.tensor_indices(comm.rank), x.local)

    check = partial(check_values, work, target.tensor_indices(comm.rank))
    return Job((lambda: x.redistribute(target.layout, y, method=method).local,), (check,))


def slabs(work: Work) -> tuple[Distribution, Distribution]:
    """The distributions of an array before and after the swap."""
    whole = "()," * (len(work.shape) - 2)
    layouts = (parse(f"block[{ends}{whole}".rstrip(",") + "]") for ends in ("(0),(),", "(),(0),"))
    before, after = (distribute(layout, work.shape, work.ranks) for layout in layouts)
    return before, after
