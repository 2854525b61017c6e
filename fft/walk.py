"""Walks: a parallel transform as states and edges. A stage is a layout and what is transformed there; between two
stages the tensor moves. A walk is a value: it prints, it can be turned round, and it knows no rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rote.compiler.compile import compile
from rote.compiler.plan import Plan
from rote.layout.distribution import Distribution

from .kernels import complex_dtype, real_dtype

__all__ = ["Stage", "Walk"]

_INVERSE = {"fft": "ifft", "ifft": "fft", "rfft": "irfft", "irfft": "rfft"}


@dataclass(frozen=True, slots=True)
class Stage:
    """A layout, and the transform of modes that are whole in it.

    Attributes:
        before, after: the distributions on both sides of the transform; the shape differs if it is a real one.
        kind: "fft", "ifft", "rfft" or "irfft"; a real transform is real along the last of `axes`.
        axes: the modes that are transformed, in NumPy's order; () if the tensor only rests here.
    """

    before: Distribution
    after: Distribution
    kind: str
    axes: tuple[int, ...]

    def __str__(self) -> str:
        shape = f"  {self.before.shape} -> {self.after.shape}" if self.before.shape != self.after.shape else ""
        done = f"{self.kind} {', '.join(map(str, self.axes))}" if self.axes else "rest"
        return f"{self.before.layout}: {done}{shape}"


@dataclass(frozen=True, slots=True)
class Walk:
    """A sequence of stages, and the moves between them.

    Attributes:
        stages: in order; the tensor moves from each one's `after` to the next one's `before`.
        dtype: of the input.
    """

    stages: tuple[Stage, ...]
    dtype: np.dtype[Any]

    @property
    def source(self) -> Distribution:
        """Where the walk starts."""
        return self.stages[0].before

    @property
    def target(self) -> Distribution:
        """Where it ends."""
        return self.stages[-1].after

    @property
    def kind(self) -> str:
        """What is transformed in all: "fft", "ifft", "rfft" or "irfft"."""
        return max((stage.kind for stage in self.stages), key=lambda kind: "r" in kind)

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype at the start and after every stage."""
        found = [self.dtype]
        for stage in self.stages:
            kind = stage.kind if stage.axes else "rest"
            change = {"rfft": complex_dtype, "irfft": real_dtype}.get(kind)
            found.append(change(found[-1]) if change else found[-1])
        return tuple(found)

    @property
    def moves(self) -> tuple[Plan, ...]:
        """The plans of the transitions between stages, in order."""
        return tuple(
            compile(here.after, there.before, dtype)
            for here, there, dtype in zip(self.stages, self.stages[1:], self.dtypes()[1:], strict=False)
        )

    def inverse(self) -> Walk:
        """The walk back: every stage and every move turned round."""
        back = tuple(Stage(s.after, s.before, _INVERSE[s.kind], s.axes) for s in reversed(self.stages))
        return Walk(back, self.dtypes()[-1])

    def __str__(self) -> str:
        lines = [f"  {self.stages[0]}"]
        for stage, move in zip(self.stages[1:], self.moves, strict=True):
            lines += [f"    {_arrow(move)}", f"  {stage}"]
        return "\n".join(lines)


def _arrow(move: Plan) -> str:
    return "; ".join(str(step).split(":", 1)[0] for step in move.steps) or "stay"
