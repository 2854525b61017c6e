"""The contest as a picture: bars of medians, one row of axes per work; for scaling, curves over the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from ..errors import RoteError
from .contest import Score
from .report import in_units, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure", "figure_class"]

_INK, _OURS, _OTHERS = "#404040", "#A50026", "#9DB4CE"
_COOL = ("#364B9A", "#4A7BB7", "#1B7837", "#762A83", "#7F7F7F", "#00A5A5", "#8C6D31", "#000000")


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


def figure(families: Sequence[Sequence[Score]], title: str, scaling: bool) -> Figure:
    """The picture of the contestants that ran, with one row of axes for each shape and dtype."""
    groups = [[line for line in lines if not line.missing] for lines in families]
    groups = [ran for ran in groups if ran]
    paint, heights = _bars, [0.9 + 0.25 * len(group) for group in groups]
    if scaling:
        paint, heights = _curves, [4.0] * len(groups)
    canvas = figure_class()(figsize=(8, 0.6 + sum(heights)), layout="constrained", dpi=130)
    rows = canvas.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, group in zip(rows, groups, strict=True):
        paint(ax, group)
        ax.set_title(str(group[0].contestant.work), fontsize=10, color=_INK, loc="left")
        ax.tick_params(colors=_INK, labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    canvas.suptitle(title, fontsize=9, color=_INK)
    return canvas


def _bars(ax: Axes, group: Sequence[Score]) -> None:
    names = [f"{line.contestant.name}, {line.contestant.where}" for line in group]
    colours = [_OURS if line.contestant.ours else _OTHERS for line in group]
    bars = ax.barh(range(len(group)), _in_ms(group), color=colours, height=0.7)
    texts = []
    for line in group:
        factor = ratio(line, group)
        texts.append(in_units(line.median) + ("" if factor is None else f"   {factor:.2f}"))
    ax.bar_label(bars, texts, padding=4, fontsize=8, color=_INK)
    ax.set_yticks(range(len(group)), names)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set_xlabel("median in ms, and over that of rote", fontsize=8, color=_INK)


def _in_ms(group: Sequence[Score]) -> list[float]:
    return [line.median * 1e3 for line in group]


def _curves(ax: Axes, group: Sequence[Score]) -> None:
    curves: dict[str, list[Score]] = {}
    for line in group:
        curves.setdefault(f"{line.contestant.name}, {line.contestant.on}", []).append(line)
    ours = [name for name, curve in curves.items() if curve[0].contestant.ours]
    others = [name for name in curves if name not in ours]
    colours = dict(zip(ours + others, _colours(len(ours)), strict=False))
    for marker, (name, curve) in zip(cycle("osD^vP*X"), curves.items(), strict=False):
        ranks = [line.contestant.work.ranks for line in curve]
        dashes = "--" if curve[0].contestant.group == "threads" else "-"
        look = {"color": colours[name], "marker": marker, "ls": dashes, "ms": 5, "lw": 1.2}
        ax.loglog(ranks, _in_ms(curve), label=name, **look)
    ticks = sorted({line.contestant.work.ranks for line in group})
    ax.set_xticks(ticks, [*map(str, ticks)])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("ranks or threads", fontsize=8, color=_INK)
    ax.set_ylabel("median in ms", fontsize=8, color=_INK)
    ax.set_yticks(*_time_ticks(_in_ms(group)))
    ax.set_yticks([], minor=True)
    ax.legend(frameon=False, fontsize=7, labelcolor=_INK, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _colours(ours: int) -> Iterator[str]:
    """A colour per curve: reds for Rote's, then other colours, repeated only when all were used."""
    for n in range(ours):
        part = n / max(ours - 1, 1)  # from a dark red, A50026, to a light orange, FDAE61
        red, green, blue = 165 + part * 88, part * 174, 38 + part * 59
        yield f"#{round(red):02X}{round(green):02X}{round(blue):02X}"
    yield from cycle(_COOL)


def _time_ticks(times: Sequence[float]) -> tuple[list[float], list[str]]:
    """The numbers 1, 2 and 5 times powers of ten around the given times, and their texts."""
    powers = range(floor(log10(min(times))) - 1, ceil(log10(max(times))) + 1)
    every = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    ticks = [tick for tick in every if min(times) / 2 <= tick <= max(times) * 2]
    return ticks, [f"{tick:g}" for tick in ticks]
