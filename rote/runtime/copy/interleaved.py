"""Several copies into one array whose elements interleave there: a part of each copy in turn.

Elements of several ranks, or of several tiles of one rank, often share cache lines: if the array was distributed
cyclically before, every line has some of each. One copy after another would fetch all lines of a large array once per
copy. So the copies advance together along its outermost axis, in parts that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LARGE", "interleaved"]

Array = npt.NDArray[Any]
Pair = tuple[Array, Array]  # the view to copy, and its destination

LARGE = 1 << 22
"""Bytes of an array that does not stay in the cache."""

_PART = 1 << 18  # bytes of a part that stays in the cache


def interleaved(pairs: Sequence[Pair]) -> Callable[[], object] | None:
    """Bind copies, each between two views of one shape, part by part; None if their elements do not interleave.

    >>> target = np.zeros((1024, 1024))
    >>> halves = [(np.ones((1024, 512)), target[:, ::2]), (np.full((1024, 512), 2.0), target[:, 1::2])]
    >>> interleaved(halves)()
    >>> target[0, :4], target.min()
    (array([1., 2., 1., 2.]), np.float64(1.0))
    >>> interleaved([(half, target[k : k + 512].T) for k, (half, _) in zip((0, 512), halves)]) is None
    True
    """
    if not all(into.ndim for _, into in pairs):
        return None
    outer = [_outermost(into) for _, into in pairs]
    _, stride, n = outer[0]
    starts = [into.__array_interface__["data"][0] for _, into in pairs]
    length = max(1, _PART // max(stride, 1))
    if any(each[1:] != (stride, n) for each in outer) or max(starts) - min(starts) >= stride or n < 2 * length:
        return None
    views = []
    for (values, into), (axis, _, _) in zip(pairs, outer, strict=True):
        views.append((np.moveaxis(values, axis, 0), np.moveaxis(into, axis, 0)))
    return partial(_run, views, n, length)


def _outermost(array: Array) -> tuple[int, int, int]:
    """The axis with the longest stride among those with several elements, its stride in bytes, and its length."""
    axis = max(range(array.ndim), key=lambda axis: (array.shape[axis] > 1) * array.strides[axis])
    return axis, array.strides[axis], array.shape[axis]


def _run(pairs: Sequence[Pair], n: int, length: int) -> None:
    for start in range(0, n, length):
        part = slice(start, start + length)
        for values, into in pairs:
            into[part] = values[part]
