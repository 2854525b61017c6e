"""Layouts, which assign digits of modes to modes of the process grid, and transitions between two layouts.

A layout is written as text, `parse("block[(0),(),(1)]")`, or as a Python expression, `L((0), (), (1), kind="block")` of
`expressions.py`; both give equal values that print alike. A layout is its own syntax node: the parser builds it, and
the formatter prints it. It has no sizes: those come with a shape and a grid, in a `Distribution`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..caches import memoized
from ..errors import LayoutError, NotationError, RoteError, counted
from ..grammar.diagnostics import mistake
from ..grammar.nodes import (
    CYCLIC,
    MAX_GRID_MODES,
    MAX_MODES,
    MAX_NUMBER,
    MAX_TEXT,
    Entry,
    Kind,
    LayoutSyntax,
    Op,
    TransitionSyntax,
    exact,
)
from ..grammar.parser import parse_as
from ..grammar.text import unparse
from ..lazy import late
from .grid import Grid, Printed, integer
from .view import View

if TYPE_CHECKING:
    from .distribution import Distribution

__all__ = ["Entry", "Layout", "Op", "Transition", "as_entry", "as_layout", "identity", "layout_or_none"]
__all__ += ["parse", "parse_transition", "shortened"]


@dataclass(frozen=True, slots=True, repr=False)
class Layout(LayoutSyntax, Printed):
    """An assignment of the modes of a tensor to the modes of a grid.

    Layouts are frozen, hashable values; `parse` and `L` make them. `a >> b` is the `Transition` from one to another,
    `a + partial(3)` is partial over grid mode 3, and `a | root(2)` is rooted at coordinate 0 of grid mode 2.

    Attributes
    ----------
    modes : tuple[tuple[Entry, ...], ...]
        Per mode of the view, the entries that refine it, in order.
    view : View | None
        How the tensor's modes are read; None without a view.
    op : {'sum', 'max', 'min', 'prod'}
        The reduction of a partial layout: "sum", "max", "min" or "prod".
    partial : tuple[int, ...]
        The grid modes over which the value is a reduction.
    rooted : tuple[tuple[int, int], ...]
        Pairs (grid mode, coordinate): only that coordinate holds data.

    Raises
    ------
    LayoutError
        A grid mode is used twice or is not an integer, or the view has another number of modes. Methods raise it if
        there is no such mode, or if the layout does not name such a grid mode, or already names it.

    Notes
    -----
    Source: Popovici et al. (2019, section 3.1.2).

    Examples
    --------
    >>> from rote import parse
    >>> a = parse("[(0),(),(1)]")
    >>> str(a.move(0, to=1)), a.drop(1).is_prefix_of(a), a >> "[(),(0),(1)]"
    ('[(),(0),(1)]', True, rote.parse_transition('[(0),(),(1)] -> [(),(0),(1)]'))
    >>> a.order, a.tensor_order, a.grid_modes, a.syntax.op
    (3, 3, (0, 1), 'sum')
    """

    view: View | None = None
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.modes, str):
            raise LayoutError(f"Layout takes tuples of entries, not text\nwrite rote.parse({self.modes!r})")
        try:
            LayoutSyntax.__post_init__(self)
        except TypeError as error:
            raise LayoutError(str(error)) from None
        if self.view is not None:
            object.__setattr__(self, "view", View(self.view))  # the parser gives a plain tuple
        self._check()

        object.__setattr__(self, "_hash", hash((self.modes, self.view, self.op, self.partial, self.rooted)))

    def __hash__(self) -> int:
        return self._hash  # cached, because layouts are looked up whenever a tensor is laid out

    def __reduce__(self) -> tuple[object, ...]:
        # Hashes differ between processes, so the cached one is left out.
        return type(self), (self.modes, self.view, self.op, self.partial, self.rooted)

    def _check(self) -> None:
        """Refuse a layout that no text describes, so that every layout prints as text that parses back to it."""
        used = self.grid_modes
        for g in used:
            if not 0 <= g < MAX_GRID_MODES:
                raise LayoutError(f"a grid mode is a number from 0 to {MAX_GRID_MODES - 1}, not {g}")
            if used.count(g) > 1:
                raise LayoutError(f"grid mode {g} is used twice in {unparse(self)}; use each at most once")

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
    def grid_modes(self) -> tuple[int, ...]:
        """The grid modes that the layout names, in the order of the text; it is replicated over all others."""
        splitting = [entry.grid_mode for entry in chain(*self.modes)]
        return (*splitting, *self.partial, *[g for g, _ in self.rooted])

    @property
    def syntax(self) -> LayoutSyntax:
        """The syntax node of the layout's text, which is the layout itself."""
        return self

    def on(self, shape: Iterable[int] | int, grid: Grid | Iterable[int] | int) -> Distribution:
        """The distribution of the layout on a tensor's own shape and a grid (a `Grid`, or its shape).

        Raises
        ------
        LayoutError
            The shape has another order, the grid lacks a mode, or a size or root does not fit.

        Examples
        --------
        >>> from rote import parse
        >>> parse("block[(0),()]").on((5, 3), (2,)).local_shape(0)
        (3, 3)
        """
        dist: Distribution = late("layout.distribution:distribute")(self, shape, grid)
        return dist

    def move(self, grid_mode: int, to: int) -> Self:
        """The layout in which the entry of `grid_mode` is the last one of mode `to`: an all-to-all.

        Examples
        --------
        >>> from rote import parse
        >>> print(parse("block[(0),(1)]").move(0, to=1))
        block[(),(1,0)]
        """
        grid_mode = integer(grid_mode, "a grid mode")
        entries = [entry for entry in chain(*self.modes) if entry.grid_mode == grid_mode]
        if not entries:
            raise LayoutError(f"{self} splits no mode over grid mode {grid_mode}; use .split to add it")
        return self.drop(grid_mode).split(to, entries[0])

    def drop(self, grid_mode: int) -> Self:
        """The layout without `grid_mode`, over which it is then replicated: an all-gather (or all-reduce).

        Examples
        --------
        >>> from rote import parse
        >>> print(parse("[(0),(1)]").drop(1), parse("[(0),()]+(1)").drop(1))
        [(0),()] [(0),()]
        """
        grid_mode = integer(grid_mode, "a grid mode")
        if grid_mode not in self.grid_modes:
            raise LayoutError(f"{self} does not name grid mode {grid_mode}")

        modes = []
        for mode in self.modes:
            modes.append(tuple([entry for entry in mode if entry.grid_mode != grid_mode]))

        partial = tuple([g for g in self.partial if g != grid_mode])
        rooted = tuple([(g, at) for g, at in self.rooted if g != grid_mode])
        op: Op = self.op if partial else "sum"
        return replace(self, modes=tuple(modes), op=op, partial=partial, rooted=rooted)

    def split(self, mode: int, entry: int | Entry) -> Self:
        """The layout in which `entry` splits `mode` further: a local slice.

        Parameters
        ----------
        mode : int
            The number of the mode, from 0; a mode of the view, if there is one.
        entry : int | Entry
            A grid mode, over which the split is cyclic, or an entry such as `block(0)` or `cyclic(0, 4)`.

        Examples
        --------
        >>> from rote import block, parse
        >>> print(parse("[(0),()]").split(1, block(1)))
        [(0),(1:block)]
        """
        mode = self._mode(mode)
        return self._with_mode(mode, (*self.modes[mode], as_entry(entry, CYCLIC)))

    def whole(self, mode: int) -> Self:
        """The layout in which nothing splits `mode`: an all-gather over the grid modes that split it.

        Examples
        --------
        >>> from rote import parse
        >>> print(parse("block[(0,1),(2)]").whole(0))
        block[(),(2)]
        """
        return self._with_mode(self._mode(mode), ())

    def is_prefix_of(self, other: Layout) -> bool:
        """Whether each entry list of this layout begins that of `other`, whose blocks are then parts of this one's.

        Raises
        ------
        LayoutError
            `other` is not a layout.

        Examples
        --------
        >>> from rote import parse
        >>> parse("[(0),()]").is_prefix_of(parse("[(0,1),(2)]")), parse("[(1)]").is_prefix_of(parse("[(0,1)]"))
        (True, False)
        """
        if not isinstance(other, Layout):
            raise LayoutError(f"a layout is a prefix of a layout, not of {other!r}; write parse(text)")

        # A root leaves fewer ranks with data, so it refines, as an entry does.
        return (
            (self.view, self.partial, self.op, self.order) == (other.view, other.partial, other.op, other.order)
            and set(self.rooted) <= set(other.rooted)
            and all(longer[: len(mode)] == mode for mode, longer in zip(self.modes, other.modes, strict=True))
        )

    def _mode(self, mode: int) -> int:
        number = integer(mode, "a mode")
        if not 0 <= number < self.order:
            has = f"modes 0 to {self.order - 1}" if self.order else "no modes"
            raise LayoutError(f"{self} has {has}, not {number}")
        return number

    def _with_mode(self, mode: int, entries: tuple[Entry, ...]) -> Self:
        return replace(self, modes=self.modes[:mode] + (entries,) + self.modes[mode + 1 :])

    def __rshift__(self, target: Layout | str) -> Transition:
        return Transition(self, as_layout(target))

    def __str__(self) -> str:
        return unparse(self)

    def __repr__(self) -> str:
        return f"rote.parse({str(self)!r})"

    def _repr_html_(self) -> str:
        return str(late("html.page:layout_card")(self))


@dataclass(frozen=True, slots=True, repr=False)
class Transition(TransitionSyntax, Printed):
    """A source and a target layout of one tensor: `A -> B`, or `a >> b`.

    Raises
    ------
    LayoutError
        The layouts are for tensors of different orders.

    Notes
    -----
    Source: Popovici et al. (2019, section 3.1.3).

    Examples
    --------
    >>> from rote import parse
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
        return unparse(self)

    def __repr__(self) -> str:
        return f"rote.parse_transition({str(self)!r})"


def shortened(text: str) -> str:
    """A text with the sizes of blocks, where these are nine or more, as the first three, dots and the last one.

    People read it; `repr` has all sizes, which a program reads.

    >>> shortened("block(1,0,0,0,0,0,0,0,0,7)[(0)] on (8,), grid 10")
    'block(1,0,0,…,7)[(0)] on (8,), grid 10'
    """
    return _SIZES.sub(r"\1…,\2", text)


_SIZES = re.compile(r"(?<=block\()((?:\d+,){3})(?:\d+,){5,}(\d+)(?=\))")


@memoized(4096)
def parse(text: str) -> Layout:
    """The layout that a text describes. `str(layout)` prints such a text; equal texts give the same object.

    Parameters
    ----------
    text : str
        A layout, such as `"block[(0),(),(1)]"`.

    Raises
    ------
    NotationError
        The text is not a layout, or is a transition `A -> B`; the error shows where, and what to write.

    Examples
    --------
    >>> from rote import parse
    >>> parse("[(0:block),(),(1:cyclic(4))]")
    rote.parse('block[(0),(),(1:cyclic(4))]')
    """
    layout = parse_as(text, Layout, Transition)
    if isinstance(layout, Transition):
        raise mistake("unexpected-transition", text, text.index("->"))
    return layout


@memoized(4096)
def parse_transition(text: str) -> Transition:
    """The transition that a text `A -> B` describes. `str(transition)` prints such a text.

    Parameters
    ----------
    text : str
        Two layouts with an arrow between them. Equal texts give the same object.

    Raises
    ------
    NotationError
        The text is not a transition, or is a single layout; the error shows where, and what to write.

    Examples
    --------
    >>> from rote import parse_transition
    >>> parse_transition("[(0),()] -> [(),(0)]")
    rote.parse_transition('[(0),()] -> [(),(0)]')
    """
    if isinstance(text, str) and text.count("->") == 1 and len(text) <= MAX_TEXT:
        with suppress(RoteError):  # parsing each side uses the cache; errors are shown in the whole text, below
            return Transition(*map(parse, text.split("->")))
    transition = parse_as(text, Layout, Transition)
    if isinstance(transition, Layout):
        raise mistake("missing-arrow", text, len(text.rstrip()))
    return transition


def layout_or_none(value: Layout | str | None) -> Layout | None:
    """A layout, given as such or as text, or None, if the caller is to choose one."""
    return None if value is None else as_layout(value)


def as_layout(value: Layout | str) -> Layout:
    """A layout, given as such or as text."""
    layout = parse(value) if isinstance(value, str) else value
    if not isinstance(layout, Layout):
        kind, hint = type(value).__name__, "its text, as 'block[(0),()]', or L((0), ())"
        if isinstance(value, Grid) or (isinstance(value, list | tuple) and all(type(n) is int for n in value)):
            hint = f"grid={value!r} if that is the grid, and a layout as 'block[(0),()]'"
        elif isinstance(value, list | tuple):
            hint = _as_text(value) or hint
        raise LayoutError(f"one layout is expected here, not {kind}\nwrite {hint}")
    return layout


def _as_text(modes: Iterable[Any]) -> str:
    """The text that a list of modes is meant for, in quotes; empty if it does not seem to be one.

    >>> _as_text([[0], []]), _as_text([None, (1, 0)]), _as_text(["x"])
    ("'block[(0),()]'", "'block[(),(1,0)]'", '')
    """
    texts = []
    for mode in modes:
        entries = () if mode is None else mode if isinstance(mode, list | tuple) else (mode,)
        texts.append(f"({','.join(map(str, entries))})")
    try:
        return repr(str(parse(f"block[{','.join(texts)}]")))
    except NotationError:
        return ""


def as_entry(value: int | Entry, default: Kind) -> Entry:
    """An entry, given as such or as a grid mode, which then has the default kind."""
    if isinstance(value, Entry):
        return value
    try:
        return Entry(exact(value), default)
    except TypeError:
        raise LayoutError(f"a mode is split over grid modes, which are numbers; not {value!r}") from None


def identity(op: Op, dtype: np.dtype[Any]) -> Any:
    """The identity of a reduction: the value that leaves any other unchanged.

    A sum with 0.0 changes -0.0. There is none for a product of complex infinities: (inf+0j) (1+0j) is inf+nanj.

    >>> identity("sum", np.dtype("f8")) + np.array([-0.0, 1.0])
    array([-0.,  1.])
    """
    if op in ("sum", "prod"):
        neutral = dtype.type(op == "prod")
        return -neutral if op == "sum" and dtype.kind in "fc" else neutral
    if dtype.kind == "b":
        return dtype.type(op == "min")
    least, most = -np.inf, np.inf
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if op == "max":
        return dtype.type(least)
    return dtype.type(most)
