"""Who sends how much to whom in one movement, for all pairs of ranks at once.

A message is a product of one group per component (see movement.py), so its size is a product of numbers looked up by
the coordinates of its sender and of its receiver; no message is made.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution
from .movement import components, meets
from .traffic import sent_sizes

__all__ = ["message_matrix"]

Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=64)
def message_matrix(source: Distribution, target: Distribution) -> Ints:
    """Elements that each rank (row) sends to each rank (column); on the diagonal, those that it keeps. Read-only.

    >>> from rote.layout.layout import parse
    >>> message_matrix(parse("block[(0)]").on(5, 2), parse("[(0)]").on(5, 2)).tolist()
    [[2, 1], [1, 1]]
    """
    grid = source.grid
    at = np.array([grid.coordinates(rank) for rank in range(grid.size)], np.int64).reshape(grid.size, grid.order)
    op_changes = source.layout.op != target.layout.op
    found = np.ones((grid.size, grid.size), np.int64)
    for g, p in enumerate(grid.shape):
        roles = source.roles[g], target.roles[g]
        meet = np.array([[meets(*roles, op_changes, a, b) for b in range(p)] for a in range(p)])
        found *= meet[at[:, None, g], at[None, :, g]]
    for part in components(source, target):
        senders = [at[:, None, s.grid_mode] for m in part.before for s in source.splits[m]]
        receivers = [at[None, :, s.grid_mode] for m in part.after for s in target.splits[m]]
        found *= sent_sizes(source, target, part)[(*senders, *receivers)]
    found.flags.writeable = False
    return found
