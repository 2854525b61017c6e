"""The volumetric family: d modes on a grid of d modes, elementwise cyclic in and out (Popovici et al. 2019).

An axis of n points that is cyclic over p ranks is read as `(t s=p)`, with s on the grid. t is whole on every rank: it
is transformed and multiplied by twiddles. Then t is read as `(b r=p)`, the grid mode moves from s to r (eq. 13-17), and
s is transformed. The spectrum, read as `(s b r)`, is cyclic again. This takes one all-to-all, and p must divide n/p. On
more ranks s is processed in levels of n/p, with one all-to-all each (the group-cyclic distribution of Inda and
Bisseling 2001). The axes share one all-to-all per level, or move one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from math import prod

from rote.errors import LayoutError
from rote.grammar.nodes import CYCLIC, Entry, Fuse, Name, Tile, ViewItem
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Layout
from rote.layout.view import View

from ..request.request import TransformRequest
from ..transforms import KINDS
from ..walk.resize import begin, sized
from ..walk.typecheck import TWIDDLE, StageSpec
from ..walk.walk import Resize, Transform
from .factors import levels

__all__ = ["cyclic"]

_FIGURES = "0123456789abcdefghijklmnopqrstuvwxyz"


def cyclic(source: Distribution, request: TransformRequest, together: bool) -> list[StageSpec]:
    """The lines of a walk that transforms cyclic axes, and axes that are whole on every rank.

    Args:
        source: the distribution of the tensor; every split axis of the request must be elementwise cyclic.
        request: a transform of kind "fft" or "ifft"; or "rfft" or "irfft", real along the last axis, which must be
            whole. Modes that are not among its axes stay as they are.
        together: whether all axes share one all-to-all per level, instead of moving one after the other.

    Raises:
        LayoutError: an axis is split otherwise, or its ranks do not fit its points; the message says which numbers do.
    """
    axes, real = request.axes, request.real
    if real is not None and source.splits[real]:
        raise LayoutError(
            f"a real transform in this family wants axis {real} whole on every rank, for half a spectrum does not lie "
            f"cyclically as the signal did; {source.layout} splits it: lay its ranks over other axes, or take auto"
        )
    dist, resizes = begin(source, request, [axis for axis in axes if source.splits[axis]])
    lines = [StageSpec(source.layout, resizes)] if resizes else []
    grids = _Grids(dist, axes)
    tracks = [_axis(dist, axis, axis in axes, grids) for axis in range(dist.order)]
    split = [axis for axis in tracks if isinstance(axis, _CyclicAxis)]
    first = [axis.first() for axis in tracks]
    if not request.forward and real is not None:
        first[real] = replace(first[real], turned=())
    lines.append(_line(first, _turned(tracks, first, dist, request), bool(split), grids.at(split)))
    for moving in _rounds(split, together):
        ending = [axis for axis in moving if axis.at_last]
        if ending:
            lines.append(_line(_segments(tracks, ending, _CyclicAxis.cut)))
        segments = _segments(tracks, moving, _CyclicAxis.move)
        due = any(axis.waits for axis in moving)
        lines.append(_line(segments, _turned(tracks, segments, dist, request), due, grids.at(split)))
    if split:
        lines.append(_line([axis.close() for axis in tracks], grid=source.grid))
    last: list[Transform | Resize] = []
    for axis, kept in zip(axes, request.kept, strict=True):
        if tracks[axis] in split and request.cut(axis):
            last.append(Resize("resample", axis, dist.shape[axis], kept))
    if not request.forward and real is not None:
        last += sized(Transform(KINDS[request.kind[real]].name, (real,)), {real: real}, dist.shape, request)
    lines[-1] = replace(lines[-1], done=(*lines[-1].done, *last))
    return lines


class _Grids:
    """The grid on which axes are transformed level by level: each of their grid modes is cut into one per level.

    Attributes:
        levels: the sizes of the levels, by grid mode, for each axis that has several levels.
        numbers: per grid mode of the source, the numbers of its grid modes on the cut grid.
    """

    def __init__(self, source: Distribution, axes: tuple[int, ...]) -> None:
        self.levels: dict[int, tuple[int, ...]] = {}
        for axis in axes:
            splits = source.splits[axis]
            for s in splits:
                if s.kind != CYCLIC:
                    raise LayoutError(
                        f"axis {axis} of {source.layout} does not lie elementwise cyclically; write "
                        f"({s.grid_mode}:cyclic)"
                    )
            try:
                sizes = levels(source.shape[axis], prod(s.parts for s in splits)) if splits else ()
            except LayoutError as error:
                raise LayoutError(f"axis {axis} of {source.layout}: {error}") from None
            if len(sizes) > 1:
                if len(splits) > 1:
                    raise LayoutError(
                        f"axis {axis} of {source.shape[axis]} points is taken in {len(sizes)} levels, and lies over "
                        f"grid modes {', '.join(str(s.grid_mode) for s in splits)}; lay it over one"
                    )
                self.levels[splits[0].grid_mode] = sizes
        self._shape = [self.levels.get(g, (p,)) for g, p in enumerate(source.grid.shape)]
        number = count()
        self.numbers = [tuple(islice(number, len(part))) for part in self._shape]

    def at(self, axes: Sequence[_CyclicAxis]) -> Grid:
        """The grid at this point of the walk: the levels of axes that are done stand in reverse order."""
        shape = list(self._shape)
        for axis in axes:
            if not axis.waits:
                g = axis.own[0].grid_mode
                shape[g] = shape[g][::-1]
        return Grid(tuple(chain(*shape)))


def _axis(source: Distribution, axis: int, wanted: bool, grids: _Grids) -> _Track:
    splits, own, letter = source.splits[axis], source.layout.modes[axis], chr(ord("a") + axis)
    if not wanted or not splits:
        working = tuple(Entry(g, e.kind) for e in own for g in grids.numbers[e.grid_mode])
        return _StillAxis(letter, own, working, wanted)
    grid_modes = tuple(g for s in reversed(splits) for g in grids.numbers[s.grid_mode])
    sizes = tuple(s.parts for s in reversed(splits))
    return _CyclicAxis(letter, own, grid_modes, sizes, grids.levels.get(splits[0].grid_mode, (prod(sizes),)))


def _segments(tracks: Sequence[_Track], moving: Sequence[_CyclicAxis], read: _Read) -> list[_Segment]:
    """The segments of a line that reads some axes in a new way, and all others as the line before."""
    return [read(axis) if isinstance(axis, _CyclicAxis) and axis in moving else axis.stay() for axis in tracks]


def _turned(
    tracks: Sequence[_Track], segments: Sequence[_Segment], dist: Distribution, request: TransformRequest
) -> tuple[Transform | Resize, ...]:
    """The transforms of the modes that the segments mark, a real one last; digits keep their extents."""
    places: dict[int, int] = {}  # the axis of each transformed mode
    first = 0
    for axis, segment in enumerate(segments):
        places |= {first + m: axis for m in segment.turned}
        first += len(segment.modes)
    modes = tuple(sorted(places, key=lambda m: places[m] == request.real))
    if not modes:
        return ()
    row = KINDS[request.kind[places[modes[-1]]]]
    digits = tuple(m for m in modes if isinstance(tracks[places[m]], _CyclicAxis))
    whole = tuple(m for m in modes if m not in digits)
    done = sized(Transform(row.name, whole), places, dist.shape, request) if whole else ()
    if len(done) <= 1:
        return (Transform(row.name, modes),)
    return (*done, Transform(row.others, digits)) if digits else done


def _rounds(split: Sequence[_CyclicAxis], together: bool) -> list[list[_CyclicAxis]]:
    """The axes that move in each all-to-all: all that have a level left, or one axis at a time."""
    if not together:
        return [[axis] for axis in split for _ in axis.levels]
    most = max((len(axis.levels) for axis in split), default=0)
    return [[axis for axis in split if len(axis.levels) > level] for level in range(most)]


def _line(
    segments: Sequence[_Segment], done: tuple[Transform | Resize, ...] = (), due: bool = False, grid: Grid | None = None
) -> StageSpec:
    """The line that the segments form, with a twiddle after its transforms if one is due."""
    modes = chain(*(segment.modes for segment in segments))
    items = chain(*(segment.items for segment in segments))
    if due and done:
        done = (*done, TWIDDLE)
    return StageSpec(Layout(tuple(modes), View(tuple(items))), done, grid)


@dataclass(frozen=True, slots=True)
class _Segment:
    """The part of a line for one axis: items of the view, the entries of each mode, and the transformed modes."""

    items: list[ViewItem]
    modes: list[tuple[Entry, ...]]
    turned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _StillAxis:
    """An axis without digits: whole on every rank, or not transformed. `entries` are `own` on the grid of the walk."""

    letter: str
    own: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    wanted: bool

    def first(self) -> _Segment:
        """The axis in the first line, which transforms it if it is wanted."""
        return replace(self.stay(), turned=(0,) * self.wanted)

    def stay(self) -> _Segment:
        """The axis on the grid of the walk."""
        return _Segment([Name(self.letter)], [self.entries])

    def close(self) -> _Segment:
        """The axis on the grid of the source."""
        return _Segment([Name(self.letter)], [self.own])


@dataclass(slots=True)
class _CyclicAxis:
    """An axis that is transformed in digits, with its present digits and the way a line reads them.

    Attributes:
        letter: the first letter of the names of its digits.
        own: the entries in the source.
        grid_modes: the grid modes of the walk that split it, the last entry's first.
        sizes: the number of parts of each entry, the last one first.
        levels: the sizes of the all-to-alls, in ranks.
        digits: for each digit of the axis, the grid modes that split it.
        rows: the modes that a line reads, each as a list of digits.
        level: the number of all-to-alls that are done.
    """

    letter: str
    own: tuple[Entry, ...]
    grid_modes: tuple[int, ...]
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    digits: list[tuple[int, ...]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    level: int = 0

    @property
    def at_last(self) -> bool:
        """Whether the next level is the last."""
        return self.level == len(self.levels) - 1

    @property
    def waits(self) -> bool:
        """Whether a digit of the signal is still to be transformed."""
        return self.level < len(self.levels)

    def name(self, digit: int) -> str:
        """The name of a digit; names sort in the order of the digits."""
        return f"{self.letter}{_FIGURES[digit]}"

    def first(self) -> _Segment:
        """The axis in the first line, read in digits."""
        parts = self.sizes if len(self.levels) == 1 else self.levels
        self.digits = [(), *((g,) for g in self.grid_modes)]
        self.rows = [[k] for k in range(len(self.digits))]
        tile = Tile(tuple((self.name(k), size) for k, size in enumerate((None, *parts))))
        return _Segment([tile], self.stay().modes, (0,))

    def stay(self) -> _Segment:
        """The axis as the last line left it."""
        names = [tuple(map(self.name, row)) for row in self.rows]
        items: list[ViewItem] = [Fuse(row) if len(row) > 1 else Name(row[0]) for row in names]
        grid_modes = [chain(*(self.digits[k] for k in row)) for row in self.rows]
        return _Segment(items, [tuple(map(Entry, numbers)) for numbers in grid_modes])

    def cut(self) -> _Segment:
        """Read the last whole digit of the spectrum as `(b r)`, where the next move splits r."""
        at = self.level
        parts = self.sizes if len(self.levels) == 1 else self.levels[-1:]
        self.digits[at : at + 1] = [()] * (len(parts) + 1)
        self.rows = [[k] for k in range(len(self.digits))]
        names = [self.name(k) for k in range(len(self.digits))]
        tile = Tile(tuple(zip(names[at:], (None, *parts), strict=False)))
        items: list[ViewItem] = [*map(Name, names[:at]), tile, *map(Name, names[at + len(parts) + 1 :])]
        return _Segment(items, self.stay().modes)

    def move(self) -> _Segment:
        """Make the next digits of the signal whole and transform them; as many of the spectrum are split instead."""
        last, at = self.at_last, self.level
        self.level += 1
        if not last:
            self.digits[at], self.digits[at + 1] = self.digits[at + 1], ()
            return replace(self.stay(), turned=(at + 1,))
        dealt = len(self.sizes) if len(self.levels) == 1 else 1
        b, r, s = at, range(at + 1, at + 1 + dealt), range(at + 1 + dealt, len(self.digits))
        held = [*r, *range(at - 1, -1, -1)]  # the digits of k mod p, the slowest first
        self.digits = [()] * len(self.digits)
        for k, g in zip(held, self.grid_modes, strict=True):
            self.digits[k] = (g,)
        self.rows = [[*s], [b], *([k] for k in held)]
        moved = self.stay()
        sigma = s[0]
        self.digits = self.digits[: sigma + 1]
        self.rows[0] = [sigma]
        return replace(moved, turned=(0,))

    def close(self) -> _Segment:
        """Read all digits as one axis again, in natural order."""
        return _Segment([Fuse(tuple(map(self.name, chain(*self.rows))))], [self.own])


_Track = _CyclicAxis | _StillAxis
_Read = Callable[[_CyclicAxis], _Segment]
