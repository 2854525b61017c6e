"""Tensors in row-major order of their elements, where each rank has a run; selection of elements in that order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ...grammar.nodes import BLOCK, Entry, Fuse, Kind
from ...layout.distribution import Distribution
from ...layout.grid import Grid
from ...layout.kinds import block_kind, extent
from ...layout.layout import Layout
from ...layout.view import View
from ...runtime.comm.agreement import collective_errors, gathered
from ..alignment import plain, replicated
from ..distributed import Array, Distributed
from ..moves import agree_on_call, moved
from ..rules import follows

__all__ = ["argwhere", "blocks_of", "compressed", "first_index", "flat_layout", "flatnonzero", "fused_view", "in_order"]
__all__ += ["nonzero", "of_sizes", "over_ranks", "unravel_index"]

T = TypeVar("T", bound=Distributed)
Ints = npt.NDArray[np.int64]


def in_order(x: T, cause: str) -> T:
    """The elements as a tensor of one mode in row-major order, each rank with a run of them.

    Nothing moves if they are already in this order, as in `block[(0),(),()]`, or if every rank has all elements.
    """
    x = plain(x, cause)
    entries = _runs(x.distribution)
    if entries is None:
        x = moved(x, flat_layout(x.distribution), cause, hint=_in_blocks(x.distribution))
        entries = x.distribution.layout.modes[0]
    return x._on(x.local.reshape(-1), Layout((entries,)).on((prod(x.distribution.shape),), x.distribution.grid))


def flat_layout(dist: Distribution) -> Layout:
    """The layout that splits the row-major order into balanced blocks over all ranks, written as a fused mode.

    >>> from rote.layout.layout import parse
    >>> print(flat_layout(parse("[(0),(1)]").on((4, 6), (2, 2))))
    (m00 m01): block[(0,1)]
    """
    if not dist.shape:
        return Layout(())
    entries = tuple([Entry(g, BLOCK) for g, p in enumerate(dist.grid.shape) if p > 1])
    return Layout((entries,), fused_view(len(dist.shape)))


def _in_blocks(dist: Distribution) -> str:
    """The hint for a tensor whose ranks do not hold runs in row-major order."""
    modes = ",".join(["()"] * (len(dist.shape) - 1))
    grid = "" if dist.grid.order == 1 else f", grid={dist.grid.size}"
    return f"move it by x.redistribute('block[(0){',' * bool(modes)}{modes}]'{grid}) first"


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
    numbers = gathered(comm, "the sizes of new blocks", len(block))
    if len(splits) > 1:
        return over_ranks(flat, block, numbers)
    g, at = splits[0].grid_mode, list(dist.grid.coordinates(comm.rank))
    sizes = [numbers[dist.grid.rank([*at[:g], c, *at[g + 1 :]])] for c in range(splits[0].parts)]
    return flat._on(block, _blocks(g, sizes).on((sum(sizes),), dist.grid))


def over_ranks(x: T, block: Array, sizes: list[int]) -> T:
    """A tensor of one mode, of which every rank has a block of its own size, in the order of ranks.

    Uneven blocks over several grid modes become blocks over one grid mode of all ranks.
    """
    split = [g for g, p in enumerate(x.distribution.grid.shape) if p > 1]
    grid, grid_mode = Grid((len(sizes),)), 0
    if len(split) == 1:
        grid, grid_mode = x.distribution.grid, split[0]
    return x._on(block, _blocks(grid_mode, sizes).on((sum(sizes),), grid))


def first_index(flat: Distributed) -> int:
    """The global index of the first element of this rank's run."""
    (held,) = flat.distribution.index_sets(flat.comm.rank)
    return held.start


def compressed(x: T, mask: Distributed, cause: str) -> T:
    """The elements of a tensor where a mask in its layout is true, in row-major order."""
    flat, chosen = in_order(x, cause), in_order(mask, cause)
    return of_sizes(flat, flat.local[chosen.local])


@follows("data-dependent", np.nonzero)
def nonzero(x: T, /) -> tuple[T, ...]:
    """The global indices of the elements that are not zero, one tensor per mode, in row-major order. Collective.

    Raises:
        ValueError: the tensor is of order 0.

    >>> from rote import DistTensor
    >>> [index.to_global().tolist() for index in nonzero(DistTensor.from_global([[0, 1], [2, 0]], "block[(0),()]"))]
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

    Raises:
        ValueError: an index is out of range, on any rank.

    >>> from rote import DistTensor
    >>> [part.to_global().tolist() for part in np.unravel_index(DistTensor.from_global([1, 5], "block[(0)]"), (2, 3))]
    [[0, 1], [1, 2]]
    """
    x = plain(indices, "unravel_index")
    with collective_errors(x.comm):
        parts = np.unravel_index(x.local, shape, order)
    return tuple(map(x._with, parts))


def _runs(dist: Distribution) -> tuple[Entry, ...] | None:
    """The entries of a plain layout as one mode in row-major order; None if ranks do not hold runs of it.

    They do if only the outermost mode of more than one index is split, in blocks over one grid mode.
    """
    split = [mode for mode, splits in enumerate(dist.splits) if splits]
    if not split:
        return ()
    first, rest = split[0], prod(dist.shape[split[0] + 1 :])
    if len(split) > 1 or len(dist.splits[first]) > 1 or prod(dist.shape[:first]) != 1:
        return None
    (only,) = dist.splits[first]
    if only.kind.is_cyclic:
        return None
    sizes = extent(only.kind, only.parts, dist.shape[first], np.arange(only.parts)) * rest
    return (Entry(only.grid_mode, blocks_of(sizes.tolist())),)


def blocks_of(sizes: list[int]) -> Kind:
    """The kind for blocks of some sizes, without the sizes if they are balanced.

    >>> blocks_of([3, 2, 2]) == BLOCK, blocks_of([2, 3]).sizes
    (True, (2, 3))
    """
    balanced = extent(BLOCK, len(sizes), sum(sizes), np.arange(len(sizes))).tolist()
    return BLOCK if sizes == balanced else block_kind(*sizes)


def _blocks(grid_mode: int, sizes: list[int]) -> Layout:
    return Layout(((Entry(grid_mode, blocks_of(sizes)),),))
