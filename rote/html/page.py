"""A page of scenes: one file that contains its style and its script, for any browser, without network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from string import Template

from ..compiler.explain import grids, in_bytes, in_seconds, on_machine
from ..compiler.plan import Plan
from ..errors import counted
from ..layout.layout import Distribution
from ..layout.ownership import mode_names
from .cubes import owner_cube
from .maps import MOST_RANKS, Plane, owner_map, planes
from .markup import Markup, element, join
from .scenes import Scene, blocks, messages, start_scene, step_scenes

__all__ = ["page", "plan_page"]


def plan_page(plan: Plan) -> str:
    """The page of a plan: the source, then a scene for each step."""
    source, cost, item = plan.source, plan.cost, plan.dtype.itemsize
    on = grids(source, plan.target)
    lead = f"{source.shape} {plan.dtype} on grid {on}, {counted(len(plan.steps), 'step')}"
    totals = [
        ("A rank receives", f"at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"),
        ("Lower bound", in_bytes(plan.lower_bound)),
        ("Peak memory", f"{in_bytes(cost.peak_bytes)} on a rank"),
        ("Cost", f"about {in_seconds(cost.seconds)} {on_machine(plan.machine)}"),
        ("Optimality", plan.optimality),
    ]
    scenes = [start_scene(source, item), *step_scenes(plan)]
    return page(f"{source.layout} → {plan.target.layout}", lead, totals, scenes, str(plan))


def page(title: str, lead: str, totals: Sequence[tuple[str, str]], scenes: Sequence[Scene], text: str) -> str:
    """The HTML text of the page.

    A reader steps through it by buttons or keys (arrows, Home, End). Without scripts, and in print, all scenes appear
    one below the other. Below the title are the lead and the totals, names with values; at the end is the text that a
    terminal shows.
    """
    size = scenes[0].before.grid.size
    script = _file("page.js")
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
    """A scene with its maps and tables."""
    before, after = scene.before, scene.after
    parts = [
        element("h2", scene.title, id=f"title-{number}", tabindex=-1),
        element("p", scene.summary, class_="summary"),
        _facts(scene.facts),
    ]
    if before == after or before.digits == after.digits:
        parts += _maps(number, before, after)
    else:  # their modes read different digits, so each has ticks of its own
        parts += [*_maps(number, before, before, "before"), *_maps(number, after, after, "after")]
    travel = messages(scene)
    if travel:
        parts += [element("h3", "What travels"), element("div", *travel, class_="tables")]
    caption = "Blocks" if before == after else "Blocks afterwards"
    parts += [element("h3", "Who holds what"), blocks(after, scene.item, caption)]
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
        name = plane.named(after)
        options.append(element("option", name, value=k))
        maps = _plane(plane, before, after)
        shown.append(element("div", element("h4", name), *maps, data_plane_of=group, class_="plane"))
    if len(choices) == 1:
        return [head, *shown]
    chooser = element("label", "Modes ", element("select", *options, data_planes=group))
    return [head, element("p", chooser, class_="chooser"), *shown]


def _cubes(before: Distribution, after: Distribution) -> Markup:
    """The tensor as a cube, before and after."""
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
