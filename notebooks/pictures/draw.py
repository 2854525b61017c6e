"""Draw the pictures of this folder: `python notebooks/pictures/draw.py` writes them beside this file, or those that are
named.

A row of `PICTURES` is a file's name and what it shows. A test compares what is stored with what is drawn today.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import gallery
import matplotlib
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import rote
from rote.cli.demo import draw_walk


def walk() -> Figure:
    """The FFT of real numbers in pencils on four ranks: its layouts, its transforms and its moves."""
    cube, grid = (64, 64, 64), (2, 2)
    choices = rote.fft.compare(cube, 4, layout="block[(0),(1),()]", grid=grid, dtype="f8")
    figure = Figure((9.6, 2.3), layout="constrained")
    draw_walk(figure, next(choice.walk for choice in choices if choice.name == "pencil"))
    return figure


def beside(*dists: rote.Distribution, size: tuple[float, float], rows: int = 1) -> Figure:
    """Several distributions in one picture, left to right in rows; size in inches."""
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(rows, len(dists) // rows, squeeze=False).flat
    for ax, dist in zip(axes, dists, strict=True):
        rote.plot.layout(dist, ax, legend=False)
    return figure


def kinds() -> Figure:
    """Eight indices on two ranks, by the first, the last and the middle one of their binary digits."""
    texts = ("block[(0)]", "[(0)]", "[(0:cyclic(2))]")
    return beside(*(rote.parse(text).on(8, 2) for text in texts), size=(5.4, 3.4), rows=3)


def refinement() -> Figure:
    """Eight indices in halves, and in halves that are split again: in blocks, and in turn."""
    texts = ("block[(0)]", "block[(0,1)]", "[(0:block,1)]")
    return beside(*(rote.parse(text).on(8, (2, 2)) for text in texts), size=(5.4, 3.4), rows=3)


def matrices() -> Figure:
    """A matrix on a grid of 2 x 2: blocks, elements in turn, and one kind along each mode."""
    texts = ("block[(0),(1)]", "[(0),(1)]", "[(0:block),(1)]")
    return beside(*(rote.parse(text).on((6, 8), (2, 2)) for text in texts), size=(8.4, 2.8))


def views() -> Figure:
    """Sixteen numbers read as four rows of four, split by rows, by columns, and the same two as the tensor sees them."""
    texts = ("(r s=4): block[(0),()]", "(r s=4): block[(),(0)]")
    same = ("block[(0)]", "[(0)]")
    dists = [rote.parse(text).on(16, 4) for text in texts + same]
    return beside(*dists, size=(7.6, 4.6), rows=2)


def messages() -> Figure:
    """A matrix in blocks of rows, then in blocks of columns, and who sends how much to whom."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(8, 8), grid=4)
    return rote.plot.plan(plan, messages=True)


CUBOIDS = {  # an assignment of ik,kj->ij -> the layout of the points (i, j, k), and the grid
    "SUMMA\ni:0,j:1": ("block[(0),(1),()]", (4, 2)),
    "stationary A\ni:0,k:1": ("block[(0),(),(1)]", (4, 2)),
    "inner\nk:0": ("block[(),(),(0)]", 8),
    "3-D\ni:0,j:1,k:2": ("block[(0),(1),(2)]", (2, 2, 2)),
}


def cuboids() -> Figure:
    """The points (i, j, k) of a matrix product on eight ranks: which rank multiplies which cuboid of them."""
    figure = Figure((10.4, 3.0), layout="constrained")
    for ax, (title, (text, grid)) in zip(figure.subplots(1, len(CUBOIDS)), CUBOIDS.items(), strict=True):
        rote.plot.layout(rote.parse(text).on((8, 8, 8), grid), ax, legend=False)
        ax.set_title(title)
        for label in ax.texts:
            if label.get_text().startswith("mode "):
                label.set_text("ijk"[int(label.get_text()[-1])])
    return figure


MEASURED = Path(__file__).parents[2] / "tests" / "paper" / "measured.csv"


def published(machine: str) -> list[tuple[float, rote.Prediction]]:
    """The seconds that others published of FFTs on a machine, each with what is predicted of the same walk."""
    rows = []
    lines = [line for line in MEASURED.read_text("utf-8").splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        if row["machine"] == machine:
            ranks, family, on = int(row["ranks"]), row["family"], int(row["ranks_per_node"])
            half = 2 ** (ranks.bit_length() // 2)
            layout, grid = ("block[(0),(),()]", (ranks,)) if family == "slab" else ("block[(0),(1),()]", (half, -1))

            choices = rote.fft.compare((int(row["points"]),) * 3, ranks, layout, grid, "f8")
            walk = next(choice.walk for choice in choices if choice.name == family)
            prediction = rote.predict(walk, rote.Machine.load(machine, on, int(row["threads"])))
            rows.append((float(row["ms"]) / 1e3, prediction))
    return rows


def measured() -> Figure:
    """Published seconds against predicted ones: a bar is the range of a prediction, and a point its value."""
    figure = Figure((9.6, 4.4), layout="constrained")
    for ax, machine in zip(figure.subplots(1, 2), ("jean-zay", "fx10"), strict=True):
        rows = published(machine)
        ranges = [prediction.range for _, prediction in rows]
        bars = [
            [(x * a, y) for a, y in ((0.96, low), (1.04, low), (1.04, high), (0.96, high))]
            for (x, _), (low, high) in zip(rows, ranges, strict=True)
        ]
        ax.add_collection(PolyCollection(bars, facecolor="C0", alpha=0.35, linewidth=0))
        ax.plot([x for x, _ in rows], [prediction.seconds for _, prediction in rows], ".", color="C0")

        ends = [min(x for x, _ in rows) / 2, max(x for x, _ in rows) * 2]
        for factor, style in ((1, "-"), (2, ":"), (0.5, ":")):
            ax.plot(ends, [factor * end for end in ends], style, color="gray", linewidth=0.8)

        inside = sum(low <= x <= high for (x, _), (low, high) in zip(rows, ranges, strict=True))
        title = f"{machine}: {inside} of {len(rows)} in their range"
        ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=title)
        ax.set(xlabel="published seconds", ylabel="predicted seconds")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    f"{picture.__name__}.svg": picture
    for picture in (walk, kinds, refinement, matrices, views, messages, cuboids, measured)
} | gallery.PICTURES


def draw(name: str, folder: Path) -> Path:
    """Write one picture into a folder, with text as outlines, and with no date or number that changes by itself."""
    path = folder / name
    figure = PICTURES[name]()
    if path.suffix == ".png":  # of the figure's size, however wide its letters are
        figure.savefig(path, metadata={"Software": None}, dpi=90)
        return path
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    return path


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        print(draw(name, Path(__file__).parent))
