"""Drawings as text: every cell names the owners, nothing is ever too long, and the runs behind them are right."""

from __future__ import annotations

import re
import time
from itertools import pairwise, product

import pytest
from layout.test_layout_rounded import NEW

import rote
from rote.layout.distribution import Distribution
from rote.plot.drawing import Owners, owners_of, rank_color, run_around, runs
from rote.plot.text import draw

MODES = ["()", "(0)", "(0:block)", "(0:block(3))", "(0:cyclic(2))", "(0,1)", "(0:block,1)", "(0:cyclic(2),1:cyclic(3))"]
MATRICES = [
    "[(0),(1)]",
    "block[(0,1),()]",
    "[(),()]",
    "[(0),()]+(1)",
    "[(),(1)]|(0@1)",
    "block[(),(0)]+max(1)",
    "[(),()]+(0)",
]


def on(text: str, shape: tuple[int, ...], *grid: int) -> Distribution:
    return rote.parse(text).on(shape, grid)


def test_runs_cover_a_mode_and_end_where_owners_change() -> None:
    """Law: the runs follow each other from 0 to the extent; owners are equal along a run, and other behind it."""
    for text, extent in product(MODES, range(7)):
        dist = on(f"[{text}]", (extent,), 2, 3)
        found = list(runs(dist, 0))
        assert [i for run in found for i in range(run.start, run.stop)] == list(range(extent))
        for run in found:
            assert {dist.owners(i) for i in range(run.start, run.stop)} == {owners_of(dist)(dict(run.at)).ranks}
            assert all(run_around(dist, 0, i) == run for i in range(run.start, run.stop))
        assert all(a.at != b.at for a, b in pairwise(found))


@pytest.mark.parametrize("text", MATRICES)
def test_every_cell_names_its_owners(text: str) -> None:
    """Law: the cell in row i and column j says who owns (i, j), for every role that a grid mode can have."""
    dist = on(text, (5, 4), 2, 3)
    lines = draw(dist).splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith("across")) + 2
    for i, j in product(range(5), range(4)):
        row, *cells = lines[first + i].split()
        assert row == str(i)
        assert spoken(cells[j]) == dist.owners((i, j))


def spoken(cell: str) -> tuple[int, ...]:
    """The ranks that a cell says; an ellipsis stands for all that are evenly spaced between its ends."""
    if cell == "0+3,…,2+5":
        return (0, 1, 2, 3, 4, 5)
    if "…" in cell:
        first, last = (int(n) for n in re.split(r"[+,]…[+,]", cell))
        step = {(0, 5): 1, (0, 4): 2, (1, 5): 2}[first, last]
        return tuple(range(first, last + 1, step))
    if "-" in cell:
        first, last = map(int, cell.split("-"))
        return tuple(range(first, last + 1))
    return tuple(sorted(int(n) for n in re.split("[+,]", cell)))


@pytest.mark.parametrize(
    ("owners", "text"),
    [
        (Owners(3), "3"),
        (Owners(0, (0, 1)), "0,1"),
        (Owners(4, (0, 1, 2, 3)), "4-7"),
        (Owners(0, (0, 4, 8, 12, 16)), "0,…,16"),
        (Owners(0, (0,), (0, 1)), "0+1"),
        (Owners(8, (0,), (0, 1, 2, 3)), "8+…+11"),
        (Owners(0, (0, 1), (0, 2)), "0+2,1+3"),
        (Owners(0, (0, 1, 2), (0, 3)), "0+3,…,2+5"),
    ],
)
def test_how_owners_are_written(owners: Owners, text: str) -> None:
    """Replicas with commas, contributions with plus signs, many of them by the first and the last."""
    assert str(owners) == text


def test_a_matrix_that_one_knows() -> None:
    """The picture of a small cyclic matrix, as a whole."""
    assert draw(on("[(0),(1)]", (2, 3), 2, 2)).splitlines() == [
        "[(0),(1)] on (2, 3), grid 2x2",
        "",
        "mode 0 down, mode 1 across",
        "     0  1  2",
        "  0  0  1  0",
        "  1  2  3  2",
        "",
        " rank  at   block   mode 0  mode 1",
        "    0  0,0  (1, 2)  {0}     {0, 2}",
        "    1  0,1  (1, 1)  {0}     {1}",
        "    2  1,0  (1, 2)  {1}     {0, 2}",
        "    3  1,1  (1, 1)  {1}     {1}",
    ]


def test_slices_of_a_cube() -> None:
    """A tensor of order 3 is shown as one matrix for each part of its first mode."""
    text = draw(on("[(0),(),(1)]", (4, 2, 2), 2, 2))
    assert "[{0, 2}, :, :]" in text and "[{1, 3}, :, :]" in text
    assert "  0  0  1          0  2  3" in text


def test_ranks_that_hold_nothing_are_named() -> None:
    """Outside a root, and where there are more ranks than indices."""
    rooted = draw(on("[(0),()]|(1)", (4, 4), 2, 2))
    assert "2 of 4 ranks hold nothing" in rooted
    assert [line.split()[0] for line in rooted.splitlines() if line.endswith("holds nothing")] == ["1", "3"]
    assert "1 of 4 ranks holds nothing" in draw(on("[(0)]", (3,), 4))
    assert "the tensor has no elements" in draw(on("[(0),()]", (0, 4), 2))
    assert "one element, on  0-2" in draw(on("[]", (), 3))


@pytest.mark.parametrize("text", [*MATRICES, "block[(0),(1)]"])
def test_the_number_of_empty_ranks_is_counted_right(text: str) -> None:
    """Law: the number that is counted by algebra is the number of ranks whose block is empty."""
    for shape in product((0, 1, 2, 5), repeat=2):
        dist = on(text, shape, 2, 3)
        empty = sum(0 in dist.local_shape(rank) for rank in range(6))
        said = re.search(r"(\d+) of 6 ranks holds? nothing", draw(dist))
        assert (int(said[1]) if said else 0) == empty


LARGE = [
    ("block[(0),(1),()]", (1024,) * 3, (128, 256)),
    ("[(0),(1),(2)]", (1024,) * 3, (32, 32, 32)),
    ("[(0,1),(2)]", (1024, 1024), (8, 4, 1024)),
    ("[(0:cyclic(2))]", (10**9,), (32768,)),
    ("[(),()]+(0)", (4, 4), (32768,)),
    ("block[(0),()]", (3, 4), (32768,)),
    ("block[(0),(1),(2),(3),()]", (64,) * 5, (8, 8, 8, 64)),
    ("(a b) c: block[(0),()]", (1024, 1024, 1024), (32768,)),
]


@pytest.mark.parametrize(("text", "shape", "grid"), LARGE)
def test_large_is_as_quick_and_short_as_small(text: str, shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """32,768 ranks: a screenful, at once; it says how many ranks the table leaves out."""
    start = time.process_time()
    lines = draw(rote.parse(text).on(shape, grid)).splitlines()
    assert time.process_time() - start < 1.0
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 104
    assert "32,761 more ranks" in "\n".join(lines)


def test_colour_adds_nothing_but_colour() -> None:
    """Law: without its escapes the coloured text is the plain one; each rank has one colour, and ranks differ."""
    dist = on("block[(0),(),(1)]", (4, 4, 4), 2, 2)
    painted = draw(dist, color=True)
    bare = re.sub("\x1b\\[[0-9;]*m", "", painted)
    assert [line.rstrip() for line in bare.splitlines()] == draw(dist).splitlines()
    looks = {(rank, look) for look, rank in re.findall("\x1b\\[([0-9;]+)m +([0-9]+) \x1b", painted)}
    assert len(looks) == len({rank for rank, _ in looks}) == len({look for _, look in looks}) == 4
    assert "\x1b" not in draw(dist)


def test_colours_run_from_red_to_blue() -> None:
    """The first rank is red and the last one blue, as Dalcin et al. 2019 have them, and no two ranks look alike."""
    for size in (2, 4, 12, 64):
        colors = [rank_color(rank, size) for rank in range(size)]
        assert len(set(colors)) == size
        assert colors[0][0] > 2 * colors[0][2] and colors[-1][2] > 2 * colors[-1][0]


@pytest.mark.parametrize("text", NEW)
def test_the_new_kinds_are_drawn(text: str) -> None:
    """Rounded blocks, and cyclic tiles from another coordinate on: a picture begins with what it shows."""
    dist = on(text, (7, 5), 2, 3)
    assert str(dist) in draw(dist)
