"""Print how far plans are from the lower bound: Rote's, those of ROTE's planner, and gather-then-slice.

    python tests/compiler/ratios.py

Over all ordered pairs of distinct elemental-cyclic layouts. What the pipelines move is counted here from the index sets
of `Distribution.indices`, without the compiler; what Rote moves is what its plans claim. Pairs that differ only by the
names of tensor modes or grid modes of the same extent are one problem: Rote plans one pair of each class. The
pipelines, which go by the numbers of the modes, walk from every layout to every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, permutations, product
from math import prod

import numpy as np
import numpy.typing as npt
from pipelines import gather_walk, layouts, rote_walk

import rote
from rote.compiler.plan import Plan
from rote.compiler.step import LOCAL
from rote.layout.distribution import Distribution
from rote.layout.expressions import L
from rote.layout.layout import Layout
from rote.machines.machine import Machine

__all__ = ["BYTES_ONLY", "CASES", "Case", "Share", "planned", "table"]

Ints = npt.NDArray[np.int64]

BYTES_ONLY = Machine(latency=0, byte_time=1e-9, copy_time=0, reduce_time=0)
"""A machine on which a plan takes as long as its bytes."""

GRIDS = ((2, 2), (2, 3), (2, 2, 2), (2, 3, 2))
SHAPES = ((12, 12), (7, 5), (12, 12, 12), (7, 7, 7))
"""Of order 2 and 3: one shape that every split divides, and one that none does."""


@dataclass(frozen=True)
class Case:
    """All layouts of tensors of one shape on one grid, numbered, and what movements between them bring to each rank.

    >>> case = Case((4, 4), (2, 2))
    >>> len(case.layouts), case.received(rote_walk(*(rote.parse(text) for text in ("[(0),(1)]", "[(1),(0)]"))))
    (11, 8)
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        return layouts(len(self.shape), len(self.grid))

    @cached_property
    def distributions(self) -> dict[Layout, Distribution]:
        return {layout: layout.on(self.shape, self.grid) for layout in self.layouts}

    @cached_property
    def numbers(self) -> dict[Layout, int]:
        return {layout: number for number, layout in enumerate(self.layouts)}

    @cached_property
    def lacks(self) -> Ints:
        """At [a, b, rank]: the elements that a rank needs under layout b and does not hold under layout a."""
        ranks, size = prod(self.grid), prod(self.shape)
        holds = np.zeros((ranks, len(self.layouts), size), np.float32)  # whole numbers, and products at BLAS's speed
        for number, dist in enumerate(self.distributions.values()):
            for rank in range(ranks):
                mask = holds[rank, number].reshape(self.shape)
                mask[np.ix_(*dist.indices(rank))] = 1
        common = (holds @ holds.transpose(0, 2, 1)).astype(np.int64)
        needed = np.diagonal(common, axis1=1, axis2=2)
        return np.ascontiguousarray((needed[:, None, :] - common).transpose(1, 2, 0))

    @cached_property
    def classes(self) -> Ints:
        """At [a, b]: the number of the class of pairs that are this one by other names, first pair * layouts + second.

        Tensor modes may be renamed among those of the same extent, and so may grid modes.
        """
        number = len(self.layouts)
        renamed = np.array(
            [
                [self.numbers[_rename(layout, modes, grid_modes)] for layout in self.layouts]
                for modes, grid_modes in product(_renamings(self.shape), _renamings(self.grid))
            ]
        )
        found: Ints = (renamed[:, :, None] * number + renamed[:, None, :]).min(axis=0)
        return found

    def alike(self, source: Layout, target: Layout) -> tuple[Layout, Layout]:
        """The first pair of the class of this one."""
        a, b = divmod(int(self.classes[self.numbers[source], self.numbers[target]]), len(self.layouts))
        return self.layouts[a], self.layouts[b]

    def pairs(self) -> Iterator[tuple[Layout, Layout]]:
        """All ordered pairs of distinct layouts."""
        return permutations(self.layouts, 2)

    def least(self, source: Layout, target: Layout) -> int:
        """The lower bound: the most elements that any one rank needs and lacks."""
        return int(self.lacks[self.numbers[source], self.numbers[target]].max())

    def received(self, walk: Iterable[Layout]) -> int:
        """The most elements that any one rank receives on a walk."""
        return int(np.sum(self._steps(walk), axis=0).max())

    def communicating(self, walk: Iterable[Layout]) -> int:
        """The number of steps in which some rank receives something."""
        return sum(bool(step.any()) for step in self._steps(walk))

    def _steps(self, walk: Iterable[Layout]) -> list[Ints]:
        numbers = [self.numbers[layout] for layout in walk]
        return [self.lacks[a, b] for a, b in pairwise(numbers)]


@dataclass(frozen=True, slots=True)
class Share:
    """What a way to plan costs over all pairs.

    Attributes:
        more: the part of all pairs for which it moves more than the lower bound.
        mean, worst: of the ratio to the lower bound, where that is not 0.
        steps: mean number of steps in which ranks communicate.
    """

    more: float
    mean: float
    worst: float
    steps: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} / {self.worst:.2f} / {self.steps:.2f}"


def shares(case: Case, way: Callable[[Case, Layout, Layout], tuple[int, int]]) -> Share:
    """A way to plan gives the elements received and the number of communicating steps."""
    found = np.array([(*way(case, a, b), case.least(a, b)) for a, b in case.pairs()])
    received, steps, least = found.T
    ratios = received[least > 0] / least[least > 0]
    return Share(float((received > least).mean()), float(ratios.mean()), float(ratios.max()), float(steps.mean()))


def _renamings(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The permutations that change no extent."""
    order = range(len(extents))
    return [names for names in permutations(order) if all(extents[names[k]] == extents[k] for k in order)]


def _rename(layout: Layout, modes: tuple[int, ...], grid_modes: tuple[int, ...]) -> Layout:
    return L(*(tuple(grid_modes[entry.grid_mode] for entry in layout.modes[m]) for m in modes))


@cache
def planned(case: Case, source: Layout, target: Layout) -> Plan:
    """Rote's plan for 8-byte elements where bytes alone count."""
    return rote.compile(case.distributions[source], case.distributions[target], "f8", machine=BYTES_ONLY)


def ours(case: Case, source: Layout, target: Layout) -> tuple[int, int]:
    """By `rote.compile`."""
    plan = planned(case, *case.alike(source, target))
    return plan.cost.bytes // plan.dtype.itemsize, sum(step.kind not in LOCAL for step in plan.steps)


def by_rote(case: Case, source: Layout, target: Layout) -> tuple[int, int]:
    """By ROTE's planner."""
    walk = rote_walk(source, target)
    return case.received(walk), case.communicating(walk)


def by_gather(case: Case, source: Layout, target: Layout) -> tuple[int, int]:
    """By gather-then-slice."""
    walk = gather_walk(source, target)
    return case.received(walk), case.communicating(walk)


def table() -> str:
    """A table in Markdown: per way the mean and the worst ratio to the lower bound, and the mean number of steps."""
    lines = ["| tensor | grid | pairs | Rote | ROTE | gather, slice |", "|---|---|--:|--:|--:|--:|"]
    for case in CASES:
        shape, grid = ("x".join(map(str, extents)) for extents in (case.shape, case.grid))
        number = len(case.layouts) * (len(case.layouts) - 1)
        cells = " | ".join(str(shares(case, way)) for way in (ours, by_rote, by_gather))
        lines.append(f"| {shape} | {grid} | {number} | {cells} |")
    return "\n".join(lines)


CASES = tuple(Case(shape, grid) for shape in SHAPES for grid in GRIDS)

if __name__ == "__main__":
    print(table())
