"""Reshaping, and reordering of modes: results are views where the layout's digits allow."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ...caches import memoized
from ...grammar.nodes import BLOCK, Entry, Kind
from ...layout import kinds
from ...layout.distribution import Distribution
from ...layout.kinds import Split
from ...layout.layout import Layout
from ...runtime.comm.agreement import collective_errors
from ..alignment import made_whole, plain
from ..distributed import Distributed, PartKind, has_view, linked
from ..moves import agree_on_call, because
from ..rules import follows
from .indexing import KeyAxis, as_indices, key_at, part_at, relabelled
from .ordering import blocks_of, fused_view, in_order

__all__ = ["expand_dims", "moveaxis", "permute_dims", "ravel", "reordered", "reshape", "squeeze", "swapaxes"]
__all__ += ["transpose"]

T = TypeVar("T", bound=Distributed)
Axes = int | Sequence[int]


@follows("relabelled", np.reshape)
def reshape(x: T, /, shape: int | Sequence[int], order: Literal["C"] = "C", *, copy: bool | None = None) -> T:
    """The elements in row-major order as a tensor of another shape.

    Merged or divided modes stay split where digits allow: they are whole, or only their outermost mode is split, at
    multiples of the new inner extents. Otherwise the elements move to row-major order, and to blocks of the new mode
    for which that costs least. Collective.

    The result is a part of `x`, see `sharing`, where NumPy's would be a view of an array in row-major order. Whether
    blocks share memory depends on the layout and on the number of ranks.

    Args:
        shape: the new shape; one extent may be -1.
        order: only "C".
        copy: True always copies the block; False raises an error on all ranks if the block of any cannot be a view.

    Raises:
        ValueError: the shape has another number of elements, or a copy is needed despite `copy=False`.

    >>> from rote import DistTensor
    >>> x = DistTensor.from_global(range(6), "block[(0)]")
    >>> reshape(x, (2, 3))
    DistTensor((2, 3), int64, 'block[(0),()]', grid=(1,), rank=0, local=(2, 3))
    """
    if order not in ("C", "A"):
        raise ValueError(
            f"order={order!r}: tensors are reshaped in row-major order; write reshape(x.T, …).T for columns"
        )
    wanted = _shape(x.distribution.shape, shape)
    given, x = x, plain(x, "reshape")
    kind: PartKind = "view" if x is given else "copy"
    target = _regrouped(x.distribution, wanted)
    if target is not None:
        y = x._on(x.local.reshape(target.local_shape(x.comm.rank)), target)
        if kind == "view" and y.local.size and not np.may_share_memory(y.local, x.local):
            kind = "block"
    elif copy is False:
        raise _no_view(x.distribution, wanted)
    elif not wanted:
        y, kind = in_order(x, "reshape"), "copy"
        with because("reshape", owns=True):
            y = made_whole(y, (0,), "reshape")
        y = y._on(y.local.reshape(()), Layout(()).on((), y.distribution.grid))
    else:
        flat, kind = in_order(x, "reshape"), "copy"
        fused = Layout(flat.distribution.layout.modes, fused_view(len(wanted))).on(wanted, flat.distribution.grid)
        with because("reshape", owns=True):
            y = plain(flat._on(flat.local, fused), "reshape")
    if copy is False:
        agree_on_call(x.comm)
        with collective_errors(x.comm):  # the memory of some ranks' blocks may allow a view, and of others not
            if y.local.size and not np.may_share_memory(y.local, given.local):
                raise _no_view(given.distribution, wanted)
    if not copy and has_view(given, wanted):
        return linked(y._with(y.local), given, None, kind)
    fresh = y.local.flags.writeable and not np.may_share_memory(y.local, given.local)
    return y if fresh else y.copy()


def _no_view(dist: Distribution, wanted: tuple[int, ...]) -> ValueError:
    return ValueError(f"{dist} has no view of shape {wanted}; leave copy=None")


@follows("relabelled", np.ravel)
def ravel(a: T, order: Literal["C"] = "C") -> T:
    """The elements in row-major order as one mode; a view where digits allow, see `reshape`.

    >>> from rote import DistTensor
    >>> DistTensor.zeros((2, 3), "block[(0),()]").ravel().shape
    (6,)
    """
    return reshape(a, (-1,), order, copy=None if has_view(a, None) else True)


@follows("relabelled", np.permute_dims)
def permute_dims(x: T, /, axes: Sequence[int] | None = None) -> T:
    """The tensor with its modes in another order, by default reversed; the block is a view.

    Raises:
        ValueError: `axes` is not a permutation of the tensor's modes.

    >>> from rote import DistTensor
    >>> print(permute_dims(DistTensor.zeros((4, 6), "block[(0),()]"), (1, 0)).layout)
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

    Raises:
        AxisError: there is no such mode.

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

    Raises:
        ValueError: there are not as many places as modes, or one occurs twice.

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

    Raises:
        ValueError: a mode has another extent.

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


def _shape(old: tuple[int, ...], given: int | Sequence[int]) -> tuple[int, ...]:
    """The new shape, with -1 replaced by the extent that remains."""
    shape = as_indices(given)
    known, number = prod([n for n in shape if n != -1]), prod(old)
    if shape.count(-1) == 1 and known and number % known == 0:
        at = shape.index(-1)
        shape = (*shape[:at], number // known, *shape[at + 1 :])
    if min(shape, default=0) < 0 or prod(shape) != number:
        raise ValueError(f"a tensor of shape {old} cannot be reshaped into {given}")
    return shape


@memoized(1024)
def _regrouped(dist: Distribution, shape: tuple[int, ...]) -> Distribution | None:
    """The distribution of a plain tensor with reshaped blocks; None if they are not blocks of the new shape."""
    if prod(shape) == 0 and dist.shape != shape:
        return None
    modes: list[tuple[Entry, ...]] = []
    old = 0
    new = 0
    while old < len(dist.shape) or new < len(shape):
        ends = _group(dist.shape[old:], shape[new:])
        entries = _scaled(dist, range(old, old + ends[0]), shape[new : new + ends[1]])
        if entries is None:
            return None
        modes += entries
        old, new = old + ends[0], new + ends[1]
    return Layout(tuple(modes)).on(shape, dist.grid)


def _group(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """The fewest leading modes of either shape that have equal numbers of elements."""
    if old and new and old[0] == new[0]:
        return 1, 1
    if not old or not new:
        return len(old), len(new)
    taken = [1, 1]
    while (left := prod(old[: taken[0]])) != (right := prod(new[: taken[1]])):
        taken[left > right] += 1
    return taken[0], taken[1]


def _scaled(dist: Distribution, old: range, new: Sequence[int]) -> list[tuple[Entry, ...]] | None:
    """The entries of the new modes that replace old ones; None if blocks of the old are not blocks of the new."""
    if len(old) == len(new) == 1:
        return [dist.layout.modes[old[0]]]
    entries = _leading(dist, old, new)
    if entries is None and any(dist.splits[mode] for mode in old):
        return None
    if entries is None:
        return [()] * len(new)
    modes: list[tuple[Entry, ...]] = [()] * len(new)
    first = next((mode for mode, n in enumerate(new) if n != 1), None)
    if first is not None:
        modes[first] = entries
    return modes


def _leading(dist: Distribution, old: range, new: Sequence[int]) -> tuple[Entry, ...] | None:
    """The entries of the outermost new mode; None unless only the outermost old mode is split, at allowed places."""
    split = [mode for mode in old if dist.layout.modes[mode]]
    first = next((mode for mode, n in enumerate(new) if n != 1), None)
    if len(split) != 1 or first is None or prod(dist.shape[old.start : split[0]]) != 1:
        return None
    # Merged, n rows of `outer` elements become n * outer elements; divided, `inner` elements become one row:
    #   (4, 6) split at row 2  ->  (24,) split at 2 * 6 = 12  ->  (8, 3) split at row 12 / 3 = 4; (3, 8) does not fit
    splits = [Split(e.grid_mode, e.kind, dist.grid.shape[e.grid_mode]) for e in dist.layout.modes[split[0]]]
    extents = dist.shape[split[0]], prod(dist.shape[split[0] + 1 : old.stop]), prod(new[first + 1 :])
    scaled = _scaled_kinds(splits, *extents)
    if scaled is None:
        return None
    return tuple([Entry(s.grid_mode, kind) for s, kind in zip(splits, scaled, strict=True)])


def _scaled_kinds(splits: Sequence[Split], extent: int, outer: int, inner: int) -> tuple[Kind, ...] | None:
    """The kinds of a mode's splits after each index becomes `outer`, and `inner` of these one; None if none fit."""
    if all(s.kind.is_cyclic for s in splits):
        tiles = [s.kind.tile * outer for s in splits]
        if any(tile % inner for tile in tiles):
            return None
        return tuple([kinds.cyclic_kind(tile // inner, s.kind.at) for s, tile in zip(splits, tiles, strict=True)])
    if len(splits) == 1:
        (only,) = splits
        sizes, rests = np.divmod(kinds.extent(only.kind, only.parts, extent, np.arange(only.parts)) * outer, inner)
        return None if rests.any() else (blocks_of(sizes.tolist()),)
    parts = prod([s.parts for s in splits])
    even = all(s.kind == BLOCK for s in splits) and extent % parts == 0 and extent // parts * outer % inner == 0
    return (BLOCK,) * len(splits) if even else None
