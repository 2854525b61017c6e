"""Layouts as Python expressions: `L((0), (), (1), kind="block")`, which type checkers and editors see."""

from __future__ import annotations

from ..caches import memoized
from ..grammar.nodes import BLOCK, CYCLIC, Entry, Kind
from .expressions import as_entry
from .layout import Layout, as_layout

__all__ = ["L"]

_WORDS = {"cyclic": CYCLIC, "block": BLOCK}  # kinds of one word are known without the parser, which takes a moment

Mode = int | Entry | tuple[int | Entry, ...]


def L(*modes: Mode, kind: str = "cyclic", view: str | None = None) -> Layout:
    """Return a layout from a Python expression: for each mode, a grid mode, an entry, or a tuple of them.

    Args:
        modes: `()` for a whole mode, `0` or `(0)` for one grid mode, `(0, 1)` for successive refinement; `block(0)` and
            `cyclic(1, 4)` have a kind of their own.
        kind: the kind of every entry that names none, as in the text: "cyclic", "cyclic(4)", "block", "block(ceil)".
        view: the view prefix, as in the text: "a (r s=4)".

    Returns:
        The `Layout`, equal to the one that `parse` reads. `+ partial(…)` and `| root(…)` add to it.

    Raises:
        LayoutError: a grid mode is not a number, is negative or is used twice.
        NotationError: the kind or the view is not in the language, or the view has another number of modes.

    >>> from rote import block, cyclic, root
    >>> L((0), (), (1), kind="block")
    rote.parse('block[(0),(),(1)]')
    >>> print(L(block(0), (), cyclic(1, 4)) | root(2))
    block[(0),(),(1:cyclic(4))]|(2)
    """
    default = _WORDS.get(kind) or _kind(kind)
    rows = []
    for mode in modes:
        listed = mode if isinstance(mode, tuple) else (mode,)
        rows.append(tuple([as_entry(entry, default) for entry in listed]))
    if view is None:
        return Layout(tuple(rows))
    return Layout(tuple(rows), as_layout(f"{view}: [{'()' * len(rows)}]").view)


@memoized(256)
def _kind(text: str) -> Kind:
    return as_layout(f"{text}[(0)]").modes[0][0].kind
