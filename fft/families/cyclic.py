"""The volumetric family: d modes on a grid of d modes, elementwise cyclic in and out (Popovici et al. 2019).

An axis of n points that is cyclic over p ranks is read as `(t s=p)`, with s on the grid. t is whole on every rank: it
is transformed and multiplied by twiddles. Then t is read as `(b r=p)`, the grid mode moves from s to r (eq. 13-17), and
s is transformed. The spectrum, read as `(s b r)`, is cyclic again. This takes one all-to-all, and p must divide n/p. On
more ranks s is processed in levels of n/p, with one all-to-all each (the group-cyclic distribution of Inda and
Bisseling 2001). The axes share one all-to-all per level ("cyclic"), or move one after the other ("volumetric").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from math import prod

from rote.errors import LayoutError
from rote.grammar import TWIDDLE, ActionSyntax, StageSyntax
from rote.grammar.nodes import CYCLIC, Entry, Fuse, Name, Tile, ViewItem
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid, divisors
from rote.layout.layout import Layout
from rote.layout.refine import fitted
from rote.layout.view import View

from ..check import Line
from ..request import TransformRequest
from ..transforms import FOURIER, KINDS
from .shortest import is_plain, transpose_to
from .transpose import Actions, begin, ending, sized

__all__ = ["levels", "volumetric"]


_FIGURES = "0123456789abcdefghijklmnopqrstuvwxyz"


def volumetric(name: str, source: Distribution, request: TransformRequest, output: Layout | None = None) -> list[Line]:
    """The lines of a walk that transforms cyclic axes in digits, and all others by transposes, to a layout.

    If no axis is cyclic, the first step makes all split axes cyclic. "volumetric" moves one axis at a time.

    Raises:
        LayoutError: the family does not take such a tensor or request.
    """
    if source.layout.view is None and not any(source.splits[axis] for axis in request.axes):
        return transpose_to(source, request, output)  # nothing moves in any family until then
    if not {*request.kind.values()} <= {*FOURIER}:
        raise LayoutError(
            f"{name} takes fft and rfft, for no other transform is made of transforms of digits; write slab, pencil or "
            "rows"
        )

    if not is_plain(source.layout):
        raise LayoutError(f"volumetric walks start from plain layouts, not {source.layout}; redistribute first")

    axes, real, together = request.axes, request.real, name == "cyclic"
    split = [a for a in axes if source.splits[a]]
    others = [a for a in split if {s.kind for s in source.splits[a]} != {CYCLIC}]

    if len(others) == len(split):  # none is cyclic: one move deals them all
        modes = list(source.layout.modes)
        for a in split:
            modes[a] = tuple(Entry(e.grid_mode) for e in modes[a])
        start = Layout(tuple(modes)).on(source.shape, source.grid)
        return ending([StageSyntax(source.layout), *_cyclic(start, request, together)], output)

    if others and not request.forward and real is not None and real not in others:
        others.append(real)  # the real axis comes last in an inverse transform
    first = request.of(tuple(a for a in axes if a not in others))
    lines = _cyclic(source, first, together)
    if not others:
        return ending(lines, output)

    between = fitted(source, request.after(source.shape, first.axes))
    return [*lines, *transpose_to(between, request.of(tuple(others)), output)]


def _cyclic(source: Distribution, request: TransformRequest, together: bool) -> list[Line]:
    """The lines of a walk that transforms axes that are elementwise cyclic, or whole on every rank.

    Modes that are not among the axes of the request stay as they are.
    """
    axes, real = request.axes, request.real
    if real is not None and source.splits[real]:
        raise LayoutError(
            f"a real transform in this family wants axis {real} whole on every rank, for half a spectrum does not lie "
            f"cyclically as the signal did; {source.layout} splits it: lay its ranks over other axes, or take auto"
        )

    dist, resizes = begin(source, request, [axis for axis in axes if source.splits[axis]])
    lines = [StageSyntax(source.layout, actions=resizes)] if resizes else []
    grids = _Grids(dist, axes)
    tracks = [_axis(dist, axis, axis in axes, grids) for axis in range(dist.order)]
    split = [axis for axis in tracks if axis.levels]

    # All whole modes are transformed first, and of split axes the digits that each rank has; then come the rounds.
    first = [axis.first() for axis in tracks]
    if not request.forward and real is not None:
        first[real] = replace(first[real], transformed=())
    lines.append(_line(first, _transforms(tracks, first, dist, request), bool(split), grids.at(split)))

    for moving in _rounds(split, together):
        closing = [axis for axis in moving if axis.at_last]
        if closing:
            lines.append(_line(_segments(tracks, closing, _Axis.cut)))

        segments = _segments(tracks, moving, _Axis.move)
        due = any(axis.waits for axis in moving)
        lines.append(_line(segments, _transforms(tracks, segments, dist, request), due, grids.at(split)))

    if split:
        lines.append(_line([axis.close() for axis in tracks], grid=source.grid))

    # Extents change where axes are whole again: spectra are cut, and the real axis of an inverse is sized.
    last: list[ActionSyntax] = []
    for axis, points in zip(axes, request.kept, strict=True):
        if tracks[axis] in split and request.cut(axis):
            last.append(ActionSyntax("resample", (axis,), (points,)))
    if not request.forward and real is not None:
        last += sized(request.kind[real], (real,), {real: real}, dist.shape, request)
    lines[-1] = replace(lines[-1], actions=(*lines[-1].actions, *last))
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
                        f"axis {axis} of {source.layout} is not elementwise cyclic; write ({s.grid_mode}:cyclic)"
                    )

            try:
                sizes = levels(source.shape[axis], prod(s.parts for s in splits)) if splits else ()
            except LayoutError as error:
                raise LayoutError(f"axis {axis} of {source.layout}: {error}") from None

            if len(sizes) > 1:
                if len(splits) > 1:  # levels cut one grid mode
                    raise LayoutError(
                        f"axis {axis} of {source.shape[axis]} points is taken in {len(sizes)} levels, and split over "
                        f"grid modes {', '.join(str(s.grid_mode) for s in splits)}; split it over one"
                    )
                self.levels[splits[0].grid_mode] = sizes

        self._shape = [self.levels.get(g, (p,)) for g, p in enumerate(source.grid.shape)]
        number = count()
        self.numbers = [tuple(islice(number, len(part))) for part in self._shape]

    def at(self, axes: Sequence[_Axis]) -> Grid:
        """The grid at this point of the walk: the levels of axes that are done stand in reverse order."""
        shape = list(self._shape)
        for axis in axes:
            if not axis.waits:
                g = axis.entries[0].grid_mode
                shape[g] = shape[g][::-1]
        return Grid(tuple(chain(*shape)))


def _axis(source: Distribution, axis: int, transformed: bool, grids: _Grids) -> _Axis:
    splits, entries, letter = source.splits[axis], source.layout.modes[axis], chr(ord("a") + axis)
    whole = tuple(Entry(g, e.kind) for e in entries for g in grids.numbers[e.grid_mode])
    if not transformed or not splits:
        return _Axis(letter, entries, whole, transformed)

    # The first entry of a mode deals the least significant digit, so digits read the entries from the back.
    grid_modes = tuple(g for s in reversed(splits) for g in grids.numbers[s.grid_mode])
    sizes = tuple(s.parts for s in reversed(splits))
    levels = grids.levels.get(splits[0].grid_mode, (prod(sizes),))
    return _Axis(letter, entries, whole, transformed, grid_modes, sizes, levels)


def _segments(tracks: Sequence[_Axis], moving: Sequence[_Axis], read: Callable[[_Axis], _AxisLine]) -> list[_AxisLine]:
    """The segments of a line that reads some axes in a new way, and all others as the line before."""
    return [read(axis) if axis in moving else axis.stay() for axis in tracks]


def _transforms(
    tracks: Sequence[_Axis], segments: Sequence[_AxisLine], dist: Distribution, request: TransformRequest
) -> Actions:
    """The transforms of the modes that the segments mark, a real one last; digits keep their extents."""
    places: dict[int, int] = {}  # the axis of each transformed mode
    first = 0
    for axis, segment in enumerate(segments):
        places |= {first + m: axis for m in segment.transformed}
        first += len(segment.modes)

    modes = tuple(sorted(places, key=lambda m: places[m] == request.real))
    if not modes:
        return ()

    row = KINDS[request.kind[places[modes[-1]]]]
    digits = tuple(m for m in modes if tracks[places[m]].levels)
    whole = tuple(m for m in modes if m not in digits)
    done = sized(row.name, whole, places, dist.shape, request) if whole else ()
    if len(done) <= 1:
        return (ActionSyntax(row.name, modes),)
    return (*done, ActionSyntax(row.others, digits)) if digits else done


def _rounds(split: Sequence[_Axis], together: bool) -> list[list[_Axis]]:
    """The axes that move in each all-to-all: all that have a level left, or one axis at a time."""
    if not together:
        return [[axis] for axis in split for _ in axis.levels]
    most = max((len(axis.levels) for axis in split), default=0)
    return [[axis for axis in split if len(axis.levels) > level] for level in range(most)]


def _line(segments: Sequence[_AxisLine], actions: Actions = (), due: bool = False, grid: Grid | None = None) -> Line:
    """The line that the segments form, with a twiddle after its transforms if one is due."""
    modes = chain(*(segment.modes for segment in segments))
    items = chain(*(segment.items for segment in segments))
    if due and actions:
        actions = (*actions, ActionSyntax(TWIDDLE))
    return StageSyntax(Layout(tuple(modes), View(tuple(items))), None if grid is None else grid.shape, actions)


@dataclass(frozen=True, slots=True)
class _AxisLine:
    """The part of a line for one axis: items of the view, the entries of each mode, and the transformed modes."""

    items: list[ViewItem]
    modes: list[tuple[Entry, ...]]
    transformed: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class _Axis:
    """An axis in the middle of the walk: its digits, and the way a line reads them.

    Attributes:
        letter: the first letter of the names of its digits.
        entries, whole: those in the source, and the same on the grid of the walk, for an axis that has no digits.
        transformed: whether it is transformed.
        grid_modes, sizes: the grid modes of the walk that split it, and the parts of each entry, the last one first.
        levels: the sizes of the all-to-alls, in ranks; none if it is whole on every rank, or not transformed.
        digits: for each digit of the axis, the grid modes that split it.
        rows: the modes that a line reads, each as a list of digits.
        level: the number of all-to-alls that are done.
    """

    letter: str
    entries: tuple[Entry, ...]
    whole: tuple[Entry, ...]
    transformed: bool
    grid_modes: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    digits: list[tuple[int, ...]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    level: int = 0

    @property
    def at_last(self) -> bool:
        return self.level == len(self.levels) - 1

    @property
    def waits(self) -> bool:
        """Whether a digit of the signal is still to be transformed."""
        return self.level < len(self.levels)

    def name(self, digit: int) -> str:
        """The name of a digit; names sort in the order of the digits."""
        return f"{self.letter}{_FIGURES[digit]}"

    def first(self) -> _AxisLine:
        if not self.levels:
            return replace(self.stay(), transformed=(0,) if self.transformed else ())

        parts = self.sizes if len(self.levels) == 1 else self.levels
        self.digits = [(), *((g,) for g in self.grid_modes)]
        self.rows = [[k] for k in range(len(self.digits))]
        tile = Tile(tuple((self.name(k), size) for k, size in enumerate((None, *parts))))
        return _AxisLine([tile], self.stay().modes, (0,))

    def stay(self) -> _AxisLine:
        """The axis as the last line left it."""
        if not self.levels:
            return _AxisLine([Name(self.letter)], [self.whole])

        names = [tuple(map(self.name, row)) for row in self.rows]
        items: list[ViewItem] = [Fuse(row) if len(row) > 1 else Name(row[0]) for row in names]
        grid_modes = [chain(*(self.digits[k] for k in row)) for row in self.rows]
        return _AxisLine(items, [tuple(map(Entry, numbers)) for numbers in grid_modes])

    # One level, p = 2 ranks and n = 8 points, so that t = 0 … 3 and s = 0, 1: index = 2 t + s, and rank s has all t.
    #
    #     first: (t s)   rank 0: 0 2 4 6    t is transformed
    #     cut:   (b r) s          t becomes k = 2 b + r, whole on each rank
    #     move:  s b r            rank r gets both s of its k: s is transformed to s', and k + 4 s' is cyclic again
    #     close: (s b r)

    def cut(self) -> _AxisLine:
        """Read the last whole digit of the spectrum as `(b r)`, where the next move splits r."""
        at = self.level
        parts = self.sizes if len(self.levels) == 1 else self.levels[-1:]
        self.digits[at : at + 1] = [()] * (len(parts) + 1)
        self.rows = [[k] for k in range(len(self.digits))]

        names = [self.name(k) for k in range(len(self.digits))]
        tile = Tile(tuple(zip(names[at:], (None, *parts), strict=False)))
        items: list[ViewItem] = [*map(Name, names[:at]), tile, *map(Name, names[at + len(parts) + 1 :])]
        return _AxisLine(items, self.stay().modes)

    def move(self) -> _AxisLine:
        """Make the next digits of the signal whole and transform them; as many of the spectrum are split instead."""
        last, at = self.at_last, self.level
        self.level += 1
        if not last:  # the spectrum's digit before takes the grid mode of the signal's next digit
            self.digits[at], self.digits[at + 1] = self.digits[at + 1], ()
            return replace(self.stay(), transformed=(at + 1,))

        dealt = len(self.sizes) if len(self.levels) == 1 else 1
        b, r, s = at, range(at + 1, at + 1 + dealt), range(at + 1 + dealt, len(self.digits))
        split = [*r, *range(at - 1, -1, -1)]  # the digits of k mod p, the slowest first
        self.digits = [()] * len(self.digits)
        for k, g in zip(split, self.grid_modes, strict=True):
            self.digits[k] = (g,)

        self.rows = [[*s], [b], *([k] for k in split)]
        moved = self.stay()
        sigma = s[0]
        self.digits = self.digits[: sigma + 1]  # the digits of s are one after its transform
        self.rows[0] = [sigma]
        return replace(moved, transformed=(0,))

    def close(self) -> _AxisLine:
        if not self.levels:
            return _AxisLine([Name(self.letter)], [self.entries])
        return _AxisLine([Fuse(tuple(map(self.name, chain(*self.rows))))], [self.entries])


def levels(points: int, ranks: int) -> tuple[int, ...]:
    """The sizes of the all-to-alls of one axis, in ranks. They number log(ranks) / log(points / ranks), rounded up.

    Raises:
        LayoutError: the ranks do not divide the points, or do not fit; the message says which numbers do.

    >>> levels(64, 8), levels(32, 8), levels(4096, 1024)
    ((8,), (4, 2), (4, 4, 4, 4, 4))
    """
    sizes = _levels(points, ranks)
    if sizes is not None:
        return sizes

    rule = f"{ranks} ranks do not divide {points} points"
    if points % ranks == 0:
        rule = (
            f"{ranks} ranks leave {points // ranks} of {points} points each: no multiple of {ranks}, and {ranks} is no "
            "power of that times a divisor of it"
        )

    # What would do: the nearest numbers of ranks for these points, and of points for these ranks.
    fits = [p for p in divisors(points) if _levels(points, p) is not None]
    below, above = max(p for p in fits if p < ranks), min((p for p in fits if p > ranks), default=None)
    multiple = points // ranks * ranks
    fewer = next((n for n in range(multiple, 0, -ranks) if n < points and _levels(n, ranks) is not None), None)
    more = next(n for n in range(multiple + ranks, points + ranks**2 + 1, ranks) if _levels(n, ranks) is not None)
    near_points = " or ".join([str(n) for n in (fewer, more) if n])
    near_ranks = " or ".join([str(p) for p in (below, above) if p])
    raise LayoutError(f"{rule}; {near_points} points, or {near_ranks} rank{'s' * (near_ranks != '1')}, would do")


def _levels(points: int, ranks: int) -> tuple[int, ...] | None:
    """The result of `levels`; None if the ranks do not fit the points."""
    if ranks == 1:
        return ()
    share, rest = divmod(points, ranks)
    if rest or share < 2:
        return None
    if share % ranks == 0:
        return (ranks,)

    sizes: list[int] = []
    while ranks > share:
        ranks, rest = divmod(ranks, share)
        if rest:
            return None
        sizes.append(share)
    return (*sizes, ranks) if share % ranks == 0 else None
