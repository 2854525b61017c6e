"""Text -> tokens, for the check: it also gives a name to what can be no token at all."""

from __future__ import annotations

import re
from typing import NamedTuple

SPACE = " \t\r\n"

_SCAN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<negative>-[0-9]+)
    | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
    | (?P<run>[0-9A-Za-z_]+)
    | (?P<arrow>->)
    | (?P<wrongarrow>=>|-->|>>|→)
    | (?P<mark>[\[\](),:=+|@])
    | (?P<junk>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`type` is the mark itself, or one of: number, leadingzero, word, mixed (``1x``), block, cyclic, -> (the first
    arrow), secondarrow, end, negative, decimal, wrongarrow, junk."""

    type: str
    text: str
    position: int


def scan(text: str) -> list[Token]:
    """All tokens, and the end.

    >>> [token.type for token in scan("a: [(1x)]")]
    ['word', ':', '[', '(', 'mixed', ')', ']', 'end']
    """
    tokens = []
    arrow = "->"
    for match in _SCAN.finditer(text):
        group, found = match.lastgroup or "", match.group()
        if group == "space":
            continue
        if group == "run":
            group = _run(found)
        elif group == "mark":
            group = found
        elif group == "arrow":
            group, arrow = arrow, "secondarrow"
        tokens.append(Token(group, found, match.start()))
    return [*tokens, Token("end", "", len(text.rstrip(SPACE)))]


def reaches(number: str, limit: int) -> bool:
    """Whether a number without leading zeros is `limit` or more.

    By length first: int() of a very long text is slow, and refused by Python.

    >>> reaches("63", 64), reaches("9" * 9_000, 64)
    (False, True)
    """
    return len(number) > len(str(limit)) or int(number) >= limit


def _run(found: str) -> str:
    """The type of a run of ASCII letters, digits and underscores."""
    if found in ("block", "cyclic"):
        return found
    if found.isdigit():
        return "leadingzero" if found[0] == "0" and len(found) > 1 else "number"
    return "mixed" if found[0].isdigit() else "word"
