"""Layouts as Python expressions, which type checkers and editors see: `L(block(0), (), cyclic(1, 4)) | root(2)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

from ..errors import LayoutError
from ..grammar.nodes import BLOCK, CYCLIC, OPS, ROUNDINGS, Entry, Kind, Op, Rounding
from .grid import integer
from .layout import Layout, as_entry, as_layout

__all__ = ["L", "Partial", "Rooted", "block", "cyclic", "fitting", "partial", "root"]

_WORDS = {"cyclic": CYCLIC, "block": BLOCK}  # kinds of one word are known without the parser, which takes a moment

Mode = int | Entry | tuple[int | Entry, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """An addition to a layout, `layout + partial(3)`: the value is a reduction over these grid modes."""

    grid_modes: tuple[int, ...]
    op: Op

    def __radd__(self, layout: Layout) -> Layout:
        if not isinstance(layout, Layout):
            return NotImplemented
        if layout.partial and layout.op != self.op:
            raise LayoutError(f"a layout is partial under one operation; {layout} cannot be {self.op} as well")
        return replace(layout, op=self.op, partial=layout.partial + self.grid_modes)


@dataclass(frozen=True, slots=True)
class Rooted:
    """An addition to a layout, `layout | root(2)`: only coordinate `at` of this grid mode holds data."""

    grid_mode: int
    at: int

    def __ror__(self, layout: Layout) -> Layout:
        if not isinstance(layout, Layout):
            return NotImplemented
        return replace(layout, rooted=(*layout.rooted, (self.grid_mode, self.at)))


def L(*modes: Mode, kind: str = "cyclic", view: str | None = None) -> Layout:
    """Return a layout from a Python expression: for each mode, a grid mode, an entry, or a tuple of them.

    Parameters
    ----------
    *modes : int | Entry | tuple[int | Entry, ...]
        `()` for a whole mode, `0` or `(0)` for one grid mode, `(0, 1)` for successive refinement; `block(0)` and
        `cyclic(1, 4)` have a kind of their own.
    kind : str, default 'cyclic'
        The kind of every entry that names none, as in the text: "cyclic", "cyclic(4)", "block", "block(ceil)".
    view : str, optional
        The view prefix, as in the text: "a (r s=4)".

    Returns
    -------
    Layout
        The `Layout`, equal to the one that `parse` reads. `+ partial(…)` and `| root(…)` add to it.

    Raises
    ------
    LayoutError
        A grid mode is not a number, is negative or is used twice.
    NotationError
        The kind or the view is not in the language, or the view has another number of modes.

    Examples
    --------
    >>> import rote
    >>> rote.L((0), (), (1), kind="block")
    rote.parse('block[(0),(),(1)]')
    >>> print(rote.L(rote.block(0), (), rote.cyclic(1, 4)) | rote.root(2))
    block[(0),(),(1:cyclic(4))]|(2)
    """
    default = _WORDS.get(kind) or as_layout(f"{kind}[(0)]").modes[0][0].kind
    rows = []
    for mode in modes:
        listed = mode if isinstance(mode, tuple) else (mode,)
        rows.append(tuple([as_entry(entry, default) for entry in listed]))

    if view is None:
        return Layout(tuple(rows))
    return Layout(tuple(rows), as_layout(f"{view}: [{'()' * len(rows)}]").view)


def block(grid_mode: int, *sizes: int | Rounding) -> Entry:
    """Return a block split over a grid mode: balanced, with parts of b (`block(0, b)`), or with a size for each part.

    In a balanced split, the first n mod p parts hold one index more. `block(0, "ceil")` has parts of ceil(n/p), the
    last ones shorter or empty (BLOCK of HPF, FFTW-MPI, torch.chunk). In `block(0, "floor")`, part i begins at
    floor(i*n/p) (heFFTe, OpenFFT).

    Parameters
    ----------
    grid_mode : int
        The number of the grid mode.
    *sizes : int | {'ceil', 'floor'}
        Nothing, one size, "ceil" or "floor", or one size per part.

    Returns
    -------
    Entry
        The entry, for use in `L(…)` and `layout.split`.

    Raises
    ------
    LayoutError
        The grid mode is not an integer, or a size is not an integer of at least 0.

    Notes
    -----
    Source: Dalcin et al. (2019, eq. 9 and algorithm 1); Duy and Ozaki (2015, eq. 2).

    Examples
    --------
    >>> from rote import L, block
    >>> [block_.on(10, 4).local_shape(0) for block_ in (L(block(0)), L(block(0, "ceil")), L(block(0, "floor")))]
    [(3,), (3,), (2,)]
    """
    for rounding in ROUNDINGS:
        if sizes == (rounding,):
            return Entry(integer(grid_mode, "a grid mode"), Kind(rounding))
    return _sized(grid_mode, "block", sizes)


def cyclic(grid_mode: int, b: int = 1, *, at: int = 0) -> Entry:
    """Return a (block-)cyclic split over a grid mode with tiles of b, the first of which is at coordinate `at`.

    Tile q goes to coordinate (q + at) mod p of p.

    Parameters
    ----------
    grid_mode : int
        The number of the grid mode.
    b : int, default 1
        The number of indices in a tile.
    at : int, default 0
        The coordinate of the first tile (RSRC or CSRC of ScaLAPACK).

    Returns
    -------
    Entry
        The entry, for use in `L(…)` and `layout.split`.

    Raises
    ------
    LayoutError
        The grid mode is not an integer, `at` not one of at least 0, or b not one of at least 1.

    Examples
    --------
    >>> from rote import L, cyclic
    >>> print(L(cyclic(0, 4, at=2), cyclic(1, at=1)))
    cyclic(4,at=2)[(0),(1:cyclic(at=1))]
    """
    return _sized(grid_mode, "cyclic", (b,), at)


def partial(*grid_modes: int, op: Op = "sum") -> Partial:
    """An addition to a layout: with `layout + partial(3)`, the value is a reduction over grid mode 3.

    Parameters
    ----------
    *grid_modes : int
        The grid modes over which the contributions of ranks are reduced.
    op : {'sum', 'max', 'min', 'prod'}, default 'sum'
        "sum", "max", "min" or "prod".

    Raises
    ------
    LayoutError
        `op` is not one of these, or a grid mode is not an integer.

    Examples
    --------
    >>> from rote import L, partial
    >>> print(L(0, ()) + partial(1), L(0, ()) + partial(1, op="max"))
    [(0),()]+(1) [(0),()]+max(1)
    """
    if op not in OPS:
        raise LayoutError(f"a partial layout reduces by sum, max, min or prod, not {op!r}")
    return Partial(tuple(integer(g, "a grid mode") for g in grid_modes), op)


def root(grid_mode: int, at: int = 0) -> Rooted:
    """An addition to a layout: with `layout | root(2, at=1)`, only coordinate 1 of grid mode 2 holds data.

    Parameters
    ----------
    grid_mode : int
        The number of the grid mode.
    at : int, default 0
        The coordinate that holds data.

    Raises
    ------
    LayoutError
        The grid mode or the coordinate is not an integer.

    Examples
    --------
    >>> from rote import L, root
    >>> print(L(0, ()) | root(1) | root(2, at=1))
    [(0),()]|(1,2@1)
    """
    return Rooted(integer(grid_mode, "a grid mode"), integer(at, "the coordinate of a root"))


def fitting(entry: Entry) -> Entry:
    """The entry for a mode of another extent: blocks with sizes, which may not fit, become balanced."""
    return entry if entry.kind.fits else block(entry.grid_mode)


def _sized(grid_mode: int, name: Literal["block", "cyclic"], sizes: tuple[object, ...], at: int = 0) -> Entry:
    g = integer(grid_mode, "a grid mode")
    try:
        return Entry(g, Kind(name, cast("tuple[int, ...]", sizes), at))
    except (TypeError, ValueError) as error:
        raise LayoutError(str(error)) from None
