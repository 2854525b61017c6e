"""How many elements and messages every rank sends and receives in one movement, for all ranks at once.

A message is a product of one group per component (see movement.py), and goes wherever two ranks meet along every grid
mode. So counts factor: a table per component, summed over the peers that meet, is all there is to work out, and tables
are shared by all movements that do the same to a mode. NumPy broadcasting over the grid puts them together: arrays have
one axis per grid mode, of extent 1 where all coordinates count alike, so that even splits cost the same on any grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution, Role, Split, mode_set
from .movement import meets
from .overlap import Component, Reading, Scatter, components, overlaps, readings

__all__ = ["Traffic", "block_sizes", "sent_sizes", "traffic"]

Ints = npt.NDArray[np.int64]
Meeting = tuple[Role, Role, bool, int, bool, bool]  # roles, whether the operation changes, extent, sending, equal


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The elements and the messages from (or to) the peers that were asked for: arrays that broadcast over the grid."""

    elements: Ints
    messages: Ints


@lru_cache(maxsize=8192)
def block_sizes(dist: Distribution) -> Ints:
    """The number of elements of each rank's block, in an array that broadcasts over the grid."""
    sizes = np.ones((1,) * dist.grid.order, np.int64)
    for mode, extent in zip(dist.splits, dist.view_shape, strict=True):
        sizes = sizes * _over_grid(_extents(mode, extent), [s.grid_mode for s in mode], dist.grid.order)
    for g, at in dist.layout.rooted:
        sizes = sizes * _over_grid((np.arange(dist.grid.shape[g]) == at).astype(np.int64), [g], dist.grid.order)
    return sizes


@lru_cache(maxsize=16384)
def traffic(source: Distribution, target: Distribution, sending: bool = False, equal: tuple[int, ...] = ()) -> Traffic:
    """What each rank receives (or sends) in one movement, what it keeps among it.

    Only peers with the same coordinates along the grid modes `equal` count: with all grid modes, the rank itself.
    """
    grid = source.grid
    op_changes = source.layout.op != target.layout.op
    meeting: list[Meeting] = [
        (source.roles[g], target.roles[g], op_changes, p, sending, g in equal) for g, p in enumerate(grid.shape)
    ]
    elements = messages = np.ones((1,) * grid.order, np.int64)
    apart = set(range(grid.order))
    for part in components(source, target):
        modes = (
            tuple(s.grid_mode for m in part.before for s in source.splits[m]),
            tuple(s.grid_mode for m in part.after for s in target.splits[m]),
        )
        theirs = modes[sending]
        apart -= {*theirs}
        met = tuple(meeting[g] for g in theirs)
        more_elements, more_messages = _summed(*readings(source, target, part), modes, sending, met, grid.order)
        elements, messages = elements * more_elements, messages * more_messages
    for g in apart:
        peers = _peers(meeting[g], g, grid.order)
        if peers is not None:
            elements, messages = elements * peers, messages * peers
    return Traffic(elements, messages)


def sent_sizes(source: Distribution, target: Distribution, part: Component) -> Ints:
    """How many elements of one component lie where: an axis per split of the source, then of the target."""
    return _sizes(*readings(source, target, part))


@lru_cache(maxsize=1024)
def _sizes(source: Reading, target: Reading) -> Ints:
    shape = [parts for _, splits, _ in (*source, *target) for _, parts in splits]
    strides = [prod(shape[n + 1 :]) for n in range(len(shape))]
    table = np.zeros(prod(shape), np.int64)
    found = overlaps(source, target)
    if isinstance(found, Scatter):
        every = zip((*found.source[0], *found.target[0]), strides, strict=True)
        lies = sum((at * stride for at, stride in every), np.zeros_like(found.source[1][0]))
        table += np.bincount(lies, minlength=len(table))
        return table.reshape(shape)
    for extents, one, other in found:
        rows = [[n * stride for n in row] for row, stride in zip((*one.at, *other.at), strides, strict=True)]
        start, *steps = map(sum, zip((0,) * (len(extents) + 1), *rows, strict=True))
        numbers: Ints = np.full((), start, np.int64)
        for n, step in zip(extents, steps, strict=True):
            numbers = np.add.outer(numbers, step * np.arange(n)) if step else numbers
        table[numbers.reshape(-1)] += prod(n for n, step in zip(extents, steps, strict=True) if not step)
    return table.reshape(shape)


@lru_cache(maxsize=16384)
def _summed(
    source: Reading,
    target: Reading,
    modes: tuple[tuple[int, ...], tuple[int, ...]],
    sending: bool,
    met: tuple[Meeting, ...],
    order: int,
) -> tuple[Ints, Ints]:
    """The sizes of a component summed over the peers that meet: elements and messages, over a grid of this order.

    Args:
        modes: the grid modes that split it, on both sides.
        met: along those of the peers.
    """
    table, own, theirs = _sizes(source, target), modes[not sending], modes[sending]
    meeting = [(g, matrix) for g, matrix in zip(theirs, map(_meeting, met), strict=True) if matrix is not None]
    over = sorted({*own, *(g for g, _ in meeting)})
    label = {g: k for k, g in enumerate(sorted({*own, *theirs}))}
    ours, peers = [label[g] for g in own], [len(label) + label[g] for g in theirs]
    more: list[Any] = []
    for g, matrix in meeting:
        more += [matrix, [label[g], len(label) + label[g]]]
    axes: list[Any]
    axes, out = [*ours, *peers] if sending else [*peers, *ours], [label[g] for g in over]
    elements, messages = (
        np.asarray(np.einsum(counts, axes, *more, out)) for counts in (table, (table > 0).astype(np.int64))
    )
    return _over_grid(elements, over, order), _over_grid(messages, over, order)


@lru_cache(maxsize=4096)
def _meeting(meeting: Meeting) -> Ints | None:
    """Along one grid mode, per own coordinate and peer's, 1 where they meet; None if all do."""
    source, target, op_changes, p, sending, equal = meeting
    met = meets(source, target, op_changes, p)
    found = (met if sending else met.T).astype(np.int64)
    if equal:
        found *= np.eye(p, dtype=np.int64)
    return None if found.all() else found


@lru_cache(maxsize=4096)
def _peers(meeting: Meeting, g: int, order: int) -> Ints | None:
    """Along grid mode g, which splits nothing on the other side: how many peers meet each coordinate; None if one."""
    matrix = _meeting(meeting)
    p = meeting[3]
    found = np.full(p, p, np.int64) if matrix is None else matrix.sum(axis=1)
    return None if (found == 1).all() else _over_grid(found, [g], order)


@lru_cache(maxsize=4096)
def _extents(splits: tuple[Split, ...], extent: int) -> Ints:
    table = np.empty([s.parts for s in splits], np.int64)
    for at in np.ndindex(*table.shape):
        table[at] = len(mode_set(splits, extent, at))
    return table


def _over_grid(table: Ints, grid_modes: list[int], order: int) -> Ints:
    """A table over some grid modes as an array that broadcasts over the whole grid."""
    for axis in range(table.ndim):
        first = table.take([0], axis)
        if (table == first).all():
            table = first
    shape = [1] * order
    for g, p in zip(grid_modes, table.shape, strict=True):
        shape[g] = p
    return table.transpose(np.argsort(grid_modes) if grid_modes else None).reshape(shape)
