"""Functions of tensors, each with a rule that says how its result is distributed.

How a function of tensors runs: `rules.follows` enters it into the tables under its names. A call refuses what is no
tensor; notes which call is under way, so that the ranks can compare their calls before the first message (`moves`);
brings operands to layouts that it can compute on (`alignment`); computes blocks; and wraps them as tensors, or as parts
of its argument (`distributed`).

Each module is an attribute of this package, and is imported on first use. `load` imports
the one that answers for a function of NumPy, or all, so that the tables are complete.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..lazy import attach

# The modules, and the functions of NumPy for which each answers: it is imported when the first of them is called.
_ANSWERS = {
    "creation": "astype copy empty_like full_like meshgrid ones_like tril triu zeros_like",
    "elementwise": "angle around clip copyto fix i0 imag isclose iscomplex isneginf isposinf isreal nan_to_num real "
    "round sinc where",
    "facts": "allclose array_equal array_equiv can_cast common_type iscomplexobj isrealobj may_share_memory ndim "
    "result_type shape shares_memory size",
    "indexing": "",
    "joining": "append atleast_1d atleast_2d atleast_3d block column_stack concatenate dstack hstack stack vstack",
    "masks": "compress extract fill_diagonal place put_along_axis putmask select",
    "matrices": "cholesky cond det diag diagonal eigh eigvalsh inv matrix_norm matrix_power norm slogdet solve trace "
    "vector_norm",
    "orthogonal": "lstsq matrix_rank matrix_transpose pinv qr svd svdvals",
    "products": "cross dot einsum einsum_path inner matmul matvec multi_dot outer tensordot vdot vecdot vecmat",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "rearranging": "array_split broadcast_arrays broadcast_to dsplit expand_dims flip fliplr flipud hsplit moveaxis "
    "pad repeat roll rot90 sliding_window_view split squeeze swapaxes tile transpose unstack vsplit",
    "reductions": "all amax amin any argmax argmin count_nonzero max min nanargmax nanargmin nanmax nanmin nanprod "
    "nansum prod sum ufunc.reduce",
    "reshaping": "argwhere flatnonzero nonzero ravel reshape unravel_index",
    "samples": "convolve correlate interp polyval trapezoid",
    "scans": "cumprod cumsum cumulative_prod cumulative_sum diff gradient nancumprod nancumsum ufunc.accumulate",
    "sets": "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort digitize isin searchsorted sort take take_along_axis",
    "statistics": "average bincount corrcoef cov histogram histogram_bin_edges mean nanmean nanstd nanvar ptp std var",
}
ANSWERING = {name: module for module, names in _ANSWERS.items() for name in names.split()}
"""The module that answers for a function of NumPy, by the function's name; all are imported for other names."""


@cache
def load(module: str | None = None) -> None:
    """Import a module of functions; all if none is named."""
    for name in _ANSWERS if module is None else (module,):
        __import__(f"{__name__}.{name}")


if TYPE_CHECKING:  # what the table above says to Python, name by name
    from . import (
        creation,
        elementwise,
        facts,
        indexing,
        joining,
        masks,
        matrices,
        orthogonal,
        products,
        quantiles,
        rearranging,
        reductions,
        reshaping,
        samples,
        scans,
        sets,
        sorting,
        statistics,
    )
else:
    __getattr__, __dir__ = attach(__name__, {"": " ".join(_ANSWERS)})

__all__ = ["creation", "elementwise", "facts", "indexing", "joining", "masks", "matrices", "orthogonal", "products"]
__all__ += ["quantiles", "rearranging", "reductions", "reshaping", "samples", "scans", "sets", "sorting", "statistics"]
