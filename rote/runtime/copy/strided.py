"""Pieces: elements of two arrays that are copied, multiplied or reduced from one array to the other.

A piece is a pair of strided views, so that its copy is one sweep. If there would be too many views, a piece keeps one
list of places per component, and elements are picked one by one, a bounded number at a time. If the precisions of the
two arrays differ, elements are rounded or widened in the same sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...layout.grid import row_major
from ...layout.indexset import Ints
from .transposed import SMALL, transposed
from .views import Along, ArrayView, GroupViews, Shape, ViewPair

__all__ = ["TILE", "Copy", "Factor", "IndexedCopy", "Piece", "StridedCopy", "alike", "pieces"]
__all__ += ["reduction", "run", "times"]

Array = npt.NDArray[Any]

TILE = 8192
"""Elements at a time if there are several sweeps over them, so that they stay in the cache."""

Copy = Callable[[], object]
"""A copy between two arrays, ready to run."""

_FEW, _SMALL = 16, 128  # a region has a few views, or more if they have so many elements each
_WIDE = 1024  # the most bytes of a run that is copied as one item
_SHORT = 32  # elements of a run that are too few for a ufunc


_ONE = ViewPair((), ArrayView((), ()), ArrayView((), ()))  # one element, of no component


class Factor(NamedTuple):
    """An array that is broadcast to a block: C-contiguous memory, and its stride in bytes per mode of the block."""

    memory: Array
    strides: Shape

    @classmethod
    def of(cls, array: Array, shape: Shape) -> Factor:
        """An array as a factor of blocks of this shape; copied if it is not C-contiguous."""
        memory = np.asarray(array, order="C")
        return cls(memory, np.broadcast_to(memory, shape).strides)


@dataclass(frozen=True, slots=True, eq=False)
class StridedCopy:
    """Elements that are a strided view of either array.

    Attributes:
        views: the two views.
        strides: the strides of the two arrays, in elements.
    """

    views: ViewPair
    strides: tuple[Shape, Shape]
    _laid: dict[tuple[np.dtype[Any], np.dtype[Any]], _Laid] = field(default_factory=dict, init=False, repr=False)

    def bound(
        self, source: Array, target: Array, op: np.ufunc | None, before: Sequence[Factor], after: Sequence[Factor]
    ) -> Copy:
        """Bind the copy of the elements, times factors, or their reduction into the target; arrays are C-contiguous.

        It may run repeatedly, each time on the current values of the two arrays.
        """
        shape, source_view, target_view = self.views
        dtypes = source.dtype, target.dtype
        start, gaps, end, strides, item = self._laid.get(dtypes) or self._laid.setdefault(dtypes, self._lay(*dtypes))
        values: Array = np.ndarray(shape, dtypes[0], source, start, gaps)
        into: Array = np.ndarray(shape, dtypes[1], target, end, strides)
        if before or after or op:
            factors = [_view(factor, shape, source_view) for factor in before]
            factors += [_view(factor, shape, target_view) for factor in after]
            return partial(_work, [values, *factors], into, op, item)
        if item is not None:  # NumPy is faster with items than with short runs
            into, values = into.view(item), values.view(item)
        turned = transposed(values, into) if into.nbytes >= SMALL and dtypes[0] == dtypes[1] else None
        return turned or partial(into.__setitem__, ..., values)

    def arrays(self, source: Array, target: Array) -> tuple[Array, Array, np.dtype[Any] | None]:
        """The views of two arrays, and the dtype of a short run as one item, or None."""
        shape, dtypes = self.views.shape, (source.dtype, target.dtype)
        start, gaps, end, strides, item = self._laid.get(dtypes) or self._laid.setdefault(dtypes, self._lay(*dtypes))
        return (
            np.ndarray(shape, dtypes[0], source, start, gaps),
            np.ndarray(shape, dtypes[1], target, end, strides),
            item,
        )

    def _lay(self, dtype: np.dtype[Any], other: np.dtype[Any]) -> _Laid:
        size = dtype.itemsize
        start, gaps = self.views.source.lies(tuple([size * n for n in self.strides[0]]))
        end, strides = self.views.target.lies(tuple([other.itemsize * n for n in self.strides[1]]))
        run = size * self.views.shape[-1] if dtype == other and gaps and gaps[-1] == strides[-1] == size else 0
        ends = (gaps[-2:-1], strides[-2:-1]) != ((run,), (run,))  # else runs are adjacent
        item = np.dtype((np.void, run)) if size < run <= _WIDE and ends else None
        return _Laid(start, gaps, end, strides, item)


class _Laid(NamedTuple):
    """The starts of the two views, their strides in bytes, and the dtype of a short run as one item, or None."""

    start: int
    gaps: Shape
    end: int
    strides: Shape
    item: np.dtype[Any] | None


def _view(factor: Factor, shape: Shape, side: ArrayView) -> Array:
    start, strides = side.lies(factor.strides)
    return np.ndarray(shape, factor.memory.dtype, factor.memory, start, strides)


def _assign(into: Array, values: Array, item: np.dtype[Any] | None) -> None:
    """Copy an array; if `item` is given, by such items, which NumPy copies faster than short runs."""
    if item is None:
        into[...] = values
    else:
        into.view(item)[...] = values.view(item)


def _work(arrays: Sequence[Array], into: Array, op: np.ufunc | None, item: np.dtype[Any] | None) -> None:
    """Store the product of arrays of one shape into another, or reduce it; short runs are packed first."""
    if item is not None and into.shape[-1] >= _SHORT:
        item = None
    sweeps = len(arrays) - (op is None)  # one per factor, and one that reduces
    if item is None and sweeps < 2:
        _work_tile(arrays, into, op, None)
        return
    for tile in _tiles(into.shape):
        _work_tile([array[tile] for array in arrays], into[tile], op, item)


def _reduce(values: Array, others: Array, into: Array, op: np.ufunc, item: np.dtype[Any] | None) -> None:
    """Reduce two arrays of one shape into another; short runs are packed first."""
    if item is None or into.shape[-1] >= _SHORT:
        op(values, others, out=into, dtype=into.dtype)  # the values received may be narrower
        return
    for tile in _tiles(into.shape):
        packed = _together(values[tile], item)
        op(packed, _together(others[tile], item), out=packed)
        _assign(into[tile], packed, item)


def _work_tile(arrays: Sequence[Array], into: Array, op: np.ufunc | None, item: np.dtype[Any] | None) -> None:
    if item is None:
        _multiply(arrays, into, op)
        return
    packed = _together(into, item) if op else np.empty(into.shape, into.dtype)
    _multiply([_together(array, item) for array in arrays], packed, op)
    _assign(into, packed, item)


def _multiply(arrays: Sequence[Array], into: Array, op: np.ufunc | None) -> None:
    values, *factors = arrays
    narrows = into.dtype.itemsize < values.dtype.itemsize  # elements are rounded once, by the last factor
    for number, factor in enumerate(factors, 1):
        stored = op is None and (number == len(factors) or not narrows)
        out = into if stored else np.empty(into.shape, np.result_type(values, factor))
        values = times(values, factor, out)
    if op is not None:
        op(into, values, out=into)


def run(copies: Iterable[Copy]) -> None:
    """Run copies, one after the other."""
    for copy in copies:
        copy()


def times(values: Array, factor: Array, out: Array) -> Array:
    """Store the product of two arrays in a third, and return it.

    NumPy rounds the product of a single complex number differently, so a single one is computed as one of two.
    """
    if out.size == 1:
        out[...] = np.multiply(np.repeat(values, 2), np.repeat(factor, 2))[0]
        return out
    return np.multiply(values, factor, out=out)


def _together(array: Array, item: np.dtype[Any] | None) -> Array:
    """A contiguous copy; an array of strides 0, a single number, stays as it is."""
    if not any(array.strides):
        return array
    copy = np.empty(array.shape, array.dtype)
    if array.strides[-1] != array.itemsize:
        item = None
    _assign(copy, array, item)
    return copy


def _tiles(shape: Shape) -> Iterator[Any]:
    """Indices that cut an array into parts of at most TILE elements."""
    inner, axis = 1, len(shape)
    while axis and inner * shape[axis - 1] <= TILE:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield ...
        return
    for outer in np.ndindex(*shape[: axis - 1]):
        for start in range(0, shape[axis - 1], TILE // inner):
            yield *outer, slice(start, start + TILE // inner), ...


@dataclass(frozen=True, slots=True, eq=False)
class IndexedCopy:
    """Elements that are picked one by one.

    Attributes:
        shape: the number of elements of each component.
        source, target: their places in the two arrays, by component.
        strides: the strides of the two arrays, in elements.
    """

    shape: Shape
    source: tuple[Along, ...]
    target: tuple[Along, ...]
    strides: tuple[Shape, Shape]

    def bound(
        self, source: Array, target: Array, op: np.ufunc | None, before: Sequence[Factor], after: Sequence[Factor]
    ) -> Copy:
        """Bind the copy of the elements, as `StridedCopy` does; each run computes their places again."""
        return partial(self._copy, source, target, op, before, after)

    def _copy(
        self, source: Array, target: Array, op: np.ufunc | None, before: Sequence[Factor], after: Sequence[Factor]
    ) -> None:
        read = [(source, self.strides[0], self.source)]
        for factors, side in ((before, self.source), (after, self.target)):
            for factor in factors:
                steps = tuple(n // factor.memory.itemsize for n in factor.strides)
                read.append((factor.memory, steps, side))
        size, flat = prod(self.shape), target.reshape(-1)
        for start in range(0, size, TILE):
            at = np.unravel_index(np.arange(start, min(start + TILE, size)), self.shape)
            values, *others = (array.reshape(-1)[_numbers(side, strides, at)] for array, strides, side in read)
            if others and values.dtype.itemsize < flat.itemsize:
                values = values.astype(flat.dtype)
            for other in others:
                times(values, other, values)
            numbers = _numbers(self.target, self.strides[1], at)
            flat[numbers] = values if op is None else op(flat[numbers], values)


def _numbers(side: tuple[Along, ...], strides: Shape, at: tuple[Ints, ...]) -> Ints:
    """The positions of elements in an array with these strides, from their numbers in each component."""
    numbers = np.zeros(len(at[0]), np.int64)
    for along, number in zip(side, at, strict=True):
        for mode, indices in along:
            numbers += indices[number] * strides[mode]
    return numbers


Piece = StridedCopy | IndexedCopy


def alike(piece: Piece, other: Piece) -> bool:
    """Whether two pieces are views of the same elements of their target."""
    if isinstance(piece, IndexedCopy) or isinstance(other, IndexedCopy):
        return False
    first, second = piece.views, other.views
    return (first.shape, first.target, piece.strides[1]) == (second.shape, second.target, other.strides[1])


def reduction(piece: Piece, other: Piece, source: Array, second: Array, target: Array, op: np.ufunc) -> Copy:
    """Bind the reduction of the elements of two pieces that are `alike`, in one sweep."""
    assert isinstance(piece, StridedCopy) and isinstance(other, StridedCopy), "others are not alike"
    values, into, item = piece.arrays(source, target)
    others = other.arrays(second, target)[0]
    if values.dtype != others.dtype:
        item = None
    return partial(_reduce, values, others, into, op, item)


def pieces(parts: Sequence[GroupViews], source: Shape, target: Shape) -> tuple[Piece, ...]:
    """The pieces of the product of some components, in arrays of these shapes; each element is in one piece."""
    strides = row_major(source), row_major(target)
    views = [part.views for part in parts]
    number = prod(map(len, views))
    if 0 < number <= _FEW or 0 < number * _SMALL <= prod([part.size for part in parts]):
        return tuple([_strided(each, strides) for each in product(*views)])
    first, second = zip(*[part.lists for part in parts], strict=True)
    return (IndexedCopy(tuple([part.size for part in parts]), first, second, strides),)


@memoized(4096)
def _strided(views: tuple[ViewPair, ...], strides: tuple[Shape, Shape]) -> StridedCopy:
    """The product of one view per component; most messages, of one rank and of all ranks, share it."""
    return StridedCopy(reduce(ViewPair.times, views, _ONE), strides)
