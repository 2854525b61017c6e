"""Tools to test programs that use Rote: Hypothesis strategies, a comparison that locates errors, tests on many ranks.

The strategies need Hypothesis, and the marker `ranks`, which pytest finds by itself, needs pytest; both come with
`pip install "rote-tensor[testing]"`. Each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import attach

if TYPE_CHECKING:  # what the table below says to Python, name by name
    from .compare import assert_equal
    from .strategies import TensorCase, dist_tensors, distributions, grids, layouts, shapes
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "compare": "assert_equal",
            "strategies": "TensorCase dist_tensors distributions grids layouts shapes",
        },
    )

__all__ = ["TensorCase", "assert_equal", "dist_tensors", "distributions", "grids", "layouts", "shapes"]
