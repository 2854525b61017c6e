"""Functions that bring elements to other indices: other orders of modes, shifts, padding, splitting.

Each element of a result is one of an operand. Where NumPy gives a view, the result is a part of the tensor
(`rote.functions.distributed`), and nothing moves if the layout's digits allow. Elsewhere an indexed move fetches what a
rank lacks: a function says, per mode, from which index each index of the result comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from operator import index as as_index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ..errors import LayoutError
from ..layout.layout import Layout
from ..layout.refine import fitted
from ..runtime.arrays import as_array, refuse_mask
from .alignment import plain, whole_along
from .distributed import Distributed, Ints, KeyAxis, PartKind, T, linked
from .indexing import Origin, fetched, key_at, known, parse_key, part_at, read, relabelled, with_next
from .moves import attributed_to
from .reshaping import as_indices, reshape
from .rules import follows

__all__ = ["array_split", "broadcast_arrays", "broadcast_to", "dsplit", "expand_dims", "flip", "fliplr", "flipud"]
__all__ += ["hsplit", "moveaxis", "pad", "permute_dims", "reordered", "repeat", "roll", "rot90", "rows"]
__all__ += ["sliding_window_view", "split", "squeeze", "swapaxes", "tile", "transpose", "unstack", "vsplit"]

Axes = int | Sequence[int]


# --- orders and numbers of modes --------------------------------------------------------------------------------------


@follows("relabelled", np.permute_dims)
def permute_dims(x: T, /, axes: Sequence[int] | None = None) -> T:
    """The tensor with its modes in another order, by default reversed; the block is a view.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axes : Sequence[int], optional
        The modes in their new order; reversed if None.

    Raises
    ------
    ValueError
        `axes` is not a permutation of the tensor's modes.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> print(xp.permute_dims(rote.DistTensor.zeros((4, 6), "block[(0),()]"), (1, 0)).layout)
    block[(),(0)]
    """
    order = len(x.distribution.shape)
    modes = tuple(range(order))[::-1] if axes is None else normalize_axis_tuple(tuple(axes), order, "axes")
    if len(modes) != order:
        raise ValueError(f"axes={axes} do not name every mode of a tensor of order {order}")
    return reordered(x, modes, "permute_dims")


def reordered(x: T, modes: Sequence[int], name: str) -> T:
    """The tensor with its modes in another order, as a part of it."""
    shape, source = x.distribution.shape, plain(x, name)
    axes = [KeyAxis((mode,), range(shape[mode]), (shape[mode],)) for mode in modes]
    return linked(relabelled(source, modes), x, axes, "view" if source is x else "copy")


transpose = follows("relabelled", name="transpose")(permute_dims)


@follows("relabelled", np.swapaxes)
def swapaxes(a: T, axis1: int, axis2: int) -> T:
    """The tensor with two modes interchanged; the block is a view.

    Parameters
    ----------
    a : DistTensor
        The tensor.
    axis1 : int
        A mode.
    axis2 : int
        Another mode.

    Raises
    ------
    AxisError
        There is no such mode.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.zeros((2, 3, 4), "block[(0),(),()]").swapaxes(0, 2).shape
    (4, 3, 2)
    """
    order = len(a.distribution.shape)
    first, second = normalize_axis_index(axis1, order), normalize_axis_index(axis2, order)
    modes = list(range(order))
    modes[first], modes[second] = second, first
    return permute_dims(a, modes)


@follows("relabelled", np.moveaxis)
def moveaxis(x: T, source: Axes, destination: Axes, /) -> T:
    """The tensor with some modes moved to other places; the others keep their order.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    source : int | Sequence[int]
        The modes to move.
    destination : int | Sequence[int]
        Their places in the result.

    Raises
    ------
    ValueError
        There are not as many places as modes, or one occurs twice.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    order = len(x.distribution.shape)
    origins, places = normalize_axis_tuple(source, order), normalize_axis_tuple(destination, order)
    if len(origins) != len(places):
        raise ValueError(f"moveaxis takes as many places as modes, not {source} and {destination}")
    modes = [mode for mode in range(order) if mode not in origins]
    for place, origin in sorted(zip(places, origins, strict=True)):
        modes.insert(place, origin)
    return permute_dims(x, modes)


@follows("relabelled", np.expand_dims)
def expand_dims(x: T, /, axis: Axes = 0) -> T:
    """The tensor with new modes of extent 1, which are whole, at some places of the result.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | Sequence[int], default 0
        The places of the new modes in the result.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.expand_dims(xp.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    shape = x.distribution.shape
    order = len(shape) + (len(axis) if isinstance(axis, Sequence) else 1)
    key = key_at(None, normalize_axis_tuple(axis, order), order)
    return part_at(x, key, "expand_dims")


@follows("indexed", np.squeeze, views=True)
def squeeze(x: T, /, axis: Axes | None = None) -> T:
    """The tensor without some modes of extent 1, by default all; if one was split, its index moves to all ranks.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | Sequence[int], optional
        The modes to leave out; all of extent 1 if None.

    Raises
    ------
    ValueError
        A mode has another extent.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.squeeze(xp.ones((1, 3)), axis=0).shape
    (3,)
    """
    shape = x.distribution.shape
    ones = tuple([mode for mode, n in enumerate(shape) if n == 1])
    modes = ones if axis is None else normalize_axis_tuple(axis, len(shape))
    if any(shape[mode] != 1 for mode in modes):
        raise ValueError(f"squeeze leaves modes of extent 1 out, which {axis} of shape {shape} are not")
    return part_at(x, key_at(0, modes, len(shape)), "squeeze")


# --- other indices along modes ----------------------------------------------------------------------------------------


@follows("indexed", np.flip, views=True)
def flip(x: T, /, axis: Axes | None = None) -> T:
    """The elements in reverse order along some modes, by default all; a view if these are whole.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | Sequence[int], optional
        The modes; all if None.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> xp.flip(rote.DistTensor.from_global([1, 2, 3], "block[(0)]")).to_global()
    array([3, 2, 1])
    """
    order = len(x.distribution.shape)
    modes = range(order) if axis is None else normalize_axis_tuple(axis, order)
    key = key_at(slice(None, None, -1), modes, order)
    flipped = part_at(x, key, "flip")
    return flipped if order else flipped.copy()  # which is no view in NumPy


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
    if len(axes) != 2:
        raise ValueError(f"rot90 turns from one mode to another, not axes={axes}")
    quarters, (first, second) = as_index(k) % 4, normalize_axis_tuple(axes, len(m.distribution.shape))

    # A quarter exchanges the modes and mirrors one of them; two quarters mirror both.
    turned = m if quarters % 2 == 0 else swapaxes(m, first, second)
    mirrored = [mode for mode, when in ((first, (1, 2)), (second, (2, 3))) if quarters in when]
    return flip(turned, mirrored) if mirrored else turned


@follows("indexed", np.roll)
def roll(x: T, /, shift: Axes, axis: Axes | None = None) -> T:
    """The elements shifted periodically along some modes; in row-major order of all elements if no mode is named.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    shift : int | Sequence[int]
        The distance towards higher indices, per mode, or one number for all.
    axis : int | Sequence[int], optional
        The modes; if None, elements are shifted in row-major order.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> xp.roll(rote.DistTensor.from_global([1, 2, 3], "block[(0)]"), 1).to_global()
    array([3, 1, 2])
    """
    shape = x.distribution.shape
    if axis is None:
        rolled = roll(reshape(x, -1), shift, axis=0)
        with attributed_to("roll", of_result=True):
            return reshape(rolled, shape)

    axes, steps = as_indices(axis), as_indices(shift)
    shifts = [0] * len(shape)
    for k in range(np.broadcast_shapes((len(axes),), (len(steps),))[0]):
        shifts[normalize_axis_index(axes[k % len(axes)], len(shape))] += steps[k % len(steps)]
    x = plain(x, "roll")
    origins = {mode: _periodic(shape[mode], shift) for mode, shift in enumerate(shifts) if shift}
    return fetched(x, x.distribution, origins, tuple(shifts), "roll")


def _periodic(n: int, shift: int = 0) -> Origin:
    """The indices from which elements come if a mode of extent n is repeated without end, and then shifted."""
    period = max(n, 1)
    least = shift % period  # since subtracting a large shift may overflow 64 bits
    return lambda index: (index - least) % period


@follows("indexed", np.tile)
def tile(x: T, repetitions: Axes, /) -> T:
    """The tensor repeated as a whole along each of its modes; the last number belongs to the last mode.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    repetitions : int | Sequence[int]
        How often the tensor is repeated along each mode.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,)).to_global()
    array([1, 2, 1, 2])
    """
    numbers = as_indices(repetitions)
    x = plain(_of_order(x, len(numbers), "tile"), "tile")
    shape = x.distribution.shape
    numbers = (1,) * (len(shape) - len(numbers)) + numbers
    target = fitted(x.distribution, tuple([n * number for n, number in zip(shape, numbers, strict=True)]))
    return fetched(x, target, {mode: _periodic(n) for mode, n in enumerate(shape)}, numbers, "tile")


def _of_order(x: T, order: int, name: str) -> T:
    """The tensor with modes of extent 1 added in front, up to an order."""
    missing = max(order - len(x.distribution.shape), 0)
    return part_at(x, (None,) * missing, name)


@follows("indexed", np.repeat)
def repeat(x: T, /, repeats: Any, axis: int | None = None) -> T:
    """The tensor with each index along a mode repeated; without a mode, each element in row-major order.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    repeats : int | array_like
        A number, or one for each index: an array or a tensor.
    axis : int, optional
        The mode; if None, elements are repeated in row-major order.

    Raises
    ------
    TypeError
        The numbers are not integers.
    ValueError
        A number is negative, or there is not one for each index.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2).to_global()
    array([1, 1, 2, 2])
    """
    if axis is None:
        return repeat(reshape(x, -1), repeats, axis=0)
    shape = x.distribution.shape
    mode, numbers = normalize_axis_index(axis, len(shape)), as_array(known(repeats))
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"repeats are integers, not {numbers.dtype}")

    places = np.repeat(np.arange(shape[mode]), numbers)
    x = plain(x, "repeat")
    target = fitted(x.distribution, (*shape[:mode], len(places), *shape[mode + 1 :]))
    return fetched(x, target, {mode: lambda index: places[index]}, (mode, numbers.astype(np.int64).tobytes()), "repeat")


# --- padding and windows ----------------------------------------------------------------------------------------------

# Per mode of `numpy.pad`, a function from a padded index to the tensor's index that it copies, negative if none:
#     padded          0 1 2 3 4 5 6 7        of 3 indices, with 2 before and 3 after
#     index          -2-1 0 1 2 3 4 5
#     symmetric       1 0 0 1 2 2 1 0
#     reflect         2 1 0 1 2 1 0 1
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
_PADS_ALONG = ("linear_ramp", "maximum", "mean", "median", "minimum")  # these compute values from whole lines


@follows("indexed", np.pad)
def pad(array: T, pad_width: Any, mode: str = "constant", **options: Any) -> T:
    """The tensor padded at both ends of its modes, as `numpy.pad`.

    "linear_ramp", "maximum", "mean", "median", "minimum" and `reflect_type="odd"` make padded modes whole.

    Parameters
    ----------
    pad_width : int | Sequence | Mapping
        A number, (before, after), or one such pair per mode.
    mode : str, default 'constant'
        A mode of `numpy.pad` by its name; "empty" pads with zeros.
    **options : Any
        `constant_values`, `end_values`, `stat_length` and `reflect_type`, as for `numpy.pad`.

    Raises
    ------
    LayoutError
        No such mode exists.
    ValueError
        There is nothing to pad with, or the mode has no such option.

    Examples
    --------
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
    pairs = np.broadcast_to(as_array(pad_width), (len(shape), 2)).tolist()
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

    constants = np.asarray(options.get("constant_values", 0)).astype(x.local.dtype)
    x = _padded(x, pairs, mode)
    if mode == "constant" and constants.any():
        ends, indices = np.broadcast_to(constants, (len(shape), 2)), x.distribution.indices(x.comm.rank)
        for along, index in enumerate(indices):  # a corner has the constant of the last mode
            first = pairs[along][0]
            for outside, constant in zip((index < first, index >= first + shape[along]), ends[along], strict=True):
                x.local[(slice(None),) * along + (outside,)] = constant
    return x


def _padded(x: T, pairs: Sequence[Sequence[int]], mode: str) -> T:
    """A plain tensor padded with elements of its own, or with zeros."""
    shape = x.distribution.shape

    def origin(along: int) -> Origin:
        return lambda index: _PADS[mode](index - pairs[along][0], shape[along])

    wider = tuple([n + sum(pair) for n, pair in zip(shape, pairs, strict=True)])
    origins = {along: origin(along) for along, pair in enumerate(pairs) if any(pair)}
    return fetched(x, fitted(x.distribution, wider), origins, (mode, tuple(chain(*pairs))), "pad")


def _padded_along(x: T, along: int, pairs: Sequence[Sequence[int]], mode: str, options: dict[str, Any]) -> T:
    """A plain tensor padded by NumPy along one mode, which is made whole."""
    x = whole_along(x, (along,), "pad")
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

    Raises
    ------
    ValueError
        A window is longer than its mode, there are not as many windows as modes, or a view to write into is asked for.

    Examples
    --------
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
        x = whole_along(x, (mode,), "sliding_window_view")

    # A rank has the windows that begin in its block; of the last ones, other ranks have the ends.
    dist = x.distribution
    target = fitted(dist, (*dist.shape[:mode], n - window + 1, *dist.shape[mode + 1 :]))
    block = with_next(x, target, mode, window - 1, "sliding_window_view") if dist.splits[mode] else x.local

    shape, strides = (*target.local_shape(x.comm.rank), window), (*block.strides, block.strides[mode])
    view = np.lib.stride_tricks.as_strided(block, shape, strides, writeable=False)
    longer = Layout((*target.layout.modes, ())).on((*target.shape, window), target.grid)
    return x._on(view, longer)


# --- broadcasting -----------------------------------------------------------------------------------------------------

_ALIGNED = "aligned at the last mode, extents are equal or 1: write x[:, None], say, for a mode that is lacking"


@follows("indexed", np.broadcast_to, views=True)
def broadcast_to(x: T, /, shape: int | Sequence[int]) -> T:
    """The tensor broadcast to a shape, in which modes of extent 1, and missing ones in front, get new extents.

    These modes are whole, and blocks are read-only views. If a mode of extent 1 was split, it moves to all ranks.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    shape : int | Sequence[int]
        The new shape.

    Raises
    ------
    ValueError
        The shapes do not broadcast.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).to_global()
    array([[1, 2],
           [1, 2]])
    """
    new, old = as_indices(shape), x.distribution.shape
    fits = all(n in (1, m) for n, m in zip(old[::-1], new[::-1], strict=False))
    if not fits or len(old) > len(new) or min(new, default=0) < 0:
        raise ValueError(f"a tensor of shape {old} does not broadcast to {new}\n{_ALIGNED}")

    x = _of_order(x, len(new), "broadcast_to")
    grown = [mode for mode, n in enumerate(x.distribution.shape) if n != new[mode]]
    y = part_at(x, key_at(0, grown, len(new)), "broadcast_to")  # after which these modes are on all ranks
    y = part_at(y, key_at(None, grown, len(new)), "broadcast_to")
    target = fitted(y.distribution, new)
    block = np.broadcast_to(y.local, target.local_shape(x.comm.rank))
    return linked(y._on(block, target), y, fixed=lambda array: np.broadcast_to(array, new))


@follows("indexed", views=True)
def broadcast_arrays(*arrays: T) -> list[T]:
    """Tensors broadcast against each other, in a list as the standard has it; see `broadcast_to`.

    Parameters
    ----------
    *arrays : DistTensor
        The tensors.

    Raises
    ------
    ValueError
        The shapes do not broadcast.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    shapes = [x.distribution.shape for x in arrays]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(map(str, shapes))
        raise ValueError(f"tensors of shapes {shown} do not broadcast\n{_ALIGNED}") from None
    return [x if x.distribution.shape == shape else broadcast_to(x, shape) for x in arrays]


@follows("indexed", np.broadcast_arrays, name="numpy.broadcast_arrays", views=True)
def _broadcast_arrays(*arrays: T, subok: bool = False) -> tuple[T, ...]:
    """Broadcast as `broadcast_arrays` does; NumPy has a tuple."""
    return tuple(broadcast_arrays(*arrays))


# --- splitting --------------------------------------------------------------------------------------------------------


@follows("along", np.unstack, views=True)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The tensors at each index along a mode, which is made whole once for all of them.

    Parameters
    ----------
    x : DistTensor | array_like
        The tensor.
    axis : int, default 0
        The mode.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> [x.to_global().tolist() for x in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return tuple(rows(x, axis))


@follows("along", name="unstack", views=True)
def rows(x: Any, axis: int = 0) -> Iterator[Any]:
    """The tensors at each index of a mode, one after the other, which has the elements of the moment that it comes."""
    shape = x.distribution.shape
    mode = normalize_axis_index(axis, len(shape))
    whole = whole_along(x, (mode,), "unstack")
    keys = (parse_key((slice(None),) * mode + (k,), shape) for k in range(shape[mode]))
    kind: PartKind = "view" if whole is x else "copy"
    parts = (linked(read(whole, axes, "unstack"), x, axes, kind) for axes in keys)
    if whole is not x:  # what changes meanwhile makes the rows to come outdated
        stack = [*parts][::-1]
        parts = (stack.pop() for _ in range(len(stack)))  # a row that nobody has follows no change any more
    return parts if len(shape) > 1 else (y.copy() for y in parts)


@follows("indexed", np.array_split, views=True)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The tensors between some indices along a mode, or a number of nearly equal parts, as `numpy.array_split`."""
    shape = ary.distribution.shape
    mode = normalize_axis_index(axis, len(shape))
    cuts = known(indices_or_sections)
    if not np.ndim(cuts):
        number = as_index(cuts)
        if number < 1:
            raise ValueError(f"a mode is split into 1 part or more, not {number}")
        least, more = divmod(shape[mode], number)
        cuts = [part * least + min(part, more) for part in range(1, number)]
    ends = [0, *map(as_index, cuts), shape[mode]]
    return [part_at(ary, (slice(None),) * mode + (slice(a, b),), "split") for a, b in pairwise(ends)]


@follows("indexed", np.split, views=True)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The tensors between some indices along a mode, or a number of equal parts.

    Raises:
        ValueError: the number of parts does not divide the extent.
    """
    cuts, shape = known(indices_or_sections), ary.distribution.shape
    if not np.ndim(cuts):
        extent, number = shape[normalize_axis_index(axis, len(shape))], as_index(cuts)
        if number > 0 and extent % number:
            raise ValueError(f"{number} parts do not divide extent {extent}; write array_split")
    return array_split(ary, cuts, axis)


@follows("indexed", np.vsplit, views=True)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor of order 2 or more, split along mode 0, as `numpy.vsplit`."""
    return _split_along("vsplit", ary, indices_or_sections, 2, 0)


@follows("indexed", np.hsplit, views=True)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor split along mode 1, or along its only mode, as `numpy.hsplit`."""
    return _split_along("hsplit", ary, indices_or_sections, 1, min(len(ary.distribution.shape) - 1, 1))


@follows("indexed", np.dsplit, views=True)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor of order 3 or more, split along mode 2, as `numpy.dsplit`."""
    return _split_along("dsplit", ary, indices_or_sections, 3, 2)


def _split_along(name: str, x: Distributed, cuts: Any, least: int, mode: int) -> list[Any]:
    if len(x.distribution.shape) < least:
        raise ValueError(f"{name} splits tensors of order {least} or more, not of {len(x.distribution.shape)}")
    return split(x, cuts, mode)
