"""The array API standard (2024.12) for tensors that are distributed over ranks: `import rote.array_api as xp`.

The rule of each function (`rote.functions.rules`) gives the layout of its result, and says what moves. Functions that
make tensors take `layout=`, `grid=` and `comm=` in addition to the standard's arguments.

Beside a tensor, functions of several operands take Python's numbers, and arrays that every rank holds whole. A call
without any tensor raises TypeError; `astype` alone returns an array for an array, which xarray needs.

>>> import rote.array_api as xp
>>> x = xp.linspace(0, 4, 5)
>>> print(xp.sqrt(x).to_global())
[0.         1.         1.41421356 1.73205081 2.        ]
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import numpy as np

from ..functions.creation import astype, empty_like, full_like, meshgrid, ones_like, tril, triu, zeros_like
from ..functions.elementwise import *  # whose list of names is that of the standard
from ..functions.facts import can_cast, finfo, iinfo, isdtype, result_type
from ..functions.orthogonal import matrix_transpose
from ..functions.products import einsum, matmul, tensordot, vecdot
from ..functions.quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from ..functions.rearranging import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    pad,
    permute_dims,
    repeat,
    roll,
    sliding_window_view,
    squeeze,
    stack,
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
from ..functions.sorting import (
    argsort,
    isin,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from ..functions.statistics import mean, nanmean, nanstd, nanvar, std, var
from ..lazy import attach
from .creation import DTYPES, NamespaceInfo, arange, asarray, empty, eye, from_dlpack, full, linspace, ones, zeros

if TYPE_CHECKING:
    from . import fft, linalg
else:
    __getattr__, __dir__ = attach(__name__, {"": "fft linalg"})

__array_api_version__ = "2024.12"

e: Final = np.e
inf: Final = np.inf
nan: Final = np.nan
pi: Final = np.pi
newaxis: Final = None

lib: Final = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))
"""The part of `numpy.lib` that xarray looks up here for windows."""

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, *_floating = DTYPES.values()
float32, float64, complex64, complex128 = _floating


def __array_namespace_info__() -> NamespaceInfo:
    """The dtypes, devices and capabilities of the namespace."""
    return NamespaceInfo()


__all__ = ["abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin"]
__all__ += ["asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift"]
__all__ += ["bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_to", "can_cast"]
__all__ += ["ceil", "clip", "complex64", "complex128", "concat", "conj", "copysign", "cos", "cosh", "count_nonzero"]
__all__ += ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "einsum", "empty"]
__all__ += ["empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "fft", "finfo", "flip", "float32", "float64"]
__all__ += ["floor", "floor_divide", "from_dlpack", "full", "full_like", "gradient", "greater", "greater_equal"]
__all__ += ["hypot", "iinfo", "imag", "inf", "int8", "int16", "int32", "int64", "isdtype", "isfinite", "isin", "isinf"]
__all__ += ["isnan", "less", "less_equal", "lib", "linalg", "linspace", "log", "log1p", "log2", "log10", "logaddexp"]
__all__ += ["logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum"]
__all__ += ["mean", "median", "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "nanargmax", "nanargmin"]
__all__ += ["nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod"]
__all__ += ["nanquantile", "nanstd", "nansum", "nanvar", "negative", "newaxis", "nextafter", "nonzero", "not_equal"]
__all__ += ["ones", "ones_like", "pad", "percentile", "permute_dims", "pi", "positive", "pow", "prod", "quantile"]
__all__ += ["real", "reciprocal", "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted"]
__all__ += ["sign", "signbit", "sin", "sinh", "sliding_window_view", "sort", "sqrt", "square", "squeeze", "stack"]
__all__ += ["std", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "transpose"]
__all__ += ["tril", "triu", "trunc", "uint8", "uint16", "uint32", "uint64", "unique_all", "unique_counts"]
__all__ += ["unique_inverse", "unique_values", "unravel_index", "unstack", "var", "vecdot", "where", "zeros"]
__all__ += ["zeros_like"]
