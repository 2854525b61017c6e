"""Global assignment: `x[key] = value` with NumPy's keys, into tensors in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.step import as_array
from ...layout.distribution import Distribution
from ...layout.kinds import locate
from ...runtime.comm.agreement import agree
from ...runtime.placement import check_values
from ..alignment import plain
from ..distributed import Array, Distributed, changed, shape_of, writable
from ..moves import asked
from ..rules import fails_together
from .indexing import (
    KeyAxis,
    as_bool,
    as_mask,
    axes_of,
    comparable,
    fetch,
    has_dots,
    moved_first,
    outer_key,
    parse_key,
    read,
)
from .reshaping import reshape

__all__ = ["setitem", "store"]

Ints = npt.NDArray[np.int64]

_NAME = "assignment"


@fails_together("assignment")
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
        LayoutError: the tensor is partial, or ranks give different keys, or only some ranks have a read-only block.
            All ranks raise these errors before anything is written.
    """
    check_values(_NAME, x.distribution)
    chosen = as_bool(key)
    if chosen:
        key = (None,)
    if _is_written(x, key, value):
        return
    if not isinstance(value, Distributed):
        own = getattr(value, "dtype", None)
        numbers = isinstance(own, np.dtype) and own.kind in "biufc"
        value = as_array(value, None if numbers else x.local.dtype)  # if it cannot be stored, all ranks fail here
    if chosen is False:
        _fitting_value(x, (0, *x.distribution.shape), value)
        return
    scalar = not isinstance(value, Distributed) and np.ndim(value) == 0
    if scalar and x.distribution.layout.view is None:
        mask = as_mask(x, key)
        if mask is not None and mask.distribution == x.distribution:
            writable(x)[mask.local] = value
            changed(x)
            return
    axes = axes_of(x, key)
    if axes and all(axis.modes and isinstance(axis.taken, int) for axis in axes) and not has_dots(key):
        np.empty(1, x.local.dtype)[0] = np.empty(np.shape(value), x.local.dtype)  # NumPy refuses what does not fit
    _write(x, axes, value)
    changed(x, axes)


def store(x: Distributed, axes: Sequence[KeyAxis] | None, part: Distributed) -> None:
    """Write a part back to the elements of its tensor that it has copies of; to all, reshaped, without a key."""
    check_values(_NAME, x.distribution)
    if axes is None:
        axes = parse_key((), x.distribution.shape)
        part = reshape(part, x.distribution.shape)
    _write(x, axes, part)


def _is_written(x: Distributed, key: Any, value: Any) -> bool:
    """Whether the value is the part of the tensor at this key, as in the assignment that ends `x[2:5] += 1`."""
    sharing = value._sharing if isinstance(value, Distributed) else None
    if sharing is None or sharing.source is not x or sharing.axes is None:
        return False
    if any(isinstance(item, list | np.ndarray | Distributed) for item in (key if isinstance(key, tuple) else (key,))):
        return False
    _ = value.local  # an error if it is outdated
    return comparable(axes_of(x, key)) == comparable(sharing.axes)


def _write(x: Distributed, axes: Sequence[KeyAxis], value: Any) -> None:
    """Write values at the parts of a key."""
    block = writable(x)
    if not block.flags.writeable:
        agree(x.comm, _NAME, "read-only", detail=False)  # other ranks compare keys here, so they fail
        raise ValueError("assignment destination is read-only")
    if x.distribution.layout.view is None:
        _assign(x, block, axes, value)
        return
    y = plain(x, _NAME)
    if y is x:
        y = x.copy()
    _assign(y, y.local, axes, value)
    block[...] = asked(y, x.distribution.layout, _NAME).local


def _assign(x: Distributed, block: Array, axes: Sequence[KeyAxis], value: Any) -> None:
    """Write values into the block of a tensor without a view."""
    dist, comm = x.distribution, x.comm
    given = _fitting_value(x, tuple(chain(*(axis.extents for axis in axes))), value)
    places = [_places(dist, axis, comm.rank) for axis in axes]
    groups = _value_groups(axes, [position for position, _ in places], shape_of(given))
    if isinstance(given, Distributed):
        rows = [np.array(group) for group in groups if group]
        ends = [
            dist.layout.modes[axis.modes[0]] if isinstance(axis.taken, range) else ()
            for axis in axes
            for _ in axis.extents
        ]
        hint = moved_first(given, dist.grid, ends[len(ends) - given.local.ndim :])
        values = fetch(given, dist, comparable(axes), lambda: rows, _NAME, hint=hint)
    else:
        agree(comm, _NAME, comparable(axes), detail=False)
        values = given[outer_key(groups)]
    if dist.holds(comm.rank) and all(len(position) for position, _ in places):
        turned = block.transpose([*chain(*(axis.modes for axis in axes))])
        shape = [len(group[0]) if group else 1 for axis, group in zip(axes, groups, strict=True) if axis.modes]
        turned[outer_key([held for _, held in places])] = values.reshape(shape)


def _value_groups(axes: Sequence[KeyAxis], positions: Sequence[Ints], shape: tuple[int, ...]) -> list[list[Ints]]:
    """Per part of a key, the indices into a broadcast value's modes for some positions along that part."""
    mode = len(shape) - sum(len(axis.extents) for axis in axes)  # negative where the value lacks a mode
    groups: list[list[Ints]] = []
    for axis, position in zip(axes, positions, strict=True):
        groups.append([])
        if not axis.extents:
            continue
        for digit in np.unravel_index(position, axis.extents):
            if mode >= 0 and shape[mode] == 1:
                groups[-1].append(np.zeros(len(position), np.int64))
            elif mode >= 0:
                groups[-1].append(np.asarray(digit))
            mode += 1
    return groups


def _fitting_value(x: Distributed, shape: tuple[int, ...], value: Any) -> Any:
    """A value as an array or a plain tensor with no more modes than a key's shape; it must broadcast to that."""
    given = shape_of(value)
    extra = max(len(given) - len(shape), 0)
    lacking = shape[len(shape) - len(given) + extra :]
    if any(n != 1 for n in given[:extra]) or any(n not in (1, m) for n, m in zip(given[extra:], lacking, strict=True)):
        text = (
            f"a value of shape {given} does not broadcast to the shape {shape} of the key\n"
            "aligned at the last mode, its extents are those or 1; an array is the whole one on every rank: write what "
            "fits this rank's block into x.local"
        )
        agree(x.comm, _NAME, text, detail=False)
        raise ValueError(text)
    if not isinstance(value, Distributed):
        return np.reshape(value, given[extra:])
    value = plain(value, _NAME)
    first = [KeyAxis((mode,), 0, ()) for mode in range(extra)]
    rest = [KeyAxis((mode,), range(given[mode]), (given[mode],)) for mode in range(extra, len(given))]
    return read(value, (*first, *rest), _NAME) if extra else value


def _places(dist: Distribution, axis: KeyAxis, rank: int) -> tuple[Ints, list[Ints]]:
    """The positions along a part of a key whose elements a rank holds, and their local indices per mode."""
    if not axis.modes:
        return np.arange(prod(axis.extents)), []
    held = [dist.index_sets(rank)[mode] for mode in axis.modes]
    if isinstance(axis.taken, range):
        position, left = np.divmod(held[0].to_array() - axis.taken.start, axis.taken.step)
        inside = (left == 0) & (position >= 0) & (position < len(axis.taken))
        return position[inside], [np.flatnonzero(inside)]
    points = np.asarray(axis.taken).reshape(len(axis.modes), -1)
    at = dist.grid.coordinates(rank)
    mine = np.full(points.shape[1], all(held))
    locals_: list[Ints] = []
    for mode, indices in zip(axis.modes, points, strict=True):
        coordinates, local = locate(dist.splits[mode], dist.shape[mode], indices)
        for g, coordinate in coordinates.items():
            mine &= coordinate == at[g]
        locals_.append(local)
    return np.flatnonzero(mine), [local[mine] for local in locals_]
