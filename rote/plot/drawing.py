"""What a picture shows, in whatever medium: sides with runs of indices, cells with their owners, a colour per rank.

Text, HTML and matplotlib draw the same data. Along a mode, neighbouring indices at the same coordinates are one run. So
a picture is made of runs, not of elements, and one of 1024 x 1024 x 1024 elements costs as much as one of 4 x 4.

    block[(0),(1)] on (4, 6), grid 2x2           0..2  3..5     ticks of the side across
                                           0..1    0     1
    ticks of the side down                 2..3    2     3      cells: the owners at a row and a column
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf, prod

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from ..grammar.nodes import Kind, Tile, modes_read
from ..layout.distribution import Distribution, distribute
from ..layout.grid import row_major
from ..layout.indexset import IndexSet
from ..layout.kinds import mode_set, part_extents
from ..layout.layout import Layout

__all__ = ["GAP", "Face", "Owners", "Points", "Run", "Side", "block_words", "brief", "chords", "cube"]
__all__ += ["cube_edges", "example_grid", "example_shape", "flat", "is_light", "listed_ranks", "mode_names"]
__all__ += ["owners_of", "rank_color", "run_around", "runs", "table", "ticks"]

Color = tuple[float, float, float]
Points = npt.NDArray[np.float64]

_FINE = 32  # the largest extent for which thin lines separate elements
MOST_RANKS = 16  # ranks that are listed one by one
_FEW = 6  # ranks that are listed if there are more, and the last one

# P. Tol's "sunset" scheme, safe for colour-blind readers, from red to blue: the first rank is red and the last one
# blue, as in Figures 1 and 4 of Dalcin et al. 2019.
_SUNSET = "A50026 DD3D2D F67E4B FDB366 FEDA8B EAECCC C2E4EF 98CAE1 6EA6CD 4A7BB7 364B9A"
_COLORS = np.array([[*bytes.fromhex(text)] for text in _SUNSET.split()]) / 255


# --- owners -----------------------------------------------------------------------------------------------------------


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

    @property
    def last(self) -> int:
        """The highest of the ranks."""
        return self.first + self.replicas[-1] + self.parts[-1]

    def color(self, size: int) -> Color:
        """The colour in the middle of these ranks, among `size`."""
        return rank_color((self.first + self.last) / 2, size)

    def __str__(self) -> str:
        if len(self.parts) == 1:
            return _listed(self.first, self.replicas, ",")
        few = self.replicas if len(self.replicas) < 3 else (0, self.replicas[-1])
        sums = [_listed(self.first + r, self.parts, "+") for r in few]
        return (",…," if few != self.replicas else ",").join(sums)


def _listed(first: int, offsets: tuple[int, ...], sign: str) -> str:
    """A short list of ranks: "0,1", "0-3" or "0,…,56"; as a sum, "0+1" or "0+…+56"."""
    last = first + offsets[-1]
    if sign == "," and len(offsets) > 2 and offsets[-1] == len(offsets) - 1:
        return f"{first}-{last}"

    whole = sign.join(str(first + offset) for offset in offsets[:4])
    return whole if len(offsets) < 3 or (len(offsets) < 5 and len(whole) < 8) else f"{first}{sign}…{sign}{last}"


def owners_of(dist: Distribution) -> Callable[[Mapping[int, int]], Owners]:
    """A function that gives the owners of elements at given coordinates of the grid modes that split."""
    strides = row_major(dist.grid.shape)

    rooted = sum(at * strides[g] for g, at in dist.layout.rooted)

    offsets = {"replicated": (0,), "partial": (0,)}
    for role, stride, p in zip(dist.roles, strides, dist.grid.shape, strict=True):
        if role.name in offsets:
            ranks = np.add.outer(offsets[role.name], stride * np.arange(p))
            offsets[role.name] = tuple(ranks.reshape(-1).tolist())

    replicas, parts = offsets["replicated"], offsets["partial"]

    def owners(at: Mapping[int, int]) -> Owners:
        return Owners(rooted + sum([c * strides[g] for g, c in at.items()]), replicas, parts)

    return owners


# --- sides ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The global indices from `start` up to, not including, `stop`, which all lie at the same coordinates.

    Attributes:
        at: those coordinates, as pairs (grid mode, coordinate).
    """

    start: int
    stop: int
    at: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        if not self:
            return "…"
        return str(self.start) if self.stop == self.start + 1 else f"{self.start}..{self.stop - 1}"


GAP = Run(0, 0)  # stands for indices that are left out, and takes no place


def run_around(dist: Distribution, mode: int, index: int) -> Run:
    """The run along one view mode that holds a global index."""
    coordinates = dist.locate(mode, np.array(index))[0]
    at = tuple([(g, int(c)) for g, c in coordinates.items()])
    indices = mode_set(dist.splits[mode], dist.view_shape[mode], tuple([c for _, c in at]))
    return Run(*indices.run_around(index), at)


def runs(dist: Distribution, mode: int) -> Iterator[Run]:
    """The runs along one view mode, from the first index on; each is found only when it is asked for."""
    start, extent = 0, dist.view_shape[mode]
    while start < extent:
        run = run_around(dist, mode, start)
        yield run
        start = run.stop


def ticks(dists: Sequence[Distribution], mode: int, room: int, small: int) -> list[Run]:
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
    ['0', '1', '…', '98']
    """
    extent = dists[0].view_shape[mode]
    if extent <= min(small, room):
        return [Run(i, i + 1, run_around(dists[0], mode, i).at) for i in range(extent)]

    def common(index: int) -> Run:
        around = [run_around(dist, mode, index) for dist in dists]
        return Run(max(run.start for run in around), min(run.stop for run in around), around[0].at)

    # One run more than there is room for says that some are left out; no more of them are looked for.
    places: list[Run] = []
    start = 0
    while start < extent and len(places) <= room:
        run = common(start)
        places.append(run)
        start = run.stop

    return places if len(places) <= room else [*places[: room - 2], GAP, common(extent - 1)]


@dataclass(frozen=True, slots=True)
class Side:
    """A mode that is drawn: its name, its extent and its ticks. The default stands for no mode: one tick."""

    mode: int | None = None
    name: str = ""
    extent: int = 1
    ticks: tuple[Run, ...] = (Run(0, 1),)

    @staticmethod
    def of(dist: Distribution, mode: int, ticks: Sequence[Run]) -> Side:
        """A view mode of a distribution with some ticks."""
        return Side(mode, mode_names(dist)[mode], dist.view_shape[mode], tuple(ticks))

    @staticmethod
    def beginning(dist: Distribution, mode: int, most: int) -> Side:
        """A view mode with its first runs, `most` at most."""
        return Side.of(dist, mode, [*islice(runs(dist, mode), most)])

    @property
    def runs(self) -> list[Run]:
        """The runs that are shown."""
        return [tick for tick in self.ticks if tick]

    @property
    def shown(self) -> int:
        """The first index behind those shown."""
        return self.runs[-1].stop if self.ticks else 0

    @property
    def cut(self) -> str:
        """What is left out at the end, in words; empty if nothing is."""
        return f"{self.name} up to {self.shown} of {self.extent}" if self.shown < self.extent else ""

    def on(self, dist: Distribution) -> tuple[Run, ...]:
        """The same ticks with the coordinates that they have in a distribution."""
        if self.mode is None:
            return self.ticks
        every = []
        for run in self.ticks:
            every.append(Run(run.start, run.stop, run_around(dist, self.mode, run.start).at) if run else GAP)
        return tuple(every)

    def labels(self, most: int) -> list[int]:
        """The indices to write beside it: the starts of runs, or some of them if there are many, and the last end."""
        starts = [run.start for run in self.runs]

        every = -(-len(starts) // most)
        places = starts[::every]

        if len(places) > 1 and 2 * (self.shown - places[-1]) < places[-1] - places[-2]:
            places.pop()  # too near to the end
        return [*places, self.shown]


def table(
    dist: Distribution, down: Sequence[Run], across: Sequence[Run], at: Mapping[int, int]
) -> list[list[Owners | None]]:
    """The owners in each row and column, at given coordinates of other modes; None where indices are left out."""
    owners = owners_of(dist)
    rows: list[list[Owners | None]] = []
    for row in down:
        cells: list[Owners | None] = []
        for column in across:
            cells.append(owners({**at, **dict(row.at), **dict(column.at)}) if row and column else None)
        rows.append(cells)
    return rows


def mode_names(dist: Distribution) -> tuple[str, ...]:
    """The names of the modes in pictures: "mode 0" and so on, or those of the view."""
    if dist.layout.view is None:
        return tuple(f"mode {mode}" for mode in range(dist.order))
    names: list[str] = []
    for read in modes_read(dist.layout.view):
        name = " ".join(read)
        names.append(f"({name})" if len(read) > 1 else name)
    return tuple(names)


# --- faces ------------------------------------------------------------------------------------------------------------

# Oblique projection of a cube, as in Dalcin et al. 2019: mode 0 to the right, mode 1 into the depth, mode 2 up.
_OBLIQUE = np.array([[0.96, -0.17], [0.52, 0.33], [0.0, 0.96]])


@dataclass(frozen=True, slots=True)
class Face:
    """A parallelogram of cells, with two modes as its sides and the vectors along which their indices run."""

    down: Side
    across: Side
    at: Mapping[int, int]  # the coordinates of the grid modes that split the other modes
    origin: Points
    along_down: Points
    along_across: Points

    def cell(self, row: Run, column: Run) -> Points:
        """The four corners of a rectangle of indices."""
        rows = np.array([row.start, row.start, row.stop, row.stop]) / self.down.shown
        columns = np.array([column.start, column.stop, column.stop, column.start]) / self.across.shown
        corners: Points = self.origin + np.outer(rows, self.along_down) + np.outer(columns, self.along_across)
        return corners

    def cells(self, dist: Distribution) -> Iterator[tuple[Owners, Points]]:
        """The owners and the corners of each cell."""
        rows = table(dist, self.down.ticks, self.across.ticks, self.at)
        for row, owners_along in zip(self.down.ticks, rows, strict=True):
            for column, owners in zip(self.across.ticks, owners_along, strict=True):
                if owners:
                    yield owners, self.cell(row, column)

    def outline(self) -> Points:
        """The four corners of the whole face."""
        return self.cell(Run(0, self.down.shown), Run(0, self.across.shown))

    def lines(self) -> list[Points]:
        """The lines between elements, if there are few."""

        height, width = self.down.shown, self.across.shown
        lines: list[Points] = []
        if height <= _FINE:
            lines += [self.cell(Run(row, row), Run(0, width))[:2] for row in range(1, height)]

        if width <= _FINE:
            lines += [self.cell(Run(0, height), Run(column, column))[1:3] for column in range(1, width)]
        return lines


def flat(down: Side, across: Side, at: Mapping[int, int]) -> Face:
    """The one face of a line or a matrix, in global indices: rows downwards from 0, columns from 0 to the right."""
    return Face(down, across, at, np.zeros(2), np.array([0.0, down.shown]), np.array([across.shown, 0.0]))


def cube(sides: Sequence[Side], at: Mapping[int, int]) -> list[Face]:
    """The three visible faces: the front (mode 1 at its first index), the right (mode 0 at its last), the top."""
    #       ______
    #      / top /|      mode 0 to the right, mode 1 into the depth, mode 2 up; a side that is much shorter than the
    #     /_____/ |      longest is drawn with at least 0.35 of its length, so that its cells can be seen
    #     |     | /  right
    #     |_____|/
    #      front
    most = max(side.shown for side in sides)

    first, depth, height = (max(0.35, s.shown / most) * edge for s, edge in zip(sides, _OBLIQUE, strict=True))

    a, b, c = sides
    return [
        Face(c, a, {**at, **dict(b.runs[0].at)}, np.zeros(2), height, first),
        Face(c, b, {**at, **dict(a.runs[-1].at)}, first, height, depth),
        Face(b, a, {**at, **dict(c.runs[-1].at)}, height, depth, first),
    ]


def cube_edges(faces: Sequence[Face]) -> Iterator[tuple[Side, list[int], Points, Points]]:
    """The outer edges to write beside, each with its indices, its start and its direction."""
    front, right, _ = faces
    yield front.across, front.across.labels(4), front.origin, front.along_across
    yield right.across, right.across.labels(4)[1:], right.origin, right.along_across  # here mode 0 ends with its last
    yield front.down, front.down.labels(4), front.origin, front.along_down


def chords(corners: Points) -> Points:
    """The width and the height of a parallelogram through its middle."""
    a, b = corners[1] - corners[0], corners[3] - corners[0]
    area = abs(a[0] * b[1] - a[1] * b[0])
    return np.asarray(area / np.maximum(np.abs([a[1], a[0]]), np.abs([b[1], b[0]])))


# --- blocks -----------------------------------------------------------------------------------------------------------


def listed_ranks(size: int) -> list[int | None]:
    """The ranks that a table lists: all, or the first few and the last with None between."""
    return [*range(size)] if size <= MOST_RANKS else [*range(_FEW), None, size - 1]


def block_words(dist: Distribution, rank: int, room: int) -> tuple[str, str, list[str]]:
    """The coordinates of a rank, the shape of its block, and the indices along each mode in `room` columns each."""
    at = ",".join(map(str, dist.grid.coordinates(rank)))
    return at, str(dist.local_shape(rank)), [brief(indices, room) for indices in dist.index_sets(rank)]


def brief(indices: IndexSet, room: int) -> str:
    """An index set as text that fits into `room` columns."""
    # Nine runs decide: a set may have thousands, and no more than seven are written.
    texts = [str(Run(a, b)) for a, b in islice(indices.unroll(indices.stop), 9)]
    whole = f"{{{', '.join(texts)}}}"
    if len(texts) < 3 or (len(texts) < 9 and len(whole) <= room):
        return whole

    last = Run(*indices.run_around(indices.stop - 1))
    some = [f"{{{', '.join(texts[:count])}, …, {last}}}" for count in range(7, 0, -1)]
    return next((text for text in some if len(text) <= room), some[-1])


# --- colours ----------------------------------------------------------------------------------------------------------


def rank_color(rank: float, size: int) -> Color:
    """The colour of a rank among `size`, as (red, green, blue) from 0 to 1: red for the first, blue for the last."""
    part = rank / (size - 1) if size > 1 else 0.9
    place = 0.5 + 9 * part

    low = int(place)
    red, green, blue = _COLORS[low] + (place - low) * (_COLORS[low + 1] - _COLORS[low])
    return float(red), float(green), float(blue)


def is_light(color: Color) -> bool:
    """Whether black has more contrast on a colour than white has, by WCAG's relative luminance."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color]  # sRGB's gamma
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (luminance + 0.05) ** 2 > 1.05 * 0.05


# --- a grid and a shape on which a layout that has none is drawn ------------------------------------------------------

_MOST_FILLED = 1 << 10  # ranks, none of which is to be empty in an example; pictures of more list but a few
_DOUBLED = 10  # times, at most


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
            grid[entry.grid_mode] = max(grid[entry.grid_mode], max(len(entry.kind.sizes), entry.kind.at + 1))
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
    # Mode by mode, with the extents found so far: all combinations would be too many.
    shape = _usual_shape(layout, grid)
    for m in range(len(shape) if prod(grid) <= _MOST_FILLED else 0):
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
        empty += int(np.count_nonzero(part_extents(splits, n) == 0))
    return empty


def _near(n: int, kind: Kind, p: int) -> int:
    """An extent that a kind splits over p coordinates: n, unless sizes ask for another."""
    if kind.fits:
        return n
    return min(n, kind.tile * p) if len(kind.sizes) == 1 else sum(kind.sizes)


def _usual_shape(layout: Layout, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that fit the layout, in which parts may be empty."""
    usual = 8 if layout.order < 3 else 4
    extents = [usual] * layout.order

    for m, mode in enumerate(layout.modes):
        if mode and mode[0].grid_mode < len(grid):
            extents[m] = _near(usual, mode[0].kind, grid[mode[0].grid_mode])
    if layout.view is None:
        return tuple(extents)

    shape: list[int] = []
    for item in layout.view:
        if not isinstance(item, Tile):
            shape += [usual] * len(item.names)
            continue

        # A multiple of the parts whose sizes are written; if all are, their product is the extent.
        known, free = prod(item.given), len(item.given) < len(item.parts)
        shape.append(-(-usual // known) * known if free else known)
    return tuple(shape)
