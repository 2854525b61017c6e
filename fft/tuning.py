"""Tuning a transform by measurement: the walk that is fastest on these ranks, and whether the result is faster.

The few walks that are cheapest by the model run forward and back in turn; the fastest is taken. Walks, kernels and
methods are chosen one by one, each at a time when the machine may have been busy. So in the end the tuned transform
runs against the model's choice, forward and back on the same blocks, and is used only if it is clearly faster. The
ratio of their times is kept with the decision. Before later programs trust it, they run both transforms again, until
one round agrees with what is kept. If five rounds in a row contradict it, everything is tuned anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from typing import Any

from rote.layout.grid import Grid
from rote.runtime.choose import (
    BETTER,
    FEWEST,
    UNKNOWN,
    Candidate,
    Progress,
    Timed,
    TimeRatio,
    budget,
    choose,
    collective_call,
    decided,
)
from rote.runtime.comm import segments
from rote.runtime.comm.protocol import Comm
from rote.units import in_seconds, table

from .families.choose import Choice, reread, walks
from .program.program import Pair, bind_pair
from .request import Arguments, Norm, Options
from .walk import Walk

__all__ = ["Confirmed", "Decision", "Tried", "candidates", "decide", "race", "tuned"]

_MOST = {"measure": 4, "patient": 8}  # at most so many walks are timed
_WITHIN = 3.0  # walks are timed only up to this many times the best walk's time by the model
_SLACK = 1.05  # how far a ratio may be missed: runs of one program differ so much, by where their memory is


# --- the walk ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """A walk that was timed: its family with grid and layouts, its seconds forward and back, and the model's."""

    name: str
    seconds: float
    model: float


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Whether the tuned transform is taken instead of the model's choice, and the ratio of their times; as text, so."""

    taken: bool
    ratio: TimeRatio = UNKNOWN

    def as_json(self) -> dict[str, Any]:
        """The result as a JSON value, for wisdom."""
        return {"taken": self.taken, "ratio": self.ratio.as_json()}

    @classmethod
    def of(cls, kept: Any) -> Confirmed:
        """Read a result of `as_json`; a ValueError if it is none."""
        if not isinstance(kept, Mapping) or kept.keys() != {"taken", "ratio"} or not isinstance(kept["taken"], bool):
            raise ValueError("a confirmation is whether a transform is taken, and its ratio")
        return cls(kept["taken"], TimeRatio.of(kept["ratio"]))

    def contradicted_by(self, ratio: float) -> bool:
        """Whether a round contradicts this, by the ratio of the tuned transform's time to the other's.

        >>> confirmed = Confirmed(True, TimeRatio(0.8, 0.75, 0.9))
        >>> confirmed.contradicted_by(0.89), confirmed.contradicted_by(0.91)
        (False, True)
        >>> [Confirmed(False).contradicted_by(ratio) for ratio in (0.92, 0.8)]
        [False, True]
        """
        if not self.taken:  # it may well have been a little faster
            return ratio < BETTER / _SLACK
        limit = _SLACK * self.ratio.ratio
        if self.ratio.high < inf:
            limit = max(limit, self.ratio.high)
        return ratio > limit

    def __str__(self) -> str:
        known = self.ratio
        if known == UNKNOWN:
            return "  tuned: as by the model" if self.taken else "  tuned: not in time; the model's choice stays"
        bounds = f" ({known.low:.2f} to {known.high:.2f})" if known.high < inf else ""
        end = "" if self.taken else ", whose choice stays"
        return f"  tuned: {known.ratio:.2f}{bounds} of the time by the model{end}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of tuning a transform; as text, whether it is faster, and a line for each timed walk.

    Attributes:
        walk: the walk that is taken.
        tried: all timed walks: the taken one first, then by time; empty if none was timed.
        confirmed: whether the tuned transform is used; else `walk` is the model's choice, and runs untuned.
    """

    walk: Walk
    tried: tuple[Tried, ...] = ()
    confirmed: Confirmed | None = None

    def as_json(self) -> dict[str, Any]:
        """The walk and the times as a JSON value, for wisdom."""
        return {
            "walk": [line.strip() for line in str(self.walk).splitlines() if not line.strip().startswith("#")],
            "grid": list(self.walk.source.grid.shape),
            "tried": [[tried.name, tried.seconds, tried.model] for tried in self.tried],
        }

    def __str__(self) -> str:
        rows = [("there and back", "timed", "by the model")]
        rows += [(f"  {tried.name}", in_seconds(tried.seconds, 3), in_seconds(tried.model)) for tried in self.tried]
        lines = [] if self.confirmed is None else [str(self.confirmed)]
        return "\n".join(lines + (table(rows, {1, 2}) if self.tried else []))


def decide(arguments: Arguments, choices: Sequence[Choice], comm: Comm, norm: Norm, options: Options) -> Decision:
    """The walk that is fastest on these ranks: remembered, or timed now. Collective.

    The result is the same on all ranks. A decision by tune="patient" also serves tune="measure".
    """
    field = candidates(choices, _MOST[options.tune])
    seconds = budget(comm, "walk", options.tune, max(map(_block_bytes, field)))
    untimed = Decision(next(iter(field)))
    if len(field) == 1 or comm.size == 1:  # on one rank all walks do the same
        return untimed
    facts = {"what": "walk", **arguments.facts(), **options.facts()}

    def find() -> dict[str, Any] | None:
        if not seconds:
            return None
        # Only tune="patient" also tunes the local transforms of every walk tried; else only those of the walk taken.
        timed = race([*field], comm, norm, options if options.tune == "patient" else options.untuned(), seconds)
        tried: list[Tried] = []
        for n in timed.order:
            choice = [*field.values()][n]
            tried.append(Tried(_named(choice), float(f"{timed.seconds(n):.4g}"), 2 * choice.seconds))
        return Decision([*field][timed.best], tuple(tried)).as_json()

    return decided(comm, facts, options.tune, partial(_read, arguments), find) or untimed


def _block_bytes(walk: Walk) -> int:
    """Bytes per rank of the larger of a walk's two ends, if they were evenly distributed."""
    dtypes = walk.dtypes()
    ends = ((walk.source, dtypes[0]), (walk.target, dtypes[-1]))
    return max(prod(dist.shape) * dtype.itemsize for dist, dtype in ends) // walk.source.grid.size


def candidates(choices: Sequence[Choice], most: int) -> dict[Walk, Choice]:
    """The walks that are worth timing, at most so many, in order of preference: the first is the model's choice."""
    every = walks(choices)
    limit = _WITHIN * min(choice.seconds for choice in every.values())
    return {walk: choice for walk, choice in [*every.items()][:most] if choice.seconds <= limit}


def race(field: Sequence[Walk], comm: Comm, norm: Norm, options: Options, seconds: float) -> Timed:
    """Time walks forward and back, and choose one; only one is bound at a time, and the first one runs. Collective."""
    return choose(comm, [partial(_time, walk, comm, norm, options) for walk in field], seconds, options.progress)


def _time(walk: Walk, comm: Comm, norm: Norm, options: Options, seconds: float, progress: Progress | None) -> float:
    """The seconds of a walk forward and back."""
    (run,) = _runs([bind_pair(walk, comm, norm, options)], comm)
    return run(seconds, progress)


def _named(choice: Choice) -> str:
    """The name of a choice's family, with grid and layouts."""
    ends = "" if choice.walk is None else f", {choice.source.layout} -> {choice.walk.target.layout}"
    return f"{choice.name} on {choice.source.grid}{ends}"


def _read(arguments: Arguments, kept: Any) -> Decision:
    """Read a decision from wisdom, which ignores it if anything is wrong with it."""
    if not isinstance(kept, Mapping) or kept.keys() != {"walk", "grid", "tried"} or not kept["tried"]:
        raise ValueError("a decision is a walk, its grid, and what was tried")
    walk = reread(arguments, "\n".join(kept["walk"]), Grid(tuple(kept["grid"])))
    rows = [(str(name), float(seconds), float(model)) for name, seconds, model in kept["tried"]]
    return Decision(walk, tuple(Tried(*row) for row in rows))


# --- the whole transform against the model's choice -------------------------------------------------------------------


def tuned(
    arguments: Arguments, choices: Sequence[Choice], usual: Walk, comm: Comm, norm: Norm, options: Options
) -> Decision:
    """The transform that is fastest on these ranks: remembered and confirmed, or timed now. Collective.

    The result is the same on all ranks. There are no `choices` if the user asks for the walk `usual`.
    """

    def decision() -> Decision:
        return decide(arguments, choices, comm, norm, options) if choices else Decision(usual)

    confirmed = _confirmed(arguments, usual, lambda: decision().walk, comm, norm, options)
    best = decision()
    if confirmed.taken:
        return replace(best, confirmed=confirmed)
    names = [_named(choice) for choice in choices if choice.walk == usual]
    return Decision(usual, tuple(sorted(best.tried, key=lambda each: each.name not in names)), confirmed)


def _confirmed(
    arguments: Arguments, usual: Walk, rival: Callable[[], Walk], comm: Comm, norm: Norm, options: Options
) -> Confirmed:
    """Whether the tuned transform is faster than the model's choice."""
    facts = {"what": "transform", **arguments.facts(), **options.facts(), "norm": norm}
    facts |= {"usual": str(usual).splitlines(), "on": usual.source.grid.shape}

    def pair_of_candidates() -> tuple[list[Candidate], float]:
        by_model = bind_pair(usual, comm, norm, options.untuned())
        pair = bind_pair(rival(), comm, norm, options, by_model.workspace.scratch)
        nbytes = max(_block_bytes(each.forward.walk) for each in (by_model, pair))
        alike = all(comm.allgather_object(pair.ways == by_model.ways))
        return [] if alike else _runs((by_model, pair), comm), budget(comm, "transform", options.tune, nbytes)

    def find() -> dict[str, Any] | None:
        both, seconds = pair_of_candidates()
        if not both:
            return Confirmed(True).as_json()
        if not seconds:
            return None
        timed = choose(comm, both, seconds)
        return Confirmed(timed.best == 1, timed.ratio(1)).as_json()

    def stands(confirmed: Confirmed) -> bool:
        both, seconds = pair_of_candidates()
        if not both or not seconds:
            return True
        rounds = (choose(comm, both, 0.0, rounds=1, each=True) for _ in range(FEWEST))
        return any(not confirmed.contradicted_by(timed.ratio(1).ratio) for timed in rounds)

    return decided(comm, facts, options.tune, Confirmed.of, find, stands) or Confirmed(False)


def _runs(pairs: Sequence[Pair], comm: Comm) -> list[Candidate]:
    """Candidates that run transforms forward and back; all share one input and one output on each rank."""
    walks, dtypes, rank = [pair.forward.walk for pair in pairs], pairs[0].forward.dtypes, comm.rank
    begins = [walk.source.local_shape(rank) for walk in walks]
    ends = [walk.target.local_shape(rank) for walk in walks]
    inputs = segments.empty((max(map(prod, begins)),), dtypes[0])
    spectra = segments.empty((max(map(prod, ends)),), dtypes[-1])
    inputs[...] = 1
    runs: list[Candidate] = []
    for pair, begin, end in zip(pairs, begins, ends, strict=True):
        x, spectrum = inputs[: prod(begin)].reshape(begin), spectra[: prod(end)].reshape(end)
        runs.append(collective_call(comm, partial(pair.there_and_back, x, spectrum)))
    return runs
