"""Local transforms: one rank's block along some of its axes, and the memory that suits them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..transforms import KINDS, Kind, TransformKind, complex_dtype, real_dtype
from .config import KernelConfig, Study

__all__ = [
    "ALIGNMENT",
    "Kernel",
    "is_plain",
    "library",
    "normal",
    "padded",
    "padded_lines",
    "plain",
    "scratch_bytes",
    "view",
]

Array = npt.NDArray[Any]

ALIGNMENT = 16  # bytes: FFTW's vector instructions ask for no more, and memory that NumPy allocates has it
_LINE = 64  # bytes of a line of the cache
_PADDING = 64  # bytes between the rows of a tile, so that their distance is no power of two
_USUAL = KernelConfig()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A transform of a block along some axes, without any scaling.

    Attributes:
        kind: of `KINDS`. One that is real on one side is so along the last of `axes`; to a real output it destroys its
            input. One of `REAL_TO_REAL` takes real numbers: see `of_parts`.
        axes: the axes of the block, in NumPy's order.
        shape, dtype: of the input; `out_shape` of the output.
        config: how it runs.
        study: FFTW's, while it looks for plans.
    """

    kind: Kind
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    config: KernelConfig = _USUAL
    study: Study | None = field(default=None, compare=False)

    @property
    def row(self) -> TransformKind:
        """The row of its kind in the table."""
        return KINDS[self.kind]

    @property
    def out_dtype(self) -> np.dtype[Any]:
        """The dtype of the output."""
        if self.row.real == "input":
            return complex_dtype(self.dtype)
        return real_dtype(self.dtype) if self.row.real == "output" else self.dtype

    @property
    def in_place(self) -> bool:
        """Whether input and output may be the same array."""
        return self.row.real in ("neither", "both")

    def overwrites_input(self, ortho: bool) -> bool:
        """Whether it writes into its input; `ortho` as `BoundKernel` has it."""
        return self.row.real == "output" or (ortho and bool(self.row.ortho[0]))

    @property
    def wide_dtype(self) -> np.dtype[Any]:
        """The larger one of the input's dtype and the output's."""
        return max(self.dtype, self.out_dtype, key=lambda dtype: dtype.itemsize)

    def of_parts(self) -> Kernel:
        """The kernel of real numbers: of a complex block, an axis of real and imaginary part is behind the others."""
        if self.row.real != "both" or self.dtype.kind != "c":
            return self
        shape = (*self.shape, 2)
        return replace(self, shape=shape, out_shape=shape, dtype=real_dtype(self.dtype))


def scratch_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Scratch memory that begins with a line of the cache; pages that are never touched take no memory."""
    import pyfftw  # not before somebody transforms: it brings SciPy, which takes a second

    memory: npt.NDArray[np.uint8] = pyfftw.empty_aligned(nbytes, dtype="u1", n=_LINE)
    return memory


def view(scratch: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The start of scratch memory as a block."""
    return scratch[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The zeros of a tile whose last mode is padded: the tile is the first part of it along that mode."""
    long = (*shape[:-1], shape[-1] + -(-_PADDING // dtype.itemsize))
    memory = view(scratch_bytes(prod(long) * dtype.itemsize), long, dtype)
    memory[...] = 0
    return memory


def padded_lines(shape: tuple[int, ...], axis: int, dtype: np.dtype[Any]) -> Array:
    """A tile whose points along an axis lie side by side in memory, in padded lines."""
    points = shape[axis]
    memory = padded((*shape[:axis], *shape[axis + 1 :], points), dtype)[..., :points]
    return np.moveaxis(memory, -1, axis)


def library() -> tuple[str, str, tuple[str, ...]]:
    """The version of pyFFTW, that of FFTW, and the precisions that it was built with."""
    import pyfftw

    names = {"32": "single", "64": "double", "ld": "long double"}
    precisions = tuple(name for key, name in names.items() if key in pyfftw._supported_types)
    return str(pyfftw.__version__), str(pyfftw.fftw_version), precisions


def is_plain(array: Array) -> bool:
    """Whether an array is contiguous, and aligned as FFTW wants it.

    Other memory is copied instead of planned for: another plan would be slower and round otherwise, so that the last
    bits of a result would depend on where a block happens to lie, and differ between replicas.
    """
    import pyfftw

    return array.flags.c_contiguous and bool(pyfftw.is_byte_aligned(array, n=ALIGNMENT))


def plain(array: Array) -> Array:
    """The memory of an array as a `normal` one; a copy if it is not plain."""
    if not is_plain(array):
        import pyfftw

        copy = pyfftw.empty_aligned(array.shape, array.dtype)
        copy[...] = array
        array = copy
    return normal(array)


def normal(array: Array) -> Array:
    """A contiguous array, with the strides that its shape says.

    NumPy calls an array contiguous whatever the strides of its modes of extent 1 are, but FFTW's plans look at them.
    """
    if 1 not in array.shape and type(array) is np.ndarray:
        return array
    return np.ndarray(array.shape, array.dtype, array)
