"""NumPy's transforms of Hermitian signals, each its own mirrored conjugate: half of it is kept, and spectra are real.

They are transforms of real numbers seen from the other side, with norms the other way round.
"""

from __future__ import annotations

import numpy as np

from rote.layout.layout import Layout
from rote.tensor import DistTensor

from .functions import transform
from .request.arguments import Norm, check_norm, check_real, check_tensor

__all__ = ["hfft", "ihfft"]

_SWAPPED: dict[Norm, Norm] = {"forward": "backward", "backward": "forward", "ortho": "ortho"}


def hfft(
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The real spectrum of half a Hermitian signal, along one axis, as `numpy.fft.hfft`.

    Args:
        x: its points from 0 to n//2 along the axis; the others are the conjugates of these, in reverse.
        n: the points of the whole signal, and of the spectrum; 2(m - 1) of m points if None, so that an odd number must
            be said.
        axis: along which it is transformed.
        norm, output, algorithm: as `rote.fft.fftn` has them.

    Returns:
        A tensor of real numbers. x keeps its values.

    Raises: as `rote.fft.fftn`.

    >>> x = DistTensor.from_global([4.0, 1j, 2.0], "block[(0)]")
    >>> hfft(x).to_global().round(12).tolist()
    [6.0, 4.0, 6.0, 0.0]
    """
    check_tensor(x, "hfft")
    return transform("irfft", x.conj(), _points(n), axis, _SWAPPED[check_norm(norm)], output, algorithm)


def ihfft(
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """Half the Hermitian signal of a real spectrum, along one axis, as `numpy.fft.ihfft`: the inverse of `hfft`.

    Args:
        x: real.
        n: the points of the transform: x is cut to them or padded with zeros at its end; as many as it has if None.

    The other arguments and errors as `hfft`; a complex tensor is refused as well.

    Returns:
        A tensor of complex numbers, n//2 + 1 points along the axis.

    >>> ihfft(DistTensor.from_global([6.0, 4.0, 6.0, 0.0], "block[(0)]")).to_global().tolist()
    [(4-0j), 1j, (2-0j)]
    """
    check_real(x, "ihfft")
    X = transform("rfft", x, _points(n), axis, _SWAPPED[check_norm(norm)], output, algorithm)
    np.conjugate(X.local, out=X.local)
    return X


def _points(n: int | None) -> tuple[int, ...] | None:
    """NumPy's n of one axis as its s of several."""
    return None if n is None else (n,)
