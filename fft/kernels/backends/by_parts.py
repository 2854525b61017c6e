"""Transforms of real numbers that are the real part plus or minus the imaginary part of the Fourier transform.

So a library does them that has no function for them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...transforms import HALVING, complex_dtype
from ..kernel import Kernel, scratch_bytes, view
from .protocol import Array, ArrayTransform, Library

__all__ = ["ByParts"]


class ByParts:
    """A transform along one axis, by the half spectrum of a library, which has memory of its own.

    Of the other half, the spectrum of real numbers is the conjugate: there the imaginary part has the other sign.
    """

    __slots__ = ("_axis", "_half", "_sign", "_target", "_transform")

    def __init__(self, backend: Library, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> None:
        shape, dtype = source.shape, complex_dtype(source.dtype)
        half = (*shape[:axis], shape[axis] // 2 + 1, *shape[axis + 1 :])
        self._half = view(scratch_bytes(int(np.prod(half)) * dtype.itemsize), half, dtype)
        real = replace(kernel, kind=HALVING[0], axes=(axis,), shape=shape, out_shape=half, dtype=source.dtype)
        self._transform: ArrayTransform = backend.prepare(real, (axis,), source, self._half, threads)
        self._axis, self._target, self._sign = axis, target, kernel.row.imaginary

    def execute(self) -> None:
        self._transform.execute()
        self._combine(self._target)

    def __call__(self, source: Array, target: Array) -> None:
        self._transform(source, self._half)
        self._combine(target)

    def _combine(self, target: Array) -> None:
        """Add up the parts of the half spectrum, from its first point to the last, and back."""
        out, spectrum = np.moveaxis(target, self._axis, 0), np.moveaxis(self._half, self._axis, 0)
        mirrored = spectrum[len(out) - len(spectrum) : 0 : -1]
        forth, back = (np.add, np.subtract) if self._sign > 0 else (np.subtract, np.add)
        forth(spectrum.real, spectrum.imag, out=out[: len(spectrum)])
        back(mirrored.real, mirrored.imag, out=out[len(spectrum) :])
