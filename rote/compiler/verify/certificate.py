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
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...layout.distribution import Distribution
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
    """Who meets whom along a grid mode: true at [a, b] if data goes from coordinate a to b. Proved from the roles."""
    before, after, changes = source.roles[g], target.roles[g], source.layout.op != target.layout.op
    every = range(source.grid.shape[g])
    met = communicates(before, after, changes, len(every))
    holds = [a for a in every if before.name != "rooted" or a == before.at]
    wants = [b for b in every if after.name != "rooted" or b == after.at]
    inside = met[np.ix_(holds, wants)]
    own = before.name in ("split", "partial")  # each coordinate has what no other has
    single = before.name == "partial" and changes  # a new reduction starts when the old one is over
    if after.name != "partial":
        right = (inside.sum(axis=0) == (len(holds) if own else 1)).all()
        rule = f"each of {wants} hears from {'all' if own else 'one'} of {holds}"
    elif own:
        right = (inside.sum(axis=1) == 1).all() and (not single or inside.any(axis=0).sum() == 1)
        rule = f"each contribution enters one accumulator{', the same for all' * single}"
    else:
        right, rule = inside.sum() == 1, f"the value is contributed once, by one of {holds}"
    if not right or met.sum() != inside.sum():
        raise PlanError(
            f"grid mode {g}, {before.name} to {after.name}: {np.argwhere(met).tolist()[:9]} meet, but {rule}"
        )
    return met


def _lists(ends: Ends, parts: list[ProvedComponent], met: list[Array], side: int) -> None:
    """Compare the messages of the first ranks, one by one, with the products of what was proved."""
    grid, listed = ends[side].grid, (sends, receives)[side]
    strides = [prod(grid.shape[g + 1 :]) for g in range(grid.order)]
    free = [g for g in range(grid.order) if not any(g in part.at[1 - side] for part in parts)]
    first, seen = rank_at(ends[side], (), ()), 0  # of a rooted tensor, the root
    for rank in (first, *(r for r in range(grid.size) if r != first)):
        me = grid.coordinates(rank)
        partners = [(m[c] if side == SENDS else m[:, c]).tolist() for m, c in zip(met, me, strict=True)]
        places = [0]  # what the coordinates along grid modes that split nothing there add to the number of the peer
        for g in free:
            places = [place + strides[g] * c for place in places for c, meet in enumerate(partners[g]) if meet]
        options = [
            [
                (sum(strides[g] * c for g, c in coordinates), cut)
                for coordinates, cut in part.row(side, tuple(me[g] for g in part.over[side]))
                if all(partners[g][c] for g, c in coordinates)
            ]
            for part in parts
        ]
        number = len(places) * prod(map(len, options))
        if seen and seen + number > LISTED:
            return
        seen += max(number, 1)
        proved: list[tuple[int, tuple[tuple[Cut, ...], ...], bool]] = [
            (place, (), place != places[0]) for place in places
        ]
        for option in options:
            proved = [(at + more, (*some, group), last) for at, some, last in proved for more, group in option]
        proved.sort(key=itemgetter(0))
        messages, does = [*listed(*ends, rank)], f"rank {rank} {DOES[side]}"
        peers, right = [message.peer for message in messages], [peer for peer, _, _ in proved]
        if peers != right:
            text = f"{does} {len(peers)} messages, with ranks {str(peers)[:60]}"
            raise PlanError(f"{text}, but it meets {len(right)}, {str(right)[:60]}, each once and in ascending order")
        for message, (peer, some, last) in zip(messages, proved, strict=True):
            if len(message.groups) != len(some) or not all(map(same, message.groups, some)):
                raise PlanError(f"{does} a message with rank {peer} that has other elements, or other order")
            if side == RECEIVES and message.combine != last:
                text = f"{does} a message from rank {peer} with combine={message.combine}"
                raise PlanError(f"{text}; the first assigns, the others combine")


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
    cut = [any(_several(part, side) for part in parts) for side in (SENDS, RECEIVES)]
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


def _talk(parts: list[ProvedComponent], met: Array, g: int) -> bool:
    """Whether some message goes from one coordinate of a grid mode to another."""
    pairs = met & ~np.eye(len(met), dtype=bool)
    for part in parts if pairs.any() else ():
        meant = np.zeros_like(met)
        meant[part.at[SENDS].get(g, slice(None)), part.at[RECEIVES].get(g, slice(None))] = len(part.sizes) > 0
        pairs &= meant
    return bool(pairs.any())


def _named(dist: Distribution) -> tuple[object, ...]:
    """What a distribution means: equal values mean that every rank has the same elements in the same order."""
    return dist.shape, dist.grid, dist.digits, dist.splits, dist.roles, dist.partial and dist.layout.op


def _several(part: ProvedComponent, side: int) -> bool:
    """Whether the elements at some coordinates of one side lie at several of the other one."""
    own = {*zip(*(at.tolist() for at in part.at[side].values()), strict=True)}
    return len(part.sizes) > max(len(own), 1)
