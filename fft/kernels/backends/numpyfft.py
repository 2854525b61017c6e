"""numpy.fft: Fourier transforms in every precision, on one thread."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...transforms import KINDS
from ..kernel import Kernel
from .protocol import Array, ArrayTransform, Called, lengths

__all__ = ["does", "prepare", "version"]


def version() -> str:
    return str(np.__version__)


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    return KINDS[kind].real != "both" and dtype.char in "fdgFDG"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    row = kernel.row_between(source, target)
    norm = "forward" if row.backward else "backward"
    transform = partial(getattr(np.fft, row.function), axes=axes, norm=norm, **lengths(row, axes, target))
    return Called(lambda block, out: transform(block, out=out))
