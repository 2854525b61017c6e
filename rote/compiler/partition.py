"""The first part of a certificate: how the groups of a component part what the ranks hold, for all ranks at once.

On both sides the groups have every element that their coordinates hold once, and the groups that one side sends are
those that the other side receives, element by element. What lies where is told by `mode_set` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..layout.distribution import Distribution, mode_set
from ..layout.view import to_tensor
from .movement import Component, Group, groups

__all__ = ["DOES", "RECEIVES", "SENDS", "Ends", "Part", "prove", "rank_at"]

Array = npt.NDArray[Any]
At = tuple[int, ...]
Ends = tuple[Distribution, Distribution]
Rows = dict[At, tuple[Group, ...]]

SENDS, RECEIVES, DOES = 0, 1, ("sends", "receives")  # the two sides of a step: places in pairs such as `Ends`


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component, proved. Each pair of coordinates that have a group has one place in the arrays.

    Attributes:
        rows: on both sides, the groups by own coordinates along the grid modes that split the component there.
        at: on both sides, for each of those grid modes, the coordinates of the pairs.
        sizes: the number of elements in the groups of the pairs.
    """

    rows: tuple[Rows, Rows]
    at: tuple[dict[int, Array], dict[int, Array]]
    sizes: Array


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The groups of one side of a component, by own coordinates, and one after the other in arrays.

    Attributes:
        over: the grid modes that split the component on this side.
        own, peer: per group, the row-major number of the coordinates here, and of those on the other side.
        elements: of all groups, as row-major tensor indices.
    """

    over: At
    rows: Rows
    own: Array
    peer: Array
    sizes: Array
    elements: Array


def prove(ends: Ends, part: Component) -> Part:
    """A component, if the groups of both sides part what their ranks hold, and are the same elements.

    Raises:
        PlanError: they are not; the text names the ranks and the first element.
    """
    given, taken = _cuts(ends, part, SENDS), _cuts(ends, part, RECEIVES)
    keys = taken.peer * len(taken.rows) + taken.own
    order = np.argsort(keys)  # as the sender numbers them
    sizes = taken.sizes[order]
    shift = (np.cumsum(taken.sizes) - taken.sizes)[order] - (np.cumsum(sizes) - sizes)
    elements = taken.elements[np.repeat(shift, sizes) + np.arange(len(taken.elements))]
    sent, awaited = (
        (given.own * len(taken.rows) + given.peer, given.sizes, given.elements),
        (keys[order], sizes, elements),
    )
    if not all(map(np.array_equal, sent, awaited)):
        one, other = _by_pair(*sent), _by_pair(*awaited)
        key = min(key for key in {*one, *other} if one.get(key) != other.get(key))
        y, x = divmod(key, len(taken.rows))
        ranks = f"rank {rank_at(ends[SENDS], given.over, y)} to rank {rank_at(ends[RECEIVES], taken.over, x)}"
        first = _index(ends[SENDS], (one.get(key) or other[key])[0])
        raise PlanError(f"from {ranks} go elements, {first} first, not the same in the same order on both sides")
    shapes = [end.grid.shape for end in ends]
    at = _coordinates(given.own, given.over, shapes[SENDS]), _coordinates(given.peer, taken.over, shapes[RECEIVES])
    return Part((given.rows, taken.rows), at, sizes)


def _cuts(ends: Ends, part: Component, side: int) -> Cuts:
    """The groups of one side, which must have each element that its coordinates hold once."""
    mine, other, modes = ends[side], ends[1 - side], (part.before, part.after)
    shape, over, theirs = mine.grid.shape, _grid_modes(mine, modes[side]), _grid_modes(other, modes[1 - side])
    rows, me = Rows(), [0] * len(shape)
    for at in product(*(range(shape[g]) for g in over)):
        for g, c in zip(over, at, strict=True):
            me[g] = c
        rows[at] = groups(mine, other, part, tuple(me), side == SENDS)
    found = [group for row in rows.values() for group in row]
    places = product(*([(g, c) for c in range(other.grid.shape[g])] for g in theirs))
    numbers = {place: number for number, place in enumerate(places)}
    own = np.repeat(np.arange(len(rows)), [len(row) for row in rows.values()])
    peer = np.array([numbers.get(group.coordinates, -1) for group in found], np.int64)
    sizes = np.array([len(group) for group in found], np.int64)
    pairs, bad = own * len(numbers) + peer, (peer < 0) | (sizes < 1)
    bad[1:] |= pairs[1:] <= pairs[:-1]
    bad |= np.array([[*map(len, group.positions)] != [len(group)] * len(modes[side]) for group in found], bool)
    tables = [_along(mine, mode, _coordinates(np.arange(len(rows)), over, shape), len(rows)) for mode in modes[side]]
    extents = np.array([lengths for lengths, _, _ in tables])
    of = np.repeat(np.arange(len(found)), sizes * (not bad.any()))  # per element, its group
    positions = [
        np.concatenate([of[:0], *(group.positions[k] for group in found if len(of))]) for k in range(len(tables))
    ]
    for p, limits in zip(positions, extents, strict=True):
        bad[of[(p < 0) | (p >= limits[own[of]])]] = True
    for k in np.flatnonzero(bad):
        text = f"rank {rank_at(mine, over, own[k])} {DOES[side]} a group for {found[k].coordinates} twice"
        raise PlanError(f"{text}, or outside its {extents[:, own[k]].tolist()} indices")
    elements = _each_once(f"{DOES[side]} element", mine, over, tables, own[of], positions)
    return Cuts(over, rows, own, peer, sizes, elements)


def _each_once(
    does: str,
    dist: Distribution,
    over: At,
    tables: list[tuple[Array, Array, Array]],
    row: Array,
    positions: list[Array],
) -> Array:
    """The elements at some local positions of some rows, which must be all that these rows hold, each once."""
    extents = np.array([lengths for lengths, _, _ in tables])
    counts = extents.prod(axis=0)
    starts, flat, elements = np.cumsum(counts) - counts, row * 0, row * 0
    for (lengths, begins, added), p in zip(tables, positions, strict=True):
        flat, elements = flat * lengths[row] + p, elements + added[begins[row] + p]
    times = np.bincount(flat + starts[row], minlength=counts.sum())
    for k in np.flatnonzero(times != 1):
        at = int(np.searchsorted(starts + counts, k, "right"))
        local = zip(tables, np.unravel_index(k - starts[at], extents[:, at]), strict=True)
        element = _index(dist, sum(int(added[begins[at] + p]) for (_, begins, added), p in local))
        raise PlanError(f"rank {rank_at(dist, over, at)} {does} {element} in {times[k]} groups; each element is in one")
    return elements


def _along(dist: Distribution, mode: int, where: dict[int, Array], number: int) -> tuple[Array, Array, Array]:
    """What rows of coordinates hold along a mode: how much, and where it begins in the third array.

    That array has what the indices, in local order, add to a row-major tensor index.
    """
    splits, extent = dist.splits[mode], dist.view_shape[mode]
    held = [mode_set(splits, extent, at).to_array() for at in product(*(range(s.parts) for s in splits))]
    index = np.concatenate(held)
    added = index * 0
    for m, along in to_tensor(dist.digits[mode], index).items():
        added += along * prod(max(n, 1) for n in dist.shape[m + 1 :])
    lengths = np.array([len(index) for index in held])
    row = reduce(lambda row, s: row * s.parts + where[s.grid_mode], splits, np.zeros(number, np.int64))
    return lengths[row], (np.cumsum(lengths) - lengths)[row], added


def _by_pair(keys: Array, sizes: Array, elements: Array) -> dict[int, list[int]]:
    ends = np.cumsum(sizes)
    return {int(k): elements[end - n : end].tolist() for k, n, end in zip(keys, sizes, ends, strict=True)}


def _grid_modes(dist: Distribution, modes: At) -> At:
    return tuple(sorted(s.grid_mode for m in modes for s in dist.splits[m]))


def _coordinates(number: Array, over: At, shape: At) -> dict[int, Array]:
    """The coordinates along some grid modes that row-major numbers stand for."""
    found = {}
    for g in reversed(over):
        number, found[g] = np.divmod(number, shape[g])
    return found


def rank_at(dist: Distribution, over: At, number: int) -> int:
    """The rank at the coordinates of a row-major number along some grid modes, at the root or at 0 along the others."""
    at = dict(dist.layout.rooted) | _coordinates(np.array(number), over, dist.grid.shape)
    return dist.grid.rank([int(at.get(g, 0)) for g in range(dist.grid.order)])


def _index(dist: Distribution, element: int) -> At:
    return tuple(element // prod(max(k, 1) for k in dist.shape[m + 1 :]) % max(n, 1) for m, n in enumerate(dist.shape))
