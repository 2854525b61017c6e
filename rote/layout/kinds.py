"""The arithmetic of splits: which digit of a local index is the coordinate, and which local index remains.

Let l be the local index that the earlier splits have left. A split over p parts with tile b takes the digit `q mod p`,
with `q = l div b`, as the coordinate and leaves `(q div p)*b + l mod b`. If the first tile is at coordinate k, the
coordinate is `(q + k) mod p`. `block(ceil)` has the tile ceil(n/p). Part i of `block(floor)` goes from floor(i*n/p) up
to floor((i+1)*n/p). Balanced block is the start/length formula of Dalcin et al. 2019, eq. 9 and algorithm 1.
Functions take integers or NumPy arrays alike; `n` is the extent.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from ..caches import memoized
from ..errors import LayoutError, counted
from ..grammar.nodes import Kind
from ..grammar.text import kind_text
from .indexset import IndexSet, Ints

__all__ = ["Split", "Stretch", "check_kind", "check_mode", "extent", "local_extents", "local_positions", "locate"]
__all__ += ["mode_set", "split", "stretches"]


_INDICES = "index", "indices"


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


def split(kind: Kind, p: int, n: int | Ints, index: Ints) -> tuple[Ints, Ints]:
    """The coordinate that holds each local index, and its local index there.

    >>> coordinate, local = split(Kind("cyclic", (2,)), 3, 10, np.arange(10))
    >>> coordinate.tolist(), local.tolist()
    ([0, 0, 1, 1, 2, 2, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 2, 3, 2, 3])
    >>> [split(Kind(name), 4, 10, np.arange(10))[0].tolist() for name in ("ceil", "floor")]
    [[0, 0, 0, 1, 1, 1, 2, 2, 2, 3], [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]]
    """
    b = _tile(kind, p, n)
    if b is not None:
        q, offset = np.divmod(index, b)
        turn, coordinate = np.divmod(q, p)
        return (coordinate + kind.at) % p, turn * b + offset
    if kind.name == "floor":
        part = _floor_part(p, n, index)
        return part, index - _floor_start(p, n, part)
    if kind.sizes:
        bounds = np.array([0, *accumulate(kind.sizes)], dtype=np.int64)
        coordinate = np.searchsorted(bounds, index, side="right") - 1
        return coordinate, index - bounds[coordinate]
    q, r = np.divmod(np.asarray(n, dtype=np.int64), p)
    long = index < r * (q + 1)
    coordinate = np.where(long, index // (q + 1), r + (index - r * (q + 1)) // np.maximum(q, 1))
    return coordinate, index - (coordinate * q + np.minimum(coordinate, r))


def extent(kind: Kind, p: int, n: int | Ints, coordinate: int | Ints) -> Ints:
    """The number of local indices at a coordinate.

    >>> extent(Kind("block", ()), 3, 10, np.arange(3)).tolist()
    [4, 3, 3]
    """
    c, n = np.asarray(coordinate, dtype=np.int64), np.asarray(n, dtype=np.int64)
    b = _tile(kind, p, n)
    if b is not None:
        tiles, left = np.divmod(n, b)
        turns, rest = np.divmod(tiles, p)
        turn = (c - kind.at) % p
        return turns * b + np.where(turn < rest, b, np.where(turn == rest, left, 0))
    if kind.name == "floor":
        return _floor_start(p, n, c + 1) - _floor_start(p, n, c)
    if kind.sizes:
        return np.array(kind.sizes, dtype=np.int64)[c]
    q, r = np.divmod(n, p)
    return q + (c < r)


def local_positions(kind: Kind, p: int, n: int, coordinate: int) -> IndexSet:
    """The set of indices in [0, n) that a coordinate holds.

    >>> print(local_positions(Kind("cyclic", (2,)), 3, 10, 1))
    {2..3, 8..9}
    """
    tile = _tile(kind, p, n)
    if tile is not None:
        b = int(tile)
        start = (coordinate - kind.at) % p * b
        return IndexSet.of_runs([(start, min(start + b, n))], b * p, n)
    if kind.name == "floor":
        return IndexSet.interval(coordinate * n // p, (coordinate + 1) * n // p)
    if kind.sizes:
        start = sum(kind.sizes[:coordinate])
        return IndexSet.interval(start, start + kind.sizes[coordinate])
    q, r = divmod(n, p)
    start = coordinate * q + min(coordinate, r)
    return IndexSet.interval(start, start + q + (coordinate < r))


class Stretch(NamedTuple):
    """Indices from `start` up to `stop` that are dealt out in tiles, in turn, to `parts` coordinates from `first` on.

    For index `start + i`, let q be `i div tile`: `q mod parts` is the coordinate, counted from `first` and cyclically,
    and `q div parts` is the tile there. Each coordinate is in one stretch.
    """

    start: int
    stop: int
    first: int
    parts: int
    tile: int


def stretches(kind: Kind, p: int, n: int) -> tuple[Stretch, ...]:
    """The indices below n as stretches.

    >>> stretches(Kind("block", ()), 3, 10)
    (Stretch(start=0, stop=4, first=0, parts=1, tile=4), Stretch(start=4, stop=10, first=1, parts=2, tile=3))
    """
    tile = _tile(kind, p, n)
    if tile is not None:
        return (Stretch(0, n, kind.at, p, int(tile)),) if n else ()
    if kind.name == "floor" and n % p:
        starts = [c * n // p for c in range(p + 1)]
        return tuple(Stretch(a, b, c, 1, b - a) for c, (a, b) in enumerate(pairwise(starts)) if a < b)
    if kind.sizes:
        ends = [*accumulate(kind.sizes)]
        sized = enumerate(zip(ends, kind.sizes, strict=True))
        return tuple(Stretch(end - b, end, c, 1, b) for c, (end, b) in sized if b)
    q, r = divmod(n, p)
    long = Stretch(0, r * (q + 1), 0, r, q + 1)
    return tuple(stretch for stretch in (long, Stretch(long.stop, n, r, p - r, q)) if stretch.start < stretch.stop)


def _tile(kind: Kind, p: int, n: int | Ints) -> Ints | None:
    """The tile of a kind that deals out tiles in turn, 1 if there are no indices; None for other kinds."""
    if kind.name == "ceil":
        return np.asarray(-(-n // p) + (n == 0), dtype=np.int64)
    tiled = kind.name == "cyclic" or len(kind.sizes) == 1
    return np.asarray(max(kind.sizes[0], 1), dtype=np.int64) if tiled else None


def _floor_start(p: int, n: int | Ints, part: Ints) -> Ints:
    """floor(part * n / p), computed by digits because the product may be 2**63 or more."""
    q, r = np.divmod(n, p)
    return part * q + part * r // p


def _floor_part(p: int, n: int | Ints, index: Ints) -> Ints:
    """The part that holds an index: the last one that does not begin after it."""
    near = np.ceil((index + 1) * (p / np.maximum(n, 1))) - 1  # floating point gives this part or a neighbour
    part = near.astype(np.int64)
    part = part - (_floor_start(p, n, part) > index)
    return part + (_floor_start(p, n, part + 1) <= index)


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
