"""scipy.fft: every kind, in every precision; it has no output array, so that its result is copied."""

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
    return installed("scipy")


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    """Whether the library transforms arrays of a dtype so; see `Library`."""
    return dtype.char in "fdgFDG"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> Transform:
    """A transform between two arrays; see `Library`."""
    import scipy.fft as fft

    kind = kind_between(kernel, source, target)
    if kind in TRIGONOMETRIC:
        transform = partial(fft.dctn if kind.startswith("dct") else fft.dstn, type=int(kind[-1]), axes=axes)
    else:
        lengths = {"s": [target.shape[axis] for axis in axes]} if kind == "irfft" else {}
        norm = "forward" if kind in ("ifft", "irfft") else "backward"
        transform = partial(getattr(fft, f"{kind}n"), axes=axes, norm=norm, **lengths)

    def run(block: Array, out: Array) -> None:
        out[...] = transform(block, workers=threads)

    return Called(run, source, target)
