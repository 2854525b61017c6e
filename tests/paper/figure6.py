"""Figure 6 of Duy and Ozaki 2015: the total volume of communication of a 256³ transform, over the number of processes.

As drawn there: sent plus received, summed over all processes, 16 bytes an element; counted in the compiled plans of the
walks, and in theory. The practical volumes of the other packages, which pad, are not drawn.

    python tests/paper/figure6.py figure6.png
"""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import rote
from rote.compiler.cost import flow
from rote.fft.check import build
from rote.fft.families.choose import walk_of
from rote.fft.families.transpose import row_layout
from rote.fft.request import as_request
from rote.grammar import ActionSyntax, StageSyntax

POINTS = 256
SHAPE = (POINTS,) * 3
AXES = (0, 1, 2)
DTYPE = np.dtype("c16")
FREE = rote.Machine(latency=0, byte_time=1e-9, copy_time=0, reduce_time=0, step_time=0)
PROCESSES = tuple(2**k for k in range(1, 13))
PUBLISHED = ((0, 1, 2), (2, 0, 1), (2, 1, 0))  # abc -> cab -> cba


def grids(processes):
    """Pencils' grids over so many processes: 2 x 16 is one of 32."""
    sizes = [2**k for k in range(1, 9)]
    return [(p, processes // p) for p in sizes if processes // p in sizes and p <= processes // p]


def wanted(shape):
    """A complex transform of all axes."""
    return as_request(shape, AXES, "fft", DTYPE)


def row_walk(shape, processes):
    """The walk of rows with the order of axes that is searched."""
    source = row_layout(AXES).on(shape, processes)
    return walk_of(source, wanted(shape), "rows")


def published_walk(shape, processes):
    """The walk of rows in the published order."""
    lines = [StageSyntax(row_layout(order), actions=(ActionSyntax("fft", (1,)),)) for order in PUBLISHED]
    return build(row_layout(AXES).on(shape, processes), lines, wanted(shape))


def pencil_walk(shape, grid):
    """The walk of pencils on a grid of order 2."""
    return walk_of(rote.parse("block[(0),(1),()]").on(shape, grid), wanted(shape), "pencil")


def slab_walk(shape, processes):
    """The walk of slabs."""
    return walk_of(rote.parse("block[(0),(),()]").on(shape, processes), wanted(shape), "slab")


def elements(plan):
    """All that the ranks receive of each other in a plan, in elements."""
    return sum(int(np.broadcast_to(flow(step).elements, step.ranks.shape).sum()) for step in plan.steps)


@cache
def volume(walk):
    """Bytes that all processes send and receive in a walk whose moves are compiled as if messages were free.

    Where messages cost time, a plan may send more to send fewer of them.
    """
    plans = (rote.compile(plan.source, plan.target, DTYPE, machine=FREE) for plan in walk.moves)
    return 2 * DTYPE.itemsize * sum(map(elements, plans))


def rows_in_theory(points, processes):
    """Elements that rows move on a cube: N(1 - 1/P) for P <= n, and N(1 - n/P) more up to n²."""
    found = 1 - Fraction(1, processes)
    if processes > points:
        found += 1 - Fraction(points, processes)
    return points**3 * found


def pencils_in_theory(points, p, q):
    """Elements that pencils move on a cube: N(2 - 1/p - 1/q)."""
    return points**3 * (2 - Fraction(1, p) - Fraction(1, q))


def draw(path, processes=PROCESSES):
    """Draw the figure into a PNG file: so many numbers of processes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    theory = [2 * DTYPE.itemsize * rows_in_theory(POINTS, p) / 1e6 for p in processes]
    axes.plot(processes, theory, color="0.8", linewidth=7, label="rows in the published order (OpenFFT), in theory")
    published = [volume(published_walk(SHAPE, p)) / 1e6 for p in processes]
    axes.plot(processes, published, "o-", color="C3", label="rows in the published order, compiled")
    searched = [volume(row_walk(SHAPE, p)) / 1e6 for p in processes]
    axes.plot(processes, searched, "D:", color="C1", markersize=4, label="rows in the searched order, compiled")
    pencils = [(p, grid, volume(pencil_walk(SHAPE, grid)) / 1e6) for p in processes for grid in grids(p)[-1:]]
    axes.plot([p for p, *_ in pencils], [v for *_, v in pencils], "s--", color="C2", label="pencils, compiled")
    for p, (a, b), v in pencils:
        axes.annotate(f"{a}x{b}", (p, v), (0, 8), textcoords="offset points", ha="center", fontsize=7)
    few = [p for p in processes if p <= POINTS]
    slabs = [volume(slab_walk(SHAPE, p)) / 1e6 for p in few]
    axes.plot(few, slabs, "x", color="C0", markersize=11, label="slabs, compiled")
    axes.set_xscale("log", base=2)
    axes.set_xticks(processes, [str(p) for p in processes])
    axes.set_xlabel("processes")
    axes.set_ylabel("sent plus received by all processes, MB")
    axes.set_title(f"{POINTS}³ points, complex double: the volume of communication")
    axes.set_ylim(0, 1150)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "figure6.png"))
