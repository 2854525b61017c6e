"""The layouts through which a plan may lead.

Every grid mode does in them what it may do at all: nothing; split any mode, at any place in its list, in the kinds that
the two ends use; or stay partial or rooted as it is at one of the ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

from ..caches import memoized
from ..errors import LayoutError
from ..grammar.nodes import OPS, Entry, Kind
from ..layout.distribution import Distribution, distribute
from ..layout.grid import Grid
from ..layout.layout import Layout
from ..layout.view import View

__all__ = ["MOST", "layouts"]

MOST = 2_500  # layouts: five grid modes, two modes and one kind make 1,631
_MOST_RANKS = 200_000  # layouts times ranks
_MOST_VIEWED = 24  # layouts in each of two views: what moves between views is worked out anew for each pair
_MOST_MOVED = 5  # grid modes whose subsets are all tried in a normal form

Row = tuple[tuple[Entry, ...], ...]
Role = tuple[str, int]
Choice = tuple[int, tuple[Kind, ...], tuple[Role, ...]]  # of a grid mode: kinds to split in, and what else it may do


def layouts(source: Distribution, target: Distribution) -> tuple[tuple[Distribution, ...], bool]:
    """The two ends, then all others in a fixed order; and whether these are all (else, those of the normal form)."""
    if source.grid != target.grid:
        dists, exact = [*_between(source, source.partial), *_between(target, _idle(target))], False
    else:
        same = source.digits == target.digits
        choices = tuple((g, _kinds(source, target, g), _roles(source, target, g)) for g in _grid_modes(source))
        number = _count(choices, source.order)
        permuted = sorted(map(repr, source.digits)) == sorted(map(repr, target.digits))  # the same numbers in both
        exact = number <= (MOST if permuted else _MOST_VIEWED) and number * source.grid.size <= _MOST_RANKS
        dists = []
        for end in (source,) if same else (source, target):
            every = _all(end.shape, end.grid, end.layout.view, end.order, choices) if exact else ()
            dists += every or [*_normal(source, target, end)]
    unique: dict[object, Distribution] = {}
    for dist in (source, target, *dists):
        unique.setdefault(dist.meaning, dist)
    return tuple(unique.values()), exact


@memoized(16)
def _all(
    shape: tuple[int, ...], grid: Grid, view: View | None, order: int, choices: tuple[Choice, ...]
) -> tuple[Distribution, ...]:
    """Every layout in one view."""
    dists: list[Distribution] = []
    for chosen in product(*((("split", 0), *roles) for _, _, roles in choices)):
        roles = {g: role for (g, _, _), role in zip(choices, chosen, strict=True)}
        split = [(g, kinds) for g, kinds, _ in choices if roles[g][0] == "split"]
        for modes in _rows(order, split):
            dists += _made(shape, grid, view, modes, roles)
    return tuple(dists)


def _rows(order: int, split: list[tuple[int, tuple[Kind, ...]]]) -> list[Row]:
    """Every way to place entries of these grid modes in the lists of the modes: each once."""
    rows: list[Row] = [((),) * order]
    for g, kinds in split:
        rows = [
            (*row[:m], (*row[m][:at], Entry(g, kind), *row[m][at:]), *row[m + 1 :])
            for row in rows
            for m in range(order)
            for at in range(len(row[m]) + 1)
            for kind in kinds
        ]
    return rows


def _normal(source: Distribution, target: Distribution, like: Distribution) -> Iterator[Distribution]:
    """Layouts on the way: some grid modes already do what they do in the target; the others still, or nothing.

    From a partial source, also what a reduction leaves split.
    """
    if source.digits == target.digits:
        changed = [g for g in _grid_modes(source) if _place(source, g) != _place(target, g)]
        few = len(changed) <= _MOST_MOVED
        moved = (
            [set(some) for n in range(len(changed) + 1) for some in combinations(changed, n)]
            if few
            else [set(changed[:n]) for n in range(len(changed) + 1)]
        )
        for done in moved:
            modes = tuple(
                tuple(e for e in a if e.grid_mode not in done) + tuple(e for e in b if e.grid_mode in done)
                for a, b in zip(source.layout.modes, target.layout.modes, strict=True)
            )
            roles = {g: _role(target if g in done else source, g) for g in _grid_modes(source)}
            for made in _made(source.shape, source.grid, like.layout.view, modes, roles):
                parts = (prod(s.parts for s in mode) for mode in made.splits)
                if all(p <= max(n, 1) for p, n in zip(parts, made.view_shape, strict=True)):
                    yield made  # else most ranks hold nothing
    if like is source:
        yield from _between(source, source.partial)


def _between(dist: Distribution, spread: tuple[int, ...]) -> Iterator[Distribution]:
    """The layout in which these grid modes split the longest mode instead of what they do."""
    if spread and dist.order:
        longest = max(range(dist.order), key=lambda m: (dist.view_shape[m], -m))
        more = tuple(Entry(g, Kind("block")) for g in spread)
        modes = tuple((*mode, *more) if m == longest else mode for m, mode in enumerate(dist.layout.modes))
        roles = {g: ("split", 0) if g in spread else _role(dist, g) for g in _grid_modes(dist)}
        yield from _made(dist.shape, dist.grid, dist.layout.view, modes, roles)


def _made(
    shape: tuple[int, ...], grid: Grid, view: View | None, modes: Row, roles: dict[int, Role]
) -> Iterator[Distribution]:
    """The layout with these entries and roles, if the tensor can lie so."""
    named = {e.grid_mode for mode in modes for e in mode}
    partial = tuple(g for g, (name, _) in roles.items() if name in OPS and g not in named)
    ops = {roles[g][0] for g in partial} or {"sum"}
    if len(ops) > 1:
        return
    (op,) = (op for op in OPS if op in ops)
    rooted = tuple((g, at) for g, (name, at) in roles.items() if name == "rooted" and g not in named)
    try:
        yield distribute(Layout(modes, view, op, partial, rooted), shape, grid)
    except LayoutError:
        return  # sizes of a block split that fit at one end only


def _grid_modes(dist: Distribution) -> list[int]:
    """The grid modes of more than one coordinate: the others do nothing."""
    return [g for g, p in enumerate(dist.grid.shape) if p > 1]


def _idle(dist: Distribution) -> tuple[int, ...]:
    """The grid modes that do nothing, though they could."""
    return tuple(g for g in _grid_modes(dist) if dist.roles[g].name == "replicated")


def _role(dist: Distribution, g: int) -> Role:
    """The role of a grid mode, other than where it splits; the operation, if it is partial."""
    role = dist.roles[g]
    return (dist.layout.op if role.name == "partial" else role.name, role.at)


def _roles(source: Distribution, target: Distribution, g: int) -> tuple[Role, ...]:
    """The roles that a grid mode may have without splitting a mode."""
    roles: list[Role] = [("replicated", 0)]
    for end in (source, target):
        role = _role(end, g)
        if role[0] != "split" and role not in roles:
            roles.append(role)
    return tuple(roles)


def _kinds(source: Distribution, target: Distribution, g: int) -> tuple[Kind, ...]:
    """The kinds in which a grid mode may split: its own at the ends, else those of the others, else block."""
    entries = [s for end in (source, target) for mode in end.splits for s in mode]
    own = [s.kind for s in entries if s.grid_mode == g]
    free = [s.kind for s in entries if s.kind.name == "cyclic" or not s.kind.sizes]
    return tuple(dict.fromkeys(own or free or [Kind("block")]))


def _count(choices: tuple[Choice, ...], order: int) -> int:
    """The number of layouts: k entries stand in the lists of `order` modes in order (order+1) ... (order+k-1) ways."""
    ways = [1]
    for _, kinds, roles in choices:
        split, other = len(kinds), len(roles)
        ways = [
            (ways[k] * other if k < len(ways) else 0) + (ways[k - 1] * split if k else 0) for k in range(len(ways) + 1)
        ]
    return sum(n * prod(range(order, order + k)) for k, n in enumerate(ways))


def _place(dist: Distribution, g: int) -> object:
    """The mode, place and kind that a grid mode splits with, or the role that it has instead."""
    entries = ((m, at, s.kind) for m, mode in enumerate(dist.splits) for at, s in enumerate(mode) if s.grid_mode == g)
    return next(entries, _role(dist, g))
