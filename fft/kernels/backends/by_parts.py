"""Transforms between real numbers, by real and imaginary parts of half a Fourier spectrum.

They serve libraries that have no function for such a transform.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rote.runtime.comm.segments import at_line

from ...transforms import HALVING, RESTORING, complex_dtype
from ..kernel import Kernel, view
from .protocol import Array, ArrayTransform, Library

__all__ = ["ByParts", "OfHalves"]


class ByParts(ArrayTransform):
    """A transform along one axis, made from a library's half spectrum, for which it allocates memory.

    The other half of the spectrum of real numbers is the conjugate of this one: its imaginary part has the other sign.
    """

    __slots__ = ("_axis", "_half", "_halves", "_transform")

    def __init__(self, backend: Library, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> None:
        self._half = _half_spectrum(source, axis)
        shape, half = source.shape, self._half.shape
        real = replace(kernel, kind=HALVING[0], axes=(axis,), shape=shape, out_shape=half, dtype=source.dtype)
        self._transform: ArrayTransform = backend.prepare(real, (axis,), source, self._half, threads)
        self._axis, self._halves = axis, kernel.row.parts == "halves"

    def __call__(self, source: Array, target: Array) -> None:
        self._transform(source, self._half)
        self._combine(target)

    def _combine(self, target: Array) -> None:
        """Combine the parts of the half spectrum: first in order, then in reversed order for the other half."""
        out, spectrum = np.moveaxis(target, self._axis, 0), np.moveaxis(self._half, self._axis, 0)
        mirrored = spectrum[len(out) - len(spectrum) : 0 : -1]
        if self._halves:
            out[: len(spectrum)], out[len(spectrum) :] = spectrum.real, mirrored.imag
        else:
            np.subtract(spectrum.real, spectrum.imag, out=out[: len(spectrum)])
            np.add(mirrored.real, mirrored.imag, out=out[len(spectrum) :])


class OfHalves(ArrayTransform):
    """The inverse along one axis, from real and imaginary parts, by a library's transform of half a spectrum."""

    __slots__ = ("_axis", "_half", "_transform")

    def __init__(self, backend: Library, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> None:
        self._half = _half_spectrum(source, axis)
        half, dtype = self._half.shape, self._half.dtype
        real = replace(kernel, kind=RESTORING[0], axes=(axis,), shape=half, out_shape=target.shape, dtype=dtype)
        self._transform: ArrayTransform = backend.prepare(real, (axis,), self._half, target, threads)
        self._axis = axis

    def __call__(self, source: Array, target: Array) -> None:
        self._part(source)
        self._transform(self._half, target)

    def _part(self, source: Array) -> None:
        """Fill the half spectrum; imaginary parts that the source does not have are zero."""
        given, spectrum = np.moveaxis(source, self._axis, 0), np.moveaxis(self._half, self._axis, 0)
        count = len(given) - len(spectrum)
        spectrum.real = given[: len(spectrum)]
        spectrum.imag = 0
        spectrum.imag[1 : count + 1] = given[len(spectrum) :][::-1]


def _half_spectrum(block: Array, axis: int) -> Array:
    """Memory for half the spectrum of a real block."""
    dtype = complex_dtype(block.dtype)
    shape = (*block.shape[:axis], block.shape[axis] // 2 + 1, *block.shape[axis + 1 :])
    return view(at_line(int(np.prod(shape)) * dtype.itemsize), shape, dtype)
