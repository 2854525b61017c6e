"""`rote fft`: the transform of a `.npy` file into another, by all ranks at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..errors import RoteError
from ..host import installed
from ..runtime.comm.collective_errors import collective_errors, from_root
from ..runtime.comm.protocol import Comm
from .answers import Answer, give, json_option, say
from .check import largest_error, refuse_no_room, refuse_too_large, tolerance
from .failures import on_ranks
from .options import force_option, integers, refuse_target, threads_option
from .phases import Watch
from .prepare import FileTransform, Request, prepare

if TYPE_CHECKING:
    from ..layout.layout import Distribution
    from ..tensor import DistTensor

# rote.fft.algorithms, without loading it
ALGORITHMS = ("auto", "slab", "pencil", "rows", "volumetric", "cyclic", "ragged")

__all__ = ["Transformed", "fft", "refuse_wrong", "transform"]


@dataclass(frozen=True, slots=True)
class Transformed:
    """The outcome of a transform on this rank."""

    job: FileTransform
    result: DistTensor  # that was written, in its own layout
    seconds: dict[str, float]  # the most that any rank took, per phase
    error: float | None  # against numpy.fft, relative to the largest value; None if it was not requested

    def answer(self) -> Answer:
        """The answer for programs."""
        walk, limit = self.job.walk, tolerance(self.result.dtype)
        source, target = walk.source, self.result.distribution
        return {
            "transform": f"{walk.kind}n",
            "ranks": source.grid.size,
            "input": _end(source, walk.dtype),
            "output": _end(target, self.result.dtype),
            "axes": self.job.axes,
            "walk": [line.strip() for line in str(walk).splitlines()],
            "received_bytes": sum(plan.cost.bytes for plan in walk.moves),
            "seconds": self.seconds,
            "error": self.error,
            "tolerance": limit,
            "within": None if self.error is None else bool(self.error <= limit),
        }


def _end(dist: Distribution, dtype: np.dtype[Any]) -> Answer:
    return {"shape": dist.shape, "dtype": dtype.str[1:], "layout": str(dist.layout), "grid": dist.grid.shape}


@click.command()
@click.argument("source", metavar="IN.npy", type=click.Path())
@click.argument("target", metavar="OUT.npy", type=click.Path())
@click.option("--layout", metavar="LAYOUT", help="Layout of the input; default: blocks, the cheapest to transform.")
@click.option("--grid", metavar="2x2", callback=integers(), help="The process grid; default: balanced.")
@click.option(
    "--ranks", metavar="N", type=click.IntRange(min=1), help="Ranks in this process, if no mpiexec starts them."
)
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="auto", show_default=True)
@click.option("--inverse", is_flag=True, help="Do the inverse transform.")
@click.option("--real/--complex", default=None, help="Half a spectrum, or a whole one; default: as the input.")
@click.option(
    "--length", metavar="N", type=click.IntRange(min=1), help="The last extent that --inverse --real restores."
)
@click.option("--axes", metavar="0,2", callback=integers(signed=True), help="The transformed modes; default: all.")
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
    """Transform IN.npy into OUT.npy: every rank reads, transforms and writes its own part.

    Real input gives half a spectrum, as numpy.fft.rfftn, unless --complex asks for the whole one; complex
    input gives a spectrum as numpy.fft.fftn. --inverse is numpy.fft.ifftn or, with --real, irfftn.

    \b
    Examples:
      rote demo --size 16 --dir small
      rote fft small/volume.npy spectrum.npy
      rote fft small/volume.npy spectrum.npy --ranks 4 --check --force
      rote fft spectrum.npy again.npy --inverse --real --length 16
      rote fft small/volume.npy planes.npy --axes 0,1 --complex --json
      mpiexec -n 4 rote fft small/volume.npy spectrum.npy --force --layout "block[(0),(1),()]"
    """
    request = Request(**options)
    if request.length is not None and not (request.inverse and request.real):
        raise click.UsageError("--length goes with --inverse --real: half a spectrum does not say what it comes from")
    done = give(as_json, lambda: on_ranks(transform, ranks, 1, request, began), Transformed.answer)
    refuse_wrong(done, request.target)


def refuse_wrong(done: Transformed, path: str) -> None:
    """Refuse a result that the comparison with numpy.fft has found to be wrong."""
    limit = tolerance(done.result.dtype)
    if done.error is not None and not done.error <= limit:
        raise RoteError(f"{path} differs from what numpy.fft computes by {done.error:.1e}, more than {limit:.0e}")


def transform(comm: Comm, request: Request, began: float | None = None) -> Transformed:
    """Do a request on every rank of a communicator; rank 0 prints the plan and the times, from `began` on."""
    watch = Watch(comm, began)
    with watch.phase("start"):
        from ..fft.kernels.kernel import library
        from ..io.formats import format_of
        from ..io.npy import read_header
        from ..io.stored import check_dtype
        from ..tensor.files import save
        from ..tensor.loading import load

        if installed("pyfftw"):
            library()  # loads FFTW
    with watch.phase("plan") as part:
        header = read_header(request.source, comm)
        with collective_errors(comm):
            if comm.rank == 0:
                refuse_target(request.target, request.force, request.source)
            form = format_of(request.target)
            if request.check and form.name != "NumPy":
                raise RoteError(f"--check reads a .npy file again, not {request.target}\nwrite OUT.npy")
        job = prepare(request, header.shape, header.dtype, comm, part)
        with collective_errors(comm):
            check_dtype(job.result, request.target, form.most)
            if comm.rank == 0:
                refuse_no_room(request.target, prod(job.target.shape) * job.result.itemsize, form.name == "Zarr")
            if comm.rank == 0 and request.check:
                refuse_too_large(header.shape, job.walk.dtype, job.target.shape, job.result)
    say(comm, job.text)
    with watch.phase("read") as part:
        x = load(request.source, job.walk.source.layout, comm=comm, grid=job.walk.source.grid, progress=part)
        if x.dtype != job.walk.dtype:
            x = x.astype(job.walk.dtype)
    with watch.phase("transform"):
        result = job.run(x)
    if job.target.layout != result.layout:
        with watch.phase("output"):
            result = result.redistribute(job.target.layout)
    with watch.phase("write") as part:
        save(request.target, result, progress=part)
    error = _compare(request, job, comm, watch) if request.check else None
    seconds = watch.report()
    if error is not None:
        limit = tolerance(job.result)
        verdict = "below" if error <= limit else "NOT below"
        named = f"numpy.fft.{job.walk.kind}n"
        say(comm, f"error      {error:.1e} of the largest value of {named}, {verdict} {limit:.0e}")
    return Transformed(job, result, seconds, error)


def _compare(request: Request, job: FileTransform, comm: Comm, watch: Watch) -> float:
    """The error of the file that was written, computed by rank 0."""

    def error() -> float:
        array = np.load(request.source).astype(job.walk.dtype, copy=False)
        extents = [job.target.shape[a] for a in job.axes] if job.walk.kind == "irfft" else None
        expected = getattr(np.fft, f"{job.walk.kind}n")(array, extents, job.axes, request.norm)
        return largest_error(np.load(request.target, mmap_mode="r"), expected)

    with watch.phase("check"):
        return from_root(comm, error)
