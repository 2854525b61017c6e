"""Legal grids, shapes and layouts, built by choices of Hypothesis or of a seeded generator.

`pick(options)` chooses one of several options. This module does not import Hypothesis, so that MPI programs start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from ..grammar.nodes import BLOCK, CYCLIC, Entry, Fuse, Kind, Name, Op, Tile
from ..layout.kinds import CEIL, FLOOR, Split, block_kind, cyclic_kind, local_extents
from ..layout.layout import Layout
from ..layout.view import View

__all__ = ["factorings", "kinds_for", "later_kinds", "pick_grid", "pick_layout", "pick_shape"]
__all__ += ["ROLES", "pick_view", "plain_kinds"]

Pick = Callable[[Sequence[Any]], Any]

_MOST_RANKS = 12
_MOST = 400  # elements of a tensor
_LETTERS = "abcdefgh"
ROLES = ("replicated", "split", "partial", "rooted")
"""The roles of a grid mode, the simplest first."""


def factorings(size: int, order: int) -> list[tuple[int, ...]]:
    """The shapes of all grids of a given order over `size` ranks.

    >>> factorings(4, 2)
    [(1, 4), (2, 2), (4, 1)]
    """
    return [shape for shape in product(range(1, size + 1), repeat=order) if prod(shape) == size]


def pick_grid(pick: Pick, ranks: int | None = None, most: int = _MOST_RANKS) -> tuple[int, ...]:
    """The shape of a grid: over `ranks` ranks, or over at most `most`."""
    order = pick([0, 1, 2, 2, 3, 3]) if ranks in (None, 1) else pick([1, 2, 2, 3])
    if ranks is not None:
        return tuple(pick(factorings(ranks, order)))
    shape: tuple[int, ...] = ()
    for _ in range(order):
        shape += (pick([p for p in (2, 1, 3, 4, 5) if p * prod(shape) <= most]),)
    return shape


def pick_shape(pick: Pick, most: int = _MOST) -> tuple[int, ...]:
    """The shape of a tensor of order 0 to 4, with extents that are odd, prime, 1, 0, or multiples of tiles."""
    shape: tuple[int, ...] = ()
    for _ in range(pick([2, 1, 3, 0, 4])):
        shape += (pick([n for n in (5, 4, 1, 7, 12, 3, 2, 0, 6, 13) if n * prod(shape) <= most]),)
    return shape


def kinds_for(parts: int, extents: Sequence[int]) -> list[Kind]:
    """Kinds that may split each of the extents over `parts` parts."""
    return [*plain_kinds(parts, extents), *later_kinds(parts)]


def later_kinds(parts: int) -> list[Kind]:
    """Those of `kinds_for` with rounded block sizes, or with tiles that start at another coordinate."""
    kinds = [CEIL, FLOOR]
    if parts > 1:
        kinds += [cyclic_kind(1, parts - 1), cyclic_kind(2, 1)]
    return kinds


def plain_kinds(parts: int, extents: Sequence[int]) -> list[Kind]:
    """All others of `kinds_for`: few enough for exhaustive tests of all layouts."""
    widest = max(extents)
    kinds = [CYCLIC, BLOCK, cyclic_kind(2), cyclic_kind(3)]
    kinds += [block_kind(b) for b in (max(1, -(-widest // parts)), widest + 1)]

    if len(set(extents)) == 1 and parts > 1:
        kinds.append(block_kind(widest // 3, *(0,) * (parts - 2), widest - widest // 3))
        kinds.append(block_kind(0, widest, *(0,) * (parts - 2)))
    return kinds


def pick_view(pick: Pick, shape: Sequence[int]) -> View | None:
    """A view of a tensor of the given shape: names, fused names in any order, tiles."""
    order = len(shape)
    if not order or pick([True, True, False]):
        return None

    # Tiled modes keep their places; the other modes are permuted among the other places.
    tiled = {m for m in range(order) if pick([False, False, True])}
    plain = [m for m in range(order) if m not in tiled]
    for i in range(len(plain) - 1, 0, -1):
        j = pick(range(i + 1))
        plain[i], plain[j] = plain[j], plain[i]

    named = iter(plain)
    items: list[Name | Fuse | Tile] = []
    m = number = 0
    while m < order:
        if m in tiled:
            items.append(_tile(pick, shape[m], number))
            number += 3
            m += 1
            continue

        fused = 1
        while m + fused < order and m + fused not in tiled and pick([False, True]):
            fused += 1

        names = tuple([_LETTERS[next(named)] for _ in range(fused)])
        items.append(Name(names[0]) if fused == 1 else Fuse(names))
        m += fused
    return View(tuple(items))


def _tile(pick: Pick, extent: int, number: int) -> Tile:
    names = [f"t{number + k}" for k in range(3)]
    size = pick([b for b in (2, 3, 1, 4, 6) if extent % b == 0])
    # One part's size may be left to the extent; where there are elements, all sizes may be written.
    rest = extent // size

    options: list[tuple[tuple[str, int | None], ...]]
    options = [((names[0], None), (names[1], size)), ((names[0], size), (names[1], None))]
    if rest:
        options.append(((names[0], rest), (names[1], size)))
        inner = pick([b for b in (2, 3, 1) if rest % b == 0])
        options.append(((names[0], None), (names[1], size), (names[2], inner)))

    return Tile(pick(options))


def pick_layout(pick: Pick, shape: Sequence[int], grid: Sequence[int], views: bool = True) -> Layout:
    """A layout that is legal on a shape and a grid, with mixed kinds, views, partial and rooted grid modes."""
    view = pick_view(pick, shape) if views else None
    extents = view.shape(tuple(shape)) if view else tuple(shape)

    roles = ["split", "replicated", "split", "partial", "split", "rooted"]
    if not extents:
        roles = [role for role in ROLES if role != "split"]
    role = {g: pick(roles) for g in range(len(grid))}

    modes: list[tuple[Entry, ...]] = [()] * len(extents)
    # The first of two splits of a mode is the outer one. Each grid mode comes before all earlier ones or after them: so
    # both orders of two are drawn, and 4 of the 6 orders of three.
    for g in sorted((g for g in role if role[g] == "split"), key=lambda g: pick([g, -g])):
        m = pick(range(len(extents)))
        modes[m] += (Entry(g, pick(kinds_for(grid[g], _extents(modes[m], grid, extents[m])))),)

    partial = tuple([g for g in role if role[g] == "partial"])
    rooted = tuple([(g, pick(range(grid[g]))) for g in role if role[g] == "rooted"])
    op: Op = pick(["sum", "sum", "max", "min", "prod"]) if partial else "sum"
    return Layout(tuple(modes), view, op, partial, rooted)


def _extents(entries: Sequence[Entry], grid: Sequence[int], n: int) -> list[int]:
    """The local extents that splits leave of a mode of extent n, at all coordinates."""
    return [*local_extents(tuple([Split(e.grid_mode, e.kind, grid[e.grid_mode]) for e in entries]), n)]
