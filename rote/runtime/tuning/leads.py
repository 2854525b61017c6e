"""Leads: by how much one candidate is faster than another, and how certain that is.

The machine's speed may change by a factor of two within minutes, and other work takes the cores away in bursts. The
ratio of two turns taken one after the other stays the same, except in rounds that a burst affects, on either side. So
the only assumption about the noise is that it favours neither candidate. The bounds are those of the sign test, order
statistics of the ratios (Hollander, Wolfe and Chicken 2014, Nonparametric Statistical Methods, sections 3.4 to 3.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb, inf
from typing import Any

__all__ = ["FEWEST", "UNKNOWN", "Lead", "lead"]

FEWEST = 5
"""The fewest rounds for a certain lead: so many equal signs in a row occur by chance once in 2**5 times."""

_DOUBT = 1 / 2**FEWEST  # how often a bound is wrong, at most


@dataclass(frozen=True, slots=True)
class Lead:
    """The ratio of a candidate's time to that of the first one; the candidate leads if it is below 1.

    Attributes:
        ratio: the median of all rounds; 1 if there were none.
        low, high: its bounds, each wrong at most once in 32 times; 0 and infinite if there were too few rounds.
    """

    ratio: float = 1.0
    low: float = 0.0
    high: float = inf

    def as_json(self) -> dict[str, float]:
        """The lead as a JSON object; a bound that is not known is left out."""
        return {name: float(f"{value:.4g}") for name, value in asdict(self).items() if 0 < value < inf}

    @classmethod
    def of(cls, kept: Any) -> Lead:
        """The lead of a JSON object from `as_json`.

        Raises:
            ValueError: the object is not one of these.

        >>> Lead.of(Lead(0.5, 0.4, 0.6).as_json()), Lead.of({})
        (Lead(ratio=0.5, low=0.4, high=0.6), Lead(ratio=1.0, low=0.0, high=inf))
        """
        if not isinstance(kept, Mapping) or not kept.keys() <= {"ratio", "low", "high"}:
            raise ValueError("a lead is a ratio and its bounds")
        if not all(type(value) in (int, float) and 0 < value < inf for value in kept.values()):
            raise ValueError("ratios are positive numbers")
        return cls(**kept)


UNKNOWN = Lead()
"""The lead of a candidate that has not been timed."""


def lead(times: Sequence[float], first: Sequence[float]) -> Lead:
    """The lead of a candidate over the first one, from the turns of both in the same rounds.

    Args:
        times, first: seconds per round; rounds that only one of them had are left out. A failed turn took forever.

    >>> lead([1.0, 1.1, 5.0, 1.0, 1.2, 1.0], [2.0, 2.2, 2.0, 2.0, 2.4, 6.0])
    Lead(ratio=0.5, low=0.16666666666666666, high=2.5)
    >>> lead([1.0] * 4, [2.0] * 4)
    Lead(ratio=0.5, low=0.0, high=inf)
    """
    ratios = sorted(inf if mine == inf else mine / its for mine, its in zip(times, first, strict=False))
    if not ratios:
        return UNKNOWN
    rounds = len(ratios)
    ratio = (ratios[(rounds - 1) // 2] + ratios[rounds // 2]) / 2
    tail, beyond = 0.0, 0  # the chance of so few signs of one kind; the number of ratios beyond either bound
    while (tail := tail + comb(rounds, beyond) / 2**rounds) <= _DOUBT:
        beyond += 1
    return Lead(ratio, ratios[beyond - 1], ratios[-beyond]) if beyond else Lead(ratio)
