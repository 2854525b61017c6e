"""The frequencies of a spectrum, shifts of tensors, and convolutions, under NumPy's and SciPy's names.

A shift along axes changes the indices of elements and not the layout. So the new index is computed per mode, and all
elements whose new index another rank holds are sent there in one exchange.

For a convolution both tensors are transformed, and multiplied in the spectra's layout. The product takes the first
tensor's walk backward, so no spectrum is redistributed to the input's layout. Axes are padded with zeros only as far as
the wanted part of the result needs, to a length that is fast to transform. The second tensor is shifted so that this
part begins at index 0 of the transform.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from numbers import Integral
from typing import Any, Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError
from rote.functions.moves import agree_once, moved, record_move
from rote.layout.distribution import Distribution
from rote.layout.indexset import Ints
from rote.layout.layout import Layout
from rote.layout.refine import fitted
from rote.layout.view import from_tensor, to_tensor
from rote.runtime.arrays import as_array
from rote.runtime.comm.cache import cached
from rote.runtime.comm.protocol import Comm
from rote.runtime.indexed import IndexedMove
from rote.tensor import DistTensor

from ..families.ragged import smooth
from ..plan import FFT
from ..request import Axes, check_tensor, normal_axes
from ..transforms import complex_dtype, real_dtype
from ..wavenumbers import frequencies
from .fourier import fftn, rfftn

__all__ = ["MODES", "ConvolveMode", "convolve", "correlate", "fast_length", "fftfreq", "fftshift"]
__all__ += ["ifftshift", "part", "refuse_tiles", "rfftfreq", "rolled"]

Array = npt.NDArray[Any]

_KEPT_SHIFTS = 64  # shifts that one communicator keeps


@overload
def fftfreq(n: FFT, d: float | Sequence[float] = 1.0) -> tuple[Array, ...]: ...


@overload
def fftfreq(n: int, d: float = 1.0, device: Literal["cpu"] | None = None) -> Array: ...


def fftfreq(
    n: FFT | int, d: float | Sequence[float] = 1.0, device: Literal["cpu"] | None = None
) -> Array | tuple[Array, ...]:
    """Return the frequencies of n points, as `numpy.fft.fftfreq`, or those of this rank's block of a spectrum.

    For a real transform the last axis is half a spectrum, with the frequencies of `numpy.fft.rfftfreq`. Those of cosine
    and sine transforms are also at most half a cycle per sample: k / (2 n) for a "dct2" of n points.

    Parameters
    ----------
    n : FFT | int
        The number of points along an axis; or a transform, an `FFT`.
    d : float | Sequence[float], default 1.0
        The sample spacing, in any unit: one for all axes, or one per axis of `f.axes` of a transform f.
    device : {'cpu'}, optional
        None or "cpu", as in NumPy.

    Returns
    -------
    Array | tuple[Array, ...]
        In cycles per unit of d: of n points, one array, the same on all ranks, which a tensor takes as a whole one. Of
        a transform, one array per axis, in the transform's real dtype. Together they broadcast to this rank's block of
        the spectrum, as an open mesh does (`numpy.ogrid`), for any layout; `f.wavenumbers` gives tensors.

    Raises
    ------
    LayoutError
        There are not as many spacings as axes, or one is not positive.
    TypeError
        `n` is neither. A tensor does not say which of its axes are frequencies, nor of how many points.

    Examples
    --------
    >>> import rote
    >>> rote.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    >>> f = rote.fft.FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> vertical, horizontal = rote.fft.fftfreq(f, d=(0.5, 1.0))
    >>> vertical.ravel().tolist(), horizontal.shape
    ([0.0, 0.5, -1.0, -0.5], (1, 4))
    """
    if isinstance(n, FFT):
        indices = n.output_distribution.tensor_indices(n.comm.rank)
        return frequencies(n.walk, n.axes, [indices[axis] for axis in n.axes], d)
    _check_points(n, "fftfreq")
    return np.fft.fftfreq(n, d, device=device)


def rfftfreq(n: int, d: float = 1.0, device: Literal["cpu"] | None = None) -> Array:
    """Return the frequencies of half the spectrum of n real points, as `numpy.fft.rfftfreq`; the same on all ranks.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1.0
        The sample spacing, in any unit.
    device : {'cpu'}, optional
        "cpu" or None, as in NumPy.

    Returns
    -------
    Array
        An array of n//2 + 1 frequencies in cycles per unit of d.

    Raises
    ------
    TypeError
        `n` is not a number of points; for an `FFT`, `fftfreq` gives those of half a spectrum.

    Examples
    --------
    >>> import rote
    >>> rote.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    _check_points(n, "rfftfreq")
    return np.fft.rfftfreq(n, d, device=device)


def _check_points(n: object, name: str) -> None:
    """Refuse what is not a number of points."""
    if not isinstance(n, Integral):
        raise TypeError(
            f"{name} takes a number of points, not {type(n).__name__}, which does not say what was transformed\n"
            "write f = FFT(x.shape, x.layout, x.grid, x.comm, x.dtype); X = f.forward(x); fftfreq(f)"
        )


def fftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """Return the spectrum with its zero frequency in the middle, as `numpy.fft.fftshift`, in the same layout.

    Each element is sent at most once, in one all-to-all of all ranks. Nothing is sent along modes that are whole on a
    rank, or if the layout is cyclic over a number of parts that divides half the extent.

    Parameters
    ----------
    X : DistTensor
        A tensor in any layout that reads no shifted mode in tiles.
    axes : Sequence[int] | int, optional
        The axes to shift, each as often as it is named; all if None. For half a spectrum, leave out the halved axis.

    Returns
    -------
    DistTensor
        A new tensor of X's shape, dtype and layout, with the element of index (k - n//2) mod n at index k.

    Raises
    ------
    LayoutError
        An axis is not the tensor's, or is read in tiles.
    TypeError
        `X` is not a tensor.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global(np.fft.fftfreq(5, 1 / 5), "block[(0)]")
    >>> rote.fft.fftshift(x).to_global().tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    return _shifted(X, axes, 1, "fftshift")


def ifftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """The inverse of `fftshift`, for odd extents too, as `numpy.fft.ifftshift`.

    Arguments and errors are those of `fftshift`.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([-2, -1, 0, 1, 2], "block[(0)]")
    >>> rote.fft.ifftshift(x).to_global().tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted(X, axes, -1, "ifftshift")


def _shifted(X: DistTensor, axes: Axes, sign: int, name: str) -> DistTensor:
    """The tensor shifted by half its extents, once for each time that an axis is named."""
    check_tensor(X, name)
    shape = X.shape
    shifts = [0] * len(shape)
    for axis in normal_axes(axes, len(shape), repeated=True):
        shifts[axis] += sign * (shape[axis] // 2)
    return rolled(X, shape, tuple(shifts), name) if any(shifts) else X.copy()


def rolled(x: DistTensor, shape: tuple[int, ...], shifts: tuple[int, ...], name: str) -> DistTensor:
    """A tensor that is cut to a shape or padded with zeros, and then rolled along its modes. Collective.

    Neither zeros nor elements that are cut away are sent. The function `name` is that of the user's call.

    >>> x = DistTensor.from_global(np.arange(1, 6), "block[(0)]")
    >>> for n, shift in ((5, 1), (7, 1), (3, -1)):
    ...     print(rolled(x, (n,), (shift,), "a shift").to_global())
    [5 1 2 3 4]
    [0 1 2 3 4 5 0]
    [2 3 1]
    """
    source, comm = x.distribution, x.comm
    target = source if shape == source.shape else fitted(source, shape)
    refuse_tiles(source, [n != m or shift % max(n, 1) > 0 for n, m, shift in zip(x.shape, shape, shifts, strict=True)])

    key = (name, source, target, shifts, x.dtype)

    def make() -> IndexedMove:
        return IndexedMove(source, [_origins(source, target, m, shifts, comm.rank) for m in range(source.order)], comm)

    move = cached(comm, "shifts", key, make, _KEPT_SHIFTS, lambda: (name, key))
    record_move(x, move.received * x.dtype.itemsize, lambda: f"an indexed move {source} -> {target}", name)
    return DistTensor(move(x.local), target, comm)


def refuse_tiles(dist: Distribution, changed: Sequence[bool]) -> None:
    """Refuse to shift or resize modes that a layout reads in tiles."""
    for digit in chain(*dist.digits):
        if changed[digit.mode] and digit.size != dist.shape[digit.mode]:
            raise LayoutError(
                f"{dist.layout} reads mode {digit.mode} in tiles, which do not shift; redistribute it first"
            )


def _origins(source: Distribution, target: Distribution, mode: int, shifts: tuple[int, ...], rank: int) -> Ints:
    """For each index that a rank holds along a mode of the target, its index in the source; -1 for zeros."""
    index = target.indices(rank)[mode]
    origins: dict[int, Ints] = {}
    inside = np.ones(len(index), np.bool_)
    for t, i in to_tensor(target.digits[mode], index).items():
        origins[t] = (i - shifts[t]) % max(target.shape[t], 1)
        inside &= origins[t] < source.shape[t]
    return np.where(inside, from_tensor(source.digits[mode], origins), -1)


# --- convolution and correlation --------------------------------------------------------------------------------------

ConvolveMode = Literal["full", "same", "valid", "wrap"]
MODES: tuple[ConvolveMode, ...] = get_args(ConvolveMode)

_KEPT = 6  # transforms that a communicator keeps for convolutions; each holds about two blocks of scratch


def convolve(
    x: DistTensor, y: DistTensor | npt.ArrayLike, mode: ConvolveMode = "full", axes: Axes = None
) -> DistTensor:
    """Return the convolution of two tensors along some axes, as `scipy.signal.fftconvolve`; or a periodic one.

    It takes the transforms of both tensors and one inverse; padding and cutting send no elements. The only further
    exchange is of y, if y is split over ranks and the wanted part begins after the start of the result. If y is split
    otherwise than x, it moves first, which is an implicit move (`rote.config`).

    Parameters
    ----------
    x : DistTensor
        A real or complex tensor, in any layout that `fftn` takes.
    y : DistTensor | ArrayLike
        Of the same order: a tensor on the same communicator, or an array (a kernel) that all ranks have.
    mode : {'full', 'same', 'valid', 'wrap'}, default 'full'
        The part of the result: "full", all n + m - 1 points along an axis; "same", the middle part, as long as x;
        "valid", the abs(n - m) + 1 points that need no padding; or "wrap", periodic in x's n points, where y has at
        most as many: out[i] is the sum over j of x[(i - j) % n] y[j].
    axes : Sequence[int] | int, optional
        The axes to convolve; all if None. Along other axes x and y have equal extents, or one has extent 1 and is
        broadcast.

    Returns
    -------
    DistTensor
        A tensor in x's layout if it has x's shape; otherwise in that layout, with balanced blocks in place of given
        sizes. Integers give double precision, as in all transforms.

    Raises
    ------
    LayoutError
        Order, extents, communicator or mode do not fit, or `fftn` does not take x's layout.

    See Also
    --------
    rote.fft.correlate : The correlation of two tensors.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([1.0, 2.0, 3.0], "block[(0)]")
    >>> for mode in ("full", "same", "valid", "wrap"):
    ...     print(mode, rote.fft.convolve(x, [0.0, 1.0, 0.5], mode).to_global().round(12) + 0.0)
    full [0.  1.  2.5 4.  1.5]
    same [1.  2.5 4. ]
    valid [2.5]
    wrap [4.  2.5 2.5]
    """
    return _convolved(x, y, mode, axes, correlated=False)


def correlate(
    x: DistTensor, y: DistTensor | npt.ArrayLike, mode: ConvolveMode = "full", axes: Axes = None
) -> DistTensor:
    """The cross-correlation of two tensors along some axes, as `scipy.signal.correlate`; or a periodic one.

    Index k of the "full" result is lag k - (m - 1), where m is y's extent: the sum over j of x[j + lag] conj(y[j]).
    Index k of "wrap" is lag k, with x[(j + k) % n]. Arguments and errors are those of `convolve`.

    Examples
    --------
    >>> import rote
    >>> x = rote.DistTensor.from_global([0.0, 0.0, 1.0, 2.0], "block[(0)]")
    >>> rote.fft.correlate(x, [1.0, 2.0], "wrap").to_global().argmax()  # where in x the pattern is
    np.int64(2)
    """
    return _convolved(x, y, mode, axes, correlated=True)


def _convolved(
    x: DistTensor, y: DistTensor | npt.ArrayLike, mode: ConvolveMode, axes: Axes, correlated: bool
) -> DistTensor:
    name = "correlate" if correlated else "convolve"
    check_tensor(x, name)
    if not isinstance(y, DistTensor):
        kernel = as_array(y)
        y = DistTensor.from_global(kernel, Layout(((),) * kernel.ndim), x.comm, x.grid)

    named = normal_axes(axes, len(x.shape))
    _check(x, y, mode, named)
    key = name, x.distribution, x.dtype, y.distribution, y.dtype, mode, named
    agree_once(x.comm, (key, (name, (x, y, mode, axes), {})))

    parts = [
        part(n, m, mode, correlated) if a in named else (1, 0, max(n, m))
        for a, (n, m) in enumerate(zip(x.shape, y.shape, strict=True))
    ]
    points, shifts, shape = zip(*parts, strict=True)
    lengths = tuple([points[a] for a in named])
    refuse_tiles(x.distribution, [n != m for n, m in zip(x.shape, shape, strict=True)])
    dtype = np.result_type(x.dtype, y.dtype)
    dtype = complex_dtype(dtype) if dtype.kind == "c" else real_dtype(dtype)

    if any(shifts):  # y is shifted, not x: as a rule it is shorter, and whole on all ranks
        extents = list(y.shape)
        for a in named:
            extents[a] = points[a]
        y = rolled(y, tuple(extents), shifts, name)

    f = _transform(fitted(x.distribution, shape), x.comm, dtype, named, lengths)
    X, Y = _spectrum(x, f, lengths, name), _spectrum(y, f, lengths, name)
    if correlated:
        np.conjugate(Y.local, out=Y.local)

    # X is a new tensor, so its block may hold the product.
    out = X.local if X.distribution == f.walk.target else None
    product = np.multiply(X.local, Y.local, out=out)
    return f.backward(DistTensor(product, f.walk.target, x.comm))


def part(n: int, m: int, mode: ConvolveMode, correlated: bool) -> tuple[int, int, int]:
    """For one axis and mode: the points to transform, the shift of the wanted part, and its length.

    A transform gives a periodic result. Its period may be shorter than the full result of n + m - 1 points, provided
    that the points that wrap around stay outside the wanted part; elements of y beyond the period do not affect it.
    """
    if mode == "wrap":
        return n, 0, n
    first = {"full": 0, "same": (m - 1) // 2, "valid": min(n, m) - 1}[mode]
    points = {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]
    return fast_length(n + m - 1 - first), (first - m + 1 if correlated else -first), points


def _check(x: DistTensor, y: DistTensor, mode: ConvolveMode, axes: tuple[int, ...]) -> None:
    if mode not in MODES:
        raise LayoutError(f"mode is one of {', '.join(MODES)}; not {mode!r}")
    if x.comm is not y.comm:
        raise LayoutError("the two tensors are on different communicators; give both the same comm")
    if len(x.shape) != len(y.shape):
        raise LayoutError(f"both tensors have the same order, not shapes {x.shape} and {y.shape}")
    if not axes:
        raise LayoutError("a convolution needs at least one axis")

    pairs = list(enumerate(zip(x.shape, y.shape, strict=True)))
    others = [a for a, (n, m) in pairs if a not in axes and n != m and 1 not in (n, m)]
    if others:
        raise LayoutError(
            f"along axis {others[0]}, which is not convolved, the extents {x.shape[others[0]]} and "
            f"{y.shape[others[0]]} are neither equal nor 1; name the axis in axes={axes}"
        )

    longer = [a for a, (n, m) in pairs if a in axes and m > n]
    if longer and (mode == "wrap" or (mode == "valid" and any(n > m for a, (n, m) in pairs if a in axes))):
        inside = "goes around x" if mode == "wrap" else "or x is wholly inside the other"
        raise LayoutError(
            f'in mode "{mode}" y {inside}, but along axis {longer[0]} of {x.shape} and {y.shape} y is the longer one; '
            'take mode "full"'
        )

    if 0 in x.shape or 0 in y.shape:
        raise LayoutError(f"there is nothing to convolve in shapes {x.shape} and {y.shape}")


def fast_length(least: int) -> int:
    """The smallest extent of at least `least` with no prime factors but 2, 3, 5 and 7.

    >>> [fast_length(n) for n in (1, 11, 97, 1009)]
    [1, 12, 98, 1024]
    """
    lengths = smooth(1 << (least - 1).bit_length())  # a power of two is one of them
    return lengths[bisect_left(lengths, least)]


def _transform(
    source: Distribution, comm: Comm, dtype: np.dtype[Any], axes: tuple[int, ...], lengths: tuple[int, ...]
) -> FFT:
    """The transform of some lengths for tensors distributed as `source`, cached on the communicator."""

    def make() -> FFT:
        return FFT(source.shape, source.layout, source.grid, comm, dtype, axes, s=lengths)

    return cached(comm, "convolutions", (source, dtype, axes, lengths), make, _KEPT)


def _spectrum(x: DistTensor, f: FFT, lengths: tuple[int, ...], name: str) -> DistTensor:
    """The spectrum of a tensor, distributed as that of the result; broadcast modes are whole on all ranks."""
    start, end = f.walk.source, f.walk.target
    serving = [a for a, n in enumerate(x.shape) if a not in f.axes and n != start.shape[a]]
    if serving and start.layout.view is not None:
        raise LayoutError(f"{start.layout} reads modes through a view, which does not let axis {serving[0]} serve all")
    if x.dtype != f.walk.dtype:
        x = x.astype(f.walk.dtype)

    extents = list(start.shape)
    for a in serving:
        extents[a] = 1
    like = _whole(start.layout, serving).on(extents, start.grid)
    if _splits(x.distribution) != _splits(like):
        needed = fitted(like, x.shape)
        x = moved(x, needed.layout, name, needed.grid)

    if serving:
        X = rfftn(x, lengths, f.axes) if x.dtype.kind == "f" else fftn(x, lengths, f.axes)
        return X.redistribute(_whole(end.layout, serving), grid=end.grid)

    X = _transform(x.distribution, x.comm, x.dtype, f.axes, lengths).forward(x)
    return X if X.distribution == end else X.redistribute(end.layout, grid=end.grid)


def _splits(dist: Distribution) -> tuple[object, ...]:
    """What two distributions have in common that give the same grid modes to the same modes, of any kinds."""
    lay = dist.layout
    grid_modes = [[entry.grid_mode for entry in mode] for mode in lay.modes]
    return dist.grid, grid_modes, lay.view, lay.partial, lay.partial and lay.op, lay.rooted


def _whole(layout: Layout, modes: list[int]) -> Layout:
    for mode in modes:
        layout = layout.whole(mode)
    return layout
