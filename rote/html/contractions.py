"""Pages and cards of contractions: the operands, then a scene for each step of a move and for each product."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..compiler.plan import kinds
from ..functions.contraction.plan import Contraction
from ..functions.contraction.stages import Move, Product
from ..units import in_bytes, in_seconds
from .page import Scene, card, cost_facts, page, start_scene, step_scenes

__all__ = ["contraction_card", "contraction_page"]


def contraction_page(plan: Contraction) -> str:
    """The page of a contraction, in the order of its stages."""
    scenes = []
    for name, (dist, dtype) in list(plan.ends().items())[:-1]:
        scenes.append(replace(start_scene(dist, dtype.itemsize), name=name, title=f"Operand {name}"))

    for number, stage in enumerate(plan.stages, 1):
        if isinstance(stage, Move):
            moves = step_scenes(stage.plan, f"Stage {number}: step")
            scenes += [replace(scene, name=f"{number}. {scene.name}") for scene in moves]
        else:
            scenes.append(_product_scene(plan, number, stage))

    lead = f"{', '.join([str(dist.shape) for dist in plan.operands])} {plan.dtype} on grid {plan.grid}"
    return page(str(plan.subscripts), lead, _facts(plan), scenes, plan.explain())


def _product_scene(plan: Contraction, number: int, stage: Product) -> Scene:
    """The scene of a product, which shows how its result lies."""
    dist, item = stage.result, plan.dtype.itemsize
    verb = stage.verb.replace(" of", "").replace(" {}", "")
    facts = [("Product", str(stage)), ("Algorithm", stage.family), ("Result", str(dist.layout))]

    # A product moves panels of its operands while it runs; the page counts them, and shows none.
    moves = [move for _, plans in plan.moves(number) for move in plans]
    talk = "No rank talks to another."
    if moves:
        received = sum([move.cost.bytes for move in moves])
        seconds = sum([move.cost.seconds for move in moves])
        talk = f"Panels of the operands are moved first; a rank receives at most {in_bytes(received)}."
        facts += [("Moves", f"{len(moves)}, such as {kinds(moves[0].steps)}"), ("Cost", f"about {in_seconds(seconds)}")]

    facts.append(("Largest block", f"{dist.max_local_shape()}, {in_bytes(prod(dist.max_local_shape()) * item)}"))

    summary = f"{stage}: each rank computes with the blocks that it holds. {talk}"
    return Scene(f"{number}. {verb}", f"Stage {number}: {verb}", summary, tuple(facts), dist, dist, item)


def contraction_card(plan: Contraction) -> str:
    """The card of a contraction: its figures, and a map of each operand and of the result."""
    maps = [(f"{name}: {dist.layout}", dist) for name, (dist, _) in plan.ends().items()]
    return card("Contraction", str(plan.subscripts), _facts(plan), maps)


def _facts(plan: Contraction) -> list[tuple[str, str]]:
    products = "; ".join([stage.family for stage in plan.stages if isinstance(stage, Product)])
    facts = [("Products", products), ("Flops", f"{plan.cost.flops:.3g} on a rank"), *cost_facts(plan)]
    return [*facts, ("Bound by", plan.bound_source)] if plan.bound_source else facts
