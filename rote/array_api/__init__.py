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

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from ..functions import elementwise as _elementwise
from ..functions import scans as _scans
from ..functions.creation import astype, empty_like, full_like, meshgrid, ones_like, tril, triu, zeros_like
from ..functions.elementwise import *  # whose list of names is the standard's, as that of scans
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
from ..functions.scans import *
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


__all__ = ["all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "astype", "bool", "broadcast_arrays"]
__all__ += [
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "concat",
    "count_nonzero",
    "cross",
    "e",
    "einsum",
    "empty",
]
__all__ += ["empty_like", "expand_dims", "eye", "fft", "finfo", "flip", "float32", "float64", "from_dlpack"]
__all__ += ["full", "full_like", "iinfo", "inf", "int8", "int16", "int32", "int64", "isdtype", "isin", "lib", "linalg"]
__all__ += ["linspace", "matmul", "matrix_transpose", "max", "mean", "median", "meshgrid", "min", "moveaxis", "nan"]
__all__ += ["nanargmax", "nanargmin", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod"]
__all__ += ["nanquantile", "nanstd", "nansum", "nanvar", "newaxis", "nonzero", "ones", "ones_like", "pad", "percentile"]
__all__ += ["permute_dims", "pi", "prod", "quantile", "repeat", "reshape", "result_type", "roll", "searchsorted"]
__all__ += ["sliding_window_view", "sort", "squeeze", "stack", "std", "sum", "take", "take_along_axis", "tensordot"]
__all__ += ["tile", "transpose", "tril", "triu", "uint8", "uint16", "uint32", "uint64", "unique_all", "unique_counts"]
__all__ += ["unique_inverse", "unique_values", "unravel_index", "unstack", "var", "vecdot", "zeros", "zeros_like"]
__all__ += _elementwise.__all__
__all__ += _scans.__all__
