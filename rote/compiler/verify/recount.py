"""The figures of a plan, counted again from proved facts: pairs of coordinates, and which ranks meet.

A rank's elements and messages are products of sums over one component each, so there is one table per component, and
NumPy broadcasts the tables over the grid. The counts are those that the caller of a collective sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...grammar.nodes import Kind
from ...layout.distribution import Distribution
from ...layout.kinds import extent as local_extent
from ...layout.kinds import mode_set
from ..movement.components import counting
from ..movement.messages import PeerRule
from ..step import LOCAL
from .elements import numbered
from .partition import Ends, ProvedComponent

__all__ = ["Claimed", "Recount", "figures", "recount"]

Array = npt.NDArray[Any]
At = tuple[int, ...]

_MANY = 1024  # coordinates: up to so many, the set of each is counted


class Claimed(Protocol):
    """The claims of a plan: the most bytes and messages that a rank receives, and the most bytes that a rank holds."""

    @property
    def bytes(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Recount:
    """Per rank, in row-major order: elements and messages received in a step, and elements in its buffers."""

    received: Array
    messages: Array
    buffers: Array


def recount(kind: str, ends: Ends, parts: Sequence[ProvedComponent], met: Sequence[PeerRule]) -> Recount:
    """Count what every rank receives and buffers in a step of this kind between two distributions on one grid.

    `met[g]` says between which coordinates of grid mode g data goes.
    """
    shape = ends[0].grid.shape
    zero: Array = np.zeros(shape, np.int64)
    if kind in LOCAL:
        return Recount(zero, zero, zero)
    copies = 1  # the most contributions, or copies, that a rank receives or sends of an element
    for p, before, after in zip(shape, ends[0].roles, ends[1].roles, strict=True):
        copies *= 1 if before.name == after.name == "split" else p
    counter = counting(prod(ends[0].shape) * copies)
    arriving, number, kept = _totals(shape, counter, parts, met, (0, 1))
    foreign, heard = arriving - kept, number - (kept > 0)
    match kind:
        case "allreduce":  # the result arrives once, however many contributions it has
            return Recount(kept, heard, zero)
        case "broadcast":
            return Recount(foreign, heard, zero)
        case "allgather":  # a rank buffers its part once for all receivers; all parts arrive, with its own
            return Recount(foreign, heard, kept + arriving)
    leaving = _totals(shape, counter, parts, [rule.reversed() for rule in met], (1, 0))[0]
    match kind:
        case "reduce":
            return Recount(kept, heard, leaving - kept)
        case "reduce_scatter":  # its part of the result arrives once
            return Recount(kept * (heard > 0), heard, leaving + kept)
    return Recount(foreign, heard, leaving - kept + foreign)


def figures(
    source: Distribution, target: Distribution, steps: Sequence[tuple[Distribution, Recount]]
) -> dict[str, int]:
    """The most bytes and messages that any rank receives, and the most elements that any rank holds.

    A rank holds its blocks of the source and the target throughout, and during a step its blocks before and after it.

    Args:
        steps: per step, the distribution after it, and its recount, with `received` in bytes.
    """
    counter = counting(prod(source.shape))
    ends = _block(source, counter) + _block(target, counter)
    received = messages = highest = before = np.zeros_like(ends)
    for number, (dist, moved) in enumerate(steps, 1):
        after = _block(dist, counter) if number < len(steps) else np.zeros_like(ends)
        received, messages = received + moved.received.reshape(-1), messages + moved.messages.reshape(-1)
        highest, before = np.maximum(highest, before + after + moved.buffers.reshape(-1)), after
    most = {"bytes": received, "messages": messages, "peak_bytes": ends + highest}
    return {name: int(per_rank.max()) for name, per_rank in most.items()}


def _block(dist: Distribution, counter: np.dtype[Any]) -> Array:
    """The number of elements that each rank holds."""
    shape = dist.grid.shape
    block = np.ones(shape, counter)
    for splits, extent in zip(dist.splits, dist.view_shape, strict=True):
        lengths = _lengths(tuple([(s.kind, s.parts) for s in splits]), extent)
        order = [s.grid_mode for s in splits]
        if order != sorted(order):
            lengths = lengths.transpose(np.argsort(order))
        block *= _over(lengths, order, shape)[0]
    for g, at in dist.layout.rooted:
        block *= _over(np.arange(shape[g]) == at, [g], shape)[0]
    return block.reshape(-1)


@memoized(4096)
def _lengths(splits: tuple[tuple[Kind, int], ...], extent: int) -> Array:
    """The number of indices of a mode at every coordinate along its splits."""
    named = numbered(splits)
    lengths = np.zeros([parts for _, parts in splits], np.int64)
    if lengths.size > _MANY:
        left: Array = np.full((), extent)
        coordinates: tuple[Array, ...] = np.indices(lengths.shape, sparse=True)
        for (kind, parts), along in zip(splits, coordinates, strict=True):
            left = local_extent(kind, parts, left, along)
        return np.broadcast_to(left, lengths.shape)
    for at in np.ndindex(lengths.shape):
        lengths[at] = len(mode_set(named, extent, at))
    return lengths


def _totals(
    shape: At,
    counter: np.dtype[Any],
    parts: Sequence[ProvedComponent],
    met: Sequence[PeerRule],
    sides: tuple[int, int],
) -> Array:
    """Per rank: elements shared with ranks it meets on the other side, the number of these, and elements it keeps.

    `sides` are the places, in the pairs of a part, of the other side and of this side.
    """
    total, free = np.ones((3, *shape), counter), {*range(len(shape))}
    for part in parts:
        theirs, mine = part.at[sides[0]], part.at[sides[1]]
        over = sorted({*part.over[0], *part.over[1]})
        if part.ranges is not None:
            sums = np.array([part.ranges.elements[sides[1]], part.ranges.peers[sides[1]], part.ranges.kept])
        else:
            sums = _sums(theirs, mine, part.sizes, met, [shape[g] for g in over])
        total = total * _over(sums, over, shape)
        free -= {*part.over[sides[0]]}
    for g in free:
        number = met[g].counts(sending=False)
        total = total * _over(np.array([number, number, met[g].itself()]), [g], shape)
    return total


def _sums(
    theirs: dict[int, Array], mine: dict[int, Array], sizes: Array, met: Sequence[PeerRule], extents: list[int]
) -> Array:
    """The three sums of `_totals` over the pairs of one component, by coordinates along all its grid modes."""
    meet = itself = np.ones(len(sizes), bool)
    index: Array = np.zeros(len(sizes), np.int64)
    both = {**theirs, **mine}
    over = sorted(both)
    for g, extent in zip(over, extents, strict=True):
        index = index * extent + both[g]
        if g in theirs and g in mine:
            meet, itself = meet & met[g].at(theirs[g], mine[g]), itself & (theirs[g] == mine[g])
        elif g in theirs:
            itself = itself & met[g].at(theirs[g], theirs[g])
    table = np.zeros((3, prod(extents)), sizes.dtype)
    for sums, weights in zip(table, (sizes * meet, meet, sizes * (meet & itself)), strict=True):
        np.add.at(sums, index, weights)
    for k, g in enumerate(over):
        if g not in mine:  # there is a rank at each coordinate along it, and each meets some of the pairs
            along = table[:2].reshape(-1, extents[k], prod(extents[k + 1 :]))
            table[:2] = _heard(met[g], along).reshape(2, -1)
    return table


def _heard(rule: PeerRule, along: Array) -> Array:
    """Per coordinate of a grid mode, along the middle axis, the sum over the coordinates from which it hears."""
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
