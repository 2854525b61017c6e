"""NumPy's transforms on distributed tensors: same names, same conventions, the layout said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rote.errors import LayoutError
from rote.layout.layout import Layout
from rote.runtime.shelf import keep
from rote.tensor import DistTensor

from .families import check_algorithm, transpose
from .kernels import check_extents, complex_dtype, real_dtype
from .transform import BoundWalk, check_norm, normal_axes, scale

__all__ = ["fftn", "ifftn", "irfftn", "rfftn"]

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
        algorithm: "slab" or "pencil" to insist that x lies so; "auto" to walk from where it lies.

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
    check_algorithm(algorithm, x.layout)
    check_extents(x.shape, named)
    if kind == "rfft" and not named:
        raise LayoutError("rfftn needs at least one axis")
    dtype = real_dtype(x.dtype) if kind == "rfft" else complex_dtype(x.dtype)
    key = (x.distribution, named, kind, dtype, length)
    bound = keep(x.comm, "walks", key, lambda: BoundWalk(transpose(*key), x.comm), _KEPT)
    target = bound.walk.target
    real_extents = bound.walk.source.shape if kind in ("fft", "rfft") else target.shape
    block = np.empty(target.local_shape(x.comm.rank), bound.walk.dtypes()[-1])
    factor = scale(norm, [real_extents[a] for a in named], forward=kind in ("fft", "rfft"))
    bound(x.local.astype(dtype, copy=False), block, factor)
    found = DistTensor(block, target, x.comm)
    return found if output is None else found.redistribute(output)
