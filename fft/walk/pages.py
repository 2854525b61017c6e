"""A walk as a page for a browser, and as a card for a notebook."""

from __future__ import annotations

from rote.compiler.explain import in_bytes, in_seconds, on_machine
from rote.errors import counted
from rote.html.page import page
from rote.html.reprs import card
from rote.html.scenes import Scene, start_scene, step_scenes

from .walk import Stage, Walk

__all__ = ["walk_card", "walk_page"]


def walk_page(walk: Walk, axes: tuple[int, ...], text: str) -> str:
    """The page of a walk: the input, then transforms and moves in turn.

    Args:
        walk: the walk from the input to the spectrum.
        axes: the transformed axes.
        text: the walk as a terminal shows it.
    """
    dtypes, transitions = walk.dtypes(), walk.transitions
    scenes = [start_scene(walk.source, walk.dtype.itemsize)]
    for number, stage in enumerate(walk.stages):
        if number:
            scenes += step_scenes(transitions[number - 1], f"To stage {number + 1}, step")
        title = f"Stage {number + 1} of {len(walk.stages)}"
        scenes.append(_stage_scene(title, stage, str(dtypes[number]), str(dtypes[number + 1]), dtypes[number].itemsize))
    costs = [plan.cost for plan in walk.moves]
    times = "".join([f" {on_machine(plan.machine)}" for plan in walk.moves[:1]])
    totals = [
        ("A rank receives", in_bytes(sum(cost.bytes for cost in costs))),
        ("Moves", str(len(costs))),
        ("Cost of the moves", f"about {in_seconds(sum(cost.seconds for cost in costs))}{times}"),
        ("Peak memory of a move", f"{in_bytes(max((cost.peak_bytes for cost in costs), default=0))} on a rank"),
        ("Spectrum", f"{walk.target.shape} {dtypes[-1]} in {walk.target.layout}"),
    ]
    lead = f"{walk.dtype} along axes {axes}, {counted(len(walk.stages), 'stage')}"
    return page(f"{walk.kind} of {walk.source.shape} on grid {walk.source.grid}", lead, totals, scenes, text)


def _stage_scene(title: str, stage: Stage, dtype: str, dtype_after: str, item: int) -> Scene:
    """The scene in which each rank transforms its block."""
    before, after = stage.before, stage.after
    done, changed = _actions(stage), before.view_shape != after.view_shape
    facts = [("Done on every rank", done), ("Layout", str(before.layout))]
    if changed:
        facts.append(("Extents", f"{before.view_shape} → {after.view_shape}"))
    numbers = dtype
    if dtype_after != dtype:
        numbers += f" → {dtype_after}"
    facts.append(("Numbers", numbers))
    summary = f"{done} in {before.layout}, where these modes are whole on a rank. No rank talks to another."
    if not stage.done:
        summary = f"The tensor lies in {before.layout}; nothing is transformed here."
    name = stage.actions[0].name if stage.done else "layout"
    return Scene(name, f"{title}: {done}", summary, tuple(facts), before, after if changed else before, item)


def _actions(stage: Stage) -> str:
    """The actions of a stage, as in the walk's text."""
    return str(stage).removeprefix(str(stage.before.layout)).removeprefix(":").strip() or "nothing"


def walk_card(walk: Walk, axes: tuple[int, ...]) -> str:
    """The card of a walk: its transforms and moves, and a map of each of its layouts."""
    received = in_bytes(sum(plan.cost.bytes for plan in walk.moves))
    facts = [
        ("tensor", f"{walk.source.shape} {walk.dtype}, grid {walk.source.grid}, axes {axes}"),
        ("spectrum", f"{walk.target.shape} in {walk.target.layout}"),
        ("a rank receives", f"{received} in {counted(len(walk.moves), 'move')}"),
    ]
    maps = [(f"{stage.before.layout}: {_actions(stage)}", stage.before) for stage in walk.stages]
    return card("FFT", walk.kind, facts, maps)
