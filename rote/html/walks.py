"""Pages and cards of walks: the input, then a scene for each step of a move and for each transform."""

from __future__ import annotations

import numpy as np

from ..compiler.plan import on_machine
from ..errors import counted
from ..fft.families.choose import Choice
from ..fft.walk import Stage, Walk
from ..units import in_bytes, in_seconds
from .page import Scene, card, page, start_scene, step_scenes

__all__ = ["choice_card", "walk_card", "walk_page"]


def walk_page(walk: Walk, axes: tuple[int, ...], text: str) -> str:
    """The page of a walk for a browser: the input, then transforms and moves in turn; `text` is for a terminal."""
    dtypes, transitions, count = walk.dtypes(), walk.transitions, len(walk.stages)
    scenes = [start_scene(walk.source, walk.dtype.itemsize)]
    for number, stage in enumerate(walk.stages, 1):
        if number > 1:
            scenes += step_scenes(transitions[number - 2], f"To stage {number}, step")
        scenes.append(_stage_scene(stage, f"Stage {number} of {count}", dtypes[number - 1], dtypes[number]))

    about = f"{walk.dtype} along axes {axes}, {counted(count, 'stage')}"
    title = f"{walk.kind} of {walk.source.shape} on grid {walk.source.grid}"
    return page(title, about, _totals(walk, dtypes[-1]), scenes, text)


def _stage_scene(stage: Stage, title: str, dtype: np.dtype[np.generic], dtype_after: np.dtype[np.generic]) -> Scene:
    """The scene of a stage: what is transformed in its layout, and how extents and numbers change."""
    before, after, actions = stage.before, stage.after, stage.text

    facts = [("Done on every rank", actions), ("Layout", str(before.layout))]
    if before.view_shape != after.view_shape:
        facts.append(("Extents", f"{before.view_shape} → {after.view_shape}"))
    else:
        after = before
    facts.append(("Numbers", str(dtype) if dtype_after == dtype else f"{dtype} → {dtype_after}"))

    if stage.done:
        name = stage.actions[0].name
        summary = f"{actions} in {before.layout}, where these modes are whole on a rank. No rank talks to another."
    else:
        name = "layout"
        summary = f"The tensor is in {before.layout}; nothing is transformed here."
    return Scene(name, f"{title}: {actions}", summary, tuple(facts), before, after, dtype.itemsize)


def _totals(walk: Walk, spectrum: np.dtype[np.generic]) -> list[tuple[str, str]]:
    """What the moves of a walk cost together, and where it ends."""
    costs = [plan.cost for plan in walk.moves]
    machine = f" {on_machine(walk.moves[0].machine)}" if walk.moves else ""
    return [
        ("A rank receives", in_bytes(sum(cost.bytes for cost in costs))),
        ("Moves", str(len(costs))),
        ("Cost of the moves", f"about {in_seconds(sum(cost.seconds for cost in costs))}{machine}"),
        ("Peak memory of a move", f"{in_bytes(max((cost.peak_bytes for cost in costs), default=0))} on a rank"),
        ("Spectrum", f"{walk.target.shape} {spectrum} in {walk.target.layout}"),
    ]


def walk_card(walk: Walk, axes: tuple[int, ...], kind: str = "FFT") -> str:
    """The card of a walk for a notebook: its transforms and moves, and a map of each of its layouts."""
    received = in_bytes(sum(plan.cost.bytes for plan in walk.moves))
    facts = [
        ("tensor", f"{walk.source.shape} {walk.dtype}, grid {walk.source.grid}, axes {axes}"),
        ("spectrum", f"{walk.target.shape} in {walk.target.layout}"),
        ("a rank receives", f"{received} in {counted(len(walk.moves), 'move')}"),
    ]
    maps = [(f"{stage.before.layout}: {stage.text}", stage.before) for stage in walk.stages]
    return card(kind, walk.kind, facts, maps)


def choice_card(choice: Choice) -> str:
    """The card of a choice: its price and where it begins; or why the family has no walk."""
    head = f"{choice.name} on {choice.source.grid}"
    if choice.walk is None:
        return card("Choice", head, [("no walk", choice.why)], [])

    facts = [
        ("from", str(choice.source.layout)),
        ("time", f"about {in_seconds(choice.seconds)} {on_machine(choice.walk.machine)}"),
        ("a rank receives", f"{in_bytes(choice.price.received)} in {counted(choice.price.moves, 'move')}"),
        ("memory", f"{in_bytes(choice.peak_bytes)} on a rank"),
    ]
    if choice.note:
        facts.append(("note", choice.note))
    return card("Choice", head, facts, [(str(choice.source.layout), choice.source)])
