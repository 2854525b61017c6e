"""Functions of stacks of matrices, computed on blocks of whole matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...layout.layout import Distribution
from ...runtime.comm.collective_errors import collective_errors
from ..contraction.contraction import aligned, common_operands, extents_of
from ..contraction.label_layouts import layout_of
from ..contraction.subscripts import Term
from ..distributed import Distributed
from ..moves import agree_on_call

__all__ = ["floating", "stackwise"]


def stackwise(
    function: Callable[..., Any],
    operands: Sequence[Any],
    terms: Sequence[Term],
    results: Sequence[Term],
    cause: str,
    whole: Iterable[int],
    extents: dict[int, int] | None = None,
) -> list[Any]:
    """Bring operands to one layout of labels, in which some labels are whole, and call a function on the blocks.

    Args:
        function: takes arrays with the modes of `terms`; returns an array, or a tuple of them, with those of `results`.
            All ranks raise an error that it raises on one.
        operands: at least one tensor, and arrays that are the same on all ranks.
        extents: the extents of labels that no operand has.
    """
    tensors = common_operands(operands, cause)
    new = extents or {}
    sizes = {**extents_of(tensors, terms, cause), **new}
    together = aligned(tensors, terms, max(results, key=len), sizes, cause, whole=(*whole, *new))
    agree_on_call(tensors[0].comm)
    with collective_errors(tensors[0].comm):
        made = function(*together.blocks)
        values = list(map(np.asarray, made)) if isinstance(made, tuple) else [np.asarray(made)]
    outcomes = []
    for value, result in zip(values, results, strict=True):
        shape = tuple([sizes[label] for label in result])
        lies = Distribution(layout_of(result, together.splits), shape, together.grid)
        if any(np.may_share_memory(value, x.local) for x in tensors):
            value = value.copy()
        outcomes.append(tensors[0]._on(value, lies))
    return outcomes


def floating(x: Distributed) -> Distributed:
    """The tensor with elements of a real or complex floating dtype, which NumPy's linear algebra needs."""
    return x if x.local.dtype.kind in "fc" else x.astype("f8")
