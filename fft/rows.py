"""The row-wise family (Duy and Ozaki 2014, section 2): all modes but the last are read as one, and split in blocks.

On P ranks and a cube of n points per axis, blocks are of planes if P <= n, and of rows if n < P <= n². The published
order, abc -> cab -> cba, leaves most of a block where it is; here the order that moves least is searched.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

from rote.compiler.cost import lower_bound
from rote.errors import LayoutError
from rote.grammar.nodes import Entry, Fuse, Kind, Name, Tile
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Layout
from rote.layout.refine import unfused
from rote.layout.view import View

from .build import Line
from .problem import Problem
from .resize import begin, sized
from .walk import Transform

__all__ = ["row_layout", "rows"]

Order = tuple[int, ...]
"""The axes in the order in which a layout reads them: all but the last are fused."""


def row_layout(order: Order) -> Layout:
    """The layout that reads all axes but the last of an order as one, in blocks over grid mode 0.

    >>> print(row_layout((2, 0, 1)))
    (c a) b: block[(0),()]

    Raises:
        LayoutError: there are less than three.
    """
    if len(order) < 3:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more; not of order {len(order)}")
    names = tuple(chr(ord("a") + axis) for axis in order)
    return Layout(((Entry(0, Kind("block")),), ()), View((Fuse(names[:-1]), Name(names[-1]))))


def rows(source: Distribution, problem: Problem) -> list[Line]:
    """The lines of the row-wise family, in the order of axes that moves least.

    Args:
        source: on a grid of order 1, a tensor of order 3 or more.
        problem: of all axes; at most one is real on one side and complex on the other.

    Raises:
        LayoutError: the tensor is of another kind.
    """
    order, axes, kind, real = len(source.shape), problem.axes, problem.kind, problem.real
    if order < 3 or sorted(axes) != list(range(order)) or source.grid.order != 1:
        raise LayoutError(f"rows takes all axes of a tensor of order 3 or more, on a grid of order 1; not {source}")
    if source.layout.view is not None and any(isinstance(item, Tile) for item in source.layout.view.items):
        raise LayoutError(f"rows start from whole axes, not {source.layout}; redistribute first")
    here, resizes = begin(source, problem)
    start = next((o for o in permutations(range(order)) if row_layout(o).on(here.shape, here.grid) == here), None)
    if start is None or _waits(start[-1], frozenset(), kind):
        last = next(a for a in (real, *reversed(axes)) if a is not None and not _waits(a, frozenset(), kind))
        others = sorted((a for a in range(order) if a != last), key=lambda a: a != real)
        first, lines = (*others, last), [Line(source.layout, resizes)]
    else:
        first, lines = start, []
    for way in _cheapest(first, frozenset(), here, problem)[1]:
        done = sized(Transform(kind[way[-1]], (1,)), {1: way[-1]}, here.shape, problem)
        lines.append(Line(row_layout(way), done))
    return lines


def _waits(axis: int, done: frozenset[int], kind: dict[int, str]) -> bool:
    """Whether an axis waits for another: complex ones for "rfft", and "irfft" for them."""
    waited = {"fft": "rfft", "irfft": "ifft"}.get(kind[axis])
    return any(kind[a] == waited for a in kind if a not in done)


def _cheapest(
    here: Order, done: frozenset[int], source: Distribution, problem: Problem
) -> tuple[int, tuple[Order, ...]]:
    """The numbers that a rank receives at most on the best way on from an order, and the orders of that way."""
    done = done | {here[-1]}
    todo = [a for a in here if a not in done and not _waits(a, done, problem.kind)]
    if not todo:
        return 0, (here,)
    ways = []
    weight = 2 if problem.real in done else 1
    shape = problem.after(source.shape, [*done])
    for axis in todo:
        rest = tuple(a for a in here[:-1] if a != axis)
        for place in range(len(rest) + 1):  # the axis that is done goes anywhere among those that are fused
            there = (*rest[:place], here[-1], *rest[place:], axis)
            further, orders = _cheapest(there, done, source, problem)
            ways.append((_received(here, there, shape, source.grid) * weight + further, (here, *orders)))
    return min(ways)


@lru_cache(maxsize=8192)  # of five axes there are 1920 pairs of orders
def _received(here: Order, there: Order, shape: tuple[int, ...], grid: Grid) -> int:
    """The elements that a rank receives at most from one order to another."""
    ends = [row_layout(o).on(shape, grid) for o in (here, there)]
    plain = [unfused(end) for end in ends]
    return lower_bound(*(plain if plain[0].grid == plain[1].grid else ends))
