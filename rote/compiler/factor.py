"""Factors: what two layouts have in common along the digits that some of their modes read.

A movement is a product of factors (see movement.py), and a factor knows neither modes of the grid nor ranks: only how
both sides read the digits. So movements that do the same to a mode share its factor, which is one object, with all that
follows from the two readings:

    who has what     `lattices`: the elements, by coordinates and local indices on both sides
    for one rank     `at`: the elements at its coordinates, grouped by the coordinates of the other side
    for all ranks    `pairs`, `along`, `sizes`: how many, by coordinates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..caches import memoized, memoized_arrays
from ..lattice import Lattice
from ..layout.kinds import part_extents
from .along import Along, along_of
from .overlaps import FEW, Intervals, Reading, counting, number_of, overlaps, overlaps_below, splits_of
from .pairs import Pairs, pairs_of
from .peers import RECEIVES, SENDS, PeerRule
from .volumes import over_grid

__all__ = ["Factor", "Group", "Traffic", "factor"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
At = tuple[int, ...]
Places = tuple[int | None, ...]
ByPlace = tuple[dict[Places, list[int]], list[int]]  # numbers of lattices: by coordinates, and at several places
Indexed = tuple[Sequence[Lattice], ByPlace, ByPlace]  # lattices, and their numbers by places on both sides

_LOOKED_AT = 4  # lattices: among so few, none is looked up
_LONG = 256  # coordinates of a grid mode: up to so many, a list of pairs is faster


class Traffic(NamedTuple):
    """Elements and messages from, or to, some peers, in arrays that broadcast over the grid."""

    elements: Ints
    messages: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Elements of one factor at the same coordinates on the other side, in the same order on both sides.

    Attributes:
        coordinates: these coordinates, one for each split of that side.
        lattices: the elements; the rows are their local indices in the sender's block, then in the receiver's.
        own, opposite: the rows of this side, and of the other side.
    """

    coordinates: At
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
        """The local indices of all elements on this side, per view mode of the factor."""
        spread_out = Lattice.listing(self.lattices)
        return tuple([table for _, table in spread_out.rows[self.own]])

    def keeps_offsets(self, strides: Sequence[int], opposite: Sequence[int]) -> bool:
        """Whether every element is at the same offset in both blocks, given their strides along the view modes."""
        for lattice in self.lattices:
            offsets = lattice.offset(strides, self.own), lattice.offset(opposite, self.opposite)
            if not all(map(np.array_equal, *offsets)):
                return False
        return True


class Factor:
    """The digits of a tensor that some modes of both sides read. `factor` makes it.

    Equal readings have one object, which is compared by identity. It keeps what is small; what may be large is in
    caches of few entries, keyed by the factor.

    Attributes:
        sides: how the source and the target read the digits.
        parts: the number of coordinates of each split of the source, then of the target.
        rows: where lattices and `parts` have the coordinates of each side.
        is_same: whether both sides read the digits alike.
        counter: the dtype of numbers of elements.
    """

    def __init__(self, sides: tuple[Reading, Reading]) -> None:
        self.sides: tuple[Reading, Reading] = sides
        before, after = splits_of(sides[SENDS]), splits_of(sides[RECEIVES])
        self.parts: At = (*before, *after)
        self.rows: tuple[slice, slice] = slice(0, len(before)), slice(len(before), len(self.parts))
        self.is_same: bool = sides[SENDS] == sides[RECEIVES]
        self.counter: np.dtype[Any] = counting(number_of(sides[SENDS]))

    # --- who has what ------------------------------------------------------------------------------------------------

    @property
    def lattices(self) -> Sequence[Lattice]:
        """The elements (see `overlaps`).

        Raises:
            TooManyPiecesError: the tiles of the two sides fit each other too badly.
        """
        few = self._few
        return _many(self)[0] if few is None else few

    @cached_property
    def _few(self) -> tuple[Lattice, ...] | None:
        return overlaps_below(*self.sides, FEW)

    @cached_property
    def _index(self) -> Indexed:
        return _indexed(self, self.lattices)

    @memoized(16384)
    def at(self, side: int, here: At, only: Places = ()) -> tuple[Group, ...]:
        """The elements at coordinates `here` of one side, grouped by the coordinates of the other side.

        `only` has the coordinates there of the groups that are wanted, None for any; if it is empty, all are wanted.
        """
        other = self.rows[1 - side]
        only = only or (None,) * (other.stop - other.start)

        # Each side may know which lattices have elements there; the shorter list is looked through.
        lattices = self.lattices
        near: Sequence[int] = range(len(lattices))
        if len(lattices) > _LOOKED_AT:
            near = self._near(side, here)
            if only and None not in only:
                near = min(near, self._near(1 - side, cast("At", only)), key=len)

        places = (*here, *only) if side == SENDS else (*only, *here)
        grouped = dict[At, list[Lattice]]()
        for k in sorted(near):
            for at, lattice in lattices[k].fix(places):
                grouped.setdefault(at[other], []).append(lattice)

        middle = len(self.sides[SENDS])
        local = slice(middle), slice(middle, None)
        groups = [Group(at, tuple(some), local[side], local[1 - side]) for at, some in grouped.items()]
        return tuple(sorted(groups, key=attrgetter("coordinates")))

    def _near(self, side: int, at: At) -> Sequence[int]:
        """The numbers of the lattices that may have elements at some coordinates of one side."""
        lattices, *index = _many(self) if self._few is None else self._index
        if type(lattices) is Intervals:
            return lattices.near(side, at)
        single, several = index[side]
        return [*single.get(at, ()), *several]

    # --- how many ----------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> Pairs:
        """The pairs of coordinates that have elements in common.

        Raises:
            TooManyPiecesError: they make too long a list.
        """
        return _pairs(self)

    @property
    def along(self) -> Along | None:
        """Counts by coordinate, if one long split on each side makes too many pairs for a list (see along.py)."""
        return _along(self)

    def sizes(self, side: int) -> Ints:
        """The number of elements at the coordinates of one side: an axis per split."""
        table: Ints = np.array(1, self.counter)
        for mode in self.sides[side]:
            table = np.asarray(np.multiply.outer(table, part_extents(mode.splits, mode.extent)), self.counter)
        return table

    @memoized_arrays(16384, few=8)
    def volumes(self, side: int, over: tuple[At, At], rules: tuple[PeerRule, ...], order: int) -> Traffic:
        """The elements and messages by coordinates of one side, summed over their peers, on a grid of this order.

        Args:
            over: on both sides, the grid modes that split the factor.
            rules: those of the grid modes that split it on the other side.
        """
        mine, theirs = over[side], over[1 - side]
        if not theirs or (self.is_same and mine == theirs):  # all elements of a rank go, or stay, together
            sizes = self.sizes(side)
            return Traffic(over_grid(sizes, mine, order), over_grid((sizes > 0).astype(np.int64), mine, order))

        long = mine == theirs and len(rules) == 1 and rules[0].number > _LONG
        if long and rules[0].sender is None and rules[0].receiver is None:
            counts = self.along
            if counts is not None:
                return _over_one(self, counts, side, over, rules[0].equal, order)
        return _over_pairs(self, side, over, rules, order)


factor = memoized(16384)(Factor)
"""The factor of two readings: equal ones, of any movement, are one object."""


@memoized(8)  # enough for one step, because each may take a gigabyte
def _many(of: Factor) -> Indexed:
    return _indexed(of, overlaps(*of.sides))


def _indexed(of: Factor, lattices: Sequence[Lattice]) -> Indexed:
    """Some lattices, with what says for each side which of them have elements at some coordinates."""
    if type(lattices) is Intervals:  # they know it themselves
        return lattices, ({}, []), ({}, [])
    return lattices, _by_place(lattices, of.rows[SENDS]), _by_place(lattices, of.rows[RECEIVES])


@memoized_arrays(1024)
def _pairs(of: Factor) -> Pairs:
    return pairs_of(of.lattices, of.parts, of.counter)


@memoized(2)  # the volumes keep what is made of it
def _along(of: Factor) -> Along | None:
    return along_of(*of.sides)


def _by_place(lattices: Sequence[Lattice], side: slice) -> ByPlace:
    """The numbers of the lattices at a single place of one side, by coordinates, and of those at several places."""
    single: dict[Places, list[int]] = {}
    several: list[int] = []
    for k, lattice in enumerate(lattices):
        rows = lattice.rows[side]
        at, *steps = zip(*rows, strict=True) if rows else ((),)
        if lattice.listed or any(map(any, steps)):
            several.append(k)
        else:
            single.setdefault(at, []).append(k)
    return single, several


# --- volumes ---------------------------------------------------------------------------------------------------------


def _over_one(of: Factor, counts: Along, side: int, over: tuple[At, At], equal: bool, order: int) -> Traffic:
    """The volumes of a factor that one grid mode splits on both sides, from counts by coordinate."""
    if equal:
        elements, messages = counts.kept, (counts.kept > 0).astype(np.int64)
    else:
        elements, messages = of.sizes(side), counts.sent if side == SENDS else counts.received
    return Traffic(over_grid(elements, over[side], order), over_grid(messages, over[side], order))


def _over_pairs(of: Factor, side: int, over: tuple[At, At], rules: tuple[PeerRule, ...], order: int) -> Traffic:
    """The volumes of a factor, from pairs of coordinates."""
    mine, theirs = over[side], over[1 - side]
    pairs, here, there = of.pairs, of.rows[side], of.rows[1 - side]
    numbers = dict(zip(mine, pairs.parts[here], strict=True)) | dict(zip(theirs, pairs.parts[there], strict=True))
    rows = zip(range(there.start, there.stop), theirs, rules, strict=True)
    some = [(row, g, rule) for row, g, rule in rows if not rule.everywhere]

    # The counts have an axis for each grid mode on which they depend.
    axes = sorted({*mine, *[g for _, g, _ in some]})
    places, shape = dict[int, Ints](), [1] * len(axes)
    for axis, g in enumerate(axes):
        places[g] = np.arange(numbers[g]).reshape([*shape[:axis], -1, *shape[axis + 1 :]])

    at: dict[int, Any] = {row: places[g] for row, g in enumerate(mine, here.start)}
    active: Any = True
    for row, g, rule in some:
        only, peer = rule.only(side)
        if only is not None:
            active = active & (places[g] == only)
        if rule.equal:
            at[row] = places[g]
            active = active if peer is None else active & (places[g] == peer)
        elif peer is not None:
            at[row] = np.full(shape, peer)
    elements, messages = pairs.met(at)
    return Traffic(over_grid(elements * active, axes, order), over_grid(messages * active, axes, order))
