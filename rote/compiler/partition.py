"""The first part of a certificate: where the elements of a component lie on both sides, for all ranks at once.

What a movement says of a component is a few boxes of elements, in which coordinates and local indices are linear. They
are right if in each box both sides have the same elements in the same order, and if the boxes have every element once.
What lies where is told by `mode_set` alone, at all coordinates; the rest is arithmetic on what is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product, starmap
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..grammar.nodes import Kind
from ..layout.distribution import Distribution, Split, mode_set
from ..layout.indexset import IndexSet
from ..layout.view import to_tensor
from .movement import Group, Listed
from .overlap import Component, Overlap, Reading, Row, Scatter, Side, overlaps, readings

__all__ = ["DOES", "RECEIVES", "SENDS", "Cut", "Ends", "Part", "prove", "rank_at", "same"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Boxes = tuple[Overlap, ...] | Scatter
Elements = tuple[At, Row]  # a box of them: its shape, and the row-major tensor index
Cut = tuple[Any, ...]  # elements of a group, as a movement has them: a run, or lists
Splits = tuple[tuple[Kind, int], ...]

SENDS, RECEIVES, DOES = 0, 1, ("sends", "receives")  # the two sides of a step: places in pairs such as `Ends`

_DIFFERENT = "not the same in the same order on both sides"
_FEW = 128  # boxes of which every two are compared
_SMALL = 1 << 22  # elements that may be looked at one by one where boxes are many


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What was proved of a component, whatever its modes and grid modes are called.

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
        """What lies at some coordinates on one side, by the coordinates on the other one."""
        if (side, own) not in self._rows:
            found: dict[At, list[Cut]] = {}
            for where, cut in _cuts(self.boxes, side, own):
                found.setdefault(where, []).append(cut)
            self._rows[side, own] = tuple((where, tuple(cuts)) for where, cuts in found.items())
        return self._rows[side, own]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component, proved.

    Attributes:
        over: on both sides, the grid modes that split it, in the order of its modes.
        proof: of it.
    """

    over: tuple[At, At]
    proof: Proof

    @property
    def sizes(self) -> Array:
        """The number of elements of each pair of coordinates that have some in common."""
        return self.proof.sizes

    @property
    def at(self) -> tuple[dict[int, Array], dict[int, Array]]:
        """On both sides, per grid mode the coordinates of these pairs."""
        one, other = self.over
        given, taken = self.proof.at[: len(one)], self.proof.at[len(one) :]
        return dict(zip(one, given, strict=True)), dict(zip(other, taken, strict=True))

    def row(self, side: int, own: At) -> Iterator[tuple[tuple[tuple[int, int], ...], tuple[Cut, ...]]]:
        """What lies at some coordinates on one side, by pairs (grid mode, coordinate) of the other one."""
        for where, cuts in self.proof.row(side, own):
            yield tuple(sorted(zip(self.over[1 - side], where, strict=True))), cuts


def prove(ends: Ends, part: Component) -> Part:
    """A component, if its boxes have each of its elements once, and both sides have the same ones in each.

    Raises:
        PlanError: they have not; the text names the ranks and the first element.
    """
    modes = part.before, part.after
    one, other = (tuple(s.grid_mode for m in modes[k] for s in ends[k].splits[m]) for k in (SENDS, RECEIVES))
    try:
        return Part((one, other), _proof(*readings(*ends, part)))
    except _WrongError as error:
        at, element, text = error.args
        ranks = " to ".join(f"rank {rank_at(*each)}" for each in zip(ends, (one, other), at, strict=True))
        raise PlanError(f"from {ranks} go elements, {element} first of modes {part.before}, {text}") from None


class _WrongError(Exception):
    """What is wrong: coordinates on both sides, the index of an element, and a text."""


@lru_cache(maxsize=4096)
def _proof(source: Reading, target: Reading) -> Proof:
    boxes, extents = overlaps(source, target), _extents(source)
    number, splits = (
        prod(extents.values()),
        [[parts for _, each, _ in side for _, parts in each] for side in (source, target)],
    )
    if isinstance(boxes, Scatter):
        sent, taken = (_listed(*each, extents) for each in zip((source, target), boxes, strict=True))
        for wrong in np.flatnonzero(sent != taken)[:1]:
            at = [[int(c[wrong]) for c in side[0]] for side in boxes]
            raise _WrongError(at, _index(int(sent[wrong]), extents), _DIFFERENT)
        _each_once(sent, extents)
        return Proof(boxes, *_pairs(splits, boxes))
    elements = [(box.shape, _same(source, target, box, extents)) for box in boxes]
    if len(boxes) > _FEW and number <= _SMALL:
        _each_once(np.concatenate([*map(_all, elements)]), extents)
    elif sum(prod(box.shape) for box in boxes) != number or not (
        all(map(_distinct, elements)) and all(starmap(_apart, combinations(elements, 2)))
    ):
        raise PlanError(f"{len(boxes)} boxes of {number} elements do not have each of them once")
    return Proof(boxes, *_pairs(splits, boxes))


def _cuts(boxes: Boxes, side: int, own: At) -> Iterator[tuple[At, Cut]]:
    """The elements at some coordinates of one side, with those of the other."""
    if isinstance(boxes, Scatter):
        (at, here), (away, there) = boxes[side], boxes[1 - side]
        mine: Array = np.full(len(here[0]), True)
        for coordinates, c in zip(at, own, strict=True):
            mine &= coordinates == c
        places = np.array(away, np.int64).reshape(len(away), len(mine))
        for where in np.unique(places[:, mine], axis=1).T if mine.any() else ():
            picked = mine & (places == where[:, None]).all(axis=0)
            yield tuple(where.tolist()), tuple(tuple(row[picked] for row in rows) for rows in (here, there))
        return
    for box in boxes:
        near, far = (box.source, box.target)[:: 1 - 2 * side]
        axes = _varied(near.at, box.shape)
        more = [axis for axis in _varied(far.at, box.shape) if axis not in axes]
        left = [axis for axis in range(len(box.shape)) if axis not in (*axes, *more)]
        shape = tuple(box.shape[axis] for axis in left)
        for digits in product(*(range(box.shape[axis]) for axis in axes)):
            if any(_value(row, axes, digits) != c for row, c in zip(near.at, own, strict=True)):
                continue
            for others in product(*(range(box.shape[axis]) for axis in more)):
                fixed, every = (*axes, *more), (*digits, *others)
                cut = tuple(
                    tuple((_value(row, fixed, every), *(row[axis + 1] for axis in left)) for row in rows)
                    for rows in (near.local, far.local)
                )
                yield tuple(_value(row, fixed, every) for row in far.at), (shape, *cut)


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
    one, other = _elements(source, box.shape, box.source, extents), _elements(target, box.shape, box.target, extents)
    if one != other:
        at = [[row[0] for row in side.at] for side in (box.source, box.target)]
        raise _WrongError(at, _index(one[0], extents), _DIFFERENT)
    return one


def _elements(reading: Reading, shape: At, side: Side, extents: dict[int, int]) -> Row:
    """What is at these coordinates and local indices of some view modes, as row-major indices of a component."""
    found, coordinates = [0] * (len(shape) + 1), iter(side.at)
    for (digits, splits, extent), local in zip(reading, side.local, strict=True):
        index = _index_row(splits, extent, shape, [next(coordinates) for _ in splits], local)
        for digit in reversed(digits):
            size, weight = max(digit.size, 1), digit.weight * _stride(extents, digit.mode)
            if _above(index, shape, size) >= size:
                raise PlanError(f"a box of {splits} over {extent} is not linear in its digits")
            found = [n + value % size * weight for n, value in zip(found, index, strict=True)]
            index = tuple(n // size for n in index)
    return tuple(found)


def _above(row: Row, shape: At, size: int) -> int:
    """The most that a number can be within a multiple of a size, by the digits that step below it."""
    return row[0] % size + sum(step % size * (n - 1) for step, n in zip(row[1:], shape, strict=True))


def _index_row(splits: Splits, extent: int, shape: At, at: list[Row], local: Row) -> Row:
    """The index along a view mode of what is at some coordinates and local indices, if it is linear in the digits."""
    named = tuple(Split(k, kind, parts) for k, (kind, parts) in enumerate(splits))
    axes = _varied(at, shape)
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    along, starts = [(local[axis + 1], shape[axis]) for axis in rest], dict[At, int]()
    slopes: dict[int, int] = {}
    for digits in product(*(range(shape[axis]) for axis in axes)):
        first, *where = (_value(row, axes, digits) for row in (local, *at))
        if not all(0 <= c < s.parts for c, s in zip(where, named, strict=True)):
            raise PlanError(f"there are no coordinates {where} along {splits}")
        starts[digits], steps = _image(mode_set(named, extent, tuple(where)), first, along)
        found = dict(zip(rest, steps, strict=True))
        slopes = slopes or found
        if found != slopes:
            raise PlanError(f"a box of {splits} over {extent} is not linear in its local indices")
    begin, *_ = starts.values()
    for k, axis in enumerate(axes):
        slopes = slopes | {axis: starts[(0,) * k + (1,) + (0,) * (len(axes) - k - 1)] - begin}
    index = (begin, *(slopes[axis] for axis in range(len(shape))))
    if len(starts) > 1 and any(_value(index, axes, digits) != start for digits, start in starts.items()):
        raise PlanError(f"a box of {splits} over {extent} is not linear in its coordinates")
    return index


def _value(row: Row, axes: Sequence[int], digits: At) -> int:
    """A number where some digits have these values, and the others are 0."""
    return row[0] + sum(row[axis + 1] * n for axis, n in zip(axes, digits, strict=True))


def _image(held: IndexSet, start: int, along: list[tuple[int, int]]) -> tuple[int, At]:
    """The elements of a set at positions that are linear in some digits, as such a number: its start and its steps.

    Each digit is given as its step and its extent.
    """
    if start < 0 or start + sum(step * (n - 1) for step, n in along) >= len(held):
        raise PlanError(f"positions from {start} on, {along}, are not all in {held}")
    first, width = held.at(start), held.width
    # A whole number of periods further on are the same elements so many periods further on.
    inner = [(step, n) for step, n in along if step % width]
    end = sum(step * (n - 1) for step, n in inner)
    slopes = tuple(held.at(start + step) - first if step % width else step // width * held.period for step, _ in along)
    if held.at(start + end) - first != end:  # else they follow each other
        steep = [held.at(start + step) - first for step, _ in inner]
        for digits in product(*(range(n) for _, n in inner)):
            at = start + sum(step * k for (step, _), k in zip(inner, digits, strict=True))
            if held.at(at) != first + sum(slope * k for slope, k in zip(steep, digits, strict=True)):
                raise PlanError(f"elements of {held} from position {start} on, {along}, are not evenly spaced")
    return first, slopes


def _listed(reading: Reading, side: tuple[tuple[Array, ...], tuple[Array, ...]], extents: dict[int, int]) -> Array:
    """The same as `_elements` of elements one by one."""
    coordinates, elements = iter(side[0]), np.zeros(len(side[1][0]), np.int64)
    for (digits, splits, extent), local in zip(reading, side[1], strict=True):
        named = tuple(Split(k, kind, parts) for k, (kind, parts) in enumerate(splits))
        at, index = [next(coordinates) for _ in splits], np.full(len(local), -1)
        for where in product(*(range(s.parts) for s in named)):
            held, mine = mode_set(named, extent, where).to_array(), local >= 0
            for c, k in zip(at, where, strict=True):
                mine = mine & (c == k)
            mine &= local < len(held)
            index[mine] = held[local[mine]]
        if (index < 0).any():
            raise PlanError(f"local indices or coordinates are outside of {splits} over {extent}")
        for m, added in to_tensor(digits, index).items():
            elements += added * _stride(extents, m)
    return elements


def _each_once(elements: Array, extents: dict[int, int]) -> None:
    """Refuse elements that are not all of a component, each once."""
    times = np.bincount(elements, minlength=prod(extents.values()))
    for wrong in np.flatnonzero(times != 1)[:1]:
        raise PlanError(f"element {_index(int(wrong), extents)} is in {times[wrong]} boxes; each element is in one")


def _distinct(elements: Elements) -> bool:
    """Whether a box has each of its elements once: each step leads further than all smaller ones together."""
    shape, (_, *steps) = elements
    reach = 0
    for step, n in sorted(zip(steps, shape, strict=True)):
        if step <= reach:
            return False
        reach += step * (n - 1)
    return True


def _apart(one: Elements, other: Elements) -> bool:
    """Whether two boxes have no element in common: they are apart, or so are their rests by some step."""
    for modulus in (0, *sorted({*one[1][1:], *other[1][1:]} - {0}, reverse=True)):
        rests = [_rest(each, modulus) for each in (one, other)]
        if all(modulus == 0 or high < modulus for _, high in rests):
            (low, high), (begin, end) = rests
            if high < begin or end < low:
                return True
    if max(prod(shape) for shape, _ in (one, other)) > _SMALL:
        raise PlanError(f"whether the boxes {one} and {other} have elements in common cannot be told")
    return not np.intersect1d(_all(one), _all(other)).size


def _rest(elements: Elements, modulus: int) -> tuple[int, int]:
    """The least and the most of the rests of elements by a modulus (0: of themselves), unless these go beyond it."""
    shape, (start, *steps) = elements
    if modulus:
        start, steps = start % modulus, [step % modulus for step in steps]
    return start, start + sum(step * (n - 1) for step, n in zip(steps, shape, strict=True))


def _all(elements: Elements) -> Array:
    """Elements one by one."""
    shape, (start, *steps) = elements
    found: Array = np.array([start])
    for n, step in zip(shape, steps, strict=True):
        found = (found[:, None] + step * np.arange(n)).reshape(-1)
    return found


def _pairs(splits: list[list[int]], boxes: Boxes) -> tuple[tuple[Array, ...], Array]:
    """The pairs of coordinates that have elements in common, and how many."""
    parts = [p for side in splits for p in side]
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    if isinstance(boxes, Scatter):
        key: Array = np.zeros(len(boxes.source[1][0]), np.int64)
        for p, at in zip(parts, (*boxes.source[0], *boxes.target[0]), strict=True):
            key = key * p + at
        keys, counts = [key], [np.ones_like(key)]
    for box in () if isinstance(boxes, Scatter) else boxes:
        rows = (*box.source.at, *box.target.at)
        axes = _varied(rows, box.shape)
        shape, row = tuple(box.shape[axis] for axis in axes), [0] * (len(axes) + 1)
        for p, at in zip(parts, rows, strict=True):
            row = [n * p + m for n, m in zip(row, (at[0], *(at[axis + 1] for axis in axes)), strict=True)]
        keys.append(_all((shape, tuple(row))))
        counts.append(np.full(len(keys[-1]), prod(box.shape) // prod(shape)))
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    sizes = np.zeros(len(pairs), np.int64)
    np.add.at(sizes, place, np.concatenate(counts))
    return tuple(np.unravel_index(pairs, parts)) if parts else (), sizes


def _varied(rows: Sequence[Row], shape: At) -> list[int]:
    """The digits on which some numbers depend."""
    return [axis for axis in range(len(shape)) if any(row[axis + 1] for row in rows)]


def _extents(reading: Reading) -> dict[int, int]:
    """The extents of the tensor's modes of a component, in order."""
    found: dict[int, int] = {}
    for digit in sorted((digit for digits, _, _ in reading for digit in digits), key=lambda digit: digit.mode):
        found[digit.mode] = found.get(digit.mode, 1) * digit.size
    return found


def _index(element: int, extents: dict[int, int]) -> At:
    """The indices along the tensor's modes of a component."""
    return tuple(element // _stride(extents, m) % max(n, 1) for m, n in extents.items())


def _stride(extents: dict[int, int], mode: int) -> int:
    """Of a tensor's mode, row-major within a component."""
    return prod(max(n, 1) for m, n in extents.items() if m > mode)
