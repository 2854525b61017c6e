"""The options that make a transform fast: what is timed, and what runs its parts."""

from __future__ import annotations

from dataclasses import dataclass

from rote.errors import LayoutError
from rote.layout.grid import integer
from rote.runtime.autotune import TUNES
from rote.runtime.exchange.registry import check_method

__all__ = ["USUAL", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The options of a transform that change its speed, not its result.

    Attributes:
        tune: how configs are found, one of `TUNES`.
        threads: for the local transforms of one rank.
        method: how messages travel, one of `rote.runtime.exchange.registry`, or "auto".

    Raises:
        LayoutError: there is no such `tune`, or no thread.
        CommError: there is no such method.
    """

    tune: str = "model"
    threads: int = 1
    method: str = "auto"

    def __post_init__(self) -> None:
        if self.tune not in TUNES:
            raise LayoutError(f"tune is one of {', '.join(TUNES)}; not {self.tune!r}")
        if integer(self.threads, "threads") < 1:
            raise LayoutError(f"a rank has one thread or more, not {self.threads}")
        check_method(self.method)


USUAL = Tuning()
"""What is taken where a user says nothing."""
