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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from rote.errors import LayoutError
from rote.grammar.nodes import CYCLIC, Entry, Fuse, Name, Tile, ViewItem
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
from .factors import Factors, best_factors, padded_factors
from .transpose import transpose

__all__ = ["ragged"]

Entries = tuple[Entry, ...]


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
    columns, rows = place.blocks, place.even(factors.r, factors.ranks)
    if starts:
        columns = place.even(factors.s, factors.ranks)
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
    rows = place.even(factors.r, factors.ranks)
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

    def even(self, size: int, ranks: int) -> Entries:
        """The entries for a digit of some size: elementwise cyclic if the ranks divide it, else balanced blocks."""
        return self.blocks if size % ranks else self.cyclic

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
