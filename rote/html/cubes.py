"""Cubes: a tensor of three modes as a picture, its faces in the colours of the owners, to scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

import numpy as np

from ..layout.layout import Distribution
from ..layout.ownership import Owners, mode_names, owners_at, runs
from ..plot.geometry import Face, Points, ShownMode, chords, cube, ticks
from .maps import colors, listed
from .markup import Markup, element

__all__ = ["owner_cube"]

_UNIT = 170.0  # CSS pixels of the longest side
_MOST_RUNS = 8  # that are drawn along a mode; the picture does not grow with the tensor
_MARGIN = 42.0  # around the cube, for names and indices
_LETTER = 13.0  # the largest letters, in CSS pixels, and below the least that can be read
_LEAST = 7.0
_BESIDE = ((-4, 14, "middle"), (8, 10, "start"), (-6, 4, "end"))  # where the indices along each mode are written


def owner_cube(dist: Distribution, caption: str) -> Markup:
    """The picture of a distribution of three modes that has elements: mode 0 to the right, 1 into the depth, 2 up."""
    names = mode_names(dist)
    sides = [ShownMode(names[m], dist.view_shape[m], tuple(islice(runs(dist, m), _MOST_RUNS))) for m in range(3)]
    faces = cube(sides, {})
    corners = np.concatenate([face.outline() for face in faces]) * (_UNIT, -_UNIT)
    low, size = corners.min(axis=0) - _MARGIN, np.ptp(corners, axis=0) + 2 * _MARGIN
    parts = [*(_face(dist, face) for face in faces)]
    parts.append(_path([faces[1].outline()], fill="#000", fill_opacity=0.12, pointer_events="none"))
    parts.append(_path([face.outline() for face in faces], fill="none", stroke="currentColor"))
    front, right, _ = faces
    edges = [(front.origin, front.along_across), (right.origin, right.along_across), (front.origin, front.along_down)]
    for side, (start, edge), (x, y, anchor) in zip(sides, edges, _BESIDE, strict=True):
        parts += _axis(side, start, edge, (x, y), anchor)
    box = " ".join([f"{number:.0f}" for number in (*low, *size)])
    cut = "".join([f", {side.name} up to {side.shown} of {side.extent}" for side in sides if side.shown < side.extent])
    look = {"viewBox": box, "width": f"{size[0]:.0f}", "height": f"{size[1]:.0f}", "role": "img"}
    picture = element("svg", *parts, aria_label=f"{caption}{cut}", **look)
    return element("figure", element("figcaption", f"{caption}{cut}"), picture, class_="cube")


def _axis(side: ShownMode, start: Points, edge: Points, shift: Sequence[float], anchor: str) -> list[Markup]:
    """The name of a mode in the middle of its edge, and some indices along it."""
    numbers = ticks(side, 4)[anchor == "start" :]  # where mode 1 begins stands the last index of mode 0
    marks = [_text(start + number / side.shown * edge, shift, str(number), anchor, 11) for number in numbers]
    middle = start + edge / 2
    if anchor != "end":
        return [*marks, _text(middle, (3 * shift[0], 2 * shift[1] + 8), side.name, anchor, 12)]
    x, y = middle * (_UNIT, -_UNIT) - (30, 0)  # upwards, beside the indices
    return [*marks, _text(middle, (-30, 0), side.name, "middle", 12, transform=f"rotate(-90 {x:.1f} {y:.1f})")]


def _face(dist: Distribution, face: Face) -> Markup:
    """The cells of a face, one path for all of the same owners, and the owners' numbers."""
    groups: dict[Owners, list[Points]] = {}
    for row, column in product(face.down.runs, face.across.runs):
        owners = owners_at(dist, face.at | dict(row.at) | dict(column.at))
        groups.setdefault(owners, []).append(face.cell(row, column))
    parts, size = [], dist.grid.size
    for owners, cells in groups.items():
        fill, ink = colors(owners, size)
        label, inside = str(owners), [_path(cells, fill=fill, stroke="#fff", stroke_width=0.7)]
        for cell in cells:
            width, height = chords(cell) * _UNIT
            letter = min(_LETTER, 0.7 * height, width / (0.62 * len(label) + 0.3))
            if letter >= _LEAST:
                inside.append(_text(cell.mean(axis=0), (0, 4), label, "middle", letter, fill=ink))
        parts.append(element("g", *inside, data_ranks=listed(owners, size)))
    return element("g", *parts)


def _path(polygons: list[Points], **look: object) -> Markup:
    """Polygons as one path."""
    points = [" ".join([f"{x * _UNIT:.1f} {-y * _UNIT:.1f}" for x, y in polygon]) for polygon in polygons]
    return element("path", d="".join([f"M{each}z" for each in points]), **look)


def _text(at: Points, shift: Sequence[float], text: str, anchor: str, size: float, **look: object) -> Markup:
    """A text near a point; in the colour of the page, unless it has another."""
    x, y = at * (_UNIT, -_UNIT) + shift
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text_anchor": anchor, "font_size": f"{size:.1f}"}
    return element("text", text, **place, **({"fill": "currentColor"} | look))
