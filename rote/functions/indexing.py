"""Elements at keys, `x[key]` and `x[key] = value`, with NumPy's keys, for tensors in any layout.

A key is read for the tensor's shape as a tuple of `KeyAxis`: what each mode of the result takes of the tensor's modes.
If the split modes are taken whole, the block is cut by the same key. Otherwise each rank fetches the elements that it
lacks by an indexed move, on which all ranks agree. Assignment is the reverse: each rank finds the places of the key
whose elements it holds, and fetches the elements of the value for these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, count
from math import prod
from operator import index as as_index
from typing import Any

import numpy as np

from ..caches import memoized
from ..layout.distribution import Distribution
from ..layout.expressions import fitting
from ..layout.grid import Grid
from ..layout.indexset import Selection, selection
from ..layout.kinds import locate
from ..layout.layout import Entry, Layout
from ..runtime.arrays import as_array, refuse_remote
from ..runtime.comm.agreement import agree
from ..runtime.comm.cache import cached
from ..runtime.indexed import IndexedMove
from ..runtime.placement import check_values
from .alignment import assign, plain
from .distributed import (
    Array,
    Distributed,
    Ints,
    KeyAxis,
    T,
    at_axes,
    changed,
    comm_of,
    is_foreign,
    linked,
    shape_of,
    writable,
)
from .moves import Implicit, KeyedCall, agree_on_call, attributed_to, attribution, moved, record_move, redistributed
from .reshaping import compressed, reshape
from .rules import call_collectively

__all__ = ["Origin", "fetch", "fetched", "getitem", "key_at", "known", "moved_first", "parse_key", "part", "part_at"]
__all__ += ["read", "relabelled", "setitem", "store", "with_next"]


Origin = Callable[[Ints], Ints]
"""A function from indices along one mode of the result to the operand's indices from which the elements come."""


# --- keys ------------------------------------------------------------------------------------------------------------


def parse_key(key: Any, shape: tuple[int, ...]) -> tuple[KeyAxis, ...]:
    """Read a key of integers, slices, `...`, `None`, arrays of integers and masks, as NumPy does.

    Raises:
        IndexError: an index is out of range, there are too many, arrays do not broadcast, or a part is none of these.

    >>> for axis in parse_key((slice(None, None, -2), None, 3), (4, 5)):
    ...     print(axis)
    KeyAxis(modes=(0,), taken=range(3, -1, -2), extents=(2,))
    KeyAxis(modes=(), taken=0, extents=(1,))
    KeyAxis(modes=(1,), taken=3, extents=())
    """
    items = [_as_item(item) for item in _items(key)]
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    indexed = sum(map(_modes_of, items))
    if indexed > len(shape):
        raise IndexError(f"too many indices for a tensor of order {len(shape)}: {indexed} of its modes were indexed")

    # The modes that no item indexes are slices, behind the ellipsis or at the end: then items cover all modes.
    rest = (dots[0] + 1) if dots else len(items)
    items[rest:rest] = [slice(None)] * (len(shape) - indexed)

    fancy = any(isinstance(item, np.ndarray) for item in items)

    axes: list[KeyAxis] = []
    points: dict[int, Ints] = {}  # the arrays of indices, by the modes that they index
    places: list[int] = []  # of the items that give them
    mode = at = 0
    for place, item in enumerate(items):
        if item is None:
            axes.append(KeyAxis((), 0, (1,)))
        elif isinstance(item, slice):
            steps = range(*item.indices(shape[mode]))
            axes.append(KeyAxis((mode,), steps, (len(steps),)))
        elif fancy and item is not Ellipsis:
            at = at if places else len(axes)
            places.append(place)
            points |= zip(count(mode), _point_lists(item, mode, shape), strict=False)
        elif item is not Ellipsis:
            axes.append(KeyAxis((mode,), int(_from_front(np.asarray(item), mode, shape[mode])), ()))
        mode += _modes_of(item)

    if fancy:
        try:
            arrays = np.broadcast_arrays(*points.values())
        except ValueError:
            shapes = [array.shape for array in points.values()]
            raise IndexError(f"arrays of indices do not broadcast together: {shapes}") from None
        # NumPy: x[:, a, b] has the modes of the points where `a` stands; x[a, :, b], where it could not tell, in front.
        adjacent = places[-1] - places[0] == len(places) - 1
        axes.insert(at if adjacent else 0, KeyAxis((*points,), np.array(arrays, np.int64), arrays[0].shape))
    return tuple(axes)


def key_at(item: object, modes: Collection[int], order: int) -> tuple[Any, ...]:
    """NumPy's key that has an item at some modes, and takes all others whole.

    >>> key_at(0, (1,), 3)
    (slice(None, None, None), 0, slice(None, None, None))
    """
    return tuple([item if mode in modes else slice(None) for mode in range(order)])


def known(value: Any, call: KeyedCall | None = None) -> Any:
    """The global values of a tensor, on every rank; an argument of another type is returned as it is.

    The value of a tensor of order 0 is a scalar of NumPy, whose dtype counts where values meet.

    Raises:
        TypeError: a list has a Dask array in it, or one on another device.
    """
    if not isinstance(value, Distributed):
        if type(value) in (list, tuple):
            refuse_remote(value)
        return value
    x = plain(value, _NAME, call)
    array = moved(x, Layout(((),) * len(x.distribution.shape)), _NAME, call=call).local
    return array if array.ndim or array.dtype == bool else array[()]


def _items(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _as_numpy_key(key: Any) -> Any:
    """The key, with arrays of other libraries as NumPy's.

    Raises:
        TypeError: an array is a Dask array, or is on another device.
    """
    items = [as_array(item) if is_foreign(type(item)) else item for item in _items(key)]
    return tuple(items) if isinstance(key, tuple) else items[0]


def _has_dots(key: Any) -> bool:
    return any(item is Ellipsis for item in _items(key))


def _as_item(item: Any) -> Any:
    """An item of a key as None, an ellipsis, a slice, an integer, or an array of integers or bools."""
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


def _modes_of(item: Any) -> int:
    """The number of modes that an item indexes; an ellipsis, after which the rest stands as slices, counts as none."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def _point_lists(item: Any, mode: int, shape: tuple[int, ...]) -> Sequence[Ints]:
    """The indices that a mask, an array or an integer gives, per mode from this one on."""
    array = np.asarray(item)
    if array.dtype != bool:
        return (_from_front(array, mode, shape[mode]),)
    for m, n in enumerate(array.shape, mode):
        if n not in (0, shape[m]):  # NumPy lets an extent of 0 pass: nothing is taken
            raise IndexError(f"a mask of shape {array.shape} does not fit: mode {m} has extent {shape[m]}, not {n}")
    return array.nonzero()


def _from_front(indices: Ints, mode: int, extent: int) -> Ints:
    """The indices counted from the front; an index out of range raises an error."""
    outside = (indices < -extent) | (indices >= extent)
    if outside.any():
        raise IndexError(f"index {indices[outside].flat[0]} is out of bounds for mode {mode} with extent {extent}")
    return np.where(indices < 0, indices + extent, indices)


def _as_bool(key: Any, call: KeyedCall) -> bool | None:
    """The value of a key that is a single bool, of any kind; None if it is another key."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Distributed) and key.local.dtype == bool and not key.distribution.shape:
        key = known(key, call)
    single = key.__class__ is bool or (isinstance(key, np.bool_ | np.ndarray) and not key.ndim and key.dtype == bool)
    return bool(key) if single else None


def _as_mask(x: T, key: Any, call: KeyedCall) -> Distributed | None:
    """A key that is a mask of the tensor's shape, in the tensor's layout; None if it is another key."""
    shape = x.distribution.shape
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if not shape or not isinstance(key, Distributed | np.ndarray) or key.dtype != bool or key.shape != shape:
        return None
    if isinstance(key, Distributed):
        if key.distribution.grid == x.distribution.grid:
            return moved(key, plain(x, _NAME, call).distribution.layout, _NAME, call=call)
        key = known(key, call)
    dist = plain(x, _NAME, call).distribution
    return x._on(as_array(key)[np.ix_(*dist.indices(x.comm.rank))], dist)


def _axes_of(x: Distributed, key: Any, call: KeyedCall | None = None) -> tuple[KeyAxis, ...]:
    """The parts of a key, which say what it takes of each mode; all ranks refuse a wrong key."""
    try:
        items = tuple([known(item, call) for item in key]) if isinstance(key, tuple) else known(key, call)
        return parse_key(items, x.distribution.shape)
    except IndexError as error:
        agree(x.comm, _NAME, str(error), detail=False)
        raise


@memoized(1024)
def _text_of(dist: Distribution) -> str:
    return str(dist)


def _comparable(axes: Sequence[KeyAxis]) -> tuple[object, ...]:
    """The parts of a key as integers, bytes and tuples, for look-ups and for comparison between ranks."""

    def value(index: range | int | Ints) -> object:
        if isinstance(index, range):
            return index.start, index.stop, index.step
        return index if isinstance(index, int) else index.tobytes()

    return tuple([(axis.modes, value(axis.taken), axis.extents) for axis in axes])


# --- elements from other ranks ---------------------------------------------------------------------------------------

_KEPT = 64  # indexed moves that one communicator keeps


def fetch(
    x: Distributed, target: Distribution, key: Any, needed: Callable[[], Sequence[Ints]], name: str, hint: str = ""
) -> Array:
    """The elements of a plain tensor for a block of another, by an indexed move that is cached. Collective.

    Args:
        key: all on which the needed elements depend besides the name and the distributions; see `agree`.
        needed: a function that gives the indices that this rank needs, as for `IndexedMove`; at negative ones is zero.
        hint: if the move brings an operand to another layout, so that it is implicit, what to write instead.
    """
    source, comm = x.distribution, x.comm
    agree_on_call(comm)
    agree(comm, name, key, detail=False)

    same_move, call = (source, target, name, key), (name, (source, target, x.local.dtype))
    move = cached(comm, "indexed", same_move, lambda: IndexedMove(source, needed(), comm), _KEPT, lambda: call)
    implicit = Implicit(name, 0, lambda: hint) if hint and not attribution.get().of_result else None
    record_move(x, move.received * x.local.itemsize, lambda: f"an indexed move {source} -> {target}", name, implicit)
    return move(x.local)


def fetched(x: T, target: Distribution, origins: Mapping[int, Origin], key: Any, name: str) -> T:
    """A tensor that takes its elements from other indices of a plain tensor of the same order. Collective.

    The origins say, by mode, from which indices elements come; indices of other modes do not change. The other
    arguments are those of `fetch`.
    """

    def needed() -> list[Ints]:
        indices = target.indices(x.comm.rank)
        return [origins[mode](index) if mode in origins else index for mode, index in enumerate(indices)]

    return x._on(fetch(x, target, key, needed, name), target)


def with_next(x: Distributed, target: Distribution, mode: int, number: int, name: str) -> Array:
    """The elements of a plain tensor for a block of another, and along one mode so many after them. Collective.

    The mode is in blocks. A block without an index along it gets no other element.
    """

    def needed() -> list[Ints]:
        indices = list(target.indices(x.comm.rank))
        if len(indices[mode]):
            indices[mode] = np.arange(indices[mode][0], indices[mode][-1] + 1 + number)
        return indices

    return fetch(x, target, (mode, number), needed, name)


def moved_first(x: Distributed, grid: Grid, modes: Sequence[tuple[Entry, ...]]) -> str:
    """The hint for an operand whose elements would not only shift, because a result splits them otherwise; else "".

    Args:
        grid, modes: the grid of the result, and per mode of the operand the entries that split the result there.
    """
    ends = tuple([tuple(map(fitting, entries)) for entries in modes])
    starts = [tuple(map(fitting, entries)) for entries in x.distribution.layout.modes]
    there = "" if x.distribution.grid == grid else f", grid={grid.shape}"
    if not there and all(start in ((), end) for start, end in zip(starts, ends, strict=True)):
        return ""
    return f"move it by x.redistribute({str(Layout(ends))!r}{there}) first"


# --- reading ---------------------------------------------------------------------------------------------------------

_NAME = "indexing"


def getitem(x: T, key: Any) -> T:
    """The elements of a tensor at a NumPy key: integers, slices, `...`, `None`, arrays, masks. Collective.

    Sliced modes stay split over the same grid modes; their blocks are balanced anew where their extents change. Modes
    at an integer disappear, and the result is replicated over the grid modes that split them. Arrays of indices make
    modes that are split like the first mode they index. A mask of the tensor's shape gives one mode, whose block sizes
    follow from the data. If all split modes are taken whole, nothing moves. Where NumPy gives a view, the result is a
    part of the tensor; see `Sharing`.

    Raises:
        IndexError: an index is out of range, or is not an index; on all ranks, before anything moves.
        LayoutError: ranks give different keys, all of which need a move; or a key is on another communicator.
    """
    comm_of(_NAME, (x, key))
    if True in map(is_foreign, map(type, key if type(key) is tuple else (key,))):
        key = _as_numpy_key(key)

    call: KeyedCall = (_NAME, x.distribution, x.local.dtype), (_NAME, (x, key), {})
    chosen = _as_bool(key, call)
    if chosen is not None:
        added = getitem(x, None)
        return (added if chosen else getitem(added, slice(0, 0))).copy()
    mask = _as_mask(x, key, call)
    if mask is not None:
        return compressed(plain(x, _NAME, call), mask, _NAME)

    axes = _axes_of(x, key, call)
    if np.ndarray in [type(axis.taken) for axis in axes]:
        return read(plain(x, _NAME, call), axes, _NAME)
    elements = part(x, axes, _NAME, call)
    number = not elements.distribution.shape and not _has_dots(key)  # which is no view in NumPy
    return elements.copy() if number else elements


def part(x: T, axes: Sequence[KeyAxis], name: str, call: KeyedCall | None = None) -> T:
    """The elements at the parts of a key without arrays, as a part of the tensor; see `Sharing`.

    Whether it is a copy depends on the layout, not on the number of ranks.
    """
    source = plain(x, name, call)
    copies = source is not x or any(_is_cut(source.distribution, axis) for axis in axes)
    return linked(read(source, axes, name), x, axes, "copy" if copies else "view")


def part_at(x: T, key: Any, name: str) -> T:
    """The elements at NumPy's key without arrays, as a part of the tensor."""
    return part(x, parse_key(key, x.distribution.shape), name)


def read(x: T, axes: Sequence[KeyAxis], name: str) -> T:
    """The elements of a plain tensor at the parts of a key, which together cover all its modes."""
    # Two ways, by the layout alone, so that all ranks take the same one:
    #   x[2:5, ::2] with both modes whole, or taken whole     the same key cuts the block; nothing moves
    #   x[2:5] along a split mode, x[[3, 0, 3]]               each rank fetches what its part of the result takes
    dist = x.distribution
    target = _following(dist, tuple([(axis.modes, axis.extents, _keeps(dist, axis)) for axis in axes]))
    split = [mode for axis in axes if _is_cut(dist, axis) for mode in axis.modes]
    if not any(dist.splits[mode] for mode in split):
        block = at_axes(x.local, axes)
        return x._on(block.copy() if split else block, target)

    turned = relabelled(x, [mode for axis in axes for mode in axis.modes])
    block = fetch(turned, target, _comparable(axes), lambda: _origins(axes, target.indices(x.comm.rank)), name)
    return x._on(block.reshape(target.local_shape(x.comm.rank)), target)


def relabelled(x: T, modes: Sequence[int]) -> T:
    """A plain tensor with its modes in another order; the block is a view."""
    dist = x.distribution
    return x._on(x.local.transpose(modes), _following(dist, tuple([((m,), (dist.shape[m],), True) for m in modes])))


def _keeps(dist: Distribution, axis: KeyAxis) -> bool:
    """Whether a part of a key keeps the extent of its mode."""
    return isinstance(axis.taken, range) and len(axis.taken) == dist.shape[axis.modes[0]]


def _is_cut(dist: Distribution, axis: KeyAxis) -> bool:
    """Whether a part of a key takes only some of a split mode, so that the block is a copy, even on one rank."""
    whole = _keeps(dist, axis) and axis.taken == range(dist.shape[axis.modes[0]])
    return not whole and any(dist.layout.modes[mode] for mode in axis.modes)


@memoized(1024)
def _following(dist: Distribution, parts: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...]) -> Distribution:
    """The distribution of a result, per part of a key from its modes, its extents, and whether it keeps the extent."""
    modes: list[tuple[Entry, ...]] = []
    for taken, extents, keeps in parts:
        entries = [entry if keeps else fitting(entry) for mode in taken for entry in dist.layout.modes[mode]]
        modes += [tuple(entries), *[()] * (len(extents) - 1)][: len(extents)]
    return Layout(tuple(modes)).on([n for _, extents, _ in parts for n in extents], dist.grid)


def _origins(axes: Sequence[KeyAxis], indices: Sequence[Ints]) -> list[Ints]:
    """The indices of the tensor that a rank needs for its indices of the result."""
    origins: list[Ints] = []
    mode = 0
    for axis in axes:
        if isinstance(axis.taken, range):
            origins.append(axis.taken.start + axis.taken.step * indices[mode])
        elif isinstance(axis.taken, int):
            origins += [np.array([axis.taken])] * len(axis.modes)
        else:  # of the modes that points make, only the first one may be split
            points = axis.taken[:, indices[mode]] if axis.extents else axis.taken
            origins.append(points.reshape(len(axis.modes), points.size // len(axis.modes)))
        mode += len(axis.extents)
    return origins


# --- assignment ------------------------------------------------------------------------------------------------------

_WRITING = "assignment"


def setitem(x: Distributed, key: Any, value: Any) -> None:
    """Write values at a NumPy key into all blocks that hold these elements, including replicas. Collective.

    Args:
        key: as for reading; if an index occurs twice, the last value stays.
        value: a scalar or an array, the same on all ranks, or a tensor in any layout; it is broadcast to the key's
            shape. An element of a tensor moves only if its place is on another rank.

    Raises:
        IndexError: an index is out of range, or is not an index.
        ValueError: the value does not broadcast, or has several elements for a single place; or the block is read-only.
        TypeError, ValueError, OverflowError: the tensor's dtype cannot hold the value.
        LayoutError: only some elements of a partial tensor are written; tensors have several communicators; ranks give
            different keys, or only some have a read-only block. All ranks raise these errors before anything is
            written.
    """
    call_collectively(_WRITING, _set_item, (x, key, value), {})


def _set_item(x: Distributed, key: Any, value: Any) -> None:
    comm_of(_WRITING, (x, key, value))
    if True in map(is_foreign, map(type, key if type(key) is tuple else (key,))):
        key = _as_numpy_key(key)
    if x.distribution.partial and not _takes_all(key):
        check_values(_WRITING, x.distribution)

    call: KeyedCall = (_WRITING, x.distribution, x.local.dtype), (_WRITING, (x, key, value), {})
    chosen = _as_bool(key, call)
    if chosen:
        key = (None,)
    if _is_written(x, key, value):
        return
    if not isinstance(value, Distributed):
        dtype = getattr(value, "dtype", None)
        numbers = isinstance(dtype, np.dtype) and dtype.kind in "biufc"
        value = as_array(value, None if numbers else x.local.dtype)  # if it cannot be stored, all ranks fail here
    if chosen is False:  # nothing is written, but a value that does not fit is refused
        _fitting_value(x, (0, *x.distribution.shape), value, call)
        return

    scalar = not isinstance(value, Distributed) and np.ndim(value) == 0
    if scalar and x.distribution.layout.view is None:
        mask = _as_mask(x, key, call)
        if mask is not None and mask.distribution == x.distribution:
            writable(x)[mask.local] = value
            changed(x)
            return

    axes = _axes_of(x, key, call)
    if axes and all(axis.modes and isinstance(axis.taken, int) for axis in axes) and not _has_dots(key):
        np.empty(1, x.local.dtype)[0] = np.empty(np.shape(value), x.local.dtype)  # NumPy refuses what does not fit
    _write(x, axes, value, call)
    changed(x, axes)


def store(x: Distributed, axes: Sequence[KeyAxis] | None, part: Distributed) -> None:
    """Write a part back to the elements of its tensor that it has copies of; to all, reshaped, without a key."""
    with attributed_to(_WRITING, of_result=True):  # the part has been written, so that no policy may refuse the rest
        if axes is None:
            axes = parse_key((), x.distribution.shape)
            part = reshape(part, x.distribution.shape)
        _write(x, axes, part)


def _takes_all(key: Any) -> bool:
    """Whether a key takes all elements as they are, such as `...` and `:`, whatever the shape."""
    return all(item is Ellipsis or (isinstance(item, slice) and item == slice(None)) for item in _items(key))


def _is_written(x: Distributed, key: Any, value: Any) -> bool:
    """Whether the value is the part of the tensor at this key, as in the assignment that ends `x[2:5] += 1`."""
    sharing = value._sharing if isinstance(value, Distributed) else None
    if sharing is None or sharing.source is not x or sharing.axes is None:
        return False
    if any(isinstance(item, list | np.ndarray | Distributed) for item in _items(key)):
        return False
    _ = value.local  # an error if it is outdated
    return _comparable(_axes_of(x, key)) == _comparable(sharing.axes)


def _write(x: Distributed, axes: Sequence[KeyAxis], value: Any, call: KeyedCall | None = None) -> None:
    """Write values at the parts of a key."""
    block = writable(x)
    if not block.flags.writeable:
        agree(x.comm, _WRITING, "read-only", detail=False)  # other ranks compare keys here, so they fail
        raise ValueError("assignment destination is read-only")
    if x.distribution.partial:
        assign(x, _fitting_value(x, x.distribution.shape, value, call), _WRITING, "unsafe")
        return
    if x.distribution.layout.view is None:
        _assign(x, block, axes, value, call)
        return

    # Through a view, indices of modes say nothing of places in the block: write into a plain copy, and move it back.
    y = plain(x, _WRITING, call)
    if y is x:
        y = x.copy()
    _assign(y, y.local, axes, value, call)
    block[...] = redistributed(y, x.distribution.layout, _WRITING).local


def _assign(x: Distributed, block: Array, axes: Sequence[KeyAxis], value: Any, call: KeyedCall | None) -> None:
    """Write values into the block of a tensor without a view."""
    dist, comm = x.distribution, x.comm
    value = _fitting_value(x, tuple(chain(*[axis.extents for axis in axes])), value, call)
    places = [_places(dist, axis, comm.rank) for axis in axes]
    groups = _value_groups(axes, [position for position, _ in places], shape_of(value))
    key = *_comparable(axes), _text_of(dist), block.dtype.str

    if isinstance(value, Distributed):
        rows = [np.array(group) for group in groups if group]
        ends: list[tuple[Entry, ...]] = []
        for axis in axes:
            entries = dist.layout.modes[axis.modes[0]] if isinstance(axis.taken, range) else ()
            ends += [entries] * len(axis.extents)
        hint = moved_first(value, dist.grid, ends[len(ends) - value.local.ndim :])
        values = fetch(value, dist, key, lambda: rows, _WRITING, hint=hint)
    else:
        agree(comm, _WRITING, key, detail=False)
        values = value[_outer_key(groups)]

    if dist.holds(comm.rank) and 0 not in [len(position) for position, _ in places]:
        turned = block.transpose([*chain(*[axis.modes for axis in axes])])
        shape = [len(group[0]) if group else 1 for axis, group in zip(axes, groups, strict=True) if axis.modes]
        turned[_outer_key([local for _, local in places])] = values.reshape(shape)


def _places(dist: Distribution, axis: KeyAxis, rank: int) -> tuple[Ints, list[Ints]]:
    """The positions along a part of a key whose elements a rank holds, and their local indices per mode."""
    # x[3:11:2] = v, and a rank that holds the indices 6 to 9:
    #    positions     0   1   2   3            of the range 3, 5, 7, 9
    #    indices       3   5   7   9
    #    local                 1   3            in the block of 6, 7, 8, 9
    if not axis.modes:
        return np.arange(prod(axis.extents)), []
    index_sets = [dist.index_sets(rank)[mode] for mode in axis.modes]
    if isinstance(axis.taken, range):
        position, rest = np.divmod(index_sets[0].to_array() - axis.taken.start, axis.taken.step)
        inside = (rest == 0) & (position >= 0) & (position < len(axis.taken))
        return position[inside], [np.flatnonzero(inside)]

    # Of points, find the ranks of all of them, and choose those at this rank's coordinates.
    points = np.asarray(axis.taken).reshape(len(axis.modes), -1)
    at = dist.grid.coordinates(rank)
    mine = np.full(points.shape[1], all(index_sets))
    local_indices: list[Ints] = []
    for mode, indices in zip(axis.modes, points, strict=True):
        coordinates, local = locate(dist.splits[mode], dist.shape[mode], indices)
        for g, coordinate in coordinates.items():
            mine &= coordinate == at[g]
        local_indices.append(local)
    return np.flatnonzero(mine), [local[mine] for local in local_indices]


def _value_groups(axes: Sequence[KeyAxis], positions: Sequence[Ints], shape: tuple[int, ...]) -> list[list[Ints]]:
    """Per part of a key, the indices into a broadcast value's modes for some positions along that part."""
    mode = len(shape) - sum(len(axis.extents) for axis in axes)  # negative where the value lacks a mode
    groups: list[list[Ints]] = []
    for axis, position in zip(axes, positions, strict=True):
        group: list[Ints] = []
        for digit in np.unravel_index(position, axis.extents) if axis.extents else ():
            if mode >= 0:
                group.append(np.zeros(len(position), np.int64) if shape[mode] == 1 else np.asarray(digit))
            mode += 1
        groups.append(group)
    return groups


def _outer_key(groups: Sequence[Sequence[Ints]]) -> Selection:
    """NumPy's key for the product of groups, each a list of indices along one mode, or of points in several modes."""
    filled = [group for group in groups if group]
    if all(len(group) == 1 for group in filled):
        return selection([group[0] for group in filled])

    # As by `numpy.ix_`: each group runs along a mode of its own, and NumPy broadcasts them against each other.
    key: list[Ints] = []
    for number, group in enumerate(filled):
        along = (1,) * number + (-1,) + (1,) * (len(filled) - number - 1)
        key += [indices.reshape(along) for indices in group]
    return tuple(key)


def _fitting_value(x: Distributed, shape: tuple[int, ...], value: Any, call: KeyedCall | None) -> Any:
    """A value as an array or a plain tensor with no more modes than a key's shape; it must broadcast to that."""
    value_shape = shape_of(value)
    extra = max(len(value_shape) - len(shape), 0)
    extents = (1,) * extra + shape[len(shape) - len(value_shape) + extra :]
    if [n for n, m in zip(value_shape, extents, strict=True) if n not in (1, m)]:
        text = (
            f"a value of shape {value_shape} does not broadcast to the shape {shape} of the key\n"
            "aligned at the last mode, its extents are those or 1; an array is the whole one on every rank: write what "
            "fits this rank's block into x.local"
        )
        agree(x.comm, _WRITING, text, detail=False)
        raise ValueError(text)

    if not isinstance(value, Distributed):
        return np.reshape(value, value_shape[extra:])
    value = plain(value, _WRITING, call)
    if not extra:
        return value
    return read(value, parse_key((0,) * extra, value_shape), _WRITING)
