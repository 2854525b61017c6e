"""Unique elements of a tensor, from each rank's run and a sort over all ranks; counts of elements; histograms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from ..layout.layout import Layout
from ..runtime.comm.agreement import gathered
from . import reductions
from .alignment import plain, replicated
from .distributed import Array, Distributed
from .moves import agree_on_call, announce, asked, because, moved
from .quantiles import percentile
from .rearranging.indexing import known
from .rearranging.ordering import compressed, first_index, in_order, over_ranks
from .rearranging.reshaping import reshape
from .reductions import unordered
from .rules import follows
from .sorting import SampleSort, sorting_order
from .statistics import mean, std

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
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The unique elements in ascending order, and optional results, as `numpy.unique`. Collective.

    Raises:
        LayoutError: slices along an axis are to be compared, and a mode is split.

    >>> from rote import DistTensor
    >>> np.unique(DistTensor.from_global([[2, 1], [1, 1], [2, 1]], "[(),()]"), axis=0).to_global().tolist()
    [[1, 1], [2, 1]]
    """
    if axis is not None:
        return _unique_slices(plain(ar, "unique"), axis, return_index, return_inverse, return_counts, equal_nan)
    results = _unique(ar, *map(bool, (return_index, return_inverse, return_counts, equal_nan)))
    return results[0] if len(results) == 1 else tuple(results)


def _unique_slices(x: Distributed, axis: int, index: bool, inverse: bool, counts: bool, equal_nan: bool) -> Any:
    """The unique slices along a mode of a tensor that every rank has whole, and optional results."""
    if any(x.distribution.splits):
        whole = Layout(((),) * len(x.distribution.shape))
        raise LayoutError(
            "unique compares slices along an axis only of a tensor that every rank has whole\n"
            f"write numpy.unique(x.redistribute('{whole}'), axis={axis})"
        )
    results: Any = np.unique(x.local, index, inverse, counts, axis, equal_nan=equal_nan)  # type: ignore[call-overload]
    if isinstance(results, tuple):
        return tuple([replicated(each, x) for each in results])
    return replicated(results, x)


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
    x.comm.allreduce_in_place(ends, "max")  # so that all ranks raise one rank's error
    if ends[1] > 0 or not integers or block.ndim != 1:
        hint = "" if block.ndim == 1 else "\nwrite bincount(x.ravel()), or histogram(x, …), which takes any order"
        raise ValueError(f"bincount counts the integers from 0 on of a tensor of order 1{hint}")
    masses = None if weights is None else _weights(weights, x).local
    np.bincount([0], None if masses is None else np.zeros(1, masses.dtype), minlength)  # raises NumPy's errors
    counts = np.bincount(block.astype(np.int64, copy=False), masses, max(minlength, int(ends[0]) + 1))
    kind = np.int64 if weights is None or x.distribution.shape == (0,) else np.float64  # NumPy's; a block may be empty
    return _summed(x, counts.astype(kind, copy=False), "bincount")


@follows("reduction", np.histogram)
def histogram(
    a: Distributed, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The number of elements in each bin, and the edges of the bins, both replicated, as `numpy.histogram`.

    Rules such as `bins="auto"` are applied to the elements of all ranks; "stone" is not among them.
    """
    if a.local.dtype.kind == "c":
        raise unordered("numpy.histogram")
    x, edges = plain(a, "histogram"), known(bins)
    if isinstance(edges, str):
        edges = _number_of_bins(x, edges, range, weights)
    if np.ndim(edges) == 0:
        if range is None and 0 not in x.distribution.shape:
            kind = x.local.dtype if x.local.dtype.kind == "f" else np.dtype(np.float64)
            own = [x.local.max(), x.local.min()] if x.local.size else [-np.inf, np.inf]
            ends = np.array(own, kind)
            ends[1] *= -1  # only now, as a float: an unsigned integer has no negative
            agree_on_call(x.comm)
            x.comm.allreduce_in_place(ends, "max")
            range = (-ends[1], ends[0])
        edges = np.histogram_bin_edges(np.empty(0, x.local.dtype), edges, range)
    masses = None if weights is None else _weights(weights, x).local
    counts, edges = np.histogram(x.local, edges, weights=masses)
    total = _summed(x, counts, "histogram")
    if density:
        total = total._with(total.local / np.diff(edges).astype(float) / total.local.sum())
    return total, replicated(np.asarray(edges), total)


_Width = Callable[[Any, int, float], float]

_WIDTHS: dict[str, _Width] = {
    "sqrt": lambda x, n, spread: spread / np.sqrt(n),
    "sturges": lambda x, n, spread: spread / (np.log2(n) + 1.0),
    "rice": lambda x, n, spread: spread / (2.0 * n ** (1.0 / 3)),
    "scott": lambda x, n, spread: (24.0 * np.pi**0.5 / n) ** (1.0 / 3.0) * float(std(x)),
    "fd": lambda x, n, spread: 2.0 * float(np.subtract(*percentile(x, [75, 25]).to_global())) / n ** (1.0 / 3.0),
    "doane": lambda x, n, spread: _doane(x, n, spread),
    "auto": lambda x, n, spread: _auto(*[_WIDTHS[rule](x, n, spread) for rule in ("fd", "sturges", "sqrt")]),
}
"""The widths of bins that NumPy's rules give, from a tensor, the number of its elements and their range."""


def _number_of_bins(x: Any, rule: str, range: Any, weights: Any) -> int:
    """The number of bins by a rule of `numpy.histogram_bin_edges`, from the elements of all ranks."""
    if rule not in _WIDTHS:
        raise ValueError(f"bins are by one of {', '.join(map(repr, _WIDTHS))}, not {rule!r}")
    if weights is not None:
        raise TypeError("rules for bins are for data without weights\nwrite a number of bins")
    if range is not None:
        x = compressed(x, x._with((x.local >= range[0]) & (x.local <= range[1])), "histogram")
    n = prod(x.distribution.shape)
    if n == 0:
        return 1
    least, most = (float(extreme(x)) for extreme in (reductions.min, reductions.max))
    width = _WIDTHS[rule](x, n, most - least)
    if x.local.dtype.kind in "iu" and 0 < width < 1:
        width = 1
    first, last = range or (least, most)
    return int(np.ceil((last - first) / width)) if width else 1


def _doane(x: Any, n: int, spread: float) -> float:
    """The width by Doane's rule, which corrects that of Sturges by the skewness."""
    deviation = float(std(x))
    if n <= 2 or deviation <= 0:
        return 0.0
    skewness = float(mean(((x - float(mean(x))) / deviation) ** 3))
    expected = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return float(spread / (1.0 + np.log2(n) + np.log2(1.0 + abs(skewness) / expected)))


def _auto(fd: float, sturges: float, sqrt: float) -> float:
    """The width by the rule "auto" of the installed NumPy; older ones have another for equal quartiles."""
    if len(np.histogram_bin_edges([0.0] * 99 + [1.0], "auto")) > 10:
        return min(max(fd, sqrt / 2), sturges)
    return min(fd, sturges) if fd else sturges


def _weights(values: Any, x: T) -> Distributed:
    """A tensor, or an array that all ranks have, moved to the layout of the plain tensor x, which has its shape."""
    if not isinstance(values, Distributed):
        values = replicated(values, x)
    if values.distribution.shape != x.distribution.shape:
        raise ValueError(f"weights have the shape of the tensor, {x.distribution.shape}")
    weights: Distributed = moved(values, x.distribution.layout, "weights", x.distribution.grid)
    return weights


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
    if equal_nan and not (index or inverse or counts) and x.local.dtype.kind != "c":
        return [_unique_alone(plain(x, "unique"))]
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
        with because("unique", owns=True):
            results.append(moved(reshape(flat._with(numbers), dist.shape), dist.layout, "unique", dist.grid))
    if counts:
        results.append(merged[2])
    return results


def _unique_alone(x: T) -> T:
    """The unique elements of a plain tensor, whose order does not matter; ranks hold at most three blocks for it."""
    values = _distinct(x.local.flatten())
    if not any(x.distribution.splits):
        return replicated(values, x)
    agree_on_call(x.comm)
    ranks = SampleSort([values], x.comm)
    with because("unique"):
        nbytes = ranks.received * values.itemsize
        announce(x, nbytes, lambda: f"a sample sort over {x.comm.size} ranks", "unique")
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
