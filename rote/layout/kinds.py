"""The arithmetic of one split: which digit of a local index goes to the coordinate, and what stays.

On the local index l that the splits before have left, a split over p parts with tile b sends the digit `q mod p`,
`q = l div b`, to the coordinate and leaves `(q div p)*b + l mod b`. Balanced block is the start/length formula of
Dalcin et al. 2019, eq. 9 and algorithm 1. Functions take integers or NumPy arrays alike; `n` is the extent.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, counted
from ..grammar.nodes import Kind
from .indexset import IndexSet

__all__ = ["check", "extent", "local_positions", "split"]

Ints = npt.NDArray[np.int64]

_INDICES = "index", "indices"


def check(kind: Kind, p: int, n: int) -> None:
    """Refuse a split of extent `n` over `p` coordinates that its sizes do not allow."""
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
            f"block({','.join(map(str, kind.sizes))}) names {len(kind.sizes)} parts of "
            f"{counted(sum(kind.sizes), *_INDICES)} in all, but {counted(n, *_INDICES)} must be placed on "
            f"{counted(p, 'rank')}; write {sizes}block for balanced parts"
        )


def split(kind: Kind, p: int, n: int | Ints, index: Ints) -> tuple[Ints, Ints]:
    """The coordinate that holds each local index, and the index that stays there.

    >>> coordinate, local = split(Kind("cyclic", (2,)), 3, 10, np.arange(10))
    >>> coordinate.tolist(), local.tolist()
    ([0, 0, 1, 1, 2, 2, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 2, 3, 2, 3])
    """
    b = _tile(kind)
    if b is not None:
        q, offset = np.divmod(index, b)
        turn, coordinate = np.divmod(q, p)
        return coordinate, turn * b + offset
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
    b = _tile(kind)
    if b is not None:
        tiles, left = np.divmod(n, b)
        turns, rest = np.divmod(tiles, p)
        return turns * b + np.where(c < rest, b, np.where(c == rest, left, 0))
    if kind.sizes:
        return np.array(kind.sizes, dtype=np.int64)[c]
    q, r = np.divmod(n, p)
    return q + (c < r)


def local_positions(kind: Kind, p: int, n: int, coordinate: int) -> IndexSet:
    """The set of indices in [0, n) that a coordinate holds.

    >>> print(local_positions(Kind("cyclic", (2,)), 3, 10, 1))
    {2..3, 8..9}
    """
    b = _tile(kind)
    if b is not None:
        return IndexSet.of_runs([(coordinate * b, min((coordinate + 1) * b, n))], b * p, n)
    if kind.sizes:
        start = sum(kind.sizes[:coordinate])
        return IndexSet.interval(start, start + kind.sizes[coordinate])
    q, r = divmod(n, p)
    start = coordinate * q + min(coordinate, r)
    return IndexSet.interval(start, start + q + (coordinate < r))


def _tile(kind: Kind) -> int | None:
    """The tile of a kind that deals out tiles in turn, if it does; parts of no indices deal nothing out in tiles of 1."""
    return max(kind.sizes[0], 1) if kind.name == "cyclic" or len(kind.sizes) == 1 else None
