"""Which coordinates of one grid mode exchange data in a movement: a rule of a few numbers, however many coordinates.

The roles of a grid mode on both sides decide who meets whom along it. A rule needs no table: at most one coordinate
sends, or all do; at most one receives, or all do; and equal coordinates meet, or any two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...layout.blocks import Role

__all__ = ["Meets", "communicates"]

Array = npt.NDArray[Any]


class Meets(NamedTuple):
    """The pairs of coordinates, one of the sender and one of the receiver, between which data goes.

    Attributes:
        number: the number of coordinates.
        sender, receiver: the only coordinate that sends, or receives; None if all do.
        equal: whether data stays at its coordinate.

    >>> Meets(3, sender=1).table(range(3)).tolist()
    [[False, False, False], [True, True, True], [False, False, False]]
    >>> Meets(3, equal=True, receiver=2).peers(2, sending=True), Meets(3, sender=1).peers(0, sending=False)
    (range(2, 3), range(1, 2))
    """

    number: int
    sender: int | None = None
    receiver: int | None = None
    equal: bool = False

    @property
    def everywhere(self) -> bool:
        """Whether any two coordinates meet."""
        return self.number == 1 or (self.sender is None and self.receiver is None and not self.equal)

    def reversed(self) -> Meets:
        """The rule with senders and receivers exchanged."""
        return Meets(self.number, self.receiver, self.sender, self.equal)

    def peers(self, own: int, sending: bool) -> range:
        """The coordinates to which a coordinate sends, or from which it receives."""
        mine, theirs = (self.sender, self.receiver) if sending else (self.receiver, self.sender)
        if mine not in (None, own):
            return range(0)
        if not self.equal:
            return range(self.number) if theirs is None else range(theirs, theirs + 1)
        return range(own, own + 1) if theirs in (None, own) else range(0)

    def at(self, senders: Array, receivers: Array) -> Array:
        """Whether coordinates meet, for arrays of them that broadcast."""
        met: Array = np.ones(np.broadcast_shapes(senders.shape, receivers.shape), bool)
        if self.sender is not None:
            met &= senders == self.sender
        if self.receiver is not None:
            met &= receivers == self.receiver
        if self.equal:
            met &= senders == receivers
        return met

    def table(self, coordinates: Sequence[int]) -> Array:
        """Whether some coordinates meet each other: a row per sender, a column per receiver."""
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


@memoized(256)
def communicates(source: Role, target: Role, op_changes: bool, number: int) -> Meets:
    """Which coordinates of a grid mode with these roles meet. The grid mode has `number` coordinates.

    A rooted side holds data only at its root. Each replica serves its own coordinate. Every element enters a partial
    target once: where it lies, or at coordinate 0 if it lies everywhere. Every coordinate of a partial source
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
    return Meets(number, sender, receiver, equal)
