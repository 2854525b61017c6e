"""Copies between two arrays, ready to run: strided views, lists of elements, and large copies in parts.

The elements of a piece are a product of one lattice per component, with indices along modes of the two arrays. So a
piece is a pair of strided views, and its copy is one sweep. If there would be too many views, each component has a list
of its elements, which are picked one by one, a bounded number at a time. If the precisions of the two arrays differ,
elements are rounded or widened in the same sweep.

A plain copy of a large array may fetch cache lines several times. In two cases it is done in parts that stay in the
cache. `transposed`: if the source of a copy has another contiguous axis than the target and is read in the order of the
target, each element is in another cache line, and strides are often powers of two, so that these lines evict each
other. So a tile is copied by runs of the source into scratch with padded rows, and from there by runs of the target.
`interleaved`: elements of several ranks often share cache lines, as after a cyclic distribution, where every line has
some of each. One copy after another would fetch all lines once per copy. So the copies advance together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..lattice import Lattice, Row, Shape

__all__ = ["LARGE", "TILE", "CopiedFactor", "CopiedLattice", "Copy", "Factor", "IndexedCopy", "Piece", "StridedCopy"]
__all__ += ["interleaved", "pieces", "plain_copy", "reduction", "run", "shared", "size_of", "times", "transposed"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

TILE = 8192
"""Elements at a time if there are several sweeps over them, so that they stay in the cache."""

Pair = tuple[Array, Array]  # the view to copy, and its destination
Copy = Callable[[], object]
"""A copy between two arrays, ready to run."""

SMALL = 1 << 20
"""Bytes of an array that stays in the cache."""

LARGE = 1 << 22
"""Bytes of an array that does not stay in the cache."""

_FAR = 1 << 24  # bytes of an array that does not stay in any cache
_LINE = 64  # bytes of a cache line
_ALIKE, _WAYS = 4096, 12  # lines at multiples of so many bytes share a set of a cache; the places of a set
_TRACKED = 32  # lines that a core can keep track of at any stride
_ROW = 128  # elements of a row of scratch, at most
_TURNED = 1 << 18  # bytes of scratch: the second-level cache holds it and the lines that are read and written
_ELEMENTS = 1 << 15  # of scratch, at most
_PART = 1 << 18  # bytes of a part of interleaved copies

_FEW, _SMALL = 16, 128  # a region has a few views, or more if they have so many elements each
_WIDE = 1024  # the most bytes of a run that is copied as one item
_SHORT = 32  # elements of a run that are too few for a ufunc


class CopiedLattice(NamedTuple):
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


CopiedFactor = tuple[CopiedLattice, ...]
"""All elements of one component in two arrays, in the order of a message."""


def size_of(places: CopiedFactor) -> int:
    """The number of elements."""
    return sum([part.lattice.size for part in places])


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

    parts: tuple[CopiedLattice, ...]
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

    def outer_digits(self, side: int) -> tuple[list[tuple[int, int, int]], int]:
        """The digits outside of the runs that are contiguous in both arrays, and the length of a run.

        A digit has its steps in one array, the source (side 0) or the target (side 1), and in the other, and its
        extent. The digits are in the order of that array.
        """
        steps, others = self.located(side)[1], self.located(1 - side)[1]
        digits = sorted([digit for digit in zip(steps, others, self.shape, strict=True) if digit[2] > 1], reverse=True)
        length = 1
        while digits and digits[-1][:2] == (length, length):  # both go on by as many elements as lie below
            length *= digits.pop()[2]
        return digits, length

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
            sweeps = len(factors) + (op is not None)
            return partial(_by_tiles, partial(_multiply, op), [values, *factors], into, item, sweeps, op is not None)
        return plain_copy(values, into, item)

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


def plain_copy(values: Array, into: Array, item: np.dtype[Any] | None) -> Copy:
    """Bind the copy of one view to another; if `item` is given, by such items."""
    if item is not None:  # NumPy is faster with items than with short runs
        into, values = into.view(item), values.view(item)
    turned = transposed(values, into) if into.nbytes >= SMALL and values.dtype == into.dtype else None
    return turned or partial(into.__setitem__, ..., values)


class _Views(NamedTuple):
    """The starts of the two views, their strides in bytes, and the dtype of a short run as one item, or None."""

    shape: Shape
    start: int
    gaps: Shape
    end: int
    strides: Shape
    item: np.dtype[Any] | None


def _by_tiles(
    compute: Callable[[Sequence[Array], Array], object],
    arrays: Sequence[Array],
    into: Array,
    item: np.dtype[Any] | None,
    sweeps: int,
    reads: bool,
) -> None:
    """Compute one array from others of its shape: by tiles, if that takes several sweeps; short runs are packed first.

    Args:
        reads: whether the values that are in `into` before are used.
    """
    if item is not None and into.shape[-1] >= _SHORT:
        item = None
    if item is None and sweeps < 2:
        compute(arrays, into)
        return

    for tile in _tiles(into.shape):
        parts, out = [array[tile] for array in arrays], into[tile]
        if item is None:
            compute(parts, out)
            continue
        packed = _packed(out, item) if reads else np.empty(out.shape, out.dtype)
        compute([_packed(part, item) for part in parts], packed)
        plain_copy(packed, out, item)()


def _multiply(op: np.ufunc | None, arrays: Sequence[Array], into: Array) -> None:
    """Store the product of arrays, or reduce it into the values that are there."""
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
    plain_copy(array, copy, item)()
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

    parts: tuple[CopiedLattice, ...]
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

    def offsets(self, side: int) -> Ints:
        """The offsets of all elements in the source (side 0) or the target (side 1), in elements."""
        offsets: Ints = reduce(np.add.outer, self._tables(side, self.strides[side])).reshape(-1)
        return offsets

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


def reduction(piece: Piece, other: Piece, source: Array, second: Array, target: Array, op: np.ufunc) -> Copy | None:
    """Bind the reduction of the elements of two pieces into their place, in one sweep; None if their places differ."""
    if isinstance(piece, IndexedCopy) or isinstance(other, IndexedCopy):
        return None
    if piece.shape != other.shape or piece.located(1) != other.located(1):
        return None
    values, into, item = piece.arrays(source, target)
    others = other.arrays(second, target)[0]
    if values.dtype != others.dtype:
        item = None

    def compute(arrays: Sequence[Array], out: Array) -> None:
        op(*arrays, out=out, dtype=out.dtype)  # the values received may be narrower

    return partial(_by_tiles, compute, [values, others], into, item, 1, False)


def pieces(components: Sequence[CopiedFactor], strides: tuple[Shape, Shape]) -> tuple[Piece, ...]:
    """The pieces of the product of some components, in arrays of these strides; each element is in one piece."""
    number = 1
    for component in components:
        number *= 0 if component[0].lattice.listed else len(component)
    if 0 < number <= _FEW or 0 < number * _SMALL <= prod(map(size_of, components)):
        return tuple([_strided(parts, strides) for parts in product(*components)])
    lists = []
    for first, *others in components:
        if not first.lattice.listed:
            lattices = [part.lattice for part in (first, *others)]
            first = first._replace(lattice=Lattice.listing(lattices))
        lists.append(first)
    return (IndexedCopy(tuple(lists), strides),)


@memoized(4096)
def _strided(parts: tuple[CopiedLattice, ...], strides: tuple[Shape, Shape]) -> StridedCopy:
    """The product of one lattice per component; most messages, of one rank and of all ranks, share it."""
    return StridedCopy(parts, strides)


# --- large copies in parts that stay in the cache ---------------------------------------------------------------------


def transposed(source: Array, target: Array) -> Callable[[], object] | None:
    """Bind the copy of one view to another of its shape and dtype, by tiles; None if a plain copy is as fast.

    >>> source, target = np.arange(1 << 18, dtype="f8").reshape(512, 512), np.empty((512, 512))
    >>> transposed(source, target) is None, transposed(source.T, target) is None
    (True, False)
    >>> transposed(source.T, target)()
    >>> np.array_equal(target, source.T)
    True
    """
    # source, by its rows      scratch, padded      target, by its rows
    #    a0 a1 a2 | ..            a0 a1 a2 _           a0 b0 c0 ..
    #    b0 b1 b2 | ..     ->     b0 b1 b2 _     ->    a1 b1 c1 ..
    #    c0 c1 c2 | ..            c0 c1 c2 _           a2 b2 c2 ..
    size = target.itemsize
    if target.nbytes < SMALL or size > 16:
        return None

    source, target = source.squeeze(), target.squeeze()
    axes = range(target.ndim)
    inner = min(axes, key=lambda axis: source.strides[axis])
    last = min(axes, key=lambda axis: target.strides[axis])

    stride, rows = source.strides[last], source.shape[last]
    crowded = rows > max(_WAYS * _ALIKE // max(gcd(stride, _ALIKE), _LINE), _TRACKED)
    far = stride >= _LINE and (crowded or (rows > _TRACKED and target.nbytes >= _FAR and size == 16))
    runs = source.strides[inner] == target.strides[last] == size and source.shape[inner] * size >= 2 * _LINE
    if inner == last or not far or not runs:
        return None

    order = sorted(axes, key=lambda axis: source.strides[axis], reverse=True)
    lengths = [1] * target.ndim
    lengths[inner] = _even(source.shape[inner], _ROW)
    left = min(_TURNED // size, _ELEMENTS) // lengths[inner]

    pad = _LINE // size if 2 * lengths[inner] > _ROW else 1
    for axis in sorted(axes, key=lambda axis: target.strides[axis]):
        if axis != inner:
            lengths[axis] = _even(source.shape[axis], left)
            left //= lengths[axis]
    return partial(_run_tiles, source.transpose(order), target.transpose(order), [lengths[axis] for axis in order], pad)


def _even(number: int, most: int) -> int:
    """The length of nearly equal parts of `number`, none longer than `most`."""
    return -(-number // -(-number // most))


def _run_tiles(source: Array, target: Array, lengths: list[int], pad: int) -> None:
    """Copy tile by tile; axes are in the order of the source's strides."""
    scratch = np.empty((*lengths[:-1], lengths[-1] + pad), source.dtype)

    starts = [range(0, n, length) for n, length in zip(source.shape, lengths, strict=True)]
    for corner in product(*starts):
        tile = tuple([slice(start, start + length) for start, length in zip(corner, lengths, strict=True)])
        into = target[tile]
        turned = scratch[tuple([slice(n) for n in into.shape])]
        turned[...] = source[tile]
        into[...] = turned


def interleaved(pairs: Sequence[Pair]) -> Callable[[], object] | None:
    """Bind copies, each between two views of one shape, part by part; None if their elements do not interleave.

    >>> target = np.zeros((1024, 1024))
    >>> halves = [(np.ones((1024, 512)), target[:, ::2]), (np.full((1024, 512), 2.0), target[:, 1::2])]
    >>> interleaved(halves)()
    >>> target[0, :4], target.min()
    (array([1., 2., 1., 2.]), np.float64(1.0))
    >>> interleaved([(half, target[k : k + 512].T) for k, (half, _) in zip((0, 512), halves)]) is None
    True
    """
    if not all(into.ndim for _, into in pairs):
        return None
    outer = [_outermost(into) for _, into in pairs]
    _, stride, n = outer[0]
    starts = [into.__array_interface__["data"][0] for _, into in pairs]
    length = max(1, _PART // max(stride, 1))
    if any(axis[1:] != (stride, n) for axis in outer) or max(starts) - min(starts) >= stride or n < 2 * length:
        return None
    views = []
    for (values, into), (axis, _, _) in zip(pairs, outer, strict=True):
        views.append((np.moveaxis(values, axis, 0), np.moveaxis(into, axis, 0)))
    return partial(_run_together, views, n, length)


def _outermost(array: Array) -> tuple[int, int, int]:
    """The axis with the longest stride among those with several elements, its stride in bytes, and its length."""
    axis = max(range(array.ndim), key=lambda axis: array.strides[axis] if array.shape[axis] > 1 else 0)
    return axis, array.strides[axis], array.shape[axis]


def _run_together(pairs: Sequence[Pair], n: int, length: int) -> None:
    for start in range(0, n, length):  # a part of the target is written by all copies before it leaves the cache
        part = slice(start, start + length)
        for values, into in pairs:
            into[part] = values[part]
