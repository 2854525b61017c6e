"""`rote tune`: measures this machine and its fastest FFT, and keeps both for later runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from math import prod, sqrt
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np
import numpy.typing as npt

from ..errors import counted
from ..host import cores
from ..layout.distribution import Distribution, distribute
from ..layout.expressions import block, cyclic
from ..layout.layout import Entry, Layout
from ..runtime.choose import mpi_library
from ..runtime.comm.agreement import from_root
from ..runtime.comm.protocol import Comm
from ..units import in_bytes, in_seconds, table
from ..wisdom import folder
from .options import TRANSFORMED, Integers, known, of_ffts, ranks_option, refuse_too_many, threads_option
from .output import Answer, give, json_option, on_ranks, progress, say
from .wisdom import where, wisdom

if TYPE_CHECKING:
    from ..compiler.plan import Plan
    from ..machines.machine import Machine

__all__ = ["moves", "moving_calls", "spearman", "transform", "tune"]

_ABOUT = {
    "latency": "of a message",
    "byte_time": "to receive a byte",
    "copy_time": "to pack or unpack a byte",
    "reduce_time": "to reduce a byte into another",
    "step_time": "of a step before its first message",
    "flop_time": "of an operation in a product of matrices",
    "fft_time": "to transform a byte, for each doubling of the points",
    "cache": "of a rank's cache",
    "cache_factor": "how many times as fast as memory it is",
    "page_factor": "how many times as long memory takes if each point of a line is on a page of its own",
    "rough_factor": "how many times as long a line takes whose points have a prime factor above 13",
}
_MOVED = ("--show", "--forget", "--export", "--import")
_BUSY = (
    "not kept: the machine is busy, since some calls took {:.0f} times as long as the fastest of their kind\n"
    "end other work, start no more ranks than cores, and tune again; --force keeps these times"
)
_WORSE = "not kept: the machine that is kept predicts these moves better\nend other work, and tune again"


class _Tune(click.Command):
    """The command; what its old options did is now `rote wisdom`, which they call for one more release."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """The command's own options; after one that moved, the command line goes to the command that took its place."""
        for place, word in enumerate(args):
            option, _, text = word.partition("=")
            if option in _MOVED and not context.resilient_parsing:
                name = option.removeprefix("--")
                others = [*args[:place], *([text] if text else []), *args[place + 1 :]]
                context.meta["moved"] = f"{context.command_path} {option}"
                context.exit(wisdom.main([name, *others], "wisdom", standalone_mode=False, parent=context.parent) or 0)
        return super().parse_args(context, args)


@click.command(cls=_Tune)
@ranks_option("; default: one per core, at most 8")
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(0, 86_400, min_open=True),
    help="The most seconds for measuring, and again for the check; default 2.",
)
@click.option("--check", is_flag=True, help="Run 60 moves, and compare the order of predicted and measured times.")
@click.option("--shape", metavar="8x9x10", type=Integers(), help="Time FFTs of a tensor of this shape instead.")
@click.option("--layout", metavar="LAYOUT", help="With --shape: layout of the input; default: any.")
@click.option(
    "--dtype",
    metavar="DTYPE",
    shell_complete=known(lambda: TRANSFORMED),
    help="With --shape: dtype of the input, as in NumPy; default c16.",
)
@click.option("--patient", is_flag=True, help="With --shape: time more FFTs, for longer.")
@threads_option
@click.option("--force", is_flag=True, help="Keep what a busy machine took; not with --shape.")
@json_option
def tune(ranks: int | None, seconds: float | None, check: bool, force: bool, as_json: bool, **fft: Any) -> None:
    """Measure the times of messages, copies, steps and products of ranks, and keep them in the user's cache folder.
    Times whose spread shows that other work ran on the machine are not kept.

    With --shape, time the FFTs that may be fastest, for FFT(..., tune="measure") and rote fft --effort measure.
    rote wisdom lists what is kept. The environment variable ROTE_WISDOM names another folder; if it is empty, nothing
    is kept.

    \b
    Examples:
      rote tune --ranks 2 --seconds 0.5 --check
      mpiexec -n 4 rote tune
      mpiexec -n 4 rote tune --shape 32x32x32 --patient
    """
    of_machine = ["--seconds"] * (seconds is not None) + ["--check"] * check + ["--force"] * force
    of_fft = [f"--{name}" for name, value in fft.items() if value not in (None, False)]
    if of_machine and of_fft:
        raise click.UsageError(f"{' and '.join([*of_machine, *of_fft])} do not go together; give one of them")
    if of_fft and "--shape" not in of_fft:
        raise click.UsageError(f"{of_fft[0]} is of an FFT; say of which tensor with --shape")

    measure = partial(_time, **fft) if of_fft else partial(_measure, seconds=seconds or 2.0, check=check, force=force)
    give(as_json, lambda: on_ranks(measure, ranks, min(len(cores()), 8)))


# --- measurements ----------------------------------------------------------------------------------------------------


def _measure(comm: Comm, seconds: float, check: bool, force: bool) -> Answer:
    from ..machines.machine import DEFAULT
    from ..runtime.choose import medians
    from ..runtime.tuning import BUSY, keep_machine, measure, recalled_machine

    if check and comm.size == 1:
        raise click.UsageError("one rank has no other rank to send to; write --ranks 2 or more")
    say(comm, _ranks_in_words(comm))

    with progress(comm, "measure") as part:
        machine, spread = measure(comm, seconds, part, transform)

    ours, usual = machine.as_dict(), DEFAULT.as_dict()
    rows = [("", "measured", "default", "")]
    rows += [(name, _shown(machine, name), _shown(DEFAULT, name), about) for name, about in _ABOUT.items()]
    say(comm, "\n".join(table(rows, {1, 2})))

    ranking, worse = None, False
    if check:
        plans = from_root(comm, partial(moves, comm.size))
        with progress(comm, "check") as part:
            times = medians(comm, moving_calls(plans, comm), seconds, part)

        before = recalled_machine(comm)
        machines = {"default": DEFAULT} | ({"kept": before} if before else {}) | {"measured": machine}
        ranking = _ranking(plans, times, machines)

        errors = {row["machine"]: row["factor"] for row in ranking["machines"]}
        worse = from_root(comm, lambda: errors["measured"] > errors.get("kept", errors["measured"]))

    # Times taken while other work ran would mislead all later plans.
    busy = spread >= BUSY and not force
    kept = not busy and not worse and keep_machine(comm, machine)
    say(comm, _BUSY.format(spread) if busy else _WORSE if worse else _kept(kept))
    if ranking:
        say(comm, _ranking_table(ranking))

    return {**_about(comm, kept), "spread": spread, "measured": ours, "default": usual, "check": ranking}


def _shown(machine: Machine, name: str) -> str:
    """A number of a machine, in its unit."""
    number = getattr(machine, name)
    if "factor" in name:
        return f"{number:.2f}"
    return in_bytes(int(number)) if name == "cache" else in_seconds(number, 3)


def transform(shape: tuple[int, ...], axes: tuple[int, ...]) -> Callable[[], object]:
    """A call that transforms a block of this rank along some axes, with the usual library of FFTs."""
    from ..fft.kernels.backends import usual_library
    from ..fft.kernels.backends.library import KernelConfig
    from ..fft.kernels.choose import Position, kernel_call
    from ..fft.kernels.kernel import Kernel
    from ..runtime.comm.segments import at_line

    dtype = np.dtype(np.complex128)
    kernel = Kernel("fft", axes, shape, shape, dtype, KernelConfig(usual_library("fft", dtype)))

    scratch = at_line(kernel.nbytes), at_line(kernel.nbytes)
    for memory in scratch:
        memory[...] = 0

    return kernel_call(kernel, Position(), scratch)


def _time(
    comm: Comm, shape: tuple[int, ...], layout: str | None, dtype: str | None, patient: bool, threads: int | None
) -> Answer:
    from ..fft.plan import FFT

    threads = threads or 1
    refuse_too_many(comm, threads)
    say(comm, _ranks_in_words(comm))

    tune: Literal["measure", "patient"] = "patient" if patient else "measure"
    element = of_ffts(dtype or "c16")
    with progress(comm, tune) as part:
        f = FFT(shape, layout, comm=comm, dtype=element, tune=tune, threads=threads, progress=part)

    # An FFT does not tell whether its times were written, so "kept" means that the folder can be written to.
    place = folder()
    kept = bool(f.tried) and place is not None and place.is_dir() and os.access(place, os.W_OK)

    outcome = _kept(kept) if f.tried else "not timed, for there is no other walk"
    say(comm, f"{f}\n{outcome}")
    walk = [line.strip() for line in str(f.walk).splitlines()]
    return {**_about(comm, kept), "walk": walk, "tried": [*map(asdict, f.tried)]}


def _ranks_in_words(comm: Comm) -> str:
    mpi = mpi_library(comm)
    how = f"through {mpi}" if mpi else "in this process"
    return f"{counted(comm.size, 'rank')} {how}"


def _about(comm: Comm, kept: bool) -> Answer:
    """The ranks and the folder of a measurement, and whether it is kept."""
    place = folder()
    return {"ranks": comm.size, "mpi": mpi_library(comm) or None, "folder": place and str(place), "kept": kept}


def _kept(kept: bool) -> str:
    return f"kept{where()}" if kept or not folder() else f"not kept: {folder()} cannot be written to"


# --- the check: a fixed set of moves, ranked by the model's times and by measured times ------------------------------

_SHAPES = ((128, 96), (40, 30, 24), (24, 20, 18, 16), (1000, 250), (96, 80, 64), (1500, 1200), (128, 125, 124))
_SPLITS = (block, block, cyclic, partial(cyclic, b=4))
_MOVES = 60


def moves(ranks: int) -> list[Plan]:
    """Plans of a fixed set of moves: between layouts of all kinds, on all grids of order 1 and 2 of some ranks.

    Raises:
        ValueError: there are fewer than two ranks, between which nothing moves.

    >>> moves(2)[0].steps[0].kind, len(set(moves(2)))
    ('alltoall', 60)
    """
    from ..compiler.compile import compile

    if ranks < 2:
        raise ValueError(f"moves are between two ranks or more, not {ranks}")

    draw = Random(1)  # the same moves on every machine, so that their checks can be compared
    grids = [(ranks,), *((p, ranks // p) for p in range(2, ranks) if ranks % p == 0)]

    plans: dict[Plan, None] = {}
    while len(plans) < _MOVES:
        shape, grid = _SHAPES[len(plans) % len(_SHAPES)], draw.choice(grids)

        source = distribute(_layout(draw, len(shape), len(grid), True), shape, grid)
        target = distribute(_layout(draw, len(shape), len(grid), False), shape, grid)

        plan = compile(source, target, draw.choice(("f8", "c16")))
        if plan.steps:
            plans[plan] = None
    return [*plans]


def _layout(draw: Random, order: int, grid_order: int, first: bool) -> Layout:
    """A layout that splits over most grid modes; one to begin with may be partial."""
    modes: list[tuple[Entry, ...]] = [()] * order
    partials, rooted = list[int](), list[tuple[int, int]]()

    for g in range(grid_order):
        role = draw.random()
        if role < 0.75:
            modes[draw.randrange(order)] += (draw.choice(_SPLITS)(g),)
        elif role < 0.85 and first:
            partials.append(g)
        elif role < 0.9:
            rooted.append((g, 0))

    return Layout(tuple(modes), None, "sum", tuple(partials), tuple(rooted))


def moving_calls(plans: list[Plan], comm: Comm) -> list[Callable[[], object]]:
    """The moves of this rank, all between the same two pieces of memory, as tensors have it."""
    from ..runtime.comm.segments import empty
    from ..runtime.plans import BoundPlan

    def nbytes(plan: Plan, end: Distribution) -> int:
        return prod(end.local_shape(comm.rank)) * plan.dtype.itemsize

    programs = [BoundPlan(plan, comm) for plan in plans]  # before the memory, which others then can read

    # Memory that each call touched for the first time would be timed as well.
    most = max(nbytes(plan, end) for plan in plans for end in (plan.source, plan.target))
    memory = [empty((most,), np.dtype(np.uint8)) for _ in range(2)]
    for buffer in memory:
        buffer[...] = 0

    calls: list[Callable[[], object]] = []
    for plan, program in zip(plans, programs, strict=True):
        blocks = []
        for buffer, end in zip(memory, (plan.source, plan.target), strict=True):
            block = buffer[: nbytes(plan, end)].view(plan.dtype)
            blocks.append(block.reshape(end.local_shape(comm.rank)))
        calls.append(partial(program, *blocks))

    return calls


def _ranking(plans: list[Plan], times: list[float], machines: dict[str, Machine]) -> Answer:
    """How well the model's times for some machines rank the moves as measured times do, as values."""
    from ..compiler.cost import steps_cost

    sizes = sorted(prod(plan.source.shape) for plan in plans)

    rows = []
    for name, machine in machines.items():
        predicted = [steps_cost(p.source, p.target, p.steps, p.dtype.itemsize, machine).seconds for p in plans]

        ratios = np.array(times) / np.array(predicted)
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9)).tolist()

        # Twice as long and half as long are the same error, 2.
        errors = np.exp(np.abs(np.log(ratios)))
        figures = {"low": low, "median": middle, "high": high, "factor": float(np.median(errors))}
        within = float(np.mean(errors <= 2))
        rows.append({"machine": name, "rho": spearman(predicted, times), **figures, "within": within})
    return {"moves": len(plans), "elements": [sizes[0], sizes[-1]], "machines": rows}


def _ranking_table(check: Answer) -> str:
    """The table of the findings of `_ranking`."""
    rows = [("", "Spearman's rho", "median error", "within 2", "measured / predicted")]
    for row in check["machines"]:
        span = f"{row['median']:.2f} (most {row['low']:.2f} to {row['high']:.2f})"
        figures = f"{row['rho']:.3f}", f"{row['factor']:.2f} times", f"{100 * row['within']:.0f} %"
        rows.append((row["machine"], *figures, span))

    least, most = check["elements"]
    return "\n".join([f"{check['moves']} moves of {least} to {most} elements", *table(rows, {1, 2, 3})])


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's rank correlation of two rows of numbers; equal ones share their ranks. 0 if all of a row are equal.

    >>> spearman([1, 2, 3], [10, 20, 15]), spearman([1, 1, 2], [1, 1, 5])
    (0.5, 1.0)
    """
    ranks = []
    for row in (first, second):
        _, place, often = np.unique(np.asarray(row), return_inverse=True, return_counts=True)
        rank = np.cumsum(often)[place] - (often[place] - 1) / 2
        ranks.append(rank - rank.mean())

    a, b = ranks
    size = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else 0.0
