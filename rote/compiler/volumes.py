"""The volumes of one movement: the elements and messages that every rank sends and receives, for all ranks at once.

A message is a product of one group per component (see messages.py), and goes wherever the rules of all grid modes let
it go. So counts factor: each is a product of one count per component, summed over these peers (see pairs.py, and
along.py for very many). Movements that do the same to a mode share its counts. NumPy broadcasts them over the grid:
arrays have one axis per grid mode, of extent 1 where all coordinates have the same count, so that even splits cost the
same on any grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..caches import memoized, memoized_arrays
from ..grammar.nodes import Kind
from ..layout import kinds
from ..layout.distribution import Distribution
from ..layout.grid import Grid, row_major
from .along import Along, along
from .components import (
    Reading,
    TooManyPiecesError,
    components,
    counting,
    number_of,
    readings,
    splits_of,
    splitting,
)
from .messages import PeerRule, rules_of
from .pairs import pairs_of

__all__ = ["Traffic", "block_sizes", "coordinates", "from_others", "kept", "largest_block"]
__all__ += ["message_matrix", "over_ranks", "overlap", "quickly_counted", "traffic"]

Ints = npt.NDArray[np.int64]
Modes = tuple[tuple[int, ...], tuple[int, ...]]
_LONG = 256  # coordinates of a grid mode: up to so many, a list of pairs is faster
_SERVED = 1 << 16  # ranks of which some are replicas: their pairs take a minute
_AT_ONCE = 1 << 22  # pairs of ranks that are counted at a time
_QUICK = 1 << 20  # pairs of coordinates that are counted quickly


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The elements and messages from (or to) the requested peers, in arrays that broadcast over the grid."""

    elements: Ints
    messages: Ints


@memoized_arrays(8192, few=8)
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


def largest_block(dist: Distribution) -> int:
    """The most elements that a rank holds."""
    return int(block_sizes(dist).max())


@memoized(4)  # `from_others` keeps what is made of it
def traffic(source: Distribution, target: Distribution, sending: bool, equal: tuple[int, ...]) -> Traffic:
    """The volume that each rank receives (or sends) in one movement, including what it keeps.

    Only peers with the same coordinates along the grid modes `equal` count.
    """
    messages = np.ones((1,) * source.grid.order, np.int64)
    elements = messages.astype(_counter(source, target))
    for more_elements, more_messages in _counts(source, target, sending, equal):
        elements, messages = elements * more_elements, messages * more_messages
    return Traffic(elements, messages)


def kept(source: Distribution, target: Distribution) -> Ints:
    """The elements that each rank sends to itself."""
    if not source.grid.shape:
        return block_sizes(source)
    return traffic(source, target, False, tuple(range(source.grid.order))).elements


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
    rules, _ = rules_of(source, target)
    for g in equal:
        rules[g] = PeerRule(rules[g].number, rules[g].sender, rules[g].receiver, equal=True)
    free, order = set(range(len(rules))), len(rules)
    for factor in _factors(source, target):
        theirs = factor.modes[sending]
        free.difference_update(theirs)
        yield _summed(factor, sending, tuple([rules[g] for g in theirs]), order)
    for g in free:
        peers = _peers(rules[g], sending, g, order)
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


def quickly_counted(source: Distribution, target: Distribution) -> bool:
    """Whether the volumes between two distributions are counted without many pairs of coordinates."""
    for part in components(source, target):
        sides = readings(source, target, part)
        if sides[0] != sides[1] and prod(splits_of(*sides)) > _QUICK and along(*sides) is None:
            return False
    return True


@memoized_arrays(16384, few=8)
def _summed(factor: _Factor, sending: bool, rules: tuple[PeerRule, ...], order: int) -> tuple[Ints, Ints]:
    """The elements and messages of a component, summed over these peers, on a grid of this order.

    The rules are those of the grid modes that split the component on the peers' side.
    """
    own, theirs = factor.modes[not sending], factor.modes[sending]
    if not theirs or (factor.source == factor.target and own == theirs):  # all elements of a rank go, or stay, together
        held = _block_table(factor.source if sending else factor.target)
        return _over_grid(held, own, order), _over_grid((held > 0).astype(np.int64), own, order)
    long = own == theirs and len(rules) == 1 and rules[0].number > _LONG
    if long and rules[0].sender is None and rules[0].receiver is None:
        counts = along(factor.source, factor.target)
        if counts is not None:
            return _over_one(factor, counts, sending, rules[0].equal, order)
    pairs = pairs_of(factor.source, factor.target)
    mine, other = (0, len(own)) if sending else (len(theirs), 0)
    numbers = dict(zip(own, pairs.parts[mine:], strict=False)) | dict(zip(theirs, pairs.parts[other:], strict=False))
    rows = zip(range(other, len(pairs.parts)), theirs, rules, strict=False)
    some = [(row, g, rule) for row, g, rule in rows if not rule.everywhere]
    over = sorted({*own, *[g for _, g, _ in some]})
    places, shape = dict[int, Ints](), [1] * len(over)
    for axis, g in enumerate(over):
        places[g] = np.arange(numbers[g]).reshape([*shape[:axis], -1, *shape[axis + 1 :]])
    at: dict[int, Any] = {row: places[g] for row, g in enumerate(own, mine)}
    here: Any = True
    for row, g, rule in some:
        only, peer = (rule.sender, rule.receiver) if sending else (rule.receiver, rule.sender)
        if only is not None:
            here = here & (places[g] == only)
        if rule.equal:
            at[row] = places[g]
            if peer is not None:
                here = here & (places[g] == peer)
        elif peer is not None:
            at[row] = np.full(shape, peer)
    elements, messages = pairs.met(at)
    return _over_grid(elements * here, over, order), _over_grid(messages * here, over, order)


def _over_one(factor: _Factor, counts: Along, sending: bool, equal: bool, order: int) -> tuple[Ints, Ints]:
    """The elements and messages of a component that one grid mode splits on both sides, from counts by coordinate."""
    own = factor.modes[not sending]
    if equal:
        return _over_grid(counts.kept, own, order), _over_grid((counts.kept > 0).astype(np.int64), own, order)
    held = _block_table(factor.source if sending else factor.target)
    return _over_grid(held, own, order), _over_grid(counts.sent if sending else counts.received, own, order)


def _peers(rule: PeerRule, sending: bool, g: int, order: int) -> Ints | None:
    """How many peers each coordinate meets along grid mode g, which splits nothing for them; None if one each."""
    counts = rule.counts(sending)
    return None if (counts == 1).all() else _over_grid(counts, [g], order)


def _block_table(reading: Reading) -> Ints:
    """Count the elements of one component by coordinates on one side: an axis per split."""
    counter = counting(number_of(reading))
    table: Ints = np.ones((), counter)
    for _, splits, extent in reading:
        table = np.asarray(np.multiply.outer(table, _extents(splits, extent)), counter)
    return table


@memoized_arrays(4096, few=1)
def _extents(splits: tuple[tuple[Kind, int], ...], extent: int) -> Ints:
    shape = [parts for _, parts in splits]
    left: Ints = np.full((), extent)
    for (kind, parts), at in zip(splits, np.indices(shape, sparse=True), strict=True):
        left = kinds.extent(kind, parts, left, at)
    return np.broadcast_to(left, shape)


def _over_grid(table: Ints, grid_modes: Sequence[int], order: int) -> Ints:
    """A table over some grid modes as an array that broadcasts over the whole grid."""
    table, shape = _thin(table), [1] * order
    for axis, g in enumerate(grid_modes):
        shape[g] = table.shape[axis]
    if len(grid_modes) > 1:
        table = table.transpose(np.argsort(grid_modes))
    return table.reshape(shape)


def _thin(table: Ints) -> Ints:
    """A table with extent 1 along each axis along which it does not change."""
    table = np.asarray(table)
    for axis in range(table.ndim):
        first = table[(slice(None),) * axis + (slice(1),)]
        if table.shape[axis] > 1 and (table == first).all():
            table = first
    return table


# --- pairs of ranks --------------------------------------------------------------------------------------------------


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


@memoized_arrays(16384)
def _from_others(
    source: Distribution, target: Distribution, sending: bool, equal: tuple[int, ...]
) -> tuple[Ints, Ints]:
    if source.grid != target.grid:
        return _sums(source, target, sending)
    every, own = traffic(source, target, sending, equal), kept(source, target)
    return every.elements - own, every.messages - (own > 0)


def _sums(source: Distribution, target: Distribution, sending: bool) -> tuple[Ints, Ints]:
    """Elements and messages that each rank receives from others (or sends), on two grids over the same ranks.

    A grid mode splits only one component, so the sum over all peers is a product of sums, one per component. If
    replicas send, pairs must be counted, because each replica serves its own ranks of the other grid. The arrays
    broadcast over the grid that refines both.
    """
    rules_before, rules_after = rules_of(source, target)
    if sending and any(rule.equal and rule.number > 1 for rule in rules_before):
        return _served(source, target)
    ranks = source.grid.refine(target.grid)
    source_at, target_at = (_places(dist.grid, ranks) for dist in (source, target))
    gives = takes = np.ones((1,) * ranks.order, counting(prod(source.shape) * _copies(source, target)))
    for rule, at in zip(rules_before, source_at, strict=True):
        gives = gives if rule.sender is None else gives * (at == rule.sender)
    for rule, at in zip(rules_after, target_at, strict=True):
        takes = takes if rule.receiver is None else takes * (at == rule.receiver)
    own, elements = gives * takes, gives if sending else takes
    dist, several = (target, "replicated") if sending else (source, "partial")
    for role, p in zip(dist.roles, dist.grid.shape, strict=True):
        elements = elements * (p if role.name == several else 1)
    messages = elements.astype(np.int64)
    for part in components(source, target):
        giving = tuple([source_at[g] for g in splitting(source, part.before)])
        taking = tuple([target_at[g] for g in splitting(target, part.after)])
        sides = readings(source, target, part)
        mine = giving if sending else taking
        pairs = pairs_of(*sides)
        sums = pairs.met(dict(enumerate(mine, 0 if sending else len(giving))))
        common = pairs.met(dict(enumerate(giving + taking)))[0]
        sums, common = (_thin(sums[0]), _thin(sums[1])), _thin(common)
        elements, messages, own = elements * sums[0], messages * sums[1], own * common
    return elements - own, messages - (own > 0)


def _copies(source: Distribution, target: Distribution) -> int:
    """The most contributions, or copies, of an element that a rank receives or sends, between two grids."""
    copies = 1
    for dist, name in ((source, "partial"), (target, "replicated")):
        copies *= prod([p for p, role in zip(dist.grid.shape, dist.roles, strict=True) if role.name == name])
    return copies


def _rank_counter(dist: Distribution) -> np.dtype[Any]:
    """The dtype of the elements that a rank exchanges with all others."""
    return counting(prod(dist.shape) * dist.grid.size)


def _served(source: Distribution, target: Distribution) -> tuple[Ints, Ints]:
    """Elements and messages that each rank sends to others if it is one of several replicas, pair by pair."""
    number = source.grid.size
    if number > _SERVED:
        raise TooManyPiecesError(
            f"each replica of {source.layout} on grid {source.grid} serves its own ranks of grid {target.grid}, which "
            f"would have to be counted among the pairs of {number} ranks\n"
            "split along the grid modes of the replicas first, or go to the other grid before data is copied"
        )
    totals = np.zeros((2, number), _rank_counter(source))
    number_at_once = max(1, _AT_ONCE // number)
    for start in range(0, number, number_at_once):
        senders = np.arange(start, min(number, start + number_at_once))
        rows = _rows(source, target, senders)
        rows[senders - start, senders] = 0
        totals[:, senders] = rows.sum(axis=1), np.count_nonzero(rows, axis=1)
    ranks = source.grid.refine(target.grid).shape
    return totals[0].reshape(ranks), totals[1].astype(np.int64).reshape(ranks)


def _rows(source: Distribution, target: Distribution, senders: Ints) -> Ints:
    """The rows of the matrix for some senders."""
    every = np.arange(target.grid.size)
    source_at, target_at = coordinates(senders, source.grid), coordinates(every, target.grid)
    sent: Ints = np.ones((len(senders), target.grid.size), np.int64)
    rules_before, rules_after = rules_of(source, target)
    for rule, sender, own in zip(rules_before, source_at, coordinates(every, source.grid), strict=True):
        sent *= rule.at(sender[:, None], own)
    if source.grid != target.grid:  # these rules say which coordinates receive, from any sender
        for rule, receiver in zip(rules_after, target_at, strict=True):
            sent *= rule.at(receiver, receiver)
    return sent * overlap(source, target, source_at, target_at)


def overlap(source: Distribution, target: Distribution, source_at: Sequence[Ints], target_at: Sequence[Ints]) -> Ints:
    """Count the elements that lie both at coordinates of the source (rows) and at coordinates of the target (columns).

    Coordinates are given per grid mode. Whether the ranks there hold or want data is not considered.
    """
    table = np.ones((1, 1), counting(prod(source.shape)))
    for part in components(source, target):
        giving = [source_at[g][:, None] for g in splitting(source, part.before)]
        taking = [target_at[g] for g in splitting(target, part.after)]
        table = table * pairs_of(*readings(source, target, part)).met(dict(enumerate((*giving, *taking))))[0]
    return table


def _places(grid: Grid, ranks: Grid) -> Sequence[Ints]:
    """The coordinates of all ranks, per grid mode, in arrays that broadcast over another grid of the same ranks."""
    digits = [*zip(ranks.shape, row_major(ranks.shape), np.ix_(*map(np.arange, ranks.shape)), strict=True)]
    places = []
    for p, stride in zip(grid.shape, row_major(grid.shape), strict=True):
        number = np.zeros((1,) * ranks.order, np.int64)
        for q, step, digit in digits:
            if stride % (step * q) and step % (stride * p):  # else the coordinate does not depend on it
                number = number + step * digit
        places.append(number // stride % p)
    return places


def over_ranks(counts: Ints, grid: Grid, ranks: Grid) -> Ints:
    """Counts that broadcast over a grid, as ones that broadcast over another grid of the same ranks."""
    if grid.shape == ranks.shape or not grid.order:  # those of order 0 are in a list of one
        return counts
    nowhere = np.zeros((1,) * ranks.order, np.int64)
    places = zip(_places(grid, ranks), counts.shape, strict=True)
    return counts[tuple([at if n > 1 else nowhere for at, n in places])]


def coordinates(ranks: Ints, grid: Grid) -> Sequence[Ints]:
    """The coordinates of ranks, per grid mode."""
    return np.unravel_index(ranks, grid.shape) if grid.order else ()
