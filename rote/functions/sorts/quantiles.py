"""Medians, quantiles and percentiles: by NumPy if lines are whole on ranks, else after a distributed sort."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ...caches import memoized
from ...errors import LayoutError
from ...layout.layout import Layout
from ..alignment import made_whole, plain
from ..distributed import Array, Distributed
from ..moves import because
from ..rearranging.indexing import known
from ..rearranging.reshaping import expand_dims, moveaxis, reshape
from ..reducing.extrema import unordered
from ..reducing.reduction import Axis, finished
from ..rules import follows
from .sorting import sort, sortable, take

__all__ = ["median", "percentile", "quantile"]

# Per interpolating method, alpha and beta of Hyndman and Fan (1996): the ends of a line are the quantiles
# (1 - alpha) / (n + 1 - alpha - beta) and (n - beta) / (n + 1 - alpha - beta).
_INTERPOLATING = {
    "linear": (1.0, 1.0),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
_ROUNDING = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}


class _Statistic(NamedTuple):
    """A statistic of lines of elements, computed from whole lines or from sorted ones."""

    order: int  # how many modes its values have before those of the lines
    of_lines: Callable[[Array, int], Any]  # its values, from a block and the mode along which the lines run
    places: Callable[[int], Array]  # from the length of a line, the places in the sorted line that it needs
    of_places: Callable[[Array, int], Any]  # its values, from the elements there, along mode 0, and that length


_MEDIAN = _Statistic(
    0,
    lambda block, mode: np.median(block, mode),
    lambda n: np.unique([(n - 1) // 2, n // 2]),
    lambda values, n: np.mean(values, 0),
)


@follows("sorted", np.median)
def median(
    a: Distributed, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The median along some modes, or of all: the middle element, or the mean of the middle two. Collective.

    Args:
        axis: the modes, all of them if None.
        out: a tensor for the result.
        overwrite_input: has no effect; the tensor stays as it is.
        keepdims: whether these modes stay, with extent 1.

    Raises:
        TypeError: the elements are complex.

    >>> from rote import DistTensor
    >>> np.median(DistTensor.from_global([[1.0, 9.0, 2.0], [4.0, 3.0, 8.0]], "block[(0),()]"), axis=1).to_global()
    array([2., 4.])
    """
    return _of_lines("median", a, _MEDIAN, axis, out, keepdims)


@follows("sorted", np.quantile)
def quantile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: None = None,
) -> Any:
    """Quantiles of the elements along some modes, or of all. Collective.

    If ranks can hold whole lines, each calls `numpy.quantile`. Otherwise the elements are sorted over the ranks, none
    of which holds all, and the method must be one that interpolates or takes a neighbour.

    Args:
        q: a number from 0 to 1, or an array of them, whose mode is the first of the result.
        axis, out, overwrite_input, keepdims: as for `median`.
        method: a method of `numpy.quantile`.

    Raises:
        TypeError: the elements are complex, or there are weights.
        ValueError: a number is not from 0 to 1, or there is no such method.
        LayoutError: lines are split, and the method neither interpolates nor takes a neighbour.

    >>> from rote import DistTensor
    >>> np.quantile(DistTensor.from_global([5.0, 1.0, 2.0, 4.0], "block[(0)]"), [0.5, 1]).to_global()
    array([3., 5.])
    """
    return _of_lines("quantile", a, _quantiles("quantile", a, q, 1, method, weights), axis, out, keepdims)


@follows("sorted", np.percentile)
def percentile(
    a: Distributed,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: None = None,
) -> Any:
    """Quantiles with q in percent, from 0 to 100. Collective; arguments and errors as for `quantile`."""
    return _of_lines("percentile", a, _quantiles("percentile", a, q, 100, method, weights), axis, out, keepdims)


def _quantiles(name: str, a: Distributed, q: Any, whole: int, method: str, weights: Any) -> _Statistic:
    """Quantiles by NumPy's function of this name; `whole` is the q of the greatest element.

    That function, called on a line of one element, checks q and the method, and gives the dtype of the result.
    """
    if weights is not None:
        raise TypeError(f"{name} takes no weights")
    function, q = getattr(np, name), known(q)
    own = a.local.dtype
    kind = function(np.ones(1, own if own.kind != "c" else float), q, method=method).dtype

    integral = method == "linear" and whole == 1 and np.asarray(q).dtype.kind in "iu"
    taken = method in _ROUNDING or (integral and (np.ndim(q) > 0 or _takes_ends()))

    def places(n: int) -> Array:
        below = np.floor(_numbers(name, np.asarray(q) / whole, n, method)).ravel()
        return np.concatenate([below, below if taken else below + 1]).clip(0, n - 1).astype(np.int64)

    def of_places(values: Array, n: int) -> Any:
        numbers = _numbers(name, np.asarray(q) / whole, n, method)
        low, high = values.reshape(2, *numbers.shape, *values.shape[1:])
        if taken:  # interpolating would multiply an infinite neighbour by 0
            return low
        part = (numbers - np.floor(numbers)).astype(kind).reshape(numbers.shape + (1,) * (values.ndim - 1))
        return np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part)).astype(kind)

    return _Statistic(np.ndim(q), lambda block, mode: function(block, q, mode, method=method), places, of_places)


@memoized(1)
def _takes_ends() -> bool:
    """Whether the NumPy that is installed takes the least element for q=0 even if infinity is next to it."""
    with np.errstate(invalid="ignore"):
        return bool(np.quantile([0.0, np.inf], 0) == 0)


def _numbers(name: str, q: Array, n: int, method: str) -> Array:
    """The places of quantiles among n sorted elements, from 0: at an element, between two, or beyond the ends."""
    if method in _ROUNDING:
        return np.asarray(_ROUNDING[method]((n - 1) * q))
    if method == "midpoint":
        return np.asarray((np.floor((n - 1) * q) + np.ceil((n - 1) * q)) / 2)
    if method not in _INTERPOLATING:
        raise LayoutError(
            f"{name} by {method!r} takes lines that are whole on a rank\n"
            f"write numpy.{name}(x.to_global(), …), or a method that interpolates: {', '.join(_INTERPOLATING)}"
        )
    alpha, beta = _INTERPOLATING[method]
    return np.asarray(n * q + (alpha + q * (1 - alpha - beta)) - 1)


def _of_lines(name: str, a: Distributed, statistic: _Statistic, axis: Axis, out: Any, keepdims: Any) -> Any:
    """A statistic of the elements along some modes; it keeps the layout that the other modes then have."""
    if a.local.dtype.kind == "c":
        raise unordered(f"numpy.{name}")
    shape = a.distribution.shape
    modes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    with because(name):
        x, mode = _as_one(plain(a, name), modes)
        x, mode = sortable(x, mode, name)
        if x.distribution.splits[mode]:
            n = x.distribution.shape[mode]
            places = statistic.places(n)
            x = made_whole(take(sort(x, mode), [*places, n - 1], axis=mode), (mode,), name)
            *values, last = np.moveaxis(x.local, mode, 0)
            block = statistic.of_places(np.array(values), n)
            block = np.where(np.isnan(last), last, block).astype(block.dtype, copy=False)  # NaN sorts last
        else:
            block = np.asarray(statistic.of_lines(x.local, mode))
        lay, extents = x.distribution.layout, x.distribution.shape
        rest = Layout(((),) * statistic.order + lay.modes[:mode] + lay.modes[mode + 1 :])
        sizes = (*block.shape[: statistic.order], *extents[:mode], *extents[mode + 1 :])
        result: Any = x._on(np.asarray(block, order="C"), rest.on(sizes, x.distribution.grid))
        if keepdims:
            result = expand_dims(result, tuple([statistic.order + m for m in modes]))
        return finished(name, result, out)


def _as_one(x: Distributed, modes: tuple[int, ...]) -> tuple[Distributed, int]:
    """A plain tensor with several modes joined into one, the last, and that mode's number; one mode stays as it is."""
    if len(modes) == 1:
        return x, modes[0]
    shape = x.distribution.shape
    first = len(shape) - len(modes)
    last = moveaxis(x, modes, tuple(range(first, len(shape))))
    return reshape(last, (*last.distribution.shape[:first], prod([shape[m] for m in modes]))), first
