"""Pieces: elements of two arrays that are copied, multiplied or reduced from one array to the other.

The elements of a piece are a product of one lattice per component, with indices along modes of the two arrays. So a
piece is a pair of strided views, and its copy is one sweep. If there would be too many views, each component has a list
of its elements, which are picked one by one, a bounded number at a time. If the precisions of the two arrays differ,
elements are rounded or widened in the same sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...lattice import Lattice, Row, Shape
from ...layout.grid import row_major
from .tiled import SMALL, transposed

__all__ = ["TILE", "Copy", "Factor", "IndexedCopy", "Piece", "Placed", "Places", "StridedCopy", "alike", "pieces"]
__all__ += ["reduction", "run", "shared", "times"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

TILE = 8192
"""Elements at a time if there are several sweeps over them, so that they stay in the cache."""

Copy = Callable[[], object]
"""A copy between two arrays, ready to run."""

_FEW, _SMALL = 16, 128  # a region has a few views, or more if they have so many elements each
_WIDE = 1024  # the most bytes of a run that is copied as one item
_SHORT = 32  # elements of a run that are too few for a ufunc


class Placed(NamedTuple):
    """The elements of one component in two arrays, each a block or a message.

    Attributes:
        lattice: the elements; the rows are the indices along modes of the source, then along modes of the target.
        source, target: these modes.
    """

    lattice: Lattice
    source: tuple[int, ...]
    target: tuple[int, ...]

    def rows(self, side: int) -> tuple[Row, ...]:
        """The indices along modes of the source (side 0), or of the target (side 1)."""
        return self.lattice.rows[len(self.source) :] if side else self.lattice.rows[: len(self.source)]


class Places(NamedTuple):
    """All elements of one component in two arrays.

    Attributes:
        parts: the elements, in the order of a message.
        views: the number of strided views that they are; 0 if they are listed one by one.
        size: the number of elements.
    """

    parts: tuple[Placed, ...]
    views: int
    size: int


@memoized(8192)
def shared(shape: Shape, rows: tuple[Row, ...]) -> Lattice:
    """A lattice with these digits and rows: the same one each time, because many messages share its pieces."""
    return Lattice(shape, rows)


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
        parts: the elements of each component, whose product they are.
        strides: the strides of the two arrays, in elements.
    """

    parts: tuple[Placed, ...]
    strides: tuple[Shape, Shape]
    _views: dict[tuple[np.dtype[Any], np.dtype[Any]], _Views] = field(default_factory=dict, init=False, repr=False)

    @property
    def shape(self) -> Shape:
        """The shape of the view: all digits of the lattices."""
        shape: Shape = ()
        for part in self.parts:
            shape += part.lattice.shape
        return shape

    def located(self, side: int, strides: Shape | None = None) -> tuple[int, Shape]:
        """The offset of the view in the source (side 0) or the target (side 1), and its step along each digit.

        They are in elements, or in the unit of other strides of the array's modes.
        """
        strides = self.strides[side] if strides is None else strides
        start, steps = 0, list[int]()  # loops are fast, and this is the slowest part of making a view
        for lattice, source, target in self.parts:
            modes, rows = (target, lattice.rows[len(source) :]) if side else (source, lattice.rows)
            first = len(steps)
            steps += [0] * len(lattice.shape)
            for mode, row in zip(modes, rows, strict=False):
                stride = strides[mode]
                start += row[0] * stride
                for axis, step in enumerate(row[1:], first):
                    steps[axis] += step * stride
        return start, tuple(steps)

    def bound(
        self, source: Array, target: Array, op: np.ufunc | None, before: Sequence[Factor], after: Sequence[Factor]
    ) -> Copy:
        """Bind the copy of the elements, times factors, or their reduction into the target; arrays are C-contiguous.

        It may run repeatedly, each time on the current values of the two arrays.
        """
        values, into, item = self.arrays(source, target)
        if before or after or op:
            factors = list[Array]()
            for side, some in enumerate((before, after)):
                for memory, strides in some:
                    start, gaps = self.located(side, strides)
                    factors.append(np.ndarray(into.shape, memory.dtype, memory, start, gaps))
            return partial(_work, [values, *factors], into, op, item)
        if item is not None:  # NumPy is faster with items than with short runs
            into, values = into.view(item), values.view(item)
        turned = transposed(values, into) if into.nbytes >= SMALL and source.dtype == target.dtype else None
        return turned or partial(into.__setitem__, ..., values)

    def arrays(self, source: Array, target: Array) -> tuple[Array, Array, np.dtype[Any] | None]:
        """The views of two arrays, and the dtype of a short run as one item, or None."""
        dtypes = source.dtype, target.dtype
        views = self._views.get(dtypes) or self._views.setdefault(dtypes, self._views_of(*dtypes))
        shape, start, gaps, end, strides, item = views
        values: Array = np.ndarray(shape, dtypes[0], source, start, gaps)
        return values, np.ndarray(shape, dtypes[1], target, end, strides), item

    def _views_of(self, dtype: np.dtype[Any], other: np.dtype[Any]) -> _Views:
        size, shape = dtype.itemsize, self.shape
        start, gaps = self.located(0, tuple([size * n for n in self.strides[0]]))
        end, strides = self.located(1, tuple([other.itemsize * n for n in self.strides[1]]))
        run = size * shape[-1] if dtype == other and gaps and gaps[-1] == strides[-1] == size else 0
        ends = (gaps[-2:-1], strides[-2:-1]) != ((run,), (run,))  # else runs are adjacent
        item = np.dtype((np.void, run)) if size < run <= _WIDE and ends else None
        return _Views(shape, start, gaps, end, strides, item)


class _Views(NamedTuple):
    """The starts of the two views, their strides in bytes, and the dtype of a short run as one item, or None."""

    shape: Shape
    start: int
    gaps: Shape
    end: int
    strides: Shape
    item: np.dtype[Any] | None


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
        packed = _packed(values[tile], item)
        op(packed, _packed(others[tile], item), out=packed)
        _assign(into[tile], packed, item)


def _work_tile(arrays: Sequence[Array], into: Array, op: np.ufunc | None, item: np.dtype[Any] | None) -> None:
    if item is None:
        _multiply(arrays, into, op)
        return
    packed = _packed(into, item) if op else np.empty(into.shape, into.dtype)
    _multiply([_packed(array, item) for array in arrays], packed, op)
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


def _packed(array: Array, item: np.dtype[Any] | None) -> Array:
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
    """Elements that are picked one by one: a product of lists; attributes as of `StridedCopy`."""

    parts: tuple[Placed, ...]
    strides: tuple[Shape, Shape]

    def bound(
        self, source: Array, target: Array, op: np.ufunc | None, before: Sequence[Factor], after: Sequence[Factor]
    ) -> Copy:
        """Bind the copy of the elements, as `StridedCopy` does."""
        read = [(source.reshape(-1), self._tables(0, self.strides[0]))]
        for side, factors in enumerate((before, after)):
            for memory, strides in factors:
                steps = tuple([n // memory.itemsize for n in strides])
                read.append((memory.reshape(-1), self._tables(side, steps)))
        return partial(self._copy, read, target.reshape(-1), self._tables(1, self.strides[1]), op)

    def _tables(self, side: int, strides: Shape) -> list[Ints]:
        """Per component, the offsets of its elements in an array with these strides."""
        tables = []
        for part in self.parts:
            modes, table = (part.target if side else part.source), np.zeros(part.lattice.size, np.int64)
            for mode, (start, indices) in zip(modes, part.rows(side), strict=True):
                table += (start + indices) * strides[mode]
            tables.append(table)
        return tables

    def _copy(
        self, read: Sequence[tuple[Array, list[Ints]]], into: Array, tables: list[Ints], op: np.ufunc | None
    ) -> None:
        shape = tuple([len(table) for table in tables])
        size = prod(shape)
        for start in range(0, size, TILE):
            at = np.unravel_index(np.arange(start, min(start + TILE, size)), shape)
            values, *others = (array[_offsets(places, at)] for array, places in read)
            if others and values.dtype.itemsize < into.dtype.itemsize:
                values = values.astype(into.dtype)
            for other in others:
                times(values, other, values)
            numbers = _offsets(tables, at)
            into[numbers] = values if op is None else op(into[numbers], values)


def _offsets(tables: list[Ints], at: tuple[Ints, ...]) -> Ints:
    """The offsets of elements of a product, from their numbers in each component."""
    offsets = np.zeros(len(at[0]), np.int64)
    for table, number in zip(tables, at, strict=True):
        offsets += table[number]
    return offsets


Piece = StridedCopy | IndexedCopy


def alike(piece: Piece, other: Piece) -> bool:
    """Whether two pieces are views of the same elements of their target."""
    if isinstance(piece, IndexedCopy) or isinstance(other, IndexedCopy):
        return False
    return piece.shape == other.shape and piece.located(1) == other.located(1)


def reduction(piece: Piece, other: Piece, source: Array, second: Array, target: Array, op: np.ufunc) -> Copy:
    """Bind the reduction of the elements of two pieces that are `alike`, in one sweep."""
    assert isinstance(piece, StridedCopy) and isinstance(other, StridedCopy), "others are not alike"
    values, into, item = piece.arrays(source, target)
    others = other.arrays(second, target)[0]
    if values.dtype != others.dtype:
        item = None
    return partial(_reduce, values, others, into, op, item)


def pieces(components: Sequence[Places], source: Shape, target: Shape) -> tuple[Piece, ...]:
    """The pieces of the product of some components, in arrays of these shapes; each element is in one piece."""
    strides, number = (row_major(source), row_major(target)), 1
    for each in components:
        number *= each.views
    if 0 < number <= _FEW or 0 < number * _SMALL <= prod([each.size for each in components]):
        return tuple([_strided(parts, strides) for parts in product(*[each.parts for each in components])])
    lists = []
    for each in components:
        first, *_ = each.parts
        if not first.lattice.listed:
            first = first._replace(lattice=Lattice.listing([part.lattice for part in each.parts]))
        lists.append(first)
    return (IndexedCopy(tuple(lists), strides),)


@memoized(4096)
def _strided(parts: tuple[Placed, ...], strides: tuple[Shape, Shape]) -> StridedCopy:
    """The product of one lattice per component; most messages, of one rank and of all ranks, share it."""
    return StridedCopy(parts, strides)
