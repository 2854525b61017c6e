"""MKL, through mkl_fft: Fourier transforms in single and double precision."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...transforms import KINDS
from ..kernel import Kernel
from .protocol import Array, ArrayTransform, Called, installed, kind_between

__all__ = ["does", "prepare", "version"]


def version() -> str:
    """The library's version; see `Library`. MKL is here where the program has imported mkl_fft itself.

    For its libraries define FFTW's functions too, for all of the process: whatever is imported after them and wants
    FFTW, such as mpi4py-fft, would run on MKL, several times slower or not at all.
    """
    return installed("mkl_fft") if "mkl_fft" in sys.modules else ""


@cache
def _use_threads() -> Callable[[int], int]:
    """MKL's function that says how many threads it uses when it is called by this one; it gives the number before."""
    from mkl_fft import _pydfti  # whose libraries are MKL's

    set_threads = ctypes.CDLL(_pydfti.__file__).MKL_Set_Num_Threads_Local
    set_threads.argtypes, set_threads.restype = (ctypes.c_int,), ctypes.c_int
    return set_threads


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    return KINDS[kind].real != "both" and dtype.char in "fdFD"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    import mkl_fft

    row, last = KINDS[kind_between(kernel, source, target)], axes[-1]
    use_threads = _use_threads()

    def along(kind: str, axis: int, block: Array, out: Array) -> None:
        norm = "forward" if row.backward else "backward"
        length = out.shape[axis] if KINDS[kind].real == "output" else None
        getattr(mkl_fft, kind)(block, n=length, axis=axis, norm=norm, out=out)

    def run(block: Array, out: Array) -> None:  # its transforms along several axes scale where they should not
        before = use_threads(threads)
        try:
            if row.real == "output":
                for axis in axes[:-1]:
                    along(row.others, axis, block, block)
            along(row.name, last, block, out)
            if row.real != "output":
                for axis in axes[:-1]:
                    along(row.others, axis, out, out)
        finally:
            use_threads(before)

    return Called(run, source, target)
