"""The arithmetic of splits: which digit of a local index is the coordinate, and which local index remains.

Let l be the local index that the earlier splits have left. A split over p parts with tile b takes the digit `q mod p`,
with `q = l div b`, as the coordinate and leaves `(q div p)*b + l mod b`. If the first tile is at coordinate k, the
coordinate is `(q + k) mod p`. `block(ceil)` has the tile ceil(n/p). Part i of `block(floor)` goes from floor(i*n/p) up
to floor((i+1)*n/p). Balanced block is the start/length formula of Dalcin et al. 2019, eq. 9 and algorithm 1.
Functions take integers or NumPy arrays alike; `n` is the extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..caches import memoized
from ..errors import LayoutError, counted
from ..grammar.nodes import BLOCK, Kind
from ..grammar.text import kind_text
from .indexset import EMPTY, IndexSet, Ints

__all__ = ["CEIL", "CONSECUTIVE", "FLOOR", "Split", "Stretch", "block_kind", "check_kind", "check_mode"]
__all__ += ["cyclic_kind", "extent", "least_parts", "local_extents", "local_positions", "locate", "mode_set"]
__all__ += ["near_extent", "split", "stretches"]

_INDICES = "index", "indices"


CEIL, FLOOR = Kind("ceil"), Kind("floor")
CONSECUTIVE = BLOCK, CEIL, FLOOR  # those that cut every extent into one part for each coordinate


def block_kind(*sizes: int) -> Kind:
    """The kind of blocks of one size, or with a size for each part."""
    return Kind("block", sizes)


def cyclic_kind(tile: int, at: int = 0) -> Kind:
    """The kind of tiles that are dealt out cyclically, from a coordinate on."""
    return Kind("cyclic", (tile,), at)


def least_parts(kind: Kind) -> int:
    """The least number of coordinates over which a kind splits."""
    return max(len(kind.sizes), kind.at + 1)


def near_extent(kind: Kind, p: int, n: int) -> int:
    """An extent that a kind splits over p coordinates: n, unless sizes ask for another."""
    if kind.fits:
        return n
    return min(n, kind.tile * p) if len(kind.sizes) == 1 else sum(kind.sizes)


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


def stretches(kind: Kind, p: int, n: int) -> tuple[Stretch, ...]:
    """The indices below n as stretches, which say all about a kind; `Stretch` shows them in a drawing.

    >>> stretches(Kind("block", ()), 3, 10)
    (Stretch(start=0, stop=4, first=0, parts=1, tile=4), Stretch(start=4, stop=10, first=1, parts=2, tile=3))
    """
    return tuple([Stretch(*row) for row in _table(kind, p, n).T.tolist()]) if n else ()


@memoized(4096)
def _table(kind: Kind, p: int, n: int) -> Ints:
    """The stretches as a table with a row for each field of `Stretch`; it has a column also if there are no indices.

    If there are several stretches, each of their coordinates has one tile.
    """
    q, r = divmod(n, p)
    tile = kind.tile
    if kind.name == "ceil" or (r == 0 and not kind.sizes):
        tile = -(-n // p)
    if tile or not n:
        return np.array([[0], [n], [kind.at], [p], [max(tile, 1)]])
    first, parts = np.arange(p), np.ones(p, np.int64)
    if kind.name == "floor":
        bounds = np.arange(p + 1) * q + np.arange(p + 1) * r // p  # c * n // p, whose product may be 2**63 or more
    elif kind.sizes:
        bounds = np.cumsum((0, *kind.sizes))
    else:
        first, parts, bounds = np.array([0, r]), np.array([r, p - r]), np.array([0, r * (q + 1), n])
    start, stop = bounds[:-1], bounds[1:]
    table = np.stack([start, stop, first, parts, (stop - start) // parts])
    return table[:, start < stop]


_START, _FIRST, _TILE = (Stretch._fields.index(name) for name in ("start", "first", "tile"))  # rows of a table


def _column(table: Ints, row: int, values: int | Ints) -> int | Ints:
    """The columns of the stretches in which some values of a row lie; any column for values that lie in none."""
    if table.shape[1] == 1:
        return 0
    if table.shape[1] == 2:  # balanced blocks: a comparison is faster than a search
        return cast("Ints", (values >= table[row, 1]).astype(np.intp))
    return cast("Ints", table[row].searchsorted(values, "right") - 1)


def _each_extent(ask: Callable[..., Any], kind: Kind, p: int, n: Ints, values: int | Ints, answers: int) -> Any:
    """Ask for each of several extents: they are few, since splits cut into few different lengths."""
    if not np.ndim(n):
        return ask(kind, p, int(n), values)
    extents, values = np.broadcast_arrays(n, values)
    distinct = np.unique(extents).tolist()
    if len(distinct) == 1:
        return ask(kind, p, distinct[0], values)
    every = np.empty((answers, *extents.shape), np.int64)
    for extent in distinct:
        here = extents == extent
        every[:, here] = ask(kind, p, extent, values[here])
    return tuple(every) if answers > 1 else every[0]


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
    table = _table(kind, p, n)
    column = _column(table, _START, index)
    start, first, tile = table[_START][column], table[_FIRST][column], table[_TILE][column]
    local = index - start
    coordinate = local // tile
    local -= coordinate * tile  # in place: new memory for every array takes the most time
    if table.shape[1] == 1 and (n - 1) // p >= tile:  # several tiles at a coordinate
        cycle = coordinate // p
        coordinate -= cycle * p
        local += cycle * tile
    coordinate += first
    return coordinate % p if kind.at else coordinate, local


def extent(kind: Kind, p: int, n: int | Ints, coordinate: int | Ints) -> Ints:
    """The number of local indices at a coordinate.

    >>> extent(Kind("block", ()), 3, 10, np.arange(3)).tolist()
    [4, 3, 3]
    """
    if not isinstance(n, int):
        return cast("Ints", _each_extent(extent, kind, p, n, coordinate, 1))
    table = _table(kind, p, n)
    start, stop, first, parts, tile = table[:, _column(table, _FIRST, coordinate)]
    tiles, left = divmod(stop - start, tile)
    cycles, rest = divmod(tiles, parts)
    place = (coordinate - first) % p  # `parts` or more for a coordinate that is in no stretch
    number: Ints = cycles * tile * (place < parts) + np.where(place < rest, tile, np.where(place == rest, left, 0))
    return number


def local_positions(kind: Kind, p: int, n: int, coordinate: int) -> IndexSet:
    """The set of indices in [0, n) that a coordinate holds.

    >>> print(local_positions(Kind("cyclic", (2,)), 3, 10, 1))
    {2..3, 8..9}
    """
    table = _table(kind, p, n)
    start, stop, first, parts, tile = table[:, _column(table, _FIRST, coordinate)].tolist()
    place = (coordinate - first) % p
    start += place * tile
    if place >= parts or start >= stop:
        return EMPTY
    return IndexSet.of_runs([(start, min(start + tile, stop))], parts * tile, stop)


class Split(NamedTuple):
    """One entry on a grid: a grid mode, its kind and its number of coordinates."""

    grid_mode: int
    kind: Kind
    parts: int


def locate(splits: tuple[Split, ...], n: int, index: Ints) -> tuple[dict[int, Ints], Ints]:
    """Along a mode with these splits, the coordinate per grid mode that holds each index, and its local index there."""
    coordinates: dict[int, Ints] = {}
    left: int | Ints = n
    for depth, s in enumerate(splits, 1):
        coordinates[s.grid_mode], index = split(s.kind, s.parts, left, index)
        if depth < len(splits):
            left = extent(s.kind, s.parts, left, coordinates[s.grid_mode])
    return coordinates, index


@memoized(65536)
def mode_set(splits: tuple[Split, ...], n: int, coordinates: tuple[int, ...]) -> IndexSet:
    """The global indices along one mode that some coordinates hold, as the composition of one set per split."""
    held = IndexSet.interval(0, n)
    for s, c in zip(splits, coordinates, strict=True):
        held = held.select(local_positions(s.kind, s.parts, len(held), c))
    return held


@memoized(4096)
def local_extents(splits: tuple[Split, ...], n: int) -> tuple[int, ...]:
    """The distinct local extents that the coordinates of a mode's splits leave."""
    extents = [n]
    for s in splits:
        parts = np.arange(s.parts)
        extents = sorted({e for left in extents for e in extent(s.kind, s.parts, left, parts).tolist()})
    return tuple(extents)


def check_mode(splits: tuple[Split, ...], n: int) -> None:
    """Refuse splits of a mode whose sizes do not fit its extent.

    Raises:
        LayoutError: the sizes of a split do not add up to the extent left for it, or its first tile lies outside.
    """
    for depth, s in enumerate(splits):
        for left in local_extents(splits[:depth], n):
            check_kind(s.kind, s.parts, left)
