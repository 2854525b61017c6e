"""The contest as a picture: bars of medians, a row of axes per work; curves over the ranks, if it is about scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import RoteError
from .contest import Line
from .report import in_units, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "figure_class"]

_INK, _OURS, _OTHERS = "#404040", "#A50026", "#9DB4CE"


def figure_class() -> type[Figure]:
    """Matplotlib's figure.

    Raises:
        RoteError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RoteError("--png draws by matplotlib, which is not installed; pip install matplotlib") from None
    return Figure


def draw(path: str, families: Sequence[Sequence[Line]], title: str, scaling: bool) -> None:
    """Write the picture of those who ran, axes below axes: for each shape and dtype that somebody could do."""
    groups = [ran for lines in families if (ran := [line for line in lines if not line.missing])]
    heights = [3.4 if scaling else 0.5 + 0.25 * len(group) for group in groups]
    figure = figure_class()(figsize=(8, 0.6 + sum(heights)), layout="constrained", dpi=130)
    for number, group in enumerate(groups):
        ax = figure.add_subplot(figure.add_gridspec(len(groups), 1, height_ratios=heights)[number])
        (_curves if scaling else _bars)(ax, group)
        ax.set_title(str(group[0].entry.work), fontsize=10, color=_INK, loc="left")
        ax.tick_params(colors=_INK, labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    figure.suptitle(title, fontsize=9, color=_INK)
    figure.savefig(path)


def _bars(ax: Axes, group: Sequence[Line]) -> None:
    names = [f"{line.entry.name}, {line.entry.where}" for line in group]
    colours = [_OURS if line.entry.ours else _OTHERS for line in group]
    bars = ax.barh(range(len(group)), [line.median * 1e3 for line in group], color=colours, height=0.7)
    said = [(in_units(line.median), ratio(line, group)) for line in group]
    texts = [time if factor is None else f"{time}   {factor:.2f}" for time, factor in said]
    ax.bar_label(bars, texts, padding=4, fontsize=8, color=_INK)
    ax.set_yticks(range(len(group)), names)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set_xlabel("median in ms, and over that of rote", fontsize=8, color=_INK)


def _curves(ax: Axes, group: Sequence[Line]) -> None:
    curves: dict[str, list[Line]] = {}
    for line in group:
        curves.setdefault(f"{line.entry.name}, {line.entry.on}", []).append(line)
    for name, curve in curves.items():
        style = {"color": _OURS, "ls": "-" if curve[0].entry.group == "rote" else "--"} if curve[0].entry.ours else {}
        ranks = [line.entry.work.ranks for line in curve]
        ax.loglog(ranks, [line.median * 1e3 for line in curve], "o", ms=4, lw=1.2, label=name, **{"ls": "-", **style})
    ticks = sorted({line.entry.work.ranks for line in group})
    ax.set_xticks(ticks, [str(n) for n in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("ranks or threads", fontsize=8, color=_INK)
    ax.set_ylabel("median in ms", fontsize=8, color=_INK)
    ax.legend(frameon=False, fontsize=7, labelcolor=_INK)
