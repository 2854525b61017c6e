"""The arithmetic of one split: which digit of a local index goes to the coordinate, and what stays.

On the local index l that the splits before have left, a split over p parts with tile b sends the digit `q mod p`,
`q = l div b`, to the coordinate and leaves `(q div p)*b + l mod b`. Balanced block is the start/length formula of
Dalcin et al. 2019, eq. 9 and algorithm 1. Functions take integers or NumPy arrays alike; `n` is the extent.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError, counted
from ..grammar.nodes import Kind
from .indexset import IndexSet

__all__ = ["Stretch", "check", "extent", "local_positions", "split", "stretches"]

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
    if kind.name == "cyclic" or len(kind.sizes) == 1:
        (b,) = kind.sizes
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
    if kind.name == "cyclic" or len(kind.sizes) == 1:
        (b,) = kind.sizes
        full, rest = np.divmod(n, b * p)
        return full * b + np.clip(rest - c * b, 0, b)
    if kind.sizes:
        return np.array(kind.sizes, dtype=np.int64)[c]
    q, r = np.divmod(n, p)
    return q + (c < r)


def local_positions(kind: Kind, p: int, n: int, coordinate: int) -> IndexSet:
    """The set of indices in [0, n) that a coordinate holds.

    >>> print(local_positions(Kind("cyclic", (2,)), 3, 10, 1))
    {2..3, 8..9}
    """
    if kind.name == "cyclic" or len(kind.sizes) == 1:
        (b,) = kind.sizes
        return IndexSet.of_runs([(coordinate * b, min((coordinate + 1) * b, n))], b * p, n)
    if kind.sizes:
        start = sum(kind.sizes[:coordinate])
        return IndexSet.interval(start, start + kind.sizes[coordinate])
    q, r = divmod(n, p)
    start = coordinate * q + min(coordinate, r)
    return IndexSet.interval(start, start + q + (coordinate < r))


class Stretch(NamedTuple):
    """Indices from `start` up to `stop` that are dealt out in tiles, in turn, to `parts` coordinates from `first` on.

    Of index `start + i` the digit `i div tile` is dealt: modulo `parts` it says the coordinate, and divided by them the
    tile there. Each coordinate is in one stretch.
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
    if kind.name == "cyclic" or len(kind.sizes) == 1:
        (b,) = kind.sizes
        return (Stretch(0, n, 0, p, b),)
    if kind.sizes:
        ends = [*accumulate(kind.sizes)]
        sized = enumerate(zip(ends, kind.sizes, strict=True))
        return tuple(Stretch(end - b, end, c, 1, b) for c, (end, b) in sized if b)
    q, r = divmod(n, p)
    long = Stretch(0, r * (q + 1), 0, r, q + 1)
    return tuple(one for one in (long, Stretch(long.stop, n, r, p - r, q)) if one.start < one.stop)
