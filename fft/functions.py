"""NumPy's and SciPy's transforms on distributed tensors: same names, same conventions, the layout said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rote.compiler.machine import DEFAULT
from rote.errors import LayoutError
from rote.layout.layout import Layout, as_layout
from rote.runtime.calibrate import known_machine
from rote.runtime.comm.cache import cached
from rote.tensor import DistTensor

from .families.choose import walk_of
from .families.gathered import warn_if_gathered
from .program.program import BoundWalk, bind_walks
from .request.arguments import check_extents, check_norm, check_real, check_tensor, normal_axes, scale
from .request.request import as_request
from .transforms import FUNCTIONS, KINDS, complex_dtype, real_dtype

__all__ = ["dctn", "dht", "dstn", "fftn", "hc2r", "idctn", "idstn", "ifftn", "irfftn", "r2hc", "rfftn", "transform"]

_DEPTH = 4  # calls from a user's, where a walk is made
_KEPT = 16  # walks that a communicator keeps bound; each holds about two blocks of scratch

Axes = Sequence[int] | int | None
Lengths = Sequence[int] | int | None


def fftn(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete Fourier transform along some axes, as `numpy.fft.fftn` (Dalcin et al. 2019, eq. 5; see `norm`).

    Any number of threads may call this and the other functions at once where one rank is alone; a communicator of
    several ranks is for one thread of each rank at a time.

    Args:
        x: in any plain layout; a real tensor is taken as complex.
        s: the lengths of the transforms along `axes`: x is cut to them or padded with zeros, at the end, before it
            travels. -1 leaves an extent as it is, and so does None all.
        axes: all if None, or the last ones if s has fewer lengths.
        norm: "backward" (the default), "ortho" or "forward".
        output: the layout of the spectrum; the cheapest one, where the walk ends, if None.
        algorithm: one of `rote.fft.algorithms`; "auto" takes the cheapest walk from where x lies, on the machine that
            `rote tune` measured under as many ranks, or on the usual one.

    Returns:
        A tensor of complex numbers, of x's shape but for `s`, in `output` or where the walk ends. x keeps its values.

    Raises:
        LayoutError: an axis has no points, the layout has a view or is partial, or `output` does not fit.
        TypeError: x is no tensor.

    >>> import numpy as np
    >>> x = DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    >>> bool(np.allclose(fftn(x).to_global(), np.fft.fftn(np.arange(6.0).reshape(2, 3))))
    True
    """
    return transform("fft", x, s, axes, norm, output, algorithm)


def ifftn(
    X: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse transform, as `numpy.fft.ifftn`; of what `fftn` gave, it leads back to the layout there.

    Arguments, result and errors as `fftn`.

    >>> x = DistTensor.from_global(np.arange(3.0), "block[(0)]")
    >>> ifftn(fftn(x)).real.to_global().round(12).tolist()
    [0.0, 1.0, 2.0]
    """
    return transform("ifft", X, s, axes, norm, output, algorithm)


def rfftn(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The transform of a real tensor, as `numpy.fft.rfftn`: half the spectrum, n//2 + 1 points along the last axis.

    Arguments, result and errors as `fftn`; a complex tensor is refused as well.

    >>> rfftn(DistTensor.zeros((4, 6), "block[(0),()]")).shape
    (4, 4)
    """
    check_real(x, "rfftn")
    return transform("rfft", x, s, axes, norm, output, algorithm)


def irfftn(
    X: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The real tensor of half a spectrum, as `numpy.fft.irfftn`.

    Args:
        s: the extents along `axes` of the result. The last one is taken as even, 2(m - 1) of m points, if s is None, so
            an odd extent must be said.

    The other arguments, and errors, as `fftn`.

    Returns:
        A tensor of real numbers. X keeps its values.

    >>> x = DistTensor.from_global(np.arange(5.0), "block[(0)]")
    >>> irfftn(rfftn(x), s=x.shape).to_global().round(12).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    return transform("irfft", X, s, axes, norm, output, algorithm)


def dctn(
    x: DistTensor,
    type: int = 2,
    s: Lengths = None,
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

    Returns:
        A tensor of x's shape, but for `s`; real if x is, else complex.

    >>> x = DistTensor.from_global(np.ones((2, 3)), "block[(0),()]")
    >>> dctn(x).to_global().round(12).tolist()
    [[24.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return transform(f"dct{_checked(type)}", x, s, axes, norm, output, algorithm)


def idctn(
    X: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse of `dctn` of the same type and norm, as `scipy.fft.idctn`; it leads back to the layout there.

    Arguments, result and errors as `dctn`.

    >>> x = DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> idctn(dctn(x, type=3), type=3).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    return transform(f"idct{_checked(type)}", X, s, axes, norm, output, algorithm)


def dstn(
    x: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete sine transform along some axes, as `scipy.fft.dstn`.

    Arguments, result and errors as `dctn`; type 1 takes one point as well.

    >>> dstn(DistTensor.from_global(np.ones(2), "block[(0)]"), type=1).to_global().round(3).tolist()
    [3.464, 0.0]
    """
    return transform(f"dst{_checked(type)}", x, s, axes, norm, output, algorithm)


def idstn(
    X: DistTensor,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The inverse of `dstn` of the same type and norm, as `scipy.fft.idstn`; it leads back to the layout there.

    Arguments, result and errors as `dstn`.

    >>> x = DistTensor.from_global(np.arange(1.0, 4.0), "block[(0)]")
    >>> idstn(dstn(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    return transform(f"idst{_checked(type)}", X, s, axes, norm, output, algorithm)


def dht(
    x: DistTensor,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    output: Layout | str | None = None,
    algorithm: str = "auto",
) -> DistTensor:
    """The discrete Hartley transform along some axes: the sum of x[j] (cos + sin)(2 pi j k / n) over j, as FFTW's DHT.

    Along one axis it is the real part of the Fourier transform of a real tensor minus the imaginary part (Hartley 1942;
    Bracewell 1983). Along several it is done along each in turn.

    Args:
        x: in any plain layout; of a complex tensor the real and the imaginary part are transformed, each by itself.
        norm: "backward" (the default), which does not scale; "forward", which divides by the number of points and so
            undoes "backward"; or "ortho", by which the transform undoes itself.

    The other arguments and errors as `fftn`.

    Returns:
        A tensor of x's shape, but for `s`; real if x is, else complex.

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
    """The Fourier transform of real numbers in FFTW's halfcomplex order, of as many real numbers, along some axes.

    Along one axis of n points these are the real parts of `numpy.fft.rfft` from the first to the last, and then its
    imaginary parts that are not zero for sure, from the last to the first: r0, r1, …, r(n/2), i((n+1)/2-1), …, i1
    (Frigo and Johnson 2005). Along several it is done along each in turn.

    Args:
        x: in any plain layout; of a complex tensor the real and the imaginary part are transformed, each by itself.
        norm: "backward" (the default), "ortho" or "forward", as of `numpy.fft.rfft`.

    The other arguments and errors as `fftn`.

    Returns:
        A tensor of x's shape, but for `s`; real if x is, else complex.

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
    """The real tensor of spectra in FFTW's halfcomplex order: the inverse of `r2hc`, of the same norm.

    Arguments, result and errors as `r2hc`.

    >>> x = DistTensor.from_global([1.0, 2.0, 3.0, 5.0, 4.0], "block[(0)]")
    >>> hc2r(r2hc(x)).to_global().round(12).tolist()
    [1.0, 2.0, 3.0, 5.0, 4.0]
    """
    return transform("hc2r", X, s, axes, norm, output, algorithm)


def _checked(type: int) -> int:
    """A type of cosine or sine transform."""
    if type not in (1, 2, 3, 4):
        raise LayoutError(f"type is 1, 2, 3 or 4; not {type!r}")
    return int(type)


def transform(
    kind: str, x: DistTensor, s: Lengths, axes: Axes, norm: str | None, output: Layout | str | None, algorithm: str
) -> DistTensor:
    """The transform of a kind, a key of `FUNCTIONS`; the other arguments as `fftn`. Called by what a user calls."""
    function = FUNCTIONS[kind]
    check_tensor(x, function.name)
    if axes is None and isinstance(s, Sequence):
        axes = range(-len(s), 0)
    named = normal_axes(axes, len(x.shape))
    norm = check_norm(norm)
    check_extents(x.shape, named)
    side = KINDS[function.kind].real
    if side in ("input", "output") and not named:
        raise LayoutError(f"{function.name} needs at least one axis")
    is_real = side == "input" or (side == "both" and x.dtype.kind != "c")
    dtype = real_dtype(x.dtype) if is_real else complex_dtype(x.dtype)
    wanted = as_request(x.shape, named, kind, dtype, s)
    where = None if output is None else as_layout(output)

    def make() -> BoundWalk:
        machine = known_machine(x.comm) if algorithm == "auto" else DEFAULT
        walk = walk_of(x.distribution, wanted, algorithm, where, machine)
        bound = BoundWalk(walk, x.comm, scale(norm, walk.sizes, wanted.forward), norm == "ortho")
        bind_walks(x.comm, bound)
        if "[" not in algorithm:
            warn_if_gathered(walk, wanted, x.comm, _DEPTH)
        return bound

    bound = cached(x.comm, "walks", (x.distribution, wanted, algorithm, where, norm), make, _KEPT)
    target = bound.walk.target
    block = np.empty(target.local_shape(x.comm.rank), bound.dtypes[-1])
    bound(x.local.astype(dtype, copy=False), block)
    return DistTensor(block, target, x.comm)
