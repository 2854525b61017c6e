"""Arrays with known spectra, products of one vector per mode: every element of array or spectrum can be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import TypeAlias

import numpy as np

from ..errors import RoteError
from ..runtime.comm.protocol import Array
from .contest import Job, Work

__all__ = ["Array", "Mesh", "check_values", "fill", "mesh", "spectrum_shape", "transform_job"]

Mesh: TypeAlias = Sequence[Array]  # the global indices of a block, an array per mode, which broadcast to it


def spectrum_shape(work: Work) -> tuple[int, ...]:
    """The shape of the spectrum of a work's array.

    >>> spectrum_shape(Work((8, 9, 10), np.dtype("f8"), 1))
    (8, 9, 6)
    """
    return (*work.shape[:-1], work.shape[-1] // 2 + 1) if work.real else work.shape


def mesh(shape: Sequence[int]) -> Mesh:
    """The indices of a whole array."""
    return np.ix_(*map(np.arange, shape))


def fill(work: Work, where: Mesh, block: Array) -> None:
    """Fill a block of a work's array with its values."""
    if block.size:
        *first, last = (vector[index] for vector, index in zip(_vectors(work), where, strict=True))
        np.multiply(reduce(mul, first), last, out=block, casting="same_kind")


def transform_job(
    work: Work,
    steps: tuple[Callable[[], Array], Callable[[], Array]],
    x: Array,
    wheres: tuple[Mesh, Mesh],
    scales: tuple[float, float] = (1.0, 1.0),
    close: Callable[[], None] = lambda: None,
    library: str = "",
) -> Job:
    """A job that fills x, and transforms it forward and backward; the steps return the spectrum, and x again.

    `wheres` are the global indices of this rank's blocks of x and of the spectrum, `scales` the factors by which the
    results of the steps are larger than numpy.fft's.
    """
    fill(work, wheres[0], x)

    def check_spectrum(X: Array) -> None:
        first, *others, last = map(np.fft.fft, _vectors(work))
        _check(work, wheres[1], X, [scales[0] * first, *others, last[: spectrum_shape(work)[-1]]])

    def check_back(y: Array) -> None:
        first, *others = _vectors(work)
        _check(work, wheres[0], y, [scales[1] * first, *others])

    return Job(steps, (check_spectrum, check_back), close, library)


def check_values(work: Work, where: Mesh, block: Array) -> None:
    """Refuse a block of a work's array with wrong values."""
    _check(work, where, block, _vectors(work))


def _check(work: Work, where: Mesh, block: Array, vectors: Sequence[Array]) -> None:
    """Raise a RoteError if the first or the last row of a block is not the product of the vectors."""
    if not block.size:
        return
    limit = 1e-3 if work.dtype.char in "fF" else 1e-9
    for row in (slice(0, 1), slice(-1, None)):
        indices = [index[row] if len(index) > 1 else index for index in where]
        wanted = reduce(mul, (vector[index] for vector, index in zip(vectors, indices, strict=True)))
        error = np.abs(block[row] - wanted).max() / np.abs(wanted).max()
        if not error < limit:
            raise RoteError(f"the results of {work} are wrong, by {error:.1e} of the largest value")


def _vectors(work: Work) -> list[Array]:
    """One vector per mode, the same on all ranks."""
    random = np.random.default_rng(0)
    vectors: list[Array] = [random.standard_normal(n) for n in work.shape]
    if work.real:
        return vectors
    return [vector + 1j * random.standard_normal(len(vector)) for vector in vectors]
