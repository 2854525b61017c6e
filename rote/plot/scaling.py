"""The picture of a scaling: seconds over ranks, both logarithmic, with the range of the machine's numbers."""

from __future__ import annotations

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
_HATCHES = ("//", "\\\\", "..", "xx", "--", "++", "oo")


def scaling(strong: Scaling, weak: Scaling | None = None) -> Figure:
    """A figure of strong scaling and, if there is any, of weak scaling beside it.

    A dotted line is the ideal: it goes down in strong scaling, and is level in weak scaling. A band is the range of the
    machine's numbers, each with an outline and a hatch of its own, so that bands are told apart where they overlap and
    in print without colours. The title names machine, version and date.

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
        for family, marker, hatch in zip(table.families, cycle(_MARKERS), cycle(_HATCHES), strict=False):
            best = {row.ranks: row.best[family] for row in rows if family in row.best}
            if best:
                seconds = [prediction.seconds for prediction in best.values()]
                # A band behind the curve: the seconds at the fast and at the slow ends of the machine's numbers.
                low, high = zip(*[prediction.range for prediction in best.values()], strict=True)
                (line,) = axes.plot([*best], seconds, marker=marker, markersize=5, label=family)
                color = line.get_color()
                axes.fill_between(
                    [*best], low, high, facecolor="none", edgecolor=color, linewidth=0.6, hatch=hatch, alpha=0.35
                )

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
