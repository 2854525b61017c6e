"""The limits of autotuning: how long candidates of each sort are timed, and by how much one of them must lead.

All timing together may have a limit, too, which contests share; all ranks agree on what is left of it.
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

__all__ = [
    "ENDLESS",
    "LIMITS",
    "TUNES",
    "Limits",
    "TimeLimit",
    "Tune",
    "allowed",
    "budget",
    "check_tune",
    "time_limit",
    "within",
]

Tune = Literal["model", "measure", "patient"]
TUNES: tuple[Tune, ...] = get_args(Tune)
"""How what is fast is found: by what is usual, at once; or by timing; patiently, of more ways, for longer."""

ENDLESS = 1 << 60  # rounds


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds by which candidates of one sort are timed, and one of them is taken.

    Attributes:
        seconds: by `Tune`, the most that all candidates may be timed for, about; a turn that is begun is ended.
        rounds: of turns, at most.
        enough: rounds after which only the first and the fastest go on, until one is known to lead.
        each: whether every candidate has a turn, whatever it takes; the first one always has.
        behind: how many times as long as the best a candidate may take, after the first round and after later ones, to
            have another turn.
        better: part of the first candidate's time that another one must stay below to be taken.
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
        # Of 10 s, each field of the kernels of a slab walk has 0.75 s: 15 turns of 16 ms, 5 twice, 2 from then on.
        {"measure": 10.0, "patient": 30.0},
        rounds=30,
        enough=3,
        # Of 4 equal kernels, the worst first reading is 2.4 times the best reading of all (median of 24 contests).
        behind=(3.0, 1.5),
        better=0.96,
    ),
    "walk": Limits(
        # There and back, with binding: all turns of 3 walks in 4.5 s at 64 cubed, in 7.1 s at 128 cubed.
        {"measure": 10.0, "patient": 60.0},
        rounds=12,
        enough=2,  # two turns of one walk differ by a factor of 1.04 to 1.57: one alone may have been disturbed
        behind=(1.5, 1.5),  # a turn is the fastest of up to eight calls, so that the first one counts as any other
        better=0.97,  # two turns of one walk are 4 % apart at best
    ),
    "transform": Limits(
        # All that was tuned, against the model's choice: 5 rounds take 5 s at 256 cubed, 40 ms at 64 cubed.
        {"measure": 4.0, "patient": 12.0},
        rounds=40,
        enough=FEWEST,
        better=0.98,
    ),
}
"""The thresholds of all that is timed."""

_LARGE, _LONGER = 1 << 26, 4.0  # bytes of a block from which on it may take longer, and how many times so long at most


def budget(comm: Comm, sort: str, tune: str, nbytes: int = 0) -> float:
    """The seconds that a contest may take: those of its sort, for large blocks up to four times as many. Collective.

    A `time_limit` leaves less.

    Args:
        sort: a key of `LIMITS`.
        nbytes: of the largest block, on all ranks.
    """
    return allowed(comm, min(_LONGER, max(1.0, nbytes / _LARGE)) * LIMITS[sort].seconds[tune])


def check_tune(tune: str) -> None:
    """Refuse what is no way to find what is fast.

    Raises:
        PlanError: it is none.
    """
    if tune not in TUNES:
        raise PlanError(f"tune is one of {', '.join(TUNES)}; not {tune!r}")


class TimeLimit:
    """So many seconds from now on; as text, how many they were."""

    __slots__ = ("_until", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds
        self._until = perf_counter() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left by this rank's clock; below 0 if they are over."""
        return self._until - perf_counter()

    def __str__(self) -> str:
        return f"{self.seconds:g} s"


within: ContextVar[TimeLimit | None] = ContextVar("within", default=None)
"""The limit that is in force, if there is one."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let all timing inside take so many seconds together, about; as long as it likes if None. Alike on all ranks.

    Inside of another limit, that one goes on.
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
    """The part of some seconds that a contest may take: at most half of what is left, for others follow. Collective.

    The same on all ranks: by the clock of the one that is latest. 0 if nothing is left.

    >>> from rote.runtime import world
    >>> with time_limit(3.0):
    ...     1.4 < allowed(world(), 60.0) <= 1.5, allowed(world(), 1.0)
    (True, 1.0)
    """
    limit = within.get()
    if limit is None:
        return seconds
    left = np.array([limit.left])
    comm.allreduce(left, "min")
    return max(0.0, min(seconds, float(left[0]) / 2))
