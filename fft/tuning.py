"""How a transform is made fast: what is timed, and what runs its parts."""

from __future__ import annotations

from dataclasses import dataclass

from rote.errors import LayoutError

from .kernels import TUNES

__all__ = ["USUAL", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a user asks for beside the transform itself; the results are the same.

    Attributes:
        tune: how plans are found, a key of `TUNES`.
        threads: for the local transforms of one rank.
        method: how messages travel, one of `rote.runtime.methods`, or "auto".

    Raises:
        LayoutError: there is no such `tune`, or no thread.
    """

    tune: str = "model"
    threads: int = 1
    method: str = "auto"

    def __post_init__(self) -> None:
        if self.tune not in TUNES:
            raise LayoutError(f"tune is one of {', '.join(TUNES)}; not {self.tune!r}")
        if self.threads < 1:
            raise LayoutError(f"a rank has one thread or more, not {self.threads}")


USUAL = Tuning()
"""What is taken where a user says nothing."""
