"""Tools to test programs that use Rote: Hypothesis strategies, a comparison that locates errors, tests on many ranks.

The strategies need Hypothesis, and the marker `ranks`, which pytest finds by itself, needs pytest; both come with
`pip install "rote-tensor[testing]"`. Each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compare import assert_equal as assert_equal
    from .strategies import TensorCase as TensorCase
    from .strategies import dist_tensors as dist_tensors
    from .strategies import distributions as distributions
    from .strategies import grids as grids
    from .strategies import layouts as layouts
    from .strategies import shapes as shapes

_HOME = {
    "assert_equal": "compare",
    **dict.fromkeys(("TensorCase", "dist_tensors", "distributions", "grids", "layouts", "shapes"), "strategies"),
}

__all__ = sorted(_HOME)

if not TYPE_CHECKING:  # with it, type checkers would accept any misspelt attribute

    def __getattr__(name):
        """Import a public name on first use, and keep it."""
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
