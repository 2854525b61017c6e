"""Elements that a mask chooses: those that are taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.arrays import as_array
from .alignment import into, replicated
from .distributed import Distributed, shape_of
from .indexing import getitem, known
from .reductions import normal_axis
from .reshaping import flatnonzero, reshape
from .rules import follows
from .sorting import take

__all__ = ["compress", "extract"]


@follows("data-dependent", np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where a condition holds, in row-major order, as `numpy.extract`. Collective.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
    >>> np.extract(x % 2 == 0, x).to_global()
    array([2, 4])
    """
    x, mask = _tensor(arr, condition), _tensor(condition, arr)
    if mask.distribution.shape == x.distribution.shape:
        return getitem(x, mask != 0)
    return take(reshape(x, -1), flatnonzero(mask))


@follows("data-dependent", np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices along a mode where a condition of order 1 holds, as `numpy.compress`. Collective.

    Args:
        axis: the mode; None takes all elements as one line.

    Raises:
        ValueError: the condition is not of order 1. IndexError: it is longer than the mode.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")
    >>> np.compress([False, True], x, axis=1).to_global().tolist()
    [[2], [4]]
    """
    if len(shape_of(condition)) != 1:
        raise ValueError(f"a condition is of order 1, not of shape {shape_of(condition)}\nwrite numpy.extract(mask, x)")
    x = _tensor(a, condition)
    if axis is None:
        x, axis = reshape(x, -1), 0
    places = np.flatnonzero(as_array(known(condition)))
    return into(out, take(x, places, normal_axis(axis, len(x.distribution.shape))), "compress")


def _tensor(value: Any, other: Any) -> Any:
    """A value as a tensor: an array becomes a replicated one, beside another tensor."""
    return value if isinstance(value, Distributed) else replicated(as_array(value), other)
