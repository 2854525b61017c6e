"""The picture that the demo leaves: the layouts along the walk, a slice of the field, and its energy spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..layout.layout import Distribution
from ..plot.figures import add_legend, row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_demo", "draw_walk"]

_INK, _RED, _BLUE = "#404040", "#A50026", "#364B9A"


def draw_demo(
    path: str,
    field: npt.NDArray[np.float64],
    walk: Sequence[tuple[Distribution, str]],
    moves: Sequence[str],
    energy: npt.NDArray[np.float64],
    exact: npt.NDArray[np.float64],
) -> None:
    """Write the picture; an ImportError is raised if Matplotlib is not installed.

    `field` is a plane with x downwards, `walk` the distributions with the transforms done in each, `moves` what happens
    between them, `energy` and `exact` the energies per shell of wave numbers.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.6), layout="constrained", dpi=130)
    above, below = cast("Any", figure.subfigures(2, 1, height_ratios=[1, 1.32], hspace=0.04))
    draw_walk(above, walk, moves)
    left, right = below.subplots(1, 2, width_ratios=[1, 1.5])
    _draw_field(left, field)
    _draw_energy(right, energy, exact)
    figure.savefig(path)


def draw_walk(figure: Any, walk: Sequence[tuple[Distribution, str]], moves: Sequence[str]) -> None:
    """Draw the distributions of a walk from left to right, the moves between them, and below what is done in each."""
    pictures = [(dist, tuple(range(dist.order))) for dist, _ in walk]
    axes = row(figure, figure.add_gridspec(1, 1)[0], pictures, [move.partition(" ")[::2] for move in moves])
    add_legend(axes[-1], [walk[-1][0]])
    below: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (0, -4), "textcoords": "offset points"}
    for ax, (_, done) in zip(axes, walk, strict=True):
        ax.set_anchor("S")
        ax.annotate(done, (0.5, 0.0), ha="center", va="top", fontsize=10, fontweight="bold", color=_INK, **below)


def _draw_field(ax: Axes, field: npt.NDArray[np.float64]) -> None:
    most = np.abs(field).max()
    turn = 2 * np.pi
    ax.imshow(
        field.T,
        cmap="RdBu_r",
        vmin=-most,
        vmax=most,
        origin="lower",
        interpolation="bicubic",
        extent=(0, turn, 0, turn),
    )
    ax.set_xticks([0, np.pi, turn], ["0", "π", "2π"])
    ax.set_yticks([0, np.pi, turn], ["0", "π", "2π"])
    ax.set_xlabel("x", color=_INK)
    ax.set_ylabel("y", color=_INK)
    ax.set_title("velocity u at z = 0", fontsize=10, color=_INK)
    _plain(ax)


def _draw_energy(ax: Axes, energy: npt.NDArray[np.float64], exact: npt.NDArray[np.float64]) -> None:
    shells = np.flatnonzero(exact)
    ax.loglog(shells, exact[shells], "-", color=_INK, lw=1, label="exact, $k^{-5/3}$")
    ax.loglog(
        shells, energy[shells], "o", color=_RED, ms=5, mec="white", mew=0.6, label="from the distributed spectrum"
    )
    ticks = 2 ** np.arange(1, int(np.log2(len(energy))) + 1)
    ax.set_xticks(ticks, [*map(str, ticks)])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("wave number k", color=_INK)
    ax.set_ylabel("energy E(k)", color=_INK)
    ax.set_title("energy spectrum", fontsize=10, color=_INK)
    ax.grid(True, which="both", lw=0.4, color="#e4e4e4")
    ax.set_axisbelow(True)
    ax.legend(frameon=False, labelcolor=_INK, fontsize=9)
    _plain(ax)


def _plain(ax: Axes) -> None:
    ax.tick_params(colors=_INK, labelsize=9)
    for side in ax.spines.values():
        side.set_color("#b0b0b0")
