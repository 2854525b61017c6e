"""Shifts of tensors along their axes, cyclic or into another shape, in the same layout.

A shift changes the indices of elements, not the layout. So the new index is computed per mode, and all elements whose
new index another rank holds are sent there in one exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from rote.errors import LayoutError
from rote.functions.moves import announce
from rote.layout.indexset import Ints
from rote.layout.layout import Distribution
from rote.layout.view import from_tensor, to_tensor
from rote.runtime.comm.cache import cached
from rote.runtime.indexed import IndexedMove
from rote.tensor import DistTensor

from ..request.arguments import check_tensor, normal_axes

__all__ = ["alike", "fftshift", "ifftshift", "placed", "refuse_tiles"]

Axes = Sequence[int] | int | None

_KEPT = 64  # shifts that one communicator keeps


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
    check_tensor(X, "fftshift")
    named = normal_axes(axes, X.ndim, repeated=True)
    return placed(X, X.distribution, tuple(_halves(X.shape, named)))


def ifftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """The inverse of `fftshift`, for odd extents too, as `numpy.fft.ifftshift`.

    Arguments and errors are those of `fftshift`.

    >>> x = DistTensor.from_global([-2, -1, 0, 1, 2], "block[(0)]")
    >>> ifftshift(x).to_global().tolist()
    [0, 1, 2, -2, -1]
    """
    check_tensor(X, "ifftshift")
    named = normal_axes(axes, X.ndim, repeated=True)
    return placed(X, X.distribution, tuple(-half for half in _halves(X.shape, named)))


def _halves(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """Half the extents, rounded down, for each time that an axis is named; 0 along the others."""
    halves = [0] * len(shape)
    for axis in axes:
        halves[axis] += shape[axis] // 2
    return halves


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
    """Refuse to shift or resize modes that a layout reads in tiles.

    Raises:
        LayoutError: a mode that changes is read in tiles.
    """
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
