"""Layouts: which digits of which mode belong to which mode of the process grid; no sizes yet.

A layout is written as text, `parse("block[(0),(),(1)]")`, or as a Python expression, `L((0), (), (1), kind="block")`
of `builder.py`; both give equal values that print alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..caches import memoized
from ..errors import LayoutError, RoteError, counted
from ..grammar.diagnostics import mistake
from ..grammar.nodes import (
    CYCLIC,
    MAX_GRID_MODES,
    MAX_MODES,
    MAX_NUMBER,
    MAX_TEXT,
    Entry,
    LayoutSyntax,
    Op,
    TransitionSyntax,
)
from ..grammar.parser import parse_syntax
from ..grammar.text import unparse
from ..late import late
from .expressions import Partial, Rooted, as_entry, block, layout_code
from .grid import Grid, integer
from .view import View

if TYPE_CHECKING:
    from .distribution import Distribution

__all__ = ["Entry", "Layout", "Op", "Transition", "as_layout", "block", "parse", "parse_transition"]


@dataclass(frozen=True, slots=True, repr=False)
class Layout:
    """An assignment of the modes of a tensor to the modes of a grid (Popovici et al. 2019, section 3.1.2).

    Layouts are frozen, hashable values. `a >> b` is the `Transition` from one to another, `a + partial(3)` is partial
    over grid mode 3, and `a | root(2)` is rooted at coordinate 0 of grid mode 2.

    Attributes:
        modes: per mode of the view, the entries that refine it, in order.
        view: how the tensor's modes are read; None when they are read as they are.
        op: the reduction of a partial layout: "sum", "max", "min" or "prod".
        partial: the grid modes over which the value is a reduction.
        rooted: pairs (grid mode, coordinate): only that coordinate holds data.

    Raises:
        LayoutError: a grid mode is used twice or is no integer, or the view has another number of modes; of a method,
            there is no such mode, or the layout does not name such a grid mode, or names it already.

    >>> a = parse("[(0),(),(1)]")
    >>> str(a.move(0, to=1)), a.drop(1).is_prefix_of(a), a >> "[(),(0),(1)]"
    ('[(),(0),(1)]', True, L((0), (), (1)) >> L((), (0), (1)))
    >>> a.order, a.tensor_order, a.grid_modes, a.syntax.op
    (3, 3, (0, 1), 'sum')
    """

    modes: tuple[tuple[Entry, ...], ...]
    view: View | None = None
    op: Op = "sum"
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            canonical = self.syntax
        except TypeError as error:
            raise LayoutError(str(error)) from None
        if canonical.view is None:
            object.__setattr__(self, "view", None)
        object.__setattr__(self, "op", canonical.op)
        object.__setattr__(self, "partial", canonical.partial)
        object.__setattr__(self, "rooted", canonical.rooted)
        self._check()
        object.__setattr__(self, "_hash", hash((self.modes, self.view, self.op, self.partial, self.rooted)))

    def __hash__(self) -> int:
        return self._hash  # kept, for layouts are looked up wherever a tensor is laid out

    def __reduce__(self) -> tuple[object, ...]:
        return Layout, (self.modes, self.view, self.op, self.partial, self.rooted)  # another process hashes otherwise

    def _check(self) -> None:
        """Refuse what no text says, so that every layout prints as one that parses back to it."""
        used = self.grid_modes
        for g in used:
            if not 0 <= g < MAX_GRID_MODES:
                raise LayoutError(f"a grid mode is a number from 0 to {MAX_GRID_MODES - 1}, not {g}")
            if used.count(g) > 1:
                raise LayoutError(f"grid mode {g} is used twice in {unparse(self.syntax)}; use each at most once")
        for _, at in self.rooted:
            if not 0 <= at < MAX_NUMBER:
                raise LayoutError(f"the coordinate of a root is 0 or more, and below 2**63, not {at}")
        if self.order > MAX_MODES:
            raise LayoutError(f"a layout has at most {MAX_MODES} modes, not {self.order}")
        if self.view is not None and self.view.order != self.order:
            raise LayoutError(f"the view has {counted(self.view.order, 'mode')}, but the layout has {self.order}")

    @property
    def order(self) -> int:
        """The number of modes (those of the view, if there is one)."""
        return len(self.modes)

    @property
    def tensor_order(self) -> int:
        """The number of modes of the tensor itself."""
        return self.order if self.view is None else self.view.tensor_order

    @property
    def grid_modes(self) -> tuple[int, ...]:
        """The grid modes that the layout names, in the order of the text; it is replicated over all others."""
        return tuple(e.grid_mode for mode in self.modes for e in mode) + self.partial + tuple(g for g, _ in self.rooted)

    @property
    def syntax(self) -> LayoutSyntax:
        """The syntax node of the layout's text."""
        view = None if self.view is None else self.view.items
        return LayoutSyntax(self.modes, view, self.op, self.partial, self.rooted)

    def on(self, shape: Iterable[int] | int, grid: Grid | Iterable[int] | int) -> Distribution:
        """The distribution that the layout is on the tensor's own shape and a grid, a `Grid` or its shape.

        Raises:
            LayoutError: the shape has another order, the grid lacks a mode, or a size or root does not fit.

        >>> parse("block[(0),()]").on((5, 3), (2,)).local_shape(0)
        (3, 3)
        """
        from .distribution import distribute

        return distribute(self, shape, grid)

    def move(self, grid_mode: int, to: int) -> Layout:
        """The layout in which the entry of `grid_mode` stands last in mode `to`; an all-to-all.

        >>> print(parse("block[(0),(1)]").move(0, to=1))
        block[(),(1,0)]
        """
        grid_mode = integer(grid_mode, "a grid mode")
        entries = [e for mode in self.modes for e in mode if e.grid_mode == grid_mode]
        if not entries:
            raise LayoutError(f"{self} splits no mode over grid mode {grid_mode}; use .split to add it")
        return self.drop(grid_mode).split(to, entries[0])

    def drop(self, grid_mode: int) -> Layout:
        """The layout that no longer names `grid_mode`, and so is replicated over it; an all-gather (or all-reduce).

        >>> print(parse("[(0),(1)]").drop(1), parse("[(0),()]+(1)").drop(1))
        [(0),()] [(0),()]
        """
        grid_mode = integer(grid_mode, "a grid mode")
        if grid_mode not in self.grid_modes:
            raise LayoutError(f"{self} does not name grid mode {grid_mode}")
        partial = tuple(g for g in self.partial if g != grid_mode)
        return replace(
            self,
            modes=tuple(tuple(e for e in mode if e.grid_mode != grid_mode) for mode in self.modes),
            op=self.op if partial else "sum",
            partial=partial,
            rooted=tuple((g, at) for g, at in self.rooted if g != grid_mode),
        )

    def split(self, mode: int, entry: int | Entry) -> Layout:
        """The layout in which `mode` is further split by `entry`; a local slice.

        Args:
            mode: of the view, if there is one; numbered from 0.
            entry: a grid mode, over which the split is cyclic, or `block(0)`, `cyclic(0, 4)` and their like.

        >>> print(parse("[(0),()]").split(1, block(1)))
        [(0),(1:block)]
        """
        mode = self._mode(mode)
        return self._with_mode(mode, (*self.modes[mode], as_entry(entry, CYCLIC)))

    def whole(self, mode: int) -> Layout:
        """The layout in which `mode` is not split at all; an all-gather over what split it.

        >>> print(parse("block[(0,1),(2)]").whole(0))
        block[(),(2)]
        """
        return self._with_mode(self._mode(mode), ())

    def is_prefix_of(self, other: Layout) -> bool:
        """Whether every entry list is a prefix of the other's: then a rank's block under `other` is part of its own.

        >>> parse("[(0),()]").is_prefix_of(parse("[(0,1),(2)]")), parse("[(1)]").is_prefix_of(parse("[(0,1)]"))
        (True, False)
        """
        return (
            (self.view, self.partial, self.op, self.order) == (other.view, other.partial, other.op, other.order)
            and set(self.rooted) <= set(other.rooted)
            and all(longer[: len(mode)] == mode for mode, longer in zip(self.modes, other.modes, strict=True))
        )

    def _mode(self, mode: int) -> int:
        """The number of a mode, as one that is there."""
        number = integer(mode, "a mode")
        if not 0 <= number < self.order:
            has = f"modes 0 to {self.order - 1}" if self.order else "no modes"
            raise LayoutError(f"{self} has {has}, not {number}")
        return number

    def _with_mode(self, mode: int, entries: tuple[Entry, ...]) -> Layout:
        return replace(self, modes=self.modes[:mode] + (entries,) + self.modes[mode + 1 :])

    def __rshift__(self, target: Layout | str) -> Transition:
        return Transition(self, as_layout(target))

    def __add__(self, other: Partial) -> Layout:
        if not isinstance(other, Partial):
            return NotImplemented
        if self.partial and self.op != other.op:
            raise LayoutError(f"a layout is partial under one operation; {self} cannot be {other.op} as well")
        return replace(self, op=other.op, partial=self.partial + other.grid_modes)

    def __or__(self, other: Rooted) -> Layout:
        if not isinstance(other, Rooted):
            return NotImplemented
        return replace(self, rooted=(*self.rooted, (other.grid_mode, other.at)))

    def __str__(self) -> str:
        return unparse(self.syntax)

    def __repr__(self) -> str:
        return layout_code(self.syntax)

    def _repr_html_(self) -> str:
        return str(late("layout card")(self))


@dataclass(frozen=True, slots=True, repr=False)
class Transition:
    """From one layout to another of the same tensor: `A -> B`, or `a >> b` (Popovici et al. 2019, section 3.1.3).

    Raises:
        LayoutError: the layouts are for tensors of different orders.

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
        # | binds less tightly than >>
        source, target = (f"({side!r})" if side.rooted else repr(side) for side in (self.source, self.target))
        return f"{source} >> {target}"


@memoized(4096)
def parse(text: str) -> Layout:
    """The layout that a text says, as `str(layout)` prints it; of one text always the same object.

    Raises:
        NotationError: the text is no layout, or a transition `A -> B`; the error shows where, and what to write.

    >>> parse("[(0:block),(),(1:cyclic(4))]")
    L(block(0), (), cyclic(1, 4))
    """
    syntax = parse_syntax(text)
    if isinstance(syntax, TransitionSyntax):
        raise mistake("unexpected-transition", text, text.index("->"))
    return _from_syntax(syntax)


@memoized(4096)
def parse_transition(text: str) -> Transition:
    """The transition that a text says, `A -> B`, as `str(transition)` prints it; of one text always the same object.

    Raises:
        NotationError: the text is no transition, or one layout alone; the error shows where, and what to write.

    >>> parse_transition("[(0),()] -> [(),(0)]")
    L((0), ()) >> L((), (0))
    """
    if isinstance(text, str) and text.count("->") == 1 and len(text) <= MAX_TEXT:
        with suppress(RoteError):  # which is shown in the whole text; a layout comes in many transitions
            return Transition(*map(parse, text.split("->")))
    syntax = parse_syntax(text)
    if isinstance(syntax, LayoutSyntax):
        raise mistake("missing-arrow", text, len(text.rstrip()))
    return Transition(_from_syntax(syntax.source), _from_syntax(syntax.target))


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
