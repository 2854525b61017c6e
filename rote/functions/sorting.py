"""Sorting, searching and taking along a mode. A split mode is made whole, or sorted while split.

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
from typing import Any, Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ..errors import LayoutError
from ..layout.distribution import Distribution
from ..layout.indexset import IndexSet
from ..layout.refine import fitted
from ..runtime.arrays import as_array
from ..runtime.comm.agreement import collective_errors, gathered
from ..runtime.comm.protocol import Comm
from ..runtime.indexed import IndexedMove
from .alignment import plain, replicated, whole_along
from .distributed import Array, Distributed, Ints, T
from .indexing import known, parse_key, read
from .moves import agree_on_call, moved, record_move
from .rearranging import broadcast_to
from .reductions import normal_axis
from .reshaping import over_ranks, reshape
from .rules import family, follows, of_two

__all__ = ["SampleSort", "argsort", "digitize", "has_room", "is_replica", "isin", "searchsorted", "sort"]
__all__ += ["sorting_order", "take", "take_along_axis"]


def _sort(
    name: str,
    x: T,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> T:
    function: Any = np.sort if name == "sort" else np.argsort
    one = np.empty((1,) * len(x.distribution.shape), x.local.dtype)
    result = function(one, axis, kind, order, stable=stable)  # raises NumPy's errors
    if axis is None or result.ndim != one.ndim:  # NumPy gives the indices of one number as a line
        x, axis = reshape(x, -1), 0
    x, mode = plain(x, name), normalize_axis_index(axis, len(x.distribution.shape))

    # Without room, `whole_along` would replicate the mode, or leave ranks without elements: then the mode stays split.
    if has_room(x.distribution, (mode,)):
        x = whole_along(x, (mode,), name)
    # Of equal elements, only the order of zeros of either sign is seen; NumPy keeps it only if a sort is to be stable.
    ordered = name == "argsort" or bool(stable) or kind is not None
    if x.distribution.splits[mode]:
        return _exchanged(x, mode, name, descending, ordered)
    if not ordered:
        block = np.sort(x.local, mode)
        return x._with(np.flip(block, mode).copy() if descending else block)
    if not descending:
        return x._with(function(x.local, mode, kind="stable"))

    # The flipped order of the flipped elements is descending, and stable.
    backwards = np.flip(function(np.flip(x.local, mode), mode, kind="stable"), mode)
    return x._with(backwards if name == "sort" else x.distribution.shape[mode] - 1 - backwards)


@family("sorted", _sort, "sort", np.sort)
def sort() -> None:
    """The elements in ascending order along a mode, or as one line in row-major order if it is None. Collective.

    If the mode is split, another mode is split in its place, if one is long enough. Otherwise no rank holds whole
    lines: ranks sort their elements and exchange runs, at most about 3 n/p of n to each of p, and the result has the
    layout of the tensor.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | None, default -1
        The mode; None takes all elements as one line.
    kind : str, optional
        Checked as by `numpy.sort`. A sort is stable with either, and that of indices always.
    order : None, optional
        Of fields, which tensors do not have.
    descending : bool, default False
        Whether the largest comes first, after any NaN; in ascending order NaN comes last.
    stable : bool, optional
        Checked as by `numpy.sort`. A sort is stable with either, and that of indices always.

    Raises
    ------
    numpy.exceptions.AxisError
        There is no such mode.
    ValueError
        There is no such kind, it is given with `stable`, or an order of fields is given.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> xp.sort(rote.DistTensor.from_global([3, 1, 2], "block[(0)]"), descending=True).to_global()
    array([3, 2, 1])
    """


@family("sorted", _sort, "argsort", np.argsort)
def argsort() -> None:
    """The indices along a mode that sort it; equal elements keep their order.

    Arguments, layout and errors as for `sort`.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | None, default -1
        The mode; None takes all elements as one line.
    kind : str, optional
        Checked as by `numpy.argsort`; a sort is always stable.
    order : None, optional
        None; tensors have no fields.
    descending : bool, default False
        Whether the largest comes first.
    stable : bool, optional
        Checked as by `numpy.argsort`.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> xp.argsort(rote.DistTensor.from_global([3, 1, 2, 1], "block[(0)]")).to_global()
    array([1, 3, 2, 0])
    """


def has_room(dist: Distribution, modes: Collection[int]) -> bool:
    """Whether another mode is long enough to be split in the place of some; of no elements, any is."""
    parts = [prod(s.parts for s in splits) for splits in dist.splits]
    added = prod([parts[mode] for mode in modes])
    return 0 in dist.shape or any(
        n >= part * added for m, (n, part) in enumerate(zip(dist.shape, parts, strict=True)) if m not in modes
    )


def _exchanged(x: T, mode: int, name: str, descending: bool, ordered: bool) -> T:
    """Sort a plain tensor, or its indices, along a mode that stays split. Collective.

    All lines are sorted at once, with the line's number as first key: the k-th element of line j gets place n j + k.
    One line is sorted by its values alone if equal ones need not be `ordered` by their places.
    """
    dist, comm, n = x.distribution, x.comm, x.distribution.shape[mode]
    agree_on_call(comm)
    places = _places(dist, comm.rank, mode, descending)
    values = np.moveaxis(x.local, mode, -1).reshape(-1)
    if is_replica(x):  # it sorts nothing, but gets its elements back in order
        values = values[:0]
    at = places.reshape(-1)[: len(values)]

    # 1. Each rank sorts its elements, and sends each run of them to the rank of these keys.
    lines = prod(dist.shape) // n
    by_value = lines == 1 and not ordered
    if by_value:  # any ascending places serve as the keys that tell equal elements from one another
        values, at = np.sort(values), at[::-1] if descending else at
    else:
        order = sorting_order(_keys(values, at, n, lines))
        values, at = values[order], at[order]
    ranks = SampleSort(_keys(values, at, n, lines), comm)
    nbytes = ranks.received * (values.itemsize + (0 if by_value else at.itemsize))
    record_move(x, nbytes, lambda: f"a sample sort over {comm.size} ranks", name)

    # 2. Each rank merges what it has received: its run of all elements, in order.
    values = ranks(values)
    if by_value:
        values.sort(kind="stable")  # which merges the runs that it finds
        run = values
    else:
        at = ranks(at)
        merged = sorting_order(_keys(values, at, n, lines))
        run = values[merged] if name == "sort" else at[merged] % n
    if name == "argsort" and descending:
        run = n - 1 - run

    # 3. Each rank, a replica too, fetches from the runs what has a place in its block.
    needs = [sets[0] for sets in map(dist.index_sets, range(comm.size))]
    if by_value and len(dist.shape) == 1 and all(need.period == 1 for need in needs):
        return x._on(_cut_anew(x, run, ranks.sizes, needs, descending), dist)

    ranked = over_ranks(x, run, ranks.sizes)
    home = IndexedMove(ranked.distribution, [places.reshape(-1)], comm)
    record_move(ranked, home.received * run.itemsize, lambda: f"an indexed move {ranked.distribution} -> {dist}", name)
    block = np.moveaxis(home(run).reshape(places.shape), -1, mode)
    return x._on(np.ascontiguousarray(block), dist)


def _cut_anew(x: Distributed, run: Array, sizes: Sequence[int], needs: Sequence[IndexSet], descending: bool) -> Array:
    """The stretch of a line that this rank needs, of which it has a run. Collective; ranks send no lists of indices.

        runs    |  of rank 0    |  of rank 1 |  of rank 2   |      sizes, as a sample sort leaves them
        needs   |  of rank 0  |  of rank 1  |  of rank 2    |      the blocks of the layout

    Args:
        needs: per rank, an interval; if `descending`, it counts from the end.
    """
    n, rank = sum(sizes), x.comm.rank
    starts = np.cumsum([0, *sizes])
    ends = np.array([(n - need.stop, n - need.start) if descending else (need.start, need.stop) for need in needs])
    own = np.clip(ends, starts[:-1, None], starts[1:, None])
    received = int((np.diff(ends) - np.diff(own)).max())
    record_move(x, received * run.itemsize, lambda: f"runs of {n} elements to blocks", "sort")

    cuts = np.clip(ends, *starts[rank : rank + 2]) - starts[rank]
    counts = np.diff(np.clip(starts, *ends[rank]))
    stretch = np.empty(int(counts.sum()), run.dtype)
    packed = np.concatenate([run[start:stop] for start, stop in cuts])
    x.comm.alltoallv(packed, np.diff(cuts).reshape(-1).tolist(), stretch, counts.tolist())
    return stretch[::-1].copy() if descending else stretch


def is_replica(x: Distributed) -> bool:
    """Whether another rank has the same block, and counts in the place of this one."""
    split = {split.grid_mode for split in chain(*x.distribution.splits)}
    return any(at for g, at in enumerate(x.distribution.grid.coordinates(x.comm.rank)) if g not in split)


def _keys(values: Array, places: Array, n: int, lines: int) -> list[Array]:
    """The sort keys of elements in lines of length n: line, value and place; no two elements have equal keys."""
    return [values, places] if lines == 1 else [places // n, values, places]


def _places(dist: Distribution, rank: int, mode: int, descending: bool) -> Array:
    """The places of a block's elements if all lines are concatenated; the last mode runs along the lines."""
    n = dist.shape[mode]
    others = list(dist.indices(rank))
    along = others.pop(mode)
    extents = (*dist.shape[:mode], *dist.shape[mode + 1 :])
    lines = np.ravel_multi_index(np.ix_(*others), extents) if others else np.zeros((), np.int64)
    places: Array = n * np.asarray(lines)[..., None] + (n - 1 - along if descending else along)
    return places


# --- searching and taking --------------------------------------------------------------------------------------------


@of_two
@follows("along", np.searchsorted)
def searchsorted(x1: Any, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None) -> Any:
    """The indices at which elements would be inserted into a sorted tensor of order 1, which every rank gets whole.

    Parameters
    ----------
    x1 : DistTensor | array_like
        The sorted tensor or array.
    x2 : DistTensor | array_like
        The elements; the result has their layout.
    side : {'left', 'right'}, default 'left'
        "left" inserts before equal elements, "right" after them.
    sorter : array_like, optional
        The indices that sort `x1`, if it is not sorted.

    Raises
    ------
    LayoutError
        Neither operand is a tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 2, 4]), xp.asarray([3, 0])).to_global()
    array([2, 0])
    """
    values, order = known(x1), known(sorter)
    return _of_each(lambda block: np.searchsorted(values, block, side, order), x1, x2, "searchsorted")


@follows("along", np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of each element's bin, as `numpy.digitize`; every rank gets all bins."""
    edges = known(bins)
    return _of_each(lambda block: np.digitize(block, edges, right), bins, x, "digitize")


@of_two
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

    Parameters
    ----------
    element, test_elements : DistTensor | array_like
        Tensors, arrays or scalars; one is a tensor.
    assume_unique : bool, default False
        As in NumPy; it changes no result, and is not used.
    invert : bool, default False
        Whether to tell which elements are none of them.
    kind : {'sort', 'table'}, optional
        The algorithm of each rank, as in NumPy.

    Raises
    ------
    LayoutError
        Neither argument is a tensor.
    ValueError
        `kind` is "table", and the numbers are not integers.

    Examples
    --------
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
    return replicated(np.asarray(function(as_array(x))), other)


@follows("indexed", np.take)
def take(x: T, /, indices: Any, axis: int | None = None, *, mode: str = "raise") -> T:
    """The elements at some indices along a mode, or in row-major order if it is None, as `numpy.take`.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    indices : DistTensor | array_like
        Integers, the same on all ranks, or a tensor of them; of bools, False is 0 and True is 1.
    axis : int, optional
        The mode; if None, indices count elements in row-major order.
    mode : str, default 'raise'
        "raise" refuses an index out of range, "wrap" takes it modulo the extent, "clip" takes the nearest end.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        There is no such mode.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])).to_global()
    array([7, 5])
    """
    if axis is None:
        x, axis = reshape(x, -1), 0
    shape = x.distribution.shape
    along = normal_axis(axis, len(shape))

    at = known(indices)
    if at is None or isinstance(at, slice):
        raise IndexError(f"indices to take are integers, not {at}\nwrite x[key] for a slice or a new mode")
    if np.asarray(at).dtype.kind == "b":  # no mask, as in NumPy
        at = np.asarray(at, np.int64)

    if mode == "wrap":
        at = np.mod(at, shape[along])
    elif mode == "clip":
        at = np.clip(at, 0, shape[along] - 1)
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")

    key = (*(slice(None),) * along, at)
    elements = read(plain(x, "take"), parse_key(key, shape), "take")
    return elements.copy() if np.may_share_memory(elements.local, x.local) else elements


@follows("along", np.take_along_axis)
def take_along_axis(x: T, indices: Any, /, axis: int | None = -1) -> T:
    """The elements at given indices along a mode, which is made whole; each place of the other modes has its own.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    indices : DistTensor | array_like
        A tensor or an array, the same on all ranks, of the order of x. Along the other modes, x and the indices
        broadcast: their extents are equal, or one is 1.
    axis : int | None, default -1
        The mode; None takes all elements as one line.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]), axis=1).to_global()
    array([[6],
           [7]])
    """
    if axis is None:
        x, axis = reshape(x, -1), 0
    mode = normal_axis(axis, len(x.distribution.shape))
    x = whole_along(x, (mode,), "take_along_axis")
    at = indices if isinstance(indices, Distributed) else replicated(indices, x)
    shape, extents = x.distribution.shape, at.distribution.shape
    if len(extents) != len(shape):
        raise ValueError(f"indices have the order of the tensor, {len(shape)}, not {len(extents)}")

    # All modes but this one broadcast, of the tensor and of the indices.
    rest = np.broadcast_shapes((*shape[:mode], 1, *shape[mode + 1 :]), (*extents[:mode], 1, *extents[mode + 1 :]))
    whole, result = ((*rest[:mode], n, *rest[mode + 1 :]) for n in (shape[mode], extents[mode]))
    if whole != shape:
        x = broadcast_to(x, whole)
    if result != extents:
        at = broadcast_to(at, result)
    target = fitted(x.distribution, result)
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

        # Row r and column s: how many keys rank r sends to rank s.
        counts = np.array(gathered(comm, "sample sort", np.diff(ends).tolist()))
        self._sends: list[int] = counts[comm.rank].tolist()
        self._receives: list[int] = counts[:, comm.rank].tolist()
        self.sizes: list[int] = counts.sum(axis=0).tolist()  # per rank, the number of keys after the exchange

        stay = counts.diagonal()
        self.received: int = int((counts.sum(axis=0) - stay).max())  # the most that any rank receives from others
        self.returned: int = int((counts.sum(axis=1) - stay).max())  # the most that any rank sends to others

    def __call__(self, array: Array) -> Array:
        """Send a value, or a row, with each of this rank's keys; return those received, by source rank, not merged."""
        rest = array.shape[1:]
        sends, receives = ([n * prod(rest) for n in counts] for counts in (self._sends, self._receives))
        arrived = np.empty((sum(self._receives), *rest), array.dtype)
        self._comm.alltoallv(np.ascontiguousarray(array).reshape(-1), sends, arrived.reshape(-1), receives)
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
    number = min(len(keys[0]), comm.size)
    mine = np.arange(number) * len(keys[0]) // max(number, 1)
    of_ranks = gathered(comm, "sample sort", (len(keys[0]), *[key[mine] for key in keys]))
    numbers_of_keys, *columns = zip(*of_ranks, strict=True)
    lengths, samples = np.array(numbers_of_keys), [np.concatenate(column) for column in columns]
    numbers = np.minimum(lengths, comm.size)
    order = sorting_order(samples)
    if not len(order):
        return []

    weights = np.repeat(lengths / np.maximum(numbers, 1), numbers)[order]
    before = np.cumsum(weights) - weights
    targets = np.arange(1, comm.size) * (lengths.sum() / comm.size)
    rows = []
    for place in order[np.searchsorted(before, targets).clip(max=len(order) - 1)]:
        rows.append([sample[place : place + 1] for sample in samples])
    return rows


def _place(keys: Sequence[Array], splitter: Sequence[Array]) -> int:
    """The number of rows of sorted keys before a splitter."""
    low, high = 0, len(keys[0])
    for key, value in zip(keys, splitter, strict=True):
        left, right = (int(np.searchsorted(key[low:high], value, side)[0]) for side in ("left", "right"))
        low, high = low + left, low + right
    return low
