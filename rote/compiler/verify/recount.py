"""The figures of a plan, counted again from proved facts: pairs of coordinates, and which ranks exchange data.

A rank's elements and messages are products of sums over one component each. These are looked up at the coordinates of
all ranks, in arrays that broadcast over the grid or, between two grids, rank by rank on each. Messages are counted as
the caller of a collective sees them, elements of an allreduce and a reduce as the algorithms that receive least do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...layout.kinds import extent
from ..overlaps import counting
from ..peers import RECEIVES, SENDS, PeerRule, Rules
from ..step import LOCAL, Step
from .proof import Ends, ProvedComponent

__all__ = ["Recount", "figures", "recount"]

Array = npt.NDArray[Any]
Coordinates = tuple[Sequence[Array], Sequence[Array]]  # per side and grid mode, the coordinates of all ranks

_AT_ONCE = 1 << 20  # pairs of ranks


class Recount(NamedTuple):
    """Per rank, in row-major order: elements and messages received in a step, and elements in its buffers."""

    received: Array
    messages: Array
    buffers: Array


def recount(step: Step, parts: Sequence[ProvedComponent], rules: Rules) -> Recount:
    """Count what every rank receives and buffers in a step.

    `rules` says, for each grid mode of both sides, between which of its coordinates data goes.
    """
    ends, across, zero = (step.before, step.after), step.across, np.zeros((), np.int64)
    if step.kind in LOCAL and not across:
        return Recount(zero, zero, zero)

    places = _places(ends[SENDS].grid, across), _places(ends[RECEIVES].grid, across)

    # An element comes from all contributors, and goes to all replicas.
    copies = max(_number(ends[SENDS], "partial"), _number(ends[RECEIVES], "replicated"))
    ranks = step.before.grid.size if across else step.before.grid.shape
    ones: Array = np.ones(ranks, counting(prod(ends[SENDS].shape) * copies))

    arriving, number, local = _totals(ones, parts, rules, places, RECEIVES)
    foreign, peers = arriving - local, number - (local > 0)

    match step.kind:
        case "allreduce":  # contributions to all elements arrive at all ranks but one, then copies of the sums
            return Recount(-(-2 * peers * local // (peers + 1)), peers, zero)
        case "broadcast":
            return Recount(foreign, peers, zero)
        case "allgather":  # a rank buffers its part once for all receivers; all parts arrive, with its own
            return Recount(foreign, peers, local + arriving)

    if across and _number(ends[SENDS], "replicated") > 1:
        leaving = _served(ends, parts, rules, places, ones)
    else:
        leaving = _totals(ones, parts, rules, places, SENDS)[0]

    match step.kind:
        case "reduce":  # the other ranks reduce a part each, which then arrives at the root
            sent, others = leaving - local, max(int(peers.max()), 1)
            return Recount(local + -(-(others - 1) * sent // others), peers, sent)
        case "reduce_scatter":
            return Recount(foreign, peers, leaving + local)
    return Recount(foreign, peers, leaving - local + foreign)


def _places(grid: Grid, across: bool) -> Sequence[Array]:
    """The coordinates of all ranks per grid mode: in arrays that broadcast over the grid, or rank by rank."""
    if not across:
        return np.indices(grid.shape, sparse=True)
    return np.unravel_index(np.arange(grid.size), grid.shape) if grid.order else ()


def _number(dist: Distribution, name: str) -> int:
    """The number of coordinates along all grid modes of some role."""
    return prod([p for p, role in zip(dist.grid.shape, dist.roles, strict=True) if role.name == name])


def _served(ends: Ends, parts: Sequence[ProvedComponent], rules: Rules, places: Coordinates, ones: Array) -> Array:
    """The elements that every rank sends if it is one of several replicas, each for the ranks at its coordinates."""
    grid, at, number = ends[SENDS].grid, places, np.zeros_like(ones)
    takes = _active(rules[RECEIVES], at[RECEIVES], RECEIVES)

    # Each replica serves its own ranks, so pairs of ranks are counted, one replica after the other.
    replicas = [g for g, rule in enumerate(rules[SENDS]) if rule.equal]
    several = [grid.shape[g] for g in replicas]
    replica = np.ravel_multi_index([at[SENDS][g] for g in replicas], several)

    for here in range(prod(several)):
        senders, receivers = np.flatnonzero(replica == here), np.flatnonzero((replica == here) & takes)
        at_once = max(1, _AT_ONCE // max(len(receivers), 1))
        for some in np.split(senders, range(at_once, len(senders), at_once)):
            sizes: Array = np.ones((len(some), len(receivers)), ones.dtype)
            for part in parts:
                before = {part.row(SENDS, g): at[SENDS][g][some][:, None] for g in part.over[SENDS]}
                after = {part.row(RECEIVES, g): at[RECEIVES][g][receivers] for g in part.over[RECEIVES]}
                sizes = sizes * part.proof.shared(before | after)[0]
            number[some] = sizes.sum(axis=1)
    return number * _active(rules[SENDS], at[SENDS], SENDS)


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
    at, counter = _places(dist.grid, across=False), counting(prod(dist.shape))
    block = np.ones(dist.grid.shape, counter)

    for splits, n in zip(dist.splits, dist.view_shape, strict=True):
        left: Array = np.array(n)
        for split in splits:
            left = extent(split.kind, split.parts, left, at[split.grid_mode])
        block = np.asarray(block * left, counter)  # NumPy makes numbers of arrays of order 0

    for g, root in dist.layout.rooted:
        block = block * (at[g] == root)
    return np.asarray(block, counter).reshape(-1)


def _totals(
    ones: Array, parts: Sequence[ProvedComponent], rules: Rules, places: Coordinates, side: int
) -> tuple[Array, Array, Array]:
    """Per rank: elements that it exchanges with ranks of the other side, the number of these, and elements it keeps.

    What is kept is counted for receivers only.
    """
    other, active = 1 - side, _active(rules[side], places[side], side)
    elements, peers, local = ones * active, ones * active, ones * active

    free = {*range(len(places[other]))}
    for part in parts:
        free -= {*part.over[other]}
        sums = _sums(part, rules[other], places, side)
        elements, peers, local = elements * sums[0], peers * sums[1], local * sums[2]

    for g in free:
        rule, at = rules[other][g], places[other][g]
        number = rule.counts(side)[at]
        elements, peers, local = elements * number, peers * number, local * rule.itself()[at]
    return elements, peers, local


def _active(rules: Sequence[PeerRule], places: Sequence[Array], side: int) -> Array:
    """Whether every rank exchanges data at all, by its coordinates along the grid modes of one side."""
    active: Array = np.ones((), bool)
    for rule, at in zip(rules, places, strict=True):
        only, _ = rule.only(side)
        if only is not None:
            active = active & (at == only)
    return active


def _sums(
    part: ProvedComponent, rules: Sequence[PeerRule], places: Coordinates, side: int
) -> tuple[Array, Array, Array]:
    """The three sums of `_totals` over one component. The rules are those of the other side's grid modes."""
    mine = {part.row(side, g): places[side][g] for g in part.over[side]}  # of the others, all coordinates count

    known, itself = dict(mine), dict(mine)
    here: Any = np.True_
    keeps: Any = np.True_

    for g in part.over[1 - side]:
        rule, row, place = rules[g], part.row(1 - side, g), places[1 - side][g]
        itself[row] = place
        if rule.everywhere:
            continue

        # A rule says which coordinates there are counted, and whether this side exchanges data at all.
        keeps = keeps & rule.at(place, place)
        only, peer = rule.only(side)
        if rule.equal:
            here, known[row] = here & rule.at(place, place), place
        elif peer is not None:
            known[row] = np.asarray(peer)
        if only is not None:
            here = here & (place == only)

    elements, peers = part.proof.shared(known)
    local = part.proof.shared(itself)[0] * keeps if side == RECEIVES else np.zeros((), np.int64)  # it is counted once
    return elements * here, peers * here, local
