"""New tensors: distributions and blocks from arrays, functions and slices, checked to be the same on all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..layout.distribution import Distribution, distribute
from ..layout.grid import Grid, check_grid, grid_shape, tensor_shape
from ..layout.layout import Layout, as_layout, identity
from .arrays import as_array
from .comm import segments
from .comm.agreement import CHECKS, Difference, agree, collective_errors, gathered
from .comm.protocol import Array, Comm
from .regions import cut

__all__ = ["GridLike", "check_blocks", "check_values", "compute_block", "cut_block", "filled", "new_block", "place"]
__all__ += ["place_slices", "same_everywhere"]

GridLike = Grid | Sequence[int] | int | None
"""A grid or its shape, in which -1 is computed from the number of ranks; None for the usual grid."""

Placed = tuple[Array, Distribution, Comm]
"""This rank's block of a tensor, the tensor's distribution, and its communicator."""

_LARGE = 1 << 20  # bytes; the memory of a smaller block would cost as much as dozens of moves save


def place(
    shape: Iterable[int] | int | None, layout: Layout | str | Distribution, ranks: Comm, grid: GridLike
) -> Distribution:
    """The distribution of a new tensor over some ranks; the grid is balanced over them if none is given.

    If the layout is a distribution, it gives shape and grid itself.
    """
    if isinstance(layout, Distribution):
        if (shape is not None and tensor_shape(shape) != layout.shape) or (grid is not None):
            raise LayoutError(f"{layout} says shape and grid itself\nleave shape= and grid= out, or give its .layout")
        check_grid(layout.grid, ranks.size)
        return layout

    if shape is None:
        raise LayoutError(f"{layout} is a layout, which has no shape\ngive shape=, or a Distribution")
    try:
        meaning = as_layout(layout)
    except LayoutError:
        if isinstance(shape, str | Layout):
            raise _exchanged("shape", shape, layout) from None
        raise

    if grid is None:
        grid = Grid.of(ranks.size, max((*meaning.grid_modes, 0)) + 1)
    dist = distribute(meaning, shape, grid_shape(grid, ranks.size))
    check_grid(dist.grid, ranks.size)
    return dist


def _exchanged(name: str, value: Layout | str, layout: Any) -> LayoutError:
    """The error of a layout that is given as another argument, and of that argument as the layout."""
    text, other = repr(str(value)), "array" if isinstance(layout, np.ndarray) else repr(layout)
    return LayoutError(f"{name}={text} is a layout, and layout={other} is none\nwrite {name}={other}, layout={text}")


def new_block(dist: Distribution, rank: int, dtype: np.dtype[Any]) -> Array:
    """A rank's block of a new tensor, not initialized; a large one lies where other processes can read it directly."""
    shape = dist.local_shape(rank)
    return segments.empty(shape, dtype, lasting=prod(shape) * dtype.itemsize >= _LARGE)


def filled(dist: Distribution, rank: int, value: Any, dtype: np.dtype[Any]) -> Array:
    """A rank's block of a constant tensor; the identity of the reduction if the rank does not contribute."""
    block = new_block(dist, rank, dtype)
    np.copyto(block, value if dist.contributes(rank) else identity(dist.layout.op, dtype), casting="unsafe")
    return block


def cut_block(array: npt.ArrayLike, layout: Layout | str, ranks: Comm, grid: GridLike) -> Placed:
    """Cut this rank's block out of an array that every rank has whole. Collective."""
    with collective_errors(ranks):
        if isinstance(array, str | Layout):
            raise _exchanged("array", array, layout)
        whole = as_array(array)
        dist = place(whole.shape, layout, ranks, grid)
        block = new_block(dist, ranks.rank, as_dtype(whole.dtype))
        cut(whole, dist, ranks.rank, block)  # the array may be a file larger than memory
    same_everywhere(ranks, dist, block.dtype)

    if CHECKS and ranks.size > 1:
        number = crc32(np.ascontiguousarray(whole).reshape(-1).view(np.uint8).data)
        agree(ranks, "from_global", (number,), refusal=_different_arrays)
    return block, dist, ranks


def _different_arrays(difference: Difference) -> LayoutError:
    ranks = f"ranks 0 and {difference.rank}"
    return LayoutError(
        f"from_global takes one array that is the same on all ranks, but those of {ranks} differ\n"
        "give the array of one rank, comm.bcast(array), or blocks by from_local"
    )


def compute_block(
    function: Callable[..., npt.ArrayLike],
    shape: Iterable[int] | int,
    layout: Layout | str,
    ranks: Comm,
    grid: GridLike,
    dtype: npt.DTypeLike | None,
) -> Placed:
    """Compute this rank's block as a function of the global indices that it holds. Collective."""
    with collective_errors(ranks):
        dist = place(shape, layout, ranks, grid)
        values = as_array(function(*dist.tensor_indices(ranks.rank)))
        if dtype is not None:
            values = values.astype(dtype)

        element = as_dtype(values.dtype)
        block = new_block(dist, ranks.rank, element)
        try:
            block[...] = values if block.size else 0
        except ValueError:
            raise ValueError(
                f"the function gives an array of shape {values.shape} for a block of shape {block.shape}\n"
                "compute it with the arrays of indices that the function takes; from_global takes a whole array"
            ) from None
        if not dist.contributes(ranks.rank):
            block[...] = identity(dist.layout.op, element)

    same_everywhere(ranks, dist, element)
    return block, dist, ranks


def place_slices(local: npt.ArrayLike, slices: Sequence[slice], shape: Iterable[int] | int, ranks: Comm) -> Placed:
    """Find the distribution of blocks that are slices of a tensor, and this rank's block in it. Collective."""
    from ..layout.slices import as_runs, find_layout

    with collective_errors(ranks):
        block = as_array(local)
        block = block.astype(as_dtype(block.dtype), copy=False)
        extents = tensor_shape(shape)
        runs = as_runs(slices, extents)
        lengths = tuple(length for _, length, _ in runs)
        if block.shape != lengths and (block.size or 0 not in lengths):
            raise LayoutError(f"rank {ranks.rank} gives a block of {block.shape}, but its slices are of {lengths}")

    runs_of_ranks = gathered(ranks, "from_slices", (extents, runs))
    with collective_errors(ranks):
        if len({shape for shape, _ in runs_of_ranks}) > 1:
            raise LayoutError(
                f"a tensor is one thing on all ranks, but they give it shapes {[shape for shape, _ in runs_of_ranks]}"
            )
        layout, own_grid = find_layout(extents, [slices_of for _, slices_of in runs_of_ranks])
        dist = layout.on(extents, own_grid)
        block = block.reshape(dist.local_shape(ranks.rank))  # this changes only an empty block
    same_everywhere(ranks, dist, block.dtype)
    return block, dist, ranks


def same_everywhere(ranks: Comm, dist: Distribution, dtype: np.dtype[Any]) -> None:
    """Refuse a tensor that is not the same on all ranks, with the same error on all."""

    def refusal(difference: Difference) -> LayoutError:
        both = f"rank 0 has {difference.first} and rank {difference.rank} has {difference.other}"
        return LayoutError(f"a tensor is one thing on all ranks, but {both}")

    agree(ranks, "a new tensor", (f"{dist} of {dtype}",), refusal=refusal)


def check_values(name: str, dist: Distribution) -> None:
    """Refuse an element-wise operation on a partial tensor."""
    if dist.partial:
        raise LayoutError(
            f"{name} is element-wise, and the blocks of {dist.layout} are contributions, not values; "
            "redistribute to a layout without + first"
        )


def check_blocks(blocks: Sequence[Array], dist: Distribution) -> None:
    """Refuse blocks of all ranks that do not fit a distribution.

    Raises:
        LayoutError: there is not one block for each rank, or a block has another shape than its rank's.
    """
    if len(blocks) != dist.grid.size:
        raise LayoutError(f"grid {dist.grid} has {dist.grid.size} ranks, but there are {len(blocks)} blocks")

    for rank, block in enumerate(blocks):
        if block.shape != dist.local_shape(rank):
            raise LayoutError(f"rank {rank} holds a block of {dist.local_shape(rank)} in {dist}, not {block.shape}")
