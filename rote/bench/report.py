"""The report of `rote bench`: tables, all results as JSON, and pictures: bars of medians, or curves over the ranks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plot.figures import new_figure
from ..units import in_seconds, table
from .cases import SPAN, Timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["as_json", "factor", "figure", "libraries", "missing", "over_predicted", "ratio", "scaling"]
__all__ += ["summary", "times"]


def times(lines: Sequence[Timing]) -> str:
    """The table of one work, with a line per case."""
    rows: list[tuple[str, ...]] = [(str(lines[0].case.work), "on", "median", "fastest", "/ rote")]
    rows[0] += ("predicted", "/ predicted")
    for line in _ran(lines):
        cells = in_seconds(line.median, 3), in_seconds(min(line.seconds), 3), factor(ratio(line, lines))
        told = "-" if line.predicted is None else in_seconds(line.predicted, 3), factor(over_predicted(line))
        rows.append((line.case.name, line.case.where, *cells, *told))

    if not any(line.predicted for line in lines):  # no machine is given
        rows = [row[:5] for row in rows]

    return "\n".join(table(rows, range(2, len(rows[0]))))


def summary(lines: Sequence[Timing]) -> str:
    """A table with a line per work: Rote's fastest time, and the ratio of each other library's fastest to it."""
    groups = list(dict.fromkeys(line.case.group for line in _ran(lines)))
    heads = [group if group == "rote" else f"{group} / rote" for group in groups]

    rows = [("the fastest of each", *heads)]

    for work in dict.fromkeys(line.case.work for line in lines):
        least: dict[str, float] = {}
        for line in _ran(lines):
            if line.case.work == work:
                least[line.case.group] = min(line.median, least.get(line.case.group, line.median))

        ours = least.get("rote")
        times = {group: factor(ours and seconds / ours) for group, seconds in least.items()}
        times |= {"rote": "-" if ours is None else in_seconds(ours, 3)}

        rows.append((str(work), *[times.get(group, "-") for group in groups]))
    return "\n".join(table(rows, range(1, len(groups) + 1)))


def scaling(lines: Sequence[Timing], weak: bool) -> str:
    """A table of every case on one rank, two, four, ..., and how well it scales."""
    rows = [("contestant", "on", "work", "median", "efficiency" if weak else "speed-up", "/ rote")]
    for line in sorted(_ran(lines), key=lambda line: list(map(_name, lines)).index(_name(line))):
        pays = _first(line, lines, weak).median / line.median
        cells = in_seconds(line.median, 3), factor(pays), factor(ratio(line, lines))
        rows.append((line.case.name, line.case.where, str(line.case.work), *cells))
    return "\n".join(table(rows, range(3, 6)))


def libraries(lines: Sequence[Timing]) -> str:
    """The libraries that transformed, with their builds and the cases that used them; empty if none did."""
    names: dict[str, dict[str, None]] = {}
    for line in _ran(lines):
        if line.library:
            names.setdefault(line.library, {})[line.case.name] = None
    rows = [(", ".join(users), library) for library, users in names.items()]
    return "\n".join(table(rows, ())) if rows else ""


def missing(lines: Sequence[Timing]) -> list[str]:
    """The cases that did not run, and why; with their works, if they ran on others."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.missing:
            reasons.setdefault((line.case.name, line.missing), []).append(str(line.case.work))

    ran = {line.case.name for line in _ran(lines)}
    texts = []
    for (name, why), works in reasons.items():
        where = f" ({', '.join(dict.fromkeys(works))})" if name in ran else ""
        texts.append(f"missing: {name} {why}{where}")
    return texts


def ratio(line: Timing, lines: Sequence[Timing]) -> float | None:
    """The ratio of a median to Rote's: of the algorithm of the same name if it ran, else of the fastest; else None.

    If MPI has several ranks, Rote's median is that on MPI's ranks.
    """
    ours, same_variant = [], []  # medians of Rote for the same work
    for other in _ran(lines):
        if other.case.group == "rote" and other.case.work == line.case.work:
            ours.append(other.median)
            if other.case.variant == line.case.variant:
                same_variant.append(other.median)

    return line.median / min(same_variant or ours) if ours else None


def over_predicted(line: Timing) -> float | None:
    """How many times as long a case takes as is predicted; None if nothing is."""
    return line.median / line.predicted if line.predicted else None


def _first(line: Timing, lines: Sequence[Timing], weak: bool) -> Timing:
    """This case's result on the fewest ranks, for the same work or, if `weak`, for as much work per rank."""

    def key(other: Timing) -> Hashable:
        work = other.case.work
        return _name(other), work.dtype, work.shape[0] // (work.ranks if weak else 1), work.shape[1:]

    return min((o for o in _ran(lines) if key(o) == key(line)), key=lambda o: o.case.work.ranks)


def _ran(lines: Sequence[Timing]) -> list[Timing]:
    return [line for line in lines if line.seconds and not line.missing]


def _name(line: Timing) -> tuple[str, str]:
    return line.case.name, line.case.on


def factor(number: float | None) -> str:
    """A ratio with two digits; a dash if there is none."""
    if number is None:
        return "-"
    return f"{number:.2f}" if number >= 0.1 else f"{number:.2g}"


def as_json(lines: Sequence[Timing], about: dict[str, Any]) -> dict[str, Any]:
    """The machine, and for each case its work, the seconds of every round, its median and its ratio to Rote."""
    entries = []
    for line in lines:
        case, work = line.case, line.case.work

        entry: dict[str, Any] = {"work": str(work), "shape": list(work.shape), "dtype": work.dtype.str[1:]}
        entry |= {"contestant": case.group, "name": case.name, "ranks": work.ranks, "on": case.where}
        if line.missing:
            entries.append(entry | {"missing": line.missing})
        elif line.seconds:
            times = {"median": line.median, "ratio": ratio(line, lines), "seconds": line.seconds}
            times |= {"predicted": line.predicted, "over_predicted": over_predicted(line)}
            entries.append(entry | times | {"library": line.library})
    return {**about, "span": SPAN, "entries": entries}


# --- pictures ---------------------------------------------------------------------------------------------------------

_INK, _OURS, _OTHERS = "#404040", "#A50026", "#9DB4CE"


def figure(families: Sequence[Sequence[Timing]], title: str, scaling: bool) -> Figure:
    """The picture of the cases that ran, with one row of axes for each shape and dtype."""
    groups = [[line for line in lines if not line.missing] for lines in families]
    groups = [ran for ran in groups if ran]

    paint, heights = _bars, [0.9 + 0.25 * len(group) for group in groups]
    if scaling:
        paint, heights = _curves, [4.0] * len(groups)

    canvas = new_figure(8, 0.6 + sum(heights))

    rows = canvas.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, group in zip(rows, groups, strict=True):
        paint(ax, group)
        ax.set_title(str(group[0].case.work), fontsize=10, color=_INK, loc="left")
        ax.tick_params(colors=_INK, labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)

    canvas.suptitle(title, fontsize=9, color=_INK)
    return canvas


def _bars(ax: Axes, group: Sequence[Timing]) -> None:
    names, texts = [], []
    for line in group:
        names.append(f"{line.case.name}, {line.case.where}")
        over = ratio(line, group)
        texts.append(in_seconds(line.median, 3) + ("" if over is None else f"   {over:.2f}"))

    colours = [_OURS if line.case.ours else _OTHERS for line in group]
    bars = ax.barh(range(len(group)), [line.median * 1e3 for line in group], color=colours, height=0.7)
    ax.bar_label(bars, texts, padding=4, fontsize=8, color=_INK)

    ax.set_yticks(range(len(group)), names)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set_xlabel("median in ms, and over that of rote", fontsize=8, color=_INK)


def _curves(ax: Axes, group: Sequence[Timing]) -> None:
    """A curve per case over the ranks: Rote's in reds, others from violet to green, threads dashed."""
    from matplotlib import colormaps
    from matplotlib.ticker import LogLocator

    # Rote's curves come first, and take the reds.
    curves: dict[str, list[Timing]] = {}
    for line in sorted(group, key=lambda line: not line.case.ours):
        curves.setdefault(f"{line.case.name}, {line.case.on}", []).append(line)

    ours = sum(curve[0].case.ours for curve in curves.values())
    shades = [*colormaps["YlOrRd_r"](np.linspace(0.1, 0.7, ours))]
    shades += [*colormaps["viridis"](np.linspace(0, 0.8, len(curves) - ours))]

    for marker, colour, (name, curve) in zip(cycle("osD^vP*X"), map(tuple, shades), curves.items(), strict=False):
        ranks, times = [line.case.work.ranks for line in curve], [line.median * 1e3 for line in curve]
        dashes = "--" if curve[0].case.group == "threads" else "-"
        ax.loglog(ranks, times, label=name, color=colour, marker=marker, ls=dashes, ms=5, lw=1.2)

    ticks = sorted({line.case.work.ranks for line in group})
    ax.set_xticks(ticks, [*map(str, ticks)])
    ax.set_xticks([], minor=True)

    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_yticks([], minor=True)

    ax.set_xlabel("ranks or threads", fontsize=8, color=_INK)
    ax.set_ylabel("median in ms", fontsize=8, color=_INK)
    ax.legend(frameon=False, fontsize=7, labelcolor=_INK, loc="center left", bbox_to_anchor=(1.0, 0.5))
