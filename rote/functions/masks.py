"""Elements that masks or indices choose: those that are taken, and those that are written into a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..runtime.arrays import as_array
from ..runtime.placement import check_values
from .alignment import Casting, as_tensor, assign, into, plain
from .creation import astype
from .distributed import Distributed, shape_of
from .facts import result_type
from .indexing import getitem, known, parse_key, setitem
from .reductions import any, normal_axis
from .reshaping import flatnonzero, reshape
from .rules import follows
from .scans import cumsum
from .sorting import take

__all__ = ["add_at", "compress", "extract", "fill_diagonal", "place", "put_along_axis", "putmask", "select"]


@follows("data-dependent", np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where a condition holds, in row-major order, as `numpy.extract`. Collective.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
    >>> np.extract(x % 2 == 0, x).to_global()
    array([2, 4])
    """
    x, mask = as_tensor(arr, condition), as_tensor(condition, arr)
    if mask.distribution.shape == x.distribution.shape:
        return getitem(x, mask != 0)
    return take(reshape(x, -1), flatnonzero(mask))


@follows("data-dependent", np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices along a mode where a condition of order 1 holds, as `numpy.compress`. Collective.

    Args:
        axis: the mode; None takes all elements as one line.

    Raises:
        ValueError: the condition is not of order 1. IndexError: it is longer than the mode.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
    >>> np.compress([False, True], x, axis=1).to_global().tolist()
    [[2], [4]]
    """
    if len(shape_of(condition)) != 1:
        raise ValueError(f"a condition is of order 1, not of shape {shape_of(condition)}\nwrite numpy.extract(mask, x)")
    x = as_tensor(a, condition)
    if axis is None:
        x, axis = reshape(x, -1), 0
    places = np.flatnonzero(as_array(known(condition)))
    return into(out, take(x, places, normal_axis(axis, len(x.distribution.shape))), "compress")


@follows("elementwise", np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Of each element, the choice of the first condition that holds, as `numpy.select`; else the default.

    Raises:
        ValueError: there are not as many choices as conditions, or none. TypeError: a condition is not of bool.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([1, 2, 3], "block[(0)]")
    >>> np.select([x > 2, x > 1], [x, 10 * x]).to_global()
    array([ 0, 20,  3])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select takes as many choices as conditions, not {len(choicelist)} and {len(condlist)}")
    tensors = *condlist, *choicelist, default
    choices = [x if type(x) in (int, float, complex) else as_tensor(x, *tensors) for x in choicelist]
    dtype = result_type(*choices, default)

    result: Any = default
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        if getattr(getattr(condition, "dtype", None), "kind", "") != "b":
            raise TypeError(f"a condition is a tensor or an array of bool, not {condition!r}\nwrite mask != 0")
        result = np.where(condition, choice, result)
    return astype(result, dtype, copy=False)


@follows("indexed", np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write a value, or several one after the other, to the main diagonal, as `numpy.fill_diagonal`. Collective.

    Raises:
        ValueError: the tensor is of order 1 or less, or of order 3 or more with modes of several extents.
    """
    shape = a.distribution.shape
    if len(shape) < 2 or (len(shape) > 2 and len({*shape}) > 1):
        raise ValueError(f"a diagonal is filled of order 2, or of equal extents, not of shape {shape}")
    step = shape[1] + 1 if len(shape) == 2 else sum(shape[0] ** power for power in range(len(shape)))
    end = prod(shape) if wrap or len(shape) > 2 else min(prod(shape), shape[1] * shape[1])

    places = np.unravel_index(np.arange(0, end, step), shape)
    values = as_array(known(val))
    setitem(a, places, np.resize(values, len(places[0])) if values.ndim else values)


@follows("elementwise", np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write values where a mask holds, as `numpy.putmask`: fewer than elements are repeated in row-major order."""
    shape = a.distribution.shape
    _check_mask(mask, shape)
    values, casting = _written(values, a.local.dtype)

    if shape_of(values) not in ((), shape):
        numbers = as_array(known(values)).reshape(-1)
        strides = [prod(shape[mode + 1 :]) for mode in range(len(shape))]
        x = plain(a, "putmask")
        number = sum(n * stride for n, stride in zip(x.distribution.tensor_indices(x.comm.rank), strides, strict=True))
        values = x._with(numbers[number % max(len(numbers), 1)])
    assign(a, values, "putmask", casting, as_tensor(mask, a) != 0)


@follows("indexed", np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values one after the other to the elements where a mask holds, as `numpy.place`. Collective."""
    shape = arr.distribution.shape
    _check_mask(mask, shape)
    vals, casting = _written(vals, arr.local.dtype)
    numbers = as_array(known(vals)).reshape(-1)

    chosen = as_tensor(mask, arr) != 0
    if not len(numbers):
        if any(chosen):
            raise ValueError("place has no values to write\nwrite one, at least")
        return

    values: Any = numbers[0]
    if len(numbers) > 1:
        number = reshape(cumsum(chosen), shape)  # of the elements that are chosen, up to each
        values = number._with(numbers[(number.local - 1) % len(numbers)])
    assign(arr, values, "place", casting, chosen)


@follows("indexed", np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at given indices along a mode, as `numpy.put_along_axis`; every rank gets all of these."""
    at, shape = as_array(known(indices)), arr.distribution.shape
    if axis is None:
        setitem(arr, np.unravel_index(at, shape), values)
        return
    mode = normal_axis(axis, len(shape))
    if at.ndim != len(shape):
        raise ValueError(f"indices have the order of the tensor, {len(shape)}, not {at.ndim}")
    places = [np.arange(n).reshape([-1 if m == k else 1 for k in range(at.ndim)]) for m, n in enumerate(shape)]
    places[mode] = at
    setitem(arr, tuple(places), values)


def add_at(ufunc: np.ufunc, a: Any, indices: Any, *values: Any) -> None:
    """The method `at` of a ufunc, such as `numpy.add.at`: an index that is there twice counts twice. Collective.

    Every rank gets the indices, which are of the first modes, and the elements there.

    Raises:
        TypeError: `a` is no tensor. IndexError: indices are not integers, or out of range.
    """
    name = f"numpy.{ufunc.__name__}.at"
    if not isinstance(a, Distributed):
        raise TypeError(f"{name} writes tensors into no array\nwrite {name}(array, indices, x.to_global())")
    key = tuple([known(item) for item in (indices if isinstance(indices, tuple) else (indices,))])
    if {as_array(item).dtype.kind for item in key} - {*"iu"}:
        raise IndexError(f"{name} takes indices that are integers or arrays of them")

    check_values(name, a.distribution)

    # Work on each element once: `rows` are those that occur, and `number` says which of them an index means.
    shape = a.distribution.shape[: len(key)]
    points = np.asarray(parse_key(tuple(map(np.atleast_1d, key)), shape)[0].taken)
    flat, number = np.unique(np.asarray(np.ravel_multi_index(tuple(points), shape)), return_inverse=True)
    places = np.unravel_index(flat, shape)
    rows = np.array(known(getitem(a, places)))
    ufunc.at(rows, number.reshape(points.shape[1:]), *[known(value) for value in values])
    setitem(a, places, rows)


def _written(values: Any, dtype: np.dtype[Any]) -> tuple[Any, Casting]:
    """Values that are written into elements of a dtype, and how they are cast.

    As in NumPy, arrays are cast safely; numbers and lists are made of that dtype.
    """
    if isinstance(values, Distributed):
        return values, "safe" if values.distribution.shape else "unsafe"
    if isinstance(values, np.generic):
        return values, "unsafe"
    has_dtype = hasattr(values, "dtype")
    return as_array(values, None if has_dtype else dtype), "safe" if has_dtype else "unsafe"


def _check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    if shape_of(mask) != shape:
        raise ValueError(f"a mask has the shape of the tensor, {shape}, not {shape_of(mask)}")
