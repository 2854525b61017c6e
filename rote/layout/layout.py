"""Layouts, which assign digits of modes to modes of the process grid, and distributions, which add sizes.

Both are in one module because each makes the other: `layout.on(shape, grid)` is a distribution, and `dist.layout` is
its layout. The rest of each class is in `algebra.py` and in `blocks.py`.

A layout is written as text, `parse("block[(0),(),(1)]")`, or as a Python expression, `L((0), (), (1), kind="block")`
of `builder.py`; both give equal values that print alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from ..caches import memoized
from ..errors import LayoutError, RoteError
from ..grammar.diagnostics import mistake
from ..grammar.nodes import MAX_TEXT, Entry, LayoutSyntax, Op, TransitionSyntax
from ..grammar.parser import parse_syntax
from ..late import late
from .algebra import LayoutAlgebra
from .exports import Exports
from .expressions import block
from .foreign import ForeignDoors
from .grid import Grid, Printed, grid_shape, tensor_shape
from .slices import Progression, find_layout
from .view import View

__all__ = ["Distribution", "Entry", "Layout", "Op", "Transition", "as_layout", "block", "distribute"]
__all__ += ["find_distribution", "layout_or_none", "parse", "parse_transition"]


class Layout(LayoutAlgebra):
    """An assignment of the modes of a tensor to the modes of a grid.

    Layouts are frozen, hashable values; `parse` and `L` make them. `a >> b` is the `Transition` from one to another,
    `a + partial(3)` is partial over grid mode 3, and `a | root(2)` is rooted at coordinate 0 of grid mode 2.

    Attributes:
        modes: per mode of the view, the entries that refine it, in order.
        view: how the tensor's modes are read; None without a view.
        op: the reduction of a partial layout: "sum", "max", "min" or "prod".
        partial: the grid modes over which the value is a reduction.
        rooted: pairs (grid mode, coordinate): only that coordinate holds data.

    Raises:
        LayoutError: a grid mode is used twice or is not an integer, or the view has another number of modes. Methods
            raise it if there is no such mode, or if the layout does not name such a grid mode, or already names it.

    Source: Popovici et al. (2019, section 3.1.2).

    >>> a = parse("[(0),(),(1)]")
    >>> str(a.move(0, to=1)), a.drop(1).is_prefix_of(a), a >> "[(),(0),(1)]"
    ('[(),(0),(1)]', True, rote.parse_transition('[(0),(),(1)] -> [(),(0),(1)]'))
    >>> a.order, a.tensor_order, a.grid_modes, a.syntax.op
    (3, 3, (0, 1), 'sum')
    """

    __slots__ = ()

    def on(self, shape: Iterable[int] | int, grid: Grid | Iterable[int] | int) -> Distribution:
        """The distribution of the layout on a tensor's own shape and a grid (a `Grid`, or its shape).

        Raises:
            LayoutError: the shape has another order, the grid lacks a mode, or a size or root does not fit.

        >>> parse("block[(0),()]").on((5, 3), (2,)).local_shape(0)
        (3, 3)
        """
        return distribute(self, shape, grid)

    def __rshift__(self, target: Layout | str) -> Transition:
        return Transition(self, as_layout(target))

    def _repr_html_(self) -> str:
        return str(late("layout card")(self))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Distribution(Exports, ForeignDoors):
    """A layout with a shape and a grid, which says what each rank holds. `layout.on(shape, grid)` makes it.

    Grid modes of a single coordinate have no effect: `splits` omits them, and in `roles` they are "replicated".

    Attributes:
        shape: the tensor's own shape.
        view_shape: the extents of the view's modes, or `shape` without a view; blocks and indices have these modes.
        splits: per view mode, its entries on this grid, the outermost first.
        digits: per view mode, the digits of the tensor's own modes that it reads.
        roles: per grid mode, its role: "split", "replicated", "partial" or "rooted".
        partial: the grid modes over which the value is a reduction of several contributions.

    Raises:
        LayoutError: the order, the grid, a view, a block size or a root does not fit. Methods that take a rank raise
            it if the grid has no such rank.

    >>> dist = parse("block[(0),(),(1)]").on((8, 9, 10), Grid((2, 3)))
    >>> dist.local_shape(0), dist.owners((3, 4, 5)), dist.indices(4)[0].tolist()
    ((4, 9, 4), (1,), [4, 5, 6, 7])
    >>> dist.order, dist.meaning == parse("block(4)[(0),(),(1)]").on((8, 9, 10), Grid((2, 3))).meaning
    (3, False)
    """

    layout: Layout

    @classmethod
    def _of(cls, layout: LayoutSyntax, shape: tuple[int, ...], grid: Grid | Iterable[int] | int) -> Self:
        return cls(_from_syntax(layout), shape, Grid(grid_shape(grid)))

    def _repr_html_(self) -> str:
        return str(late("distribution card")(self))


@dataclass(frozen=True, slots=True, repr=False)
class Transition(Printed):
    """A source and a target layout of one tensor: `A -> B`, or `a >> b`.

    Raises:
        LayoutError: the layouts are for tensors of different orders.

    Source: Popovici et al. (2019, section 3.1.3).

    >>> print(parse("[(0),()]") >> parse("[(),(0)]"))
    [(0),()] -> [(),(0)]
    """

    source: Layout
    target: Layout

    def __post_init__(self) -> None:
        if self.source.tensor_order != self.target.tensor_order:
            raise LayoutError(
                f"{self.source} is for tensors of order {self.source.tensor_order}, "
                f"{self.target} for order {self.target.tensor_order}"
            )

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"

    def __repr__(self) -> str:
        return f"rote.parse_transition({str(self)!r})"


@memoized(4096)
def parse(text: str) -> Layout:
    """The layout that a text describes. `str(layout)` prints such a text; equal texts give the same object.

    Args:
        text: a layout, such as `"block[(0),(),(1)]"`.

    Raises:
        NotationError: the text is not a layout, or is a transition `A -> B`; the error shows where, and what to write.

    >>> parse("[(0:block),(),(1:cyclic(4))]")
    rote.parse('block[(0),(),(1:cyclic(4))]')
    """
    syntax = parse_syntax(text)
    if isinstance(syntax, TransitionSyntax):
        raise mistake("unexpected-transition", text, text.index("->"))
    return _from_syntax(syntax)


@memoized(4096)
def parse_transition(text: str) -> Transition:
    """The transition that a text `A -> B` describes. `str(transition)` prints such a text.

    Args:
        text: two layouts with an arrow between them. Equal texts give the same object.

    Raises:
        NotationError: the text is not a transition, or is a single layout; the error shows where, and what to write.

    >>> parse_transition("[(0),()] -> [(),(0)]")
    rote.parse_transition('[(0),()] -> [(),(0)]')
    """
    if isinstance(text, str) and text.count("->") == 1 and len(text) <= MAX_TEXT:
        with suppress(RoteError):  # parsing each side uses the cache; errors are shown in the whole text, below
            return Transition(*map(parse, text.split("->")))
    syntax = parse_syntax(text)
    if isinstance(syntax, LayoutSyntax):
        raise mistake("missing-arrow", text, len(text.rstrip()))
    return Transition(_from_syntax(syntax.source), _from_syntax(syntax.target))


def layout_or_none(value: Layout | str | None) -> Layout | None:
    """A layout, given as such or as text, or None, if the caller is to choose one."""
    return None if value is None else as_layout(value)


def as_layout(value: Layout | str) -> Layout:
    """A layout, given as such or as text."""
    layout = parse(value) if isinstance(value, str) else value
    if not isinstance(layout, Layout):
        kind = type(value).__name__
        raise LayoutError(f"one layout is expected here, not {kind}\nwrite its text, as 'block[(0),()]', or L((0), ())")
    return layout


def _from_syntax(node: LayoutSyntax) -> Layout:
    view = None if node.view is None else View(node.view)
    return Layout(node.modes, view, node.op, node.partial, node.rooted)


def distribute(layout: Layout, shape: Iterable[int] | int, grid: Grid | Iterable[int] | int) -> Distribution:
    """A layout on a shape and a grid, in any form that `Layout.on` takes: `distribute(layout, (8, 9), (2, 2))`."""
    return _distribute(layout, tensor_shape(shape), grid_shape(grid))


@memoized(4096)
def _distribute(layout: Layout, shape: tuple[int, ...], grid: tuple[int, ...]) -> Distribution:
    return Distribution(layout, shape, Grid(grid))


def find_distribution(shape: tuple[int, ...], held: Sequence[Sequence[Progression]]) -> Distribution:
    """The distribution under which every rank holds the given runs, one per mode.

    The grid has as few modes as possible. Any empty run stands for a rank that holds nothing.

    Raises:
        LayoutError: no layout gives these blocks; the text says why.

    >>> from .slices import as_runs
    >>> held = [as_runs((slice(a, a + 2), slice(b, b + 3)), (4, 6)) for b in (0, 3) for a in (0, 2)]
    >>> print(find_distribution((4, 6), held))
    block[(1),(0)] on (4, 6), grid 2x2
    """
    syntax, grid = find_layout(shape, held)
    return distribute(_from_syntax(syntax), shape, grid)
