"""Autotuning of walks: the few that are cheapest by the model run forward and back on the ranks; the fastest is taken.

The decision is kept as wisdom, for later programs with the same arguments. The module `confirmation` then decides
whether the tuned transform is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any

from rote.compiler.explain import in_seconds, table
from rote.compiler.machine import Machine
from rote.layout.grid import Grid
from rote.runtime.comm import segments
from rote.runtime.comm.protocol import Comm
from rote.runtime.tuning.autotune import Progress, decided, fastest, ranking, timings
from rote.runtime.tuning.limits import LIMITS, budget

from ..families.choose import Choice, best, farther, preferred, walks
from ..families.resolve import reread
from ..program.fields import bind_pair
from ..request.arguments import Norm, Options
from ..request.request import Arguments
from ..walk.walk import Walk

__all__ = ["Decision", "Tried", "block_bytes", "candidates", "decide", "named", "race"]

_MOST = {"measure": 4, "patient": 8}  # at most so many walks are timed
_WITHIN = 3.0  # walks are timed only up to this many times the best walk's time by the model


@dataclass(frozen=True, slots=True)
class Tried:
    """A walk that was timed.

    Attributes:
        name: the name of its family, with grid and layouts.
        seconds: the time forward and back, on the slowest rank.
        model: the time by the model, in seconds.
    """

    name: str
    seconds: float
    model: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The walk that is taken, and all timed walks: the taken one first, then by time; as text, one line each."""

    walk: Walk
    tried: tuple[Tried, ...]

    def as_json(self) -> dict[str, Any]:
        """The decision as a JSON value, for wisdom."""
        return {
            "walk": [line.strip() for line in str(self.walk).splitlines() if not line.strip().startswith("#")],
            "grid": list(self.walk.source.grid.shape),
            "tried": [[tried.name, tried.seconds, tried.model] for tried in self.tried],
        }

    def __str__(self) -> str:
        rows = [("there and back", "timed", "by the model")]
        rows += [(f"  {tried.name}", in_seconds(tried.seconds, 3), in_seconds(tried.model)) for tried in self.tried]
        return "\n".join(table(rows, {1, 2}))


def decide(
    arguments: Arguments, choices: Sequence[Choice], machine: Machine, comm: Comm, norm: Norm, options: Options
) -> Decision:
    """The walk that is fastest on these ranks: remembered, or timed now. Collective.

    The result is the same on all ranks. A decision by tune="patient" also serves tune="measure".

    Args:
        arguments: the arguments of the transform, which one of the walks in `choices` will do.
        machine: the machine that ranked the choices.
        options: the user's options.

    Raises:
        LayoutError: there is no walk.
    """
    field = candidates(arguments, choices, machine, _MOST[options.tune])
    seconds = budget(comm, "walk", options.tune, max(map(block_bytes, field)))
    if len(field) == 1 or comm.size == 1:  # on one rank all walks do the same
        return Decision(next(iter(field)), ())
    facts = {"what": "walk", **arguments.facts(), **options.facts()}

    def find() -> dict[str, Any] | None:
        return _fastest(field, comm, norm, options, seconds).as_json() if seconds else None

    return decided(comm, facts, options.tune, partial(_read, arguments), find) or Decision(next(iter(field)), ())


def block_bytes(walk: Walk) -> int:
    """Bytes per rank of the larger of a walk's two ends, if they were evenly distributed."""
    dtypes = walk.dtypes()
    ends = ((walk.source, dtypes[0]), (walk.target, dtypes[-1]))
    return max(prod(dist.shape) * dtype.itemsize for dist, dtype in ends) // walk.source.grid.size


def candidates(arguments: Arguments, choices: Sequence[Choice], machine: Machine, most: int) -> dict[Walk, Choice]:
    """The walks that are worth timing: the model's choice first, then others in the order of `preferred`.

    Each walk is joined by another of its family, in which entries move to other modes.
    """
    every: dict[Walk, Choice] = {}
    for walk, choice in walks(choices).items():
        every.setdefault(walk, choice)
        other = farther(choice, arguments.request, arguments.output, machine)
        if other.walk is not None:
            every.setdefault(other.walk, other)
    limit = _WITHIN * min(choice.seconds for choice in every.values())
    first = best(choices)
    ranked = sorted(preferred([*every.values()]), key=lambda choice: choice.walk != first)
    return walks([choice for choice in ranked[:most] if choice.seconds <= limit])


def race(field: Sequence[Walk], comm: Comm, norm: Norm, options: Options, seconds: float) -> list[list[float]]:
    """The seconds of each walk in each turn, forward and back, on the slowest rank.

    Only one walk is bound at a time. Collective; the result is the same on all ranks.

    Args:
        seconds: roughly the most time for all walks; the first walk always has its turn.
    """
    turns = [partial(_turn, walk, comm, norm, options) for walk in field]
    return timings(comm, turns, seconds, LIMITS["walk"], options.progress)


def _turn(walk: Walk, comm: Comm, norm: Norm, options: Options, seconds: float, progress: Progress | None) -> float:
    """The seconds of a walk forward and back, on real blocks."""
    pair = bind_pair(walk, comm, norm, options)
    dtypes = pair.forward.dtypes
    ends = zip((walk.source, walk.target), (dtypes[0], dtypes[-1]), strict=True)
    x, spectrum = (segments.empty(dist.local_shape(comm.rank), dtype) for dist, dtype in ends)
    x[...] = 1
    return fastest(comm, partial(pair.there_and_back, x, spectrum), seconds, progress)


def _fastest(field: dict[Walk, Choice], comm: Comm, norm: Norm, options: Options, seconds: float) -> Decision:
    """Time the walks, and take the fastest.

    Only tune="patient" also tunes the local transforms of every walk tried; otherwise only those of the walk taken.
    """
    within = options if options.tune == "patient" else options.untuned()
    times = race([*field], comm, norm, within, seconds)
    order = ranking(times, LIMITS["walk"])
    ranked = [(min(times[n]), [*field.values()][n]) for n in order]
    tried = tuple(Tried(named(choice), float(f"{seconds:.4g}"), 2 * choice.seconds) for seconds, choice in ranked)
    return Decision([*field][order[0]], tried)


def named(choice: Choice) -> str:
    """The name of a choice's family, with grid and layouts."""
    ends = "" if choice.walk is None else f", {choice.source.layout} -> {choice.walk.target.layout}"
    return f"{choice.name} on {choice.source.grid}{ends}"


def _read(arguments: Arguments, kept: Any) -> Decision:
    """Read a decision from wisdom.

    Raises:
        ValueError, TypeError, RoteError: it is not a decision, or does not fit the arguments.
    """
    if not isinstance(kept, Mapping) or kept.keys() != {"walk", "grid", "tried"}:
        raise ValueError("a decision is a walk, its grid, and what was tried")
    lines, grid, rows = kept["walk"], kept["grid"], kept["tried"]
    if not all(isinstance(part, list) for part in (lines, grid, rows)) or not lines or not rows:
        raise ValueError("walk, grid and what was tried are lists")
    if not all(isinstance(line, str) for line in lines):
        raise ValueError("a walk is made of lines")
    walk = reread(arguments, "\n".join(lines), Grid(tuple(grid)))
    return Decision(walk, tuple(_tried(*row) for row in rows))


def _tried(name: Any, seconds: Any, model: Any) -> Tried:
    for time in (seconds, model):
        if not isinstance(name, str) or not isinstance(time, int | float) or not 0 <= time < inf:
            raise ValueError("of what was tried there is a name and two times")
    return Tried(name, float(seconds), float(model))
