"""Copies between arrays with different contiguous axes, by tiles that are transposed in the cache.

If such a source is read in the order of the target, each element lies in another cache line. The strides are often
powers of two, so that these lines evict each other. So a tile is copied by runs of the source into scratch with padded
rows, and from there by runs of the target.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SMALL", "transposed"]

Array = npt.NDArray[Any]

SMALL = 1 << 20
"""Bytes of an array that stays in the cache."""

_LARGE = 1 << 24  # bytes of an array that does not
_LINE = 64  # bytes of a cache line
_ALIKE, _WAYS = 4096, 12  # lines at multiples of so many bytes share a set of a cache; the places of a set
_FEW = 32  # lines that a core can keep track of at any stride
_ROW = 128  # elements of a row of scratch, at most
_TURNED = 1 << 18  # bytes of scratch: the second-level cache holds it and the lines that are read and written
_ELEMENTS = 1 << 15  # of scratch, at most


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
    far = stride >= _LINE and (crowded or (rows > _FEW and target.nbytes >= _LARGE and size == 16))
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
    return partial(_run, source.transpose(order), target.transpose(order), [lengths[axis] for axis in order], pad)


def _even(number: int, most: int) -> int:
    """The length of nearly equal parts of `number`, none longer than `most`."""
    return -(-number // -(-number // most))


def _run(source: Array, target: Array, lengths: list[int], pad: int) -> None:
    """Copy tile by tile; axes are in the order of the source's strides."""
    scratch = np.empty((*lengths[:-1], lengths[-1] + pad), source.dtype)
    starts = [range(0, n, length) for n, length in zip(source.shape, lengths, strict=True)]
    for corner in product(*starts):
        tile = tuple([slice(start, start + length) for start, length in zip(corner, lengths, strict=True)])
        into = target[tile]
        turned = scratch[tuple([slice(n) for n in into.shape])]
        turned[...] = source[tile]
        into[...] = turned
