"""Largest and smallest elements and their indices, combined by integers that have the order of the numbers.

Implementations of MPI differ in how they compare NaNs. So ranks contribute integers in the order of the numbers, with
NaN beyond all others, as in NumPy.
"""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from ...grammar.nodes import Op
from ...layout.layout import Distribution, Layout, layout_or_none
from ...runtime.copy.regions import identity
from ..alignment import plain
from ..distributed import Array, Distributed
from ..rules import follows
from .reduction import UNSET, Over, Reduced, contributed, finished, normal_axes, reduced, reducible, settled

__all__ = ["argmax", "argmin", "extremum", "unordered"]


def extremum(x: Distributed, over: Over, op: Op) -> Any:
    """The largest or smallest element over some modes. Collective if they are split."""
    x = reducible(op, x, over.modes, op)
    dtype: np.dtype[Any] = x.local.dtype
    ufunc: Any = np.maximum if op == "max" else np.minimum

    def local(block: Array, axis: tuple[int, ...] | None) -> Any:
        start: Any = UNSET if block.size else identity(op, dtype)
        return ufunc.reduce(block, axis=axis, keepdims=over.keepdims, initial=start)

    where = reduced(x.distribution, over, op)
    return _settled(op, contributed(x, over.modes, where, local), where, op)


@follows("reduction", np.argmax)
def argmax(
    x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False, layout: Any = None
) -> Any:
    """The index of the largest element, the first of several; a NaN counts as the largest.

    Args:
        axis: one mode, or None for the index into the flattened tensor.
        out: a tensor of integers to write into; it keeps its layout.
        layout: the layout of the result, as in `sum`.

    Raises:
        AxisError: there is no such mode.
        TypeError: the elements are complex, `axis` is not an integer, or `out` is not of integers.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> int(DistTensor.from_global([3, 7, 7], "block[(0)]").argmax())
    1
    """
    return _position("argmax", "max", x, axis, out, keepdims, layout)


@follows("reduction", np.argmin)
def argmin(
    x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False, layout: Any = None
) -> Any:
    """The index of the smallest element, the first of several; a NaN counts as the smallest. Arguments as for `argmax`.

    Raises:
        AxisError: there is no such mode.
        TypeError: the elements are complex, `axis` is not an integer, or `out` is not of integers.
        LayoutError: `layout` or `out` does not fit the result.

    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").argmin(axis=1).to_global()
    array([0, 1])
    """
    return _position("argmin", "min", x, axis, out, keepdims, layout)


def _position(
    name: str, op: Op, x: Distributed, axis: int | None, out: Any, keepdims: bool, layout: Layout | str | None
) -> Any:
    shape, dtype = x.distribution.shape, x.local.dtype
    if dtype.kind == "c":
        raise unordered(name)
    first = np.argmax if op == "max" else np.argmin
    if isinstance(out, Distributed) and not np.can_cast(out.local.dtype, np.int64):
        raise TypeError(f"{name} writes indices, which {out.local.dtype} does not hold\nwrite out= of int64")
    if isinstance(axis, tuple | list):
        raise TypeError(
            f"{name} takes one axis, or None, not {axis}\n"
            f"write x.reshape(…, -1).{name}(-1), where several axes are one, and numpy.unravel_index of the result"
        )
    if axis is not None and not isinstance(axis, bool | np.bool_):
        axis = index(axis)
    modes = normal_axes(axis, len(shape))
    axis = modes[0] if axis is not None and modes else None
    if prod(shape) == 0:
        first(np.empty(shape, dtype), axis)  # raises NumPy's error
    x = reducible(name, x, modes, "") if x.distribution.layout.view is None else plain(x, name)
    dist, block, rank = x.distribution, x.local, x.comm.rank
    where = reduced(dist, Over(modes, keepdims, layout_or_none(layout)), "min")
    least = np.iinfo(np.int64).max
    if block.size:
        nearest = np.asarray(first(block, axis, keepdims=True))
        places = _flat(nearest, dist, rank, block.shape) if axis is None else _global(nearest, dist, rank, modes[0])
    if where.moves:
        wide = reduced(dist, Over(modes, True), op)
        extents = wide.contributions.local_shape(rank)
        if block.size:
            own = block.reshape(-1)[nearest] if axis is None else np.take_along_axis(block, nearest, modes[0])
        else:
            own, places = np.full(extents, identity(op, dtype)), np.full(extents, least)
        own = own + dtype.type(0)  # of -0.0 and 0.0, which are equal, the first counts
        best = _settled(name, x._on(own, wide.contributions), wide, op).local
        places = np.where((own == best) | ((own != own) & (best != best)), places, least)
    elif not block.size:
        places = np.empty(0, np.int64)
    block = np.asarray(places, np.int64).reshape(where.contributions.local_shape(rank))
    return finished(name, settled(name, x._on(block, where.contributions), where), out)


def unordered(name: str) -> TypeError:
    """The error that refuses complex numbers where an order is needed."""
    return TypeError(
        f"complex numbers are not ordered\nwrite {name}(abs(x)), or {name}(x.to_global()), where real parts come first"
    )


def _global(local: Array, dist: Distribution, rank: int, mode: int) -> Array:
    """The global indices along a mode of the elements of a block at local indices."""
    if not dist.splits[mode]:
        return local
    held = dist.index_sets(rank)[mode]
    if local.size > 8:
        return held.to_array()[local]
    return np.array([*map(held.at, local.reshape(-1).tolist())], np.int64).reshape(local.shape)


def _flat(nearest: Array, dist: Distribution, rank: int, block: tuple[int, ...]) -> Array:
    """The index into the flattened tensor, from the index into the flattened block of a rank."""
    if not any(dist.splits):
        return nearest
    parts = [_global(np.asarray(at), dist, rank, mode) for mode, at in enumerate(np.unravel_index(nearest, block))]
    return np.asarray(np.ravel_multi_index(tuple(parts), dist.shape))


_KEYS: dict[np.dtype[Any], np.dtype[Any]] = {np.dtype("f4"): np.dtype("i4"), np.dtype("f8"): np.dtype("i8")}


def _settled(name: str, x: Distributed, where: Reduced, op: Op) -> Any:
    """The extrema of the contributions of ranks; NaN where any of them is NaN."""
    values = x.local
    if not where.moves or where.target.partial or values.dtype.kind != "f":
        return settled(name, x, where)
    missing, integer = np.isnan(values), _KEYS.get(values.dtype)
    if integer is None:  # numbers wider than any integer: NaNs are reduced separately
        result = settled(name, x, where)
        if op == "max":
            missing = settled(name, x._with(missing), where).local
        else:
            missing = ~settled(name, x._with(~missing), where).local
        return result._with(np.where(missing, np.nan, result.local))
    info, bits = np.iinfo(integer), values.reshape(-1).view(integer).reshape(values.shape)
    extreme = info.max if op == "max" else info.min
    keys = np.where(missing, extreme, _turned(bits))
    result = settled(name, x._with(keys), where)
    return result._with(_turned(result.local).view(values.dtype))


def _turned(bits: Array) -> Array:
    """The bits of numbers as integers in their order, and back: if the sign is set, all other bits are flipped."""
    info = np.iinfo(bits.dtype)
    return np.asarray(bits ^ ((bits >> (info.bits - 1)) & info.max))
