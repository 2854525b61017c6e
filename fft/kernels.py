"""Local transforms: one rank's block along some of its axes, by FFTW through pyfftw."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyfftw

from rote.errors import LayoutError

__all__ = [
    "BoundKernel",
    "Kernel",
    "check_extents",
    "complex_dtype",
    "is_plain",
    "library",
    "plain",
    "real_dtype",
    "scratch_bytes",
    "view",
]

Array = npt.NDArray[Any]

_PLANNING = threading.Lock()  # FFTW's planner is one for the process, and in-process ranks plan at the same time
_ALIGNMENT = 16  # bytes: FFTW's vector instructions ask for no more, and memory that NumPy allocates has it
_COMPLEX = {"f": "F", "d": "D", "g": "G"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A transform of a block along some axes, without any scaling.

    Attributes:
        kind: "fft", "ifft", "rfft" (real to half spectrum along the last of `axes`) or "irfft" (the reverse, which
            destroys its input).
        axes: the axes of the block, in NumPy's order.
        shape, dtype: of the input; `out_shape` of the output.
    """

    kind: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def out_dtype(self) -> np.dtype[Any]:
        """The dtype of the output."""
        if self.kind == "rfft":
            return complex_dtype(self.dtype)
        return real_dtype(self.dtype) if self.kind == "irfft" else self.dtype

    @property
    def in_place(self) -> bool:
        """Whether input and output may be the same array."""
        return self.kind in ("fft", "ifft")


class BoundKernel:
    """A kernel with its FFTW plans, ready for any arrays.

    An FFTW object keeps hold of the arrays that it worked on last, so between calls it is parked on scratch: nobody's
    block stays alive for it. One thread (one rank) uses it.
    """

    __slots__ = ("_parked", "_plans", "kernel")

    def __init__(self, kernel: Kernel, scratch: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]) -> None:
        self.kernel = kernel
        source = view(scratch[0], kernel.shape, kernel.dtype)
        self._parked = (source, view(scratch[1], kernel.out_shape, kernel.out_dtype))
        self._plans: dict[bool, Any] = {}

    def __call__(self, source: Array, target: Array) -> None:
        """Transform `source` into `target`, both plain; they may share their memory if `kernel.in_place`."""
        if not target.size:
            return
        in_place = self.kernel.in_place and np.may_share_memory(source, target)
        parked = (self._parked[0], self._parked[0] if in_place else self._parked[1])
        plan = self._plans.get(in_place)
        if plan is None:
            plan = self._plans[in_place] = _plan(self.kernel, *parked)
        plan.update_arrays(source, target)
        plan.execute()
        plan.update_arrays(*parked)


def complex_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The complex dtype that a dtype's spectrum has, as numpy.fft: single and long double stay, others are double.

    >>> complex_dtype("f4"), complex_dtype("i8")
    (dtype('complex64'), dtype('complex128'))
    """
    char = np.dtype(dtype).char
    return np.dtype(char if char in _COMPLEX.values() else _COMPLEX.get(char, "D"))


def real_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The real dtype of the same precision.

    >>> real_dtype("c8"), real_dtype("bool")
    (dtype('float32'), dtype('float64'))
    """
    return np.empty(0, complex_dtype(dtype)).real.dtype


def scratch_bytes(nbytes: int) -> npt.NDArray[np.uint8]:
    """Scratch memory that suits FFTW's vector instructions; pages that are never touched take no memory."""
    found: npt.NDArray[np.uint8] = pyfftw.empty_aligned(nbytes, dtype="u1")
    return found


def view(scratch: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The start of scratch memory as a block."""
    return scratch[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def check_extents(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Refuse to transform along nothing."""
    for axis in axes:
        if shape[axis] < 1:
            raise LayoutError(f"axis {axis} of shape {shape} has no points to transform")


def library() -> tuple[str, str, tuple[str, ...]]:
    """The version of pyFFTW, that of FFTW, and the precisions that it was built with."""
    names = {"32": "single", "64": "double", "ld": "long double"}
    precisions = tuple(name for key, name in names.items() if key in pyfftw._supported_types)
    return str(pyfftw.__version__), str(pyfftw.fftw_version), precisions


def is_plain(array: Array) -> bool:
    """Whether an array is contiguous, and aligned as FFTW wants it.

    Other memory is copied instead of planned for: another plan would be slower and round otherwise, so that the last
    bits of a result would depend on where a block happens to lie, and differ between replicas.
    """
    return array.flags.c_contiguous and bool(pyfftw.is_byte_aligned(array, n=_ALIGNMENT))


def plain(array: Array) -> Array:
    """The same memory as an array with the strides that its shape says; a copy if it is not plain.

    NumPy calls an array contiguous whatever the strides of its modes of extent 1 are, but FFTW's plans look at them.
    """
    if not is_plain(array):
        copy = pyfftw.empty_aligned(array.shape, array.dtype)
        copy[...] = array
        array = copy
    return np.ndarray(array.shape, array.dtype, array)


def _plan(kernel: Kernel, source: Array, target: Array) -> Any:
    with _PLANNING:  # estimated plans leave the arrays alone
        return pyfftw.FFTW(
            source,
            target,
            axes=kernel.axes,
            direction="FFTW_FORWARD" if kernel.kind in ("fft", "rfft") else "FFTW_BACKWARD",
            flags=("FFTW_ESTIMATE",),
        )
