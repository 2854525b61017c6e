"""Text <-> syntax for Rote's layout language.

``parse_syntax`` turns a text into frozen, hashable syntax nodes; ``unparse`` turns a node into its canonical,
shortest text. What a layout means is no business of this package: it knows no shapes, no grids and no ranks.

The language is `layout.lark`, which opens with examples. lark is imported at the first parse, not before.

>>> from rote.grammar import parse_syntax, unparse
>>> unparse(parse_syntax("block [ (0) () (1) ]"))
'block[(0),(),(1)]'
"""

from __future__ import annotations

if __name__ != "rote.grammar":
    raise ImportError(
        f"this package is rote.grammar, not {__name__}: write 'import rote.grammar' "
        "(from the repository root a plain 'import grammar' finds the folder instead)"
    )

from .errors import NotationError, RoteError
from .nodes import BLOCK, CYCLIC, Entry, Fuse, Kind, LayoutSyntax, Name, Tile, TransitionSyntax, ViewItem
from .parser import parse_syntax
from .text import unparse

__all__ = [
    "BLOCK",
    "CYCLIC",
    "Entry",
    "Fuse",
    "Kind",
    "LayoutSyntax",
    "Name",
    "NotationError",
    "RoteError",
    "Tile",
    "TransitionSyntax",
    "ViewItem",
    "parse_syntax",
    "unparse",
]
