"""Largest and smallest elements, and where they are: combined by integers that are ordered as numbers are.

Libraries of messages compare floating-point numbers as they like where there are NaNs. So what ranks contribute are
integers in the order of the numbers, with NaN beyond all others, as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...grammar.nodes import Op
from ...layout.layout import Layout, as_layout
from ...runtime.copy.regions import identity
from ..distributed import Array, Distributed
from .alignment import plain
from .reduction import finished, normal_axes, reduced, reducible, reduction, settled
from .rules import follows

__all__ = ["argmax", "argmin", "extremum"]


def extremum(
    name: str,
    x: Distributed,
    modes: tuple[int, ...],
    op: Op,
    keepdims: bool = False,
    layout: Layout | str | None = None,
) -> Any:
    """The largest or smallest element over some modes. Collective where they are split."""
    x = reducible(name, x, modes, op)
    dtype, ufunc = x.local.dtype, np.maximum if op == "max" else np.minimum

    def local(block: Array, over: tuple[int, ...] | None) -> Any:
        if block.size:
            return ufunc.reduce(block, axis=over, keepdims=keepdims)
        return ufunc.reduce(block, axis=over, keepdims=keepdims, initial=identity(op, dtype))

    where = reduced(x.distribution, modes, keepdims, op, None if layout is None else as_layout(layout))
    if not where.moves or where.target.partial or dtype not in _KEYS:
        return reduction(name, x, modes, op, local, keepdims, layout)

    def keyed(block: Array, over: tuple[int, ...] | None) -> Array:
        return _keys(np.asarray(local(block, over)), op)

    result = reduction(name, x, modes, op, keyed, keepdims, layout)
    return result._with(_numbers(result.local, dtype, op))


@follows("reduction", np.argmax)
def argmax(
    x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False, layout: Any = None
) -> Any:
    """The index of the largest element, the first of several; a NaN counts as the largest.

    Args:
        axis: one mode, or None for the index into the flattened tensor.
        out: a tensor of integers that is written, and stays where it is.
        layout: of the result, as in `sum`.

    >>> from rote import DistTensor
    >>> int(DistTensor.from_global([3, 7, 7], "block[(0)]").argmax())
    1
    """
    return _position("argmax", "max", x, axis, out, keepdims, layout)


@follows("reduction", np.argmin)
def argmin(
    x: Distributed, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False, layout: Any = None
) -> Any:
    """The index of the smallest element, the first of several; a NaN counts as the smallest. Arguments as `argmax`."""
    return _position("argmin", "min", x, axis, out, keepdims, layout)


def _position(
    name: str, op: Op, x: Distributed, axis: int | None, out: Any, keepdims: bool, layout: Layout | str | None
) -> Any:
    shape, dtype = x.distribution.shape, x.local.dtype
    if dtype.kind == "c":
        raise TypeError(f"complex numbers are not ordered; write {name}(abs(x)), or that of x.real")
    first = np.argmax if op == "max" else np.argmin
    modes = normal_axes(axis, len(shape))
    if prod(shape) == 0:
        first(np.empty(shape, dtype), axis)  # which raises NumPy's error
    x = plain(x, name) if x.distribution.layout.view is not None else reducible(name, x, modes, "")
    dist, block, rank = x.distribution, x.local, x.comm.rank
    where = reduced(dist, modes, keepdims, "min", None if layout is None else as_layout(layout))
    wide, least = reduced(dist, modes, True, op), np.iinfo(np.int64).max
    extents = wide.contributions.local_shape(rank)
    if block.size:
        nearest = np.asarray(first(block, axis, keepdims=True))
        own = block.reshape(-1)[nearest] if axis is None else np.take_along_axis(block, nearest, modes[0])
        held = dist.indices(rank)
        index = _flat(nearest, held, block.shape, shape) if axis is None else held[modes[0]][nearest]
    else:
        own, index = np.full(extents, identity(op, dtype)), np.full(extents, least)
    if where.moves:
        keys = _keys(own + dtype.type(0), op)  # of -0.0 and 0.0 the first counts
        best = settled(name, x._on(keys, wide.contributions), wide).local
        index = np.where((keys == best) | ((keys != keys) & (best != best)), index, least)
    block = np.asarray(index, np.int64).reshape(where.contributions.local_shape(rank))
    return finished(name, settled(name, x._on(block, where.contributions), where), out)


def _flat(nearest: Array, held: Sequence[Array], block: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The index into the flattened tensor of an element of a block, given by that into the flattened block."""
    local = np.unravel_index(nearest, block)
    if not shape:
        return nearest
    flat: Array = np.ravel_multi_index(tuple([each[at] for each, at in zip(held, local, strict=True)]), shape)
    return np.asarray(flat)


_KEYS: dict[np.dtype[Any], np.dtype[Any]] = {np.dtype("f4"): np.dtype("i4"), np.dtype("f8"): np.dtype("i8")}


def _keys(block: Array, op: Op) -> Array:
    """Integers in the order of a block's numbers; NaN is beyond all others. What is no such number stays as it is."""
    integer = _KEYS.get(block.dtype)
    if integer is None:
        return block
    info = np.iinfo(integer)
    bits: Array = np.ascontiguousarray(block).reshape(block.shape).view(integer)
    keys = _turned(bits)
    return np.where(np.isnan(block), info.max if op == "max" else info.min, keys)


def _numbers(keys: Array, dtype: np.dtype[Any], op: Op) -> Array:
    """The numbers of some keys."""
    numbers: Array = _turned(keys).view(dtype)
    return numbers


def _turned(bits: Array) -> Array:
    """Bits of numbers with a sign as integers in their order, and back: all but the sign are turned if it is set."""
    info = np.iinfo(bits.dtype)
    result: Array = bits ^ ((bits >> (info.bits - 1)) & info.max)
    return result
