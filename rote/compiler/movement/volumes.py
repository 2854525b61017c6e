"""The volumes of one movement: the elements and messages that every rank sends and receives, for all ranks at once.

A message is a product of one group per component (see messages.py), and goes wherever two ranks meet along every grid
mode. So counts factor: each is a product of one table per component, summed over the peers that meet. Tables are shared
by all movements that do the same to a mode. NumPy broadcasts them over the grid: arrays have one axis per grid mode, of
extent 1 where all coordinates have the same count, so that even splits cost the same on any grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...grammar.nodes import Kind
from ...layout import kinds
from ...layout.blocks import Role
from ...layout.grid import row_major
from ...layout.layout import Distribution
from .components import (
    Component,
    Reading,
    components,
    counting,
    extents_of,
    number_of,
    one_by_one,
    readings,
    splitting,
)
from .meets import Meets, communicates
from .overlap import Scatter, TooManyPiecesError, boxes, overlaps

if TYPE_CHECKING:
    from .along import Along  # which only long grids need

__all__ = ["Traffic", "block_sizes", "kept", "largest_block", "quickly_counted", "sent_sizes", "traffic"]

Ints = npt.NDArray[np.int64]
Modes = tuple[tuple[int, ...], tuple[int, ...]]
Meeting = tuple[Role, Role, bool, int, bool, bool]  # roles, whether the operation changes, extent, sending, equal


_LONG = 256  # coordinates of a grid mode: up to so many, a table of all pairs is faster
_TABLE = 1 << 28  # entries of a table of all pairs, which takes two gigabytes
_COUNTED = 1 << 20  # up to so many elements of one side, or entries of a table, counting is faster than many boxes


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The elements and messages from (or to) the requested peers, in arrays that broadcast over the grid."""

    elements: Ints
    messages: Ints


@memoized(8192)
def block_sizes(dist: Distribution) -> Ints:
    """The number of elements of each rank's block, in an array that broadcasts over the grid."""
    counter = counting(prod(dist.shape))
    if not dist.grid.shape:  # NumPy makes numbers of arrays of order 0
        return np.array([prod(dist.shape)], counter)
    sizes = np.ones((1,) * dist.grid.order, counter)
    for mode, extent in zip(dist.splits, dist.view_shape, strict=True):
        parts = tuple([(s.kind, s.parts) for s in mode])
        sizes = sizes * _over_grid(_extents(parts, extent), [s.grid_mode for s in mode], dist.grid.order)
    for g, at in dist.layout.rooted:
        sizes = sizes * _over_grid((np.arange(dist.grid.shape[g]) == at).astype(np.int64), [g], dist.grid.order)
    return sizes


@memoized(8192)
def largest_block(dist: Distribution) -> int:
    """The most elements that a rank holds."""
    return int(block_sizes(dist).max())


@memoized(16384)
def traffic(source: Distribution, target: Distribution, sending: bool, equal: tuple[int, ...]) -> Traffic:
    """The volume that each rank receives (or sends) in one movement, including what it keeps.

    Only peers with the same coordinates along the grid modes `equal` count.
    """
    messages = np.ones((1,) * source.grid.order, np.int64)
    elements = messages.astype(_counter(source, target))
    for more_elements, more_messages in _counts(source, target, sending, equal):
        elements, messages = elements * more_elements, messages * more_messages
    return Traffic(elements, messages)


@memoized(16384)
def kept(source: Distribution, target: Distribution) -> Ints:
    """The elements that each rank sends to itself."""
    if not source.grid.shape:
        return block_sizes(source)
    elements = np.ones((1,) * source.grid.order, counting(prod(source.shape)))
    for more, _ in _counts(source, target, False, tuple(range(source.grid.order))):
        elements = elements * more
    return elements


def _counter(source: Distribution, target: Distribution) -> np.dtype[Any]:
    """The dtype of the elements that a rank sends or receives, with all contributions and copies."""
    copies = 1
    for p, before, after in zip(source.grid.shape, source.roles, target.roles, strict=True):
        copies *= 1 if before.name == after.name == "split" else p
    return counting(prod(source.shape) * copies)


def _counts(
    source: Distribution, target: Distribution, sending: bool, equal: tuple[int, ...]
) -> Iterator[tuple[Ints, Ints]]:
    """Factors of the elements and messages: one per component, and per grid mode that splits nothing for the peers."""
    shape, op_changes = source.grid.shape, source.layout.op != target.layout.op
    meetings: list[Meeting] = []
    for g, p in enumerate(shape):
        meetings.append((source.roles[g], target.roles[g], op_changes, p, sending, g in equal))
    apart = set(range(len(shape)))
    for factor in _factors(source, target):
        theirs = factor.modes[sending]
        apart.difference_update(theirs)
        yield _summed(factor, sending, tuple([meetings[g] for g in theirs]), len(shape))
    for g in apart:
        peers = _peers(meetings[g], g, len(shape))
        if peers is not None:
            yield peers, peers


@dataclass(frozen=True, slots=True, eq=False)
class _Factor:
    """A component: how both sides read it, and on both sides the grid modes that split it.

    `_factor` looks it up by value once per transition. Later look-ups use its identity, which is faster.
    """

    source: Reading
    target: Reading
    modes: Modes


_factor = memoized(16384)(_Factor)


@memoized(16384)
def _factors(source: Distribution, target: Distribution) -> tuple[_Factor, ...]:
    factors = []
    for part in components(source, target):
        modes = splitting(source, part.before), splitting(target, part.after)
        factors.append(_factor(*readings(source, target, part), modes))
    return tuple(factors)


def sent_sizes(source: Distribution, target: Distribution, part: Component) -> Ints:
    """Count the elements of one component by coordinates: an axis per split of the source, then of the target."""
    return _sizes(*readings(source, target, part))


@memoized(1024)
def _sizes(source: Reading, target: Reading) -> Ints:
    shape = _parts((*source, *target))
    if prod(shape) > _TABLE:
        raise TooManyPiecesError(
            f"the tiles of the two layouts fit each other so badly that {prod(shape)} pairs of ranks would have to be "
            "counted one by one\nwrite tiles or extents that divide each other, or use fewer ranks"
        )
    if boxes(source, target) is None:
        counted = _counted(source, target)
        if counted is not None:
            return counted.reshape(shape)
    shared = overlaps(source, target)
    strides = row_major(shape)
    if isinstance(shared, Scatter):
        cells: Ints = np.zeros_like(shared.source[1][0])
        for coordinates, stride in zip((*shared.source[0], *shared.target[0]), strides, strict=True):
            cells = cells + coordinates * stride
        return np.bincount(cells, minlength=prod(shape)).reshape(shape)
    table = np.zeros(prod(shape), counting(number_of(source)))
    for extents, given, taken in shared:
        row = [0] * (len(extents) + 1)  # the cells of its elements
        for at, stride in zip((*given.at, *taken.at), strides, strict=True):
            row = [cell + n * stride for cell, n in zip(row, at, strict=True)]
        numbers: Ints = np.full((), row[0], np.int64)
        elements = 1  # in each cell
        for n, step in zip(extents, row[1:], strict=True):
            if step:
                numbers = np.add.outer(numbers, step * np.arange(n))
            else:
                elements *= n
        table[numbers.reshape(-1)] += elements
    return table.reshape(shape)


def quickly_counted(source: Distribution, target: Distribution) -> bool:
    """Whether the volumes between two distributions are counted without a large table of pairs of coordinates."""
    from .along import along

    for part in components(source, target):
        sides = readings(source, target, part)
        if sides[0] != sides[1] and prod(_parts((*sides[0], *sides[1]))) > _COUNTED and along(*sides) is None:
            return False
    return True


def _parts(reading: Reading) -> list[int]:
    """The number of parts of each split."""
    return [parts for _, splits, _ in reading for _, parts in splits]


def _counted(source: Reading, target: Reading) -> Ints | None:
    """The sizes if tiles do not fit each other, from counts of each side alone; None if those are too large.

    The splits of both sides read some modes of the tensor. For each index along these shared modes, the number of
    elements at a source and a target coordinate is the product of the numbers of each.
    """
    extents = extents_of(source)
    given, own = _split_modes(source, extents)
    taken, theirs = _split_modes(target, extents)
    shared = {m: n for m, n in own.items() if m in theirs}
    most = max(prod(_parts(given)), prod(_parts(taken))) * prod(shared.values())
    if max(prod(own.values()), prod(theirs.values()), most) > _COUNTED:
        return None
    rest = prod([n for m, n in extents.items() if m not in own and m not in theirs])
    together = _by_index(given, own, shared) @ _by_index(taken, theirs, shared).T
    return np.multiply(together.astype(np.int64), rest, dtype=counting(prod(extents.values())))


def _split_modes(reading: Reading, extents: dict[int, int]) -> tuple[Reading, dict[int, int]]:
    """The view modes that are split, and the extents of the tensor's modes that they read."""
    split = tuple([mode for mode in reading if mode[1]])
    read = {digit.mode for digits, _, _ in split for digit in digits}
    return split, {m: n for m, n in extents.items() if m in read}


def _by_index(split: Reading, own: dict[int, int], shared: dict[int, int]) -> npt.NDArray[np.float64]:
    """Count the elements at each coordinate of one side (row), per index along the shared modes (column)."""
    numbers: Ints = np.zeros(prod(own.values()), np.int64)
    for at, parts in zip(one_by_one(split, own)[0], _parts(split), strict=True):
        numbers = numbers * parts + at
    indices = np.indices(tuple(own.values())).reshape(len(own), len(numbers))
    for m, index in zip(own, indices, strict=True):
        if m in shared:
            numbers = numbers * shared[m] + index
    rows, columns = prod(_parts(split)), prod(shared.values())
    counts = np.bincount(numbers, minlength=rows * columns)
    return counts.reshape(rows, columns).astype(np.float64)  # a product of floats is fast, and exact here


@memoized(16384)
def _summed(factor: _Factor, sending: bool, met: tuple[Meeting, ...], order: int) -> tuple[Ints, Ints]:
    """The elements and messages of a component, summed over the peers that meet, on a grid of this order.

    `met` says how ranks meet along the grid modes that split the component on the peers' side.
    """
    own, theirs = factor.modes[not sending], factor.modes[sending]
    if factor.source == factor.target and own == theirs:  # every rank keeps its elements: no table of pairs is needed
        held = _held(factor.source)
        return _over_grid(held, own, order), _over_grid((held > 0).astype(np.int64), own, order)
    rules = [*map(_meeting, met)]
    if own == theirs and len(met) == 1 and met[0][3] > _LONG and rules[0].sender is None and rules[0].receiver is None:
        from .along import along

        counts = along(factor.source, factor.target)
        if counts is not None:
            return _over_one(factor, counts, sending, rules[0].equal, order)
    sizes = _sizes(factor.source, factor.target)
    if all(rule.everywhere for rule in rules):
        peers = tuple(range(len(own), sizes.ndim) if sending else range(len(theirs)))
        elements = np.asarray(np.add.reduce(sizes, axis=peers), sizes.dtype)
        messages = np.add.reduce(sizes > 0, axis=peers, dtype=np.int64)
        return _over_grid(elements, own, order), _over_grid(messages, own, order)
    label = {g: k for k, g in enumerate(sorted({*own, *theirs}))}
    ours_label, theirs_label = [label[g] for g in own], []
    operands: list[Any] = []
    meeting: Ints = np.ones((1,) * order, np.int64)  # 1 for ranks that meet any peer
    modes = {*own}  # the grid modes on which the sums depend
    for g, rule in zip(theirs, rules, strict=True):
        peer = len(label) + label[g]
        if rule.equal:  # a coordinate meets only itself: one axis, of which einsum takes the diagonal
            modes.add(g)
            peer = label[g]
            operands += [rule.itself().astype(np.int64), [peer]]
        elif not rule.everywhere:
            meeting = meeting * _over_grid((rule.counts(sending) > 0).astype(np.int64), [g], order)
            operands += [(rule.counts(not sending) > 0).astype(np.int64), [peer]]
        theirs_label.append(peer)
    over = sorted(modes)
    axes = [*ours_label, *theirs_label] if sending else [*theirs_label, *ours_label]
    elements = np.asarray(np.einsum(sizes, axes, *operands, [label[g] for g in over]), sizes.dtype)
    messages = np.einsum((sizes > 0).astype(np.int64), axes, *operands, [label[g] for g in over])
    return _over_grid(elements, over, order) * meeting, _over_grid(messages, over, order) * meeting


def _over_one(factor: _Factor, counts: Along, sending: bool, equal: bool, order: int) -> tuple[Ints, Ints]:
    """The elements and messages of a component that one grid mode splits on both sides, from counts by coordinate."""
    own = factor.modes[not sending]
    if equal:
        return _over_grid(counts.kept, own, order), _over_grid((counts.kept > 0).astype(np.int64), own, order)
    held = _held(factor.source if sending else factor.target)
    return _over_grid(held, own, order), _over_grid(counts.sent if sending else counts.received, own, order)


def _meeting(meeting: Meeting) -> Meets:
    """The rule by which own coordinates and those of peers meet along one grid mode."""
    source, target, op_changes, p, _, equal = meeting
    met = communicates(source, target, op_changes, p)
    return met._replace(equal=True) if equal else met


@memoized(4096)
def _peers(meeting: Meeting, g: int, order: int) -> Ints | None:
    """How many peers each coordinate meets along grid mode g, which splits nothing for them; None if one each."""
    counts = _meeting(meeting).counts(meeting[4])
    return None if (counts == 1).all() else _over_grid(counts, [g], order)


def _held(reading: Reading) -> Ints:
    """Count the elements of one component by coordinates on one side: an axis per split."""
    counter = counting(number_of(reading))
    table: Ints = np.ones((), counter)
    for _, splits, extent in reading:
        table = np.asarray(np.multiply.outer(table, _extents(splits, extent)), counter)
    return table


@memoized(4096)
def _extents(splits: tuple[tuple[Kind, int], ...], extent: int) -> Ints:
    shape = [parts for _, parts in splits]
    left: Ints = np.full((), extent)
    for (kind, parts), at in zip(splits, np.indices(shape, sparse=True), strict=True):
        left = kinds.extent(kind, parts, left, at)
    return np.broadcast_to(left, shape)


def _over_grid(table: Ints, grid_modes: Sequence[int], order: int) -> Ints:
    """A table over some grid modes as an array that broadcasts over the whole grid."""
    shape = [1] * order
    for axis, g in enumerate(grid_modes):
        first = table[(slice(None),) * axis + (slice(1),)]
        if (table == first).all():
            table = first
        shape[g] = table.shape[axis]
    if len(grid_modes) > 1:
        table = table.transpose(np.argsort(grid_modes))
    return table.reshape(shape)
