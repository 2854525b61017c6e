"""scipy.fft: every kind, in every precision. It takes no output array, so that its result is copied."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rote.host import installed

from ...transforms import KINDS
from ..kernel import Kernel
from .protocol import Array, ArrayTransform, Called, lengths

__all__ = ["does", "prepare", "version"]


def version() -> str:
    return installed("scipy")


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    row = KINDS[kind]
    return (row.real != "both" or row.type > 0) and dtype.char in "fdgFDG"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    import scipy.fft as fft

    row = kernel.row_between(source, target)
    function = partial(getattr(fft, row.function), axes=axes)
    if row.real == "both":
        transform = partial(function, type=row.type)
    else:
        norm = "forward" if row.backward else "backward"
        transform = partial(function, norm=norm, **lengths(row, axes, target))

    def run(block: Array, out: Array) -> None:
        out[...] = transform(block, workers=threads)

    return Called(run)
