"""Rote as a contestant: transforms by an algorithm, and the swap of slabs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..fft.transform import FFT
from ..layout.distribution import Distribution, distribute
from ..layout.layout import parse
from ..runtime.comm import Comm
from ..tensor import DistTensor
from .arrays import check_values, fill, transform_job
from .contest import Entry, Job, Prepare, Work, measure, on_threads

__all__ = ["entries", "slabs"]


def entries(work: Work, algorithms: Sequence[str], restore: bool, mpi: bool) -> list[Entry]:
    """Rote on MPI's ranks, if there are several, and on ranks that are threads of one process."""
    if work.move:
        contestants: list[tuple[str, Prepare]] = [("", move)]
    else:
        contestants = [(name, partial(transform, name, restore)) for name in algorithms]
    p = work.ranks
    ranked = [Entry("rote", name, "MPI ranks", p, work, p, partial(measure, go, work)) for name, go in contestants]
    group = "threads" if mpi else "rote"
    threads = [Entry(group, name, "threads", p, work, None, partial(on_threads, go, work)) for name, go in contestants]
    return [*ranked * mpi, *threads]


def transform(algorithm: str, restore: bool, comm: Comm, work: Work) -> Job:
    """A transform by an algorithm, in the layouts that it prefers; with `restore`, the spectrum in the input's."""
    fft = FFT(work.shape, comm=comm, dtype=work.dtype, algorithm=algorithm, tune="measure")
    if restore:
        begins = fft.input_layout
        fft = FFT(work.shape, begins, fft.grid, comm, work.dtype, algorithm=algorithm, output=begins, tune="measure")
    source, target = fft.walk.source, fft.walk.target
    x = DistTensor.zeros(work.shape, source.layout, comm, source.grid, work.dtype)
    X = fft.forward(x)
    y = fft.backward(X)

    steps = (lambda: fft.forward(x, X).local, lambda: fft.backward(X, y).local)
    return transform_job(work, steps, x.local, (source.tensor_indices(comm.rank), target.tensor_indices(comm.rank)))


def move(comm: Comm, work: Work) -> Job:
    """The swap by `redistribute`."""
    source, target = slabs(work)
    x, y = (DistTensor.empty(work.shape, d.layout, comm, d.grid, work.dtype) for d in (source, target))
    fill(work, source.tensor_indices(comm.rank), x.local)

    check = partial(check_values, work, target.tensor_indices(comm.rank))
    return Job((lambda: x.redistribute(target.layout, y).local,), (check,))


def slabs(work: Work) -> tuple[Distribution, Distribution]:
    """Where an array lies before and after the swap."""
    whole = "()," * (len(work.shape) - 2)
    layouts = (parse(f"block[{ends}{whole}".rstrip(",") + "]") for ends in ("(0),(),", "(),(0),"))
    before, after = (distribute(layout, work.shape, work.ranks) for layout in layouts)
    return before, after
