"""`rote fft`: the transform of a `.npy` file into another, by all ranks at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

from ..compiler.explain import in_bytes
from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution, distribute
from ..layout.layout import as_layout
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm
from ..runtime.program import check_grid
from .check import largest_error, refuse_too_large, tolerance
from .cores import refuse_too_many
from .failures import on_ranks
from .files import force_option, refuse_target
from .options import integers, threads_option
from .phases import Watch

if TYPE_CHECKING:
    from ..fft.plan import FFT
    from ..fft.request import TransformRequest
    from ..fft.walk.walk import Walk
    from ..runtime.calibrate import Progress
    from ..tensor import DistTensor

# rote.fft.algorithms, without loading it
ALGORITHMS = ("auto", "slab", "pencil", "rows", "volumetric", "cyclic", "ragged")

_Run: TypeAlias = "Callable[[DistTensor], DistTensor]"

__all__ = ["Request", "Transformed", "fft", "refuse_wrong", "transform"]


@dataclass(frozen=True, slots=True)
class Request:
    """What `rote fft` is asked to do; the fields are its options."""

    source: str
    target: str
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


@dataclass(frozen=True, slots=True)
class Transformed:
    """What came of it on this rank.

    Attributes:
        walk: the transform.
        result: the tensor that was written, in its own layout.
        seconds: per phase, the most that any rank took.
        error: against numpy.fft, relative to the largest value; None if it was not asked for.
    """

    walk: Walk
    result: DistTensor
    seconds: dict[str, float]
    error: float | None


@click.command()
@click.argument("source", metavar="IN.npy")
@click.argument("target", metavar="OUT.npy")
@click.option("--layout", metavar="LAYOUT", help="Of the input; blocks, the cheapest to transform, if not given.")
@click.option("--grid", metavar="2x2", callback=integers(), help="The ranks; balanced, if not given.")
@click.option(
    "--ranks", metavar="N", type=click.IntRange(min=1), help="Ranks inside this process, where no mpiexec starts them."
)
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="auto", show_default=True)
@click.option("--inverse", is_flag=True, help="The inverse transform.")
@click.option("--real/--complex", default=None, help="Half a spectrum, or a whole one; by the input, if not given.")
@click.option(
    "--length", metavar="N", type=click.IntRange(min=1), help="The last extent that --inverse --real restores."
)
@click.option("--axes", metavar="0,2", callback=integers(signed=True), help="The modes; all, if not given.")
@click.option("--norm", type=click.Choice(["backward", "ortho", "forward"]), help="As NumPy; backward, if not given.")
@click.option("--output", metavar="LAYOUT", help="Of the result in memory; the cheapest, if not given.")
@click.option("--check", is_flag=True, help="Compare the result with numpy.fft on rank 0.")
@click.option(
    "--effort",
    "--tune",
    "tune",
    type=click.Choice(["model", "measure", "patient"]),
    default="model",
    show_default=True,
    help="Estimate what is fastest, or time it, for longer if patient; what was found is kept. Under Open MPI write "
    "--effort, for its mpirun takes --tune, wherever it stands, for an option of its own.",
)
@threads_option
@force_option
@click.pass_obj
def fft(began: float | None, /, ranks: int | None, **options: Any) -> None:
    """Transform IN.npy into OUT.npy: every rank reads, transforms and writes its own part.

    \b
        mpiexec -n 4 rote fft volume.npy spectrum.npy --layout "block[(0),(1),()]"
        rote fft volume.npy spectrum.npy --ranks 4 --check

    Real input gives half a spectrum, as numpy.fft.rfftn, unless --complex asks for the whole one; complex
    input gives what numpy.fft.fftn does. --inverse undoes that: numpy.fft.ifftn or, with --real, irfftn.
    """
    request = Request(**options)
    if request.length is not None and not (request.inverse and request.real):
        raise click.UsageError("--length goes with --inverse --real: half a spectrum does not say what it comes from")
    refuse_wrong(on_ranks(transform, ranks, 1, request, began), request.target)


def refuse_wrong(done: Transformed, path: str) -> None:
    """Refuse a result that the comparison with numpy.fft has found to be wrong."""
    limit = tolerance(done.result.dtype)
    if done.error is not None and not done.error <= limit:
        raise RoteError(f"{path} differs from what numpy.fft computes by {done.error:.1e}, more than {limit:.0e}")


def transform(comm: Comm, request: Request, began: float | None = None) -> Transformed:
    """Do what is asked, on every rank of a communicator; rank 0 prints the plan and the times.

    Args:
        began: when this process began, by `perf_counter`: the phases are counted from then on.

    Raises (the same on all ranks):
        RoteError: the input is no `.npy` file of numbers, or does not fit the layout, the ranks or the options.
        OSError: a file cannot be read or written.
    """
    watch = Watch(comm, began)
    with watch.phase("start"):
        from ..fft.kernels.kernel import library
        from ..io import read_header
        from ..tensor import DistTensor

        library()  # loads FFTW
    with watch.phase("plan") as part:
        header = read_header(request.source, comm)
        with collective_errors(comm):
            if comm.rank == 0:
                refuse_target(request.target, request.force, request.source)
        job = _prepare(request, header.shape, header.dtype, comm, part)
        with collective_errors(comm):
            if comm.rank == 0 and request.check:
                refuse_too_large(header.shape, job.dtype, job.target.shape, job.result)
    watch.say(job.text)
    with watch.phase("read"):
        x = DistTensor.load(request.source, job.source.layout, comm, job.source.grid)
        x = x if x.dtype == job.dtype else x.astype(job.dtype)
    with watch.phase("transform"):
        result = job.run(x)
    if job.target.layout != result.layout:
        with watch.phase("output"):
            result = result.redistribute(job.target.layout)
    with watch.phase("write"):
        result.save(request.target)
    error = _compare(request, job, comm, watch) if request.check else None
    seconds = watch.report()
    if error is not None:
        limit = tolerance(job.result)
        verdict = "below" if error <= limit else "NOT below"
        watch.say(f"error      {error:.1e} of the largest value of {job.numpy_name}, {verdict} {limit:.0e}")
    return Transformed(job.walk, result, seconds, error)


@dataclass(frozen=True, slots=True)
class _Job:
    """A request on an array: how to run it, and what to say about it."""

    walk: Walk
    run: _Run
    target: Distribution
    axes: tuple[int, ...]
    text: str

    @property
    def source(self) -> Distribution:
        return self.walk.source

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements that are transformed."""
        return self.walk.dtype

    @property
    def result(self) -> np.dtype[Any]:
        """Of the elements of the result."""
        return self.walk.dtypes()[-1]

    @property
    def numpy_name(self) -> str:
        return f"numpy.fft.{self.walk.kind}n"


def _prepare(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, part: Progress | None) -> _Job:
    """The walk of a request, bound; the same on every rank, errors included."""
    from ..fft.walk.walk import describe

    refuse_too_many(comm, request.threads or 1)
    real = dtype.kind != "c" and not request.inverse if request.real is None else request.real
    if real and not request.inverse and dtype.kind == "c":
        raise LayoutError(f"--real transforms real arrays, and {request.source} holds {dtype}; leave --real out")
    fft = (_backward if request.inverse else _forward)(request, shape, dtype, comm, real, part)
    walk = fft.walk.inverse() if request.inverse else fft.walk
    run: _Run = fft.backward if request.inverse else fft.forward
    plan = describe(walk, fft.axes) if request.inverse else str(fft)
    target = walk.target
    half = "real, so half a spectrum " if walk.kind == "rfft" else ""
    lines = [f"{request.source}: {shape} {dtype}, {half}as by numpy.fft.{walk.kind}n", plan]
    if request.output is not None:
        target = distribute(as_layout(request.output), target.shape, target.grid)
        if target.layout.partial:
            raise LayoutError(
                f"a file holds values, and {target.layout} contributions to them; give an --output without +"
            )
        lines.append(f"  output {target.layout}")
    size = in_bytes(prod(target.shape) * walk.dtypes()[-1].itemsize)
    lines.append(f"{request.target}: {target.shape} {walk.dtypes()[-1]}, {size}")
    return _Job(walk, run, target, fft.axes, "\n".join(lines) + "\n")


def _forward(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, real: bool, part: Progress | None
) -> FFT:
    """The transform of the file."""
    from ..fft.arguments import normal_axes
    from ..fft.kernels.kernel import complex_dtype, real_dtype
    from ..fft.request import as_request

    kind = real_dtype(dtype) if real else complex_dtype(dtype)
    layout, grid = request.layout, request.grid
    if layout is None and request.algorithm == "auto" and all(shape):
        wanted = as_request(shape, normal_axes(request.axes, len(shape)), "rfft" if real else "fft", kind)
        begins = _begins(request, shape, wanted, comm)
        layout, grid = str(begins.layout), begins.grid.shape
    return _bound(request, comm, shape, layout, grid, kind, request.algorithm, part)


def _begins(request: Request, shape: tuple[int, ...], wanted: TransformRequest, comm: Comm) -> Distribution:
    """Where the transform of a file begins: of the cheapest ones in one that reads blocks, if there is any."""
    from ..fft.arguments import as_arguments
    from ..fft.families.choose import best
    from ..fft.families.resolve import choices_for, walk_for
    from ..runtime.calibrate import known_machine

    arguments = as_arguments(shape, wanted, comm.size, request.layout, request.grid, None)
    if request.layout is not None or request.algorithm != "auto":
        return walk_for(arguments, request.algorithm).source
    choices = choices_for(arguments, known_machine(comm))
    blocks = [choice for choice in choices if choice.walk is not None and _is_in_blocks(choice.source)]
    return best(blocks or choices).source


def _is_in_blocks(dist: Distribution) -> bool:
    return all(entry.kind.name == "block" for mode in dist.layout.modes for entry in mode)


def _backward(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], comm: Comm, real: bool, part: Progress | None
) -> FFT:
    """The transform that the file is the spectrum of."""
    from ..fft.arguments import normal_axes
    from ..fft.families.choose import best, choices
    from ..fft.kernels.kernel import complex_dtype, real_dtype
    from ..fft.request import as_request

    axes, kind = normal_axes(request.axes, len(shape)), complex_dtype(dtype)
    begins = _begins(request, shape, as_request(shape, axes, "fft", kind), comm)
    check_grid(begins.grid, comm)
    extents = _restored(request, shape, axes) if real else None
    candidates = choices(begins, as_request(shape, axes, "irfft" if real else "ifft", kind, extents))
    walk = best(candidates)
    name = next(choice.name for choice in candidates if choice.walk == walk)
    result, grid = walk.target.shape, walk.target.grid.shape
    dtype = real_dtype(kind) if real else kind
    if name in ("cyclic", "volumetric"):  # whose way there is of the same family; it ends where the file is read
        ends = str(begins.layout)
        return _bound(request, comm, result, str(walk.target.layout), grid, dtype, name, part, ends)
    return _bound(request, comm, result, None, grid, dtype, str(walk.inverse()), part)


def _bound(
    request: Request,
    comm: Comm,
    shape: tuple[int, ...],
    layout: str | None,
    grid: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    algorithm: str,
    part: Progress | None,
    output: str | None = None,
) -> FFT:
    """A transform, tuned as it is asked for."""
    from ..fft.plan import FFT

    tuning: dict[str, Any] = {"tune": request.tune, "threads": request.threads or 1, "progress": part}
    return FFT(shape, layout, grid, comm, dtype, request.axes, algorithm, request.norm, output, **tuning)


def _restored(request: Request, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """The extents along the axes of the real array that a file holds half the spectrum of."""
    if not axes:
        raise LayoutError(f"a real transform needs at least one axis, and {shape} has none")
    points = shape[axes[-1]]
    if request.length is None or request.length // 2 + 1 != points:
        either = f"{2 * points - 2} or {2 * points - 1}" if points > 1 else "1"
        said = "" if request.length is None else f", not {request.length}"
        raise LayoutError(
            f"{points} points of half a spectrum come from an extent of {either}{said}; say which with --length"
        )
    return [*(shape[a] for a in axes[:-1]), request.length]


def _compare(request: Request, job: _Job, comm: Comm, watch: Watch) -> float:
    """The error of the file that was written, by rank 0."""
    error = 0.0
    with watch.phase("check"), collective_errors(comm):
        if comm.rank == 0:
            array = np.load(request.source).astype(job.dtype, copy=False)
            extents = [job.target.shape[a] for a in job.axes] if job.walk.kind == "irfft" else None
            expected = getattr(np.fft, f"{job.walk.kind}n")(array, extents, job.axes, request.norm)
            error = largest_error(np.load(request.target, mmap_mode="r"), expected)
    return float(comm.allgather_object(error)[0])
