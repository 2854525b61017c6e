"""The array API standard (2024.12) for tensors that are distributed over ranks: `import rote.array_api as xp`.

Every function says by its rule where its result lies and what moves (`rote.functions.rules`); functions that
make tensors take `layout=`, `grid=` and `comm=` beside the standard's arguments.

Beside a tensor, functions of several operands take Python's numbers, and arrays that every rank holds whole. A call
without any tensor raises TypeError; `astype` alone returns an array for an array, which xarray needs.

>>> import rote.array_api as xp
>>> x = xp.linspace(0, 4, 5)
>>> print(xp.sqrt(x).to_global())
[0.         1.         1.41421356 1.73205081 2.        ]
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import numpy as np

from ..functions.elements.dtypes import *  # noqa: F403 - as below
from ..functions.elements.elementwise import *  # noqa: F403 - its names are those of the standard
from ..functions.elements.likes import astype as astype
from ..functions.elements.likes import empty_like as empty_like
from ..functions.elements.likes import full_like as full_like
from ..functions.elements.likes import meshgrid as meshgrid
from ..functions.elements.likes import ones_like as ones_like
from ..functions.elements.likes import tril as tril
from ..functions.elements.likes import triu as triu
from ..functions.elements.likes import zeros_like as zeros_like
from ..functions.linalg.matrices import matrix_transpose as matrix_transpose
from ..functions.linalg.products import einsum as einsum
from ..functions.linalg.products import matmul as matmul
from ..functions.linalg.products import tensordot as tensordot
from ..functions.linalg.products import vecdot as vecdot
from ..functions.rearranging.joining import concat as concat
from ..functions.rearranging.joining import stack as stack
from ..functions.rearranging.joining import unstack as unstack
from ..functions.rearranging.ordering import nonzero as nonzero
from ..functions.rearranging.ordering import unravel_index as unravel_index
from ..functions.rearranging.placing import broadcast_arrays as broadcast_arrays
from ..functions.rearranging.placing import broadcast_to as broadcast_to
from ..functions.rearranging.placing import flip as flip
from ..functions.rearranging.placing import pad as pad
from ..functions.rearranging.placing import repeat as repeat
from ..functions.rearranging.placing import roll as roll
from ..functions.rearranging.placing import sliding_window_view
from ..functions.rearranging.placing import tile as tile
from ..functions.rearranging.reshaping import expand_dims as expand_dims
from ..functions.rearranging.reshaping import moveaxis as moveaxis
from ..functions.rearranging.reshaping import permute_dims as permute_dims
from ..functions.rearranging.reshaping import reshape as reshape
from ..functions.rearranging.reshaping import squeeze as squeeze
from ..functions.rearranging.reshaping import transpose as transpose
from ..functions.reducing.extrema import argmax as argmax
from ..functions.reducing.extrema import argmin as argmin
from ..functions.reducing.nan import nanargmax as nanargmax
from ..functions.reducing.nan import nanargmin as nanargmin
from ..functions.reducing.nan import nancumprod as nancumprod
from ..functions.reducing.nan import nancumsum as nancumsum
from ..functions.reducing.nan import nanmax as nanmax
from ..functions.reducing.nan import nanmean as nanmean
from ..functions.reducing.nan import nanmin as nanmin
from ..functions.reducing.nan import nanprod as nanprod
from ..functions.reducing.nan import nanstd as nanstd
from ..functions.reducing.nan import nansum as nansum
from ..functions.reducing.nan import nanvar as nanvar
from ..functions.reducing.reductions import all as all
from ..functions.reducing.reductions import any as any
from ..functions.reducing.reductions import count_nonzero as count_nonzero
from ..functions.reducing.reductions import max as max
from ..functions.reducing.reductions import min as min
from ..functions.reducing.reductions import prod as prod
from ..functions.reducing.reductions import sum as sum
from ..functions.reducing.scans import cumprod as cumprod
from ..functions.reducing.scans import cumsum as cumsum
from ..functions.reducing.scans import cumulative_prod as cumulative_prod
from ..functions.reducing.scans import cumulative_sum as cumulative_sum
from ..functions.reducing.scans import diff as diff
from ..functions.reducing.scans import gradient as gradient
from ..functions.reducing.statistics import mean as mean
from ..functions.reducing.statistics import std as std
from ..functions.reducing.statistics import var as var
from ..functions.sorts.quantiles import median as median
from ..functions.sorts.quantiles import nanmedian as nanmedian
from ..functions.sorts.quantiles import nanpercentile as nanpercentile
from ..functions.sorts.quantiles import nanquantile as nanquantile
from ..functions.sorts.quantiles import percentile as percentile
from ..functions.sorts.quantiles import quantile as quantile
from ..functions.sorts.sets import unique_all as unique_all
from ..functions.sorts.sets import unique_counts as unique_counts
from ..functions.sorts.sets import unique_inverse as unique_inverse
from ..functions.sorts.sets import unique_values as unique_values
from ..functions.sorts.sorting import argsort as argsort
from ..functions.sorts.sorting import isin as isin
from ..functions.sorts.sorting import searchsorted as searchsorted
from ..functions.sorts.sorting import sort as sort
from ..functions.sorts.sorting import take as take
from ..functions.sorts.sorting import take_along_axis as take_along_axis
from .creation import *  # noqa: F403
from .info import DTYPES, NamespaceInfo

if TYPE_CHECKING:
    from . import fft as fft
    from . import linalg as linalg

__array_api_version__ = "2024.12"

e: Final = np.e
inf: Final = np.inf
nan: Final = np.nan
pi: Final = np.pi
newaxis: Final = None

lib: Final = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))
"""The part of `numpy.lib` that xarray looks up here for windows."""

bool: Final = DTYPES["bool"]
int8: Final = DTYPES["int8"]
int16: Final = DTYPES["int16"]
int32: Final = DTYPES["int32"]
int64: Final = DTYPES["int64"]
uint8: Final = DTYPES["uint8"]
uint16: Final = DTYPES["uint16"]
uint32: Final = DTYPES["uint32"]
uint64: Final = DTYPES["uint64"]
float32: Final = DTYPES["float32"]
float64: Final = DTYPES["float64"]
complex64: Final = DTYPES["complex64"]
complex128: Final = DTYPES["complex128"]


def __array_namespace_info__() -> NamespaceInfo:
    """The dtypes, devices and capabilities of the namespace."""
    return NamespaceInfo()


if not TYPE_CHECKING:  # with it, type checkers would accept any misspelt function

    def __getattr__(name):
        """Import an extension on first use."""
        if name == "fft":
            return import_module("rote.array_api.fft")
        if name == "linalg":
            return import_module("rote.array_api.linalg")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the namespace and of its extensions."""
    inside = {
        "annotations",
        "import_module",
        "np",
        "TYPE_CHECKING",
        "DTYPES",
        "NamespaceInfo",
        "Final",
        "SimpleNamespace",
    }
    return sorted({*globals(), "fft", "linalg"} - inside)
