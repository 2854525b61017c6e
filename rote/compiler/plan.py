"""Plans: a transition between two distributions as a sequence of steps, a value that prints and travels.

A plan knows no rank: every rank makes the same one, and finds its own messages in it when it is bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import PlanError
from ..layout.distribution import Distribution, distribute
from ..layout.layout import as_layout
from .cost import Cost, lower_bound, steps_cost
from .explain import explain
from .machine import Machine
from .step import Step, as_dtype
from .text import read, write
from .verify import verify

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a tensor goes from one distribution to another. Made by `compile`.

    >>> from rote.compiler.compile import compile
    >>> plan = compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2, dtype="f8")
    >>> print(plan)
    block[(0),()] -> block[(),(0)] of (6, 4) float64 on grid 2
      1. alltoall over 0: block[(0),()] -> block[(),(0)]
    >>> plan.cost.bytes, plan.cost.messages, plan.lower_bound
    (48, 1, 48)
    >>> Plan.from_text(str(plan)) == Plan.from_json(plan.to_json()) == plan
    True
    """

    source: Distribution
    target: Distribution
    dtype: np.dtype[Any]
    steps: tuple[Step, ...]
    machine: Machine = Machine()

    @property
    def cost(self) -> Cost:
        """What the plan costs on its machine: seconds, bytes, messages, peak bytes."""
        return steps_cost(self.source, self.target, self.steps, self.dtype.itemsize, self.machine)

    @property
    def lower_bound(self) -> int:
        """Bytes that some rank must receive, whatever the plan: max over ranks of |need minus have|."""
        return lower_bound(self.source, self.target) * self.dtype.itemsize

    def explain(self) -> str:
        """A table of the steps and what they cost, and how far the plan is from the lower bound.

        >>> from rote.compiler.compile import compile
        >>> print(compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16").explain())
        block[(0),()] -> block[(),(0)]   (64, 64) complex128 on grid 4
          step  kind      over  layout         received  messages
                                block[(0),()]
          1     alltoall  0     block[(),(0)]  12.0 KiB         3
        each rank receives at most 12.0 KiB in 3 messages, lower bound 12.0 KiB (ratio 1.00)
        peak 56.0 KiB on a rank, about 10.5 us
        """
        source, target = self.source, self.target
        head = f"{source.layout} -> {target.layout}   {source.shape} {self.dtype} on grid {source.grid}"
        return explain(head, self.steps, self.dtype.itemsize, self.cost, self.lower_bound)

    def verify(self) -> None:
        """Prove from the index sets alone that every needed element arrives exactly once.

        Raises:
            PlanError: it does not; the text names the step, the rank and the element.
        """
        verify(self.source, self.target, self.steps, self.dtype)

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(
            {
                "shape": self.source.shape,
                "grid": self.source.grid.shape,
                "dtype": self.dtype.str,
                "machine": self.machine.as_dict(),
                "source": str(self.source.layout),
                "target": str(self.target.layout),
                "steps": [
                    {
                        "kind": step.kind,
                        "before": str(step.before.layout),
                        "after": str(step.after.layout),
                        "grid_modes": step.grid_modes,
                    }
                    for step in self.steps
                ],
            }
        )

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that a JSON text holds.

        Raises:
            PlanError: the text is no plan.
        """
        try:
            return _plan(json.loads(text))
        except (KeyError, TypeError, ValueError) as error:
            raise PlanError(
                f"this text is no plan ({type(error).__name__}: {error}); plan.to_json() writes one"
            ) from None

    @staticmethod
    def from_text(text: str, machine: Machine | None = None) -> Plan:
        """The plan that a text says, as `str(plan)` prints it. It is read, not proved: `verify` does that.

        Args:
            text: of a plan; a newline may end it.
            machine: the one that the plan is for, which no text tells; the default machine if it is None.

        Raises:
            PlanError: the text is not one that a plan prints, or its steps do not lead from the source to the target.
            NotationError: a layout in it is not in the language.
            LayoutError: a layout in it does not fit the shape or the grid.

        >>> lines = ("[(0)] -> [()] of (5,) float64 on grid 2", "  1. allgather over 0: [(0)] -> [()]")
        >>> Plan.from_text("\\n".join(lines)).cost.bytes
        24
        """
        return Plan(*read(text), machine or Machine())

    def __str__(self) -> str:
        return write(self.source, self.target, self.dtype, self.steps)


def _plan(tree: Mapping[str, Any]) -> Plan:
    def on(layout: str) -> Distribution:
        return distribute(as_layout(layout), tree["shape"], tuple(tree["grid"]))

    steps = tuple(
        Step(str(step["kind"]), on(step["before"]), on(step["after"]), tuple(step["grid_modes"]))
        for step in tree["steps"]
    )
    machine = Machine(**tree["machine"])
    return Plan(on(tree["source"]), on(tree["target"]), as_dtype(tree["dtype"]), steps, machine)
