"""The fixed rows of `rote bench --suite`, the contestants of each row, and the figures of a row in the record.

A record is of one commit and one machine. Its rows are the transforms of the book's table, moves alone, and transforms
of so few points that only the cost of a call counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.explain import table
from . import floor, local_libraries, mpi_libraries, programs, rote_cases
from .contest import Contestant, Score, Work
from .report import factor, in_units

__all__ = ["SHAPES", "contestants", "rows", "summary", "works"]

_BOTH = ((64, 64, 64), (128, 128, 128), (96, 160, 224), (256, 256, 256), (384, 384, 384))  # c2c and r2c
_COMPLEX = ((48, 48, 48, 48), (243, 243, 243), (250, 250, 250), (512, 512, 64))
_MOVED = ((64, 64, 64), (128, 128, 128), (256, 256, 256))
_CALLED = (8, 8, 8)
SHAPES = (_CALLED, *_BOTH, *_COMPLEX)
"""The shapes of all rows."""

_YARDSTICKS = ("in-cache", "memcpy", "kernels")  # contestants that do not do the work


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


def contestants(work: Work, usable: int, mpi: bool) -> list[Contestant]:
    """The contestants of a row; Rote takes part tuned and, for transforms, also without tuning."""
    algorithm = _algorithm(work)
    if work.move:
        return rote_cases.contestants(work, (), ("auto",), False, mpi) + mpi_libraries.contestants(work, (), mpi)
    ours = rote_cases.contestants(work, (algorithm,), ("auto",), False, mpi, ("measure", "model"))
    ours = [each for each in ours if each.group == "rote" or not each.variant.endswith("model")]
    if work.shape == _CALLED:
        bare = [floor.kernels(work, True)] if mpi else []
        return [*ours, *bare, floor.kernels(work, False)]
    ours.append(rote_cases.one_rank(work, min(work.ranks, usable)))
    peers = mpi_libraries.contestants(work, (algorithm,), mpi) + programs.contestants(work)
    peers += local_libraries.contestants(work, usable, False)
    return ours + peers + floor.in_cache(work, mpi) + [mpi_libraries.copy_of_block(work, mpi)]


def rows(lines: Sequence[Score]) -> list[dict[str, Any]]:
    """The figures of each row, from medians in seconds; a figure is None if a contestant that it needs did not run.

    A row has the fastest of Rote and of the others, the floor with its parts, and the time of a copy of the block; the
    ratios of Rote's fastest to the floor, to the fastest other and to the copy; the ratios of Rote without tuning to
    tuned, and of threads to MPI's ranks; and, for calls, how much longer a transform takes than its kernels.
    """
    ran: dict[Work, list[Score]] = {}
    for line in lines:
        in_row = ran.setdefault(line.contestant.work, [])
        if line.seconds:
            in_row.append(line)
    return [_row(work, in_row) for work, in_row in ran.items()]


def _row(work: Work, lines: Sequence[Score]) -> dict[str, Any]:
    def fastest(*groups: str) -> Score | None:
        return min(
            [line for line in lines if line.contestant.group in groups], key=lambda line: line.median, default=None
        )

    def first(group: str, variant: str) -> Score | None:
        """The first score of a group; for transforms, the first of the given variant."""
        fitting = [line for line in lines if line.contestant.group == group]
        return next((line for line in fitting if work.move or line.contestant.variant == variant), None)

    ours, copy, cached = fastest("rote", "threads"), fastest("memcpy"), fastest("in-cache")
    peer = fastest(*({line.contestant.group for line in lines if not line.contestant.ours} - {*_YARDSTICKS}))
    algorithm = _algorithm(work)
    mpi, threads = first("rote", algorithm), first("threads", algorithm)
    parts: dict[str, Any] | None = None
    if copy is not None and cached is not None:
        count = floor.sweeps(work, _order(work))
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


def _overhead(lines: Sequence[Score], algorithm: str) -> list[dict[str, Any]]:
    """How much longer a transform takes than its bare kernels, for each place where both ran."""
    overhead = []
    for bare in lines:
        for line in lines:
            alike = line.contestant.where == bare.contestant.where
            if bare.contestant.group == "kernels" and line.contestant.variant == algorithm and alike:
                overhead.append({"on": bare.contestant.where, "seconds": (line.median - bare.median) / 2})
    return overhead


def summary(figures: Sequence[dict[str, Any]]) -> str:
    """The rows as a table: Rote's fastest time, and its ratio to each yardstick."""
    rows = [("", "ranks", "rote", "/ floor", "/ fastest other", "model / tuned", "threads / MPI", "/ copy", "a call")]
    for row in figures:
        if row["rote"] is None:
            continue
        peer = "-" if row["peer"] is None else f"{row['to_peer']:.2f} {row['peer']['name']}"
        calls = ", ".join([f"{each['seconds'] * 1e6:+.1f} us on {each['on']}" for each in row["overhead"]])
        first, *others = [factor(row[key]) for key in ("to_floor", "model_to_tuned", "threads_to_mpi", "to_copy")]
        time = in_units(row["rote"]["median"])
        rows.append((row["work"], str(row["ranks"]), time, first, peer, *others, calls or "-"))
    used = [column for column, (_, *cells) in enumerate(zip(*rows, strict=True)) if {*cells} - {"-"}]
    figured = {place for place, column in enumerate(used) if column not in (0, 4, 8)}
    return "\n".join(table([tuple([row[column] for column in used]) for row in rows], figured))


def _algorithm(work: Work) -> str:
    return ("slab", "pencil")[_order(work) - 1]


def _order(work: Work) -> int:
    """The order of a row's grid: 2 for tensors of order 4 or more, else 1."""
    return 1 + (len(work.shape) >= 4)


def _who(line: Score | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {"name": line.contestant.name, "on": line.contestant.where, "median": line.median}


def _over(line: Score | None, other: Score | None) -> float | None:
    if line is None or other is None:
        return None
    return line.median / other.median
