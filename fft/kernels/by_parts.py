"""The transform of a kernel's arrays by its library: by a function of the library, or by parts.

By parts, a transform between real numbers is made of the real and imaginary parts of half a Fourier spectrum. This
serves libraries that have no function for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rote.runtime.comm.segments import at_line

from ..transforms import HALVING, KINDS, RESTORING, complex_dtype
from .backends.library import Array, ArrayTransform
from .kernel import Kernel, view

__all__ = ["composed", "prepare"]


def composed(kernel: Kernel) -> bool:
    """Whether a kernel's library has no function for its kind, so that it is done by parts, one axis at a time."""
    return kernel.row.parts != "" and not kernel.backend.does(kernel.kind, kernel.dtype)


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    """A transform by the kernel's library on at most `threads` threads; see `Library`."""
    if composed(kernel):
        return (_OfHalves if kernel.row.backward else _ByParts)(kernel, axes[0], source, target, threads)
    row, config = kernel.row_between(source, target), replace(kernel.config, threads=threads)
    return kernel.backend.prepare(row, axes, (source, target), config, kernel.study)


class _ByParts(ArrayTransform):
    """A transform along one axis, made from a library's half spectrum, for which it allocates memory.

    The other half of the spectrum of real numbers is the conjugate of this one: its imaginary part has the other sign.
    """

    __slots__ = ("_axis", "_half", "_halves", "_transform")

    def __init__(self, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> None:
        self._half = _half_spectrum(source, axis)
        self._transform = _fourier(HALVING[0], kernel, axis, source, self._half, threads)
        self._axis, self._halves = axis, kernel.row.parts == "halves"

    def __call__(self, source: Array, target: Array) -> None:
        self._transform(source, self._half)
        # The parts of the half spectrum in order, then in reversed order for the other half.
        out, spectrum = np.moveaxis(target, self._axis, 0), np.moveaxis(self._half, self._axis, 0)
        mirrored = spectrum[len(out) - len(spectrum) : 0 : -1]
        if self._halves:
            out[: len(spectrum)], out[len(spectrum) :] = spectrum.real, mirrored.imag
        else:
            np.subtract(spectrum.real, spectrum.imag, out=out[: len(spectrum)])
            np.add(mirrored.real, mirrored.imag, out=out[len(spectrum) :])


class _OfHalves(ArrayTransform):
    """The inverse along one axis, from real and imaginary parts, by a library's transform of half a spectrum."""

    __slots__ = ("_axis", "_half", "_transform")

    def __init__(self, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> None:
        self._half = _half_spectrum(source, axis)
        self._transform = _fourier(RESTORING[0], kernel, axis, self._half, target, threads)
        self._axis = axis

    def __call__(self, source: Array, target: Array) -> None:
        parts, spectrum = np.moveaxis(source, self._axis, 0), np.moveaxis(self._half, self._axis, 0)
        count = len(parts) - len(spectrum)
        spectrum.real = parts[: len(spectrum)]
        spectrum.imag = 0  # that of the first harmonic, and of an even extent's last one
        spectrum.imag[1 : count + 1] = parts[len(spectrum) :][::-1]
        self._transform(self._half, target)


def _fourier(kind: str, kernel: Kernel, axis: int, source: Array, target: Array, threads: int) -> ArrayTransform:
    config = replace(kernel.config, threads=threads)
    return kernel.backend.prepare(KINDS[kind], (axis,), (source, target), config, kernel.study)


def _half_spectrum(block: Array, axis: int) -> Array:
    """Memory for half the spectrum of a real block."""
    dtype = complex_dtype(block.dtype)
    shape = (*block.shape[:axis], block.shape[axis] // 2 + 1, *block.shape[axis + 1 :])
    return view(at_line(int(np.prod(shape)) * dtype.itemsize), shape, dtype)
