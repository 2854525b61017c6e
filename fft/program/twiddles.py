"""Factors: accurate roots of unity, the twiddles of a stage on one rank, and the spectra of chirps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from rote.grammar.nodes import Entry, Name, Tile
from rote.layout.distribution import Distribution
from rote.layout.indexset import Ints
from rote.layout.layout import Layout
from rote.layout.view import View
from rote.runtime.comm.protocol import Array, Comm
from rote.tensor import DistTensor

from ..check import build, mode_names
from ..families.ragged import ragged
from ..request import as_request
from ..transforms import real_dtype
from ..walk import Convolve, Twiddle, Walk

__all__ = ["chirp", "chirp_spectrum", "factor", "roots"]


_AT_ONCE = 1 << 14  # roots whose angles stay in a core's cache


def roots(numerator: Ints, points: int, dtype: np.dtype[Any]) -> Array:
    """exp(-2 pi i k / points) for integers k from 0 to points - 1; each part to about an ulp of the dtype's precision.

    The angle is reduced to an eighth of a turn in integers, so that nothing is lost before the cosine. The rounding
    error of the angle is corrected in cosine and sine.

    >>> roots(np.arange(4), 4, np.dtype("c16")).tolist()
    [(1+0j), -1j, (-1+0j), 1j]
    """
    values = np.empty(numerator.shape, dtype)
    flat, numbers = values.reshape(-1), numerator.reshape(-1)
    real = np.promote_types(real_dtype(dtype), np.float64)

    for start in range(0, len(flat), _AT_ONCE):
        octant, rest = np.divmod(8 * numbers[start : start + _AT_ONCE], points)
        eighth = np.where(octant % 2 == 1, points - rest, rest)  # in units of an eighth of a turn / points
        near, far = _near(eighth, points, real)

        swapped = (octant + 1) // 2 % 2 == 1  # octants 1, 2, 5 and 6: nearer to the imaginary axis
        cosine, sine = np.where(swapped, far, near), np.where(swapped, near, far)

        # Both are absolute values. The cosine is negative in octants 2 to 5, and minus the sine in octants 0 to 3.
        part = flat[start : start + _AT_ONCE]
        part.real = np.where((octant + 2) // 4 % 2 == 1, -cosine, cosine) + 0.0
        part.imag = np.where(octant // 4 == 1, sine, -sine) + 0.0

    return values


def _near(eighth: Ints, points: int, real: np.dtype[Any]) -> tuple[Array, Array]:
    """Cosine and sine of eighth / points of an eighth of a turn."""
    angle = eighth.astype(np.longdouble) / points * np.arctan(np.longdouble(1))
    rounded = angle.astype(real)
    lost = (angle - rounded).astype(real)
    near, far = np.cos(rounded), np.sin(rounded)
    return near - lost * far, far + lost * near


def chirp(index: Ints, points: int, dtype: np.dtype[Any], back: bool = False) -> Array:
    """exp(-pi i k² / points) for indices k; the square is reduced modulo 2 points in integers, up to 2**39 points.

    >>> chirp(np.array([0, 1, 2]), 2, np.dtype("c16")).tolist()
    [(1+0j), -1j, (1+0j)]
    """
    turn = 2 * points
    high, low = np.divmod(index, 1 << 16)
    squares = ((index * high % turn << 16) + index * low) % turn
    values = roots(squares, turn, dtype)
    return np.conj(values) if back else values


def factor(twiddle: Twiddle, dist: Distribution, rank: int, dtype: np.dtype[Any]) -> Array:
    """The factor of a rank's block for a twiddle: an array that broadcasts to the block's shape."""
    indices = dist.indices(rank)
    digit, others = indices[twiddle.mode], indices[twiddle.other] // twiddle.weight % twiddle.size
    turns = np.multiply.outer(digit * twiddle.step % twiddle.points, others) % twiddle.points
    values = roots(turns, twiddle.points, dtype)
    if twiddle.back:
        values = np.conj(values)
    if twiddle.mode > twiddle.other:
        values = values.T

    shape = [1] * len(indices)
    for m in (twiddle.mode, twiddle.other):
        shape[m] = len(indices[m])
    return values.reshape(shape)


def chirp_spectrum(
    action: Convolve, dist: Distribution, comm: Comm, dtype: np.dtype[Any], run: Callable[[Walk, Array], Array]
) -> Array:
    """The factor of a rank's block for a convolution (Bluestein 1970), which broadcasts to it. Collective.

    It is the spectrum of exp(pi i k² / n) for -n < k < n, distributed as the convolution's digits are. The chirp is
    transformed as a distributed tensor, so that no rank holds more of it than of the convolved tensor.
    """
    modes = tuple(dist.layout.modes[m] for m in action.modes)
    points = prod(action.sizes)
    start = Layout((tuple(Entry(entry.grid_mode) for entry in chain(*modes)),)).on((points,), dist.grid)
    request = as_request((points,), (0,), "fft", dtype)
    walk = build(start, ragged(start, request), request)

    (index,) = start.indices(comm.rank)
    distance = np.minimum(index, points - index)  # from 0, around the circle
    inside = distance < action.n
    block = np.zeros(len(index), dtype)
    block[inside] = chirp(distance[inside], action.n, dtype, back=True)
    tensor = DistTensor(run(walk, block), walk.target, comm)

    # The spectrum is read in the digits of the convolution, whose modes may be in another order.
    parts = tuple(zip(mode_names(len(modes)), (None, *action.sizes[1:]), strict=True))
    item = Tile(parts) if len(parts) > 1 else Name(parts[0][0])
    view = View((item,))
    spectrum: Array = tensor.redistribute(Layout(modes, view), grid=dist.grid).local / real_dtype(dtype).type(points)
    spectrum = spectrum.transpose(np.argsort(action.modes))

    extents = dist.local_shape(comm.rank)
    shape = [1] * len(extents)
    for m in action.modes:
        shape[m] = extents[m]
    spectrum = spectrum.reshape(shape)
    return np.conj(spectrum) if action.back else spectrum
