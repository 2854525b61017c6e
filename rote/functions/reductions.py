"""Reductions over modes of a tensor, by the names of the array API standard and of NumPy.

Each rank reduces its block. The contributions of ranks are combined over the grid modes that split reduced modes, which
is a redistribution from a partial layout:

    operand          each rank sums over mode 0    contributions      all-reduce over grid mode 0    target
    block[(0),(1)]   ------------------------->    block[(1)]+(0)     ------------------------->     block[(1)]

`reduced` finds both layouts, `contributed` makes the contributions, and `combined` moves them to the target.

Implementations of MPI differ in how they compare NaNs. So for extrema ranks contribute integers in the order of the
numbers, with NaN beyond all others, as in NumPy.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from math import prod as product
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..grammar.nodes import Op
from ..layout.distribution import Distribution, distribute
from ..layout.layout import Layout, identity, layout_or_none
from ..runtime.arrays import as_array
from .alignment import Casting, into, plain
from .distributed import Array, Distributed, T, comm_of, shape_of
from .elementwise import elementwise
from .exact import exact_sum
from .moves import moved, redistributed
from .rules import NAN_WITH_WARNING, UFUNC_METHODS, Function, Member, family, follows, of_one, without_nans

__all__ = ["UNSET", "Axis", "LayoutLike", "Reduced", "ReducedModes", "all", "any", "argmax", "argmin", "combined"]
__all__ += ["computed_in", "contributed", "count_nonzero", "finished", "in_layout", "masked", "max", "min"]
__all__ += ["nanargmax", "nanargmin", "nanmax", "nanmin", "nanprod", "nansum", "normal_axes", "normal_axis"]
__all__ += ["prod", "reduce_by", "reduced", "reduced_modes", "reducible", "sum", "taken", "unordered"]

Axis = int | tuple[int, ...] | None
LayoutLike = Layout | str | None
Modes = tuple[int, ...]
Local = Callable[[Array, Modes | None], Any]

UNSET: Any = np._NoValue
"""The value that NumPy passes on for an argument that was not given."""


class ReducedModes(NamedTuple):
    """The modes to reduce, whether they are kept with extent 1, and the layout of the result, if a call names one."""

    modes: Modes
    keepdims: bool = False
    layout: Layout | None = None


class Reduced(NamedTuple):
    """The distributions of the contributions to a reduction and of its result, and whether data moves between them."""

    contributions: Distribution
    target: Distribution
    moves: bool


# --- arguments ---------------------------------------------------------------------------------------------------


def reduced_modes(x: Distributed, axis: Axis, keepdims: bool, layout: LayoutLike) -> ReducedModes:
    """The arguments of a reduction of a tensor, checked; errors as of `normal_axes`."""
    return ReducedModes(normal_axes(axis, len(x.distribution.shape)), keepdims, layout_or_none(layout))


def normal_axes(axis: Axis, order: int) -> Modes:
    """The modes that `axis` names, as in NumPy: None is all of them, and negative ones count from the last.

    For tensors of order 0, the axes 0 and -1 name no mode, as in NumPy's ufuncs.

    Raises:
        numpy.exceptions.AxisError: there is no mode of that number.
        ValueError: a mode is named twice.
        TypeError: an axis is not an integer.

    >>> normal_axes(-1, 3), normal_axes(None, 2)
    ((2,), (0, 1))
    """
    if axis is None:
        return tuple(range(order))
    if type(axis) is int and 0 <= axis < order:
        return (axis,)
    if order == 0 and type(axis) is int and axis in (0, -1):
        return ()

    axes = axis if isinstance(axis, tuple) else (axis,)
    for number in axes:
        if isinstance(number, bool | np.bool_) or not hasattr(number, "__index__"):
            raise TypeError(f"an axis is an integer, and several are a tuple of integers, not {number!r}")
    return tuple(np.lib.array_utils.normalize_axis_tuple(axes, order))


def normal_axis(axis: Any, order: int) -> int:
    """The mode that `axis` names, from 0; errors as of `normal_axes`.

    >>> normal_axis(-1, 3)
    2
    """
    return normal_axes((axis,), order)[0]


def computed_in(dtype: npt.DTypeLike | None, element: np.dtype[Any], out: Any) -> npt.DTypeLike | None:
    """The dtype of a reduction: `dtype`, or that of the elements and `out` together; None if neither is given.

    >>> computed_in("f4", np.dtype("i8"), None), computed_in(None, np.dtype("i8"), None)
    ('f4', None)
    """
    return np.result_type(element, out.local.dtype) if dtype is None and isinstance(out, Distributed) else dtype


def taken(member: Member, x: T, where: Any) -> tuple[T, Any]:
    """The tensor, and the mask of those of its elements that a function takes: not NaNs, if it skips them.

    The mask is UNSET if all are taken. Errors as of `_mask`.
    """
    where = UNSET if where is True or where is UNSET else _mask(x, where)
    if not member.skips_nan or x.local.dtype.kind not in "fc":
        return x, where

    lay = x.distribution.layout
    if lay.partial:  # no rank knows alone which sums of contributions are NaN
        x = moved(x, replace(lay, partial=(), op="sum"), member.name)
    numbers = elementwise(member.name, np.equal, (x, x), {})
    return x, numbers if where is UNSET else elementwise(member.name, np.logical_and, (numbers, where), {})


def _mask(x: Distributed, where: Any) -> Any:
    """The mask of a reduction, by NumPy's rules.

    Raises:
        TypeError: an array or a tensor is not of bool.
        LayoutError: it does not broadcast to the tensor.
    """
    if not isinstance(where, Distributed | np.ndarray):
        where = as_array(where, bool)
    if where.dtype.kind != "b":
        raise TypeError(f"where= is a mask, of bool, not of {where.dtype}\nwrite where=mask != 0")

    extents, shape = shape_of(where), x.distribution.shape
    pairs = zip(extents[::-1], shape[::-1], strict=False)
    if len(extents) > len(shape) or builtins.any(n not in (1, extent) for n, extent in pairs):
        raise LayoutError(f"where= of shape {extents} does not broadcast to the shape of the tensor, {shape}")
    return where


def _start(initial: Any) -> Any:
    """The number that a reduction begins with; UNSET for None.

    Raises:
        ValueError: it is an array.
    """
    if np.ndim(initial):
        raise ValueError(f"initial= is one number for all results, not of shape {np.shape(initial)}")
    return UNSET if initial is None else initial


def masked(x: Distributed, where: Any, otherwise: Any) -> Any:
    """The tensor with `otherwise`, which the reduction ignores, in place of the elements outside the mask."""
    if where is UNSET or where is True:
        return x
    return elementwise("where", np.where, (where, x, x.local.dtype.type(otherwise)), {})


def unordered(name: str) -> TypeError:
    """The error that refuses complex numbers where an order is needed."""
    return TypeError(
        f"complex numbers are not ordered\nwrite {name}(abs(x)), or {name}(x.to_global()), where real parts come first"
    )


# --- layouts and contributions ------------------------------------------------------------------------------------


@memoized(4096)  # two layouts are built, which costs more than to reduce a small block
def reduced(source: Distribution, along: ReducedModes, op: Op) -> Reduced:
    """The distributions of the contributions to a reduction, and of its result.

    >>> from rote.layout.layout import parse
    >>> ends = reduced(parse("block[(0),(1)]").on((8, 6), (2, 3)), ReducedModes((0,)), "max")
    >>> print(ends.contributions.layout, ends.target.layout)
    block[(1)]+max(0) block[(1)]
    """
    lay, grid, order, modes = source.layout, source.grid, len(source.shape), along.modes

    # Of a view all modes are reduced (see `reducible`), so all its entries split reduced modes.
    entries = [lay.modes[m] for m in range(order) if m in modes] if lay.view is None else lay.modes
    split = [entry.grid_mode for entry in chain(*entries)]

    remaining = list(lay.modes) if lay.view is None else [()] * order
    extents = list(source.shape)
    for m in modes:
        remaining[m], extents[m] = (), 1

    result_modes = [m for m in range(order) if along.keepdims or m not in modes]
    splits, shape = tuple([remaining[m] for m in result_modes]), tuple([extents[m] for m in result_modes])
    contributions = distribute(Layout(splits, op=op, partial=(*split, *lay.partial), rooted=lay.rooted), shape, grid)
    target = distribute(along.layout or Layout(splits, rooted=lay.rooted), shape, grid)
    return Reduced(contributions, target, contributions.meaning != target.meaning)


def reducible(name: str, x: T, modes: Modes, op: str, dtype: np.dtype[Any] | None = None) -> T:
    """The tensor as a reduction takes it: not partial, or partial with the same operation.

    A view is kept if all modes are reduced, because it does not matter then how they are read. Contributions of another
    dtype than that of the reduction are combined first.
    """
    lay = x.distribution.layout
    if lay.partial and (lay.op != op or (dtype is not None and dtype != x.local.dtype)):
        x = moved(x, Layout(lay.modes, lay.view, rooted=lay.rooted), name)
    return x if lay.view is None or len(modes) == len(x.distribution.shape) else plain(x, name)


def contributed(x: T, modes: Modes, ends: Reduced, local: Local) -> T:
    """The tensor of contributions to a reduction; it is the result already if nothing moves.

    Args:
        x: a tensor as `reducible` returns it.
        local: reduces a block over some of its modes or, for None, over all.
    """
    dist, block = x.distribution, x.local
    if block.dtype.kind in "fc" and not block.flags.c_contiguous:
        # Sums depend on the order in memory, in which the blocks of replicas may differ: their bits must not.
        extents = zip(dist.roles, dist.grid.shape, strict=True)
        if product([extent for role, extent in extents if role.name == "replicated"]) > 1:
            block = np.ascontiguousarray(block)

    block = np.asarray(local(block, None if dist.layout.view is not None else modes))
    shape = ends.contributions.local_shape(x.comm.rank)
    if block.shape != shape:  # modes of extent 1 that stay, or a rank outside the root
        block = block.reshape(shape) if block.size == product(shape) else np.empty(shape, block.dtype)
    return x._on(block, ends.contributions if ends.moves else ends.target)


def combined(name: str, contributions: T, ends: Reduced) -> T:
    """The result of a reduction, from the contributions of the ranks. Collective if data moves."""
    if ends.moves:
        return redistributed(contributions, ends.target.layout, name)
    if contributions.distribution is ends.target:
        return contributions
    return contributions._on(contributions.local, ends.target)


def reduce_by(name: str, ufunc: np.ufunc, op: Op, x: Distributed, along: ReducedModes, dtype: Any) -> Any:
    """Reduce by a ufunc, under the name of the function that calls this; `dtype` as for `sum`."""
    element = None if dtype is None else as_dtype(dtype)
    if x.distribution.partial or x.distribution.layout.view is not None:
        x = reducible(name, x, along.modes, op, ufunc.reduce(np.empty(0, x.local.dtype), dtype=element).dtype)
    ends = reduced(x.distribution, along, op)

    def local(block: Array, axis: Modes | None) -> Any:
        return ufunc.reduce(block, axis=axis, dtype=element, keepdims=along.keepdims)

    return combined(name, contributed(x, along.modes, ends, local), ends)


def in_layout(name: str, x: T, layout: LayoutLike) -> T:
    """The tensor in the layout that a call names, if any; arithmetic on contributions changes it."""
    lay = layout_or_none(layout)
    return x if lay in (None, x.distribution.layout) else redistributed(x, lay, name)


def finished(
    name: str, result: Any, out: Any, ufunc: np.ufunc | None = None, initial: Any = UNSET, casting: Casting = "unsafe"
) -> Any:
    """The result combined with `initial`, and written into `out`, of any dtype as in NumPy, if they are given."""
    if ufunc is not None and initial is not UNSET:
        lay = result.distribution.layout
        result = in_layout(name, elementwise(name, ufunc, (result, as_array(initial, result.local.dtype)), {}), lay)
    return result if out is UNSET or out is None else into(out, result, name, casting)


# --- sums, products and truth -------------------------------------------------------------------------------------


def _sum(
    member: Member,
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: LayoutLike = None,
    exact: bool = False,
) -> Any:
    initial = UNSET if initial is UNSET else _start(initial)
    x, where = taken(member, x, where)
    x, dtype = masked(x, where, 0), computed_in(dtype, x.local.dtype, out)
    element = x.local.dtype if dtype is None else as_dtype(dtype)
    along = reduced_modes(x, axis, keepdims, layout)

    if exact and element.kind in "fc":  # sums of integers are exact in any order
        x = reducible("sum", x, along.modes, "")
        ends = reduced(x.distribution, along._replace(layout=None), "sum")
        axes = along.modes if x.distribution.layout.view is None else tuple(range(x.local.ndim))
        result = exact_sum(x, axes, (ends.contributions, ends.target), element, along.layout)
    else:
        result = reduce_by("sum", np.add, "sum", x, along, dtype)
    return finished(member.name, result, out, np.add, initial)


@family("reduction", _sum, Member("sum"), np.sum)
def sum() -> None:
    """The sum over some modes, or all. Collective if they are split.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | tuple[int, ...], optional
        One mode, several, or None for all.
    dtype : DTypeLike, optional
        The dtype of the sum; if None, integers and bool are summed in the widest integers of their kind.
    out : DistTensor, optional
        A tensor to write into; it keeps its layout.
    keepdims : bool, default False
        Whether reduced modes stay, with extent 1.
    initial : scalar, optional
        A value that is added to each sum.
    where : array_like, optional
        A mask of the elements that are summed.
    layout : Layout | str, optional
        The layout of the result; if None, that of the operand without the reduced modes.
    exact : bool, default False
        Round the true sum once, so that the result has the same bits in any layout, on any number of ranks.

    Raises
    ------
    AxisError, ValueError
        There is no such mode, or one is named twice.
    LayoutError
        `layout` or `out` does not fit the result.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 4]], "block[(0),()]").sum(axis=0).to_global()
    array([4, 6])
    """


nansum: Final = without_nans("reduction", _sum, Member("nansum"), 4.0)


def _product(
    member: Member,
    x: Distributed,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: LayoutLike = None,
) -> Any:
    initial = UNSET if initial is UNSET else _start(initial)
    x, where = taken(member, x, where)
    x, dtype = masked(x, where, 1), computed_in(dtype, x.local.dtype, out)
    result = reduce_by("prod", np.multiply, "prod", x, reduced_modes(x, axis, keepdims, layout), dtype)
    return finished(member.name, result, out, np.multiply, initial)


@family("reduction", _product, Member("prod", op="prod"), np.prod)
def prod() -> None:
    """The product over some modes, or all; arguments and errors as for `sum`. Collective if they are split.

    Each rank multiplies its own factors first. So if factors are so large and so small that a part of the product
    overflows, which parts there are decides between a number, infinity and NaN, as the order does in NumPy: then sum
    the logarithms of the factors.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").prod(axis=1).to_global()
    array([2, 0])
    """


nanprod: Final = without_nans("reduction", _product, Member("nanprod", op="prod"), 3.0)


def _truth(
    member: Member,
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = UNSET,
    *,
    layout: LayoutLike = None,
) -> Any:
    name, op = member.name, member.op
    ufunc = np.logical_or if op == "sum" else np.logical_and
    along = reduced_modes(x, axis, keepdims, layout)
    if where is not UNSET:
        x, where = taken(member, x, where)
    return finished(name, reduce_by(name, ufunc, op, masked(x, where, op == "prod"), along, np.dtype(bool)), out)


@family("reduction", _truth, Member("any"), np.any)
def any() -> None:
    """Whether any element is true; arguments and errors as for `sum`. Collective if the modes are split.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").any(axis=1).to_global()
    array([ True,  True])
    """


@family("reduction", _truth, Member("all", op="prod"), np.all)
def all() -> None:
    """Whether all elements are true; arguments and errors as for `sum`. Collective if the modes are split.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").all(axis=1).to_global()
    array([ True, False])
    """


@of_one
@follows("reduction", np.count_nonzero)
def count_nonzero(x: Distributed, /, axis: Axis = None, *, keepdims: bool = False, layout: LayoutLike = None) -> Any:
    """The number of elements that are not zero. Collective if the modes are split.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int | tuple[int, ...], optional
        One mode, several, or None for all.
    keepdims : bool, default False
        Whether reduced modes stay, with extent 1.
    layout : Layout | str, optional
        The layout of the result, as in `sum`.

    Examples
    --------
    >>> import rote.array_api as xp
    >>> int(xp.count_nonzero(xp.asarray([0, 5, 6])))
    2
    """
    nonzero = elementwise("count_nonzero", lambda block: block != 0, (x,), {})
    return sum(nonzero, axis, keepdims=keepdims, layout=layout)


# --- extrema and their indices ------------------------------------------------------------------------------------


def _extremum(
    member: Member,
    x: Distributed,
    /,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = UNSET,
    where: Any = UNSET,
    *,
    layout: LayoutLike = None,
) -> Any:
    along, dtype, shape = reduced_modes(x, axis, keepdims, layout), x.local.dtype, x.distribution.shape
    op = member.op
    ufunc: Any = np.maximum if op == "max" else np.minimum
    skips = member.skips_nan and dtype.kind == "f"
    initial = UNSET if initial is UNSET else _start(initial)
    bounded = initial is not UNSET
    if skips and bounded and initial != initial:
        initial = UNSET  # NaN is left out

    if dtype.kind == "c":
        raise unordered(op)
    if where is not UNSET and where is not True and not bounded:
        raise ValueError(
            f"the {op} of no elements is not defined\nwrite initial=, which is that where the mask has none"
        )
    if product(shape) == 0 and not bounded:
        ufunc.reduce(np.empty(shape, dtype), axis=along.modes)  # raises NumPy's error

    if skips and along.layout is not None and along.layout.partial:  # NaNs are no contributions
        along = along._replace(layout=None)
    x, mask = taken(member, x, where)
    numbers = reducible(op, masked(x, mask, identity(op, dtype)), along.modes, op)
    ends = reduced(numbers.distribution, along, op)

    def local(block: Array, axis: Modes | None) -> Any:
        start: Any = UNSET if block.size else identity(op, dtype)
        return ufunc.reduce(block, axis=axis, keepdims=keepdims, initial=start)

    result = _combined_extrema(op, contributed(numbers, along.modes, ends, local), ends, op)
    result = finished(member.name, result, None if skips else out, ufunc, initial)
    if not skips:
        return result

    if initial is UNSET:  # where all are NaN, the result is, not the identity that stood in their place
        some = any(mask, axis, None, keepdims, layout=along.layout)
        result = masked(result, some, np.nan)
        if np.isnan(result.local).any():
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
    return finished(member.name, in_layout(member.name, result, layout), out)


@family("reduction", _extremum, Member("max", op="max"), np.max, np.amax)
def max() -> None:
    """The largest element, or NaN if there is one; arguments as for `sum`. Collective if the modes are split.

    Raises
    ------
    ValueError
        There is no element, or a mask may leave none, without `initial`.
    TypeError
        The elements are complex.
    AxisError, ValueError
        There is no such mode, or one is named twice.
    LayoutError
        `layout` or `out` does not fit the result.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").max(axis=0).to_global()
    array([3, 2])
    """


@family("reduction", _extremum, Member("min", op="min"), np.min, np.amin)
def min() -> None:
    """The smallest element, or NaN if there is one; arguments and errors as for `max`.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").min(axis=1).to_global()
    array([1, 0])
    """


nanmax: Final = without_nans("reduction", _extremum, Member("nanmax", op="max"), 3.0, NAN_WITH_WARNING)
nanmin: Final = without_nans("reduction", _extremum, Member("nanmin", op="min"), 1.0, NAN_WITH_WARNING)


def _position(
    member: Member,
    x: Distributed,
    /,
    axis: int | None = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    layout: LayoutLike = None,
) -> Any:
    name, op, shape, dtype = member.name, member.op, x.distribution.shape, x.local.dtype
    first: Any = np.argmax if op == "max" else np.argmin
    if dtype.kind == "c":
        raise unordered(name)

    x, numbers = taken(member, x, UNSET)
    if numbers is not UNSET:
        if not all(any(numbers, axis)):
            raise ValueError("All-NaN slice encountered")
        x = masked(x, numbers, identity(op, dtype))

    if isinstance(out, Distributed) and not np.can_cast(out.local.dtype, np.int64):
        raise TypeError(f"{name} writes indices, which {out.local.dtype} does not hold\nwrite out= of int64")
    if isinstance(axis, tuple | list):
        raise TypeError(
            f"{name} takes one axis, or None, not {axis}\n"
            f"write numpy.{name}(x.reshape(…, -1), -1), where several axes are one; numpy.unravel_index splits it"
        )

    if axis is not None and type(axis) is not int and not isinstance(axis, bool | np.bool_):
        axis = index(axis)
    modes = normal_axes(axis, len(shape))
    axis = modes[0] if axis is not None and modes else None
    if product(shape) == 0:
        first(np.empty(shape, dtype), axis)  # raises NumPy's error

    x = reducible(name, x, modes, "") if x.distribution.layout.view is None else plain(x, name)
    dist, block, rank = x.distribution, x.local, x.comm.rank
    ends = reduced(dist, ReducedModes(modes, keepdims, layout_or_none(layout)), "min")

    # In two steps: the best value of all ranks, then the least index of the ranks that have it.
    least = np.iinfo(np.int64).max
    places: Any = np.empty(0, np.int64)
    if block.size:
        nearest = np.asarray(first(block, axis, keepdims=True))
        places = _flat(nearest, dist, rank, block.shape) if axis is None else _global(nearest, dist, rank, modes[0])

    if ends.moves:
        wide = reduced(dist, ReducedModes(modes, keepdims=True), op)
        if block.size:
            best = block.reshape(-1)[nearest] if axis is None else np.take_along_axis(block, nearest, modes[0])
        else:  # the value that loses against all others
            extents = wide.contributions.local_shape(rank)
            best, places = np.full(extents, identity(op, dtype)), np.full(extents, least)
        best = best + dtype.type(0)  # of -0.0 and 0.0, which are equal, the first counts
        of_all = _combined_extrema(name, x._on(best, wide.contributions), wide, op).local
        places = np.where((best == of_all) | ((best != best) & (of_all != of_all)), places, least)

    block = np.asarray(places, np.int64).reshape(ends.contributions.local_shape(rank))
    result = combined(name, x._on(block, ends.contributions), ends)
    return result if out is None else finished(name, result, out)


@family("reduction", _position, Member("argmax", op="max"), np.argmax)
def argmax() -> None:
    """The index of the largest element, the first of several; a NaN counts as the largest.

    Parameters
    ----------
    x : DistTensor
        The tensor.
    axis : int, optional
        One mode, or None for the index into the flattened tensor.
    out : DistTensor, optional
        A tensor of integers to write into; it keeps its layout.
    keepdims : bool, default False
        Whether the mode stays, with extent 1.
    layout : Layout | str, optional
        The layout of the result, as in `sum`.

    Raises
    ------
    AxisError
        There is no such mode.
    TypeError
        The elements are complex, `axis` is not an integer, or `out` is not of integers.
    ValueError
        There is no element; of `nanargmax`, also if all are NaN.
    LayoutError
        `layout` or `out` does not fit the result.

    Examples
    --------
    >>> from rote import DistTensor
    >>> int(DistTensor.from_global([3, 7, 7], "block[(0)]").argmax())
    1
    """


@family("reduction", _position, Member("argmin", op="min"), np.argmin)
def argmin() -> None:
    """The index of the smallest element, the first of several; a NaN counts as the smallest.

    Arguments and errors as for `argmax`.

    Examples
    --------
    >>> from rote import DistTensor
    >>> DistTensor.from_global([[1, 2], [3, 0]], "block[(0),()]").argmin(axis=1).to_global()
    array([0, 1])
    """


nanargmax: Final = without_nans("reduction", _position, Member("nanargmax", op="max"), 2, "ValueError if there is none")
nanargmin: Final = without_nans("reduction", _position, Member("nanargmin", op="min"), 0, "ValueError if there is none")


def _global(local: Array, dist: Distribution, rank: int, mode: int) -> Array:
    """The global indices along a mode of the elements of a block at local indices."""
    if not dist.splits[mode]:
        return local
    indices = dist.index_sets(rank)[mode]
    if local.size > 8:
        return indices.to_array()[local]
    return np.array([*map(indices.at, local.reshape(-1).tolist())], np.int64).reshape(local.shape)


def _flat(nearest: Array, dist: Distribution, rank: int, block: tuple[int, ...]) -> Array:
    """The index into the flattened tensor, from the index into the flattened block of a rank."""
    if not builtins.any(dist.splits):
        return nearest
    parts = [_global(np.asarray(at), dist, rank, mode) for mode, at in enumerate(np.unravel_index(nearest, block))]
    return np.asarray(np.ravel_multi_index(tuple(parts), dist.shape))


def _combined_extrema(name: str, x: Distributed, ends: Reduced, op: Op) -> Any:
    """The extrema of the contributions of ranks; NaN where any of them is NaN."""
    values = x.local
    if not ends.moves or ends.target.partial or values.dtype.kind != "f":
        return combined(name, x, ends)

    missing = np.isnan(values)
    if values.itemsize > 8:  # wider than any integer: NaNs are reduced separately
        result = combined(name, x, ends)
        nan = missing if op == "max" else ~missing
        nan = combined(name, x._with(nan), ends).local
        return result._with(np.where(nan if op == "max" else ~nan, np.nan, result.local))

    bits = values.reshape(-1).view(f"i{values.itemsize}").reshape(values.shape)
    info = np.iinfo(bits.dtype)
    keys = np.where(missing, info.max if op == "max" else info.min, _in_order(bits))
    result = combined(name, x._with(keys), ends)
    return result._with(_in_order(result.local).view(values.dtype))


def _in_order(bits: Array) -> Array:
    """The bits of numbers as integers in their order, and back: if the sign is set, all other bits are flipped."""
    info = np.iinfo(bits.dtype)
    return np.asarray(bits ^ ((bits >> (info.bits - 1)) & info.max))


# --- methods of ufuncs --------------------------------------------------------------------------------------------


def _by_ufunc(ufunc: np.ufunc, function: Function) -> Function:
    """The method `reduce` of a ufunc, made from a function that takes no dtype."""

    def called(x: Any, /, axis: Axis = 0, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        comm_of(f"{ufunc.__name__}.reduce", (x, out))
        if function in (max, min):
            return function(x if dtype is None else x.astype(dtype), axis, out, **options)
        if dtype is not None and as_dtype(dtype).kind != "b":
            raise TypeError(f"numpy.{ufunc.__name__}.reduce gives truth values, not {as_dtype(dtype)}")
        initial = _start(options.pop("initial", None))
        return finished(function.__name__, function(x, axis, **options), out, ufunc, initial)

    return called


UFUNC_METHODS.update({(np.add, "reduce"): sum, (np.multiply, "reduce"): prod})
for _ufunc, _function in ((np.maximum, max), (np.minimum, min), (np.logical_or, any), (np.logical_and, all)):
    UFUNC_METHODS[_ufunc, "reduce"] = _by_ufunc(_ufunc, _function)
