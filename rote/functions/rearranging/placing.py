"""Functions that change indices per mode: flip, roll, tile, repeat, pad, broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ...compiler.step import as_array, refuse_mask
from ...errors import LayoutError
from ...layout.refine import fitted
from ..alignment import plain
from ..distributed import Distributed
from ..rules import follows
from .fetching import Origin, fetched
from .indexing import known, read
from .keys import as_indices, key_at, parse_key
from .reshaping import reshape, swapaxes

__all__ = ["broadcast_arrays", "broadcast_to", "flip", "fliplr", "flipud", "pad", "repeat", "roll", "rot90", "tile"]

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]
Axes = int | Sequence[int]


@follows("indexed", np.flip)
def flip(x: T, /, axis: Axes | None = None) -> T:
    """The elements in reverse order along some modes, by default all; a view if these are whole.

    >>> from rote import DistTensor
    >>> flip(DistTensor.from_global([1, 2, 3], "block[(0)]")).to_global()
    array([3, 2, 1])
    """
    order = len(x.distribution.shape)
    modes = range(order) if axis is None else normalize_axis_tuple(axis, order)
    key = key_at(slice(None, None, -1), modes, order)
    return read(plain(x, "flip"), parse_key(key, x.distribution.shape), "flip")


@follows("indexed", np.roll)
def roll(x: T, /, shift: Axes, axis: Axes | None = None) -> T:
    """The elements shifted periodically along some modes; in row-major order of all elements if no mode is named.

    Args:
        shift: the distance towards higher indices, per mode, or one number for all.

    >>> from rote import DistTensor
    >>> roll(DistTensor.from_global([1, 2, 3], "block[(0)]"), 1).to_global()
    array([3, 1, 2])
    """
    shape = x.distribution.shape
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), shape)
    axes, steps = as_indices(axis), as_indices(shift)
    shifts = [0] * len(shape)
    pairs = np.broadcast_shapes((len(axes),), (len(steps),))[0]
    for k in range(pairs):
        mode = normalize_axis_index(axes[k % len(axes)], len(shape))
        shifts[mode] += steps[k % len(steps)]
    x = plain(x, "roll")

    def origin(shift: int, n: int) -> Origin | None:
        turn = shift % n if n else 0  # less than n, since subtracting a large shift may overflow 64 bits
        return (lambda index: (index - turn) % n) if turn else None

    origins = [origin(shift, n) for shift, n in zip(shifts, shape, strict=True)]
    return fetched(x, x.distribution, origins, tuple(shifts), "roll")


@follows("indexed", np.tile)
def tile(x: T, repetitions: Axes, /) -> T:
    """The tensor repeated as a whole along each of its modes; the last number belongs to the last mode.

    >>> import rote.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,)).to_global()
    array([1, 2, 1, 2])
    """
    numbers = as_indices(repetitions)
    x = _of_order(plain(x, "tile"), len(numbers), "tile")
    shape = x.distribution.shape
    numbers = (1,) * (len(shape) - len(numbers)) + numbers
    target = fitted(x.distribution, tuple([n * number for n, number in zip(shape, numbers, strict=True)]))
    origins = [None if number == 1 else _modulo(n) for n, number in zip(shape, numbers, strict=True)]
    return fetched(x, target, origins, numbers, "tile")


@follows("indexed", np.repeat)
def repeat(x: T, /, repeats: Any, axis: int | None = None) -> T:
    """The tensor with each index along a mode repeated; without a mode, each element in row-major order.

    Args:
        repeats: a number, or one for each index: an array or a tensor.

    Raises:
        TypeError: the numbers are not integers.
        ValueError: a number is negative, or there is not one for each index.

    >>> import rote.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2).to_global()
    array([1, 1, 2, 2])
    """
    if axis is None:
        return repeat(reshape(x, -1), repeats, axis=0)
    shape = x.distribution.shape
    mode = normalize_axis_index(axis, len(shape))
    numbers = as_array(known(repeats))
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"repeats are integers, not {numbers.dtype}")
    places = np.repeat(np.arange(shape[mode]), numbers)
    x = plain(x, "repeat")
    target = fitted(x.distribution, (*shape[:mode], len(places), *shape[mode + 1 :]))
    origins: list[Origin | None] = [None] * len(shape)
    origins[mode] = lambda index: places[index]
    return fetched(x, target, origins, (mode, numbers.astype(np.int64).tobytes()), "repeat")


_PADS: dict[str, Callable[[Ints, int], Ints]] = {
    "constant": lambda index, n: np.where((index >= 0) & (index < n), index, -1),
    "empty": lambda index, n: np.where((index >= 0) & (index < n), index, -1),
    "edge": lambda index, n: np.clip(index, 0, n - 1),
    "wrap": lambda index, n: index % n,
    "symmetric": lambda index, n: np.minimum(index % (2 * n), 2 * n - 1 - index % (2 * n)),
    "reflect": lambda index, n: (
        np.zeros_like(index) if n == 1 else np.minimum(index % (2 * n - 2), 2 * n - 2 - index % (2 * n - 2))
    ),
}
"""Per mode of `numpy.pad`, a function from a padded index to the tensor's index that it copies, negative if none."""


@follows("indexed", np.pad)
def pad(array: T, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> T:
    """The tensor padded at both ends of its modes, as `numpy.pad`.

    Args:
        pad_width: a number, (before, after), or one such pair per mode.
        mode: "constant", "edge", "wrap", "symmetric", "reflect" or "empty", which pads with zeros.
        constant_values: one number.

    Raises:
        LayoutError: no such mode exists, or several constants are given. ValueError: there is nothing to pad with.
    """
    shape = array.distribution.shape
    if mode not in _PADS:
        raise LayoutError(f"pad takes a mode of {', '.join(map(repr, _PADS))}, not {mode!r}")
    refuse_mask(type(constant_values))
    if np.ndim(constant_values):
        raise LayoutError(f"pad takes one constant for all ends, not {constant_values!r}; pad one end after the other")
    pairs = np.broadcast_to(np.asarray(pad_width), (len(shape), 2)).tolist()
    if any(min(pair) < 0 for pair in pairs):
        raise ValueError(f"pads are of 0 or more indices, not {pad_width}")
    if mode not in ("constant", "empty") and any(n == 0 and sum(pair) for n, pair in zip(shape, pairs, strict=True)):
        raise ValueError(f"a mode of extent 0 cannot be padded by {mode!r}")
    x = plain(array, "pad")
    wider = tuple([n + before + after for n, (before, after) in zip(shape, pairs, strict=True)])

    def origin(n: int, before: int, after: int) -> Origin | None:
        if not before and not after:
            return None
        return lambda index: _PADS[mode](index - before, n)

    origins = [origin(n, *pair) for n, pair in zip(shape, pairs, strict=True)]
    key = (mode, tuple(chain(*pairs)))
    return fetched(x, fitted(x.distribution, wider), origins, key, "pad", constant_values)


@follows("indexed", np.broadcast_to)
def broadcast_to(x: T, /, shape: int | Sequence[int]) -> T:
    """The tensor broadcast to a shape, in which modes of extent 1, and missing ones in front, get new extents.

    These modes are whole, and blocks are read-only views. If a mode of extent 1 was split, it moves to all ranks.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import rote.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).to_global()
    array([[1, 2],
           [1, 2]])
    """
    wanted = as_indices(shape)
    given = x.distribution.shape
    if len(wanted) < len(given) or np.broadcast_shapes(given, wanted) != wanted:
        raise ValueError(f"a tensor of shape {given} does not broadcast to {wanted}")
    x = _of_order(plain(x, "broadcast_to"), len(wanted), "broadcast_to")
    grown = [mode for mode, n in enumerate(x.distribution.shape) if n != wanted[mode]]
    y = read(x, parse_key(key_at(0, grown, len(wanted)), x.distribution.shape), "broadcast_to")
    y = read(y, parse_key(key_at(None, grown, len(wanted)), y.distribution.shape), "broadcast_to")
    target = fitted(y.distribution, wanted)
    return y._on(np.broadcast_to(y.local, target.local_shape(x.comm.rank)), target)


@follows("indexed", np.broadcast_arrays)
def broadcast_arrays(*arrays: T) -> tuple[T, ...]:
    """Tensors broadcast against each other; see `broadcast_to`.

    >>> import rote.array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = np.broadcast_shapes(*[x.distribution.shape for x in arrays])
    return tuple([x if x.distribution.shape == shape else broadcast_to(x, shape) for x in arrays])


@follows("indexed", np.flipud)
def flipud(m: T) -> T:
    """The elements in reverse order along mode 0, as `numpy.flipud`."""
    return flip(m, axis=0)


@follows("indexed", np.fliplr)
def fliplr(m: T) -> T:
    """The elements in reverse order along mode 1, as `numpy.fliplr`."""
    return flip(m, axis=1)


@follows("indexed", np.rot90)
def rot90(m: T, k: int = 1, axes: tuple[int, int] = (0, 1)) -> T:
    """The elements turned by `k` quarters of a circle, from the first of two modes to the second, as `numpy.rot90`.

    Raises:
        ValueError: these are not two different modes.

    >>> from rote import DistTensor
    >>> rot90(DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]")).to_global()
    array([[2, 4],
           [1, 3]])
    """
    first, second = normalize_axis_tuple(axes, len(m.distribution.shape))
    turned = m if k % 2 == 0 else swapaxes(m, first, second)
    mirrored = [mode for mode, when in ((first, (1, 2)), (second, (2, 3))) if k % 4 in when]
    return flip(turned, mirrored) if mirrored else turned


def _of_order(x: T, order: int, name: str) -> T:
    """A plain tensor with modes of extent 1 added in front, up to an order."""
    missing = max(order - len(x.distribution.shape), 0)
    return read(x, parse_key((None,) * missing, x.distribution.shape), name)


def _modulo(n: int) -> Origin:
    return lambda index: index % max(n, 1)
