"""The algebra of layouts: their properties without a shape or a grid, and the layouts derived from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

from ..errors import LayoutError, counted
from ..grammar.nodes import CYCLIC, MAX_GRID_MODES, MAX_MODES, MAX_NUMBER, Entry, LayoutSyntax, Op
from ..grammar.text import unparse
from .expressions import Partial, Rooted, as_entry
from .grid import Printed, integer
from .view import View

__all__ = ["LayoutAlgebra"]


@dataclass(frozen=True, slots=True, repr=False)
class LayoutAlgebra(Printed):
    """A layout as a value, with methods that derive other layouts from it; the base of `Layout`.

    Raises:
        LayoutError: no text describes this layout; for example, a grid mode is used twice.
    """

    modes: tuple[tuple[Entry, ...], ...]
    view: View | None = None
    op: Op = "sum"
    partial: tuple[int, ...] = ()
    rooted: tuple[tuple[int, int], ...] = ()
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.modes, str):
            raise LayoutError(f"Layout takes tuples of entries, not text\nwrite rote.parse({self.modes!r})")
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
        splitting = [entry.grid_mode for entry in chain(*self.modes)]
        return (*splitting, *self.partial, *[g for g, _ in self.rooted])

    @property
    def syntax(self) -> LayoutSyntax:
        """The syntax node of the layout's text."""
        view = None if self.view is None else self.view.items
        return LayoutSyntax(self.modes, view, self.op, self.partial, self.rooted)

    def move(self, grid_mode: int, to: int) -> Self:
        """The layout in which the entry of `grid_mode` is the last one of mode `to`: an all-to-all.

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

        Args:
            mode: the number of the mode, from 0; a mode of the view, if there is one.
            entry: a grid mode, over which the split is cyclic, or an entry such as `block(0)` or `cyclic(0, 4)`.

        >>> from rote import block, parse
        >>> print(parse("[(0),()]").split(1, block(1)))
        [(0),(1:block)]
        """
        mode = self._mode(mode)
        return self._with_mode(mode, (*self.modes[mode], as_entry(entry, CYCLIC)))

    def whole(self, mode: int) -> Self:
        """The layout in which nothing splits `mode`: an all-gather over the grid modes that split it.

        >>> from rote import parse
        >>> print(parse("block[(0,1),(2)]").whole(0))
        block[(),(2)]
        """
        return self._with_mode(self._mode(mode), ())

    def is_prefix_of(self, other: LayoutAlgebra) -> bool:
        """Whether each entry list of this layout begins that of `other`, whose blocks are then parts of this one's.

        Raises:
            LayoutError: `other` is not a layout.

        >>> from rote import parse
        >>> parse("[(0),()]").is_prefix_of(parse("[(0,1),(2)]")), parse("[(1)]").is_prefix_of(parse("[(0,1)]"))
        (True, False)
        """
        if not isinstance(other, LayoutAlgebra):
            raise LayoutError(f"a layout is a prefix of a layout, not of {other!r}; write parse(text)")
        return (
            (self.view, self.partial, self.op, self.order) == (other.view, other.partial, other.op, other.order)
            and set(self.rooted) <= set(other.rooted)
            and all(longer[: len(mode)] == mode for mode, longer in zip(self.modes, other.modes, strict=True))
        )

    def _mode(self, mode: int) -> int:
        """The number of a mode, checked to exist."""
        number = integer(mode, "a mode")
        if not 0 <= number < self.order:
            has = f"modes 0 to {self.order - 1}" if self.order else "no modes"
            raise LayoutError(f"{self} has {has}, not {number}")
        return number

    def _with_mode(self, mode: int, entries: tuple[Entry, ...]) -> Self:
        return replace(self, modes=self.modes[:mode] + (entries,) + self.modes[mode + 1 :])

    def __add__(self, other: Partial) -> Self:
        if not isinstance(other, Partial):
            return NotImplemented
        if self.partial and self.op != other.op:
            raise LayoutError(f"a layout is partial under one operation; {self} cannot be {other.op} as well")
        return replace(self, op=other.op, partial=self.partial + other.grid_modes)

    def __or__(self, other: Rooted) -> Self:
        if not isinstance(other, Rooted):
            return NotImplemented
        return replace(self, rooted=(*self.rooted, (other.grid_mode, other.at)))

    def __str__(self) -> str:
        return unparse(self.syntax)

    def __repr__(self) -> str:
        return f"rote.parse({str(self)!r})"
