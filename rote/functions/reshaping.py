"""Tensors in row-major order: in another shape, as one mode with a run of it on each rank, and where a mask is true.

A reshaped block is a view where the layout's digits allow. Elsewhere elements move to blocks of the row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_index
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..grammar.nodes import BLOCK, Entry, Fuse, Kind
from ..layout import kinds
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from ..layout.kinds import Split, block_kind, extent
from ..layout.layout import Layout
from ..layout.view import View
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import collective_errors, gathered
from .alignment import plain, replicated, whole_along
from .distributed import Array, Distributed, PartKind, T, has_view, linked
from .moves import agree_on_call, attributed_to, moved
from .rules import follows

__all__ = ["argwhere", "as_indices", "compressed", "first_index", "flatnonzero", "in_order", "nonzero", "over_ranks"]
__all__ += ["ravel", "reshape", "unravel_index"]


def as_indices(values: int | Sequence[int] | npt.NDArray[Any]) -> tuple[int, ...]:
    """One integer, or several in a sequence or an array, as a tuple."""
    several = as_array(values).tolist() if isinstance(values, np.ndarray) else values
    return tuple(map(as_index, several)) if isinstance(several, Sequence) else (as_index(several),)


# --- shapes -----------------------------------------------------------------------------------------------------------


@follows("relabelled", np.reshape)
def reshape(x: T, /, shape: int | Sequence[int], order: Literal["C"] = "C", *, copy: bool | None = None) -> T:
    """The elements in row-major order as a tensor of another shape.

    Merged or divided modes stay split where digits allow: they are whole, or only their outermost mode is split, at
    multiples of the new inner extents. Otherwise the elements move to row-major order, and to blocks of the new mode
    for which that costs least. Collective.

    The result is a part of `x`, see `sharing`, where NumPy's would be a view of an array in row-major order. Whether
    blocks share memory depends on the layout and on the number of ranks.

    Parameters
    ----------
    shape : int | Sequence[int]
        The new shape; one extent may be -1.
    order : {'C'}, default 'C'
        Only "C".
    copy : bool, optional
        True always copies the block; False raises an error on all ranks if the block of any cannot be a view.

    Raises
    ------
    ValueError
        The shape has another number of elements, or a copy is needed despite `copy=False`.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global(range(6), "block[(0)]")
    >>> xp.reshape(x, (2, 3))
    DistTensor((2, 3), int64, 'block[(0),()]', grid=(1,), rank=0, local=(2, 3))
    """
    if order not in ("C", "A"):
        raise ValueError(
            f"order={order!r}: tensors are reshaped in row-major order; write reshape(x.T, …).T for columns"
        )
    new = _shape(x.distribution.shape, shape)
    tensor, x = x, plain(x, "reshape")
    kind: PartKind = "view" if x is tensor else "copy"

    # Where digits allow, blocks are reshaped. Elsewhere elements move to row-major order, and from there to the result.
    target = _regrouped(x.distribution, new)
    if target is not None:
        y = x._on(x.local.reshape(target.local_shape(x.comm.rank)), target)
        if kind == "view" and y.local.size and not np.may_share_memory(y.local, x.local):
            kind = "block"
    elif copy is False:
        raise _no_view(x.distribution, new)
    elif not new:
        y, kind = in_order(x, "reshape"), "copy"
        with attributed_to("reshape", of_result=True):
            y = whole_along(y, (0,), "reshape")
        y = y._on(y.local.reshape(()), Layout(()).on((), y.distribution.grid))
    else:
        flat, kind = in_order(x, "reshape"), "copy"
        fused = Layout(flat.distribution.layout.modes, fused_view(len(new))).on(new, flat.distribution.grid)
        with attributed_to("reshape", of_result=True):
            y = plain(flat._on(flat.local, fused), "reshape")

    if copy is False:
        agree_on_call(x.comm)
        with collective_errors(x.comm):  # the memory of some ranks' blocks may allow a view, and of others not
            if y.local.size and not np.may_share_memory(y.local, tensor.local):
                raise _no_view(tensor.distribution, new)

    if not copy and has_view(tensor, new):
        return linked(y._with(y.local), tensor, None, kind)
    fresh = y.local.flags.writeable and not np.may_share_memory(y.local, tensor.local)
    return y if fresh else y.copy()


def _no_view(dist: Distribution, shape: tuple[int, ...]) -> ValueError:
    return ValueError(f"{dist} has no view of shape {shape}; leave copy=None")


@follows("relabelled", np.ravel)
def ravel(a: T, order: Literal["C"] = "C") -> T:
    """The elements in row-major order as one mode; a view where digits allow, see `reshape`.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.zeros((2, 3), "block[(0),()]").ravel().shape
    (6,)
    """
    return reshape(a, (-1,), order, copy=None if has_view(a, None) else True)


def _shape(old: tuple[int, ...], new: int | Sequence[int]) -> tuple[int, ...]:
    """The new shape, with -1 replaced by the extent that remains."""
    shape = as_indices(new)
    known, number = prod([n for n in shape if n != -1]), prod(old)
    if shape.count(-1) == 1 and known and number % known == 0:
        at = shape.index(-1)
        shape = (*shape[:at], number // known, *shape[at + 1 :])
    if min(shape, default=0) < 0 or prod(shape) != number:
        raise ValueError(f"a tensor of shape {old} cannot be reshaped into {new}")
    return shape


@memoized(1024)
def _regrouped(dist: Distribution, shape: tuple[int, ...]) -> Distribution | None:
    """The distribution of a plain tensor with reshaped blocks; None if they are not blocks of the new shape."""
    if prod(shape) == 0 and dist.shape != shape:
        return None

    modes: list[tuple[Entry, ...]] = []
    old = new = 0
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

    # Only the outermost mode may be split. Merged, n rows of `outer` elements become n * outer elements; divided,
    # `inner` elements become one row:
    #   (4, 6) split at row 2  ->  (24,) split at 2 * 6 = 12  ->  (8, 3) split at row 12 / 3 = 4; (3, 8) does not fit
    modes: list[tuple[Entry, ...]] = [()] * len(new)
    split = [mode for mode in old if dist.layout.modes[mode]]
    first = next((mode for mode, n in enumerate(new) if n != 1), None)
    if len(split) == 1 and first is not None and prod(dist.shape[old.start : split[0]]) == 1:
        splits = [Split(e.grid_mode, e.kind, dist.grid.shape[e.grid_mode]) for e in dist.layout.modes[split[0]]]
        outer, inner = prod(dist.shape[split[0] + 1 : old.stop]), prod(new[first + 1 :])
        scaled = _scaled_kinds(splits, dist.shape[split[0]], outer, inner)
        if scaled is not None:
            modes[first] = tuple([Entry(s.grid_mode, kind) for s, kind in zip(splits, scaled, strict=True)])
            return modes
    return None if any(dist.splits[mode] for mode in old) else modes


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

    # Blocks over several grid modes may not have sizes of their own, so only even ones fit.
    parts = prod([s.parts for s in splits])
    even = all(s.kind == BLOCK for s in splits) and extent % parts == 0 and extent // parts * outer % inner == 0
    return (BLOCK,) * len(splits) if even else None


def blocks_of(sizes: list[int]) -> Kind:
    """The kind for blocks of some sizes, without the sizes if they are balanced.

    >>> blocks_of([3, 2, 2]) == BLOCK, blocks_of([2, 3]).sizes
    (True, (2, 3))
    """
    balanced = extent(BLOCK, len(sizes), sum(sizes), np.arange(len(sizes))).tolist()
    return BLOCK if sizes == balanced else block_kind(*sizes)


# --- runs of the row-major order --------------------------------------------------------------------------------------


def in_order(x: T, cause: str) -> T:
    """The elements as a tensor of one mode in row-major order, each rank with a run of them.

    Nothing moves if they are already in this order, as in `block[(0),(),()]`, or if every rank has all elements.
    """
    x = plain(x, cause)
    entries = _runs(x.distribution)
    if entries is None:
        order, grid = len(x.distribution.shape), x.distribution.grid
        balanced = tuple([Entry(g, BLOCK) for g, p in enumerate(grid.shape) if p > 1])
        whole = ",".join(["", *["()"] * (order - 1)])
        hint = f"move it by x.redistribute('block[(0){whole}]'{'' if grid.order == 1 else f', grid={grid.size}'}) first"
        x = moved(x, Layout((balanced,), fused_view(order)), cause, hint=hint)
        entries = x.distribution.layout.modes[0]
    return x._on(x.local.reshape(-1), Layout((entries,)).on((prod(x.distribution.shape),), x.distribution.grid))


def _runs(dist: Distribution) -> tuple[Entry, ...] | None:
    """The entries of a plain layout as one mode in row-major order; None if ranks do not hold runs of it.

    They do if only the outermost mode of more than one index is split, in blocks over one grid mode.
    """
    flat = _regrouped(dist, (prod(dist.shape),))
    if flat is None or len(flat.splits[0]) > 1 or any(split.kind.is_cyclic for split in flat.splits[0]):
        return None
    return flat.layout.modes[0]


def fused_view(order: int) -> View | None:
    """The view that fuses all modes of a tensor, the last one fastest; None if there is only one."""
    return View((Fuse(tuple([f"m{m:02}" for m in range(order)])),)) if order > 1 else None


def of_sizes(flat: T, block: Array) -> T:
    """A tensor of one mode, made of the blocks that the ranks computed from their runs of `flat`. Collective.

    Blocks may have any sizes; replicas give equal ones.
    """
    dist, comm = flat.distribution, flat.comm
    (splits,) = dist.splits
    if not splits:
        return replicated(block, flat)
    agree_on_call(comm)
    numbers = gathered(comm, f"new blocks of {dist.shape[0]} {block.dtype.str}", len(block))
    if len(splits) > 1:
        return over_ranks(flat, block, numbers)

    g, at = splits[0].grid_mode, list(dist.grid.coordinates(comm.rank))
    sizes = [numbers[dist.grid.rank([*at[:g], c, *at[g + 1 :]])] for c in range(splits[0].parts)]
    layout = Layout(((Entry(g, blocks_of(sizes)),),))
    return flat._on(block, layout.on((sum(sizes),), dist.grid))


def over_ranks(x: T, block: Array, sizes: list[int], mode: int = 0) -> T:
    """A tensor of which every rank has a block of its own size along a mode, in the order of ranks.

    Uneven blocks over several grid modes become blocks over one grid mode of all ranks.
    """
    split = [g for g, p in enumerate(x.distribution.grid.shape) if p > 1]
    grid, grid_mode = Grid((len(sizes),)), 0
    if len(split) == 1:
        grid, grid_mode = x.distribution.grid, split[0]

    entries, shape = (Entry(grid_mode, blocks_of(sizes)),), list(block.shape)
    shape[mode] = sum(sizes)
    layout = Layout(tuple([entries if m == mode else () for m in range(len(shape))]))
    return x._on(block, layout.on(tuple(shape), grid))


def first_index(flat: Distributed) -> int:
    """The global index of the first element of this rank's run."""
    (indices,) = flat.distribution.index_sets(flat.comm.rank)
    return indices.start


def compressed(x: T, mask: Distributed, cause: str) -> T:
    """The elements of a tensor where a mask in its layout is true, in row-major order."""
    flat, chosen = in_order(x, cause), in_order(mask, cause)
    return of_sizes(flat, flat.local[chosen.local])


# --- indices ----------------------------------------------------------------------------------------------------------


@follows("data-dependent", np.nonzero)
def nonzero(x: T, /) -> tuple[T, ...]:
    """The global indices of the elements that are not zero, one tensor per mode, in row-major order. Collective.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Raises
    ------
    ValueError
        The tensor is of order 0.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([[0, 1], [2, 0]], "block[(0),()]")
    >>> [index.to_global().tolist() for index in xp.nonzero(x)]
    [[0, 1], [1, 0]]
    """
    shape = x.distribution.shape
    if not shape:
        raise ValueError("nonzero takes a tensor of order 1 or more; write x[None]")
    flat = flatnonzero(x)
    return tuple(map(flat._with, np.unravel_index(flat.local, shape)))


@follows("data-dependent", np.flatnonzero)
def flatnonzero(a: T) -> T:
    """The positions in row-major order of the elements that are not zero, as `numpy.flatnonzero`. Collective."""
    flat = in_order(a, "nonzero")
    return of_sizes(flat, first_index(flat) + np.flatnonzero(flat.local))


@follows("data-dependent", np.argwhere)
def argwhere(a: T) -> T:
    """The global indices of the elements that are not zero, one row for each, as `numpy.argwhere`. Collective."""
    flat, shape = flatnonzero(a), a.distribution.shape
    dist = flat.distribution
    rows = np.stack(np.unravel_index(flat.local, shape), axis=1) if shape else np.empty((len(flat.local), 0), np.int64)
    return flat._on(rows, Layout((*dist.layout.modes, ())).on((*dist.shape, len(shape)), dist.grid))


@follows("elementwise", np.unravel_index)
def unravel_index(indices: T, shape: int | Sequence[int], order: Literal["C", "F"] = "C") -> tuple[T, ...]:
    """The index along each mode of a shape, from indices into its elements, as `numpy.unravel_index`.

    Raises
    ------
    ValueError
        An index is out of range, on any rank.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global([1, 5], "block[(0)]")
    >>> [part.to_global().tolist() for part in np.unravel_index(x, (2, 3))]
    [[0, 1], [1, 2]]
    """
    x = plain(indices, "unravel_index")
    with collective_errors(x.comm):
        parts = np.unravel_index(x.local, shape, order)
    return tuple(map(x._with, parts))
