"""The scenes of a page: the first layout, then each step of a plan, with its figures and its messages."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ..compiler.explain import figures, in_bytes, in_seconds
from ..compiler.movement.matrix import from_others, message_matrix
from ..compiler.movement.messages import sends
from ..compiler.plan import Plan
from ..compiler.rules import rule_of
from ..compiler.step import LOCAL, Step
from ..errors import counted
from ..layout.layout import Distribution
from ..layout.ownership import brief, mode_names
from .maps import MOST_RANKS
from .markup import Markup, data_table

__all__ = ["Scene", "blocks", "messages", "start_scene", "step_scenes"]

Row = tuple[dict[str, object], list[str]]

_LISTED = 12  # the most messages in a list
_FEW = 6  # ranks that are listed if there are more than `MOST_RANKS`
_COLUMNS = 28  # the most characters of an index set


@dataclass(frozen=True, slots=True)
class Scene:
    """One of the states that a page steps through."""

    name: str  # in the list of all scenes
    title: str
    summary: str  # a sentence or two, which screen readers read aloud
    facts: tuple[tuple[str, str], ...]  # names and values
    before: Distribution
    after: Distribution  # equal to that before if nothing moves
    item: int  # bytes of an element
    step: Step | None = None  # that moves elements


def start_scene(source: Distribution, item: int) -> Scene:
    """The scene that shows the first distribution of a tensor."""
    most = prod(source.max_local_shape()) * item
    facts = (("Layout", str(source.layout)), ("Largest block", f"{source.max_local_shape()}, {in_bytes(most)}"))
    ranks = counted(source.grid.size, "rank")
    summary = f"The tensor lies in {source.layout} on {ranks}; the largest block has {in_bytes(most)}."
    return Scene("start", "Start", summary, facts, source, source, item)


def step_scenes(plan: Plan, title: str = "Step") -> list[Scene]:
    """A scene for each step of a plan; `title` precedes its number, as in "Step 2 of 3"."""
    steps, item, scenes = plan.steps, plan.dtype.itemsize, list[Scene]()
    rows = figures((plan.source, plan.target), steps, item, plan.machine)
    for number, (step, each) in enumerate(zip(steps, rows, strict=True), 1):
        rule = rule_of(step)
        over = _over(step)
        facts = (
            ("Step", f"{step.kind}: {rule.name}"),
            ("Grid modes", over),
            ("From", str(step.before.layout)),
            ("To", str(step.after.layout)),
            ("A rank receives", f"at most {in_bytes(each.received)}"),
            ("Rounds", f"{each.rounds}, {each.algorithm}" if each.rounds else "0"),
            ("Cost", f"about {in_seconds(each.seconds)}"),
            ("Peak memory", f"{in_bytes(each.peak)} on a rank"),
        )
        name: str = step.kind
        if step.grid_modes:
            name += f" over grid mode{'s' if len(step.grid_modes) > 1 else ''} {over}"
        talk = f"A rank receives at most {in_bytes(each.received)} in {counted(each.rounds, 'round')}"
        if step.kind in LOCAL:
            talk = "No rank talks to another"
        summary = f"{name}: {step.before.layout} becomes {step.after.layout}. {talk}. Law: {rule.law}."
        heading = f"{title} {number} of {len(steps)}: {step.kind}"
        scenes.append(Scene(step.kind, heading, summary, facts, step.before, step.after, item, step))
    return scenes


def _over(step: Step) -> str:
    """The grid modes of a step with their ranks; or the target grid, if that is another."""
    if step.across:
        return f"all of {step.before.grid}, to grid {step.after.grid}"
    if not step.grid_modes:
        return "none"
    ranks = "x".join([str(step.before.grid.shape[g]) for g in step.grid_modes])
    return f"{', '.join(map(str, step.grid_modes))} ({ranks} ranks)"


def blocks(dist: Distribution, item: int, caption: str) -> Markup:
    """A table of the block of every rank, or of the first few and the last."""
    size = dist.grid.size
    shown = range(size) if size <= MOST_RANKS else [*range(_FEW), size - 1]
    rows: list[Row] = []
    for rank in shown:
        if size > MOST_RANKS and rank == size - 1:
            rows.append(({}, ["…", f"{size - _FEW - 1:,} more", *[""] * (2 + dist.order)]))
        shape = dist.local_shape(rank)
        at = ",".join(map(str, dist.grid.coordinates(rank)))
        sets = [brief(held, _COLUMNS) for held in dist.index_sets(rank)]
        if 0 in shape:
            sets = ["nothing"] * dist.order
        cells = [str(rank), at, str(shape), in_bytes(prod(shape) * item), *sets]
        rows.append(({"data_rank": rank, "data_block": shape}, cells))
    return data_table(caption, ["rank", "at", "block", "bytes", *mode_names(dist)], rows)


def messages(scene: Scene) -> list[Markup]:
    """Tables of the messages in a scene: the bytes between each two ranks, and the messages of the busiest sender."""
    step = scene.step
    if step is None or step.kind in LOCAL:
        return []
    tables = []
    if step.before.grid.size <= MOST_RANKS:
        tables.append(_matrix(step, step.sent(scene.item)))
    sent = np.broadcast_to(from_others(step.before, step.after, sending=True)[0], step.ranks.shape)
    busiest = int(sent.argmax())
    mine = [message for message in sends(step.before, step.after, busiest) if message.peer != busiest and len(message)]
    alike = step.before.digits == step.after.digits
    rows: list[Row] = []
    for message in mine[:_LISTED]:
        sets: list[str] = []
        if alike:
            pairs = zip(step.before.index_sets(busiest), step.after.index_sets(message.peer), strict=True)
            sets = [brief(gives & takes, _COLUMNS) for gives, takes in pairs]
        count = [f"{len(message):,}", in_bytes(len(message) * step.sent(scene.item))]
        rows.append(({}, [str(busiest), str(message.peer), *count, *sets]))
    more = f", {_LISTED} of {len(mine):,}" if len(mine) > _LISTED else ""
    caption = f"Messages of rank {busiest}, which sends most{more}"
    heads = ["from", "to", "elements", "bytes"]
    if alike:
        heads += mode_names(step.before)
    if rows:
        tables.append(data_table(caption, heads, rows))
    return tables


def _matrix(step: Step, item: int) -> Markup:
    """The bytes from each rank to each; bytes that a rank keeps are in brackets."""
    rows: list[Row] = []
    for sender, counts in enumerate(message_matrix(step.before, step.after).tolist()):
        cells = [in_bytes(count * item) if count else "-" for count in counts]
        cells[sender] = f"({cells[sender]})"
        rows.append(({"data_rank": sender}, [str(sender), *cells]))
    what = "Contributions" if step.before.partial else "Bytes"
    caption = f"{what} from each rank (down) to each rank (across); in brackets: what it keeps"
    return data_table(caption, ["from \\ to", *(row[0] for _, row in rows)], rows)
