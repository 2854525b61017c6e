"""`rote tune`: measures this machine and its fastest FFT, keeps both for later runs, and lists all that is kept."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from .. import wisdom
from ..compiler.explain import in_seconds, table
from ..errors import counted
from ..launcher import cores
from ..runtime.comm.protocol import Comm
from ..runtime.tuning.autotune import mpi_library
from ..wisdom.record import as_json as as_tree
from ..wisdom.record import spelt
from .answers import Answer, give, json_option, print_answer, say
from .failures import on_rank_0, on_ranks
from .moves import calls, moves, ranked, ranks_of
from .options import TRANSFORMED, integers, of_ffts, refuse_target, refuse_too_many, threads_option
from .phases import progress

__all__ = ["tune"]

_ABOUT = {
    "latency": "of a message",
    "byte_time": "to receive a byte",
    "copy_time": "to pack or unpack a byte",
    "reduce_time": "to reduce a byte into another",
    "step_time": "of a step before its first message",
}
_LONGEST = 40  # characters of a text in a decision, such as FFTW's plans, that --show prints
_BUSY = (
    "not kept: the machine is busy, since some calls took {:.0f} times as long as the fastest of their kind\n"
    "end other work, start no more ranks than cores, and tune again; --force keeps these times"
)
_compiling = threading.Lock()  # the first of the in-process ranks compiles for all


@click.command()
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ranks in this process, if no mpiexec starts them; default: one per core, at most 8.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(0, 86_400, min_open=True),
    help="The most seconds for measuring, and again for the check; default 2.",
)
@click.option("--check", is_flag=True, help="Run 60 moves, and compare the order of predicted and measured times.")
@click.option("--shape", metavar="8x9x10", callback=integers(), help="Time FFTs of a tensor of this shape instead.")
@click.option("--layout", metavar="LAYOUT", help="With --shape: layout of the input; default: any.")
@click.option(
    "--dtype",
    metavar="DTYPE",
    type=TRANSFORMED,
    help="With --shape: dtype of the input, as in NumPy; default c16.",
)
@click.option("--patient", is_flag=True, help="With --shape: time more FFTs, for longer.")
@threads_option
@click.option("--show", is_flag=True, help="List the decisions that are kept.")
@click.option(
    "--forget",
    metavar="TEXT",
    is_flag=False,
    flag_value="",
    help="Forget the decisions whose line in --show contains TEXT.",
)
@click.option("--all", "everything", is_flag=True, help="With --forget and no TEXT: forget all decisions.")
@click.option("--export", "target", metavar="FILE", type=click.Path(), help="Write all decisions into a file.")
@click.option("--import", "source", metavar="FILE", type=click.Path(), help="Keep the decisions that --export wrote.")
@click.option("--force", is_flag=True, help="Overwrite the file of --export; keep what a busy machine took.")
@json_option
def tune(
    ranks: int | None,
    seconds: float | None,
    check: bool,
    show: bool,
    forget: str | None,
    everything: bool,
    target: str | None,
    source: str | None,
    force: bool,
    as_json: bool,
    **fft: Any,
) -> None:
    """Measure the times of messages, copies and steps between ranks, and keep them in the user's cache folder.
    Times whose spread shows that other work ran on the machine are not kept.

    With --shape, time the FFTs that may be fastest, for FFT(..., tune="measure") and rote fft --effort measure.
    The environment variable ROTE_WISDOM names another folder; if it is empty, nothing is kept.

    \b
    Examples:
      rote tune --ranks 2 --seconds 0.5 --check
      mpiexec -n 4 rote tune
      mpiexec -n 4 rote tune --shape 32x32x32 --patient
      rote tune --show --json
      rote tune --export wisdom.json
      rote tune --forget what=machine
      rote tune --import wisdom.json
    """
    chores: dict[str, Callable[[], tuple[str, Answer]]] = {}
    if show:
        chores["--show"] = _show
    if forget is not None:
        chores["--forget"] = partial(_forget, forget, everything)
    if target is not None:
        chores["--export"] = partial(_export, target, force)
    if source is not None:
        chores["--import"] = partial(_import, source)
    timed = [f"--{name}" for name, value in fft.items() if value not in (None, False)]
    measured = [name for name, given in (("--seconds", seconds is not None), ("--check", check)) if given]
    work = [*measured, *timed]
    if chores and ranks is not None:
        work.insert(0, "--ranks")
    if len(chores) > 1 or (chores and work) or (measured and timed):
        raise click.UsageError(f"{' and '.join([*chores, *work])} do not go together; give one of them")
    if timed and "--shape" not in timed:
        raise click.UsageError(f"{timed[0]} is of an FFT; say of which tensor with --shape")
    if everything and forget is None:
        raise click.UsageError("--all goes with --forget")
    if forget is not None and bool(forget) == everything:
        raise click.UsageError("say what to forget: --forget TEXT what has TEXT in its line, --forget --all everything")
    for chore in chores.values():
        on_rank_0(_tell, chore, as_json)
    ranks_here = min(len(cores()), 8)
    if timed:
        give(as_json, lambda: on_ranks(partial(_time, **fft), ranks, ranks_here), dict)
    elif not chores:
        give(as_json, lambda: on_ranks(_measure, ranks, ranks_here, seconds or 2.0, check, force), dict)


def _tell(chore: Callable[[], tuple[str, Answer]], as_json: bool) -> None:
    """Print the answer of a chore, and its warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        text, answer = chore()
    for each in warned:
        click.echo(f"Warning: {each.message}", err=True)
    if as_json:
        print_answer(answer)
    else:
        click.echo(text)


def _show() -> tuple[str, Answer]:
    known = wisdom.records()
    return "\n".join([f"{_files(len(known))}{_where()}", *map(_line, known)]), _listed(known)


def _forget(text: str, everything: bool) -> tuple[str, Answer]:
    gone = wisdom.forget(text, all=everything)
    return "\n".join([f"forgot {_files(len(gone))}{_where()}", *map(_line, gone)]), _listed(gone)


def _export(path: str, force: bool) -> tuple[str, Answer]:
    refuse_target(path, force)
    number = wisdom.export(path)
    return f"left {path}, with {_files(number)}", {"path": path, "decisions": number}


def _import(path: str) -> tuple[str, Answer]:
    number = wisdom.include(path)
    return f"kept {_files(number)}{_where()}", {"path": path, "decisions": number}


def _listed(records: Sequence[wisdom.Record | Path]) -> Answer:
    """Decisions with their keys; damaged files by their paths."""
    return {
        "folder": _folder(),
        "decisions": [as_tree(record) for record in records if isinstance(record, wisdom.Record)],
        "damaged": [str(path) for path in records if isinstance(path, Path)],
    }


def _folder() -> str | None:
    place = wisdom.folder()
    return None if place is None else str(place)


def _line(record: wisdom.Record | Path) -> str:
    """A record for people: a walk as lines, long texts cut short; a damaged file is shown by its path."""
    if isinstance(record, Path):
        return str(record)
    decision = record.decision
    if not isinstance(decision, dict):
        return str(record)
    if record.key.facts.get("what") == "walk" and isinstance(decision.get("walk"), list):
        return "\n    ".join([f"{record.key}:", *map(str, decision["walk"])])
    short = dict(decision)
    for name, value in decision.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            short[name] = f"{value[:_LONGEST]}..."
    return f"{record.key}: {spelt(short)}"


def _files(number: int) -> str:
    return counted(number, "decision")


def _where() -> str:
    place = wisdom.folder()
    return f" in {place}" if place else " nowhere: ROTE_WISDOM is empty"


def _measure(comm: Comm, seconds: float, check: bool, force: bool) -> Answer:
    """Measure the machine on every rank, then print, keep and check the times."""
    from ..compiler.machine import DEFAULT
    from ..runtime.tuning.autotune import medians
    from ..runtime.tuning.calibrate import BUSY, keep_machine, measure

    if check and comm.size == 1:
        raise click.UsageError("one rank has no other rank to send to; write --ranks 2 or more")
    say(comm, _ranks(comm))
    with progress(comm, "measure") as part:
        machine, spread = measure(comm, seconds, part)
    ours, usual = machine.as_dict(), DEFAULT.as_dict()
    rows = [("", "measured", "default", "")]
    rows += [(name, in_seconds(ours[name], 3), in_seconds(usual[name], 3), about) for name, about in _ABOUT.items()]
    say(comm, "\n".join(table(rows, {1, 2})))
    busy, ranking = spread >= BUSY and not force, None
    kept = not busy and keep_machine(comm, machine)
    say(comm, _BUSY.format(spread) if busy else _kept(kept))
    if check:
        with _compiling:
            plans = moves(comm.size)
        with progress(comm, "check") as part:
            times = medians(comm, calls(plans, comm), seconds, part)
        ranking = ranks_of(plans, times, {"default": DEFAULT, "measured": machine})
        say(comm, ranked(ranking))
    return {**_about(comm, kept), "spread": spread, "measured": ours, "default": usual, "check": ranking}


def _time(
    comm: Comm, shape: tuple[int, ...], layout: str | None, dtype: str | None, patient: bool, threads: int | None
) -> Answer:
    """Time FFTs on every rank, print the results and keep them."""
    from ..fft.plan import FFT

    threads = threads or 1
    refuse_too_many(comm, threads)
    say(comm, _ranks(comm))
    tune: Literal["measure", "patient"] = "patient" if patient else "measure"
    element = of_ffts(dtype or "c16")
    with progress(comm, tune) as part:
        f = FFT(shape, layout, comm=comm, dtype=element, tune=tune, threads=threads, progress=part)
    place = wisdom.folder()
    kept = bool(f.tried) and place is not None and place.is_dir() and os.access(place, os.W_OK)
    outcome = _kept(kept) if f.tried else "not timed, for there is no other walk"
    say(comm, f"{f}\n{outcome}")
    walk = [line.strip() for line in str(f.walk).splitlines()]
    return {**_about(comm, kept), "walk": walk, "tried": [*map(asdict, f.tried)]}


def _ranks(comm: Comm) -> str:
    mpi = mpi_library(comm)
    how = f"through {mpi}" if mpi else "in this process"
    return f"{counted(comm.size, 'rank')} {how}"


def _about(comm: Comm, kept: bool) -> Answer:
    """The place of a measurement, and whether it is kept."""
    return {"ranks": comm.size, "mpi": mpi_library(comm) or None, "folder": _folder(), "kept": kept}


def _kept(kept: bool) -> str:
    return f"kept{_where()}" if kept or not wisdom.folder() else f"not kept: {wisdom.folder()} cannot be written to"
