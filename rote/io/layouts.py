"""Distributions that file formats can store, and how long the runs of a file are that ranks hold.

HDF5 takes any elements that lie in runs along the tensor's own modes. A Zarr chunk is written by one rank, so each rank
must hold whole chunks: along each mode, all blocks but the last have the same size. A `.npy` file takes any elements,
but a file system writes short runs slowly, so large tensors are written in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from math import prod
from typing import NamedTuple

import numpy as np

from ..layout.distribution import Distribution
from ..layout.expressions import block
from ..layout.grid import Grid, divisors
from ..layout.kinds import Split, mode_set, part_extents, run_starts
from ..layout.layout import Entry, Layout

__all__ = ["LARGE", "ChunkGrid", "chunk_extents", "in_boxes", "in_chunks", "in_long_runs", "in_rows"]
__all__ += ["longest_run", "run_length", "without_view", "writes"]

LARGE = 1 << 20
"""Bytes of a block from which on an exchange between ranks pays, if runs are short."""

_RUN = 1 << 12  # bytes that a file system handles at a time
CHUNK, SHARD = 1 << 23, 1 << 29  # bytes: the largest chunk, which a reader decodes as a whole, and the largest file


class ChunkGrid(NamedTuple):
    """A distribution whose blocks are whole chunks, or whole shards of chunks."""

    dist: Distribution
    chunks: tuple[int, ...]  # extents of a chunk
    shards: tuple[int, ...]  # extents of the part in one file, multiples of the chunk's


def without_view(dist: Distribution) -> Distribution:
    """The distribution itself if it has no view, else a similar one without a view.

    A grid mode then splits the first tensor mode that its view mode reads, or another if that one is too short.

    >>> from rote.layout.layout import parse
    >>> print(without_view(parse("(a b) c: block[(0),()]").on((2, 3, 4), 3)).layout)
    block[(),(0),()]
    """
    if dist.layout.view is None:
        return dist

    modes: list[tuple[Entry, ...]] = [()] * len(dist.shape)
    left = list(dist.shape)  # per mode, about the extent of its blocks so far
    for splits, digits in zip(dist.splits, dist.digits, strict=True):
        for split in splits:
            # The modes that the view mode reads, then the longest ones; the first that has an index for each part.
            candidates = [digit.mode for digit in digits] + sorted(range(len(left)), key=lambda m: -left[m])
            longest = max(candidates, key=lambda m: left[m])
            chosen = next((m for m in candidates if left[m] >= split.parts), longest)
            left[chosen] = -(-left[chosen] // split.parts)
            modes[chosen] += (block(split.grid_mode),)
    return _split(dist, modes)


def _split(dist: Distribution, modes: Sequence[tuple[Entry, ...]]) -> Distribution:
    """The distribution with the tensor's own modes split in another way."""
    return replace(dist.layout, view=None, modes=tuple(modes)).on(dist.shape, dist.grid)


def in_boxes(dist: Distribution) -> Distribution:
    """The distribution itself, or a similar one in which every rank holds an interval of each tensor mode.

    >>> from rote.layout.layout import parse
    >>> print(in_boxes(parse("[(0:block),(1)]").on((4, 6), (2, 2))).layout)
    block[(0),(1)]
    """
    plain = without_view(dist)
    modes = []
    for mode in plain.layout.modes:
        modes.append(tuple([block(entry.grid_mode) if entry.kind.is_cyclic else entry for entry in mode]))
    return _split(plain, modes)


def in_chunks(dist: Distribution, itemsize: int) -> ChunkGrid:
    """The distribution itself, or a similar one, in which every rank holds whole chunks; with the chunks' extents.

    If all blocks have one size per mode, as in `block(ceil)`, they are the chunks. Larger blocks are cut into chunks of
    at most 8 MiB, and a file holds at most 512 MiB of chunks. Nested, cyclic or uneven splits become blocks.

    >>> from rote.layout.layout import parse
    >>> in_chunks(parse("block[(0),()]").on((10, 6), 4), 8).dist.layout.modes[0][0].kind
    Kind(name='block', sizes=(3,), at=0)
    >>> in_chunks(parse("block[(),(0)]").on((10, 6), 2), 8)[1:]
    ((10, 3), (10, 3))
    """
    plain = without_view(dist)
    sizes, blocks = [], []  # per mode, the common extent of the blocks or 0, and the extent that they get
    for splits, extent in zip(plain.splits, plain.shape, strict=True):
        sizes.append(_block_extent(splits, extent))
        blocks.append(sizes[-1] or max(-(-extent // prod([s.parts for s in splits])), 1))

    # Whole chunks make a block, which may grow for it. A shard is as much of a block as a file may hold, and first of
    # all whole along the last modes, which run fastest.
    chunks = [_divisor(b, c) for b, c in zip(blocks, chunk_extents(blocks, itemsize, CHUNK), strict=True)]
    blocks = [-(-b // c) * c for b, c in zip(blocks, chunks, strict=True)]
    shards = list(chunks)
    for m in reversed(range(len(shards))):
        if prod(shards) // shards[m] * blocks[m] * itemsize > SHARD:
            break
        shards[m] = blocks[m]

    modes = list(plain.layout.modes)
    for m, splits in enumerate(plain.splits):
        if splits and blocks[m] != sizes[m]:
            modes[m] = _nested(splits, blocks[m])
    return ChunkGrid(_split(plain, modes), tuple(chunks), tuple(shards))


def chunk_extents(block: Sequence[int], itemsize: int, nbytes: int) -> tuple[int, ...]:
    """The extents of chunks of at most `nbytes` bytes: the block's extents, the longest of which is halved repeatedly.

    >>> chunk_extents((100, 50), 8, 10000)
    (25, 50)
    """
    extents = [max(n, 1) for n in block]
    while prod(extents) * itemsize > nbytes and max(extents) > 1:
        longest = extents.index(max(extents))
        extents[longest] = -(-extents[longest] // 2)
    return tuple(extents)


def _block_extent(splits: tuple[Split, ...], extent: int) -> int:
    """The common extent of a mode's blocks if they are contiguous, in order, and only the last is shorter; else 0."""
    lengths = part_extents(splits, extent).reshape(-1)
    size = max(int(lengths[0]), 1)
    regular = np.clip(extent - size * np.arange(len(lengths)), 0, size)
    return size if run_starts(splits, extent) is not None and np.array_equal(lengths, regular) else 0


def _divisor(number: int, most: int) -> int:
    """The greatest divisor of `number` that is at most `most`, or `most` itself if that divisor is below its half."""
    divisor = max([d for d in divisors(number) if d <= most])
    return divisor if 2 * divisor >= most else most


def _nested(splits: tuple[Split, ...], size: int) -> tuple[Entry, ...]:
    """The splits of a mode as nested blocks; the innermost blocks have the given size."""
    entries: list[Entry] = []
    for split in reversed(splits):
        entries.insert(0, block(split.grid_mode, size))
        size *= split.parts
    return tuple(entries)


def writes(dist: Distribution, rank: int) -> bool:
    """Whether a rank writes its block to a file: one of the replicas does, and an idle rank does not.

    >>> from rote.layout.layout import parse
    >>> [writes(parse("block[(0)]").on(4, (2, 2)), rank) for rank in range(4)]
    [True, False, True, False]
    """
    coordinates = dist.grid.coordinates(rank)
    replica = any(c and dist.roles[g].name == "replicated" for g, c in enumerate(coordinates))
    return dist.holds(rank) and not replica


def in_long_runs(dist: Distribution, itemsize: int) -> Distribution:
    """The distribution in which a large tensor is written: its own, or blocks of the first modes if its runs are short.

    A file system writes single elements, as of a cyclic last mode, ten times slower than rows; one exchange between
    the ranks turns them into rows.
    """
    if (
        dist.layout.view is not None
        or prod(dist.max_local_shape()) * itemsize < LARGE
        or run_length(dist) * itemsize >= _RUN
    ):
        return dist

    # Where the first modes are too short for all grid modes, rows would be replicated over the rest.
    rows = in_rows(dist.layout, dist.shape, dist.grid).on(dist.shape, dist.grid)
    over_all = sum(map(len, rows.splits)) == sum(map(len, dist.splits))
    return rows if over_all and run_length(rows) > run_length(dist) else dist


def in_rows(layout: Layout, shape: Sequence[int], grid: Grid) -> Layout:
    """The layout without a view in which ranks hold the longest runs of the file: blocks of the first modes.

    >>> from rote.layout.layout import parse
    >>> print(in_rows(parse("c b a: [(0),(),(1)]"), (3, 8, 8), Grid((2, 4))))
    block[(0),(1),()]
    """
    left = [entry.grid_mode for entry in chain(*layout.modes) if grid.shape[entry.grid_mode] > 1]
    modes: list[tuple[Entry, ...]] = []
    for extent in shape:
        taken: list[Entry] = []
        while left and grid.shape[left[0]] <= extent:
            extent //= grid.shape[left[0]]
            taken.append(block(left.pop(0)))
        modes.append(tuple(taken))
    return replace(layout, view=None, modes=tuple(modes))


def run_length(dist: Distribution) -> int:
    """About how many elements of a rank are contiguous in a file in the order of the view."""
    run = 1
    for mode, extent in zip(reversed(dist.splits), reversed(dist.view_shape), strict=True):
        run *= longest_run(mode, extent)
        if mode:
            break
    return run


def longest_run(splits: tuple[Split, ...], extent: int) -> int:
    """The length of the longest run along a mode at coordinate 0 of all its splits."""
    indices = mode_set(splits, extent, (0,) * len(splits))
    return max([b - a for a, b in islice(indices.unroll(indices.stop), len(indices.runs))], default=0)
