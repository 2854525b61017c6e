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
from .panels import most_panels, panels_of, pieces
from .search import Search
from .tree import Node, Request, UnplannedMove, places, unplanned

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
    found, peak = cheapest_within([*map(Search, requests)])
    if found is None:
        most = within = requests[0].max_bytes or 0
        while found is None:  # what did not fit was not looked at further, so memory grows step by step
            if not peak:
                raise PlanError(
                    "no contraction is found: tensors lie in too many pieces\nredistribute them to blocks first"
                )
            within = max(peak, within * 6 // 5)
            found, peak = cheapest_within([Search(request._replace(max_bytes=within)) for request in requests])
        raise PlanError(
            f"no contraction keeps within max_bytes={most}; one was found that needs {peak}\n"
            f"write max_bytes={peak} or more, or take more ranks"
        )
    return found


def cheapest_within(searches: Sequence[Search]) -> tuple[tuple[Search, Node] | None, int]:
    """The cheapest contraction that fits into memory, and its peak; or None, and the least peak that was too high."""

    def rows(search: Search) -> Iterator[tuple[float, Search, Node]]:
        return ((bound, search, node) for bound, node in search.ranked())

    given = searches[0].given
    about, most = _SAME if any(given.layouts) else _ABOUT, given.max_bytes
    least, seconds, received, best, peak, lowest = inf, inf, (inf, inf), None, 0, inf
    for bound, search, node in merge(*map(rows, searches), key=lambda row: row[0]):
        if bound >= about * least:
            break
        held = 0
        if most is not None:
            if search.floor(node) >= about * least:  # in panels it takes longer
                continue
            node, held = _fitted(search, node, about * least)
            if held > most:
                lowest = min(lowest, held)
                continue
        less = search.least_received(node) - (about == _SAME)  # in a tie, memory counts
        found = search.priced(node, about * least if less < received[0] else seconds / about)
        if found == inf:
            continue
        least, volumes = min(least, found), search.received(node)
        if volumes < received or found < seconds / about:
            seconds, received, best, peak = found, volumes, (search, node), held
    return best, peak if best is not None else int(lowest) if lowest < inf else 0


def _fitted(search: Search, tree: Node, below: float) -> tuple[Node, int]:
    """A complete contraction whose ranks never hold more than `max_bytes`, if it can be cut into panels that do not.

    Each product that needs too much is cut along the letter with which the contraction is fastest, into the fewest.

    Args:
        below: the seconds from which on it takes too long.

    Returns:
        The contraction, and the most bytes that a rank holds; at least these, if they are too many.
    """
    while True:
        count = _counted(search, tree, 0.0)
        if count.fault is None:
            count = _counted(search, tree)
        if count.fault is None or count.is_stuck:
            return tree, count.peak
        letters = dict.fromkeys("".join([part.term for part in count.fault.parts]))
        tried = [_in_panels(search, tree, count.fault, letter, below) for letter in letters]
        ways = [way for way in tried if way is not None]
        fitting = [way for way, found in ways if not found.is_stuck]
        if not fitting:
            return min([(tree, count.peak), *[(way, found.peak) for way, found in ways]], key=itemgetter(1))
        times = [search.floor(way) for way in fitting] if len(fitting) > 1 else [0.0]
        tree = next(way for way, each in zip(fitting, times, strict=True) if each <= min(times) * _SAME)


def _in_panels(search: Search, tree: Node, product: Node, letter: str, below: float) -> tuple[Node, _Count] | None:
    """A tree with a product in the fewest panels of a letter with which it fits, and the memory for it.

    None if the letter is not cut, or that takes too long. The number is guessed first, with buffers of moves that are
    as large as both ends, as those of allgathers are. If not even panels without buffers fit, it is the most.
    """
    assert product.dist is not None  # which only a free operand lacks
    extent, lies, term = search.extents[letter], product.dist, product.term
    final = search.final(lies) if tree is product else lies
    leaves = letter in term and lies.meaning != final.meaning and lies.grid == final.grid
    ends = [(term.index(letter), end) for end in (lies, final)] if leaves else []
    for part, to in zip(product.parts, product.moved, strict=True):
        if letter in part.term and to.shape[part.term.index(letter)] == extent:
            ends += [(part.term.index(letter), end) for end in (part.dist or refined(to), to)]
    if extent < 2 or any(end.layout.view is not None for _, end in ends):
        return None
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
        return found is not None and not _counted(search, found, buffers).is_stuck

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
    found = cut(number)
    return None if found is None else (search.timed(tree, found), _counted(search, found, buffers))


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
    given, peak, owner = search.given, 0, tree  # of the need that is counted
    most, fault = inf if given.max_bytes is None else given.max_bytes, None

    def held(source: Distribution, target: Distribution, dtype: np.dtype[Any]) -> int:
        ends, moves = bytes_of(source, dtype) + bytes_of(target, dtype), source.meaning != target.meaning
        if not moves or buffers is not None or fault is not None:
            return int(ends * (1 + (buffers or 0) * moves))
        route = search.route((source, target, dtype.itemsize))
        return max(ends, while_moving(route.steps, route.peak * dtype.itemsize, dtype))

    def in_panels(move: UnplannedMove) -> int:
        ends = move.pieces(None if buffers is None else 1)
        return max([held(*each, move.dtype) for each in dict.fromkeys(ends)])

    def needs() -> Iterator[Need]:
        nonlocal owner
        for node, stage in unplanned(given, tree, search.final(tree.dist)):
            owner = node
            if isinstance(stage, UnplannedMove):
                value, _, dtype, source, target, _ = stage
                yield move_need(value, source, target, dtype, held(source, target, dtype))
            else:
                blocks = [(move.pieces(1)[0][1], move.dtype) for move in stage.takes]
                yield product_need(stage.product, stage.dtype, blocks, map(in_panels, stage.in_panels))

    for now in peaks([*map(bytes_of, places(given, tree), given.dtypes)], needs()):
        if fault is not None and owner is not fault:
            break
        peak = max(peak, now)
        if now > most:
            fault = owner
    return _Count(peak, fault)


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
