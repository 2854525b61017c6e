"""The messages that each rank sends and receives when a tensor goes from one distribution to another.

A transition is a product of components. In each component, the elements that a rank holds are grouped by the
coordinates that hold them on the other side. A message is the product of one group per component. Grid modes that split
nothing on the other side follow `communicates`. Between two grids over the same ranks, each side has the coordinates of
its own grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...layout.grid import row_major
from ...layout.layout import Distribution
from .components import Component, Group, Lattice, Listed, Reading, Row, components, readings, splitting
from .meets import Meets, communicates
from .overlap import Overlap, Scatter, overlaps

__all__ = ["Message", "groups", "receives", "sends"]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A product of groups that goes to, or comes from, one rank.

    Attributes:
        peer: the rank on the other side.
        groups: one group per component, in the order of `components`.
        combine: whether the receiver reduces it into earlier contributions (false for the first one).
    """

    peer: int
    groups: tuple[Group, ...]
    combine: bool

    def __len__(self) -> int:
        return prod(len(group) for group in self.groups)


def sends(source: Distribution, target: Distribution, rank: int, peer: int | None = None) -> list[Message]:
    """The messages that a rank sends, ordered by receiver; the one to itself has the elements that it keeps.

    If a peer is given, only the message to that rank, if there is one.
    """
    return _messages(source, target, rank, True, peer)


def receives(source: Distribution, target: Distribution, rank: int, peer: int | None = None) -> list[Message]:
    """The messages that a rank receives, ordered by sender; only that of one peer, if it is given."""
    return _messages(source, target, rank, False, peer)


def _messages(source: Distribution, target: Distribution, rank: int, sending: bool, only: int | None) -> list[Message]:
    mine, other = (source, target) if sending else (target, source)
    me, across = mine.grid.coordinates(rank), source.grid != target.grid
    for g, at in mine.layout.rooted:
        if me[g] != at:
            return []
    if across and not sending and not target.contributes(rank):
        return []
    common = _common(source, target, sending)
    if across:
        partners = _partners_across(source, target, rank, sending)
    else:
        partners = {g: met.peers(me[g], sending) for g, met in common.meets.items()}
    if only is not None:
        for g, c in enumerate(other.grid.coordinates(only)):
            partners[g] = range(c, c + 1) if c in partners.get(g, (c,)) else range(0)
        if not all(partners.values()):
            return []
    reduced, strides = common.reduced, common.strides
    # A peer's number is the sum of its coordinates times strides, so each factor of a product adds to it.
    drafts: list[tuple[int, tuple[Group, ...], bool]] = [(0, (), sending and any(me[g] for g in reduced))]
    for g in common.free:
        later = not sending and g in reduced
        met = [(strides[g] * c, later and c != 0) for c in partners[g]]
        drafts = [(peer + more, some, combine or late) for peer, some, combine in drafts for more, late in met]
    for part in common.parts:
        single = _single(splitting(other, part.modes(before=not sending)), partners) if partners else None
        options = []
        for group in groups(mine, other, part, me, sending, single):
            place = 0
            for g, c in group.coordinates:
                if g in partners and c not in partners[g]:
                    break
                place += strides[g] * c
            else:
                options.append((place, group))
        drafts = [(peer + more, (*some, group), combine) for peer, some, combine in drafts for more, group in options]
    drafts.sort(key=itemgetter(0))
    messages = [Message(*draft) for draft in drafts]
    if not (across and sending):
        return messages
    serves = [g for g, role in enumerate(source.roles) if role.name == "replicated"]
    return [message for message in messages if _agree(source.grid.coordinates(message.peer), me, serves)]


def _single(grid_modes: At, partners: dict[int, range]) -> At | None:
    """The coordinates along some grid modes, -1 where any may be met; None if any may be met along all of them."""
    only = tuple([partners[g][0] if g in partners and len(partners[g]) == 1 else -1 for g in grid_modes])
    return only if max(only, default=-1) >= 0 else None


def _agree(first: At, second: At, grid_modes: Sequence[int]) -> bool:
    """Whether two ranks have the same coordinates along some grid modes."""
    return all(first[g] == second[g] for g in grid_modes)


class _Common(NamedTuple):
    """The part of the messages on one side that is the same for all ranks.

    Attributes:
        parts: the components.
        strides: the strides of rank numbers along the grid modes of the other side.
        free: the grid modes that split nothing there.
        reduced: the grid modes over which contributions are combined.
        meets: on one grid, which coordinates meet, by grid mode; only of grid modes that split nothing there, or along
            which not all meet.
    """

    parts: tuple[Component, ...]
    strides: tuple[int, ...]
    free: tuple[int, ...]
    reduced: tuple[int, ...]
    meets: dict[int, Meets]


@memoized(4096)
def _common(source: Distribution, target: Distribution, sending: bool) -> _Common:
    other = target if sending else source
    split = splitting(other, range(other.order))
    free = tuple([g for g in range(other.grid.order) if g not in split])
    strides = row_major(other.grid.shape)
    parts = components(source, target)
    if source.grid != target.grid:
        return _Common(parts, strides, free, source.partial, {})
    op_changes = source.layout.op != target.layout.op
    meets = {}
    for g, p in enumerate(source.grid.shape):
        met = communicates(source.roles[g], target.roles[g], op_changes, p)
        if g in free or not met.everywhere:
            meets[g] = met
    reduced = tuple([g for g in source.partial if op_changes or g not in target.partial])
    return _Common(parts, strides, free, reduced, meets)


def _partners_across(source: Distribution, target: Distribution, rank: int, sending: bool) -> dict[int, range]:
    """The coordinates that a rank meets along each grid mode of the other side, if both sides have different grids.

    A rank is served by the replica with the same coordinates as the rank along the replicated grid modes of the source.
    All contributions to a partial target enter at its coordinate 0.
    """
    own = source.grid.coordinates(rank)
    other = target if sending else source
    meets = {}
    for g, (role, size) in enumerate(zip(other.roles, other.grid.shape, strict=True)):
        if role.name == "rooted" or (role.name == "partial" and sending):
            meets[g] = range(role.at, role.at + 1)
        elif role.name == "replicated" and not sending:
            meets[g] = range(own[g], own[g] + 1)
        else:
            meets[g] = range(size)
    return meets


def groups(
    mine: Distribution, other: Distribution, part: Component, me: At, sending: bool, only: At | None = None
) -> tuple[Group, ...]:
    """The elements of one component that the rank at coordinates `me` holds in `mine`, grouped by place in `other`.

    `only` has the coordinates there of the groups that are wanted, -1 for any; None stands for all groups.
    """
    own = tuple([me[g] for g in splitting(mine, part.modes(before=sending))])
    return _groups(mine, other, part, own, sending, only)


@memoized(16384)
def _groups(
    mine: Distribution, other: Distribution, part: Component, own: At, sending: bool, only: At | None
) -> tuple[Group, ...]:
    """The groups of all ranks at some coordinates along the splits of the component."""
    names = splitting(other, part.modes(before=not sending))
    source, target = (mine, other) if sending else (other, mine)
    grouped = []
    for at, elements in _held(*readings(source, target, part), own, sending, only):
        grouped.append(Group(tuple(sorted(zip(names, at, strict=True))), elements))
    return tuple(sorted(grouped, key=attrgetter("coordinates")))


@memoized(16384)
def _held(
    source: Reading, target: Reading, own: At, sending: bool, only: At | None
) -> tuple[tuple[At, tuple[Lattice, ...] | Listed], ...]:
    """The elements at some coordinates on one side of a component, by their coordinates on the other side."""
    shared = overlaps(source, target)
    if isinstance(shared, Scatter):
        return tuple(_listed(shared, own, sending, only))
    lattices: dict[At, list[Lattice]] = {}
    single, several = _by_place(source, target, sending)
    near = [*single.get(own, ()), *several]
    if only is not None and min(only, default=-1) >= 0:  # either side tells which overlaps may have elements
        single, several = _by_place(source, target, not sending)
        near = min(near, [*single.get(only, ()), *several], key=len)
    for k in sorted(near):
        for at, lattice in _lattices(shared[k], own, sending, only):
            lattices.setdefault(at, []).append(lattice)
    return tuple((at, tuple(each)) for at, each in lattices.items())


@memoized(16)
def _by_place(source: Reading, target: Reading, sending: bool) -> tuple[dict[At, list[int]], list[int]]:
    """The numbers of the overlaps at a single coordinate on one side, by coordinate, and of those at several."""
    single: dict[At, list[int]] = {}
    several: list[int] = []
    shared = overlaps(source, target)
    assert not isinstance(shared, Scatter), "elements one by one are picked by their coordinates"
    for k, overlap in enumerate(shared):
        near = overlap.source if sending else overlap.target
        at, *steps = zip(*near.at, strict=True) if near.at else ((),)
        if any(map(any, steps)):
            several.append(k)
        else:
            single.setdefault(at, []).append(k)
    return single, several


def _lattices(overlap: Overlap, own: At, sending: bool, only: At | None) -> Iterator[tuple[At, Lattice]]:
    """The elements of an overlap at some coordinates on one side, by their coordinates on the other side."""
    near, far = (overlap.source, overlap.target) if sending else (overlap.target, overlap.source)
    rows, wanted = near.at, own
    for row, c in zip(far.at, only or (), strict=False):
        if c >= 0:
            rows, wanted = (*rows, row), (*wanted, c)
    fixed = _digits(overlap.shape, rows, wanted)
    if fixed is None:
        return
    left = [axis for axis in range(len(overlap.shape)) if axis not in fixed]
    varied = [axis for axis in left if any(row[axis + 1] for row in far.at)]
    left = [axis for axis in left if axis not in varied]
    shape = tuple([overlap.shape[axis] for axis in left])
    for values in product(*[range(overlap.shape[axis]) for axis in varied]):
        digits = fixed | dict(zip(varied, values, strict=True))
        lattice = Lattice(shape, _within(near.local, digits, left), _within(far.local, digits, left))
        yield tuple([_value(row, digits) for row in far.at]), lattice


def _within(rows: tuple[Row, ...], digits: dict[int, int], left: Sequence[int]) -> tuple[Row, ...]:
    """Linear numbers in the digits `left`, with the values of the other digits put in."""
    narrowed = []
    for row in rows:
        steps = [row[axis + 1] for axis in left]
        narrowed.append((_value(row, digits), *steps))
    return tuple(narrowed)


def _value(row: Row, digits: dict[int, int]) -> int:
    """The value of a linear number if some digits have these values and the others are 0."""
    number = row[0]
    for axis, n in digits.items():
        number += row[axis + 1] * n
    return number


def _digits(shape: At, rows: tuple[Row, ...], values: At) -> dict[int, int] | None:
    """The digits, by axis, at which linear numbers have these values; None if there are no such digits."""
    digits: dict[int, int] = {}
    for row, value in zip(rows, values, strict=True):
        left = value - _value(row, digits)
        for step, axis in sorted([(step, axis) for axis, step in enumerate(row[1:])], reverse=True):
            if step and axis not in digits:
                digits[axis], left = divmod(left, step)
                if not 0 <= digits[axis] < shape[axis]:
                    return None
        if left:
            return None
    return digits


def _listed(scatter: Scatter, own: At, sending: bool, only: At | None) -> Iterator[tuple[At, Listed]]:
    """The elements of a scatter at some coordinates on one side, by their coordinates on the other side."""
    near, far = scatter if sending else scatter[::-1]
    (near_at, near_local), (far_at, far_local) = near, far
    is_mine = np.full(len(near_local[0]), True)
    for at, c in zip((*near_at, *far_at), (*own, *(only or ())), strict=False):
        if c >= 0:
            is_mine &= at == c
    mine: Ints = np.flatnonzero(is_mine)
    if not len(mine):
        return
    coordinates = np.array([at[mine] for at in far_at], np.int64).reshape(len(far_at), len(mine))
    order = np.lexsort(coordinates[::-1]) if far_at else np.arange(len(mine))
    changes = (np.diff(coordinates[:, order]) != 0).any(axis=0)
    for chosen in np.split(order, np.flatnonzero(changes) + 1):
        picked = mine[chosen]
        elements = Listed(tuple([row[picked] for row in near_local]), tuple([row[picked] for row in far_local]))
        yield tuple(coordinates[:, chosen[0]].tolist()), elements
