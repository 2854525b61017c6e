"""Regions: which part of a block goes into which message, or straight into the next block; and parts of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..compiler.factor import Group
from ..compiler.movement import RECEIVES, SENDS, Message, Movement, Part, movement
from ..lattice import Lattice, Shape
from ..layout.distribution import Distribution
from ..layout.grid import row_major
from ..layout.indexset import IndexSet, Ints, Strided, selection
from ..layout.layout import Layout, identity
from ..layout.view import View
from .copies import (
    LARGE,
    CopiedFactor,
    CopiedLattice,
    Copy,
    Factor,
    IndexedCopy,
    Piece,
    StridedCopy,
    interleaved,
    pieces,
    reduction,
    run,
    shared,
    size_of,
    transposed,
)

__all__ = ["REDUCE", "Contribution", "Region", "cut", "direct_regions", "file_region", "indexed_region"]
__all__ += ["copied_factor", "joined", "lattices_of", "long_runs", "offsets", "part_of", "range_along", "read_regions"]
__all__ += ["receive_regions", "send_regions", "whole"]

Array = npt.NDArray[Any]
Offsets = dict[int, tuple[tuple[Strided, ...] | Ints, ...]]
End = tuple[tuple[int, ...], int]  # the modes of an array along which a component is placed, and the kind of array
Ends = list[tuple[End, End]]  # of each component, in the two arrays of a region
Ranges = Mapping[int, tuple[int, int]]  # the start and stop of a range, by mode of a message

_OWN, _OTHER, _MESSAGE = range(3)  # kinds of arrays: this side's block, the other side's, a message
_NEAR = 8  # preceding lattices that a lattice may continue
_LONG = 1 << 14  # bytes from which on MPI copies a run as fast as a whole message
_FEW = 1024  # the most runs that the system copies in one call

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

    def copy(self, source: Array, target: Array, op: str = "sum") -> None:
        """Copy the region from one C-contiguous block or message to another, or reduce it into the values there."""
        run(self.bound(source, target, op))

    def bound(
        self, source: Array, target: Array, op: str = "sum", before: Sequence[Factor] = (), after: Sequence[Factor] = ()
    ) -> list[Copy]:
        """Bind the region's copies between two C-contiguous arrays, or its reduction into the values of the second.

        Elements are multiplied by the factors that are broadcast to the source (`before`) or the target (`after`). The
        copies may run repeatedly.
        """
        ufunc = REDUCE[op] if self.combine else None
        copies = list[Copy]()  # a loop is fast, and this is called for every message of every run
        for piece in self.pieces:
            copies.append(piece.bound(source, target, ufunc, before, after))
        return copies


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
    copies = list[Copy]()
    for piece, also in zip(region.pieces, other.pieces, strict=True):
        copy = reduction(piece, also, source, second_source, target, REDUCE[op])
        if copy is None:
            return None
        copies.append(copy)
    return copies


def send_regions(move: Movement, rank: int) -> tuple[Region, ...]:
    """The regions from a rank's block to the messages that it sends, by receiver, including the one to itself."""
    ends, block = _ends(move.parts, _OWN, _MESSAGE), row_major(move.source.local_shape(rank))
    return tuple([_region(message, ends, block, None) for message in move.messages(rank, SENDS)])


def receive_regions(move: Movement, rank: int) -> tuple[Region, ...]:
    """The regions from messages to a rank's new block, by sender, including the one from itself."""
    ends, block = _ends(move.parts, _MESSAGE, _OWN), row_major(move.target.local_shape(rank))
    return tuple([_region(message, ends, None, block) for message in move.messages(rank, RECEIVES)])


def direct_regions(move: Movement, rank: int) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """The outgoing and incoming regions of a rank, if the elements that it keeps go straight from block to block."""
    parts = move.parts
    before, after = row_major(move.source.local_shape(rank)), row_major(move.target.local_shape(rank))
    leaving, coming, staying = _ends(parts, _OWN, _MESSAGE), _ends(parts, _MESSAGE, _OWN), _ends(parts, _OTHER, _OWN)

    outgoing, incoming = list[Region](), list[Region]()
    for message in move.messages(rank, SENDS):
        if message.peer != rank:
            outgoing.append(_region(message, leaving, before, None))
    for message in move.messages(rank, RECEIVES):
        if message.peer == rank:
            incoming.append(_region(message, staying, before, after))
        else:
            incoming.append(_region(message, coming, None, after))
    return tuple(outgoing), tuple(incoming)


def read_regions(move: Movement, rank: int) -> tuple[Region, ...]:
    """The regions from all ranks' blocks straight to a rank's new block, by sender: for ranks that share memory."""
    ends, after = _ends(move.parts, _OTHER, _OWN), row_major(move.target.local_shape(rank))
    regions = list[Region]()
    for message in move.messages(rank, RECEIVES):
        regions.append(_region(message, ends, row_major(move.source.local_shape(message.peer)), after))
    return tuple(regions)


@memoized(64)  # without it, to load a small file of the same layout again takes a fifth longer
def file_region(dist: Distribution, rank: int, fortran_order: bool, writing: bool) -> Region:
    """The region from an array that holds the whole tensor, as a file does, to a rank's block; or back, if `writing`.

    A file is like a block that every rank holds whole. If the tensor is partial, coordinate 0 has all values.
    """
    # Of two ranks, a cyclic layout of the columns; the region of rank 0 has two views of one shape:
    #
    #     file   0 . 2 . 4 .     steps 6, 2        block   0 2 4     steps 3, 1
    #            6 . 8 . a .     shape (2, 3)              6 8 a
    whole = Layout(((),) * len(dist.shape))
    shape = dist.shape
    if not fortran_order and not is_reordered(dist):  # the file is read by the same view, of which few lattices are
        whole, shape = Layout(((),) * len(dist.digits), dist.layout.view), dist.view_shape

    move = movement(whole.on(dist.shape, dist.grid), dist)
    strides = row_major(shape[::-1])[::-1] if fortran_order else row_major(shape)
    ends, block = _ends(move.parts, _OTHER, _OWN), row_major(dist.local_shape(rank))
    for message in move.messages(rank, RECEIVES, rank):
        if writing:
            return _region(message, [(after, before) for before, after in ends], block, strides)
        return _region(message, ends, strides, block)
    return Region(rank, (0,), False, ())


def is_reordered(dist: Distribution) -> bool:
    """Whether blocks hold the elements in another order than a file in C order."""
    digits = [*chain(*dist.digits)]
    return digits != sorted(digits, key=lambda digit: (digit.mode, -digit.weight))


def indexed_region(index: Sequence[IndexSet], shape: Shape, writing: bool) -> Region:
    """The region from the elements at `index` of an array of this shape to a block of them; or back, if `writing`."""
    extents = tuple(map(len, index))
    parts = list[CopiedFactor]()
    for mode, indices in enumerate(index) if all(extents) else ():
        lattices = []
        for lattice in lattices_of(indices):
            rows = lattice.rows[::-1] if writing else lattice.rows
            lattices.append(CopiedLattice(Lattice(lattice.shape, rows).join(), (mode,), (mode,)))
        parts.append(tuple(lattices))
    if not all(extents):
        return Region(0, extents, False, ())
    strides = row_major(shape), row_major(extents)
    return Region(0, extents, False, pieces(parts, strides[::-1] if writing else strides))


def lattices_of(indices: IndexSet) -> Iterator[Lattice]:
    """The elements of a set by the runs of its period, with two rows: the integers, and their places in the set.

    >>> [(lattice.shape, lattice.rows) for lattice in lattices_of(IndexSet(0, 9, 4, ((0, 2),)))]
    [((2, 2), ((0, 4, 1), (0, 2, 1))), ((1, 1), ((8, 4, 1), (4, 1, 1)))]
    """
    first = 0
    for start, count, period, runs in indices.cycles():
        width = sum([b - a for a, b in runs])
        for a, b in runs:
            yield Lattice((count, b - a), ((start + a, period, 1), (first, width, 1)))
            first += b - a
        first += (count - 1) * width


def offsets(move: Movement, rank: int, itemsize: int) -> tuple[Offsets, Offsets]:
    """The offsets of messages' elements in a rank's block before, by receiver, and in the block after, by sender.

    The offsets of a message are the sums of one offset per component, in bytes, in the order of the message.
    """

    def places(
        message: Message, modes: Sequence[tuple[int, ...]], shape: Shape
    ) -> tuple[tuple[Strided, ...] | Ints, ...]:
        strides = tuple([itemsize * n for n in row_major(shape)])
        return tuple([_offsets(group, along, strides) for group, along in zip(message.groups, modes, strict=True)])

    before, after = [part.before for part in move.parts], [part.after for part in move.parts]
    shapes = move.source.local_shape(rank), move.target.local_shape(rank)
    leaving = {message.peer: places(message, before, shapes[SENDS]) for message in move.messages(rank, SENDS)}
    coming = {message.peer: places(message, after, shapes[RECEIVES]) for message in move.messages(rank, RECEIVES)}
    return leaving, coming


def _offsets(group: Group, along: tuple[int, ...], strides: Shape) -> tuple[Strided, ...] | Ints:
    """The offsets of a group's elements in a block of its own side; an array of them only if the group is a list."""
    places = []
    for lattice, modes, _ in copied_factor(group, (along, _OWN), ((0,), _MESSAGE)):
        start, *steps = lattice.offset([strides[mode] for mode in modes], slice(0, len(modes)))
        if lattice.listed:
            return np.asarray(start + steps[0], np.int64)
        places.append(Strided(start, lattice.shape, tuple(steps)))
    return tuple(places)


def _ends(parts: Sequence[Part], source: int, target: int) -> Ends:
    """The two ends of a copy between these kinds of arrays, per component."""
    ends: Ends = []
    for k, part in enumerate(parts):
        before, after = (k,) if source == _MESSAGE else part.before, (k,) if target == _MESSAGE else part.after
        ends += [((before, source), (after, target))]
    return ends


def _region(message: Message, ends: Ends, source: Shape | None, target: Shape | None) -> Region:
    """A region between a message and a block, or between two blocks, of these strides; None stands for the message."""
    parts = [copied_factor(group, *pair) for group, pair in zip(message.groups, ends, strict=True)]
    shape = tuple(map(size_of, parts))
    combine = message.combine and target is not None  # packing never reduces
    source = row_major(shape) if source is None else source
    target = row_major(shape) if target is None else target
    return Region(message.peer, shape, combine, pieces(parts, (source, target)))


@memoized(8192)
def copied_factor(group: Group, source: End, target: End) -> CopiedFactor:
    """The elements of one component in two arrays, as few lattices, in the order of a message."""
    lattices = list[Lattice]()
    for lattice in group.lattices:
        for k in range(max(0, len(lattices) - _NEAR), len(lattices)):
            longer = lattices[k].then(lattice)
            if longer is not None:
                lattices[k] = longer
                break
        else:
            lattices.append(lattice)

    copied, first, listed = list[CopiedLattice](), 0, group.listed
    for lattice in lattices:
        steps: Sequence[Any] = (np.arange(lattice.size),) if listed else row_major(lattice.shape)
        message = (first, *steps)  # in a message, elements follow each other
        rows = lattice.rows[group.own], lattice.rows[group.opposite], (message,)
        both = Lattice(lattice.shape, rows[source[1]] + rows[target[1]]).join()
        copied.append(CopiedLattice(both if listed else shared(both.shape, both.rows), source[0], target[0]))
        first += lattice.size
    return tuple(copied)


def part_of(region: Region, ranges: Ranges, packs: bool) -> Region:
    """The part of a message in ranges of some of its modes, with all of the other modes.

    Args:
        region: from a block to the message if it `packs`, else from the message to a block.
    """
    extents = list(region.shape)
    for mode, (start, stop) in ranges.items():
        extents[mode] = stop - start
    shape = tuple(extents)

    cut_pieces = list[Piece]()
    for piece in region.pieces if prod(shape) else ():
        strides = (piece.strides[0], row_major(shape)) if packs else (row_major(shape), piece.strides[1])
        parts = [[part] for part in piece.parts]
        for mode, ends in ranges.items():
            parts[mode] = _between(piece.parts[mode], *ends, -1 if packs else 0)
        cut_pieces += [type(piece)(lattices, strides) for lattices in product(*parts)]
    return replace(region, shape=shape, pieces=tuple(cut_pieces))


def _between(part: CopiedLattice, start: int, stop: int, row: int) -> list[CopiedLattice]:
    """The elements of a component in a range of a message, whose indices a row has, counted from the range's start."""
    parts = []
    for lattice in part.lattice.between(row, start, stop):
        if lattice.size:
            rows = list(lattice.rows)
            rows[row] = (rows[row][0] - start, *rows[row][1:])
            parts.append(part._replace(lattice=Lattice(lattice.shape, tuple(rows))))
    return parts


def range_along(region: Region, mode: int, packs: bool) -> tuple[int, int]:
    """The first index along a mode of its block at which a region has elements, and one past the last."""
    ends = list[int]()
    for piece in region.pieces:
        for part in piece.parts:
            modes = part.source if packs else part.target
            if mode in modes:
                start, *steps = part.rows(0 if packs else 1)[modes.index(mode)]
                if part.lattice.listed:
                    ends += [start + int(steps[0].min()), start + int(steps[0].max())]
                else:
                    last = [step * (n - 1) for step, n in zip(steps, part.lattice.shape, strict=True)]
                    ends += [start, start + sum(last)]
    return min(ends), max(ends) + 1


def long_runs(region: Region, itemsize: int, packs: bool) -> Strided | None:
    """The offsets in a block, in bytes, of the elements of a message in its order; None if its runs are short or many.

    Measured on 2 ranks of one node, 64 KiB to 64 MiB: MPICH takes 0.5 to 0.8 of the time of packing and sending for
    runs of 16 KiB and more, and up to 9 times as long for shorter ones, or more than 1024 of them.

    Args:
        region: from a block to the message if it `packs`, else from the message to a block.
    """
    piece = region.pieces[0] if len(region.pieces) == 1 else None
    if not isinstance(piece, StridedCopy):
        return None

    digits, run = piece.outer_digits(1 if packs else 0)  # in the order of the message
    if run * itemsize < _LONG or prod([n for _, _, n in digits]) > _FEW:
        return None

    digits.append((1, 1, run))
    shape, steps = tuple([n for _, _, n in digits]), tuple([itemsize * step for _, step, _ in digits])
    start, _ = piece.located(0 if packs else 1)
    return Strided(itemsize * start, shape, steps)


@memoized(256)
def whole(shape: tuple[int, ...]) -> Region:
    """The region of a whole block, for a copy to another block of its shape."""
    if not prod(shape):
        return Region(0, shape, False, ())
    axes, order = tuple(range(len(shape))), len(shape)
    rows = tuple([tuple([int(k == axis) for k in range(-1, order)]) for axis in axes])
    return Region(
        0, shape, False, (StridedCopy((CopiedLattice(Lattice(shape, rows * 2), axes, axes),), (row_major(shape),) * 2),)
    )


def cut(array: Array, dist: Distribution, rank: int, out: Array | None = None) -> Array:
    """A rank's block of a global array, by definition, written into `out`, or a new C-contiguous array.

    If the distribution is partial, coordinate 0 holds the values and the others hold the identity of the reduction.
    """
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
