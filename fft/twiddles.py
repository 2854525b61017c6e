"""Twiddle factors: roots of unity to the last bits, and the factors of a stage on one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rote.layout.distribution import Distribution

from .local.kernels import real_dtype
from .walk import Twiddle

__all__ = ["chirp", "factor", "roots"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def roots(numerator: Ints, points: int, dtype: np.dtype[Any]) -> Array:
    """exp(-2 pi i k / points) for integers k from 0 to points - 1; each part to about an ulp of the dtype's precision.

    The angle is reduced to an eighth of a turn in integers, so that nothing is lost before the cosine, and what it
    loses as it is rounded is added to cosine and sine.

    >>> roots(np.arange(4), 4, np.dtype("c16")).tolist()
    [(1+0j), -1j, (-1+0j), 1j]
    """
    real = np.promote_types(real_dtype(dtype), np.float64)
    octant, rest = np.divmod(8 * numerator, points)
    odd = octant % 2 == 1
    eighth = np.where(odd, points - rest, rest).astype(np.longdouble) / points  # of an eighth of a turn
    angle = eighth * np.arctan(np.longdouble(1))
    rounded = angle.astype(real)
    lost = (angle - rounded).astype(real)
    near, far = np.cos(rounded), np.sin(rounded)
    near, far = near - lost * far, far + lost * near
    swapped = (octant + 1) // 2 % 2 == 1  # octants 1, 2, 5 and 6: nearer to the imaginary axis
    cosine, sine = np.where(swapped, far, near), np.where(swapped, near, far)
    found = np.empty(numerator.shape, dtype)
    found.real = np.where((octant + 2) // 4 % 2 == 1, -cosine, cosine) + 0.0
    found.imag = np.where(octant // 4 == 1, sine, -sine) + 0.0
    return found


def chirp(index: Ints, points: int, dtype: np.dtype[Any], back: bool = False) -> Array:
    """exp(-pi i k² / points) for indices k; the square is reduced modulo 2 points in integers, up to 2**39 points.

    >>> chirp(np.array([0, 1, 2]), 2, np.dtype("c16")).tolist()
    [(1+0j), -1j, (1+0j)]
    """
    turn = 2 * points
    high, low = np.divmod(index, 1 << 16)
    squares = ((index * high % turn << 16) + index * low) % turn
    found = roots(squares, turn, dtype)
    return np.conj(found) if back else found


def factor(twiddle: Twiddle, dist: Distribution, rank: int, dtype: np.dtype[Any]) -> Array:
    """What a rank's block is multiplied by for a twiddle: an array that broadcasts to the block's shape."""
    held = dist.indices(rank)
    one, other = held[twiddle.mode], held[twiddle.other] // twiddle.weight % twiddle.size
    turns = np.multiply.outer(one * twiddle.step % twiddle.points, other) % twiddle.points
    found = roots(turns, twiddle.points, dtype)
    if twiddle.back:
        found = np.conj(found)
    if twiddle.mode > twiddle.other:
        found = found.T
    shape = [len(index) if m in (twiddle.mode, twiddle.other) else 1 for m, index in enumerate(held)]
    return found.reshape(shape)
