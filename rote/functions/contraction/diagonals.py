"""Diagonals: operands in which a letter names several modes.

Only elements whose indices along these modes are equal take part in a contraction, so the first stage is to take them
out. No data moves: a rank that holds index i along all modes of the letter has the element, and the others have zero.

    ii->i on 2x2, from block[(0),(1)]        rows 0..1  [ d0  0  |  .  . ]
                                                        [ .  d1  |  .  . ]        d0 d1 + 0 0
                                             rows 2..3  [ .   .  | d2  0 ]        0  0  + d2 d3
                                                        [ .   .  |  . d3 ]

The result lies as the first mode of the letter does, and is partial over the grid modes that split the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...compiler.movement import movement
from ...grammar.nodes import BLOCK, Entry
from ...layout.distribution import Distribution
from ...layout.indexset import Ints
from ...layout.layout import Layout

__all__ = ["along", "diagonal", "diagonal_in", "distinct", "plain_in", "repeats", "spread", "with_modes"]

Array = npt.NDArray[Any]


def repeats(term: str) -> bool:
    """Whether a letter names several modes."""
    return len({*term}) < len(term)


def distinct(term: str) -> str:
    """Each letter once."""
    return "".join(dict.fromkeys(term))


def plain_in(dist: Distribution) -> Distribution:
    """The distribution to which a tensor moves before its diagonal is taken: without a view, roots, maxima or so."""
    layout = dist.layout
    if layout.view is None and not layout.rooted and (not layout.partial or layout.op == "sum"):
        return dist
    if layout.view is None:
        return Distribution(Layout(layout.modes), dist.shape, dist.grid)

    # A view has no letters for its digits: blocks of the one mode to which least must move take its place.
    entries, order = tuple([Entry(g, BLOCK) for g in range(dist.grid.order)]), len(dist.shape)
    layouts = [Layout(tuple([entries if mode == split else () for mode in range(order)])) for split in range(order)]
    ends = [Distribution(layout, dist.shape, dist.grid) for layout in layouts]
    return min(ends, key=lambda end: movement(dist, end).lower_bound)


def diagonal_in(dist: Distribution, term: str) -> Distribution:
    """The distribution of the elements whose indices along the modes of each letter are equal.

    >>> from ...layout.layout import parse
    >>> print(diagonal_in(parse("block[(0),(1)]").on((4, 4), (2, 2)), "ii").layout)
    block[(0)]+(1)
    """
    return with_modes(dist, [mode for mode, letter in enumerate(term) if letter not in term[:mode]])


def with_modes(dist: Distribution, numbers: Sequence[int]) -> Distribution:
    """The distribution of a diagonal that has some of the modes; it is partial over the splits of the others."""
    layout = dist.layout
    summed = [entry.grid_mode for mode, entries in enumerate(layout.modes) if mode not in numbers for entry in entries]
    modes, shape = tuple([layout.modes[mode] for mode in numbers]), tuple([dist.shape[mode] for mode in numbers])
    return Distribution(Layout(modes, partial=(*layout.partial, *summed)), shape, dist.grid)


def spread(dist: Distribution, term: str, shape: tuple[int, ...]) -> Distribution:
    """A distribution of a tensor whose elements of equal indices lie in `dist`: modes that are left out are whole."""
    entries = iter(dist.layout.modes)
    modes = [next(entries) if letter not in term[:mode] else () for mode, letter in enumerate(term)]
    return Distribution(replace(dist.layout, modes=tuple(modes)), shape, dist.grid)


def diagonal(block: Array, dist: Distribution, rank: int, term: str) -> Array:
    """A rank's block of the elements whose indices along the modes of each letter are equal."""
    indices = [*dist.indices(rank)]
    while repeats(term):
        again = next(mode for mode, letter in enumerate(term) if letter in term[:mode])
        block = along(block, term.index(term[again]), again, indices)
        term = term[:again] + term[again + 1 :]
        del indices[again]
    return np.ascontiguousarray(block)


def along(block: Array, rows: int, columns: int, indices: Sequence[Ints], offset: int = 0) -> Array:
    """The elements of a block whose column is their row plus an offset, or zero, without the mode `columns`.

    Args:
        indices: per mode, the global indices of the block.
    """
    # Per row, its column in the block. A layout may hold indices in any order, so they are looked up in a sorted one.
    targets, across = indices[rows] + offset, indices[columns]
    order = np.argsort(across, kind="stable")
    slots = np.searchsorted(across, targets, sorter=order)
    local = np.flatnonzero(slots < len(across))
    local = local[across[order[slots[local]]] == targets[local]]  # the rows whose column is here, too

    block = np.moveaxis(block, (rows, columns), (0, 1))
    result = np.zeros((len(targets), *block.shape[2:]), block.dtype)
    result[local] = block[local, order[slots[local]]]
    return np.moveaxis(result, 0, rows - (columns < rows))
