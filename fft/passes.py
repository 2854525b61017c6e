"""How a kernel runs over a block: in one call where FFTW's estimated plans are good, else axis by axis, tile by tile.

They are several times too slow where the points of a transform lie a multiple of a large power of two of bytes apart,
for all of these share a few sets of the cache. Along such an axis a tile of columns is copied to scratch with padded
strides, transformed in cache, and copied out. That is as fast as the plans that FFTW finds in seconds of timing.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .kernels import ALIGNMENT, Kernel, fftw_plan, scratch_bytes, view
from .kinds import FACES

__all__ = ["CACHED", "CHUNK", "BoundKernel", "padded"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]

CACHED = 1 << 18  # bytes that stay in a core's second-level cache: of a tile, and of a block that needs none
_ALIASED = 1 << 11  # bytes: points so far apart, or a multiple of it, share one or two sets of the first-level cache
CHUNK = 1 << 19  # bytes of a part of a block that goes through all passes before the next one does
_PADDING = 64  # bytes between the rows of a tile, so that their distance is no power of two


class BoundKernel:
    """A kernel with its FFTW plans and tiles, ready for any arrays. One thread (one rank) uses it.

    A block is transformed part by part, along the modes before the first axis, so that a part that fits the cache goes
    through all passes there. With `ortho` the faces of cosine and sine transforms are weighted, so that they are
    orthogonal but for a scale.
    """

    __slots__ = ("_last", "_number", "_part", "_parts", "_rest", "_weights", "kernel")

    def __init__(self, kernel: Kernel, scratch: Scratch, ortho: bool = False) -> None:
        self.kernel = kernel
        self._weights = FACES.get(kernel.kind) if ortho else None
        self._parts = parts = kernel.of_parts()
        first = min(parts.axes)
        outer = prod(parts.shape[:first])
        ends = (parts.shape, parts.dtype), (parts.out_shape, parts.out_dtype)
        one = [prod(shape[first:]) * dtype.itemsize for shape, dtype in ends]  # bytes along the other modes
        aligned = ALIGNMENT // gcd(ALIGNMENT, *one)  # parts begin where FFTW's plans may
        number = max(1, min(outer, CHUNK // max(*one, 1)))
        self._number = number = min(-(-number // aligned) * aligned, max(outer, 1))

        def of(count: int) -> list[_Pass]:
            shape, out_shape = ((count, *extents[first:]) for extents in (parts.shape, parts.out_shape))
            axes = tuple(axis - first + 1 for axis in parts.axes)
            return _passes(replace(parts, axes=axes, shape=shape, out_shape=out_shape), scratch)

        self._part = of(number) if prod(kernel.out_shape) else []
        self._last = outer % number
        self._rest = of(self._last) if self._last else []

    def __call__(self, source: Array, target: Array) -> None:
        """Transform `source` into `target`, both plain; they may share their memory if `kernel.in_place`."""
        if not self._part:
            return
        parts, first = self._parts, min(self._parts.axes)
        sources, targets = (
            x.view(parts.dtype if x is source else parts.out_dtype).reshape(-1, *shape[first:])
            for x, shape in ((source, parts.shape), (target, parts.out_shape))
        )
        if self._weights:
            _weigh(sources, parts, self._weights[0], np.sqrt(np.longdouble(2)))
        for at in range(0, len(sources), self._number):
            part = slice(at, at + self._number)
            passes = self._part if at + self._number <= len(sources) else self._rest
            here, there = sources[part], targets[part]
            for number, one in enumerate(passes):
                stays = parts.kind == "irfft" and number < len(passes) - 1  # complex until the last pass
                one(here, sources[part] if stays else there)
                here = sources[part] if stays else there
        if self._weights:
            _weigh(targets, parts, self._weights[1], np.sqrt(np.longdouble(0.5)))


def _weigh(block: Array, kernel: Kernel, places: tuple[int, ...], weight: np.floating[Any]) -> None:
    """Multiply the faces of a block that lie at some places along its axes; the modes before them are one."""
    for axis in kernel.axes:
        for place in places:
            face = np.moveaxis(block, axis - min(kernel.axes) + 1, 0)[place, ...]
            face *= block.dtype.type(weight)


class _Pass(Protocol):
    """A transform of whole arrays, along one axis or several."""

    def __call__(self, source: Array, target: Array) -> None: ...


def _passes(kernel: Kernel, scratch: Scratch) -> list[_Pass]:
    """The passes of a kernel: a real transform's real axis, the last, is in the first forward and the last backward."""
    if kernel.kind == "irfft":
        return _passes_of(kernel, kernel.shape, scratch)[::-1]
    return _passes_of(kernel, kernel.out_shape, scratch)


def _passes_of(kernel: Kernel, spectrum: tuple[int, ...], scratch: Scratch) -> list[_Pass]:
    """All good axes in one pass, then a pass for every bad one; `spectrum` is the shape of the complex side."""
    dtype = kernel.wide_dtype
    bad = [axis for axis in kernel.axes if _is_bad(spectrum, axis, dtype.itemsize)]
    good = tuple(axis for axis in kernel.axes if axis not in bad)
    kind = {"rfft": "fft", "irfft": "ifft"}.get(kernel.kind, kernel.kind)
    along = replace(kernel, kind=kind, shape=spectrum, out_shape=spectrum, dtype=dtype)
    found: list[_Pass] = []
    if kernel.kind != kind:
        real = kernel.axes[-1]
        if real in bad:
            found.append(_Columns(replace(kernel, axes=(real,))))
            bad.remove(real)
        else:
            found.append(_Together(replace(kernel, axes=good), scratch))
            good = ()
    if good:
        found.append(_Together(replace(along, axes=good), scratch))
    return found + [_Columns(replace(along, axes=(axis,))) for axis in bad]


def _is_bad(shape: tuple[int, ...], axis: int, itemsize: int) -> bool:
    """Whether the points along an axis share a few sets of the cache, in a block that does not fit it anyway."""
    apart = prod(shape[axis + 1 :]) * itemsize
    return apart % _ALIASED == 0 and prod(shape) * itemsize > CACHED


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
        if kernel.tune != "model":  # timing overwrites scratch, which is free only now
            for in_place in (False, True) if kernel.in_place else (False,):
                self._plan(in_place)

    def _plan(self, in_place: bool) -> Any:
        if in_place not in self._plans:
            ends = self._parked[0], self._parked[0 if in_place else 1]
            self._plans[in_place] = fftw_plan(self._kernel, self._kernel.axes, *ends)
        return self._plans[in_place]

    def __call__(self, source: Array, target: Array) -> None:
        in_place = self._kernel.in_place and np.may_share_memory(source, target)
        plan = self._plan(in_place)
        plan.update_arrays(source, target)
        plan.execute()
        plan.update_arrays(self._parked[0], self._parked[0 if in_place else 1])


class _Columns:
    """One axis whose points are apart, by tiles of columns; the block is read as (outer, points, inner)."""

    __slots__ = ("_plan", "_shape", "_step", "_tile")

    def __init__(self, kernel: Kernel) -> None:
        (axis,) = kernel.axes
        outer, inner = prod(kernel.shape[:axis]), prod(kernel.shape[axis + 1 :])
        points, out_points = kernel.shape[axis], kernel.out_shape[axis]
        columns = max(8, CACHED // (max(points, out_points) * kernel.wide_dtype.itemsize))
        wide = min(inner, columns)
        wide = -(-inner // -(-inner // wide))  # tiles of one width, as far as it goes
        deep = min(outer, max(1, columns // inner))
        self._shape = (outer, points, out_points, inner)
        self._step = (deep, wide)
        source = padded((deep, points, wide), kernel.dtype)
        target = source if kernel.in_place else padded((deep, out_points, wide), kernel.out_dtype)
        self._tile = (source, target)
        self._plan = fftw_plan(kernel, (1,), source, target)

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


def padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A tile of zeros whose last mode is padded."""
    long = (*shape[:-1], shape[-1] + -(-_PADDING // dtype.itemsize))
    memory = view(scratch_bytes(prod(long) * dtype.itemsize), long, dtype)
    memory[...] = 0
    return memory[..., : shape[-1]]
