"""Movements: what goes from where to where if a tensor goes from one distribution to another.

A movement is a product of parts. A part is the modes of both sides that read the same digits of the tensor, with their
factor, which says where these digits lie (see factor.py):

    (a b) c: block[(0),(1)] -> a (b c): [(),(0,1)]      one part: b ties a, b and c together
    block[(0),()]           -> [(),(0)]                 two parts: mode 0, split before, and mode 1, split after

A message is a product, too: of one group of each factor. Along grid modes that split nothing on the other side, the
rules of peers.py say between which coordinates data goes. Between two grids over the same ranks, each side has the
coordinates of its own grid. Volumes factor likewise: each is a product of one count per part, summed over the peers.
NumPy broadcasts them over the grid: arrays have one axis per grid mode, of extent 1 where all coordinates have the same
count, so that even splits cost the same on any grid.

`movement` makes each movement once. So caches find it by its identity, and what two ranks, or a search, ask twice is
computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..layout.distribution import Distribution
from ..layout.grid import row_major
from ..layout.kinds import Split, numbered
from ..layout.view import Digit
from .factor import Factor, Group, Traffic, factor
from .overlaps import ModeReading, Reading, TooManyPiecesError, counting
from .peers import RECEIVES, SENDS, PeerRule, peer_rules
from .volumes import block_sizes, coordinates, over_grid, over_ranks, places, thin

__all__ = ["RECEIVES", "SENDS", "Message", "Movement", "Part", "movement"]

Ints = npt.NDArray[np.int64]
At = tuple[int, ...]
Digits = tuple[tuple[Digit, ...], ...]
Modes = tuple[tuple[tuple[Digit, ...], tuple[Split, ...]], ...]  # the digits and splits of each
Pair = tuple[At, At]  # modes of the source, and of the target

_DIGITS = itemgetter(0)  # of `Modes`
_SMALL = 1 << 12  # bytes of counts that a movement keeps; of larger ones, caches keep few
_SERVED = 1 << 16  # ranks of which some are replicas: their pairs take a minute
_AT_ONCE = 1 << 22  # pairs of ranks that are counted at a time
_QUICK = 1 << 20  # pairs of coordinates that are counted quickly


class Part(NamedTuple):
    """The view modes of the source and of the target that read the same digits of the tensor.

    Attributes:
        before, after: these modes.
        factor: where the digits lie.
        over: on both sides, the grid modes that split them.
    """

    before: At
    after: At
    factor: Factor
    over: tuple[At, At]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A product of groups that goes to, or comes from, one rank.

    Attributes:
        peer: the rank on the other side.
        groups: one group per part of the movement.
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


class _Side(NamedTuple):
    """What is the same for the messages of all ranks of one side.

    Attributes:
        strides: the strides of rank numbers along the grid modes of the other side.
        free: those of these grid modes that split nothing.
        combined: the grid modes over which contributions are combined.
        serves: the grid modes of replicas that serve only the ranks at their own coordinates.
    """

    strides: At
    free: At
    combined: At
    serves: At


class Movement:
    """What goes from where to where between two distributions of a tensor; `movement` makes it.

    Attributes:
        source, target: the two ends.
        ends: both, by side.
        across: whether they lie on two grids over the same ranks.
        parts: the parts, ordered by the first digit of the tensor that they read.

    >>> from rote.layout.layout import parse
    >>> move = movement(parse("block[(0)]").on(5, 2), parse("[(0)]").on(5, 2))
    >>> [(message.peer, message.size) for message in move.messages(0, SENDS)]
    [(0, 2), (1, 1)]
    >>> move.received.tolist(), move.kept.tolist(), move.lower_bound
    ([1, 1], [2, 1], 1)
    """

    def __init__(self, source: Distribution, target: Distribution) -> None:
        self.source: Distribution = source
        self.target: Distribution = target
        self.ends: tuple[Distribution, Distribution] = (source, target)
        self.across: bool = source.grid != target.grid
        self.parts: tuple[Part, ...] = _parts(source, target)
        self._rules = peer_rules(source, target)
        self._kept: Ints | None = None
        self._volumes = dict[tuple[int, At], Traffic]()

    def __reduce__(self) -> tuple[object, ...]:
        return movement, self.ends  # it is one object in each process

    def rules(self, side: int) -> tuple[PeerRule, ...]:
        """Between which coordinates data goes, along each grid mode of one side."""
        return self._rules[side]

    # --- the messages of one rank ------------------------------------------------------------------------------------

    def messages(self, rank: int, side: int, peer: int | None = None) -> list[Message]:
        """The messages that a rank sends, or receives, ordered by peer; that to itself has the elements that it keeps.

        If a peer is given, only the message with that rank, if there is one.
        """
        me = self.ends[side].grid.coordinates(rank)
        partners = self._partners(rank, me, side, peer)
        if partners is None:
            return []
        this = self._sides[side]
        strides, combined = this.strides, this.combined

        # A peer's number is the sum of its coordinates times strides, so each factor of a product adds to it.
        late = side == SENDS and any(me[g] for g in combined)
        drafts: list[tuple[int, tuple[Group, ...], bool]] = [(0, (), late)]
        for g in this.free:
            later = side == RECEIVES and g in combined
            steps = [(strides[g] * c, later and c != 0) for c in partners[g]]
            drafts = [(at + more, some, combine or late) for at, some, combine in drafts for more, late in steps]
        for part in self.parts:
            options = _options(part, me, side, partners, strides)
            drafts = [(at + more, (*some, group), combine) for at, some, combine in drafts for more, group in options]

        drafts.sort(key=itemgetter(0))
        messages = [Message(*draft) for draft in drafts]
        if not this.serves:
            return messages
        grid = self.source.grid
        return [message for message in messages if all(grid.coordinates(message.peer)[g] == me[g] for g in this.serves)]

    def _partners(self, rank: int, me: At, side: int, peer: int | None) -> list[range] | None:
        """Per grid mode of the other side, the coordinates with which a rank exchanges data; None if with none."""
        mine, other = self.ends[side], self.ends[1 - side]
        for g, root in mine.layout.rooted:
            if me[g] != root:
                return None
        at = me
        if self.across:
            if side == RECEIVES and not self.target.contributes(rank):
                return None
            at = other.grid.coordinates(rank)

        partners = [rule.peers(c, side) for rule, c in zip(self.rules(1 - side), at, strict=True)]
        if peer is not None:
            for g, c in enumerate(other.grid.coordinates(peer)):
                partners[g] = range(c, c + 1) if c in partners[g] else range(0)
        return partners if all(partners) else None

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        source, target = self.ends
        changes = self.across or source.layout.op != target.layout.op
        combined = tuple([g for g in source.partial if changes or g not in target.partial])
        sides = []
        for side, other in ((SENDS, target), (RECEIVES, source)):
            split = {*chain(*[part.over[1 - side] for part in self.parts])}
            free = tuple([g for g in range(other.grid.order) if g not in split])
            serves = source.roles if self.across and side == SENDS else ()
            served = tuple([g for g, role in enumerate(serves) if role.name == "replicated"])
            sides.append(_Side(row_major(other.grid.shape), free, combined, served))
        return sides[SENDS], sides[RECEIVES]

    # --- the volumes of all ranks ------------------------------------------------------------------------------------

    def traffic(self, side: int, equal: At = ()) -> Traffic:
        """The elements and messages that each rank sends to others, or receives from them.

        The arrays broadcast over the grid; between two grids, over the one that refines both. On one grid, only peers
        with the same coordinates along the grid modes `equal` count.
        """
        volumes = self._volumes.get((side, equal))
        if volumes is None:
            volumes = _traffic(self, side, equal)
            if volumes.elements.nbytes + volumes.messages.nbytes <= _SMALL:
                self._volumes[side, equal] = volumes
        return volumes

    @property
    def received(self) -> Ints:
        """The elements that each rank receives from others."""
        return self.traffic(RECEIVES).elements

    @property
    def kept(self) -> Ints:
        """The elements that each rank sends to itself, on one grid."""
        if self._kept is not None:
            return self._kept
        if not self.source.grid.shape:
            return block_sizes(self.source)
        everywhere = tuple(range(len(self.source.grid.shape)))
        elements = _all_traffic(self, RECEIVES, everywhere).elements
        if elements.nbytes <= _SMALL:
            self._kept = elements
        return elements

    def matrix(self) -> Ints:
        """Elements that each rank (row) sends to each rank (column); the diagonal has those that it keeps.

        >>> from rote.layout.layout import parse
        >>> movement(parse("block[(0)]").on(5, 2), parse("[(0)]").on(5, 2)).matrix().tolist()
        [[2, 1], [1, 1]]
        """
        return _rows(self, np.arange(self.source.grid.size))

    def common(self, source_at: Sequence[Ints], target_at: Sequence[Ints]) -> Ints:
        """Count the elements that lie both at coordinates of the source (rows) and at some of the target (columns).

        Coordinates are given per grid mode. Whether the ranks there hold or want data is not considered.
        """
        table = np.ones((1, 1), counting(prod(self.source.shape)))
        for part in self.parts:
            giving = [source_at[g][:, None] for g in part.over[SENDS]]
            taking = [target_at[g] for g in part.over[RECEIVES]]
            table = table * part.factor.pairs.met(dict(enumerate((*giving, *taking))))[0]
        return table

    @property
    def quickly_counted(self) -> bool:
        """Whether volumes are counted without many pairs of coordinates."""
        factors = [part.factor for part in self.parts]
        return all(of.is_same or prod(of.parts) <= _QUICK or of.along is not None for of in factors)

    @property
    def stored(self) -> Ints:
        """The size of each rank's block of the target, over the grid that refines both."""
        sizes = block_sizes(self.target)
        if not self.across:
            return sizes
        return over_ranks(sizes, self.target.grid, self.source.grid.refine(self.target.grid))

    @property
    def needed(self) -> Ints:
        """The elements that each rank must be sent. If the target is partial, contributions may stay where they are."""
        if not self.source.grid.shape and not self.target.grid.shape:
            return np.zeros(1, np.int64)
        if self.target.partial:
            return np.zeros_like(self.received)
        return np.minimum(self.received, self.stored)

    @property
    def lower_bound(self) -> int:
        """The elements that some rank must receive in any plan: the most that a rank needs and does not hold.

        In a reduction, a rank must be sent at least one value per element, and an average rank its part of `receipts`.
        """
        needed = int(self.needed.max(initial=0))
        return max(needed, -(-self.receipts // self.source.grid.size))

    @property
    def receipts(self) -> int:
        """The elements that all ranks together must receive, at least, in a reduction; 0 if there is none.

        To bring c contributions together, c - 1 ranks that hold one must send, or c if the sum is needed elsewhere
        (Chan et al. 2007). From then on, each rank that needs the sum but the first must still be sent a value. Of
        contributions to a target with d of them, d may stay where they are.
        """
        source, target = self.ends
        elements, before, after = prod(source.shape), _number_of(source, "partial"), _number_of(target, "partial")
        if after > 1 or before == 1:
            return elements * max(before - after, 0)
        moved, copies = self.received, _number_of(target, "replicated")
        every = int(moved.sum()) * (target.grid.size // moved.size)  # contributions to all copies, but those in place
        elsewhere = every - elements * (before * copies - 1)  # negative if several copies have a contribution in place
        return elements * (before + copies - 2) + max(elsewhere, 0)


@memoized(16384)
def movement(source: Distribution, target: Distribution) -> Movement:
    """The movement between two distributions of a tensor, on one grid or on two over the same ranks.

    Equal ends give one object, so a movement is compared and cached by its identity.
    """
    return Movement(source, target)


def _options(part: Part, me: At, side: int, partners: list[range], strides: At) -> list[tuple[int, Group]]:
    """The groups of a part for a rank, each with what its coordinates add to the number of the peer."""
    over = part.over[1 - side]
    here, options = tuple(map(me.__getitem__, part.over[side])), []
    single = tuple([partners[g][0] if len(partners[g]) == 1 else None for g in over]) if over else ()
    for group in part.factor.at(side, here, single):
        place = 0
        for g, c in zip(over, group.coordinates, strict=True):
            if c not in partners[g]:
                break
            place += strides[g] * c
        else:
            options.append((place, group))
    return options


# --- the parts -------------------------------------------------------------------------------------------------------


def _parts(source: Distribution, target: Distribution) -> tuple[Part, ...]:
    parts = []
    for before, after in _matched(source.digits, target.digits):
        modes = map(source.digits.__getitem__, before), map(source.splits.__getitem__, before)
        others = map(target.digits.__getitem__, after), map(target.splits.__getitem__, after)
        parts.append(_part(before, after, tuple(zip(*modes, strict=True)), tuple(zip(*others, strict=True))))
    return tuple(parts)


@memoized(16384)  # movements of a search differ in few of their parts
def _part(before: At, after: At, modes: Modes, others: Modes) -> Part:
    # If both sides read the same digits, each mode counts as one digit, so that modes of one extent share a factor.
    alike = [*map(_DIGITS, modes)] == [*map(_DIGITS, others)]
    sides = _reading(modes, alike), _reading(others, alike)
    return Part(before, after, factor(sides), (_splitting(modes), _splitting(others)))


def _reading(modes: Modes, alike: bool) -> Reading:
    reading = []
    for number, (digits, splits) in enumerate(modes):
        extent = prod([digit.size for digit in digits])
        read = (Digit(number, 1, extent),) if alike else digits
        reading.append(ModeReading(read, numbered(splits), extent))
    return tuple(reading)


def _splitting(modes: Modes) -> At:
    return tuple([split.grid_mode for _, splits in modes for split in splits])


def _matched(before: Digits, after: Digits) -> Iterable[Pair]:
    """The modes of both sides that read the same digits, ordered by the first digit."""
    pairs = _one_to_one(before, after, range(len(before)), range(len(after)))
    if pairs is not None:
        return pairs

    # Modes that read digits of one mode of the tensor belong together, and so do all that these read.
    groups: list[set[int]] = []  # modes of the tensor that view modes read together
    for digits in (*before, *after):
        modes = {digit.mode for digit in digits}
        joined = [group for group in groups if group & modes]
        groups = [group for group in groups if group not in joined] + [modes.union(*joined)]

    matched: list[Pair] = []
    for group in sorted(groups, key=min):
        sources = [m for m, digits in enumerate(before) if digits[0].mode in group]
        targets = [m for m, digits in enumerate(after) if digits[0].mode in group]
        pairs = _one_to_one(before, after, sources, targets)
        matched += pairs or [(tuple(sources), tuple(targets))]
    return matched


def _one_to_one(before: Digits, after: Digits, sources: Sequence[int], targets: Sequence[int]) -> list[Pair] | None:
    """Some modes of both sides in pairs, ordered by first digit, if both sides read the same digits; else None."""
    source_of = {before[m]: m for m in sources}
    target_of = {after[m]: m for m in targets}
    if source_of.keys() != target_of.keys() or not len(source_of) == len(sources) == len(targets):
        return None
    return [((source_of[digits],), (target_of[digits],)) for digits in sorted(source_of, key=_first)]


def _first(digits: tuple[Digit, ...]) -> tuple[int, int]:
    return digits[0].mode, -digits[0].weight


# --- volumes on one grid ---------------------------------------------------------------------------------------------


@memoized(4)  # movements keep small volumes themselves
def _traffic(move: Movement, side: int, equal: At) -> Traffic:
    if move.across:
        return _across(move, side)
    every, itself = _all_traffic(move, side, equal), move.kept
    return Traffic(every.elements - itself, every.messages - (itself > 0))


def _all_traffic(move: Movement, side: int, equal: At) -> Traffic:
    """What each rank sends, or receives, with what it keeps, on one grid.

    It is a product of one count per part, and one per grid mode that splits nothing for the peers.
    """
    rules = move.rules(side)
    if equal:
        rules = tuple([PeerRule(*rule[:3], equal=rule.equal or g in equal) for g, rule in enumerate(rules)])
    free, order = set(range(len(rules))), len(rules)
    messages = np.array(1, ndmin=order)
    elements = messages.astype(_counter(move))

    for part in move.parts:
        theirs = part.over[1 - side]
        free.difference_update(theirs)
        more = part.factor.volumes(side, part.over, tuple(map(rules.__getitem__, theirs)), order)
        elements, messages = elements * more.elements, messages * more.messages

    for g in free:
        peers = _peers(rules[g], side, g, order)
        elements, messages = elements * peers, messages * peers
    return Traffic(elements, messages)


def _peers(rule: PeerRule, side: int, g: int, order: int) -> Ints:
    """How many peers each coordinate meets along grid mode g, which splits nothing for them."""
    mine, theirs = rule.only(side)
    if mine is None and (theirs is None or not rule.equal):  # all coordinates have as many
        return np.array(1 if rule.equal or theirs is not None else rule.number, ndmin=order)
    return over_grid(rule.counts(side), [g], order)


def _counter(move: Movement) -> np.dtype[Any]:
    """The dtype of the elements that a rank sends or receives, with all contributions and copies."""
    copies = 1
    for p, before, after in zip(move.source.grid.shape, move.source.roles, move.target.roles, strict=True):
        copies *= 1 if before.name == after.name == "split" else p
    return counting(prod(move.source.shape) * copies)


# --- volumes between two grids ---------------------------------------------------------------------------------------


def _across(move: Movement, side: int) -> Traffic:
    """What each rank exchanges with others between two grids over the same ranks.

    A grid mode splits only one part, so the sum over all peers is a product of sums, one per part. If replicas send,
    pairs must be counted, because each replica serves its own ranks of the other grid. The arrays broadcast over the
    grid that refines both.
    """
    source, target = move.ends
    if side == SENDS and any(rule.equal and rule.number > 1 for rule in move.rules(SENDS)):
        return _served(move)

    # A rank exchanges data if its coordinates on both grids do; what others have of it comes part by part.
    ranks = source.grid.refine(target.grid)
    at = places(source.grid, ranks), places(target.grid, ranks)
    gives, takes = _active(move, at, SENDS), _active(move, at, RECEIVES)
    itself, elements = gives * takes, gives if side == SENDS else takes  # `itself` is what ranks keep
    dist, several = (target, "replicated") if side == SENDS else (source, "partial")
    for role, p in zip(dist.roles, dist.grid.shape, strict=True):
        elements = elements * (p if role.name == several else 1)
    messages = elements.astype(np.int64)

    for part in move.parts:
        pairs, rows = part.factor.pairs, part.factor.rows
        both = [at[end][g] for end in (SENDS, RECEIVES) for g in part.over[end]]
        mine = dict(enumerate(both[rows[side]], rows[side].start))
        sums, common = pairs.met(mine), pairs.met(dict(enumerate(both)))[0]
        elements, messages, itself = elements * thin(sums[0]), messages * thin(sums[1]), itself * thin(common)
    return Traffic(elements - itself, messages - (itself > 0))


def _active(move: Movement, at: tuple[Sequence[Ints], Sequence[Ints]], side: int) -> Ints:
    """Whether each rank sends, or receives, by its coordinates on that side's grid."""
    active: Ints = np.ones((1,) * move.source.grid.refine(move.target.grid).order, _counter_across(move))
    for rule, along in zip(move.rules(side), at[side], strict=True):
        only, _ = rule.only(side)
        active = active if only is None else active * (along == only)
    return active


def _number_of(dist: Distribution, role: str) -> int:
    """The number of contributions to each element ("partial"), or of its copies ("replicated")."""
    return prod([p for p, has in zip(dist.grid.shape, dist.roles, strict=True) if has.name == role])


def _counter_across(move: Movement) -> np.dtype[Any]:
    """The dtype of elements with the most contributions, or copies, that a rank receives or sends."""
    copies = _number_of(move.source, "partial") * _number_of(move.target, "replicated")
    return counting(prod(move.source.shape) * copies)


def _served(move: Movement) -> Traffic:
    """Elements and messages that each rank sends to others if it is one of several replicas, pair by pair."""
    source, target = move.ends
    number = source.grid.size
    if number > _SERVED:
        raise TooManyPiecesError(
            f"each replica of {source.layout} on grid {source.grid} serves its own ranks of grid {target.grid}, which "
            f"would have to be counted among the pairs of {number} ranks\n"
            "split along the grid modes of the replicas first, or go to the other grid before data is copied"
        )

    # Some rows of the matrix at a time: all of them may be too many for memory.
    totals = np.zeros((2, number), counting(prod(source.shape) * number))
    number_at_once = max(1, _AT_ONCE // number)
    for start in range(0, number, number_at_once):
        senders = np.arange(start, min(number, start + number_at_once))
        rows = _rows(move, senders)
        rows[senders - start, senders] = 0
        totals[:, senders] = rows.sum(axis=1), np.count_nonzero(rows, axis=1)

    ranks = source.grid.refine(target.grid).shape
    return Traffic(totals[0].reshape(ranks), totals[1].astype(np.int64).reshape(ranks))


def _rows(move: Movement, senders: Ints) -> Ints:
    """The rows of the matrix for some senders."""
    source, target = move.ends
    every = np.arange(target.grid.size)
    source_at, target_at = coordinates(senders, source.grid), coordinates(every, target.grid)

    sent: Ints = np.ones((len(senders), target.grid.size), np.int64)
    for rule, sender, receiver in zip(move.rules(SENDS), source_at, coordinates(every, source.grid), strict=True):
        sent *= rule.at(sender[:, None], receiver)

    if move.across:  # these rules say which coordinates receive, from any sender
        for rule, receiver in zip(move.rules(RECEIVES), target_at, strict=True):
            sent *= rule.at(receiver, receiver)
    return sent * move.common(source_at, target_at)
