"""Transforms of real numbers: cosines and sines, Hartley's, FFTW's halfcomplex order, and Hermitian signals.

A Hermitian signal equals its own mirrored conjugate, so half of it is kept, and its spectrum is real. Its transforms
are those of real numbers with input and spectrum interchanged, and so with the norms swapped.
"""

from __future__ import annotations

import numpy as np

from rote.errors import LayoutError
from rote.layout.layout import Layout
from rote.tensor import DistTensor

from ..request import Norm, check_norm, check_tensor
from .fourier import Axes, Lengths, transform

__all__ = ["cosines", "dctn", "dht", "dstn", "hc2r", "hfft", "idctn", "idstn", "ihfft", "r2hc"]

_SWAPPED: dict[Norm, Norm] = {"forward": "backward", "backward": "forward", "ortho": "ortho"}


def dctn(
    x: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    """Return the discrete cosine transform along some axes, as `scipy.fft.dctn`.

    Args:
        x: a tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor
            are transformed separately.
        type: 1, 2, 3 or 4. Type 1 needs at least two points along each axis.
        norm: "backward" (the default), "ortho", which makes the transform orthogonal, or "forward".
        orthogonalize: whether the first and last points are weighted so that the transform is orthogonal but for a
            factor, as in SciPy; if None, with norm="ortho" only.

    The other arguments and errors are those of `fftn`; another type is refused as well, and so is an axis that is
    named twice.

    Returns:
        A tensor of x's shape, except for `s`; real if x is, else complex.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.ones((2, 3)), "block[(0),()]")
    >>> dctn(x).to_global().round(12).tolist()
    [[24.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return transform(cosines("dct", type), x, s, axes, norm, output, algorithm, None, orthogonalize)


def idctn(
    X: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    """The inverse of `dctn` of the same type and norm, as `scipy.fft.idctn`, in the layout before `dctn`.

    Arguments, result and errors are those of `dctn`.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> idctn(dctn(x, type=3), type=3).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    return transform(cosines("idct", type), X, s, axes, norm, output, algorithm, None, orthogonalize)


def dstn(
    x: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    """The discrete sine transform along some axes, as `scipy.fft.dstn`.

    Arguments, result and errors are those of `dctn`; type 1 takes one point as well.

    >>> import numpy as np
    >>> dstn(DistTensor.from_global(np.ones(2), "block[(0)]"), type=1).to_global().round(3).tolist()
    [3.464, 0.0]
    """
    return transform(cosines("dst", type), x, s, axes, norm, output, algorithm, None, orthogonalize)


def idstn(
    X: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
    *,
    orthogonalize: bool | None = None,
) -> DistTensor:
    """The inverse of `dstn` of the same type and norm, as `scipy.fft.idstn`, in the layout before `dstn`.

    Arguments, result and errors are those of `dstn`.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> idstn(dstn(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    return transform(cosines("idst", type), X, s, axes, norm, output, algorithm, None, orthogonalize)


def dht(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """Return the discrete Hartley transform along some axes: the sum of x[j] (cos + sin)(2 pi j k / n) over j.

    Along one axis it is the real part of the Fourier transform of a real tensor minus the imaginary part. Along several
    axes, each is transformed in turn, as by FFTW's DHT.

    Args:
        x: a tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor
            are transformed separately.
        norm: "backward" (the default), which does not scale; "forward", which divides by the number of points and so
            inverts "backward"; or "ortho", with which the transform is its own inverse.

    The other arguments and errors are those of `fftn`.

    Returns:
        A tensor of x's shape, except for `s`; real if x is, else complex.

    Source: Hartley (1942); Bracewell (1983).

    >>> x = DistTensor.from_global([1.0, 2.0, 3.0, 4.0], "block[(0)]")
    >>> X = dht(x)
    >>> X.to_global().round(12).tolist(), dht(X, norm="forward").to_global().round(12).tolist()
    ([10.0, -4.0, -2.0, 0.0], [1.0, 2.0, 3.0, 4.0])
    """
    return transform("dht", x, s, axes, norm, output, algorithm)


def r2hc(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """Return the Fourier transform of real numbers in FFTW's halfcomplex order: as many real numbers, along some axes.

    Along one axis of n points these are the real parts of `numpy.fft.rfft` from the first to the last, followed by
    the imaginary parts that are not always zero, from the last to the first: r0, r1, …, r(n/2), i((n+1)/2-1), …, i1.
    Along several axes, each is transformed in turn.

    Args:
        x: a tensor in any layout that has no view and is not partial. The real and imaginary parts of a complex tensor
            are transformed separately.
        norm: "backward" (the default), "ortho" or "forward", as for `numpy.fft.rfft`.

    The other arguments and errors are those of `fftn`.

    Returns:
        A tensor of x's shape, except for `s`; real if x is, else complex.

    Source: Frigo and Johnson (2005).

    >>> x = DistTensor.from_global([1.0, 2.0, 3.0, 5.0], "block[(0)]")
    >>> r2hc(x).to_global().round(12).tolist()
    [11.0, -2.0, -3.0, 3.0]
    """
    return transform("r2hc", x, s, axes, norm, output, algorithm)


def hc2r(
    X: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The real tensor of spectra in FFTW's halfcomplex order: the inverse of `r2hc` with the same norm.

    Arguments, result and errors are those of `r2hc`.

    >>> x = DistTensor.from_global([1.0, 2.0, 3.0, 5.0, 4.0], "block[(0)]")
    >>> hc2r(r2hc(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0, 5.0, 4.0]
    """
    return transform("hc2r", X, s, axes, norm, output, algorithm)


def hfft(
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """Return the real spectrum of half a Hermitian signal, along one axis, as `numpy.fft.hfft`.

    Args:
        x: the points from 0 to n//2 along the axis; the others are their conjugates in reverse order.
        n: the number of points of the whole signal and of the spectrum; 2(m - 1) for m points if None, so an odd number
            must be given.
        axis: the axis of the transform.
        norm, output, algorithm: as for `rote.fft.fftn`.

    Returns:
        A real tensor. x keeps its values.

    Raises: as `rote.fft.fftn`.

    >>> x = DistTensor.from_global([4.0, 1j, 2.0], "block[(0)]")
    >>> hfft(x).to_global().round(12).tolist()
    [6.0, 4.0, 6.0, 0.0]
    """
    check_tensor(x, "hfft")
    return transform("irfft", x.conj(), n, axis, _SWAPPED[check_norm(norm)], output, algorithm)


def ihfft(
    x: DistTensor,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """Return half the Hermitian signal of a real spectrum, along one axis, as `numpy.fft.ihfft`: the inverse of `hfft`.

    Args:
        x: a real tensor.
        n: the length of the transform: x is cut to it or padded with zeros at its end; x's extent if None.

    The other arguments and errors are those of `hfft`; a complex tensor is refused as well.

    Returns:
        A complex tensor with n//2 + 1 points along the axis.

    >>> ihfft(DistTensor.from_global([6.0, 4.0, 6.0, 0.0], "block[(0)]")).to_global().tolist()
    [(4-0j), 1j, (2-0j)]
    """
    X = transform("rfft", x, n, axis, _SWAPPED[check_norm(norm)], output, algorithm, name="ihfft")
    np.conjugate(X.local, out=X.local)
    return X


def cosines(name: str, type: int) -> str:
    """The key in `FUNCTIONS` of a cosine or sine transform of a type.

    Raises:
        LayoutError: there is no such type.
    """
    if type not in (1, 2, 3, 4):
        raise LayoutError(f"type is 1, 2, 3 or 4; not {type!r}")
    return f"{name}{int(type)}"
