"""Positions and indices along a mode of a block, which may differ from rank to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution
from .collectives import rank_of
from .meshes import library

__all__ = ["Positions", "indices_of"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Positions along a mode of a block, for each rank.

    Rows shorter than the longest one are followed by what is no position: nothing is there, and what is put there is
    dropped.

    Attributes:
        rows: the positions of each rank, in rank order.
    """

    rows: Sequence[Ints]

    def taken(self, block: Any, mode: int, rank: Any) -> Any:
        """What a block has there, and zeros where there is nothing."""
        return block.at[self._index(mode, rank)].get(mode="fill", fill_value=0)

    def put(self, block: Any, mode: int, rank: Any, values: Any) -> Any:
        """A block with other values there."""
        return block.at[self._index(mode, rank)].set(values, mode="drop")

    def _index(self, mode: int, rank: Any) -> tuple[Any, ...]:
        """The positions of a rank as an index of its block: a slice, if all ranks have the same, which are adjacent."""
        before, first = (slice(None),) * mode, self.rows[0]
        start, end = (int(first[0]), int(first[-1]) + 1) if len(first) else (0, 0)
        if all(np.array_equal(row, np.arange(start, end)) for row in self.rows):
            return (*before, slice(start, end))

        # An array [rank, number], in which what is no position is behind every block.
        table = np.full((len(self.rows), max(map(len, self.rows))), np.iinfo(np.int32).max, np.int32)
        for row, positions in zip(table, self.rows, strict=True):
            row[: len(positions)] = positions
        return (*before, library().numpy.asarray(table)[rank])


def indices_of(dist: Distribution, mode: int, mesh: Any) -> Any:
    """A rank's indices along a mode, as an array that broadcasts to its block; beyond its end, the extent."""
    jnp, rank, ranks = library().numpy, rank_of(mesh), range(dist.grid.size)
    rows, longest = [dist.indices(rank)[mode] for rank in ranks], dist.max_local_shape()[mode]
    shape = [longest if m == mode else 1 for m in range(dist.order)]

    # An axis is long: where indices are evenly spaced, as in blocks and elementwise cyclic, there is no table of them.
    steps = np.unique(np.concatenate([np.diff(row) for row in rows]))
    if len(steps) > 1:
        table = [np.pad(row, (0, longest - len(row)), constant_values=dist.view_shape[mode]) for row in rows]
        return jnp.asarray(np.array(table, np.uint32))[rank].reshape(shape)

    place, step = jnp.arange(longest, dtype=np.uint32), int(steps.max(initial=0))
    starts = jnp.asarray(np.array([row[0] if len(row) else 0 for row in rows], np.uint32))
    ends = jnp.asarray(np.array([len(row) for row in rows], np.uint32))
    index = jnp.where(place < ends[rank], starts[rank] + place * np.uint32(step), np.uint32(dist.view_shape[mode]))
    return index.reshape(shape)
