"""The search for a cheapest plan: A* over layouts, in which every edge is one step.

The bound of `cost.at_least` never says too much, so that the first route to reach the target is a cheapest one. Where
memory counts as well, a layout keeps every way to it that no other beats in both seconds and peak. Everything is
ordered by the numbers of the layouts: all ranks find the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from ..caches import memoized
from ..layout.distribution import Distribution
from .candidates import layouts
from .cost import at_least, at_least_in_two, duration, peak
from .machine import Machine
from .rules import one_step
from .step import Step
from .volumes import largest_block

__all__ = ["Route", "Search"]

Edge = tuple[int, int]

_SOURCE, _TARGET = 0, 1  # the numbers of the two ends among the layouts
_SAME = 1e-12  # relative: sums of the same times in another order


@dataclass(frozen=True, slots=True)
class Route:
    """Steps that lead from the source to the target, what they take, and the most elements that a rank holds."""

    seconds: float
    peak: int
    steps: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Search:
    """The layouts between two distributions, and the routes through them.

    Attributes:
        item: bytes of an element.
        most: so many steps are looked at for a route; then what was found is the best found.
        exact: whether all layouts and steps that could matter were looked at.
    """

    source: Distribution
    target: Distribution
    item: int
    machine: Machine
    most: int = 1_000
    exact: bool = True
    _layouts: tuple[Distribution, ...] = ()

    def cheapest(self) -> Route:
        """A cheapest route; of several the one with the fewest steps."""
        direct = self.direct()
        if not direct.steps:
            return direct
        two = at_least_in_two(self.source, self.target, self.item, self.machine)
        if direct.seconds <= two * (1 + _SAME):
            return direct
        return next(self._routes(below=direct.seconds), direct)

    def within(self, most: int) -> Route | None:
        """A cheapest route of those that never hold more than `most` elements on a rank."""
        return next(self._routes(both=True, most=most), None)

    def front(self) -> list[Route]:
        """The routes that no other beats in both seconds and peak, the fastest first."""
        front: list[Route] = []
        for route in self._routes(both=True):
            if not front or route.peak < front[-1].peak:
                front.append(route)
        return front

    def least_peak(self) -> int:
        """The least that a rank must hold, of all routes."""
        return min(route.peak for route in self.front())

    def with_kind(self, kind: str) -> Route | None:
        """A cheapest route that has a step of some kind."""
        return next(self._routes(kind=kind), None)

    def next_to(self, steps: tuple[Step, ...]) -> Route | None:
        """A cheapest route other than the one with these steps."""
        others: list[Route] = []
        for step in steps:
            left_out = self._number(step.before), self._number(step.after)
            others += [other for other in (next(self._routes(without=left_out), None),) if other]
        return min(others, key=lambda other: (other.seconds, len(other.steps), other.peak), default=None)

    def direct(self) -> Route:
        """The route of one step (of none if there is nothing to do)."""
        seconds, step = _prices(self.item, self.machine)(self.source, self.target)
        return self._route(seconds, () if step is None else (step,))

    def _number(self, dist: Distribution) -> int:
        return next(n for n, other in enumerate(self._all()) if other.meaning == dist.meaning)

    def _all(self) -> tuple[Distribution, ...]:
        if not self._layouts:
            self._layouts, exact = layouts(self.source, self.target)
            self.exact = self.exact and exact
        return self._layouts

    def _route(self, seconds: float, steps: tuple[Step, ...]) -> Route:
        ends, last = (self.source, self.target), len(steps) - 1
        held = [peak(step, *ends, number == 0, number == last) for number, step in enumerate(steps)]
        return Route(seconds, max(held, default=2 * largest_block(self.source)), steps)

    def _routes(
        self,
        below: float = inf,
        *,
        both: bool = False,
        most: float = inf,
        kind: str | None = None,
        without: Edge | None = None,
    ) -> Iterator[Route]:
        """Routes to the target, by seconds: the first, and, if `both` count, all that need less memory.

        Args:
            below: seconds that they must stay below.
            both: whether peaks count, or seconds alone.
            most: elements that no rank may hold more of.
            kind: of a step that they must have.
            without: a step that they must not have.
        """
        direct = self.direct()
        if not direct.steps:
            if kind is None and without is None and direct.peak <= most:
                yield direct
            return
        every, price, bound = self._all(), _prices(self.item, self.machine), _bounds(self.item, self.machine)
        left = [bound(dist, self.target) for dist in every]
        # What a step to there, and on, takes at least: every block is laid out anew.
        copying = self.item * min(self.machine.along(self.source.grid.order).copy_time)
        aside = [
            self.machine.step_time + copying * largest_block(dist) + seconds
            for dist, seconds in zip(every, left, strict=True)
        ]
        limit = below * (1 - _SAME) if below < inf else inf
        heap: list[tuple[float, int, int, int, bool, int, float, tuple[Step, ...]]] = [
            (left[_SOURCE], 0, 0, _SOURCE, kind is None, 0, 0.0, ())
        ]
        best: dict[tuple[int, bool], list[int]] = {}  # the peaks with which a layout was reached, falling
        pushed = looked = 0
        while heap:
            _, length, held, current, done, _, seconds, steps = heappop(heap)
            reached = best.setdefault((current, done), [])
            if reached and (not both or reached[-1] <= held):
                continue
            reached.append(held)
            if current == _TARGET:
                if done:
                    yield self._route(seconds, steps)
                continue
            spent = looked >= self.most  # then straight to the target
            self.exact = self.exact and not spent
            for following in (_TARGET,) if spent else range(_TARGET, len(every)):
                if seconds + aside[following] >= limit or following == current or (current, following) == without:
                    continue
                looked += 1
                taken, step = price(every[current], every[following])
                total = seconds + taken + left[following]
                if total >= limit or step is None:
                    continue
                now = held
                if both:
                    now = max(held, peak(step, self.source, self.target, current == _SOURCE, following == _TARGET))
                if now <= most:
                    pushed += 1
                    kinds = done or step.kind == kind
                    heappush(heap, (total, length + 1, now, following, kinds, pushed, seconds + taken, (*steps, step)))


@memoized(8)
def _prices(item: int, machine: Machine) -> Callable[[Distribution, Distribution], tuple[float, Step | None]]:
    """The price list of a machine: the one step between two layouts, and the seconds that it takes."""

    @memoized(65536)
    def price(before: Distribution, after: Distribution) -> tuple[float, Step | None]:
        step = one_step(before, after)
        return (duration(step, item, machine).seconds, step) if step else (0.0, None)

    return price


@memoized(8)
def _bounds(item: int, machine: Machine) -> Callable[[Distribution, Distribution], float]:
    """The seconds that it takes at least from one layout to another."""

    @memoized(65536)
    def bound(before: Distribution, after: Distribution) -> float:
        return at_least(before, after, item, machine)

    return bound
