"""Operands of element-wise functions, moved to matching layouts: those to which the moves cost least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...caches import memoized
from ...compiler.compile import compile
from ...compiler.step import as_array
from ...errors import LayoutError
from ...grammar.nodes import Entry
from ...layout.layout import Distribution, Layout
from ...layout.refine import with_components
from ...runtime.copy.regions import cut
from ..alignment import in_blocks
from ..distributed import Array, Distributed
from ..moves import moved

__all__ = ["Together", "as_plain_operands", "common", "together"]

Placed = tuple[Distribution, np.dtype[Any]]
"""The distribution of a tensor, and its dtype."""


class Together(NamedTuple):
    """Operands in matching layouts."""

    target: Distribution  # of the result
    blocks: list[Any]  # per operand, this rank's part, which broadcasts to the result's block; scalars as they are


def together(name: str, operands: Sequence[Any], into: Distributed | None = None) -> Together:
    """Bring tensors, and arrays that every rank holds whole, to matching layouts. Collective if anything moves.

    Args:
        name: the name of the function, for the record of moves and for errors.
        operands: tensors (at least one, unless `into` is given), arrays, sequences of numbers; others stay as they are.
        into: the tensor that is written, which keeps its layout; if None, the cheapest layout is chosen.

    Raises:
        LayoutError: shapes do not broadcast, or the tensors have several communicators.
    """
    given = as_plain_operands(operands)
    tensors = [x for x in given if isinstance(x, Distributed)]
    first = tensors[0] if into is None else into
    if any(x.comm is not first.comm for x in tensors):
        raise LayoutError(f"{name} wants tensors of one communicator; give the same comm to all")
    shapes = [x.distribution.shape if isinstance(x, Distributed) else np.shape(x) for x in given]
    where = None if into is None else into.distribution
    shape = _broadcast(name, shapes, where)
    if where is not None and where.layout.view is not None:  # other blocks do not broadcast to those of a view
        given = [_spread(name, x, shape, where) if isinstance(x, Distributed) else x for x in given]
    placed = tuple([(x.distribution, x.local.dtype) for x in given if isinstance(x, Distributed)])
    target, wanted = common(placed, shape, where)
    targets = iter(wanted)
    blocks: list[Any] = []
    for n, x in enumerate(given):
        if isinstance(x, Distributed):
            dist = next(targets)
            if dist is not None:
                x = moved(x, dist.layout, name, dist.grid, which=n)
            blocks.append(x.local)
        elif isinstance(x, np.ndarray) and x.ndim:
            blocks.append(_part(x, target, first.comm.rank))
        else:
            blocks.append(x)
    return Together(target, blocks)


def as_plain_operands(operands: Sequence[Any]) -> list[Any]:
    """The operands, with lists and tuples of numbers as arrays; masked arrays are refused."""
    return [as_array(x) if isinstance(x, list | tuple | np.ndarray) else x for x in operands]


def _broadcast(name: str, shapes: Sequence[tuple[int, ...]], into: Distribution | None) -> tuple[int, ...]:
    """The shape of the result; that of the tensor that is written, if any."""
    given = " and ".join(str(shape) for shape in dict.fromkeys(shapes) if shape)
    try:
        shape = np.broadcast_shapes(*shapes)
        if into is None:
            return shape
        if np.broadcast_shapes(shape, into.shape) == into.shape:
            return into.shape
    except ValueError:
        pass
    if into is not None:
        given += f" into shape {into.shape}"
    raise LayoutError(
        f"{name} of shapes {given}: they do not broadcast\n"
        "aligned at the last mode, extents are equal or 1; an array is the whole one on every rank: combine one that "
        "fits this rank's block with x.local"
    )


def _spread(name: str, x: Distributed, shape: tuple[int, ...], into: Distribution) -> Distributed:
    """The tensor, repeated along modes that it lacks or that have extent 1; itself if its block broadcasts as it is."""
    if x.distribution.shape in (shape, ()) or _has_components_of(into, x.distribution):
        return x
    target, (end,) = common(((x.distribution, x.local.dtype),), shape)
    if end is not None:
        x = moved(x, end.layout, name, end.grid)
    return x._on(np.broadcast_to(x.local, target.local_shape(x.comm.rank)).copy(), target)


def _part(array: Array, target: Distribution, rank: int) -> Array:
    """The part of an array, broadcast to a tensor, that belongs to a rank."""
    if target.layout.view is not None or array.shape == target.shape:
        return cut(np.broadcast_to(array, target.shape), target, rank)
    return cut(array, _restricted(target, array.shape), rank)


@memoized(4096, once=True)
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

    target, wanted = plans[0] if len(plans) == 1 else min(plans, key=seconds)
    pairs = zip(tensors, wanted, strict=True)
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
