"""The walks of two fixed pipelines from one elemental-cyclic layout to another, to compare `rote.compile` with.

`rote_walk` is a model of the planner of ROTE (github.com/mdschatz/rote, src/core/redist_plan.cpp, in its last version),
written anew from reading it. It always does the same four things in the same order:

1. cut: every grid mode that the source does not use is put behind what splits its mode already (local);
2. move the grid modes that change their tensor mode: first those whose tensor mode gives none away, then those that go
   where the lowest one goes, until none is left; each time they are permuted to the end of their lists, and then
   appended to their new lists in ascending order by an all-to-all;
3. gather: the grid modes that the target does not use are permuted to the end of their lists, and dropped;
4. permute to the order that the target wants.

It never looks at a cost. In step 2 ROTE tries all subsets of the tensor modes as receivers; up to order 3, for which
this model holds, the winner is always the mode where the lowest grid mode goes. Its search for movements that are point
to point is left out, because its loop ends before its first turn; so are reductions. On a 2x2x2 grid 63 % of the walks
between layouts of order 2 move more than the lower bound, and a transpose on a square grid takes 3 steps.

`gather_walk` is gather-then-slice, as a programmer writes it by hand: all-gather what must change, then slice. What
must change are, per tensor mode, the entries behind the common prefix of source and target; what is common stays split.
(To gather everything to a full copy on every rank would move still more.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import permutations, product, takewhile

from rote.layout.expressions import L
from rote.layout.layout import Layout

__all__ = ["gather_walk", "layouts", "rote_walk"]

Walk = tuple[Layout, ...]


def layouts(order: int, grid_modes: int) -> tuple[Layout, ...]:
    """All elemental-cyclic layouts of so many tensor modes on so many grid modes; none partial, none rooted.

    >>> [len(layouts(order, 3)) for order in (1, 2, 3)]
    [16, 49, 106]
    """
    found: dict[Layout, None] = {}
    for sequence in permutations(range(grid_modes)):
        for places in product(range(order + 1), repeat=grid_modes):  # in place `order`: unused
            pairs = tuple(zip(sequence, places, strict=True))
            found[L(*(tuple(g for g, place in pairs if place == m) for m in range(order)))] = None
    return tuple(found)


@cache
def rote_walk(source: Layout, target: Layout) -> Walk:
    """The layouts through which ROTE's planner goes, both ends included; one alone if they are equal.

    >>> from rote import parse
    >>> print(*rote_walk(parse("[(0),(1)]"), parse("[(1),(0)]")))
    [(0),(1)] [(),(1,0)] [(),(0,1)] [(1),(0)]
    """
    here, there = _places(source), _places(target)
    at = source
    for g in sorted(there.keys() - here.keys()):
        at = at.split(there[g], g)
    walk = [source, at]
    left = {g: there[g] for g in sorted(here) if g in there and here[g] != there[g]}

    def move(group: Iterable[int]) -> None:
        at, last = walk[-1], walk[-1]
        for g in group:
            at, last = at.move(g, to=here[g]), last.move(g, to=left.pop(g))
        walk.extend((at, last))

    while left:
        givers = {here[g] for g in left}
        move([g for g, to in left.items() if to not in givers])
        if left:
            receiver = left[min(left)]
            move([g for g, to in left.items() if to == receiver])

    at, last = walk[-1], walk[-1]
    for g in sorted(here.keys() - there.keys()):
        at, last = at.move(g, to=here[g]), last.drop(g)
    return _without_rests((*walk, at, last, target))


@cache
def gather_walk(source: Layout, target: Layout) -> Walk:
    """From the source to the common prefix by one all-gather, and on to the target by one slice.

    >>> from rote import parse
    >>> print(*gather_walk(parse("[(0,1),()]"), parse("[(0),(1)]")))
    [(0,1),()] [(0),()] [(0),(1)]
    """
    common = (
        tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
        for before, after in zip(source.modes, target.modes, strict=True)
    )
    return _without_rests((source, L(*common), target))


def _places(layout: Layout) -> dict[int, int]:
    """The tensor mode that each grid mode splits."""
    return {entry.grid_mode: m for m, mode in enumerate(layout.modes) for entry in mode}


def _without_rests(walk: Iterable[Layout]) -> Walk:
    """The walk without the steps that go nowhere."""
    found: list[Layout] = []
    for at in walk:
        if not found or at != found[-1]:
            found.append(at)
    return tuple(found)
