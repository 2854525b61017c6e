"""Indexed moves: every rank fetches elements of a tensor by their global indices, whichever ranks hold them.

A change of layout asks for the elements that a distribution gives to a rank; an indexed move asks for any lists of
indices, one per mode, or one of points in several modes. So tensors are sliced, flipped, rolled, padded, broadcast,
given ghost cells, and read by arrays of indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product, repeat
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout.kinds import mode_set
from ..layout.layout import Distribution
from ..layout.selection import Selection, selection
from .comm.protocol import Array, Comm

__all__ = ["IndexedMove"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Segment:
    """Elements of a block that go to, or come from, one rank."""

    peer: int
    selection: Selection
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


class IndexedMove:
    """The elements that each rank asks for of a tensor, bound to the ranks that hold them. Collective.

    Ranks say once which of another's elements they want, as lists of local indices; what travels then is elements. Of
    several replicas the one with a rank's own coordinates serves it.

    Args:
        source: where the tensor lies; not partial.
        wanted: per mode of the layout, the global indices that this rank asks for, in the order in which it wants them.
            They may repeat; at those that are negative the result has a filling. An array of several rows asks for
            points in as many modes that follow each other, which are one mode of the result.
        comm: of the tensor's ranks.

    Attributes:
        shape: of this rank's result.
        received: the most elements that any rank receives from others; the same on all.

    >>> import numpy as np
    >>> from rote import parse, run
    >>> def program(comm):
    ...     source = parse("block[(0)]").on(4, 2)
    ...     mine = np.array([10.0, 11.0]) if comm.rank == 0 else np.array([12.0, 13.0])
    ...     return IndexedMove(source, [np.array([3, 0, -1])], comm)(mine).tolist()
    >>> run(program, ranks=2)
    [[13.0, 10.0, 0.0], [13.0, 10.0, 0.0]]
    """

    __slots__ = ("_blanks", "_comm", "_held", "_incoming", "_outgoing", "_own", "received", "shape")

    def __init__(self, source: Distribution, wanted: Sequence[Ints], comm: Comm) -> None:
        self._comm = comm
        axes = [np.atleast_2d(each) for each in wanted]
        self.shape: tuple[int, ...] = tuple([axis.shape[1] for axis in axes])
        asked: list[tuple[_Segment, Selection]] = []
        starts = [0, *accumulate(map(len, axes))]
        extents = source.local_shape(comm.rank)
        self._held = tuple([prod(extents[start:stop]) for start, stop in pairwise(starts)])
        groups = list(map(_groups, repeat(source), starts, axes))
        mine = list(source.grid.coordinates(comm.rank))
        for g, at in source.layout.rooted:
            mine[g] = at
        for parts in product(*groups):
            peer = list(mine)
            for coordinates, _, _ in parts:
                for g, c in coordinates:
                    peer[g] = c
            positions, held = [part[1] for part in parts], [part[2] for part in parts]
            shape = tuple(map(len, positions))
            asked.append((_Segment(source.grid.rank(peer), selection(positions), shape), tuple(held)))
        asked = sorted([each for each in asked if each[0].size], key=lambda each: each[0].peer)
        own = [(segment, held) for segment, held in asked if segment.peer == comm.rank]
        self._own = [(segment.selection, selection(held)) for segment, held in own]
        self._incoming = [segment for segment, _ in asked if segment.peer != comm.rank]
        every = (slice(None),)
        negative = [(axis < 0).any(axis=0) for axis in axes]
        self._blanks = [every * m + (np.flatnonzero(each),) for m, each in enumerate(negative) if each.any()]
        counts = comm.allgather_object([(s.peer, *s.shape) for s in self._incoming])
        self.received: int = max(sum(prod(shape) for _, *shape in each) for each in counts)
        foreign = [held for segment, held in asked if segment.peer != comm.rank]
        self._outgoing = _requests(comm, counts, foreign) if self.received else []

    def __call__(self, block: Array, fill: Any = 0, out: Array | None = None) -> Array:
        """Fetch this rank's elements. Collective where any rank receives some.

        Args:
            block: this rank's block of the tensor; all ranks give the same dtype.
            fill: the value at negative indices.
            out: where to put them, of `shape` and the block's dtype; a new array if None. It may share memory with the
                block if what it has of that stays as it is.

        Returns:
            The array of `shape` with the elements.
        """
        result = np.empty(self.shape, block.dtype) if out is None else out
        for blank in self._blanks:
            result[blank] = fill
        if len(self._held) < block.ndim and self._held:
            block = block.reshape(self._held)  # with the modes of points as one
        for target, source in self._own:
            result[target] = block[source]
        for segment, part in self._exchange(block, self._outgoing, self._incoming):
            result[segment.selection] = part
        return result

    def accumulate(self, values: Array, block: Array) -> None:
        """Add each of this rank's elements to the one that it was fetched from: the transpose of the move.

        Collective where any rank receives some. What stands at negative indices goes nowhere.

        Args:
            values: an array of `shape`; all ranks give the same dtype.
            block: this rank's block of the tensor, of that dtype, to which is added.
        """
        for target, source in self._own:
            _add(block, source, values[target])
        for segment, part in self._exchange(values, self._incoming, self._outgoing):
            _add(block, segment.selection, part)

    def _exchange(
        self, array: Array, outgoing: Sequence[_Segment], incoming: Sequence[_Segment]
    ) -> Iterator[tuple[_Segment, Array]]:
        """Send segments of an array, and receive others: each with its elements, in its shape."""
        if not self.received:
            return
        size = self._comm.size
        send_counts, receive_counts = [0] * size, [0] * size
        for segment in outgoing:
            send_counts[segment.peer] += segment.size
        for segment in incoming:
            receive_counts[segment.peer] += segment.size
        parts = [array[segment.selection].reshape(-1) for segment in outgoing]
        packed = np.concatenate(parts) if parts else np.empty(0, array.dtype)
        arrived = np.empty(sum(receive_counts), array.dtype)
        self._comm.alltoallv(packed, send_counts, arrived, receive_counts)
        start = 0
        for segment in incoming:
            yield segment, arrived[start : start + segment.size].reshape(segment.shape)
            start += segment.size


def _add(block: Array, selection: Selection, part: Array) -> None:
    """Add to selected elements of a block; to those that are selected several times, so often."""
    if all(isinstance(each, slice) for each in selection):
        block[selection] += part
    else:
        np.add.at(block, selection, part)


def _groups(source: Distribution, mode: int, rows: Ints) -> list[tuple[tuple[tuple[int, int], ...], Ints, Ints]]:
    """Indices along modes by the coordinates that hold them: (grid mode, coordinate), their places, local indices.

    Local indices in several modes are one number each, of the block with these modes as one.
    """
    places = np.flatnonzero((rows >= 0).all(axis=0))
    where: dict[int, Ints] = {}
    locals_: list[Ints] = []
    modes = range(mode, mode + len(rows))
    for m, indices in zip(modes, rows, strict=True):
        coordinates, local = source.locate(m, indices[places])
        where |= coordinates
        locals_.append(local)
    if not where:
        local = _ravel(locals_, source.view_shape[mode : modes.stop])
        return [((), places[run], local[run]) for run in _runs(places, local, np.arange(len(places)))]
    parts = [source.grid.shape[g] for g in where]
    keys = np.ravel_multi_index(tuple(where.values()), parts)
    groups = []
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)
        at = dict(zip(where, map(int, np.unravel_index(key, parts)), strict=True))
        held = []
        for m in modes:
            coordinates_of = tuple([at[split.grid_mode] for split in source.splits[m]])
            held.append(len(mode_set(source.splits[m], source.view_shape[m], coordinates_of)))
        local = _ravel(locals_, held)
        groups += [(tuple(at.items()), places[run], local[run]) for run in _runs(places, local, chosen)]
    return groups


def _runs(places: Ints, local: Ints, chosen: Ints) -> list[Ints]:
    """Some elements of two lists, cut where either jumps if that makes few parts, which are then copied as slices."""
    jumps = (np.diff(places[chosen]) != 1) | (np.diff(local[chosen]) != 1)
    return np.split(chosen, np.flatnonzero(jumps) + 1) if jumps.sum() < 3 else [chosen]


def _ravel(locals_: Sequence[Ints], extents: Sequence[int]) -> Ints:
    """Row-major numbers of points in a block of some extents."""
    if len(locals_) == 1:
        return locals_[0]
    number = np.zeros_like(locals_[0])
    for local, extent in zip(locals_, extents, strict=True):
        number = number * extent + local
    return number


def _requests(
    comm: Comm, counts: Sequence[Sequence[tuple[int, ...]]], lists: Sequence[Sequence[Ints]]
) -> list[_Segment]:
    """Give each rank the lists of its elements that others want; the segments that this rank is to send."""
    numbers: list[list[Ints]] = [[] for _ in range(comm.size)]
    for (peer, *_), held in zip(counts[comm.rank], lists, strict=True):
        numbers[peer].extend(held)
    ordered = [np.concatenate(each) if each else np.empty(0, np.int64) for each in numbers]
    asked: list[tuple[int, tuple[int, ...]]] = []
    receive_counts = [0] * comm.size
    for rank, each in enumerate(counts):
        for peer, *extents in each:
            if peer == comm.rank:
                asked.append((rank, tuple(extents)))
                receive_counts[rank] += sum(extents)
    arrived = np.empty(sum(receive_counts), np.int64)
    comm.alltoallv(np.concatenate(ordered), [len(each) for each in ordered], arrived, receive_counts)
    segments, start = [], 0
    for rank, shape in asked:
        end = start + sum(shape)
        held = np.split(arrived[start:end], np.cumsum(shape)[:-1]) if shape else []
        segments.append(_Segment(rank, selection(held), shape))
        start = end
    return segments
