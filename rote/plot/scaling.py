"""The picture of a scaling: seconds over ranks, both logarithmic, with the range of the machine's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import cycle
from typing import TYPE_CHECKING

from ..scaling import Scaling
from ..version import VERSION
from .figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["scaling"]

_MARKERS = "osD^vPX"
_STYLES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 3)))
_HATCHES = ("//", "\\\\", "..", "xx", "--", "++", "oo")


def scaling(
    strong: Scaling, weak: Scaling | None = None, published: Mapping[str, Mapping[int, float]] | None = None
) -> Figure:
    """A figure of strong scaling and, if there is any, of weak scaling beside it.

    A gray dotted line is the ideal: it goes down in strong scaling, and is level in weak scaling. A band is the range
    of the machine's numbers. Each family has a line style and a hatch of its own, and its name at the end of its line,
    so that bands are told apart where they overlap and in print without colours. The title names machine, version and
    date.

    Args:
        published: measured seconds of strong scaling by ranks, under the names of their codes, drawn as crosses.

    Raises:
        RoteError: matplotlib is not installed.

    >>> import rote
    >>> figure = scaling(rote.einsum_scaling("ik,kj->ij", [(64, 64)] * 2, ranks=[1, 2]))
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['1-D', 'other', 'ideal']
    """
    panels = [table for table in (strong, weak) if table is not None]

    figure = new_figure(5.5 * len(panels), 4.2)
    for number, table in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)

        rows = [row for row in table.rows if row.best]
        looks = zip(cycle(_MARKERS), cycle(_STYLES), cycle(_HATCHES), strict=False)
        for family, (marker, style, hatch) in zip(table.families, looks, strict=False):
            best = {row.ranks: row.best[family] for row in rows if family in row.best}
            if best:
                seconds = [prediction.seconds for prediction in best.values()]
                # A band behind the curve: the seconds at the fast and at the slow ends of the machine's numbers.
                low, high = zip(*[prediction.range for prediction in best.values()], strict=True)
                (line,) = axes.plot([*best], seconds, marker=marker, markersize=5, linestyle=style, label=family)
                color, end = line.get_color(), (max(best), best[max(best)].seconds)
                axes.annotate(family, end, (5, 0), textcoords="offset points", color=color, fontsize="x-small")
                axes.fill_between(
                    [*best], low, high, facecolor="none", edgecolor=color, linewidth=0.6, hatch=hatch, alpha=0.35
                )

        for (code, times), marker in zip((published or {}).items() if table is strong else (), cycle("x+1234")):
            axes.plot([*times], [*times.values()], marker, color="black", markersize=6, label=f"{code}, measured")

        counts, first = [row.ranks for row in rows], [row.best[row.taken].seconds for row in rows[:1]]
        # From the seconds of the first row that has any.
        ideal = [first[0] * counts[0] / count if table is strong else first[0] for count in counts]
        axes.plot(counts, ideal, ":", color="gray", label="ideal")

        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(counts, [f"{count:,}" for count in counts], rotation=45 if len(counts) > 6 else 0)
        axes.minorticks_off()
        axes.set(title="strong scaling" if table is strong else "weak scaling", xlabel="ranks", ylabel="seconds")
        axes.legend(fontsize="small")

    what, today = strong.head().splitlines()[0], date.today().isoformat()
    figure.suptitle(f"{what}\npredicted by Rote {VERSION}, {today}", fontsize="medium")
    return figure
