"""`rote bench`: Rote against similar libraries, on this machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..compiler.plan import on_machine
from ..errors import LayoutError, RoteError, counted
from ..machines.machine import Machine, as_machine
from ..plot.figures import new_figure
from ..runtime.comm.agreement import collective_errors, from_root
from ..runtime.comm.protocol import Comm
from ..runtime.exchange.registry import methods
from .options import TRANSFORMED, Integers, PictureFile, force_option, known, machine_option, refuse_target
from .output import Answer, give, on_ranks, say
from .transform import ALGORITHMS

if TYPE_CHECKING:
    from ..bench.cases import Case, Timing, Work

_TRANSFORM = ("rote", "threads", "mpi4py-fft", "dtfft", "fftw-mpi", "pfft", "pyfftw", "scipy", "ducc0", "mkl_fft")
_MOVE = ("rote", "threads", "mpi4py-fft", "alltoallw", "memcpy")
_ALL = tuple(dict.fromkeys(_TRANSFORM + _MOVE))
_PRINTED = "-"  # as the FILE of --json, it is the standard output
_SHAPES = ((64, 64, 64), (128, 128, 128))

__all__ = ["bench"]


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of `rote bench`."""

    shape: tuple[tuple[int, ...], ...]
    dtype: tuple[str, ...]
    real: bool
    ranks: int | None
    algorithm: tuple[str, ...]
    method: tuple[str, ...]
    restore: bool
    only: tuple[str, ...]
    moves: bool
    scaling: str | None
    machine: str | None
    rounds: int
    json: str | None
    png: str | None
    force: bool

    @property
    def files(self) -> list[str]:
        """The files that are written."""
        return [path for path in (self.json, self.png) if path is not None and path != _PRINTED]


@click.command()
@click.option("--shape", metavar="128x128x128", multiple=True, type=Integers(), help="The shape; may be repeated.")
@click.option("--dtype", multiple=True, type=click.Choice(TRANSFORMED), help="May be repeated; default c16 and f8.")
@click.option("--real", is_flag=True, help="Transform real arrays in the precision of --dtype.")
@click.option("--ranks", metavar="N", type=click.IntRange(min=1), help="Ranks in this process; default: all cores.")
@click.option(
    "--algorithm", multiple=True, type=click.Choice(ALGORITHMS), help="May be repeated; default slab, pencil, auto."
)
@click.option(
    "--method",
    metavar="NAME",
    shell_complete=known(lambda: methods),
    multiple=True,
    help="A name in rote.methods; may be repeated; default auto.",
)
@click.option("--restore", is_flag=True, help="Rote's spectra return to the layout of the input.")
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    type=click.Choice(_ALL),
    help=f"Time only this contestant; may be repeated: {', '.join(_ALL)}.",
)
@click.option("--moves", is_flag=True, help="Time redistribution alone: from slabs of mode 0 to slabs of mode 1.")
@click.option("--scaling", type=click.Choice(("strong", "weak")), help="Run on 1, 2, 4, ... ranks; weak: mode 0 grows.")
@machine_option
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--json",
    metavar="[FILE]",
    type=click.Path(),
    is_flag=False,
    flag_value=_PRINTED,
    help="Write all results into FILE; without FILE, print JSON, and nothing else.",
)
@click.option("--plot", "--png", "png", metavar="FILE.png", type=PictureFile(), help="Draw a picture.")
@force_option
def bench(**options: Any) -> None:
    """Time Rote and similar libraries in turn, round after round, and print the medians.

    A time is that of a transform forward and backward, on the slowest rank. The column `/ rote` divides a median by
    Rote's, of the same algorithm or its fastest one: above 1, Rote is faster. Every result is checked. Without options
    it takes a minute, on threads; under mpiexec it runs on MPI ranks, and with mpi4py-fft. With --machine, Rote's times
    are also divided by those predicted for the machine.

    \b
    Examples:
      rote bench --shape 32x32x32 --dtype c16 --ranks 2 --only rote --only scipy
      rote bench --moves --shape 64x64 --ranks 2 --json
      rote bench --scaling strong --shape 24x24x24 --ranks 2 --only rote --plot scaling.png
      mpiexec -n 4 rote bench --shape 32x32x32 --algorithm pencil --rounds 3
    """
    request = _Request(**options)

    chosen = _MOVE if request.moves else _TRANSFORM
    wrong = [name for name in request.only if name not in chosen]
    if wrong:
        raise click.UsageError(f"--only {wrong[0]} takes no part here; choose from {', '.join(chosen)}")

    if request.moves and (request.algorithm or request.restore):
        raise click.UsageError("--algorithm and --restore are about transforms; leave them out, or --moves")
    if request.json is not None and request.json == request.png:
        raise click.UsageError("--json and --plot name the same file; give each one of its own")

    give(request.json == _PRINTED, lambda: on_ranks(_bench, None, 1, request))


def _bench(comm: Comm, request: _Request) -> Answer:
    """Time all cases of each shape and dtype, and print the results; on every rank."""
    from ..bench import report
    from ..bench.cases import cores_of_all, oversubscribed, run_cases
    from ..bench.machine import machine
    from ..runtime.exchange.registry import check_method

    for name in request.method:
        check_method(name)

    mpi, usable = comm.size > 1, len(cores_of_all(comm))
    if mpi and request.ranks is not None:
        raise click.UsageError(f"--ranks is for threads, but mpiexec has started {comm.size} ranks; leave --ranks out")

    most = comm.size if mpi else request.ranks or usable
    if request.machine is not None and request.scaling is not None:
        raise click.UsageError("--machine is not for --scaling; leave one of them out")

    times = from_root(comm, lambda: None if request.machine is None else as_machine(request.machine))
    families = _families(request, most)

    # What cannot be drawn or written is refused before minutes of timing.
    with collective_errors(comm):
        if request.png is not None:
            new_figure(1, 1)  # refuses to draw without Matplotlib
        if comm.rank == 0:
            for path in request.files:
                refuse_target(path, request.force)

    about = machine(comm, usable)
    head, crowded = _head(request, most, mpi, about), oversubscribed(comm, most, usable)
    say(comm, head, *filter(None, [crowded, f"predicted {on_machine(times)}" if times else ""]))

    done: list[list[Timing]] = []
    for family in families:
        cases = [*chain(*(_cases(request, work, usable, mpi, times) for work in family))]
        results = run_cases(comm, cases, request.rounds)
        done.append(results)

        if not any(line.seconds for line in results):
            continue
        if request.scaling:
            say(comm, "", report.scaling(results, request.scaling == "weak"))
        else:
            say(comm, "", report.times(results))

    lines = [*chain(*done)]
    if len(families) > 1 and not request.scaling:  # of one work, the table above says it all
        say(comm, "", report.summary(lines))

    built = report.libraries(lines)
    if built:
        say(comm, "", f"the libraries of these figures:\n{built}")

    absent = report.missing(lines)
    if absent:
        say(comm, "", *absent)

    if not any(line.seconds for line in lines):
        raise RoteError("no contestant could run, and no file is written\nname others with --only, or none")

    about["machine"] = None if times is None else times.name
    answer = report.as_json(lines, {**about, "ranks": most, "rounds": request.rounds, "oversubscribed": bool(crowded)})
    with collective_errors(comm):
        if comm.rank == 0:
            _leave(request, answer, done, head)
    return answer


def _leave(request: _Request, answer: Answer, done: list[list[Timing]], head: str) -> None:
    from ..bench.report import figure

    if request.json in request.files:
        with open(request.json, "w", encoding="utf-8") as file:
            json.dump(answer, file, indent=1)
    if request.png is not None:
        figure(done, head, request.scaling is not None).savefig(request.png, dpi=130)
    for path in request.files:
        click.echo(f"wrote {path}")


def _families(request: _Request, most: int) -> list[list[Work]]:
    """The works: one for each shape and dtype, or one of these for each number of ranks."""
    from ..bench.cases import Work
    from ..fft.transforms import real_dtype

    for shape in request.shape:
        if len(shape) < 2 or 0 in shape:
            raise LayoutError(f"--shape is of two extents or more, and none is 0; not {'x'.join(map(str, shape))}")

    dtypes = request.dtype or (("c16",) if request.real or request.moves else ("c16", "f8"))
    kinds = dict.fromkeys([real_dtype(name) if request.real else np.dtype(name) for name in dtypes])

    ranks = [most]
    if request.scaling:
        ranks = [*(1 << k for k in range(most.bit_length()) if 1 << k < most), most]

    families = []
    for first, *rest in request.shape or _SHAPES:
        extents = [first * p if request.scaling == "weak" else first for p in ranks]
        for dtype in kinds:
            families.append([Work((n, *rest), dtype, p, request.moves) for n, p in zip(extents, ranks, strict=True)])
    return families


def _cases(request: _Request, work: Work, usable: int, mpi: bool, machine: Machine | None) -> list[Case]:
    from ..bench.libraries import with_mpi, with_programs, with_rote, within_one_process

    algorithms = request.algorithm or ("slab", *["pencil"] * (len(work.shape) > 2), "auto")

    cases = with_rote(work, algorithms, request.method or ("auto",), request.restore, mpi, machine)
    cases += with_mpi(work, algorithms, mpi)

    if not work.move:
        cases += with_programs(work)
        cases += within_one_process(work, usable, request.scaling is None)

    return [case for case in cases if not request.only or case.group in request.only]


def _head(request: _Request, most: int, mpi: bool, about: dict[str, Any]) -> str:
    what = "slab swaps" if request.moves else "transforms forward and backward"
    on = counted(most, "MPI rank" if mpi else "thread")
    versions = about["versions"]
    return (
        f"{what} on {on}, medians of {counted(request.rounds, 'round')}\n"
        f"rote {versions['rote']}, {versions.get('mpi', 'no MPI')}, {about['processor']}, {about['cores']} cores"
    )
