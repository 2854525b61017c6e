"""Text -> tokens, for a text that lark rejects; unlike lark's, these tokens also cover invalid characters."""

from __future__ import annotations

import re
from typing import NamedTuple

SPACE = " \t\r\n"
ARROWS = ("->", "secondarrow", "wrongarrow")
NUMBER = re.compile("[0-9]+")

_SCAN = re.compile(
    r"""(?P<space>[ \t\r\n]+) | (?P<negative>-[0-9]+) | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
    | (?P<kind>(?:block|cyclic)(?![0-9A-Za-z_])) | (?P<word>[A-Za-z_][0-9A-Za-z_]*)
    | (?P<number>(?:0|[1-9][0-9]*)(?![0-9A-Za-z_])) | (?P<leadingzero>[0-9]+(?![0-9A-Za-z_]))
    | (?P<mixed>[0-9A-Za-z_]+) | (?P<arrow>->) | (?P<wrongarrow>=>|-->|>>|→) | (?P<mark>[\[\](),:=+|@]) | (?P<junk>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A piece of a text. The type of a mark is the mark itself. Other tokens of lark have the name of their terminal;
    those of `scan` are number, leadingzero, word, mixed (``1x``), kind, secondarrow, end, negative, decimal,
    wrongarrow or junk."""

    type: str
    text: str
    position: int


def scan(text: str) -> list[Token]:
    """Split a text into all its tokens, and the end.

    >>> [token.type for token in scan("a: [(1x)]")]
    ['word', ':', '[', '(', 'mixed', ')', ']', 'end']
    """
    tokens, arrow = [], "->"
    for match in _SCAN.finditer(text):
        type_, piece = match.lastgroup or "", match.group()
        if type_ == "arrow":
            type_, arrow = arrow, "secondarrow"
        if type_ != "space":
            tokens.append(Token(piece if type_ == "mark" else type_, piece, match.start()))
    return [*tokens, Token("end", "", len(text.rstrip(SPACE)))]
