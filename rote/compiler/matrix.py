"""Who sends how much to whom in one movement, for all pairs of ranks at once.

A message is a product of one group per component (see movement.py), so its size is a product of numbers looked up by
the coordinates of its sender and of its receiver; no message is made.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from ..layout.distribution import Distribution
from ..layout.grid import ravel, unravel
from .movement import Component, components, groups, meets

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
        roles = source.role(g), target.role(g)
        meet = np.array([[meets(*roles, op_changes, a, b) for b in range(p)] for a in range(p)])
        found *= meet[at[:, None, g], at[None, :, g]]
    for part in components(source, target):
        senders = sorted({s.grid_mode for m in part.before for s in source.splits[m]})
        receivers = sorted({s.grid_mode for m in part.after for s in target.splits[m]})
        table = _table(source, target, part, senders, receivers)
        found *= table[np.ix_(_numbers(at, senders, grid.shape), _numbers(at, receivers, grid.shape))]
    found.flags.writeable = False
    return found


def _table(
    source: Distribution, target: Distribution, part: Component, senders: list[int], receivers: list[int]
) -> Ints:
    """The sizes of one component's groups, by the numbers of the sender's and of the receiver's coordinates."""
    shape = source.grid.shape
    sides = [[shape[g] for g in modes] for modes in (senders, receivers)]
    table = np.zeros((prod(sides[0]), prod(sides[1])), np.int64)
    for number in range(len(table)):
        me = [0] * len(shape)
        for g, c in zip(senders, unravel(number, sides[0]), strict=True):
            me[g] = c
        for group in groups(source, target, part, tuple(me), sending=True):
            there = dict(group.coordinates)
            table[number, ravel([there[g] for g in receivers], sides[1])] = len(group)
    return table


def _numbers(at: Ints, grid_modes: list[int], shape: tuple[int, ...]) -> Ints:
    """Per rank, the row-major number of its coordinates along some grid modes."""
    number = np.zeros(len(at), np.int64)
    for g in grid_modes:
        number = number * shape[g] + at[:, g]
    return number
