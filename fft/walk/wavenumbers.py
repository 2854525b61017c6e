"""Frequencies, wavenumbers and shells of the elements of a spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError

from ..transforms import HALVING, KINDS, real_dtype
from .walk import Walk

__all__ = ["NYQUIST", "Lengths", "Nyquist", "frequencies", "shells", "wavenumbers"]

Array = npt.NDArray[Any]
Lengths = float | Sequence[float]

Nyquist = Literal["keep", "zero"]
NYQUIST: tuple[Nyquist, ...] = get_args(Nyquist)
"""The treatments of the highest wavenumber of an even extent by `wavenumbers`."""


def frequencies(walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], d: Lengths) -> tuple[Array, ...]:
    """The frequencies of the elements at some global indices of a spectrum; see `rote.fft.fftfreq`."""
    rows = []
    for axis, at, spacing in zip(axes, indices, _lengths(d, axes, "spacing d"), strict=True):
        turn = 1 / (walk.sizes[axis] * spacing)  # spacing of the signal's points, even if the spectrum is resampled
        rows.append((_harmonics(walk, axis, at) * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def wavenumbers(
    walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], L: Lengths, nyquist: Nyquist
) -> tuple[Array, ...]:
    """The angular wavenumbers 2 pi k / L at some global indices of a spectrum; see `FFT.wavenumbers`.

    Args:
        indices: per axis of `axes`, an array of indices along it.
    """
    if nyquist not in NYQUIST:
        raise LayoutError(f"nyquist is one of {', '.join(NYQUIST)}; not {nyquist!r}")
    rows = []
    for axis, at, length in zip(axes, indices, _lengths(L, axes, "length L"), strict=True):
        half_turns, n = KINDS[walk.kinds[axis]].first is not None, walk.points[axis]
        index = _harmonics(walk, axis, at)
        if nyquist == "zero" and not half_turns:
            index = np.where(2 * abs(index) == n, 0, index)
        turn = 8 * np.arctan(type(length)(1)) / length  # 2 pi, in the precision of the length
        if half_turns:
            turn = turn / 2
        rows.append((index * turn).astype(real_dtype(walk.dtype), copy=False))
    return tuple(rows)


def shells(walk: Walk, axes: tuple[int, ...], indices: Sequence[Array], L: Lengths) -> tuple[Array, Array, int]:
    """The shells of the elements at some global indices of a spectrum; see `FFT.shell_sums`.

    Returns:
        The number of each element's shell; how many elements of a whole spectrum it stands for; the number of shells.
    """
    width = 2 * pi / float(max(_lengths(L, axes, "length L"), default=2 * pi))
    square = sum((k.astype(float) ** 2 for k in wavenumbers(walk, axes, indices, L, "keep")), np.zeros(()))
    whole = [np.arange(walk.target.shape[axis]) for axis in axes]
    most = sum(max(k.astype(float) ** 2, default=0) for k in wavenumbers(walk, axes, whole, L, "keep"))
    stands_for = np.ones(())
    for axis, at in zip(axes, indices, strict=True):
        if walk.kinds[axis] in HALVING or KINDS[walk.kinds[axis]].parts == "halves":
            stands_for = np.where(
                2 * at % walk.points[axis] == 0, 1.0, 2.0
            )  # what is its own mirror image, counts once
    numbers = np.floor(np.sqrt(square) / width + 0.5).astype(np.int64)
    return numbers, stands_for, int(np.sqrt(most) / width + 0.5) + 1


def _harmonics(walk: Walk, axis: int, index: Array) -> Array:
    """The harmonics at some indices along an axis of a transform, in turns per size of the transform."""
    kind, n = walk.kinds[axis], walk.points[axis]
    first = KINDS[kind].first
    if first is not None:
        shifted: Array = index + first
        return shifted
    if KINDS[kind].parts == "halves":
        mirrored: Array = np.minimum(index, n - index)
        return mirrored
    return index if kind in HALVING else np.where(index < (n + 1) // 2, index, index - n)


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
