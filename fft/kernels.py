"""Local transforms: one rank's block along some of its axes, by FFTW through pyfftw."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyfftw

from rote.errors import LayoutError

from .kinds import FACES, TRIGONOMETRIC

__all__ = [
    "ALIGNMENT",
    "TUNES",
    "Kernel",
    "check_extents",
    "complex_dtype",
    "fftw_plan",
    "is_plain",
    "known_plans",
    "learn_plans",
    "library",
    "plain",
    "real_dtype",
    "scratch_bytes",
    "view",
]

Array = npt.NDArray[Any]

_PLANNING = threading.Lock()  # FFTW's planner is one for the process, and in-process ranks plan at the same time
ALIGNMENT = 16  # bytes: FFTW's vector instructions ask for no more, and memory that NumPy allocates has it
_COMPLEX = {"f": "F", "d": "D", "g": "G"}
_HALVES = ("00", "10", "01", "11")  # FFTW's names of the types I to IV: which ends lie half a point further
_TRIGONOMETRIC = {
    kind: f"FFTW_R{'E' if kind.startswith('dct') else 'O'}DFT{_HALVES[int(kind[-1]) - 1]}" for kind in TRIGONOMETRIC
}


TUNES = {"model": "FFTW_ESTIMATE", "measure": "FFTW_MEASURE", "patient": "FFTW_PATIENT"}
"""How plans are found: by FFTW's own estimate, or by timing; patiently, more of them are timed."""

_LONGEST = 10.0  # seconds that one plan may be timed for


@dataclass(frozen=True, slots=True)
class Kernel:
    """A transform of a block along some axes, without any scaling.

    Attributes:
        kind: "fft", "ifft", "rfft" (real to half spectrum along the last of `axes`), "irfft" (the reverse, which
            destroys its input), or one of `TRIGONOMETRIC` (of real numbers: see `of_parts`).
        axes: the axes of the block, in NumPy's order.
        shape, dtype: of the input; `out_shape` of the output.
        tune: how FFTW finds its plans, a key of `TUNES`.
    """

    kind: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    tune: str = "model"

    @property
    def out_dtype(self) -> np.dtype[Any]:
        """The dtype of the output."""
        if self.kind == "rfft":
            return complex_dtype(self.dtype)
        return real_dtype(self.dtype) if self.kind == "irfft" else self.dtype

    @property
    def in_place(self) -> bool:
        """Whether input and output may be the same array."""
        return self.kind not in ("rfft", "irfft")

    def spoils(self, ortho: bool) -> bool:
        """Whether it writes into its input; `ortho` as `BoundKernel` has it."""
        return self.kind == "irfft" or (ortho and bool(FACES.get(self.kind, ((), ()))[0]))

    @property
    def wide_dtype(self) -> np.dtype[Any]:
        """The larger one of the input's dtype and the output's."""
        return max(self.dtype, self.out_dtype, key=lambda dtype: dtype.itemsize)

    def of_parts(self) -> Kernel:
        """The same of real numbers: of a complex block, an axis of real and imaginary part is behind the others."""
        if self.kind not in TRIGONOMETRIC or self.dtype.kind != "c":
            return self
        shape = (*self.shape, 2)
        return replace(self, shape=shape, out_shape=shape, dtype=real_dtype(self.dtype))


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
    return array.flags.c_contiguous and bool(pyfftw.is_byte_aligned(array, n=ALIGNMENT))


def plain(array: Array) -> Array:
    """The same memory as an array with the strides that its shape says; a copy if it is not plain.

    NumPy calls an array contiguous whatever the strides of its modes of extent 1 are, but FFTW's plans look at them.
    """
    if not is_plain(array):
        copy = pyfftw.empty_aligned(array.shape, array.dtype)
        copy[...] = array
        array = copy
    return np.ndarray(array.shape, array.dtype, array)


def fftw_plan(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array) -> Any:
    """FFTW's plan of a transform of the kernel's kind between two arrays.

    By its own estimate it is the same on every rank and in every run, and made at once. Timed plans differ from run to
    run in their last bits, and on ranks that have not told each other of theirs; and timing overwrites the arrays.
    """
    kind = kernel.kind
    if kind in ("rfft", "irfft") and source.dtype == target.dtype:  # an axis that is complex on both sides
        kind = kind.replace("rfft", "fft")
    direction: str | tuple[str, ...] = "FFTW_FORWARD" if kind in ("fft", "rfft") else "FFTW_BACKWARD"
    if kind in TRIGONOMETRIC:
        direction = (_TRIGONOMETRIC[kind],) * len(axes)
    limit = None if kernel.tune == "model" else _LONGEST
    with _PLANNING:  # estimated plans leave the arrays alone
        return pyfftw.FFTW(
            source, target, axes=axes, direction=direction, flags=(TUNES[kernel.tune],), planning_timelimit=limit
        )


def known_plans() -> tuple[bytes, ...]:
    """What FFTW has found by timing in this process."""
    with _PLANNING:
        found: tuple[bytes, ...] = pyfftw.export_wisdom()
    return found


def learn_plans(known: Iterable[tuple[bytes, ...]]) -> None:
    """Take over what others have found, the last ones first of all."""
    with _PLANNING:
        for each in known:
            pyfftw.import_wisdom(each)
