"""Pictures: the figures of the papers, fact by fact, and the manners of the drawing functions."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import product
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import rote
from rote import plot
from rote.layout.distribution import Distribution
from rote.plot import figures
from rote.plot.drawing import Points, Run, Side, cube, rank_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def on(text: str, shape: tuple[int, ...], *grid: int) -> Distribution:
    return rote.parse(text).on(shape, grid)


def picture(dist: Distribution) -> Axes:
    return plot.layout(dist).axes[0]


def cells(ax: Axes) -> dict[str, PolyCollection]:
    """Owners, as they are written -> their cells."""
    found = [c for c in ax.collections if isinstance(c, PolyCollection)]
    return {str(c.get_label()): c for c in found if not str(c.get_label()).startswith("_")}


def counts(ax: Axes) -> dict[str, int]:
    return {owners: len(c.get_paths()) for owners, c in cells(ax).items()}


def owner_at(ax: Axes, x: float, y: float) -> list[str]:
    """Who owns the cells in which a point of the picture lies."""
    return [who for who, c in cells(ax).items() if any(path.contains_point((x, y)) for path in c.get_paths())]


def check_visible(dist: Distribution) -> None:
    """Every element on the three visible faces of a cube has its owner's label there."""
    a, b, c = dist.view_shape
    ax = picture(dist)
    sides = [Side(extent=n, ticks=(Run(0, n),)) for n in dist.view_shape]
    front, right, top = cube(sides, {})
    seen = [(front, (i, 0, k), (k, i)) for i in range(a) for k in range(c)]
    seen += [(right, (a - 1, j, k), (k, j)) for j in range(b) for k in range(c)]
    seen += [(top, (i, j, c - 1), (j, i)) for i in range(a) for j in range(b)]
    for face, index, (row, column) in seen:
        x, y = face.cell(Run(row, row + 1), Run(column, column + 1)).mean(axis=0)
        assert owner_at(ax, x, y) == [str(rank) for rank in dist.owners(index)], index


def check_colors(ax: Axes, size: int) -> None:
    """Every rank has the colour that is its own in all pictures of as many ranks."""
    for rank, collection in cells(ax).items():
        assert to_rgb(collection.get_facecolor()[0]) == pytest.approx(rank_color(int(rank), size))


# --- the papers ---------------------------------------------------------------------------------------------------


def test_figure_1_of_paper_000() -> None:
    """Slabs on 4 ranks: in x each is a slice of the front and the top, the last one all of the right; in y alike."""
    before, after = on("block[(0),(),()]", (16, 16, 16), 4), on("block[(),(0),()]", (16, 16, 16), 4)
    assert counts(picture(before)) == {"0": 2, "1": 2, "2": 2, "3": 3}
    assert counts(picture(after)) == {"0": 3, "1": 2, "2": 2, "3": 2}
    for dist in (before, after):
        check_visible(dist)
        check_colors(picture(dist), 4)
    red, orange, light_blue, dark_blue = (rank_color(rank, 4) for rank in range(4))
    assert red[0] > 0.7 and max(red[1:]) < 0.2
    assert orange[0] > orange[1] > orange[2] and orange[0] > 0.9
    assert light_blue[2] > light_blue[1] > light_blue[0] > dark_blue[0]
    assert dark_blue[2] > 2 * dark_blue[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The front is at j1 = 0, the right at j0 = 11, the top at j2 = 11: 3 + 4 + 12 pencils end or lie there.
        ("block[(0),(1),()]", {0: 2, 4: 2, 8: 3, 9: 2, 10: 2, 11: 2, 1: 1, 2: 1, 3: 1, 5: 1, 6: 1, 7: 1}),
        ("block[(0),(),(1)]", {0: 1, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1, 6: 1, 7: 2, 8: 2, 9: 2, 10: 2, 11: 3}),
        ("block[(),(0),(1)]", {0: 2, 1: 2, 2: 2, 3: 3, 4: 1, 5: 1, 6: 1, 7: 2, 8: 1, 9: 1, 10: 1, 11: 2}),
    ],
)
def test_figure_4_of_paper_000(text: str, expected: dict[int, int]) -> None:
    """Pencils of 12 x 12 x 12 on a 3 x 4 grid, along each axis: 12 ranks, each seen as often as geometry has it."""
    dist = on(text, (12, 12, 12), 3, 4)
    ax = picture(dist)
    assert counts(ax) == {str(rank): n for rank, n in expected.items()}
    check_colors(ax, 12)
    check_visible(dist)


def test_figure_7_of_paper_002() -> None:
    """A matrix on 2 ranks by columns: in turn in A, by tiles of 4 in B; the tiles also as a mode of their own."""
    a, b = picture(on("[(),(0)]", (16, 16), 2)), picture(on("[(),(0:cyclic(4))]", (16, 16), 2))
    assert counts(a) == {"0": 8, "1": 8}
    assert counts(b) == {"0": 2, "1": 2}
    for row, column in product(range(16), repeat=2):
        assert owner_at(a, column + 0.5, row + 0.5) == [str(column % 2)]
        assert owner_at(b, column + 0.5, row + 0.5) == [str(column // 4 % 2)]
    tiles = on("a (r s=4): [(),(0),()]", (16, 16), 2)
    assert all(tiles.owners((0, column // 4, column % 4)) == (column // 4 % 2,) for column in range(16))
    check_visible(tiles)


# --- every role ---------------------------------------------------------------------------------------------------


def test_replicated_and_partial_cells_are_hatched() -> None:
    """Stripes for replicas, crosses for contributions; in the colours of the first and of the last."""
    replicated, partial = cells(picture(on("[(0),()]", (4, 4), 2, 2))), cells(picture(on("[(0),()]+(1)", (4, 4), 2, 2)))
    assert {who: c.get_hatch() for who, c in replicated.items()} == {"0,1": "//", "2,3": "//"}
    assert {who: c.get_hatch() for who, c in partial.items()} == {"0+1": "x", "2+3": "x"}
    assert to_rgb(partial["2+3"].get_facecolor()[0]) == pytest.approx(rank_color(2, 4))
    assert to_rgb(partial["2+3"].get_edgecolor()[0]) == pytest.approx(rank_color(3, 4))


def test_the_legend_names_ranks_that_hold_nothing() -> None:
    """All owners, then those that own nothing."""
    for text, shape, grid, expected in [
        ("[(0),()]|(1)", (4, 4), (2, 2), ["0", "2", "1, 3: nothing"]),
        ("block[(0)]", (2,), (3,), ["0", "1", "2: nothing"]),
        ("[(),()]", (4, 4), (4,), ["0-3"]),
    ]:
        legend = picture(on(text, shape, *grid)).get_legend()
        assert legend is not None
        assert [entry.get_text() for entry in legend.get_texts()] == expected


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (17, 40)])
def test_matrices_have_global_indices_as_coordinates(shape: tuple[int, int]) -> None:
    """The point (j + 0.5, i + 0.5) is in the cell of the owner of (i, j), row 0 at the top."""
    dist = on("[(0),(1:block)]", shape, 2, 3)
    ax = picture(dist)
    assert ax.yaxis_inverted()
    for i, j in product(range(shape[0]), range(shape[1])):
        assert owner_at(ax, j + 0.5, i + 0.5) == [str(dist.owners((i, j))[0])]


def test_orders_0_and_1_and_no_elements() -> None:
    """A scalar is one cell, a vector one row, and an empty tensor says so."""
    assert counts(picture(on("[]", (), 2))) == {"0,1": 1}
    assert counts(picture(on("[(0:cyclic(2))]", (12,), 3))) == {"0": 2, "1": 2, "2": 2}
    assert [text.get_text() for text in picture(on("[(0),()]", (0, 3), 2)).texts] == ["no elements"]


def test_more_than_three_modes_must_be_chosen() -> None:
    """Others stand at index 0; the title says it, and the error how to choose."""
    dist = on("block[(0),(1),(2),()]", (4, 4, 4, 4), 2, 2, 2)
    with pytest.raises(rote.LayoutError, match=r"write rote\.parse\(text\)\.on\(shape, grid\)"):
        rote.plot.layout("block[(0),()]")
    with pytest.raises(rote.LayoutError, match=r"up to three modes.*modes=\(0, 1, 2\)"):
        plot.layout(dist)
    for wrong in ((0, 0), (4,), (-1, 0), ()):
        with pytest.raises(rote.LayoutError, match="not different modes"):
            plot.layout(dist, modes=wrong)
    ax = plot.layout(dist, modes=(1, 3)).axes[0]
    assert ax.get_title().endswith("at index 0 of mode 0, mode 2")
    assert counts(ax) == {"0": 1, "2": 1}


@pytest.mark.perf
def test_large_pictures_are_quick_and_bounded() -> None:
    """1024 x 1024 x 1024, cyclic, on 32,768 ranks: the first 128 runs of each mode, and the title says so."""
    start = time.process_time()
    ax = picture(on("block[(0),(1),()]", (256, 256, 256), 4, 4))
    assert time.process_time() - start < 1.0
    assert sum(counts(ax).values()) == 4 + 4 + 16
    start = time.process_time()
    ax = picture(on("[(0),(1),(2)]", (1024, 1024, 1024), 32, 32, 32))
    assert time.process_time() - start < 5.0
    assert "mode 2 up to 128 of 1024" in ax.get_title()
    assert max(len(c.get_paths()) for c in ax.collections) == 3 * 128**2


# --- plans --------------------------------------------------------------------------------------------------------


def test_a_plan_is_its_layouts_side_by_side() -> None:
    """One picture before and one after each step, the step's name between, the same colours in all."""
    shape = (12, 12, 12)
    steps = ["block[(0),(1),()]", "block[(0),(),(1)]", "block[(),(0),(1)]"]
    whole = rote.compile(f"{steps[0]} -> {steps[1]}", shape=shape, grid=(3, 4))
    second = rote.compile(f"{steps[1]} -> {steps[2]}", shape=shape, grid=(3, 4))
    both = rote.Plan(whole.source, second.target, whole.dtype, whole.steps + second.steps)
    axes = plot.plan(both).axes
    assert [ax.get_title() for ax in axes if ax.get_title()] == steps
    assert [text.get_text() for ax in axes[3:] for text in ax.texts if text.get_text()] == [
        *("alltoall", "over 1"),
        *("alltoall", "over 0"),
    ]
    for ax in axes[:3]:
        check_colors(ax, 12)


def test_a_plan_with_nothing_to_do_is_drawn() -> None:
    """Two equal pictures, and words between."""
    dist = on("[(0),()]", (4, 4), 2)
    axes = plot.plan(rote.compile(dist, dist)).axes
    assert [text.get_text() for text in axes[2].texts if text.get_text()] == ["nothing", "to do"]


# --- manners ------------------------------------------------------------------------------------------------------


def test_axes_of_the_caller_are_drawn_on() -> None:
    """Then the caller's figure comes back, and nothing else in it is touched."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot.layout(on("[(0),()]", (4, 4), 2), right, legend=False) is figure
    assert not left.collections and right.collections and right.get_legend() is None


def test_a_notebook_shows_the_figure() -> None:
    """Without any backend: the figure knows itself as PNG."""
    figure = plot.layout(on("[(0),()]", (4, 4), 2))
    assert isinstance(figure, Figure)
    assert figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


def test_no_window_and_no_settings() -> None:
    """Drawing leaves matplotlib's settings as they are and imports no pyplot; importing rote.plot, none of it."""
    settings = dict(matplotlib.rcParams)
    plot.layout(on("[(0),()]", (4, 4), 2))
    assert dict(matplotlib.rcParams) == settings
    code = (
        "import sys, rote.plot; assert 'matplotlib' not in sys.modules\n"
        "import rote; rote.plot.layout(rote.parse('[(0)]').on(4, 2))\n"
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an ImportError out of the depths."""
    figures._figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(rote.RoteError, match="pip install matplotlib"):
        plot.layout(on("[(0)]", (4,), 2))


def test_cells_of_a_face_fill_it() -> None:
    """Law: the areas of the cells of a face add up to the face's."""

    def area(corners: Points) -> float:
        x, y = corners.T
        return abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2

    sides = [
        Side(None, "", 7, (Run(0, 3), Run(3, 5), Run(5, 7))),
        *(Side(None, "", 4, (Run(0, 4),)),) * 2,
    ]
    for face in cube(sides, {}):
        parts = [area(face.cell(r, c)) for r in face.down.runs for c in face.across.runs]
        assert sum(parts) == pytest.approx(area(face.outline()))
