"""Owner maps: tables of the owners along two modes, for one layout or for several with common ticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from ..layout.layout import Distribution
from ..layout.ownership import Owners, Run, Tick, is_light, mode_names, owners_at, rank_color, run_around, ticks
from .markup import Markup, element

__all__ = ["MOST_RANKS", "Plane", "colors", "listed", "owner_map", "planes"]

MOST_RANKS = 16  # the most ranks that are listed one by one, and can be followed
_SMALL = 8  # the largest extent whose indices are shown one by one
_PAIRS = 6  # the most pairs of modes
_EM, _MOST_EM = 20.0, 32.0  # the longer side of a map, in the height of a letter, usually and at most
_SLICES = 4  # the most slices of a tensor of order 3 or more

Slice = tuple[tuple[int, Run], ...]  # the other modes, each with its fixed run of indices


@dataclass(frozen=True, slots=True)
class Ruler:
    """A mode that is shown, with its ticks; without a mode, a single tick."""

    mode: int | None = None
    ticks: Sequence[Tick] = (Run(0, 1),)

    def coordinates(self, dist: Distribution) -> list[Mapping[int, int] | None]:
        """The coordinates of the grid modes that split the mode, at each tick."""
        if self.mode is None:
            return [{}]
        return [None if tick is None else dict(run_around(dist, self.mode, tick.start).at) for tick in self.ticks]


@dataclass(frozen=True, slots=True)
class Plane:
    """At most two modes along which owners are shown, and slices, which fix the other modes."""

    down: Ruler
    across: Ruler
    slices: tuple[Slice, ...]  # one for each map; a single empty one if there are no other modes
    more: bool  # whether slices are left out

    @property
    def modes(self) -> tuple[int, ...]:
        """The modes that are shown."""
        return tuple(side.mode for side in (self.down, self.across) if side.mode is not None)

    def named(self, dist: Distribution) -> str:
        """The names of the modes in words: "mode 0 down, mode 1 across"."""
        names = [mode_names(dist)[m] for m in self.modes]
        return f"{' down, '.join(names)} across" if names else ""


def planes(dists: Sequence[Distribution], room: int = 12, most: int = _PAIRS) -> Iterator[Plane]:
    """The planes of distributions with the same view modes, first those in which they differ most, at most `most`.

    An empty tensor has none. A mode of a matrix has at most `room` ticks; half of them if there are slices.

    >>> from rote.layout.layout import parse
    >>> [plane.modes for plane in planes([parse(f"block[{text}]").on((4, 4, 4), 2) for text in ("(0)()()", "()()(0)")])]
    [(0, 2)]
    """
    first = dists[0]
    if 0 in first.view_shape:
        return
    shown = min(first.order, 2)
    split = [m for m in range(first.order) if any(dist.splits[m] for dist in dists)]
    whole = [m for m in range(first.order) if m not in split]
    kept = sorted(split + whole[: max(0, shown - len(split))])
    changed = {m for m in kept if any(dist.splits[m] != first.splits[m] for dist in dists)}
    pairs = sorted(combinations(kept, shown), key=lambda pair: -len(changed.intersection(pair)))
    if first.order > 2:
        room = max(6, room // 2)
    for pair in pairs[:most]:
        sides = [Ruler(m, ticks(dists, m, room, min(_SMALL, room))) for m in pair]
        down, across = [*[Ruler()] * (2 - shown), *sides]
        rest = [(m, ticks(dists, m, _SLICES, 0)) for m in range(first.order) if m not in pair]
        places = product(*[[(m, run) for run in along if run] for m, along in rest])
        slices = tuple(islice(places, _SLICES + 1))
        more = len(slices) > _SLICES or any(None in along for _, along in rest)
        yield Plane(down, across, slices[:_SLICES], more)


def owner_map(
    plane: Plane, place: Slice, dist: Distribution, caption: str, before: Distribution | None = None
) -> Markup:
    """A table of the owners in one slice of a plane; a cell whose owners were others `before` shows both.

    Cells are as long and as high as their runs of indices, all to one scale, but never smaller than their texts.
    """
    now = _owners(plane, place, dist)
    was = now if before is None else _owners(plane, place, before)
    with_names = plane.down.mode is not None
    length = _length(plane)
    lines, columns = [], [element("col")] * with_names
    if plane.across.mode is not None:
        heads = [element("th", _text(tick), scope="col") for tick in plane.across.ticks]
        columns += [element("col", style=f"width:{_extent(tick) * length:.2f}em") for tick in plane.across.ticks]
        if with_names:
            heads.insert(0, element("td"))
        lines.append(element("tr", *heads))
    for tick, owners, earlier in zip(plane.down.ticks, now, was, strict=True):
        cells = [_cell(*pair, dist.grid.size) for pair in zip(owners, earlier, strict=True)]
        if with_names:
            cells.insert(0, element("th", _text(tick), scope="row"))
        height = f"height:{_extent(tick) * length:.2f}em" if with_names else None
        lines.append(element("tr", *cells, style=height))
    above = element("caption", caption, style="text-align:left;white-space:nowrap")
    return element("table", above, element("colgroup", *columns), element("tbody", *lines), class_="map")


def _length(plane: Plane) -> float:
    """The length of an index: that of a map of usual size, or more, up to a large one, if the numbers above need it."""
    longest = max(sum(map(_extent, side.ticks)) for side in (plane.down, plane.across))
    needed = max((0.5 * len(_text(tick)) + 1) / _extent(tick) for tick in plane.across.ticks if tick)
    return min(max(_EM / longest, needed), _MOST_EM / longest)


def _owners(plane: Plane, place: Slice, dist: Distribution) -> list[list[Owners | None]]:
    """The owners of each cell; None at ticks that stand for indices left out."""
    fixed: dict[int, int] = {}
    for m, run in place:
        fixed |= dict(run_around(dist, m, run.start).at)
    columns = plane.across.coordinates(dist)
    table: list[list[Owners | None]] = []
    for row in plane.down.coordinates(dist):
        if row is None:
            table.append([None] * len(columns))
            continue
        fixed_too = {**fixed, **row}
        table.append([None if column is None else owners_at(dist, {**fixed_too, **column}) for column in columns])
    return table


def _cell(now: Owners | None, was: Owners | None, size: int) -> Markup:
    """A cell with its owners, and with the owners before if those differ."""
    if now is None or was is None:
        return element("td", "…", class_="gap")
    moved = now.ranks != was.ranks
    label = f"{was}→{now}" if moved else str(now)
    look, ranks = _look(now, size), listed(now, size)
    return element("td", label, style=look, class_="moved" if moved else None, data_ranks=ranks)


def listed(owners: Owners, size: int) -> str | None:
    """The ranks of owners among `size` ranks, so that a reader can follow one; None if there are too many."""
    return " ".join(map(str, owners.ranks)) if size <= MOST_RANKS else None


def _look(owners: Owners, size: int) -> str:
    """The colours of owners among `size` ranks, as a CSS style."""
    return "background:{};color:{}".format(*colors(owners, size))


def colors(owners: Owners, size: int) -> tuple[str, str]:
    """The colour of owners among `size` ranks, and that of a text on it, as CSS has them."""
    color = rank_color(owners.first + (owners.replicas[-1] + owners.parts[-1]) / 2, size)
    red, green, blue = (round(255 * part) for part in color)
    return f"#{red:02x}{green:02x}{blue:02x}", "#000" if is_light(color) else "#fff"


def _extent(tick: Tick) -> int:
    """The indices of a tick; those that are left out take no place."""
    return tick.stop - tick.start if tick else 0


def _text(tick: Tick) -> str:
    return str(tick) if tick else "…"
