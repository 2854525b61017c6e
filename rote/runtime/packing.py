"""Blocks and buffers: which part of a block goes into which message, as NumPy indexing.

A region is a product of index lists, one per component of the transition; where the lists are evenly spaced it is a
strided slice, and packing it is one copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.movement import Message, components, receives, sends
from ..layout.distribution import Distribution
from ..layout.view import View

__all__ = ["REDUCE", "Region", "cut", "identity", "receive_regions", "send_regions"]

Array = npt.NDArray[Any]

REDUCE: dict[str, np.ufunc] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}
"""The ufunc of each reduction; on bool, sum is `or` and prod is `and`, as NumPy has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The part of a block that goes to, or comes from, one rank.

    Attributes:
        peer: the rank on the other side, within the whole grid.
        axes: the block's modes in the order of the components, which is the order of the message.
        index: a NumPy index into the block so transposed.
        shape: of the region, one extent per component.
        combine: whether it is reduced into what has come before it.
    """

    peer: int
    axes: tuple[int, ...]
    index: tuple[Any, ...]
    shape: tuple[int, ...]
    combine: bool

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def take(self, block: Array) -> Array:
        """The region of a block, of shape `shape`; a view where the index allows it."""
        found: Array = block.transpose(self.axes)[self.index]
        return found

    def put(self, block: Array, values: Array, op: str) -> None:
        """Store values into the region of a block, or reduce them into what is there."""
        target = block.transpose(self.axes)
        values = values.reshape(self.shape)
        if not self.combine:
            target[self.index] = values
            return
        part = target[self.index]  # a view where the index is of slices, else a copy
        target[self.index] = REDUCE[op](part, values, out=part if isinstance(part, np.ndarray) else None)


def send_regions(source: Distribution, target: Distribution, rank: int) -> tuple[Region, ...]:
    """The regions of a rank's block that leave it, by receiver; the one for itself among them."""
    parts = components(source, target)
    return tuple(_region(message, [part.before for part in parts]) for message in sends(source, target, rank))


def receive_regions(source: Distribution, target: Distribution, rank: int) -> tuple[Region, ...]:
    """The regions of a rank's new block, by sender; the one from itself among them."""
    parts = components(source, target)
    return tuple(_region(message, [part.after for part in parts]) for message in receives(source, target, rank))


def cut(array: Array, dist: Distribution, rank: int) -> Array:
    """A rank's block of a global array, by definition; a new C-contiguous array.

    Of a partial distribution, coordinate 0 holds the values and the others hold what the reduction ignores.
    """
    if not dist.holds(rank):
        return np.empty(dist.local_shape(rank), array.dtype)
    if not dist.contributes(rank):
        return np.full(dist.local_shape(rank), identity(dist.layout.op, array.dtype), array.dtype)
    viewed = as_view(array, dist)
    return np.array(viewed[np.ix_(*dist.indices(rank))], order="C") if dist.order else np.array(viewed)


def as_view(array: Array, dist: Distribution) -> Array:
    """A global array as the layout's view reads it."""
    view = dist.layout.view or View.plain(array.ndim)
    return array.transpose(view.permutation()).reshape(dist.view_shape)


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The value that a reduction ignores."""
    if op in ("sum", "prod"):
        return dtype.type(op == "prod")
    if dtype.kind == "b":
        return dtype.type(op == "min")
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min if op == "max" else np.iinfo(dtype).max)
    return dtype.type(-np.inf if op == "max" else np.inf)


def _region(message: Message, modes: list[tuple[int, ...]]) -> Region:
    axes = tuple(mode for part in modes for mode in part)
    shape = tuple(len(group) for group in message.groups)
    lists = [(k, positions) for k, group in enumerate(message.groups) for positions in group.positions]
    slices = [_as_slice(positions) for _, positions in lists]
    irregular = sum(found is None for found in slices)
    if len(axes) == len(modes) and irregular <= 1:
        index = tuple(
            found if found is not None else positions for found, (_, positions) in zip(slices, lists, strict=True)
        )
    else:
        index = tuple(
            positions.reshape([-1 if k == axis else 1 for axis in range(len(modes))]) for k, positions in lists
        )
    return Region(message.peer, axes, index, shape, message.combine)


def _as_slice(positions: npt.NDArray[np.int64]) -> slice | None:
    if len(positions) == 1:
        return slice(int(positions[0]), int(positions[0]) + 1)
    step = int(positions[1] - positions[0])
    if step > 0 and (np.diff(positions) == step).all():
        return slice(int(positions[0]), int(positions[-1]) + 1, step)
    return None
