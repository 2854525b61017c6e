"""The layouts that functions need, and the moves to them: plain ones, some modes whole, operands that match, results.

Of several layouts that will do, a function takes the one to which the compiled plans move the least in time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..caches import memoized
from ..compiler.compile import compile
from ..compiler.step import as_dtype
from ..errors import LayoutError
from ..grammar.nodes import BLOCK, Entry
from ..layout.distribution import Distribution
from ..layout.grid import Grid, ravel
from ..layout.layout import Layout
from ..layout.refine import with_components
from ..runtime.arrays import as_array
from ..runtime.placement import check_values
from ..runtime.regions import cut
from .distributed import Array, Distributed, T, changed, comm_of, shape_of, writable
from .moves import KeyedCall, moved, redistributed

__all__ = ["Casting", "as_plain_operands", "as_tensor", "assign", "cheapest", "common", "in_blocks", "into", "matched"]
__all__ += ["no_tensor", "one_per_part", "part_number", "plain", "replicated", "whole_along"]


Casting = Literal["no", "safe", "same_kind", "unsafe"]
"""Which values NumPy casts to the dtype of what is written; see `numpy.can_cast`."""


def plain(x: T, cause: str, call: KeyedCall | None = None) -> T:
    """The tensor in a plain layout: without a view, and neither partial nor rooted; `call` as for `moved`.

    A partial tensor is reduced, and a rooted one is broadcast. A tensor with a view moves to blocks of one mode, the
    one for which that costs least.
    """
    lay, dist = x.distribution.layout, x.distribution
    if lay.view is None and not lay.partial and not lay.rooted:
        return x
    if lay.view is None:
        return moved(x, Layout(lay.modes), cause, call=call)
    candidates = in_blocks(len(dist.shape), dist.grid) or (Layout(()),)
    return moved(x, cheapest(dist, x.local.dtype, candidates), cause, call=call)


def in_blocks(order: int, grid: Grid) -> tuple[Layout, ...]:
    """The layouts that split only one mode, over the whole grid: one layout for each mode of a tensor.

    >>> print(*in_blocks(2, Grid((2, 3))))
    block[(0,1),()] block[(),(0,1)]
    """
    over = tuple([Entry(g, BLOCK) for g in range(grid.order)])
    empty: tuple[Entry, ...] = ()
    return tuple([Layout((*[empty] * mode, over, *[empty] * (order - mode - 1))) for mode in range(order)])


def whole_along(x: T, modes: Collection[int], cause: str) -> T:
    """A plain tensor with some modes whole on every rank.

    The grid modes that split them split another mode instead, the one for which that costs least. They are replicated
    only if no other mode is left.
    """
    x = plain(x, cause)
    lay = x.distribution.layout
    added = tuple([Entry(entry.grid_mode, BLOCK) for mode in modes for entry in lay.modes[mode]])
    if not added:
        return x

    base = reduce(Layout.whole, modes, lay)
    others = [mode for mode in range(lay.order) if mode not in modes]
    candidates = [replace(base, modes=(*base.modes[:m], base.modes[m] + added, *base.modes[m + 1 :])) for m in others]
    return moved(x, cheapest(x.distribution, x.local.dtype, tuple(candidates or [base])), cause)


def part_number(dist: Distribution, rank: int, mode: int) -> int:
    """The number of a rank's part of a mode, from 0."""
    splits, at = dist.splits[mode], dist.grid.coordinates(rank)
    return ravel([at[split.grid_mode] for split in splits], [split.parts for split in splits]) if splits else 0


def one_per_part(dist: Distribution, mode: int) -> Distribution:
    """The distribution that has one index along a mode for each part of it."""
    splits = dist.splits[mode]
    entries = tuple([Entry(split.grid_mode, BLOCK) for split in splits])
    layout = Layout((*dist.layout.modes[:mode], entries, *dist.layout.modes[mode + 1 :]))
    parts = prod(split.parts for split in splits)
    return Distribution(layout, (*dist.shape[:mode], parts, *dist.shape[mode + 1 :]), dist.grid)


def replicated(values: npt.ArrayLike, x: T) -> T:
    """A replicated tensor, made of an array that every rank holds whole, on the grid and the ranks of `x`.

    Raises:
        TypeError: the array has a mask.
    """
    array = as_array(values)
    return x._on(array, Layout(((),) * array.ndim).on(array.shape, x.distribution.grid))


def as_tensor(value: Any, *others: Any) -> Any:
    """A value as a tensor: an array becomes a replicated one, beside the first of the others that is a tensor.

    Raises:
        PlanError: its elements are no numbers.
    """
    first = next((x for x in (value, *others) if isinstance(x, Distributed)), None)
    if first is None or isinstance(value, Distributed):
        return value
    array = as_array(value)
    return replicated(array.astype(as_dtype(array.dtype), copy=False), first)


@memoized(1024, once=True)  # each candidate has a plan to be compiled and priced
def cheapest(source: Distribution, dtype: np.dtype[Any], candidates: tuple[Layout, ...]) -> Layout:
    """The candidate to which a tensor moves in the least time; the first of several that are equal.

    >>> from rote.layout.layout import parse
    >>> rows = parse("block[(0),()]").on((8, 6), 2)
    >>> print(cheapest(rows, np.dtype("f8"), (parse("[(),()]"), parse("block[(),(0)]"))))
    block[(),(0)]
    """
    if len(candidates) == 1:
        return candidates[0]

    def seconds(layout: Layout) -> float:
        return compile(source, replace(source, layout=layout), dtype).cost.seconds

    return min(candidates, key=seconds)


Placed = tuple[Distribution, np.dtype[Any]]
"""The distribution of a tensor, and its dtype."""

# Types of operands that are no arrays; NumPy gives Python's numbers the dtype of the other operand.
_AS_THEY_ARE = (Distributed, int, float, complex, str, bytes, np.generic, type(None))


def matched(
    name: str, operands: Sequence[Any], into: Distributed | None = None, options: Mapping[str, Any] | None = None
) -> tuple[Distribution, list[Any]]:
    """Bring tensors, and arrays that every rank holds whole, to matching layouts. Collective if anything moves.

    Args:
        name: the name of the function, for the record of moves and for errors.
        operands: tensors (at least one, unless `into` is given), numbers, and arrays of any library.
        into: the tensor that is written, which keeps its layout; if None, the cheapest layout is chosen.
        options: the other arguments of the call, which ranks compare if anything moves.

    Returns:
        The distribution of the result, and per operand this rank's part, which broadcasts to the result's block.
        Scalars stay as they are.

    Raises:
        LayoutError: shapes do not broadcast, or the tensors have several communicators.
        TypeError: there is no tensor; or an array has a mask, is a Dask array, or is on another device.
    """
    values = as_plain_operands(operands)
    comm = comm_of(name, (into, *values))
    if comm is None:
        raise TypeError(f"{name} takes a tensor, beside arrays and numbers; make one by DistTensor.from_global")

    shapes = [shape_of(x) for x in values]
    where = None if into is None else into.distribution
    shape = _broadcast(name, shapes, where)
    placed = tuple([(x.distribution, x.local.dtype) for x in values if isinstance(x, Distributed)])
    call = (name, placed, where), (name, values, {"out": into, **(options or {})})
    if where is not None and where.layout.view is not None:  # other blocks do not broadcast to those of a view
        values = [_spread(name, x, shape, where, call) if isinstance(x, Distributed) else x for x in values]
        placed = tuple([(x.distribution, x.local.dtype) for x in values if isinstance(x, Distributed)])

    target, ends = common(placed, shape, where)
    targets = iter(ends)
    blocks: list[Any] = []
    for n, x in enumerate(values):
        if isinstance(x, Distributed):
            dist = next(targets)
            if dist is not None:
                x = moved(x, dist.layout, name, dist.grid, which=n, call=call)
            blocks.append(x.local)
        elif isinstance(x, np.ndarray) and x.ndim:
            blocks.append(_part(x, target, comm.rank))
        else:
            blocks.append(x)
    return target, blocks


def assign(dst: Distributed, src: Any, name: str, casting: Casting = "same_kind", where: Any = True) -> None:
    """Write values, which broadcast, into a tensor.

    Args:
        src, casting, where: as for `numpy.copyto`.
        name: the function that writes, for the record of moves and for errors.

    Raises:
        LayoutError: only some elements of a partial tensor are written.
    """
    if where is not True:
        check_values(f"{name} of some elements", dst.distribution)

    block = writable(dst)
    if dst.distribution.partial:
        values = _values_like(dst)
        assign(values, src, name, casting)
        into(dst, values, name)
        return
    _, (_, part, mask) = matched(name, (dst, src, where), dst)
    np.copyto(block, part, casting=casting, where=mask)
    changed(dst)


def no_tensor(name: str) -> LayoutError:
    """The error of an `out=` that is no tensor."""
    return LayoutError(
        f"{name} of a DistTensor writes into no array; give a tensor as out=, or read the result's .local"
    )


def into(out: Any, result: Any, name: str, casting: Casting = "no") -> Any:
    """The tensor `out`, in any layout, with the result of a function written into it; the result if `out` is None.

    Args:
        name: the function, for the record of moves and for errors.

    Raises:
        LayoutError: `out` is no tensor, or of another shape or dtype. TypeError: NumPy does not cast so.
    """
    if out is None:
        return result
    target = out[0] if type(out) is tuple else out
    if not isinstance(target, Distributed):
        raise no_tensor(name)

    block, end, element = writable(target), target.distribution, result.local.dtype
    if end.shape != result.distribution.shape:
        raise LayoutError(f"{name} has shape {result.distribution.shape}, and out {end.shape}")
    if element != block.dtype:
        if casting == "no":
            raise LayoutError(f"{name} makes elements of {element}, and out is of {block.dtype}")
        if end.partial:
            result = into(_values_like(target), result, name, casting)

    part = redistributed(result, end.layout, name, end.grid).local
    block[...] = part if part.dtype == block.dtype else part.astype(block.dtype, casting=casting)
    changed(target)
    return target


def _values_like(x: T) -> T:
    """A tensor for the values of a partial one, not set yet: only values are broadcast and cast, not contributions."""
    dist = x.distribution
    end = replace(dist, layout=replace(dist.layout, partial=(), op="sum"))
    return x._on(np.empty(end.local_shape(x.comm.rank), x.local.dtype), end)


def as_plain_operands(operands: Sequence[Any]) -> list[Any]:
    """The operands, with all but tensors and numbers as arrays.

    Raises:
        TypeError: an array has a mask, is a Dask array, or is on another device.
    """
    return [x if isinstance(x, _AS_THEY_ARE) else as_array(x) for x in operands]


def _broadcast(name: str, shapes: Sequence[tuple[int, ...]], into: Distribution | None) -> tuple[int, ...]:
    """The shape of the result; that of the tensor that is written, if any."""
    several = {*shapes} - {()}
    if into is None and len(several) == 1:
        return several.pop()

    text = " and ".join(str(shape) for shape in dict.fromkeys(shapes) if shape)
    try:
        shape = np.broadcast_shapes(*shapes)
        if into is None:
            return shape
        if np.broadcast_shapes(shape, into.shape) == into.shape:
            return into.shape
    except ValueError:
        pass

    if into is not None:
        text += f" into shape {into.shape}"
    raise LayoutError(
        f"{name} of shapes {text}: they do not broadcast\n"
        "aligned at the last mode, extents are equal or 1; an array is the whole one on every rank: combine one that "
        "fits this rank's block with x.local"
    )


def _spread(name: str, x: Distributed, shape: tuple[int, ...], into: Distribution, call: KeyedCall) -> Distributed:
    """The tensor, repeated along modes that it lacks or that have extent 1; itself if its block broadcasts as it is."""
    if x.distribution.shape in (shape, ()) or _has_components_of(into, x.distribution):
        return x
    target, (end,) = common(((x.distribution, x.local.dtype),), shape)
    if end is not None:
        x = moved(x, end.layout, name, end.grid, call=call)
    return x._on(np.broadcast_to(x.local, target.local_shape(x.comm.rank)).copy(), target)


def _part(array: Array, target: Distribution, rank: int) -> Array:
    """The part of an array, broadcast to a tensor, that belongs to a rank."""
    if target.layout.view is not None or array.shape == target.shape:
        return cut(np.broadcast_to(array, target.shape), target, rank)
    return cut(array, _restricted(target, array.shape), rank)


@memoized(4096, once=True)  # as above; and warm calls of small tensors are dominated by it
def common(
    tensors: tuple[Placed, ...], shape: tuple[int, ...], into: Distribution | None = None
) -> tuple[Distribution, tuple[Distribution | None, ...]]:
    """The distribution of an element-wise result, and the one to move each tensor to; None if it stays.

    >>> from rote.layout.layout import parse
    >>> field, row = parse("block[(0),()]").on((4, 6), 2), parse("[()]").on(6, 2)
    >>> common(((field, np.dtype("f8")), (row, np.dtype("f8"))), (4, 6)) == (field, (None, None))
    True
    """
    dists = [dist for dist, _ in tensors]
    candidates = list(dict.fromkeys(_candidates(dists, shape))) if into is None else [into]
    plans = []
    for target in candidates:
        ends = [dist if _has_components_of(target, dist) else _restricted(target, dist.shape) for dist in dists]
        plans.append((target, ends))

    def seconds(plan: tuple[Distribution, list[Distribution]]) -> float:
        moves = [(x, y) for x, y in zip(tensors, plan[1], strict=True) if x[0].meaning != y.meaning]
        return sum(compile(source, target, dtype).cost.seconds for (source, dtype), target in moves)

    target, ends = plans[0] if len(plans) == 1 else min(plans, key=seconds)
    pairs = zip(tensors, ends, strict=True)
    return target, tuple([None if dist.meaning == end.meaning else end for (dist, _), end in pairs])


def _candidates(dists: Sequence[Distribution], shape: tuple[int, ...]) -> Iterator[Distribution]:
    """The candidates for a result: operands of its shape; else each mode as in the first operand that has it."""
    full = [dist for dist in dists if dist.shape == shape]
    others = [dist for dist in dists if dist.shape not in (shape, ())]
    targets = [replace(dist, layout=replace(dist.layout, partial=(), op="sum")) for dist in full]
    usable = [t for t in targets if t.layout.view is None or all(_has_components_of(t, dist) for dist in others)]
    if usable:
        yield from usable
        return

    grid = dists[0].grid
    if full:  # read in a view that the other operands do not have
        yield from (Distribution(layout, shape, grid) for layout in in_blocks(len(shape), grid))
        return

    # No operand has the result's shape, as of a row and a column: a mode is split as in the first operand that has it,
    # if its grid modes are free.
    modes: list[tuple[Entry, ...]] = [() for _ in shape]
    used: set[int] = set()
    for dist in dists:
        start = len(shape) - len(dist.shape)
        if dist.grid != grid or dist.layout.view is not None:
            continue
        for mode, entries in enumerate(dist.layout.modes, start):
            grid_modes = {entry.grid_mode for entry in entries}
            if not modes[mode] and shape[mode] == dist.shape[mode - start] and not used & grid_modes:
                modes[mode] = entries
                used |= grid_modes

    roots = {(dist.layout.rooted, dist.grid) for dist in dists if dist.shape}
    yield Distribution(Layout(tuple(modes), rooted=roots.pop()[0] if len(roots) == 1 else ()), shape, grid)


def _has_components_of(field: Distribution, dist: Distribution) -> bool:
    """Whether a field has whole modes in front of those of a tensor, so that blocks broadcast, with a view, too."""
    front = len(field.shape) - len(dist.shape)
    fits = 0 < len(dist.shape) < len(field.shape) and field.shape[front:] == dist.shape
    return fits and field == with_components(dist, field.shape[:front])


def _restricted(target: Distribution, shape: tuple[int, ...]) -> Distribution:
    """The distribution of an operand of a shape whose blocks broadcast to those of a result."""
    if shape == target.shape:
        return target

    start = len(target.shape) - len(shape)
    modes = list(target.layout.modes[start : len(target.shape)])
    for mode, extent in enumerate(shape):
        if extent != target.shape[start + mode]:
            modes[mode] = ()
    layout = Layout(tuple(modes), rooted=target.layout.rooted if shape else ())
    return Distribution(layout, shape, target.grid)
