"""The frequencies of points or of a transform's spectrum, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from ..plan import FFT
from ..walk.wavenumbers import frequencies

__all__ = ["fftfreq", "rfftfreq"]

Array = npt.NDArray[Any]


@overload
def fftfreq(n: FFT, d: float | Sequence[float] = 1.0) -> tuple[Array, ...]: ...


@overload
def fftfreq(n: int, d: float = 1.0, device: Literal["cpu"] | None = None) -> Array: ...


def fftfreq(
    n: FFT | int, d: float | Sequence[float] = 1.0, device: Literal["cpu"] | None = None
) -> Array | tuple[Array, ...]:
    """Return the frequencies of n points, as `numpy.fft.fftfreq`, or those of this rank's block of a spectrum.

    For a real transform the last axis is half a spectrum, with the frequencies of `numpy.fft.rfftfreq`. Those of cosine
    and sine transforms are also at most half a cycle per sample: k / (2 n) for a "dct2" of n points.

    Args:
        n: the number of points along an axis; or a transform, an `FFT`.
        d: the sample spacing, in any unit: one for all axes, or one per axis of `f.axes` of a transform f.
        device: None or "cpu", as in NumPy.

    Returns:
        In cycles per unit of d: of n points, one array, the same on all ranks, which a tensor takes as a whole one. Of
        a transform, one array per axis, in the transform's real dtype. Together they broadcast to this rank's block of
        the spectrum, as an open mesh does (`numpy.ogrid`), for any layout; `f.wavenumbers` gives tensors.

    Raises:
        LayoutError: there are not as many spacings as axes, or one is not positive.
        TypeError: n is neither. A tensor does not say which of its axes are frequencies, nor of how many points.

    >>> fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> vertical, horizontal = fftfreq(f, d=(0.5, 1.0))
    >>> vertical.ravel().tolist(), horizontal.shape
    ([0.0, 0.5, -1.0, -0.5], (1, 4))
    """
    if isinstance(n, FFT):
        indices = n.output_distribution.tensor_indices(n.comm.rank)
        return frequencies(n.walk, n.axes, [indices[axis] for axis in n.axes], d)
    _check(n, "fftfreq")
    return np.fft.fftfreq(n, d, device=device)


def rfftfreq(n: int, d: float = 1.0, device: Literal["cpu"] | None = None) -> Array:
    """Return the frequencies of half the spectrum of n real points, as `numpy.fft.rfftfreq`; the same on all ranks.

    Returns:
        An array of n//2 + 1 frequencies in cycles per unit of d.

    Raises:
        TypeError: n is not a number of points; for an `FFT`, `fftfreq` gives those of half a spectrum.

    >>> rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    _check(n, "rfftfreq")
    return np.fft.rfftfreq(n, d, device=device)


def _check(n: object, name: str) -> None:
    """Refuse what is not a number of points."""
    if not isinstance(n, Integral):
        raise TypeError(
            f"{name} takes a number of points, not {type(n).__name__}, which does not say what was transformed\n"
            "write f = FFT(x.shape, x.layout, x.grid, x.comm, x.dtype); X = f.forward(x); fftfreq(f)"
        )
