"""The door: text -> syntax, cached."""

from __future__ import annotations

from functools import lru_cache

from .check import check
from .nodes import LayoutSyntax, TransitionSyntax


def parse_syntax(text: str) -> LayoutSyntax | TransitionSyntax:
    """The syntax of a layout or of a transition ``A -> B``.

    Raises NotationError, which names the mistake, shows it and says what to write; TypeError for anything but a str.

    >>> parse_syntax("[(0),()]").modes
    ((Entry(grid_mode=0, kind=Kind(name='cyclic', sizes=(1,))),), ())
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is written as a str, not as {type(text).__name__}: write for example '[(0),()]'")
    return _parse(text)


@lru_cache(maxsize=1024)
def _parse(text: str) -> LayoutSyntax | TransitionSyntax:
    check(text)  # first, and without lark: a wrong text is answered at once, however long or hostile it is
    from .build import build  # imports lark and builds the tables, at the first parse only

    return build(text)
