"""Cards: the display of a layout, a plan, a transform or a tensor in notebooks, in light and dark themes.

Styles are inline, texts have the notebook's own colours, and there is no script, so that untrusted notebooks show the
same. A card is made from layouts alone, without communication between ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.explain import in_bytes, in_seconds, kinds, on_machine
from ..compiler.plan import Plan
from ..errors import LayoutError, counted
from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout
from ..layout.pictures import example_grid, example_shape
from .maps import Markup, element, owner_map, planes

__all__ = ["card", "distribution_card", "layout_card", "plan_card"]

_ROOM = 8  # the most ticks of a small map
_MAPS = 4  # the most maps in a row
_ROW = "display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start"


def layout_card(layout: Layout) -> str:
    """The card of a layout, drawn on a small shape and grid; without a map if its own sizes fit no such shape."""
    grid = example_grid(layout)
    try:
        dist = distribute(layout, example_shape(layout, grid), grid)
    except LayoutError:
        return card("Layout", str(layout), [("to draw it", "give it a shape and a grid: layout.on(shape, grid)")], [])
    return card("Layout", str(layout), [("drawn on", f"{dist.shape}, grid {dist.grid}")], [("", dist)])


def distribution_card(dist: Distribution) -> str:
    """The card of a distribution."""
    facts = [("shape", str(dist.shape)), ("grid", f"{dist.grid}, {dist.grid.size} ranks")]
    return card("Distribution", str(dist.layout), facts, [("", dist)])


def plan_card(plan: Plan) -> str:
    """The card of a plan: its figures, and a map of each layout between the steps."""
    cost = plan.cost
    facts = [
        ("tensor", f"{plan.source.shape} {plan.dtype}, grid {plan.source.grid}"),
        ("steps", kinds(plan.steps) if plan.steps else "nothing to do"),
        ("a rank receives", f"at most {in_bytes(cost.bytes)} in {counted(cost.messages, 'message')}"),
        ("peak", f"{in_bytes(cost.peak_bytes)} on a rank"),
        ("time", f"about {in_seconds(cost.seconds)} {on_machine(plan.machine)}"),
    ]
    maps = [(str(plan.source.layout), plan.source)]
    maps += [(f"{step.kind}: {step.after.layout}", step.after) for step in plan.steps]
    return card("Plan", f"{plan.source.layout} → {plan.target.layout}", facts, maps)


def card(kind: str, head: str, facts: Sequence[tuple[str, str]], maps: Sequence[tuple[str, Distribution]]) -> str:
    """A card of a value: its kind and text, facts about it, and distributions with captions, the first few drawn."""
    rows, left = [], "text-align:left"
    for name, value in facts:
        rows.append(element("tr", element("th", name, style=left), element("td", value, style=left)))
    drawn = [_small_map(*each) for each in maps[:_MAPS]]
    if len(maps) > _MAPS:
        drawn.append(element("div", f"… and {len(maps) - _MAPS} more"))
    parts = [element("div", element("b", kind), " ", element("code", head))]
    if rows:
        parts.append(element("table", *rows))
    parts.append(element("div", *drawn, style=_ROW))
    return str(element("div", *parts, style="color:inherit;overflow-x:auto"))


def _small_map(name: str, dist: Distribution) -> Markup:
    """One owner map, along the two modes that show most."""
    for plane in planes([dist], _ROOM, 1):
        named = plane.named(dist) + "; the others at 0" * bool(plane.slices[0])
        said = [element("span", text, style="display:block") for text in (name, named) if text]
        return element("div", owner_map(plane, plane.slices[0], dist, element("span", *said, style="font-size:85%")))
    return element("div", element("small", f"{name}: no elements" if name else "no elements"))
