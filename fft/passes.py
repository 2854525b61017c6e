"""How a kernel runs over a block: in one call while the block fits a core's cache, else axis by axis, tile by tile.

FFTW's estimated plans are good where the points of a transform lie close together, and several times too slow where
they lie a power of two of bytes apart. So a large block is transformed one axis at a time. The axis whose points are
neighbours takes one call; along any other a tile of columns is copied to scratch with padded strides, transformed in
cache, and copied out. That is as fast as the plans that FFTW finds in seconds of timing.
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .kernels import Kernel, complex_dtype, fftw_plan, scratch_bytes, view

__all__ = ["BoundKernel"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]

_CACHED = 1 << 18  # bytes that stay in a core's second-level cache: of a tile, and of a block that needs none
_PADDING = 64  # bytes between the rows of a tile, so that their distance is no power of two


class BoundKernel:
    """A kernel with its FFTW plans and tiles, ready for any arrays. One thread (one rank) uses it."""

    __slots__ = ("_passes", "kernel")

    def __init__(self, kernel: Kernel, scratch: Scratch) -> None:
        self.kernel = kernel
        self._passes = _passes(kernel, scratch) if prod(kernel.out_shape) else []

    def __call__(self, source: Array, target: Array) -> None:
        """Transform `source` into `target`, both plain; they may share their memory if `kernel.in_place`."""
        here = source
        for number, one in enumerate(self._passes):
            stays = self.kernel.kind == "irfft" and number < len(self._passes) - 1  # complex until the last pass
            there = source if stays else target
            one(here, there)
            here = there


class _Pass(Protocol):
    """A transform of whole arrays, along one axis or several."""

    def __call__(self, source: Array, target: Array) -> None: ...


def _passes(kernel: Kernel, scratch: Scratch) -> list[_Pass]:
    """The passes of a kernel: a real transform's real axis, the last, goes first forward and last backward."""
    largest = max(prod(kernel.shape) * kernel.dtype.itemsize, prod(kernel.out_shape) * kernel.out_dtype.itemsize)
    if largest <= _CACHED:
        return [_Together(kernel, scratch)]
    real = kernel.axes[-1] if kernel.kind in ("rfft", "irfft") else None
    others = [axis for axis in kernel.axes if axis != real]
    forward = kernel.kind in ("fft", "rfft")
    between = kernel.out_shape if kernel.kind == "rfft" else kernel.shape
    dtype = complex_dtype(kernel.dtype)
    found = [Kernel("fft" if forward else "ifft", (axis,), between, between, dtype) for axis in others]
    if real is not None:
        one = Kernel(kernel.kind, (real,), kernel.shape, kernel.out_shape, kernel.dtype)
        found = [one, *found] if forward else [*found, one]
    return [_Columns(one) if prod(one.shape[one.axes[0] + 1 :]) > 1 else _Together(one, scratch) for one in found]


class _Together:
    """All axes in one call of FFTW.

    An FFTW object keeps hold of the arrays that it worked on last, so between calls it is parked on scratch: nobody's
    block stays alive for it.
    """

    __slots__ = ("_kernel", "_parked", "_plans")

    def __init__(self, kernel: Kernel, scratch: Scratch) -> None:
        self._kernel = kernel
        source = view(scratch[0], kernel.shape, kernel.dtype)
        self._parked = (source, view(scratch[1], kernel.out_shape, kernel.out_dtype))
        self._plans: dict[bool, Any] = {}

    def __call__(self, source: Array, target: Array) -> None:
        in_place = self._kernel.in_place and np.may_share_memory(source, target)
        parked = (self._parked[0], self._parked[0] if in_place else self._parked[1])
        plan = self._plans.get(in_place)
        if plan is None:
            plan = self._plans[in_place] = fftw_plan(self._kernel.kind, self._kernel.axes, *parked)
        plan.update_arrays(source, target)
        plan.execute()
        plan.update_arrays(*parked)


class _Columns:
    """One axis whose points are apart, by tiles of columns; the block is read as (outer, points, inner)."""

    __slots__ = ("_plan", "_shape", "_step", "_tile")

    def __init__(self, kernel: Kernel) -> None:
        (axis,) = kernel.axes
        outer, inner = prod(kernel.shape[:axis]), prod(kernel.shape[axis + 1 :])
        points, out_points = kernel.shape[axis], kernel.out_shape[axis]
        columns = max(8, _CACHED // (max(points, out_points) * complex_dtype(kernel.dtype).itemsize))
        wide = min(inner, columns)
        wide = -(-inner // -(-inner // wide))  # tiles of one width, as far as it goes
        deep = min(outer, max(1, columns // inner))
        self._shape = (outer, points, out_points, inner)
        self._step = (deep, wide)
        source = _tile((deep, points, wide), kernel.dtype)
        target = source if kernel.in_place else _tile((deep, out_points, wide), kernel.out_dtype)
        self._tile = (source, target)
        self._plan = fftw_plan(kernel.kind, (1,), source, target)

    def __call__(self, source: Array, target: Array) -> None:
        outer, points, out_points, inner = self._shape
        blocks, out_blocks = source.reshape(outer, points, inner), target.reshape(outer, out_points, inner)
        (deep, wide), (tile, out_tile) = self._step, self._tile
        for i in range(0, outer, deep):
            for j in range(0, inner, wide):
                part = blocks[i : i + deep, :, j : j + wide]
                of = np.s_[: part.shape[0], :, : part.shape[2]]  # at the ends a tile is filled in part
                tile[of] = part
                self._plan.execute()
                out_blocks[i : i + deep, :, j : j + wide] = out_tile[of]


def _tile(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> Array:
    padded = (*shape[:2], shape[2] + -(-_PADDING // dtype.itemsize))
    memory = view(scratch_bytes(prod(padded) * dtype.itemsize), padded, dtype)
    memory[...] = 0
    return memory[:, :, : shape[2]]
