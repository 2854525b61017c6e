"""Tensors, and arrays that every rank has, joined into one: along a mode, along a new one, or as blocks of a matrix.

The result has the layout of the first tensor. Elements whose place is on another rank come by indexed moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ..compiler.step import as_dtype
from ..layout.refine import fitted
from ..runtime.arrays import as_array
from .alignment import as_tensor, plain, replicated
from .distributed import Array, Distributed, T, comm_of
from .indexing import fetch, moved_first
from .rearranging import expand_dims
from .reshaping import reshape
from .rules import follows, values_in

__all__ = ["append", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "concat", "dstack", "hstack"]
__all__ += ["stack", "vstack"]

Parts = Sequence[Any]


@overload
def concat(arrays: Sequence[T], /, axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind") -> T: ...
@overload
def concat(arrays: Parts, /, axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any: ...
@follows("joined", np.concatenate)
def concat(arrays: Parts, /, axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """The tensors, and arrays that are the same on all ranks, joined along a mode. Collective.

    The result has the first tensor's layout, with blocks balanced anew along that mode.

    Parameters
    ----------
    arrays : Sequence[Any]
        At least one tensor; all shapes are equal except along that mode.
    axis : int | None, default 0
        None joins their elements in row-major order.
    dtype : DTypeLike, optional
        The dtype of the result; None promotes the operands' dtypes.
    casting : str, default 'same_kind'
        Which casts to that dtype are allowed, as for `numpy.concatenate`.

    Raises
    ------
    ValueError
        The shapes do not fit each other.
    LayoutError
        The tensors have several communicators.
    TypeError
        An operand is not a tensor of numbers.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([1, 2], "block[(0)]")
    >>> xp.concat([x, [3.5]]).to_global()
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

    first = next(x for operand, x in zip(arrays, parts, strict=True) if isinstance(operand, Distributed))
    element = as_dtype(np.result_type(*[x.local.dtype for x in parts]) if dtype is None else dtype)
    extent = sum(shape[mode] for shape in shapes)
    target = fitted(first.distribution, (*shapes[0][:mode], extent, *shapes[0][mode + 1 :]))
    indices = target.indices(first.comm.rank)
    block = np.empty(target.local_shape(first.comm.rank), element)

    # Along the mode:   |--- first ---|---- second ----|   the operands, one after the other
    #                          |low ........ high|          the indices of this rank's block that one operand fills
    start = 0
    for number, x in enumerate(parts):
        stop = start + shapes[number][mode]
        low, high = np.searchsorted(indices[mode], [start, stop])
        origins = [*indices[:mode], indices[mode][low:high] - start, *indices[mode + 1 :]]
        hint = moved_first(x, target.grid, target.layout.modes)
        part = fetch(x, target, (mode, start, stop), partial(list, origins), "concat", hint=hint)
        np.copyto(block[(slice(None),) * mode + (slice(low, high),)], part, casting=casting)
        start = stop
    return first._on(block, target)


@overload
def stack(arrays: Sequence[T], /, axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind") -> T: ...
@overload
def stack(arrays: Parts, /, axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any: ...
@follows("joined", np.stack)
def stack(arrays: Parts, /, axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Tensors of one shape stacked along a new mode, which is whole; the other modes have the first tensor's layout.

    Parameters
    ----------
    arrays : Sequence[Any]
        The tensors, and arrays that are the same on all ranks.
    axis : int, default 0
        The place of the new mode.
    dtype : DTypeLike, optional
        The dtype of the result; if None, operands are promoted.
    casting : str, default 'same_kind'
        Which casts to that dtype are allowed, as for `numpy.stack`.

    Raises
    ------
    TypeError
        An operand is not a tensor of numbers.
    ValueError
        There is no tensor, or shapes differ.
    LayoutError
        The tensors have several communicators.

    Examples
    --------
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


def _tensors(arrays: Parts, name: str) -> list[Distributed]:
    """The operands as plain tensors; arrays become replicated tensors."""
    operands = list(arrays)
    first = next((x for x in operands if isinstance(x, Distributed)), None)
    if first is None:
        raise ValueError(f"{name} joins tensors, one at least, not {operands}")
    comm_of(name, operands)

    def joined(array: Array) -> Distributed:
        if array.dtype.kind not in "biufc":
            raise TypeError(f"{name} joins numbers, not {array.dtype}\nwrite x.to_global() in the place of x")
        return replicated(array.astype(as_dtype(array.dtype), copy=False), first)

    return [plain(x, name) if isinstance(x, Distributed) else joined(as_array(x)) for x in operands]


def _rows(x: Distributed) -> Distributed:
    """A tensor of order 2 or more, with modes added in front if necessary."""
    order = len(x.distribution.shape)
    if order == 0:
        return reshape(x, (1, 1))
    return expand_dims(x, 0) if order == 1 else x


# --- more modes, and blocks of a matrix -------------------------------------------------------------------------------


@follows("relabelled", np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Tensors of order 1 or more, as `numpy.atleast_1d`: one for one operand, a tuple for several."""
    return _with_modes("atleast_1d", arys, {0: (1,)})


@follows("relabelled", np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Tensors of order 2 or more, as `numpy.atleast_2d`: a vector becomes a row."""
    return _with_modes("atleast_2d", arys, {0: (1, 1), 1: (1, -1)})


@follows("relabelled", np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Tensors of order 3 or more, as `numpy.atleast_3d`: a vector goes along mode 1, a matrix along modes 0 and 1."""
    return _with_modes("atleast_3d", arys, {0: (1, 1, 1), 1: (1, -1, 1), 2: (0, 0, 1)})


def _with_modes(name: str, operands: Parts, shapes: dict[int, tuple[int, ...]]) -> Any:
    """The operands in the shapes of their orders, in which 0 stands for the extent that a mode has."""
    results = []
    for x in _tensors(operands, name) if len(operands) > 1 else operands:
        extents = x.distribution.shape
        shape = shapes.get(len(extents))
        if shape is not None:
            x = reshape(x, [n or extents[mode] for mode, n in enumerate(shape)])
        results.append(x)
    return results[0] if len(results) == 1 else tuple(results)


@follows("joined", np.block)
def block(arrays: Any) -> Any:
    """A tensor of blocks in nested lists, as `numpy.block`: lists within all others are joined along the last mode.

    Raises:
        ValueError: shapes do not fit each other, or lists are empty or of different depths.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
    >>> np.block([[x, np.zeros((2, 1), int)], [5, 6, 7]]).to_global()
    array([[1, 2, 0],
           [3, 4, 0],
           [5, 6, 7]])
    """
    first = next(x for x in values_in([arrays]) if isinstance(x, Distributed))
    depth = _depth(arrays)
    leaves = [x for x in values_in([arrays]) if not isinstance(x, list)]
    order = max(depth, *[np.ndim(x) for x in leaves])

    def joined(part: Any, inner: int) -> Any:
        if inner:
            return concat([joined(entry, inner - 1) for entry in part], -inner)
        x = as_tensor(part, first)
        return reshape(x, (1,) * (order - len(x.distribution.shape)) + x.distribution.shape)

    return joined(arrays, depth)


def _depth(arrays: Any) -> int:
    """How deep lists are nested, all alike."""
    if not isinstance(arrays, list):
        return 0
    depths = {*map(_depth, arrays)}
    if len(depths) != 1:
        raise ValueError(f"block takes lists of one depth, none of them empty, not of depths {sorted(depths)}")
    return depths.pop() + 1
