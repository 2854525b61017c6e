"""The frequencies of a transform's spectrum, under NumPy's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ..plan import FFT
from ..walk.wavenumbers import frequencies

__all__ = ["fftfreq"]


def fftfreq(f: FFT, d: float | Sequence[float] = 1.0) -> tuple[npt.NDArray[Any], ...]:
    """Return the frequencies of this rank's block of the spectrum of `f.forward`, as `numpy.fft.fftfreq`.

    For a real transform the last axis is half a spectrum, with the frequencies of `numpy.fft.rfftfreq`. Those of cosine
    and sine transforms are also at most half a cycle per sample: k / (2 n) for a "dct2" of n points.

    Args:
        f: the transform.
        d: the sample spacing, in any unit: one for all axes, or one per axis of `f.axes`.

    Returns:
        One array per axis of `f.axes`, in cycles per unit of d and in the transform's real dtype. Together they
        broadcast to the block, as an open mesh does (`numpy.ogrid`), for any layout of the spectrum.

    Raises:
        LayoutError: there are not as many spacings as axes, or one is not positive.
        TypeError: f is not an `FFT`. A tensor does not say which of its axes are frequencies, nor of how many points.

    >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> vertical, horizontal = fftfreq(f, d=(0.5, 1.0))
    >>> vertical.ravel().tolist(), horizontal.shape
    ([0.0, 0.5, -1.0, -0.5], (1, 4))
    """
    if not isinstance(f, FFT):
        raise TypeError(
            f"fftfreq takes the transform, an FFT, not {type(f).__name__}, which does not say what was transformed\n"
            "write f = FFT(x.shape, x.layout, x.grid, x.comm, x.dtype); X = f.forward(x); fftfreq(f)\n"
            "or numpy.fft.fftfreq(n) for a whole axis of n points"
        )
    return frequencies(f.walk, f.axes, f.comm.rank, d)
