"""Scans along a mode, differences of neighbours and gradients.

If blocks split the mode of a scan, each rank scans its block; ranks exchange only their totals, and each goes on from
the total of all ranks before it:

    block       1 2 3   | 4 5     | 6 7
    own scan    1 3 6   | 4 9     | 6 13
    total           6   |   9     |   13       every rank gets 6 9 13
    before      -       | 6       | 6 + 9      in the order of the ranks, so that all round alike
    result      1 3 6   | 10 15   | 21 28
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ..grammar.nodes import Op
from ..layout.layout import identity
from ..layout.refine import fitted
from .alignment import one_per_part, part_number, plain, whole_along
from .distributed import Array, Distributed, T, comm_of
from .elementwise import not_equal, subtract
from .indexing import fetch, key_at, known, parse_key, read, with_next
from .joining import concat
from .moves import redistributed
from .rearranging import pad
from .reductions import UNSET, computed_in, finished, masked, normal_axis, taken, unordered
from .reshaping import in_order, reshape
from .rules import UFUNC_METHODS, Member, call_collectively, family, follows, of_one, without_nans

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "gradient", "nancumprod", "nancumsum"]


# The ufuncs that scan, each with the operation that has the same identity.
_SCANNING: dict[np.ufunc, Op] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "sum",
    np.logical_and: "prod",
}


def _cumulative(
    name: str, x: T, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None, include_initial: bool = False
) -> T:
    ufunc, initial = (np.add, 0) if name == "cumulative_sum" else (np.multiply, 1)
    if not x.distribution.shape:
        x = reshape(x, 1)
    y = _scan(name, ufunc, x, axis, dtype)
    if not include_initial:
        return y

    order = len(x.distribution.shape)
    mode = normal_axis(0 if axis is None else axis, order)
    return pad(y, [(int(m == mode), 0) for m in range(order)], constant_values=initial)


@family("along", _cumulative, "cumulative_sum", np.cumulative_sum)
def cumulative_sum() -> None:
    """The cumulative sums along a mode: each element with all before it. Collective.

    If blocks split the mode, ranks exchange only their totals; a mode that is split cyclically is made whole.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int, optional
        The mode; if None, the only one.
    dtype : DTypeLike, optional
        The dtype of the result; if None, int64 or uint64 for smaller integers.
    include_initial : bool, default False
        Whether the empty sum, 0, comes first.

    Raises
    ------
    ValueError
        The tensor is of order 2 or more, and no mode is named.

    Examples
    --------
    >>> import rote, rote.array_api as xp
    >>> x = rote.DistTensor.from_global([1, 2, 3], "block[(0)]")
    >>> xp.cumulative_sum(x, include_initial=True).to_global()
    array([0, 1, 3, 6])
    """


@family("along", _cumulative, "cumulative_prod", np.cumulative_prod)
def cumulative_prod() -> None:
    """The cumulative products along a mode: each element with all before it.

    Arguments and errors as for `cumulative_sum`.

    Parameters
    ----------
    x : DistTensor
        The tensor.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([3, 1, 2])).to_global()
    array([3, 3, 6])
    """


def _flat_scan(
    member: Member, a: Distributed, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: Any = None
) -> Any:
    name = member.name
    ufunc, neutral = (np.add, 0) if member.op == "sum" else (np.multiply, 1)
    a, numbers = taken(member, a, UNSET)
    a = masked(a, numbers, neutral)

    if not a.distribution.shape:
        a = reshape(a, 1)
    if axis is None:
        a, axis = (in_order(a, name) if len(a.distribution.shape) > 1 else a), 0
    return finished(name, _scan(name, ufunc, a, axis, computed_in(dtype, a.local.dtype, out)), out)


@family("along", _flat_scan, Member("cumsum"), np.cumsum)
def cumsum() -> None:
    """The cumulative sum along a mode, or of all elements in row-major order, as in `numpy.cumsum`.

    Raises
    ------
    AxisError, ValueError
        There is no such mode.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([3, 1, 2], "block[(0)]").cumsum().to_global()
    array([3, 4, 6])
    """


@family("along", _flat_scan, Member("cumprod", op="prod"), np.cumprod)
def cumprod() -> None:
    """The cumulative product along a mode, or of all elements in row-major order; errors as for `cumsum`.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([3, 1, 2], "block[(0)]").cumprod().to_global()
    array([3, 3, 6])
    """


nancumsum: Final = without_nans("along", _flat_scan, Member("nancumsum"), [1.0, 1.0, 4.0], "a NaN counts as 0")
nancumprod: Final = without_nans(
    "along", _flat_scan, Member("nancumprod", op="prod"), [1.0, 1.0, 3.0], "a NaN counts as 1"
)


def _accumulate(ufunc: np.ufunc, x: Distributed, axis: int | None, dtype: Any = None, out: Any = None) -> Any:
    """The method `accumulate` of a ufunc, such as `numpy.add.accumulate`: a scan."""
    name = f"{ufunc.__name__}.accumulate"
    comm_of(name, (x, out))
    return finished(name, _scan(name, ufunc, x, axis, computed_in(dtype, x.local.dtype, out)), out)


UFUNC_METHODS.update({(ufunc, "accumulate"): partial(_accumulate, ufunc) for ufunc in _SCANNING})


def _scan(name: str, ufunc: np.ufunc, x: T, axis: int | None, dtype: npt.DTypeLike | None) -> T:
    """A scan along a mode, the only one if none is named. Collective if it is split.

    Raises:
        ValueError: no mode is named, and there are several. TypeError: complex numbers are to be compared.
    """
    order = len(x.distribution.shape)
    if axis is None and order != 1:
        raise ValueError(f"a scan of a tensor of order {order} needs axis=")
    if ufunc in (np.maximum, np.minimum) and x.local.dtype.kind == "c":
        raise unordered(f"numpy.{name}")
    mode = normal_axis(0 if axis is None else axis, order)

    x = plain(x, name)
    if "cyclic" in [s.kind.name for s in x.distribution.splits[mode]]:
        x = whole_along(x, (mode,), name)
    block = ufunc.accumulate(x.local, mode, dtype)
    if x.distribution.splits[mode]:
        block = _carried(name, ufunc, x, block, mode)
    return x._with(block)


def _carried(name: str, ufunc: np.ufunc, x: Distributed, block: Array, mode: int) -> Array:
    """The scan of a block, continued from the total of all elements before it along a mode."""
    along, neutral = (slice(None),) * mode, identity(_SCANNING[ufunc], block.dtype)
    if block.shape[mode]:
        total = block[*along, slice(-1, None)]
    else:
        total = np.full((*block.shape[:mode], 1, *block.shape[mode + 1 :]), neutral)

    # The totals are a tensor too, which all ranks of a line then get whole along the mode.
    ends = one_per_part(x.distribution, mode)
    totals = redistributed(x._on(total, ends), ends.layout.whole(mode), name)

    mine = part_number(x.distribution, x.comm.rank, mode)
    if not mine:
        return block
    before = ufunc.reduce(totals.local[*along, slice(0, mine)], mode, block.dtype, keepdims=True, initial=neutral)
    carried: Array = ufunc(before, block, dtype=block.dtype)
    return carried


@of_one
@follows("indexed", np.diff)
def diff(x: T, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along a mode, n times.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    n : int, default 1
        How often differences are taken; 0 gives the tensor itself.
    axis : int, default -1
        The mode.
    prepend, append : array_like, optional
        Tensors, arrays or scalars that are put before and after the tensor.

    Raises
    ------
    ValueError
        `n` is negative, or the tensor is of order 0.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9])).to_global()
    array([3, 5])
    """
    shape = x.distribution.shape
    if n < 0 or not shape:
        raise ValueError(f"diff takes differences 0 or more times of order 1 or more, not n={n} of shape {shape}")
    mode = normalize_axis_index(axis, len(shape))
    if n == 0:
        return x

    border = (*shape[:mode], 1, *shape[mode + 1 :])
    y: Any = plain(x, "diff")
    if prepend is not None or append is not None:
        y = concat([*_end(prepend, border), y, *_end(append, border)], mode)

    if not any(split.kind.is_cyclic for split in y.distribution.splits[mode]):
        return _diff(y, n, mode)
    for _ in range(n):
        after, before = _along(y, mode, slice(1, None)), _along(y, mode, slice(None, -1))
        y = not_equal(after, before) if y.local.dtype == bool else subtract(after, before)
    return y


def _diff(x: T, n: int, mode: int) -> T:
    """The differences along a mode that is whole or in blocks: each rank fetches the n elements after its own."""
    shape = x.distribution.shape
    target = fitted(x.distribution, (*shape[:mode], max(shape[mode] - n, 0), *shape[mode + 1 :]))
    block = with_next(x, target, mode, n, "diff") if x.distribution.splits[mode] else x.local

    if not block.shape[mode]:
        return x._on(block, target)
    return x._on(call_collectively("diff", lambda x: np.diff(block, n, mode), (x,), {}), target)


def _along(x: Distributed, mode: int, part: slice) -> Distributed:
    """A part of a tensor along one mode."""
    return read(x, parse_key(key_at(part, (mode,), len(x.distribution.shape)), x.distribution.shape), "diff")


def _end(values: Any, border: tuple[int, ...]) -> list[Any]:
    """The values before or after a tensor: none, a scalar over the whole border, or an array as it is."""
    if values is None:
        return []
    return [np.broadcast_to(values, border) if np.ndim(values) == 0 else values]


@follows("indexed", np.gradient)
def gradient(f: T, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: Literal[1, 2] = 1) -> Any:
    """The derivatives along some modes by central differences, one-sided at both ends, as `numpy.gradient`. Collective.

    If blocks split a mode, ranks exchange their faces; a mode that is split cyclically is made whole.

    Parameters
    ----------
    *varargs : float | array_like
        The distance of neighbours, or their coordinates along the mode; one for all modes, or one for each.
    axis : int | Sequence[int], optional
        One mode, several, or None for all.
    edge_order : {1, 2}, default 1
        1 or 2, the order of accuracy at the ends.

    Returns
    -------
    DistTensor | tuple[DistTensor, ...]
        A tensor for one mode, a tuple of tensors for several.

    Raises
    ------
    TypeError
        There are not as many distances as modes.
    ValueError
        A mode has too few indices, or there are not as many coordinates.

    Examples
    --------
    >>> import numpy as np, rote
    >>> x = rote.DistTensor.from_global([0.0, 1.0, 4.0, 9.0], "block[(0)]")
    >>> np.gradient(x, edge_order=2).to_global()
    array([0., 2., 4., 6.])
    """
    shape = f.distribution.shape
    modes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    spacings = [*map(known, varargs)] or [1.0]
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(modes)
    if len(spacings) != len(modes):
        raise TypeError(
            f"gradient takes a distance for each of {len(modes)} modes, or one for all, not {len(spacings)}"
        )
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is 1 or 2, not {edge_order}")
    if any(shape[mode] <= edge_order for mode in modes):
        raise ValueError(f"gradient takes {edge_order + 1} indices along each mode or more, not shape {shape}")

    results = []
    for mode, spacing in zip(modes, spacings, strict=True):
        if np.ndim(spacing) and np.shape(spacing) != (shape[mode],):
            raise ValueError(
                f"coordinates along mode {mode} are {shape[mode]} numbers, not of shape {np.shape(spacing)}"
            )
        results.append(_gradient(plain(f, "gradient"), spacing, mode, edge_order))
    return results[0] if len(results) == 1 else tuple(results)


def _gradient(x: T, spacing: Any, mode: int, edge_order: Literal[1, 2]) -> T:
    """The derivative along one mode of a plain tensor."""
    splits, n = x.distribution.splits[mode], x.distribution.shape[mode]
    if any(split.kind.is_cyclic for split in splits):
        x, splits = whole_along(x, (mode,), "gradient"), ()
    if np.ndim(spacing):
        spacing = np.asarray(spacing, None if np.asarray(spacing).dtype.kind == "f" else "f8")
        steps = np.diff(spacing)
        spacing = steps[0] if (steps == steps[0]).all() else spacing

    block = x.local
    first, stop = 0, n
    if splits:
        indices = x.distribution.indices(x.comm.rank)
        # Of each end of the mode, its rank also needs as many indices as the one-sided difference there.
        first, stop = _with_neighbours(indices[mode], n, edge_order)
        needed = [*indices[:mode], np.arange(first, stop), *indices[mode + 1 :]]
        block = fetch(x, x.distribution, (mode, edge_order), lambda: needed, "gradient")
        inside = indices[mode] - first
    if not block.size:
        return x._with(np.empty(x.local.shape, np.gradient(np.ones(2, block.dtype)).dtype))

    if np.ndim(spacing):
        spacing = spacing[first:stop]
        steps = np.diff(spacing)
        if (steps == steps[0]).all():
            # NumPy has another formula for equal steps, but those of the whole mode differ: add a neighbour at another
            # distance, whose value does not matter to any index that the rank holds.
            before = stop == n
            ends = [(0, 0)] * block.ndim
            ends[mode] = (before, not before)
            block, inside = np.pad(block, ends, "edge"), inside + before
            away = 2 * steps[0] or 1.0
            at, further = (0, spacing[0] - away) if before else (len(spacing), spacing[-1] + away)
            spacing = np.insert(spacing, at, further)

    result = np.gradient(block, spacing, axis=mode, edge_order=edge_order)
    return x._with(result[(slice(None),) * mode + (slice(inside[0], inside[-1] + 1),)].copy() if splits else result)


def _with_neighbours(indices: npt.NDArray[np.int64], n: int, edge_order: int) -> tuple[int, int]:
    """The interval of indices of which a rank computes the derivative at those that it holds, an interval too."""
    if not len(indices):
        return 0, 0
    first, stop = int(indices[0]), int(indices[-1]) + 1
    lowest = min(first - 1, n - edge_order - 1) if stop == n else first - 1
    highest = max(stop + 1, edge_order + 1) if first == 0 else stop + 1
    return max(lowest, 0), min(highest, n)
