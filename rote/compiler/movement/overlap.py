"""The overlaps of a component under two distributions, by arithmetic on digits.

An index is a number with digits, and a layout assigns its digits to coordinates and local indices. So the elements of
a component form a few boxes of digits. In each box the coordinates and local indices of both sides are linear:
`start + i0*step0 + i1*step1 + …`. The number of boxes depends on how the tiles and extents of the two sides fit each
other, not on the number of elements or ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...errors import PlanError
from ...grammar.nodes import Kind
from ...layout.kinds import Stretch, extent, stretches
from ...layout.view import Digit
from .components import Reading, Row, extents_of, one_by_one

__all__ = ["Overlap", "Scatter", "Side", "TooManyPiecesError", "boxes", "fewer", "joined", "overlaps"]

Ints = npt.NDArray[np.int64]
Shape = tuple[int, ...]
_FEW = 64  # up to this number, boxes are used whatever the number of elements
_QUICK = 1 << 13  # boxes, which take a third of a second
_WORTH = 512  # elements that take as long one by one as one box
_MOST = 1 << 19  # boxes, which take about a gigabyte


class TooManyPiecesError(PlanError):
    """Tiles that make more pieces than memory should hold."""


class Side(NamedTuple):
    """The places of the elements of an overlap on one side.

    Attributes:
        at: the coordinate along each split of the component's view modes, one mode after the other.
        local: the local index along each of these view modes.
    """

    at: tuple[Row, ...]
    local: tuple[Row, ...]


class Overlap(NamedTuple):
    """A box of elements, one for each combination of digits below `shape`, in ascending order of the tensor.

    Each digit on which a coordinate depends has a larger step than all later ones can add up to.
    """

    shape: Shape
    source: Side
    target: Side


class Scatter(NamedTuple):
    """Elements one by one, in ascending order of the tensor: used if tiles do not fit and boxes would be too many.

    Attributes:
        source, target: the fields of a `Side`, with an array of values in place of each linear number.
    """

    source: tuple[tuple[Ints, ...], tuple[Ints, ...]]
    target: tuple[tuple[Ints, ...], tuple[Ints, ...]]


class _Box(NamedTuple):
    """A box of digits, and numbers that are linear in them. No step is negative."""

    shape: Shape
    rows: tuple[Row, ...]


@memoized(8)  # enough for one step: results may be large, and `boxes` keeps the small ones
def overlaps(source: Reading, target: Reading) -> tuple[Overlap, ...] | Scatter:
    """The elements of a component under two distributions, each in one overlap; one by one if overlaps are many.

    >>> from rote.layout.layout import parse
    >>> from .components import Component, readings
    >>> ends = (parse(text).on(2**40, 4) for text in ("[(0)]", "block[(0)]"))
    >>> overlaps(*readings(*ends, Component((0,), (0,))))
    (Overlap(shape=(4, 68719476736, 4), source=Side(at=((0, 0, 0, 1),), local=((0, 68719476736, 1, 0),)), \
target=Side(at=((0, 1, 0, 0),), local=((0, 0, 4, 1),))),)
    """
    fitting = boxes(source, target)
    if fitting is None:
        extents = extents_of(source)
        worth = _FEW + prod(extents.values()) // _WORTH
        fitting = _boxes(source, target, min(worth, _MOST))
        if fitting is None and worth > _MOST:
            raise TooManyPiecesError(
                f"the tiles of the two layouts fit each other so badly that they make more than {_MOST} pieces\n"
                "write tiles or extents that divide each other, or a layout between the two, or use fewer ranks"
            )
        if fitting is None:
            return Scatter(one_by_one(source, extents), one_by_one(target, extents))
    return fitting


@memoized(4096)
def boxes(source: Reading, target: Reading) -> tuple[Overlap, ...] | None:
    """The overlaps of a component; None if they are many."""
    return _boxes(source, target, _FEW)


@memoized(16)
def fewer(source: Reading, target: Reading) -> tuple[Overlap, ...] | None:
    """The overlaps of a component that many ranks may share; None if they are too many to be counted quickly."""
    return _boxes(source, target, _QUICK)


def _boxes(source: Reading, target: Reading, most: int) -> tuple[Overlap, ...] | None:
    extents = extents_of(source)
    if 0 in extents.values():
        return ()
    sides = (source,) if source == target else (source, target)
    places = {mode: n for n, mode in enumerate(extents)}
    indices = np.eye(len(extents), len(extents) + 1, 1, np.int64).tolist()  # the digits are those of the tensor's modes
    pieces: Iterable[_Box] = (_Box(tuple(extents.values()), tuple(map(tuple, indices))),)
    for digits, splits, n in chain(*sides):
        read = chain.from_iterable(_read(box, digits, places) for box in pieces)
        pieces = [*islice(chain.from_iterable(_deal(box, splits, n) for box in read), most + 1)]
        if len(pieces) > most:
            return None
    return tuple([_overlap(box, len(places), sides) for box in pieces])


def _read(box: _Box, digits: tuple[Digit, ...], places: dict[int, int]) -> list[_Box]:
    """A box with one more number: the index along a view mode that reads these digits."""
    boxes = [_Box(box.shape, (*box.rows, (0,) * (len(box.shape) + 1)))]
    for digit in digits:
        boxes = [more for box in boxes for more in _read_digit(box, digit, places[digit.mode])]
    return boxes


def _read_digit(box: _Box, digit: Digit, place: int) -> Iterator[_Box]:
    """A box, cut so that a digit of the tensor is linear in the box's digits, and appended to its last number."""
    modulus = digit.weight * digit.size
    for whole in _fitted(box, place, modulus):
        for fit in _fitted(whole, place, digit.weight):
            *rows, last = fit.rows
            yield _Box(fit.shape, (*rows, _next(last, digit.size, fit.rows[place], digit.weight, modulus)))


def _next(index: Row, size: int, row: Row, weight: int, modulus: int) -> Row:
    """An index with one more digit, of this size: `row % modulus // weight`."""
    return tuple([n * size + d for n, d in zip(index, _digit(row, weight, modulus), strict=True)])


def _deal(box: _Box, splits: tuple[tuple[Kind, int], ...], n: int) -> Iterator[_Box]:
    """A box whose last number, an index below n, is replaced by the coordinates of these splits and the local index."""
    if not splits:
        yield box
        return
    (kind, parts), *inner = splits
    for stretch in stretches(kind, parts, n):
        for part in _between(box, stretch.start, stretch.stop):
            for dealt in _turns(part, stretch, parts):
                if not inner:
                    yield dealt
                    continue
                by_extent = _by_extent(dealt, kind, parts, n) if _uneven(inner) else [(dealt, n)]
                for held, left in by_extent:
                    yield from _deal(held, tuple(inner), left)


def _turns(box: _Box, stretch: Stretch, parts: int) -> Iterator[_Box]:
    """A box within a stretch, with the coordinate and the local index there in place of its last number."""
    *rows, (begin, *steps) = box.rows
    shifted = _Box(box.shape, (*rows, (begin - stretch.start, *steps)))
    tile, turn = stretch.tile, stretch.tile * stretch.parts
    for whole in _fitted(shifted, -1, turn):
        for fit in _fitted(whole, -1, tile):
            *rows, index = fit.rows
            first, *more = _digit(index, tile, turn)
            local = tuple([n // turn * tile + n % turn % tile for n in index])
            dealt = _Box(fit.shape, (*rows, (first + stretch.first, *more), local))
            below, above = _cut(dealt, -2, parts)
            yield from below
            for behind in above:  # coordinates wrap around: the first follows the last
                *rows, (first, *more), local = behind.rows
                yield _Box(behind.shape, (*rows, (first - parts, *more), local))


def _digit(row: Row, weight: int, modulus: int) -> Row:
    """`row % modulus // weight` of a linear number that was cut to fit both, so that it is linear as well."""
    return tuple([n % modulus // weight for n in row])


def _uneven(splits: list[tuple[Kind, int]]) -> bool:
    """Whether the coordinates of an index under some splits depend on the extent of the mode."""
    return any(kind.name != "cyclic" and len(kind.sizes) != 1 for kind, _ in splits)


def _by_extent(box: _Box, kind: Kind, parts: int, n: int) -> Iterator[tuple[_Box, int]]:
    """A box that was split last, cut at each coordinate where the remaining extent changes."""
    left = extent(kind, parts, n, np.arange(parts))
    edges = [0, *(np.flatnonzero(np.diff(left)) + 1).tolist(), parts]
    for start, stop in pairwise(edges):
        for part in _between(box, start, stop, -2):
            yield part, int(left[start])


def _between(box: _Box, start: int, stop: int, place: int = -1) -> Iterator[_Box]:
    """The elements of a box whose number at a place is at least `start` and below `stop`."""
    for part in _cut(box, place, start)[1]:
        yield from _cut(part, place, stop)[0]


def _cut(box: _Box, place: int, at: int) -> tuple[list[_Box], list[_Box]]:
    """The elements of a box whose number at a place is below `at`, and the others."""
    start, *steps = box.rows[place]
    most = 0
    for step, n in zip(steps, box.shape, strict=True):
        most += step * (n - 1)
    if start + most < at:
        return [box], []
    if start >= at:
        return [], [box]
    step, axis = max((step, axis) for axis, step in enumerate(steps) if box.shape[axis] > 1)
    n = box.shape[axis]
    under = max(0, -(-(at - start - most) // step) + n - 1)  # below this digit, all elements are below `at`
    over = min(n, -(-(at - start) // step))  # from this digit on, none is
    below = [_slice(box, axis, 0, under)] if under else []
    above = [_slice(box, axis, over, n)] if over < n else []
    for k in range(under, over):
        low, high = _cut(_slice(box, axis, k, k + 1), place, at)
        below, above = below + low, high + above
    return below, above


def _fitted(box: _Box, place: int, divisor: int) -> Iterator[_Box]:
    """The parts of a box in which the number at a place can be divided digit by digit."""
    start, *steps = box.rows[place]
    rest = start % divisor
    over = rest - divisor
    for step, n in zip(steps, box.shape, strict=True):
        if step % divisor:
            over += step * (n - 1)
    if over < 0:
        yield box
        return
    step, axis = max((step, axis) for axis, step in enumerate(steps) if step % divisor and box.shape[axis] > 1)
    n, period = box.shape[axis], divisor // gcd(step, divisor)
    others = over + divisor - rest - step * (n - 1)
    edges, head = [0], -rest % divisor // step  # steps until a multiple is reached
    if not others and 0 < head < n and (rest + head * step) % divisor == 0:
        edges.append(head)
    elif n > period:
        whole = n // period * period
        yield from _fitted(_split(box, axis, whole, period), place, divisor)
        edges = [whole]
    else:
        while edges[-1] < n:
            begin = (rest + edges[-1] * step) % divisor
            edges.append(edges[-1] + max(1, (divisor - 1 - begin - others) // step + 1))  # stay below the next multiple
        edges.pop()
    for low, high in pairwise(dict.fromkeys([*edges, n])):
        yield from _fitted(_slice(box, axis, low, high), place, divisor)


def _slice(box: _Box, axis: int, start: int, stop: int) -> _Box:
    """The part of a box with a range of one digit."""
    n = stop - start
    if n == box.shape[axis]:
        return box
    at = axis + 1
    if n == 1:
        rows = tuple([(row[0] + start * row[at], *row[1:at], *row[at + 1 :]) for row in box.rows])
        return _Box((*box.shape[:axis], *box.shape[at:]), rows)
    rows = tuple([(row[0] + start * row[at], *row[1:]) for row in box.rows])
    return _Box((*box.shape[:axis], n, *box.shape[at:]), rows)


def _split(box: _Box, axis: int, n: int, period: int) -> _Box:
    """The part of a box with the first n values of one digit, read as two digits, the second below `period`."""
    at = axis + 1
    shape = (*box.shape[:axis], n // period, period, *box.shape[at:])
    return _Box(shape, tuple([(*row[:at], row[at] * period, *row[at:]) for row in box.rows]))


def _overlap(box: _Box, place: int, sides: tuple[Reading, ...]) -> Overlap:
    """The overlap of a box, from its numbers from `place` on, with as few digits as its elements allow."""
    shape, rows = joined(box.shape, box.rows)
    lies = []
    for side in sides:
        at: list[Row] = []
        local: list[Row] = []
        for _, splits, _ in side:
            at += rows[place : place + len(splits)]
            place += len(splits) + 1
            local.append(rows[place - 1])
        lies.append(Side(tuple(at), tuple(local)))
    return Overlap(shape, lies[0], lies[-1])


def joined(shape: Shape, rows: tuple[Row, ...]) -> tuple[Shape, tuple[Row, ...]]:
    """Join adjacent digits that act as one in all linear numbers, and drop digits with only one value."""
    for axis in reversed(range(len(shape))):
        at, n = axis + 1, shape[axis]
        if n == 1:
            shape = (*shape[:axis], *shape[at:])
            rows = tuple([(*row[:at], *row[at + 1 :]) for row in rows])
        elif at < len(shape) and all(row[at] == row[at + 1] * shape[at] for row in rows):
            shape = (*shape[:axis], n * shape[at], *shape[at + 1 :])
            rows = tuple([(*row[:at], *row[at + 1 :]) for row in rows])
    return shape, rows
