"""Unique elements of a tensor, from each rank's run and a sort over all ranks; counts of elements; histograms."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import LayoutError
from ...layout.layout import Layout
from ...runtime.comm.cache import gathered
from ..alignment import plain, replicated
from ..distributed import Array, Distributed
from ..moves import agree_on_call, announce, asked, because, moved
from ..rearranging.indexing import known
from ..rearranging.ordering import first_index, in_order, over_ranks
from ..rearranging.reshaping import reshape
from ..reducing.extrema import unordered
from ..rules import follows
from .samplesort import SampleSort, sorting_order

__all__ = ["UniqueAll", "UniqueCounts", "UniqueInverse", "bincount", "histogram", "unique", "unique_all"]
__all__ += ["unique_counts", "unique_inverse", "unique_values"]

T = TypeVar("T", bound=Distributed)


class UniqueAll(NamedTuple):
    """The unique elements, the row-major index of each one's first occurrence, the inverse, and the counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The unique elements and their counts."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The unique elements, and for each element of the tensor its number among them."""

    values: Any
    inverse_indices: Any


@follows("data-dependent", np.unique_all)
def unique_all(x: Distributed, /) -> UniqueAll:
    """The unique elements in ascending order, the index of each one's first occurrence, the inverse, and the counts.

    >>> from rote import DistTensor
    >>> [each.to_global().tolist() for each in unique_all(DistTensor.from_global([3, 1, 3], "block[(0)]"))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return UniqueAll(*_unique(x, True, True, True, False))


@follows("data-dependent", np.unique_counts)
def unique_counts(x: Distributed, /) -> UniqueCounts:
    """The unique elements in ascending order, and their counts; NaNs are all different.

    >>> import rote.array_api as xp
    >>> values, counts = xp.unique_counts(xp.asarray([3, 1, 3]))
    >>> values.to_global(), counts.to_global()
    (array([1, 3]), array([1, 2]))
    """
    return UniqueCounts(*_unique(x, False, False, True, False))


@follows("data-dependent", np.unique_inverse)
def unique_inverse(x: Distributed, /) -> UniqueInverse:
    """The unique elements in ascending order, and each element's number among them, in the tensor's layout.

    >>> import rote.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices.to_global()
    array([1, 0, 1])
    """
    return UniqueInverse(*_unique(x, False, True, False, False))


@follows("data-dependent", np.unique_values)
def unique_values(x: Distributed, /) -> Any:
    """The unique elements in ascending order, in blocks whose sizes follow from the data; NaNs are all different.

    >>> import rote.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).to_global()
    array([1, 3])
    """
    return _unique(x, False, False, False, False)[0]


@follows("data-dependent", np.unique)
def unique(
    ar: Distributed,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The unique elements in ascending order, and optional results, as `numpy.unique` without `axis`."""
    if axis is not None:
        raise LayoutError("unique compares elements, not slices; leave axis=None, or make the tensor whole")
    results = _unique(ar, *map(bool, (return_index, return_inverse, return_counts, equal_nan)))
    return results[0] if len(results) == 1 else tuple(results)


@follows("reduction", np.bincount)
def bincount(x: Distributed, /, weights: Any = None, minlength: int = 0) -> Any:
    """The count of each integer from 0 in a tensor of order 1, replicated, as `numpy.bincount`."""
    x = plain(x, "bincount")
    block = x.local
    integers, ends = block.dtype.kind in "biu", np.array([-1, 0], np.int64)
    if integers and block.size:
        least, most = int(block.min()), int(block.max())
        wrong = least < 0 or most > np.iinfo(np.int64).max
        ends[:] = (0, 1) if wrong else (most, 0)
    agree_on_call(x.comm)
    x.comm.allreduce(ends, "max")  # so that all ranks raise one rank's error
    if ends[1] > 0 or not integers or block.ndim != 1:
        cure = "" if block.ndim == 1 else "\nwrite bincount(x.ravel()), or histogram(x, …), which takes any order"
        raise ValueError(f"bincount counts the integers from 0 on of a tensor of order 1{cure}")
    lying = None if weights is None else _as(weights, x).local
    np.bincount([0], None if lying is None else np.zeros(1, lying.dtype), minlength)  # raises NumPy's errors
    counts = np.bincount(block.astype(np.int64, copy=False), lying, max(minlength, int(ends[0]) + 1))
    kind = np.int64 if weights is None or x.distribution.shape == (0,) else np.float64  # NumPy's; a block may be empty
    return _summed(x, counts.astype(kind, copy=False), "bincount")


@follows("reduction", np.histogram)
def histogram(
    a: Distributed, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The number of elements in each bin, and the edges of the bins, both replicated, as `numpy.histogram`."""
    if a.local.dtype.kind == "c":
        raise unordered("numpy.histogram")
    x, edges = plain(a, "histogram"), known(bins)
    if isinstance(edges, str):
        raise LayoutError(f"histogram takes a number of bins, or their edges, not {edges!r}")
    if np.ndim(edges) == 0:
        if range is None and 0 not in x.distribution.shape:
            kind = x.local.dtype if x.local.dtype.kind == "f" else np.dtype(np.float64)
            own = [x.local.max(), x.local.min()] if x.local.size else [-np.inf, np.inf]
            ends = np.array(own, kind)
            ends[1] *= -1  # only now, as a float: an unsigned integer has no negative
            agree_on_call(x.comm)
            x.comm.allreduce(ends, "max")
            range = (-ends[1], ends[0])
        edges = np.histogram_bin_edges(np.empty(0, x.local.dtype), edges, range)
    lying = None if weights is None else _as(weights, x).local
    counts, edges = np.histogram(x.local, edges, weights=lying)
    total = _summed(x, counts, "histogram")
    if density:
        total = total._with(total.local / np.diff(edges).astype(float) / total.local.sum())
    return total, replicated(np.asarray(edges), total)


def _as(values: Any, x: T) -> Distributed:
    """A tensor, or an array that all ranks have, moved to the layout of the plain tensor x, which has its shape."""
    if not isinstance(values, Distributed):
        values = replicated(values, x)
    if values.distribution.shape != x.distribution.shape:
        raise ValueError(f"weights have the shape of the tensor, {x.distribution.shape}")
    lying: Distributed = moved(values, x.distribution.layout, "weights", x.distribution.grid)
    return lying


def _summed(x: T, counts: Array, name: str) -> T:
    """The sum of all ranks' counts, replicated; as in any reduction, this is a move that the user has asked for."""
    split = tuple([split.grid_mode for split in chain(*x.distribution.splits)])
    partial = Layout(((),), partial=split).on(counts.shape, x.distribution.grid)
    total = x._on(counts, partial)
    return asked(total, Layout(((),)), name) if split else total


def _unique(x: T, index: bool, inverse: bool, counts: bool, equal_nan: bool) -> list[T]:
    """The unique elements and optional results. Collective where they are split.

    Each rank finds the unique elements of its run. A sort over all ranks brings equal ones to one rank.
    """
    flat = in_order(x, "unique")
    values, firsts, numbers, amounts = np.unique(
        flat.local, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan
    )
    firsts += first_index(flat)
    if flat.distribution.splits[0]:
        agree_on_call(x.comm)
        merged, numbers = _merged(flat, values, firsts, numbers, amounts, inverse, equal_nan)
    else:
        merged = [replicated(each, flat) for each in (values, firsts, amounts)]
    results = [merged[0]]
    if index:
        results.append(merged[1])
    if inverse:
        dist = plain(x, "unique").distribution
        results.append(moved(reshape(flat._with(numbers), dist.shape), dist.layout, "unique", dist.grid))
    if counts:
        results.append(merged[2])
    return results


def _merged(
    flat: T, values: Array, firsts: Array, numbers: Array, amounts: Array, inverse: bool, equal_nan: bool
) -> tuple[list[T], Array]:
    """Merge the unique elements of all runs, with their first indices and their amounts.

    The numbers, of each element of this rank's run among its `values`, are returned as those among all unique elements
    if the inverse is wanted.
    """
    dist, comm = flat.distribution, flat.comm
    split = {s.grid_mode for s in dist.splits[0]}
    if any(at for g, at in enumerate(dist.grid.coordinates(comm.rank)) if g not in split):
        amounts = np.zeros_like(amounts)  # replicas are counted once
    undefined = values != values
    if equal_nan and undefined.any():  # send all NaNs to one rank, although complex ones have an order
        keys = [np.where(undefined, values.dtype.type(np.nan), values), np.zeros_like(firsts)]
    else:
        keys = [values, np.where(undefined, firsts, 0)]
    ranks = SampleSort(keys, comm)
    with because("unique"):
        nbytes = ranks.received * (values.itemsize + 16) + ranks.returned * 8 * inverse
        announce(flat, nbytes, lambda: f"a sample sort over {comm.size} ranks", "unique")
    values, firsts, amounts = map(ranks, (values, firsts, amounts))
    order = sorting_order([values, firsts])
    values, firsts, amounts = (each[order] for each in (values, firsts, amounts))
    starts = _starts(values, firsts, equal_nan)
    sizes = gathered(comm, "unique", len(starts))
    if inverse:
        group = np.zeros(len(values), np.int64)
        group[starts[1:]] = 1
        places = np.empty_like(group)
        places[order] = np.cumsum(group) + sum(sizes[: comm.rank])
        numbers = ranks.back(places)[numbers]
    total = np.add.reduceat(amounts, starts) if len(starts) else amounts
    return [over_ranks(flat, each, sizes) for each in (values[starts], firsts[starts], total)], numbers


def _starts(values: Array, firsts: Array, equal_nan: bool) -> npt.NDArray[np.int64]:
    """The index at which each unique element begins among sorted ones.

    NaNs are one element if `equal_nan`; if not, they differ, unless their first indices say that they are replicas.
    """
    undefined = values != values
    same = undefined[1:] & undefined[:-1] & (equal_nan | (firsts[1:] == firsts[:-1]))
    new = (values[1:] != values[:-1]) & ~same
    return np.flatnonzero(np.concatenate([np.ones(min(len(values), 1), bool), new]))
