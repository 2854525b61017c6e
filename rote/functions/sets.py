"""Operations on sets, whose result is sorted and has each element once; elements of equal value are one.

A sample sort brings equal elements of both to one rank, which counts them. Differences, and indices of common elements,
ask for each element whether it is in the other set, which every rank gets whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .alignment import as_tensor
from .creation import astype
from .indexing import getitem
from .joining import concat
from .reshaping import reshape
from .rules import follows
from .sorting import isin
from .unique import unique, unique_counts

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


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
    values = _distinct(first, assume_unique)
    return getitem(values, isin(values, second, invert=True))


@follows("data-dependent", np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements that are in only one of the two, as `numpy.setxor1d`. Collective.

    >>> from rote import DistTensor
    >>> np.setxor1d(DistTensor.from_global([3, 1, 3], "block[(0)]"), [2, 3]).to_global()
    array([1, 2])
    """
    return _counted(*_tensors(ar1, ar2), assume_unique, 1)


def _distinct(x: Any, assume_unique: bool) -> Any:
    """The elements of a tensor, each once: as they lie, if they are said to be so."""
    return reshape(x, -1) if assume_unique else unique(x)


def _counted(first: Any, second: Any, assume_unique: bool, number: int) -> Any:
    """The elements that are in so many of two sets, in ascending order; a NaN equals no other, as in NumPy."""
    values, counts = unique_counts(concat([_distinct(x, assume_unique) for x in (first, second)]))
    return getitem(values, counts == number)


def _tensors(ar1: Any, ar2: Any) -> tuple[Any, Any]:
    """Both operands as tensors; an array becomes a replicated one."""
    return as_tensor(ar1, ar2), as_tensor(ar2, ar1)
