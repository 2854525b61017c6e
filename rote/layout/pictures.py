"""What pictures of layouts need: runs of indices, owners of cells, a colour per rank, and sizes for an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf, prod

import numpy as np

from ..caches import memoized
from ..errors import LayoutError
from ..grammar.nodes import Tile, modes_read
from .distribution import Distribution, distribute
from .grid import row_major
from .indexset import IndexSet
from .kinds import extent, least_parts, mode_set, near_extent
from .layout import Layout

__all__ = ["Color", "Owners", "Run", "Tick", "brief", "example_grid", "example_shape", "is_light", "mode_names"]
__all__ += ["owners_at", "rank_color", "run_around", "runs", "ticks"]

Color = tuple[float, float, float]

_MOST = 1 << 10  # ranks, none of which is to be empty in an example; pictures of more list but a few
_DOUBLED = 10  # times, at most

# P. Tol's "sunset" scheme, safe for colour-blind readers, from red to blue: the first rank is red and the last one
# blue, as in Figures 1 and 4 of Dalcin et al. 2019.
_SUNSET = "A50026 DD3D2D F67E4B FDB366 FEDA8B EAECCC C2E4EF 98CAE1 6EA6CD 4A7BB7 364B9A"
_COLORS = np.array([[*bytes.fromhex(text)] for text in _SUNSET.split()]) / 255


@dataclass(frozen=True, slots=True)
class Run:
    """The global indices from `start` up to, not including, `stop`, which all lie at the same coordinates.

    Attributes:
        at: those coordinates, as pairs (grid mode, coordinate).
    """

    start: int
    stop: int
    at: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return str(self.start) if self.stop == self.start + 1 else f"{self.start}..{self.stop - 1}"


Tick = Run | None
"""A run to show, or None for indices that are left out."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The ranks that own an element: each of `replicas` has it, as the reduction of what its `parts` hold.

    Attributes:
        first: the lowest of the ranks.
        replicas, parts: the offsets of the ranks from `first`, ascending from 0.
    """

    first: int
    replicas: tuple[int, ...] = (0,)
    parts: tuple[int, ...] = (0,)

    @property
    def ranks(self) -> tuple[int, ...]:
        """All these ranks, ascending."""
        return tuple(sorted(self.first + r + p for r in self.replicas for p in self.parts))

    def __str__(self) -> str:
        if len(self.parts) == 1:
            return _listed(self.first, self.replicas, ",")
        few = self.replicas if len(self.replicas) < 3 else (0, self.replicas[-1])
        sums = [_listed(self.first + r, self.parts, "+") for r in few]
        return (",…," if few != self.replicas else ",").join(sums)


def run_around(dist: Distribution, mode: int, index: int) -> Run:
    """The run along one view mode that holds a global index.

    >>> from rote.layout.layout import parse
    >>> run_around(parse("[(0:cyclic(3))]").on(1_000_000_000, 4), 0, 700_000_000)
    Run(start=699999999, stop=700000002, at=((0, 1),))
    """
    coordinates = {g: int(c) for g, c in dist.locate(mode, np.array(index))[0].items()}
    splits = dist.splits[mode]
    held = mode_set(splits, dist.view_shape[mode], tuple(coordinates[s.grid_mode] for s in splits))
    at = tuple((s.grid_mode, coordinates[s.grid_mode]) for s in splits)
    if held.runs == ((0, held.period),):
        return Run(held.start, held.stop, at)
    cycle, offset = divmod(index - held.start, held.period)
    a, b = next((a, b) for a, b in held.runs if a <= offset < b)
    base = held.start + cycle * held.period
    return Run(base + a, min(base + b, held.stop), at)


def runs(dist: Distribution, mode: int) -> Iterator[Run]:
    """The runs along one view mode, from the first index on; each is found only when it is asked for.

    >>> from rote.layout.layout import parse
    >>> [str(run) for run in runs(parse("block[(0)]").on(10, 3), 0)]
    ['0..3', '4..6', '7..9']
    """
    start, extent = 0, dist.view_shape[mode]
    while start < extent:
        run = run_around(dist, mode, start)
        yield run
        start = run.stop


def ticks(dists: Sequence[Distribution], mode: int, room: int, small: int) -> list[Tick]:
    """The ticks along a view mode: its indices if they are few, else as many of its runs as there is room for.

    Args:
        dists: one distribution or more, in all of which the mode reads the same digits. The coordinates of a run are
            those of the first, and the owners do not change within it in any other.
        room: the largest number of ticks.
        small: the largest extent whose indices are shown one by one.

    >>> from rote.layout.layout import parse
    >>> on_both = [parse(text).on(9, (3, 2)) for text in ("block[(0)]", "block[(1)]")]
    >>> [str(tick) for tick in ticks(on_both, 0, room=8, small=4)]
    ['0..2', '3..4', '5', '6..8']
    >>> [str(tick) for tick in ticks([parse("[(0)]").on(99, 9)], 0, room=4, small=4)]
    ['0', '1', 'None', '98']
    """
    extent = dists[0].view_shape[mode]
    if extent <= min(small, room):
        return [Run(i, i + 1, run_around(dists[0], mode, i).at) for i in range(extent)]
    places: list[Tick] = []
    start = 0
    while start < extent and len(places) <= room:
        run = _common_run(dists, mode, start)
        places.append(run)
        start = run.stop
    return places if len(places) <= room else [*places[: room - 2], None, _common_run(dists, mode, extent - 1)]


def _common_run(dists: Sequence[Distribution], mode: int, index: int) -> Run:
    """The run around a global index within which owners change in no distribution; coordinates are the first's."""
    around = [run_around(dist, mode, index) for dist in dists]
    return Run(max(run.start for run in around), min(run.stop for run in around), around[0].at)


def owners_at(dist: Distribution, at: Mapping[int, int]) -> Owners:
    """The owners of the elements at given coordinates of the grid modes that split.

    >>> from rote.layout.layout import parse
    >>> print(owners_at(parse("[(0),()]").on((4, 4), (2, 2)), {0: 1}))
    2,3
    >>> print(owners_at(parse("[(0),()]+(1)").on((4, 4), (2, 2)), {0: 1}))
    2+3
    """
    strides, replicas, parts = _free(dist)
    fixed = dict(dist.layout.rooted) | dict(at)
    return Owners(sum(c * strides[g] for g, c in fixed.items()), replicas, parts)


def brief(held: IndexSet, room: int) -> str:
    """An index set as text that fits into `room` columns.

    >>> from rote.layout.layout import parse
    >>> [brief(parse(text).on(64, 16).index_sets(0)[0], 20) for text in ("block[(0)]", "[(0)]", "[()]|(0@1)")]
    ['{0..3}', '{0, 16, 32, 48}', '{}']
    """
    texts = [str(Run(a, b)) for a, b in islice(held.unroll(held.stop), 9)]
    whole = f"{{{', '.join(texts)}}}"
    if len(texts) < 3 or (len(texts) < 9 and len(whole) <= room):
        return whole
    offset = (held.stop - 1 - held.start) % held.period
    a = next(a for a, b in held.runs if a <= offset < b)
    last = Run(held.stop - 1 - offset + a, held.stop)
    some = [f"{{{', '.join(texts[:count])}, …, {last}}}" for count in range(7, 0, -1)]
    return next((text for text in some if len(text) <= room), some[-1])


def mode_names(dist: Distribution) -> tuple[str, ...]:
    """The names of the modes in pictures: "mode 0" and so on, or those of the view.

    >>> from rote.layout.layout import parse
    >>> mode_names(parse("(a b) (r s=2): [(0),(),()]").on((2, 3, 4), 2))
    ('(a b)', 'r', 's')
    """
    if dist.layout.view is None:
        return tuple(f"mode {mode}" for mode in range(dist.order))
    names: list[str] = []
    for read in modes_read(dist.layout.view):
        name = " ".join(read)
        names.append(f"({name})" if len(read) > 1 else name)
    return tuple(names)


def rank_color(rank: float, size: int) -> Color:
    """The colour of a rank among `size`, as (red, green, blue) from 0 to 1: red for the first, blue for the last.

    >>> rank_color(0, 4) == rank_color(0, 8), [round(part, 2) for part in rank_color(7, 8)]
    (True, [0.25, 0.39, 0.66])
    """
    part = rank / (size - 1) if size > 1 else 0.9
    place = 0.5 + 9 * part
    low = int(place)
    red, green, blue = _COLORS[low] + (place - low) * (_COLORS[low + 1] - _COLORS[low])
    return float(red), float(green), float(blue)


def is_light(color: Color) -> bool:
    """Whether black has more contrast on a colour than white has, by WCAG's relative luminance.

    >>> is_light((1.0, 1.0, 0.0)), is_light((0.0, 0.0, 1.0))
    (True, False)
    """
    red, green, blue = map(_linear, color)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return (luminance + 0.05) ** 2 > 1.05 * 0.05


def _linear(part: float) -> float:
    """The linear intensity of one component of a colour, by sRGB's gamma."""
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


@memoized(256)
def _free(dist: Distribution) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The strides of the grid modes, and the rank offsets of replicas and of contributors."""
    shape = dist.grid.shape
    strides = row_major(shape)

    def added(role: str) -> tuple[int, ...]:
        ranks = np.zeros(1, np.int64)
        for g, p in enumerate(shape):
            if dist.roles[g].name == role:
                ranks = (ranks[:, None] + strides[g] * np.arange(p)).reshape(-1)
        return tuple(ranks.tolist())

    return strides, added("replicated"), added("partial")


def _listed(first: int, offsets: tuple[int, ...], sign: str) -> str:
    """A short list of ranks: "0,1", "0-3" or "0,…,56"; as a sum, "0+1" or "0+…+56"."""
    last = first + offsets[-1]
    if sign == "," and len(offsets) > 2 and offsets[-1] == len(offsets) - 1:
        return f"{first}-{last}"
    whole = sign.join(str(first + offset) for offset in offsets[:4])
    return whole if len(offsets) < 3 or (len(offsets) < 5 and len(whole) < 8) else f"{first}{sign}…{sign}{last}"


def example_grid(*layouts: Layout) -> tuple[int, ...]:
    """Two ranks along each grid mode, or more if block sizes, a first tile or a root need them.

    >>> from rote import parse
    >>> example_grid(parse("[(0:block(3,5,2)),()]|(1@2)"))
    (3, 3)
    """
    order = 1 + max(chain(*(layout.grid_modes for layout in layouts)), default=0)
    grid = [2] * order
    for layout in layouts:
        for entry in chain.from_iterable(layout.modes):
            grid[entry.grid_mode] = max(grid[entry.grid_mode], least_parts(entry.kind))
        for g, at in layout.rooted:
            grid[g] = max(grid[g], at + 1)
    return tuple(grid)


def example_shape(layout: Layout, grid: tuple[int, ...], *others: Layout) -> tuple[int, ...]:
    """Extents that fit the layout: 8 for the modes of a vector or matrix, else 4, unless block sizes need others.

    Extents are doubled, once or repeatedly, if fewer parts are empty then, in this layout and in others on the grid.

    >>> from rote import parse
    >>> example_shape(parse("[(0:block(3,5,2)),()]"), (3,)), example_shape(parse("[(0:cyclic(8)),()]"), (3,))
    ((10, 8), (32, 8))
    """
    shape = _usual_shape(layout, grid)
    for m in range(len(shape) if prod(grid) <= _MOST else 0):
        larger = [(*shape[:m], shape[m] << k, *shape[m + 1 :]) for k in range(_DOUBLED)]
        shape = min(larger, key=lambda extents: _empty_parts((layout, *others), extents, grid))
    return shape


def _empty_parts(layouts: Sequence[Layout], shape: tuple[int, ...], grid: tuple[int, ...]) -> float:
    """How many parts of modes are empty; infinitely many if a layout does not fit."""
    try:
        dists = [distribute(layout, shape, grid) for layout in layouts]
    except LayoutError:
        return inf
    empty = 0
    for splits, n in chain(*(zip(dist.splits, dist.view_shape, strict=True) for dist in dists)):
        parts = [n]
        for s in splits:
            parts = [each for left in parts for each in extent(s.kind, s.parts, left, np.arange(s.parts)).tolist()]
        empty += parts.count(0)
    return empty


def _usual_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that fit the layout, in which parts may be empty."""
    usual = 8 if layout.order < 3 else 4
    wanted = [usual] * layout.order
    for m, mode in enumerate(layout.modes):
        if mode and mode[0].grid_mode < len(grid):
            wanted[m] = near_extent(mode[0].kind, grid[mode[0].grid_mode], usual)
    if layout.view is None:
        return tuple(wanted)
    shape: list[int] = []
    for item in layout.view:
        if not isinstance(item, Tile):
            shape += [usual] * len(item.names)
        else:
            known, free = prod(item.given), len(item.given) < len(item.parts)
            shape.append(-(-usual // known) * known if free else known)
    return tuple(shape)
