"""`rote fft`: the transform of a tensor in a file into another file, by all ranks in parallel.

The options are a `Request`. `prepare` turns it into a `FileTransform`: the walk, how to run it, and the layouts at both
ends. `transform` then reads, transforms, writes and, with --check, compares the file with `numpy.fft` on rank 0.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, RoteError
from ..host import memory
from ..io.transfer import Draft
from ..layout.distribution import Distribution, distribute, replication
from ..layout.grid import check_grid
from ..layout.layout import Layout, as_layout
from ..runtime.comm.agreement import collective_errors, from_root
from ..runtime.comm.protocol import Comm
from ..units import in_bytes
from .options import Integers, force_option, ranks_option, refuse_target, refuse_too_many, threads_option
from .output import Answer, Watch, give, json_option, on_ranks, say

if TYPE_CHECKING:
    from ..fft.plan import FFT
    from ..fft.walk import Walk
    from ..io.stored import StoredTensor
    from ..runtime.choose import Progress
    from ..tensor import DistTensor

__all__ = ["ALGORITHMS", "Request", "Transformed", "available_memory", "fft", "largest_error", "refuse_wrong"]
__all__ += ["transform"]

Array = npt.NDArray[Any]

ALGORITHMS = ("auto", "slab", "pencil", "rows", "volumetric", "cyclic", "ragged")  # rote.fft's, without loading it


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `rote fft`."""

    source: str
    target: str
    name: str | None = None
    step: int | None = None
    decode: bool = False
    layout: str | None = None
    grid: tuple[int, ...] | None = None
    algorithm: str = "auto"
    inverse: bool = False
    real: bool | None = None
    length: int | None = None
    axes: tuple[int, ...] | None = None
    norm: str | None = None
    output: str | None = None
    check: bool = False
    tune: str = "model"
    threads: int | None = None
    force: bool = False


class FileTransform(NamedTuple):
    """A request on an array: how to run it, and how to describe it."""

    walk: Walk
    run: Callable[[DistTensor], DistTensor]
    target: Distribution  # of the result that is written
    dtype: np.dtype[Any]  # of the result
    axes: tuple[int, ...]
    text: str


class Transformed(NamedTuple):
    """The outcome of a transform on this rank."""

    job: FileTransform
    result: DistTensor  # that was written, in its own layout
    answer: Answer  # for programs


@click.command()
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--name", metavar="NAME", help="The tensor in IN, if it holds several; rote contents IN lists them.")
@click.option("--step", metavar="N", type=int, help="The step of IN; default: the last one.")
@click.option("--decode", is_flag=True, help="Transform the values that packed numbers of netCDF stand for.")
@click.option("--layout", metavar="LAYOUT", help="Layout of the input; default: blocks, the cheapest to transform.")
@click.option("--grid", metavar="2x2", type=Integers(), help="The process grid; default: balanced.")
@ranks_option()
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="auto", show_default=True)
@click.option("--inverse", is_flag=True, help="Do the inverse transform.")
@click.option("--real/--complex", default=None, help="Half a spectrum, or a whole one; default: as the input.")
@click.option(
    "--length", metavar="N", type=click.IntRange(min=1), help="The last extent that --inverse --real restores."
)
@click.option("--axes", metavar="0,2", type=Integers(signed=True), help="The transformed modes; default: all.")
@click.option("--norm", type=click.Choice(["backward", "ortho", "forward"]), help="As in NumPy; default backward.")
@click.option("--output", metavar="LAYOUT", help="Layout of the result in memory; default: the cheapest.")
@click.option("--check", is_flag=True, help="Compare the result with numpy.fft on rank 0.")
@click.option(
    "--effort",
    "--tune",
    "tune",
    type=click.Choice(["model", "measure", "patient"]),
    default="model",
    show_default=True,
    help="Estimate what is fastest, or time it (patient: for longer) and keep the result. Under Open MPI write "
    "--effort: its mpirun takes --tune anywhere for an option of its own.",
)
@threads_option
@force_option
@json_option
@click.pass_obj
def fft(began: float | None, /, ranks: int | None, as_json: bool, **options: Any) -> None:
    """Transform a tensor in the file IN into the file OUT: every rank reads, transforms and writes its own part.

    Each is a file or store that rote.load reads and rote.save writes: .npy, .zarr, .h5, .nc or .xdmf.

    Real input gives half a spectrum, as numpy.fft.rfftn, unless --complex asks for the whole one; complex
    input gives a spectrum as numpy.fft.fftn. --inverse is numpy.fft.ifftn or, with --real, irfftn.

    \b
    Examples:
      rote demo --size 16 --dir small
      rote fft small/volume.npy spectrum.npy
      rote fft small/volume.npy spectrum.npy --ranks 4 --check --force
      rote fft spectrum.npy again.npy --inverse --real --length 16
      rote fft small/volume.npy planes.npy --axes 0,1 --complex --json
      rote fft spectrum.npy again.h5 --inverse --real --length 16
      rote fft again.h5 spectrum.zarr --name data
      mpiexec -n 4 rote fft small/volume.npy spectrum.npy --force --layout "block[(0),(1),()]"
    """
    request = Request(**options)
    if request.length is not None and not (request.inverse and request.real):
        raise click.UsageError("--length goes with --inverse --real: half a spectrum does not say what it comes from")
    answer = give(as_json, lambda: on_ranks(transform, ranks, 1, request, began).answer)
    refuse_wrong(answer, request.target)


def refuse_wrong(answer: Answer, path: str) -> None:
    """Refuse a result that the comparison with numpy.fft has found to be wrong."""
    if answer["within"] is False:
        error, limit = answer["error"], answer["tolerance"]
        raise RoteError(f"{path} differs from what numpy.fft computes by {error:.1e}, more than {limit:.0e}")


def transform(comm: Comm, request: Request, began: float | None = None) -> Transformed:
    """Do a request on every rank of a communicator; rank 0 prints the plan and the times, from `began` on."""
    watch = Watch(comm, began)
    with watch.phase("start"):
        from .. import config
        from ..fft.kernels.backends import library
        from ..io import format_of
        from ..io.checks import check_dtype
        from ..tensor import load
        from ..tensor.files import save

        library("pyfftw").version()  # loads FFTW

    with watch.phase("plan") as part:
        stored = _stored(request, comm)
        if stored.packing is not None and not request.decode and comm.rank == 0:
            kept = "holds packed numbers, which are transformed as they are stored; --decode unpacks them"
            click.echo(f"Warning: {request.source} {kept}", err=True)
        element = stored.packing.dtype if stored.packing is not None and request.decode else stored.dtype
        # All that can be refused is refused here, on all ranks, before the file is read.
        with collective_errors(comm):
            if comm.rank == 0:
                refuse_target(request.target, request.force, request.source)
            form = format_of(request.target)
            form.library()

        job = prepare(request, stored.shape, element, comm, part)
        walk, target = job.walk, job.target
        with collective_errors(comm):
            check_dtype(job.dtype, request.target, form.most)
            if comm.rank == 0:
                refuse_no_room(request.target, prod(target.shape) * job.dtype.itemsize, form.name == "Zarr")
                if request.check:
                    refuse_too_large(stored.shape, walk.dtype, target.shape, job.dtype)

    say(comm, job.text)
    if comm.rank == 0 and request.grid is None and request.layout is not None:
        warn_of_a_gap(walk.source)
    # A format that needs another layout is the user's choice, so these moves are not warned of.
    with config(implicit="allow"), watch.phase("read") as part:
        where: dict[str, Any] = {"layout": walk.source.layout, "grid": walk.source.grid, "comm": comm}
        x = load(request.source, **where, name=request.name, step=request.step, decode=request.decode, progress=part)
        if x.dtype != walk.dtype:
            x = x.astype(walk.dtype)

    with watch.phase("transform"):
        result = job.run(x)
    if target.layout != result.layout:
        with watch.phase("output"):
            result = result.redistribute(target.layout)

    with config(implicit="allow"), watch.phase("write") as part:
        save(request.target, result, progress=part)

    error = None
    if request.check:
        with watch.phase("check"):
            error = from_root(comm, partial(_error, request, job))

    seconds, limit = watch.report(), 1e-4 if job.dtype.char in "fF" else 1e-10
    within = None if error is None else bool(error <= limit)
    if error is not None:
        side = "below" if within else "NOT below"
        say(comm, f"error      {error:.1e} of the largest value of numpy.fft.{walk.kind}n, {side} {limit:.0e}")

    answer: Answer = {
        "transform": f"{walk.kind}n",
        "ranks": comm.size,
        "input": _end(walk.source, walk.dtype),
        "output": _end(result.distribution, result.dtype),
        "axes": job.axes,
        "walk": [line.strip() for line in str(walk).splitlines()],
        "received_bytes": sum(plan.cost.bytes for plan in walk.moves),
        "seconds": seconds,
        "error": error,
        "tolerance": limit,
        "within": within,
    }
    return Transformed(job, result, answer)


def warn_of_a_gap(dist: Distribution) -> None:
    """Warn on one line of a layout that leaves out a smaller grid mode than one it names, on a grid that Rote chose.

    A layout that names none is whole on every rank, and says so.
    """
    layout, copies = dist.layout, replication(dist)
    numbers = {g: number for number, g in enumerate(sorted(layout.grid_modes))}
    if not copies or all(g == number for g, number in numbers.items()):
        return

    modes = []
    for mode in layout.modes:
        modes.append(tuple([replace(entry, grid_mode=numbers[entry.grid_mode]) for entry in mode]))
    dense = replace(layout, modes=tuple(modes), rooted=tuple([(numbers[g], at) for g, at in layout.rooted]))
    click.echo(f"Warning: {layout} is {copies}; write {dense}, or --grid {dist.grid} if that is meant", err=True)


def _end(dist: Distribution, dtype: np.dtype[Any]) -> Answer:
    return {"shape": dist.shape, "dtype": dtype.str[1:], "layout": str(dist.layout), "grid": dist.grid.shape}


def _error(request: Request, job: FileTransform) -> float:
    """The error of the file that was written, against numpy.fft."""
    of_source: dict[str, Any] = {"name": request.name, "step": request.step, "decode": request.decode}
    array = _whole(request.source, **of_source).astype(job.walk.dtype, copy=False)
    extents = [job.target.shape[a] for a in job.axes] if job.walk.kind == "irfft" else None

    expected = getattr(np.fft, f"{job.walk.kind}n")(array, extents, job.axes, request.norm)
    return largest_error(_whole(request.target), expected)


def _stored(request: Request, comm: Comm) -> StoredTensor:
    """The tensor to transform, as its file describes it. Collective; only rank 0 reads."""
    from ..io import format_of_file

    contents = format_of_file(request.source, comm).look(request.source, request.step, comm, request.name)
    try:
        return contents.pick(request.source, request.name)
    except RoteError as error:  # its hint is written for Python
        raise RoteError(str(error).replace("write name=", "write --name ")) from None


def _whole(path: str, **where: Any) -> Array:
    """A tensor in a file, read as one array by this rank alone; `where` are further arguments of `load`."""
    from ..runtime.comm.threads import alone
    from ..tensor import load

    whole: Array = load(path, comm=alone(), **where).local
    return whole


# --- from options to a walk ------------------------------------------------------------------------------------------


def prepare(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, part: Progress | None
) -> FileTransform:
    """The walk of a request, bound; the same on every rank, errors included."""
    from ..fft.plan import FFT
    from ..fft.transforms import complex_dtype, real_dtype
    from ..fft.walk import describe

    threads = request.threads or 1
    refuse_too_many(comm, threads)

    real = request.real
    if real is None:
        real = dtype.kind != "c" and not request.inverse

    tuning: dict[str, Any] = {"tune": request.tune, "threads": threads, "progress": part}
    make: Callable[..., FFT] = partial(FFT, comm=comm, axes=request.axes, norm=request.norm, **tuning)
    run: Callable[[DistTensor], DistTensor]
    if request.inverse:
        # By the way back of a transform, for an FFT is planned from the signal's side.
        fft = _backward(request, shape, dtype, comm, real, make)
        walk, run = fft.walk.inverse(), fft.backward
        plan = describe(walk, fft.axes)
    else:
        if real and dtype.kind == "c":
            raise LayoutError(f"--real transforms real arrays, and {request.source} holds {dtype}; leave --real out")

        element = real_dtype(dtype) if real else complex_dtype(dtype)

        layout: Layout | str | None = request.layout
        grid = request.grid
        if layout is None and request.algorithm == "auto" and all(shape):
            begins = _begins(request, shape, "rfft" if real else "fft", element, comm)
            layout, grid = begins.layout, begins.grid.shape

        fft = make(shape, layout, grid, dtype=element, algorithm=request.algorithm)
        walk, run, plan = fft.walk, fft.forward, str(fft)

    target, result = walk.target, walk.dtypes()[-1]
    half = "real, so half a spectrum " if walk.kind == "rfft" else ""
    lines = [f"{request.source}: {shape} {dtype}, {half}as by numpy.fft.{walk.kind}n", plan]

    if request.output is not None:
        target = distribute(as_layout(request.output), target.shape, target.grid)
        if target.layout.partial:
            raise LayoutError(
                f"a file holds values, and {target.layout} contributions to them; give an --output without +"
            )
        lines.append(f"  output {target.layout}")

    lines.append(f"{request.target}: {target.shape} {result}, {in_bytes(prod(target.shape) * result.itemsize)}")
    return FileTransform(walk, run, target, result, fft.axes, "\n".join(lines) + "\n")


def _backward(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, real: bool, make: Callable[..., FFT]
) -> FFT:
    """The transform whose inverse is the request: that of a walk which ends where the file is read."""
    from ..fft.families.choose import choices, walks
    from ..fft.request import as_request, normal_axes
    from ..fft.transforms import complex_dtype, real_dtype

    axes, element = normal_axes(request.axes, len(shape)), complex_dtype(dtype)

    begins = _begins(request, shape, "fft", element, comm)
    check_grid(begins.grid, comm.size)
    extents = _restored(request, shape, axes) if real else None

    candidates = choices(begins, as_request(shape, axes, "irfft" if real else "ifft", element, extents))
    walk, choice = next(iter(walks(candidates).items()))

    target, signal = walk.target, real_dtype(element) if real else element
    make = partial(make, target.shape, grid=target.grid.shape, dtype=signal)

    if choice.name in ("cyclic", "volumetric"):
        # The way there is of the same family, and ends where the file is read.
        return make(target.layout, algorithm=choice.name, output=begins.layout)
    return make(algorithm=str(walk.inverse()))


def _begins(request: Request, shape: tuple[int, ...], kind: str, element: np.dtype[Any], comm: Comm) -> Distribution:
    """The distribution in which the transform of a file begins: one of the cheapest, in blocks if possible."""
    from ..fft.families.choose import best, choices_for, walk_for
    from ..fft.request import as_arguments, as_request, normal_axes
    from ..runtime.tuning import known_machine

    fourier = as_request(shape, normal_axes(request.axes, len(shape)), kind, element)
    arguments = as_arguments(shape, fourier, comm.size, request.layout, request.grid, None)

    if request.layout is not None or request.algorithm != "auto":
        return walk_for(arguments, request.algorithm).source

    choices = choices_for(arguments, known_machine(comm))
    # A rank reads a block of a file in long runs of bytes, but a cyclic part element by element.
    blocks = []
    for choice in choices:
        if choice.walk is not None and not any(entry.kind.is_cyclic for entry in chain(*choice.source.layout.modes)):
            blocks.append(choice)

    return best(blocks or choices).source


def _restored(request: Request, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """The extents, along the axes, of the real array whose half spectrum a file holds."""
    if not axes:
        raise LayoutError(f"a real transform needs at least one axis, and {shape} has none")

    points = shape[axes[-1]]
    if request.length is None or request.length // 2 + 1 != points:
        either = f"{2 * points - 2} or {2 * points - 1}" if points > 1 else "1"
        if request.length is not None:
            either += f", not {request.length}"
        raise LayoutError(
            f"{points} points of half a spectrum come from an extent of {either}; say which with --length"
        )
    return [*(shape[a] for a in axes[:-1]), request.length]


# --- the comparison with numpy.fft, and what it and the result need ---------------------------------------------------


def available_memory() -> int:
    """Bytes that this machine can give to a program now, or all its bytes if it does not say what is free."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return memory()
    return min(free, memory())


def refuse_too_large(shape: tuple[int, ...], dtype: np.dtype[Any], out: tuple[int, ...], result: np.dtype[Any]) -> None:
    """Refuse a comparison that does not fit into memory: input, spectrum, and the temporary arrays of numpy.fft.

    NumPy transforms axis by axis, from one whole array to the next; then the spectrum is read and subtracted.
    """
    spectrum = max(prod(out), prod(shape)) * np.result_type(result, np.complex64).itemsize

    # The input; then in complex numbers two arrays of NumPy's passes, the spectrum that is read, and the difference.
    needs = prod(shape) * dtype.itemsize + 4 * spectrum

    has = available_memory()
    if needs > has:
        raise RoteError(
            f"--check computes the whole transform on one rank, which needs about {in_bytes(needs)} of memory, "
            f"but {in_bytes(has)} are available\nleave --check out, or check a smaller array of the same kind"
        )


def refuse_no_room(path: str, nbytes: int, folder: bool) -> None:
    """Refuse a result that cannot be written, before the work: try to make a file or folder beside it."""
    draft = Draft.new(path, folder)
    draft.remove()

    free = shutil.disk_usage(os.path.dirname(draft.path)).free
    if free < nbytes:
        needs = f"the result takes {in_bytes(nbytes)}, and the disk has {in_bytes(free)} left"
        raise OSError(errno.ENOSPC, needs, path)


def largest_error(computed: Array, expected: Array) -> float:
    """The largest difference of two arrays, relative to the largest value expected; infinite if the shapes differ.

    >>> largest_error(np.array([1.0, 2.5]), np.array([1.0, 2.0]))
    0.25
    """
    if computed.shape != expected.shape:
        return float("inf")

    if not expected.size:
        return 0.0
    largest = float(np.abs(expected).max())
    return float(np.abs(computed - expected).max()) / (largest or 1.0)
