"""Means, variances and ranges over modes of a tensor, by the names of the array API standard and of NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_dtype
from ...errors import LayoutError
from ...layout.layout import Layout, as_layout, layout_or_none
from ..distributed import Array, Distributed
from ..elements.blockwise import elementwise
from ..rules import follows
from . import reductions
from .reduction import (
    UNSET,
    Axis,
    Over,
    computed_in,
    contributed,
    extents_of,
    finished,
    laid,
    modes_of_mean,
    over,
    reduced,
    reducible,
    settled,
)

__all__ = ["average", "freedom", "mean", "ptp", "root_of", "std", "var", "weights_along"]

LayoutLike = Layout | str | None


@follows("reduction", np.mean)
def mean(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = UNSET,
    *,
    layout: LayoutLike = None,
    exact: bool = False,
) -> Any:
    """The mean over some modes, or all; for integers it is in double precision. Arguments as for `sum`.

    Raises:
        AxisError, ValueError: there is no such mode, or one is named twice.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").mean())
    3.0
    """
    modes = modes_of_mean(axis, len(x.distribution.shape))
    own = None if x.local.dtype.kind in "fc" else np.dtype("f8")
    asked = computed_in(own if dtype is None else dtype, x.local.dtype, out)
    element = x.local.dtype if asked is None else as_dtype(asked)
    if exact:
        total = reductions.sum(x, axis, element, None, keepdims, where=where, layout=layout, exact=True)
    else:
        chosen = reductions.masked(x, where, 0)
        total = reductions.reduce_by("mean", np.add, "sum", chosen, over(chosen, axis, keepdims, layout), element)
    if where is UNSET or where is True:
        total = _divided(total, extents_of(x, modes), out)
    else:
        count = reductions.number_of(
            "mean", lambda block: np.ones(block.shape, bool), x, axis, keepdims=keepdims, where=where
        )
        total = laid("mean", elementwise("mean", _quotient, (total, count), {}), layout)
    return finished("mean", total, out)


@follows("reduction", np.var)
def var(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = UNSET,
    mean: Any = UNSET,
    correction: Any = UNSET,
    *,
    layout: LayoutLike = None,
) -> Any:
    """The variance over some modes, or all, in two passes: the mean, then the squares of the deviations.

    Args:
        ddof, correction: two names for the number that is subtracted from the number of elements. The other arguments
            are those of `sum`.

    Raises:
        TypeError: `where` or `mean` is given.
        ValueError: `ddof` and `correction` are both given.

    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").var(correction=1))
    3.3333333333333335
    """
    _refuse_parts(where, mean)
    less = freedom(ddof, correction)
    return finished("var", _variance("var", x, _over_mean(x, axis, keepdims, layout), dtype, less, out), out)


@follows("reduction", np.std)
def std(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = UNSET,
    mean: Any = UNSET,
    correction: Any = UNSET,
    *,
    layout: LayoutLike = None,
) -> Any:
    """The standard deviation over some modes, or all: the square root of `var`, whose arguments it takes.

    Raises:
        TypeError: `where` or `mean` is given.
        ValueError: `ddof` and `correction` are both given.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").std(axis=1).to_global()
    array([0.5, 1.5])
    """
    if layout is not None and as_layout(layout).partial:
        raise LayoutError(f"a standard deviation is no sum of contributions, as {layout} has them; write x.var(…)")
    _refuse_parts(where, mean)
    less = freedom(ddof, correction)
    variance = _variance("std", x, _over_mean(x, axis, keepdims, layout), dtype, less, out)
    return finished("std", root_of(variance, out), out)


def root_of(variance: Any, out: Any = None) -> Any:
    """The square root in the dtype of the variance; as in NumPy, refused for integers unless they are one number."""
    if out is None and not variance.distribution.shape:
        variance.local[...] = np.sqrt(variance.local)
    else:
        np.sqrt(variance.local, out=variance.local)
    return variance


def freedom(ddof: float, correction: Any) -> Any:
    """The number that is subtracted from the number of elements; it has two names."""
    if correction is UNSET or correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction are two names of one number; give one of them")
    return correction


def _refuse_parts(where: Any, mean: Any) -> None:
    for name, value in (("where", where), ("mean", mean)):
        if value is not UNSET and value is not True:
            raise TypeError(f"{name}= of a variance is not answered; write var(x.to_global(), {name}=…) or nanvar(x)")


def _over_mean(x: Distributed, axis: Axis, keepdims: bool, layout: LayoutLike) -> Over:
    return Over(modes_of_mean(axis, len(x.distribution.shape)), keepdims, layout_or_none(layout))


def _variance(name: str, x: Distributed, over: Over, dtype: npt.DTypeLike | None, less: float, out: Any) -> Any:
    modes = over.modes
    x = reducible(name, x, modes, "")
    asked = np.dtype("f8") if dtype is None and x.local.dtype.kind in "biu" else dtype
    element = x.local.dtype if asked is None else as_dtype(asked)
    count = extents_of(x, modes)
    where = reduced(x.distribution, over, "sum")
    # If each rank has all elements that its results need, NumPy's own function is faster.
    alone = not where.moves and not where.target.layout.partial
    if alone and x.local.size and less < count and not isinstance(out, Distributed):

        def whole(block: Any, axis: tuple[int, ...] | None) -> Any:
            return block.var(axis, asked, ddof=less, keepdims=over.keepdims)

        return settled(name, contributed(x, modes, where, whole), where)
    # In double precision at least, so that elements which are all equal do not deviate from the mean of ranks' sums.
    summed = np.promote_types(element, "f8") if element.kind in "fc" else element
    centre = reductions.reduce_by(name, np.add, "sum", x, Over(modes, True), summed)
    _divide(centre, count)
    centre = centre.astype(element)
    viewed = x.distribution.layout.view is not None
    middle = centre.local.reshape(-1) if viewed and centre.local.size else centre.local

    def local(block: Array, axis: tuple[int, ...] | None) -> Any:
        beyond: Any = np.asarray(np.subtract(block, middle))
        if block.dtype.kind == "c":
            beyond = beyond.real**2 + beyond.imag**2
        else:
            np.multiply(beyond, beyond, out=beyond)
        return beyond.sum(axis=axis, dtype=computed_in(asked, beyond.dtype, out), keepdims=over.keepdims)

    result = settled(name, contributed(x, modes, where, local), where)
    return _divided(result, max(count - less, 0), out)


def _quotient(total: Array, count: Array) -> Array:
    return np.asarray(np.true_divide(total, count)).astype(total.dtype, copy=False)


def _divided(total: Any, count: float, out: Any) -> Any:
    """A new tensor divided by a number, in the dtype of `out` if given, because NumPy keeps the total in `out`."""
    lay = total.distribution.layout
    if lay.op == "prod":  # dividing each factor would divide the product several times
        total = laid("mean", total, replace(lay, partial=(), op="sum"))
    if isinstance(out, Distributed) and out.local.dtype != total.local.dtype:
        total = elementwise("mean", lambda block: block.astype(out.local.dtype), (total,), {})
    _divide(total, count)
    return laid("mean", total, lay)


def _divide(x: Any, count: float) -> None:
    """Divide a new tensor in place."""
    np.true_divide(x.local, count, out=x.local, casting="unsafe")


@follows("reduction", np.ptp)
def ptp(x: Distributed, /, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The largest element minus the smallest, computed from the largest in the dtype of `out`, as in NumPy."""
    largest, smallest = (extreme(x, axis, None, keepdims) for extreme in (reductions.max, reductions.min))
    if isinstance(out, Distributed):
        largest = elementwise("ptp", lambda block: block.astype(out.local.dtype), (largest,), {})
    return finished("ptp", elementwise("ptp", np.subtract, (largest, smallest), {}), out, casting="same_kind")


@follows("reduction", np.average)
def average(
    x: Distributed, /, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean, or the mean with weights, as `numpy.average`; with the sum of weights if `returned` is true.

    Args:
        weights: of the tensor's shape, or of the extents along `axis`, in its order.

    Raises:
        TypeError: the weights have another shape than the tensor, and no `axis` is named.
        ValueError: the weights have other extents than the modes of `axis`.
        ZeroDivisionError: the weights sum to zero.

    >>> import numpy as np
    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[0.0, 3.0], [4.0, 7.0]], "block[(0),()]")
    >>> np.average(x, axis=0, weights=[3, 1]).to_global()
    array([1., 4.])
    """
    modes = modes_of_mean(axis, len(x.distribution.shape))
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = elementwise("average", lambda block: np.full_like(block, extents_of(x, modes)), (result,), {})
        return (result, count) if returned else result
    if np.shape(weights) != x.distribution.shape:
        weights = weights_along(weights, x.distribution.shape, axis, modes)
    given = weights.local.dtype if isinstance(weights, Distributed) else np.asarray(weights).dtype
    dtype = np.result_type(x.local.dtype, given, *(["f8"] if x.local.dtype.kind in "biu" else []))
    heavy = elementwise("average", np.multiply, (x, weights), {"dtype": dtype})
    ones = elementwise("average", lambda block, weight: np.full_like(block, weight, dtype), (x, weights), {})
    total, scale = (reductions.sum(each, axis, keepdims=keepdims) for each in (heavy, ones))
    if reductions.any(elementwise("average", np.equal, (scale, 0), {})):
        raise ZeroDivisionError("the weights of an average sum to zero")
    result = elementwise("average", np.true_divide, (total, scale), {})
    return (result, scale) if returned else result


def weights_along(weights: Any, shape: tuple[int, ...], axis: Axis, modes: tuple[int, ...]) -> Any:
    """Weights along some modes, of extent 1 along all others, so that they broadcast to the shape."""
    if axis is None:
        raise TypeError(
            f"weights have the tensor's shape, {shape}, not {np.shape(weights)}\n"
            "name axis=, the modes that they belong to"
        )
    extents = tuple([shape[mode] for mode in modes])
    if np.shape(weights) != extents:
        raise ValueError(f"weights along axis {axis} have the shape {extents}, not {np.shape(weights)}")
    ordered = np.permute_dims(weights, np.argsort(modes).tolist())
    return np.reshape(ordered, [n if mode in modes else 1 for mode, n in enumerate(shape)])
