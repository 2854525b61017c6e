"""The search for a cheapest plan: A* over layouts, in which every edge is one step.

In the layouts between the two ends, a grid mode may do nothing, split any mode at any place in that mode's list and in
the kinds that it has at the two ends, or be partial or rooted as it is at one of the ends. A grid mode that splits at
neither end takes the kinds of the others. Grid modes that change between the ends also take kinds and roots from each
other, where that leaves few layouts.

Some layouts are left out on purpose. A grid mode that is not partial at an end is never partial on the way: adding the
zeros with which others fill up would change -0.0 to 0.0. No layout lies on another grid than those of the ends, or
splits in a kind that neither end has, but for blocks: a grid mode takes these if no other kind is left for it, and so
does the longest mode, where a reduction or a move between grids spreads it over the ranks.

The bound of `cost.at_least` is never too high, so the first route that reaches the target is a cheapest one of those
through these layouts. Most steps never get a price: a step waits with a bound by the sizes of blocks, then with one by
what its ranks lack, and is priced when that is the least of all. If memory counts as well, a layout keeps every route
to it that no other beats in both seconds and peak. Ties are broken by numbers that are equal on all ranks, so that all
ranks find the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, product
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError
from ..grammar.nodes import BLOCK, OPS, Entry, Kind
from ..layout.distribution import Distribution, distribution_of
from ..layout.layout import Layout
from ..machines.machine import Machine
from .best_first import Draft, best_first
from .cost import at_least, at_least_in_two, duration, peak
from .movement import Movement, movement
from .overlaps import TooManyPiecesError
from .rules import step_of
from .step import Step, rounded
from .volumes import largest_block

__all__ = ["MOST", "Route", "Search", "layouts"]

MOST = 2_500  # layouts: five grid modes, two modes and one kind make 1,631
_MOST_WIDENED = 64  # layouts, if kinds and roots are shared: two grid modes, two modes and two kinds make 33, three 67
_MOST_RANKS = 200_000  # layouts times ranks
_MOST_VIEWED = 24  # layouts in each of two views; few, because moves between views are computed for each pair
_MOST_MOVED = 5  # grid modes of which a normal form tries all subsets
ModeEntries = tuple[tuple[Entry, ...], ...]
Role = tuple[str, int]
Choice = tuple[int, tuple[Kind, ...], tuple[Role, ...]]  # a grid mode, its possible kinds, and its other roles


def layouts(source: Distribution, target: Distribution) -> tuple[tuple[Distribution, ...], bool]:
    """The two ends, then other layouts in a fixed order, and whether these are all and not just the normal form."""
    if source.grid != target.grid:
        idle = tuple([g for g in _grid_modes(target) if target.roles[g].name == "replicated"])
        dists, exact = [*_between(source, source.partial), *_between(target, idle)], False
    else:
        same = source.digits == target.digits
        choices = tuple([(g, _kinds(source, target, g), _roles(source, target, g)) for g in _grid_modes(source)])
        permuted = sorted(map(repr, source.digits)) == sorted(map(repr, target.digits))  # the same digits in both
        if permuted:
            choices = _widened(source, target, choices)
        number = _count(choices, source.order)
        exact = number <= (MOST if permuted else _MOST_VIEWED) and number * source.grid.size <= _MOST_RANKS
        dists = []
        ends = [source] if same else [source, target]
        for end in ends:
            dists += _all(end, choices) if exact else _normal(source, target, end)

    unique: dict[object, Distribution] = {}
    for dist in (source, target, *dists):
        unique.setdefault(dist.meaning, dist)
    return tuple(unique.values()), exact


def _all(end: Distribution, choices: tuple[Choice, ...]) -> Iterator[Distribution]:
    """Every layout in the view of an end."""
    grid_modes = [g for g, _, _ in choices]
    for chosen in product(*[(("split", 0), *roles) for _, _, roles in choices]):
        roles = dict(zip(grid_modes, chosen, strict=True))
        split = [(g, kinds) for g, kinds, _ in choices if roles[g][0] == "split"]
        for modes in _rows(end.order, split):
            yield from _made(end, modes, roles)


def _rows(order: int, split: list[tuple[int, tuple[Kind, ...]]]) -> list[ModeEntries]:
    """Every way to place one entry for each of these grid modes in the lists of the modes, each way once."""
    rows: list[ModeEntries] = [((),) * order]
    for g, kinds in split:
        rows = [row for shorter in rows for row in _with_entry(shorter, g, kinds)]
    return rows


def _with_entry(row: ModeEntries, g: int, kinds: tuple[Kind, ...]) -> Iterator[ModeEntries]:
    """Every way to add an entry for a grid mode to the lists of the modes."""
    for m, mode in enumerate(row):
        for at in range(len(mode) + 1):
            for kind in kinds:
                yield (*row[:m], (*mode[:at], Entry(g, kind), *mode[at:]), *row[m + 1 :])


def _normal(source: Distribution, target: Distribution, like: Distribution) -> Iterator[Distribution]:
    """Layouts on the way: some grid modes are already placed as in the target, the others still as in the source.

    From a partial source, there is also the layout in which a reduction leaves the longest mode split.
    """
    if source.digits == target.digits:
        changed = [g for g in _grid_modes(source) if _place(source, g) != _place(target, g)]

        for done in _moved(changed):
            modes: list[tuple[Entry, ...]] = []
            for old, new in zip(source.layout.modes, target.layout.modes, strict=True):
                still = [entry for entry in old if entry.grid_mode not in done]
                moved = [entry for entry in new if entry.grid_mode in done]
                modes.append((*still, *moved))
            roles = {g: _role(target if g in done else source, g) for g in _grid_modes(source)}
            for made in _made(like, tuple(modes), roles):
                if not _is_crowded(made):
                    yield made

    if like is source:
        yield from _between(source, source.partial)


def _is_crowded(dist: Distribution) -> bool:
    """Whether a mode has fewer indices than parts, so that most ranks hold nothing."""
    for splits, extent in zip(dist.splits, dist.view_shape, strict=True):
        if prod([split.parts for split in splits]) > max(extent, 1):
            return True
    return False


def _moved(changed: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The grid modes that may have moved already: every subset if they are few, else only the first ones."""
    for n in range(len(changed) + 1):
        if len(changed) <= _MOST_MOVED:
            yield from combinations(changed, n)
        else:
            yield tuple(changed[:n])


def _between(dist: Distribution, spread: tuple[int, ...]) -> Iterator[Distribution]:
    """The layout in which these grid modes split the longest mode instead of having their present role."""
    if spread and dist.order:
        longest = max(range(dist.order), key=lambda m: (dist.view_shape[m], -m))
        modes = [*dist.layout.modes]
        modes[longest] += tuple([Entry(g, BLOCK) for g in spread])
        roles = {g: _role(dist, g) for g in _grid_modes(dist)} | dict.fromkeys(spread, ("split", 0))
        yield from _made(dist, tuple(modes), roles)


def _made(like: Distribution, modes: ModeEntries, roles: dict[int, Role]) -> Iterator[Distribution]:
    """The layout with these entries and roles, in the view of another one, if there is one for the tensor."""
    named = {entry.grid_mode for entry in chain(*modes)}

    left = {g: role for g, role in roles.items() if g not in named}
    partial = tuple([g for g, (name, _) in left.items() if name in OPS])
    rooted = tuple([(g, at) for g, (name, at) in left.items() if name == "rooted"])

    names = {left[g][0] for g in partial}
    ops = [op for op in OPS if op in names] or ["sum"]
    if len(ops) > 1:
        return

    try:
        yield distribution_of(Layout(modes, like.layout.view, ops[0], partial, rooted), like.shape, like.grid.shape)
    except LayoutError:  # sizes of a block split fit at one end only
        return


def _grid_modes(dist: Distribution) -> list[int]:
    """The grid modes of more than one coordinate; the others have no effect."""
    return [g for g, p in enumerate(dist.grid.shape) if p > 1]


def _role(dist: Distribution, g: int) -> Role:
    """The role of a grid mode, without the place of a split; for a partial one, the operation is its name."""
    role = dist.roles[g]
    name = dist.layout.op if role.name == "partial" else role.name
    return (name, role.at)


def _roles(source: Distribution, target: Distribution, g: int) -> tuple[Role, ...]:
    """The roles other than a split that a grid mode may have."""
    roles: list[Role] = [("replicated", 0)]
    for end in (source, target):
        role = _role(end, g)
        if role[0] != "split" and role not in roles:
            roles.append(role)
    return tuple(roles)


def _kinds(source: Distribution, target: Distribution, g: int) -> tuple[Kind, ...]:
    """The kinds in which a grid mode may split: its own at the ends, else those of other grid modes, else block."""
    entries = [*chain(*source.splits, *target.splits)]
    present = [s.kind for s in entries if s.grid_mode == g]
    free = [s.kind for s in entries if s.kind.fits]
    return tuple(dict.fromkeys(present or free or [BLOCK]))


def _widened(source: Distribution, target: Distribution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices in which each grid mode that changes may also split or be rooted as another one that changes.

    If the layouts would be more than `_MOST_WIDENED`, the choices stay as they are.
    """
    changed = [g for g, _, _ in choices if _place(source, g) != _place(target, g)]

    every_kind: dict[Kind, None] = {}
    roots: dict[Role, None] = {}
    for g, kinds, roles in choices:
        if g in changed:
            every_kind |= dict.fromkeys([kind for kind in kinds if kind.fits])
            roots |= dict.fromkeys([role for role in roles if role[0] == "rooted"])

    wider: list[Choice] = []
    for g, kinds, roles in choices:
        if g in changed:
            fitting = [(name, at) for name, at in roots if at < source.grid.shape[g]]
            kinds, roles = tuple(dict.fromkeys((*kinds, *every_kind))), tuple(dict.fromkeys((*roles, *fitting)))
        wider.append((g, kinds, roles))

    return tuple(wider) if _count(tuple(wider), source.order) <= _MOST_WIDENED else choices


def _count(choices: tuple[Choice, ...], order: int) -> int:
    """The number of layouts: k entries fit into the lists of `order` modes in order (order+1) ... (order+k-1) ways."""
    ways = [1]  # the number of choices of roles and kinds, by the number of grid modes that split
    for _, kinds, roles in choices:
        more = [0] * (len(ways) + 1)
        for k, n in enumerate(ways):
            more[k] += n * len(roles)
            more[k + 1] += n * len(kinds)
        ways = more
    return sum(n * prod(range(order, order + k)) for k, n in enumerate(ways))


def _place(dist: Distribution, g: int) -> object:
    """The mode, place and kind of a grid mode's split, or its role if it does not split."""
    for m, mode in enumerate(dist.splits):
        for at, split in enumerate(mode):
            if split.grid_mode == g:
                return m, at, split.kind
    return _role(dist, g)


Edge = tuple[int, int]
Times = tuple[int, Machine, np.dtype[Any] | None]  # bytes of an element, the machine, and the dtype while they travel
_SOURCE, _TARGET = 0, 1  # the numbers of the two ends among the layouts
_BY_SIZES, _BY_LACK = -2, -1  # what bounds a step without a price; a path has its number of steps in their place
_SAME = 1e-12  # relative tolerance, for sums of the same times in another order


@dataclass(frozen=True, slots=True)
class Route:
    """Steps that lead from the source to the target, their seconds, and the most elements that a rank holds."""

    seconds: float
    peak: int
    steps: tuple[Step, ...]


class _Limits(NamedTuple):
    """What a route must keep to.

    Attributes:
        below: the seconds below which it must stay.
        both: whether peaks count as well as seconds.
        most: the most elements that any rank may hold.
        kind: the kind of a step that it must have.
        without: a step that it must not have.
    """

    below: float = inf
    both: bool = False
    most: float = inf
    kind: str | None = None
    without: Edge | None = None


class _State(NamedTuple):
    """What a path has come to; of paths that are as fast and have as many steps, the least state is opened first.

    Attributes:
        peak: the most elements that a rank has held on the way; 0 if memory does not count.
        layout: the number of the layout that is reached.
        done: whether a step of the required kind was on the way.
    """

    peak: int
    layout: int
    done: bool


class _Path(NamedTuple):
    """Steps from the source to a layout, which may become a route; their seconds, and the state after them."""

    seconds: float
    state: _State
    steps: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Search:
    """The layouts between two distributions, and the routes through them.

    Attributes:
        item: the bytes of an element.
        wire: the dtype of elements while they travel, if it is not their own.
        most: the number of steps to try, after which the result is only the best found.
        exact: whether all layouts and steps that could matter were tried, by all that was asked so far: a search sets
            it to False when it leaves some out, so it is read after the routes.
    """

    source: Distribution
    target: Distribution
    item: int
    machine: Machine
    most: int = 1_000
    exact: bool = True
    wire: np.dtype[Any] | None = None
    _layouts: tuple[Distribution, ...] = ()
    _direct: Route | None = None

    def cheapest(self, most: float = inf) -> Route:
        """A cheapest route; of several, the one with the fewest steps. If it takes `most` seconds, any such route."""
        direct = self.direct()
        if not direct.steps:
            return direct
        sent = 0 if self.wire is None else self.wire.itemsize
        two = at_least_in_two(movement(self.source, self.target), self.item, self.machine, sent)
        if min(direct.seconds, most) <= two * (1 + _SAME):
            return direct
        if len(self._all()) == 2:  # nothing lies between the two ends
            return direct
        return next(self._routes(_Limits(below=min(direct.seconds, most))), direct)

    def within(self, most: int) -> Route | None:
        """A cheapest route among those that never hold more than `most` elements on a rank."""
        return next(self._routes(_Limits(both=True, most=most)), None)

    def front(self) -> list[Route]:
        """The routes that no other beats in both seconds and peak, the fastest first."""
        front: list[Route] = []
        for route in self._routes(_Limits(both=True)):
            if not front or route.peak < front[-1].peak:
                front.append(route)
        return front

    def with_kind(self, kind: str) -> Route | None:
        """A cheapest route that has a step of some kind."""
        return next(self._routes(_Limits(kind=kind)), None)

    def next_to(self, steps: tuple[Step, ...]) -> Route | None:
        """A cheapest route that avoids at least one of these steps."""

        others: list[Route] = []
        for step in steps:
            edge = self._number(step.before), self._number(step.after)
            other = next(self._routes(_Limits(without=edge)), None)
            if other is not None:
                others.append(other)
        return min(others, key=lambda other: (other.seconds, len(other.steps), other.peak), default=None)

    def direct(self) -> Route:
        """The route of one step, or of none if there is nothing to do."""
        if self._direct is None:
            move = movement(self.source, self.target)
            seconds, step = _price(move, (self.item, self.machine, self.wire))
            if seconds == inf:  # tiles that make too many pieces have no price: the error says why
                step = step_of(move)
                if step is not None:
                    duration(step, self.item, self.machine)
            self._direct = self.route(seconds, () if step is None else (step,))
        return self._direct

    def _number(self, dist: Distribution) -> int:
        return next(n for n, other in enumerate(self._all()) if other.meaning == dist.meaning)

    def _all(self) -> tuple[Distribution, ...]:
        if not self._layouts:
            self._layouts, exact = layouts(self.source, self.target)
            self.exact = self.exact and exact
        return self._layouts

    def route(self, seconds: float, steps: tuple[Step, ...]) -> Route:
        """Some steps as a route, with their peak."""
        if not steps:
            return Route(seconds, 2 * largest_block(self.source), steps)
        last = len(steps) - 1
        peaks = [peak(step, self.source, self.target, k == 0, k == last) for k, step in enumerate(steps)]
        return Route(seconds, max(peaks), steps)

    def _routes(self, limits: _Limits) -> Iterator[Route]:
        """Yield routes to the target in order of seconds: the fastest and, if memory counts, all that need less."""
        direct = self.direct()
        if not direct.steps:
            if limits.kind is None and limits.without is None and direct.peak <= limits.most:
                yield direct
            return
        yield from _Opened(self, self._all(), limits).routes()


class _Opened:
    """One search for routes: the drafts of `best_first`, and what they learn from each other.

    A draft is a path, which opens to the next steps; or a path and a step that has no price yet. Its bound is first one
    by the sizes of blocks, then one by what ranks lack, and last its price, which makes the path longer.
    """

    def __init__(self, search: Search, every: Sequence[Distribution], limits: _Limits) -> None:
        self.search, self.every, self.limits = search, every, limits
        self.below = limits.below * (1 - _SAME)
        self.times = search.item, search.machine, search.wire
        self.to_it, self.via_it = self._by_sizes()
        self.left = {_SOURCE: _bound(movement(search.source, search.target), self.times)}  # seconds to the target
        self.peaks: dict[tuple[int, bool], list[int]] = {}  # with which a layout was reached, in falling order
        self.looked = self.drafted = 0

    def routes(self) -> Iterator[Route]:
        """The routes in order of seconds."""
        start = _Path(0.0, _State(0, _SOURCE, self.limits.kind is None), ())
        drafts = [(self.left[_SOURCE], (0,), partial(self.onward, start))]
        return (route for _, route in best_first(drafts, Route))

    def onward(self, path: _Path) -> Iterator[Draft]:
        """Open a path: the route, if it is at the target; else the steps from there, bounded by the sizes of blocks."""
        most, layout, done = path.state

        peaks = self.peaks.setdefault((layout, done), [])
        if peaks and (not self.limits.both or peaks[-1] <= most):
            return  # an earlier path to this layout is as good
        peaks.append(most)

        if layout == _TARGET:
            if done:
                yield path.seconds, (), self.search.route(path.seconds, path.steps)
            return

        spent = self.looked >= self.search.most  # then only steps straight to the target are tried
        self.search.exact = self.search.exact and not spent

        # Every layout gets a draft, of which few are opened: the bound by sizes costs nothing.
        for following in (_TARGET,) if spent else range(_TARGET, len(self.every)):
            if following == layout or (layout, following) == self.limits.without:
                continue
            rest = max(self.via_it[following], self.to_it[following] + self.left.get(following, 0.0))

            bound = path.seconds + rest
            if bound < self.below:
                self.drafted += 1
                opened = partial(self.sharpened, path, following, self.drafted, bound)
                yield bound, (_BY_SIZES, *path.state, self.drafted), opened

    def sharpened(self, path: _Path, following: int, number: int, bound: float) -> Iterator[Draft]:
        """Open a step without a price: by what ranks lack, first from its end on, then from its beginning."""
        if self.looked >= self.search.most and following != _TARGET:
            self.search.exact = False
            return

        # What follows the step is bounded first: all paths to its layout share that.
        rough = following not in self.left
        if rough:
            self.left[following] = _bound(movement(self.every[following], self.search.target), self.times)

        if rough or self.limits.both:
            step = self.to_it[following]
        else:
            step = _bound(movement(self.every[path.state.layout], self.every[following]), self.times)

        sharp = self.limits.both or not rough  # if memory counts, nearly every step is priced
        self.looked += sharp

        bound = max(bound, path.seconds + step + self.left[following])
        if bound < self.below:
            if sharp:
                yield bound, (_BY_LACK, *path.state, number), partial(self.priced, path, following, number)
            else:
                yield bound, (_BY_SIZES, *path.state, number), partial(self.sharpened, path, following, number, bound)

    def priced(self, path: _Path, following: int, number: int) -> Iterator[Draft]:
        """Open a step with its price: a longer path."""
        search = self.search
        most, layout, done = path.state
        seconds, step = _price(movement(self.every[layout], self.every[following]), self.times)
        if step is None:
            return

        # Only where memory counts, because a peak takes as long as a price.
        if self.limits.both:
            ends = layout == _SOURCE, following == _TARGET
            most = max(most, peak(step, search.source, search.target, *ends))

        if most <= self.limits.most:
            done = done or step.kind == self.limits.kind
            longer = _Path(path.seconds + seconds, _State(most, following, done), (*path.steps, step))
            bound = longer.seconds + self.left[following]
            if bound < self.below:
                yield bound, (len(longer.steps), *longer.state, number), partial(self.onward, longer)

    def _by_sizes(self) -> tuple[list[float], list[float]]:
        """Per layout, lower bounds on a step to it, and on that and one more to the target: both copy a block."""
        search = self.search
        along = search.machine.at_best_along(search.source.grid, search.target.grid)
        whole = largest_block(search.target)
        copying, moving = search.item * min(along.copy_time), search.item * min(along.byte_time)
        if search.target.partial or search.wire is not None:
            moving = 0.0

        to_it, via_it = [], []
        for dist in self.every:
            size = largest_block(dist)
            to_it.append(search.machine.step_time + copying * size)
            via_it.append(to_it[-1] + search.machine.step_time + copying * whole + moving * max(whole - size, 0))
        via_it[_TARGET] = to_it[_TARGET]
        return to_it, via_it


def _price(move: Movement, times: Times) -> tuple[float, Step | None]:
    """The seconds of the step that does a movement, and the step."""
    item, machine, wire = times
    try:
        step = step_of(move)
        if step is None:
            return 0.0, None
        step = rounded(step, wire)
        return duration(step, item, machine).seconds, step
    except TooManyPiecesError:
        return inf, None


def _bound(move: Movement, times: Times) -> float:
    """A lower bound on the seconds of a movement."""
    item, machine, wire = times
    try:
        return at_least(move, item, machine, 0 if wire is None else wire.itemsize)
    except TooManyPiecesError:
        return 0.0
