"""Sums, products, extrema and truth over modes of a tensor, by the names of the array API standard and of NumPy."""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_dtype
from ...grammar.nodes import Op
from ...layout.layout import Layout
from ...runtime.copy.regions import identity
from ..distributed import Array, Distributed
from ..elements.blockwise import elementwise
from ..rules import UFUNC_METHODS, Function, follows
from .exact import exact_sum
from .extrema import extremum, unordered
from .reduction import UNSET, Axis, Over, computed_in, finished, over, reducible, reduction

__all__ = ["all", "any", "count_nonzero", "masked", "max", "min", "number_of", "prod", "reduce_by", "sum"]


@follows("reduction", np.sum)
def sum(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
    exact: bool = False,
) -> Any:
    """The sum over some modes, or all. Collective if they are split.

    Args:
        axis: one mode, several, or None for all.
        dtype: the dtype of the sum; if None, integers and bool are summed in the widest integers of their kind.
        out: a tensor to write into; it keeps its layout.
        initial: a value that is added to each sum.
        where: a mask of the elements that are summed.
        layout: the layout of the result; if None, that of the operand without the reduced modes.
        exact: round the true sum once, so that the result has the same bits in any layout, on any number of ranks.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").sum(axis=0).to_global()
    array([4, 6])
    """
    x, dtype = masked(x, where, 0), computed_in(dtype, x.local.dtype, out)
    element = x.local.dtype if dtype is None else as_dtype(dtype)
    if exact and element.kind in "fc":
        return finished("sum", exact_sum(x, over(x, axis, keepdims, layout), element), out, np.add, initial)
    result = reduce_by("sum", np.add, "sum", x, over(x, axis, keepdims, layout), dtype)
    return finished("sum", result, out, np.add, initial)


@follows("reduction", np.prod)
def prod(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
) -> Any:
    """The product over some modes, or all; arguments as for `sum`. Collective if they are split.

    Each rank multiplies its own factors first. So if factors are so large and so small that a part of the product
    overflows, which parts there are decides between a number, infinity and NaN, as the order does in NumPy: then sum
    the logarithms of the factors.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").prod(axis=1).to_global()
    array([2, 0])
    """
    x, dtype = masked(x, where, 1), computed_in(dtype, x.local.dtype, out)
    result = reduce_by("prod", np.multiply, "prod", x, over(x, axis, keepdims, layout), dtype)
    return finished("prod", result, out, np.multiply, initial)


@follows("reduction", np.max, np.amax)
def max(
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
) -> Any:
    """The largest element, or NaN if there is one; arguments as for `sum`. Collective if the modes are split.

    Raises:
        ValueError: there is no element, or a mask may leave none, without `initial`.
        TypeError: the elements are complex.
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").max(axis=0).to_global()
    array([3, 2])
    """
    return _extreme("max", np.maximum, x, over(x, axis, keepdims, layout), out, initial, where)


@follows("reduction", np.min, np.amin)
def min(
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
) -> Any:
    """The smallest element, or NaN if there is one; arguments and errors as for `max`.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").min(axis=1).to_global()
    array([1, 0])
    """
    return _extreme("min", np.minimum, x, over(x, axis, keepdims, layout), out, initial, where)


@follows("reduction", np.any)
def any(
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
) -> Any:
    """Whether any element is true; arguments as for `sum`. Collective if the modes are split.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").any(axis=1).to_global()
    array([ True,  True])
    """
    return _truth("any", np.logical_or, "sum", x, over(x, axis, keepdims, layout), out, where)


@follows("reduction", np.all)
def all(
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = UNSET,
    *,
    layout: Layout | str | None = None,
) -> Any:
    """Whether all elements are true; arguments as for `sum`. Collective if the modes are split.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").all(axis=1).to_global()
    array([ True, False])
    """
    return _truth("all", np.logical_and, "prod", x, over(x, axis, keepdims, layout), out, where)


@follows("reduction", np.count_nonzero)
def count_nonzero(
    x: Distributed, /, axis: Axis = None, *, keepdims: bool = False, layout: Layout | str | None = None
) -> Any:
    """The number of elements that are not zero. Collective if the modes are split.

    >>> import rote.array_api as xp
    >>> int(xp.count_nonzero(xp.asarray([0, 5, 6])))
    2
    """
    return number_of("count_nonzero", lambda block: block != 0, x, axis, keepdims=keepdims, layout=layout)


def number_of(name: str, condition: Function, x: Distributed, axis: Axis, **options: Any) -> Any:
    """The number of elements for which a condition holds; it is computed by blocks. Other arguments as for `sum`."""
    return sum(elementwise(name, condition, (x,), {}), axis, **options)


def reduce_by(name: str, ufunc: np.ufunc, op: Op, x: Distributed, over: Over, dtype: npt.DTypeLike | None) -> Any:
    """Reduce by a ufunc, under the name of the function that calls this; `dtype` as for `sum`."""
    element = None if dtype is None else as_dtype(dtype)
    if x.distribution.partial or x.distribution.layout.view is not None:
        x = reducible(name, x, over.modes, op, ufunc.reduce(np.empty(0, x.local.dtype), dtype=element).dtype)

    def local(block: Array, axis: tuple[int, ...] | None) -> Any:
        return ufunc.reduce(block, axis=axis, dtype=element, keepdims=over.keepdims)

    return reduction(name, x, over, op, local)


def _extreme(op: Op, ufunc: np.ufunc, x: Distributed, over: Over, out: Any, initial: Any, where: Any) -> Any:
    dtype, given = x.local.dtype, initial is not UNSET and initial is not None
    if dtype.kind == "c":
        raise unordered(op)
    if where is not UNSET and where is not True and not given:
        raise ValueError(f"the {op} of no elements is not said\nwrite initial=, which is that where the mask has none")
    if product(x.distribution.shape) == 0 and not given:
        ufunc.reduce(np.empty(x.distribution.shape, dtype), axis=over.modes)  # raises NumPy's error
    result = extremum(masked(x, where, identity(op, dtype)), over, op)
    return finished(op, result, out, ufunc, initial)


def _truth(name: str, ufunc: np.ufunc, op: Op, x: Distributed, over: Over, out: Any, where: Any) -> Any:
    x = masked(x, where, op == "prod")
    x = reducible(name, x, over.modes, op if x.local.dtype == bool else "")

    def local(block: Array, axis: tuple[int, ...] | None) -> Any:
        return ufunc.reduce(block, axis=axis, dtype=bool, keepdims=over.keepdims)

    return finished(name, reduction(name, x, over, op, local), out)


def masked(x: Distributed, where: Any, otherwise: Any) -> Any:
    """The tensor with `otherwise`, which the reduction ignores, in place of the elements outside the mask."""
    if where is UNSET or where is True:
        return x
    return elementwise("where", np.where, (where, x, x.local.dtype.type(otherwise)), {})


def _by_ufunc(ufunc: np.ufunc, function: Function) -> Function:
    """The method `reduce` of a ufunc, made from a function that takes no dtype."""

    def called(x: Any, /, axis: Axis = 0, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        if function in (max, min):
            return function(x if dtype is None else x.astype(dtype), axis, out, **options)
        if dtype is not None and as_dtype(dtype).kind != "b":
            raise TypeError(f"numpy.{ufunc.__name__}.reduce gives truth values, not {as_dtype(dtype)}")
        initial = options.pop("initial", UNSET)
        return finished(function.__name__, function(x, axis, **options), out, ufunc, initial)

    return called


_REDUCING: dict[np.ufunc, Function] = {
    np.add: sum,
    np.multiply: prod,
    np.maximum: _by_ufunc(np.maximum, max),
    np.minimum: _by_ufunc(np.minimum, min),
    np.logical_or: _by_ufunc(np.logical_or, any),
    np.logical_and: _by_ufunc(np.logical_and, all),
}
UFUNC_METHODS.update({(ufunc, "reduce"): function for ufunc, function in _REDUCING.items()})
