"""The first part of a certificate: where the elements of a component lie on both sides, for all ranks at once.

What a movement says of a component is a few boxes of elements, in which coordinates and local indices are linear. They
are right if in each box both sides have the same elements in the same order, and if the boxes have every element once.
What lies where is told by `mode_set` alone, at all coordinates; the rest is arithmetic on what is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product, starmap
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...errors import PlanError
from ...layout.distribution import Distribution
from ..components import Component, Reading, readings
from ..groups import Group, Listed
from ..overlap import Overlap, Row, Scatter, overlaps
from .elements import apart, distinct, each_once, elements_at, extents_of, index_of, listed, spread, value, varied

__all__ = ["DOES", "RECEIVES", "SENDS", "Cut", "Ends", "ProvedComponent", "prove", "rank_at", "same"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Boxes = tuple[Overlap, ...] | Scatter
Cut = tuple[Any, ...]  # elements of a group, as a movement has them: a run, or lists

SENDS, RECEIVES, DOES = 0, 1, ("sends", "receives")  # the two sides of a step: places in pairs such as `Ends`

_DIFFERENT = "not the same in the same order on both sides"
_FEW = 128  # boxes of which every two are compared
_SMALL = 1 << 22  # elements that may be looked at one by one where boxes are many


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """The proof of a component, whatever its modes and grid modes are called.

    Attributes:
        boxes: its elements.
        at: per split of the source, then of the target, the coordinate of every pair of coordinates that have elements
            in common; `sizes` is the number of these.
    """

    boxes: Boxes
    at: tuple[Array, ...]
    sizes: Array
    _rows: dict[tuple[int, At], tuple[tuple[At, tuple[Cut, ...]], ...]] = field(default_factory=dict, init=False)

    def row(self, side: int, own: At) -> tuple[tuple[At, tuple[Cut, ...]], ...]:
        """The elements at some coordinates on one side, by the coordinates on the other one."""
        if (side, own) not in self._rows:
            grouped: dict[At, list[Cut]] = {}
            for where, cut in _cuts(self.boxes, side, own):
                grouped.setdefault(where, []).append(cut)
            self._rows[side, own] = tuple((where, tuple(cuts)) for where, cuts in grouped.items())
        return self._rows[side, own]


@dataclass(frozen=True, slots=True, eq=False)
class ProvedComponent:
    """A component, proved.

    Attributes:
        over: on both sides, the grid modes that split it, in the order of its modes.
        at: on both sides, per grid mode the coordinates of every pair that has elements in common.
        sizes: the number of these.
        proof: of it.
    """

    over: tuple[At, At]
    at: tuple[dict[int, Array], dict[int, Array]]
    sizes: Array
    proof: Proof

    def row(self, side: int, own: At) -> Iterator[tuple[tuple[tuple[int, int], ...], tuple[Cut, ...]]]:
        """The elements at some coordinates on one side, by pairs (grid mode, coordinate) of the other one."""
        for where, cuts in self.proof.row(side, own):
            yield tuple(sorted(zip(self.over[1 - side], where, strict=True))), cuts


def prove(ends: Ends, part: Component) -> ProvedComponent:
    """A component, if its boxes have each of its elements once, and both sides have the same ones in each.

    Raises:
        PlanError: they have not; the text names the ranks and the first element.
    """
    given = tuple([s.grid_mode for m in part.before for s in ends[SENDS].splits[m]])
    taken = tuple([s.grid_mode for m in part.after for s in ends[RECEIVES].splits[m]])
    try:
        proof = _proof(*readings(*ends, part))
        at = dict(zip(given, proof.at, strict=False)), dict(zip(taken, proof.at[len(given) :], strict=True))
        return ProvedComponent((given, taken), at, proof.sizes, proof)
    except _WrongError as error:
        at, element, text = error.args
        ranks = " to ".join(f"rank {rank_at(*each)}" for each in zip(ends, (given, taken), at, strict=True))
        raise PlanError(f"from {ranks} go elements, {element} first of modes {part.before}, {text}") from None


class _WrongError(Exception):
    """A fault: coordinates on both sides, the index of an element, and a text."""


@memoized(4096)
def _proof(source: Reading, target: Reading) -> Proof:
    boxes, extents = overlaps(source, target), extents_of(source)
    number = prod(extents.values())
    splits = [[parts for _, each, _ in side for _, parts in each] for side in (source, target)]
    if isinstance(boxes, Scatter):
        sent, taken = (listed(*each, extents) for each in zip((source, target), boxes, strict=True))
        for wrong in np.flatnonzero(sent != taken)[:1]:
            at = [[int(c[wrong]) for c in side[0]] for side in boxes]
            raise _WrongError(at, index_of(int(sent[wrong]), extents), _DIFFERENT)
        each_once(sent, extents)
        return Proof(boxes, *_pairs(splits, boxes))
    proved = [(box.shape, _same(source, target, box, extents)) for box in boxes]
    if len(boxes) > _FEW and number <= _SMALL:
        each_once(np.concatenate([*map(spread, proved)]), extents)
    elif sum(prod(box.shape) for box in boxes) != number or not (
        all(map(distinct, proved)) and all(starmap(apart, combinations(proved, 2)))
    ):
        raise PlanError(f"{len(boxes)} boxes of {number} elements do not have each of them once")
    return Proof(boxes, *_pairs(splits, boxes))


def _cuts(boxes: Boxes, side: int, own: At) -> Iterator[tuple[At, Cut]]:
    """The elements at some coordinates of one side, with those of the other."""
    if isinstance(boxes, Scatter):
        (at, local), (away, remote) = boxes[side], boxes[1 - side]
        mine: Array = np.full(len(local[0]), True)
        for coordinates, c in zip(at, own, strict=True):
            mine &= coordinates == c
        places = np.array(away, np.int64).reshape(len(away), len(mine))
        for where in np.unique(places[:, mine], axis=1).T if mine.any() else ():
            picked = mine & (places == where[:, None]).all(axis=0)
            yield (
                tuple(where.tolist()),
                tuple(tuple(row[picked] for row in rows) for rows in (local, remote)),
            )
        return
    for box in boxes:
        near, far = (box.source, box.target)[:: 1 - 2 * side]
        axes = varied(near.at)
        more = [axis for axis in varied(far.at) if axis not in axes]
        left = [axis for axis in range(len(box.shape)) if axis not in (*axes, *more)]
        shape = tuple([box.shape[axis] for axis in left])
        fixed = [*axes, *more]
        steps = {row: [row[axis + 1] for axis in left] for row in (*near.local, *far.local)}
        for digits in product(*[range(box.shape[axis]) for axis in axes]):
            if tuple([value(row, axes, digits) for row in near.at]) != own:
                continue
            for others in product(*[range(box.shape[axis]) for axis in more]):
                every = (*digits, *others)
                rows = [tuple([(value(row, fixed, every), *steps[row]) for row in side.local]) for side in (near, far)]
                yield tuple([value(row, fixed, every) for row in far.at]), (shape, *rows)


def same(group: Group, cuts: tuple[Cut, ...]) -> bool:
    """Whether a group of a message has the elements that were proved, in their order."""
    if not isinstance(group.elements, Listed):
        return group.elements == cuts
    if len(cuts) != 1 or len(cuts[0]) != len(group.elements):
        return False
    rows, proved = ([row for side in sides for row in side] for sides in (group.elements, cuts[0]))
    return len(rows) == len(proved) and all(map(np.array_equal, rows, proved))


def rank_at(dist: Distribution, over: At, at: Sequence[int]) -> int:
    """The rank at coordinates along some grid modes, at the root or at 0 along the others."""
    where = dict(dist.layout.rooted) | dict(zip(over, at, strict=True))
    return dist.grid.rank([int(where.get(g, 0)) for g in range(dist.grid.order)])


def _same(source: Reading, target: Reading, box: Overlap, extents: dict[int, int]) -> Row:
    """The elements of a box, as row-major indices, if they are the same ones on both sides."""
    before = elements_at(source, box.shape, box.source, extents)
    if (source, box.source) != (target, box.target) and elements_at(target, box.shape, box.target, extents) != before:
        at = [[row[0] for row in side.at] for side in (box.source, box.target)]
        raise _WrongError(at, index_of(before[0], extents), _DIFFERENT)
    return before


def _pairs(splits: list[list[int]], boxes: Boxes) -> tuple[tuple[Array, ...], Array]:
    """The pairs of coordinates that have elements in common, and how many."""
    parts = [p for side in splits for p in side]
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    if isinstance(boxes, Scatter):
        key: Array = np.zeros(len(boxes.source[1][0]), np.int64)
        for p, coordinates in zip(parts, (*boxes.source[0], *boxes.target[0]), strict=True):
            key = key * p + coordinates
        keys, counts = [key], [np.ones_like(key)]
    for box in () if isinstance(boxes, Scatter) else boxes:
        rows = (*box.source.at, *box.target.at)
        axes = varied(rows)
        shape, row = tuple(box.shape[axis] for axis in axes), [0] * (len(axes) + 1)
        for p, coordinate in zip(parts, rows, strict=True):
            along = coordinate[0], *(coordinate[axis + 1] for axis in axes)
            row = [n * p + m for n, m in zip(row, along, strict=True)]
        keys.append(spread((shape, tuple(row))))
        counts.append(np.full(len(keys[-1]), prod(box.shape) // prod(shape)))
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    sizes = np.zeros(len(pairs), np.int64)
    np.add.at(sizes, place, np.concatenate(counts))
    at: tuple[Array, ...] = tuple(np.unravel_index(pairs, parts)) if parts else ()
    return at, sizes
