"""FFTW's numbers of kinds and flags, and arrays at aligned addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["C2C_BACKWARD", "C2C_FORWARD", "C2R", "R2C", "aligned", "aligned_like", "flag_dict", "get_alignment"]
__all__ += ["FFTW_BACKWARD", "FFTW_CONSERVE_MEMORY", "FFTW_DESTROY_INPUT", "FFTW_DHT", "FFTW_ESTIMATE"]
__all__ += ["FFTW_EXHAUSTIVE", "FFTW_FORWARD", "FFTW_HC2R", "FFTW_MEASURE", "FFTW_PATIENT", "FFTW_PRESERVE_INPUT"]
__all__ += ["FFTW_R2HC", "FFTW_REDFT00", "FFTW_REDFT01", "FFTW_REDFT10", "FFTW_REDFT11", "FFTW_RODFT00"]
__all__ += ["FFTW_RODFT01", "FFTW_RODFT10", "FFTW_RODFT11", "FFTW_UNALIGNED", "FFTW_WISDOM_ONLY"]

Array = npt.NDArray[Any]

FFTW_FORWARD, FFTW_R2HC, FFTW_BACKWARD, FFTW_HC2R, FFTW_DHT = -1, 0, 1, 1, 2
FFTW_REDFT00, FFTW_REDFT01, FFTW_REDFT10, FFTW_REDFT11 = 3, 4, 5, 6
FFTW_RODFT00, FFTW_RODFT01, FFTW_RODFT10, FFTW_RODFT11 = 7, 8, 9, 10
FFTW_MEASURE, FFTW_DESTROY_INPUT, FFTW_UNALIGNED, FFTW_CONSERVE_MEMORY, FFTW_EXHAUSTIVE = 0, 1, 2, 4, 8
FFTW_PRESERVE_INPUT, FFTW_PATIENT, FFTW_ESTIMATE, FFTW_WISDOM_ONLY = 16, 32, 64, 1 << 21
C2C_FORWARD, C2C_BACKWARD, R2C, C2R = -1, 1, -2, 2
flag_dict: dict[str, int] = {name: flag for name, flag in globals().items() if name.startswith("FFTW_")}


def get_alignment(array: Array) -> int:
    """The largest power of two, up to 32, that divides the address."""
    return next(n for n in (32, 16, 8, 4, 2, 1) if array.ctypes.data % n == 0)


def aligned(shape: Any, n: int = 32, dtype: npt.DTypeLike = "d", fill: float | None = None) -> Array:
    """A new array at an address that is a multiple of n, filled with a value or zeros."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + n, np.uint8)
    start = -memory.ctypes.data % n
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = fill or 0
    return array


def aligned_like(z: Array, fill: float | None = None) -> Array:
    """A new array of the shape, dtype and alignment of another."""
    return aligned(z.shape, get_alignment(z), z.dtype, fill)
