"""Turns of calls that need no other rank, as the autotuner takes them."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf
from time import perf_counter

from rote.runtime.tuning.autotune import Progress

__all__ = ["Turns"]

_LEAST = 2e-4  # seconds: shorter calls are made several times for one reading of the clock
_AGAIN = 2  # readings of a turn beside its first
_SHORT = 2e-3  # seconds: shorter calls are made again at first


class Turns:
    """The turns of a call that needs no other rank: of a short one, many times for one reading of the clock.

    At first it is made as it comes, and again if it is short; later on a turn is the fastest of three readings, where
    there is time. It takes forever if it fails.
    """

    __slots__ = ("_call", "_often")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self._often = call, 0

    def __call__(self, seconds: float, progress: Progress | None) -> float:
        try:
            time = self._timed(self._often or 1)
            if not self._often and time < _SHORT:
                time = self._timed(1)
            elif self._often and _AGAIN * self._often * time < seconds:
                time = min(time, *(self._timed(self._often) for _ in range(_AGAIN)))
        except Exception:  # whatever a library may refuse
            return inf
        self._often = ceil(_LEAST / time)
        return time

    def _timed(self, often: int) -> float:
        start = perf_counter()
        for _ in range(often):
            self._call()
        return (perf_counter() - start) / often
