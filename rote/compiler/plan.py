"""Plans: a transition between two distributions as a sequence of steps, a value that prints and travels.

A plan knows no rank: every rank makes the same one, and finds its own messages in it when it is bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution, distribute
from ..layout.layout import as_layout
from .machine import Machine

if TYPE_CHECKING:
    from .cost import Cost

__all__ = ["LOCAL", "Plan", "Step", "as_dtype"]

LOCAL = ("slice", "zero_fill", "relayout")
"""The kinds of steps in which no rank talks to another."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: one movement from a distribution to another.

    Attributes:
        kind: "slice", "zero_fill" or "relayout" (local), or MPI's name of a collective: "allgather", "alltoall",
            "permute", "reduce_scatter", "allreduce", "reduce", "broadcast", "scatter", "gather"; "exchange" is the
            general all-to-all.
        before, after: the distributions on both sides.
        grid_modes: the grid modes over which ranks talk; ranks with other coordinates elsewhere do not meet.
    """

    kind: str
    before: Distribution
    after: Distribution
    grid_modes: tuple[int, ...]

    def __str__(self) -> str:
        over = "" if self.kind in LOCAL else f" over {','.join(map(str, self.grid_modes))}"
        return f"{self.kind}{over}: {self.before.layout} -> {self.after.layout}"


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
    >>> Plan.from_json(plan.to_json()) == plan
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
        from .cost import plan_cost

        return plan_cost(self)

    @property
    def lower_bound(self) -> int:
        """Bytes that some rank must receive, whatever the plan: max over ranks of |need minus have|."""
        from .cost import lower_bound

        return lower_bound(self.source, self.target) * self.dtype.itemsize

    def explain(self) -> str:
        """A table of the steps and what they cost, and how far the plan is from the lower bound."""
        from .explain import explain

        return explain(self)

    def verify(self) -> None:
        """Prove from the index sets alone that every needed element arrives exactly once.

        Raises:
            PlanError: it does not; the text names the step, the rank and the element.
        """
        from .verify import verify

        verify(self)

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

    def __str__(self) -> str:
        lines = [
            f"{self.source.layout} -> {self.target.layout} "
            f"of {self.source.shape} {self.dtype} on grid {self.source.grid}"
        ]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join(lines if self.steps else [*lines, "  nothing to do: every rank holds its block already"])


def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A dtype that Rote moves: bool, any integer, and real or complex numbers of single precision or more.

    Raises:
        PlanError: the dtype is another.
    """
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise PlanError(f"{dtype!r} is no dtype; write 'f8', 'c16', …") from None
    if found.kind not in "biufc" or found == np.float16:
        raise PlanError(f"Rote moves bool, integers, f4, f8, longdouble and their complex kin, not {found}")
    return found.newbyteorder("=")


def _plan(tree: Mapping[str, Any]) -> Plan:
    def on(layout: str) -> Distribution:
        return distribute(as_layout(layout), tree["shape"], tuple(tree["grid"]))

    steps = tuple(
        Step(str(step["kind"]), on(step["before"]), on(step["after"]), tuple(step["grid_modes"]))
        for step in tree["steps"]
    )
    machine = Machine(**tree["machine"])
    return Plan(on(tree["source"]), on(tree["target"]), as_dtype(tree["dtype"]), steps, machine)
