"""The layouts through which a plan may lead.

Every grid mode does in them what it may do at all: nothing; split any mode, at any place in its list, in the kinds that
the two ends use; or stay partial or rooted as it is at one of the ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

from ..errors import LayoutError
from ..grammar.nodes import Entry, Kind
from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout

__all__ = ["MOST", "layouts"]

MOST = 2_500  # layouts: five grid modes, two modes and one kind make 1,631
_MOST_RANKS = 200_000  # layouts times ranks
_MOST_CUT = 1 << 22  # elements times layouts, where views differ and elements are counted one by one
_MOST_MOVED = 5  # grid modes whose subsets are all tried in a normal form

Row = tuple[tuple[Entry, ...], ...]
Role = tuple[str, int]


def layouts(source: Distribution, target: Distribution) -> tuple[tuple[Distribution, ...], bool]:
    """The two ends, then all others in a fixed order; and whether these are all (else, those of the normal form)."""
    same = source.digits == target.digits
    grid_modes = _grid_modes(source)
    kinds = {g: _kinds(source, target, g) for g in grid_modes}
    number = _count(
        [len(kinds[g]) for g in grid_modes], [len(_roles(source, target, g)) for g in grid_modes], source.order
    )
    exact = (
        number <= MOST
        and number * source.grid.size <= _MOST_RANKS
        and (same or 2 * number * prod(source.shape) <= _MOST_CUT)
    )
    ends = (source,) if same else (source, target)
    found = [d for end in ends for d in (_all(source, target, end, kinds) if exact else _normal(source, target, end))]
    unique: dict[object, Distribution] = {}
    for dist in (source, target, *found):
        unique.setdefault(dist.meaning, dist)
    return tuple(unique.values()), exact


def _all(
    source: Distribution, target: Distribution, like: Distribution, kinds: dict[int, tuple[Kind, ...]]
) -> Iterator[Distribution]:
    """Every layout in the view of `like`."""
    rest = [_roles(source, target, g) for g in kinds]
    for chosen in product(*(((("split", 0),) + roles) for roles in rest)):
        roles = dict(zip(kinds, chosen, strict=True))
        split = [g for g in kinds if roles[g][0] == "split"]
        for modes in _rows(like.order, split, kinds):
            yield from _made(source, target, like, modes, roles)


def _rows(order: int, split: list[int], kinds: dict[int, tuple[Kind, ...]]) -> Iterator[Row]:
    """Every way to place entries of these grid modes in the lists of the modes: each once."""
    rows: list[Row] = [((),) * order]
    for g in split:
        rows = [
            (*row[:m], (*row[m][:at], Entry(g, kind), *row[m][at:]), *row[m + 1 :])
            for row in rows
            for m in range(order)
            for at in range(len(row[m]) + 1)
            for kind in kinds[g]
        ]
    yield from rows


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
            for made in _made(source, target, like, modes, roles):
                parts = (prod(s.parts for s in mode) for mode in made.splits)
                if all(p <= max(n, 1) for p, n in zip(parts, made.view_shape, strict=True)):
                    yield made  # else most ranks hold nothing
    if source.partial and like is source and source.order:
        longest = max(range(source.order), key=lambda m: (source.view_shape[m], -m))
        more = tuple(Entry(g, Kind("block")) for g in source.partial)
        modes = tuple((*mode, *more) if m == longest else mode for m, mode in enumerate(source.layout.modes))
        roles = {g: ("split", 0) if g in source.partial else _role(source, g) for g in _grid_modes(source)}
        yield from _made(source, target, like, modes, roles)


def _made(
    source: Distribution, target: Distribution, like: Distribution, modes: Row, roles: dict[int, Role]
) -> Iterator[Distribution]:
    """The layout with these entries and roles, if the tensor can lie so."""
    named = {e.grid_mode for mode in modes for e in mode}
    partial = tuple(g for g, (name, _) in roles.items() if name in ("sum", "max", "min", "prod") and g not in named)
    ops = {roles[g][0] for g in partial}
    if len(ops) > 1:
        return
    op = target.layout.op if target.layout.op in ops else source.layout.op
    rooted = tuple((g, at) for g, (name, at) in roles.items() if name == "rooted" and g not in named)
    try:
        yield distribute(Layout(modes, like.layout.view, op, partial, rooted), source.shape, source.grid)
    except LayoutError:
        return  # sizes of a block split that fit at one end only


def _grid_modes(dist: Distribution) -> list[int]:
    """The grid modes of more than one coordinate: the others do nothing."""
    return [g for g, p in enumerate(dist.grid.shape) if p > 1]


def _role(dist: Distribution, g: int) -> Role:
    """What a grid mode does, other than where it splits; the operation, if it is partial."""
    role = dist.role(g)
    return (dist.layout.op if role.name == "partial" else role.name, role.at)


def _roles(source: Distribution, target: Distribution, g: int) -> tuple[Role, ...]:
    """What a grid mode may do without splitting a mode."""
    found: list[Role] = [("replicated", 0)]
    for end in (source, target):
        role = _role(end, g)
        if role[0] != "split" and role not in found:
            found.append(role)
    return tuple(found)


def _kinds(source: Distribution, target: Distribution, g: int) -> tuple[Kind, ...]:
    """The kinds in which a grid mode may split: its own at the ends, else those of the others, else block."""
    entries = [s for end in (source, target) for mode in end.splits for s in mode]
    own = [s.kind for s in entries if s.grid_mode == g]
    free = [s.kind for s in entries if s.kind.name == "cyclic" or not s.kind.sizes]
    return tuple(dict.fromkeys(own or free or [Kind("block")]))


def _count(kinds: list[int], roles: list[int], order: int) -> int:
    """The number of layouts: k entries stand in the lists of `order` modes in order (order+1) ... (order+k-1) ways."""
    ways = [1]
    for split, other in zip(kinds, roles, strict=True):
        ways = [
            (ways[k] * other if k < len(ways) else 0) + (ways[k - 1] * split if k else 0) for k in range(len(ways) + 1)
        ]
    return sum(n * prod(range(order, order + k)) for k, n in enumerate(ways))


def _place(dist: Distribution, g: int) -> object:
    """Where and how a grid mode splits, or what else it does."""
    entries = ((m, at, s.kind) for m, mode in enumerate(dist.splits) for at, s in enumerate(mode) if s.grid_mode == g)
    return next(entries, _role(dist, g))
