"""Unique elements, and unique slices along a mode, with their indices, inverse and counts; and operations on sets.

Each rank finds the unique elements of its run. A sample sort brings equal ones to one rank, which merges them:

    runs on two ranks      2 1 2 7        7 1 3
    unique in each         1 2 7          1 3 7
    sorted over ranks      1 1 2          3 7 7
    merged                 1 2            3 7

The result of an operation on sets is sorted and has each element once; elements of equal value are one. Elements of
both are counted after a sample sort. Differences, and indices of common elements, ask for each element whether it is in
the other set, which every rank gets whole.
"""

from __future__ import annotations

from itertools import compress
from math import prod
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from ..grammar.nodes import BLOCK, Entry
from ..layout.layout import Layout
from ..runtime.comm.agreement import gathered
from .alignment import as_tensor, plain, replicated
from .creation import astype
from .distributed import Array, Distributed, T
from .indexing import getitem
from .joining import concat
from .moves import agree_on_call, attributed_to, moved, record_move
from .reductions import normal_axis
from .reshaping import first_index, in_order, over_ranks, reshape
from .rules import follows, of_one
from .sorting import SampleSort, is_replica, isin, sorting_order

__all__ = ["UniqueAll", "UniqueCounts", "UniqueInverse", "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]
__all__ += ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple, Generic[T]):
    """The unique elements, the row-major index of each one's first occurrence, the inverse, and the counts."""

    values: T
    indices: T
    inverse_indices: T
    counts: T


class UniqueCounts(NamedTuple, Generic[T]):
    """The unique elements and their counts."""

    values: T
    counts: T


class UniqueInverse(NamedTuple, Generic[T]):
    """The unique elements, and for each element of the tensor its number among them."""

    values: T
    inverse_indices: T


@follows("data-dependent", np.unique_all)
def unique_all(x: T, /) -> UniqueAll[T]:
    """The unique elements in ascending order, the index of each one's first occurrence, the inverse, and the counts.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([3, 1, 3], "block[(0)]")
    >>> [part.to_global().tolist() for part in xp.unique_all(x)]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return UniqueAll(*_unique(x, True, False))


@follows("data-dependent", np.unique_counts)
def unique_counts(x: T, /) -> UniqueCounts[T]:
    """The unique elements in ascending order, and their counts; NaNs are all different.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> values, counts = xp.unique_counts(xp.asarray([3, 1, 3]))
    >>> values.to_global(), counts.to_global()
    (array([1, 3]), array([1, 2]))
    """
    values, _, _, counts = _unique(x, False, False)
    return UniqueCounts(values, counts)


@follows("data-dependent", np.unique_inverse)
def unique_inverse(x: T, /) -> UniqueInverse[T]:
    """The unique elements in ascending order, and each element's number among them, in the tensor's layout.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices.to_global()
    array([1, 0, 1])
    """
    values, _, inverse, _ = _unique(x, True, False)
    return UniqueInverse(values, inverse)


@of_one
@follows("data-dependent", np.unique_values)
def unique_values(x: Distributed, /) -> Any:
    """The unique elements in ascending order, in blocks whose sizes follow from the data; NaNs are all different.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).to_global()
    array([1, 3])
    """
    return _unique(x, False, False)[0]


@follows("data-dependent", np.unique)
def unique(
    ar: Distributed,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The unique elements in ascending order, and optional results, as `numpy.unique`. Collective.

    Slices along an axis are compared as whole: they move to blocks along it, unless every rank has the tensor whole.
    `sorted` is as in NumPy and not used: without it any order would be right, and the ascending one is returned.

    >>> from rote import DistTensor
    >>> np.unique(DistTensor.from_global([[2, 1], [1, 1], [2, 1]], "block[(0),()]"), axis=0).to_global().tolist()
    [[1, 1], [2, 1]]
    """
    chosen = (True, bool(return_index), bool(return_inverse), bool(return_counts))
    if axis is not None:
        normal_axis(axis, len(ar.distribution.shape))

    if axis is not None and len(ar.distribution.shape) > 1:  # the elements of a vector are no slices: NaNs are one
        results = _unique_slices(plain(ar, "unique"), axis, chosen, equal_nan)
    elif equal_nan and not any(chosen[1:]) and ar.local.dtype.kind != "c":
        results = [_unique_alone(plain(ar, "unique"))]
    else:
        results = [*compress(_unique(ar, chosen[2], bool(equal_nan)), chosen)]
    return results[0] if len(results) == 1 else tuple(results)


# --- how they are found -----------------------------------------------------------------------------------------------


def _unique_slices(x: T, axis: int, chosen: tuple[bool, bool, bool, bool], equal_nan: bool) -> list[Any]:
    """The unique slices along a mode, and the chosen ones of the other results. Collective where a mode is split.

    Each rank finds the unique slices of a run of them. A sort over all ranks, by all elements of a slice, brings equal
    ones to one rank. As in NumPy, slices with a NaN all differ.
    """
    if not any(x.distribution.splits):
        results: Any = np.unique(x.local, *chosen[1:], axis, equal_nan=equal_nan)  # type: ignore[call-overload]
        return [replicated(result, x) for result in (results if isinstance(results, tuple) else (results,))]

    # 1. Slices move to blocks over all ranks, whole.
    dist, order = x.distribution, len(x.distribution.shape)
    mode = normal_axis(axis, order)
    blocks = tuple([Entry(g, BLOCK) for g, parts in enumerate(dist.grid.shape) if parts > 1])
    target = Layout(tuple([blocks if m == mode else () for m in range(order)]))
    runs = moved(x, target, "unique", hint=f"move it by x.redistribute('{target}') first")
    agree_on_call(x.comm)

    # 2. Each rank finds the unique ones of its run, as rows, and equal ones of all runs become one.
    lines = np.moveaxis(runs.local, mode, 0)
    rest = lines.shape[1:]
    unique_rows: Any = np.unique(lines.reshape(len(lines), prod(rest)), True, True, True, 0)
    rows, firsts, numbers, amounts = unique_rows
    firsts += runs.distribution.index_sets(x.comm.rank)[mode].start
    inverses = [numbers.reshape(-1)] if chosen[2] else []
    (rows, firsts, amounts), inverses, sizes = _merged(runs, rows, firsts, inverses, amounts, False)

    # 3. Slices lie along the mode in the order of the ranks, and numbers as the slices of the tensor do.
    slices = np.ascontiguousarray(np.moveaxis(rows.reshape(len(rows), *rest), 0, mode))
    numbered = None
    if chosen[2]:
        numbered = x._on(inverses[0], Layout((blocks,)).on((dist.shape[mode],), dist.grid))
        with attributed_to("unique", of_result=True):
            numbered = moved(numbered, Layout((dist.layout.modes[mode],)), "unique")
    parts = over_ranks(x, slices, sizes, mode), over_ranks(x, firsts, sizes), numbered, over_ranks(x, amounts, sizes)
    return [*compress(parts, chosen)]


def _unique(x: T, inverse: bool, equal_nan: bool) -> tuple[T, T, Any, T]:
    """The unique elements, first indices, the inverse if it is wanted, and counts. Collective where they are split.

    Each rank finds the unique elements of its run. A sort over all ranks brings equal ones to one rank.
    """
    flat = in_order(x, "unique")
    results: Any = np.unique(flat.local, True, inverse, True, equal_nan=equal_nan)  # type: ignore[call-overload]
    values, firsts, *numbers, amounts = results
    firsts += first_index(flat)

    if flat.distribution.splits[0]:
        agree_on_call(x.comm)
        parts, numbers, sizes = _merged(flat, values, firsts, numbers, amounts, equal_nan)
        merged = [over_ranks(flat, part, sizes) for part in parts]
    else:
        merged = [replicated(array, flat) for array in (values, firsts, amounts)]

    numbered = None
    if inverse:
        dist = plain(x, "unique").distribution
        with attributed_to("unique", of_result=True):
            numbered = moved(reshape(flat._with(*numbers), dist.shape), dist.layout, "unique", dist.grid)
    return merged[0], merged[1], numbered, merged[2]


def _unique_alone(x: T) -> T:
    """The unique elements of a plain tensor, whose order does not matter; ranks hold at most three blocks for it."""
    values = _distinct(x.local.flatten())
    if not any(x.distribution.splits):
        return replicated(values, x)
    agree_on_call(x.comm)
    ranks = SampleSort([values], x.comm)
    nbytes = ranks.received * values.itemsize
    record_move(x, nbytes, lambda: f"a sample sort over {x.comm.size} ranks", "unique")
    values = ranks(values)  # which frees those of this rank
    values = _distinct(values)
    return over_ranks(x, values, gathered(x.comm, "unique", len(values)))


def _distinct(values: Array) -> Array:
    """The distinct elements of an array, which is sorted in place: `numpy.unique` makes a hash table of integers."""
    values.sort()
    new = np.ones(len(values), bool)
    new[1:] = (values[1:] != values[:-1]) & (values[:-1] == values[:-1])  # after the first NaN there are others alone
    return values[new]


def _merged(
    flat: Distributed, values: Array, firsts: Array, numbers: list[Array], amounts: Array, equal_nan: bool
) -> tuple[list[Array], list[Array], list[int]]:
    """Merge the unique elements, or rows, of all runs, with their first indices and their amounts.

    If the inverse is wanted, `numbers` is one array: of each element of this rank's run, its number among `values`. It
    is returned as that among all unique elements.

    Returns:
        This rank's run of the unique elements, with first indices and amounts; the inverse; the lengths of all runs.
    """
    comm = flat.comm
    if is_replica(flat):
        amounts = np.zeros_like(amounts)  # so that elements are counted once
    undefined = _any(values != values)
    if equal_nan and undefined.any():  # send all NaNs to one rank, although complex ones have an order
        keys = [np.where(undefined, values.dtype.type(np.nan), values), np.zeros_like(firsts)]
    else:
        keys = [*_columns(values), np.where(undefined, firsts, 0)]

    ranks = SampleSort(keys, comm)
    item = values.itemsize * prod(values.shape[1:])
    nbytes = ranks.received * (item + 16) + ranks.returned * 8 * len(numbers)
    record_move(flat, nbytes, lambda: f"a sample sort over {comm.size} ranks", "unique")
    values, firsts, amounts = map(ranks, (values, firsts, amounts))
    order = sorting_order([*_columns(values), firsts])
    values, firsts, amounts = values[order], firsts[order], amounts[order]
    starts = _starts(values, firsts, equal_nan)
    sizes = gathered(comm, "unique", len(starts))

    # Each element that was received gets the number of its group, which goes back to the rank that it came from.
    if numbers:
        group = np.zeros(len(values), np.int64)
        group[starts[1:]] = 1
        places = np.empty_like(group)
        places[order] = np.cumsum(group) + sum(sizes[: comm.rank])
        numbers = [ranks.back(places)[numbers[0]]]

    total = np.add.reduceat(amounts, starts) if len(starts) else amounts
    return [values[starts], firsts[starts], total], numbers, sizes


def _columns(values: Array) -> list[Array]:
    """The keys by which elements are sorted, or rows of them."""
    return [values] if values.ndim == 1 else [*values.T]


def _any(flags: Array) -> Array:
    """Of each element, or of each row whether there is one."""
    return flags if flags.ndim == 1 else np.asarray(flags.any(axis=1))


def _starts(values: Array, firsts: Array, equal_nan: bool) -> npt.NDArray[np.int64]:
    """The index at which each unique element begins among sorted ones.

    NaNs are one element if `equal_nan`; if not, they differ, unless their first indices say that they are replicas.
    """
    undefined = _any(values != values)
    same = undefined[1:] & undefined[:-1] & (equal_nan | (firsts[1:] == firsts[:-1]))
    new = _any(values[1:] != values[:-1]) & ~same
    return np.flatnonzero(np.concatenate([np.ones(min(len(values), 1), bool), new]))


# --- operations on sets -----------------------------------------------------------------------------------------------


@follows("data-dependent", np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """The elements of both, as `numpy.union1d`. Collective.

    >>> from rote import DistTensor
    >>> np.union1d(DistTensor.from_global([3, 1, 3], "block[(0)]"), [2, 3]).to_global()
    array([1, 2, 3])
    """
    return unique(concat([*map(unique, _tensors(ar1, ar2))]))


@follows("data-dependent", np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that are in both, as `numpy.intersect1d`, and where they are first if `return_indices`. Collective.

    >>> from rote import DistTensor
    >>> np.intersect1d(DistTensor.from_global([3, 1, 3], "block[(0)]"), [2, 3]).to_global()
    array([3])
    """
    tensors = _tensors(ar1, ar2)
    dtype = np.result_type(*[x.local.dtype for x in tensors])
    first, second = [astype(x, dtype, copy=False) for x in tensors]
    if not return_indices:
        return _counted(first, second, assume_unique, 2)

    values, firsts = unique(first, return_index=True)
    others, seconds = unique(second, return_index=True)
    among, back = isin(values, others), isin(others, values)
    return getitem(values, among), getitem(firsts, among), getitem(seconds, back)


@follows("data-dependent", np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements of the first that are not in the second, as `numpy.setdiff1d`. Collective.

    >>> from rote import DistTensor
    >>> np.setdiff1d(DistTensor.from_global([3, 1, 3], "block[(0)]"), [2, 3]).to_global()
    array([1])
    """
    first, second = _tensors(ar1, ar2)
    values = _members(first, assume_unique)
    return getitem(values, isin(values, second, invert=True))


@follows("data-dependent", np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements that are in only one of the two, as `numpy.setxor1d`. Collective.

    >>> from rote import DistTensor
    >>> np.setxor1d(DistTensor.from_global([3, 1, 3], "block[(0)]"), [2, 3]).to_global()
    array([1, 2])
    """
    return _counted(*_tensors(ar1, ar2), assume_unique, 1)


def _members(x: Any, assume_unique: bool) -> Any:
    """The elements of a tensor, each once: as they lie, if they are said to be so."""
    return reshape(x, -1) if assume_unique else unique(x)


def _counted(first: Any, second: Any, assume_unique: bool, number: int) -> Any:
    """The elements that are in so many of two sets, in ascending order; a NaN equals no other, as in NumPy."""
    values, counts = unique_counts(concat([_members(x, assume_unique) for x in (first, second)]))
    return getitem(values, counts == number)


def _tensors(ar1: Any, ar2: Any) -> tuple[Any, Any]:
    """Both operands as tensors; an array becomes a replicated one."""
    return as_tensor(ar1, ar2), as_tensor(ar2, ar1)
