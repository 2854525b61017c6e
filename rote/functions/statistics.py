"""Means, variances, ranges and covariances, by the names of the array API standard and of NumPy.

A mean is a sum, divided by the number of elements. A variance takes two passes: the mean, then the mean of the squares
of the deviations. NaNs are left out as 0 in sums, and are not counted. Covariances are contractions of the deviations
of several variables.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.layout import as_layout
from . import reductions
from .distributed import Array, Distributed
from .elementwise import elementwise
from .likes import astype
from .products import conjugate, matmul
from .rearranging.joining import concat
from .rearranging.reshaping import expand_dims, permute_dims, reshape
from .reductions import UNSET, Axis, LayoutLike, Over, computed_in, filled, finished, in_layout, reduce_by
from .rules import family, follows

__all__ = ["average", "corrcoef", "cov", "mean", "nanmean", "nanstd", "nanvar", "ptp", "std", "var", "weights_along"]


def _mean(
    name: str,
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
    own = None if x.local.dtype.kind in "fc" else np.dtype("f8")
    computed = computed_in(own if dtype is None else dtype, x.local.dtype, out)
    element = x.local.dtype if computed is None else as_dtype(computed)
    skips = name == "nanmean" and own is None
    if skips:
        _check_inexact(x, dtype, out)
    over = reductions.over(x, axis, keepdims, layout) if skips else _over_mean(x, axis, keepdims, layout)
    counted = skips or not (where is UNSET or where is True)
    if counted and over.layout is not None and over.layout.partial:  # contributions are not divided by counts
        over = over._replace(layout=None)
    numbers = filled(x, 0) if skips else x
    if exact:
        total = reductions.sum(numbers, axis, element, None, keepdims, where=where, layout=over.layout, exact=True)
    else:
        total = reduce_by("mean", np.add, "sum", reductions.masked(numbers, where, 0), over, element)
    if not counted:
        total = _divided(total, _number(x, over), out)
    else:
        count = reductions.number_of(name, _not_nan if skips else _everywhere, x, axis, keepdims=keepdims, where=where)
        total = in_layout(name, elementwise(name, _quotient, (total, count), {}), layout)
    return finished(name, total, out)


@follows("reduction", np.mean)
@family(_mean)
def mean() -> None:
    """The mean over some modes, or all; for integers it is in double precision. Arguments and errors as for `sum`.

    Raises:
        TypeError: `dtype` or `out` is of integers, and the elements are not.

    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").mean())
    3.0
    """


@follows("reduction", np.nanmean)
@family(_mean)
def nanmean() -> None:
    """The mean of the elements that are not NaN; arguments and errors as for `mean`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanmean(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    2.0
    """


def _spread(
    name: str,
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
    if name[-3:] == "std" and layout is not None and as_layout(layout).partial:
        raise LayoutError(f"a standard deviation is no sum of contributions, as {layout} has them; write x.var(…)")
    less = _freedom(ddof, correction)
    written = None if name == "nanstd" else out  # NumPy casts its variance, not the numbers
    if name[:3] == "nan" and (x.local.dtype.kind in "fc" or where is not UNSET or mean is not UNSET):
        variance = _variance_of_numbers(x, axis, dtype, written, less, keepdims, where, mean, layout)
    else:
        for option, value in (("where", where), ("mean", mean)):
            if value is not UNSET and value is not True:
                hint = f"write var(x.to_global(), {option}=…) or nanvar(x)"
                raise TypeError(f"{option}= of a variance is not answered; {hint}")
        variance = _variance(name, x, _over_mean(x, axis, keepdims, layout), dtype, less, written)
    if name == "nanstd" and out is not None:
        _check_inexact(x, None, out)
        variance = variance.astype(np.result_type(variance.local.dtype, out.local.dtype))
    result = _root_of(variance, out) if name[-3:] == "std" else variance
    return finished(name, result, out, casting="same_kind" if name == "nanstd" else "unsafe")


@follows("reduction", np.var)
@family(_spread)
def var() -> None:
    """The variance over some modes, or all, in two passes: the mean, then the squares of the deviations.

    Args:
        ddof, correction: two names for the number that is subtracted from the number of elements. The other arguments
            are those of `sum`.

    Raises:
        TypeError: `where` or `mean` is given.
        ValueError: `ddof` and `correction` are both given.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").var(correction=1))
    3.3333333333333335
    """


@follows("reduction", np.std)
@family(_spread)
def std() -> None:
    """The standard deviation over some modes, or all: the square root of `var`; arguments and errors as for `var`.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").std(axis=1).to_global()
    array([0.5, 1.5])
    """


@follows("reduction", np.nanvar)
@family(_spread)
def nanvar() -> None:
    """The variance of the elements that are not NaN, in two passes.

    Arguments and errors as for `var`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanvar(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    1.0
    """


@follows("reduction", np.nanstd)
@family(_spread)
def nanstd() -> None:
    """The standard deviation of the elements that are not NaN: the root of `nanvar`.

    Arguments and errors as for `var`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanstd(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    1.0
    """


def _variance(name: str, x: Distributed, over: Over, dtype: npt.DTypeLike | None, less: float, out: Any) -> Any:
    modes = over.modes
    x = reductions.reducible(name, x, modes, "")
    computed = np.dtype("f8") if dtype is None and x.local.dtype.kind in "biu" else dtype
    element = x.local.dtype if computed is None else as_dtype(computed)
    count = _number(x, over)
    where = reductions.reduced(x.distribution, over, "sum")
    # If each rank has all elements that its results need, NumPy's own function is faster.
    alone = not where.moves and not where.target.layout.partial
    if alone and x.local.size and less < count and not isinstance(out, Distributed):

        def whole(block: Any, axis: tuple[int, ...] | None) -> Any:
            return block.var(axis, computed, ddof=less, keepdims=over.keepdims)

        return reductions.combined(name, reductions.contributed(x, modes, where, whole), where)
    # In double precision at least, so that elements which are all equal do not deviate from the mean of ranks' sums.
    summed = np.promote_types(element, "f8") if element.kind in "fc" else element
    centre = reduce_by(name, np.add, "sum", x, Over(modes, True), summed)
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
        return beyond.sum(axis=axis, dtype=computed_in(computed, beyond.dtype, out), keepdims=over.keepdims)

    return _divided(
        reductions.combined(name, reductions.contributed(x, modes, where, local), where), max(count - less, 0), out
    )


def _variance_of_numbers(
    x: Distributed,
    axis: Axis,
    dtype: npt.DTypeLike | None,
    out: Any,
    less: float,
    keepdims: bool,
    where: Any,
    mean: Any,
    layout: LayoutLike,
) -> Any:
    """The variance of the elements that are not NaN, around a mean, if it is given."""
    _check_inexact(x, dtype, out)
    wide = np.promote_types(x.local.dtype if dtype is None else dtype, "f8")  # as in `_variance`
    centre = nanmean(x, axis, wide, None, True, where) if mean is UNSET else mean
    beyond = elementwise("nanvar", np.subtract, (x, centre), {})
    if x.local.dtype.kind in "fc":
        beyond = beyond.astype(x.local.dtype)
    squares = elementwise("nanvar", _square_of_numbers, (beyond, x), {})  # that of an infinity is NaN, and counts
    computed = computed_in(dtype, squares.local.dtype, out)
    total = reductions.sum(squares, axis, computed, None, keepdims, UNSET, where)
    count = reductions.number_of("isnan", _not_nan, x, axis, keepdims=keepdims, where=where)
    count = elementwise("nanvar", lambda n: np.where(n > less, n - less, np.nan), (count,), {})
    return in_layout("nanvar", elementwise("nanvar", _quotient, (total, count), {}), layout)


def _square_of_numbers(beyond: Array, block: Array) -> Array:
    """Squared magnitudes of deviations; zero for elements that are NaN."""
    return np.where(np.isnan(block), beyond.real.dtype.type(0), (beyond * beyond.conj()).real)


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
    over = _over_mean(x, axis, keepdims)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        if not returned:
            return result
        return result, elementwise("average", lambda block: np.full_like(block, _number(x, over)), (result,), {})
    if np.shape(weights) != x.distribution.shape:
        weights = weights_along(weights, x.distribution.shape, axis, over.modes)
    kind = weights.local.dtype if isinstance(weights, Distributed) else np.asarray(weights).dtype
    dtype = np.result_type(x.local.dtype, kind, *(["f8"] if x.local.dtype.kind in "biu" else []))
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


def _check_inexact(x: Distributed, dtype: npt.DTypeLike | None, out: Any) -> None:
    """Refuse an integer dtype or `out` for means of floating-point or complex numbers, as NumPy does."""
    if x.local.dtype.kind not in "fc":
        return
    for name, kind in (("dtype", dtype), ("out", out.local.dtype if isinstance(out, Distributed) else None)):
        if kind is not None and as_dtype(kind).kind not in "fc":
            raise TypeError(f"{name} is {as_dtype(kind)}, but a mean of {x.local.dtype} is inexact")


def _root_of(variance: Any, out: Any) -> Any:
    """The square root in the dtype of the variance; as in NumPy, refused for integers unless they are one number."""
    if out is None and not variance.distribution.shape:
        variance.local[...] = np.sqrt(variance.local)
    else:
        np.sqrt(variance.local, out=variance.local)
    return variance


def _freedom(ddof: float, correction: Any) -> Any:
    """The number that is subtracted from the number of elements; it has two names."""
    if correction is UNSET or correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction are two names of one number; give one of them")
    return correction


def _quotient(total: Array, count: Array) -> Array:
    return np.asarray(np.true_divide(total, count)).astype(total.dtype, copy=False)


def _over_mean(x: Distributed, axis: Axis, keepdims: bool, layout: LayoutLike = None) -> Over:
    """The arguments of a mean, whose elements NumPy counts: for order 0, it refuses the axes 0 and -1."""
    if not x.distribution.shape and isinstance(axis, int):
        axis = (axis,)
    return reductions.over(x, axis, keepdims, layout)


def _number(x: Distributed, over: Over) -> int:
    """The number of elements that are reduced to one element of the result."""
    return prod([x.distribution.shape[mode] for mode in over.modes])


def _everywhere(block: Array) -> Array:
    return np.ones(block.shape, bool)


def _not_nan(block: Array) -> Array:
    return ~np.isnan(block)


def _divided(total: Any, count: float, out: Any) -> Any:
    """A new tensor divided by a number, in the dtype of `out` if given, because NumPy keeps the total in `out`."""
    lay = total.distribution.layout
    if lay.op == "prod":  # dividing each factor would divide the product several times
        total = in_layout("mean", total, replace(lay, partial=(), op="sum"))
    if isinstance(out, Distributed) and out.local.dtype != total.local.dtype:
        total = elementwise("mean", lambda block: block.astype(out.local.dtype), (total,), {})
    _divide(total, count)
    return in_layout("mean", total, lay)


def _divide(x: Any, count: float) -> None:
    """Divide a new tensor in place."""
    np.true_divide(x.local, count, out=x.local, casting="unsafe")


# --- covariances -----------------------------------------------------------------------------------------------------


@follows("contracted", np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Any:
    """The covariances of variables, as `numpy.cov`. Collective.

    If observations are split over ranks, each rank contracts its own, and the k x k sums are added up. If variables are
    split, one of two copies of them is made whole.

    Args:
        m: a vector of observations of one variable, or a matrix: a row is a variable, and a column an observation.
        y: more variables, of as many observations.
        rowvar: False for a matrix whose columns are the variables.
        bias, ddof: the divisor is the number of observations less `ddof`, which is 0 if `bias` is true, else 1.
        fweights: how often each observation is counted, as integers.
        aweights: the weight of each observation.
        dtype: of the result; in double precision at least if None.

    Raises:
        LayoutError: a tensor has three modes or more, or `y` has other observations.
        TypeError: `fweights` are not integers.
        ValueError: weights are negative, or there is not one for each observation.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], "block[(0),()]")
    >>> cov(x, rowvar=False).to_global()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    x = _variables(m, y, rowvar, dtype)
    count = x.distribution.shape[1]
    weights = [_weights(each, count, name) for each, name in ((fweights, "fweights"), (aweights, "aweights"))]
    present = [each for each in weights if each is not None]
    freedom = int(not bias) if ddof is None else ddof
    if not present:
        return _products(_centred(x), None, float(count - freedom))
    both = np.prod(present, axis=0) if len(present) > 1 else present[0]
    total = float(np.sum(both))
    lost = freedom if weights[1] is None else freedom * float(np.sum(both * weights[1])) / total
    centred = elementwise("cov", np.subtract, (x, expand_dims(average(x, 1, both), 1)), {})
    return _products(centred, both, total - lost)


@follows("contracted", np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: npt.DTypeLike | None = None) -> Any:
    """The correlations of variables, as `numpy.corrcoef`, between -1 and 1; arguments and moves as for `cov`.

    Raises:
        LayoutError: a tensor has three modes or more, or `y` has other observations.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], "block[(0),()]")
    >>> corrcoef(x, rowvar=False).to_global().round(12)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    centred = _centred(_variables(x, y, rowvar, dtype))
    squares = elementwise("corrcoef", lambda block: (block * block.conj()).real, (centred,), {})
    lengths = elementwise("corrcoef", np.sqrt, (reductions.sum(squares, 1, keepdims=True),), {})
    some = float(centred.distribution.shape[1] > 0)  # of no observations, the correlations are 0 by 0
    scaled = _products(elementwise("corrcoef", np.divide, (centred, lengths), {}), None, some)

    def limited(block: Any) -> Any:
        if block.dtype.kind == "c":
            return block.real.clip(-1, 1) + 1j * block.imag.clip(-1, 1)
        return block.clip(-1, 1)

    return elementwise("corrcoef", limited, (scaled,), {})


def _variables(m: Any, y: Any, rowvar: bool, dtype: npt.DTypeLike | None) -> Any:
    """The variables as rows, in the dtype of the result."""
    matrices = [each for each in (m, y) if each is not None]
    orders = [np.ndim(each) for each in matrices]
    if max(orders) > 2:
        raise LayoutError(f"covariances are of matrices, not of tensors of order {max(orders)}; write x.reshape(k, -1)")
    if dtype is None:
        dtype = np.result_type("f8", *[each.dtype for each in map(_as_numbers, matrices)])
    rows: list[Any] = []
    for each, order in zip(matrices, orders, strict=True):
        if order < 2:
            rows.append(np.reshape(each, (1, -1)))
        else:
            rows.append(each if rowvar else np.permute_dims(each, (1, 0)))
    if len({row.shape[1] for row in rows}) > 1:
        raise LayoutError(f"the variables have {rows[0].shape[1]} and {rows[1].shape[1]} observations, not as many")
    return astype(rows[0] if len(rows) == 1 else concat(rows, axis=0), dtype)


def _as_numbers(values: Any) -> Any:
    return values if isinstance(values, Distributed) else np.asarray(values)


def _weights(values: Any, count: int, name: str) -> Any:
    """The weights of observations, or how often each is counted, checked as by NumPy; None if not given."""
    if values is None:
        return None
    weights = _as_numbers(values)
    if weights.shape != (count,):
        raise ValueError(f"{name} are one number for each of {count} observations, not of shape {weights.shape}")
    if name == "fweights" and not bool(np.all(np.round(weights) == weights)):
        raise TypeError("fweights are integers: how often an observation is counted\nwrite aweights= for other weights")
    if bool(np.any(weights < 0)):
        raise ValueError(f"{name} are not negative")
    return weights


def _centred(x: Any) -> Any:
    """Observations less the mean of their variable."""
    return elementwise("cov", np.subtract, (x, mean(x, 1, keepdims=True)), {})


def _products(x: Any, weights: Any, divisor: float) -> Any:
    """The products of all pairs of rows, divided; a number if there is one row."""
    other = x if weights is None else elementwise("cov", np.multiply, (x, weights), {})
    product = matmul(x, permute_dims(conjugate(other)))
    with np.errstate(divide="ignore", invalid="ignore"):  # of fewer observations than `ddof`
        share = np.divide(1.0, max(divisor, 0.0)).astype(product.local.real.dtype)
    scaled = elementwise("cov", np.multiply, (product, share), {})
    return reshape(scaled, ()) if scaled.distribution.shape == (1, 1) else scaled
