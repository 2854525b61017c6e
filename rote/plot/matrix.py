"""Drawing one message matrix on matplotlib's axes: senders down, receivers across, bytes as colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..layout.pictures import is_light, rank_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = ["INK", "MOST_CELLS", "MOST_RANKS", "Scale", "draw_matrix", "draw_scale"]

Ints = npt.NDArray[np.int64]

INK = "#404040"
MOST_CELLS = 64  # the most ranks whose cells are separated by lines
MOST_RANKS = 1024
_MOST_POINTS = 256  # the most points of an image's side; more ranks share points
_FEW = 16  # the most ranks that are all numbered
_NOTHING, _LITTLE, _MUCH, _KEPT = "#f7f7f7", "#d3e5ef", "#2b3d8a", "#dcdcdc"


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of colours and numbers in all matrices of a figure: the bytes of the largest message, and the unit."""

    most: int
    unit: int
    name: str

    @staticmethod
    def of(most_sent: int, most_kept: int) -> Scale:
        """The unit that suits the largest number."""
        power = min((max(most_sent, most_kept, 1).bit_length() - 1) // 10, 4)
        return Scale(most_sent, 1024**power, ("B", "KiB", "MiB", "GiB", "TiB")[power])

    @property
    def colors(self) -> Colormap:
        """Colours for few to many bytes: light to dark blue, the colours of the last ranks in pictures of layouts."""
        from matplotlib.colors import LinearSegmentedColormap

        return LinearSegmentedColormap.from_list("messages", [_LITTLE, "#7fb2d3", _MUCH])

    def text(self, count: int) -> str:
        """A number of bytes in the scale's unit, in few characters."""
        value = count / self.unit
        return f"{value:.0f}" if value >= 99.95 or count % self.unit == 0 else f"{value:.3g}"


def draw_matrix(ax: Axes, sent: Ints, title: str, scale: Scale) -> None:
    """Draw one matrix of bytes; on its diagonal are no messages, but the bytes that a rank keeps."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    size = len(sent)
    kept = np.flatnonzero(sent.diagonal())
    own = np.diag(sent.diagonal())
    ranks = -(-size // _MOST_POINTS)  # per point
    messages, keeps = _most_of(sent - own, ranks), _most_of(own, ranks)
    image = scale.colors(messages / max(scale.most, 1))[..., :3]
    image[messages == 0] = to_rgb(_NOTHING)
    image[(messages == 0) & (keeps > 0)] = to_rgb(_KEPT)
    end = len(image) * ranks
    ax.imshow(image, extent=(0, end, end, 0), interpolation="nearest")
    ax.set(xlim=(0, size), ylim=(size, 0))
    if size <= MOST_CELLS:
        _hatch(ax, kept)
        edges = []
        for k in range(1, size):
            edges += [[(0, k), (size, k)], [(k, 0), (k, size)]]
        width = 0.9 if size <= _FEW else 0.4
        ax.add_collection(LineCollection(edges, color="white", linewidth=width))
        _numbers(ax, sent, image, scale)
    _rank_axes(ax, size)
    ax.set_title(title, fontfamily="monospace", fontsize=10, color=INK)


def draw_scale(ax: Axes, scale: Scale, kept: bool) -> None:
    """Explain the colours and the hatching beside a matrix."""
    from matplotlib.patches import Patch

    if scale.most:
        bar = ax.inset_axes((1.07, 0.2, 0.05, 0.72))
        steps = np.linspace(1, 0, 256)[:, None]
        ticks = sorted({0, scale.most // 2, scale.most})
        bar.imshow(scale.colors(steps), aspect="auto", extent=(0, 1, 0, scale.most))
        bar.spines[:].set_visible(False)
        bar.set_xticks([])
        bar.set_yticks(ticks, [*map(scale.text, ticks)])
        bar.yaxis.tick_right()
        bar.tick_params(length=0, labelsize=8, labelcolor=INK)
        bar.set_title(scale.name, fontsize=8, color=INK, loc="left")
    if kept:
        label = "kept" if scale.most else f"kept, in {scale.name}"
        patch = Patch(facecolor=_KEPT, edgecolor="white", hatch="//////", linewidth=0, label=label)
        where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (1.04, -0.02), "borderpad": 0.2}
        ax.legend(handles=[patch], frameon=False, fontsize=8, labelcolor=INK, handlelength=1.2, **where)


def _most_of(sent: Ints, ranks: int) -> Ints:
    """The largest number in each square of `ranks` ranks; in a mean, a few large messages would look small."""
    points = -(-len(sent) // ranks)
    padded = np.pad(sent, (0, points * ranks - len(sent)))
    most: Ints = padded.reshape(points, ranks, points, ranks).max(axis=(1, 3))
    return most


def _hatch(ax: Axes, kept: npt.NDArray[np.intp]) -> None:
    from matplotlib.collections import PolyCollection

    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    cells = [corners + rank for rank in kept]
    ax.add_collection(PolyCollection(cells, facecolor="none", edgecolor="white", hatch="//", linewidth=0, label="kept"))


def _numbers(ax: Axes, sent: Ints, image: npt.NDArray[np.float64], scale: Scale) -> None:
    """Write the bytes of each cell, all in one font size; nothing if too small to read."""
    texts = {(a, b): scale.text(int(sent[a, b])) for a, b in np.argwhere(sent).tolist()}
    box = ax.get_window_extent()
    edge = 0.8 * 72 / ax.figure.dpi * min(box.width, box.height) / len(sent)
    points = min(9.0, 0.6 * edge, edge / (0.62 * max(map(len, texts.values()), default=1) + 0.3))
    if points < 4:
        return
    for (a, b), text in texts.items():
        red, green, blue = image[a, b]
        ink = INK if is_light((red, green, blue)) else "white"
        ax.text(b + 0.5, a + 0.5, text, ha="center", va="center", fontsize=points, color=ink)


def _rank_axes(ax: Axes, size: int) -> None:
    """Number the ranks down and across, beside stripes in the colours that they have in pictures of layouts."""
    colors = np.array([[rank_color(rank, size) for rank in range(size)]])
    for bounds, stripe in (((0, 1.015, 1, 0.025), colors), ((-0.04, 0, 0.025, 1), colors.transpose(1, 0, 2))):
        beside = ax.inset_axes(bounds)
        beside.imshow(stripe, aspect="auto", interpolation="nearest")
        beside.set_axis_off()
    ranks = range(0, size, 1 if size <= _FEW else -(-size // 8))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([rank + 0.5 for rank in ranks], [*map(str, ranks)])
    ax.tick_params(length=0, labelsize=8, labelcolor=INK, bottom=False, labelbottom=False, labeltop=True, pad=9)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("to rank", fontsize=9, color=INK)
    ax.set_ylabel("from rank", fontsize=9, color=INK)
    ax.xaxis.set_label_position("top")
