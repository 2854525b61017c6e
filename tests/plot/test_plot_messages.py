"""Message matrices: the numbers are the messages', and the pictures show the numbers."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from marks import examples
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from strategies import pairs

import rote
from rote import plot
from rote.compiler.movement import RECEIVES, SENDS, movement
from rote.plot.drawing import rank_color
from rote.plot.figures import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rote.layout.distribution import Distribution


def counted(source: Distribution, target: Distribution) -> np.ndarray:
    """The matrix by definition: every message, one by one."""
    found = np.zeros((source.grid.size, source.grid.size), np.int64)
    for rank in range(source.grid.size):
        for message in movement(source, target).messages(rank, SENDS):
            found[rank, message.peer] += len(message)
    return found


def compiled(text: str, shape: tuple[int, ...], *grid: int, dtype: str = "f8") -> rote.Plan:
    return rote.compile(text, shape=shape, grid=grid, dtype=dtype)


def two_steps() -> rote.Plan:
    layouts = ["block[(0),(1),()]", "block[(0),(),(1)]", "block[(),(0),(1)]"]
    one, two = (compiled(f"{a} -> {b}", (12, 12, 12), 3, 4) for a, b in pairwise(layouts))
    return rote.Plan(one.source, two.target, one.dtype, one.steps + two.steps)


def numbers(ax: Axes) -> dict[tuple[int, int], str]:
    """(from, to) -> what stands in the cell."""
    places = ((text.get_position(), text.get_text()) for text in ax.texts)
    return {(int(y), int(x)): text for (x, y), text in places}


def kept(ax: Axes) -> int:
    """How many cells are hatched."""
    return sum(len(c.get_paths()) for c in ax.collections if c.get_hatch())


# --- the numbers --------------------------------------------------------------------------------------------------


@settings(max_examples=examples(250))
@given(pairs())
def test_the_matrix_is_the_messages(pair: tuple[Distribution, Distribution]) -> None:
    """Law: the matrix, looked up in tables, is what the messages that ranks send add up to; the costs agree."""
    source, target = pair
    matrix = movement(source, target).matrix()
    assert np.array_equal(matrix, counted(source, target))
    others = matrix - np.diag(matrix.diagonal())
    for axis, side in ((1, SENDS), (0, RECEIVES)):
        elements = np.broadcast_to(movement(source, target).traffic(side).elements, source.grid.shape or (1,))
        assert np.array_equal(others.sum(axis=axis), elements.reshape(-1))


def test_a_thousand_ranks_are_counted_quickly() -> None:
    """A million pairs of ranks, of a tensor of 2**30 elements."""
    plan = compiled("block[(0),(1),()] -> [(0,1),(),()]", (1024, 1024, 1024), 32, 32)
    start = time.process_time()
    matrix = movement(plan.source, plan.target).matrix()
    assert time.process_time() - start < 2.0
    assert matrix.sum() == 1024**3


# --- the pictures -------------------------------------------------------------------------------------------------


def test_cells_hold_the_bytes() -> None:
    """From row to column, in bytes; empty where nothing is sent; the own part hatched, on the diagonal."""
    plan = compiled("block[(0),()] -> cyclic(3)[(),(0)]", (17, 23), 5)
    ax = plot.messages(plan).axes[0]
    sent = 8 * counted(plan.source, plan.target)
    assert numbers(ax) == {(a, b): str(sent[a, b]) for a in range(5) for b in range(5)}
    assert kept(ax) == 5
    sub_grid = plot.messages(compiled("block[(0),(1),()] -> block[(0),(),(1)]", (12, 12, 12), 3, 4)).axes[0]
    assert set(numbers(sub_grid)) == {(a, b) for a in range(12) for b in range(12) if a // 4 == b // 4}


def test_more_bytes_are_darker_and_the_own_part_is_grey() -> None:
    """Colours are of one scale from 0 up to the largest message; what a rank keeps is off it, and so is nothing."""
    plan = compiled("block[(0),()] -> cyclic(3)[(),(0)]", (17, 23), 5)
    image = np.asarray(plot.messages(plan).axes[0].get_images()[0].get_array())
    sent = counted(plan.source, plan.target)
    light = image.sum(axis=2)
    pairs = [(a, b) for a in range(5) for b in range(5) if a != b]
    assert all((sent[p] > sent[q]) == (light[p] < light[q]) for p in pairs for q in pairs)
    assert {tuple(image[k, k]) for k in range(5)} == {to_rgb("#dcdcdc")}
    gather = np.asarray(plot.messages(compiled("[(0)] -> [()]|(0)", (9,), 3)).axes[0].get_images()[0].get_array())
    assert {tuple(cell) for cell in gather[:, 1:].reshape(-1, 3)} == {to_rgb("#f7f7f7")}


def test_ranks_have_their_colours() -> None:
    """Stripes beside the matrix, down and across, as in the pictures of layouts."""
    ax = plot.messages(compiled("[(0),()] -> [(),(0)]", (8, 8), 4)).axes[0]
    colors = [rank_color(rank, 4) for rank in range(4)]
    across, down = (np.asarray(beside.get_images()[0].get_array()) for beside in ax.child_axes[:2])
    assert np.allclose(across[0], colors) and np.allclose(down[:, 0], colors)


def test_units_suit_the_largest_message() -> None:
    """Numbers of few characters, in the unit that the scale names."""
    texts = [Scale.of(most, 0).text(most) for most in (1, 999, 1023, 1024, 1536, 10**6, 2**30, 3 * 2**41)]
    assert texts == ["1", "999", "1023", "1", "1.5", "977", "1", "6"]
    assert [Scale.of(most, 0).name for most in (0, 1023, 1024, 2**30, 2**60)] == ["B", "B", "KiB", "GiB", "TiB"]
    assert Scale.of(5, 2048).name == "KiB", "what is kept is numbered too"
    ax = plot.messages(compiled("block[(0),()] -> block[(),(0)]", (64, 64), 4, dtype="c16")).axes[0]
    assert set(numbers(ax).values()) == {"4"}
    assert ax.child_axes[2].get_title(loc="left") == "KiB"


def test_a_plan_of_several_steps() -> None:
    """A matrix per step, titled as the plan prints it; or one of them."""
    titles = ["alltoall over 1", "alltoall over 0"]
    assert [ax.get_title() for ax in plot.messages(two_steps()).axes] == titles
    assert [ax.get_title() for ax in plot.messages(two_steps(), step=2).axes] == titles[1:]
    for wrong in (0, 3, -1):
        with pytest.raises(rote.PlanError, match=f"the plan has 2 steps, but step={wrong}"):
            plot.messages(two_steps(), step=wrong)


def test_nothing_sent() -> None:
    """Local steps and plans with nothing to do: all is kept, and there is no scale of colours but still a unit."""
    for text, title in (("[()] -> block[(0)]", "slice over 0"), ("[(0)] -> [(0)]", "nothing to do")):
        ax = plot.messages(compiled(text, (12,), 3)).axes[0]
        assert ax.get_title() == title
        assert numbers(ax) == {(k, k): "32" for k in range(3)}
        assert len(ax.child_axes) == 2, "the stripes only"
        legend = ax.get_legend()
        assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["kept, in B"]
    empty = plot.messages(compiled("[(0)] -> [()]", (0,), 3)).axes[0]
    assert not numbers(empty) and empty.get_legend() is None


@pytest.mark.parametrize(("ranks", "points"), [(64, 64), (65, 65), (256, 256), (257, 129), (1000, 250)])
def test_many_ranks_are_an_image(ranks: int, points: int) -> None:
    """Above 64 no cell is hatched or lined; above 256 ranks share points, which show the largest message."""
    gathered = rote.compile("[(0)] -> [()]|(0)", shape=3 * ranks, grid=ranks, machine=rote.Machine(latency=0))
    ax = plot.messages(gathered).axes[0]
    image = np.asarray(ax.get_images()[0].get_array())
    assert image.shape == (points, points, 3)
    assert len({tuple(color) for color in image[1:, 0]}) == 1, "all others send alike"
    assert {tuple(color) for color in image[:, 1:].reshape(-1, 3)} == {to_rgb("#f7f7f7")}
    assert bool(ax.collections) == (ranks <= 64)
    assert ax.get_xlim() == (0, ranks) and ax.get_ylim() == (ranks, 0)


def test_too_many_ranks_are_refused() -> None:
    """With what to do instead; and at once, before anything is counted."""
    plan = compiled("block[(0),(1),()] -> block[(0),(),(1)]", (64, 64, 64), 64, 64)
    for draw in (lambda: plot.messages(plan), lambda: plot.plan(plan, messages=True)):
        with pytest.raises(rote.PlanError, match="up to 1024 ranks, but grid 64x64 has 4096\ncompile the transition"):
            draw()


# --- manners ------------------------------------------------------------------------------------------------------


def test_axes_of_the_caller_are_drawn_on() -> None:
    """The caller's figure comes back; one matrix fits on one axes."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot.messages(compiled("[(0)] -> [()]", (4,), 2), right, legend=False) is figure
    assert not left.get_images() and right.get_images() and right.get_legend() is None
    with pytest.raises(rote.PlanError, match="the plan has 2 steps\nchoose one, as in step=1"):
        plot.messages(two_steps(), left)
    plot.messages(two_steps(), left, step=1)
    assert left.get_title() == "alltoall over 1"


def test_a_plan_from_one_grid_to_another() -> None:
    """The arrow says to which grid the step leads, whether ranks talk in it or not; the matrix is the messages'."""
    line, square = rote.parse("block[(0),()]").on((6, 4), (4,)), rote.parse("block[(0),(1)]").on((6, 4), (2, 2))
    for target, kind, grid in (
        (square, "exchange", "2x2"),
        (rote.parse("block[(0),()]").on((6, 4), (4, 1)), "relayout", "4x1"),
    ):
        plan = rote.compile(line, target)
        before, after, arrow, matrix = plan.plot().axes
        assert [ax.get_title() for ax in (before, after)] == [str(line.layout), str(target.layout)]
        assert [text.get_text() for text in arrow.texts if text.get_text()] == [kind, f"to grid {grid}"]
        assert matrix.get_title() == f"{kind} over 0 to grid {grid}"
        sent = 8 * counted(line, target)
        wanted = {(a, b): str(sent[a, b]) for a, b in np.argwhere(sent).tolist()}
        assert numbers(matrix) == numbers(plot.messages(plan, step=1).axes[0]) == wanted
        assert kept(matrix) == np.count_nonzero(sent.diagonal())


def test_several_steps_on_two_grids() -> None:
    """Each step is titled as the plan prints it; the ranks of all layouts are in one legend."""
    machine = rote.Machine(latency=1e-6, byte_time=1e-9, copy_time=0, reduce_time=1.0, step_time=0)
    source, target = rote.parse("[(0),()]+(1)").on((12, 12), (2, 2)), rote.parse("block[(),(0)]").on((12, 12), (4,))
    figure = rote.compile(source, target, machine=machine).plot()
    assert [ax.get_title() for ax in figure.axes[5:]] == ["reduce_scatter over 1", "exchange over 0,1 to grid 4"]
    assert [[text.get_text() for text in ax.texts if text.get_text()] for ax in figure.axes[3:5]] == [
        ["reduce_scatter", "over 1"],
        ["exchange", "to grid 4"],
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2", "3", "0+1", "2+3"]


def test_a_plan_is_drawn_with_its_messages() -> None:
    """The layouts as ever, then a matrix per step; without asking, none."""
    axes = plot.plan(two_steps(), messages=True).axes
    assert [ax.get_title() for ax in axes[5:]] == ["alltoall over 1", "alltoall over 0"]
    assert len(axes) == 7 and len(plot.plan(two_steps()).axes) == 5
    figure = plot.messages(two_steps())
    assert isinstance(figure, Figure) and figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
