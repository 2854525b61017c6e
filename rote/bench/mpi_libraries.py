"""Contestants that need MPI: mpi4py-fft, dtFFT, and Alltoallw with subarrays; and memcpy, which does not need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..layout.grid import Grid
from ..layout.indexset import IndexSet
from ..runtime.comm import segments
from ..runtime.comm.protocol import Comm, MpiHandle
from .arrays import Array, Mesh, check_values, fill, transform_job
from .contest import Contestant, Job, Missing, Prepare, Round, Work, measure, on_all
from .machine import build
from .rote_cases import slabs

__all__ = ["contestants", "copy_of_block"]

_ORDERS = {"slab": 1, "pencil": 2}
_MOST_MODES = 3  # of dtFFT
_BACKENDS = ("MPI_A2A", "MPI_P2P_FUSED")  # of dtFFT's faster ones; its own tuning may take a slower one
_INSTALL = {"mpi4py-fft": "mpi4py-fft", "dtfft": "dtfft-fftw-openmpi or dtfft-fftw-mpich, whichever is of this MPI"}


def contestants(work: Work, algorithms: Sequence[str], mpi: bool) -> list[Contestant]:
    """For a transform, mpi4py-fft in the layouts of the algorithms, and dtFFT with its backends; for a swap, the
    contestants it is compared with.
    """
    if mpi:  # load them now: once MKL is loaded, they find MKL's FFTW instead of their own
        with suppress(Exception):
            import_module("mpi4py_fft")
        with suppress(Exception):
            import_module("dtfft")
    if not work.move:
        layouts = [name for name in algorithms if name in _ORDERS] or ["slab"]
        contest = [_contestant("mpi4py-fft", name, partial(_pfft, name), work, mpi) for name in layouts]
        if len(work.shape) <= _MOST_MODES:
            contest += [_contestant("dtfft", name, partial(_dtfft, name), work, mpi) for name in _BACKENDS]
        return contest
    return [
        _contestant("mpi4py-fft", "", _transfer, work, mpi),
        _contestant("alltoallw", "", _alltoallw, work, mpi),
        copy_of_block(work, mpi),
    ]


def copy_of_block(work: Work, mpi: bool) -> Contestant:
    """A plain copy of the block, the lower bound for a swap."""
    return on_all("memcpy", "", partial(measure, _memcpy, work), work, mpi)


def _contestant(group: str, variant: str, prepare: Prepare, work: Work, mpi: bool) -> Contestant:
    p = work.ranks
    return Contestant(group, variant, "MPI ranks", p, work, p if mpi else None, partial(_run, group, prepare, work))


def _run(group: str, prepare: Prepare, work: Work, comm: Comm) -> Round:
    try:
        return measure(prepare, work, comm)
    except ImportError as error:
        raise Missing(f"is not installed, {error}; pip install {_INSTALL[group]}") from None


def _pfft(layout: str, comm: Comm, work: Work) -> Job:
    """mpi4py-fft with its defaults, on Rote's grid; it normalises the forward transform."""
    library: Any = import_module("mpi4py_fft")
    grid = Grid.of(comm.size, _ORDERS[layout]).shape
    fft = library.PFFT(_mpi(comm).handle, work.shape, dtype=work.dtype, grid=grid)
    x, X, y = (
        segments.empty(tuple(fft.shape(spectral)), np.dtype(fft.dtype(spectral))) for spectral in (False, True, False)
    )

    steps = (lambda: fft.forward(x, X), lambda: fft.backward(X, y))
    wheres = np.ogrid[fft.local_slice(False)], np.ogrid[fft.local_slice(True)]
    return transform_job(work, steps, x, wheres, (1 / prod(work.shape), 1.0), fft.destroy, build("mpi4py-fft"))


def _dtfft(backend: str, comm: Comm, work: Work) -> Job:
    """dtFFT, which takes slabs if there are enough planes, and turns the modes of the spectrum in memory."""
    library: Any = import_module("dtfft")
    plan = (library.PlanR2C if work.real else library.PlanC2C)(
        work.shape[::-1],  # its modes begin with the one whose elements are neighbours
        comm=_mpi(comm).handle,
        precision=library.Precision.SINGLE if work.dtype.char in "fF" else library.Precision.DOUBLE,
        executor=library.Executor.FFTW3,
        config=library.Config(backend=getattr(library.Backend, backend), enable_mpi_backends=True),
    )
    before = plan.get_pencil(library.Layout.X_PENCILS)
    after = plan.get_pencil(library.Layout.Z_PENCILS if len(work.shape) > 2 else library.Layout.Y_PENCILS)
    buffers: list[Array] = [plan.get_ndarray(plan.alloc_size) for _ in range(3)]
    scratch = plan.get_ndarray(plan.aux_size) if plan.aux_size else None
    x, y = (each.view(work.dtype)[: prod(before.counts)].reshape(before.counts[::-1]) for each in buffers[::2])
    spectrum = buffers[1].view(np.result_type(work.dtype, "c8"))[: prod(after.counts)].reshape(after.counts[::-1])

    def forward() -> Array:
        plan.execute(buffers[0], buffers[1], library.Execute.FORWARD, scratch)
        return np.moveaxis(spectrum, -1, 0)

    def backward() -> Array:
        plan.execute(buffers[1], buffers[2], library.Execute.BACKWARD, scratch)
        return y

    def held(starts: Sequence[int], counts: Sequence[int]) -> Mesh:
        return np.ix_(*map(np.arange, starts, np.add(starts, counts)))

    turned = [(*part[-1:], *part[:-1]) for part in (after.starts[::-1], after.counts[::-1])]
    wheres = held(before.starts[::-1], before.counts[::-1]), held(*turned)
    return transform_job(work, (forward, backward), x, wheres, (1.0, prod(work.shape)), library=build("dtfft"))


def _transfer(comm: Comm, work: Work) -> Job:
    """The redistribution of mpi4py-fft alone."""
    pencils: Any = import_module("mpi4py_fft.pencil")
    ranks = pencils.Subcomm(_mpi(comm).handle, [0] + [1] * (len(work.shape) - 1))
    before = pencils.Pencil(ranks, work.shape, 1)
    transfer = before.transfer(before.pencil(0), work.dtype)

    def close() -> None:
        transfer.destroy()
        ranks.destroy()

    return _swap_job(comm, work, transfer.forward, close)


def _alltoallw(comm: Comm, work: Work) -> Job:
    """A swap of slabs by one `Alltoallw` of subarrays, made once (Dalcin et al. 2019, listings 2 and 3)."""
    mpi, (before, after) = _mpi(comm), slabs(work)
    element, one_each = mpi.datatype(work.dtype), ([1] * comm.size, [0] * comm.size)
    sends, receives = [], []
    for rank in range(comm.size):
        sends.append(_subarray(element, before.local_shape(comm.rank), 1, after.index_sets(rank)[1]))
        receives.append(_subarray(element, after.local_shape(comm.rank), 0, before.index_sets(rank)[0]))

    def swap(source: Array, target: Array) -> None:
        mpi.handle.Alltoallw([source, one_each, sends], [target, one_each, receives])

    def close() -> None:
        for datatype in (*sends, *receives):
            datatype.Free()

    return _swap_job(comm, work, swap, close)


def _subarray(element: Any, shape: tuple[int, ...], mode: int, held: IndexSet) -> Any:
    """The datatype of the part of a block at an interval of a mode, which may be empty."""
    part, starts = [*shape], [0] * len(shape)
    part[mode], starts[mode] = len(held), held.start
    if 0 in part:
        return element.Create_contiguous(0).Commit()
    return element.Create_subarray(shape, part, starts).Commit()


def _swap_job(
    comm: Comm, work: Work, swap: Callable[[Array, Array], object], close: Callable[[], None], moves: bool = True
) -> Job:
    before, after = slabs(work)
    if not moves:
        after = before
    x, y = (segments.empty(each.local_shape(comm.rank), work.dtype) for each in (before, after))
    fill(work, before.tensor_indices(comm.rank), x)

    def step() -> Array:
        swap(x, y)
        return y

    return Job((step,), (partial(check_values, work, after.tensor_indices(comm.rank)),), close)


def _memcpy(comm: Comm, work: Work) -> Job:
    return _swap_job(comm, work, lambda x, y: np.copyto(y, x), lambda: None, moves=False)


def _mpi(comm: Comm) -> MpiHandle:
    """The MPI handle of the communicator."""
    if not isinstance(comm, MpiHandle):
        raise Missing("takes MPI's ranks; start rote bench by mpiexec")
    return comm
