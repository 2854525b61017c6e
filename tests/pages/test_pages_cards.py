"""Cards: what notebooks show of layouts, plans and tensors; and `rote explain --html`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import calls
from hypothesis import example, given
from markup_tree import Node, read
from runner import Runner
from strategies import distributions, layouts

import rote
from rote import L, block
from rote.cli import main
from rote.layout.distribution import Distribution
from rote.layout.layout import Layout
from rote.plot.drawing import is_light, rank_color
from rote.units import in_bytes, in_seconds


def card(value: Any) -> Node:
    """The card of a value: markup alone, without a style sheet or a script, which a notebook may leave out."""
    document = read(value._repr_html_())
    assert not [*document.all("script"), *document.all("style")]
    return document


@example(L(block(0, 0, 0)))
@given(layouts())
def test_a_layout_has_a_card(layout: Layout) -> None:
    """Every layout is drawn on a small shape and grid.

    One whose sizes add up to no such shape says what it wants, and one whose sizes are all 0 that it has no elements.
    """
    document = card(layout)
    assert document.the("code").text == str(layout)
    sized = re.search(r"block\(\d", str(layout))
    empty = re.search(r"block\(0(,0)*\)", str(layout)) and "no elements" in document.text
    maps = [*document.all("table", class_="map")]
    assert maps or empty or (sized and "layout.on(shape, grid)" in document.text)


@given(distributions())
def test_a_distribution_has_a_card(dist: Distribution) -> None:
    """Of any shape and grid; one without elements says so."""
    document = card(dist)
    assert str(dist.shape) in document.text and str(dist.grid) in document.text
    assert bool([*document.all("table", class_="map")]) == (0 not in dist.view_shape)
    assert len(dist._repr_html_()) < 12_000
    replicated = any(role.name == "replicated" and p > 1 for role, p in zip(dist.roles, dist.grid.shape, strict=True))
    assert ("each block is stored on" in document.text) == replicated


def test_a_plan_has_a_card() -> None:
    """It says steps and figures, and draws each layout on the way, but no more than four."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(6, 4), grid=2)
    document = card(plan)
    assert "alltoall over 0" in document.text and "at most 48 B in 1 message" in document.text
    assert len([*document.all("table", class_="map")]) == 2
    step = plan.steps[0]
    long = rote.Plan(
        plan.source, plan.source, plan.dtype, (step, type(step)("alltoall", step.after, step.before, (0,))) * 3
    )
    assert len([*card(long).all("table", class_="map")]) == 4 and "and 3 more" in card(long).text


def test_the_card_of_a_plan_names_both_grids() -> None:
    """Law: a plan that leads to another grid names both, as its page does."""
    source, target = rote.parse("[(0),(1)]").on((6, 4), (2, 2)), rote.parse("[(0),()]").on((6, 4), 4)
    assert "grid 2x2 to 4" in card(rote.compile(source, target)).text


@pytest.mark.parametrize("algorithm", ["slab", "pencil", "rows", "cyclic"])
def test_a_walk_has_a_card(algorithm: str) -> None:
    """It says its transforms, its moves and its spectrum, and draws its layouts; a choice says its price, too."""
    choice = next(choice for choice in rote.fft.compare((8, 8, 8), 4) if choice.name == algorithm and choice.walk)
    assert choice.walk is not None
    document = card(choice.walk)
    assert document.the("code").text == "fft" and "axes (0, 1, 2)" in document.text
    assert f"in {choice.walk.target.layout}" in document.text
    assert len([*document.all("table", class_="map")]) == min(len(choice.walk.stages), 4)

    document = card(choice)
    assert document.the("code").text == f"{algorithm} on {choice.source.grid}"
    assert f"about {in_seconds(choice.seconds)} on the default machine" in document.text
    assert f"{in_bytes(choice.peak_bytes)} on a rank" in document.text


def test_a_choice_without_a_walk_says_why() -> None:
    """The card of a family that has no walk gives the reason, and draws nothing."""
    choice = next(choice for choice in rote.fft.compare((7, 7), 7) if choice.walk is None)
    document = card(choice)
    assert choice.why in document.text and not [*document.all("table", class_="map")]


@pytest.mark.parametrize("name", [None, *rote.Machine.names()])
def test_a_prediction_and_its_machine_have_cards(name: str | None) -> None:
    """The card of a prediction has the seconds, the causes and the memory that it prints; its machine's has times."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(640, 640), grid=8)
    prediction = rote.predict(plan, machine=name)
    document = card(prediction)
    assert document.the("code").text == prediction.tasks.name
    for text in (in_seconds(prediction.seconds), prediction.placement, prediction.limit, *dict(prediction.parts)):
        assert text in document.text
    assert f"{in_bytes(prediction.peak_bytes)} on a rank" in document.text

    document = card(prediction.machine)
    assert "latency" in document.text and "fft time" in document.text
    assert name is None or (name in document.text and str(prediction.machine.profile.about) in document.text)
    assert ("on a node" in document.text) == (name is not None)


def test_cards_escape_what_users_name() -> None:
    """A machine may have any name, which is text in its cards and no markup; times per grid mode are all there."""
    machine = replace(rote.Machine(latency=(1e-6, 5e-6)), name="<script>alert(1)</script>")
    plan = rote.compile("block[(0),(1)] -> block[(),(0,1)]", shape=(8, 8), grid=(2, 2), machine=machine)
    for value in (machine, rote.predict(plan)):
        assert "<script>alert(1)</script>" in card(value).text
    assert "1.0 us, 5.0 us" in card(machine).text


def test_a_tensor_shows_itself_alone() -> None:
    """One rank may show a tensor: nobody else is asked, and no element is fetched."""

    def program(comm: rote.Comm) -> str | None:
        x = rote.DistTensor.from_global(np.arange(12.0).reshape(4, 3) + 1234, "block[(0),()]", comm)
        return x._repr_html_() if comm.rank == 1 else None

    page = rote.run(program, ranks=3)[1]
    assert "rank 1 holds" in read(page).text and "1234" not in page


def test_a_card_costs_no_more_for_a_large_tensor() -> None:
    """As many calls, and hardly more characters, for 4096 times the indices."""
    small, large = (rote.parse("[(0),(1:cyclic(4))]").on((n, n), (3, 2)) for n in (200, 4096 * 200))
    for dist in (small, large):
        dist._repr_html_()
    assert calls(large._repr_html_) <= 1.05 * calls(small._repr_html_)
    assert len(large._repr_html_()) < 1.3 * len(small._repr_html_())


@pytest.mark.parametrize("size", [1, 2, 3, 16, 1000])
def test_ranks_can_be_read_on_their_colours(size: int) -> None:
    """The contrast of a number with the colour below it is at least 4.5, as WCAG asks (2.2, 1.4.3)."""

    def luminance(color: tuple[float, ...]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for rank in range(size):
        color = rank_color(rank, size)
        levels = sorted((luminance(color), luminance((0.0,) * 3 if is_light(color) else (1.0,) * 3)))
        assert (levels[1] + 0.05) / (levels[0] + 0.05) >= 4.5


def explain(*args: str) -> str:
    """The output of a command that is done."""
    done = Runner().invoke(main, ["explain", *args])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_writes_a_page(tmp_path: Path) -> None:
    """`rote explain --html` writes the plan's page, and says so; with --fft that of the walk that is taken first."""
    text, path = "block[(0),()] -> block[(),(0)]", tmp_path / "plan.html"
    assert explain(text, "--shape", "6x4", "--grid", "2", "--html", str(path)).endswith(f"\nwrote {path}\n")
    assert path.read_text("utf-8") == rote.compile(text, shape=(6, 4), grid=2).to_html()
    assert explain("--fft", "8x8", "--ranks", "2", "--html", str(path), "--force").endswith(f"\nwrote {path}\n")
    assert "Stage 1 of 2" in read(path.read_text("utf-8")).text
