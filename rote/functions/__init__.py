"""Functions of tensors, by the rule that says where their result lies.

Each module is imported when something of it is first used, and enters its functions into the tables of `rules`; `load`
imports all, so that the tables are whole.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import agreed as agreed
    from . import assigning as assigning
    from . import blockwise as blockwise
    from . import dtypes as dtypes
    from . import elementwise as elementwise
    from . import extrema as extrema
    from . import indexing as indexing
    from . import joining as joining
    from . import likes as likes
    from . import matrices as matrices
    from . import nan as nan
    from . import norms as norms
    from . import ordering as ordering
    from . import orthogonal as orthogonal
    from . import placing as placing
    from . import products as products
    from . import reductions as reductions
    from . import reshaping as reshaping
    from . import scans as scans
    from . import sets as sets
    from . import sorting as sorting
    from . import statistics as statistics

__all__ = (
    *("agreed", "assigning", "blockwise", "dtypes", "elementwise", "extrema", "indexing", "joining", "likes"),
    *("matrices", "nan", "norms", "ordering", "orthogonal", "placing", "products", "reductions", "reshaping"),
    *("scans", "sets", "sorting", "statistics"),
)


@cache
def load() -> None:
    """Import all modules of functions."""
    from importlib import import_module

    for name in __all__:
        import_module(f"{__name__}.{name}")


if not TYPE_CHECKING:  # a type checker would take any misspelt name for an attribute

    def __getattr__(name):
        """Import a module of functions on first use; the import system keeps it."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """The modules, imported or not, and what the package already holds."""
    return sorted({*globals(), *__all__})
