"""The shortest walks of whole axes to a given layout: the fewest moves, and of these the fewest bytes.

A walk stops in layouts that split other modes, and transforms axes where they are whole. Modes that are not transformed
have room for the splits of those that are, and so have modes that are done. All layouts that split the modes over the
same ranks are tried: first no stop between the two ends, then one, and so on. Of a channel, x and z are transformed
without a stop, and y is whole in the end:

    block[(0),(),()]: fft(2)        x is split, y and z are whole
    block[(),(),(0)]: fft(0)        z is split, x and y are whole

No stop gathers an axis, or fills a rank to more than twice what it has at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from rote.caches import memoized
from rote.compiler.movement import movement
from rote.errors import LayoutError
from rote.grammar import StageSyntax
from rote.layout.distribution import Distribution
from rote.layout.expressions import fitting
from rote.layout.grid import Grid
from rote.layout.layout import Entry, Layout
from rote.layout.refine import fitted

from ..check import Line
from ..request import TransformRequest
from ..transforms import HALVING
from .transpose import begin, ending, ready, stage, transpose

__all__ = ["CROWDED", "copies", "fullness", "is_plain", "shortest", "splits", "transpose_to"]

CROWDED = 2  # times its part of the tensor that a rank may hold
_LAYOUTS, _WALKS = 1 << 11, 1 << 16  # that are looked at: with more, walks are those by the rule of `transpose`

Modes = tuple[tuple[Entry, ...], ...]


def transpose_to(source: Distribution, request: TransformRequest, output: Layout | None) -> list[Line]:
    """The lines of the shortest walk of whole axes from a tensor's distribution to a layout; by `transpose` if None.

    Raises:
        LayoutError: the layout of the tensor has a view, or is partial; or the other one does not fit the spectrum.
    """
    lines = transpose(source, request)
    if output is None:
        return lines
    return shortest([source], request, output, [line.layout for line in lines]) or ending(lines, output)


def shortest(
    starts: Sequence[Distribution], request: TransformRequest, output: Layout, first: Iterable[Layout] = ()
) -> list[Line]:
    """The lines of the shortest walk from one of some distributions to a layout; none if no such walk has room.

    Of walks that are equally short, the one that stops in the layouts `first` is taken, and the first start.

    Raises:
        LayoutError: the layout does not fit the spectrum.

    >>> import numpy as np
    >>> from rote.layout.layout import parse
    >>> from ..request import as_request
    >>> source, channel = parse("block[(0),(),()]").on((64, 65, 64), 4), parse("block[(),(),(0)]")
    >>> for line in shortest([source], as_request(source.shape, (0, 2), "fft", np.dtype("c16")), channel):
    ...     print(line.layout, [(action.name, action.modes) for action in line.actions])
    block[(0),(),()] [('fft', (2,))]
    block[(),(),(0)] [('fft', (0,))]
    """
    start, layouts = starts[0], [starts[0].layout, output]
    output.on(request.after(start.shape, request.axes), start.grid)
    if not all(map(is_plain, layouts)):
        return []

    routes = [route for dist in starts if _has_room(dist, start) for route in _begun(dist, request)]
    for route in routes:
        if not route.todo and route.dist.layout == output:
            return _lines(route, request)

    stops: list[Layout] = []
    while routes:
        ended = [end for route in routes for end in _further(route, output, request, start) if not end.todo]
        if ended:
            return _lines(min(ended, key=_cost), request)

        stops = stops or [*dict.fromkeys([*first, *splits(layouts, start.grid)])]
        if len(routes) * len(stops) > _WALKS:
            break
        pairs = product(routes, stops)
        routes = _cheapest([onward for route, stop in pairs for onward in _further(route, stop, request, start)])
    return []


@dataclass(frozen=True, slots=True)
class _Route:
    """The beginning of a walk.

    Attributes:
        start: where it starts.
        stages: each distribution, and the axes that are transformed in it.
        dist: the distribution after the last stage.
        todo: the axes that are still to do.
        moves: the two distributions of each move, and the bytes of an element.
    """

    start: Distribution
    stages: tuple[tuple[Distribution, tuple[int, ...]], ...]
    dist: Distribution
    todo: tuple[int, ...]
    moves: tuple[tuple[Distribution, Distribution, int], ...] = ()


def _begun(start: Distribution, request: TransformRequest) -> Iterator[_Route]:
    """The walks that have transformed what they may where they start."""
    dist, _ = begin(start, request)
    for now in _choices(dist, request.axes, request):
        after = fitted(dist, request.after(dist.shape, now))
        yield _Route(start, ((dist, now),), after, _without(request.axes, now))


def _further(route: _Route, layout: Layout, request: TransformRequest, start: Distribution) -> Iterator[_Route]:
    """The walks that go on to a layout with room for what they transform there: something, if there is any to do."""
    try:
        dist = layout.on(route.dist.shape, route.dist.grid)
    except LayoutError:  # sizes of blocks that were those of another extent
        return

    move = route.dist, dist, _itemsize(route.todo, request)
    for now in _choices(dist, route.todo, request):
        if not route.todo or (now and _has_room(dist, start)):
            after = fitted(dist, request.after(dist.shape, now))
            stages, todo = (*route.stages, (dist, now)), _without(route.todo, now)
            yield _Route(route.start, stages, after, todo, (*route.moves, move))


def _has_room(dist: Distribution, start: Distribution) -> bool:
    """Whether no element has more copies, and no rank more than twice as much to hold, than where walks start."""
    return copies(dist) <= copies(start) and fullness(dist) <= CROWDED * max(fullness(start), 1.0)


def _cheapest(routes: Sequence[_Route]) -> list[_Route]:
    """Of the walks that are in one place with the same axes to do, the one that costs least."""
    cheapest: dict[tuple[Distribution, tuple[int, ...]], _Route] = {}
    for route in routes:
        place = route.dist, route.todo
        if place not in cheapest or _cost(route) < _cost(cheapest[place]):
            cheapest[place] = route
    return [*cheapest.values()]


def _cost(route: _Route) -> tuple[int, int]:
    """The most bytes that a rank receives in a move, and those of all ranks, summed over all moves."""
    most = total = 0
    for before, after, itemsize in route.moves:
        busiest, every = received(before, after)
        most, total = most + itemsize * busiest, total + itemsize * every
    return most, total


def _lines(route: _Route, request: TransformRequest) -> list[Line]:
    """The lines of a walk."""
    _, resizes = begin(route.start, request)
    lines = [StageSyntax(route.start.layout, actions=resizes)] if resizes else []
    return [*lines, *(stage(dist, now, request)[0] for dist, now in route.stages)]


def _choices(dist: Distribution, todo: tuple[int, ...], request: TransformRequest) -> list[tuple[int, ...]]:
    """The axes that may be transformed in a distribution: all that are ready, or without some that would grow.

    Zeros at the end of an axis, and the second half of complex numbers, need not travel if it is whole later, too.
    """
    every = ready(dist, todo, request)

    growing = []
    for axis in every:
        after = request.given(axis) * _itemsize(_without(todo, [axis]), request)
        if after > dist.shape[axis] * _itemsize(todo, request):
            growing.append(axis)

    late = chain(*(combinations(growing, number) for number in range(len(growing) + 1)))
    return [*dict.fromkeys([tuple(ready(dist, todo, request, axes)) for axes in late])]


def _itemsize(todo: Sequence[int], request: TransformRequest) -> int:
    """The bytes of an element while some axes are still to do."""
    real, itemsize = request.real, request.dtype.itemsize
    if real is None or real in todo:
        return itemsize
    return 2 * itemsize if request.kind[real] in HALVING else itemsize // 2


def _without(todo: Sequence[int], done: Sequence[int]) -> tuple[int, ...]:
    return tuple([axis for axis in todo if axis not in done])


def splits(ends: Sequence[Layout], grid: Grid) -> list[Layout]:
    """All layouts that split modes over the grid modes of some layouts, each by a kind that it has in these.

    None if there are too many.

    >>> from rote.layout.layout import parse
    >>> [str(layout) for layout in splits([parse("block[(0),()]"), parse("block[(),(1)]")], Grid((2, 2)))]
    ['block[(0,1),()]', 'block[(1,0),()]', 'block[(0),(1)]', 'block[(1),(0)]', 'block[(),(0,1)]', 'block[(),(1,0)]']
    """
    order = len(ends[0].modes)
    layouts: list[Modes] = [((),) * order]
    for grid_mode in range(grid.order):
        entries = [(m, entry) for end in ends for m, mode in enumerate(end.modes) for entry in mode]
        entries = [(m, entry) for m, entry in entries if entry.grid_mode == grid_mode]
        if not entries:
            continue

        # Each layout so far becomes several, with an entry of this grid mode at every place of every mode.
        longer: dict[Modes, None] = {}
        for modes, m in product(layouts, range(order)):
            unchanged = [entry for at, entry in entries if at == m]  # sizes of blocks may fit no other mode
            for entry in dict.fromkeys([*unchanged, *(fitting(entry) for _, entry in entries)]):
                for place in reversed(range(len(modes[m]) + 1)):
                    mode = (*modes[m][:place], entry, *modes[m][place:])
                    longer[*modes[:m], mode, *modes[m + 1 :]] = None
        if len(longer) > _LAYOUTS:
            return []
        layouts = [*longer]
    return [*map(Layout, layouts)]


def is_plain(layout: Layout) -> bool:
    """Whether a layout has no view, and each rank holds whole values of its part."""
    return layout.view is None and not layout.partial and not layout.rooted


@memoized(8192)  # walks share moves
def received(before: Distribution, after: Distribution) -> tuple[int, int]:
    """The most elements that any rank receives in a move, and the elements that all ranks receive."""
    elements = movement(before, after).received
    return int(elements.max()), int(elements.sum(dtype=object)) * (before.grid.size // elements.size)


def copies(dist: Distribution) -> int:
    """The number of ranks that hold an element."""
    return dist.grid.size // prod(split.parts for split in chain(*dist.splits))


def fullness(dist: Distribution) -> float:
    """The elements of the fullest rank, relative to an even part of the tensor."""
    return dist.grid.size * prod(dist.max_local_shape()) / max(prod(dist.view_shape), 1)
