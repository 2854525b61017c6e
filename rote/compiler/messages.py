"""The messages that each rank sends and receives when a tensor goes from one distribution to another.

A transition is a product of components. In each component, the elements that a rank holds are grouped by the
coordinates that hold them on the other side. A message is the product of one group per component. Along grid modes that
split nothing on the other side, the roles of a grid mode on both sides decide between which coordinates data goes. Such
a rule needs no table: at most one coordinate sends, or all do; at most one receives, or all do; and data stays at its
coordinate, or goes to any. Between two grids over the same ranks, each side has the coordinates of its own grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from math import prod
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..lattice import Lattice
from ..layout.distribution import Distribution, Role
from ..layout.grid import row_major
from .components import Component, Reading, Segments, components, overlaps, readings, splitting

__all__ = ["Group", "Message", "PeerRule", "groups", "peer_rule", "receives", "rules_of", "sends"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
At = tuple[int, ...]
Wanted = tuple[int | None, ...]

_SPLIT, _PARTIAL = Role("split"), Role("partial")


class PeerRule(NamedTuple):
    """The pairs of coordinates, one of the sender and one of the receiver, between which data goes.

    Attributes:
        number: the number of coordinates.
        sender, receiver: the only coordinate that sends, or receives; None if all do.
        equal: whether data stays at its coordinate.

    >>> PeerRule(3, sender=1).table(range(3)).tolist()
    [[False, False, False], [True, True, True], [False, False, False]]
    >>> PeerRule(3, equal=True, receiver=2).peers(2, sending=True), PeerRule(3, sender=1).peers(0, sending=False)
    (range(2, 3), range(1, 2))
    """

    number: int
    sender: int | None = None
    receiver: int | None = None
    equal: bool = False

    @property
    def everywhere(self) -> bool:
        """Whether any two coordinates exchange data."""
        return self.number == 1 or (self.sender is None and self.receiver is None and not self.equal)

    def peers(self, own: int, sending: bool) -> range:
        """The coordinates to which a coordinate sends, or from which it receives."""
        mine, theirs = (self.sender, self.receiver) if sending else (self.receiver, self.sender)
        if mine not in (None, own):
            return range(0)
        if not self.equal:
            return range(self.number) if theirs is None else range(theirs, theirs + 1)
        return range(own, own + 1) if theirs in (None, own) else range(0)

    def at(self, senders: Array, receivers: Array) -> Array:
        """Whether senders send to receivers, for arrays of coordinates that broadcast."""
        sent: Array = np.ones(np.broadcast_shapes(senders.shape, receivers.shape), bool)
        if self.sender is not None:
            sent &= senders == self.sender
        if self.receiver is not None:
            sent &= receivers == self.receiver
        if self.equal:
            sent &= senders == receivers
        return sent

    def table(self, coordinates: Sequence[int]) -> Array:
        """Whether some coordinates send to each other: a row per sender, a column per receiver."""
        some = np.array(coordinates, np.int64)
        return self.at(some[:, None], some)

    def counts(self, sending: bool) -> Array:
        """The number of coordinates to which each one sends, or from which it receives."""
        mine, theirs = (self.sender, self.receiver) if sending else (self.receiver, self.sender)
        each = 1 if self.equal or theirs is not None else self.number
        number: Array = np.full(self.number, each, np.int64)
        own = np.arange(self.number)
        if mine is not None:
            number *= own == mine
        if self.equal and theirs is not None:
            number *= own == theirs
        return number

    def itself(self) -> Array:
        """Whether each coordinate sends to itself."""
        own = np.arange(self.number)
        return self.at(own, own)


def peer_rule(source: Role, target: Role, op_changes: bool, number: int) -> PeerRule:
    """Between which coordinates of a grid mode with these roles data goes. It has `number` coordinates.

    A rooted side holds data only at its root. Each replica serves its own coordinate. Every element enters a partial
    target once: where it is, or at coordinate 0 if it is everywhere. Every coordinate of a partial source
    contributes, unless the target stays partial.
    """
    sender = source.at if source.name == "rooted" else None
    receiver = target.at if target.name == "rooted" else None
    equal = source.name == "replicated"
    if target.name == "partial":
        if source.name == "replicated" or (source.name == "partial" and op_changes):
            receiver = 0
        else:
            equal = True
    return PeerRule(number, sender, receiver, equal)


def rules_of(source: Distribution, target: Distribution) -> tuple[list[PeerRule], list[PeerRule]]:
    """Between which coordinates data goes, along each grid mode of the source, and along each one of the target.

    On one grid, both are the same. Between two grids, the rules of the source are about coordinates on its grid alone:
    a rank is served by the replica at its own coordinates. All contributions to a partial target enter at coordinate 0.
    """
    if source.grid == target.grid:
        op_changes = source.layout.op != target.layout.op
        roles = zip(source.roles, target.roles, source.grid.shape, strict=True)
        rules = [peer_rule(before, after, op_changes, p) for before, after, p in roles]
        return rules, rules
    before = [peer_rule(role, _SPLIT, True, p) for role, p in zip(source.roles, source.grid.shape, strict=True)]
    after = [peer_rule(_PARTIAL, role, True, p) for role, p in zip(target.roles, target.grid.shape, strict=True)]
    return before, after


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Elements of one component at the same coordinates on the other side, in the same order on both sides.

    Attributes:
        coordinates: these coordinates, as pairs (grid mode, coordinate).
        lattices: the elements; the rows are their local indices in the sender's block, then in the receiver's.
        own, opposite: the rows of this side, and of the other side.
    """

    coordinates: tuple[tuple[int, int], ...]
    lattices: tuple[Lattice, ...]
    own: slice
    opposite: slice

    def __len__(self) -> int:
        return sum([lattice.size for lattice in self.lattices])

    @property
    def listed(self) -> bool:
        """Whether the elements are listed one by one."""
        return self.lattices[0].listed

    @property
    def positions(self) -> tuple[Ints, ...]:
        """The local indices of all elements on this side, per view mode of the component."""
        spread_out = Lattice.listing(self.lattices)
        return tuple([table for _, table in spread_out.rows[self.own]])

    def keeps_offsets(self, own: Sequence[int], opposite: Sequence[int]) -> bool:
        """Whether every element is at the same offset in both blocks, given their strides along the view modes."""
        for lattice in self.lattices:
            offsets = lattice.offset(own, self.own), lattice.offset(opposite, self.opposite)
            if not all(map(np.array_equal, *offsets)):
                return False
        return True


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

    @property
    def size(self) -> int:
        """The number of elements, which may be too large for `len`."""
        return prod([sum([lattice.size for lattice in group.lattices]) for group in self.groups])

    def __len__(self) -> int:
        return self.size


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
    at_rank = other.grid.coordinates(rank) if across else me
    common = _common(source, target, sending)
    partners = list(map(PeerRule.peers, common.rules, at_rank, repeat(sending)))
    if only is not None:
        for g, c in enumerate(other.grid.coordinates(only)):
            partners[g] = range(c, c + 1) if c in partners[g] else range(0)
    if not all(partners):
        return []
    # A peer's number is the sum of its coordinates times strides, so each factor of a product adds to it.
    strides, combined = common.strides, common.combined
    drafts: list[tuple[int, tuple[Group, ...], bool]] = [(0, (), sending and any(map(me.__getitem__, combined)))]
    for g in common.free:
        later = not sending and g in combined
        places = [(strides[g] * c, later and c != 0) for c in partners[g]]
        drafts = [(peer + more, some, combine or late) for peer, some, combine in drafts for more, late in places]
    for part, own, over in common.parts:
        single = tuple([partners[g][0] if len(partners[g]) == 1 else None for g in over])
        options = []
        for group in groups(mine, other, part, (*map(me.__getitem__, own),), sending, single):
            place = 0
            for g, c in group.coordinates:
                if c not in partners[g]:
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
    peers_at = [source.grid.coordinates(message.peer) for message in messages]
    return [each for each, at in zip(messages, peers_at, strict=True) if all(at[g] == me[g] for g in serves)]


class _Common(NamedTuple):
    """The part of the messages on one side that is the same for all ranks.

    Attributes:
        rules: between which coordinates data goes, by grid mode of the other side.
        strides: the strides of rank numbers along these grid modes.
        free: those that split nothing.
        combined: the grid modes over which contributions are combined.
        parts: the components, each with the grid modes that split it on this side, and on the other side.
    """

    rules: list[PeerRule]
    strides: tuple[int, ...]
    free: tuple[int, ...]
    combined: tuple[int, ...]
    parts: tuple[tuple[Component, At, At], ...]


@memoized(4096)  # every rank asks for it, and needs little else
def _common(source: Distribution, target: Distribution, sending: bool) -> _Common:
    mine, other = (source, target) if sending else (target, source)
    split = splitting(other, range(other.order))
    free = tuple([g for g in range(other.grid.order) if g not in split])
    op_changes = source.grid != target.grid or source.layout.op != target.layout.op
    combined = tuple([g for g in source.partial if op_changes or g not in target.partial])
    parts = []
    for part in components(source, target):
        over = splitting(other, part.modes(before=not sending))
        parts.append((part, splitting(mine, part.modes(before=sending)), over))
    return _Common(rules_of(source, target)[sending], row_major(other.grid.shape), free, combined, tuple(parts))


@memoized(16384)
def groups(
    mine: Distribution, other: Distribution, part: Component, own: At, sending: bool, only: Wanted = ()
) -> tuple[Group, ...]:
    """The elements of one component at coordinates `own` along its splits in `mine`, grouped by place in `other`.

    `only` has the coordinates there of the groups that are wanted, None for any; if it is empty, all are wanted.
    """
    names = splitting(other, part.modes(before=not sending))
    source, target = (mine, other) if sending else (other, mine)
    only = only or (None,) * len(names)
    middle, skipped = len(part.before), len(own) if sending else 0
    before, after = slice(middle), slice(middle, None)
    rows = (before, after) if sending else (after, before)
    grouped = []
    wanted = (own, only) if sending else (only, own)
    for at, lattices in _elements_at(*readings(source, target, part), *wanted):
        there = zip(names, at[skipped:], strict=False)
        grouped.append(Group(tuple(sorted(there)), lattices, *rows))
    return tuple(sorted(grouped, key=attrgetter("coordinates")))


@memoized(16384)
def _elements_at(
    source: Reading, target: Reading, before: Wanted, after: Wanted
) -> tuple[tuple[At, tuple[Lattice, ...]], ...]:
    """The elements of a component at some coordinates on both sides, None for any, by these coordinates."""
    shared, number = overlaps(source, target), len(before)
    near: Sequence[int] = range(len(shared))
    for side, (at, rows) in enumerate(((before, slice(number)), (after, slice(number, number + len(after))))):
        if None in at:
            continue
        if isinstance(shared, Segments):  # this side knows which overlaps may have elements
            near = min(near, shared.near(side, cast("At", at)), key=len)
        else:
            single, several = _by_place(source, target, rows.start, rows.stop)
            near = min(near, [*single.get(at, ()), *several], key=len)
    lattices: dict[At, list[Lattice]] = {}
    for k in sorted(near):
        for at, lattice in shared[k].fix((*before, *after)):
            lattices.setdefault(at, []).append(lattice)
    return tuple([(at, tuple(each)) for at, each in lattices.items()])


@memoized(16)
def _by_place(
    source: Reading, target: Reading, start: int | None, stop: int
) -> tuple[dict[Wanted, list[int]], list[int]]:
    """The numbers of the overlaps at a single coordinate in some rows, by coordinate, and of those at several."""
    single: dict[Wanted, list[int]] = {}
    several: list[int] = []
    for k, overlap in enumerate(overlaps(source, target)):
        rows = overlap.rows[start:stop]
        at, *steps = zip(*rows, strict=True) if rows else ((),)
        if overlap.listed or any(map(any, steps)):
            several.append(k)
        else:
            single.setdefault(at, []).append(k)
    return single, several
