"""The certificate of a plan: a second program, that proves from the index sets alone that every element arrives.

A message is a product of one group of elements per component, and goes wherever two ranks meet along every grid mode.
So factors are proved, not elements, and a proof hardly takes longer on more ranks:
1. per component, what a rank needs falls into groups, and they are those that its senders cut out of what they hold;
2. per grid mode, coordinates meet as the roles on both sides ask: values arrive once, contributions enter once;
3. the lists of messages are these products, ascending by rank; of contributions the first assigns, the others combine
   (that is read off the lists of as many ranks as have `LISTED` messages, and of one rank at least);
4. ranks that meet differ along the step's grid modes alone, and the step's kind can do the movement.
"""

from __future__ import annotations

from itertools import product, zip_longest
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution, mode_set
from ..layout.view import to_tensor
from .movement import Component, Group, components, groups, meets, receives, sends
from .step import LOCAL, Step

__all__ = ["LISTED", "verify"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Cuts = dict[At, dict[At, tuple[Group, Array]]]  # by own coordinates, by those on the other side: a group, its elements
Part = tuple[tuple[At, At], tuple[Cuts, Cuts]]  # a component: per side, the grid modes that split it, and its groups

LISTED = 256  # messages per side of a step: so many lists are read one by one
SENDS, RECEIVES, DOES = 0, 1, ("sends", "receives")  # the two sides of a step: places in pairs such as `Ends`
ROLES = {  # what a collective makes of the grid modes over which ranks meet, or that change their role
    "alltoall": "split to split",
    "allgather": "split to replicated",
    "reduce_scatter": "partial to split",
    "allreduce": "partial to replicated",
    "reduce": "partial to rooted",
    "broadcast": "rooted to replicated",
    "scatter": "rooted to split",
    "gather": "split to rooted",
}
AS_THEY_ARE = ("allreduce", "reduce", "broadcast")
TOGETHER = ("allgather", "reduce_scatter", *AS_THEY_ARE)  # no rank of the sub-grid may take part idly


def verify(source: Distribution, target: Distribution, steps: tuple[Step, ...], dtype: np.dtype[Any]) -> None:
    """Raise PlanError unless the steps join up and each, done as its kind says, delivers every element once."""
    at = source
    for number, step in enumerate(steps, 1):
        if _named(step.before) != _named(at):
            raise PlanError(f"step {number} starts from {step.before}, but the tensor lies as {at}")
        try:
            _verify_step(step, dtype)
        except PlanError as error:
            raise PlanError(f"step {number} ({step}): {error}") from None
        at = step.after
    if _named(at) != _named(target):
        raise PlanError(f"the plan ends in {at}, not in {target}")


def _verify_step(step: Step, dtype: np.dtype[Any]) -> None:
    source, target, grid = step.before, step.after, step.before.grid
    if step.kind not in {*ROLES, *LOCAL, "permute", "exchange"}:
        raise PlanError(f"there is no kind of step {step.kind!r}")
    if (source.shape, grid) != (target.shape, target.grid):
        raise PlanError(f"it leads from {source} to {target}; a plan stays on one shape and grid")
    if list(step.grid_modes) != sorted({*step.grid_modes} & {*range(grid.order)}):
        raise PlanError(f"its grid modes {step.grid_modes} are not ascending grid modes of {grid}")
    found = components(source, target)
    for dist, modes in ((source, [part.before for part in found]), (target, [part.after for part in found])):
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")
        if sorted(m for part in modes for m in part) != list(range(dist.order)):
            raise PlanError(f"the components {modes} are not the modes of {dist.layout}, each once")
    parts = [_part((source, target), part) for part in found]
    met = [_grid_mode(source, target, g) for g in range(grid.order)]
    for side in (RECEIVES, SENDS):
        _lists((source, target), parts, met, side)
    _check_kind(step, parts, met)


def _part(ends: Ends, part: Component) -> Part:
    """A component, if the groups of both sides partition what their ranks hold, and are the same elements."""
    before, after = _grid_modes(ends[SENDS], part.before), _grid_modes(ends[RECEIVES], part.after)
    given, taken = _cuts(ends, part, SENDS), _cuts(ends, part, RECEIVES)
    pairs = {(y, x) for y, cut in given.items() for x in cut}
    for y, x in sorted(pairs | {(y, x) for x, cut in taken.items() for y in cut}):
        sent, wanted = given.get(y, {}).get(x), taken.get(x, {}).get(y)
        if not (sent and wanted and np.array_equal(sent[1], wanted[1])):
            ranks = f"rank {_rank(ends[SENDS], before, y)} to rank {_rank(ends[RECEIVES], after, x)}"
            first = _index(ends[SENDS], int([*(sent or wanted or ())][1][0]))
            raise PlanError(f"from {ranks} go elements, {first} first, not the same in the same order on both sides")
    return (before, after), (given, taken)


def _cuts(ends: Ends, part: Component, side: int) -> Cuts:
    """The groups of one side, which must partition what each of its coordinates holds."""
    mine, other, modes = ends[side], ends[1 - side], (part.before, part.after)
    own, theirs, found = _grid_modes(mine, modes[side]), _grid_modes(other, modes[1 - side]), {}
    for at in product(*(range(mine.grid.shape[g]) for g in own)):
        where = dict(zip(own, at, strict=True))
        held, extents = _elements(mine, modes[side], where)
        cut: dict[At, tuple[Group, Array]] = {}
        times = np.zeros(len(held), np.int64)
        rank = f"rank {_rank(mine, own, at)} {DOES[side]}"
        for group in groups(mine, other, part, tuple(where.get(g, 0) for g in range(mine.grid.order)), side == SENDS):
            there, over = tuple(c for _, c in group.coordinates), tuple(g for g, _ in group.coordinates)
            limits = zip(extents, group.positions, strict=True)
            inside = all(0 < len(p) == len(group) and p.min() >= 0 and p.max() < n for n, p in limits)
            if over != theirs or there in cut or not inside:
                raise PlanError(f"{rank} a group for {group.coordinates} twice, or outside its {extents} indices")
            flat = np.ravel_multi_index(group.positions, extents)
            times += np.bincount(flat, minlength=len(held))
            cut[there] = group, held[flat]
        for k in np.flatnonzero(times != 1):
            raise PlanError(f"{rank} element {_index(mine, int(held[k]))} in {times[k]} groups; each element is in one")
        found[at] = cut
    return found


def _grid_mode(source: Distribution, target: Distribution, g: int) -> Array:
    """Who meets whom along a grid mode: true at [a, b] if data goes from coordinate a to b. Proved from the roles."""
    before, after, changes = source.role(g), target.role(g), source.layout.op != target.layout.op
    every = range(source.grid.shape[g])
    met = np.array([[meets(before, after, changes, a, b) for b in every] for a in every], bool)
    holds = [a for a in every if before.name != "rooted" or a == before.at]
    wants = [b for b in every if after.name != "rooted" or b == after.at]
    inside = met[np.ix_(holds, wants)]
    own = before.name in ("split", "partial")  # each coordinate has what no other has
    one = before.name == "partial" and changes  # a new reduction starts when the old one is over
    if after.name != "partial":
        right = (inside.sum(axis=0) == (len(holds) if own else 1)).all()
        rule = f"each of {wants} hears from {'all' if own else 'one'} of {holds}"
    elif own:
        right = (inside.sum(axis=1) == 1).all() and (not one or inside.any(axis=0).sum() == 1)
        rule = f"each contribution enters one accumulator{', the same for all' * one}"
    else:
        right, rule = inside.sum() == 1, f"the value is contributed once, by one of {holds}"
    if not right or met.sum() != inside.sum():
        raise PlanError(
            f"grid mode {g}, {before.name} to {after.name}: {np.argwhere(met).tolist()[:9]} meet, but {rule}"
        )
    return met


def _lists(ends: Ends, parts: list[Part], met: list[Array], side: int) -> None:
    """Compare the messages of the first ranks, one by one, with the products of what was proved."""
    mine, listed, to = ends[side], (sends, receives)[side], ("to", "from")[side]
    free = {*range(mine.grid.order)}.difference(*(over[1 - side] for over, _ in parts))
    first, seen = _rank(mine, (), ()), 0  # of a rooted tensor, the root
    for rank in (first, *(r for r in range(mine.grid.size) if r != first)):
        me = mine.grid.coordinates(rank)
        mates = [(m, m.T)[side][c] for m, c in zip(met, me, strict=True)]
        cuts = [(over[1 - side], cut[side][tuple(me[g] for g in over[side])]) for over, cut in parts]
        left = mine.holds(rank) * prod(int(mates[g].sum()) for g in free)
        for over, cut in cuts:
            left *= sum(all(mates[g][c] for g, c in zip(over, at, strict=True)) for at in cut)
        if seen and seen + left > LISTED:
            return
        seen += max(left, 1)
        last, come = -1, set()
        for message in listed(*ends, rank):
            text = f"rank {rank} {DOES[side]} a message {to} rank {message.peer}"
            if not last < message.peer < mine.grid.size:
                raise PlanError(f"{text} after that {to} rank {last}; there is one for each rank, in ascending order")
            last, left, at = message.peer, left - 1, mine.grid.coordinates(message.peer)
            keys = tuple(tuple(at[g] for g in over) for over, _ in cuts)
            proved = [cut[key][0] if key in cut else None for (_, cut), key in zip(cuts, keys, strict=True)]
            meet = mine.holds(rank) and all(mate[c] for mate, c in zip(mates, at, strict=True))
            pairs = [] if [*message.groups] == proved else zip_longest(message.groups, proved)  # nearly always the same
            if not meet or not all(a and b and np.array_equal(a.positions, b.positions) for a, b in pairs):
                raise PlanError(f"{text}, but they {'have other elements, or other order' if meet else 'do not meet'}")
            if side == RECEIVES and message.combine != (keys in come):
                raise PlanError(f"{text} with combine={message.combine}; the first assigns, the others combine")
            come.add(keys)
        if left:
            raise PlanError(f"rank {rank} {DOES[side]} {abs(left)} message(s) too {'few' if left > 0 else 'many'}")


def _check_kind(step: Step, parts: list[Part], met: list[Array]) -> None:
    """Refuse a kind that does another movement; of one role alone, an allgather or reduce_scatter cuts no block."""
    kind, roles = step.kind, [(step.before.role(g), step.after.role(g)) for g in range(len(met))]
    names = [f"{before.name} to {after.name}" for before, after in roles]
    talk = {g for g, table in enumerate(met) if _talk(parts, table, g)}
    changed = {g for g, (before, after) in enumerate(roles) if before != after}
    idle = {g for g in step.grid_modes if len(met[g]) > 1} if kind in TOGETHER else set()
    outside = talk if kind in LOCAL else talk - {*step.grid_modes}
    other = [f"{g} ({names[g]})" for g in sorted(talk | changed | idle) if kind in ROLES and names[g] != ROLES[kind]]
    filled = any(before.name != "partial" == after.name for before, after in roles)
    cut = [any(len(there) > 1 for _, cuts in parts for there in cuts[side].values()) for side in (SENDS, RECEIVES)]
    unlike = any(before.name != after.name for before, after in roles)
    shared = [m.sum(axis=k).max() > 1 for m, r in zip(met, roles, strict=True) for k in (0, 1) if r[0].name != "split"]
    for wrong, text in (
        (outside, f"ranks meet over grid modes {sorted(outside)}, which are not in the step's sub-grid"),
        (other, f"grid mode {', '.join(other)} is not {ROLES.get(kind)}, as in this kind"),
        (kind in ROLES and kind != "alltoall" and not changed, f"no grid mode is {ROLES.get(kind)}, as in this kind"),
        ((kind, filled) in (("slice", True), ("zero_fill", False)), "a zero_fill, and no slice, makes tensors partial"),
        (kind == "permute" and any((*cut, *shared, unlike)), "blocks must go whole to one rank, not cut or copied"),
        (kind in AS_THEY_ARE and _named(step.before)[:4] != _named(step.after)[:4], "blocks are not to be rearranged"),
    ):
        if wrong:
            raise PlanError(text)


def _talk(parts: list[Part], met: Array, g: int) -> bool:
    """Whether some message goes from one coordinate of a grid mode to another."""
    pairs = met & ~np.eye(len(met), dtype=bool)
    for over, (given, _) in parts:
        meant = np.zeros_like(met)
        before, after = (modes.index(g) if g in modes else None for modes in over)
        for y, x in ((y, x) for y, cut in given.items() for x in cut):
            meant[slice(None) if before is None else y[before], slice(None) if after is None else x[after]] = True
        pairs &= meant
    return bool(pairs.any())


def _named(dist: Distribution) -> tuple[object, ...]:
    """What a distribution means: equal values mean that every rank has the same elements in the same order."""
    roles = tuple(dist.role(g) for g in range(dist.grid.order))
    return dist.shape, dist.grid, dist.digits, dist.splits, roles, dist.partial and dist.layout.op


def _elements(dist: Distribution, modes: At, where: dict[int, int]) -> tuple[Array, list[int]]:
    """What lies at some coordinates along some modes: row-major tensor indices in local order, and the extents."""
    found: Array = np.zeros((1,) * len(modes), np.int64)
    for axis, mode in enumerate(modes):
        at = tuple(where[s.grid_mode] for s in dist.splits[mode])
        index = mode_set(dist.splits[mode], dist.view_shape[mode], at).to_array()
        for m, added in to_tensor(dist.digits[mode], index).items():
            along = added * prod(max(n, 1) for n in dist.shape[m + 1 :])
            found = found + along.reshape([-1 if k == axis else 1 for k in range(len(modes))])
    return found.reshape(-1), list(found.shape)


def _grid_modes(dist: Distribution, modes: At) -> At:
    return tuple(sorted(s.grid_mode for m in modes for s in dist.splits[m]))


def _rank(dist: Distribution, grid_modes: At, at: At) -> int:
    where = dict(dist.layout.rooted) | dict(zip(grid_modes, at, strict=True))  # 0 along the other grid modes
    return dist.grid.rank([where.get(g, 0) for g in range(dist.grid.order)])


def _index(dist: Distribution, element: int) -> At:
    return tuple(element // prod(max(k, 1) for k in dist.shape[m + 1 :]) % max(n, 1) for m, n in enumerate(dist.shape))
