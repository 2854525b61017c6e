"""Joining tensors along a mode, and splitting them: indexed moves of the parts make each result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import index as as_index
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from ...compiler.step import as_array, as_dtype
from ...errors import LayoutError
from ...layout.refine import fitted
from ..alignment import made_whole, plain, replicated
from ..distributed import Array, Distributed, linked
from ..rules import follows
from .indexing import fetch, known, moved_first, parse_key, part_at, read
from .reshaping import expand_dims, reshape

__all__ = ["append", "array_split", "column_stack", "concat", "dsplit", "dstack", "hsplit", "hstack", "split", "stack"]
__all__ += ["unstack", "vsplit", "vstack"]

Parts = Sequence[Any]
Ints = npt.NDArray[np.int64]


@follows("joined", np.concatenate)
def concat(arrays: Parts, /, axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """The tensors, and arrays that are the same on all ranks, joined along a mode. Collective.

    The result has the first tensor's layout, with blocks balanced anew along that mode.

    Args:
        arrays: at least one tensor; all shapes are equal except along that mode.
        axis: None joins their elements in row-major order.
        dtype: the dtype of the result; None promotes the operands' dtypes.

    Raises:
        ValueError: the shapes do not fit each other. LayoutError: the tensors have several communicators.
        TypeError: an operand is not a tensor of numbers.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([1, 2], "block[(0)]")
    >>> concat([x, [3.5]]).to_global()
    array([1. , 2. , 3.5])
    """
    parts = _tensors(arrays, "concat")
    if axis is None:
        parts, axis = [reshape(x, -1) for x in parts], 0
    shapes = [x.distribution.shape for x in parts]
    mode = normalize_axis_index(axis, len(shapes[0]))
    rest = {(len(shape), shape[:mode], shape[mode + 1 :]) for shape in shapes}
    if len(rest) > 1:
        raise ValueError(f"concat along mode {mode} needs shapes that are equal in all other modes, not {shapes}")
    first = next(x for given, x in zip(arrays, parts, strict=True) if isinstance(given, Distributed))
    if dtype is None:
        dtype = np.result_type(*[x.local.dtype for x in parts])
    kind = as_dtype(dtype)
    extent = sum(shape[mode] for shape in shapes)
    target = fitted(first.distribution, (*shapes[0][:mode], extent, *shapes[0][mode + 1 :]))
    held = target.indices(first.comm.rank)
    block = np.empty(target.local_shape(first.comm.rank), kind)
    # Along the mode:   |--- first ---|---- second ----|   the operands, one after the other
    #                          |low ........ high|          the indices of this rank's block that one operand fills
    start = 0
    for number, x in enumerate(parts):
        stop = start + shapes[number][mode]
        low, high = np.searchsorted(held[mode], [start, stop])
        wanted = [*held[:mode], held[mode][low:high] - start, *held[mode + 1 :]]
        into = block[(slice(None),) * mode + (slice(low, high),)]
        hint = moved_first(x, target.grid, target.layout.modes)
        part = fetch(x, target, (mode, start, stop), partial(list, wanted), "concat", hint=hint)
        np.copyto(into, part, casting=casting)
        start = stop
    return first._on(block, target)


@follows("joined", np.stack)
def stack(arrays: Parts, /, axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Tensors of one shape stacked along a new mode, which is whole; the other modes have the first tensor's layout.

    Raises:
        TypeError: an operand is not a tensor of numbers.
        ValueError: there is no tensor, or shapes differ.
        LayoutError: the tensors have several communicators.

    >>> import rote.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])]).to_global()
    array([[1, 2],
           [3, 4]])
    """
    parts = _tensors(arrays, "stack")
    if len({x.distribution.shape for x in parts}) > 1:
        raise ValueError(f"stack wants tensors of one shape, not {[x.distribution.shape for x in parts]}")
    return concat([expand_dims(x, axis) for x in parts], axis, dtype=dtype, casting=casting)


@follows("joined", np.vstack)
def vstack(tup: Parts, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Tensors one above the other, as `numpy.vstack`."""
    return concat([*map(_rows, _tensors(tup, "vstack"))], 0, dtype=dtype, casting=casting)


@follows("joined", np.hstack)
def hstack(tup: Parts, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Tensors side by side, as `numpy.hstack`."""
    parts = [x if x.distribution.shape else reshape(x, 1) for x in _tensors(tup, "hstack")]
    return concat(parts, min(len(parts[0].distribution.shape) - 1, 1), dtype=dtype, casting=casting)


@follows("joined", np.dstack)
def dstack(tup: Parts) -> Any:
    """Tensors one behind the other along mode 2, as `numpy.dstack`."""
    parts = [*map(_rows, _tensors(tup, "dstack"))]
    return concat([x if len(x.distribution.shape) > 2 else expand_dims(x, 2) for x in parts], 2)


@follows("joined", np.column_stack)
def column_stack(tup: Parts) -> Any:
    """Tensors of order 1 as columns, others as they are, as `numpy.column_stack`."""
    parts = [reshape(x, (-1, 1)) if len(x.distribution.shape) < 2 else x for x in _tensors(tup, "column_stack")]
    return concat(parts, 1)


@follows("joined", np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """A tensor with values appended along a mode, or in row-major order, as `numpy.append`."""
    return concat([arr, values], axis)


@follows("along", np.unstack, views=True)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The tensors at each index along a mode, which is made whole once for all of them.

    >>> import rote.array_api as xp
    >>> [x.to_global().tolist() for x in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    order = len(x.distribution.shape)
    mode = normalize_axis_index(axis, order)
    found = [*_unstacked(x, mode, made_whole(x, (mode,), "unstack"))]
    return tuple(found if order > 1 else [y.copy() for y in found])


def _unstacked(x: Any, mode: int, whole: Any) -> Iterator[Any]:
    shape = x.distribution.shape
    for k in range(shape[mode]):
        axes = parse_key((slice(None),) * mode + (k,), shape)
        yield linked(read(whole, axes, "unstack"), x, axes, "view" if whole is x else "copy")


@follows("along", name="unstack", views=True)
def rows(x: Any) -> Iterator[Any]:
    """The tensors at each index of mode 0, one after the other, which has the elements of the moment that it comes."""
    whole = made_whole(x, (0,), "unstack")
    parts = _unstacked(x, 0, whole)
    if whole is not x:  # what changes in the meantime outdates rows to come
        held = [*parts][::-1]
        parts = (held.pop() for _ in range(len(held)))  # a row that nobody holds follows no change any more
    return parts if len(x.distribution.shape) > 1 else (y.copy() for y in parts)


@follows("indexed", np.array_split, views=True)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The tensors between some indices along a mode, or a number of nearly equal parts, as `numpy.array_split`."""
    shape = ary.distribution.shape
    mode = normalize_axis_index(axis, len(shape))
    cuts = known(indices_or_sections)
    if np.ndim(cuts):
        ends = [0, *map(as_index, cuts), shape[mode]]
        pieces = [slice(a, b) for a, b in pairwise(ends)]
    else:
        number = as_index(cuts)
        if number < 1:
            raise ValueError(f"a mode is split into 1 part or more, not {number}")
        least, more = divmod(shape[mode], number)
        starts = [part * least + min(part, more) for part in range(number + 1)]
        pieces = [slice(a, b) for a, b in pairwise(starts)]
    return [part_at(ary, (slice(None),) * mode + (piece,), "split") for piece in pieces]


@follows("indexed", np.split, views=True)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The tensors between some indices along a mode, or a number of equal parts.

    Raises:
        ValueError: the number of parts does not divide the extent.
    """
    cuts, shape = known(indices_or_sections), ary.distribution.shape
    if not np.ndim(cuts):
        extent, number = shape[normalize_axis_index(axis, len(shape))], as_index(cuts)
        if number > 0 and extent % number:
            raise ValueError(f"{number} parts do not divide extent {extent}; write array_split")
    return array_split(ary, cuts, axis)


@follows("indexed", np.vsplit, views=True)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor of order 2 or more, split along mode 0, as `numpy.vsplit`."""
    return _split_along("vsplit", ary, indices_or_sections, 2, 0)


@follows("indexed", np.hsplit, views=True)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor split along mode 1, or along its only mode, as `numpy.hsplit`."""
    return _split_along("hsplit", ary, indices_or_sections, 1, min(len(ary.distribution.shape) - 1, 1))


@follows("indexed", np.dsplit, views=True)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor of order 3 or more, split along mode 2, as `numpy.dsplit`."""
    return _split_along("dsplit", ary, indices_or_sections, 3, 2)


def _split_along(name: str, x: Distributed, cuts: Any, least: int, mode: int) -> list[Any]:
    if len(x.distribution.shape) < least:
        raise ValueError(f"{name} splits tensors of order {least} or more, not of {len(x.distribution.shape)}")
    return split(x, cuts, mode)


def _tensors(arrays: Parts, name: str) -> list[Distributed]:
    """The operands as plain tensors; arrays become replicated tensors."""
    given = list(arrays)
    first = next((x for x in given if isinstance(x, Distributed)), None)
    if first is None:
        raise ValueError(f"{name} joins tensors, one at least, not {given}")
    if any(isinstance(x, Distributed) and x.comm is not first.comm for x in given):
        raise LayoutError(f"{name} wants tensors of one communicator; give the same comm to all")

    def joined(array: Array) -> Distributed:
        if array.dtype.kind not in "biufc":
            raise TypeError(f"{name} joins numbers, not {array.dtype}\nwrite x.to_global() in the place of x")
        return replicated(array.astype(as_dtype(array.dtype), copy=False), first)

    return [plain(x, name) if isinstance(x, Distributed) else joined(as_array(x)) for x in given]


def _rows(x: Distributed) -> Distributed:
    """A tensor of order 2 or more, with modes added in front if necessary."""
    order = len(x.distribution.shape)
    if order == 0:
        return reshape(x, (1, 1))
    return expand_dims(x, 0) if order == 1 else x
