"""The cheapest contraction of all that fit into memory, on one of several grids.

Complete contractions come from the searches in the order of their lower bounds, and the first price that no later bound
is below ends the choice. Where ranks may not hold much, the products that need more are cut into panels:

    ij     4 panels of k:  [ik][ik][ik][ik]  x  [kj][kj][kj][kj]        one of each is moved, multiplied, and dropped
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

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


def cheapest_of(requests: Sequence[Request]) -> tuple[Search, Node]:
    """The cheapest contraction that answers one of some requests, which may differ in the grid.

    Of those that take as long, it is one whose ranks receive least, and then hold least. If all operands may lie where
    they like, they also lie there for other uses, so a contraction that receives less may take up to a tenth longer.

    Raises:
        PlanError: every contraction needs more than `max_bytes` on a rank.
    """
    cheapest, peak = cheapest_within([*map(Search, requests)])
    if cheapest is not None:
        return cheapest

    # The error names a number that suffices. What did not fit was not looked at further, so memory grows step by step.
    most = within = requests[0].max_bytes or 0
    while cheapest is None:
        if not peak:
            raise PlanError(
                "no contraction is found: tensors lie in too many pieces\nredistribute them to blocks first"
            )
        within = max(peak, within * 6 // 5)
        cheapest, peak = cheapest_within([Search(request._replace(max_bytes=within)) for request in requests])
    raise PlanError(
        f"no contraction keeps within max_bytes={most}; one was found that needs {peak}\n"
        f"write max_bytes={peak} or more, or take more ranks"
    )


def cheapest_within(searches: Sequence[Search]) -> tuple[tuple[Search, Node] | None, int]:
    """The cheapest contraction that fits into memory, and its peak; or None, and the least peak that was too high."""

    def rows(search: Search) -> Iterator[tuple[float, Search, Node]]:
        return ((bound, search, node) for bound, node in search.ranked())

    request = searches[0].original
    about, most = _SAME if any(request.layouts) else _ABOUT, request.max_bytes

    # The best is not the fastest if it receives less, in at most `about` times the least seconds.
    least, seconds, received = inf, inf, (inf, inf)
    best, peak = None, 0
    too_high = list[int]()
    for bound, search, node in merge(*map(rows, searches), key=lambda row: row[0]):
        if bound >= about * least:
            break

        memory = 0
        if most is not None:
            if search.floor(node) >= about * least:  # in panels it takes longer
                continue
            node, memory = _fitted(search, node, about * least)
            if memory > most:
                too_high.append(memory)
                continue

        # One that receives less may take longer than the best; one that does not must be clearly faster.
        lower = search.least_received(node)
        receives_less = lower <= received[0] if about == _SAME else lower < received[0]  # in a tie, memory counts
        time = search.priced(node, about * least if receives_less else seconds / about)
        if time == inf:
            continue

        least, volumes = min(least, time), search.received(node)
        if volumes < received or time < seconds / about:
            seconds, received, best, peak = time, volumes, (search, node), memory

    return best, peak if best is not None else min(too_high, default=0)


def _fitted(search: Search, tree: Node, below: float) -> tuple[Node, int]:
    """A complete contraction whose ranks never hold more than `max_bytes`, if it can be cut into panels that do not.

    Each product that needs too much is cut along the letter with which the contraction is fastest, into the fewest.

    Args:
        below: the seconds from which on it takes too long.

    Returns:
        The contraction, and the most bytes that a rank holds; at least these, if they are too many.
    """
    while True:
        count = _counted(search, tree, 0.0)  # without buffers first: no move is planned for what never fits
        if count.fault is None:
            count = _counted(search, tree)
        if count.fault is None or count.is_stuck:
            return tree, count.peak

        letters = dict.fromkeys("".join([factor.term for factor in count.fault.factors]))
        attempts = [_in_panels(search, tree, count.fault, letter, below) for letter in letters]
        cuts = [cut for cut in attempts if cut is not None]
        fitting = [node for node, memory in cuts if not memory.is_stuck]
        if not fitting:
            return min([(tree, count.peak), *[(node, memory.peak) for node, memory in cuts]], key=itemgetter(1))

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

    def fits(number: int, buffers: float | None = None) -> bool:
        node = cut(number)
        return node is not None and not _counted(search, node, buffers).is_stuck

    number, buffers = most, 0.0 if not fits(most, 0.0) else None
    if buffers is None:
        number = _fewest(lambda number: fits(number, 1.0), 2, most)
        guess = cut(number)
        if guess is None or search.floor(search.timed(tree, guess)) > below:
            return None

        if not fits(number):
            number = _fewest(fits, min(number + 1, most), most)
        elif number > 2 and fits(number - 1):
            number = _fewest(fits, 2, number - 1)

    node = cut(number)
    return None if node is None else (search.timed(tree, node), _counted(search, node, buffers))


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


def _counted(search: Search, tree: Node, buffers: float | None = None) -> _Count:
    """The memory for a tree of products.

    Args:
        buffers: to guess moves instead of planning them: with buffers of so many times their ends, and with all panels
            like the first one.
    """
    request, peak, owner = search.original, 0, tree  # the product whose need is counted
    most, fault = inf if request.max_bytes is None else request.max_bytes, None

    def moving(source: Distribution, target: Distribution, dtype: np.dtype[Any]) -> int:
        ends = bytes_of(source, dtype) + bytes_of(target, dtype)
        if source.meaning == target.meaning:
            return ends
        if buffers is not None or fault is not None:
            return int(ends * (1 + (buffers or 0)))

        route = search.route((source, target, dtype.itemsize))
        return max(ends, while_moving(route.steps, route.peak * dtype.itemsize, dtype))

    def in_panels(move: UnplannedMove) -> int:
        ends = move.ends(None if buffers is None else 1)
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
