"""Frequencies and wavenumbers of a spectrum, on every rank those of its own block."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError

from .kernels import real_dtype
from .kinds import TRIGONOMETRIC

if TYPE_CHECKING:
    from .transform import FFT

__all__ = ["NYQUIST", "fftfreq", "wavenumbers"]

Array = npt.NDArray[Any]
Lengths = float | Sequence[float]

NYQUIST = ("keep", "zero")
"""What `wavenumbers` does with the highest mode of an even extent."""

_FIRST = {"dct3": 0.5, "dct4": 0.5, "dst1": 1, "dst2": 1, "dst3": 0.5, "dst4": 0.5}
"""The harmonic of index 0 of a cosine or sine transform, of twice its box; 0 if it is not here."""


def fftfreq(f: FFT, d: Lengths = 1.0) -> tuple[Array, ...]:
    """The frequencies of this rank's block of the spectrum that `f.forward` gives, as `numpy.fft.fftfreq`.

    Of a real transform the last axis is half a spectrum, with the frequencies of `numpy.fft.rfftfreq`. Those of cosine
    and sine transforms are at most half a cycle per sample as well: k / (2 n) of a "dct2" of n points.

    Args:
        f: the transform.
        d: the sample spacing, in any unit: one for all axes, or one per axis of `f.axes`.

    Returns:
        One array per axis of `f.axes`, in cycles per unit of d and in the transform's real dtype. Together they
        broadcast to the block, as an open mesh does (`numpy.ogrid`), whatever layout the spectrum has.

    Raises:
        LayoutError: there are not as many spacings as axes, or one is not positive.

    >>> from .transform import FFT
    >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> vertical, horizontal = fftfreq(f, d=(0.5, 1.0))
    >>> vertical.ravel().tolist(), horizontal.shape
    ([0.0, 0.5, -1.0, -0.5], (1, 4))
    """
    found = []
    for axis, index, spacing in zip(f.axes, _harmonics(f), _lengths(d, f, "spacing d"), strict=True):
        turn = 1 / (f.walk.sizes[axis] * spacing)  # of the signal's points, though others may be kept
        found.append((index * turn).astype(real_dtype(f.walk.dtype), copy=False))
    return tuple(found)


def wavenumbers(f: FFT, L: Lengths = 2 * pi, nyquist: str = "keep") -> tuple[Array, ...]:
    """The angular wavenumbers 2 pi k / L of this rank's block of a spectrum; see `FFT.wavenumbers`."""
    if nyquist not in NYQUIST:
        raise LayoutError(f"nyquist is one of {', '.join(NYQUIST)}; not {nyquist!r}")
    found = []
    for axis, index, length in zip(f.axes, _harmonics(f), _lengths(L, f, "length L"), strict=True):
        kind, n = f.walk.kinds[axis], f.walk.points[axis]
        if nyquist == "zero" and kind not in TRIGONOMETRIC:
            index = np.where(2 * abs(index) == n, 0, index)
        turn = 8 * np.arctan(type(length)(1)) / length  # 2 pi, as exact as the length
        turn = turn / 2 if kind in TRIGONOMETRIC else turn
        found.append((index * turn).astype(real_dtype(f.walk.dtype), copy=False))
    return tuple(found)


def _harmonics(f: FFT) -> list[Array]:
    """Per axis of a transform, the harmonics of this rank's block: how often each goes round the transform's size."""
    held = f.walk.target.tensor_indices(f.comm.rank)
    found: list[Array] = []
    for axis in f.axes:
        index, kind, n = held[axis], f.walk.kinds[axis], f.walk.points[axis]
        if kind in TRIGONOMETRIC:
            found.append(index + _FIRST.get(kind, 0))
        else:
            found.append(index if kind == "rfft" else np.where(index < (n + 1) // 2, index, index - n))
    return found


def _lengths(given: Lengths, f: FFT, name: str) -> list[np.floating[Any]]:
    """One length per axis of a transform, in double precision or the longer one in which it is given."""
    values = np.asarray(given)
    if values.dtype.kind not in "iuf" or values.ndim > 1:
        raise LayoutError(f"the {name} is a number, or one per axis, not {given!r}")
    if values.ndim and len(values) != len(f.axes):
        raise LayoutError(f"the {name} is one number, or one for each of the axes {f.axes}, not {len(values)} of them")
    if not (np.isfinite(values) & (values > 0)).all():
        raise LayoutError(f"the {name} is positive and finite, not {given!r}")
    return list(np.broadcast_to(values.astype(np.result_type(values, np.float64)), len(f.axes)))
