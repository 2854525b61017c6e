"""A record of Rote's speed: fixed rows, each with every time of every round, its floor, and the ratios within the row.

    mpiexec -n 2 python tests/bench/suite.py before.json                          all rows, five rounds
    mpiexec -n 2 python tests/bench/suite.py after.json --shape 128x128x128       the rows of a shape
    python tests/bench/compare.py before.json after.json                          what is slower or faster

A record is of one commit and one machine. Its rows are the transforms of the book's table, moves alone, and transforms
of so few points that only the cost of a call counts. A round goes through all rows before the next one begins, so the
rounds of a row are minutes apart. The file is written after every round.

The *floor* of a row is the time of its lines in cache, plus a copy of the block for each sweep through memory. If no
cache holds the block, no program can be faster: it must read and write the block before each move and after the last
one, and at best it computes in between as if the points were in cache. Both times are measured in the same rounds as
the libraries, on all ranks at once. For tensors that fit into caches the floor is only a yardstick, no bound.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from rote.bench import report
from rote.bench.cases import (
    Case,
    Job,
    Missing,
    Round,
    Timing,
    Work,
    check_values,
    cores_of_all,
    fill,
    measure,
    mesh,
    on_all,
    oversubscribed,
    run_cases,
)
from rote.bench.libraries import (
    LIBRARIES,
    copy_of_block,
    slabs,
    transform,
    with_mpi,
    with_programs,
    with_rote,
    within_one_process,
)
from rote.bench.machine import build, machine
from rote.errors import RoteError
from rote.layout.grid import Grid
from rote.runtime import Comm, world
from rote.runtime.comm import segments
from rote.runtime.comm.agreement import collective_errors
from rote.runtime.comm.protocol import Array
from rote.units import in_seconds, table

_BOTH = ((64, 64, 64), (128, 128, 128), (96, 160, 224), (256, 256, 256), (384, 384, 384))  # c2c and r2c
_COMPLEX = ((48, 48, 48, 48), (243, 243, 243), (250, 250, 250), (512, 512, 64))
_MOVED = ((64, 64, 64), (128, 128, 128), (256, 256, 256))
_CALLED = (8, 8, 8)
SHAPES = (_CALLED, *_BOTH, *_COMPLEX)
"""The shapes of all rows."""

_YARDSTICKS = ("in-cache", "memcpy", "kernels")  # cases that do not do the work

_TILE = 1 << 17  # bytes of the lines that are transformed at once; input and output fit into any second-level cache
_SPAN = 0.05  # seconds for which the lines of one axis are transformed in a round
_FASTEST = ("pyfftw", "ducc0", "mkl_fft")  # at every length, the fastest library is one of these


# --- the floor -------------------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The lines along one axis of a block: points per line, dtype, and elements of the block."""

    points: int
    dtype: np.dtype[np.generic]
    elements: float


def axes(work: Work) -> list[Lines]:
    """The axes of a rank's part of a transform; of a real one, all but the last are axes of half the spectrum.

    >>> [(axis.points, axis.dtype.char, axis.elements) for axis in axes(Work((8, 9, 10), np.dtype("f8"), 2))]
    [(8, 'D', 216.0), (9, 'D', 216.0), (10, 'd', 360.0)]
    """
    spectral = prod(work.spectrum) / work.ranks
    *others, last = work.shape
    wide = np.result_type(work.dtype, "c8")
    lines = [Lines(n, wide, spectral) for n in others]
    return [*lines, Lines(last, work.dtype, prod(work.shape) / work.ranks)]


def sweeps(work: Work, order: int) -> int:
    """The least number of sweeps over the block, forward and backward, on a grid of the given order.

    >>> [sweeps(Work((8, 8, 8), np.dtype("c16"), ranks), order) for ranks, order in ((1, 1), (2, 1), (2, 2), (4, 2))]
    [2, 4, 4, 6]
    """
    return 2 * (1 + sum(parts > 1 for parts in Grid.of(work.ranks, order).shape))


def in_cache(work: Work, mpi: bool) -> list[Case]:
    """One case per library: it transforms as many lines as a rank's part has, contiguous and in cache."""
    return [on_all("in-cache", name, partial(_run, name, work), work, mpi) for name in _FASTEST]


def kernels(work: Work, mpi: bool) -> Case:
    """The bare local transforms of a slab walk, without the move between them."""
    return on_all("kernels", "", partial(measure, _kernels, work), work, mpi)


def _run(name: str, work: Work, comm: Comm) -> Round:
    """One round: the time of each axis is the time of one tile of lines, times the number of tiles."""
    times: dict[tuple[int, np.dtype[np.generic]], float] = {}  # per element
    total = 0.0
    for points, dtype, elements in axes(work):
        if (points, dtype) not in times:
            tile = Work((max(_TILE // (points * dtype.itemsize), 1), points), dtype, 1)
            try:
                seconds = measure(partial(_lines, name), tile, comm, _SPAN).seconds
            except ImportError:
                raise Missing(f"is not installed; pip install {name}") from None
            times[points, dtype] = seconds / prod(tile.shape)
        total += times[points, dtype] * elements
    return Round(total, build(name))


def _lines(name: str, comm: Comm, work: Work) -> Job:
    return _local(name, work, [(work.shape, (1,))])


def _kernels(comm: Comm, work: Work) -> Job:
    order = len(work.shape)
    if comm.size == 1:
        return _local("pyfftw", work, [(work.shape, tuple(range(order)))])
    before, after = (each.local_shape(comm.rank) for each in slabs(work))
    return _local("pyfftw", work, [(before, tuple(range(1, order))), (after, (0,))])


def _local(name: str, work: Work, parts: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Job:
    """Transforms of blocks along some of their axes, one block after the other, and back in reverse order."""
    prepared = []
    for shape, along in parts:
        block = Work(shape, work.dtype, 1)
        x, y = (segments.empty(shape, work.dtype) for _ in range(2))
        X = segments.empty(block.spectrum, np.result_type(work.dtype, "c8"))
        steps, scale = LIBRARIES[name](block, along, 1, x, X, y)
        fill(block, mesh(shape), x)
        prepared.append((block, steps, scale))
    block, _, scale = prepared[0]
    onward = [steps[0] for _, steps, _ in prepared]
    back = [steps[1] for _, steps, _ in reversed(prepared)]

    def called(steps: list[Callable[[], Array]]) -> Array:
        return [step() for step in steps][-1]

    def check(y: Array) -> None:
        check_values(block, mesh(block.shape), y / scale)

    return Job((partial(called, onward), partial(called, back)), (lambda X: None, check))


# --- the rows --------------------------------------------------------------------------------------------------------


def works(ranks: int) -> list[Work]:
    """The work of each row, for `ranks` ranks: calls on 1, 2, 4, ... of them, moves, and transforms.

    >>> [str(work) for work in works(2)][:3], len(works(2))
    (['c2c 8x8x8 c16', 'c2c 8x8x8 c16', 'slab swap 64x64x64 c16'], 19)
    """
    complex_, real = np.dtype("c16"), np.dtype("f8")
    counts = dict.fromkeys([1, min(2, ranks), min(4, ranks), min(8, ranks)])
    calls = [Work(_CALLED, complex_, count) for count in counts]
    moves = [Work(shape, complex_, ranks, move=True) for shape in _MOVED]
    transforms = [Work(shape, dtype, ranks) for shape in _BOTH for dtype in (complex_, real)]
    return calls + moves + transforms + [Work(shape, complex_, ranks) for shape in _COMPLEX]


def cases(work: Work, usable: int, mpi: bool) -> list[Case]:
    """The cases of a row; Rote runs tuned and, for transforms, also without tuning."""
    algorithm = _algorithm(work)
    if work.move:
        return with_rote(work, (), ("auto",), False, mpi) + with_mpi(work, (), mpi)
    untuned = partial(measure, partial(transform, algorithm, "auto", False, "model"), work)
    ours = with_rote(work, (algorithm,), ("auto",), False, mpi)
    ours.append(on_all("rote", f"{algorithm} model", untuned, work, mpi))
    if work.shape == _CALLED:
        bare = [kernels(work, True)] if mpi else []
        return [*ours, *bare, kernels(work, False)]
    many = min(work.ranks, usable)  # threads of one rank, which has the whole array and sends nothing
    alone = partial(measure, partial(transform, "auto", "auto", False, "measure", threads=many), work)
    ours.append(Case("threads", "one rank", "threads", many, work, None, alone))
    peers = with_mpi(work, (algorithm,), mpi) + with_programs(work) + within_one_process(work, usable, False)
    return ours + peers + in_cache(work, mpi) + [copy_of_block(work, mpi)]


def rows(lines: Sequence[Timing]) -> list[dict[str, Any]]:
    """The figures of each row, from medians in seconds; a figure is None if a case that it needs did not run.

    A row has the fastest of Rote and of the others, the floor with its parts, and the time of a copy of the block; the
    ratios of Rote's fastest to the floor, to the fastest other and to the copy; the ratios of Rote without tuning to
    tuned, and of threads to MPI's ranks; and, for calls, how much longer a transform takes than its kernels.
    """
    ran: dict[Work, list[Timing]] = {}
    for line in lines:
        in_row = ran.setdefault(line.case.work, [])
        if line.seconds:
            in_row.append(line)
    return [_row(work, in_row) for work, in_row in ran.items()]


def _row(work: Work, lines: Sequence[Timing]) -> dict[str, Any]:
    def fastest(*groups: str) -> Timing | None:
        return min([line for line in lines if line.case.group in groups], key=lambda line: line.median, default=None)

    def first(group: str, variant: str) -> Timing | None:
        """The first score of a group; for transforms, the first of the given variant."""
        fitting = [line for line in lines if line.case.group == group]
        return next((line for line in fitting if work.move or line.case.variant == variant), None)

    ours, copy, cached = fastest("rote", "threads"), fastest("memcpy"), fastest("in-cache")
    peer = fastest(*({line.case.group for line in lines if not line.case.ours} - {*_YARDSTICKS}))
    algorithm = _algorithm(work)
    mpi, threads = first("rote", algorithm), first("threads", algorithm)
    parts: dict[str, Any] | None = None
    if copy is not None and cached is not None:
        count = sweeps(work, _order(work))
        least = cached.median + count * copy.median
        parts = {"seconds": least, "transforms": cached.median, "library": cached.library, "sweeps": count}
    return {
        "work": str(work),
        "ranks": work.ranks,
        "rote": _who(ours),
        "peer": _who(peer),
        "own_floor": parts,
        "copy": copy and copy.median,
        "to_floor": ours.median / parts["seconds"] if ours and parts else None,
        "to_peer": _over(ours, peer),
        "to_copy": _over(ours, copy) if work.move else None,
        "model_to_tuned": None if work.move else _over(first("rote", f"{algorithm} model"), mpi),
        "threads_to_mpi": _over(threads, mpi),
        "overhead": _overhead(lines, algorithm),
    }


def _overhead(lines: Sequence[Timing], algorithm: str) -> list[dict[str, Any]]:
    """How much longer a transform takes than its bare kernels, for each place where both ran."""
    overhead = []
    for bare in lines:
        for line in lines:
            alike = line.case.where == bare.case.where
            if bare.case.group == "kernels" and line.case.variant == algorithm and alike:
                overhead.append({"on": bare.case.where, "seconds": (line.median - bare.median) / 2})
    return overhead


def summary(figures: Sequence[dict[str, Any]]) -> str:
    """The rows as a table: Rote's fastest time, and its ratio to each yardstick."""
    rows = [("", "ranks", "rote", "/ floor", "/ fastest other", "model / tuned", "threads / MPI", "/ copy", "a call")]
    for row in figures:
        if row["rote"] is None:
            continue
        peer = "-" if row["peer"] is None else f"{row['to_peer']:.2f} {row['peer']['name']}"
        calls = ", ".join([f"{each['seconds'] * 1e6:+.1f} us on {each['on']}" for each in row["overhead"]])
        first, *others = [
            report.factor(row[key]) for key in ("to_floor", "model_to_tuned", "threads_to_mpi", "to_copy")
        ]
        time = in_seconds(row["rote"]["median"], 3)
        rows.append((row["work"], str(row["ranks"]), time, first, peer, *others, calls or "-"))
    used = [column for column, (_, *cells) in enumerate(zip(*rows, strict=True)) if {*cells} - {"-"}]
    figured = {place for place, column in enumerate(used) if column not in (0, 4, 8)}
    return "\n".join(table([tuple([row[column] for column in used]) for row in rows], figured))


def _algorithm(work: Work) -> str:
    return ("slab", "pencil")[_order(work) - 1]


def _order(work: Work) -> int:
    """The order of a row's grid: 2 for tensors of order 4 or more, else 1."""
    return 1 + (len(work.shape) >= 4)


def _who(line: Timing | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {"name": line.case.name, "on": line.case.where, "median": line.median}


def _over(line: Timing | None, other: Timing | None) -> float | None:
    if line is None or other is None:
        return None
    return line.median / other.median


# --- the program -----------------------------------------------------------------------------------------------------


def record(comm: Comm, chosen: argparse.Namespace) -> None:
    """Measure the rows that are chosen, and write the record after every round. Collective."""
    usable = len(cores_of_all(comm))
    mpi = comm.size > 1
    count = comm.size if mpi else chosen.ranks or usable
    field: list[Case] = []
    for work in works(count):
        row = not chosen.shape or work.points in chosen.shape
        if row and (not chosen.dtype or work.dtype.str[1:] in chosen.dtype):
            field += [case for case in cases(work, usable, mpi) if not chosen.only or case.group in chosen.only]
    if not field:
        raise RoteError("no row is left, or no library for it\nask for other shapes, dtypes or libraries")
    with collective_errors(comm):
        if comm.rank == 0 and os.path.lexists(chosen.file) and not chosen.force:
            raise FileExistsError(f"{chosen.file} is there already; --force overwrites it")
    crowded = oversubscribed(comm, count, usable)
    if crowded:
        say(comm, crowded)
    about = {**machine(comm, usable), "ranks": count, "rounds": chosen.rounds, "oversubscribed": bool(crowded)}
    known = [*map(Timing, field)]
    began = monotonic()
    for number in range(1, chosen.rounds + 1):
        waiting = [result for result in known if not result.missing]
        for result, new in zip(waiting, run_cases(comm, [each.case for each in waiting], 1), strict=True):
            result.seconds += new.seconds
            result.library, result.missing = new.library, new.missing
        if comm.rank == 0:
            with open(f"{chosen.file}.part", "w", encoding="utf-8") as file:
                json.dump({**report.as_json(known, about), "rows": rows(known)}, file, indent=1)
            os.replace(file.name, chosen.file)
        say(comm, f"round {number} of {chosen.rounds} after {monotonic() - began:.0f} s")
    for text in filter(None, [summary(rows(known)), report.libraries(known), "\n".join(report.missing(known))]):
        say(comm, f"\n{text}")
    say(comm, f"\nleft {chosen.file}")


def say(comm: Comm, text: str) -> None:
    """Print a text on rank 0."""
    if comm.rank == 0:
        print(text, flush=True)


def main(args: Sequence[str] | None = None) -> None:
    """Read the command line, and write the record."""
    described, _, examples = (__doc__ or "").partition("\n\n")
    shapes = ["x".join(map(str, shape)) for shape in SHAPES]
    parser = argparse.ArgumentParser(
        description=described, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE.json")
    parser.add_argument("--shape", action="append", choices=shapes, help="only the rows of this shape; may be repeated")
    parser.add_argument("--dtype", action="append", choices=("c16", "f8"), help="only the rows of this dtype")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this library; may be repeated")
    parser.add_argument("--ranks", type=int, help="threads, if no mpiexec starts ranks; default: all cores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--force", action="store_true", help="overwrite the file")
    record(world(), parser.parse_args(args))


if __name__ == "__main__":
    try:
        main()
    except (RoteError, OSError) as error:
        if world().rank == 0:
            print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)
