"""Tensors shifted along their axes, cyclically or into another shape, without leaving their layout.

A shift is no change of layout: an element stays the same, and its index changes. So where an index goes is worked out
per mode, and all elements whose new index lies on another rank travel there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.view import from_tensor, to_tensor
from rote.runtime.comm.protocol import Comm
from rote.tensor import DistTensor

from ..request.arguments import check_tensor, normal_axes
from ..walk.resize import fitting

__all__ = ["alike", "fftshift", "ifftshift", "placed", "refuse_tiles", "resized"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Axes = Sequence[int] | int | None
Message = tuple[Ints, ...]
"""The local indices of what one rank sends to another, as `numpy.ix_` makes them."""


def fftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """The spectrum with its zero frequency in the middle, as `numpy.fft.fftshift`, in the layout that it had.

    Every element travels at most once, in one all-to-all of all ranks; nothing travels along modes that are whole on
    a rank, nor where the layout is cyclic over a number of parts that divides half the extent.

    Args:
        X: in any layout, but with no shifted mode read as a tile.
        axes: those to shift, all if None. Of half a spectrum leave the halved axis out.

    Returns:
        A new tensor of X's shape, dtype and layout, in which index k is where (k - n//2) mod n was.

    Raises:
        LayoutError: an axis is not the tensor's, is named twice, or is read as a tile.
        TypeError: X is no tensor.

    >>> x = DistTensor.from_global(np.fft.fftfreq(5, 1 / 5), "block[(0)]")
    >>> fftshift(x).to_global().tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    check_tensor(X, "fftshift")
    named = normal_axes(axes, X.ndim)
    return placed(X, X.distribution, tuple(n // 2 if a in named else 0 for a, n in enumerate(X.shape)))


def ifftshift(X: DistTensor, axes: Axes = None) -> DistTensor:
    """The inverse of `fftshift`, for odd extents too, as `numpy.fft.ifftshift`. Arguments and errors as there.

    >>> x = DistTensor.from_global([-2, -1, 0, 1, 2], "block[(0)]")
    >>> ifftshift(x).to_global().tolist()
    [0, 1, 2, -2, -1]
    """
    check_tensor(X, "ifftshift")
    named = normal_axes(axes, X.ndim)
    return placed(X, X.distribution, tuple(-(n // 2) if a in named else 0 for a, n in enumerate(X.shape)))


def placed(x: DistTensor, target: Distribution, shifts: tuple[int, ...]) -> DistTensor:
    """A new tensor y with y[i + by] = x[i], modulo the larger extent of the two, and zeros where that says nothing.

    So it rolls (equal extents), pads with zeros (`target` is larger), or cuts a window out, which may wrap around
    (`target` is smaller). Zeros do not travel, nor what is cut away. Collective.

    Args:
        x: the tensor.
        target: where y lies: as x, but for extents and kinds; see `alike`.
        shifts: per mode of the tensor, how far its indices move.

    >>> x = DistTensor.from_global(np.arange(1, 6), "block[(0)]")
    >>> for n, by in ((5, 1), (7, 1), (3, -1), (3, 1)):
    ...     print(placed(x, resized(x.distribution, (n,)), (by,)).to_global())
    [5 1 2 3 4]
    [0 1 2 3 4 5 0]
    [2 3 4]
    [5 1 2]
    """
    source, comm = x.distribution, x.comm
    if not alike(source, target):
        raise LayoutError(f"{source} and {target} give other grid modes to their modes; redistribute first")
    changed = [n != target.shape[t] or shifts[t] % max(n, 1) != 0 for t, n in enumerate(source.shape)]
    refuse_tiles(source, changed)
    outgoing = _messages(source, target, shifts, comm.rank, True)
    incoming = _messages(target, source, tuple(-b for b in shifts), comm.rank, False)
    y = DistTensor(np.zeros(target.local_shape(comm.rank), x.dtype), target, comm)
    if comm.rank in incoming:
        y.local[incoming.pop(comm.rank)] = x.local[outgoing.pop(comm.rank)]
    travels = [
        bool(splits) and (splits != target_splits or any(changed[digit.mode] for digit in digits))
        for splits, target_splits, digits in zip(source.splits, target.splits, source.digits, strict=True)
    ]
    if any(travels):  # the same on all ranks
        _exchange(comm, x.local, outgoing, y.local, incoming)
    return y


def resized(dist: Distribution, shape: tuple[int, ...]) -> Distribution:
    """The distribution's layout on another shape; on modes of another extent, sizes give way to balanced blocks.

    >>> from rote.layout.layout import parse
    >>> print(resized(parse("[(0:block(3,2)),(1:block(2))]").on((5, 4), (2, 2)), (6, 4)))
    block[(0),(1:block(2))] on (6, 4), grid 2x2
    """
    modes = tuple(
        tuple(map(fitting, mode)) if any(dist.shape[d.mode] != shape[d.mode] for d in digits) else mode
        for digits, mode in zip(dist.digits, dist.layout.modes, strict=True)
    )
    return replace(dist.layout, modes=modes).on(shape, dist.grid)


def refuse_tiles(dist: Distribution, changed: Sequence[bool]) -> None:
    """Refuse to shift or resize modes that a layout reads in tiles.

    Raises:
        LayoutError: one that is to be changed is.
    """
    for digit in (digit for digits in dist.digits for digit in digits):
        if changed[digit.mode] and digit.size != dist.shape[digit.mode]:
            raise LayoutError(
                f"{dist.layout} reads mode {digit.mode} in tiles, which do not shift; redistribute it first"
            )


def alike(dist: Distribution, other: Distribution) -> bool:
    """Whether two distributions give the same grid modes to the same modes, whatever the extents and the kinds.

    >>> from rote.layout.layout import parse
    >>> a, b, c = (parse(text).on((4, 6), 2) for text in ("block[(0),()]", "[(0),()]", "[(),(0)]"))
    >>> alike(a, b), alike(a, c)
    (True, False)
    """

    def frame(dist: Distribution) -> tuple[object, ...]:
        lay = dist.layout
        given = tuple(tuple(entry.grid_mode for entry in mode) for mode in lay.modes)
        return dist.grid, given, lay.view, lay.partial, lay.partial and lay.op, lay.rooted

    return frame(dist) == frame(other)


def _messages(
    source: Distribution, target: Distribution, shifts: tuple[int, ...], rank: int, arranged: bool
) -> dict[int, Message]:
    """The elements of a rank's block under `source`, per rank that holds them under `target` once they have moved.

    Along every mode they are in this block's order, or, if `arranged`, in that of the block that they come to.
    """
    messages: dict[int, Message] = {}
    groups = [_groups(source, target, mode, shifts, rank, arranged) for mode in range(source.order)]
    for parts in product(*groups):
        peer = list(source.grid.coordinates(rank))
        for where, _ in parts:
            for g, c in where:
                peer[g] = c
        messages[source.grid.rank(peer)] = np.ix_(*(held for _, held in parts))
    return messages


def _groups(
    source: Distribution, target: Distribution, mode: int, shifts: tuple[int, ...], rank: int, arranged: bool
) -> list[tuple[tuple[tuple[int, int], ...], Ints]]:
    """The local indices along one mode, per coordinates (grid mode, coordinate) under `target` that they move to."""
    index = source.indices(rank)[mode]
    images: dict[int, Ints] = {}
    kept = np.ones(len(index), np.bool_)
    for t, i in to_tensor(source.digits[mode], index).items():
        images[t] = (i + shifts[t]) % max(source.shape[t], target.shape[t], 1)
        kept &= images[t] < target.shape[t]
    held = np.flatnonzero(kept)
    moved = from_tensor(target.digits[mode], {t: image[held] for t, image in images.items()})
    if arranged:
        order = np.argsort(moved)
        held, moved = held[order], moved[order]
    where, _ = target.locate(mode, moved)
    if not where:
        return [((), held)]
    parts = [target.grid.shape[g] for g in where]
    keys = np.ravel_multi_index(tuple(where.values()), parts)
    return [
        (tuple(zip(where, map(int, np.unravel_index(key, parts)), strict=True)), held[keys == key])
        for key in np.unique(keys)
    ]


def _exchange(
    comm: Comm, source: Array, outgoing: dict[int, Message], target: Array, incoming: dict[int, Message]
) -> None:
    """Send parts of a block to other ranks, and put what comes from them into another."""
    nothing = np.empty(0, source.dtype)
    parts = [source[outgoing[r]].reshape(-1) if r in outgoing else nothing for r in range(comm.size)]
    shapes = [np.broadcast_shapes(*(i.shape for i in incoming[r])) if r in incoming else (0,) for r in range(comm.size)]
    counts = [int(np.prod(shape)) for shape in shapes]
    received = np.empty(sum(counts), source.dtype)
    comm.alltoallv(np.concatenate(parts), [part.size for part in parts], received, counts)
    for r, part in enumerate(np.split(received, np.cumsum(counts)[:-1])):
        if r in incoming:
            target[incoming[r]] = part.reshape(shapes[r])
