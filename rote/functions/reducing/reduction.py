"""Reductions: each rank reduces its block; contributions are combined over the grid modes that split reduced modes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import prod
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...caches import memoized
from ...compiler.step import as_array
from ...errors import LayoutError
from ...grammar.nodes import Op
from ...layout.layout import Distribution, Layout, distribute, layout_or_none
from ..alignment import plain
from ..distributed import Array, Distributed
from ..elements.blockwise import elementwise
from ..elements.elementwise import copyto
from ..moves import asked, moved

__all__ = ["UNSET", "Axis", "Over", "Reduced", "computed_in", "extents_of", "finished", "modes_of_mean", "normal_axes"]
__all__ += ["over", "reduced", "reducible", "reduction", "settled"]

Casting = Literal["same_kind", "unsafe"]

Axis = int | tuple[int, ...] | None
Modes = tuple[int, ...]
Local = Callable[[Array, Modes | None], Any]
T = TypeVar("T", bound=Distributed)

UNSET: Any = np._NoValue
"""The value that NumPy passes on for an argument that was not given."""


class Over(NamedTuple):
    """The modes to reduce, whether they are kept with extent 1, and the layout that is asked for, if any."""

    modes: Modes
    keepdims: bool = False
    layout: Layout | None = None


class Reduced(NamedTuple):
    """The distributions of the contributions to a reduction and of its result, and whether data moves between them."""

    contributions: Distribution
    target: Distribution
    moves: bool


def over(x: Distributed, axis: Axis, keepdims: bool, layout: Layout | str | None) -> Over:
    """The arguments of a reduction of a tensor, checked; errors as of `normal_axes`."""
    return Over(normal_axes(axis, len(x.distribution.shape)), keepdims, layout_or_none(layout))


def reduction(name: str, x: Distributed, over: Over, op: Op, local: Local) -> Any:
    """Reduce some modes of a tensor. Collective if they are split.

    The tensor is as `reducible` returns it. `local` reduces a block over some of its modes or, for None, over all, and
    `op` combines the contributions of ranks.
    """
    where = reduced(x.distribution, over, op)
    return settled(name, contributed(x, over.modes, where, local), where)


def contributed(x: T, modes: Modes, where: Reduced, local: Local) -> T:
    """The tensor of contributions to a reduction; it is the result already if nothing moves."""
    viewed = x.distribution.layout.view is not None
    block = np.asarray(local(_in_one_order(x), None if viewed else modes))
    shape = where.contributions.local_shape(x.comm.rank)
    if block.shape != shape:  # kept modes of extent 1, or a rank outside the root
        block = block.reshape(shape) if block.size == prod(shape) else np.empty(shape, block.dtype)
    lies = where.contributions if where.moves else where.target
    return x._on(block, lies)


def _in_one_order(x: Distributed) -> Array:
    """A block, in row-major order if it has replicas: theirs may differ in memory order, and sums need equal bits."""
    block, dist = x.local, x.distribution
    if block.flags.c_contiguous or block.dtype.kind not in "fc":
        return block
    extents = zip(dist.roles, dist.grid.shape, strict=True)
    replicas = prod([extent for role, extent in extents if role.name == "replicated"])
    return block if replicas == 1 else np.ascontiguousarray(block)


def settled(name: str, contributions: T, where: Reduced) -> T:
    """The result of a reduction, from the contributions of the ranks."""
    if where.moves:
        return asked(contributions, where.target.layout, name)
    if contributions.distribution is where.target:
        return contributions
    return contributions._on(contributions.local, where.target)


@memoized(4096)
def reduced(source: Distribution, over: Over, op: Op) -> Reduced:
    """The distributions of the contributions to a reduction, and of its result.

    >>> from rote.layout.layout import parse
    >>> where = reduced(parse("block[(0),(1)]").on((8, 6), (2, 3)), Over((0,)), "max")
    >>> print(where.contributions.layout, where.target.layout)
    block[(1)]+max(0) block[(1)]
    """
    lay, order, modes = source.layout, len(source.shape), over.modes
    entries = [lay.modes[m] for m in range(order) if m in modes] if lay.view is None else lay.modes
    split = [entry.grid_mode for entry in chain(*entries)]
    left = list(lay.modes) if lay.view is None else [()] * order
    extents = list(source.shape)
    for m in modes:
        left[m], extents[m] = (), 1
    kept = [m for m in range(order) if over.keepdims or m not in modes]
    ends, shape = tuple([left[m] for m in kept]), tuple([extents[m] for m in kept])
    partial = (*split, *lay.partial)
    contributions = Layout(ends, op=op, partial=partial, rooted=lay.rooted)
    target = over.layout or Layout(ends, rooted=lay.rooted)
    first, last = (distribute(each, shape, source.grid) for each in (contributions, target))
    return Reduced(first, last, first.meaning != last.meaning)


def reducible(name: str, x: T, modes: Modes, op: str, dtype: np.dtype[Any] | None = None) -> T:
    """The tensor as a reduction takes it: not partial, or partial with the same operation.

    A view is kept if all modes are reduced, because it does not matter then how they are read. Contributions of another
    dtype than that of the reduction are combined first.
    """
    lay = x.distribution.layout
    if lay.partial and (lay.op != op or (dtype is not None and dtype != x.local.dtype)):
        x = moved(x, Layout(lay.modes, lay.view, rooted=lay.rooted), name)
    return x if lay.view is None or len(modes) == len(x.distribution.shape) else plain(x, name)


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
    named = axis if isinstance(axis, tuple) else (axis,)
    if any(isinstance(each, bool | np.bool_) for each in named):
        raise TypeError(f"an axis is an integer, not {axis}")
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, order))


def extents_of(x: Distributed, modes: Modes) -> int:
    """The number of elements that are reduced to one element of the result."""
    return prod([x.distribution.shape[mode] for mode in modes])


def modes_of_mean(axis: Axis, order: int) -> Modes:
    """The modes of a mean, whose elements NumPy counts: for order 0, it refuses the axes 0 and -1."""
    if order == 0 and isinstance(axis, int):
        axis = (axis,)
    return normal_axes(axis, order)


def computed_in(dtype: npt.DTypeLike | None, own: np.dtype[Any], out: Any) -> npt.DTypeLike | None:
    """The dtype of a reduction: `dtype`, or that of the elements and `out` together; None if neither is given.

    >>> computed_in("f4", np.dtype("i8"), None), computed_in(None, np.dtype("i8"), None)
    ('f4', None)
    """
    return np.result_type(own, out.local.dtype) if dtype is None and isinstance(out, Distributed) else dtype


def laid(name: str, x: T, layout: Layout | str | None) -> T:
    """The tensor in the layout that is asked for, which arithmetic on contributions changes; itself if none is."""
    lay = layout_or_none(layout)
    return x if lay in (None, x.distribution.layout) else asked(x, lay, name)


def finished(
    name: str,
    result: Any,
    out: Any,
    ufunc: np.ufunc | None = None,
    initial: Any = UNSET,
    casting: Casting = "unsafe",
) -> Any:
    """The result combined with `initial`, and written into `out`, of any dtype as in NumPy, if they are given."""
    if ufunc is not None and initial is not UNSET and initial is not None:
        lay = result.distribution.layout
        result = laid(name, elementwise(name, ufunc, (result, as_array(initial, result.local.dtype)), {}), lay)
    if out is None or out is UNSET:
        return result
    if not isinstance(out, Distributed):
        raise LayoutError(f"{name} of a DistTensor writes no array; give a tensor as out=, or read the result's .local")
    if out.distribution.shape != result.distribution.shape:
        raise LayoutError(f"{name} has shape {result.distribution.shape}, and out {out.distribution.shape}")
    copyto(out, result, casting)
    return out
