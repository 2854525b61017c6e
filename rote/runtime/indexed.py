"""Indexed moves: every rank fetches elements of a tensor by their global indices, whichever ranks hold them.

A change of layout fetches the elements that a distribution gives to a rank. An indexed move fetches those at any lists
of indices, one list per mode, or one list of points in several modes. It serves to slice, flip, roll, pad and broadcast
tensors, to add ghost cells, and to read by arrays of indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise, product, repeat
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
        indices: per mode of the layout, the global indices that this rank requests, in the order of the result. They
            may repeat; at negative ones the result has a fill value. An array of several rows requests points in as
            many consecutive modes, which are one mode of the result.
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

    __slots__ = ("_blanks", "_comm", "_extents", "_incoming", "_local", "_outgoing", "received", "shape")

    def __init__(self, source: Distribution, indices: Sequence[Ints], comm: Comm) -> None:
        self._comm = comm
        axes = [np.atleast_2d(rows) for rows in indices]
        self.shape: tuple[int, ...] = tuple([axis.shape[1] for axis in axes])
        starts = [0, *accumulate(map(len, axes))]
        extents = source.local_shape(comm.rank)
        self._extents = tuple([prod(extents[start:stop]) for start, stop in pairwise(starts)])

        # Elements of the result, and their local indices on the rank that has them. Their order is that of the ranks.
        requests = list[tuple[_Selected, list[Ints]]]()
        for groups in product(*map(_groups, repeat(source), starts, axes)):
            positions = [places for _, places, _ in groups]
            shape = tuple(map(len, positions))
            if prod(shape):
                peer = _owner(source, comm.rank, [coordinates for coordinates, _, _ in groups])
                requests.append((_Selected(peer, selection(positions), shape), [local for _, _, local in groups]))
        requests.sort(key=lambda request: request[0].peer)

        from_others = [request for request in requests if request[0].peer != comm.rank]
        from_itself = [request for request in requests if request[0].peer == comm.rank]
        self._local = [(segment.selection, selection(local)) for segment, local in from_itself]
        self._incoming = [segment for segment, _ in from_others]

        self._blanks = list[tuple[slice | Ints, ...]]()
        for mode, axis in enumerate(axes):
            negative = (axis < 0).any(axis=0)
            if negative.any():
                self._blanks.append((*[slice(None)] * mode, np.flatnonzero(negative)))

        shapes = gathered(comm, "an indexed move", [(s.peer, *s.shape) for s in self._incoming])
        self.received: int = max(sum(prod(shape) for _, *shape in of_rank) for of_rank in shapes)
        self._outgoing = _requests(comm, shapes, [local for _, local in from_others]) if self.received else []

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
        if len(self._extents) < block.ndim and self._extents:
            block = block.reshape(self._extents)  # with the modes of points fused
        for target, source in self._local:
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
        for target, source in self._local:
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
    if all(isinstance(index, slice) for index in selection):
        block[selection] += part
    else:
        np.add.at(block, selection, part)


Coordinates = tuple[tuple[int, int], ...]  # pairs of a grid mode and the coordinate along it


def _owner(source: Distribution, rank: int, parts: Sequence[Coordinates]) -> int:
    """The rank at some coordinates; along other grid modes it is that of the root, or of this rank, as a replica."""
    coordinates = list(source.grid.coordinates(rank))
    for g, at in (*source.layout.rooted, *chain(*parts)):
        coordinates[g] = at
    return source.grid.rank(coordinates)


def _groups(source: Distribution, mode: int, rows: Ints) -> list[tuple[Coordinates, Ints, Ints]]:
    """Group indices along modes by the coordinates that hold them, with their places and their local indices.

    Local indices in several modes are fused to one number.
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
    for key in np.flatnonzero(np.bincount(keys)):  # `np.unique` sorts or hashes all keys, which are few different ones
        chosen = np.flatnonzero(keys == key)
        at = dict(zip(where, map(int, np.unravel_index(key, parts)), strict=True))
        extents = []
        for m in modes:
            coordinates_of = tuple([at[split.grid_mode] for split in source.splits[m]])
            extents.append(len(mode_set(source.splits[m], source.view_shape[m], coordinates_of)))
        local = _ravel(locals_, extents)
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
    comm: Comm, shapes: Sequence[Sequence[tuple[int, ...]]], lists: Sequence[Sequence[Ints]]
) -> list[_Selected]:
    """Send each rank the lists of its elements that others request; return the segments that this rank must send.

    Args:
        shapes: per rank, the other ranks that it requests elements from, and the extents of these.
        lists: of each request of this rank, the local indices per mode, as many as the extents say.
    """
    by_peer: list[list[Ints]] = [[] for _ in range(comm.size)]
    for (peer, *_), indices in zip(shapes[comm.rank], lists, strict=True):
        by_peer[peer].extend(indices)
    sent = [np.concatenate(indices) if indices else np.empty(0, np.int64) for indices in by_peer]

    requests: list[tuple[int, tuple[int, ...]]] = []
    receive_counts = [0] * comm.size
    for rank, of_rank in enumerate(shapes):
        for peer, *extents in of_rank:
            if peer == comm.rank:
                requests.append((rank, tuple(extents)))
                receive_counts[rank] += sum(extents)

    arrived = np.empty(sum(receive_counts), np.int64)
    comm.alltoallv(np.concatenate(sent), list(map(len, sent)), arrived, receive_counts)

    segments, start = [], 0
    for rank, shape in requests:
        end = start + sum(shape)
        indices = np.split(arrived[start:end], np.cumsum(shape)[:-1]) if shape else []
        segments.append(_Selected(rank, selection(indices), shape))
        start = end
    return segments
