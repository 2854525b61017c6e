"""The certificate of a plan: a second program that proves from the index sets alone that every element arrives.

A message is a product of one group of elements per component, and goes wherever two ranks meet along every grid mode.
So the proof is about factors, not elements, and hardly takes longer on more ranks:
1. per component, the boxes contain each element once, and both sides have the same elements in each (`partition`);
2. per grid mode, coordinates meet as the roles on both sides require: values arrive once, contributions enter once
   (`roles`);
3. the lists of messages are these products, ascending by rank; the first contribution assigns, the others combine
   (this compares the lists of one rank, and of further ranks up to a total of `LISTED` messages; beyond `WHOLE`
   ranks, the messages between some pairs of them);
4. ranks that meet differ along the step's grid modes alone, and the step's kind can do the movement (for a step from
   one grid to another, a proof message by message takes the place of 2 to 4: `pairwise`);
5. bytes, messages and peak memory are as claimed: they are counted again from the results of 1 and 2 (`recount`).

No rank waits for another one in vain. A plan does not depend on the rank, so all ranks take the same steps in the same
order. The sub-grids of a step, whose ranks differ along its grid modes alone, partition the ranks, so in each step a
rank joins the collective of one sub-grid, with all its members. By 4, no rank outside takes part, and if a collective
needs all members, they work over each of its grid modes. By 3, both sides list the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...layout.distribution import Distribution
from ...layout.grid import row_major
from ..movement.components import components
from ..movement.messages import Group, Message, PeerRule, receives, sends
from ..step import LOCAL, Step
from .pairwise import prove_pairs
from .partition import DOES, RECEIVES, SENDS, Cut, Ends, ProvedComponent, prove, rank_at, same
from .recount import Claimed, Recount, figures, recount
from .roles import prove_grid_mode, talk_over

__all__ = ["LISTED", "verify"]

Array = npt.NDArray[Any]
At = tuple[int, ...]

WHOLE = 4096  # ranks; in larger worlds, messages between some pairs of ranks stand for whole lists
LISTED = 256  # messages per side of a step that are compared one by one
ROLES = {  # the change of role that a collective makes on the grid modes over which ranks meet, or whose role changes
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
TOGETHER = ("allgather", "reduce_scatter", *AS_THEY_ARE)  # no rank of the sub-grid may be idle


def verify(
    source: Distribution,
    target: Distribution,
    steps: tuple[Step, ...],
    dtype: np.dtype[Any],
    claimed: Claimed | Callable[[], Claimed] | None = None,
) -> None:
    """Raise PlanError unless the steps join up, each delivers every element once, and the figures match the claim.

    The claim may be a function, which is called once the steps are proved; without a claim no figure is compared.
    """
    at, recounts = source, []
    for number, step in enumerate(steps, 1):
        if step.before != at and step.before.meaning != at.meaning:
            raise PlanError(f"step {number} starts from {step.before}, but the tensor lies as {at}")
        try:
            moved = _verify_step(step, dtype)
            received = moved.received * step.sent(dtype.itemsize)
            recounts.append((step.after, Recount(received, moved.messages, moved.buffers)))
        except PlanError as error:
            raise PlanError(f"step {number} ({step}): {error}") from None
        at = step.after
    if at != target and at.meaning != target.meaning:
        raise PlanError(f"the plan ends in {at}, not in {target}")
    if claimed is None:
        return
    claim = claimed() if callable(claimed) else claimed
    for name, count in figures(source, target, recounts).items():
        says = getattr(claim, name)
        recounted = count * dtype.itemsize if name == "peak_bytes" else count
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
    if step.wire is not None:
        _check_wire(step, dtype)
    shared = components(source, target)
    for dist, before in ((source, True), (target, False)):
        modes = [part.modes(before) for part in shared]
        if dist.partial and dist.layout.op in ("max", "min") and dtype.kind == "c":
            raise PlanError(f"complex numbers have no {dist.layout.op}: {dist.layout} of {dtype}")
        if sorted(chain(*modes)) != list(range(dist.order)):
            raise PlanError(f"the components {modes} are not the modes of {dist.layout}, each once")
    parts = [prove((source, target), part) for part in shared]
    if step.across:
        if step.grid_modes != tuple(range(grid.order)):
            raise PlanError(f"its grid modes {step.grid_modes} are not all of grid {grid}, though it leads to another")
        return prove_pairs(step.kind, (source, target), parts)
    met = [prove_grid_mode(source, target, g) for g in range(grid.order)]
    for side in (RECEIVES, SENDS):
        _lists((source, target), parts, met, side)
    _check_kind(step, parts, met)
    return recount(step.kind, (source, target), parts, met)


def _check_wire(step: Step, dtype: np.dtype[Any]) -> None:
    """Refuse rounding if a rank's own copy would differ from those of others, or if MPI would reduce rounded values."""
    assert step.wire is not None, "others are not rounded"
    if (step.wire.kind, 2 * step.wire.itemsize) != (dtype.kind, dtype.itemsize) or dtype.itemsize < 8:
        raise PlanError(f"its elements are {dtype}, which are not rounded to {step.wire}")
    modes = range(step.after.grid.order) if step.across else step.grid_modes
    copied = any(step.after.roles[g].name == "replicated" and step.after.grid.shape[g] > 1 for g in modes)
    if step.kind in (*LOCAL, *AS_THEY_ARE, "reduce_scatter") or (copied and step.kind != "allgather"):
        raise PlanError(f"its elements may not be rounded to {step.wire}: copies would differ, or sums lose more")


class _Proved(NamedTuple):
    """The proved messages of one rank: each is a product of one place and one option per component.

    Attributes:
        places: the parts of peers' numbers from the grid modes that split nothing on the other side.
        first: the part of the first message of all, which assigns.
        options: per component, the part of a peer's number from its grid modes, and the elements.
    """

    places: list[int]
    first: int | None
    options: list[list[tuple[int, tuple[Cut, ...]]]]

    def number(self) -> int:
        """The number of messages."""
        return prod([len(self.places), *map(len, self.options)])

    def messages(self) -> list[tuple[int, tuple[tuple[Cut, ...], ...], bool]]:
        """Per message, ascending by peer: its number, the elements per component, whether it combines."""
        products: list[tuple[int, tuple[tuple[Cut, ...], ...], bool]]
        products = [(place, (), place != self.first) for place in self.places]
        for option in self.options:
            products = [(at + more, (*some, cuts), late) for at, some, late in products for more, cuts in option]
        return sorted(products, key=itemgetter(0))


def _lists(ends: Ends, parts: list[ProvedComponent], met: list[PeerRule], side: int) -> None:
    """Compare the messages of the first ranks, one by one, with the products of the proved factors."""
    grid, listed = ends[side].grid, (sends, receives)[side]
    strides = row_major(grid.shape)
    split = {*chain(*[part.over[1 - side] for part in parts])}
    free = [g for g in range(grid.order) if g not in split]
    rules = {g: rule for g, rule in enumerate(met) if g in free or not rule.everywhere}
    first, seen = rank_at(ends[side], (), ()), 0  # the root, if the tensor is rooted
    compared: dict[Group, tuple[Cut, ...]] = {}
    ranks = chain((first,), range(first), range(first + 1, grid.size))
    for rank, peer in zip(ranks, repeat(None)) if grid.size <= WHOLE else _some_pairs(first, grid.size):
        me = grid.coordinates(rank)
        partners = {g: rule.peers(me[g], side == SENDS) for g, rule in rules.items()}
        begin = [strides[g] * c for g in free for c in partners[g][:1]] if free else []
        if peer is not None:
            for g, c in enumerate(grid.coordinates(peer)):
                partners[g] = range(c, c + 1) if c in partners.get(g, (c,)) else range(0)
        places, options = [0], []
        for g in free:
            places = [place + strides[g] * c for place in places for c in partners[g]]
        for part in parts:
            own = tuple([me[g] for g in part.over[side]])
            options.append(_options(part, side, own, strides, partners))
        proved = _Proved(places, sum(begin) if len(begin) == len(free) else None, options)
        number = proved.number()
        if seen and seen + number > LISTED:
            return
        seen += max(number, 1)
        _compare(rank, side, listed(*ends, rank, peer), proved, compared)


def _some_pairs(first: int, number: int) -> Iterator[tuple[int, int]]:
    """Some pairs of ranks all over a large world, those of the first rank and of neighbours among them."""
    some = [*range(0, number, -(-number // 8)), number - 1]
    for rank in (first, *some):
        for peer in {first: None, rank: None} | dict.fromkeys(some):
            yield rank, peer


def _compare(
    rank: int, side: int, messages: list[Message], proved: _Proved, compared: dict[Group, tuple[Cut, ...]]
) -> None:
    """Refuse messages of a rank that differ from the proved ones.

    `compared` remembers the elements that a group was found equal to, because a group is in many messages.
    """
    wanted, does = proved.messages(), DOES[side]
    peers, right = [message.peer for message in messages], [peer for peer, _, _ in wanted]
    if peers != right:
        text = f"rank {rank} {does} {len(peers)} messages, with ranks {str(peers)[:60]}"
        raise PlanError(f"{text}, but it meets {len(right)}, {str(right)[:60]}, each once and in ascending order")
    for message, (peer, elements, late) in zip(messages, wanted, strict=True):
        alike = len(message.groups) == len(elements)
        for group, cuts in zip(message.groups, elements, strict=False):
            if alike and compared.get(group) is not cuts:
                alike, compared[group] = same(group, cuts), cuts
        if not alike:
            raise PlanError(f"rank {rank} {does} a message with rank {peer} that has other elements, or other order")
        if side == RECEIVES and message.combine != late:
            text = f"rank {rank} {does} a message from rank {peer} with combine={message.combine}"
            raise PlanError(f"{text}; the first assigns, the others combine")


def _options(
    part: ProvedComponent, side: int, own: At, strides: At, partners: dict[int, range]
) -> list[tuple[int, tuple[Cut, ...]]]:
    """The elements at some coordinates of one side that lie at peers met, with the parts of the peers' numbers."""
    others, options = part.over[1 - side], list[tuple[int, tuple[Cut, ...]]]()
    if partners and not all(partners[g] for g in others if g in partners):
        return options
    only: At = ()
    if partners and others:
        only = tuple([partners[g][0] if g in partners and len(partners[g]) == 1 else -1 for g in others])
    for where, cuts in part.proof.row(side, own, only):
        place = 0
        for g, c in zip(others, where, strict=True):
            if g in partners and c not in partners[g]:
                break
            place += strides[g] * c
        else:
            options.append((place, cuts))
    return options


def _check_kind(step: Step, parts: list[ProvedComponent], met: list[PeerRule]) -> None:
    """Refuse a kind that does another movement; with one role change, allgather and reduce_scatter cut no block."""
    kind, before, after = step.kind, step.before, step.after
    roles = [*zip(before.roles, after.roles, strict=True)]
    talk = {g for g, rule in enumerate(met) if talk_over(parts, rule, g)}
    changed = {g for g, (old, new) in enumerate(roles) if old != new}
    outside = talk if kind in LOCAL else talk - {*step.grid_modes}
    if outside:
        raise PlanError(f"ranks meet over grid modes {sorted(outside)}, which are not in the step's sub-grid")
    if kind in ROLES:
        idle = {g for g in step.grid_modes if kind in TOGETHER and met[g].number > 1}
        others = []
        for g in sorted(talk | changed | idle):
            name = f"{roles[g][0].name} to {roles[g][1].name}"
            if name != ROLES[kind]:
                others.append(f"{g} ({name})")
        if others:
            raise PlanError(f"grid mode {', '.join(others)} is not {ROLES[kind]}, as in this kind")
        if kind != "alltoall" and not changed:
            raise PlanError(f"no grid mode is {ROLES[kind]}, as in this kind")
    filled = any(old.name != "partial" == new.name for old, new in roles)
    if (kind, filled) in (("slice", True), ("zero_fill", False)):
        raise PlanError("a zero_fill, and no slice, makes tensors partial")
    if kind == "permute" and _cut(step, parts, met):
        raise PlanError("blocks must go whole to one rank, not cut or copied")
    if kind in AS_THEY_ARE and (before.digits, before.splits) != (after.digits, after.splits):
        raise PlanError("blocks are not to be rearranged")


def _cut(step: Step, parts: list[ProvedComponent], met: list[PeerRule]) -> bool:
    """Whether some block goes to several ranks, comes from several, or changes its role."""
    for before, after, rule in zip(step.before.roles, step.after.roles, met, strict=True):
        several = before.name != "split" and max(rule.counts(sending).max() for sending in (True, False)) > 1
        if several or before.name != after.name:
            return True
    return any(_several(part, side) for part in parts for side in (SENDS, RECEIVES))


def _several(part: ProvedComponent, side: int) -> bool:
    """Whether the elements at some coordinates of one side lie at several coordinates of the other."""
    if part.ranges is not None:
        return bool((part.ranges.peers[side] > 1).any())
    columns = [at.tolist() for at in part.at[side].values()]
    own = {*zip(*columns, strict=True)}
    return len(part.sizes) > max(len(own), 1)
