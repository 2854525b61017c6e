"""The messages that each rank sends and receives when a tensor goes from one distribution to another.

A transition falls into components, in each of which the elements that a rank holds are grouped by the coordinates that
hold them on the other side; a message is the product of one group per component. Grid modes that split nothing on the
other side follow `communicates`. Between two grids over the same ranks the coordinates of either side are those of its
own grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..layout.distribution import Distribution, Role
from .components import Component, Reading, components, readings
from .overlap import Overlap, Row, Scatter, overlaps

__all__ = [
    "Group",
    "Lattice",
    "Listed",
    "Message",
    "communicates",
    "components",
    "groups",
    "receives",
    "sends",
    "spread",
]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]


class Lattice(NamedTuple):
    """Elements that are evenly spaced in the blocks of both sides, along each of some digits.

    Attributes:
        shape: the number of values of each digit.
        own, opposite: per view mode of the component, the local index in the block of the own side and the other one.
    """

    shape: tuple[int, ...]
    own: tuple[Row, ...]
    opposite: tuple[Row, ...]


class Listed(NamedTuple):
    """Elements one by one: per view mode of the component, their local indices on the own side and the other one."""

    own: tuple[Ints, ...]
    opposite: tuple[Ints, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Elements of one component that lie at the same coordinates on the other side. Both sides have them in one order.

    Attributes:
        coordinates: those coordinates, as pairs (grid mode, coordinate).
        elements: where they are, in lattices, or one by one where lattices would be too many.
    """

    coordinates: tuple[tuple[int, int], ...]
    elements: tuple[Lattice, ...] | Listed

    def __len__(self) -> int:
        if isinstance(self.elements, Listed):
            return len(self.elements.own[0])
        return sum(prod(lattice.shape) for lattice in self.elements)

    @property
    def positions(self) -> tuple[Ints, ...]:
        """The local indices of all elements on the own side, per view mode of the component."""
        return self._positions(0)

    @property
    def opposite(self) -> tuple[Ints, ...]:
        """The local indices of all elements on the other side, per view mode of the component."""
        return self._positions(1)

    def lies(self, own: Sequence[int], opposite: Sequence[int]) -> bool:
        """Whether every element is at one place in both blocks, if these are their strides along the view modes."""
        if isinstance(self.elements, Listed):
            places = [
                sum((row * stride for row, stride in zip(rows, strides, strict=True)), np.zeros(len(self), np.int64))
                for rows, strides in zip(self.elements, (own, opposite), strict=True)
            ]
            return np.array_equal(places[0], places[1])
        return all(_flat(lattice.own, own) == _flat(lattice.opposite, opposite) for lattice in self.elements)

    def _positions(self, side: int) -> tuple[Ints, ...]:
        if isinstance(self.elements, Listed):
            return self.elements[side]
        rows = zip(*((lattice.own, lattice.opposite)[side] for lattice in self.elements), strict=True)
        return tuple(
            np.concatenate([spread(lattice.shape, row) for lattice, row in zip(self.elements, along, strict=True)])
            for along in rows
        )


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A product of groups that goes to, or comes from, one rank.

    Attributes:
        peer: the rank on the other side.
        groups: one group per component, in the order of `components`.
        combine: whether the receiver reduces it into what has come before it (else it is the first to come).
    """

    peer: int
    groups: tuple[Group, ...]
    combine: bool

    def __len__(self) -> int:
        return prod(len(group) for group in self.groups)


@memoized(256)
def communicates(source: Role, target: Role, op_changes: bool, number: int) -> npt.NDArray[np.bool_]:
    """Whether data goes from coordinate a to coordinate b, at [a, b], of a grid mode of `number` with these roles.

    A rooted side holds data at its root alone. Each of several replicas serves its own coordinate. Into a partial
    target every element is contributed once: where it lies, or at coordinate 0 if it lies everywhere. From a partial
    source every coordinate contributes, unless the target stays partial. Read-only.
    """
    a, b = np.ogrid[:number, :number]
    met = np.ones((number, number), bool)
    if source.name == "rooted":
        met &= a == source.at
    if target.name == "rooted":
        met &= b == target.at
    if source.name == "replicated":
        met &= a == b
    if target.name == "partial":
        met &= b == 0 if source.name == "replicated" or (source.name == "partial" and op_changes) else a == b
    met.flags.writeable = False
    return met


def sends(source: Distribution, target: Distribution, rank: int) -> Iterator[Message]:
    """The messages that a rank sends, ordered by receiver; one to itself is what it keeps."""
    return _messages(source, target, rank, sending=True)


def receives(source: Distribution, target: Distribution, rank: int) -> Iterator[Message]:
    """The messages that a rank receives, ordered by sender."""
    return _messages(source, target, rank, sending=False)


def _messages(source: Distribution, target: Distribution, rank: int, sending: bool) -> Iterator[Message]:
    mine, other = (source, target) if sending else (target, source)
    across = source.grid != target.grid
    if not mine.holds(rank) or (across and not sending and not target.contributes(rank)):
        return
    me = mine.grid.coordinates(rank)
    partners = (_partners_across if across else _partners)(source, target, rank, sending)
    stays = () if across or source.layout.op != target.layout.op else target.partial
    reduced = [g for g in source.partial if g not in stays]
    strides = [prod(other.grid.shape[g + 1 :]) for g in range(other.grid.order)]
    split = {s.grid_mode for mode in other.splits for s in mode}
    # Products are put together as sums: a peer's number is the sum of what its coordinates add to it.
    drafts: list[tuple[int, tuple[Group, ...], bool]] = [(0, (), sending and any(me[g] for g in reduced))]
    for g in range(other.grid.order):
        if g not in split:
            later = not sending and g in reduced
            met = [(strides[g] * c, later and c != 0) for c, meet in enumerate(partners[g]) if meet]
            drafts = [(peer + more, some, combine or late) for peer, some, combine in drafts for more, late in met]
    for part in components(source, target):
        options = [
            (sum(strides[g] * c for g, c in group.coordinates), group)
            for group in groups(mine, other, part, me, sending)
            if all(partners[g][c] for g, c in group.coordinates)
        ]
        drafts = [(peer + more, (*some, group), combine) for peer, some, combine in drafts for more, group in options]
    if across and sending:
        serves = [g for g, role in enumerate(source.roles) if role.name == "replicated"]
        drafts = [each for each in drafts if all(source.grid.coordinates(each[0])[g] == me[g] for g in serves)]
    yield from (Message(*each) for each in sorted(drafts, key=itemgetter(0)))


def _partners(source: Distribution, target: Distribution, rank: int, sending: bool) -> list[list[bool]]:
    """Per grid mode and coordinate of a peer, whether a rank meets it."""
    op_changes = source.layout.op != target.layout.op
    tables: list[list[bool]] = []
    for g, (me, p) in enumerate(zip(source.grid.coordinates(rank), source.grid.shape, strict=True)):
        met = communicates(source.roles[g], target.roles[g], op_changes, p)
        tables.append((met[me] if sending else met[:, me]).tolist())
    return tables


def _partners_across(source: Distribution, target: Distribution, rank: int, sending: bool) -> list[list[bool]]:
    """Per grid mode of the other side's grid and coordinate, whether a rank meets it, where that is another grid.

    Of replicas, that one serves a rank which has its coordinates along the replicated grid modes of the source. All
    contributions to a partial target enter at its coordinate 0.
    """
    own = source.grid.coordinates(rank)

    def only(g: int, role: Role) -> int | None:
        if role.name == "rooted" or (role.name == "partial" and sending):
            return role.at
        return own[g] if role.name == "replicated" and not sending else None

    other = target if sending else source
    return [
        [only(g, role) in (None, peer) for peer in range(other.grid.shape[g])] for g, role in enumerate(other.roles)
    ]


def groups(mine: Distribution, other: Distribution, part: Component, me: At, sending: bool) -> tuple[Group, ...]:
    """One component of what the rank at coordinates `me` holds in `mine`, grouped by where it lies in `other`."""
    modes = part.before if sending else part.after
    return _groups(mine, other, part, tuple(me[s.grid_mode] for m in modes for s in mine.splits[m]), sending)


@memoized(16384)
def _groups(mine: Distribution, other: Distribution, part: Component, own: At, sending: bool) -> tuple[Group, ...]:
    """The groups of all ranks at some coordinates along the splits of the component."""
    names = [s.grid_mode for m in (part.after if sending else part.before) for s in other.splits[m]]
    pair = (mine, other) if sending else (other, mine)
    grouped = [
        Group(tuple(sorted(zip(names, at, strict=True))), elements)
        for at, elements in _held(*readings(*pair, part), own, sending)
    ]
    return tuple(sorted(grouped, key=lambda group: group.coordinates))


@memoized(16384)
def _held(
    source: Reading, target: Reading, own: At, sending: bool
) -> tuple[tuple[At, tuple[Lattice, ...] | Listed], ...]:
    """The elements at some coordinates on one side of a component, by their coordinates on the other one."""
    shared = overlaps(source, target)
    if isinstance(shared, Scatter):
        return tuple(_listed(shared, own, sending))
    lattices: dict[At, list[Lattice]] = {}
    for overlap in shared:
        for at, lattice in _lattices(overlap, own, sending):
            lattices.setdefault(at, []).append(lattice)
    return tuple((at, tuple(each)) for at, each in lattices.items())


def _lattices(overlap: Overlap, own: At, sending: bool) -> Iterator[tuple[At, Lattice]]:
    """The elements of an overlap that lie at some coordinates on one side, by those on the other one."""
    near, far = (overlap.source, overlap.target) if sending else (overlap.target, overlap.source)
    fixed = _digits(overlap.shape, near.at, own)
    if fixed is None:
        return
    axes = range(len(overlap.shape))
    varied = [axis for axis in axes if axis not in fixed and any(row[axis + 1] for row in far.at)]
    left = [axis for axis in axes if axis not in fixed and axis not in varied]
    shape = tuple(overlap.shape[axis] for axis in left)
    for values in product(*(range(overlap.shape[axis]) for axis in varied)):
        digits = fixed | dict(zip(varied, values, strict=True))

        def within(row: Row, digits: dict[int, int] = digits) -> Row:
            return sum((row[axis + 1] * n for axis, n in digits.items()), row[0]), *(row[axis + 1] for axis in left)

        at = tuple(within(row)[0] for row in far.at)
        yield at, Lattice(shape, tuple(map(within, near.local)), tuple(map(within, far.local)))


def _digits(shape: At, rows: tuple[Row, ...], values: At) -> dict[int, int] | None:
    """The digits, by axis, for which some numbers have these values; None if there are none."""
    digits: dict[int, int] = {}
    for row, value in zip(rows, values, strict=True):
        left = value - row[0] - sum(row[axis + 1] * n for axis, n in digits.items())
        for step, axis in sorted(((step, axis) for axis, step in enumerate(row[1:]) if step), reverse=True):
            if axis not in digits:
                digits[axis], left = divmod(left, step)
                if not 0 <= digits[axis] < shape[axis]:
                    return None
        if left:
            return None
    return digits


def _listed(scatter: Scatter, own: At, sending: bool) -> Iterator[tuple[At, Listed]]:
    """The elements of a scatter at some coordinates on one side, by those on the other one."""
    near, far = scatter if sending else scatter[::-1]
    (near_at, near_local), (far_at, far_local) = near, far
    mine: Ints = np.flatnonzero(np.logical_and.reduce([at == c for at, c in zip(near_at, own, strict=True)]))
    if not own:
        mine = np.arange(len(near_local[0]))
    coordinates = np.array([at[mine] for at in far_at], np.int64).reshape(len(far_at), len(mine))
    order = np.lexsort(coordinates[::-1]) if len(far_at) else np.arange(len(mine))
    changes = (np.diff(coordinates[:, order]) != 0).any(axis=0)
    for chosen in np.split(order, np.flatnonzero(changes) + 1) if len(mine) else ():
        at = tuple(coordinates[:, chosen[0]].tolist())
        picked = mine[chosen]
        yield at, Listed(tuple(row[picked] for row in near_local), tuple(row[picked] for row in far_local))


def _flat(rows: tuple[Row, ...], strides: Sequence[int]) -> Row:
    """The sum of numbers, each times a stride."""
    return tuple(sum(n * stride for n, stride in zip(each, strides, strict=True)) for each in zip(*rows, strict=True))


def spread(shape: At, row: Row) -> Ints:
    """All values of a number that is linear in digits below `shape`, in row-major order of these."""
    values = np.full((), row[0], np.int64)
    for n, step in zip(shape, row[1:], strict=True):
        values = np.add.outer(values, step * np.arange(n))
    return values.reshape(-1)
