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

__all__ = ["Recount", "figures", "recount"]

Array = npt.NDArray[Any]
At = tuple[int, ...]


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

    The rules are from the other side to this one.
    """
    total, free = np.ones((3, *shape), counter), {*range(len(shape))}
    for part in parts:
        over = sorted({*part.over[SENDS], *part.over[RECEIVES]})
        if part.ranges is not None:
            sums = np.array([part.ranges.elements[side], part.ranges.peers[side], part.ranges.kept])
        else:
            sums = _sums(part.at(1 - side), part.at(side), part.sizes, rules, [shape[g] for g in over])
        total = total * _over(sums, over, shape)
        free -= {*part.over[1 - side]}
    for g in free:
        number = rules[g].counts(sending=False)
        total = total * _over(np.array([number, number, rules[g].itself()]), [g], shape)
    return total


def _sums(
    theirs: dict[int, Array], mine: dict[int, Array], sizes: Array, rules: Sequence[PeerRule], extents: list[int]
) -> Array:
    """The three sums of `_totals` over the pairs of one component, by coordinates along all its grid modes."""
    exchanged = itself = np.ones(len(sizes), bool)
    index: Array = np.zeros(len(sizes), np.int64)
    both = {**theirs, **mine}
    over = sorted(both)
    for g, p in zip(over, extents, strict=True):
        index = index * p + both[g]
        if g in theirs and g in mine:
            exchanged, itself = exchanged & rules[g].at(theirs[g], mine[g]), itself & (theirs[g] == mine[g])
        elif g in theirs:
            itself = itself & rules[g].at(theirs[g], theirs[g])
    table = np.zeros((3, prod(extents)), sizes.dtype)
    for sums, weights in zip(table, (sizes * exchanged, exchanged, sizes * (exchanged & itself)), strict=True):
        np.add.at(sums, index, weights)
    for k, g in enumerate(over):
        if g not in mine:  # there is a rank at each coordinate along it, which exchanges data with some of the pairs
            along = table[:2].reshape(-1, extents[k], prod(extents[k + 1 :]))
            table[:2] = _summed_peers(rules[g], along).reshape(2, -1)
    return table


def _summed_peers(rule: PeerRule, along: Array) -> Array:
    """Per coordinate of a grid mode, along the middle axis, the sum over the coordinates from which it receives."""
    every = np.arange(rule.number)
    if rule.sender is not None:
        along = along * (every == rule.sender)[:, None]
    if not rule.equal:
        along = np.broadcast_to(along.sum(axis=1, keepdims=True), along.shape)
    return along if rule.receiver is None else along * (every == rule.receiver)[:, None]


def _over(table: Array, grid_modes: Sequence[int], shape: At) -> Array:
    """Reshape tables over some ascending grid modes to arrays that broadcast over the whole grid."""
    extents = [1] * len(shape)
    for g in grid_modes:
        extents[g] = shape[g]
    return table.reshape(-1, *extents)
