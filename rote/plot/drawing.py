"""Drawing one layout on matplotlib's axes."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..layout.layout import Distribution
from ..layout.ownership import Owners, is_light, mode_names, owners_at, rank_color, run_around, runs
from .geometry import Face, Points, ShownMode, chords, cube, flat, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INK", "draw", "style"]

INK = "#404040"
_MOST_RUNS = 128  # runs drawn along a mode; later ones are cut off, and the title says so
_MOST_BORDERS = 48  # the most runs along a mode for which lines are drawn between them
_MOST_STYLES = 64  # the most groups of cells that have a hatching of their own
_MOST_LABELS = 450
_FEW = 16  # the most indices that are all numbered
_LONG = 36  # characters of a layout's text, above which its view gets a line of its own


def draw(ax: Axes, dist: Distribution, modes: tuple[int, ...]) -> None:
    """Draw the picture of a distribution on matplotlib's axes, without a legend."""
    rest = [m for m in range(dist.order) if m not in modes]
    names = mode_names(dist)
    sides = [ShownMode(names[m], dist.view_shape[m], tuple(islice(runs(dist, m), _MOST_RUNS))) for m in modes]
    text = str(dist.layout)
    if len(text) > _LONG:
        text = text.replace(": ", ":\n", 1)
    lines = [text]
    if rest:
        lines.append(f"at index 0 of {', '.join([names[m] for m in rest])}")
    lines += [f"{side.name} up to {side.shown} of {side.extent}" for side in sides if side.shown < side.extent]
    ax.set_title("\n".join(lines), fontfamily="monospace", fontsize=10, color=INK)
    if 0 in dist.view_shape:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no elements", ha="center", va="center", color=INK, transform=ax.transAxes)
        return
    at = {g: c for m in rest for g, c in run_around(dist, m, 0).at}
    if len(sides) == 3:
        faces = cube(sides, at)
        cube_axes(ax, sides, faces)
    else:
        down, across = [*[ShownMode()] * (2 - len(sides)), *sides]
        faces = [flat(down, across, at)]
        _flat_axes(ax, down, across)
    _cells(ax, dist, faces)


def _cells(ax: Axes, dist: Distribution, faces: list[Face]) -> None:
    """Draw the cells, grouped by their owners; over them the borders and the owners' numbers."""
    from matplotlib.collections import LineCollection, PolyCollection

    size = dist.grid.size
    cells: list[tuple[Owners, Points]] = []
    for face in faces:
        for row, column in product(face.down.runs, face.across.runs):
            cells.append((owners_at(dist, face.at | dict(row.at) | dict(column.at)), face.cell(row, column)))
    corners = [corners for _, corners in cells]
    groups: dict[int, list[Points]] = {}
    names: dict[int, Owners] = {}
    for owners, of_cell in cells:
        groups.setdefault(owners.first, []).append(of_cell)
        names[owners.first] = owners
    if len(groups) <= _MOST_STYLES:
        for first, group in groups.items():
            ax.add_collection(PolyCollection(group, label=str(names[first]), **style(names[first], size)))
    else:
        colors = [rank_color(owners.first, size) for owners, _ in cells]
        ax.add_collection(PolyCollection(corners, facecolor=colors, linewidth=0, label="_cells"))
    for face in faces:
        ax.add_collection(LineCollection(face.lines(), color="white", alpha=0.4, linewidth=0.5))
    if len(faces) == 3:
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
    unit = 0.8 * 72 / ax.figure.dpi * min(box.width / whole[0], box.height / (whole[1] * aspect))
    for owners, corners in cells:
        edges = chords(corners) * (unit, unit * aspect)
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


def _flat_axes(ax: Axes, down: ShownMode, across: ShownMode) -> None:
    """Set up axes for a line or a matrix, in global indices."""
    ax.set_xlim(0, across.shown)
    ax.set_ylim(down.shown, 0)
    ratio = min(max(down.shown / across.shown, 0.4), 2.5) if down.name else 0.12
    ax.set_aspect(ratio * across.shown / down.shown)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK, bottom=False, labelbottom=False, labeltop=True)
    room = 1 / ratio if down.name else 1.0  # the width, relative to the height
    for side, axis, part in ((across, ax.xaxis, min(1.0, room)), (down, ax.yaxis, min(1.0, ratio))):
        if side.shown <= _FEW * part:  # number each index, at the middle of its cell
            axis.set_ticks([i + 0.5 for i in range(side.shown)], [*map(str, range(side.shown))])
        else:
            axis.set_ticks(ticks(side, max(3, int(9 * part))))
    ax.tick_params(left=False, labelleft=bool(down.name))
    ax.set_xlabel(across.name, fontsize=9, color=INK)
    ax.set_ylabel(down.name, fontsize=9, color=INK)
    ax.xaxis.set_label_position("top")


def cube_axes(ax: Axes, sides: list[ShownMode], faces: list[Face]) -> None:
    """Draw names and ticks along three outer edges of a cube."""
    front, right, _ = faces
    edges = [(front.origin, front.along_across), (right.origin, right.along_across), (front.origin, front.along_down)]
    looks: list[tuple[tuple[int, int], tuple[int, int], dict[str, Any]]] = [
        ((-2, -4), (-6, -17), {"ha": "center", "va": "top"}),
        ((4, -2), (13, -11), {"ha": "left", "va": "top"}),
        ((-4, 0), (-24, 0), {"ha": "right", "va": "center"}),
    ]
    for side, (start, edge), (shift, far, look) in zip(sides, edges, looks, strict=True):
        look |= {"textcoords": "offset points", "color": INK}
        indices = ticks(side, 4)
        if side is sides[1]:
            indices = indices[1:]  # at this corner stands the last tick of mode 0
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
    last = owners.first + owners.replicas[-1] + owners.parts[-1]
    if last == owners.first:
        return plain
    return plain | {"edgecolor": rank_color(last, size), "hatch": "x" if len(owners.parts) > 1 else "//"}
