"""Memory: the bytes that a rank holds at most while a contraction runs.

A rank holds, at each stage,

    the operands, as they are given, to the end
    the tensors that earlier stages made and later ones take
    what the stage makes
    the buffers of its moves; in panels, those of a panel of each tensor that moves
    the packed copies of a product, whose blocks are not matrices in memory as they lie

Each stage is told by its `Need`, and `peaks` adds them up: for stages that are planned (`stage_needs`), and for a tree
of products that may still have to be cut into panels (`Fitting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ...compiler.plan import Plan
from ...compiler.step import Step
from ...layout.distribution import Distribution
from .assignment import refined
from .local import LocalProduct
from .panels import most_panels, panels_of, pieces
from .search import Search
from .stages import Move, Stage
from .tree import Node, UnplannedMove, places, unplanned

__all__ = ["Fitting", "Need", "bytes_of", "peaks", "stage_needs"]

_SAME = 1 + 1e-9  # of sums of the same times in another order

Tensor = tuple[Distribution, np.dtype[Any]]


class Need(NamedTuple):
    """What a stage does to the memory of a rank.

    Attributes:
        uses: the numbers of the tensors that it takes.
        made: the bytes of the tensor that it makes.
        more: the bytes that it needs beside them.
    """

    uses: tuple[int, ...]
    made: int
    more: int


def bytes_of(dist: Distribution, dtype: np.dtype[Any]) -> int:
    """The most bytes of a tensor that a rank holds."""
    return prod(dist.max_local_shape()) * dtype.itemsize


def peaks(given: Sequence[int], needs: Iterable[Need]) -> Iterator[int]:
    """The most bytes that a rank holds before and during each stage, from the bytes of the operands and the needs.

    >>> [*peaks([10, 10], [Need((0,), 40, 5), Need((2, 1), 20, 0)])]
    [20, 65, 80]
    """
    live, sizes = sum(given), dict[int, int]()
    yield live
    for number, need in enumerate(needs, len(given)):
        live += need.made
        yield live + need.more
        sizes[number] = need.made
        live -= sum([sizes.pop(value, 0) for value in need.uses])  # operands stay


# --- what a stage needs -----------------------------------------------------------------------------------------------


def _moving(steps: Sequence[Step], peak: int, dtype: np.dtype[Any]) -> int:
    """The most bytes that a rank holds during a move, whose plan counts `peak`.

    A reduction to all ranks has a copy of each rank's contribution, which the others read, or MPI's own buffer.
    """
    copies = [bytes_of(step.before, dtype) for step in steps if step.kind == "allreduce"]
    return peak + max(copies, default=0)


def stage_needs(stages: Sequence[Stage], values: Sequence[Tensor]) -> Iterator[Need]:
    """The needs of planned stages.

    Args:
        values: how each tensor lies, and its dtype: the operands, and what each stage makes.
    """

    def moving(plan: Plan) -> int:
        return _moving(plan.steps, plan.cost.peak_bytes, plan.dtype)

    for stage, made in zip(stages, values[len(values) - len(stages) :], strict=True):
        size = bytes_of(*made)
        if isinstance(stage, Move):
            yield Need((stage.value,), size, moving(stage.plan) - size - bytes_of(*values[stage.value]))
            continue
        if stage.is_diagonal:
            yield Need(stage.values, size, size)
            continue
        ends, dtypes = zip(*[values[value] for value in stage.values], strict=True)
        plans = [[*dict.fromkeys(each)] for each in stage.plans or ((),) * len(ends)]
        shapes = [(each[0].target if each else dist).max_local_shape() for dist, each in zip(ends, plans, strict=False)]
        local = LocalProduct(shapes, stage.terms, dtypes, stage.term, made[1])
        more = local.held(stage.panels.letter if stage.panels else "")
        yield Need(stage.values, size, more + sum([max(map(moving, each)) for each in plans if each]))


# --- trees of products ------------------------------------------------------------------------------------------------


class Fitting:
    """Cuts the products of a contraction into panels, so that a rank never holds more than `max_bytes`."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.most: float = inf if search.request.max_bytes is None else search.request.max_bytes

    def __call__(self, tree: Node, below: float = inf) -> tuple[Node, int]:
        """A complete contraction, where it has to be in the fewest panels of the letters with which it is fastest.

        Args:
            below: the seconds from which on it takes too long.

        Returns:
            The contraction, and the most bytes that a rank holds; at least these, if they are too many.
        """
        while True:
            count = self._count(tree, 0.0)
            if count.fault is None:
                count = self._count(tree)
            if count.fault is None or count.is_stuck:
                return tree, count.peak
            letters = dict.fromkeys("".join([part.term for part in count.fault.parts]))
            ways = [way for letter in letters for way in self._in_panels(tree, count.fault, letter, below)]
            fitting = [way for way, found in ways if not found.is_stuck]
            if not fitting:
                return min([(tree, count.peak), *[(way, found.peak) for way, found in ways]], key=itemgetter(1))
            times = [self.search.floor(way) for way in fitting] if len(fitting) > 1 else [0.0]
            tree = next(way for way, each in zip(fitting, times, strict=True) if each <= min(times) * _SAME)

    def _count(self, tree: Node, buffers: float | None = None) -> _Count:
        return _Count(self.search, tree, self.most, buffers)

    def _in_panels(self, tree: Node, product: Node, letter: str, below: float) -> Iterator[tuple[Node, _Count]]:
        """A tree with a product in the fewest panels of a letter with which it fits, and the memory for it.

        None if the letter is not cut, or that takes too long. The number is guessed first, with buffers of moves that
        are as large as both ends, as those of allgathers are. If not even panels without buffers fit, it is the most.
        """
        assert product.dist is not None  # which only a free operand lacks
        extent, lies, term = self.search.extents[letter], product.dist, product.term
        final = self.search.final(lies) if tree is product else lies
        leaves = letter in term and lies.meaning != final.meaning and lies.grid == final.grid
        ends = [(term.index(letter), end) for end in (lies, final)] if leaves else []
        for part, to in zip(product.parts, product.moved, strict=True):
            if letter in part.term and to.shape[part.term.index(letter)] == extent:
                ends += [(part.term.index(letter), end) for end in (part.dist or refined(to), to)]
        if extent < 2 or any(end.layout.view is not None for _, end in ends):
            return
        modes = [end.splits[mode] for mode, end in ends]
        ends += [(mode, lies) for mode, each in enumerate(term) if each == letter]
        most = most_panels(extent, modes)

        def cut(number: int) -> Node | None:
            """The tree with the product in panels; None if these are nowhere as a layout says."""
            panels = panels_of(letter, extent, number, modes)
            if not all(pieces(end, mode, panels, 1) for mode, end in ends):
                return None
            made = replace(product, panels=panels, dist=final, left=lies) if leaves else replace(product, panels=panels)
            return _replaced(tree, product, made)

        def fits(number: int, buffers: float | None = None) -> bool:
            found = cut(number)
            return found is not None and not self._count(found, buffers).is_stuck

        number, buffers = most, 0.0 if not fits(most, 0.0) else None
        if buffers is None:
            number = _fewest(lambda number: fits(number, 1.0), 2, most)
            guess = cut(number)
            if guess is None or self.search.floor(self.search.timed(tree, guess)) > below:
                return
            if not fits(number):
                number = _fewest(fits, min(number + 1, most), most)
            elif number > 2 and fits(number - 1):
                number = _fewest(fits, 2, number - 1)
        found = cut(number)
        if found is not None:
            yield self.search.timed(tree, found), self._count(found, buffers)


class _Count:
    """The memory for a tree of products, counted until a product needs too much.

    Args:
        buffers: to guess moves instead of planning them: with buffers of so many times their ends, and with all panels
            like the first one.

    Attributes:
        peak: the most bytes that a rank holds.
        fault: the product that first needs more than `most`; None if all fit.
    """

    def __init__(self, search: Search, tree: Node, most: float, buffers: float | None) -> None:
        self._search, self._buffers, self._owner = search, buffers, tree  # of the need that is counted
        given = search.given
        self.peak: int = 0
        self.fault: Node | None = None
        for held in peaks([*map(bytes_of, places(given, tree), given.dtypes)], self._needs(tree)):
            if self.fault is not None and self._owner is not self.fault:
                break
            self.peak = max(self.peak, held)
            if held > most:
                self.fault = self._owner

    @property
    def is_stuck(self) -> bool:
        """Whether a product needs too much although it is in panels."""
        return self.fault is not None and self.fault.panels is not None

    def _needs(self, tree: Node) -> Iterator[Need]:
        search, first = self._search, None if self._buffers is None else 1
        for self._owner, stage in unplanned(search.given, tree, search.final(tree.dist)):
            if isinstance(stage, UnplannedMove):
                size = bytes_of(stage.target, stage.dtype)
                more = self._moving(stage) - size - bytes_of(stage.source, stage.dtype)
                yield Need((stage.value,), size, more)
                continue
            node, size = stage.node, bytes_of(stage.result, stage.node.dtype)
            values, terms, dtypes, *_ = zip(*stage.takes, strict=True)
            if node.operand >= 0:
                yield Need(values, size, size)
                continue
            shapes = [move.pieces(1)[0][1].max_local_shape() for move in stage.takes]
            local = LocalProduct(shapes, terms, dtypes, node.term, node.dtype)
            more = local.held(node.panels.letter if node.panels else "")
            yield Need(values, size, more + sum([self._moving(move, first) for move in stage.in_panels]))

    def _moving(self, move: UnplannedMove, first: int | None = None) -> int:
        """The most bytes that a rank holds during a move; in panels, during that of the panel with most of them."""
        return max([self._held(*ends, move.dtype) for ends in dict.fromkeys(move.pieces(first))])

    def _held(self, source: Distribution, target: Distribution, dtype: np.dtype[Any]) -> int:
        ends, moves = bytes_of(source, dtype) + bytes_of(target, dtype), source.meaning != target.meaning
        if not moves or self._buffers is not None or self.fault is not None:
            return int(ends * (1 + (self._buffers or 0) * moves))
        route = self._search.route(source, target, dtype)
        return max(ends, _moving(route.steps, route.peak * dtype.itemsize, dtype))


def _replaced(tree: Node, old: Node, new: Node) -> Node:
    """A tree with another product."""
    return new if tree is old else replace(tree, parts=tuple([_replaced(part, old, new) for part in tree.parts]))


def _fewest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The least number from one to another that fits, if all greater ones do, as the greatest does."""
    low, high = least, least
    while high < most and not fits(high):
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return high
