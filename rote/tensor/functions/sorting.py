"""Sorting, searching and taking along a mode, which is made whole first where it is split."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ...errors import LayoutError
from ...layout.layout import Layout
from ..distributed import Array, Distributed
from ..moves import moved
from .alignment import made_whole, plain
from .fetching import fitted
from .indexing import known, read
from .keys import parse_key
from .placing import broadcast_to
from .reshaping import reshape
from .rules import follows

__all__ = ["argsort", "digitize", "isin", "searchsorted", "sort", "take", "take_along_axis"]

T = TypeVar("T", bound=Distributed)


@follows("along", np.sort)
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
    """The elements in ascending order along a mode, which is made whole; in row-major order of all if it is None.

    Args:
        kind, order: as `numpy.sort` takes them; every sort is stable.

    >>> from rote import DistTensor
    >>> sort(DistTensor.from_global([3, 1, 2], "block[(0)]"), descending=True).to_global()
    array([3, 2, 1])
    """
    x, mode = _along(x, axis, "sort")
    block = np.sort(x.local, mode, kind="stable", order=order)
    return x._with(np.flip(block, mode) if descending else block)


@follows("along", np.argsort)
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
    """The indices along a mode that sort it; equal elements keep their order. Arguments as for `sort`.

    >>> import rote.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2])).to_global()
    array([1, 2, 0])
    """
    x, mode = _along(x, axis, "argsort")
    if not descending:
        return x._with(np.argsort(x.local, mode, kind="stable", order=order))
    backwards = np.argsort(np.flip(x.local, mode), mode, kind="stable", order=order)
    return x._with(x.distribution.shape[mode] - 1 - np.flip(backwards, mode))


@follows("along", np.searchsorted)
def searchsorted(x1: Any, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Any = None) -> Any:
    """The places at which elements would be put into a sorted tensor of order 1, which every rank gets whole.

    Args:
        x1: the sorted tensor or array.
        x2: the elements; the result lies as they do.
        side: before ("left") or behind ("right") those that are equal.
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
    """The bins to which elements belong, as `numpy.digitize`; the bins are made whole."""
    edges = known(bins)
    return _of_each(lambda block: np.digitize(block, edges, right), bins, x, "digitize")


@follows("along", np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among others, of which every rank gets all, as `numpy.isin`."""
    others = known(test_elements)
    return _of_each(lambda block: np.isin(block, others, invert=invert), test_elements, element, "isin")


@follows("indexed", np.take)
def take(x: T, indices: Any, /, axis: int | None = None) -> T:
    """The elements at some indices along a mode, or of the row-major order if it is None, as `numpy.take`.

    Args:
        indices: integers, the same on all ranks, or a tensor of them.

    >>> import rote.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])).to_global()
    array([7, 5])
    """
    if axis is None:
        x, axis = reshape(x, -1), 0
    shape = x.distribution.shape
    mode = normalize_axis_index(axis, len(shape))
    key = (*(slice(None),) * mode, known(indices))
    return read(plain(x, "take"), parse_key(key, shape), "take")


@follows("along", np.take_along_axis)
def take_along_axis(x: T, indices: Any, /, axis: int | None = -1) -> T:
    """The elements at one index along a mode for each place of the others; that mode is made whole.

    Args:
        indices: a tensor of the order of x, whose other extents are those of x, or 1.

    Raises:
        IndexError: an index is out of range. ValueError: the shapes do not fit.

    >>> import rote.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]), axis=1).to_global()
    array([[6],
           [7]])
    """
    x, mode = _along(x, axis, "take_along_axis")
    given = (
        x._on(indices, Layout(((),) * indices.ndim).on(indices.shape, x.distribution.grid))
        if isinstance(indices, np.ndarray)
        else indices
    )
    shape, wanted = x.distribution.shape, given.distribution.shape
    if len(wanted) != len(shape):
        raise ValueError(f"indices have the order of the tensor, {len(shape)}, not {len(wanted)}")
    rest = np.broadcast_shapes((*shape[:mode], 1, *shape[mode + 1 :]), (*wanted[:mode], 1, *wanted[mode + 1 :]))
    ends = [(*rest[:mode], each[mode], *rest[mode + 1 :]) for each in (shape, wanted)]
    x = x if ends[0] == shape else broadcast_to(x, ends[0])
    given = given if ends[1] == wanted else broadcast_to(given, ends[1])
    target = fitted(x.distribution, ends[1])
    if given.distribution != target:
        given = moved(plain(given, "take_along_axis"), target.layout, "take_along_axis", target.grid)
    return x._on(np.take_along_axis(x.local, given.local, mode), target)


def _along(x: T, axis: int | None, name: str) -> tuple[T, int]:
    """A plain tensor with a mode whole, and the number of that; all modes as one if none is named."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    mode = normalize_axis_index(axis, len(x.distribution.shape))
    return made_whole(x, (mode,), name), mode


def _of_each(function: Any, other: Any, x: Any, name: str) -> Any:
    """A function of each element of a tensor, or of an array or a scalar, of which the result is replicated."""
    if isinstance(x, Distributed):
        x = plain(x, name)
        return x._with(function(x.local))
    if not isinstance(other, Distributed):
        raise LayoutError(f"{name} takes a tensor, one at least")
    block: Array = np.asarray(function(np.asarray(x)))
    return other._on(block, Layout(((),) * block.ndim).on(block.shape, other.distribution.grid))
