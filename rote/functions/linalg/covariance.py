"""Covariances and correlations of variables: contractions of centred observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import LayoutError
from ..distributed import Distributed
from ..elements.blockwise import elementwise
from ..elements.likes import astype
from ..rearranging.joining import concat
from ..rearranging.reshaping import expand_dims, permute_dims, reshape
from ..reducing import reductions
from ..reducing.statistics import average, mean
from ..rules import follows
from .products import conjugate, matmul

__all__ = ["corrcoef", "cov"]


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
    given = [each for each in weights if each is not None]
    freedom = int(not bias) if ddof is None else ddof
    if not given:
        return _products(_centred(x), None, float(count - freedom))
    both = np.prod(given, axis=0) if len(given) > 1 else given[0]
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
    given = [each for each in (m, y) if each is not None]
    orders = [np.ndim(each) for each in given]
    if max(orders) > 2:
        raise LayoutError(f"covariances are of matrices, not of tensors of order {max(orders)}; write x.reshape(k, -1)")
    if dtype is None:
        dtype = np.result_type("f8", *[each.dtype for each in map(_as_numbers, given)])
    rows: list[Any] = []
    for each, order in zip(given, orders, strict=True):
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
