"""Owners as HTML: elements as values, tables of the owners along two modes, and pictures of cubes.

Plain text is escaped, and every element is closed. A map is for one layout, or for several with common ticks. A cube
shows a tensor of three modes, its faces in the colours of the owners. Both are to scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations, islice, product

import numpy as np

from ..layout.distribution import Distribution
from ..plot import drawing
from ..plot.drawing import GAP, MOST_RANKS, Face, Owners, Points, Run, Side, is_light

__all__ = ["Markup", "Plane", "data_table", "element", "join", "owner_cube", "owner_map", "planes"]


# --- elements ---------------------------------------------------------------------------------------------------------

_VOID = ("col", "meta")  # elements without content


class Markup(str):
    """A text that is already HTML, and is not escaped again."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """An element of HTML; texts among its children are escaped, `Markup` is not.

    Of attributes, `class_` and `for_` lose their last underscore, and `data_ranks` becomes data-ranks. Those that are
    None or False are left out, and those that are True have no value.

    >>> element("td", "a < b", element("b", "c"), class_="in", hidden=True, title=None)
    '<td class="in" hidden>a &lt; b<b>c</b></td>'
    """
    words = [name]
    for key, value in attributes.items():
        shown = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(shown)
        elif value is not None and value is not False:
            words.append(f'{shown}="{escape(str(value))}"')

    head = f"<{' '.join(words)}>"
    return Markup(head if name in _VOID else f"{head}{join(children)}</{name}>")


def join(parts: Sequence[str]) -> Markup:
    """Join parts, which are escaped as the children of an element are."""
    return Markup("".join(part if isinstance(part, Markup) else escape(str(part)) for part in parts))


def data_table(caption: str, heads: Sequence[str], rows: Sequence[tuple[dict[str, object], Sequence[str]]]) -> Markup:
    """A table whose first column names the rows; each row has attributes and cells."""
    head = element("tr", *[element("th", name, scope="col") for name in heads])

    body = []
    for attributes, (first, *rest) in rows:
        cells = [element("th", first, scope="row"), *[element("td", cell) for cell in rest]]
        body.append(element("tr", *cells, **attributes))

    whole = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


# --- maps -------------------------------------------------------------------------------------------------------------

_SMALL = 8  # the largest extent whose indices are shown one by one
_PAIRS = 6  # the most pairs of modes
_EM, _MOST_EM = 20.0, 32.0  # the longer side of a map, in the height of a letter, usually and at most
_SLICES = 4  # the most slices of a tensor of order 3 or more

Slice = tuple[tuple[int, Run], ...]  # the other modes, each with its fixed run of indices


@dataclass(frozen=True, slots=True)
class Plane:
    """At most two modes along which owners are shown, and slices, which fix the other modes."""

    down: Side
    across: Side
    slices: tuple[Slice, ...]  # one for each map; a single empty one if there are no other modes
    more: bool  # whether slices are left out

    @property
    def named(self) -> str:
        """The names of the modes in words: "mode 0 down, mode 1 across"."""
        names = [side.name for side in (self.down, self.across) if side.name]
        return f"{' down, '.join(names)} across" if names else ""


def planes(dists: Sequence[Distribution], space: int = 12, most: int = _PAIRS) -> Iterator[Plane]:
    """The planes of distributions with the same view modes, first those in which they differ most, at most `most`.

    An empty tensor has none. A mode of a matrix has at most `space` ticks; half of them if there are slices.

    >>> from rote.layout.layout import parse
    >>> dists = [parse(f"block[{text}]").on((4, 4, 4), 2) for text in ("(0)()()", "()()(0)")]
    >>> [plane.named for plane in planes(dists)]
    ['mode 0 down, mode 2 across']
    """
    first = dists[0]
    if 0 in first.view_shape:
        return

    shown = min(first.order, 2)
    split = [m for m in range(first.order) if any(dist.splits[m] for dist in dists)]
    whole = [m for m in range(first.order) if m not in split]

    # Split modes first; whole ones only where there are less than two of these.
    drawn = sorted(split + whole[: max(0, shown - len(split))])
    changed = {m for m in drawn if any(dist.splits[m] != first.splits[m] for dist in dists)}

    pairs = sorted(combinations(drawn, shown), key=lambda pair: -len(changed.intersection(pair)))
    if first.order > 2:
        space = max(6, space // 2)

    for pair in pairs[:most]:
        sides = [Side.of(first, m, drawing.ticks(dists, m, space, min(_SMALL, space))) for m in pair]
        down, across = [*[Side()] * (2 - shown), *sides]

        rest = [(m, drawing.ticks(dists, m, _SLICES, 0)) for m in range(first.order) if m not in pair]
        places = product(*[[(m, run) for run in along if run] for m, along in rest])

        slices = tuple(islice(places, _SLICES + 1))
        more = len(slices) > _SLICES or any(GAP in along for _, along in rest)
        yield Plane(down, across, slices[:_SLICES], more)


def owner_map(
    plane: Plane, place: Slice, dist: Distribution, caption: str, before: Distribution | None = None
) -> Markup:
    """A table of the owners in one slice of a plane; a cell whose owners were others `before` shows both.

    Cells are as long and as high as their runs of indices, all to one scale, but never smaller than their texts.
    """
    now = _owners(plane, place, dist)
    was = now if before is None else _owners(plane, place, before)

    # A line is one row, without a name at its side.
    with_names = plane.down.mode is not None
    length = _length(plane)
    lines, columns = [], [element("col")] * with_names

    if plane.across.mode is not None:
        heads = [element("th", str(tick), scope="col") for tick in plane.across.ticks]
        columns += [element("col", style=f"width:{len(tick) * length:.2f}em") for tick in plane.across.ticks]
        if with_names:
            heads.insert(0, element("td"))
        lines.append(element("tr", *heads))

    for tick, owners, earlier in zip(plane.down.ticks, now, was, strict=True):
        cells = [_cell(*pair, dist.grid.size) for pair in zip(owners, earlier, strict=True)]
        if with_names:
            cells.insert(0, element("th", str(tick), scope="row"))
        height = f"height:{len(tick) * length:.2f}em" if with_names else None
        lines.append(element("tr", *cells, style=height))

    above = element("caption", caption, style="text-align:left;white-space:nowrap")
    return element("table", above, element("colgroup", *columns), element("tbody", *lines), class_="map")


def _length(plane: Plane) -> float:
    """The length of an index: that of a map of usual size, or more, up to a large one, if the numbers above need it."""
    longest = max(sum(map(len, side.ticks)) for side in (plane.down, plane.across))
    needed = max((0.5 * len(str(tick)) + 1) / len(tick) for tick in plane.across.ticks if tick)
    return min(max(_EM / longest, needed), _MOST_EM / longest)


def _owners(plane: Plane, place: Slice, dist: Distribution) -> list[list[Owners | None]]:
    """The owners of each cell; None at ticks that stand for indices left out."""
    fixed: dict[int, int] = {}
    for m, run in place:
        fixed |= dict(drawing.run_around(dist, m, run.start).at)
    return drawing.table(dist, plane.down.on(dist), plane.across.on(dist), fixed)


def _cell(now: Owners | None, was: Owners | None, size: int) -> Markup:
    """A cell with its owners, and with the owners before if those differ."""
    if now is None or was is None:
        return element("td", str(GAP), class_="gap")
    moved = now.ranks != was.ranks
    label = f"{was}→{now}" if moved else str(now)
    look = "background:{};color:{}".format(*colors(now, size))
    return element("td", label, style=look, class_="moved" if moved else None, data_ranks=listed(now, size))


def listed(owners: Owners, size: int) -> str | None:
    """The ranks of owners among `size` ranks, so that a reader can follow one; None if there are too many."""
    return " ".join(map(str, owners.ranks)) if size <= MOST_RANKS else None


def colors(owners: Owners, size: int) -> tuple[str, str]:
    """The colour of owners among `size` ranks, and that of a text on it, as CSS has them."""
    color = owners.color(size)
    red, green, blue = (round(255 * part) for part in color)
    return f"#{red:02x}{green:02x}{blue:02x}", "#000" if is_light(color) else "#fff"


# --- cubes ------------------------------------------------------------------------------------------------------------

_UNIT = 170.0  # CSS pixels of the longest side
_MOST_RUNS = 8  # that are drawn along a mode; the picture does not grow with the tensor
_MARGIN = 42.0  # around the cube, for names and indices
_LETTER = 13.0  # the largest letters, in CSS pixels, and below the least that can be read
_LEAST = 7.0
_BESIDE = ((-4, 14, "middle"), (8, 10, "start"), (-6, 4, "end"))  # where the indices along each mode are written


def owner_cube(dist: Distribution, caption: str) -> Markup:
    """The picture of a distribution of three modes that has elements: mode 0 to the right, 1 into the depth, 2 up."""
    sides = [Side.beginning(dist, m, _MOST_RUNS) for m in range(3)]

    faces = drawing.cube(sides, {})
    corners = np.concatenate([face.outline() for face in faces]) * (_UNIT, -_UNIT)
    low, size = corners.min(axis=0) - _MARGIN, np.ptp(corners, axis=0) + 2 * _MARGIN

    parts = [*(_face(dist, face) for face in faces)]
    parts.append(_path([faces[1].outline()], fill="#000", fill_opacity=0.12, pointer_events="none"))
    parts.append(_path([face.outline() for face in faces], fill="none", stroke="currentColor"))

    for edge, (x, y, anchor) in zip(drawing.cube_edges(faces), _BESIDE, strict=True):
        parts += _axis(*edge, (x, y), anchor)

    box = " ".join([f"{number:.0f}" for number in (*low, *size)])
    cut = "".join([f", {side.cut}" for side in sides if side.cut])
    look = {"viewBox": box, "width": f"{size[0]:.0f}", "height": f"{size[1]:.0f}", "role": "img"}
    picture = element("svg", *parts, aria_label=f"{caption}{cut}", **look)
    return element("figure", element("figcaption", f"{caption}{cut}"), picture, class_="cube")


def _axis(
    side: Side, numbers: list[int], start: Points, edge: Points, shift: Sequence[float], anchor: str
) -> list[Markup]:
    """The name of a mode in the middle of its edge, and some indices along it."""
    marks = [_label(start + number / side.shown * edge, shift, str(number), anchor, 11) for number in numbers]
    middle = start + edge / 2
    if anchor != "end":
        return [*marks, _label(middle, (3 * shift[0], 2 * shift[1] + 8), side.name, anchor, 12)]

    x, y = middle * (_UNIT, -_UNIT) - (30, 0)  # upwards, beside the indices
    return [*marks, _label(middle, (-30, 0), side.name, "middle", 12, transform=f"rotate(-90 {x:.1f} {y:.1f})")]


def _face(dist: Distribution, face: Face) -> Markup:
    """The cells of a face, one path for all of the same owners, and the owners' numbers."""
    groups: dict[Owners, list[Points]] = {}
    for owners, corners in face.cells(dist):
        groups.setdefault(owners, []).append(corners)

    parts, size = [], dist.grid.size
    for owners, cells in groups.items():
        fill, ink = colors(owners, size)
        label, inside = str(owners), [_path(cells, fill=fill, stroke="#fff", stroke_width=0.7)]

        for cell in cells:
            width, height = drawing.chords(cell) * _UNIT
            letter = min(_LETTER, 0.7 * height, width / (0.62 * len(label) + 0.3))
            if letter >= _LEAST:
                inside.append(_label(cell.mean(axis=0), (0, 4), label, "middle", letter, fill=ink))

        parts.append(element("g", *inside, data_ranks=listed(owners, size)))
    return element("g", *parts)


def _path(polygons: list[Points], **look: object) -> Markup:
    points = [" ".join([f"{x * _UNIT:.1f} {-y * _UNIT:.1f}" for x, y in polygon]) for polygon in polygons]
    return element("path", d="".join([f"M{corners}z" for corners in points]), **look)


def _label(at: Points, shift: Sequence[float], text: str, anchor: str, size: float, **look: object) -> Markup:
    """A text near a point; in the colour of the page, unless it has another."""
    x, y = at * (_UNIT, -_UNIT) + shift
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text_anchor": anchor, "font_size": f"{size:.1f}"}
    return element("text", text, **place, **({"fill": "currentColor"} | look))
