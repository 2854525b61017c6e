"""Pages of plans and walks: what they say is the plan's own, they are HTML, and no larger for a large tensor."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markup_tree import Node, read
from strategies import pairs, pairs_across

import rote
from rote.compiler.plan import explain
from rote.compiler.rules import one_step
from rote.layout.distribution import Distribution
from rote.units import in_bytes

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"


def scenes(page: str) -> list[Node]:
    return list(read(page).all("section"))


def facts(scene: Node) -> dict[str, str]:
    names = [name.text for name in scene.the("dl").all("dt")]
    return dict(zip(names, [value.text for value in scene.the("dl").all("dd")], strict=True))


def indices(text: str) -> list[int]:
    """The indices that a tick or a set says, written out."""
    ranges = [part.split("..") for part in text.strip("{}").split(", ") if part]
    return [i for ends in ranges for i in range(int(ends[0]), int(ends[-1]) + 1)]


def check_steps(plan: rote.Plan) -> None:
    """The start and each step of a plan are scenes, in order, with all that `explain` says of them."""
    document = read(plan.to_html())
    start, *steps = document.all("section")
    assert str(plan.source.layout) in start.text
    assert [link.attributes["href"] for link in document.the("nav").all("a")] == [
        f"#scene-{k}" for k in range(len(plan.steps) + 1)
    ]
    lines = explain("", (plan.source, plan.target), plan.steps, plan.dtype.itemsize, plan.machine)[3:]
    for step, scene, line in zip(plan.steps, steps, lines, strict=False):
        said = facts(scene)
        assert said["Step"].startswith(step.kind) and step.kind in scene.the("h2").text
        assert (said["From"], said["To"]) == (str(step.before.layout), str(step.after.layout))
        assert step.across or said["Grid modes"].startswith(", ".join(map(str, step.grid_modes)))
        received = said["A rank receives"].removeprefix("at most ")
        peak, rounds = said["Peak memory"].removesuffix(" on a rank"), said["Rounds"].partition(",")[0]
        assert f"{received} {rounds} {peak}" in " ".join(line.split())
        assert all(str(each.layout) in scene.the("p", class_="summary").text for each in (step.before, step.after))
    assert len(steps) == len(plan.steps)
    assert rote.Plan.from_text(document.the("pre").text) == plan


def check_maps(scene: Node, before: Distribution, after: Distribution) -> None:
    """A cell of a map says the owners of its elements, and whose they were if others owned them."""
    if 0 in after.view_shape:
        assert "no elements" in scene.text
        return
    for part in scene.all("div", class_="slice"):
        plane = [int(m) for m in re.findall(r"mode (\d+)", _plane_of(scene, part).the("h4").text)]
        fixed = {int(m): indices(run) for m, run in re.findall(r"mode (\d+) at ([\d.]+)", part.text)}
        for table in part.all("table"):
            is_after = not table.the("caption").text.startswith("before")
            dist, was = (after, before) if is_after else (before, before)
            body = table.cells
            if not plane:
                runs = [((), body[0][0])]
            elif len(plane) == 1:
                runs = [((head,), cell) for head, cell in zip(*body, strict=True)]
            else:
                heads = body[0][1:]
                runs = [((row[0], head), cell) for row in body[1:] for head, cell in zip(heads, row[1:], strict=True)]
            for at, cell in runs:
                if "…" in (*at, cell):
                    continue
                spans = {**fixed, **{m: indices(tick) for m, tick in zip(plane, at, strict=True)}}
                for index in product(*(spans[m] for m in range(dist.order))):
                    now, then = (each.owners(index) for each in (dist, was))
                    assert owners(cell.rpartition("→")[2]) in (now, None), (cell, now)
                    assert ("→" in cell) == (now != then), (cell, now, then)
                    assert "→" not in cell or owners(cell.partition("→")[0]) in (then, None)


def _plane_of(scene: Node, part: Node) -> Node:
    (plane,) = [each for each in scene.all("div", class_="plane") if part in each.all("div")]
    return plane


def owners(text: str) -> tuple[int, ...] | None:
    """The ranks that a cell says, if it says all: "2", "0,1", "0-3", "0+1"."""
    if "…" in text:
        return None
    parts = [part.split("-") for part in text.replace("+", ",").split(",")]
    return tuple(sorted({r for ends in parts for r in range(int(ends[0]), int(ends[-1]) + 1)}))


def check_messages(scene: Node, before: Distribution, after: Distribution, item: int) -> None:
    """The table of bytes counts the elements by owner before and owner after, and the listed messages are of these."""
    tables = {table.the("caption").text.partition(" ")[0]: table for table in scene.all("table")}
    places = [*product(*map(range, before.view_shape))]
    pairs = [(before.owners(i)[0], after.owners(i)[0]) for i in places]
    ranks = range(before.grid.size)
    counted = {(a, b): pairs.count((a, b)) * item for a in ranks for b in ranks}
    for row in tables["Bytes"].cells[1:]:
        for to, cell in enumerate(row[1:]):
            assert cell.strip("()") in (in_bytes(counted[int(row[0]), to]), "-"), row
            assert (cell.strip("()") == "-") == (counted[int(row[0]), to] == 0)
    busiest = max(sum(counted[a, b] for b in ranks if a != b) for a in ranks)
    listed = 0
    for sender, receiver, elements, _, *sets in tables["Messages"].cells[1:]:
        own = [*product(*map(indices, sets))]
        assert len(own) == int(elements)
        assert own == [i for i, pair in zip(places, pairs, strict=True) if pair == (int(sender), int(receiver))]
        listed += len(own) * item
    assert listed == busiest


@given(pairs(), st.booleans())
def test_a_page_says_every_step_of_a_plan(pair: tuple[Distribution, Distribution], back: bool) -> None:
    """Of steps between all kinds of layouts, and of shapes without elements too; and all maps are true."""
    plan = straight(*pair, *([pair[0]] * back))
    check_steps(plan)
    start, *steps = scenes(plan.to_html())
    if all(end.layout.view is None for end in pair):
        check_maps(start, plan.source, plan.source)
        for step, scene in zip(plan.steps, steps, strict=True):
            check_maps(scene, step.before, step.after)


@given(pairs_across())
def test_a_page_leads_from_one_grid_to_another(pair: tuple[Distribution, Distribution]) -> None:
    """And so do those of plans between two grids over the same ranks."""
    check_steps(straight(*pair))


def straight(*places: Distribution) -> rote.Plan:
    """The plan that goes from place to place in one step each, without a search for a better one."""
    steps = [one_step(*pair) for pair in pairwise(places)]
    return rote.Plan(places[0], places[-1], np.dtype("f8"), tuple(step for step in steps if step))


def sizes(table: Node) -> tuple[list[float], list[float]]:
    """The widths of the columns of a map, and the heights of its rows; 0 of those that have none."""
    styles = [[each.attributes.get("style", "") for each in table.all(name)] for name in ("col", "tr")]
    widths, heights = [[float(re.sub("[^0-9.]", "", style) or 0) for style in each] for each in styles]
    return widths[1:], heights[1:]


@pytest.mark.parametrize(
    ("shape", "grid"), [((64, 16), 3), ((7, 50), 4), ((8, 6), 2), ((1000, 40), 7), ((5, 5, 40), 2)]
)
def test_maps_are_to_scale(shape: tuple[int, ...], grid: int) -> None:
    """Law: a cell is as wide and as high as its runs of indices, in one unit for all maps of a slice."""
    rest = ",()" * (len(shape) - 2)
    plan = rote.compile(f"block[(0),(){rest}] -> block[(),(0){rest}]", shape=shape, grid=grid)
    seen = 0
    for scene in scenes(plan.to_html()):
        for part in scene.all("div", class_="slice"):
            units = []
            for table in part.all("table"):
                widths, heights = sizes(table)
                head, *body = table.cells
                units += [
                    width / len(indices(tick)) for width, tick in zip(widths, head[1:], strict=True) if tick != "…"
                ]
                units += [high / len(indices(row[0])) for high, row in zip(heights, body, strict=True) if row[0] != "…"]
            assert max(units) - min(units) < 0.02
            seen += len(units)
    assert seen > 10


@pytest.mark.parametrize(
    ("text", "shape", "grid"),
    [
        ("block[(0),(1),()] -> block[(0),(),(1)]", (8, 7, 5), (2, 3)),
        ("[(0),(1),()] -> block[(),(0,1),()]", (4, 6, 8), (2, 3)),
        ("[(0:cyclic(2)),(),()] -> [(),(),(0)]", (6, 1, 5), (4,)),
        ("[(),(0),()]+(1) -> block[(),(1),(0)]", (2, 8, 3), (2, 2)),
        ("block[(0),(1),()]|(2@1) -> [(1),(0),()]", (5, 4, 6), (2, 2, 2)),
    ],
)
def test_cubes_show_the_owners_of_three_faces(text: str, shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """Law: of each visible face of a cube, every set of ranks covers as much as it owns of that face's elements."""
    source, target = (rote.parse(end).on(shape, grid) for end in text.split(" -> "))
    _, scene = scenes(straight(source, target).to_html())
    assert [cube.the("figcaption").text.partition(": ")[0] for cube in scene.all("figure")] == ["before", "after"]
    for cube, dist in zip(scene.all("figure"), (source, target), strict=True):
        faces = [each for each in cube.the("svg").all("g") if [*each.all("g")]]
        visible = [(1, 0), (0, shape[0] - 1), (2, shape[2] - 1)]  # front, right and top: a mode, and its index there
        for face, (mode, index) in zip(faces, visible, strict=True):
            found = {tuple(map(int, g.attributes["data-ranks"].split())): area(g) for g in face.all("g")}
            places = [place for place in product(*map(range, shape)) if place[mode] == index]
            owned = [dist.owners(place) for place in places]
            assert {*found} == {*owned}
            for ranks, covered in found.items():
                assert covered / sum(found.values()) == pytest.approx(owned.count(ranks) / len(owned), abs=0.01)


def area(group: Node) -> float:
    """The area of the polygons of a group."""
    whole = 0.0
    for path in group.all("path"):
        for polygon in path.attributes["d"].removesuffix("z").split("z"):
            numbers = [float(number) for number in polygon.removeprefix("M").split()]
            points = [*zip(numbers[::2], numbers[1::2], strict=True)]
            ends = zip(points, [*points[1:], points[0]], strict=True)
            whole += abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in ends)) / 2
    return whole


@pytest.mark.parametrize(
    "text", ["block[(0),()] -> block[(),(0)]", "[(0),(1)] -> block[(1),(0)]", "[(1),(0)] -> block[(0,1),()]"]
)
def test_a_page_lists_what_travels(text: str) -> None:
    """How much from whom to whom, and which elements: counted by owners alone."""
    grid = (2, 2) if "1" in text else (3,)
    plan = straight(*(rote.parse(end).on((5, 6), grid) for end in text.split(" -> ")))
    check_messages(scenes(plan.to_html())[1], plan.source, plan.target, 8)


def test_many_ranks_are_few_rows() -> None:
    """A page for 8,192 ranks is as small as one for 64: it lists a few of them, and the busiest sender."""
    texts = ("block[(0),(1),()]", "block[(),(0),(1)]")
    few, many = (
        straight(*(rote.parse(text).on((4096,) * 3, grid) for text in texts)).to_html() for grid in ((8, 8), (64, 128))
    )
    assert len(many) < 1.3 * len(few)
    assert "8,185 more" in many and "Messages of rank" in many and 'id="follow"' not in many


@pytest.mark.parametrize(
    "text",
    [
        "block[(0),(1),()] -> block[(),(0),(1)]",
        "[(0:cyclic(5)),()(1)]+(2) -> [(),(2:cyclic(3)),(0)]",
        pytest.param("[(0),(),(1)] -> block[(1),(0),()]", marks=pytest.mark.slow),
        pytest.param("a b c: [(0),(1),()] -> (a b) c: block[(0,1),(2)]", marks=pytest.mark.slow),
    ],
)
def test_a_page_does_not_grow_with_the_tensor(text: str) -> None:
    """A page of 4096 times as many indices along each mode is longer by the digits of its numbers alone."""
    small, large = (
        straight(*(rote.parse(end).on((n, n, n), (2, 3, 2)) for end in text.split(" -> "))).to_html()
        for n in (60, 4096 * 60)
    )
    assert len(list(read(large).all())) <= 1.02 * len(list(read(small).all()))
    assert len(large) < 1.5 * len(small) < 300_000


def test_what_is_written_is_text() -> None:
    """A plan from somebody else's file cannot bring markup or a script into the page or the card."""
    tree = json.loads(rote.compile("(a b) c: block[(0),()] -> a b c: [(0),(),()]", shape=(4, 4, 4), grid=2).to_json())
    plan = rote.Plan.from_json(json.dumps({**tree, "found": HOSTILE}))
    page = plan.to_html()
    document = read(page)
    assert len([*document.all("script")]) == 1 and not [*document.all("img")]
    assert HOSTILE in document.text and "alert(1)" not in document.the("script").text
    assert "<img" not in page and "alert(1)</script>" not in page
    read(plan._repr_html_())


def test_the_policy_allows_this_script_alone() -> None:
    """The page forbids itself the network, and every script but its own, which it names by its hash."""
    document = read(rote.compile("[(0)] -> [()]", shape=4, grid=2).to_html())
    (policy,) = [m.attributes["content"] for m in document.all("meta") if m.attributes.get("http-equiv")]
    script = document.the("script").text
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert "http" not in script and "url(" not in document.the("style").text + script


def test_a_plan_of_no_step_is_a_page() -> None:
    """It says where the tensor lies, and no more; of a tensor of order 0 too."""
    for text, shape in (("[(0),()] -> [(0),()]", (4, 4)), ("[]+(0) -> []+(0)", ())):
        plan = rote.compile(text, shape=shape, grid=2)
        assert len(scenes(plan.to_html())) == 1
        check_maps(scenes(plan.to_html())[0], plan.source, plan.source)


FFTS = [
    ("pencil", (4, 5, 6), (2, 1), "f8"),
    ("cyclic", (16,), (2,), "c16"),
    pytest.param("rows", (8, 8, 8), (4,), "c8", marks=pytest.mark.slow),
    pytest.param("volumetric", (16, 16), (2, 2), "c16", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("algorithm", "shape", "grid", "dtype"), FFTS)
def test_a_page_says_every_stage_of_an_fft(
    algorithm: str, shape: tuple[int, ...], grid: tuple[int, ...], dtype: str
) -> None:
    """All that is transformed, and every step of every transition, in the order of the walk; the same on all ranks."""

    def program(comm: rote.Comm) -> tuple[str, str, rote.fft.FFT]:
        f = rote.fft.FFT(shape, grid=grid, comm=comm, dtype=dtype, algorithm=algorithm)
        return f.to_html(), f._repr_html_(), f

    results = rote.run(program, ranks=prod(grid))
    assert len({result[:2] for result in results}) == 1
    page, card, f = results[0]
    expected = ["Start"]
    for number, stage in enumerate(f.walk.stages):
        if number:
            expected += [step.kind for step in f.walk.transitions[number - 1].steps]
        expected.append(", ".join(re.findall(r"\w+\([^()]*\)|twiddle", str(stage).split("]")[-1])) or "nothing")
    headings = [scene.the("h2").text for scene in scenes(page)]
    assert [heading.rpartition(": ")[2] for heading in headings] == expected
    assert sum("Stage" in heading for heading in headings) == len(f.walk.stages)
    assert str(f) == read(page).the("pre").text
    assert all(str(stage.before.layout) in page for stage in f.walk.stages)
    assert [*read(card).all("table", class_="map")] and str(f.output_layout) in read(card).text
