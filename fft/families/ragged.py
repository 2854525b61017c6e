"""Six steps for any number of points on any number of ranks, and Bluestein's convolution if there are no good factors.

An axis of n = r s points is read as `(a b=s)`, with the columns b split over the ranks. a is transformed and multiplied
by twiddles, the split moves from b to a, b is transformed, and the spectrum is `(b a)` (Popovici et al. 2019, section
3.2). On 2 ranks, with r = 3 and s = 4:

        rank 0 | rank 1            all columns of a row
    a=0   0  1 |  2  3            0  1  2  3    rank 0
    a=1   4  5 |  6  7    move    4  5  6  7    rank 0
    a=2   8  9 | 10 11            8  9 10 11    rank 1

Neither r nor s has to be a multiple of the p ranks: some ranks have one column more. A rank holds about n/p
elements, and at least one column. If that is too much (a prime n is a single column), the n points are transformed as a
convolution with a chirp, on m >= 2n - 1 points with good factors (Bluestein 1970): six steps forward and back, from
elementwise cyclic points to an elementwise cyclic spectrum. An axis that lies so moves at neither end.

Real axes are complex from their first transform on. `rfft` cuts half of the spectrum off in the end, and `irfft` adds
it at first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod

from rote.caches import memoized
from rote.errors import LayoutError
from rote.grammar import CONVOLVE, TWIDDLE, ActionSyntax, StageSyntax
from rote.grammar.nodes import CYCLIC, Entry, Fuse, Name, Tile, ViewItem
from rote.layout.distribution import Distribution
from rote.layout.expressions import block, fitting
from rote.layout.grid import divisors
from rote.layout.layout import Layout
from rote.layout.refine import fitted
from rote.layout.view import View

from ..check import Line, mode_names
from ..request import TransformRequest
from ..transforms import FOURIER, KINDS, TransformKind
from .shortest import is_plain
from .transpose import begin, ending, transpose

__all__ = ["Factors", "best_factors", "padded_factors", "ragged", "smooth"]


Entries = tuple[Entry, ...]

_TWIDDLE = ActionSyntax(TWIDDLE)


def ragged(source: Distribution, request: TransformRequest, output: Layout | None = None) -> list[Line]:
    """The lines of a walk that transforms each split axis in six steps, and all whole axes together.

    They end in `output`; if that is None, split axes end elementwise cyclic, or as they began.

    Raises:
        LayoutError: the family does not take such a layout or request.

    >>> import numpy as np
    >>> from rote.layout.layout import parse
    >>> from ..request import as_request
    >>> request = as_request((15,), (0,), "fft", np.dtype("c16"))
    >>> for line in ragged(parse("block[(0)]").on(15, 4), request):
    ...     print(line.layout, [(action.name, action.modes) for action in line.actions])
    (a b=5): block[(),(0)] [('fft', (0,)), ('twiddle', ())]
    block[(0),()] [('fft', (1,))]
    (b a): block[(0)] []
    """
    if not is_plain(source.layout):
        raise LayoutError(f"ragged walks start from plain layouts, not {source.layout}; redistribute first")
    plain = output if output is not None and is_plain(output) else None

    dist, cuts = begin(source, request)
    lines = [StageSyntax(source.layout, actions=cuts)] if cuts else []
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

    lines = lines or [StageSyntax(source.layout)]
    return lines if output == dist.layout else ending(lines, output)


def _groups(source: Distribution, request: TransformRequest) -> list[tuple[int, ...]]:
    """The axes in order: the whole ones in one group, each other one alone; a real axis goes where it is real."""
    whole = tuple(a for a in request.axes if not source.splits[a])
    groups: list[tuple[int, ...]] = [(a,) for a in request.axes if source.splits[a]]
    if whole:
        groups.insert(0, whole)
    groups.sort(key=lambda group: request.real not in group)
    return groups if request.forward else groups[::-1]


def _along(dist: Distribution, axis: int, request: TransformRequest, output: Layout | None) -> list[Line]:
    """The lines of one split axis; the last one in `output`, if that saves a move."""
    row, at = KINDS[request.kind[axis]], request.axes.index(axis)
    points, resampled, taken = request.points[at], request.kept[at], request.taken(axis)
    if row.name not in FOURIER:
        raise LayoutError(f"ragged takes fft and rfft, not {row.name} of axis {axis}, which is split")
    if row.real == "input" and points != resampled:
        raise LayoutError(f"ragged does not resample axis {axis}, which is real and split; split another axis")

    # What changes the extent before the transform, and after it.
    early, late = list[ActionSyntax](), list[ActionSyntax]()
    if dist.shape[axis] != taken:
        early.append(_resize("resize", axis, taken))
    if row.real == "output" and points > 1:
        early.append(_resize("fold", axis, points))
    if row.real == "input" and points > 1:
        late.append(_resize("fold", axis, row.given(points)))
    if points != resampled:
        late.append(_resize("resample", axis, resampled))

    splits, place = dist.splits[axis], _SplitAxis(dist.layout, axis)
    if points == 1:  # without digits
        alone = place.line([()], [ActionSyntax(row.name, (axis,))])
        return [*(place.line([place.cyclic], [action]) for action in early), alone, place.line([place.cyclic], late)]

    # A change of extent moves nothing of an elementwise cyclic axis, so a walk that has one begins, or ends, with that.
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
        last = StageSyntax(output)
    elif points == dist.shape[axis]:
        last = place.line([place.entries])
    else:
        last = place.line([tuple(map(fitting, place.entries))])

    return [*lines, *_six_steps(place, factors, row, starts, last)]


def _six_steps(place: _SplitAxis, factors: Factors, row: TransformKind, starts: bool, last: Line) -> list[Line]:
    """The lines of six steps; the last one is given except for its view, which reads both digits as one axis."""
    columns, rows = place.blocks, place.even(factors.r, factors.ranks)
    if starts:
        columns = place.even(factors.s, factors.ranks)
    kind, a, b = row.others, place.axis, place.axis + 1
    before, after = _conversions(row, a, b)

    return [
        place.line([(), columns], [*before, ActionSyntax(kind, (a,)), _TWIDDLE], place.cut(factors.s)),
        place.line([rows, ()], [ActionSyntax(kind, (b,)), *after]),
        replace(last, layout=replace(last.layout, view=place.joined(b, a))),
    ]


def _resize(name: str, axis: int, points: int) -> ActionSyntax:
    return ActionSyntax(name, (axis,), (points,))


def _conversions(row: TransformKind, first: int, last: int) -> tuple[list[ActionSyntax], list[ActionSyntax]]:
    """The conversion of real numbers to complex ones before complex transforms, and the one back after them."""
    before = [ActionSyntax("complex", (first,))] if row.real == "input" else []
    after = [ActionSyntax("real", (last,))] if row.real == "output" else []
    return before, after


def _convolved(
    place: _SplitAxis, factors: Factors, points: int, row: TransformKind, late: list[ActionSyntax]
) -> list[Line]:
    """The lines of a convolution with a chirp, elementwise cyclic on both sides."""
    rows = place.even(factors.r, factors.ranks)
    a, b, axis = place.axis, place.axis + 1, place.axis
    before, after = _conversions(row, axis, axis)

    # The product of two spectra is that of a cyclic convolution; a chirp of at least 2 points - 1 does not wrap around.
    return [
        place.line([place.cyclic], [*before, _resize("chirp", axis, factors.points)]),
        place.line([(), place.cyclic], [ActionSyntax("fft", (a,)), _TWIDDLE], place.cut(factors.s)),
        place.line([rows, ()], [ActionSyntax("fft", (b,)), ActionSyntax(CONVOLVE)]),
        place.line([rows, ()], [ActionSyntax("ifft", (b,)), _TWIDDLE]),
        place.line([(), place.cyclic], [ActionSyntax("ifft", (a,))]),
        place.line([place.cyclic], [_resize("chirp", axis, points), *after], place.joined(a, b)),
        # In one line, a split mode changes its extent once.
        *(place.line([place.cyclic], [action]) for action in late),
    ]


@dataclass(frozen=True, slots=True)
class _SplitAxis:
    """One axis of a tensor in a plain layout, whose other modes stay as they are."""

    layout: Layout
    axis: int

    @property
    def entries(self) -> Entries:
        return self.layout.modes[self.axis]

    @property
    def cyclic(self) -> Entries:
        return tuple(Entry(entry.grid_mode) for entry in self.entries)

    @property
    def blocks(self) -> Entries:
        return tuple(block(entry.grid_mode) for entry in self.entries)

    def even(self, size: int, ranks: int) -> Entries:
        """The entries for a digit of some size: elementwise cyclic if the ranks divide it, else balanced blocks."""
        return self.blocks if size % ranks else self.cyclic

    def line(self, entries: Sequence[Entries], actions: Sequence[ActionSyntax] = (), view: View | None = None) -> Line:
        """A line in which the axis, or its two digits, have the given entries."""
        modes = self.layout.modes
        layout = Layout((*modes[: self.axis], *entries, *modes[self.axis + 1 :]), view)
        return StageSyntax(layout, actions=tuple(actions))

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


@dataclass(frozen=True, slots=True)
class Factors:
    """The points of an axis as a matrix of r rows and s columns, split over a number of ranks by columns or by rows."""

    r: int
    s: int
    ranks: int

    @property
    def points(self) -> int:
        return self.r * self.s

    @property
    def largest(self) -> int:
        """The most elements that a rank holds, split by columns or by rows."""
        return max(self.r * -(-self.s // self.ranks), self.s * -(-self.r // self.ranks))


def best_factors(points: int, ranks: int, cyclic: bool = False, ends: bool = False) -> Factors | None:
    """The factors of a number of points with which ranks hold and move the least; None for 0, 1 or a prime.

    Args:
        cyclic: whether the axis is elementwise cyclic at first: then nothing moves if the ranks divide s.
        ends: whether the spectrum may be elementwise cyclic: then nothing moves if the ranks divide r.

    >>> best_factors(48, 4), best_factors(24, 4, cyclic=True), best_factors(24, 4, ends=True), best_factors(47, 4)
    (Factors(r=4, s=12, ranks=4), Factors(r=6, s=4, ranks=4), Factors(r=4, s=6, ranks=4), None)
    """
    moved = -(-points // ranks)  # elements of a rank

    def worth(factors: Factors) -> tuple[int, int, int]:
        moves = (not cyclic or factors.s % ranks > 0) + (not ends or factors.r % ranks > 0)
        return factors.largest + moves * moved, abs(factors.r - factors.s), factors.r

    rows = divisors(points)[1:-1] if points else ()
    return min((Factors(r, points // r, ranks) for r in rows), key=worth, default=None)


def padded_factors(points: int, ranks: int) -> Factors:
    """The factors of a convolution on 2 points - 1 or more; they have no large primes but those of the ranks.

    >>> padded_factors(47, 4)
    Factors(r=12, s=8, ranks=4)
    """
    least = 2 * points - 1
    # The smallest blocks are nearly square, so both limits are small multiples of a square's side. In 960 trials, most
    # of up to 5,000 points and 1,000 ranks, more columns changed nothing, and longer rows saved 2% of a block at most.
    columns = [ranks * t for t in smooth(4 * isqrt(least) // ranks + 2)]
    rows = smooth(8 * max(isqrt(least), 16))
    pairs = []
    for s in columns:
        first = bisect_left(rows, max(2, -(-least // s)))
        if s > 1 and first < len(rows):
            pairs.append(Factors(rows[first], s, ranks))
    return min(pairs, key=lambda factors: (factors.largest, factors.points, abs(factors.r - factors.s)))


@memoized(64)  # a convolution asks again for the lengths that it may have
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
