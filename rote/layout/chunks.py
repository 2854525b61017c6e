"""Conversion between the sizes of the chunks of a mode and the kind that deals them out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from ..errors import LayoutError, counted
from ..grammar.nodes import Kind
from . import kinds
from .chain import BLOCKS
from .grid import integers
from .kinds import Split, mode_set

__all__ = ["chunk_sizes", "dealt", "parts_in_turn", "tile_in_turn"]


def chunk_sizes(chunks: Iterable[int], mode: int) -> tuple[int, ...]:
    """The sizes of the chunks of a mode; without chunks, one of size 0."""
    try:
        return integers(chunks, least=0) or (0,)
    except (TypeError, ValueError):
        raise LayoutError(
            f"the chunks of mode {mode} are sizes, integers of 0 or more, not {chunks!r}\n"
            "write x.compute_chunk_sizes() first where Dask does not know them"
        ) from None


def dealt(sizes: tuple[int, ...], p: int, mode: int) -> Kind:
    """The kind, in its shortest form, that deals chunks of these sizes to p coordinates in turn."""
    tile, extent = max(sizes), sum(sizes)
    if len(sizes) > p:
        if any(size != tile for size in sizes[:-1]):
            raise LayoutError(
                f"mode {mode} has {len(sizes)} chunks of sizes {sizes} for {counted(p, 'rank')}, which no layout deals "
                "in turn\nrechunk into equal ones, or give each chunk a rank of its own: grid=None"
            )
        return Kind("cyclic", (max(tile, 1),))
    lengths = (*sizes, *(0,) * (p - len(sizes)))
    candidates: list[Kind] = [*BLOCKS]
    if 0 < extent <= p * tile:
        candidates.append(Kind("block", (tile,)))
    for kind in candidates:
        if tuple(kinds.extent(kind, p, extent, np.arange(p)).tolist()) == lengths:
            return kind
    return Kind("block", lengths)


def parts_in_turn(splits: tuple[Split, ...], extent: int) -> tuple[int, ...] | None:
    """The sizes of the parts of a mode, in the order of its coordinates, or None if the parts are not consecutive."""
    sizes, end = [], 0
    for coordinates in product(*(range(split.parts) for split in splits)):
        held = mode_set(splits, extent, coordinates)
        if held and (held.start != end or held.stop - held.start != len(held)):
            return None
        sizes.append(len(held))
        end += len(held)
    return tuple(sizes)


def tile_in_turn(splits: tuple[Split, ...], extent: int) -> Kind | None:
    """The equivalent cyclic kind of a mode, or None if it has several splits or tiles of several sizes."""
    if not splits or not extent:
        return Kind("cyclic", (max(extent, 1),))
    if len(splits) > 1:
        return None
    (split,) = splits
    first = kinds.stretches(split.kind, split.parts, extent)[0]
    kind = Kind("cyclic", (first.tile,), first.first)
    for c in range(split.parts):
        held = kinds.local_positions(split.kind, split.parts, extent, c)
        if held != kinds.local_positions(kind, split.parts, extent, c):
            return None
    return kind
