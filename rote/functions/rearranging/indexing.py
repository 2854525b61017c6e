"""Global indexing: `x[key]` with NumPy's keys, of tensors in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_array
from ...layout.expressions import fitting
from ...layout.layout import Distribution, Entry, Layout
from ...layout.selection import as_slice
from ...runtime.comm.cache import refuse_unlike
from ..alignment import plain
from ..distributed import Distributed
from ..moves import moved
from ..sharing import linked
from .fetching import fetch
from .keys import KeyAxis, has_dots, parse_key, said
from .ordering import compressed

__all__ = ["as_bool", "as_mask", "axes_of", "getitem", "known", "part", "read", "relabelled"]

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]

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


def as_bool(key: Any) -> bool | None:
    """The value of a key that is a single bool, of any kind; None if it is another key."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Distributed) and key.local.dtype == bool and not key.distribution.shape:
        key = known(key)
    single = isinstance(key, bool | np.bool_) or (isinstance(key, np.ndarray) and not key.ndim and key.dtype == bool)
    return bool(key) if single else None


def as_mask(x: T, key: Any) -> Distributed | None:
    """A key that is a mask of the tensor's shape, laid out as the tensor is; None if it is another key."""
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
        refuse_unlike(x.comm, _NAME, str(error))
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
    dist, target = x.distribution, _laid(x.distribution, axes)
    turned = relabelled(x, [mode for axis in axes for mode in axis.modes])
    if all(_stays(dist, axis) for axis in axes):
        parts: list[Any] = []
        for axis in axes:
            parts += _local_key(dist, axis)
        block = turned.local[(*parts, ...)]
        return x._on(block.copy() if any(_is_cut(dist, axis) for axis in axes) else block, target)
    block = fetch(turned, target, said(axes), lambda: _wanted(axes, target.indices(x.comm.rank)), name)
    return x._on(block.reshape(target.local_shape(x.comm.rank)), target)


def relabelled(x: T, modes: Sequence[int]) -> T:
    """A plain tensor with its modes in another order; the block is a view."""
    dist = x.distribution
    layout = Layout(tuple([dist.layout.modes[m] for m in modes]))
    return x._on(x.local.transpose(modes), layout.on([dist.shape[m] for m in modes], dist.grid))


def _laid(dist: Distribution, axes: Sequence[KeyAxis]) -> Distribution:
    """The distribution of the elements at a key, which follows the tensor's; see `getitem`."""
    modes: list[tuple[Entry, ...]] = []
    for axis in axes:
        entries = [entry for mode in axis.modes for entry in dist.layout.modes[mode]]
        if not isinstance(axis.taken, range) or len(axis.taken) != dist.shape[axis.modes[0]]:
            entries = list(map(fitting, entries))
        modes += [tuple(entries), *[()] * (len(axis.extents) - 1)][: len(axis.extents)]
    return Layout(tuple(modes)).on([n for axis in axes for n in axis.extents], dist.grid)


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
