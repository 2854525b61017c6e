"""Where a new tensor lies: the distribution of a layout over the ranks of a communicator, the same on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..layout.distribution import Distribution, distribute, tensor_shape
from ..layout.grid import Grid
from ..layout.layout import Layout, as_layout
from ..layout.slices import as_runs, find_distribution
from .comm.collective_errors import collective_errors
from .comm.protocol import Array, Comm
from .program import check_grid

__all__ = ["GridLike", "check_values", "place", "place_slices", "same_everywhere", "same_place"]

GridLike = Grid | Sequence[int] | int | None


def place(shape: Iterable[int] | int, layout: Layout | str, ranks: Comm, grid: GridLike) -> Distribution:
    """The distribution of a new tensor over some ranks; the grid is balanced over them if none is given."""
    meaning = as_layout(layout)
    if grid is None:
        grid = Grid.of(ranks.size, max((*meaning.grid_modes, 0)) + 1)
    dist = distribute(meaning, shape, grid)
    check_grid(dist.grid, ranks)
    return dist


def place_slices(
    block: Array, slices: Sequence[slice], shape: Iterable[int] | int, ranks: Comm
) -> tuple[Array, Distribution]:
    """The distribution of blocks that are slices of a tensor, and this rank's block in it. Collective."""
    with collective_errors(ranks):
        extents = tensor_shape(shape)
        runs = as_runs(slices, extents)
        wanted = tuple(length for _, length, _ in runs)
        if block.shape != wanted and (block.size or 0 not in wanted):
            raise LayoutError(f"rank {ranks.rank} gives a block of {block.shape}, but its slices are of {wanted}")
    said = ranks.allgather_object((extents, runs))
    with collective_errors(ranks):
        if len({shape for shape, _ in said}) > 1:
            raise LayoutError(
                f"a tensor is one thing on all ranks, but they give it shapes {[shape for shape, _ in said]}"
            )
        dist = find_distribution(extents, [held for _, held in said])
        return block.reshape(dist.local_shape(ranks.rank)), dist  # which only changes one that is empty


def same_everywhere(ranks: Comm, dist: Distribution, dtype: np.dtype[Any]) -> None:
    """Refuse a tensor that is not the same on all ranks; the same error on all."""
    texts = ranks.allgather_object(f"{dist} of {dtype}")
    others = [(rank, text) for rank, text in enumerate(texts) if text != texts[0]]
    if others:
        rank, text = others[0]
        raise LayoutError(f"a tensor is one thing on all ranks, but rank 0 has {texts[0]} and rank {rank} has {text}")


def same_place(name: str, tensors: Sequence[tuple[Distribution, Comm]]) -> None:
    """Refuse to do something element by element with tensors that lie differently."""
    first, ranks = tensors[0]
    for dist, comm in tensors:
        if dist != first:
            raise LayoutError(
                f"{name} is element-wise and wants equal distributions, not {first} and {dist}; use .redistribute first"
            )
        if comm is not ranks:
            raise LayoutError(f"{name} wants tensors of one communicator; give the same comm to all")


def check_values(name: str, dist: Distribution) -> None:
    """Refuse to do something element by element with a partial tensor."""
    if dist.partial:
        raise LayoutError(
            f"{name} is element-wise, and the blocks of {dist.layout} are contributions, not values; "
            "redistribute to a layout without + first"
        )
