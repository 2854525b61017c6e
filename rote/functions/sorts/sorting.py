"""Sorting, searching and taking along a mode. A split mode is made whole, or sorted while it stays split."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from math import prod
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ...errors import LayoutError
from ...layout.layout import Distribution
from ...layout.refine import fitted
from ...runtime.comm.collective_errors import collective_errors
from ...runtime.indexed import IndexedMove
from ..alignment import made_whole, plain, replicated
from ..distributed import Array, Distributed
from ..moves import agree_on_call, announce, because, moved
from ..rearranging.indexing import known, read
from ..rearranging.keys import parse_key
from ..rearranging.ordering import over_ranks
from ..rearranging.placing import broadcast_to
from ..rearranging.reshaping import reshape
from ..rules import follows
from .samplesort import SampleSort, sorting_order

__all__ = ["argsort", "digitize", "has_room", "isin", "searchsorted", "sort", "sortable", "take", "take_along_axis"]

T = TypeVar("T", bound=Distributed)


@follows("sorted", np.sort)
def sort(
    x: T,
    /,
    axis: int | None = -1,
    kind: Any = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> T:
    """The elements in ascending order along a mode, or as one line in row-major order if it is None. Collective.

    If the mode is split, another mode is split in its place, if one is long enough. Otherwise no rank holds whole
    lines: ranks sort their elements and exchange runs, at most about 3 n/p of n to each of p, and the result has the
    layout of the tensor.

    Args:
        axis: the mode; None takes all elements as one line.
        kind, order: as in `numpy.sort`; every sort is stable.
        descending: whether the largest comes first, after any NaN; in ascending order NaN comes last.

    Raises:
        numpy.exceptions.AxisError: there is no such mode.

    >>> from rote import DistTensor
    >>> sort(DistTensor.from_global([3, 1, 2], "block[(0)]"), descending=True).to_global()
    array([3, 2, 1])
    """
    x, mode = sortable(x, axis, "sort")
    if x.distribution.splits[mode]:
        return _exchanged(x, mode, "sort", descending)
    if not descending:
        return x._with(np.sort(x.local, mode, kind="stable", order=order))
    return x._with(np.flip(np.sort(np.flip(x.local, mode), mode, kind="stable", order=order), mode))


@follows("sorted", np.argsort)
def argsort(
    x: T,
    /,
    axis: int | None = -1,
    kind: Any = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> T:
    """The indices along a mode that sort it; equal elements keep their order. Arguments and layout as for `sort`.

    Raises:
        AxisError: there is no such mode.
        ValueError: an order of fields is given.

    >>> from rote import DistTensor
    >>> argsort(DistTensor.from_global([3, 1, 2, 1], "block[(0)]")).to_global()
    array([1, 3, 2, 0])
    """
    x, mode = sortable(x, axis, "argsort")
    if x.distribution.splits[mode]:
        return _exchanged(x, mode, "argsort", descending)
    if not descending:
        return x._with(np.argsort(x.local, mode, kind="stable", order=order))
    backwards = np.argsort(np.flip(x.local, mode), mode, kind="stable", order=order)
    return x._with(x.distribution.shape[mode] - 1 - np.flip(backwards, mode))


@follows("along", np.searchsorted)
def searchsorted(x1: Any, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None) -> Any:
    """The indices at which elements would be inserted into a sorted tensor of order 1, which every rank gets whole.

    Args:
        x1: the sorted tensor or array.
        x2: the elements; the result has their layout.
        side: "left" inserts before equal elements, "right" after them.
        sorter: the indices that sort `x1`, if it is not sorted.

    Raises:
        LayoutError: neither operand is a tensor.

    >>> import rote.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 2, 4]), xp.asarray([3, 0])).to_global()
    array([2, 0])
    """
    grid = known(x1), known(sorter)
    return _of_each(lambda block: np.searchsorted(grid[0], block, side, grid[1]), x1, x2, "searchsorted")


@follows("along", np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of each element's bin, as `numpy.digitize`; every rank gets all bins."""
    edges = known(bins)
    return _of_each(lambda block: np.digitize(block, edges, right), bins, x, "digitize")


@follows("along", np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Literal["sort", "table"] | None = None,
) -> Any:
    """Whether each element is one of `test_elements`, as `numpy.isin`; every rank gets all of these.

    Raises:
        LayoutError: neither argument is a tensor.
        ValueError: `kind` is "table", and the numbers are not integers.

    >>> import rote.array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), [3, 1]).to_global()
    array([ True, False,  True])
    """
    others = known(test_elements)
    return _of_each(lambda block: np.isin(block, others, invert=invert, kind=kind), test_elements, element, "isin")


@follows("indexed", np.take)
def take(x: T, /, indices: Any, axis: int | None = None, *, mode: str = "raise") -> T:
    """The elements at some indices along a mode, or in row-major order if it is None, as `numpy.take`.

    Args:
        indices: integers, the same on all ranks, or a tensor of them.
        mode: "raise" refuses an index out of range, "wrap" takes it modulo the extent, "clip" takes the nearest end.

    Raises:
        IndexError: an index is out of range. ValueError: there is no such mode.

    >>> import rote.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])).to_global()
    array([7, 5])
    """
    if axis is None:
        x, axis = reshape(x, -1), 0
    shape = x.distribution.shape
    along = normalize_axis_index(axis, len(shape))
    if mode == "wrap":
        indices = np.mod(indices, shape[along])
    elif mode == "clip":
        indices = np.clip(indices, 0, shape[along] - 1)
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    key = (*(slice(None),) * along, known(indices))
    found = read(plain(x, "take"), parse_key(key, shape), "take")
    return found.copy() if np.may_share_memory(found.local, x.local) else found


@follows("along", np.take_along_axis)
def take_along_axis(x: T, indices: Any, /, axis: int | None = -1) -> T:
    """The elements at given indices along a mode, which is made whole; each place of the other modes has its own.

    Args:
        indices: a tensor of the order of x, whose extents along the other modes are those of x, or 1.

    Raises:
        IndexError: an index is out of range. ValueError: the shapes do not fit.

    >>> import rote.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]), axis=1).to_global()
    array([[6],
           [7]])
    """
    if axis is None:
        x, axis = reshape(x, -1), 0
    mode = normalize_axis_index(axis, len(x.distribution.shape))
    x, given = made_whole(x, (mode,), "take_along_axis"), indices
    if isinstance(indices, np.ndarray):
        given = replicated(indices, x)
    shape, wanted = x.distribution.shape, given.distribution.shape
    if len(wanted) != len(shape):
        raise ValueError(f"indices have the order of the tensor, {len(shape)}, not {len(wanted)}")
    rest = np.broadcast_shapes((*shape[:mode], 1, *shape[mode + 1 :]), (*wanted[:mode], 1, *wanted[mode + 1 :]))
    ends = [(*rest[:mode], each[mode], *rest[mode + 1 :]) for each in (shape, wanted)]
    if ends[0] != shape:
        x = broadcast_to(x, ends[0])
    if ends[1] != wanted:
        given = broadcast_to(given, ends[1])
    target = fitted(x.distribution, ends[1])
    if given.distribution != target:
        given = moved(plain(given, "take_along_axis"), target.layout, "take_along_axis", target.grid)
    agree_on_call(x.comm)
    with collective_errors(x.comm):
        taken = np.take_along_axis(x.local, given.local, mode)
    return x._on(taken, target)


def sortable(x: T, axis: int | None, name: str) -> tuple[T, int]:
    """A plain tensor, and the number of the mode to sort along, made whole if another can be split in its place."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    x, mode = plain(x, name), normalize_axis_index(axis, len(x.distribution.shape))
    if has_room(x.distribution, (mode,)):
        x = made_whole(x, (mode,), name)
    return x, mode


def has_room(dist: Distribution, modes: Collection[int]) -> bool:
    """Whether another mode is long enough to be split in the place of some; of no elements, any is."""
    parts = [prod(s.parts for s in splits) for splits in dist.splits]
    added = prod([parts[mode] for mode in modes])
    return 0 in dist.shape or any(
        n >= part * added for m, (n, part) in enumerate(zip(dist.shape, parts, strict=True)) if m not in modes
    )


def _exchanged(x: T, mode: int, name: str, descending: bool) -> T:
    """Sort a plain tensor, or its indices, along a mode that stays split. Collective.

    All lines are sorted at once, with the line's number as first key: the k-th element of line j gets place n j + k.
    """
    dist, comm, n = x.distribution, x.comm, x.distribution.shape[mode]
    agree_on_call(comm)
    places = _places(dist, comm.rank, mode, descending)
    split = {split.grid_mode for split in chain(*dist.splits)}
    replica = any(at for g, at in enumerate(dist.grid.coordinates(comm.rank)) if g not in split)
    values = np.moveaxis(x.local, mode, -1).reshape(-1)
    if replica:
        values = values[:0]
    own = places.reshape(-1)[: len(values)]
    lines = prod(dist.shape) // n
    order = sorting_order(_keys(values, own, n, lines))
    values, own = values[order], own[order]
    ranks = SampleSort(_keys(values, own, n, lines), comm)
    with because(name):
        nbytes = ranks.received * (values.itemsize + own.itemsize)
        announce(x, nbytes, lambda: f"a sample sort over {comm.size} ranks", name)
    values, own = ranks(values), ranks(own)
    merged = sorting_order(_keys(values, own, n, lines))
    run = values[merged] if name == "sort" else own[merged] % n
    if name == "argsort" and descending:
        run = n - 1 - run
    lying = over_ranks(x, run, ranks.sizes)
    home = IndexedMove(lying.distribution, [places.reshape(-1)], comm)
    with because(name):
        announce(lying, home.received * run.itemsize, lambda: f"an indexed move {lying.distribution} -> {dist}", name)
    block = np.moveaxis(home(run).reshape(places.shape), -1, mode)
    return x._on(np.ascontiguousarray(block), dist)


def _keys(values: Array, places: Array, n: int, lines: int) -> list[Array]:
    """The sort keys of elements in lines of length n: line, value and place; no two elements have equal keys."""
    return [values, places] if lines == 1 else [places // n, values, places]


def _places(dist: Distribution, rank: int, mode: int, descending: bool) -> Array:
    """The places of a block's elements if all lines are concatenated; the last mode runs along the lines."""
    n = dist.shape[mode]
    held = list(dist.indices(rank))
    along = held.pop(mode)
    extents = (*dist.shape[:mode], *dist.shape[mode + 1 :])
    lines = np.ravel_multi_index(np.ix_(*held), extents) if held else np.zeros((), np.int64)
    places: Array = n * np.asarray(lines)[..., None] + (n - 1 - along if descending else along)
    return places


def _of_each(function: Any, other: Any, x: Any, name: str) -> Any:
    """Apply a function to each element of a tensor; of an array or a scalar, the result is replicated."""
    if isinstance(x, Distributed):
        x = plain(x, name)
        return x._with(np.asarray(function(x.local)))
    if not isinstance(other, Distributed):
        raise LayoutError(f"{name} takes a tensor, one at least")
    return replicated(np.asarray(function(replicated(x, other).local)), other)
