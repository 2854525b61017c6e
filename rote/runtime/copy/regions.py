"""Regions: which part of a block goes into which message, or straight into the next block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.movement.components import Component, Group, Listed, components
from ...compiler.movement.messages import Message, receives, sends
from ...layout.grid import row_major
from ...layout.indexset import Ints, Strided
from ...layout.layout import Distribution, Op
from ...layout.view import View
from .interleaved import LARGE, interleaved
from .strided import Copy, Factor, IndexedCopy, Piece, StridedCopy, alike, pieces, reduction
from .transposed import transposed
from .views import ArrayView, Lies, Shape, ViewPair, group_views

__all__ = ["REDUCE", "Contribution", "Region", "cut", "direct_regions", "identity", "joined", "offsets", "read_regions"]
__all__ += ["receive_regions", "send_regions", "whole"]

Array = npt.NDArray[Any]
Offsets = dict[int, tuple[tuple[Strided, ...] | Ints, ...]]
Ends = list[tuple[Lies, Lies]]  # the place of each component's groups in the two arrays of a region

_OWN, _OTHER, _MESSAGE = range(3)  # the kinds of arrays in `GroupViews`

REDUCE: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
"""The ufunc of each reduction; on bool, sum is `or` and prod is `and`, as in NumPy."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The part of a block that goes to, or comes from, one rank, as a copy from one array to another.

    A message has one mode per component of the transition. Its elements are in ascending tensor order.

    Attributes:
        peer: the rank on the other side, within the whole grid.
        shape: the shape of the message, which may be passed flat.
        combine: whether it is reduced into earlier contributions.
        pieces: the pieces that make it up.
    """

    peer: int
    shape: tuple[int, ...]
    combine: bool
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def copy(
        self, source: Array, target: Array, op: Op = "sum", before: Sequence[Factor] = (), after: Sequence[Factor] = ()
    ) -> None:
        """Copy the region from one C-contiguous block or message to another, or reduce it into the values there.

        Elements are multiplied by the factors that are broadcast to the source (`before`) or the target (`after`).
        """
        for copy in self.bound(source, target, op, before, after):
            copy()

    def bound(
        self, source: Array, target: Array, op: str = "sum", before: Sequence[Factor] = (), after: Sequence[Factor] = ()
    ) -> list[Copy]:
        """Bind the region's copies between two arrays; arguments as for `copy`. They may run repeatedly."""
        ufunc = REDUCE[op] if self.combine else None
        copies = list[Copy]()  # a loop is fast, and this is called for every message of every run
        for piece in self.pieces:
            copies.append(piece.bound(source, target, ufunc, before, after))
        return copies

    def take(self, block: Array) -> Array:
        """Pack the message from a block."""
        message = np.empty(self.shape, block.dtype)
        self.copy(np.asarray(block, order="C"), message)
        return message

    def put(self, block: Array, message: Array, op: Op) -> None:
        """Store a message into a C-contiguous block, or reduce it into the values there."""
        self.copy(np.asarray(message, block.dtype), block, op)


Contribution = tuple[Region, Array, Sequence[Factor]]
"""A region, the array that it is copied from, and the factors of this array."""


def joined(parts: Sequence[Contribution], target: Array, op: str, after: Sequence[Factor] = ()) -> list[Copy]:
    """Bind the copies of regions into one array, in this order.

    The first two of several contributions to the same elements are reduced into their place in one sweep, without
    storing the first one.
    """
    if target.nbytes >= LARGE and not after and (copy := _interleaved(parts, target)) is not None:
        return [copy]
    copies, number = list[Copy](), 0
    while number < len(parts):
        region, source, before = parts[number]
        pair = None
        if number + 1 < len(parts) and parts[number + 1][0].combine and not after:
            pair = _reduced(parts[number], parts[number + 1], target, op)
        if pair is None:
            copies += region.bound(source, target, op, before, after)
            number += 1
        else:
            copies += pair
            number += 2
    return copies


def _interleaved(parts: Sequence[Contribution], target: Array) -> Copy | None:
    """Bind all copies as one sweep over the target; None if this is no faster, or if some are not plain copies."""
    pairs = list[tuple[Array, Array]]()
    for region, source, before in parts:
        if region.combine or before or source.dtype != target.dtype:
            return None
        for piece in region.pieces:
            if isinstance(piece, IndexedCopy):
                return None
            values, into, item = piece.arrays(source, target)
            if item is not None:
                values, into = values.view(item), into.view(item)
            pairs.append((values, into))
    turned = any(transposed(*pair) is not None for pair in pairs)
    return None if turned or len(pairs) < 2 else interleaved(pairs)


def _reduced(first: Contribution, second: Contribution, target: Array, op: str) -> list[Copy] | None:
    """Bind the reduction of two parts; None if their elements differ, or if they have factors."""
    (region, source, before), (other, second_source, second_before) = first, second
    if region.combine or before or second_before or len(region.pieces) != len(other.pieces):
        return None
    if not all(map(alike, region.pieces, other.pieces)):
        return None
    ends, ufunc = (source, second_source), REDUCE[op]
    pieces, others = region.pieces, other.pieces
    return [reduction(piece, also, *ends, target, ufunc) for piece, also in zip(pieces, others, strict=True)]


def send_regions(source: Distribution, target: Distribution, rank: int) -> tuple[Region, ...]:
    """The regions from a rank's block to the messages that it sends, by receiver, including the one to itself."""
    leaves, block = _leaving(components(source, target)), source.local_shape(rank)
    return tuple([_region(message, leaves, block, None) for message in sends(source, target, rank)])


def receive_regions(source: Distribution, target: Distribution, rank: int) -> tuple[Region, ...]:
    """The regions from messages to a rank's new block, by sender, including the one from itself."""
    comes, block = _coming(components(source, target)), target.local_shape(rank)
    return tuple([_region(message, comes, None, block) for message in receives(source, target, rank)])


def direct_regions(
    source: Distribution, target: Distribution, rank: int
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """The outgoing and incoming regions of a rank, if the elements that it keeps go straight from block to block."""
    parts, source_shape, target_shape = components(source, target), source.local_shape(rank), target.local_shape(rank)
    leaves, comes, stays = _leaving(parts), _coming(parts), _direct(parts)
    outgoing, incoming = list[Region](), list[Region]()
    for message in sends(source, target, rank):
        if message.peer != rank:
            outgoing.append(_region(message, leaves, source_shape, None))
    for message in receives(source, target, rank):
        if message.peer == rank:
            incoming.append(_region(message, stays, source_shape, target_shape))
        else:
            incoming.append(_region(message, comes, None, target_shape))
    return tuple(outgoing), tuple(incoming)


def read_regions(source: Distribution, target: Distribution, rank: int) -> tuple[Region, ...]:
    """The regions from all ranks' blocks straight to a rank's new block, by sender: for ranks that share memory."""
    leads, target_shape = _direct(components(source, target)), target.local_shape(rank)
    regions = list[Region]()
    for message in receives(source, target, rank):
        regions.append(_region(message, leads, source.local_shape(message.peer), target_shape))
    return tuple(regions)


def offsets(source: Distribution, target: Distribution, rank: int, itemsize: int) -> tuple[Offsets, Offsets]:
    """The offsets of messages' elements in a rank's block before, by receiver, and in the block after, by sender.

    The offsets of a message are the sums of one offset per component, in bytes, in the order of the message.
    """
    parts = components(source, target)

    def places(
        message: Message, modes: Sequence[tuple[int, ...]], shape: Shape
    ) -> tuple[tuple[Strided, ...] | Ints, ...]:
        strides = tuple([itemsize * n for n in row_major(shape)])
        return tuple([_offsets(each, along, strides) for each, along in zip(message.groups, modes, strict=True)])

    before, after = [part.before for part in parts], [part.after for part in parts]
    shapes = source.local_shape(rank), target.local_shape(rank)
    leaving = {message.peer: places(message, before, shapes[0]) for message in sends(source, target, rank)}
    coming = {message.peer: places(message, after, shapes[1]) for message in receives(source, target, rank)}
    return leaving, coming


def _offsets(group: Group, along: tuple[int, ...], strides: Shape) -> tuple[Strided, ...] | Ints:
    """The offsets of a group's elements in a block of its own side; an array of them only if the group is a list."""
    lies = group_views(group, (along, _OWN), ((0,), _MESSAGE))
    if isinstance(group.elements, Listed):
        return sum((indices * strides[mode] for mode, indices in lies.lists[0]), np.zeros(len(group), np.int64))
    places = []
    for shape, block, _ in lies.views:
        start, steps = block.lies(strides)
        places.append(Strided(start, shape, steps))
    return tuple(places)


def _leaving(parts: Sequence[Component]) -> Ends:
    """The two ends of a copy from a block to a message, per component."""
    return [((part.before, _OWN), ((k,), _MESSAGE)) for k, part in enumerate(parts)]


def _coming(parts: Sequence[Component]) -> Ends:
    """The two ends of a copy from a message to a block, per component."""
    return [(((k,), _MESSAGE), (part.after, _OWN)) for k, part in enumerate(parts)]


def _direct(parts: Sequence[Component]) -> Ends:
    """The two ends of a copy from the sender's block to the receiver's, per component."""
    return [((part.before, _OTHER), (part.after, _OWN)) for part in parts]


def _region(message: Message, ends: Ends, source: Shape | None, target: Shape | None) -> Region:
    """A region between a message and a block, or between two blocks, of these shapes; None stands for the message."""
    parts = [group_views(group, *pair) for group, pair in zip(message.groups, ends, strict=True)]
    shape = tuple([each.size for each in parts])
    combine = message.combine and target is not None  # packing never reduces
    if source is None:
        source = shape
    if target is None:
        target = shape
    return Region(message.peer, shape, combine, pieces(parts, source, target))


@memoized(256)
def whole(shape: tuple[int, ...]) -> Region:
    """The region of a whole block, for a copy to another block of its shape."""
    if not prod(shape):
        return Region(0, shape, False, ())
    axes = range(len(shape))
    side = ArrayView(tuple((axis, 0) for axis in axes), tuple(((axis, 1),) for axis in axes))
    return Region(0, shape, False, (StridedCopy(ViewPair(shape, side, side), (row_major(shape),) * 2),))


def cut(array: Array, dist: Distribution, rank: int, out: Array | None = None) -> Array:
    """A rank's block of a global array, by definition, written into `out`, or a new C-contiguous array.

    If the distribution is partial, coordinate 0 holds the values and the others hold the identity of the reduction.
    """
    from ...layout.selection import selection  # transforms do not need it

    if out is None:
        out = np.empty(dist.local_shape(rank), array.dtype)
    if dist.holds(rank) and dist.contributes(rank):
        out[...] = as_view(array, dist)[(*selection(dist.indices(rank)), ...)]
    elif dist.holds(rank):
        out[...] = identity(dist.layout.op, out.dtype)
    return out


def as_view(array: Array, dist: Distribution) -> Array:
    """A global array, transposed and reshaped to the layout's view."""
    view = dist.layout.view or View.plain(array.ndim)
    return array.transpose(view.permutation()).reshape(dist.view_shape)


def identity(op: Op, dtype: np.dtype[Any]) -> Any:
    """The identity of a reduction: the value that leaves any other unchanged."""
    if op in ("sum", "prod"):
        return dtype.type(op == "prod")
    if dtype.kind == "b":
        return dtype.type(op == "min")
    least, most = -np.inf, np.inf
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if op == "max":
        return dtype.type(least)
    return dtype.type(most)
