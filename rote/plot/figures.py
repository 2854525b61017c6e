"""Pictures of layouts: one layout, the layouts along a plan or a walk; and the messages of a plan.

`layout`, `plan`, `stages` and `messages` make a figure each. Below them, `draw` draws one layout on matplotlib's axes:
a line, a matrix or three faces of a cube, whose cells are runs of indices with the same owners.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..compiler.movement import movement
from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import LayoutError, PlanError, RoteError
from ..layout.distribution import Distribution
from . import drawing
from .drawing import Face, Owners, Points, Side, is_light, rank_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

__all__ = ["add_legend", "draw", "layout", "messages", "new_figure", "plan", "row", "stages"]

Ints = npt.NDArray[np.int64]

INK = "#404040"
_MOST_ENTRIES = 16  # ranks in the legend
_MOST_RUNS = 128  # runs drawn along a mode; later ones are cut off, and the title says so
_MOST_BORDERS = 48  # the most runs along a mode for which lines are drawn between them
_MOST_STYLES = 64  # the most groups of cells that have a hatching of their own
_MOST_LABELS = 450
_LONG = 36  # characters of a layout's text, above which its view gets a line of its own
_FEW = 16  # the most indices or ranks that are all numbered
_MOST_CELLS = 64  # the most ranks whose cells are separated by lines
_MOST_RANKS = 1024
_MOST_POINTS = 256  # the most points of an image's side; more ranks share points
_NOTHING, _LITTLE, _MUCH, _KEPT = "#f7f7f7", "#d3e5ef", "#2b3d8a", "#dcdcdc"


def layout(
    dist: Distribution, ax: Axes | None = None, *, modes: Sequence[int] | None = None, legend: bool = True
) -> Figure:
    """Draw who owns what: a line, a matrix (mode 0 downwards) or a cube, its cells in the colours of their owners.

    A hatched cell is on several ranks: stripes for replicas, crosses for partial values, in the colours of the first
    and the last of these ranks. Along a mode with more than 128 runs of equal owners, only the first 128 are drawn, and
    the title says so.

    Parameters
    ----------
    ax : Axes, optional
        Where to draw; a new figure if it is None.
    modes : Sequence[int], optional
        The modes to show, one to three; the others are at index 0. If None, all modes, of which there are at most
        three.
    legend : bool, default True
        Whether to add one.

    Returns
    -------
    Figure
        The figure drawn on; a notebook shows it, `.savefig("who.png")` writes it.

    Raises
    ------
    LayoutError
        `dist` is not a distribution; or the tensor has more than three modes and `modes` is None.
    RoteError
        Matplotlib is not installed.

    Examples
    --------
    >>> import rote
    >>> figure = rote.plot.layout(rote.parse("block[(0),(1),()]").on((12, 12, 12), (3, 4)))
    >>> figure.axes[0].get_title()
    'block[(0),(1),()]'
    """
    if not isinstance(dist, Distribution):
        raise LayoutError(
            f"drawn is a distribution, not {dist!r}\nwrite rote.parse(text).on(shape, grid), or x.distribution"
        )

    chosen = _choose(dist, modes)
    if ax is None:
        figure = new_figure(4.6 if legend else 3.8, (1.5, 1.5, 3.6, 3.8)[len(chosen)])
        ax = figure.add_subplot()

    draw(ax, dist, chosen)
    if legend:
        add_legend(ax, [dist])
    return ax.figure.figure


def plan(plan: Plan, *, modes: Sequence[int] | None = None, messages: bool = False) -> Figure:
    """The layouts before and after each step of a plan side by side, with an arrow and the step's name between.

    A rank has one colour in all layouts. `modes`, errors and the figure are as for `layout`. With `messages=True`, the
    message matrix of each step is drawn below its arrow, as by `messages`; more than 1024 ranks raise PlanError.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile("block[(0),(),()] -> block[(),(0),()]", shape=(8, 8, 8), grid=4)
    >>> figure = rote.plot.plan(plan)
    >>> [ax.get_title() for ax in figure.axes if ax.get_title()]
    ['block[(0),(),()]', 'block[(),(0),()]']
    """
    dists, names = [plan.source], list[tuple[str, str]]()
    for step in plan.steps:
        dists.append(step.after)
        names.append((step.kind, _over(step)))
    if not plan.steps:
        dists, names = [plan.source, plan.target], [("nothing", "to do")]

    pictures = [(dist, _choose(dist, modes)) for dist in dists]
    most = max([len(chosen) for _, chosen in pictures])

    # A row of layouts, and below it, with messages, one of matrices.
    heights = [3.6 if most > 1 else 2.2]
    matrices = _matrices(plan) if messages else []
    if messages:
        heights.append(3.4)

    figure = new_figure(3.1 * len(dists) + 1.0 * len(names), sum(heights))
    rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)

    row(figure, rows[0], pictures, names)
    if messages:
        below = rows[1].subgridspec(1, len(matrices))
        _draw_matrices([figure.add_subplot(below[number]) for number in range(len(matrices))], matrices)
    add_legend(figure, dists)
    return figure


def stages(
    dists: Sequence[Distribution],
    arrows: Sequence[tuple[str, str]],
    captions: Sequence[str],
    modes: Sequence[Sequence[int]],
) -> Figure:
    """Draw layouts side by side, with an arrow and two words between them, as `walk.plot()` does.

    A rank has one colour in all layouts.

    Parameters
    ----------
    dists : Sequence[Distribution]
        Distributions on grids of as many ranks, of any shapes.
    arrows : Sequence[tuple[str, str]]
        The words above and below each arrow; there is one arrow less than layouts.
    captions : Sequence[str]
        Per layout, the work that is done in it, a line of its title.
    modes : Sequence[Sequence[int]]
        Per layout, the modes to show, one to three; the others are at index 0.

    Returns
    -------
    Figure
        The figure drawn on.

    Raises
    ------
    LayoutError
        `modes` are not different modes of a layout, or more than three.
    RoteError
        Matplotlib is not installed.

    Examples
    --------
    >>> import rote
    >>> rows, columns = (rote.parse(text).on((4, 4), 2) for text in ("block[(0),()]", "block[(),(0)]"))
    >>> move, actions, modes = ("alltoall", "over 0"), ["fft(1)", "fft(0)"], [(0, 1), (0, 1)]
    >>> figure = rote.plot.stages([rows, columns], [move], actions, modes)
    >>> [ax.get_title().splitlines()[-1] for ax in figure.axes if ax.get_title()]
    ['fft(1)', 'fft(0)']
    """
    chosen = [_choose(dist, those) for dist, those in zip(dists, modes, strict=True)]
    figure = new_figure(3.1 * len(dists) + 1.0 * len(arrows), 4.0 if max(map(len, chosen)) > 1 else 2.4)

    cell = figure.add_gridspec(1, 1)[0]
    for ax, caption in zip(row(figure, cell, [*zip(dists, chosen, strict=True)], arrows), captions, strict=True):
        ax.set_title("\n".join(filter(None, (ax.get_title(), caption))), fontfamily="monospace", fontsize=9, color=INK)
    add_legend(figure, [*dists])
    return figure


def row(
    figure: Figure,
    cell: SubplotSpec,
    pictures: Sequence[tuple[Distribution, tuple[int, ...]]],
    names: Sequence[tuple[str, str]],
) -> list[Axes]:
    """Draw layouts side by side, with arrows between them; return the axes of the layouts."""
    grid = cell.subgridspec(1, 2 * len(pictures) - 1, width_ratios=[1, *(0.3, 1) * len(names)])

    axes = [figure.add_subplot(grid[2 * number]) for number in range(len(pictures))]
    for ax, (dist, modes) in zip(axes, pictures, strict=True):
        draw(ax, dist, modes)

    for number, (kind, over) in enumerate(names):
        _arrow(figure.add_subplot(grid[2 * number + 1]), kind, over)
    return axes


def messages(plan: Plan, ax: Axes | None = None, *, step: int | None = None, legend: bool = True) -> Figure:
    """Draw who sends how much to whom: a matrix per step, senders downwards, receivers across, bytes as colour.

    The diagonal is not messages, but the bytes that a rank keeps, grey and hatched. Up to 64 ranks are drawn as cells,
    with numbers if these can be read; more ranks are points of an image. Above 256 ranks a point stands for several,
    and shows the largest of their messages.

    Parameters
    ----------
    ax : Axes, optional
        Where to draw one matrix; a new figure if it is None.
    step : int, optional
        The step to show, counted from 1 as in the printed plan; all steps if it is None.
    legend : bool, default True
        Whether to explain the colours.

    Returns
    -------
    Figure
        The figure drawn on.

    Raises
    ------
    PlanError
        There is no such step, `ax` is given for several steps, or there are more than 1024 ranks.
    RoteError
        Matplotlib is not installed.

    Examples
    --------
    >>> import rote
    >>> plan = rote.compile("block[(0),(),()] -> block[(),(0),()]", shape=(8, 8, 8), grid=4)
    >>> figure = rote.plot.messages(plan)
    >>> figure.axes[0].get_title()
    'alltoall over 0'
    """
    matrices = _matrices(plan, step)
    if ax is None:
        figure = new_figure(3.4 * len(matrices) + (0.9 if legend else 0.0), 3.7)
        axes = [figure.add_subplot(1, len(matrices), number) for number in range(1, len(matrices) + 1)]
    elif len(matrices) > 1:
        raise PlanError(f"one matrix is drawn on ax, but the plan has {len(matrices)} steps\nchoose one, as in step=1")
    else:
        axes = [ax]

    _draw_matrices(axes, matrices, legend)
    return axes[0].figure.figure


def _matrices(plan: Plan, step: int | None = None) -> list[tuple[str, Ints]]:
    """Per step to show, its title and the bytes from each rank to each rank."""
    size = plan.source.grid.size
    if size > _MOST_RANKS:
        raise PlanError(
            f"a message matrix is drawn for up to {_MOST_RANKS} ranks, but grid {plan.source.grid} has {size}\n"
            "compile the transition for a smaller grid to see its pattern; plan.explain() says what the large one costs"
        )

    moves = [(str(entry).partition(":")[0], entry.before, entry.after) for entry in plan.steps]
    if step is not None:
        if not 1 <= step <= len(moves):
            raise PlanError(
                f"the plan has {len(moves)} steps, but step={step} is to be drawn\ncount from 1, as print(plan)"
            )
        moves = moves[step - 1 : step]

    moves = moves or [("nothing to do", plan.source, plan.target)]
    return [(name, movement(before, after).matrix() * plan.dtype.itemsize) for name, before, after in moves]


def _draw_matrices(axes: Sequence[Axes], matrices: list[tuple[str, Ints]], legend: bool = True) -> None:
    """Draw matrices side by side, all in one scale, with its explanation beside the last."""
    most_kept = max(int(sent.diagonal().max()) for _, sent in matrices)
    most_sent = max(int((sent - np.diag(sent.diagonal())).max()) for _, sent in matrices)
    scale = Scale.of(most_sent, most_kept)

    for ax, (title, sent) in zip(axes, matrices, strict=True):
        draw_matrix(ax, sent, title, scale)
    if legend:
        draw_scale(axes[-1], scale, most_kept > 0)


def _choose(dist: Distribution, modes: Sequence[int] | None) -> tuple[int, ...]:
    chosen = tuple(range(dist.order) if modes is None else modes)
    if len(chosen) > 3:
        raise LayoutError(
            f"a picture has up to three modes, but {dist.layout} has {len(chosen)}; choose some, as in modes=(0, 1, 2)"
        )
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(dist.order)) or (dist.order and not chosen):
        raise LayoutError(f"modes={chosen} are not different modes of {dist.layout}, which has 0 to {dist.order - 1}")
    return chosen


def add_legend(target: Axes | Figure, dists: list[Distribution]) -> None:
    """Add a legend: ranks and their colours, all or a selection from first to last, then the idle ranks."""
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    size = dists[0].grid.size
    ranks = range(size) if size <= _MOST_ENTRIES else np.linspace(0, size - 1, 8).astype(int).tolist()

    patches: dict[Owners, Patch] = {}
    holding = set()
    for dist in dists:
        splitting = [split.grid_mode for splits in dist.splits for split in splits]
        owners_at = drawing.owners_of(dist)
        for rank in ranks:
            if 0 in dist.local_shape(rank):
                continue

            holding.add(rank)
            coordinates = dist.grid.coordinates(rank)
            owners = owners_at({g: coordinates[g] for g in splitting})
            look = style(owners, size)
            hatch = 3 * look.pop("hatch", "")  # denser, for a small patch
            patches.setdefault(owners, Patch(label=str(owners), hatch=hatch, **look))

    handles = [patches[owners] for owners in sorted(patches, key=lambda o: (len(o.ranks), o.first))]

    empty = [str(rank) for rank in ranks if rank not in holding]
    if empty:
        handles.append(Patch(label=f"{', '.join(empty)}: nothing", facecolor="white", edgecolor="#bbbbbb"))

    options: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK, "handlelength": 1.2, "title": "rank"}
    if isinstance(target, Axes):
        target.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), **options)
    else:
        target.legend(handles=handles, loc="outside right center", **options)


def _over(step: Step) -> str:
    """The grid modes over which a step sends messages, or the new grid, to which all ranks may send."""
    if step.across:
        return f"to grid {step.after.grid}"
    return "" if step.kind in LOCAL else f"over {','.join(map(str, step.grid_modes))}"


def _arrow(ax: Axes, kind: str, over: str) -> None:
    ax.set_axis_off()
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "mutation_scale": 14}
    ax.annotate("", (1.0, 0.5), (0.0, 0.5), xycoords="axes fraction", arrowprops=arrow)
    for text, y, va in ((kind, 0.53, "bottom"), (over, 0.47, "top")):
        ax.text(0.5, y, text, ha="center", va=va, fontsize=9, color=INK, transform=ax.transAxes)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return _figure_class()(figsize=(width, height), layout="constrained")


@cache
def _figure_class() -> type[Figure]:
    """Matplotlib's figure class, extended so that notebooks show figures without a backend."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RoteError("pictures are drawn by matplotlib, which is not installed; pip install matplotlib") from None

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    return Picture


# --- one layout on axes ----------------------------------------------------------------------------------------------


def draw(ax: Axes, dist: Distribution, modes: tuple[int, ...], names: Sequence[str] | None = None) -> None:
    """Draw the picture of a distribution on matplotlib's axes, without a legend; its modes may have other names."""
    names = names or drawing.mode_names(dist)

    rest = [m for m in range(dist.order) if m not in modes]
    sides = [replace(Side.beginning(dist, m, _MOST_RUNS), name=names[m]) for m in modes]

    text = str(dist.layout)
    if len(text) > _LONG:
        text = text.replace(": ", ":\n", 1)
    lines = [text]
    if rest:
        lines.append(f"at index 0 of {', '.join([names[m] for m in rest])}")
    lines += [side.cut for side in sides if side.cut]

    ax.set_title("\n".join(lines), fontfamily="monospace", fontsize=10, color=INK)
    if 0 in dist.view_shape:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no elements", ha="center", va="center", color=INK, transform=ax.transAxes)
        return

    # Modes that are not drawn are at their first index, which fixes the coordinates that split them.
    at = {g: c for m in rest for g, c in drawing.run_around(dist, m, 0).at}
    if len(sides) == 3:
        faces = drawing.cube(sides, at)
        cube_axes(ax, faces)
    else:
        down, across = [*[Side()] * (2 - len(sides)), *sides]
        faces = [drawing.flat(down, across, at)]
        _flat_axes(ax, down, across)

    _cells(ax, dist, faces)


def _cells(ax: Axes, dist: Distribution, faces: list[Face]) -> None:
    """Draw the cells, grouped by their owners; over them the borders and the owners' numbers."""
    from matplotlib.collections import LineCollection, PolyCollection

    size = dist.grid.size
    cells = [cell for face in faces for cell in face.cells(dist)]
    corners = [corners for _, corners in cells]

    groups: dict[Owners, list[Points]] = {}
    for owners, of_cell in cells:
        groups.setdefault(owners, []).append(of_cell)

    # A collection has one hatching: few groups get one each, many get their first rank's colour only.
    if len(groups) <= _MOST_STYLES:
        for owners, group in groups.items():
            ax.add_collection(PolyCollection(group, label=str(owners), **style(owners, size)))
    else:
        colors = [rank_color(owners.first, size) for owners, _ in cells]
        ax.add_collection(PolyCollection(corners, facecolor=colors, linewidth=0, label="_cells"))
    for face in faces:
        ax.add_collection(LineCollection(face.lines(), color="white", alpha=0.4, linewidth=0.5))
    if len(faces) == 3:  # the side of a cube lies in shadow
        ax.add_collection(PolyCollection([faces[1].outline()], facecolor="black", alpha=0.12, linewidth=0))

    most = max(len(side.runs) for face in faces for side in (face.down, face.across))
    if most <= _MOST_BORDERS:
        width = 0.9 if most <= _FEW else 0.4
        ax.add_collection(PolyCollection(corners, facecolor="none", edgecolor="white", linewidth=width))

    outlines = [face.outline() for face in faces]
    ax.add_collection(PolyCollection(outlines, facecolor="none", edgecolor=INK, linewidth=0.9))

    if len(cells) <= _MOST_LABELS:
        _labels(ax, cells, np.ptp(np.concatenate(outlines), axis=0), size)


def _labels(ax: Axes, cells: list[tuple[Owners, Points]], whole: Points, size: int) -> None:
    """Write the owners in the middle of each cell, as large as fits; nothing if too small to read."""
    aspect = float(ax.get_aspect())
    box = ax.get_window_extent()

    # A unit of the picture in points. The aspect says how much higher than wide one is; 0.8 leaves room for titles.
    unit = 0.8 * 72 / ax.figure.dpi * min(box.width / whole[0], box.height / (whole[1] * aspect))
    for owners, corners in cells:
        edges = drawing.chords(corners) * (unit, unit * aspect)
        text = str(owners)
        points = min(9.0, 0.7 * edges[1], edges[0] / (0.62 * len(text) + 0.3))
        if points >= 4:
            color = rank_color(owners.first, size)
            ink = INK if is_light(color) else "white"

            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": points, "color": ink}
            if len(owners.ranks) > 1:  # a plain background over the hatching
                look["bbox"] = {"boxstyle": "round,pad=0.2", "fc": color, "ec": "none"}
            x, y = corners.mean(axis=0)
            ax.text(x, y, text, **look)


def _flat_axes(ax: Axes, down: Side, across: Side) -> None:
    """Set up axes for a line or a matrix, in global indices."""
    ax.set_xlim(0, across.shown)
    ax.set_ylim(down.shown, 0)

    ratio = min(max(down.shown / across.shown, 0.4), 2.5) if down.name else 0.12
    ax.set_aspect(ratio * across.shown / down.shown)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK, bottom=False, labelbottom=False, labeltop=True)

    space = 1 / ratio if down.name else 1.0  # the width, relative to the height
    for side, axis, part in ((across, ax.xaxis, min(1.0, space)), (down, ax.yaxis, min(1.0, ratio))):
        if side.shown <= _FEW * part:  # number each index, at the middle of its cell
            axis.set_ticks([i + 0.5 for i in range(side.shown)], [*map(str, range(side.shown))])
        else:
            axis.set_ticks(side.labels(max(3, int(9 * part))))

    ax.tick_params(left=False, labelleft=bool(down.name))
    ax.set_xlabel(across.name, fontsize=9, color=INK)
    ax.set_ylabel(down.name, fontsize=9, color=INK)
    ax.xaxis.set_label_position("top")


def cube_axes(ax: Axes, faces: list[Face]) -> None:
    """Draw names and ticks along three outer edges of a cube."""
    looks: list[tuple[tuple[int, int], tuple[int, int], dict[str, Any]]] = [
        ((-2, -4), (-6, -17), {"ha": "center", "va": "top"}),
        ((4, -2), (13, -11), {"ha": "left", "va": "top"}),
        ((-4, 0), (-24, 0), {"ha": "right", "va": "center"}),
    ]
    for (side, indices, start, edge), (shift, far, look) in zip(drawing.cube_edges(faces), looks, strict=True):
        look |= {"textcoords": "offset points", "color": INK}
        for index in indices:
            x, y = start + index / side.shown * edge
            ax.annotate(str(index), (x, y), shift, fontsize=7.5, **look)
        x, y = start + edge / 2
        ax.annotate(side.name, (x, y), far, fontsize=9, rotation=90 if look["ha"] == "right" else 0, **look)

    corners = np.concatenate([face.outline() for face in faces])
    (left, low), (far_right, high) = corners.min(axis=0), corners.max(axis=0)
    ax.set_xlim(left - 0.25, far_right + 0.12)
    ax.set_ylim(low - 0.2, high + 0.02)
    ax.set_aspect(1)
    ax.set_axis_off()


def style(owners: Owners, size: int) -> dict[str, Any]:
    """The style of the cells of these owners."""
    plain = {"facecolor": rank_color(owners.first, size), "linewidth": 0}
    if owners.last == owners.first:
        return plain
    return plain | {"edgecolor": rank_color(owners.last, size), "hatch": "x" if len(owners.parts) > 1 else "//"}


# --- one message matrix on axes: senders down, receivers across, bytes as colour --------------------------------------


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
    diagonal = np.diag(sent.diagonal())
    ranks = -(-size // _MOST_POINTS)  # per point
    messages, keeps = _most_of(sent - diagonal, ranks), _most_of(diagonal, ranks)

    image = scale.colors(messages / max(scale.most, 1))[..., :3]
    # Colours are the scale of messages alone; what a rank keeps is grey, however much it is.
    image[messages == 0] = to_rgb(_NOTHING)
    image[(messages == 0) & (keeps > 0)] = to_rgb(_KEPT)

    end = len(image) * ranks
    ax.imshow(image, extent=(0, end, end, 0), interpolation="nearest")
    ax.set(xlim=(0, size), ylim=(size, 0))

    if size <= _MOST_CELLS:
        _hatch(ax, np.flatnonzero(sent.diagonal()))
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


def _hatch(ax: Axes, ranks: npt.NDArray[np.intp]) -> None:
    from matplotlib.collections import PolyCollection

    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    cells = [corners + rank for rank in ranks]
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
