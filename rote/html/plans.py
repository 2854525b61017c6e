"""Plans as a page and as a card."""

from __future__ import annotations

from ..compiler.explain import grids, in_bytes, in_seconds, kinds
from ..compiler.plan import Plan
from ..errors import counted
from .page import page
from .reprs import card
from .scenes import start_scene, step_scenes

__all__ = ["plan_card", "plan_page"]


def plan_page(plan: Plan) -> str:
    """The page of a plan: the source, then a scene for each step."""
    source, cost, item = plan.source, plan.cost, plan.dtype.itemsize
    on = grids(source, plan.target)
    lead = f"{source.shape} {plan.dtype} on grid {on}, {counted(len(plan.steps), 'step')}"
    totals = [
        ("A rank receives", f"at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"),
        ("Lower bound", in_bytes(plan.lower_bound)),
        ("Peak memory", f"{in_bytes(cost.peak_bytes)} on a rank"),
        ("Cost", f"about {in_seconds(cost.seconds)}"),
        ("Optimality", plan.optimality),
    ]
    start = start_scene(source, item)
    return page(f"{source.layout} → {plan.target.layout}", lead, totals, [start, *step_scenes(plan)], str(plan))


def plan_card(plan: Plan) -> str:
    """The card of a plan: its figures, and a map of each layout between the steps."""
    cost = plan.cost
    facts = [
        ("tensor", f"{plan.source.shape} {plan.dtype}, grid {plan.source.grid}"),
        ("steps", kinds(plan.steps) if plan.steps else "nothing to do"),
        ("a rank receives", f"at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"),
        ("peak", f"{in_bytes(cost.peak_bytes)} on a rank, about {in_seconds(cost.seconds)}"),
    ]
    maps = [(str(plan.source.layout), plan.source)]
    maps += [(f"{step.kind}: {step.after.layout}", step.after) for step in plan.steps]
    return card("Plan", f"{plan.source.layout} → {plan.target.layout}", facts, maps)
