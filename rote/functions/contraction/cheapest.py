"""The cheapest contraction of all that fit into memory, on one of several grids.

Complete contractions come from the searches in the order of their lower bounds, and the first price that no later bound
is below ends the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from math import inf

from ...errors import PlanError
from .memory import Fitting
from .search import Search
from .tree import Node, Request

__all__ = ["cheapest_of"]

_ABOUT = 1.1  # where layouts are chosen, a contraction may take so much longer to receive less
_SAME = 1 + 1e-9  # of sums of the same times in another order


def cheapest_of(requests: Sequence[Request]) -> tuple[Search, Node]:
    """The cheapest contraction that answers one of some requests, which may differ in the grid.

    Of those that take as long, it is one whose ranks receive least, and then hold least. If all operands may lie where
    they like, they also lie there for other uses, so a contraction that receives less may take up to a tenth longer.

    Raises:
        PlanError: every contraction needs more than `max_bytes` on a rank.
    """
    found, peak = _within(requests)
    if found is None:
        most = within = requests[0].max_bytes or 0
        while found is None:  # what did not fit was not looked at further, so memory grows step by step
            if not peak:
                raise PlanError(
                    "no contraction is found: tensors lie in too many pieces\nredistribute them to blocks first"
                )
            within = max(peak, within * 6 // 5)
            found, peak = _within([request._replace(max_bytes=within) for request in requests])
        raise PlanError(
            f"no contraction keeps within max_bytes={most}; one was found that needs {peak}\n"
            f"write max_bytes={peak} or more, or take more ranks"
        )
    return found


def _within(requests: Sequence[Request]) -> tuple[tuple[Search, Node] | None, int]:
    """The cheapest contraction that fits into memory, and its peak; or None, and the least peak that was too high."""

    def rows(search: Search) -> Iterator[tuple[float, Search, Fitting, Node]]:
        fitting = Fitting(search)
        return ((bound, search, fitting, node) for bound, node in search.ranked())

    about, most = _SAME if any(requests[0].layouts) else _ABOUT, requests[0].max_bytes
    least, seconds, received, best, peak, lowest = inf, inf, (inf, inf), None, 0, inf
    for bound, search, fitting, node in merge(*map(rows, map(Search, requests)), key=lambda row: row[0]):
        if bound >= about * least:
            break
        held = 0
        if most is not None:
            if search.floor(node) >= about * least:  # in panels it takes longer
                continue
            node, held = fitting(node, about * least)
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
