"""Indexed moves: every rank fetches elements of a tensor by their global indices, whichever ranks hold them.

A change of layout fetches the elements that a distribution gives to a rank. An indexed move fetches those at any lists
of indices, one list per mode, or one list of points in several modes. It serves to slice, flip, roll, pad and broadcast
tensors, to add ghost cells, and to read by arrays of indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product, repeat
from math import prod
from typing import Any

import numpy as np

from ..layout.distribution import Distribution
from ..layout.indexset import Ints, Selection, selection
from ..layout.kinds import mode_set
from .comm.agreement import gathered
from .comm.protocol import Array, Comm

__all__ = ["IndexedMove"]


@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """Elements of a block that go to, or come from, one rank."""

    peer: int
    selection: Selection
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


class IndexedMove:
    """The elements of a tensor that each rank requests, bound to the ranks that hold them. Collective.

    Ranks send lists of the local indices that they request once; after that, only elements travel. If there are several
    replicas, a rank is served by the one with its own coordinates.

    Args:
        source: the distribution of the tensor; not partial.
        wanted: per mode of the layout, the global indices that this rank requests, in the order of the result. They may
            repeat; at negative ones the result has a fill value. An array of several rows requests points in as many
            consecutive modes, which are one mode of the result.
        comm: the communicator of the tensor's ranks.

    Attributes:
        shape: the shape of this rank's result.
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
        requests: list[tuple[_Selected, Selection]] = []
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
            requests.append((_Selected(source.grid.rank(peer), selection(positions), shape), tuple(held)))
        requests = sorted([each for each in requests if each[0].size], key=lambda each: each[0].peer)
        own = [(segment, held) for segment, held in requests if segment.peer == comm.rank]
        self._own = [(segment.selection, selection(held)) for segment, held in own]
        self._incoming = [segment for segment, _ in requests if segment.peer != comm.rank]
        every = (slice(None),)
        negative = [(axis < 0).any(axis=0) for axis in axes]
        self._blanks = [every * m + (np.flatnonzero(each),) for m, each in enumerate(negative) if each.any()]
        counts = gathered(comm, "an indexed move", [(s.peer, *s.shape) for s in self._incoming])
        self.received: int = max(sum(prod(shape) for _, *shape in each) for each in counts)
        foreign = [held for segment, held in requests if segment.peer != comm.rank]
        self._outgoing = _requests(comm, counts, foreign) if self.received else []

    def __call__(self, block: Array, fill: Any = 0, out: Array | None = None) -> Array:
        """Fetch this rank's elements. Collective if any rank receives some.

        Args:
            block: this rank's block of the tensor; all ranks give the same dtype.
            fill: the value at negative indices.
            out: the array for the result, of `shape` and the block's dtype; a new one if None. It may share memory with
                the block if the shared elements stay unchanged.
        """
        result = np.empty(self.shape, block.dtype) if out is None else out
        for blank in self._blanks:
            result[blank] = fill
        if len(self._held) < block.ndim and self._held:
            block = block.reshape(self._held)  # with the modes of points fused
        for target, source in self._own:
            result[target] = block[source]
        for segment, part in self._exchange(block, self._outgoing, self._incoming):
            result[segment.selection] = part
        return result

    def accumulate(self, values: Array, block: Array) -> None:
        """Add each of this rank's elements to the one that it was fetched from: the transpose of the move.

        Collective if any rank receives some. Values at negative indices are ignored.

        Args:
            values: an array of `shape`; all ranks give the same dtype.
            block: this rank's block of the tensor, of this dtype, to which the values are added.
        """
        for target, source in self._own:
            _add(block, source, values[target])
        for segment, part in self._exchange(values, self._incoming, self._outgoing):
            _add(block, segment.selection, part)

    def _exchange(
        self, array: Array, outgoing: Sequence[_Selected], incoming: Sequence[_Selected]
    ) -> Iterator[tuple[_Selected, Array]]:
        """Send segments of an array, and receive others; yield each of these with its elements, in its shape."""
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
    """Add to selected elements of a block; elements selected several times are added to as often."""
    if all(isinstance(each, slice) for each in selection):
        block[selection] += part
    else:
        np.add.at(block, selection, part)


def _groups(source: Distribution, mode: int, rows: Ints) -> list[tuple[tuple[tuple[int, int], ...], Ints, Ints]]:
    """Group indices along modes by the coordinates that hold them, with their places and their local indices.

    The coordinates are pairs (grid mode, coordinate). Local indices in several modes are fused to one number.
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
    """Cut elements of two lists where either jumps, if that makes few parts, which are then copied as slices."""
    jumps = (np.diff(places[chosen]) != 1) | (np.diff(local[chosen]) != 1)
    return np.split(chosen, np.flatnonzero(jumps) + 1) if jumps.sum() < 3 else [chosen]


def _ravel(locals_: Sequence[Ints], extents: Sequence[int]) -> Ints:
    """Row-major numbers of points in a block of these extents."""
    if len(locals_) == 1:
        return locals_[0]
    number = np.zeros_like(locals_[0])
    for local, extent in zip(locals_, extents, strict=True):
        number = number * extent + local
    return number


def _requests(
    comm: Comm, counts: Sequence[Sequence[tuple[int, ...]]], lists: Sequence[Sequence[Ints]]
) -> list[_Selected]:
    """Send each rank the lists of its elements that others request; return the segments that this rank must send."""
    numbers: list[list[Ints]] = [[] for _ in range(comm.size)]
    for (peer, *_), held in zip(counts[comm.rank], lists, strict=True):
        numbers[peer].extend(held)
    ordered = [np.concatenate(each) if each else np.empty(0, np.int64) for each in numbers]
    requests: list[tuple[int, tuple[int, ...]]] = []
    receive_counts = [0] * comm.size
    for rank, each in enumerate(counts):
        for peer, *extents in each:
            if peer == comm.rank:
                requests.append((rank, tuple(extents)))
                receive_counts[rank] += sum(extents)
    arrived = np.empty(sum(receive_counts), np.int64)
    comm.alltoallv(np.concatenate(ordered), [len(each) for each in ordered], arrived, receive_counts)
    segments, start = [], 0
    for rank, shape in requests:
        end = start + sum(shape)
        held = np.split(arrived[start:end], np.cumsum(shape)[:-1]) if shape else []
        segments.append(_Selected(rank, selection(held), shape))
        start = end
    return segments
