"""Pictures of contractions: the cells of a product are those of the ranks that compute them."""

from __future__ import annotations

import io
import sys

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import rote
from rote import plot
from rote.plot import figures
from rote.plot.drawing import Run, Side, cube

TILES = "block[(0),(1)]"


def owner_at(figure: Figure, place: int, x: float, y: float) -> list[str]:
    """Who owns the cells in which a point of a picture lies."""
    found = [c for c in figure.axes[place].collections if isinstance(c, PolyCollection)]
    cells = [c for c in found if not str(c.get_label()).startswith("_")]
    return [str(c.get_label()) for c in cells if any(path.contains_point((x, y)) for path in c.get_paths())]


def titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes]


@pytest.mark.parametrize("way", ["i:0,j:1", "i:0,k:1", "k:0,j:1", "k:10"])
def test_a_product_of_matrices_is_a_cube(way: str) -> None:
    """On the faces of the cube (i, j, k), each cell has the rank that multiplies there, by the plan's layouts."""
    ends = {
        "i:0,j:1": (["block[(0),()]", "block[(),(1)]"], TILES),
        "i:0,k:1": ([TILES, "block[(1),()]"], "block[(0),()]+(1)"),
        "k:0,j:1": (["block[(),(0)]", TILES], "block[(),(1)]+(0)"),
        "k:10": (["block[(),(1,0)]", "block[(1,0),()]"], "[(),()]+(0,1)"),
    }[way]
    m, k, n = 4, 6, 8
    plan = rote.compile_einsum("ik,kj->ij", [(m, k), (k, n)], ends[0], (2, 2), layout=ends[1])
    figure = plan.plot()
    assert titles(figure) == [f"1. ik,kj->ij with {way}\n{plan.figures()[0].family}"]
    a, b = plan.operands
    ranks = range(4)
    # A rank multiplies the points whose i, k are in its block of A and whose k, j are in its block of B.
    held = [(set(a.indices(r)[0]), set(b.indices(r)[1]), set(a.indices(r)[1])) for r in ranks]
    sides = [Side(extent=extent, ticks=(Run(0, extent),)) for extent in (m, n, k)]
    front, right, top = cube(sides, {})
    seen = [(front, (i, 0, z), (z, i)) for i in range(m) for z in range(k)]
    seen += [(right, (m - 1, j, z), (z, j)) for j in range(n) for z in range(k)]
    seen += [(top, (i, j, k - 1), (j, i)) for i in range(m) for j in range(n)]
    for face, point, (row, column) in seen:
        x, y = face.cell(Run(row, row + 1), Run(column, column + 1)).mean(axis=0)
        mine = [r for r in ranks if all(at in own for at, own in zip(point, held[r], strict=True))]
        assert owner_at(figure, 0, x, y) == [str(r) for r in mine], point


def test_products_stand_side_by_side() -> None:
    """One picture per product, in order, and none for a diagonal; panels are named."""
    plan = rote.compile_einsum("ii,ij,jk->k", [(8, 8)] * 3, [TILES] * 3, (2, 2))
    figures = [row for row in plan.figures() if row.flops]
    assert [title.split("\n")[1] for title in titles(plan.plot())] == [row.family for row in figures]
    paneled = rote.compile_einsum("ik,kj->ij", [(40, 40)] * 2, [TILES] * 2, (2, 2), layout=TILES, max_bytes=17_000)
    assert "panels of" in titles(paneled.plot())[0].split("\n")[1]


def test_of_many_letters_three_are_drawn() -> None:
    """The split ones first; others are named, and may be chosen."""
    plan = rote.compile_einsum("abcd,cdef->abef", [(4, 4, 4, 4)] * 2, ["block[(),(0),(),(1)]"] * 2, (2, 2))
    (title,) = titles(plan.plot())
    assert "at index 0 of " in title and title.count(",") >= 3
    (title,) = titles(plot.contraction(plan, letters="abc"))
    left = title.rpartition("at index 0 of ")[2].split(", ")
    assert sorted(left) == ["d", "e", "f"]


@pytest.mark.parametrize("letters", ["", "aa", "abcd", "z"])
def test_other_letters_are_refused(letters: str) -> None:
    """One to three different letters of the contraction are drawn."""
    plan = rote.compile_einsum("abcd,cdef->abef", [(2, 2, 2, 2)] * 2, grid=(2, 2))
    with pytest.raises(rote.PlanError, match="one to three different letters of abcdef"):
        plot.contraction(plan, letters=letters)


@pytest.mark.parametrize(("text", "shapes"), [(",->", [(), ()]), ("i,i->", [(9,), (9,)]), ("i,j->ij", [(5,), (6,)])])
def test_products_of_fewer_letters_are_drawn_as_tensors_are(text: str, shapes: list[tuple[int, ...]]) -> None:
    """A point, a line and a matrix."""
    figure = rote.compile_einsum(text, shapes, grid=(2, 2)).plot()
    figure.savefig(io.BytesIO(), format="png")
    assert text in titles(figure)[0] and len(figure.axes) == 1


def test_thousands_of_ranks_are_drawn() -> None:
    """On 16x16x16 ranks, as fast as on two."""
    figure = rote.compile_einsum("ik,kj->ij", [(4096, 4096)] * 2, grid=(16, 16, 16)).plot()
    (title,) = titles(figure)
    assert title.endswith("\n3-D") and all(f"{letter}:" in title for letter in "ijk")


def test_pictures_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of contractions and of their scaling; without it, the error says what to install."""
    plan = rote.compile_einsum("i,i->", [(9,), (9,)], grid=2)
    scaling = rote.einsum_scaling("i,i->", [(9,), (9,)], ranks=[1, 2])
    assert scaling.plot()._repr_png_()[:4] == b"\x89PNG"
    figures._figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for value in (plan, scaling):
        with pytest.raises(rote.RoteError, match="pip install matplotlib"):
            value.plot()
