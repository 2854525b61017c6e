"""Diagonals: each rank takes those elements of its block that lie on it, and the others' contributions are none."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...layout.layout import Distribution, Layout
from ..alignment import plain
from ..distributed import Distributed

__all__ = ["diagonal_of"]


def diagonal_of(x: Distributed, rows: int, columns: int, offset: int, cause: str) -> Any:
    """The elements x[…, i, …, i + offset, …] for all rows i, zero where there is no such column. Moves nothing.

    Args:
        x: a tensor.
        rows, columns: two of its modes.
        offset: of the diagonal, above the main one if it is positive.
        cause: the function that needs it.

    Returns:
        A tensor without the mode `columns`: partial over what splits that.
    """
    x = plain(x, cause)
    dist = x.distribution
    rows, columns = (operator.index(mode) % len(dist.shape) for mode in (rows, columns))
    offset = operator.index(offset)
    along, across = dist.indices(x.comm.rank)[rows] + offset, dist.indices(x.comm.rank)[columns]
    order = np.argsort(across, kind="stable")
    places = np.searchsorted(across, along, sorter=order)
    held = np.flatnonzero(places < len(across))
    held = held[across[order[places[held]]] == along[held]]
    chosen = order[places[held]]
    block = np.moveaxis(x.local, (rows, columns), (0, 1))
    result = np.zeros((len(along), *block.shape[2:]), block.dtype)
    result[held] = block[held, chosen]
    lay = dist.layout
    modes = tuple([entries for mode, entries in enumerate(lay.modes) if mode != columns])
    partial = tuple([entry.grid_mode for entry in lay.modes[columns]])
    shape = tuple([n for mode, n in enumerate(dist.shape) if mode != columns])
    place = rows - (columns < rows)
    lies = Distribution(Layout(modes, partial=partial), shape, dist.grid)
    return x._on(np.ascontiguousarray(np.moveaxis(result, 0, place)), lies)
