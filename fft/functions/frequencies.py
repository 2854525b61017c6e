"""The frequencies of points or of a transform's spectrum, and shifts of tensors, under NumPy's names.

A shift along axes, cyclic or into another shape, changes the indices of elements and not the layout. So the new index
is computed per mode, and all elements whose new index another rank holds are sent there in one exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from numbers import Integral
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError
from rote.functions.moves import announce
from rote.layout.distribution import Distribution
from rote.layout.indexset import Ints
from rote.layout.view import from_tensor, to_tensor
from rote.runtime.comm.cache import cached
from rote.runtime.indexed import IndexedMove
from rote.tensor import DistTensor

from ..plan import FFT
from ..request import check_tensor, normal_axes
from ..walk.wavenumbers import frequencies
from .fourier import Axes

__all__ = ["alike", "fftfreq", "fftshift", "ifftshift", "placed", "refuse_tiles", "rfftfreq"]

Array = npt.NDArray[Any]

_KEPT = 64  # shifts that one communicator keeps


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

    Args:
        n: the number of points along an axis; or a transform, an `FFT`.
        d: the sample spacing, in any unit: one for all axes, or one per axis of `f.axes` of a transform f.
        device: None or "cpu", as in NumPy.

    Returns:
        In cycles per unit of d: of n points, one array, the same on all ranks, which a tensor takes as a whole one. Of
        a transform, one array per axis, in the transform's real dtype. Together they broadcast to this rank's block of
        the spectrum, as an open mesh does (`numpy.ogrid`), for any layout; `f.wavenumbers` gives tensors.

    Raises:
        LayoutError: there are not as many spacings as axes, or one is not positive.
        TypeError: n is neither. A tensor does not say which of its axes are frequencies, nor of how many points.

    >>> fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    >>> f = FFT((4, 6), "block[(0),()]", dtype="f8")
    >>> vertical, horizontal = fftfreq(f, d=(0.5, 1.0))
    >>> vertical.ravel().tolist(), horizontal.shape
    ([0.0, 0.5, -1.0, -0.5], (1, 4))
    """
    if isinstance(n, FFT):
        indices = n.output_distribution.tensor_indices(n.comm.rank)
        return frequencies(n.walk, n.axes, [indices[axis] for axis in n.axes], d)
    _check(n, "fftfreq")
    return np.fft.fftfreq(n, d, device=device)


def rfftfreq(n: int, d: float = 1.0, device: Literal["cpu"] | None = None) -> Array:
    """Return the frequencies of half the spectrum of n real points, as `numpy.fft.rfftfreq`; the same on all ranks.

    Returns:
        An array of n//2 + 1 frequencies in cycles per unit of d.

    Raises:
        TypeError: n is not a number of points; for an `FFT`, `fftfreq` gives those of half a spectrum.

    >>> rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    _check(n, "rfftfreq")
    return np.fft.rfftfreq(n, d, device=device)


def _check(n: object, name: str) -> None:
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

    Args:
        X: a tensor in any layout that reads no shifted mode in tiles.
        axes: the axes to shift, each as often as it is named; all if None. For half a spectrum, leave out the halved
            axis.

    Returns:
        A new tensor of X's shape, dtype and layout, with the element of index (k - n//2) mod n at index k.

    Raises:
        LayoutError: an axis is not the tensor's, or is read in tiles.
        TypeError: X is not a tensor.

    >>> x = DistTensor.from_global(np.fft.fftfreq(5, 1 / 5), "block[(0)]")
    >>> fftshift(x).to_global().tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    return _shifted(X, axes, 1, "fftshift")


def ifftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """The inverse of `fftshift`, for odd extents too, as `numpy.fft.ifftshift`.

    Arguments and errors are those of `fftshift`.

    >>> x = DistTensor.from_global([-2, -1, 0, 1, 2], "block[(0)]")
    >>> ifftshift(x).to_global().tolist()
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
    return placed(X, X.distribution, tuple(shifts))


def placed(x: DistTensor, target: Distribution, shifts: tuple[int, ...]) -> DistTensor:
    """A new tensor y with y[i + by] = x[i], modulo the larger extent of the two, and zeros elsewhere.

    This rolls (equal extents), pads with zeros (a larger `target`), or cuts out a window, which may wrap around (a
    smaller `target`). Neither zeros nor elements that are cut away are sent. Collective.

    Args:
        x: the tensor.
        target: the distribution of y, which may differ from x's in extents and kinds only; see `alike`.
        shifts: how far the indices move, per mode of the tensor.

    >>> from rote.layout.refine import fitted
    >>> x = DistTensor.from_global(np.arange(1, 6), "block[(0)]")
    >>> for n, by in ((5, 1), (7, 1), (3, -1), (3, 1)):
    ...     print(placed(x, fitted(x.distribution, (n,)), (by,)).to_global())
    [5 1 2 3 4]
    [0 1 2 3 4 5 0]
    [2 3 4]
    [5 1 2]
    """
    source, comm = x.distribution, x.comm
    if not alike(source, target):
        raise LayoutError(f"{source} and {target} give other grid modes to their modes; redistribute first")
    changed = [n != target.shape[t] or shifts[t] % max(n, 1) != 0 for t, n in enumerate(source.shape)]
    if source == target and not any(changed):
        return x.copy()
    refuse_tiles(source, changed)

    key = (source, target, shifts)

    def make() -> IndexedMove:
        return IndexedMove(source, [_origins(source, target, m, shifts, comm.rank) for m in range(source.order)], comm)

    move = cached(comm, "shifts", key, make, _KEPT, ("a shift", key))
    announce(x, move.received * x.dtype.itemsize, lambda: f"an indexed move {source} -> {target}", "shift")
    return DistTensor(move(x.local), target, comm)


def refuse_tiles(dist: Distribution, changed: Sequence[bool]) -> None:
    """Refuse to shift or resize modes that a layout reads in tiles."""
    for digit in chain(*dist.digits):
        if changed[digit.mode] and digit.size != dist.shape[digit.mode]:
            raise LayoutError(
                f"{dist.layout} reads mode {digit.mode} in tiles, which do not shift; redistribute it first"
            )


def alike(dist: Distribution, other: Distribution) -> bool:
    """Whether two distributions give the same grid modes to the same modes; extents and kinds may differ.

    >>> from rote.layout.layout import parse
    >>> a, b, c = (parse(text).on((4, 6), 2) for text in ("block[(0),()]", "[(0),()]", "[(),(0)]"))
    >>> alike(a, b), alike(a, c)
    (True, False)
    """

    def frame(dist: Distribution) -> tuple[object, ...]:
        lay = dist.layout
        given = [[entry.grid_mode for entry in mode] for mode in lay.modes]
        return dist.grid, given, lay.view, lay.partial, lay.partial and lay.op, lay.rooted

    return frame(dist) == frame(other)


def _origins(source: Distribution, target: Distribution, mode: int, shifts: tuple[int, ...], rank: int) -> Ints:
    """For each index that a rank holds along a mode of the target, its index in the source; -1 for zeros."""
    index = target.indices(rank)[mode]
    origins: dict[int, Ints] = {}
    kept = np.ones(len(index), np.bool_)
    for t, i in to_tensor(target.digits[mode], index).items():
        origins[t] = (i - shifts[t]) % max(source.shape[t], target.shape[t], 1)
        kept &= origins[t] < source.shape[t]
    return np.where(kept, from_tensor(source.digits[mode], origins), -1)
