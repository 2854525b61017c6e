"""NumPy's keys, parsed for a shape: the indices of the tensor's modes that each mode of the result takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from operator import index as as_index
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_array
from ...layout.selection import Selection, selection

__all__ = ["KeyAxis", "as_indices", "has_dots", "key_at", "outer_key", "parse_key", "said"]

Ints = npt.NDArray[np.int64]


class KeyAxis(NamedTuple):
    """One part of a key, in the order of the result."""

    modes: tuple[int, ...]  # of the tensor, that it indexes; none for `newaxis`
    taken: range | int | Ints  # a range or a single index for one mode; an array of shape (modes, *extents) for points
    extents: tuple[int, ...]  # of the modes that it adds to the result


class _Points(NamedTuple):
    """Arrays among the parts of a key: the first mode that they index, and one array of indices per mode."""

    mode: int
    arrays: tuple[Ints, ...]


def parse_key(key: Any, shape: tuple[int, ...]) -> tuple[KeyAxis, ...]:
    """Read a key of integers, slices, `...`, `None`, arrays of integers and masks, as NumPy does.

    Arrays index points. Their modes stand where the first array stood, or first if other parts separate the arrays.

    Raises:
        IndexError: an index is out of range, there are too many, arrays do not broadcast, or a part is none of these.

    >>> for axis in parse_key((slice(None, None, -2), None, 3), (4, 5)):
    ...     print(axis)
    KeyAxis(modes=(0,), taken=range(3, -1, -2), extents=(2,))
    KeyAxis(modes=(), taken=0, extents=(1,))
    KeyAxis(modes=(1,), taken=3, extents=())
    """
    items = _items(key, len(shape))
    fancy = any(isinstance(item, np.ndarray) for item in items)
    parts: list[KeyAxis | _Points | None] = []
    mode = 0
    for item in items:
        if item is None:
            parts.append(KeyAxis((), 0, (1,)))
        elif item is Ellipsis:
            parts.append(None)
            left = len(shape) - sum(map(_taken, items))
            parts += [KeyAxis((mode + m,), range(shape[mode + m]), (shape[mode + m],)) for m in range(left)]
            mode += left
        elif isinstance(item, slice):
            steps = range(*item.indices(shape[mode]))
            parts.append(KeyAxis((mode,), steps, (len(steps),)))
            mode += 1
        elif isinstance(item, np.ndarray) and item.dtype == bool:
            _check_mask(item, shape, mode)
            parts.append(_Points(mode, item.nonzero()))
            mode += item.ndim
        elif fancy:
            parts.append(_Points(mode, (_checked(np.asarray(item), mode, shape[mode]),)))
            mode += 1
        else:
            parts.append(KeyAxis((mode,), int(_checked(np.asarray(item), mode, shape[mode])), ()))
            mode += 1
    return _with_points(parts) if fancy else tuple(_without_points(parts))


def has_dots(key: Any) -> bool:
    """Whether `...` is among the parts of a key."""
    items = key if isinstance(key, tuple) else (key,)
    return any(item is Ellipsis for item in items)


def key_at(item: object, modes: Collection[int], order: int) -> tuple[Any, ...]:
    """NumPy's key that has an item at some modes, and takes all others whole.

    >>> key_at(0, (1,), 3)
    (slice(None, None, None), 0, slice(None, None, None))
    """
    key: list[Any] = [slice(None)] * order
    for mode in modes:
        key[mode] = item
    return tuple(key)


def as_indices(values: int | Sequence[int] | npt.NDArray[Any]) -> tuple[int, ...]:
    """One integer, or several in a sequence or an array, as a tuple."""
    several = as_array(values).tolist() if isinstance(values, np.ndarray) else values
    return tuple(map(as_index, several)) if isinstance(several, Sequence) else (as_index(several),)


def outer_key(groups: Sequence[Sequence[Ints]]) -> Selection:
    """NumPy's key for the product of groups, each a list of indices along one mode, or of points in several modes."""
    filled = [group for group in groups if group]
    if all(len(group) == 1 for group in filled):
        return selection([group[0] for group in filled])
    key: list[Ints] = []
    for number, group in enumerate(filled):
        along = (1,) * number + (-1,) + (1,) * (len(filled) - number - 1)
        key += [each.reshape(along) for each in group]
    return tuple(key)


def said(axes: Sequence[KeyAxis]) -> tuple[object, ...]:
    """The parts of a key as integers, bytes and tuples, for look-ups and for comparison between ranks."""

    def value(index: range | int | Ints) -> object:
        if isinstance(index, range):
            return index.start, index.stop, index.step
        return index if isinstance(index, int) else index.tobytes()

    return tuple([(axis.modes, value(axis.taken), axis.extents) for axis in axes])


def _items(key: Any, order: int) -> list[Any]:
    """The parts of a key, with sequences as arrays, and exactly one ellipsis."""
    if not isinstance(key, tuple):
        key = (key,)
    items = list(map(_item, key))
    dots = sum(item is Ellipsis for item in items)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    indexed = sum(map(_taken, items))
    if indexed > order:
        raise IndexError(f"too many indices for a tensor of order {order}: {indexed} of its modes were indexed")
    return items if dots else [*items, Ellipsis]


def _item(item: Any) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if not isinstance(item, bool | np.bool_ | np.ndarray | list | tuple):
        try:
            return as_index(item)
        except TypeError:
            pass
    array = as_array(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype == bool and array.ndim == 0:
        raise IndexError("a single bool is an index only if it is the whole key; index by None, or by 0:0")
    if array.dtype.kind not in "biu":
        raise IndexError(f"indices are integers, slices, ..., None, or arrays of integers or bools, not {item!r}"[:200])
    return array if array.dtype == bool else array.astype(np.int64)


def _taken(item: Any) -> int:
    """The number of modes that a part of a key indexes; an ellipsis, which takes the rest, counts as none."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def _checked(indices: Ints, mode: int, extent: int) -> Ints:
    """The indices counted from the front; an index out of range raises an error."""
    outside = (indices < -extent) | (indices >= extent)
    if outside.any():
        raise IndexError(f"index {indices[outside].flat[0]} is out of bounds for mode {mode} with extent {extent}")
    return np.where(indices < 0, indices + extent, indices)


def _check_mask(mask: npt.NDArray[np.bool_], shape: tuple[int, ...], mode: int) -> None:
    for m, n in enumerate(mask.shape):
        if shape[mode + m] != n:
            raise IndexError(
                f"a mask of shape {mask.shape} does not fit: mode {mode + m} has extent {shape[mode + m]}, not {n}"
            )


def _with_points(parts: Sequence[KeyAxis | _Points | None]) -> tuple[KeyAxis, ...]:
    """The parts of a key, with all arrays broadcast to one part in its place."""
    places = [p for p, part in enumerate(parts) if isinstance(part, _Points)]
    points = [part for part in parts if isinstance(part, _Points)]
    given = [*chain(*(each.arrays for each in points))]
    try:
        arrays = np.broadcast_arrays(*given)
    except ValueError:
        shapes = [array.shape for array in given]
        raise IndexError(f"arrays of indices do not broadcast together: {shapes}") from None
    modes = tuple(chain(*(range(each.mode, each.mode + len(each.arrays)) for each in points)))
    axis = KeyAxis(modes, np.array(arrays, np.int64), arrays[0].shape)
    together = places == list(range(places[0], places[-1] + 1))
    at = places[0] if together else 0
    return (*_without_points(parts[:at]), axis, *_without_points(parts[at:]))


def _without_points(parts: Sequence[KeyAxis | _Points | None]) -> list[KeyAxis]:
    """The parts of a key that are not arrays."""
    return [part for part in parts if isinstance(part, KeyAxis)]
