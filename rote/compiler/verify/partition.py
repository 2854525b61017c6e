"""The first part of a certificate: where the elements of a component lie on both sides, for all ranks at once.

A movement describes a component by a few boxes of elements, in which coordinates and local indices are linear. They are
right if both sides have the same elements in the same order in each box, and if the boxes contain every element once.
`mode_set` alone says which elements lie at which coordinates; the rest is arithmetic on linear numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...errors import PlanError
from ...lattice import Row
from ...layout.distribution import Distribution
from ..movement.components import (
    Component,
    Reading,
    counting,
    extents_of,
    number_of,
    overlaps,
    readings,
    splitting,
)
from ..movement.messages import Group
from .elements import (
    Box,
    Boxes,
    Listed,
    boxes_of,
    elements_at,
    index_of,
    listed,
    solutions,
    spread,
    surplus,
    values,
    varied,
)

if TYPE_CHECKING:
    from .ranges import Ranges  # which only long grids need

__all__ = ["DOES", "RECEIVES", "SENDS", "Cut", "Ends", "ProvedComponent", "prove", "rank_at", "same"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Cut = tuple[Any, ...]  # elements of a group, in the form of a movement: a lattice, or lists

SENDS, RECEIVES, DOES = 0, 1, ("sends", "receives")  # the two sides of a step: places in pairs such as `Ends`

_MANY = 1 << 18  # pairs of coordinates that share elements: more are counted as ranges, where they are ranges
_DIFFERENT = "not the same in the same order on both sides"


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """The proof of a component, independent of the numbers of its modes and grid modes.

    Attributes:
        boxes: its elements.
        parts: the number of coordinates of each split of the source, then of the target.
        pairs: the pairs of coordinates that have elements in common, per split, and the number of these elements; None
            if they are too many to list.
        ranges: the numbers of these pairs, if they are too many to list.
    """

    boxes: Boxes
    parts: tuple[int, ...]
    pairs: tuple[tuple[Array, ...], Array] | None
    ranges: Ranges | None
    _rows: dict[tuple[int, At, At], tuple[tuple[At, tuple[Cut, ...]], ...]] = field(default_factory=dict, init=False)
    _places: dict[int, tuple[dict[At, list[int]], list[int]]] = field(default_factory=dict, init=False)

    def row(self, side: int, own: At, only: At = ()) -> tuple[tuple[At, tuple[Cut, ...]], ...]:
        """The elements at some coordinates on one side, by their coordinates on the other side.

        `only` has the coordinates on the other side that are wanted, -1 for any; if it is empty, all are.
        """
        if (side, own, only) not in self._rows:
            grouped: dict[At, list[Cut]] = {}
            for where, cut in self._cuts(side, own, only):
                grouped.setdefault(where, []).append(cut)
            self._rows[side, own, only] = tuple((where, tuple(cuts)) for where, cuts in grouped.items())
        return self._rows[side, own, only]

    def _cuts(self, side: int, own: At, only: At) -> Iterator[tuple[At, Cut]]:
        """The elements at some coordinates of one side, with their coordinates on the other side."""
        if isinstance(self.boxes, Listed):
            for where, cut in _listed_cuts(self.boxes, side, own):
                if all(c in (-1, at) for at, c in zip(where, only, strict=False)):
                    yield where, cut
            return
        ends = (side, 1 - side) if min(only, default=-1) >= 0 else (side,)
        for k in ends:
            if k not in self._places:
                self._places[k] = _by_place(self.boxes, k)
        single, several = self._places[side]
        near = [*single.get(own, ()), *several]
        if len(ends) > 1:  # either side tells which boxes may have elements
            single, several = self._places[1 - side]
            near = min(near, [*single.get(only, ()), *several], key=len)
        for k in sorted(near):
            yield from _box_cuts(self.boxes[k], side, own, only)


@dataclass(frozen=True, slots=True, eq=False)
class ProvedComponent:
    """A component with its proof.

    Attributes:
        over: on both sides, the grid modes that split it, in the order of its modes.
        at: on both sides, per grid mode, the coordinates of every pair that has elements in common.
        sizes: the number of these elements, per pair.
        ranges: if one grid mode splits it on both sides and pairs are too many to list, their numbers in place of `at`
            and `sizes`, which are empty then.
        proof: the proof.
    """

    over: tuple[At, At]
    at: tuple[dict[int, Array], dict[int, Array]]
    sizes: Array
    ranges: Ranges | None
    proof: Proof

    def row(self, side: int, own: At) -> Iterator[tuple[tuple[tuple[int, int], ...], tuple[Cut, ...]]]:
        """The elements at some coordinates on one side, by pairs (grid mode, coordinate) of the other side."""
        for where, cuts in self.proof.row(side, own):
            yield tuple(sorted(zip(self.over[1 - side], where, strict=True))), cuts


def prove(ends: Ends, part: Component) -> ProvedComponent:
    """Prove that the boxes of a component contain each element once, and that both sides have the same ones in each.

    Raises:
        PlanError: the proof fails; the text names the ranks and the first element.
    """
    given, taken = splitting(ends[SENDS], part.before), splitting(ends[RECEIVES], part.after)
    try:
        sides = readings(*ends, part)
        proof = _proof(*sides)
        if proof.ranges is not None and given == taken:
            return ProvedComponent((given, taken), ({}, {}), np.zeros(0, np.int64), proof.ranges, proof)
        pairs, sizes = proof.pairs or _pairs(proof.parts, proof.boxes, counting(number_of(sides[0])))
        at = dict(zip(given, pairs, strict=False)), dict(zip(taken, pairs[len(given) :], strict=True))
        return ProvedComponent((given, taken), at, sizes, None, proof)
    except _WrongError as error:
        at, element, text = error.args
        ranks = " to ".join(f"rank {rank_at(*each)}" for each in zip(ends, (given, taken), at, strict=True))
        raise PlanError(f"from {ranks} go elements, {element} first of modes {part.before}, {text}") from None


class _WrongError(Exception):
    """A fault, with coordinates on both sides, the index of an element, and a text."""


@memoized(4096)
def _proof(source: Reading, target: Reading) -> Proof:
    boxes, extents = boxes_of(source, target, overlaps(source, target)), extents_of(source)
    number = prod(extents.values())
    parts = tuple([p for _, splits, _ in (*source, *target) for _, p in splits])
    if isinstance(boxes, Listed):
        sent, taken = listed(source, boxes.source, extents), listed(target, boxes.target, extents)
        different = np.flatnonzero(sent != taken)
        if len(different):
            k = different[0]
            sender, receiver = [int(c[k]) for c in boxes.source[0]], [int(c[k]) for c in boxes.target[0]]
            raise _WrongError((sender, receiver), index_of(int(sent[k]), extents), _DIFFERENT)
        times = np.bincount(sent, minlength=number)
        wrong = {int(k): int(times[k]) - 1 for k in np.flatnonzero(times != 1)}
    else:
        wrong = surplus([(box.shape, _same(source, target, box, extents)) for box in boxes], number)
    if wrong:
        first = min(wrong)
        raise PlanError(f"element {index_of(first, extents)} is in {1 + wrong[first]} boxes; each element is in one")
    ranged = _ranges(source, target, boxes) if max(parts, default=0) ** 2 > _MANY else None
    return Proof(boxes, parts, _pairs(parts, boxes, counting(number)) if ranged is None else None, ranged)


def _ranges(source: Reading, target: Reading, boxes: Boxes) -> Ranges | None:
    """The pairs of coordinates as ranges, if there is one split of as many parts on each side and they are many."""
    before, after = ([parts for _, splits, _ in side for _, parts in splits] for side in (source, target))
    if isinstance(boxes, Listed) or len(before) != 1 or before != after:
        return None
    from .ranges import ranges

    number = 0
    for box in boxes:
        number += prod([box.shape[axis] for axis in varied((*box.source.at, *box.target.at))])
    return ranges(boxes, before[0]) if number > _MANY else None


def _by_place(boxes: tuple[Box, ...], side: int) -> tuple[dict[At, list[int]], list[int]]:
    """The numbers of the boxes at a single coordinate on one side, by coordinate, and of those at several."""
    single: dict[At, list[int]] = {}
    several: list[int] = []
    for k, box in enumerate(boxes):
        rows = (box.source, box.target)[side].at
        if varied(rows):
            several.append(k)
        else:
            single.setdefault(values(rows, (), ()), []).append(k)
    return single, several


def _listed_cuts(scatter: Listed, side: int, own: At) -> Iterator[tuple[At, Cut]]:
    (at, local), (away, remote) = scatter[side], scatter[1 - side]
    mine: Array = np.full(len(local[0]), True)
    for coordinates, c in zip(at, own, strict=True):
        mine &= coordinates == c
    if not mine.any():
        return
    places = np.array(away, np.int64).reshape(len(away), len(mine))
    for where in np.unique(places[:, mine], axis=1).T:
        picked = mine & (places == where[:, None]).all(axis=0)
        near, far = tuple([row[picked] for row in local]), tuple([row[picked] for row in remote])
        yield tuple(where.tolist()), (near, far)


def _box_cuts(box: Box, side: int, own: At, only: At) -> Iterator[tuple[At, Cut]]:
    near, far = (box.source, box.target) if side == SENDS else (box.target, box.source)
    rows, wanted = near.at, own
    for row, c in zip(far.at, only, strict=False):
        if c >= 0:
            rows, wanted = (*rows, row), (*wanted, c)
    axes = varied(rows)
    more = [axis for axis in varied(far.at) if axis not in axes]
    fixed = [*axes, *more]
    left = [axis for axis in range(len(box.shape)) if axis not in fixed]
    shape = tuple([box.shape[axis] for axis in left])
    for digits in solutions(box.shape, rows, wanted):
        for others in product(*[range(box.shape[axis]) for axis in more]):
            every = (*digits, *others)
            cut = shape, _within(near.local, fixed, every, left), _within(far.local, fixed, every, left)
            yield values(far.at, fixed, every), cut


def _within(rows: tuple[Row, ...], fixed: list[int], digits: At, left: list[int]) -> tuple[Row, ...]:
    """Linear numbers in the digits `left`, with the values of the fixed digits put in."""
    narrowed = []
    for row, start in zip(rows, values(rows, fixed, digits), strict=True):
        narrowed.append((start, *[row[axis + 1] for axis in left]))
    return tuple(narrowed)


def same(group: Group, cuts: tuple[Cut, ...]) -> bool:
    """Whether a group of a message has the proved elements, in the same order."""
    for lattice, cut in zip_longest(group.lattices, cuts):
        if lattice is None or cut is None:
            return False
        rows = lattice.rows[group.own], lattice.rows[group.opposite]
        if not isinstance(lattice.rows[-1][-1], np.ndarray):
            if (lattice.shape, *rows) != cut:
                return False
            continue
        found, proved = ([start + table for start, table in side] for side in rows), cut[-2:]
        for tables, right in zip(found, proved, strict=True):
            if len(tables) != len(right) or not all(map(np.array_equal, tables, right)):
                return False
    return True


def rank_at(dist: Distribution, over: At, at: Sequence[int]) -> int:
    """The rank at these coordinates along some grid modes, and at the root or at 0 along the others."""
    where = dict(dist.layout.rooted) | dict(zip(over, at, strict=True))
    return dist.grid.rank([int(where.get(g, 0)) for g in range(dist.grid.order)])


def _same(source: Reading, target: Reading, box: Box, extents: dict[int, int]) -> Row:
    """The elements of a box, as row-major indices, if they are the same on both sides."""
    before = elements_at(source, box.shape, box.source, extents)
    if (source, box.source) != (target, box.target) and elements_at(target, box.shape, box.target, extents) != before:
        sender, receiver = [row[0] for row in box.source.at], [row[0] for row in box.target.at]
        raise _WrongError((sender, receiver), index_of(before[0], extents), _DIFFERENT)
    return before


def _pairs(parts: tuple[int, ...], boxes: Boxes, counter: np.dtype[Any]) -> tuple[tuple[Array, ...], Array]:
    """The pairs of coordinates that have elements in common, and the number of elements; `parts` are the extents."""
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, counter)]
    if isinstance(boxes, Listed):
        key: Array = np.zeros(len(boxes.source[1][0]), np.int64)
        for p, coordinates in zip(parts, (*boxes.source[0], *boxes.target[0]), strict=True):
            key = key * p + coordinates
        keys, counts = [key], [np.ones_like(key)]
        boxes = ()
    for box in boxes:
        rows = (*box.source.at, *box.target.at)
        axes = varied(rows)
        shape = tuple([box.shape[axis] for axis in axes])
        start, steps = 0, [0] * len(axes)
        for p, row in zip(parts, rows, strict=True):
            start = start * p + row[0]
            steps = [step * p + row[axis + 1] for step, axis in zip(steps, axes, strict=True)]
        keys.append(spread((shape, (start, *steps))))
        counts.append(np.full(len(keys[-1]), prod(box.shape) // prod(shape), counter))
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    sizes = np.zeros(len(pairs), counter)
    np.add.at(sizes, place, np.concatenate(counts))
    at: tuple[Array, ...] = tuple(np.unravel_index(pairs, parts)) if parts else ()
    return at, sizes
