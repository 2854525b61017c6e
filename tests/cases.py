"""Worlds of legal layouts: every one on a shape and a grid; and `rote.testing.choices`, which picks some.

Imports no Hypothesis, so that MPI programs start fast.
"""

from __future__ import annotations

from itertools import permutations, product

from layout.definition import chain, hands

from rote.grammar.nodes import Entry
from rote.layout.layout import Layout
from rote.testing.choices import factorings, kinds_for, later_kinds, pick_grid, pick_layout, pick_shape, plain_kinds

__all__ = ["all_layouts", "factorings", "kinds_for", "later_kinds", "pick_grid", "pick_grids", "pick_layout"]
__all__ += ["pick_shape", "plain_kinds"]


def pick_grids(pick, ranks=None):
    """The shapes of two different grids over the same ranks: over `ranks`, or over at most 12."""
    size = ranks or pick([4, 6, 1, 8, 12])
    shapes = [shape for order in range(4) for shape in factorings(size, order)]
    first = pick(shapes)
    return first, pick([shape for shape in shapes if shape != first])


def all_layouts(shape, grid, kinds=None, rest=("replicated", "partial", "rooted")):
    """Every layout without a view on a shape and a grid: all roles, orders of refinement and kinds.

    `kinds(parts, extents)` are the kinds to try, the plain ones if not given, `rest` what a grid mode that splits
    nothing may be.
    """
    for roles in product(("split", *rest), repeat=len(grid)):
        split = [g for g, role in enumerate(roles) if role == "split"]
        partial = tuple(g for g, role in enumerate(roles) if role == "partial")
        roots = [(g, {0, grid[g] - 1}) for g, role in enumerate(roles) if role == "rooted"]
        for modes in _all_modes(split, shape, grid, kinds or plain_kinds):
            for op in ("sum", "max") if partial else ("sum",):
                for at in product(*(sorted(choices) for _, choices in roots)):
                    rooted = tuple((g, c) for (g, _), c in zip(roots, at, strict=True))
                    yield Layout(modes, None, op, partial, rooted)


def _all_modes(split, shape, grid, kinds):
    """Every way to refine modes by these grid modes."""
    if split and not shape:
        return
    for places in product(range(len(shape)), repeat=len(split)):
        members = [[g for g, m in zip(split, places, strict=True) if m == mode] for mode in range(len(shape))]
        per_mode = [
            [found for order in permutations(group) for found in _all_chains(order, n, grid, kinds)]
            for group, n in zip(members, shape, strict=True)
        ]
        yield from product(*per_mode)


def _all_chains(grid_modes, n, grid, kinds, before=()):
    if not grid_modes:
        yield before
        return
    g, *others = grid_modes
    left = [len(cards) for cards in hands(chain(before, grid), n).values()]
    for kind in dict.fromkeys(kinds(grid[g], left)):
        yield from _all_chains(others, n, grid, kinds, (*before, Entry(g, kind)))
