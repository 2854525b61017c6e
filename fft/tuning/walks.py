"""Autotuning of walks: the few that the model finds cheapest run there and back on the ranks, and the fastest stays.

What was found is kept as wisdom, and found again by the next program that asks for the same. Its neighbour
`confirmation` has the last word on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from rote.compiler.explain import in_seconds, table
from rote.compiler.machine import Machine
from rote.layout.grid import Grid
from rote.runtime.comm.protocol import Comm
from rote.runtime.tuning.autotune import Progress, decided, fastest, ranking, timings
from rote.runtime.tuning.limits import LIMITS, budget

from ..families.choose import Choice, best, farther, preferred, walks
from ..families.resolve import reread
from ..program.program import bind_pair
from ..request.arguments import Norm, Options
from ..request.request import Arguments
from ..walk.walk import Walk

__all__ = ["Decision", "Tried", "block_bytes", "candidates", "decide", "named", "race"]

_MOST = {"measure": 4, "patient": 8}  # walks that are timed
_WITHIN = 3.0  # how many times as long as the best a walk may take by the model, and still be timed


@dataclass(frozen=True, slots=True)
class Tried:
    """A walk that was timed.

    Attributes:
        name: of its family, with grid and layouts.
        seconds: there and back, on the slowest rank.
        model: what the model says, in seconds.
    """

    name: str
    seconds: float
    model: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The walk that is taken, and all that were timed, this one first and then by time; as text, a line for each."""

    walk: Walk
    tried: tuple[Tried, ...]

    def as_json(self) -> dict[str, Any]:
        """The decision as it is kept."""
        return {
            "walk": [line.strip() for line in str(self.walk).splitlines() if not line.strip().startswith("#")],
            "grid": list(self.walk.source.grid.shape),
            "tried": [[tried.name, tried.seconds, tried.model] for tried in self.tried],
        }

    def __str__(self) -> str:
        rows = [("there and back", "timed", "by the model")]
        rows += [(f"  {tried.name}", in_seconds(tried.seconds), in_seconds(tried.model)) for tried in self.tried]
        return "\n".join(table(rows, {1, 2}))


def decide(
    arguments: Arguments,
    choices: Sequence[Choice],
    machine: Machine,
    comm: Comm,
    norm: Norm,
    options: Options,
) -> Decision:
    """The walk that is fastest on these ranks: as it was once found and kept, or timed now. Collective.

    The same on all ranks. What was found patiently serves those who only measure, too.

    Args:
        arguments: what is to be done, by one of the walks `choices`.
        machine: by which these were ranked.
        options: what is asked for.

    Raises:
        LayoutError: there is no walk.
    """
    field = candidates(arguments, choices, machine, _MOST[options.tune])
    seconds = budget(comm, "walk", options.tune, max(map(block_bytes, field)))
    if len(field) == 1 or comm.size == 1:  # on one rank all do the same
        return Decision(next(iter(field)), ())
    facts = {"what": "walk", **arguments.facts(), **options.facts()}

    def find() -> dict[str, Any] | None:
        return _fastest(field, comm, norm, options, seconds).as_json() if seconds else None

    return decided(comm, facts, options.tune, partial(_read, arguments), find) or Decision(next(iter(field)), ())


def block_bytes(walk: Walk) -> int:
    """Bytes of the larger one of a walk's two ends on a rank, if all have as much."""
    dtypes = walk.dtypes()
    ends = ((walk.source, dtypes[0]), (walk.target, dtypes[-1]))
    return max(prod(dist.shape) * dtype.itemsize for dist, dtype in ends) // walk.source.grid.size


def candidates(arguments: Arguments, choices: Sequence[Choice], machine: Machine, most: int) -> dict[Walk, Choice]:
    """The walks that are worth timing: the model's choice first, then others in the order in which they are preferred.

    To those found comes each family in another order of axes.
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
    """The seconds that each of some walks takes there and back, on the slowest rank, turn by turn.

    Only one of them is bound at a time. Collective; the same on all ranks.

    Args:
        seconds: the most that all may take, about; the first one always has its turn.
    """
    turns = [partial(_turn, walk, comm, norm, options) for walk in field]
    return timings(comm, turns, seconds, LIMITS["walk"], options.progress)


def _turn(walk: Walk, comm: Comm, norm: Norm, options: Options, seconds: float, progress: Progress | None) -> float:
    """The seconds of a walk there and back, on real blocks."""
    pair = bind_pair(walk, comm, norm, options)
    dtypes = pair.forward.dtypes
    x = np.ones(walk.source.local_shape(comm.rank), dtypes[0])
    spectrum = np.empty(walk.target.local_shape(comm.rank), dtypes[-1])
    return fastest(comm, partial(pair.there_and_back, x, spectrum), seconds, progress)


def _fastest(field: dict[Walk, Choice], comm: Comm, norm: Norm, options: Options, seconds: float) -> Decision:
    """The decision that timing comes to.

    Whoever is not patient has local transforms timed only in the walk that is taken, not in those that are tried.
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
    """A decision as it was kept.

    Raises:
        ValueError, TypeError, RoteError: it is none, or another's.
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
