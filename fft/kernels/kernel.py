"""Local transforms of one rank's block along some of its axes, and the memory that suits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.runtime.comm.protocol import Array
from rote.runtime.comm.segments import LINE, at_line

from ..transforms import KINDS, Kind, TransformKind, complex_dtype, real_dtype
from .backends import library
from .backends.library import KernelConfig, Library

__all__ = ["ALIGNMENT", "CACHED", "CHUNK", "NEAR", "Kernel", "Scale", "copies_first", "in_lines", "is_bad", "is_plain"]
__all__ += ["is_small_power", "normal", "padded", "padded_lines", "plain", "view"]

ALIGNMENT = 16  # bytes: FFTW's vector instructions need no more, and NumPy's memory has it
CACHED = 1 << 18  # bytes that stay in a core's second-level cache: of a tile, or of a block that needs no tiles
CHUNK = 1 << 19  # bytes of the smallest usual part of a block; threads share the tiles of a larger part
NEAR = 1 << 23  # bytes of planes that stay in the cache that all cores share
_ALIASED = 1 << 11  # bytes: points at a multiple of this distance share one or two sets of the first-level cache
_FAR = 1 << 14  # bytes: points at this distance, in a block that is `_LARGE`, are in pages of their own
_LARGE = 1 << 20  # bytes
_LONG = 1 << 20  # bytes of a tile or part of a large block: rows are longer than a page, and calls are few
_FEW, _SMALL, _MANY = 40, 128, 90  # points: of fast columns, of the largest fast power of two, of slow columns anywhere
_PADDING = 64  # bytes between the rows of a tile, so that their distance is not a power of two
_USUAL = KernelConfig()

Scale = np.floating[Any] | float
"""A real factor of a result."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A transform of a block along some axes, without any scaling.

    Attributes:
        kind: a key of `KINDS`. Where one side is real, the last of `axes` is the real axis; a transform with real
            output destroys its input. Kinds of `REAL_TO_REAL` take real numbers: see `of_parts`.
        axes: the axes of the block, in NumPy's order.
        shape, dtype: of the input; `out_shape` of the output.
        config: how the kernel runs.
        pitch: elements from row to row, if the block is some columns of a wider one; 0 for a contiguous block.
    """

    kind: Kind
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    config: KernelConfig = _USUAL
    pitch: int = 0

    @property
    def row(self) -> TransformKind:
        """The row of the kernel's kind in the table of transforms."""
        return KINDS[self.kind]

    @property
    def backend(self) -> Library:
        """The library by which the kernel runs."""
        return library(self.config.library)

    @property
    def out_dtype(self) -> np.dtype[Any]:
        """The dtype of the output."""
        if self.row.real == "input":
            return complex_dtype(self.dtype)
        return real_dtype(self.dtype) if self.row.real == "output" else self.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the larger one of input and output."""
        return max(prod(self.shape) * self.dtype.itemsize, prod(self.out_shape) * self.out_dtype.itemsize)

    @property
    def part_bytes(self) -> int:
        """Bytes of a part of the block, which goes through all passes before the next part."""
        return self.config.part or min(_LONG, max(CHUNK, self.nbytes // 8))

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of the block.

        Of a block that is in no cache, wide tiles take 0.7 to 1 of the time of tiles that fit a core's cache: their
        rows are long, and in-process ranks wait less often for Python's lock.
        """
        return self.config.tile or min(_LONG, max(CACHED, self.nbytes // 8))

    @property
    def in_place(self) -> bool:
        """Whether input and output may be the same array."""
        return self.row.real in ("neither", "both")

    def overwrites_input(self, ortho: bool) -> bool:
        """Whether the kernel writes into its input; `ortho` is that of `BoundKernel`."""
        return self.row.real == "output" or (ortho and bool(self.row.ortho[0]))

    @property
    def step_axis(self) -> int:
        """The mode along which the work can be divided into steps: 0, or 1 if mode 0 is transformed."""
        return int(min(self.axes) == 0)

    @property
    def wide_dtype(self) -> np.dtype[Any]:
        """The larger one of the input's dtype and the output's."""
        return max(self.dtype, self.out_dtype, key=lambda dtype: dtype.itemsize)

    def in_turn(self) -> tuple[Kernel, ...]:
        """The kernel as two, in the order in which they run: planes along other modes, and lines along mode 0.

        >>> block = Kernel("rfft", (0, 1, 2), (64, 64, 64), (64, 64, 33), np.dtype("f8"))
        >>> [(kernel.kind, kernel.axes, kernel.shape) for kernel in block.in_turn()]
        [('rfft', (1, 2), (64, 64, 64)), ('fft', (0,), (64, 64, 33))]
        """
        planes = tuple(axis for axis in self.axes if axis)
        if self.row.real not in ("input", "output"):
            return replace(self, axes=planes), replace(self, axes=(0,))
        real, others = (planes, (0,)) if self.axes[-1] else ((0,), planes)
        if self.row.real == "output":
            return replace(self, kind=self.row.others, axes=others, out_shape=self.shape), replace(self, axes=real)
        then = replace(self, kind=self.row.others, axes=others, shape=self.out_shape, dtype=self.out_dtype)
        return replace(self, axes=real), then

    def of_parts(self) -> Kernel:
        """The kernel for real numbers: it reads a complex block as a real one, with one more mode of extent 2."""
        if self.row.real != "both" or self.dtype.kind != "c":
            return self
        shape = (*self.shape, 2)
        return replace(self, shape=shape, out_shape=shape, dtype=real_dtype(self.dtype))


def view(scratch: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The start of scratch memory as a block."""
    return scratch[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros for a tile, with a padded last mode: the tile is the first part along that mode."""
    row = -(-shape[-1] * dtype.itemsize // LINE) * LINE + _PADDING  # rows begin at a cache line, too
    long = (*shape[:-1], row // dtype.itemsize)
    memory = view(at_line(prod(long) * dtype.itemsize), long, dtype)
    memory[...] = 0
    return memory


def padded_lines(shape: tuple[int, ...], axis: int, dtype: np.dtype[Any]) -> Array:
    """A tile whose points along an axis are contiguous in memory, in padded lines."""
    points = shape[axis]
    memory = padded((*shape[:axis], *shape[axis + 1 :], points), dtype)[..., :points]
    return np.moveaxis(memory, -1, axis)


def is_plain(array: Array) -> bool:
    """Whether an array is contiguous, and aligned as FFTW wants it.

    Other memory is copied, and gets no plan of its own: the last bits of a result must not depend on an address.
    """
    return array.flags.c_contiguous and _alignment_test()(array, ALIGNMENT)


@cache
def _alignment_test() -> Callable[[Array, int], bool]:
    """Whether an array begins at a multiple of n bytes; pyfftw's function is a tenth of a small transform faster."""
    if not library("pyfftw").loads:
        return lambda array, n: bool(array.__array_interface__["data"][0] % n == 0)
    from .backends.fftw import fftw_core

    test: Callable[[Array, int], bool] = fftw_core().is_byte_aligned
    return test


def plain(array: Array) -> Array:
    """The array in `normal` form, without a copy if it is plain; else a copy."""
    if not is_plain(array):
        copy = view(at_line(array.nbytes), array.shape, array.dtype)
        copy[...] = array
        array = copy
    return normal(array)


def normal(array: Array) -> Array:
    """A contiguous array, with the row-major strides of its shape.

    NumPy ignores the strides of modes of extent 1 when it calls an array contiguous, but FFTW's plans depend on them.
    """
    if 1 not in array.shape and type(array) is np.ndarray:
        return array
    return np.ndarray(array.shape, array.dtype, array)


def copies_first(kernel: Kernel, scaled: bool) -> bool:
    """Whether a block is copied and then transformed in place, part by part; a scale is applied by the copy.

    If lines are a small power of two long, FFTW reads a block that is in no core's cache 1.1 to 1.6 times as slowly
    as a copy does. MKL takes 0.5 to 1 of the time for columns, 0.85 to 0.98 for planes of 512 KiB and more, and for
    smaller ones if they are scaled as well.
    """
    axis, last, nbytes = kernel.axes[0], len(kernel.shape) - 1, prod(kernel.shape) * kernel.dtype.itemsize
    if kernel.row.real != "neither" or nbytes <= CACHED:
        return False

    if kernel.backend.prefers_tiles:
        power = kernel.shape[-1] >= _FEW and is_small_power(kernel.shape[-1])
        return kernel.backend.line_to_line and kernel.axes[-1] == last and power
    if kernel.axes == (axis,):
        return axis != last and not (kernel.config.tiled and is_bad(kernel, axis))

    plane = nbytes // max(1, prod(kernel.shape[:-2]))
    return kernel.axes == (last - 1, last) and axis > 0 and plane >= (CACHED if scaled else CHUNK)


def is_bad(kernel: Kernel, axis: int) -> bool:
    """Whether an axis is transformed faster in tiles.

    This holds if its points lie so far apart, in so large a block, that each is in a page of its own and in no cache.
    For all libraries but MKL, which gathers columns by itself, it also holds if the points share a few sets of a cache
    that cannot hold the block, or if they are many and transformed faster in lines.
    """
    points, distance = kernel.shape[axis], (kernel.pitch or prod(kernel.shape[axis + 1 :])) * kernel.dtype.itemsize
    nbytes = prod(kernel.shape) * kernel.dtype.itemsize
    large = _LARGE if points >= _FEW else 16 * _LARGE
    far = distance >= _FAR and nbytes > large
    if not kernel.backend.prefers_tiles:
        return far
    aliased = distance % _ALIASED == 0 and nbytes > CACHED
    return aliased or far or (points >= _MANY and in_lines(kernel, axis))


def in_lines(kernel: Kernel, axis: int) -> bool:
    """Whether a tile of columns is transformed into contiguous lines.

    At most lengths FFTW's estimated plans take 1.2 to 1.9 times as long in columns, with all copies, but less at small
    powers of two. Other libraries transform columns as fast as lines.
    """
    points, inner = kernel.shape[axis], prod(kernel.shape[axis + 1 :])
    stays_complex = kernel.row.real == "neither" or (kernel.row.real != "both" and axis != kernel.axes[-1])
    slow = points >= _FEW and not is_small_power(points)
    return kernel.backend.line_to_line and slow and stays_complex and inner > 1


def is_small_power(points: int) -> bool:
    """Whether FFTW transforms this many points in one go, in columns and in place as fast as from line to line."""
    return points <= _SMALL and points & (points - 1) == 0
