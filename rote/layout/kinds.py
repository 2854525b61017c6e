"""The arithmetic of splits: which digit of a local index is the coordinate, and which local index remains.

Let l be the local index that the earlier splits have left. A split over p parts with tile b takes the digit `q mod p`,
with `q = l div b`, as the coordinate and leaves `(q div p)*b + l mod b`. If the first tile is at coordinate k, the
coordinate is `(q + k) mod p`. `block(ceil)` has the tile ceil(n/p). Part i of `block(floor)` goes from floor(i*n/p) up
to floor((i+1)*n/p). Balanced block is the start/length formula of Dalcin et al. 2019, eq. 9 and algorithm 1.
Functions take integers or NumPy arrays alike; `n` is the extent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from ..caches import memoized, memoized_arrays
from ..errors import LayoutError, counted
from ..grammar.nodes import BLOCK, Kind
from ..grammar.text import kind_text
from .indexset import EMPTY, IndexSet, Ints

__all__ = ["CEIL", "CONSECUTIVE", "FLOOR", "Split", "Stretch", "block_kind", "check_kind", "check_mode", "dealings"]
__all__ += ["cyclic_kind", "extent", "local_extents", "local_positions", "locate", "mode_set", "numbered"]
__all__ += ["part_extents", "run_starts", "split", "stretches"]

_INDICES = "index", "indices"
_KIND, _PARTS = attrgetter("kind"), attrgetter("parts")  # of a split
_CHANGES = 4  # of the length of parts, at most, in a kind that is no list of parts

CEIL, FLOOR = Kind("ceil"), Kind("floor")
CONSECUTIVE = BLOCK, CEIL, FLOOR  # those that cut every extent into one part for each coordinate


def block_kind(*sizes: int) -> Kind:
    """The kind of blocks of one size, or with a size for each part."""
    return Kind("block", sizes)


def cyclic_kind(tile: int, at: int = 0) -> Kind:
    """The kind of tiles that are dealt out cyclically, from a coordinate on."""
    return Kind("cyclic", (tile,), at)


def check_kind(kind: Kind, p: int, n: int) -> None:
    """Refuse a split whose sizes or first coordinate do not fit an extent of `n` and `p` coordinates."""
    if kind.at >= p:
        less = f"at={p - 1} or less, or " * (p > 1)
        there_are = "there is" if p == 1 else "there are"
        raise LayoutError(
            f"the first tile of {kind_text(kind)} lies at coordinate {kind.at}, but {there_are} "
            f"{counted(p, 'coordinate')}, from 0 on; "
            f"write {less}{kind_text(replace(kind, at=0))}"
        )
    if kind.name != "block" or not kind.sizes:
        return

    if len(kind.sizes) == 1:
        (b,) = kind.sizes
        if n > p * b:
            raise LayoutError(
                f"block({b}) over {counted(p, 'rank')} holds {counted(p * b, *_INDICES)}, but {n} must be placed; "
                f"write block({-(-n // p)}) or more, or block for balanced parts"
            )
    elif len(kind.sizes) != p or sum(kind.sizes) != n:
        sizes = f"{p} sizes that add up to {n}, or " * (p > 1)
        raise LayoutError(
            f"{kind_text(kind)} names {len(kind.sizes)} parts of "
            f"{counted(sum(kind.sizes), *_INDICES)} in all, but {counted(n, *_INDICES)} must be placed on "
            f"{counted(p, 'rank')}; write {sizes}block for balanced parts"
        )


class Stretch(NamedTuple):
    """Indices from `start` up to `stop`, dealt out in tiles, cyclically, to `parts` coordinates from `first` on.

    Index `start + i` is in tile `q = i div tile`, which is at coordinate `(first + q mod parts) mod p` and is tile
    `q div parts` there. The last tile may be shorter. Each coordinate is in at most one stretch. `cyclic(2,at=1)` over
    3 coordinates is one stretch, and balanced `block` has two, one of longer and one of shorter tiles:

        indices      0 1 2 3 4 5 6 7 8 9                     0 1 2 3 4 5 6 7 8 9
        coordinates  1 1 2 2 0 0 1 1 2 2                     0 0 0 0 1 1 1 2 2 2
        stretches    |start=0, first=1, parts=3, tile=2|     |tile=4|  tile=3  |
    """

    start: int
    stop: int
    first: int
    parts: int
    tile: int


@memoized(4096)  # each block of each rank asks, and there may be a stretch for each of very many ranks
def stretches(kind: Kind, p: int, n: int) -> tuple[Stretch, ...]:
    """The indices below n as stretches, which say all about a kind; `Stretch` shows them in a drawing.

    >>> stretches(Kind("block", ()), 3, 10)
    (Stretch(start=0, stop=4, first=0, parts=1, tile=4), Stretch(start=4, stop=10, first=1, parts=2, tile=3))
    """
    if not n:
        return ()

    q, r = divmod(n, p)
    tile = kind.tile
    if kind.name == "ceil" or (r == 0 and not kind.sizes):
        tile = -(-n // p)
    if tile:
        return (Stretch(0, n, kind.at, p, tile),)

    if kind.name == "block" and not kind.sizes:
        # The first r parts have one index more. With fewer indices than parts, the others are empty: no stretch.
        longer = Stretch(0, r * (q + 1), 0, r, q + 1)
        return (longer, Stretch(longer.stop, n, r, p - r, q)) if q else (longer,)

    # Parts of many lengths: those that are listed, or those of block(floor).
    bounds = accumulate(kind.sizes, initial=0) if kind.sizes else [c * n // p for c in range(p + 1)]
    return tuple([Stretch(a, b, c, 1, b - a) for c, (a, b) in enumerate(pairwise(bounds)) if a < b])


@memoized(65536)
def dealings(splits: tuple[Split, ...], n: int) -> tuple[object, ...]:
    """Per split of n indices, a value that is equal if kinds deal every index out to the same coordinate.

    >>> dealings((Split(0, Kind("block"), 4),), 15) == dealings((Split(0, Kind("ceil"), 4),), 15)
    True
    """
    dealt = []
    for depth, s in enumerate(splits):
        per_extent = [_dealing(s.kind, s.parts, left) for left in local_extents(splits[:depth], n)]
        dealt.append((s.grid_mode, s.parts, tuple(per_extent)))

    return tuple(dealt)


def _dealing(kind: Kind, p: int, n: int) -> object:
    """Where parts of another length begin, and this length; tile and first coordinate if tiles come round to it."""
    if kind.tile and -(-n // kind.tile) > p - kind.at:
        return kind.tile, kind.at

    # A few changes say as much as all lengths, also for a grid mode of very many coordinates.
    lengths = extent(kind, p, n, np.arange(p))
    first = np.flatnonzero(np.diff(lengths, prepend=-1))
    if len(first) > _CHANGES:
        return lengths.tobytes()

    return tuple(zip(first.tolist(), lengths[first].tolist(), strict=True))


def _has_parts(kind: Kind, p: int, n: int) -> bool:
    """Whether there may be a stretch for each part, of which a table is faster; it is as long as the grid mode."""
    return (kind == FLOOR and n % p != 0) or (kind.name == "block" and len(kind.sizes) > 1)


@memoized(1024)
def _parts(kind: Kind, p: int, n: int) -> tuple[Ints, Ints]:
    """The start and the length of the one tile of each coordinate."""
    if kind == FLOOR:
        parts, (q, r) = np.arange(p + 1), divmod(n, p)
        bounds = parts * q + parts * r // p  # a part's number times n may exceed 64 bits
        return bounds[:-1], np.diff(bounds)

    lengths = np.array(kind.sizes, np.int64)
    return np.cumsum(lengths) - lengths, lengths


def _each_extent(ask: Callable[..., Any], kind: Kind, p: int, n: Ints, values: int | Ints, answers: int) -> Any:
    """Ask for each of several extents: they are few, since splits cut into few different lengths."""
    if not np.ndim(n):
        return ask(kind, p, int(n), values)

    extents, values = np.broadcast_arrays(n, values)
    distinct = sorted({*extents.reshape(-1).tolist()})  # `np.unique` would import numpy.ma, for every first plan
    if len(distinct) == 1:
        return ask(kind, p, distinct[0], values)

    answered = np.empty((answers, *extents.shape), np.int64)
    for extent in distinct:
        here = extents == extent
        answered[:, here] = ask(kind, p, extent, values[here])
    return tuple(answered) if answers > 1 else answered[0]


def split(kind: Kind, p: int, n: int | Ints, index: int | Ints) -> tuple[Ints, Ints]:
    """The coordinate that holds each local index, and its local index there.

    >>> coordinate, local = split(Kind("cyclic", (2,)), 3, 10, np.arange(10))
    >>> coordinate.tolist(), local.tolist()
    ([0, 0, 1, 1, 2, 2, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 2, 3, 2, 3])
    >>> [split(Kind(name), 4, 10, np.arange(10))[0].tolist() for name in ("ceil", "floor")]
    [[0, 0, 0, 1, 1, 1, 2, 2, 2, 3], [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]]
    """
    if not isinstance(n, int):
        return cast("tuple[Ints, Ints]", _each_extent(split, kind, p, n, index, 2))

    index = np.asarray(index, np.int64)
    coordinate: Ints
    if _has_parts(kind, p, n):
        start, _ = _parts(kind, p, n)
        coordinate = start.searchsorted(index, "right") - 1
        return coordinate, index - start[coordinate]

    pieces = stretches(kind, p, n) or (Stretch(0, 0, kind.at, p, 1),)
    if len(pieces) == 2 and kind == BLOCK:  # counted in shorter tiles only, an index of the longer ones is too far
        longer, shorter = pieces
        coordinate = np.maximum(index // longer.tile, (index - longer.parts) // shorter.tile)
        local = index - coordinate * shorter.tile
        local -= np.minimum(coordinate, longer.parts)
        return coordinate, local

    stretch = pieces[0]
    coordinate = index // stretch.tile  # by a number: division by an array takes several times as long
    local = index - coordinate * stretch.tile
    if n > stretch.parts * stretch.tile:  # several tiles at a coordinate
        cycle = coordinate // p
        coordinate -= cycle * p  # in place: new memory for every array takes the most time
        local += cycle * stretch.tile

    coordinate += stretch.first
    return coordinate % p if kind.at else coordinate, local


def extent(kind: Kind, p: int, n: int | Ints, coordinate: int | Ints) -> Ints:
    """The number of local indices at a coordinate."""
    if not isinstance(n, int):
        return cast("Ints", _each_extent(extent, kind, p, n, coordinate, 1))
    if kind == BLOCK:
        return n // p + (np.asarray(coordinate) < n % p)
    if _has_parts(kind, p, n):
        return cast("Ints", _parts(kind, p, n)[1][coordinate])
    pieces = stretches(kind, p, n)
    if not pieces:
        return np.zeros_like(coordinate, np.int64)

    # Each coordinate has a tile of every whole round; of one more round, the first ones have whole tiles.
    tile = pieces[0].tile
    rounds, left = divmod(n, p * tile)
    whole, rest = divmod(left, tile)
    place = (np.asarray(coordinate) - kind.at) % p if kind.at else np.asarray(coordinate)
    return cast("Ints", rounds * tile + tile * (place < whole) + rest * (place == whole))


def local_positions(kind: Kind, p: int, n: int, coordinate: int) -> IndexSet:
    """The set of indices in [0, n) that a coordinate holds."""
    if _has_parts(kind, p, n):
        begin, lengths = _parts(kind, p, n)
        return IndexSet.interval(int(begin[coordinate]), int(begin[coordinate] + lengths[coordinate]))
    pieces = stretches(kind, p, n)
    if not pieces:
        return EMPTY

    # The last stretch that begins at the coordinate or before it; a single one may also begin after it, and come round.
    start, stop, first, parts, tile = pieces[bisect_right(pieces, coordinate, key=attrgetter("first")) - 1]
    place = (coordinate - first) % p
    start += place * tile
    if place >= parts or start >= stop:
        return EMPTY

    if start + parts * tile >= stop:
        return IndexSet.interval(start, min(start + tile, stop))
    return IndexSet.of_runs([(start, start + tile)], parts * tile, stop)


class Split(NamedTuple):
    """One entry on a grid: a grid mode, its kind and its number of coordinates."""

    grid_mode: int
    kind: Kind
    parts: int


def numbered(splits: Sequence[Split]) -> tuple[Split, ...]:
    """Splits of a mode over grid modes 0, 1, ...: equal ones do the same to a mode, on whichever grid modes."""
    return tuple(map(Split, range(len(splits)), map(_KIND, splits), map(_PARTS, splits)))


def locate(splits: tuple[Split, ...], n: int, index: Ints) -> tuple[dict[int, Ints], Ints]:
    """Along a mode with these splits, the coordinate per grid mode that holds each index, and its local index there."""
    coordinates: dict[int, Ints] = {}
    left: int | Ints = n
    for depth, s in enumerate(splits, 1):
        coordinates[s.grid_mode], index = split(s.kind, s.parts, left, index)
        if depth < len(splits):  # indices at different coordinates may leave different extents to the next split
            left = extent(s.kind, s.parts, left, coordinates[s.grid_mode])

    return coordinates, index


@memoized(65536)
def mode_set(splits: tuple[Split, ...], n: int, coordinates: tuple[int, ...]) -> IndexSet:
    """The global indices along one mode that some coordinates hold, as the composition of one set per split."""
    indices = IndexSet.interval(0, n)
    for s, c in zip(splits, coordinates, strict=True):
        positions = local_positions(s.kind, s.parts, len(indices), c)
        indices = positions if len(indices) == n else indices.select(positions)  # among all, positions are indices

    return indices


@memoized(4096)
def local_extents(splits: tuple[Split, ...], n: int) -> tuple[int, ...]:
    """The distinct local extents that the coordinates of a mode's splits leave."""
    extents = [n]
    for s in splits:
        parts = np.arange(s.parts)
        extents = sorted({e for left in extents for e in extent(s.kind, s.parts, left, parts).tolist()})
    return tuple(extents)


def run_starts(splits: tuple[Split, ...], n: int) -> Ints | None:
    """Where the part of each coordinate begins, if each has one and they ascend with the coordinates; else None.

    >>> run_starts((Split(0, Kind("block"), 2), Split(1, Kind("floor"), 3)), 16).tolist()
    [0, 2, 5, 8, 10, 13]
    """
    for depth, s in enumerate(splits):
        tiles = [(s.kind.tile, left) for left in local_extents(splits[:depth], n) if s.kind.tile]
        if s.kind.at or any(tile * s.parts < left for tile, left in tiles):
            return None

    lengths = part_extents(splits, n).reshape(-1)
    starts: Ints = np.cumsum(lengths) - lengths
    return starts


@memoized_arrays(4096, few=1)
def part_extents(splits: tuple[Split, ...], n: int) -> Ints:
    """The local extent at each coordinate of a mode's splits: an array with a mode for each of them."""
    left: Ints = np.array(n)
    for s in splits:
        left = extent(s.kind, s.parts, left[..., None], np.arange(s.parts))
    return left


def check_mode(splits: tuple[Split, ...], n: int) -> None:
    """Refuse splits of a mode whose sizes do not fit its extent."""
    for depth, s in enumerate(splits):
        for left in local_extents(splits[:depth], n):
            check_kind(s.kind, s.parts, left)
