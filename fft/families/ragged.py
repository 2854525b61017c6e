"""Six steps for any number of points on any number of ranks, and Bluestein's convolution if there are no good factors.

An axis of n = r s points is read as `(a b=s)`, with the columns b split over the ranks. a is transformed and multiplied
by twiddles, the split moves from b to a, b is transformed, and the spectrum is `(b a)` (Popovici et al. 2019, section
3.2). Neither r nor s has to be a multiple of the p ranks: some ranks have one column more. A rank holds about n/p
elements, and at least one column. If that is too much (a prime n is a single column), the n points are transformed as a
convolution with a chirp, on m >= 2n - 1 points with good factors (Bluestein 1970): six steps forward and back, with no
move at either end.

Real axes are complex from their first transform on, and half of their spectrum is cut off in the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod

from rote.caches import memoized
from rote.errors import LayoutError
from rote.grammar.nodes import CYCLIC, Entry, Fuse, Name, Tile, ViewItem
from rote.layout.divisors import divisors
from rote.layout.expressions import fitting
from rote.layout.layout import Distribution, Layout, block, layout_or_none
from rote.layout.refine import fitted
from rote.layout.view import View

from ..request.request import TransformRequest
from ..transforms import FOURIER, KINDS, TransformKind
from ..walk.digits import mode_names
from ..walk.resize import begin
from ..walk.typecheck import CONVOLVE, TWIDDLE, StageSpec
from ..walk.walk import Resize, Transform
from .transpose import transpose

__all__ = ["Factors", "best_factors", "padded_factors", "ragged", "smooth"]

Entries = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """The points of an axis as a matrix of r rows and s columns, split over ranks by columns or by rows.

    Attributes:
        r, s: the numbers of rows and of columns.
        ranks: the number of ranks.

    >>> Factors(5, 8, 3).largest
    16
    """

    r: int
    s: int
    ranks: int

    @property
    def points(self) -> int:
        """The number of points."""
        return self.r * self.s

    @property
    def largest(self) -> int:
        """The most elements that a rank holds, split by columns or by rows."""
        return max(self.r * -(-self.s // self.ranks), self.s * -(-self.r // self.ranks))


@memoized(1024)
def best_factors(points: int, ranks: int, cyclic: bool = False, ends: bool = False) -> Factors | None:
    """The factors of a number of points with which ranks hold and move the least; None for a prime.

    Args:
        cyclic: whether the axis is elementwise cyclic at first: then nothing moves if the ranks divide s.
        ends: whether the spectrum may be elementwise cyclic: then nothing moves if the ranks divide r.

    >>> best_factors(48, 4), best_factors(24, 4, cyclic=True), best_factors(24, 4, ends=True), best_factors(47, 4)
    (Factors(r=4, s=12, ranks=4), Factors(r=6, s=4, ranks=4), Factors(r=4, s=6, ranks=4), None)
    """
    share = -(-points // ranks)

    def worth(factors: Factors) -> tuple[int, int, int]:
        moves = (not cyclic or factors.s % ranks > 0) + (not ends or factors.r % ranks > 0)
        return factors.largest + moves * share, abs(factors.r - factors.s), factors.r

    rows = divisors(points)[1:-1] if points else ()
    return min((Factors(r, points // r, ranks) for r in rows), key=worth, default=None)


@memoized(1024)
def padded_factors(points: int, ranks: int) -> Factors:
    """The factors of a convolution on 2 points - 1 or more; they have no large primes but those of the ranks.

    >>> padded_factors(47, 4)
    Factors(r=12, s=8, ranks=4)
    """
    least = 2 * points - 1
    columns = [ranks * t for t in smooth(4 * isqrt(least) // ranks + 2)]
    rows = smooth(8 * max(isqrt(least), 16))  # longer ones do not help: the smallest blocks are nearly square
    pairs = []
    for s in columns:
        first = bisect_left(rows, max(2, -(-least // s)))
        if s > 1 and first < len(rows):
            pairs.append(Factors(rows[first], s, ranks))
    return min(pairs, key=lambda factors: (factors.largest, factors.points, abs(factors.r - factors.s)))


@memoized(64)
def smooth(most: int) -> tuple[int, ...]:
    """All numbers up to `most` with no prime factors but 2, 3, 5 and 7, ascending.

    >>> smooth(16)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16)
    """
    numbers = [1]
    for prime in (2, 3, 5, 7):
        more = numbers
        while more:
            more = [n * prime for n in more if n * prime <= most]
            numbers = numbers + more
    return tuple(sorted(numbers))


def ragged(source: Distribution, request: TransformRequest, output: Layout | str | None = None) -> list[StageSpec]:
    """The lines of a walk that transforms each split axis in six steps, and all whole axes together.

    Args:
        source: the distribution of the tensor, whose layout has no view and is neither partial nor rooted.
        request: the transform; its split axes must be of kind "fft", "ifft", "rfft" or "irfft".
        output: the layout to end in; if None, split axes end elementwise cyclic, or as they began.

    Raises:
        LayoutError: the family does not take such a layout or request.

    >>> import numpy as np
    >>> from rote.layout.layout import parse
    >>> from ..request.request import as_request
    >>> wanted = as_request((15,), (0,), "fft", np.dtype("c16"))
    >>> for line in ragged(parse("block[(0)]").on(15, 4), wanted):
    ...     print(line.layout, [(action.kind, action.modes) for action in line.done])
    (a b=5): block[(),(0)] [('fft', (0,)), ('twiddle', ())]
    block[(0),()] [('fft', (1,))]
    (b a): block[(0)] []
    """
    if source.layout.view is not None or source.layout.partial or source.layout.rooted:
        raise LayoutError(f"ragged walks start from plain layouts, not {source.layout}; redistribute first")
    end = layout_or_none(output)
    plain = end if end is not None and not (end.view or end.partial or end.rooted) else None
    dist, cuts = begin(source, request)
    lines = [StageSpec(source.layout, cuts)] if cuts else []
    groups = _groups(source, request)
    for group in groups:
        if source.splits[group[0]]:
            last = group == groups[-1]
            lines += _along(dist, group[0], request, plain if last else None)
            layout = replace(lines[-1].layout, view=None)
            dist = layout.on(request.after(dist.shape, group), dist.grid)
        else:
            lines += transpose(dist, request.of(group))
            dist = fitted(dist, request.after(dist.shape, group))
    lines = lines or [StageSpec(source.layout)]
    return lines if end in (None, dist.layout) else [*lines, StageSpec(end)]


def _groups(source: Distribution, request: TransformRequest) -> list[tuple[int, ...]]:
    """The axes in order: the whole ones in one group, each other one alone; a real axis goes where it is real."""
    whole = tuple(a for a in request.axes if not source.splits[a])
    groups: list[tuple[int, ...]] = [(a,) for a in request.axes if source.splits[a]]
    if whole:
        groups.insert(0, whole)
    groups.sort(key=lambda group: request.real not in group)
    return groups if request.forward else groups[::-1]


def _along(dist: Distribution, axis: int, request: TransformRequest, output: Layout | None) -> list[StageSpec]:
    """The lines of one split axis; the last one in `output`, if that saves a move."""
    row, at = KINDS[request.kind[axis]], request.axes.index(axis)
    points, kept, taken = request.points[at], request.kept[at], request.taken(axis)
    if row.name not in FOURIER:
        raise LayoutError(f"ragged takes fft and rfft, not {row.name} of axis {axis}, which is split")
    if row.real == "input" and points != kept:
        raise LayoutError(f"ragged does not resample axis {axis}, which is real and split; lay its ranks elsewhere")
    early, late = list[Resize](), list[Resize]()
    if dist.shape[axis] != taken:
        early.append(Resize("resize", axis, 0, taken))
    if row.real == "output" and points > 1:
        early.append(Resize("fold", axis, 0, points))
    if row.real == "input" and points > 1:
        late.append(Resize("fold", axis, 0, row.given(points)))
    if points != kept:
        late.append(Resize("resample", axis, 0, kept))
    splits, place = dist.splits[axis], _Place(dist.layout, axis)
    if points == 1:  # without digits
        alone = place.line([()], [Transform(row.name, (axis,))])
        return [*(place.line([place.cyclic], [action]) for action in early), alone, place.line([place.cyclic], late)]
    starts = bool(early) or all(split.kind == CYCLIC for split in splits)
    ends = bool(late) or output is None or output.modes[axis] == place.cyclic
    ranks = prod(split.parts for split in splits)
    factors, padded = best_factors(points, ranks, starts, ends), padded_factors(points, ranks)
    lines = [place.line([place.cyclic], [action]) for action in early]  # a resize of a cyclic axis moves nothing
    if factors is None or padded.largest < factors.largest:
        return [*lines, *_convolved(place, padded, points, row, late)]
    if late or factors.r % ranks == 0:
        last = place.line([place.cyclic], late)
    elif output is not None:
        last = StageSpec(output)
    elif points == dist.shape[axis]:
        last = place.line([place.own])
    else:
        last = place.line([tuple(map(fitting, place.own))])
    return [*lines, *_six_steps(place, factors, row, starts, last)]


def _six_steps(place: _Place, factors: Factors, row: TransformKind, starts: bool, last: StageSpec) -> list[StageSpec]:
    """The lines of six steps; the last one is given except for its view, which reads both digits as one axis."""
    columns = place.cyclic if starts and factors.s % factors.ranks == 0 else place.blocks
    rows = place.cyclic if factors.r % factors.ranks == 0 else place.blocks
    turn, a, b = row.others, place.axis, place.axis + 1
    before, after = _conversions(row, a, b)
    return [
        place.line([(), columns], [*before, Transform(turn, (a,)), TWIDDLE], place.cut(factors.s)),
        place.line([rows, ()], [Transform(turn, (b,)), *after]),
        replace(last, layout=replace(last.layout, view=place.joined(b, a))),
    ]


def _conversions(row: TransformKind, first: int, last: int) -> tuple[list[Transform], list[Transform]]:
    """The conversion of real numbers to complex ones before complex transforms, and the one back after them."""
    before = [Transform("complex", (first,))] if row.real == "input" else []
    after = [Transform("real", (last,))] if row.real == "output" else []
    return before, after


def _convolved(place: _Place, factors: Factors, points: int, row: TransformKind, late: list[Resize]) -> list[StageSpec]:
    """The lines of a convolution with a chirp, elementwise cyclic on both sides."""
    rows = place.cyclic if factors.r % factors.ranks == 0 else place.blocks
    a, b, axis = place.axis, place.axis + 1, place.axis
    before, after = _conversions(row, axis, axis)
    return [
        place.line([place.cyclic], [*before, Resize("chirp", axis, 0, factors.points)]),
        place.line([(), place.cyclic], [Transform("fft", (a,)), TWIDDLE], place.cut(factors.s)),
        place.line([rows, ()], [Transform("fft", (b,)), CONVOLVE]),
        place.line([rows, ()], [Transform("ifft", (b,)), TWIDDLE]),
        place.line([(), place.cyclic], [Transform("ifft", (a,))]),
        place.line([place.cyclic], [Resize("chirp", axis, 0, points), *after], place.joined(a, b)),
        *(place.line([place.cyclic], [action]) for action in late),
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """One axis of a tensor in a plain layout, whose other modes stay as they are."""

    layout: Layout
    axis: int

    @property
    def own(self) -> Entries:
        """The entries of the axis."""
        return self.layout.modes[self.axis]

    @property
    def cyclic(self) -> Entries:
        """The entries of the axis, changed to elementwise cyclic."""
        return tuple(Entry(entry.grid_mode) for entry in self.own)

    @property
    def blocks(self) -> Entries:
        """The entries of the axis, changed to balanced blocks."""
        return tuple(block(entry.grid_mode) for entry in self.own)

    def line(
        self, entries: Sequence[Entries], done: Sequence[Transform | Resize] = (), view: View | None = None
    ) -> StageSpec:
        """A line in which the axis, or its two digits, have the given entries."""
        modes = self.layout.modes
        return StageSpec(Layout((*modes[: self.axis], *entries, *modes[self.axis + 1 :]), view), tuple(done))

    def cut(self, s: int) -> View:
        """The axis read as two digits, the last of size s."""
        slow, fast = self._names[self.axis : self.axis + 2]
        return self._view(Tile(((slow, None), (fast, s))))

    def joined(self, slow: int, fast: int) -> View:
        """The two digits of the axis, read as one mode again."""
        return self._view(Fuse((self._names[slow], self._names[fast])))

    @property
    def _names(self) -> list[str]:
        return mode_names(len(self.layout.modes) + 1)

    def _view(self, item: ViewItem) -> View:
        items: list[ViewItem] = [Name(name) for name in self._names]
        items[self.axis : self.axis + 2] = [item]
        return View(tuple(items))
