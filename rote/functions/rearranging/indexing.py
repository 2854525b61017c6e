"""Global indexing: `x[key]` with NumPy's keys, of tensors in any layout.

A key is read for the tensor's shape as a tuple of `KeyAxis`: what each mode of the result takes of the tensor's modes.
If the split modes are taken whole, the block is cut by the same key. Otherwise each rank fetches the elements that it
lacks by an indexed move, on which all ranks agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from operator import index as as_index
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.step import as_array
from ...layout.distribution import Distribution
from ...layout.expressions import fitting
from ...layout.grid import Grid
from ...layout.indexset import Selection, as_slice, selection
from ...layout.layout import Entry, Layout
from ...runtime.comm.agreement import agree
from ...runtime.comm.cache import cached
from ...runtime.indexed import IndexedMove
from ..alignment import plain
from ..distributed import Array, Distributed, linked
from ..moves import Implicit, agree_on_call, announce, implicit_cause, moved
from .ordering import compressed

__all__ = ["KeyAxis", "as_bool", "as_indices", "as_mask", "axes_of", "fetch", "fetched", "getitem", "has_dots"]
__all__ += [
    "comparable",
    "key_at",
    "known",
    "moved_first",
    "outer_key",
    "parse_key",
    "part",
    "part_at",
    "read",
    "relabelled",
]

T = TypeVar("T", bound=Distributed)
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


def comparable(axes: Sequence[KeyAxis]) -> tuple[object, ...]:
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
    # NumPy: x[:, a, b] has the modes of the points where `a` stands; x[a, :, b], where it could not tell, in front.
    adjacent = places == list(range(places[0], places[-1] + 1))
    at = places[0] if adjacent else 0
    return (*_without_points(parts[:at]), axis, *_without_points(parts[at:]))


def _without_points(parts: Sequence[KeyAxis | _Points | None]) -> list[KeyAxis]:
    """The parts of a key that are not arrays."""
    return [part for part in parts if isinstance(part, KeyAxis)]


_KEPT = 64  # indexed moves that one communicator keeps

Origin = Callable[[Ints], Ints]
"""A function from indices along one mode of the result to the operand's indices from which the elements come."""


def fetch(
    x: Distributed,
    target: Distribution,
    key: Any,
    wanted: Callable[[], Sequence[Ints]],
    name: str,
    fill: Any = 0,
    hint: str = "",
) -> Array:
    """The elements of a plain tensor for a block of another, by an indexed move that is cached. Collective.

    Args:
        key: all on which the wanted elements depend besides the name and the distributions; see `agree`.
        wanted: a function that gives the indices that this rank needs, as for `IndexedMove`.
        fill: the value at negative indices.
        hint: if the move brings an operand to another layout, so that it is implicit, what to write instead.
    """
    source, comm = x.distribution, x.comm
    agree_on_call(comm)
    agree(comm, name, key, detail=False)
    move = cached(comm, "indexed", (source, target, name, key), lambda: IndexedMove(source, wanted(), comm), _KEPT)
    token = implicit_cause.set(Implicit(name, 0, lambda: hint) if hint else None)
    try:
        announce(x, move.received * x.local.itemsize, lambda: f"an indexed move {source} -> {target}", name)
    finally:
        implicit_cause.reset(token)
    return move(x.local, fill)


def moved_first(x: Distributed, grid: Grid, modes: Sequence[tuple[Entry, ...]]) -> str:
    """The hint for an operand whose elements would not only shift, because a result splits them otherwise; else "".

    Args:
        grid, modes: the grid of the result, and per mode of the operand the entries that split the result there.
    """
    ends = tuple([tuple(map(fitting, entries)) for entries in modes])
    given = [tuple(map(fitting, entries)) for entries in x.distribution.layout.modes]
    if x.distribution.grid == grid and all(own in ((), end) for own, end in zip(given, ends, strict=True)):
        return ""
    there = "" if x.distribution.grid == grid else f", grid={grid.shape}"
    return f"move it by x.redistribute({str(Layout(ends))!r}{there}) first"


def fetched(x: T, target: Distribution, origins: Sequence[Origin | None], key: Any, name: str, fill: Any = 0) -> T:
    """A tensor that takes its elements from other indices of a plain tensor of the same order. Collective.

    The origins are, per mode, the indices that elements come from; None if they do not change. Negative indices are
    filled. The other arguments are those of `fetch`.
    """

    def wanted() -> list[Ints]:
        held = target.indices(x.comm.rank)
        return [index if origin is None else origin(index) for index, origin in zip(held, origins, strict=True)]

    return x._on(fetch(x, target, key, wanted, name, fill), target)


_NAME = "indexing"


def getitem(x: T, key: Any) -> T:
    """The elements of a tensor at a NumPy key: integers, slices, `...`, `None`, arrays, masks. Collective.

    Sliced modes stay split over the same grid modes; their blocks are balanced anew where their extents change. Modes
    at an integer disappear, and the result is replicated over the grid modes that split them. Arrays of indices make
    modes that are split like the first mode they index. A mask of the tensor's shape gives one mode, whose block sizes
    follow from the data. If all split modes are taken whole, nothing moves. Where NumPy gives a view, the result is a
    part of the tensor; see `sharing`.

    Raises:
        IndexError: an index is out of range, or is not an index; on all ranks, before anything moves.
        LayoutError: ranks give different keys, all of which need a move.
    """
    chosen = as_bool(key)
    if chosen is not None:
        added = getitem(x, None)
        return (added if chosen else getitem(added, slice(0, 0))).copy()
    mask = as_mask(x, key)
    if mask is not None:
        return compressed(plain(x, _NAME), mask, _NAME)
    axes = axes_of(x, key)
    if any(isinstance(axis.taken, np.ndarray) for axis in axes):
        return read(plain(x, _NAME), axes, _NAME)
    found = part(x, axes, _NAME)
    number = not found.distribution.shape and not has_dots(key)  # which is no view in NumPy
    return found.copy() if number else found


def part(x: T, axes: Sequence[KeyAxis], name: str) -> T:
    """The elements at the parts of a key without arrays, as a part of the tensor; see `sharing`.

    Whether it is a copy depends on the layout, not on the number of ranks.
    """
    source = plain(x, name)
    copies = source is not x or any(_is_cut(source.distribution, axis) for axis in axes)
    return linked(read(source, axes, name), x, axes, "copy" if copies else "view")


def part_at(x: T, key: Any, name: str) -> T:
    """The elements at NumPy's key without arrays, as a part of the tensor."""
    return part(x, parse_key(key, x.distribution.shape), name)


def as_bool(key: Any) -> bool | None:
    """The value of a key that is a single bool, of any kind; None if it is another key."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Distributed) and key.local.dtype == bool and not key.distribution.shape:
        key = known(key)
    single = isinstance(key, bool | np.bool_) or (isinstance(key, np.ndarray) and not key.ndim and key.dtype == bool)
    return bool(key) if single else None


def as_mask(x: T, key: Any) -> Distributed | None:
    """A key that is a mask of the tensor's shape, in the tensor's layout; None if it is another key."""
    shape = x.distribution.shape
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if not shape or not isinstance(key, Distributed | np.ndarray):
        return None
    if isinstance(key, Distributed):
        if key.local.dtype != bool or key.distribution.shape != shape:
            return None
        layout = plain(x, _NAME).distribution.layout
        if key.distribution.grid == x.distribution.grid:
            return moved(key, layout, _NAME)
        key = known(key)
    key = as_array(key)
    if key.dtype != bool or key.shape != shape:
        return None
    dist = plain(x, _NAME).distribution
    return x._on(key[np.ix_(*dist.indices(x.comm.rank))], dist)


def axes_of(x: Distributed, key: Any) -> tuple[KeyAxis, ...]:
    """The parts of a key, which say what it takes of each mode; all ranks refuse a wrong key."""
    try:
        items = tuple(map(known, key)) if isinstance(key, tuple) else known(key)
        return parse_key(items, x.distribution.shape)
    except IndexError as error:
        agree(x.comm, _NAME, str(error), detail=False)
        raise


def known(value: Any) -> Any:
    """The global values of a tensor, on every rank; an argument of another type is returned as it is."""
    if not isinstance(value, Distributed):
        return value
    x = plain(value, _NAME)
    array = moved(x, Layout(((),) * len(x.distribution.shape)), _NAME).local
    return array if array.ndim or array.dtype == bool else array.item()


def read(x: T, axes: Sequence[KeyAxis], name: str) -> T:
    """The elements of a plain tensor at the parts of a key, which together cover all its modes."""
    # Two ways, by the layout alone, so that all ranks take the same one:
    #   x[2:5, ::2] with both modes whole, or taken whole     the same key cuts the block; nothing moves
    #   x[2:5] along a split mode, x[[3, 0, 3]]               each rank fetches what its part of the result takes
    dist, target = x.distribution, _at_key(x.distribution, axes)
    turned = relabelled(x, [mode for axis in axes for mode in axis.modes])
    if all(_stays(dist, axis) for axis in axes):
        parts: list[Any] = []
        for axis in axes:
            parts += _local_key(dist, axis)
        block = turned.local[(*parts, ...)]
        return x._on(block.copy() if any(_is_cut(dist, axis) for axis in axes) else block, target)
    block = fetch(turned, target, comparable(axes), lambda: _wanted(axes, target.indices(x.comm.rank)), name)
    return x._on(block.reshape(target.local_shape(x.comm.rank)), target)


def relabelled(x: T, modes: Sequence[int]) -> T:
    """A plain tensor with its modes in another order; the block is a view."""
    return x._on(x.local.transpose(modes), _in_order(x.distribution, tuple(modes)))


@memoized(1024)
def _in_order(dist: Distribution, modes: tuple[int, ...]) -> Distribution:
    layout = Layout(tuple([dist.layout.modes[mode] for mode in modes]))
    return layout.on([dist.shape[mode] for mode in modes], dist.grid)


def _at_key(dist: Distribution, axes: Sequence[KeyAxis]) -> Distribution:
    """The distribution of the elements at a key, which follows the tensor's; see `getitem`."""
    parts = []
    for axis in axes:
        keeps = isinstance(axis.taken, range) and len(axis.taken) == dist.shape[axis.modes[0]]
        parts.append((axis.modes, axis.extents, keeps))
    return _following(dist, tuple(parts))


@memoized(1024)
def _following(dist: Distribution, parts: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...]) -> Distribution:
    """The distribution of a result, per part of a key from its modes, its extents, and whether it keeps the extent."""
    modes: list[tuple[Entry, ...]] = []
    for taken, extents, keeps in parts:
        entries = [entry if keeps else fitting(entry) for mode in taken for entry in dist.layout.modes[mode]]
        modes += [tuple(entries), *[()] * (len(extents) - 1)][: len(extents)]
    return Layout(tuple(modes)).on([n for _, extents, _ in parts for n in extents], dist.grid)


def _stays(dist: Distribution, axis: KeyAxis) -> bool:
    """Whether a part of a key needs no move, because its modes are not split or are taken whole."""
    return _is_whole(dist, axis) or not any(dist.splits[mode] for mode in axis.modes)


def _is_whole(dist: Distribution, axis: KeyAxis) -> bool:
    return isinstance(axis.taken, range) and axis.taken == range(dist.shape[axis.modes[0]])


def _is_cut(dist: Distribution, axis: KeyAxis) -> bool:
    """Whether a part of a key takes only some of a split mode, so that the block is a copy, even on one rank."""
    return not _is_whole(dist, axis) and any(dist.layout.modes[mode] for mode in axis.modes)


def _local_key(dist: Distribution, axis: KeyAxis) -> list[Any]:
    """NumPy's key into a block, with its modes in the order of the axes, for a part that needs no move."""
    if not axis.modes:
        return [None]
    if isinstance(axis.taken, range):
        return [slice(None) if _is_whole(dist, axis) else as_slice(axis.taken)]
    return [axis.taken] if isinstance(axis.taken, int) else list(axis.taken)


def _wanted(axes: Sequence[KeyAxis], held: Sequence[Ints]) -> list[Ints]:
    """The indices of the tensor that a rank needs for the indices of the result that it holds."""
    wanted: list[Ints] = []
    mode = 0
    for axis in axes:
        if isinstance(axis.taken, range):
            wanted.append(axis.taken.start + axis.taken.step * held[mode])
        elif isinstance(axis.taken, int):
            wanted += [np.array([axis.taken])] * len(axis.modes)
        else:
            chosen = axis.taken[:, held[mode]] if axis.extents else axis.taken
            wanted.append(chosen.reshape(len(axis.modes), chosen.size // len(axis.modes)))
        mode += len(axis.extents)
    return wanted
