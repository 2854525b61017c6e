"""Tensors from Dask arrays: each rank computes its own part, and each chunk is computed once.

Dask is not imported here: an array of it is known by its graph and its chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.step import as_dtype
from ..errors import RoteError
from ..functions.moves import redistributed
from ..layout.distribution import Distribution
from ..layout.grid import divisors
from ..layout.indexset import selection
from ..layout.layout import Layout
from ..runtime.comm.agreement import collective_errors, from_root
from ..runtime.comm.resolve import as_comm
from ..runtime.placement import GridLike, new_block, place, same_everywhere
from .tensor import DistTensor

__all__ = ["from_dask"]

Ints = npt.NDArray[np.int64]
Chunks = tuple[tuple[int, ...], ...]


def from_dask(array: Any, layout: Layout | str, comm: object | None = None, grid: GridLike = None) -> DistTensor:
    """A tensor from a Dask array, of which each rank computes its own part. Collective.

    Each chunk is computed by one rank. If blocks of the layout do not end where chunks end, ranks compute whole chunks,
    as evenly as the chunks allow, and a compiled plan moves them into the layout, which is no implicit move. What
    several chunks need, each rank that has one of them computes for itself.

    Parameters
    ----------
    array : DistTensor | array_like
        A Dask array, the same on all ranks.
    layout : Layout | str
        As in `DistTensor.from_global`.
    comm : object, optional
        As in `DistTensor.from_global`.
    grid : Grid | Sequence[int] | int, optional
        As in `DistTensor.from_global`.

    Raises
    ------
    TypeError
        `array` is no Dask array.
    RoteError
        Dask does not know the sizes of its chunks.
    LayoutError
        The layout does not fit, or ranks give different arrays.

    Examples
    --------
    >>> import dask.array, rote
    >>> d = dask.array.arange(12, chunks=3).reshape(4, 3)
    >>> rote.from_dask(d + 1, "block[(),(0)]").to_global()[3].tolist()
    [10, 11, 12]
    """
    ranks = as_comm(comm)
    with collective_errors(ranks):
        if not hasattr(array, "__dask_graph__") or not hasattr(array, "chunks"):
            raise TypeError(f"from_dask takes a Dask array, not {type(array).__name__}\nwrite DistTensor.from_global")
        if any(size != size for sizes in array.chunks for size in sizes):
            raise RoteError(f"the Dask array has chunks of unknown size: {array.chunks}\ncall d.compute_chunk_sizes()")

        dtype, target = as_dtype(array.dtype), place(array.shape, layout, ranks, grid)
    same_everywhere(ranks, target, dtype)

    if not array.shape:
        value = from_root(ranks, lambda: np.asarray(array.compute(), dtype))
        return DistTensor.from_global(value, layout, ranks, grid)

    owned, even = _without_replicas(target), _of_whole_chunks(array.chunks, ranks.size)
    sizes = [prod(dist.local_shape(ranks.rank)) for dist in (owned, even)]
    told = ranks.allgather_object((_has_whole_chunks(owned, ranks.rank, array.chunks), *sizes))

    # Where ranks have whole chunks, each computes its own, unless those that get replicas would have nothing to do.
    whole, mine, others = zip(*told, strict=True)
    source = owned if all(whole) and (owned == target or max(mine) <= max(others)) else even
    same_everywhere(ranks, source, dtype)

    block = new_block(source, ranks.rank, dtype)
    with collective_errors(ranks):
        if block.size:
            block[...] = _part(array, source.indices(ranks.rank)).compute()
    x = DistTensor._wrap(block, source, ranks)
    return x if source == target else redistributed(x, target.layout, "rote.from_dask", target.grid)


def _part(array: Any, indices: Sequence[Ints]) -> Any:
    """The elements of a Dask array at some indices of each mode, in tiles as in runs."""
    for mode, along in enumerate(indices):
        array = array[(slice(None),) * mode + selection([along])]
    return array


def _without_replicas(dist: Distribution) -> Distribution:
    """The distribution that has of several replicas the one at coordinate 0."""
    replicas = [g for g, parts in enumerate(dist.grid.shape) if parts > 1 and dist.roles[g].name == "replicated"]
    rooted = (*dist.layout.rooted, *[(g, 0) for g in replicas])
    return replace(dist, layout=replace(dist.layout, rooted=rooted))


def _has_whole_chunks(dist: Distribution, rank: int, chunks: Chunks) -> bool:
    """Whether a rank's block has all or nothing of each chunk."""
    if dist.layout.view is not None or dist.partial:
        return False

    for indices, sizes in zip(dist.indices(rank), chunks, strict=True):
        counts = np.diff(np.searchsorted(indices, (0, *accumulate(sizes))))
        if not np.all((counts == 0) | (counts == sizes)):
            return False
    return True


def _of_whole_chunks(chunks: Chunks, ranks: int) -> Distribution:
    """A distribution in blocks of whole chunks, over a grid that has most parts where there are most chunks.

    >>> print(_of_whole_chunks(((4, 4, 2), (6,)), 2))
    block(4,6)[(0),()] on (10, 6), grid 2
    """
    parts = [1] * len(chunks)
    left = ranks if chunks else 1
    while left > 1:
        prime = divisors(left)[1]
        mode = max(range(len(chunks)), key=lambda m: len(chunks[m]) / parts[m])
        parts[mode], left = parts[mode] * prime, left // prime

    # Along each mode, blocks end at the chunks that end nearest to equal parts.
    blocks = []
    for sizes, count in zip(chunks, parts, strict=True):
        ends = np.cumsum((0, *sizes))
        cuts = [int(ends[np.abs(ends - ends[-1] * k / count).argmin()]) for k in range(count + 1)]
        blocks.append(tuple(np.diff(cuts).tolist()))
    return Distribution.from_chunks(blocks)
