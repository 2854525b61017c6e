"""ducc0: every kind, in every precision. It copies columns to buffers by itself, which suits large blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rote.host import installed

from ...transforms import KINDS
from ..kernel import Kernel
from .protocol import Array, ArrayTransform, Called

__all__ = ["does", "prepare", "version"]


def version() -> str:
    return installed("ducc0")


def does(kind: str, dtype: np.dtype[Any]) -> bool:
    return bool(KINDS[kind].ducc0) and dtype.char in "fdgFDG"


def prepare(kernel: Kernel, axes: tuple[int, ...], source: Array, target: Array, threads: int) -> ArrayTransform:
    from ducc0 import fft

    row = kernel.row_between(source, target)
    options: dict[str, Any] = {"axes": axes, "inorm": 0, "nthreads": threads}
    if row.real != "both":
        options["forward"] = not row.backward
    if row.real == "output":
        options |= {"lastsize": target.shape[axes[-1]], "allow_overwriting_input": True}
    if row.type:
        options["type"] = row.type
    transform = partial(getattr(fft, row.ducc0), **options)
    return Called(lambda block, out: transform(block, out=out))
