"""Transforms of whole axes of a block, and roots of unity, made of the Fourier transforms that XLA has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from ..errors import PlanError
from ..fft.transforms import CASTS, FOURIER, KINDS, real_dtype
from ..fft.walk import Transform
from .meshes import library

__all__ = ["check_kind", "multiplied", "roots", "transformed"]

_MOST = 3  # axes that XLA transforms at once
_NAMES = {"fft": "FFT", "ifft": "IFFT", "rfft": "RFFT", "irfft": "IRFFT"}


def transformed(x: Any, action: Transform, ortho: bool) -> Any:
    """A block after a transform of whole modes; without factors, but XLA divides those backward by their points.

    Args:
        ortho: whether cosine and sine transforms are orthogonal, up to the scale.
    """
    lax = library().lax
    kind, modes = action.kind, action.modes
    if kind in CASTS:
        return lax.real(x) if kind == "real" else lax.complex(x, 0 * x)
    if kind not in FOURIER:
        for mode in modes:
            x = _real_to_real(x, kind, mode, ortho)
        return x

    # The last axes have a real side: they are done first on the way to spectra, and last on the way back.
    last, others = modes[-_MOST:], modes[:-_MOST]
    groups = [(kind, last, action.length)]
    while others:
        groups.append((KINDS[kind].others, others[-_MOST:], 0))
        others = others[:-_MOST]
    for name, axes, length in groups[::-1] if KINDS[kind].backward else groups:
        x = _fourier(x, name, axes, length)
    return x


def check_kind(kind: str) -> None:
    """Refuse a kind of which there is no function here."""
    if kind not in (*CASTS, *FOURIER, *_REAL):
        raise PlanError(f"rote.jax has no {kind}\nwrite one of {', '.join((*FOURIER, *_REAL))}, or take rote.fft.FFT")


def _fourier(x: Any, kind: str, axes: Sequence[int], length: int) -> Any:
    """A Fourier transform of at most three axes, which XLA takes as the last ones."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy
    places = range(x.ndim - len(axes), x.ndim)
    lengths = [x.shape[axis] for axis in axes]
    if kind == "irfft":
        lengths[-1] = length
    spectrum = lax.fft(jnp.moveaxis(x, axes, places), _NAMES[kind], tuple(lengths))
    return jnp.moveaxis(spectrum, places, axes)


# --- cosine and sine transforms, as FFTW defines them ----------------------------------------------------------------


def _real_to_real(x: Any, kind: str, axis: int, ortho: bool) -> Any:
    """A cosine or sine transform of one axis; the real and the imaginary part of complex numbers, one by one."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy
    if jnp.iscomplexobj(x):
        return lax.complex(*[_real_to_real(part, kind, axis, ortho) for part in (lax.real(x), lax.imag(x))])

    first, last = KINDS[kind].ortho
    x = jnp.moveaxis(x, axis, -1)
    if ortho and first:
        x = x * _weights(x, first, sqrt(2))
    y = _REAL[kind](x)
    if ortho and last:
        y = y * _weights(x, last, 1 / sqrt(2))
    return jnp.moveaxis(y, -1, axis)


def _weights(x: Any, places: Sequence[int], weight: float) -> Any:
    """Ones along the last axis, but for a weight at some places."""
    weights = np.ones(x.shape[-1], x.dtype)
    weights[[*places]] = weight
    return weights


def _dct2(x: Any) -> Any:
    """2 Σ x[j] cos(pi (j + 1/2) k / n), from a transform of the even elements, then of the odd ones backward.

    Source: Makhoul (1980).
    """
    jnp = library().numpy
    n = x.shape[-1]
    turned = np.exp(-0.5j * pi / n * np.arange(n // 2 + 1)).astype(np.result_type(x.dtype, np.complex64))
    spectrum = jnp.fft.rfft(jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)) * turned
    back = spectrum[..., 1 : (n + 1) // 2][..., ::-1]
    return 2 * jnp.concatenate([spectrum.real, -back.imag], axis=-1)


def _dct3(x: Any) -> Any:
    """x[0] + 2 Σ x[j] cos(pi j (k + 1/2) / n): the transpose of type II, in which element 0 counts twice."""
    return _transposed(_dct2, x * _weights(x, (0,), 0.5))


def _dst2(x: Any) -> Any:
    """2 Σ x[j] sin(pi (j + 1/2) (k + 1) / n): the cosine transform of (-1)^j x[j], backward."""
    return _dct2(x * (-1.0) ** np.arange(x.shape[-1]).astype(x.dtype))[..., ::-1]


def _dst3(x: Any) -> Any:
    """(-1)^k x[n - 1] + 2 Σ x[j] sin(pi (j + 1) (k + 1/2) / n): as type III of the cosine, with the last element."""
    return _transposed(_dst2, x * _weights(x, (-1,), 0.5))


def _transposed(function: Callable[[Any], Any], x: Any) -> Any:
    """The transposed linear function of an array, which has the shape of its result."""
    jax = library()
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)[0]


_REAL = {"dct2": _dct2, "dct3": _dct3, "dst2": _dst2, "dst3": _dst3}


# --- roots of unity --------------------------------------------------------------------------------------------------


def roots(turns: Any, points: int, dtype: np.dtype[Any]) -> Any:
    """exp(-2 pi i turns / points), for integers from 0 to points - 1."""
    jax = library()
    lax, jnp = jax.lax, jax.numpy
    real = real_dtype(dtype)
    signed = jnp.where(2 * turns > points, -((points - turns).astype(real)), turns.astype(real))
    angle = signed * (2 * pi / points)
    return lax.complex(jnp.cos(angle), -jnp.sin(angle))


def multiplied(a: Any, b: Any, points: int) -> Any:
    """a b modulo some points, for integers of 32 bits, a and b below `points`.

    As the product has more bits, `a` is multiplied by a few bits of `b` at a time, the highest first.
    """
    bits = 31 - points.bit_length()
    product, shift = 0 * a * b, (points.bit_length() - 1) // bits * bits
    while shift >= 0:
        product = ((product << bits) + a * (b >> shift & (1 << bits) - 1)) % points
        shift -= bits
    return product
