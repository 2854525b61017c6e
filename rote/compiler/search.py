"""The search for a cheapest plan: A* over layouts, in which every edge is one step.

The bound of `cost.at_least` is never too high, so the first route that reaches the target is a cheapest one of those
through the layouts of `rote.compiler.candidates`, whose docstring says which layouts are left out. If memory
counts as well, a layout keeps every route to it that no other beats in both seconds and peak. Ties are broken by
numbers that are equal on all ranks, so that all ranks find the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..caches import memoized
from ..layout.distribution import Distribution
from .candidates import layouts
from .cost import at_least, at_least_in_two, duration, peak
from .machine import Machine
from .movement.components import TooManyPiecesError
from .movement.volumes import largest_block
from .rules import one_step
from .step import Step, rounded

__all__ = ["Route", "Search"]

Edge = tuple[int, int]
_SOURCE, _TARGET = 0, 1  # the numbers of the two ends among the layouts
_SAME = 1e-12  # relative tolerance, for sums of the same times in another order


@dataclass(frozen=True, slots=True)
class Route:
    """Steps that lead from the source to the target, their seconds, and the most elements that a rank holds."""

    seconds: float
    peak: int
    steps: tuple[Step, ...]


class _Draft(NamedTuple):
    """Steps that may become a route; the search continues from the smallest draft."""

    least: float  # a lower bound on the seconds of routes that begin with these steps
    length: int
    peak: int
    layout: int  # the number of the layout that they reach
    done: bool  # whether they have a step of the required kind
    number: int  # the draft's number among all drafts
    seconds: float
    steps: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Search:
    """The layouts between two distributions, and the routes through them.

    Attributes:
        item: the bytes of an element.
        wire: the dtype of elements while they travel, if it is not their own.
        most: the number of steps to try, after which the result is only the best found.
        exact: whether all layouts and steps that could matter were tried.
    """

    source: Distribution
    target: Distribution
    item: int
    machine: Machine
    most: int = 1_000
    exact: bool = True
    wire: np.dtype[Any] | None = None
    _layouts: tuple[Distribution, ...] = ()

    def cheapest(self) -> Route:
        """A cheapest route; of several, the one with the fewest steps."""
        direct = self.direct()
        if not direct.steps:
            return direct
        sent = 0 if self.wire is None else self.wire.itemsize
        two = at_least_in_two(self.source, self.target, self.item, self.machine, sent)
        if direct.seconds <= two * (1 + _SAME):
            return direct
        return next(self._routes(below=direct.seconds), direct)

    def within(self, most: int) -> Route | None:
        """A cheapest route among those that never hold more than `most` elements on a rank."""
        return next(self._routes(both=True, most=most), None)

    def front(self) -> list[Route]:
        """The routes that no other beats in both seconds and peak, the fastest first."""
        front: list[Route] = []
        for route in self._routes(both=True):
            if not front or route.peak < front[-1].peak:
                front.append(route)
        return front

    def with_kind(self, kind: str) -> Route | None:
        """A cheapest route that has a step of some kind."""
        return next(self._routes(kind=kind), None)

    def next_to(self, steps: tuple[Step, ...]) -> Route | None:
        """A cheapest route that avoids at least one of these steps."""
        others: list[Route] = []
        for step in steps:
            other = next(self._routes(without=(self._number(step.before), self._number(step.after))), None)
            if other is not None:
                others.append(other)
        return min(others, key=lambda other: (other.seconds, len(other.steps), other.peak), default=None)

    def direct(self) -> Route:
        """The route of one step, or of none if there is nothing to do."""
        seconds, step = _prices(self.item, self.machine, self.wire)(self.source, self.target)
        if seconds == inf:  # no step between layouts whose tiles make too many pieces has a price: the error says why
            at_least(self.source, self.target, self.item, self.machine)
        steps = () if step is None else (step,)
        return self._route(seconds, steps)

    def _number(self, dist: Distribution) -> int:
        return next(n for n, other in enumerate(self._all()) if other.meaning == dist.meaning)

    def _all(self) -> tuple[Distribution, ...]:
        if not self._layouts:
            self._layouts, exact = layouts(self.source, self.target)
            self.exact = self.exact and exact
        return self._layouts

    def _route(self, seconds: float, steps: tuple[Step, ...]) -> Route:
        if not steps:
            return Route(seconds, 2 * largest_block(self.source), steps)
        last = len(steps) - 1
        held = [peak(step, self.source, self.target, k == 0, k == last) for k, step in enumerate(steps)]
        return Route(seconds, max(held), steps)

    def _routes(
        self,
        below: float = inf,
        *,
        both: bool = False,
        most: float = inf,
        kind: str | None = None,
        without: Edge | None = None,
    ) -> Iterator[Route]:
        """Yield routes to the target in order of seconds: the fastest and, if `both`, all that need less memory.

        Args:
            below: the seconds below which a route must stay.
            both: whether peaks count as well as seconds.
            most: the most elements that any rank may hold.
            kind: the kind of a step that a route must have.
            without: a step that a route must not have.
        """
        direct = self.direct()
        if not direct.steps:
            if kind is None and without is None and direct.peak <= most:
                yield direct
            return
        every, times = self._all(), (self.item, self.machine, self.wire)
        price, bound = _prices(*times), _bounds(*times)
        left = [bound(dist, self.target) for dist in every]
        # A lower bound on a step to each layout and on to the target: the step copies every block.
        copying = self.item * min(self.machine.along(self.source.grid.order).copy_time)
        aside = []
        for dist, seconds in zip(every, left, strict=True):
            aside.append(self.machine.step_time + copying * largest_block(dist) + seconds)
        limit = below * (1 - _SAME)
        heap = [_Draft(left[_SOURCE], 0, 0, _SOURCE, kind is None, 0, 0.0, ())]
        best: dict[tuple[int, bool], list[int]] = {}  # the peaks with which a layout was reached, in falling order
        pushed = looked = 0
        while heap:
            draft = heappop(heap)
            current = draft.layout
            reached = best.setdefault((current, draft.done), [])
            if reached and (not both or reached[-1] <= draft.peak):
                continue
            reached.append(draft.peak)
            if current == _TARGET:
                if draft.done:
                    yield self._route(draft.seconds, draft.steps)
                continue
            spent = looked >= self.most  # then only steps straight to the target are tried
            self.exact = self.exact and not spent
            for following in (_TARGET,) if spent else range(_TARGET, len(every)):
                if draft.seconds + aside[following] >= limit or following == current or (current, following) == without:
                    continue
                looked += 1
                taken, step = price(every[current], every[following])
                least = draft.seconds + taken + left[following]
                if least >= limit or step is None:
                    continue
                held = draft.peak
                if both:
                    held = max(held, peak(step, self.source, self.target, current == _SOURCE, following == _TARGET))
                if held <= most:
                    pushed += 1
                    done, seconds = draft.done or step.kind == kind, draft.seconds + taken
                    steps = (*draft.steps, step)
                    heappush(heap, _Draft(least, len(steps), held, following, done, pushed, seconds, steps))


@memoized(8)
def _prices(
    item: int, machine: Machine, wire: np.dtype[Any] | None
) -> Callable[[Distribution, Distribution], tuple[float, Step | None]]:
    """A cached function that gives the step between two layouts and its seconds."""

    @memoized(65536)
    def price(before: Distribution, after: Distribution) -> tuple[float, Step | None]:
        try:
            step = one_step(before, after)
            if step is None:
                return 0.0, None
            if wire is not None:
                step = rounded(step, wire)
            return duration(step, item, machine).seconds, step
        except TooManyPiecesError:
            return inf, None

    return price


@memoized(8)
def _bounds(item: int, machine: Machine, wire: np.dtype[Any] | None) -> Callable[[Distribution, Distribution], float]:
    """A cached function that gives a lower bound on the seconds from one layout to another."""

    sent = 0 if wire is None else wire.itemsize

    @memoized(65536)
    def bound(before: Distribution, after: Distribution) -> float:
        with suppress(TooManyPiecesError):
            return at_least(before, after, item, machine, sent)
        return 0.0

    return bound
