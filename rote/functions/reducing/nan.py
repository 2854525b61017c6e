"""Reductions and scans that leave NaNs out, under NumPy's names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_dtype
from ...grammar.nodes import Op
from ...runtime.copy.regions import identity
from ..distributed import Array, Distributed
from ..elements.blockwise import elementwise
from ..rules import follows
from . import extrema, reductions, scans, statistics
from .reduction import UNSET, Axis, computed_in, finished

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd"]
__all__ += ["nansum", "nanvar"]


@follows("reduction", np.nansum)
def nansum(x: Distributed, /, *args: Any, **options: Any) -> Any:
    """The sum of the elements that are not NaN; arguments as for `sum`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nansum(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    4.0
    """
    return reductions.sum(_filled(x, 0), *args, **options)


@follows("reduction", np.nanprod)
def nanprod(x: Distributed, /, *args: Any, **options: Any) -> Any:
    """The product of the elements that are not NaN; arguments as for `sum`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanprod(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    3.0
    """
    return reductions.prod(_filled(x, 1), *args, **options)


@follows("along", np.nancumsum)
def nancumsum(a: Distributed, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: Any = None) -> Any:
    """The cumulative sum, in which a NaN counts as 0; arguments and errors as for `cumsum`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nancumsum(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    [1.0, 1.0, 4.0]
    """
    return scans.cumsum(_filled(a, 0), axis, dtype, out)


@follows("along", np.nancumprod)
def nancumprod(a: Distributed, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: Any = None) -> Any:
    """The cumulative product, in which a NaN counts as 1; arguments and errors as for `cumsum`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nancumprod(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    [1.0, 1.0, 3.0]
    """
    return scans.cumprod(_filled(a, 1), axis, dtype, out)


@follows("reduction", np.nanargmax)
def nanargmax(x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The index of the largest element that is not NaN. Arguments and errors as for `argmax`.

    Raises:
        ValueError: a slice along the axis has only NaNs.

    >>> from rote import DistTensor
    >>> int(np.nanargmax(DistTensor.from_global([3.0, np.nan, 7.0], "block[(0)]")))
    2
    """
    return extrema.argmax(_numbers_first("max", x, axis), axis, out, keepdims=keepdims)


@follows("reduction", np.nanargmin)
def nanargmin(x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The index of the smallest element that is not NaN. Arguments and errors as for `nanargmax`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanargmin(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    0
    """
    return extrema.argmin(_numbers_first("min", x, axis), axis, out, keepdims=keepdims)


def _numbers_first(op: Op, x: Distributed, axis: int | None) -> Any:
    """The tensor with numbers beyond all others in place of NaNs; refused if a slice has no number."""
    if x.local.dtype.kind != "f":
        return x
    if reductions.any(reductions.all(elementwise("isnan", np.isnan, (x,), {}), axis)):
        raise ValueError("All-NaN slice encountered")
    return _filled(x, identity(op, x.local.dtype))


@follows("reduction", np.nanmax)
def nanmax(x: Distributed, /, *args: Any, **options: Any) -> Any:
    """The largest element that is not NaN; NaN, with a warning, if there is none. Arguments as for `max`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanmax(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    3.0
    """
    return _extreme("max", x, *args, **options)


@follows("reduction", np.nanmin)
def nanmin(x: Distributed, /, *args: Any, **options: Any) -> Any:
    """The smallest element that is not NaN; NaN, with a warning, if there is none. Arguments as for `min`.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanmin(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    1.0
    """
    return _extreme("min", x, *args, **options)


def _extreme(
    op: Op,
    x: Distributed,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:
    reduce = reductions.max if op == "max" else reductions.min
    dtype = x.local.dtype
    if dtype.kind != "f":
        return reduce(x, axis, out, keepdims, initial, where)
    extreme = reduce(_filled(x, identity(op, dtype)), axis, None, keepdims, initial, where)
    if initial is UNSET:
        nothing = reductions.all(elementwise("isnan", np.isnan, (x,), {}), axis, None, keepdims, where)
        extreme = elementwise("where", np.where, (nothing, dtype.type(np.nan), extreme), {})
        if np.isnan(extreme.local).any():
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
    return finished(f"nan{op}", extreme, out)


@follows("reduction", np.nanmean)
def nanmean(
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = UNSET,
) -> Any:
    """The mean of the elements that are not NaN; arguments as for `mean`.

    Raises:
        TypeError: `dtype` or `out` is of integers, and the elements are not.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanmean(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    2.0
    """
    if x.local.dtype.kind in "biu":
        return statistics.mean(x, axis, dtype, out, keepdims, where)
    _check_inexact(x, dtype, out)
    total = nansum(x, axis, computed_in(dtype, x.local.dtype, out), None, keepdims, UNSET, where)
    result = elementwise("nanmean", np.true_divide, (total, _count(x, axis, keepdims, where)), {})
    return finished("nanmean", elementwise("nanmean", _as(total), (result,), {}), out)


@follows("reduction", np.nanvar)
def nanvar(
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
) -> Any:
    """The variance of the elements that are not NaN, in two passes; arguments as for `var`.

    Raises:
        TypeError: `dtype` or `out` is of integers, and the elements are not.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanvar(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    1.0
    """
    less = statistics.freedom(ddof, correction)
    if x.local.dtype.kind in "biu" and where is UNSET and mean is UNSET:
        return statistics.var(x, axis, dtype, out, less, keepdims)
    _check_inexact(x, dtype, out)
    wide = np.promote_types(x.local.dtype if dtype is None else dtype, "f8")  # as for `var`
    centre = nanmean(x, axis, wide, None, True, where) if mean is UNSET else mean
    beyond = elementwise("nanvar", np.subtract, (x, centre), {})
    if x.local.dtype.kind in "fc":
        beyond = beyond.astype(x.local.dtype)
    squares = elementwise("nanvar", _square_of_numbers, (beyond, x), {})  # that of an infinity is NaN, and counts
    asked = computed_in(dtype, squares.local.dtype, out)
    total = reductions.sum(squares, axis, asked, None, keepdims, UNSET, where)
    count = elementwise(
        "nanvar", lambda n: np.where(n > less, n - less, np.nan), (_count(x, axis, keepdims, where),), {}
    )
    result = elementwise("nanvar", np.true_divide, (total, count), {})
    return finished("nanvar", elementwise("nanvar", _as(total), (result,), {}), out)


@follows("reduction", np.nanstd)
def nanstd(x: Distributed, /, *args: Any, out: Any = None, **options: Any) -> Any:
    """The standard deviation of the elements that are not NaN: the root of `nanvar`, whose arguments it takes.

    Raises:
        TypeError: `dtype` or `out` is of integers, and the elements are not.

    >>> import numpy as np, rote.array_api as xp
    >>> xp.nanstd(xp.asarray([1.0, np.nan, 3.0])).to_global().tolist()
    1.0
    """
    variance = nanvar(x, *args, **options)
    if out is not None:
        _check_inexact(x, None, out)
        variance = variance.astype(np.result_type(variance.local.dtype, out.local.dtype))
    return finished("nanstd", statistics.root_of(variance, out), out, casting="same_kind")


def _check_inexact(x: Distributed, dtype: npt.DTypeLike | None, out: Any) -> None:
    """Refuse an integer dtype or `out` for means of floating-point or complex numbers, as NumPy does."""
    if x.local.dtype.kind not in "fc":
        return
    own = out.local.dtype if isinstance(out, Distributed) else None
    for name, element in (("dtype", dtype), ("out", own)):
        if element is not None and as_dtype(element).kind not in "fc":
            raise TypeError(f"{name} is {as_dtype(element)}, but a mean of {x.local.dtype} is inexact")


def _square_of_numbers(beyond: Array, block: Array) -> Array:
    """Squared magnitudes of deviations; zero for elements that are NaN."""
    return np.where(np.isnan(block), beyond.real.dtype.type(0), (beyond * beyond.conj()).real)


def _filled(x: Distributed, value: Any) -> Any:
    """The tensor with a value in place of NaNs."""
    if x.local.dtype.kind not in "fc":
        return x
    return elementwise("isnan", lambda block: np.where(np.isnan(block), block.dtype.type(value), block), (x,), {})


def _count(x: Distributed, axis: Axis, keepdims: bool, where: Any) -> Any:
    """The number of elements that are not NaN."""
    return reductions.number_of("isnan", lambda block: ~np.isnan(block), x, axis, keepdims=keepdims, where=where)


def _as(x: Any) -> Any:
    """A function that casts blocks to the dtype of a tensor."""
    return lambda block: block.astype(x.local.dtype)
