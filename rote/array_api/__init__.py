"""The array API standard (2024.12) for tensors that are distributed over ranks: `import rote.array_api as xp`.

The rule of each function (`rote.functions.rules`) gives the layout of its result, and says what moves. Functions that
make tensors take `layout=`, `grid=` and `comm=` in addition to the standard's arguments.

Beside a tensor, functions of several operands take Python's numbers, and arrays that every rank holds whole. A call
without any tensor raises TypeError; only `astype` returns an array for an array, which xarray needs.

>>> import rote.array_api as xp
>>> x = xp.linspace(0, 4, 5)
>>> print(xp.sqrt(x).to_global())
[0.         1.         1.41421356 1.73205081 2.        ]
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from ..functions.creation import astype, empty_like, full_like, meshgrid, ones_like, tril, triu, zeros_like
from ..functions.elementwise import *  # noqa: F403 - its list of names is the standard's
from ..functions.facts import can_cast, finfo, iinfo, isdtype, result_type
from ..functions.joining import concat, stack
from ..functions.orthogonal import matrix_transpose
from ..functions.products import cross, einsum, matmul, tensordot, vecdot
from ..functions.quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from ..functions.rearranging import (
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    flip,
    moveaxis,
    pad,
    permute_dims,
    repeat,
    roll,
    sliding_window_view,
    squeeze,
    tile,
    transpose,
    unstack,
)
from ..functions.reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    nanargmax,
    nanargmin,
    nanmax,
    nanmin,
    nanprod,
    nansum,
    prod,
    sum,
)
from ..functions.reshaping import nonzero, reshape, unravel_index
from ..functions.scans import cumprod, cumsum, cumulative_prod, cumulative_sum, diff, gradient, nancumprod, nancumsum
from ..functions.sets import unique_all, unique_counts, unique_inverse, unique_values
from ..functions.sorting import argsort, isin, searchsorted, sort, take, take_along_axis
from ..functions.statistics import mean, nanmean, nanstd, nanvar, std, var
from ..lazy import attach
from .creation import DTYPES, NamespaceInfo, arange, asarray, empty, eye, from_dlpack, full, linspace, ones, zeros

if TYPE_CHECKING:
    from . import fft, linalg, special
else:
    __getattr__, __dir__ = attach(__name__, {"": "fft linalg special"})

__array_api_version__ = "2024.12"

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
pi: Final = math.pi
newaxis: Final = None

lib: Final = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))
"""The part of `numpy.lib` that xarray looks up here for windows."""

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, *_floating = DTYPES.values()
float32, float64, complex64, complex128 = _floating


def __array_namespace_info__() -> NamespaceInfo:
    """The dtypes, devices and capabilities of the namespace."""
    return NamespaceInfo()


# ruff: noqa: F405 - some of these names come by the star import; type checkers read this list, and no sum of two
__all__ = ["abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin"]
__all__ += ["asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift"]
__all__ += ["bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_to"]
__all__ += ["can_cast", "ceil", "clip", "complex64", "complex128", "concat", "conj", "copysign", "cos", "cosh"]
__all__ += ["count_nonzero", "cross", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "divide", "e"]
__all__ += ["einsum", "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "fft", "finfo", "flip"]
__all__ += ["float32", "float64", "floor", "floor_divide", "from_dlpack", "full", "full_like", "gradient", "greater"]
__all__ += ["greater_equal", "hypot", "iinfo", "imag", "inf", "int8", "int16", "int32", "int64", "isdtype"]
__all__ += ["isfinite", "isin", "isinf", "isnan", "less", "less_equal", "lib", "linalg", "linspace", "log", "log1p"]
__all__ += ["log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul"]
__all__ += ["matrix_transpose", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "moveaxis"]
__all__ += ["multiply", "nan", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian"]
__all__ += ["nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "negative", "newaxis"]
__all__ += ["nextafter", "nonzero", "not_equal", "ones", "ones_like", "pad", "percentile", "permute_dims", "pi"]
__all__ += ["positive", "pow", "prod", "quantile", "real", "reciprocal", "remainder", "repeat", "reshape"]
__all__ += ["result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sliding_window_view"]
__all__ += ["sort", "special", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take"]
__all__ += ["take_along_axis", "tan", "tanh", "tensordot", "tile", "transpose", "tril", "triu", "trunc", "uint8"]
__all__ += ["uint16", "uint32", "uint64", "unique_all", "unique_counts", "unique_inverse", "unique_values"]
__all__ += ["unravel_index", "unstack", "var", "vecdot", "where", "zeros", "zeros_like"]
