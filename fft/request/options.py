"""The options that make a transform fast: what is timed, and what runs its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from numbers import Real

from rote.compiler.machine import Machine, as_machine
from rote.errors import LayoutError
from rote.layout.grid import integer
from rote.runtime.comm.protocol import Comm
from rote.runtime.exchange.registry import check_method
from rote.runtime.tuning.autotune import Progress
from rote.runtime.tuning.calibrate import known_machine
from rote.runtime.tuning.limits import TUNES, Tune

__all__ = ["USUAL", "Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a transform that change its speed, and not its result but for the precision of `wire`.

    Attributes:
        tune: how configs are found, one of `TUNES`.
        threads: for the local transforms of one rank.
        method: how messages travel, one of `rote.runtime.exchange.registry`, or "auto".
        machine: on which "auto" takes the cheapest walk; the one that was measured under as many ranks, or the usual
            one, if None.
        progress: called with the part that is done, from 0 to 1, while walks are timed.
        tune_seconds: the most that all timing may take, about; None for the usual time.
        wire: "f4" if elements are rounded to single precision while they travel.

    Raises:
        LayoutError: there is no such `tune`, no thread, or no time; or time for a `tune` that takes none.
        CommError: there is no such method.
    """

    tune: Tune = "model"
    threads: int = 1
    method: str = "auto"
    machine: Machine | None = None
    progress: Progress | None = None
    tune_seconds: float | None = None
    wire: str | None = None

    def __post_init__(self) -> None:
        if self.tune not in TUNES:
            raise LayoutError(f"tune is one of {', '.join(TUNES)}; not {self.tune!r}")
        if integer(self.threads, "threads") < 1:
            raise LayoutError(f"a rank has one thread or more, not {self.threads}")
        check_method(self.method)
        as_machine(self.machine)
        if self.tune_seconds is None:
            return
        if not isinstance(self.tune_seconds, Real) or not 0 < self.tune_seconds < inf:
            raise LayoutError(f"tune_seconds is a number of seconds, more than 0; not {self.tune_seconds!r}")
        if self.tune == "model":
            raise LayoutError("tune_seconds limits what is timed, and tune='model' times nothing; write tune='measure'")

    def priced_machine(self, comm: Comm) -> Machine:
        """The machine by which walks are ranked: the one that is given, or that was measured, or the usual. Collective.

        As messages of these options find it: half of the bytes take half of the time.
        """
        machine = self.machine or known_machine(comm)
        if self.wire is None:
            return machine
        times = machine.byte_time
        return replace(machine, byte_time=tuple(t / 2 for t in times) if isinstance(times, tuple) else times / 2)


USUAL = Options()
"""The options where a user says nothing."""
