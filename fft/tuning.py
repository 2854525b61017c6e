"""Tuning a transform by measurement: the walk that is fastest on these ranks.

The few walks that are cheapest by the model run forward and back in turn, round after round, and the model's choice
among them. Another walk is taken only if it is clearly faster than that one. The decision is kept as wisdom.

Only walks are timed here. The libraries of a walk's kernels are those that samples found (`rote.fft.kernels.choose`),
and the methods of its moves are timed where messages travel (`rote.runtime.tuning`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from rote.layout.grid import Grid
from rote.runtime.choose import Progress, Timed, budget, choose, collective_call, decided
from rote.runtime.comm import segments
from rote.runtime.comm.protocol import Comm
from rote.units import in_seconds, table

from .families.choose import Choice, reread, walks
from .program.program import bind_pair
from .request import Arguments, Norm, Options
from .walk import Walk

__all__ = ["Decision", "Tried", "candidates", "decide", "race"]

_MOST = {"measure": 4, "patient": 8}  # at most so many walks are timed
_WITHIN = 3.0  # walks are timed only up to this many times the best walk's time by the model


@dataclass(frozen=True, slots=True)
class Tried:
    """A walk that was timed: its family with grid and layouts, its seconds forward and back, and the model's."""

    name: str
    seconds: float
    model: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of tuning a transform; as text, a line for each timed walk.

    Attributes:
        walk: the walk that is taken.
        tried: all timed walks: the taken one first, then by time; empty if none was timed.
    """

    walk: Walk
    tried: tuple[Tried, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The walk and the times as a JSON value, for wisdom."""
        lines = [line.strip() for line in str(self.walk).splitlines()]
        return {
            "walk": [line for line in lines if not line.startswith("#")],
            "grid": list(self.walk.source.grid.shape),
            "tried": [[tried.name, tried.seconds, tried.model] for tried in self.tried],
        }

    def __str__(self) -> str:
        rows = [("there and back", "timed", "by the model")]
        rows += [(f"  {tried.name}", in_seconds(tried.seconds, 3), in_seconds(tried.model)) for tried in self.tried]
        return "\n".join(table(rows, {1, 2}))


def decide(arguments: Arguments, choices: Sequence[Choice], comm: Comm, norm: Norm, options: Options) -> Decision:
    """The walk that is fastest on these ranks: remembered, or timed now. Collective.

    The result is the same on all ranks. A decision by tune="patient" also serves tune="measure".
    """
    field = candidates(choices, _MOST[options.tune])
    seconds = budget(comm, "walk", options.tune, max(map(_block_bytes, field)))

    untimed = Decision(next(iter(field)))
    if len(field) == 1 or comm.size == 1:  # on one rank all walks do the same
        return untimed

    def find() -> dict[str, Any] | None:
        if not seconds:
            return None

        # Only tune="patient" also times the methods of every walk tried; else only those of the walk taken are timed.
        timed = race([*field], comm, norm, options if options.tune == "patient" else options.untuned(), seconds)

        tried: list[Tried] = []
        for n in timed.order:
            choice = [*field.values()][n]
            tried.append(Tried(_named(choice), float(f"{timed.seconds(n):.4g}"), 2 * choice.seconds))
        return Decision([*field][timed.best], tuple(tried)).as_json()

    facts = {"what": "walk", **arguments.facts(), **options.facts()}
    return decided(comm, facts, options.tune, partial(_read, arguments), find) or untimed


def candidates(choices: Sequence[Choice], most: int) -> dict[Walk, Choice]:
    """The walks that are worth timing, at most so many, in order of preference: the first is the model's choice."""
    every = walks(choices)
    limit = _WITHIN * min(choice.seconds for choice in every.values())
    return {walk: choice for walk, choice in [*every.items()][:most] if choice.seconds <= limit}


def race(field: Sequence[Walk], comm: Comm, norm: Norm, options: Options, seconds: float) -> Timed:
    """Time walks forward and back, and choose one; only one is bound at a time, and the first one runs. Collective."""
    return choose(comm, [partial(_time, walk, comm, norm, options) for walk in field], seconds, options.progress)


def _time(walk: Walk, comm: Comm, norm: Norm, options: Options, seconds: float, progress: Progress | None) -> float:
    """The seconds of a walk forward and back, on blocks of ones."""
    pair = bind_pair(walk, comm, norm, options)

    x = segments.empty(pair.forward.source.local_shape(comm.rank), pair.forward.dtypes[0])
    spectrum = segments.empty(pair.forward.target.local_shape(comm.rank), pair.forward.dtypes[-1])
    x[...] = 1

    return collective_call(comm, partial(pair.there_and_back, x, spectrum))(seconds, progress)


def _block_bytes(walk: Walk) -> int:
    """Bytes per rank of the larger of a walk's two ends, if they were evenly distributed."""
    dtypes = walk.dtypes()
    ends = ((walk.source, dtypes[0]), (walk.target, dtypes[-1]))
    return max(prod(dist.shape) * dtype.itemsize for dist, dtype in ends) // walk.source.grid.size


def _named(choice: Choice) -> str:
    """The name of a choice's family, with grid and layouts."""
    ends = "" if choice.walk is None else f", {choice.source.layout} -> {choice.walk.target.layout}"
    return f"{choice.name} on {choice.source.grid}{ends}"


def _read(arguments: Arguments, value: Any) -> Decision:
    """Read a decision from wisdom, which ignores it if anything is wrong with it."""
    if not isinstance(value, Mapping) or value.keys() != {"walk", "grid", "tried"} or not value["tried"]:
        raise ValueError("a decision is a walk, its grid, and what was tried")

    walk = reread(arguments, "\n".join(value["walk"]), Grid(tuple(value["grid"])))
    rows = [(str(name), float(seconds), float(model)) for name, seconds, model in value["tried"]]
    return Decision(walk, tuple(Tried(*row) for row in rows))
