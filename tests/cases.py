"""Legal layouts, shapes and grids, one choice at a time; the choices are Hypothesis's or those of a seeded generator.

Imports no Hypothesis, so that MPI programs start fast.
"""

from __future__ import annotations

from itertools import permutations, product
from math import prod

from layout.definition import chain, hands, legal, view_shape

from rote.grammar.nodes import Entry, Fuse, Kind, Name, Tile
from rote.layout.layout import Layout
from rote.layout.view import View

MOST = 400  # elements of a tensor


def factorings(size, order):
    """The shapes of all grids of some order over `size` ranks."""
    return [shape for shape in product(range(1, size + 1), repeat=order) if prod(shape) == size]


def pick_grid(pick, ranks=None):
    """The shape of a grid: over `ranks` ranks, or over at most 12."""
    order = pick([0, 1, 2, 2, 3, 3]) if ranks in (None, 1) else pick([1, 2, 2, 3])
    if ranks is not None:
        return pick(factorings(ranks, order))
    shape = ()
    for _ in range(order):
        shape += (pick([p for p in (2, 1, 3, 4, 5) if p * prod(shape) <= 12]),)
    return shape


def pick_grids(pick, ranks=None):
    """The shapes of two different grids over the same ranks: over `ranks`, or over at most 12."""
    size = ranks or pick([4, 6, 1, 8, 12])
    shapes = [shape for order in range(4) for shape in factorings(size, order)]
    one = pick(shapes)
    return one, pick([shape for shape in shapes if shape != one])


def pick_shape(pick):
    """The shape of a tensor of order 0 to 4: odd, prime, 1, 0, and extents that tiles divide."""
    shape = ()
    for _ in range(pick([2, 1, 3, 0, 4])):
        shape += (pick([n for n in (5, 4, 1, 7, 12, 3, 2, 0, 6, 13) if n * prod(shape) <= MOST]),)
    return shape


def kinds_for(parts, extents):
    """Kinds that may split every one of these extents over so many parts."""
    return [*plain_kinds(parts, extents), *later_kinds(parts, extents)]


def later_kinds(parts, extents):
    """Of these, blocks that are rounded and tiles from another coordinate on."""
    found = [Kind("ceil"), Kind("floor")]
    if parts > 1:
        found += [Kind("cyclic", (1,), parts - 1), Kind("cyclic", (2,), 1)]
    assert all(legal(kind.name, kind.sizes, parts, n, kind.at) for kind in found for n in extents)
    return found


def plain_kinds(parts, extents):
    """Of these, all others: as many as a world of all layouts bears."""
    widest = max(extents)
    found = [Kind("cyclic", (1,)), Kind("block"), Kind("cyclic", (2,)), Kind("cyclic", (3,))]
    found += [Kind("block", (b,)) for b in (max(1, -(-widest // parts)), widest + 1)]
    if len(set(extents)) == 1 and parts > 1:
        found.append(Kind("block", (widest // 3, *(0,) * (parts - 2), widest - widest // 3)))
        found.append(Kind("block", (0, widest, *(0,) * (parts - 2))))
    assert all(legal(kind.name, kind.sizes, parts, n) for kind in found for n in extents)
    return found


def pick_view(pick, shape):
    """A view of a tensor of some shape: names, fused names in any order, tiles."""
    order = len(shape)
    if not order or pick([True, True, False]):
        return None
    # Tiles stay where they are; the other places get the names of the other modes in any order.
    tiled = {m for m in range(order) if pick([False, False, True])}
    plain = [m for m in range(order) if m not in tiled]
    for i in range(len(plain) - 1, 0, -1):
        j = pick(range(i + 1))
        plain[i], plain[j] = plain[j], plain[i]
    named = iter(plain)
    items, m, number = [], 0, 0
    while m < order:
        if m in tiled:
            items.append(_tile(pick, shape[m], number))
            number += 3
            m += 1
            continue
        together = 1
        while m + together < order and m + together not in tiled and pick([False, True]):
            together += 1
        names = tuple("abcdefgh"[next(named)] for _ in range(together))
        items.append(Name(names[0]) if together == 1 else Fuse(names))
        m += together
    return View(tuple(items))


def _tile(pick, extent, number):
    names = [f"t{number + k}" for k in range(3)]
    size = pick([b for b in (2, 3, 1, 4, 6) if extent % b == 0])
    rest = extent // size
    options = [((names[0], None), (names[1], size)), ((names[0], size), (names[1], None))]
    if rest:
        options.append(((names[0], rest), (names[1], size)))
        inner = pick([b for b in (2, 3, 1) if rest % b == 0])
        options.append(((names[0], None), (names[1], size), (names[2], inner)))
    return Tile(pick(options))


def pick_layout(pick, shape, grid):
    """A layout that is legal on a shape and a grid."""
    view = pick_view(pick, shape)
    extents = view_shape(Layout(((),) * (view.order if view else len(shape)), view), shape)
    roles = ["split", "replicated", "split", "partial", "split", "rooted"]
    found = {g: pick([r for r in roles if extents or r != "split"]) for g in range(len(grid))}
    modes = [()] * len(extents)
    for g in sorted((g for g in found if found[g] == "split"), key=lambda g: pick([g, -g])):
        m = pick(range(len(extents)))
        left = [len(cards) for cards in hands(chain(modes[m], grid), extents[m]).values()]
        modes[m] += (Entry(g, pick(kinds_for(grid[g], left))),)
    partial = tuple(g for g in found if found[g] == "partial")
    rooted = tuple((g, pick(range(grid[g]))) for g in found if found[g] == "rooted")
    return Layout(tuple(modes), view, pick(["sum", "sum", "max", "min", "prod"]) if partial else "sum", partial, rooted)


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
