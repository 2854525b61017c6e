"""The search for a cheapest plan: A* over layouts, in which every edge is one step.

The bound of `cost.at_least` never says too much, so that the first walk to reach the target is a cheapest one. Where
memory counts as well, a layout keeps every way to it that no other beats in both seconds and peak. Everything is
ordered by the numbers of the layouts: all ranks find the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from ..layout.distribution import Distribution
from .cost import at_least, pace, peak
from .machine import Machine
from .rules import one_step
from .space import layouts
from .step import Step
from .traffic import block_sizes

__all__ = ["Search", "Walk"]

Edge = tuple[int, int]

_SOURCE, _TARGET = 0, 1  # the numbers of the two ends among the layouts
_SAME = 1e-12  # relative: sums of the same times in another order


@dataclass(frozen=True, slots=True)
class Walk:
    """Steps that lead from the source to the target, what they take, and the most elements that a rank holds."""

    seconds: float
    peak: int
    steps: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Search:
    """The layouts between two distributions, and the steps between them as far as they were looked at.

    Attributes:
        item: bytes of an element.
        most: so many steps are priced; then what was found is the best found.
        exact: whether all layouts and steps that could matter were looked at.
    """

    source: Distribution
    target: Distribution
    item: int
    machine: Machine
    most: int = 10_000
    exact: bool = True
    _layouts: tuple[Distribution, ...] = ()
    _bounds: dict[int, float] = field(default_factory=dict)
    _edges: dict[Edge, Walk] = field(default_factory=dict)

    def cheapest(self) -> Walk:
        """A cheapest walk; of several the one with the fewest steps."""
        direct = self.direct()
        # Two steps take at least this, whatever lies between them.
        two = self.machine.step_time + at_least(self.source, self.target, self.item, self.machine)
        if not direct.steps or direct.seconds <= two * (1 + _SAME):
            return direct
        return next(self._walks(below=direct.seconds), direct)

    def within(self, most: int) -> Walk | None:
        """A cheapest walk of those that never hold more than `most` elements on a rank."""
        return next(self._walks(both=True, most=most), None)

    def front(self) -> list[Walk]:
        """The walks that no other beats in both seconds and peak, the fastest first."""
        found: list[Walk] = []
        for walk in self._walks(both=True):
            if not found or walk.peak < found[-1].peak:
                found.append(walk)
        return found

    def least_peak(self) -> int:
        """The least that a rank must hold, of all walks."""
        return min(walk.peak for walk in self.front())

    def with_kind(self, kind: str) -> Walk | None:
        """A cheapest walk that has a step of some kind."""
        return next(self._walks(kind=kind), None)

    def next_to(self, walk: Walk) -> Walk | None:
        """A cheapest walk other than the one given."""
        found: list[Walk] = []
        for step in walk.steps:
            left_out = self._number(step.before), self._number(step.after)
            found += [other for other in (next(self._walks(without=left_out), None),) if other]
        return min(found, key=lambda other: (other.seconds, len(other.steps), other.peak), default=None)

    def direct(self) -> Walk:
        """The walk of one step (of none if there is nothing to do)."""
        return self._edge(_SOURCE, _TARGET)

    def _number(self, dist: Distribution) -> int:
        return next(n for n, other in enumerate(self._all()) if other.meaning == dist.meaning)

    def _all(self) -> tuple[Distribution, ...]:
        if not self._layouts:
            self._layouts, exact = layouts(self.source, self.target)
            self.exact = self.exact and exact
        return self._layouts

    def _edge(self, a: int, b: int) -> Walk:
        """One step, with what it takes and what ranks hold during it."""
        if (a, b) not in self._edges:
            ends = (self.source, self.target)
            before, after = (ends[n] if n <= _TARGET else self._all()[n] for n in (a, b))
            step = one_step(before, after)
            if step is None:
                self._edges[a, b] = Walk(0.0, int((block_sizes(before) + block_sizes(after)).max()), ())
            else:
                held = peak(step, *ends, a == _SOURCE, b == _TARGET)
                self._edges[a, b] = Walk(pace(step, self.item, self.machine).seconds, held, (step,))
        return self._edges[a, b]

    def _left(self, number: int) -> float:
        """Seconds that it takes at least from a layout to the target."""
        if number not in self._bounds:
            self._bounds[number] = at_least(self._all()[number], self.target, self.item, self.machine)
        return self._bounds[number]

    def _walks(
        self,
        below: float = inf,
        *,
        both: bool = False,
        most: float = inf,
        kind: str | None = None,
        without: Edge | None = None,
    ) -> Iterator[Walk]:
        """Walks to the target, by seconds: the first, and, if `both` count, all that need less memory.

        Args:
            below: seconds that they must stay below.
            most: elements that no rank may hold more of.
            kind: of a step that they must have.
            without: a step that they must not have.
        """
        if not self.direct().steps:
            if kind is None and without is None and self.direct().peak <= most:
                yield self.direct()
            return
        number = len(self._all())
        limit = below * (1 - _SAME) if below < inf else inf
        heap: list[tuple[float, int, int, int, bool, int, Walk]] = [
            (self._left(_SOURCE), 0, 0, _SOURCE, kind is None, 0, Walk(0.0, 0, ()))
        ]
        best: dict[tuple[int, bool], list[int]] = {}  # the peaks with which a layout was reached, falling
        pushed = 0
        while heap:
            _, length, _, here, done, _, walk = heappop(heap)
            reached = best.setdefault((here, done), [])
            if reached and (not both or reached[-1] <= walk.peak):
                continue
            reached.append(walk.peak)
            if here == _TARGET:
                if done:
                    yield walk
                continue
            spent = len(self._edges) >= self.most  # then straight to the target
            self.exact = self.exact and not spent
            for there in (_TARGET,) if spent else range(_TARGET, number):
                if there == here or (here, there) == without:
                    continue
                if walk.seconds + self.machine.step_time + self._left(there) >= limit:
                    continue
                edge = self._edge(here, there)
                seconds, held = walk.seconds + edge.seconds, max(walk.peak, edge.peak)
                total = seconds + self._left(there)
                if total >= limit or held > most:
                    continue
                pushed += 1
                now = done or edge.steps[0].kind == kind
                longer = Walk(seconds, held, walk.steps + edge.steps)
                heappush(heap, (total, length + 1, held, there, now, pushed, longer))
