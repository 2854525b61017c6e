"""The row-wise family (Duy and Ozaki 2014, section 2): all modes but the last are read as one, and split in blocks.

For a cube of n points per axis on P ranks, blocks consist of planes if P <= n, and of rows if n < P <= n². The
published order, abc -> cab -> cba, leaves most of a block in place. This module searches for the orders that move
least: first for the busiest rank, and among orders that are equally good for it, in total.
"""

from __future__ import annotations

from itertools import chain

from rote.caches import memoized
from rote.compiler.movement.matrix import from_others
from rote.compiler.movement.volumes import quickly_counted
from rote.errors import LayoutError
from rote.grammar.nodes import Entry, Fuse, Kind, Name, Tile
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Layout
from rote.layout.refine import unfused_ends
from rote.layout.view import View

from ..request.request import TransformRequest
from ..transforms import AFTER, KINDS, MaybeKind
from ..walk.resize import begin, sized
from ..walk.typecheck import StageSpec
from ..walk.walk import Transform

__all__ = ["row_layout", "rows"]

Order = tuple[int, ...]
"""The axes in the order in which a layout reads them: all but the last are fused."""

Way = tuple[int, int, tuple[Order, ...]]
"""The most elements that any rank receives on a way, the elements that all ranks receive, and the orders of the way."""

_NEAR = 1.02  # ways whose busiest rank receives up to this many times the least count as equal: the total decides
_MANY = 1024  # ranks: on more, orders whose blocks make too many pieces are left out
_SEARCHED = 5  # up to so many axes all ways are tried: six axes have 375,000


def row_layout(order: Order) -> Layout:
    """The layout that fuses all axes of an order but the last, and splits them in blocks over grid mode 0.

    >>> print(row_layout((2, 0, 1)))
    (c a) b: block[(0),()]

    Raises:
        LayoutError: there are fewer than three axes.
    """
    if len(order) < 3:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more; not of order {len(order)}")
    names = tuple(chr(ord("a") + axis) for axis in order)
    return Layout(((Entry(0, Kind("block")),), ()), View((Fuse(names[:-1]), Name(names[-1]))))


def rows(source: Distribution, request: TransformRequest) -> list[StageSpec]:
    """The lines of a walk of the row-wise family, in the order of axes that moves least.

    Args:
        source: the distribution of a tensor of order 3 or more, on a grid of order 1.
        request: a transform of all axes; at most one is real on one side and complex on the other.

    Raises:
        LayoutError: the family does not take such a tensor.
    """
    order, axes, kind, real = len(source.shape), request.axes, request.kind, request.real
    if order < 3 or sorted(axes) != list(range(order)) or source.grid.order != 1:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more, on a grid of order 1; not {source}")
    if source.layout.view is not None and any(isinstance(item, Tile) for item in source.layout.view.items):
        raise LayoutError(f"rows start from whole axes, not {source.layout}; redistribute first")
    dist, resizes = begin(source, request)
    start = _order(dist)
    if start is None or _waits(start[-1], frozenset(), kind):
        last = next(a for a in (real, *reversed(axes)) if a is not None and not _waits(a, frozenset(), kind))
        others = sorted((a for a in range(order) if a != last), key=lambda a: a != real)
        first, lines = (*others, last), [StageSpec(source.layout, resizes)]
    else:
        first, lines = start, []
    front = _ways(first, frozenset(), dist, request)
    if not front:
        raise LayoutError(f"the rows of {dist.shape} on {dist.grid} ranks fit each other too badly")
    near = [way for way in front if way[0] <= _NEAR * front[0][0]]
    for way in near[-1][2]:
        done = sized(Transform(KINDS[kind[way[-1]]].name, (1,)), {1: way[-1]}, dist.shape, request)
        lines.append(StageSpec(row_layout(way), done))
    return lines


def _waits(axis: int, done: frozenset[int], kind: dict[int, MaybeKind]) -> bool:
    """Whether an axis must wait for another: complex axes wait for "rfft", and "irfft" waits for complex axes."""
    return any(kind[a] == AFTER.get(kind[axis]) for a in kind if a not in done)


def _order(dist: Distribution) -> Order | None:
    """The order in which a distribution reads the axes; None if it is not a row layout."""
    order = tuple(digit.mode for digit in chain(*dist.digits))
    return order if row_layout(order).on(dist.shape, dist.grid) == dist else None


def _ways(order: Order, done: frozenset[int], source: Distribution, request: TransformRequest) -> list[Way]:
    """The Pareto-optimal ways on from an order, by busiest rank and total; the best for the busiest rank first.

    Empty if the blocks of all orders fit each other too badly.
    For more than `_SEARCHED` axes only the best next order is followed.
    """
    done = done | {order[-1]}
    todo = [a for a in order if a not in done and not _waits(a, done, request.kind)]
    if not todo:
        return [(0, 0, (order,))]
    steps: list[tuple[int, int, Order]] = []
    weight = 2 if request.real in done else 1
    shape = request.after(source.shape, [*done])
    for axis in todo:
        rest = tuple(a for a in order[:-1] if a != axis)
        for place in range(len(rest) + 1):  # the transformed axis may go anywhere among the fused ones
            next_order = (*rest[:place], order[-1], *rest[place:], axis)
            moved = _moved(order, next_order, shape, source.grid)
            if moved is not None:
                steps.append((weight * moved[0], weight * moved[1], next_order))
    ways: list[Way] = []
    for most, total, next_order in steps if len(order) <= _SEARCHED else sorted(steps)[:1]:
        further = _ways(next_order, done, source, request)
        ways += [(most + other, total + more, (order, *orders)) for other, more, orders in further]
    front: list[Way] = []
    for way in sorted(ways):
        if not front or way[1] < front[-1][1]:
            front.append(way)
    return front


@memoized(8192)  # five axes have 1920 pairs of orders
def _moved(before: Order, after: Order, shape: tuple[int, ...], grid: Grid) -> tuple[int, int] | None:
    """The most elements that any rank receives between two orders, and the elements that all ranks receive.

    None on many ranks if the blocks of the two orders fit each other too badly to be compared quickly.
    """
    ends = unfused_ends(row_layout(before).on(shape, grid), row_layout(after).on(shape, grid))
    if grid.size > _MANY and not quickly_counted(*ends):
        return None
    received = from_others(*ends)[0]
    return int(received.max()), int(received.sum(dtype=object)) * (grid.size // received.size)
