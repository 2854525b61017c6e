"""The libraries that `rote bench` times, as cases: Rote, those that need MPI, those of one process, and those of C.

A library is imported when it runs; a missing one is reported with the command that installs it. To add a library of
one process, write a function that prepares its two steps and add it to `LIBRARIES`. FFTW's MPI transforms and PFFT are
a C program, which is compiled here and launched once per round.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..caches import memoized
from ..compiler.compile import compile
from ..compiler.tasks import Planned, task_seconds
from ..fft.plan import FFT
from ..host import alone, cores
from ..layout.distribution import Distribution, distribute
from ..layout.expressions import L
from ..layout.grid import Grid
from ..layout.indexset import IndexSet
from ..machines.machine import Machine
from ..runtime.choose import Tune
from ..runtime.comm import segments
from ..runtime.comm.protocol import Comm, MpiHandle
from ..tensor import DistTensor
from .cases import (
    SPAN,
    Array,
    Case,
    Job,
    Missing,
    Prepare,
    Round,
    Work,
    check_values,
    fill,
    measure,
    mesh,
    on_all,
    transform_job,
)
from .machine import build, fftw_text

__all__ = ["LIBRARIES", "copy_of_block", "slabs", "transform", "with_mpi", "with_programs", "with_rote"]
__all__ += ["within_one_process"]


# --- Rote ------------------------------------------------------------------------------------------------------------

_THREADS = ("auto", "shared", "alltoallv")  # the methods that need no MPI


def with_rote(
    work: Work,
    algorithms: Sequence[str],
    methods: Sequence[str],
    restore: bool,
    mpi: bool,
    machine: Machine | None = None,
) -> list[Case]:
    """Rote on MPI's ranks, if there are several, and on threads of one process; with its seconds on a machine."""
    cases: list[Case] = []
    for method in methods:
        suffix = "" if method == "auto" else method
        prepared: list[tuple[str, Prepare]] = []
        if work.move:
            prepared.append((suffix, partial(_move, method, machine)))
        else:
            for name in algorithms:
                variant = f"{name} {suffix}".strip()
                prepared.append((variant, partial(transform, name, method, restore, "measure", machine=machine)))

        for name, prepare in prepared:
            run = partial(measure, prepare, work)
            cases.append(on_all("rote", name, run, work, mpi))
            if mpi and method in _THREADS:
                cases.append(on_all("threads", name, run, work, False))

    return sorted(cases, key=lambda case: case.on != "MPI ranks")


def transform(
    algorithm: str,
    method: str,
    restore: bool,
    tune: Tune,
    comm: Comm,
    work: Work,
    threads: int = 1,
    machine: Machine | None = None,
) -> Job:
    """A transform by an algorithm, in the layouts that it prefers; `restore` gives the spectrum the input's layout."""
    with suppress(ImportError):  # so that mkl_fft has several threads: Rote later loads MKL for one
        import_module("mkl_fft")

    make = partial(FFT, work.shape, comm=comm, dtype=work.dtype, algorithm=algorithm)
    make = partial(make, tune=tune, method=method, threads=threads)

    # The first plan finds the layouts that the algorithm prefers; a second one keeps the spectrum in the input's.
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
    job = transform_job(work, (forward, backward), x.local, wheres, library="; ".join(map(build, fft.libraries)))
    return replace(job, predicted=_predicted(machine, fft.walk, fft.walk.inverse()))


def _predicted(machine: Machine | None, *planned: Planned) -> float | None:
    """The seconds of planned things on a machine, one after the other."""
    return None if machine is None else sum([task_seconds(plan.tasks().every, machine) for plan in planned])


def _move(method: str, machine: Machine | None, comm: Comm, work: Work) -> Job:
    source, target = slabs(work)
    x, y = (DistTensor.empty(work.shape, d.layout, comm, d.grid, work.dtype) for d in (source, target))
    fill(work, source.tensor_indices(comm.rank), x.local)

    check = partial(check_values, work, target.tensor_indices(comm.rank))
    plan = compile(source, target, work.dtype)
    move = (lambda: x.redistribute(target.layout, y, method=method).local,)
    return Job(move, (check,), predicted=_predicted(machine, plan))


def slabs(work: Work) -> tuple[Distribution, Distribution]:
    """The distributions of an array before and after the swap."""
    whole = [()] * (len(work.shape) - 2)
    before, after = L(0, (), *whole, kind="block"), L((), 0, *whole, kind="block")
    return distribute(before, work.shape, work.ranks), distribute(after, work.shape, work.ranks)


# --- libraries that need MPI -----------------------------------------------------------------------------------------

_ORDERS = {"slab": 1, "pencil": 2}
_MOST_MODES = 3  # of dtFFT
_BACKENDS = ("MPI_A2A", "MPI_P2P_FUSED")  # of dtFFT's faster ones; its own tuning may take a slower one
_INSTALL = {"mpi4py-fft": "mpi4py-fft", "dtfft": "dtfft-fftw-openmpi or dtfft-fftw-mpich, whichever is of this MPI"}


def with_mpi(work: Work, algorithms: Sequence[str], mpi: bool) -> list[Case]:
    """For a transform, mpi4py-fft in the layouts of the algorithms, and dtFFT with its backends; for a swap, the
    cases with which it is compared.
    """
    if mpi:  # load them now: once MKL is loaded, they find MKL's FFTW instead of their own
        with suppress(Exception):
            import_module("mpi4py_fft")
        with suppress(Exception):
            import_module("dtfft")

    def case(group: str, variant: str, prepare: Prepare) -> Case:
        p = work.ranks
        return Case(group, variant, "MPI ranks", p, work, p if mpi else None, partial(_run, group, prepare, work))

    if work.move:
        return [case("mpi4py-fft", "", _transfer), case("alltoallw", "", _alltoallw), copy_of_block(work, mpi)]

    layouts = [name for name in algorithms if name in _ORDERS] or ["slab"]
    cases = [case("mpi4py-fft", name, partial(_pfft, name)) for name in layouts]
    if len(work.shape) <= _MOST_MODES:
        cases += [case("dtfft", name, partial(_dtfft, name)) for name in _BACKENDS]
    return cases


def copy_of_block(work: Work, mpi: bool) -> Case:
    """A plain copy of the block, the lower bound for a swap."""
    return on_all("memcpy", "", partial(measure, _memcpy, work), work, mpi)


def _run(group: str, prepare: Prepare, work: Work, comm: Comm) -> Round:
    """One round of a library, which may not be installed."""
    try:
        return measure(prepare, work, comm)
    except ImportError as error:
        why = f", {error}" if group in _INSTALL else ""
        raise Missing(f"is not installed{why}; pip install {_INSTALL.get(group, group)}") from None


def _mpi(comm: Comm) -> MpiHandle:
    if not isinstance(comm, MpiHandle):
        raise Missing("takes MPI's ranks; start rote bench by mpiexec")
    return comm


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
    x, y = (memory.view(work.dtype)[: prod(before.counts)].reshape(before.counts[::-1]) for memory in buffers[::2])
    spectrum = buffers[1].view(work.wide)[: prod(after.counts)].reshape(after.counts[::-1])

    def forward() -> Array:
        plan.execute(buffers[0], buffers[1], library.Execute.FORWARD, scratch)
        return np.moveaxis(spectrum, -1, 0)

    def backward() -> Array:
        plan.execute(buffers[1], buffers[2], library.Execute.BACKWARD, scratch)
        return y

    counts, starts = ((*part[0:1], *part[:0:-1]) for part in (after.counts, after.starts))
    wheres = mesh(before.counts[::-1], before.starts[::-1]), mesh(counts, starts)
    return transform_job(work, (forward, backward), x, wheres, (1.0, prod(work.shape)), library=build("dtfft"))


def _transfer(comm: Comm, work: Work) -> Job:
    pencils: Any = import_module("mpi4py_fft.pencil")
    ranks = pencils.Subcomm(_mpi(comm).handle, [0] + [1] * (len(work.shape) - 1))
    before = pencils.Pencil(ranks, work.shape, 1)
    transfer = before.transfer(before.pencil(0), work.dtype)

    def close() -> None:
        transfer.destroy()
        ranks.destroy()

    return _swap_job(comm, work, slabs(work), transfer.forward, close)


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

    return _swap_job(comm, work, (before, after), swap, close)


def _subarray(element: Any, shape: tuple[int, ...], mode: int, interval: IndexSet) -> Any:
    """The datatype of the part of a block at an interval of a mode, which may be empty."""
    part, starts = [*shape], [0] * len(shape)

    part[mode], starts[mode] = len(interval), interval.start
    if 0 in part:
        return element.Create_contiguous(0).Commit()
    return element.Create_subarray(shape, part, starts).Commit()


def _memcpy(comm: Comm, work: Work) -> Job:
    before, _ = slabs(work)
    return _swap_job(comm, work, (before, before), lambda x, y: np.copyto(y, x), lambda: None)


def _swap_job(
    comm: Comm,
    work: Work,
    ends: tuple[Distribution, Distribution],
    swap: Callable[[Array, Array], object],
    close: Callable[[], None],
) -> Job:
    before, after = ends
    x, y = (segments.empty(end.local_shape(comm.rank), work.dtype) for end in ends)
    fill(work, before.tensor_indices(comm.rank), x)

    def step() -> Array:
        swap(x, y)
        return y

    return Job((step,), (partial(check_values, work, after.tensor_indices(comm.rank)),), close)


# --- libraries of one process, on as many threads as there are ranks and cores ---------------------------------------

_Steps: TypeAlias = tuple[Callable[[], Array], Callable[[], Array]]
_Library: TypeAlias = Callable[[Work, Sequence[int], int, Array, Array, Array], tuple[_Steps, float]]

LINGER = 0.3  # seconds for which OpenMP's threads may still occupy cores after a call
_wisdom: dict[str, Any] = {}  # pyFFTW's timed plans, separate from Rote's
_planning = threading.Lock()  # ranks that are threads share one planner


def within_one_process(work: Work, usable: int, single: bool) -> list[Case]:
    """One case per library; with `single`, MKL also on one thread, because several may slow each other down."""
    many = min(work.ranks, usable)  # cores

    def case(name: str, variant: str, count: int) -> Case:
        run = partial(_run, name, partial(_local, name, count), work)
        return Case(name, variant, "threads", count, work, None, run)

    cases = [case(name, "", many) for name in LIBRARIES]
    if single and many > 1:
        cases.append(case("mkl_fft", "on one", 1))
    return cases


def _local(name: str, threads: int, comm: Comm, work: Work) -> Job:
    x, y = (segments.empty(work.shape, work.dtype) for _ in range(2))
    X = segments.empty(work.spectrum, work.wide)

    steps, scale = LIBRARIES[name](work, (*range(x.ndim),), threads, x, X, y)
    close = partial(time.sleep, LINGER if name == "mkl_fft" else 0)
    return transform_job(work, steps, x, (mesh(x.shape), mesh(X.shape)), (1.0, scale), close, build(name))


def _pyfftw(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fftw: Any = import_module("pyfftw")

    options = {"axes": axes, "flags": ("FFTW_MEASURE",), "threads": threads}

    # FFTW has one wisdom per process. Here it is this library's own, so that neither learns from the other's plans.
    with _planning:
        shared_wisdom = fftw.export_wisdom()
        fftw.import_wisdom(_wisdom.get("fftw", shared_wisdom))
        onward = fftw.FFTW(x, X, direction="FFTW_FORWARD", **options)
        back = fftw.FFTW(X, y, direction="FFTW_BACKWARD", **options)
        _wisdom["fftw"] = fftw.export_wisdom()
        fftw.forget_wisdom()  # else it would override Rote's plans by estimate
        fftw.import_wisdom(shared_wisdom)

    def forward() -> Array:
        onward.execute()
        return X

    def backward() -> Array:
        back.execute()
        return y

    return (forward, backward), float(prod(x.shape[axis] for axis in axes))


def _scipy(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("scipy.fft")
    onward, back, spectrum = fft.fftn, fft.ifftn, X
    if work.real:
        onward, back = fft.rfftn, partial(fft.irfftn, s=[x.shape[axis] for axis in axes])

    def forward() -> Array:
        nonlocal spectrum
        spectrum = np.asarray(onward(x, axes=axes, workers=threads))
        return spectrum

    return (forward, lambda: back(spectrum, axes=axes, workers=threads)), 1.0


def _ducc0(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("ducc0").fft
    onward = back = fft.c2c
    if work.real:
        onward, back = fft.r2c, partial(fft.c2r, lastsize=x.shape[axes[-1]])
    return (
        lambda: onward(x, list(axes), out=X, nthreads=threads),
        lambda: back(X, list(axes), forward=False, inorm=2, out=y, nthreads=threads),
    ), 1.0


def _mkl_fft(work: Work, axes: Sequence[int], threads: int, x: Array, X: Array, y: Array) -> tuple[_Steps, float]:
    fft: Any = import_module("mkl_fft")
    lengths = [x.shape[axis] for axis in axes]
    if len(axes) > 1:
        onward, back = (fft.rfftn, partial(fft.irfftn, s=lengths)) if work.real else (fft.fftn, fft.ifftn)
        along: dict[str, Any] = {"axes": axes}
    else:  # along one of several axes, fftn loops over lines in Python
        onward, back = (fft.rfft, partial(fft.irfft, n=lengths[0])) if work.real else (fft.fft, fft.ifft)
        along = {"axis": axes[0]}

    for number in (3, 2, 1):
        with suppress(OSError):
            ctypes.CDLL(f"libmkl_rt.so.{number}").MKL_Set_Num_Threads(threads)
            break

    return (lambda: onward(x, out=X, **along), lambda: back(X, out=y, **along)), 1.0


LIBRARIES: dict[str, _Library] = {"pyfftw": _pyfftw, "scipy": _scipy, "ducc0": _ducc0, "mkl_fft": _mkl_fft}

# --- libraries of C, by a program ------------------------------------------------------------------------------------

_CROWDED = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
_SOURCE = Path(__file__).with_name("program.c")


# By name: flags of the compiler; libraries beside FFTW's, each with an f at its end in single precision; the remedy.
_PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "fftw-mpi": ((), (), "on Debian, apt-get install libfftw3-dev libfftw3-mpi-dev libopenmpi-dev openmpi-bin"),
    "pfft": (("-DPFFT",), ("-lpfft",), "build PFFT, and name its folders in CFLAGS and LDFLAGS"),
}


def with_programs(work: Work) -> list[Case]:
    """The transforms of a work by these libraries."""
    runs = {name: partial(_run_program, name, work) for name in _PROGRAMS}
    return [Case(name, "", "MPI ranks", work.ranks, work, None, run) for name, run in runs.items()]


def _run_program(name: str, work: Work, comm: Comm) -> Round:
    """One round: one launch of the program, which reuses its plans."""
    program, mpiexec = _build(name, work.dtype.char in "fF", work.ranks)
    kind = "r2c" if work.real else "c2c"

    first, seconds, *_ = _launch(program, mpiexec, work.ranks, work.points, kind, "1", str(SPAN))
    return Round(float(seconds), fftw_text(first.split()[-1]))


def _launch(program: Path, mpiexec: str, ranks: int, *args: str) -> list[str]:
    """Launch the program and return the lines that it prints, after checking that its ranks found each other."""
    wisdom = program.with_suffix(".wisdom")  # keeps the plans from round to round
    command = (mpiexec, "-n", str(ranks), str(program), *args, str(wisdom))
    lines = _output(*command, crowded=ranks > len(cores())).splitlines() or [""]
    if not lines[0].startswith(f"ranks {ranks} "):
        raise Missing("has an mpiexec of another MPI than the mpicc beside it")
    return lines


@memoized(64)
def _build(name: str, single: bool, ranks: int) -> tuple[Path, str]:
    """The program, compiled by the first mpicc on the PATH that works, and the mpiexec beside it, which tests it.

    The test is needed because a library belongs to one MPI, but may compile with the header of another.
    """
    letter, (more_flags, more_libraries, install) = "f" if single else "", _PROGRAMS[name]

    reason = "has no mpicc, with mpiexec beside it, on the PATH"
    # The header of one MPI compiles with the library of another, and only a run tells: so all are tried.
    for folder in dict.fromkeys(os.get_exec_path()):
        mpicc, mpiexec = (shutil.which(name, path=folder) for name in ("mpicc", "mpiexec"))
        if mpicc is None or mpiexec is None:
            continue

        program = Path(_folder().name, name + letter)
        libraries = [*[f"{name}{letter}" for name in more_libraries], f"-lfftw3{letter}_mpi", f"-lfftw3{letter}", "-lm"]
        flags = [*more_flags, *["-DSINGLE"] * single, *shlex.split(os.environ.get("CFLAGS", ""))]
        folders = shlex.split(os.environ.get("LDFLAGS", ""))
        try:
            _output(mpicc, "-O2", *flags, str(_SOURCE), "-o", str(program), *folders, *libraries)
            _launch(program, mpiexec, ranks, "4x4", "c2c", "0", "0")
        except Missing as error:
            reason = str(error)
        else:
            return program, mpiexec
    raise Missing(f"{reason}; {install}")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder for compiled programs, which is deleted when this process ends."""
    return tempfile.TemporaryDirectory(prefix="rote-bench-")


def _output(*command: str, crowded: bool = False) -> str:
    """Run a command as if from a shell, and return what it prints; `crowded` lets ranks share cores.

    If it fails, `Missing` has the line of its output that says why.
    """
    environment = alone()
    moved = os.environ.get("OPAL_PREFIX")
    if moved is not None:  # of a launcher that was moved after its build: drop its libraries
        paths = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        environment["LD_LIBRARY_PATH"] = os.pathsep.join([path for path in paths if not path.startswith(moved)])

    environment |= _CROWDED if crowded else {}

    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip(" -")]
        complaints = [line for line in lines if "error" in line.lower() or line.startswith("program:")]
        why = (complaints or lines or [f"it ends with status {done.returncode}"])[0]
        raise Missing(f"does not run, by {Path(command[0]).name}: {why}")
    return done.stdout
