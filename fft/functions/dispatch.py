"""The functions of `numpy.fft` for tensors, with the same calls as for arrays.

Importing this module adds them to the table of NumPy functions that take tensors (`rote.functions.rules`). The first
call of such a function with a tensor imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.functions.rules import ANSWERS
from rote.tensor import DistTensor

from . import fourier
from .shifts import fftshift, ifftshift

__all__ = ["TRANSFORMS"]


def _with_out(transform: Callable[..., DistTensor]) -> Callable[..., DistTensor]:
    """A transform with NumPy's parameters: the fifth one is `out`, which is refused, and not a layout."""

    def called(a: DistTensor, *args: Any, out: Any = None, **named: Any) -> DistTensor:
        if out is not None or any(argument is not None for argument in args[3:]):
            raise LayoutError(f"numpy.fft writes tensors into no out\n{fourier.HINTS['out']}")
        return transform(a, *args[:3], **named)

    return called


TRANSFORMS: dict[Callable[..., Any], Callable[..., DistTensor]] = {
    **{getattr(np.fft, name): _with_out(getattr(fourier, name)) for name in fourier.__all__ if hasattr(np.fft, name)},
    np.fft.fftshift: lambda x, axes=None: fftshift(x, axes),
    np.fft.ifftshift: lambda x, axes=None: ifftshift(x, axes),
}
"""All functions of `numpy.fft` that take arrays."""

ANSWERS.update(TRANSFORMS)
