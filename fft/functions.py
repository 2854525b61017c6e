"""NumPy's and SciPy's transforms on distributed tensors: same names, same conventions, the layout said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rote.errors import LayoutError
from rote.layout.layout import Layout, as_layout
from rote.runtime.shelf import keep
from rote.tensor import DistTensor

from .bound import BoundWalk
from .choose import walk_of
from .kernels import check_extents, complex_dtype, real_dtype
from .kinds import is_forward
from .transform import check_norm, normal_axes, scale

__all__ = ["dctn", "dstn", "fftn", "idctn", "idstn", "ifftn", "irfftn", "rfftn"]

_KEPT = 16  # walks that a communicator keeps bound; each holds about two blocks of scratch

Axes = Sequence[int] | int | None


def fftn(
    x: DistTensor,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete Fourier transform along some axes, as `numpy.fft.fftn`.

    Args:
        x: in any plain layout; a real tensor is taken as complex.
        axes: all if None.
        norm: "backward" (the default), "ortho" or "forward".
        output: the layout of the spectrum; the cheapest one, where the walk ends, if None.
        algorithm: one of `rote.fft.algorithms`; "auto" takes the cheapest walk from where x lies.

    Raises:
        LayoutError: an axis has no points, the layout has a view or is partial, or `output` does not fit.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> bool(np.allclose(fftn(x).to_global(), np.fft.fftn(np.arange(6.0).reshape(2, 3))))
    True
    """
    return _transform("fft", x, axes, norm, output, algorithm)


def ifftn(
    X: DistTensor,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse transform, as `numpy.fft.ifftn`; of what `fftn` gave, it leads back to the layout there.

    Arguments and errors as `fftn`.
    """
    return _transform("ifft", X, axes, norm, output, algorithm)


def rfftn(
    x: DistTensor,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The transform of a real tensor, as `numpy.fft.rfftn`: half the spectrum, n//2 + 1 points along the last axis.

    Arguments and errors as `fftn`; a complex tensor is refused as well.
    """
    if x.dtype.kind == "c":
        raise LayoutError(f"rfftn transforms real tensors, not {x.dtype}; use fftn")
    return _transform("rfft", x, axes, norm, output, algorithm)


def irfftn(
    X: DistTensor,
    s: Sequence[int] | None = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The real tensor of half a spectrum, as `numpy.fft.irfftn`.

    Args:
        s: the extents along `axes` of the result; only the last one can differ from the spectrum's. It is taken as
            even, 2(m - 1), if None, so an odd extent must be said.

    The other arguments and errors as `fftn`.
    """
    named = normal_axes(axes if axes is not None or s is None else range(-len(s), 0), len(X.shape))
    if not named:
        raise LayoutError("irfftn needs at least one axis")
    length = 2 * (X.shape[named[-1]] - 1) if s is None else s[-1]
    if s is not None:
        fits = len(s) == len(named) and all(n == X.shape[a] for n, a in zip(s[:-1], named[:-1], strict=True))
        if not fits or length < 1 or length // 2 + 1 != X.shape[named[-1]]:
            raise LayoutError(f"s={tuple(s)} is not what a spectrum of {X.shape} comes from along axes {named}")
    if length < 1:
        raise LayoutError("a spectrum of one point comes from an extent of 1; say so with s=")
    return _transform("irfft", X, named, norm, output, algorithm, length)


def dctn(
    x: DistTensor,
    type: int = 2,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete cosine transform along some axes, as `scipy.fft.dctn`.

    Args:
        x: in any plain layout; of a complex tensor the real and the imaginary part are transformed, each by itself.
        type: 1, 2, 3 or 4. Type 1 takes two points or more along each axis.
        norm: "backward" (the default), "ortho", which makes the transform orthogonal, or "forward".

    The other arguments and errors as `fftn`; a type that is none of these is refused as well.

    >>> x = DistTensor.from_global(np.ones((2, 3)), "block[(0),()]")
    >>> dctn(x).to_global().round(12).tolist()
    [[24.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return _transform(f"dct{_checked(type)}", x, axes, norm, output, algorithm)


def idctn(
    X: DistTensor,
    type: int = 2,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse of `dctn` of the same type and norm, as `scipy.fft.idctn`; it leads back to the layout there.

    Arguments and errors as `dctn`.
    """
    return _transform(f"idct{_checked(type)}", X, axes, norm, output, algorithm)


def dstn(
    x: DistTensor,
    type: int = 2,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete sine transform along some axes, as `scipy.fft.dstn`.

    Arguments and errors as `dctn`; type 1 takes one point as well.
    """
    return _transform(f"dst{_checked(type)}", x, axes, norm, output, algorithm)


def idstn(
    X: DistTensor,
    type: int = 2,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse of `dstn` of the same type and norm, as `scipy.fft.idstn`; it leads back to the layout there.

    Arguments and errors as `dstn`.
    """
    return _transform(f"idst{_checked(type)}", X, axes, norm, output, algorithm)


def _checked(type: int) -> int:
    """A type of cosine or sine transform."""
    if type not in (1, 2, 3, 4):
        raise LayoutError(f"type is 1, 2, 3 or 4; not {type!r}")
    return int(type)


def _transform(
    kind: str,
    x: DistTensor,
    axes: Axes,
    norm: str | None,
    output: Layout | str | None,
    algorithm: str,
    length: int = 0,
) -> DistTensor:
    named = normal_axes(axes, len(x.shape))
    norm = check_norm(norm)
    check_extents(x.shape, named)
    if kind == "rfft" and not named:
        raise LayoutError("rfftn needs at least one axis")
    stays_real = kind == "rfft" or ("fft" not in kind and x.dtype.kind != "c")
    dtype = real_dtype(x.dtype) if stays_real else complex_dtype(x.dtype)
    key = (x.distribution, named, kind, dtype, length, algorithm, None if output is None else as_layout(output))
    bound = keep(x.comm, "walks", key, lambda: BoundWalk(walk_of(*key), x.comm), _KEPT)
    target = bound.walk.target
    block = np.empty(target.local_shape(x.comm.rank), bound.dtypes[-1])
    factor = scale(norm, bound.walk.sizes, is_forward(kind))
    bound(x.local.astype(dtype, copy=False), block, factor, norm == "ortho")
    return DistTensor(block, target, x.comm)
