"""Confirmation: the tuned transform runs against the model's choice, and is taken only if it is faster.

Walks, kernels and methods are tuned one by one, each at a time when the machine may have been busy. So in the end both
complete transforms run forward and back in turn, on the same blocks. The lead is kept with the decision, as a promise
to later programs. Before they trust it, they run both transforms again, until one round keeps the promise. If five
rounds in a row break it, everything is tuned anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from rote.runtime.comm.protocol import Comm
from rote.runtime.tuning.autotune import Candidate, decided, fastest, ranking, timings
from rote.runtime.tuning.leads import FEWEST, UNKNOWN, Lead, lead
from rote.runtime.tuning.limits import LIMITS, Limits, budget

from ..families.choose import Choice
from ..program.fields import Pair, bind_pair
from ..request.arguments import Norm, Options
from ..request.request import Arguments
from ..walk.walk import Walk
from .walks import Decision, Tried, block_bytes, decide, named

__all__ = ["Tuned", "Verdict", "tuned"]


_SLACK = 1.05  # how far a promise may be missed: runs of one program differ so much, by where their memory is
_ROUND = Limits({}, rounds=1, each=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the tuned transform is taken instead of the model's choice, and its lead; as text, a sentence."""

    taken: bool
    lead: Lead = UNKNOWN

    def as_json(self) -> dict[str, Any]:
        """The verdict as a JSON value, for wisdom."""
        return {"taken": self.taken, "lead": self.lead.as_json()}

    @classmethod
    def of(cls, kept: Any) -> Verdict:
        """Read a verdict from a result of `as_json`.

        Raises:
            ValueError: the value is not one.

        >>> Verdict.of(Verdict(True, Lead(0.8, 0.75, 0.85)).as_json())
        Verdict(taken=True, lead=Lead(ratio=0.8, low=0.75, high=0.85))
        """
        if not isinstance(kept, Mapping) or kept.keys() != {"taken", "lead"} or not isinstance(kept["taken"], bool):
            raise ValueError("a verdict is whether a transform is taken, and its lead")
        return cls(kept["taken"], Lead.of(kept["lead"]))

    def broken_by(self, ratio: float) -> bool:
        """Whether a round contradicts the verdict, by the ratio of the tuned transform's time to the other's.

        >>> verdict = Verdict(True, Lead(0.8, 0.75, 0.9))
        >>> verdict.broken_by(0.89), verdict.broken_by(0.91), Verdict(False, verdict.lead).broken_by(0.9)
        (False, True, True)
        """
        if not self.taken:
            return ratio < 1 / _SLACK
        limit = _SLACK * self.lead.ratio
        if self.lead.high < inf:
            limit = max(limit, self.lead.high)
        return ratio > limit

    def __str__(self) -> str:
        known = self.lead
        if known == UNKNOWN:
            return "  tuned: as by the model" if self.taken else "  tuned: not in time; the model's choice stays"
        bounds = f" ({known.low:.2f} to {known.high:.2f})" if known.high < inf else ""
        end = "" if self.taken else ", whose choice stays"
        return f"  tuned: {known.ratio:.2f}{bounds} of the time by the model{end}"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of tuning a transform; as text, the verdict and the times behind it.

    Attributes:
        walk: the walk that is taken.
        options: the options with which it runs; without tuning, if the model's choice stays.
        verdict: the verdict on the tuned transform.
        tried: the timed walks, starting with the one that is taken; empty if none was timed.
    """

    walk: Walk
    options: Options
    verdict: Verdict
    tried: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        if not self.tried:
            return str(self.verdict)
        return f"{self.verdict}\n{Decision(self.walk, self.tried)}"


def tuned(
    arguments: Arguments, choices: Sequence[Choice], usual: Walk, comm: Comm, norm: Norm, options: Options
) -> Tuned:
    """The transform that is fastest on these ranks: remembered and confirmed, or timed now. Collective.

    The result is the same on all ranks.

    Args:
        arguments: the arguments of the transform.
        choices: the walks to choose from; none if the user asks for the walk `usual`.
        usual: the model's choice.
        options: the user's options.
    """

    def decision() -> Decision:
        if not choices:
            return Decision(usual, ())
        return decide(arguments, choices, options.priced_machine(comm), comm, norm, options)

    verdict = _verdict(arguments, usual, lambda: decision().walk, comm, norm, options)
    best = decision()
    if verdict.taken:
        return Tuned(best.walk, options, verdict, best.tried)
    names = [named(choice) for choice in choices if choice.walk == usual]
    tried = tuple(sorted(best.tried, key=lambda each: each.name not in names))
    return Tuned(usual, options.untuned(), verdict, tried)


def _verdict(
    arguments: Arguments, usual: Walk, rival: Callable[[], Walk], comm: Comm, norm: Norm, options: Options
) -> Verdict:
    """Whether the tuned transform is faster than the model's choice."""
    facts = {"what": "transform", **arguments.facts(), **options.facts(), "norm": norm}
    facts |= {"usual": str(usual).splitlines(), "on": usual.source.grid.shape}

    def turns() -> tuple[list[Candidate], float]:
        by_model = bind_pair(usual, comm, norm, options.untuned())
        pair = bind_pair(rival(), comm, norm, options, by_model.workspace.scratch)
        pairs = by_model, pair
        nbytes = max(block_bytes(each.forward.walk) for each in pairs)
        alike = all(comm.allgather_object(pair.ways == by_model.ways))
        candidates = [] if alike else _turns(pairs, comm)
        return candidates, budget(comm, "transform", options.tune, nbytes)

    def find() -> dict[str, Any] | None:
        candidates, seconds = turns()
        if not candidates:
            return Verdict(True).as_json()
        if not seconds:
            return None
        times = timings(comm, candidates, seconds, LIMITS["transform"])
        return Verdict(ranking(times, LIMITS["transform"])[0] == 1, lead(times[1], times[0])).as_json()

    def stands(verdict: Verdict) -> bool:
        candidates, seconds = turns()
        if not candidates or not seconds:
            return True
        rounds = (timings(comm, candidates, 0.0, _ROUND) for _ in range(FEWEST))
        return any(not verdict.broken_by(lead(times[1], times[0]).ratio) for times in rounds)

    return decided(comm, facts, options.tune, Verdict.of, find, stands) or Verdict(False)


def _turns(pairs: Sequence[Pair], comm: Comm) -> list[Candidate]:
    """Candidates that run transforms forward and back; all share one input and one output on each rank."""
    walks, dtypes, rank = [pair.forward.walk for pair in pairs], pairs[0].forward.dtypes, comm.rank
    begins = [walk.source.local_shape(rank) for walk in walks]
    ends = [walk.target.local_shape(rank) for walk in walks]
    inputs, spectra = np.ones(max(map(prod, begins)), dtypes[0]), np.ones(max(map(prod, ends)), dtypes[-1])
    candidates: list[Candidate] = []
    for pair, begin, end in zip(pairs, begins, ends, strict=True):
        x, spectrum = inputs[: prod(begin)].reshape(begin), spectra[: prod(end)].reshape(end)
        candidates.append(partial(fastest, comm, partial(pair.there_and_back, x, spectrum)))
    return candidates
