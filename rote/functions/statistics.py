"""Means, variances, covariances and histograms, by the names of the array API standard and of NumPy.

A mean is a sum, divided by the number of elements. A variance takes two passes: the mean, then the mean of the squares
of the deviations. NaNs are left out as 0 in sums, and are not counted. Covariances are contractions of the deviations
of several variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_tuple

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.layout import Layout, as_layout
from ..runtime.arrays import as_array
from . import reductions
from .alignment import plain, replicated
from .creation import astype, full_like
from .distributed import Array, Distributed, T
from .elementwise import elementwise
from .exact import chunks, exact_sums_by_bin, rounds_once
from .indexing import known
from .joining import concat
from .moves import moved, redistributed
from .products import conjugate, matmul
from .rearranging import permute_dims
from .reductions import UNSET, Axis, LayoutLike, ReducedModes, computed_in, finished, in_layout, taken, unordered
from .reshaping import compressed, reshape
from .rules import Member, family, follows, of_one, without_nans

__all__ = [
    "average",
    "bincount",
    "corrcoef",
    "cov",
    "histogram",
    "histogram_bin_edges",
    "mean",
    "nanmean",
    "nanstd",
    "nanvar",
    "ptp",
    "std",
]
__all__ += ["var", "weights_along", "weights_of"]


def _mean(
    member: Member,
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
    default = None if x.local.dtype.kind in "fc" else np.dtype("f8")
    computed = computed_in(default if dtype is None else dtype, x.local.dtype, out)
    element = x.local.dtype if computed is None else as_dtype(computed)
    along = _reduced_modes(member, x, axis, keepdims, layout, dtype, out)
    x, where = taken(member, x, where)
    if where is not UNSET:
        along = _divisible(along)

    if exact:
        total = reductions.sum(x, axis, element, None, keepdims, where=where, layout=along.layout, exact=True)
    else:
        total = reductions.reduce_by("mean", np.add, "sum", reductions.masked(x, where, 0), along, element)
    means = in_layout(member.name, _divided(total, _number(x, along, where), out), layout)
    return finished(member.name, means, out)


@family("reduction", _mean, Member("mean"), np.mean)
def mean() -> None:
    """The mean over some modes, or all; for integers it is in double precision. Arguments and errors as for `sum`.

    Raises
    ------
    TypeError
        `dtype` or `out` is of integers, and the elements are not.

    Examples
    --------
    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").mean())
    3.0
    """


nanmean: Final = without_nans("reduction", _mean, Member("nanmean"), 2.0)


def _spread(
    member: Member,
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
    if member.root and layout is not None and as_layout(layout).partial:
        raise LayoutError(f"a standard deviation is no sum of contributions, as {layout} has them; write x.var(…)")
    if correction is not UNSET and correction is not None:
        if ddof != 0:
            raise ValueError("ddof and correction are two names of one number; give one of them")
        ddof = correction
    if type(ddof) is not int and (np.ndim(ddof) or np.asarray(ddof).dtype.kind not in "biuf"):
        raise TypeError(f"ddof, or correction, is one real number, not {ddof!r}")
    mean = UNSET if mean is None else mean

    # Of `nanstd` NumPy casts the variance to the dtype of `out`; of the others it computes in that dtype.
    cast_last = member.root and member.skips_nan
    written = None if cast_last else out
    along = _reduced_modes(member, x, axis, keepdims, layout, dtype, written)
    variance = in_layout(member.name, _variance(member, x, along, dtype, ddof, written, where, mean), layout)
    if cast_last and out is not None:
        _check_inexact(x, None, out)
        variance = variance.astype(np.result_type(variance.local.dtype, out.local.dtype))

    if member.root:
        if out is None and not variance.distribution.shape:  # NumPy refuses a root of integers, but not of one number
            variance.local[...] = np.sqrt(variance.local)
        else:
            np.sqrt(variance.local, out=variance.local)
    return finished(member.name, variance, out, casting="same_kind" if cast_last else "unsafe")


@family("reduction", _spread, Member("var"), np.var)
def var() -> None:
    """The variance over some modes, or all, in two passes: the mean, then the squares of the deviations.

    The other arguments are those of `sum`.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | tuple[int, ...], optional
        One mode, several, or None for all.
    ddof : float, default 0
        The number that is subtracted from the number of elements.
    keepdims : bool, default False
        Whether reduced modes stay, with extent 1.
    mean : array_like, optional
        The mean, with extent 1 along the reduced modes, if it is known.
    correction : float, optional
        Another name of `ddof`.

    Raises
    ------
    ValueError
        `ddof` and `correction` are both given.
    TypeError
        Of a variance without NaNs, `dtype` or `out` is of integers, and the elements are not.
    LayoutError
        `layout` or `out` does not fit the result.

    Examples
    --------
    >>> from rote import DistTensor
    >>> float(DistTensor.from_global([1, 2, 4, 5], "block[(0)]").var(correction=1))
    3.3333333333333335
    """


@family("reduction", _spread, Member("std", root=True), np.std)
def std() -> None:
    """The standard deviation over some modes, or all: the square root of `var`; arguments and errors as for `var`.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").std(axis=1).to_global()
    array([0.5, 1.5])
    """


nanvar: Final = without_nans("reduction", _spread, Member("nanvar"), 1.0)
nanstd: Final = without_nans("reduction", _spread, Member("nanstd", root=True), 1.0)


def _variance(
    member: Member, x: Distributed, along: ReducedModes, dtype: Any, less: float, out: Any, where: Any, centre: Any
) -> Any:
    """The variance of the elements under a mask, around `centre`, or around their mean if it is UNSET."""
    name, numbers_only = member.name, member.skips_nan and x.local.dtype.kind in "fc"
    x, where = taken(member, reductions.reducible(name, x, along.modes, ""), where)
    computed = np.dtype("f8") if dtype is None and x.local.dtype.kind in "biu" else dtype
    element = x.local.dtype if computed is None else as_dtype(computed)
    count, ends = _number(x, along, where), reductions.reduced(x.distribution, along, "sum")

    # If each rank has all elements that its results need, NumPy's own function is faster.
    complete = where is UNSET and centre is UNSET and not ends.moves and not ends.target.layout.partial
    if complete and x.local.size and less < count and not isinstance(out, Distributed):

        def whole(block: Any, axis: tuple[int, ...] | None) -> Any:
            return block.var(axis, computed, ddof=less, keepdims=along.keepdims)

        return reductions.combined(name, reductions.contributed(x, along.modes, ends, whole), ends)

    aligned = centre is UNSET and where is UNSET  # the mean then lies where the elements do
    if centre is UNSET:
        # In double precision at least, so that elements that are all equal do not deviate from the mean of ranks' sums.
        summed = np.promote_types(element, "f8") if element.kind in "fc" else element
        viewed = x.distribution.layout.view is not None  # so all modes are reduced, to one number, which has no view
        around = ReducedModes(along.modes, keepdims=not viewed)
        total = reductions.reduce_by(name, np.add, "sum", reductions.masked(x, where, 0), around, summed)
        centre = _divided(total, _number(x, around, where), None).astype(element)
        if viewed:
            centre = centre.local.sum()  # outside the root, there is none, and no element
        elif aligned:
            centre = centre.local

    def square(block: Array, middle: Array) -> Array:
        beyond = np.asarray(np.subtract(block, middle))
        if numbers_only:  # as in NumPy, whatever the dtype of the sum
            beyond = beyond.astype(block.dtype, copy=False)
        if beyond.dtype.kind == "c":
            return np.asarray(beyond.real**2 + beyond.imag**2)
        squares: Array = np.multiply(beyond, beyond, out=beyond)
        return squares

    squares = x._with(square(x.local, centre)) if aligned else elementwise(name, square, (x, centre), {})
    if where is UNSET:
        count = max(count - less, 0)
    else:
        along, fewest = _divisible(along), np.nan if numbers_only else 0
        count = elementwise(name, lambda n: np.where(n > less, n - less, fewest), (count,), {})
    computed = computed_in(computed, squares.local.dtype, out)
    total = reductions.reduce_by(name, np.add, "sum", reductions.masked(squares, where, 0), along, computed)
    return _divided(total, count, out)


@of_one
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
    if axis is not None:
        axis = normalize_axis_tuple(axis, len(x.distribution.shape))
    along = reductions.reduced_modes(x, axis, keepdims, None)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        if not returned:
            return result
        return result, full_like(result, _number(x, along))

    if np.shape(weights) != x.distribution.shape:
        weights = weights_along(weights, x.distribution.shape, axis, along.modes)
    dtype = np.result_type(x.local.dtype, _dtype_of(weights), *(["f8"] if x.local.dtype.kind in "biu" else []))
    heavy = elementwise("average", np.multiply, (x, weights), {"dtype": dtype})
    ones = elementwise("average", lambda block, weight: np.full_like(block, weight, dtype), (x, weights), {})
    total, scale = (reductions.sum(terms, axis, keepdims=keepdims) for terms in (heavy, ones))
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


def _reduced_modes(
    member: Member, x: Distributed, axis: Axis, keepdims: bool, layout: LayoutLike, dtype: Any, out: Any
) -> ReducedModes:
    """The arguments of a mean. NumPy counts the elements of one, and refuses the axes 0 and -1 of order 0."""
    if member.skips_nan and x.local.dtype.kind in "fc":  # which it sums
        _check_inexact(x, dtype, out)
    elif not x.distribution.shape and isinstance(axis, int):
        axis = (axis,)
    return reductions.reduced_modes(x, axis, keepdims, layout)


def _divisible(along: ReducedModes) -> ReducedModes:
    """The arguments of a sum that is divided by a tensor: its contributions would each need the counts of all."""
    return along._replace(layout=None) if along.layout is not None and along.layout.partial else along


def _number(x: Distributed, along: ReducedModes, where: Any = UNSET) -> Any:
    """The number of elements that are reduced to each element of the result: a tensor, if there is a mask."""
    if where is UNSET:
        return prod([x.distribution.shape[mode] for mode in along.modes])
    counted = elementwise("where", lambda block, mask: np.broadcast_to(mask, block.shape).astype(bool), (x, where), {})
    return reductions.sum(counted, along.modes, keepdims=along.keepdims)


def _divided(total: Any, count: Any, out: Any) -> Any:
    """A new tensor divided by numbers, in the dtype of `out` if given, because NumPy keeps the total in `out`."""
    lay = total.distribution.layout
    if lay.op == "prod":  # dividing each factor would divide the product several times
        total = in_layout("mean", total, replace(lay, partial=(), op="sum"))
    if isinstance(out, Distributed) and out.local.dtype != total.local.dtype:
        total = elementwise("mean", lambda block: block.astype(out.local.dtype), (total,), {})
    if isinstance(count, Distributed):
        count = redistributed(count, total.distribution.layout, "mean", total.distribution.grid).local
    np.true_divide(total.local, count, out=total.local, casting="unsafe")
    return in_layout("mean", total, lay)


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
    """The covariances of variables, as `numpy.cov`, in double precision at least. Collective.

    If observations are split over ranks, each rank contracts its own, and the k x k sums are added up. If variables are
    split, one of two copies of them is made whole.

    Raises:
        LayoutError: a tensor has three modes or more, or `y` has other observations.
        TypeError: `fweights` are not integers, `aweights` not real, or `dtype` is of integers.
        ValueError: weights are negative, there is not one for each observation, or `ddof` is not an integer.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], "block[(0),()]")
    >>> cov(x, rowvar=False).to_global()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof is an integer, not {ddof}")
    x = _variables(m, y, rowvar, dtype)
    count = x.distribution.shape[1]
    counted, heavy = _weights(fweights, count, "fweights"), _weights(aweights, count, "aweights")
    weights = [weight for weight in (counted, heavy) if weight is not None]
    both = np.prod(weights, axis=0) if len(weights) > 1 else next(iter(weights), None)

    total = float(count) if both is None else float(np.sum(both))
    lost = float(not bias) if ddof is None else float(ddof)
    if heavy is not None:
        lost *= float(np.sum(both * heavy)) / total
    return _products(_centred(x, both), both, total - lost)


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
    matrices = [matrix for matrix in (m, y) if matrix is not None]
    orders = [*map(np.ndim, matrices)]
    if max(orders) > 2:
        raise LayoutError(f"covariances are of matrices, not of tensors of order {max(orders)}; write x.reshape(k, -1)")
    if dtype is None:
        dtype = np.result_type("f8", *map(_dtype_of, matrices))
    elif as_dtype(dtype).kind not in "fc":
        raise TypeError(f"covariances are not of {as_dtype(dtype)}; write dtype='f8'")

    rows: list[Any] = []
    for matrix, order in zip(matrices, orders, strict=True):
        if order < 2:
            rows.append(np.reshape(matrix, (1, -1)))
        else:
            rows.append(matrix if rowvar else np.permute_dims(matrix, (1, 0)))
    if len({row.shape[1] for row in rows}) > 1:
        raise LayoutError(f"the variables have {rows[0].shape[1]} and {rows[1].shape[1]} observations, not as many")
    return astype(rows[0] if len(rows) == 1 else concat(rows, axis=0), dtype)


def _weights(values: Any, count: int, name: str) -> Any:
    """The weights of observations, or how often each is counted, checked as by NumPy; None if not given."""
    if values is None:
        return None
    weights: Any = values if isinstance(values, Distributed) else as_array(values)
    if weights.shape != (count,):
        raise ValueError(f"{name} are one number for each of {count} observations, not of shape {weights.shape}")
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"{name} are real numbers, not of {weights.dtype}")
    if name == "fweights" and not bool(np.all(np.round(weights) == weights)):
        raise TypeError("fweights are integers: how often an observation is counted\nwrite aweights= for other weights")
    if bool(np.any(weights < 0)):
        raise ValueError(f"{name} are not negative")
    return weights


def _dtype_of(values: Any) -> np.dtype[Any]:
    return values.local.dtype if isinstance(values, Distributed) else np.asarray(values).dtype


def _centred(x: Any, weights: Any = None) -> Any:
    return elementwise("cov", np.subtract, (x, average(x, 1, weights, keepdims=True)), {})


def _products(x: Any, weights: Any, divisor: float) -> Any:
    """The products of all pairs of rows, divided; a number if there is one row."""
    other = x if weights is None else elementwise("cov", np.multiply, (x, weights), {})
    product = matmul(x, permute_dims(conjugate(other)))
    with np.errstate(divide="ignore", invalid="ignore"):  # of fewer observations than `ddof`
        share = np.divide(1.0, max(divisor, 0.0)).astype(product.local.real.dtype)
    scaled = elementwise("cov", np.multiply, (product, share), {})
    return reshape(scaled, ()) if scaled.distribution.shape == (1, 1) else scaled


# --- counts and histograms --------------------------------------------------------------------------------------------


@of_one
@follows("reduction", np.bincount)
def bincount(x: Distributed, /, weights: Any = None, minlength: int = 0) -> Any:
    """The count of each integer from 0 in a tensor of order 1, replicated, as `numpy.bincount`."""
    x = plain(x, "bincount")
    order, numbers = len(x.distribution.shape), x.local.dtype.kind in "biu" and x.distribution.shape != (0,)
    least, most = map(int, _ends(x)) if numbers else (0, -1)  # which all ranks know, so all raise the error of one
    if x.local.dtype.kind not in "biu" or order != 1 or least < 0 or most > np.iinfo(np.int64).max:
        hint = "" if order == 1 else "\nwrite bincount(x.ravel()), or histogram(x, …), which takes any order"
        raise ValueError(f"bincount counts the integers from 0 on of a tensor of order 1{hint}")

    masses = None if weights is None else weights_of(weights, x).local
    np.bincount([0], None if masses is None else np.zeros(1, masses.dtype), minlength)  # raises NumPy's errors
    counts = np.bincount(x.local.astype(np.int64, copy=False), masses, max(minlength, most + 1))
    kind = np.int64 if weights is None or x.distribution.shape == (0,) else np.float64  # NumPy's; a block may be empty
    return _summed(x, counts.astype(kind, copy=False), "bincount")


@follows("reduction", np.histogram)
def histogram(
    a: Distributed, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The number of elements in each bin, and the edges of the bins, both replicated, as `numpy.histogram`.

    With weights it is the sum of the weights in each bin, which is rounded once: it has the same bits on any number of
    ranks. Rules such as `bins="auto"` are applied to the elements of all ranks; "stone" is not among them.

    Raises:
        TypeError: the elements are complex; or a rule for the number of bins is to take weights.
        ValueError: there are no such bins, or the weights have another shape than the tensor.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([0.5, 1.5, 2.5], "block[(0)]")
    >>> np.histogram(x, [0, 1, 2, 3], weights=[1e20, 1.0, 2.0])[0].to_global()
    array([1.e+20, 1.e+00, 2.e+00])
    """
    a, bins, range = _countable(a, bins, range, weights)
    x = plain(a, "histogram")
    masses = None if weights is None else weights_of(weights, x).local.reshape(-1)
    edges, ends = _edges(x, bins, range)
    values = x.local.reshape(-1)

    if masses is not None:

        def numbers(chunk: slice) -> Any:
            return _bin_numbers(values[chunk], edges, ends)

        total = _sums_by_bin("histogram", x, masses, numbers, len(edges) - 1)
    else:
        if range is not None and ends is not None and values.dtype.kind in "iu":
            # Beyond 2**53 an edge, which is a double, may equal a number that is outside.
            values = values[(values >= ends[0]) & (values <= ends[1])]
        total = _summed(x, np.histogram(values, edges)[0], "histogram")

    if density:
        total = total._with(total.local / np.diff(edges).astype(float) / total.local.sum())
    return total, replicated(edges, total)


@follows("reduction", np.histogram_bin_edges)
def histogram_bin_edges(a: Distributed, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of `histogram`, replicated; arguments and errors as for it.

    >>> from rote import DistTensor
    >>> np.histogram_bin_edges(DistTensor.from_global([1.0, 5.0], "block[(0)]"), 2).to_global()
    array([1., 3., 5.])
    """
    x, bins, range = _countable(a, bins, range, weights)
    return replicated(_edges(plain(x, "histogram"), bins, range)[0], x)


def _countable(x: Any, bins: Any, range: Any, weights: Any) -> tuple[Any, Any, tuple[Any, Any] | None]:
    """The elements that are counted, and bins and range that all ranks know.

    What is wrong is refused as by NumPy, before any message is sent but those by which ranks get to know the bins.
    """
    if x.local.dtype.kind == "c":
        raise unordered("numpy.histogram")
    if x.local.dtype.kind == "b":
        x = astype(x, np.uint8)  # as in NumPy

    bins = known(bins)
    if isinstance(bins, str) and bins not in _WIDTHS:
        raise ValueError(f"bins are by one of {', '.join(map(repr, _WIDTHS))}, not {bins!r}")
    if isinstance(bins, str) and weights is not None:
        raise TypeError("rules for bins are for data without weights\nwrite a number of bins")

    if range is not None and not np.ndim(bins):
        try:
            first, last = range
        except (TypeError, ValueError) as error:
            raise type(error)(f"range is two numbers, the ends of all bins, not {range!r}") from None
        range = known(first), known(last)
    np.histogram(np.empty(0, x.local.dtype), 1 if isinstance(bins, str) else bins, range)  # raises NumPy's errors
    return x, bins, range


def _edges(x: Any, bins: Any, range: tuple[Any, Any] | None) -> tuple[Array, tuple[Any, Any] | None]:
    """The edges of bins; and the least and the largest element in any, if the bins are equal."""
    if np.ndim(bins):
        return as_array(bins), None

    if range is not None:
        first, last = range
    elif 0 in x.distribution.shape:
        first, last = 0, 1
    else:
        kind = x.local.dtype if x.local.dtype.kind == "f" else np.dtype(np.float64)
        first, last = map(kind.type, _ends(x))
    ends = (first, last) if first != last else (first - 0.5, last + 0.5)

    if isinstance(bins, str):
        bins = _number_of_bins(x, bins, ends, range is not None)
    return np.histogram_bin_edges(np.empty(0, x.local.dtype), bins, ends), ends


def _bin_numbers(values: Array, edges: Array, ends: tuple[Any, Any] | None) -> Any:
    """The number of each value's bin, and that of bins for a value in none; the last bin includes its end, as in NumPy.

    Args:
        ends: the least and the largest value in any bin, if the bins are equal.
    """
    count = len(edges) - 1
    if ends is None:
        order = np.argsort(values)  # neighbours are then found next to each other, which is faster
        numbers = np.empty_like(order)
        numbers[order] = np.searchsorted(edges, values[order], "right") - 1
        numbers[values == edges[-1]] = count - 1
        return np.where(numbers < 0, count, numbers)

    # Where equal bins begin is computed, to one bin; then their edges decide.
    inside = (values >= ends[0]) & (values <= ends[1])
    values = values.astype(edges.dtype, copy=False)
    wide = values.astype(np.promote_types(edges.dtype, "f8"), copy=False)
    with np.errstate(all="ignore"):
        place = (wide - edges[0]) / (edges[-1] - edges[0]) * count
    numbers = np.fmin(np.fmax(place, 0), count - 1).astype(np.intp)
    numbers -= values < edges[numbers]
    numbers += (values >= edges[numbers + 1]) & (numbers < count - 1)
    return np.where(inside, numbers, count)


def _sums_by_bin(name: str, x: Any, weights: Array, bins: Callable[[slice], Any], number: int) -> Any:
    """The sums of the weights in each bin, replicated, in their dtype; see `exact_sums_by_bin`."""
    if rounds_once(weights.dtype):
        return exact_sums_by_bin(name, x, weights, bins, number)
    sums = np.zeros(number + 1, weights.dtype)
    for chunk in chunks(len(weights)):
        np.add.at(sums, bins(chunk), weights[chunk])
    return _summed(x, sums[:-1], name)


def _fd(x: Any, n: int, spread: float) -> float:
    quartiles: Any = np.percentile(x, [75, 25])
    return float(2.0 * np.subtract(*quartiles.to_global()) / n ** (1.0 / 3.0))


def _doane(x: Any, n: int, spread: float) -> float:
    deviation = float(std(x))
    if n <= 2 or deviation <= 0:
        return 0.0
    skewness = float(mean(((x - float(mean(x))) / deviation) ** 3))
    expected = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return float(spread / (1.0 + np.log2(n) + np.log2(1.0 + abs(skewness) / expected)))


def _auto(fd: float, sturges: float, sqrt: float) -> float:
    """The width by the rule "auto" of the installed NumPy; older ones have another for equal quartiles."""
    if len(np.histogram_bin_edges([0.0] * 99 + [1.0], "auto")) > 10:
        return min(max(fd, sqrt / 2), sturges)
    return min(fd, sturges) if fd else sturges


# The widths of bins that NumPy's rules give, from a tensor, the number of its elements and their range.
_WIDTHS: dict[str, Callable[[Any, int, float], float]] = {
    "sqrt": lambda x, n, spread: spread / np.sqrt(n),
    "sturges": lambda x, n, spread: spread / (np.log2(n) + 1.0),
    "rice": lambda x, n, spread: spread / (2.0 * n ** (1.0 / 3)),
    "scott": lambda x, n, spread: (24.0 * np.pi**0.5 / n) ** (1.0 / 3.0) * float(std(x)),
    "fd": _fd,
    "doane": _doane,
    "auto": lambda x, n, spread: _auto(*[_WIDTHS[rule](x, n, spread) for rule in ("fd", "sturges", "sqrt")]),
}


def _number_of_bins(x: Any, rule: str, ends: tuple[Any, Any], limited: bool) -> int:
    """The number of bins by a rule of `numpy.histogram_bin_edges`, from the elements of all ranks between two ends."""
    first, last = ends
    if limited:
        x = compressed(x, x._with((x.local >= first) & (x.local <= last)), "histogram")
    n = prod(x.distribution.shape)
    if n == 0:
        return 1

    least, most = map(float, _ends(x))
    width = _WIDTHS[rule](x, n, most - least)
    if x.local.dtype.kind in "iu" and 0 < width < 1:
        width = 1
    return int(np.ceil((last - first) / width)) if width else 1


def _ends(x: Any) -> list[Any]:
    """The least and the largest element, the same on all ranks."""
    return [extreme(x).to_global()[()] for extreme in (reductions.min, reductions.max)]


def weights_of(values: Any, x: Distributed, name: str = "weights") -> Distributed:
    """Weights of elements, a tensor or an array that all ranks have, moved to the layout of the plain tensor x."""
    if not isinstance(values, Distributed):
        values = replicated(values, x)
    if values.distribution.shape != x.distribution.shape:
        raise ValueError(f"weights have the shape of the tensor, {x.distribution.shape}")
    weights: Distributed = moved(values, x.distribution.layout, name, x.distribution.grid)
    return weights


def _summed(x: T, counts: Array, name: str) -> T:
    """The sum of all ranks' counts, replicated; as in any reduction, this is a move that the user has asked for."""
    split = tuple([split.grid_mode for split in chain(*x.distribution.splits)])
    partial = Layout(((),), partial=split).on(counts.shape, x.distribution.grid)
    total = x._on(counts, partial)
    return redistributed(total, Layout(((),)), name) if split else total
