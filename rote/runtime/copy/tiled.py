"""Copies in parts that stay in the cache: transposed tiles, and several copies that advance together.

If the source of a copy has another contiguous axis than the target and is read in the order of the target, each element
is in another cache line. The strides are often powers of two, so that these lines evict each other. So a tile is copied
by runs of the source into scratch with padded rows, and from there by runs of the target.

Elements of several ranks, or of several tiles of one rank, often share cache lines: if the array was distributed
cyclically before, every line has some of each. One copy after another would fetch all lines of a large array once per
copy. So the copies advance together along its outermost axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LARGE", "SMALL", "interleaved", "transposed"]

Array = npt.NDArray[Any]
Pair = tuple[Array, Array]  # the view to copy, and its destination

SMALL = 1 << 20
"""Bytes of an array that stays in the cache."""

LARGE = 1 << 22
"""Bytes of an array that does not stay in the cache."""

_FAR = 1 << 24  # bytes of an array that does not stay in any cache
_LINE = 64  # bytes of a cache line
_ALIKE, _WAYS = 4096, 12  # lines at multiples of so many bytes share a set of a cache; the places of a set
_FEW = 32  # lines that a core can keep track of at any stride
_ROW = 128  # elements of a row of scratch, at most
_TURNED = 1 << 18  # bytes of scratch: the second-level cache holds it and the lines that are read and written
_ELEMENTS = 1 << 15  # of scratch, at most
_PART = 1 << 18  # bytes of a part of interleaved copies


def transposed(source: Array, target: Array) -> Callable[[], object] | None:
    """Bind the copy of one view to another of its shape and dtype, by tiles; None if a plain copy is as fast.

    >>> source, target = np.arange(1 << 18, dtype="f8").reshape(512, 512), np.empty((512, 512))
    >>> transposed(source, target) is None, transposed(source.T, target) is None
    (True, False)
    >>> transposed(source.T, target)()
    >>> np.array_equal(target, source.T)
    True
    """
    size = target.itemsize
    if target.nbytes < SMALL or size > 16:
        return None
    source, target = source.squeeze(), target.squeeze()
    axes = range(target.ndim)
    inner = min(axes, key=lambda axis: source.strides[axis])
    last = min(axes, key=lambda axis: target.strides[axis])
    stride, rows = source.strides[last], source.shape[last]
    crowded = rows > max(_WAYS * _ALIKE // max(gcd(stride, _ALIKE), _LINE), _FEW)
    far = stride >= _LINE and (crowded or (rows > _FEW and target.nbytes >= _FAR and size == 16))
    runs = source.strides[inner] == target.strides[last] == size and source.shape[inner] * size >= 2 * _LINE
    if inner == last or not far or not runs:
        return None
    order = sorted(axes, key=lambda axis: source.strides[axis], reverse=True)
    lengths = [1] * target.ndim
    lengths[inner] = _even(source.shape[inner], _ROW)
    left = min(_TURNED // size, _ELEMENTS) // lengths[inner]
    pad = _LINE // size if 2 * lengths[inner] > _ROW else 1
    for axis in sorted(axes, key=lambda axis: target.strides[axis]):
        if axis != inner:
            lengths[axis] = _even(source.shape[axis], left)
            left //= lengths[axis]
    return partial(_run_tiles, source.transpose(order), target.transpose(order), [lengths[axis] for axis in order], pad)


def _even(number: int, most: int) -> int:
    """The length of nearly equal parts of `number`, none longer than `most`."""
    return -(-number // -(-number // most))


def _run_tiles(source: Array, target: Array, lengths: list[int], pad: int) -> None:
    """Copy tile by tile; axes are in the order of the source's strides."""
    scratch = np.empty((*lengths[:-1], lengths[-1] + pad), source.dtype)
    starts = [range(0, n, length) for n, length in zip(source.shape, lengths, strict=True)]
    for corner in product(*starts):
        tile = tuple([slice(start, start + length) for start, length in zip(corner, lengths, strict=True)])
        into = target[tile]
        turned = scratch[tuple([slice(n) for n in into.shape])]
        turned[...] = source[tile]
        into[...] = turned


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
    return partial(_run_together, views, n, length)


def _outermost(array: Array) -> tuple[int, int, int]:
    """The axis with the longest stride among those with several elements, its stride in bytes, and its length."""
    axis = max(range(array.ndim), key=lambda axis: (array.shape[axis] > 1) * array.strides[axis])
    return axis, array.strides[axis], array.shape[axis]


def _run_together(pairs: Sequence[Pair], n: int, length: int) -> None:
    for start in range(0, n, length):
        part = slice(start, start + length)
        for values, into in pairs:
            into[part] = values[part]
