"""Pages: one file that contains its style and its script, for any browser, without network; and cards for notebooks.

A page steps through *scenes*: the first layout, then each step of a plan, with its figures, its messages and the owners
before and after. Without scripts, and in print, all scenes appear one below the other.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from math import prod
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from ..compiler.movement import SENDS
from ..compiler.plan import Plan, figures, grids, kinds, on_machine
from ..compiler.rules import rule_of
from ..compiler.step import LOCAL, Step
from ..errors import LayoutError, counted
from ..layout.distribution import Distribution, distribute, replication
from ..layout.layout import Layout, shortened
from ..plot import drawing
from ..plot.drawing import GAP, MOST_RANKS, brief, mode_names
from ..units import in_bytes, in_seconds
from .maps import Markup, Plane, data_table, element, join, owner_cube, owner_map, planes

if TYPE_CHECKING:
    from ..functions.contraction.plan import Contraction

__all__ = ["Scene", "card", "cost_facts", "distribution_card", "layout_card", "page", "plan_card", "plan_page"]
__all__ += ["start_scene", "step_scenes"]

TableRow = tuple[dict[str, object], list[str]]  # the attributes of a row, and its cells

_LISTED = 12  # the most messages in a list
_COLUMNS = 28  # the most characters of an index set
_ROOM = 8  # the most ticks of a small map
_MAPS = 4  # the most maps in a row
_ROW = "display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start"


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
    step: Step | None = None  # that leads from one to the other; None at the start


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
    for number, (step, row) in enumerate(zip(steps, rows, strict=True), 1):
        rule = rule_of(step)
        over = _over(step)
        facts = (
            ("Step", f"{step.kind}: {rule.name}"),
            ("Grid modes", over),
            ("From", str(step.before.layout)),
            ("To", str(step.after.layout)),
            ("A rank receives", f"at most {in_bytes(row.received)}"),
            ("Rounds", f"{row.rounds}, {row.algorithm}" if row.rounds else "0"),
            ("Cost", f"about {in_seconds(row.seconds)}"),
            ("Peak memory", f"{in_bytes(row.peak)} on a rank"),
        )

        name: str = step.kind
        if step.grid_modes:
            name += f" over grid mode{'s' if len(step.grid_modes) > 1 else ''} {over}"

        talk = f"A rank receives at most {in_bytes(row.received)} in {counted(row.rounds, 'round')}"
        if step.kind in LOCAL:
            talk = "No rank talks to another"

        summary = f"{name}: {step.before.layout} becomes {step.after.layout}. {talk}. Law: {rule.law}."
        heading = f"{title} {number} of {len(steps)}: {step.kind}"
        scenes.append(Scene(step.kind, heading, summary, facts, step.before, step.after, item, step))
    return scenes


def _over(step: Step) -> str:
    """The grid modes of a step with the number of ranks along them; or both grids, if the step changes the grid."""
    if step.across:
        return f"all of {step.before.grid}, to grid {step.after.grid}"
    if not step.grid_modes:
        return "none"
    ranks = "x".join([str(step.before.grid.shape[g]) for g in step.grid_modes])
    return f"{', '.join(map(str, step.grid_modes))} ({ranks} ranks)"


# --- the page ---------------------------------------------------------------------------------------------------------


def plan_page(plan: Plan) -> str:
    """The page of a plan: the source, then a scene for each step."""
    source, on = plan.source, grids(plan.source, plan.target)
    lead = f"{source.shape} {plan.dtype} on grid {on}, {counted(len(plan.steps), 'step')}"
    totals = [*cost_facts(plan), ("Optimality", plan.optimality)]
    scenes = [start_scene(source, plan.dtype.itemsize), *step_scenes(plan)]
    return page(f"{source.layout} → {plan.target.layout}", lead, totals, scenes, str(plan))


def cost_facts(plan: Plan | Contraction) -> list[tuple[str, str]]:
    """Names and values of what a plan or a contraction costs, for its page and its card."""
    cost = plan.cost
    return [
        ("A rank receives", f"at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"),
        ("Lower bound", in_bytes(plan.lower_bound)),
        ("Peak memory", f"{in_bytes(cost.peak_bytes)} on a rank"),
        ("Cost", f"about {in_seconds(cost.seconds)} {on_machine(plan.machine)}"),
    ]


def page(title: str, lead: str, totals: Sequence[tuple[str, str]], scenes: Sequence[Scene], text: str) -> str:
    """The HTML text of the page.

    A reader steps through it by buttons or keys (arrows, Home, End). Without scripts, and in print, all scenes appear
    one below the other. Below the title are the lead and the totals, names with values; at the end is the text that a
    terminal shows.
    """
    size = scenes[0].before.grid.size
    script = _file("page.js")

    # The page's policy names its script by this hash, so a browser runs no other.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    steps, sections = [], []
    for number, scene in enumerate(scenes):
        link = element("a", element("span", str(number)), f" {scene.name}", href=f"#scene-{number}")
        steps.append(element("li", link))
        sections.append(_section(number, scene))

    follow = ""
    if 1 < size <= MOST_RANKS:
        every = [element("option", f"rank {rank}", value=rank) for rank in range(size)]
        choice = element("select", element("option", "no rank", value=""), *every, id="follow")
        follow = element("label", "Follow ", choice)

    return Template(_file("page.html")).substitute(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        title=join([title]),
        lead=join([lead]),
        totals=_facts(totals),
        steps=join(steps),
        follow=follow,
        scenes=join(sections),
        text=join([text]),
        style=_file("page.css"),
        script=script,
    )


def _section(number: int, scene: Scene) -> Markup:
    before, after = scene.before, scene.after
    parts = [
        element("h2", scene.title, id=f"title-{number}", tabindex=-1),
        element("p", scene.summary, class_="summary"),
        _facts(scene.facts),
    ]
    # Maps share ticks, so that a cell keeps its place from one to the other.
    if before == after or before.digits == after.digits:
        parts += _maps(number, before, after)
    else:  # their modes read different digits, so the two have ticks of their own
        parts += [*_maps(number, before, before, "before"), *_maps(number, after, after, "after")]

    travel = _messages(scene)
    if travel:
        parts += [element("h3", "What travels"), element("div", *travel, class_="tables")]

    caption = "Blocks" if before == after else "Blocks afterwards"
    parts += [element("h3", "Who holds what"), _blocks(after, scene.item, caption)]
    return element("section", *parts, id=f"scene-{number}", class_="scene", aria_labelledby=f"title-{number}")


def _facts(facts: Sequence[tuple[str, str]]) -> Markup:
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return element("dl", *pairs)


def _maps(number: int, before: Distribution, after: Distribution, when: str = "") -> list[Markup]:
    """The owner maps of a scene in every plane, and controls to choose a plane."""
    choices = list(planes([before] if before == after else [before, after]))
    head = element("h3", f"Who owns what {when}".rstrip())
    if not choices:
        return [head, element("p", "The tensor has no elements.")]

    group = f"planes-{number}-{when}".rstrip("-")
    if len(after.view_shape) == 3:
        head = Markup(head + _cubes(before, after))

    options, shown = [], []
    for k, plane in enumerate(choices):
        name = plane.named
        options.append(element("option", name, value=k))
        maps = _plane(plane, before, after)
        shown.append(element("div", element("h4", name), *maps, data_plane_of=group, class_="plane"))

    if len(choices) == 1:
        return [head, *shown]
    chooser = element("label", "Modes ", element("select", *options, data_planes=group))
    return [head, element("p", chooser, class_="chooser"), *shown]


def _cubes(before: Distribution, after: Distribution) -> Markup:
    cubes = [owner_cube(after, str(after.layout))]
    if before != after:
        earlier, arrow = owner_cube(before, f"before: {before.layout}"), element("span", "→", class_="arrow")
        cubes = [earlier, arrow, owner_cube(after, f"after: {after.layout}")]
    return element("div", *cubes, class_="scroll maps", role="region", tabindex=0, aria_label="Owners, as a cube")


def _plane(plane: Plane, before: Distribution, after: Distribution) -> list[Markup]:
    """The maps of a plane, before and after side by side, slice by slice."""
    parts = []
    for place in plane.slices:
        where = ", ".join([f"{mode_names(after)[m]} at {run}" for m, run in place])
        maps = [owner_map(plane, place, after, str(after.layout))]
        if before != after:
            maps = [
                owner_map(plane, place, before, f"before: {before.layout}"),
                element("span", "→", class_="arrow", aria_hidden="true"),
                owner_map(plane, place, after, f"after: {after.layout}", before),
            ]

        name, label = Markup(), "Owners"
        if where:
            name, label = element("p", where), f"Owners, {where}"
        scroll = element("div", *maps, class_="scroll maps", role="region", tabindex=0, aria_label=label)
        parts.append(element("div", name, scroll, class_="slice"))

    if plane.more:
        parts.append(element("p", "… and more slices like these.", class_="note"))
    return parts


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


# --- tables of blocks and messages ------------------------------------------------------------------------------------


def _blocks(dist: Distribution, item: int, caption: str) -> Markup:
    """A table of the block of every rank, or of the first few and the last."""
    rows: list[TableRow] = []

    ranks = drawing.listed_ranks(dist.grid.size)
    for rank in ranks:
        if rank is None:
            rows.append(({}, [str(GAP), f"{dist.grid.size - len(ranks) + 1:,} more", *[""] * (2 + dist.order)]))
            continue

        at, shape, sets = drawing.block_words(dist, rank, _COLUMNS)
        size = prod(dist.local_shape(rank))
        if not size:
            sets = ["nothing"] * dist.order
        cells = [str(rank), at, shape, in_bytes(size * item), *sets]
        rows.append(({"data_rank": rank, "data_block": shape}, cells))
    return data_table(caption, ["rank", "at", "block", "bytes", *mode_names(dist)], rows)


def _messages(scene: Scene) -> list[Markup]:
    """Tables of the messages in a scene: the bytes between each two ranks, and the messages of the busiest sender."""
    step = scene.step
    if step is None or step.kind in LOCAL:
        return []
    tables = []
    if step.before.grid.size <= MOST_RANKS:
        tables.append(_matrix(step, step.sent(scene.item)))

    # Thousands of ranks send too many messages to list: those of the rank that sends most stand for all.
    sent = np.broadcast_to(step.movement.traffic(SENDS).elements, step.ranks.shape or (1,))
    busiest = int(sent.argmax())
    mine = [message for message in step.movement.messages(busiest, SENDS) if message.peer != busiest and len(message)]

    same_digits = step.before.digits == step.after.digits
    rows: list[TableRow] = []
    for message in mine[:_LISTED]:
        sets: list[str] = []
        if same_digits:
            pairs = zip(step.before.index_sets(busiest), step.after.index_sets(message.peer), strict=True)
            sets = [brief(gives & takes, _COLUMNS) for gives, takes in pairs]
        count = [f"{len(message):,}", in_bytes(len(message) * step.sent(scene.item))]
        rows.append(({}, [str(busiest), str(message.peer), *count, *sets]))

    more = f", {_LISTED} of {len(mine):,}" if len(mine) > _LISTED else ""
    caption = f"Messages of rank {busiest}, which sends most{more}"

    heads = ["from", "to", "elements", "bytes"]
    if same_digits:
        heads += mode_names(step.before)
    if rows:
        tables.append(data_table(caption, heads, rows))
    return tables


def _matrix(step: Step, item: int) -> Markup:
    """The bytes from each rank to each; bytes that a rank keeps are in brackets."""
    rows: list[TableRow] = []
    for sender, counts in enumerate(step.movement.matrix().tolist()):
        cells = [in_bytes(count * item) if count else "-" for count in counts]
        cells[sender] = f"({cells[sender]})"
        rows.append(({"data_rank": sender}, [str(sender), *cells]))

    what = "Contributions" if step.before.partial else "Bytes"
    caption = f"{what} from each rank (down) to each rank (across); in brackets: what it keeps"
    return data_table(caption, ["from \\ to", *(row[0] for _, row in rows)], rows)


# --- cards: the display of values in notebooks, in light and dark themes ----------------------------------------------

# Styles are inline, texts have the notebook's own colours, and there is no script, so that untrusted notebooks show the
# same. A card is made from layouts alone, without communication between ranks.


def layout_card(layout: Layout) -> str:
    """The card of a layout, drawn on a small shape and grid; without a map if its own sizes fit no such shape."""
    grid = drawing.example_grid(layout)
    try:
        dist = distribute(layout, drawing.example_shape(layout, grid), grid)
    except LayoutError:
        return card("Layout", str(layout), [("to draw it", "give it a shape and a grid: layout.on(shape, grid)")], [])
    return card("Layout", str(layout), [("drawn on", f"{dist.shape}, grid {dist.grid}")], [("", dist)])


def distribution_card(dist: Distribution) -> str:
    """The card of a distribution."""
    facts = [("shape", str(dist.shape)), ("grid", f"{dist.grid}, {dist.grid.size} ranks")]
    return card("Distribution", str(dist.layout), facts, [("", dist)])


def plan_card(plan: Plan) -> str:
    """The card of a plan: its figures, and a map of each layout between the steps."""
    facts = [
        ("tensor", f"{plan.source.shape} {plan.dtype}, grid {grids(plan.source, plan.target)}"),
        ("steps", kinds(plan.steps) if plan.steps else "nothing to do"),
        *cost_facts(plan),
    ]
    maps = [(str(plan.source.layout), plan.source)]
    maps += [(f"{step.kind}: {step.after.layout}", step.after) for step in plan.steps]
    return card("Plan", f"{plan.source.layout} → {plan.target.layout}", facts, maps)


def card(kind: str, head: str, facts: Sequence[tuple[str, str]], maps: Sequence[tuple[str, Distribution]]) -> str:
    """A card of a value: its kind and text, facts about it, and distributions with captions, the first few drawn."""
    rows, left = [], "text-align:left"
    copies = replication(maps[0][1]) if len(maps) == 1 else ""
    for name, value in [*facts, ("copies", copies)] if copies else facts:
        rows.append(element("tr", element("th", name.lower(), style=left), element("td", shortened(value), style=left)))

    drawn = [_small_map(shortened(name), dist) for name, dist in maps[:_MAPS]]
    if len(maps) > _MAPS:
        drawn.append(element("div", f"… and {len(maps) - _MAPS} more"))

    short = shortened(head)
    code = element("code", head) if short == head else element("code", short, title=head)
    parts = [element("div", element("b", kind), " ", code)]
    if rows:
        parts.append(element("table", *rows))
    parts.append(element("div", *drawn, style=_ROW))
    return str(element("div", *parts, style="color:inherit;overflow-x:auto"))


def _small_map(name: str, dist: Distribution) -> Markup:
    """One owner map, along the two modes that show most."""
    plane = next(iter(planes([dist], _ROOM, 1)), None)
    if plane is None:
        return element("div", element("small", f"{name}: no elements" if name else "no elements"))

    named = plane.named + "; the others at 0" * bool(plane.slices[0])
    said = [element("span", text, style="display:block") for text in (name, named) if text]
    return element("div", owner_map(plane, plane.slices[0], dist, element("span", *said, style="font-size:85%")))
