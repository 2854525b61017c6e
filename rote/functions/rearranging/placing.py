"""Functions that change indices per mode: flip, roll, tile, repeat, pad, windows, broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ...compiler.step import as_array, refuse_mask
from ...errors import LayoutError
from ...layout.layout import Layout
from ...layout.refine import fitted
from ..alignment import made_whole, plain
from ..distributed import Distributed, linked
from ..moves import because
from ..rules import follows
from .indexing import Origin, as_indices, fetch, fetched, key_at, known, part_at
from .reshaping import reshape, swapaxes

__all__ = ["broadcast_arrays", "broadcast_to", "flip", "fliplr", "flipud", "pad", "repeat", "roll", "rot90"]
__all__ += ["sliding_window_view", "tile"]

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]
Axes = int | Sequence[int]


@follows("indexed", np.flip, views=True)
def flip(x: T, /, axis: Axes | None = None) -> T:
    """The elements in reverse order along some modes, by default all; a view if these are whole.

    >>> from rote import DistTensor
    >>> flip(DistTensor.from_global([1, 2, 3], "block[(0)]")).to_global()
    array([3, 2, 1])
    """
    order = len(x.distribution.shape)
    modes = range(order) if axis is None else normalize_axis_tuple(axis, order)
    key = key_at(slice(None, None, -1), modes, order)
    found = part_at(x, key, "flip")
    return found if order else found.copy()  # which is no view in NumPy


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
        rolled = roll(reshape(x, -1), shift, axis=0)
        with because("roll", owns=True):
            return reshape(rolled, shape)
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
    x = plain(_of_order(x, len(numbers), "tile"), "tile")
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


_PADS_ALONG = ("linear_ramp", "maximum", "mean", "median", "minimum")
"""The modes of `numpy.pad` that compute values from whole lines."""


@follows("indexed", np.pad)
def pad(array: T, pad_width: Any, mode: str = "constant", **options: Any) -> T:
    """The tensor padded at both ends of its modes, as `numpy.pad`.

    "linear_ramp", "maximum", "mean", "median", "minimum" and `reflect_type="odd"` make padded modes whole.

    Args:
        pad_width: a number, (before, after), or one such pair per mode.
        mode: a mode of `numpy.pad` by its name; "empty" pads with zeros.
        options: `constant_values`, `end_values`, `stat_length` and `reflect_type`, as for `numpy.pad`.

    Raises:
        LayoutError: no such mode exists.
        ValueError: there is nothing to pad with, or the mode has no such option.

    >>> import numpy as np
    >>> from rote import DistTensor
    >>> np.pad(DistTensor.from_global([1, 2, 3], "block[(0)]"), (1, 2), constant_values=(8, 9)).to_global()
    array([8, 1, 2, 3, 9, 9])
    """
    shape = array.distribution.shape
    if mode not in (*_PADS, *_PADS_ALONG):
        raise LayoutError(f"pad takes a mode of {', '.join(map(repr, (*_PADS, *_PADS_ALONG)))}, not {mode!r}")
    refuse_mask(type(options.get("constant_values")))
    options = {name: known(value) for name, value in options.items()}
    np.pad(np.ones((1,) * len(shape)), 0, mode, **options)  # type: ignore[call-overload]  # raises NumPy's errors
    pairs = np.broadcast_to(np.asarray(pad_width), (len(shape), 2)).tolist()
    if any(min(pair) < 0 for pair in pairs):
        raise ValueError(f"pads are of 0 or more indices, not {pad_width}")
    if mode not in ("constant", "empty") and any(n == 0 and sum(pair) for n, pair in zip(shape, pairs, strict=True)):
        raise ValueError(f"a mode of extent 0 cannot be padded by {mode!r}")
    x = plain(array, "pad")
    if mode in _PADS_ALONG or options.get("reflect_type") == "odd":
        for along, pair in enumerate(pairs):
            if any(pair):
                x = _padded_along(x, along, [pair if m == along else (0, 0) for m in range(len(shape))], mode, options)
        return x
    constants = np.broadcast_to(np.asarray(options.get("constant_values", 0)), (len(shape), 2))
    values = np.unique(constants)
    if len(values) < 2:
        return _padded(x, pairs, mode, values[0] if len(values) else 0)
    for along, end in np.ndindex(constants.shape):  # in this order, as in NumPy: corners have the constant of the last
        widths = [[n * (m == along and e == end) for e, n in enumerate(pair)] for m, pair in enumerate(pairs)]
        x = _padded(x, widths, mode, constants[along, end])
    return x


def _padded(x: T, pairs: Sequence[Sequence[int]], mode: str, constant: Any) -> T:
    """A plain tensor padded with elements of its own, or with one constant."""
    shape = x.distribution.shape
    wider = tuple([n + before + after for n, (before, after) in zip(shape, pairs, strict=True)])

    def origin(n: int, before: int, after: int) -> Origin | None:
        if not before and not after:
            return None
        return lambda index: _PADS[mode](index - before, n)

    origins = [origin(n, *pair) for n, pair in zip(shape, pairs, strict=True)]
    key = (mode, tuple(chain(*pairs)))
    return fetched(x, fitted(x.distribution, wider), origins, key, "pad", constant)


def _padded_along(x: T, along: int, pairs: Sequence[Sequence[int]], mode: str, options: dict[str, Any]) -> T:
    """A plain tensor padded by NumPy along one mode, which is made whole."""
    x = made_whole(x, (along,), "pad")
    block = np.pad(x.local, pairs, mode, **options)  # type: ignore[call-overload]
    wider = tuple([n + sum(pair) for n, pair in zip(x.distribution.shape, pairs, strict=True)])
    return x._on(block, fitted(x.distribution, wider))


@follows("indexed", np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: T, window_shape: Axes, axis: Axes | None = None, *, subok: bool = False, writeable: bool = False
) -> T:
    """The windows of some extents at all places along some modes, as `numpy.lib.stride_tricks.sliding_window_view`.

    The last modes of the result, one for each window, are whole; blocks are read-only views in which elements occur
    several times. If blocks split a mode, ranks exchange their faces; a mode that is split cyclically is made whole.

    Raises:
        ValueError: a window is longer than its mode, there are not as many windows as modes, or a view to write into
            is asked for.

    >>> import numpy as np
    >>> from rote import DistTensor
    >>> np.lib.stride_tricks.sliding_window_view(DistTensor.from_global([1, 2, 3], "block[(0)]"), 2).to_global()
    array([[1, 2],
           [2, 3]])
    """
    windows, order = as_indices(window_shape), len(x.distribution.shape)
    modes = normalize_axis_tuple(range(order) if axis is None else axis, order, allow_duplicate=True)
    if len(windows) != len(modes):
        raise ValueError(f"sliding_window_view takes a window for each of {len(modes)} modes, not {len(windows)}")
    if writeable:
        raise ValueError("windows share elements, and ranks copy those of others: write into the tensor itself")
    x = plain(x, "sliding_window_view")
    for mode, window in zip(modes, windows, strict=True):
        x = _windows(x, mode, window)
    return x


def _windows(x: T, mode: int, window: int) -> T:
    """The windows of a plain tensor along one mode, as its last mode."""
    n = x.distribution.shape[mode]
    if not 0 <= window <= n:
        raise ValueError(f"a window of extent {window} does not fit into mode {mode} of extent {n}")
    if any(split.kind.is_cyclic for split in x.distribution.splits[mode]):
        x = made_whole(x, (mode,), "sliding_window_view")
    dist = x.distribution
    target = fitted(dist, (*dist.shape[:mode], n - window + 1, *dist.shape[mode + 1 :]))
    block = x.local
    if dist.splits[mode]:
        held = target.indices(x.comm.rank)
        first = int(held[mode][0]) if len(held[mode]) else 0
        needed = np.arange(first, first + len(held[mode]) + (window - 1) * bool(len(held[mode])))
        wanted = [*held[:mode], needed, *held[mode + 1 :]]
        block = fetch(x, target, (mode, window), lambda: wanted, "sliding_window_view")
    shape = (*target.local_shape(x.comm.rank), window)
    along = block.strides[mode]
    view = np.lib.stride_tricks.as_strided(block, shape, (*block.strides, along), writeable=False)
    longer = Layout((*target.layout.modes, ())).on((*target.shape, window), target.grid)
    return x._on(view, longer)


_ALIGNED = "aligned at the last mode, extents are equal or 1: write x[:, None], say, for a mode that is lacking"


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape to which shapes broadcast; None if they do not."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


@follows("indexed", np.broadcast_to, views=True)
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
    if _broadcast(given, wanted) != wanted:
        raise ValueError(f"a tensor of shape {given} does not broadcast to {wanted}\n{_ALIGNED}")
    x = _of_order(x, len(wanted), "broadcast_to")
    grown = [mode for mode, n in enumerate(x.distribution.shape) if n != wanted[mode]]
    y = part_at(x, key_at(0, grown, len(wanted)), "broadcast_to")  # after which these modes are on all ranks
    y = part_at(y, key_at(None, grown, len(wanted)), "broadcast_to")
    target = fitted(y.distribution, wanted)
    block = np.broadcast_to(y.local, target.local_shape(x.comm.rank))
    return linked(y._on(block, target), y, fixed=lambda array: np.broadcast_to(array, wanted))


@follows("indexed", views=True)
def broadcast_arrays(*arrays: T) -> list[T]:
    """Tensors broadcast against each other, in a list as the standard has it; see `broadcast_to`.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import rote.array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    shapes = [x.distribution.shape for x in arrays]
    shape = _broadcast(*shapes)
    if shape is None:
        raise ValueError(f"tensors of shapes {' and '.join(map(str, shapes))} do not broadcast\n{_ALIGNED}")
    return [x if x.distribution.shape == shape else broadcast_to(x, shape) for x in arrays]


@follows("indexed", np.broadcast_arrays, name="numpy.broadcast_arrays", views=True)
def _broadcast_arrays(*arrays: T, subok: bool = False) -> tuple[T, ...]:
    """Broadcast as `broadcast_arrays` does; NumPy has a tuple."""
    return tuple(broadcast_arrays(*arrays))


@follows("indexed", np.flipud, views=True)
def flipud(m: T) -> T:
    """The elements in reverse order along mode 0, as `numpy.flipud`."""
    return flip(m, axis=0)


@follows("indexed", np.fliplr, views=True)
def fliplr(m: T) -> T:
    """The elements in reverse order along mode 1, as `numpy.fliplr`."""
    return flip(m, axis=1)


@follows("indexed", np.rot90, views=True)
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
    """The tensor with modes of extent 1 added in front, up to an order."""
    missing = max(order - len(x.distribution.shape), 0)
    return part_at(x, (None,) * missing, name)


def _modulo(n: int) -> Origin:
    return lambda index: index % max(n, 1)
