"""Text <-> syntax for Rote's two languages: the one of layouts and the one of walks.

``parse_syntax`` turns a text into frozen, hashable syntax nodes; ``unparse`` turns a node into its canonical,
shortest text; ``parse_walk`` and ``unparse_walk`` do the same for walks. This package does not interpret the nodes: it
knows no shapes and no ranks.

The grammars are `layout.lark` and `walk.lark`, which open with examples. lark is imported at the first parse,
not before.

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

from .errors import NotationError as NotationError
from .errors import RoteError as RoteError
from .nodes import *  # noqa: F403 - its public names are those of the package
from .parser import parse_syntax as parse_syntax
from .parser import parse_walk as parse_walk
from .text import unparse as unparse
from .text import unparse_walk as unparse_walk
