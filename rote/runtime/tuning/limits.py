"""The limits of autotuning: how long candidates of each sort are timed, and by how much one of them must lead.

All timing together may have a limit as well, which contests share. All ranks agree on the time that is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Literal, get_args

import numpy as np

from ...errors import PlanError
from ..comm.protocol import Comm
from .leads import FEWEST

__all__ = ["ENDLESS", "LIMITS", "TUNES", "Limits", "TimeLimit", "Tune", "allowed", "budget", "check_tune", "time_limit"]
__all__ += ["within"]

Tune = Literal["model", "measure", "patient"]
TUNES: tuple[Tune, ...] = get_args(Tune)
"""How to find a fast candidate: by the model, at once; by timing; or patiently, with more candidates, for longer."""

ENDLESS = 1 << 60  # rounds


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds for timing candidates of one sort and for choosing one of them.

    Attributes:
        seconds: by `Tune`, the most time for all candidates, about; a turn that has begun is finished.
        rounds: the most rounds of turns.
        enough: rounds after which only the first and the fastest go on, until one is known to lead.
        each: whether every candidate has a turn, even if time runs out; the first one always has.
        behind: a candidate has another turn if it takes at most so many times as long as the best, after the first
            round and after later ones.
        better: the part of the first candidate's time below which another one must stay to be chosen.
    """

    seconds: dict[str, float]
    rounds: int = ENDLESS
    enough: int = ENDLESS
    each: bool = False
    behind: tuple[float, float] = (inf, inf)
    better: float = 1.0


# Measured with complex128 on 2 ranks of one process, on 2 cores that other programs used as well (load 4 to 8).
LIMITS = {
    "method": Limits(
        # A slab swap by both methods of a node: 55 rounds in 0.5 s at 64 cubed, 4 at 128 cubed.
        {"measure": 2.0, "patient": 5.0},
        rounds=40,
        enough=FEWEST,
        each=True,  # there are a handful, each as long as the swap itself: 10 to 120 ms a round
        better=0.97,
    ),
    "kernel": Limits(
        # Each field of a slab walk's kernels gets 0.75 s of the 10 s: 15 turns of 16 ms, 5 twice, 2 from then on.
        {"measure": 10.0, "patient": 30.0},
        rounds=30,
        enough=3,
        # Of 4 equal kernels, the worst first reading is 2.4 times the best reading of all (median of 24 contests).
        behind=(3.0, 1.5),
        better=0.96,
    ),
    "walk": Limits(
        # Forward and backward, with binding: all turns of 3 walks take 4.5 s at 64 cubed, 7.1 s at 128 cubed.
        {"measure": 10.0, "patient": 60.0},
        rounds=12,
        enough=2,  # two turns of one walk differ by a factor of 1.04 to 1.57: one alone may have been disturbed
        behind=(1.5, 1.5),  # a turn is the fastest of up to eight calls, so even the first one counts
        better=0.97,  # two turns of one walk are 4 % apart at best
    ),
    "transform": Limits(
        # The tuned transform against the model's choice: 5 rounds take 5 s at 256 cubed, 40 ms at 64 cubed.
        {"measure": 4.0, "patient": 12.0},
        rounds=40,
        enough=FEWEST,
        better=0.98,
    ),
}
"""The thresholds of each sort of candidates."""

_LARGE, _LONGER = 1 << 26, 4.0  # a contest takes longer for blocks above so many bytes; at most so many times as long


def budget(comm: Comm, sort: str, tune: str, nbytes: int = 0) -> float:
    """The seconds that a contest may take: those of its sort, up to four times as many for large blocks. Collective.

    A `time_limit` may reduce them.

    Args:
        sort: a key of `LIMITS`.
        nbytes: bytes of the largest block, on all ranks.
    """
    return allowed(comm, min(_LONGER, max(1.0, nbytes / _LARGE)) * LIMITS[sort].seconds[tune])


def check_tune(tune: str) -> None:
    """Refuse a value that is not one of `TUNES`.

    Raises:
        PlanError: it is not.
    """
    if tune not in TUNES:
        raise PlanError(f"tune is one of {', '.join(TUNES)}; not {tune!r}")


class TimeLimit:
    """A limit of so many seconds from now on; its text is this number of seconds."""

    __slots__ = ("_until", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds
        self._until = perf_counter() + seconds

    @property
    def left(self) -> float:
        """The seconds left by this rank's clock; below 0 after the limit."""
        return self._until - perf_counter()

    def __str__(self) -> str:
        return f"{self.seconds:g} s"


within: ContextVar[TimeLimit | None] = ContextVar("within", default=None)
"""The limit in force, if there is one."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit all timing in the context to so many seconds together, about; None is no limit. The same on all ranks.

    Inside another limit, that one remains in force.
    """
    limit = within.get()
    if limit is None and seconds is not None:
        limit = TimeLimit(seconds)
    token = within.set(limit)
    try:
        yield
    finally:
        within.reset(token)


def allowed(comm: Comm, seconds: float) -> float:
    """The seconds, up to `seconds`, that a contest may take: at most half of those left, as others follow. Collective.

    The same on all ranks, by the clock of the rank with the least time left. 0 if nothing is left.

    >>> from rote.runtime import world
    >>> with time_limit(3.0):
    ...     1.4 < allowed(world(), 60.0) <= 1.5, allowed(world(), 1.0)
    (True, 1.0)
    """
    limit = within.get()
    if limit is None:
        return seconds
    left = np.array([limit.left])
    comm.allreduce_in_place(left, "min")
    return max(0.0, min(seconds, float(left[0]) / 2))
