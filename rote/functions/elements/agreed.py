"""Questions about whole tensors with one answer on all ranks: comparisons, and whether blocks share memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...layout.layout import Op
from ...runtime.comm.protocol import Comm
from ..distributed import Distributed
from ..moves import agree_on_call
from ..rules import Function, follows
from .operands import together

__all__ = ["allclose", "array_equal", "array_equiv"]


@follows("agreed", np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, in the sense of `numpy.allclose`. Collective."""
    return _on_all("allclose", partial(np.allclose, equal_nan=equal_nan), a, b, rtol, atol)


@follows("agreed", np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether shapes and all elements are equal. Collective, unless shapes differ."""
    same = partial(np.array_equal, equal_nan=equal_nan)
    return np.shape(a1) == np.shape(a2) and _on_all("array_equal", same, a1, a2)


@follows("agreed", np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether all elements are equal after broadcasting. Collective, unless shapes do not broadcast."""
    shapes = np.shape(a1), np.shape(a2)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return _on_all("array_equiv", np.array_equiv, a1, a2)


def _on_all(name: str, function: Function, *operands: Any) -> bool:
    """Whether a comparison holds on every rank, for blocks in matching layouts; the answer is equal on all ranks."""
    first = next(x for x in operands if isinstance(x, Distributed))
    target, blocks = together(name, operands)
    return _agreed(first.comm, not target.holds(first.comm.rank) or function(*blocks), "prod")


def _on_any(function: Function, a: Any, b: Any, *args: Any, **options: Any) -> bool:
    """Whether a comparison holds for the blocks of some rank; the answer is equal on all ranks."""
    first = next(x for x in (a, b) if isinstance(x, Distributed))
    blocks = [x.local if isinstance(x, Distributed) else x for x in (a, b)]
    return _agreed(first.comm, function(*blocks, *args, **options), "sum")


for _function in (np.shares_memory, np.may_share_memory):
    follows("agreed", _function, name=_function.__name__)(partial(_on_any, _function))


def _agreed(comm: Comm, value: bool, op: Op) -> bool:
    agree_on_call(comm)
    buffer = np.array([value], bool)
    comm.allreduce_in_place(buffer, op)
    return bool(buffer[0])
