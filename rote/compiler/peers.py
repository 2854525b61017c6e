"""Between which coordinates of a grid mode data goes: a rule, which follows from the roles of the mode on both sides.

Along grid modes that split nothing on the other side, a rule needs no table: at most one coordinate sends, or all do;
at most one receives, or all do; and data stays at its coordinate, or goes to any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution, Role

__all__ = ["RECEIVES", "SENDS", "PeerRule", "Rules", "peer_rule", "peer_rules"]

Array = npt.NDArray[Any]

SENDS, RECEIVES = 0, 1
"""The two sides of a movement: places in pairs, such as its two ends."""

_SPLIT, _PARTIAL = Role("split"), Role("partial")


class PeerRule(NamedTuple):
    """The pairs of coordinates, one of the sender and one of the receiver, between which data goes.

    Attributes:
        number: the number of coordinates.
        sender, receiver: the only coordinate that sends, or receives; None if all do.
        equal: whether data stays at its coordinate.

    >>> PeerRule(3, sender=1).table(range(3)).tolist()
    [[False, False, False], [True, True, True], [False, False, False]]
    >>> PeerRule(3, equal=True, receiver=2).peers(2, SENDS), PeerRule(3, sender=1).peers(0, RECEIVES)
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

    def only(self, side: int) -> tuple[int | None, int | None]:
        """The only coordinate of a side, and that of the other side; None if all have data there."""
        return (self.sender, self.receiver) if side == SENDS else (self.receiver, self.sender)

    def peers(self, at: int, side: int) -> range:
        """The coordinates to which a coordinate sends, or from which it receives."""
        mine, theirs = (self.sender, self.receiver) if side == SENDS else (self.receiver, self.sender)
        if mine not in (None, at):
            return range(0)
        if not self.equal:
            return range(self.number) if theirs is None else range(theirs, theirs + 1)
        return range(at, at + 1) if theirs in (None, at) else range(0)

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

    def counts(self, side: int) -> Array:
        """The number of coordinates to which each one sends, or from which it receives."""
        mine, theirs = self.only(side)
        peers = 1 if self.equal or theirs is not None else self.number
        number: Array = np.full(self.number, peers, np.int64)
        every = np.arange(self.number)
        if mine is not None:
            number *= every == mine
        if self.equal and theirs is not None:
            number *= every == theirs
        return number

    def itself(self) -> Array:
        """Whether each coordinate sends to itself."""
        every = np.arange(self.number)
        return self.at(every, every)


Rules = tuple[tuple[PeerRule, ...], tuple[PeerRule, ...]]
"""The rules of the grid modes of the source, and of those of the target."""


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


def peer_rules(source: Distribution, target: Distribution) -> Rules:
    """Between which coordinates data goes, along each grid mode of the source, and along each one of the target.

    On one grid, both are the same. Between two grids, the rules of the source are only about coordinates on its grid:
    a rank is served by the replica at its own coordinates. All contributions to a partial target enter at coordinate 0.
    """
    if source.grid == target.grid:
        op_changes = source.layout.op != target.layout.op
        roles = zip(source.roles, target.roles, source.grid.shape, strict=True)
        rules = tuple([peer_rule(before, after, op_changes, p) for before, after, p in roles])
        return rules, rules

    before = [peer_rule(role, _SPLIT, True, p) for role, p in zip(source.roles, source.grid.shape, strict=True)]
    after = [peer_rule(_PARTIAL, role, True, p) for role, p in zip(target.roles, target.grid.shape, strict=True)]
    return tuple(before), tuple(after)
