"""Parts of regions: the elements in some ranges of a message, as a message of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import prod

from ...layout.grid import row_major
from ...layout.indexset import Strided
from .regions import Region
from .strided import IndexedCopy, Piece, StridedCopy
from .views import Along, ArrayView, Shape, ViewPair

__all__ = ["long_runs", "part_of", "reach"]

_LONG = 1 << 14  # bytes from which on MPI copies a run as fast as a whole message
_FEW = 1024  # the most runs that the system copies in one call

Ranges = Mapping[int, tuple[int, int]]
"""The start and stop of a range, by mode of a message."""


def part_of(region: Region, ranges: Ranges, packs: bool) -> Region:
    """The part of a message in ranges of some of its modes, with all of the other modes.

    Args:
        region: from a block to the message if it `packs`, else from the message to a block.
    """
    extents, pieces = list(region.shape), list[Piece]()
    for mode, (start, stop) in ranges.items():
        extents[mode] = stop - start
    shape, side = tuple(extents), int(packs)
    if prod(shape):
        for piece in region.pieces:
            pieces += _cut(piece, ranges, shape, side)
    return replace(region, shape=shape, pieces=tuple(pieces))


def reach(region: Region, mode: int, packs: bool) -> tuple[int, int]:
    """The first index along a mode of its block at which a region has elements, and one past the last."""
    side = 0 if packs else 1
    ends = [_reach(piece, mode, side) for piece in region.pieces]
    return min(low for low, _ in ends), max(high for _, high in ends) + 1


def long_runs(region: Region, itemsize: int, packs: bool) -> Strided | None:
    """The offsets in a block, in bytes, of the elements of a message in its order; None if its runs are short or many.

    Measured on 2 ranks of one node, 64 KiB to 64 MiB: MPICH takes 0.5 to 0.8 of the time of packing and sending for
    runs of 16 KiB and more, and up to 9 times as long for shorter ones, or more than 1024 of them.

    Args:
        region: from a block to the message if it `packs`, else from the message to a block.
    """
    piece = region.pieces[0] if len(region.pieces) == 1 else None
    if not isinstance(piece, StridedCopy):
        return None
    lies = piece.views.source.lies(piece.strides[0]), piece.views.target.lies(piece.strides[1])
    (start, steps), (_, message_steps) = lies if packs else lies[::-1]
    ordered = message_steps == row_major(piece.views.shape)
    digits, run = list(zip(piece.views.shape, steps, strict=True)), 1
    while digits and digits[-1][1] == run:
        run *= digits.pop()[0]
    if not ordered or run * itemsize < _LONG or prod(n for n, _ in digits) > _FEW:
        return None
    digits.append((run, 1))
    return Strided(itemsize * start, tuple(n for n, _ in digits), tuple(itemsize * step for _, step in digits))


def _reach(piece: Piece, mode: int, side: int) -> tuple[int, int]:
    """The first and the last index of a piece along a mode of one of its two arrays."""
    if isinstance(piece, IndexedCopy):
        lists = (piece.source, piece.target)[side]
        along = [indices for m, indices in chain(*lists) if m == mode]
        return int(sum(each.min() for each in along)), int(sum(each.max() for each in along))
    view = (piece.views.source, piece.views.target)[side]
    low = high = _along(mode, view.origin)
    for n, pairs in zip(piece.views.shape, view.steps, strict=True):
        far = (n - 1) * _along(mode, pairs)
        low, high = low + min(far, 0), high + max(far, 0)
    return low, high


def _along(mode: int, pairs: Iterable[tuple[int, int]]) -> int:
    """The sum of the indices or steps along one mode, from pairs (mode, number)."""
    return sum(number for m, number in pairs if m == mode)


def _cut(piece: Piece, ranges: Ranges, shape: Shape, side: int) -> Iterator[Piece]:
    """The parts of a piece in some ranges of the message, which is on this side and then has this shape."""
    strides = list(piece.strides)
    strides[side] = row_major(shape)
    if isinstance(piece, IndexedCopy):
        ends = [list(piece.source), list(piece.target)]
        for mode, (start, stop) in ranges.items():
            for number, lists in enumerate(ends):
                begin = start if number == side else 0
                lists[mode] = _listed(lists[mode], start, stop, begin)
        yield IndexedCopy(shape, tuple(ends[0]), tuple(ends[1]), (strides[0], strides[1]))
        return
    views: list[ViewPair] = [piece.views]
    for mode, (start, stop) in ranges.items():
        views = [*chain(*(_between(view, mode, start, stop, side) for view in views))]
    for view in views:
        yield StridedCopy(_shifted(view, ranges, side), (strides[0], strides[1]))


def _listed(along: Along, start: int, stop: int, less: int) -> Along:
    return tuple((mode, indices[start:stop] - less) for mode, indices in along)


def _between(pair: ViewPair, mode: int, start: int, stop: int, side: int) -> Iterator[ViewPair]:
    """The elements of a view in a range of one mode of a message, split digit by digit, outer digits first."""
    message = (pair.source, pair.target)[side]
    at = _along(mode, message.origin)
    steps = [_along(mode, pairs) for pairs in message.steps]
    axes = [axis for axis, step in enumerate(steps) if step and pair.shape[axis] > 1]
    if at >= stop or at + sum(steps[axis] * (pair.shape[axis] - 1) for axis in axes) < start:
        return
    if not axes:
        yield pair
        return
    axis = max(axes, key=lambda a: steps[a])
    step, n = steps[axis], pair.shape[axis]
    inner = sum(steps[a] * (pair.shape[a] - 1) for a in axes if a != axis)
    begin = max(0, -((at - start) // step))  # from here on, even the first element is in the range
    end = min(n, (stop - 1 - at - inner) // step + 1)  # up to here, even the last one is
    if begin >= end:
        begin = end = n
    else:
        yield _slice(pair, axis, begin, end)
    for k in (*range(begin), *range(end, n)):
        yield from _between(_slice(pair, axis, k, k + 1), mode, start, stop, side)


def _slice(pair: ViewPair, axis: int, start: int, stop: int) -> ViewPair:
    """A range of one dimension of a view."""

    def moved(view: ArrayView) -> ArrayView:
        leads = dict(view.steps[axis])
        return ArrayView(tuple((mode, at + start * leads.get(mode, 0)) for mode, at in view.origin), view.steps)

    shape = (*pair.shape[:axis], stop - start, *pair.shape[axis + 1 :])
    return ViewPair(shape, moved(pair.source), moved(pair.target))


def _shifted(pair: ViewPair, ranges: Ranges, side: int) -> ViewPair:
    """The views, with that of the message relative to the starts of the ranges."""
    views, origin = [pair.source, pair.target], []
    for mode, at in views[side].origin:
        start, _ = ranges.get(mode, (0, 0))
        origin.append((mode, at - start))
    views[side] = ArrayView(tuple(origin), views[side].steps)
    return ViewPair(pair.shape, views[0], views[1])
