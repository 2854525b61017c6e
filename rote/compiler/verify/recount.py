"""The figures of a plan, counted again from proved facts: pairs of coordinates, and which ranks exchange data.

A rank's elements and messages are products of sums over one component each, so there is one table per component, and
NumPy broadcasts the tables over the grid. Messages are counted as the caller of a collective sees them, elements of an
allreduce and a reduce as the algorithms that receive least do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...layout.distribution import Distribution
from ...layout.kinds import extent
from ..components import counting
from ..messages import PeerRule
from ..step import LOCAL, Step
from .proof import RECEIVES, SENDS, Ends, ProvedComponent

__all__ = ["Recount", "figures", "recount", "recount_across"]

Array = npt.NDArray[Any]
At = tuple[int, ...]


_AT_ONCE = 1 << 20  # pairs of ranks


class Recount(NamedTuple):
    """Per rank, in row-major order: elements and messages received in a step, and elements in its buffers."""

    received: Array
    messages: Array
    buffers: Array


def recount(kind: str, ends: Ends, parts: Sequence[ProvedComponent], rules: Sequence[PeerRule]) -> Recount:
    """Count what every rank receives and buffers in a step of this kind between two distributions on one grid.

    `rules[g]` says between which coordinates of grid mode g data goes.
    """
    shape = ends[0].grid.shape
    zero: Array = np.zeros(shape, np.int64)
    if kind in LOCAL:
        return Recount(zero, zero, zero)
    copies = 1  # the most contributions, or copies, that a rank receives or sends of an element
    for p, before, after in zip(shape, ends[0].roles, ends[1].roles, strict=True):
        copies *= 1 if before.name == after.name == "split" else p
    counter = counting(prod(ends[0].shape) * copies)
    arriving, number, kept = _totals(shape, counter, parts, rules, RECEIVES)
    foreign, peers = arriving - kept, number - (kept > 0)
    match kind:
        case "allreduce":  # contributions to all elements arrive at all ranks but one, then copies of the sums
            return Recount(-(-2 * peers * kept // (peers + 1)), peers, zero)
        case "broadcast":
            return Recount(foreign, peers, zero)
        case "allgather":  # a rank buffers its part once for all receivers; all parts arrive, with its own
            return Recount(foreign, peers, kept + arriving)
    leaving = _totals(shape, counter, parts, [rule.reversed() for rule in rules], SENDS)[0]
    match kind:
        case "reduce":  # the other ranks reduce a part each, which then arrives at the root
            sent, others = leaving - kept, max(int(peers.max()), 1)
            return Recount(kept + -(-(others - 1) * sent // others), peers, sent)
        case "reduce_scatter":
            return Recount(foreign, peers, leaving + kept)
    return Recount(foreign, peers, leaving - kept + foreign)


def recount_across(ends: Ends, parts: Sequence[ProvedComponent]) -> Recount:
    """Count what every rank receives and buffers in a step from one grid to another over the same ranks.

    Every rank receives from all contributors, and from the replica at its own coordinates of the source's grid.
    """
    size, elements = ends[SENDS].grid.size, prod(ends[SENDS].shape)
    at = [np.unravel_index(np.arange(size), dist.grid.shape) if dist.grid.order else () for dist in ends]
    copies = prod([_number(ends[SENDS], "partial"), _number(ends[RECEIVES], "replicated")])
    gives, takes = np.ones((2, size), counting(elements * copies))
    for active, dist, places in ((gives, ends[SENDS], at[SENDS]), (takes, ends[RECEIVES], at[RECEIVES])):
        for g, root in dist.layout.rooted:
            active *= places[g] == root
    for g in ends[RECEIVES].partial:
        takes *= at[RECEIVES][g] == 0
    kept = gives * takes
    arriving = peers = takes * _number(ends[SENDS], "partial")
    leaving = gives * _number(ends[RECEIVES], "replicated")
    for part in parts:
        before, after = ({part.row(side, g): at[side][g] for g in part.over[side]} for side in (SENDS, RECEIVES))
        received, met = part.proof.shared(after)
        arriving, peers, kept = arriving * received, peers * met, kept * part.proof.shared(before | after)[0]
        leaving = leaving * part.proof.shared(before)[0]
    if _number(ends[SENDS], "replicated") > 1:
        leaving = _served(ends, parts, at, takes) * gives
    foreign = arriving - kept
    return Recount(foreign, (peers - (kept > 0)).astype(np.int64), leaving - kept + foreign)


def _number(dist: Distribution, name: str) -> int:
    """The number of coordinates along all grid modes of some role."""
    return prod([p for p, role in zip(dist.grid.shape, dist.roles, strict=True) if role.name == name])


def _served(ends: Ends, parts: Sequence[ProvedComponent], at: Sequence[Sequence[Array]], takes: Array) -> Array:
    """The elements that every rank sends if it is one of several replicas, each for the ranks at its coordinates."""
    grid, number = ends[SENDS].grid, np.zeros_like(takes)
    replicas = [g for g, role in enumerate(ends[SENDS].roles) if role.name == "replicated"]
    several = [grid.shape[g] for g in replicas]
    replica = np.ravel_multi_index([at[SENDS][g] for g in replicas], several)
    for here in range(prod(several)):
        senders, receivers = np.flatnonzero(replica == here), np.flatnonzero((replica == here) & (takes > 0))
        at_once = max(1, _AT_ONCE // max(len(receivers), 1))
        for some in np.split(senders, range(at_once, len(senders), at_once)):
            sizes: Array = np.ones((len(some), len(receivers)), takes.dtype)
            for part in parts:
                before = {part.row(SENDS, g): at[SENDS][g][some][:, None] for g in part.over[SENDS]}
                after = {part.row(RECEIVES, g): at[RECEIVES][g][receivers] for g in part.over[RECEIVES]}
                sizes = sizes * part.proof.shared(before | after)[0]
            number[some] = sizes.sum(axis=1)
    return number


def figures(
    source: Distribution, target: Distribution, steps: Sequence[tuple[Step, Recount]], item: int
) -> dict[str, int]:
    """The most bytes and messages that any rank receives, and the most bytes that any rank holds.

    A rank holds its blocks of the source and the target throughout, and during a step its blocks before and after it.

    Args:
        steps: the steps, each with its recount.
        item: the bytes of an element.
    """
    ends = _block(source) + _block(target)
    received = messages = highest = before = np.zeros_like(ends)
    for number, (step, moved) in enumerate(steps, 1):
        after = _block(step.after) if number < len(steps) else np.zeros_like(ends)
        received = received + moved.received.reshape(-1) * step.sent(item)
        messages = messages + moved.messages.reshape(-1)
        highest, before = np.maximum(highest, before + after + moved.buffers.reshape(-1)), after
    most = {"bytes": received, "messages": messages, "peak_bytes": (ends + highest) * item}
    return {name: int(per_rank.max()) for name, per_rank in most.items()}


def _block(dist: Distribution) -> Array:
    """The number of elements that each rank holds."""
    shape, counter = dist.grid.shape, counting(prod(dist.shape))
    block = np.ones(shape, counter)
    for splits, n in zip(dist.splits, dist.view_shape, strict=True):
        left: Array = np.full((), n)
        for split in splits:
            left = extent(split.kind, split.parts, left, _over(np.arange(split.parts), [split.grid_mode], shape)[0])
        block = np.asarray(block * left, counter)  # NumPy makes numbers of arrays of order 0
    for g, at in dist.layout.rooted:
        block = block * _over(np.arange(shape[g]) == at, [g], shape)[0]
    return np.asarray(block, counter).reshape(-1)


def _totals(
    shape: At, counter: np.dtype[Any], parts: Sequence[ProvedComponent], rules: Sequence[PeerRule], side: int
) -> Array:
    """Per rank: elements that it exchanges with ranks of the other side, the number of these, and elements it keeps.

    The rules are from the other side to this one. What is kept is counted for receivers only.
    """
    total, free = np.ones((3, *shape), counter), {*range(len(shape))}
    for part in parts:
        over = sorted({*part.over[SENDS], *part.over[RECEIVES]})
        if part.ranges is not None:
            sums = np.array([part.ranges.elements[side], part.ranges.peers[side], part.ranges.kept])
        else:
            sums = _sums(
                part,
                rules,
                side,
                {g: _over(np.arange(shape[g]), [k], tuple([shape[h] for h in over]))[0] for k, g in enumerate(over)},
            )
        total = total * _over(sums, over, shape)
        free -= {*part.over[1 - side]}
    for g in free:
        number = rules[g].counts(sending=False)
        total = total * _over(np.array([number, number, rules[g].itself()]), [g], shape)
    return total


def _sums(part: ProvedComponent, rules: Sequence[PeerRule], side: int, places: dict[int, Array]) -> Array:
    """The three sums of `_totals` over one component, at the coordinates of ranks along its grid modes."""
    mine = {part.row(side, g): places[g] for g in part.over[side]}  # of the others, all coordinates count
    known, itself = dict(mine), dict(mine)
    here: Any = np.True_
    keeps: Any = np.True_
    for g in part.over[1 - side]:
        rule, row, place = rules[g], part.row(1 - side, g), places[g]
        itself[row] = place
        if rule.everywhere:
            continue
        keeps = keeps & rule.at(place, place)
        if rule.equal:
            here, known[row] = here & rule.at(place, place), place
        elif rule.sender is not None:
            known[row] = np.asarray(rule.sender)
        if rule.receiver is not None:
            here = here & (place == rule.receiver)
    sums = np.zeros((3, *[rules[g].number for g in places]), part.proof.counter)
    elements, pairs = part.proof.shared(known)
    sums[0], sums[1] = elements * here, pairs * here
    if side == RECEIVES:  # what a rank keeps is counted once
        sums[2] = part.proof.shared(itself)[0] * keeps
    return sums


def _over(table: Array, grid_modes: Sequence[int], shape: At) -> Array:
    """Reshape tables over some ascending grid modes to arrays that broadcast over the whole grid."""
    extents = [1] * len(shape)
    for g in grid_modes:
        extents[g] = shape[g]
    return table.reshape(-1, *extents)
