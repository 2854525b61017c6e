"""`rote bench --suite` and `--compare`: a record of all rows in one file, and the changes between two records."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from ..errors import LayoutError, RoteError, counted
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm
from .answers import Answer, give, say
from .failures import on_ranks
from .options import refuse_target
from .phases import progress

if TYPE_CHECKING:
    from ..bench.contest import Contestant, Score

__all__ = ["compare", "oversubscribed", "suite", "taking_part"]

_PAUSE = 2.0  # seconds between two writes of the record


def suite(
    path: str,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[str],
    only: Sequence[str],
    ranks: int | None,
    rounds: int,
    force: bool,
) -> None:
    """Measure the rows, or those of some shapes and dtypes, and write the record."""
    from ..bench.suite import SHAPES

    for shape in shapes:
        if shape not in SHAPES:
            known = ", ".join("x".join(map(str, each)) for each in SHAPES)
            raise LayoutError(f"the suite has no row of {'x'.join(map(str, shape))}; its shapes are {known}")

    def program(comm: Comm) -> None:
        from ..bench.machine import machine
        from ..bench.suite import contestants, works

        mpi, usable, count = taking_part(comm, ranks)
        chosen = [work for work in works(count) if not shapes or work.shape in shapes]
        chosen = [work for work in chosen if not dtypes or work.dtype.str[1:] in dtypes]
        every = chain(*(contestants(work, usable, mpi) for work in chosen))
        field = [each for each in every if not only or each.group in only]
        if not field:
            raise RoteError("no row is left, or no contestant for it\nask for other shapes, dtypes or contestants")
        with collective_errors(comm):
            if comm.rank == 0:
                refuse_target(path, force)
        crowded = oversubscribed(comm, count, usable)
        if crowded:
            say(comm, crowded)
        about = {**machine(comm, usable), "ranks": count, "rounds": rounds, "oversubscribed": bool(crowded)}
        _measure(comm, field, about, path)

    on_ranks(program, None, 1)


def taking_part(comm: Comm, ranks: int | None) -> tuple[bool, int, int]:
    """Whether MPI has several ranks, the cores of this host, and how many ranks or threads take part. Collective."""
    from ..bench.contest import cores_of_all

    if comm.size > 1 and ranks is not None:
        raise click.UsageError(f"--ranks is for threads, but mpiexec has started {comm.size} ranks; leave --ranks out")
    usable = len(cores_of_all(comm))
    if comm.size > 1:
        return True, usable, comm.size
    return False, usable, ranks or usable


def oversubscribed(comm: Comm, count: int, usable: int) -> str:
    """A warning if `count` threads, or the MPI ranks of a host, outnumber its usable cores; else empty. Collective."""
    host, number, text = "this machine", count, ""
    if comm.size > 1:
        host = platform.node()
        number = comm.allgather_object(host).count(host)
    if number > usable:
        on = f"{counted(number, 'rank')} on {counted(usable, 'core')} of {host}"
        text = f"oversubscribed: {on}; times include waiting for a core"
    return str(max(comm.allgather_object(text)))


def _measure(comm: Comm, field: list[Contestant], about: dict[str, Any], path: str) -> None:
    """Hold the contest, and write its record every few seconds, at the end, and when it is interrupted."""
    from ..bench import report
    from ..bench.contest import hold
    from ..bench.suite import rows, summary

    known: list[Score] = []
    began = written = monotonic()
    rounds = about["rounds"]

    def write() -> None:
        record = {**report.as_json(known, about), "rows": rows(known)}
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
        os.replace(file.name, path)

    with progress(comm, "measure") as show:

        def after(lines: list[Score], part: float) -> None:
            nonlocal written
            known[:] = lines
            if show is not None:
                show(part)
            if comm.rank:
                return
            if monotonic() - written > _PAUSE:
                write()
                written = monotonic()
            if show is None and round(part * len(lines) * rounds) % len(lines) == 0:
                click.echo(f"round {round(part * rounds)} of {rounds} after {monotonic() - began:.0f} s")

        try:
            hold(comm, field, rounds, after)
        finally:
            if comm.rank == 0 and known:
                write()
    if comm.rank:
        return
    texts = [summary(rows(known)), report.libraries(known), "\n".join(report.missing(known))]
    for text in filter(None, texts):
        click.echo(f"\n{text}")
    if not any(line.seconds for line in known):
        raise RoteError("no contestant could run\nname others with --only, or none")
    click.echo(f"\nleft {path}")


def compare(paths: tuple[str, str], relative: bool, printed: bool) -> None:
    """Print the changes from one record to another; an error if a contestant of Rote has become slower."""
    from ..bench import compare as records

    def program() -> records.Comparison:
        first, second = map(records.load, paths)
        comparison = records.compare(first, second, relative)
        click.echo(str(comparison))
        return comparison

    def answer(comparison: records.Comparison) -> Answer:
        return {"first": paths[0], "second": paths[1], **comparison.as_json()}

    comparison = give(printed, program, answer)
    if not comparison.changes:
        raise RoteError(f"{paths[0]} and {paths[1]} have nothing in common that could be compared")
    if comparison.slower:
        rows = "; ".join([f"{each.work}, {each.name} on {each.on}" for each in comparison.slower])
        raise RoteError(f"Rote is slower in {paths[1]}, in {counted(len(comparison.slower), 'row')}: {rows}")
