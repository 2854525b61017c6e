"""Functions of tensors, each with a rule that says how its result is distributed.

Each module is an attribute of this package, whatever subpackage it lies in. It is imported on first use, and then
enters its functions into the tables of `rules`; `load` imports one module, or all, so that the tables are complete.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .elements import agreed, blockwise, dtypes, elementwise, likes
    from .linalg import covariance, matrices, norms, orthogonal, products
    from .rearranging import assigning, indexing, joining, ordering, placing, reshaping
    from .reducing import extrema, nan, reductions, scans, statistics
    from .sorts import quantiles, sets, sorting

# The subpackage of each module; the imports above say the same to type checkers.
_HOME = {
    **dict.fromkeys(("agreed", "blockwise", "dtypes", "elementwise", "likes"), "elements"),
    **dict.fromkeys(("assigning", "indexing", "joining", "ordering", "placing", "reshaping"), "rearranging"),
    **dict.fromkeys(("extrema", "nan", "reductions", "scans", "statistics"), "reducing"),
    **dict.fromkeys(("quantiles", "sets", "sorting"), "sorts"),
    **dict.fromkeys(("covariance", "matrices", "norms", "orthogonal", "products"), "linalg"),
}

# The functions of NumPy that each module answers for; it is imported when the first of them is called.
_ANSWERS = {
    "agreed": "allclose array_equal array_equiv may_share_memory shares_memory",
    "covariance": "corrcoef cov",
    "dtypes": "can_cast common_type iscomplexobj isrealobj ndim result_type shape size",
    "elementwise": "angle around clip copyto fix i0 imag isclose iscomplex isneginf isposinf isreal nan_to_num real "
    "round sinc where",
    "extrema": "argmax argmin",
    "joining": "append array_split column_stack concatenate dsplit dstack hsplit hstack split stack unstack vsplit "
    "vstack",
    "likes": "astype copy empty_like full_like ones_like tril triu zeros_like",
    "matrices": "cholesky det diag diagonal eigh eigvalsh inv matrix_power matrix_transpose slogdet solve trace",
    "nan": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "norms": "cond matrix_norm norm vector_norm",
    "ordering": "argwhere flatnonzero nonzero unravel_index",
    "orthogonal": "matrix_rank pinv qr svd svdvals",
    "placing": "broadcast_arrays broadcast_to flip fliplr flipud pad repeat roll rot90 sliding_window_view tile",
    "products": "cross dot einsum inner matmul multi_dot outer tensordot vdot vecdot",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "reductions": "all amax amin any count_nonzero max min prod sum ufunc.reduce",
    "reshaping": "expand_dims moveaxis ravel reshape squeeze swapaxes transpose",
    "scans": "cumprod cumsum cumulative_prod cumulative_sum diff gradient ufunc.accumulate",
    "sets": "bincount histogram unique unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort digitize isin searchsorted sort take take_along_axis",
    "statistics": "average mean ptp std var",
}
ANSWERING = {name: module for module, names in _ANSWERS.items() for name in names.split()}
"""The module that answers for a function of NumPy, by the function's name; all are imported for other names."""

__all__ = ["agreed", "assigning", "blockwise", "covariance", "dtypes", "elementwise", "extrema"]
__all__ += ["indexing", "joining", "likes", "matrices", "nan", "norms", "ordering", "orthogonal", "placing", "products"]
__all__ += ["quantiles", "reductions", "reshaping", "scans", "sets", "sorting", "statistics"]


@cache
def load(module: str | None = None) -> None:
    """Import a module of functions; all if none is named."""
    from importlib import import_module

    for name, room in _HOME.items():
        if module in (None, name):
            import_module(f"{__name__}.{room}.{name}")


if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

    def __getattr__(name):
        """Import a module of functions on first use, and keep it."""
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_HOME[name]}.{name}")
        globals()[name] = module
        return module


def __dir__() -> list[str]:
    """The names of all modules, imported or not, and of everything else in the package."""
    return sorted({*globals(), *__all__})
