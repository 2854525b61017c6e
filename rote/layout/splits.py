"""The splits of one mode, the outermost first: what each coordinate holds, and which coordinate holds an index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..grammar.nodes import Kind
from . import kinds
from .indexset import IndexSet

__all__ = ["Split", "check_mode", "local_extents", "locate", "mode_set"]

Ints = npt.NDArray[np.int64]


class Split(NamedTuple):
    """One entry on a grid: a grid mode, its kind and its number of coordinates."""

    grid_mode: int
    kind: Kind
    parts: int


def locate(splits: tuple[Split, ...], extent: int, index: Ints) -> tuple[dict[int, Ints], Ints]:
    """Along a mode with these splits: the coordinate per grid mode that holds each index, and its place there."""
    coordinates: dict[int, Ints] = {}
    left: int | Ints = extent
    for depth, s in enumerate(splits, 1):
        coordinates[s.grid_mode], index = kinds.split(s.kind, s.parts, left, index)
        if depth < len(splits):
            left = kinds.extent(s.kind, s.parts, left, coordinates[s.grid_mode])
    return coordinates, index


@memoized(65536)
def mode_set(splits: tuple[Split, ...], extent: int, coordinates: tuple[int, ...]) -> IndexSet:
    """The global indices along one mode that some coordinates hold: refinement is composition of index sets."""
    held = IndexSet.interval(0, extent)
    for s, c in zip(splits, coordinates, strict=True):
        held = held.select(kinds.local_positions(s.kind, s.parts, len(held), c))
    return held


@memoized(4096)
def local_extents(splits: tuple[Split, ...], extent: int) -> tuple[int, ...]:
    """The distinct local extents that the coordinates of a mode's splits leave."""
    extents = [extent]
    for s in splits:
        extents = np.unique([kinds.extent(s.kind, s.parts, n, np.arange(s.parts)) for n in extents]).tolist()
    return tuple(extents)


def check_mode(splits: tuple[Split, ...], extent: int) -> None:
    """Refuse splits of a mode whose sizes do not fit its extent.

    Raises:
        LayoutError: the sizes of one do not add up to what is left there, or its first tile lies outside.
    """
    for depth, s in enumerate(splits):
        for n in local_extents(splits[:depth], extent):
            kinds.check_kind(s.kind, s.parts, n)
