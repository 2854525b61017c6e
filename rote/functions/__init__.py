"""Functions of tensors, each with a rule that says how its result is distributed.

Each module is an attribute of this package, whatever subpackage it lies in. It is imported on first use, and then
enters its functions into the tables of `rules`; `load` imports all modules, so that the tables are complete.
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

__all__ = ["agreed", "assigning", "blockwise", "covariance", "dtypes", "elementwise", "extrema", "indexing", "joining"]
__all__ += ["likes", "matrices", "nan", "norms", "ordering", "orthogonal", "placing", "products", "quantiles"]
__all__ += ["reductions", "reshaping", "scans", "sets", "sorting", "statistics"]


@cache
def load() -> None:
    """Import all modules of functions."""
    from importlib import import_module

    for name, room in _HOME.items():
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
