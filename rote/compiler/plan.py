"""Plans: the steps of a transition between two distributions, as a value that can be printed and sent.

A plan belongs to no rank: every rank makes the same one, and finds its own messages when it binds the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import PlanError, counted
from ..late import late
from ..layout.grid import integers
from ..layout.layout import Distribution, as_layout, distribute
from .cost import Cost, lower_bound, steps_cost
from .explain import explain, grids, in_bytes, in_seconds, kinds, on_machine, versus
from .machine import DEFAULT, Machine, as_machine
from .search import Route, Search
from .step import Step, as_dtype, as_kind, check_steps, error_of, sent_as, wire_of
from .verify.certificate import verify

__all__ = ["Plan"]

_LOOKED_AT = 2_000  # the most steps to try for a runner-up, so that explaining takes no longer than compiling


@dataclass(frozen=True, slots=True)
class Plan:
    """The proved steps that move a tensor from one distribution to another. `compile` makes it.

    Attributes:
        source, target: the distributions at both ends.
        dtype: the dtype of the elements.
        steps: the steps from the source to the target; empty if there is nothing to do.
        machine: the machine for which the plan is the cheapest.
        optimality: "optimal", or "best found" if the space was too large to search (either may be "within" a bound on
            memory), or "as given" by a text.

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
    machine: Machine = DEFAULT
    optimality: str = field(default="as given", compare=False)

    @property
    def cost(self) -> Cost:
        """The cost on the plan's machine: seconds, and the bytes, messages and peak bytes of the busiest rank."""
        return steps_cost(self.source, self.target, self.steps, self.dtype.itemsize, self.machine)

    @property
    def lower_bound(self) -> int:
        """The bytes that some rank must receive in any plan: the most that one rank needs and does not hold.

        Elements count with the bytes in which they travel: half of their size if the plan sends them rounded.
        """
        wire = wire_of(self.steps)
        sent = self.dtype if wire is None else wire
        return lower_bound(self.source, self.target) * sent.itemsize

    def explain(self) -> str:
        """A table of the steps with their cost, the distance from the lower bound, and the runner-up.

        >>> from rote.compiler.compile import compile
        >>> print(compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4, dtype="c16").explain())
        block[(0),()] -> block[(),(0)]   (64, 64) complex128 on grid 4
          step  kind      over  layout         received  rounds      peak  rule
                                block[(0),()]
          1     alltoall  0     block[(),(0)]  12.0 KiB       3  56.0 KiB  move entries, pairwise
        each rank receives at most 12.0 KiB in 3 messages, lower bound 12.0 KiB (ratio 1.00)
        peak 56.0 KiB on a rank, about 20 us on the default machine; optimal
        runner-up: allgather over 0, slice over 0
          about 39 us, 1.93 times as long: a rank receives 48.0 KiB (not 12.0 KiB), holds 176.0 KiB (not 56.0 KiB)
        """
        source, target, cost, bound = self.source, self.target, self.cost, self.lower_bound
        head = f"{source.layout} -> {target.layout}   {source.shape} {self.dtype} on grid {grids(source, target)}"
        lines = explain(head, (source, target), self.steps, self.dtype.itemsize, self.machine)
        if not self.steps:
            return "\n".join(lines)
        if bound:
            ratio = f"ratio {cost.bytes / bound:.2f}"
        else:
            ratio = "contributions may lie anywhere" if cost.bytes else "nothing need move"
        lines.append(
            f"each rank receives at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}, "
            f"lower bound {in_bytes(bound)} ({ratio})"
        )
        times = f"about {in_seconds(cost.seconds)} {on_machine(self.machine)}"
        lines.append(f"peak {in_bytes(cost.peak_bytes)} on a rank, {times}; {self.optimality}")
        wire = wire_of(self.steps)
        if wire is not None:
            lines.append(f"sent as {wire}: relative error of an element at most {error_of(self.steps):.1e}")
        second = self._search().next_to(self.steps)
        if second is not None:
            lines.append(f"runner-up: {self._told(second)}")
        return "\n".join(lines)

    def why_not(self, kind: str) -> str:
        """The reason why the plan has no step of some kind: the cheapest plan with one, and its additional cost.

        Raises:
            PlanError: there is no such kind of step.

        >>> from rote.compiler.compile import compile
        >>> print(compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4).why_not("allgather"))
        allgather over 0, slice over 0
          about 31 us, 1.74 times as long: a rank receives 24.0 KiB (not 6.0 KiB), holds 88.0 KiB (not 28.0 KiB)
        """
        if any(step.kind == as_kind(kind) for step in self.steps):
            return f"the plan has this step: {kinds(self.steps)}"
        search = self._search()
        route = search.with_kind(kind)
        if route is None:
            looked_at = "" if search.exact else " of those that are looked at on so many ranks"
            return f"no plan from {self.source.layout} to {self.target.layout}{looked_at} has a step {kind}"
        return self._told(route)

    def _search(self) -> Search:
        wire = wire_of(self.steps)
        return Search(self.source, self.target, self.dtype.itemsize, self.machine, most=_LOOKED_AT, wire=wire)

    def _told(self, route: Route) -> str:
        """Another route, and why it was not chosen."""
        cost = replace(self, steps=route.steps).cost
        return f"{kinds(route.steps)}\n  {versus(cost, self.cost)}"

    def plot(self) -> Any:
        """A figure of the layouts around each step and of the bytes sent between ranks (`rote.plot.plan`).

        >>> from rote.compiler.compile import compile
        >>> compile("block[(0)] -> [()]", shape=4, grid=2).plot().savefig("plan.png")
        """
        return late("plan figure")(self, messages=True)

    def to_html(self) -> str:
        """A page for a browser that steps through the plan and shows owners, messages and costs.

        The page is self-contained and needs no server; `pathlib.Path("plan.html").write_text(page, "utf-8")` saves it.
        Its size does not grow with the tensor.

        >>> from rote.compiler.compile import compile
        >>> page = compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2).to_html()
        >>> page[:15], "Step 1 of 1: alltoall" in page
        ('<!DOCTYPE html>', True)
        """
        return str(late("plan page")(self))

    def _repr_html_(self) -> str:
        return str(late("plan card")(self))

    def verify(self) -> None:
        """Prove from the index sets alone that every needed element arrives exactly once, and that `cost` is right.

        Raises:
            PlanError: the proof fails; the text names the step, the rank and the element.

        >>> Plan.from_text("[(0)] -> [()] of (5,) float64 on grid 2\\n  1. allgather over 0: [(0)] -> [()]").verify()
        """
        verify(self.source, self.target, self.steps, self.dtype, lambda: self.cost)

    def to_json(self) -> str:
        """The plan as JSON text, for `from_json`.

        >>> from rote.compiler.compile import compile
        >>> compile("block[(0)] -> [()]", shape=4, grid=2).to_json()[:30]
        '{"shape": [4], "grid": [2], "t'
        """
        tree = {
            "shape": self.source.shape,
            "grid": self.source.grid.shape,
            "target_grid": self.target.grid.shape,
            "dtype": self.dtype.str,
            "machine": self.machine.as_dict(),
            "found": self.optimality,
            "source": str(self.source.layout),
            "target": str(self.target.layout),
            "steps": [*map(_step_tree, self.steps)],
        }
        return json.dumps(tree)

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that a JSON text holds. Reading does not prove the plan; `verify` does that.

        Raises:
            PlanError: the text is not a plan, or its steps do not lead from the source to the target.

        >>> from rote.compiler.compile import compile
        >>> plan = compile("block[(0)] -> [()]", shape=4, grid=2)
        >>> Plan.from_json(plan.to_json()) == plan
        True
        """
        try:
            return _plan(json.loads(text))
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
            raise PlanError(
                f"this text is no plan ({type(error).__name__}: {error}); plan.to_json() writes one"
            ) from None

    @staticmethod
    def from_text(text: str, machine: Machine | None = None) -> Plan:
        """The plan in a text as `str(plan)` prints it. Reading does not prove the plan; `verify` does that.

        Args:
            text: the text of a plan; a newline may end it.
            machine: the machine of the plan, which the text does not contain; the default machine if None.

        Raises:
            PlanError: the text is not that of a plan, or its steps do not lead from the source to the target.
            NotationError: a layout in it is not in the language.
            LayoutError: a layout in it does not fit the shape or the grid.

        >>> lines = ("[(0)] -> [()] of (5,) float64 on grid 2", "  1. allgather over 0: [(0)] -> [()]")
        >>> Plan.from_text("\\n".join(lines)).cost.bytes
        24
        """
        from .text import read

        return Plan(*read(text), as_machine(machine))

    def __str__(self) -> str:
        from .text import write

        return write(self.source, self.target, self.dtype, self.steps)


def _step_tree(step: Step) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "kind": step.kind,
        "before": str(step.before.layout),
        "after": str(step.after.layout),
        "grid_modes": step.grid_modes,
        "grid": step.after.grid.shape,
    }
    if step.wire is not None:
        tree["wire"] = str(step.wire)
    return tree


def _plan(tree: Mapping[str, Any]) -> Plan:
    def on(layout: str, grid: Iterable[int]) -> Distribution:
        return distribute(as_layout(layout), tree["shape"], tuple(grid))

    # Older plans, which could not lead to another grid, name only one grid.
    source, target = on(tree["source"], tree["grid"]), on(tree["target"], tree.get("target_grid", tree["grid"]))
    steps: list[Step] = []
    at = tree["grid"]
    for step in tree["steps"]:
        before, at = on(step["before"], at), step.get("grid", at)
        made = Step(as_kind(step["kind"]), before, on(step["after"], at), integers(step["grid_modes"], least=0))
        steps.append(sent_as(made, step.get("wire"), as_dtype(tree["dtype"])))
    sizes = {source.grid.size, target.grid.size, *[step.after.grid.size for step in steps]}
    if len(sizes) > 1:
        raise PlanError(f"this text is no plan: its grids are of {sorted(sizes)} ranks; a plan stays on its ranks")
    check_steps(source, target, steps)
    machine = Machine(**tree["machine"])
    optimality = str(tree.get("found", "as given"))
    return Plan(source, target, as_dtype(tree["dtype"]), tuple(steps), machine, optimality)
