"""The libraries that plan nothing: ducc0, scipy.fft and numpy.fft. Each transform is one call of a function."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...transforms import KINDS, TransformKind
from ..config import KernelConfig, Study
from .library import Array, ArrayTransform, Axes, Called, Ends, Library

__all__ = ["Ducc", "NumPy", "SciPy"]


class Ducc(Library):
    """ducc0: every kind, in every precision. It copies columns to buffers by itself, which suits large blocks."""

    name = "ducc0"
    timed = True

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return bool(KINDS[kind].ducc0) and dtype.char in "fdgFDG"

    def prepare(
        self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig, study: Study | None
    ) -> ArrayTransform:
        from ducc0 import fft

        options: dict[str, Any] = {"axes": axes, "inorm": 0, "nthreads": config.threads}
        if row.real != "both":
            options["forward"] = not row.backward
        if row.real == "output":
            options |= {"lastsize": ends[1].shape[axes[-1]], "allow_overwriting_input": True}
        if row.type:
            options["type"] = row.type
        transform = partial(getattr(fft, row.ducc0), **options)
        return Called(lambda block, out: transform(block, out=out))


class SciPy(Library):
    """scipy.fft: Fourier, cosine and sine transforms, in every precision. Its results are copied to the target."""

    name = "scipy"

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        row = KINDS[kind]
        return (row.real != "both" or row.type > 0) and dtype.char in "fdgFDG"

    def prepare(
        self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig, study: Study | None
    ) -> ArrayTransform:
        import scipy.fft as fft

        function, options = getattr(fft, row.function), {"type": row.type}
        if row.real != "both":
            options = _options(row, axes, ends)
        transform = partial(function, axes=axes, workers=config.threads, **options)

        def run(block: Array, out: Array) -> None:
            out[...] = transform(block)

        return Called(run)


class NumPy(Library):
    """numpy.fft: Fourier transforms in every precision, on one thread."""

    name = "numpy"
    threaded = False

    def version(self) -> str:
        return str(np.__version__)

    def does(self, kind: str, dtype: np.dtype[Any]) -> bool:
        return KINDS[kind].real != "both" and dtype.char in "fdgFDG"

    def prepare(
        self, row: TransformKind, axes: Axes, ends: Ends, config: KernelConfig, study: Study | None
    ) -> ArrayTransform:
        transform = partial(getattr(np.fft, row.function), axes=axes, **_options(row, axes, ends))
        return Called(lambda block, out: transform(block, out=out))


def _options(row: TransformKind, axes: Axes, ends: Ends) -> dict[str, Any]:
    """The options of NumPy's functions by which they do not scale; real results do not follow from their inputs."""
    options: dict[str, Any] = {"norm": "forward" if row.backward else "backward"}
    return options | {"s": [ends[1].shape[axis] for axis in axes]} if row.real == "output" else options
