"""Sorting, searching and taking along a mode. A split mode is made whole, or sorted while it stays split.

A sample sort puts the keys of all ranks in ascending order, a run of them on each rank and all of them on none
(sorting by regular sampling: Shi and Schaeffer 1992):

    each rank sorts its keys     1 4 7 8            2 3 5 9
    p regular samples of each    1   7              2   5        all ranks sort them: 1 2 5 7
    p - 1 splitters cut keys     1 4 | 7 8          2 3 | 5 9    at 5
    one part to each rank        1 4   2 3          7 8   5 9    to be merged there
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from math import prod
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.refine import fitted
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Comm
from ..runtime.indexed import IndexedMove
from .alignment import made_whole, plain, replicated
from .distributed import Array, Distributed
from .moves import agree_on_call, announce, because, moved
from .rearranging.indexing import known, parse_key, read
from .rearranging.ordering import over_ranks
from .rearranging.placing import broadcast_to
from .rearranging.reshaping import reshape
from .rules import family, follows

__all__ = ["SampleSort", "argsort", "digitize", "has_room", "isin", "searchsorted", "sort", "sorting_order", "take"]
__all__ += ["take_along_axis"]

Ints = npt.NDArray[np.int64]
T = TypeVar("T", bound=Distributed)


def _sort(
    name: str,
    x: T,
    /,
    axis: int | None = -1,
    kind: Any = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> T:
    if axis is None:
        x, axis = reshape(x, -1), 0
    x, mode = plain(x, name), normalize_axis_index(axis, len(x.distribution.shape))
    if has_room(x.distribution, (mode,)):
        x = made_whole(x, (mode,), name)
    if x.distribution.splits[mode]:
        return _exchanged(x, mode, name, descending)
    function: Any = np.sort if name == "sort" else np.argsort
    if not descending:
        return x._with(function(x.local, mode, kind="stable", order=order))
    # The flipped order of the flipped elements is descending, and stable.
    backwards = np.flip(function(np.flip(x.local, mode), mode, kind="stable", order=order), mode)
    return x._with(backwards if name == "sort" else x.distribution.shape[mode] - 1 - backwards)


@follows("sorted", np.sort)
@family(_sort)
def sort() -> None:
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


@follows("sorted", np.argsort)
@family(_sort)
def argsort() -> None:
    """The indices along a mode that sort it; equal elements keep their order. Arguments and layout as for `sort`.

    Raises:
        AxisError: there is no such mode.
        ValueError: an order of fields is given.

    >>> from rote import DistTensor
    >>> argsort(DistTensor.from_global([3, 1, 2, 1], "block[(0)]")).to_global()
    array([1, 3, 2, 0])
    """


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
    ranked = over_ranks(x, run, ranks.sizes)
    home = IndexedMove(ranked.distribution, [places.reshape(-1)], comm)
    with because(name):
        announce(ranked, home.received * run.itemsize, lambda: f"an indexed move {ranked.distribution} -> {dist}", name)
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


# --- searching and taking --------------------------------------------------------------------------------------------


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


def _of_each(function: Any, other: Any, x: Any, name: str) -> Any:
    """Apply a function to each element of a tensor; of an array or a scalar, the result is replicated."""
    if isinstance(x, Distributed):
        x = plain(x, name)
        return x._with(np.asarray(function(x.local)))
    if not isinstance(other, Distributed):
        raise LayoutError(f"{name} takes a tensor, one at least")
    return replicated(np.asarray(function(replicated(x, other).local)), other)


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
    x, at = made_whole(x, (mode,), "take_along_axis"), indices
    if isinstance(indices, np.ndarray):
        at = replicated(indices, x)
    shape, extents = x.distribution.shape, at.distribution.shape
    if len(extents) != len(shape):
        raise ValueError(f"indices have the order of the tensor, {len(shape)}, not {len(extents)}")
    rest = np.broadcast_shapes((*shape[:mode], 1, *shape[mode + 1 :]), (*extents[:mode], 1, *extents[mode + 1 :]))
    ends = [(*rest[:mode], each[mode], *rest[mode + 1 :]) for each in (shape, extents)]
    if ends[0] != shape:
        x = broadcast_to(x, ends[0])
    if ends[1] != extents:
        at = broadcast_to(at, ends[1])
    target = fitted(x.distribution, ends[1])
    if at.distribution != target:
        at = moved(plain(at, "take_along_axis"), target.layout, "take_along_axis", target.grid)
    agree_on_call(x.comm)
    with collective_errors(x.comm):
        taken = np.take_along_axis(x.local, at.local, mode)
    return x._on(taken, target)


# --- sample sort -----------------------------------------------------------------------------------------------------


def sorting_order(keys: Sequence[Array]) -> Ints:
    """The indices that sort rows of keys by the first key, then by the next, and so on; NaN sorts after all numbers.

    >>> sorting_order([np.array([2, 1, 2]), np.array([5, 6, 4])]).tolist()
    [1, 2, 0]
    """
    order: Ints = np.lexsort(tuple(reversed(keys)))
    return order


class SampleSort:
    """An exchange of sorted keys after which the runs of keys ascend with the ranks. Collective.

    If all n keys differ, a rank receives at most about 3 n/p of them, however unevenly they lie. While it cuts its own
    keys, it also holds some p² samples. Rows of equal keys go to one rank. Keys are arrays of one length, sorted as by
    `sorting_order`, the most significant first.

    >>> from rote import run
    >>> def program(comm):
    ...     keys = np.array([[1, 4, 7, 8], [2, 3, 5, 9]][comm.rank])
    ...     return SampleSort([keys], comm)(keys).tolist()
    >>> run(program, ranks=2)
    [[1, 4, 2, 3], [7, 8, 5, 9]]
    """

    __slots__ = ("_comm", "_receives", "_sends", "received", "returned", "sizes")

    def __init__(self, keys: Sequence[Array], comm: Comm) -> None:
        self._comm = comm
        cuts = [_place(keys, splitter) for splitter in _splitters(keys, comm)]
        ends = [0, *(cuts or [0] * (comm.size - 1)), len(keys[0])]
        counts = _gathered(np.diff(np.array(ends)), comm).reshape(comm.size, comm.size)
        self._sends: list[int] = counts[comm.rank].tolist()
        self._receives: list[int] = counts[:, comm.rank].tolist()
        self.sizes: list[int] = counts.sum(axis=0).tolist()  # per rank, the number of keys after the exchange
        own = counts.diagonal()
        self.received: int = int((counts.sum(axis=0) - own).max())  # the most that any rank receives from others
        self.returned: int = int((counts.sum(axis=1) - own).max())  # the most that any rank sends to others

    def __call__(self, array: Array) -> Array:
        """Send one value with each of this rank's keys; return those received, by source rank and not merged."""
        arrived = np.empty(sum(self._receives), array.dtype)
        self._comm.alltoallv(np.ascontiguousarray(array), self._sends, arrived, self._receives)
        return arrived

    def back(self, array: Array) -> Array:
        """Return values to the ranks from which their keys came: the inverse of the call. Collective."""
        arrived = np.empty(sum(self._sends), array.dtype)
        self._comm.alltoallv(np.ascontiguousarray(array), self._receives, arrived, self._sends)
        return arrived


def _splitters(keys: Sequence[Array], comm: Comm) -> list[list[Array]]:
    """The rows of keys that cut the keys of all ranks into one part per rank; none if there are no keys.

    A sample stands for the keys up to the next sample of its rank, so samples of ranks with more keys weigh more.
    """
    lengths = _gathered(np.array([len(keys[0])]), comm)
    numbers = np.minimum(lengths, comm.size)
    mine = np.arange(numbers[comm.rank]) * len(keys[0]) // max(numbers[comm.rank], 1)
    samples = [_gathered(key[mine], comm, numbers.tolist()) for key in keys]
    order = sorting_order(samples)
    weights = np.repeat(lengths / np.maximum(numbers, 1), numbers)[order]
    before = np.cumsum(weights) - weights
    wanted = np.arange(1, comm.size) * (lengths.sum() / comm.size)
    if not len(order):
        return []
    rows = []
    for place in order[np.searchsorted(before, wanted).clip(max=len(order) - 1)]:
        rows.append([sample[place : place + 1] for sample in samples])
    return rows


def _place(keys: Sequence[Array], splitter: Sequence[Array]) -> int:
    """The number of rows of sorted keys before a splitter."""
    low, high = 0, len(keys[0])
    for key, value in zip(keys, splitter, strict=True):
        left, right = (int(np.searchsorted(key[low:high], value, side)[0]) for side in ("left", "right"))
        low, high = low + left, low + right
    return low


def _gathered(array: Array, comm: Comm, numbers: Sequence[int] | None = None) -> Array:
    """The concatenated arrays of all ranks, of the lengths `numbers`, or all of this one's length."""
    counts = [len(array)] * comm.size if numbers is None else list(numbers)
    result = np.empty(sum(counts), array.dtype)
    comm.allgatherv(np.ascontiguousarray(array), result, counts)
    return result
