"""`rote tune`: what this machine takes, measured and kept for the cost model; and what else is kept as wisdom."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import prod, sqrt
from random import Random
from typing import TYPE_CHECKING

import click
import numpy as np
import numpy.typing as npt

from .. import wisdom
from ..compiler.explain import table
from ..errors import counted
from ..grammar.nodes import Kind
from ..layout.distribution import distribute
from ..layout.layout import Entry, Layout
from ..runtime.comm import Array, Comm
from .ending import on_rank_0, on_ranks, on_terminal

if TYPE_CHECKING:
    from ..compiler.machine import Machine
    from ..compiler.plan import Plan

__all__ = ["moves", "spearman", "tune"]

_ABOUT = {
    "latency": "of a message",
    "byte_time": "to receive a byte",
    "copy_time": "to pack or unpack a byte",
    "reduce_time": "to reduce a byte into another",
    "step_time": "of a step before its first message",
}
_SHAPES = ((128, 96), (40, 30, 24), (24, 20, 18, 16), (1000, 250), (96, 80, 64), (1500, 1200), (128, 125, 124))
_KINDS = (Kind("block"), Kind("block"), Kind("cyclic", (1,)), Kind("cyclic", (4,)))
_MOVES = 60

_compiling = threading.Lock()  # the first of in-process ranks compiles for all


@click.command(short_help="Measure this machine for the cost model, and keep it.")
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ranks inside this process, where no mpiexec starts them; as many as cores, if not given, but 8 at most.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="The most that measuring takes, and the check again.",
)
@click.option("--check", is_flag=True, help="Run 60 moves, and say how well predicted and measured times rank.")
@click.option("--show", is_flag=True, help="List what is kept.")
@click.option(
    "--forget", metavar="[TEXT]", is_flag=False, flag_value="", help="Forget what --show lists with TEXT in it, or all."
)
@click.option("--export", "target", metavar="FILE", help="Write what is kept into a file.")
@click.option("--import", "source", metavar="FILE", help="Keep what --export wrote.")
def tune(
    ranks: int | None,
    seconds: float,
    check: bool,
    show: bool,
    forget: str | None,
    target: str | None,
    source: str | None,
) -> None:
    """Measure what messages, copies and steps take between ranks, and keep it in this user's cache folder.

    \b
        rote tune --ranks 4 --check
        mpiexec -n 4 rote tune
        rote tune --show

    The environment variable ROTE_WISDOM names another folder; empty, nothing is kept.
    """
    asked = {
        "--show": _show if show else None,
        "--forget": None if forget is None else lambda: f"forgot {_files(wisdom.forget(forget or None))}{_where()}",
        "--export": None if target is None else lambda: f"left {target}, with {_files(wisdom.export(target))}",
        "--import": None if source is None else lambda: f"kept {_files(wisdom.include(source))}{_where()}",
    }
    chores = {name: chore for name, chore in asked.items() if chore is not None}
    measuring = [name for name, given in (("--ranks", ranks is not None), ("--check", check)) if given]
    if len(chores) > 1 or (chores and measuring):
        raise click.UsageError(f"{' and '.join([*chores, *measuring])} do not go together; give one of them")
    for chore in chores.values():
        on_rank_0(partial(_tell, chore))
    if not chores:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        on_ranks(_program, ranks, min(cores, 8), seconds, check)


def _tell(chore: Callable[[], str]) -> int:
    """Print what a chore answers, and what it warns of; status 0."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        text = chore()
    for each in warned:
        click.echo(f"Warning: {each.message}", err=True)
    click.echo(text)
    return 0


def _show() -> str:
    known = wisdom.entries()
    return "\n".join([f"{_files(len(known))}{_where()}", *map(str, known)])


def _files(number: int) -> str:
    return counted(number, "decision")


def _where() -> str:
    place = wisdom.folder()
    return f" in {place}" if place else " nowhere: ROTE_WISDOM is empty"


def _program(comm: Comm, seconds: float, check: bool) -> None:
    """Measure, print, keep and check, on every rank."""
    from ..compiler.machine import DEFAULT
    from ..runtime.measure import keep_machine, measure, medians, mpi_library

    def say(text: str) -> None:
        if comm.rank == 0:
            click.echo(text)

    if check and comm.size == 1:
        raise click.UsageError("one rank has nobody to move anything to; write --ranks 2 or more")
    say(f"{counted(comm.size, 'rank')} {'through ' * bool(mpi_library(comm))}{mpi_library(comm) or 'in this process'}")
    with _progress(comm, "measure") as progress:
        machine = measure(comm, seconds, progress)
    ours, usual = machine.as_dict(), DEFAULT.as_dict()
    rows = [("", "measured", "default", "")]
    rows += [(name, _short(ours[name]), _short(usual[name]), about) for name, about in _ABOUT.items()]
    say("\n".join(table(rows, {1, 2})))
    kept = keep_machine(comm, machine)
    say(f"kept{_where()}" if kept or not wisdom.folder() else f"not kept: {wisdom.folder()} cannot be written to")
    if check:
        with _compiling:
            plans = moves(comm.size)
        with _progress(comm, "check") as progress:
            times = medians(comm, _calls(plans, comm), seconds, progress)
        say(_ranked(plans, times, {"default": DEFAULT, "measured": machine}))


def _short(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> _short(1.5e-10), _short(2e-6), _short(0.5)
    ('150 ps', '2 us', '500 ms')
    """
    unit, scale = next(
        ((u, s) for u, s in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)) if seconds * s >= 1), ("ps", 1e12)
    )
    return f"{float(f'{seconds * scale:.3g}'):g} {unit}"


@contextmanager
def _progress(comm: Comm, name: str) -> Iterator[Callable[[float], None] | None]:
    """What shows on a terminal, from rank 0, the part that is done."""
    if comm.rank or not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(), transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda part: bar.update(task, completed=part)


def moves(ranks: int) -> list[Plan]:
    """Plans of a fixed set of moves: between layouts of all kinds, on all grids of order 1 and 2 of some ranks (not 1).

    >>> moves(2)[0].steps[0].kind, len(set(moves(2)))
    ('alltoall', 60)
    """
    from ..compiler.compile import compile

    draw = Random(1)
    grids = [(ranks,), *((p, ranks // p) for p in range(2, ranks) if ranks % p == 0)]
    found: dict[Plan, None] = {}
    while len(found) < _MOVES:
        shape, grid = _SHAPES[len(found) % len(_SHAPES)], draw.choice(grids)
        source, target = (
            distribute(_layout(draw, len(shape), len(grid), first), shape, grid) for first in (True, False)
        )
        plan = compile(source, target, draw.choice(("f8", "c16")))
        if plan.steps:
            found[plan] = None
    return [*found]


def _layout(draw: Random, order: int, grid_order: int, first: bool) -> Layout:
    """A layout that splits over most grid modes; one to begin with may be partial."""
    modes: list[tuple[Entry, ...]] = [()] * order
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()
    for g in range(grid_order):
        role = draw.random()
        if role < 0.75:
            m = draw.randrange(order)
            modes[m] += (Entry(g, draw.choice(_KINDS)),)
        elif role < 0.85 and first:
            partial += (g,)
        elif role < 0.9:
            rooted += ((g, 0),)
    return Layout(tuple(modes), None, "sum", partial, rooted)


def _calls(plans: list[Plan], comm: Comm) -> list[Callable[[], object]]:
    """The moves of this rank, all between the same two pieces of memory."""
    from ..runtime.execute import Program

    shapes = [[end.local_shape(comm.rank) for end in (plan.source, plan.target)] for plan in plans]
    most = max(prod(shape) * plan.dtype.itemsize for plan, ends in zip(plans, shapes, strict=True) for shape in ends)
    memory: Array = np.ones((2, -(-most // 16) * 2))

    calls: list[Callable[[], object]] = []
    for plan, ends in zip(plans, shapes, strict=True):
        block, out = (
            part.view(plan.dtype)[: prod(shape)].reshape(shape) for part, shape in zip(memory, ends, strict=True)
        )
        calls.append(partial(Program(plan, comm), block, out))
    return calls


def _ranked(plans: list[Plan], times: list[float], machines: dict[str, Machine]) -> str:
    """How well the times that the model predicts for some machines rank as those that were measured."""
    from ..compiler.cost import steps_cost

    sizes = sorted(prod(plan.source.shape) for plan in plans)
    rows = [("", "Spearman's rho", "measured / predicted")]
    for name, machine in machines.items():
        told = [steps_cost(p.source, p.target, p.steps, p.dtype.itemsize, machine).seconds for p in plans]
        ratios = np.array(times) / np.array(told)
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        rows.append((name, f"{spearman(told, times):.3f}", f"{middle:.2f} (most {low:.2f} to {high:.2f})"))
    return "\n".join([f"{len(plans)} moves of {sizes[0]} to {sizes[-1]} elements", *table(rows, {1})])


def spearman(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Spearman's rank correlation of two rows of numbers; equal ones share their ranks. 0 if all of a row are equal.

    >>> spearman([1, 2, 3], [10, 20, 15]), spearman([1, 1, 2], [1, 1, 5])
    (0.5, 1.0)
    """
    ranks = []
    for row in (one, other):
        _, place, often = np.unique(np.asarray(row), return_inverse=True, return_counts=True)
        rank = np.cumsum(often)[place] - (often[place] - 1) / 2
        ranks.append(rank - rank.mean())
    a, b = ranks
    size = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else 0.0
