"""The picture of a prediction: seconds over ranks, both logarithmic, with the range of the machine's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["scaling"]

Curves = Mapping[str, Sequence[tuple[int, float, float, float]]]


def scaling(title: str, strong: Curves, weak: Curves) -> Any:
    """A figure of strong scaling and, if there is any, of weak scaling beside it.

    Args:
        strong, weak: by family, in the order of ranks: the ranks, the seconds, and the least and the most seconds. In
            strong scaling the tensor stays the same, and a dotted line goes down as the ideal does; in weak scaling it
            grows with the ranks, and the ideal is level.

    >>> figure = scaling("two ranks", {"slab": [(1, 2.0, 1.0, 3.0), (2, 1.0, 0.5, 2.0)]}, {})
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['slab', 'ideal']
    """
    from matplotlib.figure import Figure

    panels = [(name, curves) for name, curves in (("strong scaling", strong), ("weak scaling", weak)) if curves]
    figure = Figure(figsize=(5.5 * max(len(panels), 1), 4.2), layout="constrained")
    for number, (name, curves) in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)
        for family, points in curves.items():
            ranks, seconds, low, high = zip(*points, strict=True)
            (line,) = axes.plot(ranks, seconds, marker="o", markersize=4, label=family)
            if low != high:
                axes.fill_between(ranks, low, high, color=line.get_color(), alpha=0.1, linewidth=0)
        counts = sorted({point[0] for points in curves.values() for point in points})
        first = min(points[0][1] for points in curves.values() if points[0][0] == counts[0])
        ideal = [first * counts[0] / count if name == "strong scaling" else first for count in counts]
        axes.plot(counts, ideal, ":", color="gray", label="ideal")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(title=name, xlabel="ranks", ylabel="seconds")
        axes.legend(fontsize="small")
    figure.suptitle(title, fontsize="medium")
    return figure
