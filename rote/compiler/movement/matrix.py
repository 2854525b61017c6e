"""The volumes between all pairs of ranks in one movement, computed at once.

A message is a product of one group per component (see messages.py). So its size is a product of table entries, one per
component, at the coordinates of its sender and its receiver; no message is constructed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...layout.blocks import Role
from ...layout.grid import Grid
from ...layout.layout import Distribution
from .components import components, counting, splitting
from .meets import communicates
from .volumes import kept, sent_sizes, traffic

__all__ = ["coordinates", "from_others", "message_matrix", "overlap"]

Ints = npt.NDArray[np.int64]

_AT_ONCE = 1 << 22  # pairs of ranks that are counted at a time


@memoized(64)
def message_matrix(source: Distribution, target: Distribution) -> Ints:
    """Elements that each rank (row) sends to each rank (column); the diagonal has those that it keeps. Read-only.

    The two distributions may lie on two grids over the same ranks.

    >>> from rote.layout.layout import parse
    >>> message_matrix(parse("block[(0)]").on(5, 2), parse("[(0)]").on(5, 2)).tolist()
    [[2, 1], [1, 1]]
    """
    matrix = _rows(source, target, np.arange(source.grid.size))
    matrix.flags.writeable = False
    return matrix


def from_others(
    source: Distribution, target: Distribution, sending: bool = False, equal: tuple[int, ...] = ()
) -> tuple[Ints, Ints]:
    """Elements and messages from (or to) the other ranks with the same coordinates along the grid modes `equal`."""
    return _from_others(source, target, sending, equal)  # all arguments given, so that equal calls share a cache entry


@memoized(16384)
def _from_others(
    source: Distribution, target: Distribution, sending: bool, equal: tuple[int, ...]
) -> tuple[Ints, Ints]:
    if source.grid != target.grid:
        return _sums(source, target, sending)
    every, own = traffic(source, target, sending, equal), kept(source, target)
    return every.elements - own, every.messages - (own > 0)


@memoized(1024)
def _sums(source: Distribution, target: Distribution, sending: bool) -> tuple[Ints, Ints]:
    """Elements and messages that each rank receives from others (or sends), on two grids over the same ranks.

    A grid mode splits only one component, so the sum over all peers is a product of sums, one per component. If
    replicas send, pairs must be counted, because each replica serves its own ranks of the other grid.
    """
    if sending and any(role.name == "replicated" and p > 1 for role, p in _roles(source)):
        return _pairs(source, target, sending)
    counter, source_at, target_at = _counter(source), _places(source.grid), _places(target.grid)
    gives, takes = _only(source, ("rooted",), source_at), _only(target, ("rooted", "partial"), target_at)
    if sending:
        every = [gives * prod([p for role, p in _roles(target) if role.name == "replicated"])] * 2
    else:
        every = [takes * prod([p for role, p in _roles(source) if role.name == "partial"])] * 2
    own = [gives * takes] * 2
    for part in components(source, target):
        giving = tuple([source_at[g] for g in splitting(source, part.before)])
        taking = tuple([target_at[g] for g in splitting(target, part.after)])
        sizes = sent_sizes(source, target, part)
        peers = tuple(range(len(giving), sizes.ndim) if sending else range(len(giving)))
        for k, table in enumerate((sizes, (sizes > 0).astype(np.int64))):
            sums = np.asarray(table.sum(axis=peers), counter)
            every[k] = every[k] * sums[giving if sending else taking]
            own[k] = own[k] * table[giving + taking]
    return every[0] - own[0], (every[1] - own[1]).astype(np.int64)


def _roles(dist: Distribution) -> Iterator[tuple[Role, int]]:
    """The role of each grid mode, and its extent."""
    return zip(dist.roles, dist.grid.shape, strict=True)


def _only(dist: Distribution, names: tuple[str, ...], at: Sequence[Ints]) -> Ints:
    """1 for ranks at the role's coordinate `at` along every grid mode with one of these roles, 0 for all others."""
    counts = np.ones(dist.grid.size, _counter(dist))
    for g, role in enumerate(dist.roles):
        if role.name in names:
            counts *= at[g] == role.at
    return counts


def _counter(dist: Distribution) -> np.dtype[Any]:
    """The dtype of the elements that a rank exchanges with all others."""
    return counting(prod(dist.shape) * dist.grid.size)


def _pairs(source: Distribution, target: Distribution, sending: bool) -> tuple[Ints, Ints]:
    """Elements and messages that each rank receives from others (or sends), counted pair by pair."""
    number = source.grid.size
    totals = np.zeros((2, number), _counter(source))
    together = max(1, _AT_ONCE // number)
    for start in range(0, number, together):
        senders = np.arange(start, min(number, start + together))
        rows = _rows(source, target, senders)
        rows[senders - start, senders] = 0
        for total, counts in zip(totals, (rows, rows > 0), strict=True):
            if sending:
                total[senders] = counts.sum(axis=1)
            else:
                total += np.add.reduce(counts, axis=0, dtype=totals.dtype)
    return totals[0], totals[1].astype(np.int64)


def _rows(source: Distribution, target: Distribution, senders: Ints) -> Ints:
    """The rows of the matrix for some senders."""
    source_at, target_at = coordinates(senders, source.grid), _places(target.grid)
    meets: Ints = np.ones((len(senders), target.grid.size), np.int64)
    if source.grid == target.grid:
        op_changes = source.layout.op != target.layout.op
        for g, p in enumerate(source.grid.shape):
            met = communicates(source.roles[g], target.roles[g], op_changes, p)
            meets *= met.at(source_at[g][:, None], target_at[g])
    else:
        own = _places(source.grid)
        for g, role in enumerate(source.roles):
            if role.name == "replicated":
                meets *= source_at[g][:, None] == own[g]
            elif role.name == "rooted":
                meets *= source_at[g][:, None] == role.at
        for h, role in enumerate(target.roles):
            if role.name in ("rooted", "partial"):
                meets *= target_at[h] == role.at
    return meets * overlap(source, target, source_at, target_at)


def overlap(source: Distribution, target: Distribution, source_at: Sequence[Ints], target_at: Sequence[Ints]) -> Ints:
    """Count the elements that lie both at coordinates of the source (rows) and at coordinates of the target (columns).

    Coordinates are given per grid mode. Whether the ranks there hold or want data is not considered.
    """
    table = np.ones((1, 1), counting(prod(source.shape)))
    for part in components(source, target):
        giving = [source_at[g][:, None] for g in splitting(source, part.before)]
        taking = [target_at[g] for g in splitting(target, part.after)]
        table = table * sent_sizes(source, target, part)[(*giving, *taking)]
    return table


@memoized(8)
def _places(grid: Grid) -> Sequence[Ints]:
    """The coordinates of all ranks, per grid mode."""
    return coordinates(np.arange(grid.size), grid)


def coordinates(ranks: Ints, grid: Grid) -> Sequence[Ints]:
    """The coordinates of ranks, per grid mode."""
    return np.unravel_index(ranks, grid.shape) if grid.order else ()
