"""The functions of `numpy.fft` for tensors, with the same calls as for arrays.

Importing this module adds them to the table of NumPy functions that take tensors (`rote.functions.rules`). The first
call of such a function with a tensor imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.functions.rules import ANSWERS
from rote.tensor import DistTensor

from .along import fft, fft2, ifft, ifft2, irfft, irfft2, rfft, rfft2
from .fourier import fftn, ifftn, irfftn, rfftn
from .real import hfft, ihfft
from .shift import fftshift, ifftshift

__all__ = ["TRANSFORMS"]

Transform = Callable[..., DistTensor]


def _many(transform: Transform, usual: Sequence[int] | None = None) -> Transform:
    """NumPy's transform along several axes, by default those in `usual`."""

    def called(
        a: DistTensor,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = usual,
        norm: str | None = None,
        out: Any = None,
    ) -> DistTensor:
        _refuse_out(out)
        return transform(a, s, axes, norm)

    return called


def _single(transform: Transform) -> Transform:
    """NumPy's transform along one axis."""

    def called(
        a: DistTensor, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
    ) -> DistTensor:
        _refuse_out(out)
        return transform(a, n, axis, norm)

    return called


def _refuse_out(out: Any) -> None:
    if out is not None:
        raise LayoutError(
            "numpy.fft writes tensors into no out; plan the transform by rote.fft.FFT, whose forward does"
        )


TRANSFORMS: dict[Callable[..., Any], Transform] = {
    np.fft.fft: _single(fft),
    np.fft.ifft: _single(ifft),
    np.fft.rfft: _single(rfft),
    np.fft.irfft: _single(irfft),
    np.fft.fft2: _many(fft2, (-2, -1)),
    np.fft.ifft2: _many(ifft2, (-2, -1)),
    np.fft.rfft2: _many(rfft2, (-2, -1)),
    np.fft.irfft2: _many(irfft2, (-2, -1)),
    np.fft.fftn: _many(fftn),
    np.fft.ifftn: _many(ifftn),
    np.fft.rfftn: _many(rfftn),
    np.fft.irfftn: _many(irfftn),
    np.fft.hfft: _single(hfft),
    np.fft.ihfft: _single(ihfft),
    np.fft.fftshift: lambda x, axes=None: fftshift(x, axes),
    np.fft.ifftshift: lambda x, axes=None: ifftshift(x, axes),
}
"""All functions of `numpy.fft` that take arrays."""

ANSWERS.update(TRANSFORMS)
