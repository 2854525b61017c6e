"""The certificate of a plan: a second program, that proves from the index sets alone that every element arrives.

A message is a product of one group of elements per component, and goes wherever two ranks meet along every grid mode.
So factors are proved, not elements, and a proof hardly takes longer on more ranks:
1. per component, the boxes of its elements have each once, and both sides have the same ones in each (`partition`);
2. per grid mode, coordinates meet as the roles on both sides ask: values arrive once, contributions enter once;
3. the lists of messages are these products, ascending by rank; of contributions the first assigns, the others combine
   (that is read off the lists of as many ranks as have `LISTED` messages, and of one rank at least);
4. ranks that meet differ along the step's grid modes alone, and the step's kind can do the movement (in place of 2 to
   4, a step from one grid to another is proved message by message: `pairwise`);
5. bytes, messages and peak memory are as claimed: they are counted anew from what 1 and 2 have proved (`recount`).

No rank waits for another one in vain: a plan knows no rank, so all ranks take the same steps in the same order, and the
sub-grids of a step, the ranks that differ along its grid modes alone, part the ranks. So each rank joins the collective
of one sub-grid per step, together with all its members. By 4 nobody outside takes part, and where a collective needs
all members each of its grid modes is one over which they work; by 3 both sides list the same messages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...layout.distribution import Distribution
from ..groups import Group
from ..movement import communicates, components, receives, sends
from ..step import LOCAL, Step
from .pairwise import prove_pairs
from .partition import DOES, RECEIVES, SENDS, Cut, Ends, ProvedComponent, prove, rank_at, same
from .recount import Claimed, Recount, figures, recount

__all__ = ["LISTED", "verify"]

Array = npt.NDArray[Any]
At = tuple[int, ...]

LISTED = 256  # messages per side of a step: so many lists are read one by one
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


def verify(
    source: Distribution,
    target: Distribution,
    steps: tuple[Step, ...],
    dtype: np.dtype[Any],
    claimed: Claimed | Callable[[], Claimed] | None = None,
) -> None:
    """Raise PlanError unless the steps join up, each delivers every element once, and the figures are as claimed.

    The claim may be a function, which is called once the steps are proved; without a claim no figure is compared.
    """
    at, recounts = source, []
    for number, step in enumerate(steps, 1):
        if step.before != at and _named(step.before) != _named(at):
            raise PlanError(f"step {number} starts from {step.before}, but the tensor lies as {at}")
        try:
            recounts.append((step.after, _verify_step(step, dtype)))
        except PlanError as error:
            raise PlanError(f"step {number} ({step}): {error}") from None
        at = step.after
    if at != target and _named(at) != _named(target):
        raise PlanError(f"the plan ends in {at}, not in {target}")
    if claimed is None:
        return
    claim = claimed() if callable(claimed) else claimed
    for name, count in figures(source, target, recounts).items():
        says, recounted = getattr(claim, name), count if name == "messages" else count * dtype.itemsize
        if says != recounted:
            raise PlanError(f"the plan claims {name}={says}, but its steps make it {recounted}")


def _verify_step(step: Step, dtype: np.dtype[Any]) -> Recount:
    source, target, grid = step.before, step.after, step.before.grid
    if step.kind not in {*ROLES, *LOCAL, "permute", "exchange"}:
        raise PlanError(f"there is no kind of step {step.kind!r}")
    if (source.shape, grid.size) != (target.shape, target.grid.size):
        raise PlanError(f"it leads from {source} to {target}; a plan stays on one shape and its ranks")
    if list(step.grid_modes) != sorted({*step.grid_modes} & {*range(grid.order)}):
        raise PlanError(f"its grid modes {step.grid_modes} are not ascending grid modes of {grid}")
    shared = components(source, target)
    for dist, modes in ((source, [part.before for part in shared]), (target, [part.after for part in shared])):
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")
        if sorted(m for part in modes for m in part) != list(range(dist.order)):
            raise PlanError(f"the components {modes} are not the modes of {dist.layout}, each once")
    parts = [prove((source, target), part) for part in shared]
    if step.across:
        if step.grid_modes != tuple(range(grid.order)):
            raise PlanError(f"its grid modes {step.grid_modes} are not all of grid {grid}, though it leads to another")
        return prove_pairs(step.kind, (source, target), parts)
    met = [_grid_mode(source, target, g) for g in range(grid.order)]
    for side in (RECEIVES, SENDS):
        _lists((source, target), parts, met, side)
    _check_kind(step, parts, met)
    return recount(step.kind, grid.shape, parts, met)


def _grid_mode(source: Distribution, target: Distribution, g: int) -> Array:
    """The partners along a grid mode: true at [a, b] if data goes from coordinate a to b. Proved from the roles."""
    before, after, changes = source.roles[g], target.roles[g], source.layout.op != target.layout.op
    p = source.grid.shape[g]
    met = communicates(before, after, changes, p)
    holds, wants = (range(role.at, role.at + 1) if role.name == "rooted" else range(p) for role in (before, after))
    inside = met[holds.start : holds.stop, wants.start : wants.stop]
    own = before.name in ("split", "partial")  # each coordinate has what no other has
    single = before.name == "partial" and changes  # a new reduction starts when the old one is over
    if after.name != "partial":
        right = (inside.sum(axis=0) == (len(holds) if own else 1)).all()
        rule = f"each of {[*wants]} hears from {'all' if own else 'one'} of {[*holds]}"
    elif own:
        right = (inside.sum(axis=1) == 1).all() and (not single or inside.any(axis=0).sum() == 1)
        rule = f"each contribution enters one accumulator{', the same for all' * single}"
    else:
        right, rule = inside.sum() == 1, f"the value is contributed once, by one of {[*holds]}"
    if not right or (inside.size < met.size and met.sum() != inside.sum()):
        raise PlanError(
            f"grid mode {g}, {before.name} to {after.name}: {np.argwhere(met).tolist()[:9]} meet, but {rule}"
        )
    return met


def _lists(ends: Ends, parts: list[ProvedComponent], met: list[Array], side: int) -> None:
    """Compare the messages of the first ranks, one by one, with the products of what was proved."""
    grid, listed, does = ends[side].grid, (sends, receives)[side], DOES[side]
    strides = [prod(grid.shape[g + 1 :]) for g in range(grid.order)]
    split = {g for part in parts for g in part.over[1 - side]}
    free = [g for g in range(grid.order) if g not in split]
    tables = {g: table if side == SENDS else table.T for g, table in enumerate(met) if g in free or not table.all()}
    first, seen = rank_at(ends[side], (), ()), 0  # of a rooted tensor, the root
    compared: dict[Group, tuple[Cut, ...]] = {}  # what a group has been found to be: it is in many messages
    for rank in chain((first,), range(first), range(first + 1, grid.size)):
        me = grid.coordinates(rank)
        partners = {g: table[me[g]].tolist() for g, table in tables.items()}
        places = [0]  # what the coordinates along grid modes that split nothing there add to the number of the peer
        for g in free:
            places = [place + strides[g] * c for place in places for c, meet in enumerate(partners[g]) if meet]
        options, number = [], len(places)
        for part in parts:
            options.append(_options(part, side, tuple([me[g] for g in part.over[side]]), strides, partners))
            number *= len(options[-1])
        if seen and seen + number > LISTED:
            return
        seen += max(number, 1)
        proved: list[tuple[int, tuple[tuple[Cut, ...], ...], bool]] = [
            (place, (), place != places[0]) for place in places
        ]
        for option in options:
            proved = [(at + more, (*some, group), last) for at, some, last in proved for more, group in option]
        proved.sort(key=itemgetter(0))
        messages = listed(*ends, rank)
        peers, right = [message.peer for message in messages], [peer for peer, _, _ in proved]
        if peers != right:
            text = f"rank {rank} {does} {len(peers)} messages, with ranks {str(peers)[:60]}"
            raise PlanError(f"{text}, but it meets {len(right)}, {str(right)[:60]}, each once and in ascending order")
        for message, (peer, some, last) in zip(messages, proved, strict=True):
            alike = len(message.groups) == len(some)
            for group, cuts in zip(message.groups, some, strict=False):
                if alike and compared.get(group) is not cuts:
                    alike, compared[group] = same(group, cuts), cuts
            if not alike:
                raise PlanError(
                    f"rank {rank} {does} a message with rank {peer} that has other elements, or other order"
                )
            if side == RECEIVES and message.combine != last:
                text = f"rank {rank} {does} a message from rank {peer} with combine={message.combine}"
                raise PlanError(f"{text}; the first assigns, the others combine")


def _options(
    part: ProvedComponent, side: int, own: At, strides: list[int], partners: dict[int, list[bool]]
) -> list[tuple[int, tuple[Cut, ...]]]:
    """The elements at some coordinates of one side and at peers that these meet, by what adds to the peers' numbers."""
    others, options = part.over[1 - side], []
    for where, cuts in part.proof.row(side, own):
        place = 0
        for g, c in zip(others, where, strict=True):
            if g in partners and not partners[g][c]:
                break
            place += strides[g] * c
        else:
            options.append((place, cuts))
    return options


def _check_kind(step: Step, parts: list[ProvedComponent], met: list[Array]) -> None:
    """Refuse a kind that does another movement; of one role alone, an allgather or reduce_scatter cuts no block."""
    kind, roles = step.kind, [*zip(step.before.roles, step.after.roles, strict=True)]
    names = [f"{before.name} to {after.name}" for before, after in roles]
    talk = {g for g, table in enumerate(met) if _talk(parts, table, g)}
    changed = {g for g, (before, after) in enumerate(roles) if before != after}
    idle = {g for g in step.grid_modes if len(met[g]) > 1} if kind in TOGETHER else set()
    outside = talk if kind in LOCAL else talk - {*step.grid_modes}
    other = [f"{g} ({names[g]})" for g in sorted(talk | changed | idle) if kind in ROLES and names[g] != ROLES[kind]]
    filled = any(before.name != "partial" == after.name for before, after in roles)
    for wrong, text in (
        (outside, f"ranks meet over grid modes {sorted(outside)}, which are not in the step's sub-grid"),
        (other, f"grid mode {', '.join(other)} is not {ROLES.get(kind)}, as in this kind"),
        (kind in ROLES and kind != "alltoall" and not changed, f"no grid mode is {ROLES.get(kind)}, as in this kind"),
        ((kind, filled) in (("slice", True), ("zero_fill", False)), "a zero_fill, and no slice, makes tensors partial"),
        (kind == "permute" and _cut(step, parts, met), "blocks must go whole to one rank, not cut or copied"),
        (kind in AS_THEY_ARE and _named(step.before)[:4] != _named(step.after)[:4], "blocks are not to be rearranged"),
    ):
        if wrong:
            raise PlanError(text)


def _cut(step: Step, parts: list[ProvedComponent], met: list[Array]) -> bool:
    """Whether some block goes to several ranks, comes from several, or changes its role."""
    for before, after, table in zip(step.before.roles, step.after.roles, met, strict=True):
        several = before.name != "split" and max(table.sum(axis=0).max(), table.sum(axis=1).max()) > 1
        if several or before.name != after.name:
            return True
    return any(_several(part, side) for part in parts for side in (SENDS, RECEIVES))


def _talk(parts: list[ProvedComponent], met: Array, g: int) -> bool:
    """Whether some message goes from one coordinate of a grid mode to another."""
    pairs = met.copy()
    pairs.flat[:: len(met) + 1] = False
    for part in parts:
        if not len(part.sizes):
            return False
        given, taken = part.at[SENDS].get(g), part.at[RECEIVES].get(g)
        if given is not None or taken is not None:
            meant = np.zeros_like(met)
            meant[slice(None) if given is None else given, slice(None) if taken is None else taken] = True
            pairs &= meant
    return bool(pairs.any())


def _named(dist: Distribution) -> tuple[object, ...]:
    """The meaning of a distribution: equal ones give every rank the same elements in the same order."""
    return dist.shape, dist.grid, dist.digits, dist.splits, dist.roles, dist.partial and dist.layout.op


def _several(part: ProvedComponent, side: int) -> bool:
    """Whether the elements at some coordinates of one side lie at several of the other one."""
    own = {*zip(*(at.tolist() for at in part.at[side].values()), strict=True)}
    return len(part.sizes) > max(len(own), 1)
