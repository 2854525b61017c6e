"""ducc0: every kind, in every precision; it copies columns to buffers by itself, and suits large blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...transforms import TRIGONOMETRIC
from ..kernel import Kernel
from .protocol import Array, Called, Transform, installed, kind_between

__all__ = ["does", "prepare", "version"]


def version() -> str:
    """The library's version; see `Library`."""
    return installed("ducc0")


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    """Whether the library transforms arrays of a dtype so; see `Library`."""
    return dtype.char in "fdgFDG"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> Transform:
    """A transform between two arrays; see `Library`."""
    from ducc0 import fft

    kind = kind_between(kernel, source, target)
    options: dict[str, Any] = {"axes": axes, "inorm": 0, "nthreads": threads}
    if kind in TRIGONOMETRIC:
        transform = partial(fft.dct if kind.startswith("dct") else fft.dst, type=int(kind[-1]), **options)
    elif kind == "rfft":
        transform = partial(fft.r2c, forward=True, **options)
    elif kind == "irfft":
        options["lastsize"] = target.shape[axes[-1]]
        transform = partial(fft.c2r, forward=False, allow_overwriting_input=True, **options)
    else:
        transform = partial(fft.c2c, forward=kind == "fft", **options)
    return Called(lambda block, out: transform(block, out=out), source, target)
