"""Frequencies and wavenumbers of a rank's block of a spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError

from ..transforms import HALVING, KINDS, real_dtype
from .walk import Walk

__all__ = ["NYQUIST", "Lengths", "Nyquist", "frequencies", "wavenumbers"]

Array = npt.NDArray[Any]
Lengths = float | Sequence[float]

Nyquist = Literal["keep", "zero"]
NYQUIST: tuple[Nyquist, ...] = get_args(Nyquist)
"""The treatments of the highest wavenumber of an even extent by `wavenumbers`."""


def frequencies(walk: Walk, axes: tuple[int, ...], rank: int, d: Lengths) -> tuple[Array, ...]:
    """The frequencies of a rank's block of a spectrum; see `rote.fft.fftfreq`."""
    rows = []
    for axis, index, spacing in zip(axes, _harmonics(walk, axes, rank), _lengths(d, axes, "spacing d"), strict=True):
        turn = 1 / (walk.sizes[axis] * spacing)  # spacing of the signal's points, even if the spectrum is resampled
        rows.append((index * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def wavenumbers(walk: Walk, axes: tuple[int, ...], rank: int, L: Lengths, nyquist: Nyquist) -> tuple[Array, ...]:
    """The angular wavenumbers 2 pi k / L of a rank's block of a spectrum; see `FFT.wavenumbers`."""
    if nyquist not in NYQUIST:
        raise LayoutError(f"nyquist is one of {', '.join(NYQUIST)}; not {nyquist!r}")
    rows = []
    for axis, index, length in zip(axes, _harmonics(walk, axes, rank), _lengths(L, axes, "length L"), strict=True):
        half_turns, n = KINDS[walk.kinds[axis]].first is not None, walk.points[axis]
        if nyquist == "zero" and not half_turns:
            index = np.where(2 * abs(index) == n, 0, index)
        turn = 8 * np.arctan(type(length)(1)) / length  # 2 pi, in the precision of the length
        if half_turns:
            turn = turn / 2
        rows.append((index * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def _harmonics(walk: Walk, axes: tuple[int, ...], rank: int) -> list[Array]:
    """The harmonics of a rank's block per axis of a transform, in turns per size of the transform."""
    held = walk.target.tensor_indices(rank)
    rows: list[Array] = []
    for axis in axes:
        index, kind, n = held[axis], walk.kinds[axis], walk.points[axis]
        first = KINDS[kind].first
        if first is not None:
            rows.append(index + first)
        elif KINDS[kind].parts == "halves":
            rows.append(np.minimum(index, n - index))
        elif kind in HALVING:
            rows.append(index)
        else:
            rows.append(np.where(index < (n + 1) // 2, index, index - n))
    return rows


def _lengths(given: Lengths, axes: tuple[int, ...], name: str) -> list[np.floating[Any]]:
    """One length per axis of a transform, in double precision, or in longer precision if it is given so."""
    values = np.asarray(given)
    if values.dtype.kind not in "iuf" or values.ndim > 1:
        raise LayoutError(f"the {name} is a number, or one per axis, not {given!r}")
    if values.ndim and len(values) != len(axes):
        raise LayoutError(f"the {name} is one number, or one for each of the axes {axes}, not {len(values)} of them")
    if not (np.isfinite(values) & (values > 0)).all():
        raise LayoutError(f"the {name} is positive and finite, not {given!r}")
    return list(np.broadcast_to(values.astype(np.result_type(values, np.float64)), len(axes)))
