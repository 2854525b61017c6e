"""The figures: one layout, or the layouts along a plan."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.plan import Plan
from ..compiler.step import LOCAL
from ..errors import LayoutError, RoteError
from ..layout.distribution import Distribution
from ..owners import Owners, owners_at
from .drawing import INK, draw, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["layout", "plan"]

_MOST_ENTRIES = 16  # of the legend


def layout(
    dist: Distribution, ax: Axes | None = None, *, modes: Sequence[int] | None = None, legend: bool = True
) -> Figure:
    """Who owns what: a line, a matrix (mode 0 downwards) or a cube, its cells in the colour of the rank that owns them.

    A hatched cell is on several ranks: stripes for replicas, crosses for partial values, in the colours of the first
    and the last of them. Along a mode with more than 128 runs of equal owners only those are drawn, and the title
    says so.

    Args:
        ax: where to draw; a new figure if it is None.
        modes: which modes to show, one to three of them; the others stand at index 0. All, if there are not more.
        legend: whether to add one.

    Returns:
        The figure drawn on; a notebook shows it, `.savefig("who.png")` writes it.

    Raises:
        LayoutError: the tensor has more than three modes and `modes` chooses none.
        RoteError: matplotlib is not installed.

    >>> from rote.layout.layout import parse
    >>> figure = layout(parse("block[(0),(1),()]").on((12, 12, 12), (3, 4)))
    >>> figure.axes[0].get_title()
    'block[(0),(1),()]'
    """
    chosen = _choose(dist, modes)
    if ax is None:
        figure = _new_figure(4.6 if legend else 3.8, (1.5, 1.5, 3.6, 3.8)[len(chosen)])
        ax = figure.add_subplot()
    draw(ax, dist, chosen)
    if legend:
        _legend(ax, [dist])
    return ax.figure.figure


def plan(plan: Plan, *, modes: Sequence[int] | None = None) -> Figure:
    """The layouts before and after each step of a plan side by side, an arrow with the step's name between them.

    A rank has the same colour in all of them. `modes`, errors and the figure are as for `layout`.

    >>> from rote.compiler.compile import compile
    >>> figure = plan(compile("block[(0),(),()] -> block[(),(0),()]", shape=(8, 8, 8), grid=4))
    >>> [ax.get_title() for ax in figure.axes if ax.get_title()]
    ['block[(0),(),()]', 'block[(),(0),()]']
    """
    dists = [plan.source, *(step.after for step in plan.steps)] if plan.steps else [plan.source, plan.target]
    names = [
        (step.kind, "" if step.kind in LOCAL else f"over {','.join(map(str, step.grid_modes))}") for step in plan.steps
    ] or [("nothing", "to do")]
    chosen = [_choose(dist, modes) for dist in dists]
    height = 3.6 if max(map(len, chosen)) > 1 else 2.2
    figure = _new_figure(3.1 * len(dists) + 1.0 * len(names), height)
    grid = figure.add_gridspec(1, 2 * len(dists) - 1, width_ratios=[1, *(0.3, 1) * len(names)])
    for number, (dist, those) in enumerate(zip(dists, chosen, strict=True)):
        draw(figure.add_subplot(grid[2 * number]), dist, those)
    for number, (kind, over) in enumerate(names):
        _arrow(figure.add_subplot(grid[2 * number + 1]), kind, over)
    _legend(figure, dists)
    return figure


def _choose(dist: Distribution, modes: Sequence[int] | None) -> tuple[int, ...]:
    chosen = tuple(range(dist.order)) if modes is None else tuple(modes)
    if len(chosen) > 3:
        raise LayoutError(
            f"a picture has up to three modes, but {dist.layout} has {len(chosen)}; choose some, as in modes=(0, 1, 2)"
        )
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(dist.order)) or (dist.order and not chosen):
        raise LayoutError(f"modes={chosen} are not different modes of {dist.layout}, which has 0 to {dist.order - 1}")
    return chosen


def _legend(target: Axes | Figure, dists: list[Distribution]) -> None:
    """Ranks and their colours: all, or some from first to last; then the ranks that hold nothing."""
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    size = dists[0].grid.size
    ranks = range(size) if size <= _MOST_ENTRIES else np.linspace(0, size - 1, 8).astype(int).tolist()
    found: dict[Owners, Patch] = {}
    holding = set()
    for dist in dists:
        for rank in ranks:
            if 0 not in dist.local_shape(rank):
                holding.add(rank)
                coordinates = dist.grid.coordinates(rank)
                owners = owners_at(dist, {s.grid_mode: coordinates[s.grid_mode] for mode in dist.splits for s in mode})
                look = style(owners, size)
                hatch = 3 * look.pop("hatch", "")  # denser, for a small patch
                found.setdefault(owners, Patch(label=str(owners), hatch=hatch, **look))
    handles = [found[owners] for owners in sorted(found, key=lambda o: (len(o.ranks), o.first))]
    empty = [str(rank) for rank in ranks if rank not in holding]
    if empty:
        handles.append(Patch(label=f"{', '.join(empty)}: nothing", facecolor="white", edgecolor="#bbbbbb"))
    options: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK, "handlelength": 1.2, "title": "rank"}
    if isinstance(target, Axes):
        target.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), **options)
    else:
        target.legend(handles=handles, loc="outside right center", **options)


def _arrow(ax: Axes, kind: str, over: str) -> None:
    ax.set_axis_off()
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "mutation_scale": 14}
    ax.annotate("", (1.0, 0.5), (0.0, 0.5), xycoords="axes fraction", arrowprops=arrow)
    for text, y, va in ((kind, 0.53, "bottom"), (over, 0.47, "top")):
        ax.text(0.5, y, text, ha="center", va=va, fontsize=9, color=INK, transform=ax.transAxes)


def _new_figure(width: float, height: float) -> Figure:
    """A figure of some inches."""
    return _figure_class()(figsize=(width, height), layout="constrained")


@cache
def _figure_class() -> type[Figure]:
    """Matplotlib's figure, which also shows itself in notebooks without a backend."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RoteError('pictures are drawn by matplotlib, which is not installed; pip install "rote[plot]"') from None

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    return Picture
