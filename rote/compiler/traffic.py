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

from ..layout.distribution import Distribution, Role, Split, locate, mode_set
from ..layout.view import Digit, from_tensor, to_tensor
from .movement import Component, components, meets

__all__ = ["Traffic", "block_sizes", "sent_sizes", "traffic"]

Ints = npt.NDArray[np.int64]
Meeting = tuple[Role, Role, bool, int, bool, bool]  # roles, whether the operation changes, extent, sending, equal
Reading = tuple[tuple[tuple[Digit, ...], tuple[Split, ...], int], ...]  # per view mode: digits, splits, extent

_AT_ONCE = 1 << 20  # elements


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
    mine, other = (source, target) if sending else (target, source)
    grid = source.grid
    op_changes = source.layout.op != target.layout.op
    meeting: list[Meeting] = [
        (source.roles[g], target.roles[g], op_changes, p, sending, g in equal) for g, p in enumerate(grid.shape)
    ]
    elements = messages = np.ones((1,) * grid.order, np.int64)
    apart = set(range(grid.order))
    for part in components(source, target):
        here, there = (part.before, part.after) if sending else (part.after, part.before)
        own = tuple(s.grid_mode for m in here for s in mine.splits[m])
        theirs = tuple(s.grid_mode for m in there for s in other.splits[m])
        apart -= {*theirs}
        met = tuple(meeting[g] for g in theirs)
        if _alike(mine, other, here, there):
            args = mine.splits[here[0]], other.splits[there[0]], mine.view_shape[here[0]]
            more_elements, more_messages = _along_mode(*args, met, grid.order)
        else:
            table = _across(_read(mine, here), _read(other, there))
            more_elements, more_messages = _summed(table, own, theirs, met, grid.order)
        elements, messages = elements * more_elements, messages * more_messages
    for g in apart:
        peers = _peers(meeting[g], g, grid.order)
        if peers is not None:
            elements, messages = elements * peers, messages * peers
    return Traffic(elements, messages)


def sent_sizes(source: Distribution, target: Distribution, part: Component) -> Ints:
    """How many local indices of one component lie where: an axis per split of the source, then of the target."""
    if _alike(source, target, part.before, part.after):
        (m,), (n,) = part.before, part.after
        return _sizes(source.splits[m], target.splits[n], source.view_shape[m])
    return _across(_read(source, part.before), _read(target, part.after))


def _alike(mine: Distribution, other: Distribution, here: tuple[int, ...], there: tuple[int, ...]) -> bool:
    """Whether both sides of a component read one mode, and the same digits of the tensor."""
    return len(here) == len(there) == 1 and mine.digits[here[0]] == other.digits[there[0]]


@lru_cache(maxsize=16384)
def _along_mode(
    own: tuple[Split, ...], theirs: tuple[Split, ...], extent: int, met: tuple[Meeting, ...], order: int
) -> tuple[Ints, Ints]:
    """The sums of a component whose sides read one mode alike."""
    modes = tuple(s.grid_mode for s in own), tuple(s.grid_mode for s in theirs)
    return _summed(_sizes(own, theirs, extent), *modes, met, order)


@lru_cache(maxsize=1024)
def _sizes(own: tuple[Split, ...], theirs: tuple[Split, ...], extent: int) -> Ints:
    """Per coordinates on both sides, how many indices along one mode lie there and there."""
    number: Ints = np.zeros(extent, np.int64)
    for splits in (own, theirs):
        found, _ = locate(splits, extent, np.arange(extent))
        for s in splits:
            number = number * s.parts + found[s.grid_mode]
    shape = [s.parts for s in (*own, *theirs)]
    return np.bincount(number, minlength=prod(shape)).reshape(shape)


def _read(dist: Distribution, modes: tuple[int, ...]) -> Reading:
    """All that matters of one side of a component."""
    return tuple((dist.digits[m], dist.splits[m], dist.view_shape[m]) for m in modes)


@lru_cache(maxsize=256)
def _across(here: Reading, there: Reading) -> Ints:
    """The same table for sides that read the digits differently: every element is looked up on both sides."""
    shape = [s.parts for side in (here, there) for _, splits, _ in side for s in splits]
    extents = [extent for _, _, extent in here]
    table: Ints = np.zeros(prod(shape), np.int64)
    for start in range(0, prod(extents), _AT_ONCE):
        index = np.unravel_index(np.arange(start, min(prod(extents), start + _AT_ONCE)), extents)
        tensor: dict[int, Ints] = {}
        for (digits, _, _), along in zip(here, index, strict=True):
            for m, added in to_tensor(digits, along).items():
                tensor[m] = tensor.get(m, 0) + added
        number: Ints = np.zeros((), np.int64)
        inside = (*index, *(from_tensor(digits, tensor) for digits, _, _ in there))
        for (_, splits, extent), along in zip((*here, *there), inside, strict=True):
            found, _ = locate(splits, extent, along)
            for s in splits:
                number = number * s.parts + found[s.grid_mode]
        table += np.bincount(np.broadcast_to(number, index[0].shape), minlength=len(table))
    return table.reshape(shape)


def _summed(
    table: Ints, own: tuple[int, ...], theirs: tuple[int, ...], met: tuple[Meeting, ...], order: int
) -> tuple[Ints, Ints]:
    """A table of sizes summed over the peers that meet: elements and messages, over a grid of this order."""
    meeting = [(g, matrix) for g, matrix in zip(theirs, map(_meeting, met), strict=True) if matrix is not None]
    over = sorted({*own, *(g for g, _ in meeting)})
    label = {g: k for k, g in enumerate(sorted({*own, *theirs}))}
    peers = [len(label) + label[g] for g in theirs]
    more: list[Any] = []
    for g, matrix in meeting:
        more += [matrix, [label[g], len(label) + label[g]]]
    axes: list[Any]
    axes, out = [*(label[g] for g in own), *peers], [label[g] for g in over]
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
