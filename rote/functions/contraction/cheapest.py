"""The cheapest contraction of all that fit into memory, on one of several grids.

The searches give complete contractions in the order of lower bounds, twice: of their seconds, until no bound is below
the least price; then of the bytes received, among those that take about as long, until no bound is below the fewest,
or, where an operand's layout is given, until every bound is above them: of those that receive as much, the one that
holds least wins. Grids of few modes are searched first, and what is found there ends the search on the others early.
Where ranks may not hold much, the products that need more are cut into panels:

    ij     4 panels of k:  [ik][ik][ik][ik]  x  [kj][kj][kj][kj]        one of each is moved, multiplied, and dropped
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import inf
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from ...errors import PlanError
from ...layout.distribution import Distribution
from .assignment import refined
from .memory import Need, bytes_of, move_need, peaks, product_need, while_moving
from .panels import most_panels, panel_dists, panels_of
from .search import Search
from .tree import Node, Request, UnplannedMove, operand_dists, unplanned

__all__ = ["cheapest_of", "cheapest_within"]

_ABOUT = 1.1  # where layouts are chosen, a contraction may take so much longer to receive less
_SAME = 1 + 1e-9  # of sums of the same times in another order
_Buffers = Literal["none", "as ends", "planned"]  # of moves: not counted, guessed as large as both ends, or planned


def cheapest_of(requests: Sequence[Request]) -> tuple[Search, Node]:
    """The cheapest contraction that answers one of some requests, which may differ in the grid.

    Of those that take as long, it is one whose ranks receive least, and then hold least. If all operands may lie where
    they like, they also lie there for other uses, so a contraction that receives less may take up to a tenth longer.

    Raises:
        PlanError: every contraction needs more than `max_bytes` on a rank, or tensors lie in too many pieces.
    """
    most = requests[0].max_bytes
    searches = [Search(request._replace(max_bytes=None)) for request in requests]
    cheapest, peak = cheapest_within(searches)

    # A limit that the cheapest of all keeps changes nothing: only what exceeds it is worth a search with memory.
    if cheapest is not None and most is not None and _counted(*cheapest).peak > most:
        cheapest, peak = cheapest_within([search.within(most) for search in searches])
    if cheapest is not None:
        return cheapest

    # The error names a number that suffices. What did not fit was not looked at further, so memory grows step by step.
    within = most or 0
    while cheapest is None:
        if not peak:
            raise PlanError(
                "no contraction is found: tensors lie in too many pieces\nredistribute them to blocks first"
            )
        within = max(peak, within * 6 // 5)
        cheapest, peak = cheapest_within([search.within(within) for search in searches])
    raise PlanError(
        f"no contraction keeps within max_bytes={most}; one was found that needs {peak}\n"
        f"write max_bytes={peak} or more, or take more ranks"
    )


def cheapest_within(searches: Sequence[Search]) -> tuple[tuple[Search, Node] | None, int]:
    """The cheapest contraction that fits into memory, and its peak; or None, and the least peak that was too high."""
    request = searches[0].original
    most, free = request.max_bytes, not any(request.layouts)
    about = _ABOUT if free else _SAME
    too_high = list[int]()

    def fitted(search: Search, node: Node, below: float) -> _Priced | None:
        """A contraction, in panels where it must be, if it fits and takes less than some seconds."""
        memory = 0
        if most is not None:
            if search.floor(node) >= below:  # in panels it takes longer
                return None
            node, memory = _fitted(search, node, below)
            if memory > most:
                too_high.append(memory)
                return None

        seconds = search.priced(node, below)
        return None if seconds == inf else _Priced(search.received(node), seconds, search, node, memory)

    # The least seconds come first: what is found on one grid ends the search on the next ones early.
    fastest, least = None, inf
    for search in searches:
        search.begin(about * least)
        for bound, node in search.fastest():
            if bound >= least:
                break
            faster = fitted(search, node, least)
            if faster is not None:
                fastest, least = faster, faster.seconds

    if fastest is None:
        return None, min(too_high, default=0)

    # Of those that take about as long, most are never priced, because they receive more.
    best = fastest

    def may_be(seconds: float, received: float) -> bool:
        less = received < best.received[0] if free else received <= best.received[0]  # in a tie, memory counts
        return less and seconds < about * least

    for search in searches:
        for received, node in search.sparest(may_be):
            if not may_be(0.0, received):
                break
            other = fitted(search, node, about * least)
            if other is not None and other[:2] < best[:2]:
                best = other

    return (best.search, best.node), best.memory


class _Priced(NamedTuple):
    """A complete contraction: what its ranks receive and then hold, its seconds, its search, and its peak."""

    received: tuple[int, int]
    seconds: float
    search: Search
    node: Node
    memory: int


def _fitted(search: Search, tree: Node, below: float) -> tuple[Node, int]:
    """A complete contraction whose ranks never hold more than `max_bytes`, if it can be cut into panels that do not.

    Each product that needs too much is cut along the letter with which the contraction is fastest, into the fewest.

    Args:
        below: the seconds from which on it takes too long.

    Returns:
        The contraction, and the most bytes that a rank holds; at least these, if they are too many.
    """
    while True:
        count = _counted(search, tree, "none")  # without buffers first: no move is planned for what never fits
        if count.fault is None:
            count = _counted(search, tree)
        if count.fault is None or count.is_stuck:
            return tree, count.peak

        letters = dict.fromkeys("".join([factor.term for factor in count.fault.factors]))
        attempts = [_in_panels(search, tree, count.fault, letter, below) for letter in letters]
        cuts = [cut for cut in attempts if cut is not None]
        fitting = [node for node, needed in cuts if not needed.is_stuck]
        if not fitting:
            return min([(tree, count.peak), *[(node, needed.peak) for node, needed in cuts]], key=itemgetter(1))

        times = [search.floor(node) for node in fitting] if len(fitting) > 1 else [0.0]
        tree = next(node for node, time in zip(fitting, times, strict=True) if time <= min(times) * _SAME)


def _in_panels(search: Search, tree: Node, product: Node, letter: str, below: float) -> tuple[Node, _Count] | None:
    """A tree with a product in the fewest panels of a letter with which it fits, and the memory for it.

    None if the letter is not cut, or that takes too long. The number of panels is found in three steps, because it is
    expensive to plan the moves of each number that is tried:

    1. the most panels without buffers of moves; if not even these fit, the number is the most;
    2. a guess, with buffers as large as both ends of a move, as those of allgathers are;
    3. planned moves, from the guess upwards or downwards.
    """
    assert product.dist is not None  # which only a free operand lacks
    extent, dist, term = search.extents[letter], product.dist, product.term
    final = search.final(dist) if tree is product else dist
    leaves = letter in term and dist.meaning != final.meaning and dist.grid == final.grid

    # The ends of all moves in panels, each with the mode of the letter. All must cut the letter alike.
    ends = [(term.index(letter), end) for end in (dist, final)] if leaves else []
    for factor, to in zip(product.factors, product.moved, strict=True):
        if letter in factor.term and to.shape[factor.term.index(letter)] == extent:
            ends += [(factor.term.index(letter), end) for end in (factor.dist or refined(to), to)]
    if extent < 2 or any(end.layout.view is not None for _, end in ends):
        return None

    modes = [end.splits[mode] for mode, end in ends]
    if letter in term:
        ends.append((term.index(letter), dist))
    most = most_panels(extent, modes)

    def cut(number: int) -> Node | None:
        """The tree with the product in panels; None if these are nowhere as a layout says."""
        panels = panels_of(letter, extent, number, modes)
        if not all(panel_dists(end, mode, panels, 1) for mode, end in ends):
            return None
        made = replace(product, panels=panels, dist=final, left=dist) if leaves else replace(product, panels=panels)
        return _replaced(tree, product, made)

    @cache
    def counted(number: int, buffers: _Buffers) -> tuple[Node, _Count] | None:
        node = cut(number)
        return None if node is None else (node, _counted(search, node, buffers))

    def fits(number: int, buffers: _Buffers = "planned") -> bool:
        attempt = counted(number, buffers)
        return attempt is not None and not attempt[1].is_stuck

    if not fits(most, "none"):  # no time is asked of what does not fit
        return counted(most, "none")

    number = _fewest(lambda number: fits(number, "as ends"), 2, most)
    guess = cut(number)
    if guess is None or search.floor(search.timed(tree, guess)) > below:
        return None

    if not fits(number):
        number = _fewest(fits, min(number + 1, most), most)
    elif number > 2 and fits(number - 1):
        number = _fewest(fits, 2, number - 1)

    attempt = counted(number, "planned")
    if attempt is None or attempt[1].is_stuck:
        return attempt
    return search.timed(tree, attempt[0]), attempt[1]


class _Count(NamedTuple):
    """The memory for a tree of products, counted until a product needs more than `max_bytes`.

    Attributes:
        peak: the most bytes that a rank holds.
        fault: the product that first needs too much; None if all fit.
    """

    peak: int
    fault: Node | None

    @property
    def is_stuck(self) -> bool:
        """Whether a product needs too much although it is in panels."""
        return self.fault is not None and self.fault.panels is not None


def _counted(search: Search, tree: Node, buffers: _Buffers = "planned") -> _Count:
    """The memory for a tree of products; unless the buffers of moves are planned, all panels count as the first one."""
    request, peak, owner = search.original, 0, tree  # the product whose need is counted
    most, fault = inf if request.max_bytes is None else request.max_bytes, None

    def moving(source: Distribution, target: Distribution, dtype: np.dtype[Any]) -> int:
        ends = bytes_of(source, dtype) + bytes_of(target, dtype)
        if source.meaning == target.meaning:
            return ends
        if buffers != "planned" or fault is not None:
            return 2 * ends if buffers == "as ends" else ends

        route = search.route((source, target, dtype.itemsize))
        return max(ends, while_moving(route.steps, route.peak * dtype.itemsize, dtype))

    def in_panels(move: UnplannedMove) -> int:
        ends = move.ends(None if buffers == "planned" else 1)
        return max([moving(source, target, move.dtype) for source, target in dict.fromkeys(ends)])

    def needs() -> Iterator[Need]:
        nonlocal owner
        for node, stage in unplanned(request, tree, search.final(tree.dist)):
            owner = node
            if isinstance(stage, UnplannedMove):
                value, _, dtype, source, target, _ = stage
                yield move_need(value, source, target, dtype, moving(source, target, dtype))
            else:
                blocks = [(move.ends(1)[0][1], move.dtype) for move in stage.takes]
                yield product_need(stage.product, stage.dtype, blocks, map(in_panels, stage.in_panels))

    # `peaks` draws one need before each of its counts, so that `owner` is the product of the count.
    for count in peaks([*map(bytes_of, operand_dists(request, tree), request.dtypes)], needs()):
        if fault is not None and owner is not fault:  # the fault is counted to its end
            break
        peak = max(peak, count)
        if count > most:
            fault = owner
    return _Count(peak, fault)


def _replaced(tree: Node, old: Node, new: Node) -> Node:
    """A tree with another product."""
    if tree is old:
        return new
    return replace(tree, factors=tuple([_replaced(factor, old, new) for factor in tree.factors]))


def _fewest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The least number from one to another that fits, if all greater ones do, as the greatest does."""
    # Up in doubled steps, so that a fit of few is never paid by a try of many; then by halves.
    low, high = least, least
    while high < most and not fits(high):
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return high
