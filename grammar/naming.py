"""The name of the mistake where the parser meets what it does not expect.

lark says where it stops, which tokens it has taken and which it would take there. One piece of the text is cut out at
that place, and a table names the mistake by four things: the token before it, what is expected, the innermost open
bracket, and the piece. A few mistakes have their cause elsewhere and need a look at the text around: left of the
brackets, in the grid of a stage, and where a parenthesis is not closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from .diagnostics import KINDS_TO_WRITE, mistake
from .errors import NotationError, nearest
from .nodes import CASTS, CONVOLVE, OPS, RESIZES, ROUNDINGS, SPACE, TRANSFORMS, TWIDDLE

ACTIONS = (*TRANSFORMS, *CASTS, *RESIZES, TWIDDLE, CONVOLVE)
NUMBERS = ("GRID_MODE", "SIZES", "TILE", "COORDINATE", "ROOT", "PART_SIZE", "EXTENT")  # terminals

_PIECE = re.compile(
    r"""(?P<negative>-[0-9]+) | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
    | (?P<kind>(?:block|cyclic)(?![0-9A-Za-z_])) | (?P<word>[A-Za-z_][0-9A-Za-z_]*)
    | (?P<number>(?:0|[1-9][0-9]*)(?![0-9A-Za-z_])) | (?P<leadingzero>[0-9]+(?![0-9A-Za-z_]))
    | (?P<mixed>[0-9A-Za-z_]+) | (?P<arrow>->) | (?P<wrongarrow>=>|-->|>>|→) | (?P<mark>[\[\](),:=+|@]) | (?P<junk>.)
    | (?P<end>)
    """,
    re.VERBOSE | re.DOTALL,
)
_ARROWS = ("arrow", "secondarrow", "wrongarrow")


class Token(NamedTuple):
    """A token of lark, by the name of its terminal, or a piece of a text that lark refuses. A mark is its own type."""

    type: str
    text: str
    position: int


@dataclass(slots=True)
class Stop:
    """A place at which the parser stops: what it has taken of this side of an arrow, and what it would take next."""

    text: str
    begin: int  # of this side of an arrow, behind the grid of a stage
    side: list[Token]  # the tokens taken since then
    expected: set[str]
    walk: bool

    @property
    def last(self) -> str:
        """The type of the token before it."""
        return self.side[-1].type if self.side else "->" if self.begin and not self.walk else ""

    @property
    def opened(self) -> str:
        """The open brackets and parentheses, outermost first."""
        opened = ""

        for token in self.side:
            if token.type in ("(", "["):
                opened += token.type
            elif token.type in (")", "]"):
                opened = opened[:-1]

        return opened

    @property
    def part(self) -> str:
        """The part of a layout or stage that is being read."""
        types = [token.type for token in self.side]
        if "]" in types:
            return "actions" if ":" in types[types.index("]") :] else "suffixes"
        return "brackets" if "[" in types else "view"

    @property
    def names(self) -> set[str]:
        """The names of the view."""
        return {token.text for token in self.side if token.type == "NAME"}

    @property
    def action(self) -> str:
        """The last action."""
        return next((t.text for t in reversed(self.side) if t.type in ("TRANSFORM", "RESIZE", "TWIDDLE")), "")


# --- texts with the right marks --------------------------------------------------------------------------------------

_PAIRS = {"(": ")", "[": "]", "{": "}"}
UNSPLIT = re.compile(r"(?<=[\[({,])[ \t]*(None|[*:_-])[ \t]*(?=[\])},])")  # as other notations write a whole mode
_BARE = re.compile(r"(?<=[\[,])[ \t]*([0-9]+)[ \t]*(?=[\],])")


def remarked(side: str) -> Iterator[str]:
    """Write a layout in the marks of the language, with each group of brackets in turn as the one around the modes.

    That group gets square brackets, and all others round ones. There are none if the brackets do not close in pairs.

    >>> [*remarked("a {r s=4}: ([],[0])")]
    ['a [r s=4]: ((),(0))', 'a (r s=4): [(),(0)]']
    >>> [*remarked("block[0, None]")]
    ['block[(0),()]']
    """
    text = normalize("NFKC", side).replace(";", ",")  # a wide parenthesis, for one, becomes an ASCII one
    if UNSPLIT.search(text):
        text = _BARE.sub(r"(\1)", UNSPLIT.sub("()", text))

    opened, groups, marks = list[str](), 0, list[tuple[int, str, int]]()  # position, what to write, group or -1 inside

    for position, mark in enumerate(text):
        if mark in _PAIRS:
            marks.append((position, "([", -1 if opened else groups))
            opened.append(mark)
        elif mark in _PAIRS.values():
            if not opened or _PAIRS[opened.pop()] != mark:
                return
            marks.append((position, ")]", -1 if opened else groups))
            groups += not opened
    if opened:
        return

    for chosen in range(groups):
        characters = list(text)
        for position, written, group in marks:
            characters[position] = written[group == chosen]
        yield "".join(characters)


# --- the table of mistakes -------------------------------------------------------------------------------------------

ANY = "anything"
# Each row has a place, then what may stand there, each with its mistake; the first row that fits names it. A place is
# the token before it, the tokens that are expected there (with &, each of them) and the innermost open brackets. A
# stroke is "or"; WORD is any word, TEXT a word that is no kind, MODE a name of the view.
_TABLE: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    (ANY, ANY, "", {"negative": "negative-number", "decimal": "decimal-number", "leadingzero": "leading-zero"}),
    (ANY, ANY, "", {"junk": "unknown-character", "secondarrow": "two-arrows", "wrongarrow": "unknown-arrow"}),
    (ANY, "NAME&[", "", {",": "unexpected-mark"}),
    (ANY, "NAME", "", {",": "comma-in-view"}),
    (",", ANY, "", {",": "doubled-comma"}),
    ("(/[", ANY, "", {",": "leading-comma"}),
    (":", "TRANSFORM", "", {",": "leading-comma"}),
    (",", ANY, "(", {")": "trailing-comma"}),
    (",", ANY, "[", {"]": "trailing-comma"}),
    (",", "TRANSFORM", "", {"end": "trailing-comma"}),
    ("_AT", ANY, "", {ANY: "missing-equals"}),
    (ANY, "COORDINATE", "", {"WORD": "letter-for-coordinate", ANY: "missing-coordinate"}),
    ("COORDINATE", ANY, "", {",": "text-after-at"}),
    ("ROUNDING", ANY, "", {"number/WORD/,": "size-of-rounded"}),
    ("TILE", ANY, "", {"number": "too-many-sizes"}),
    (ANY, "TILE", "", {"ceil/floor": "rounded-cyclic", "WORD": "letter-for-size", ")": "missing-size"}),
    (ANY, "_AT", "", {"ceil/floor": "rounded-cyclic", "number": "too-many-sizes", "WORD": "unknown-option"}),
    (ANY, "SIZES", "", {"at": "at-of-block", "ceil/floor": "size-of-rounded"}),
    (ANY, "SIZES", "", {"WORD": "letter-for-size", ")": "missing-size"}),
    (ANY, "PART_SIZE", "", {"WORD": "letter-for-size", ")/:": "missing-size"}),
    (ANY, "EXTENT", "", {"WORD/action": "letter-for-size", ",/)": "missing-extent"}),
    (ANY, "ROOT", "", {"WORD": "letter-for-root", ",/)/@/:/=": "missing-root"}),
    (ANY, "GRID_MODE", "[(", {":/kind": "missing-grid-mode"}),
    ("(", "GRID_MODE", "", {")": "empty-suffix"}),
    (ANY, "GRID_MODE", "", {"WORD": "letter-for-grid-mode"}),
    ("GRID_MODE", ":", "[(", {"kind": "kind-without-colon"}),
    (ANY, "(", "[(", {"number/ceil/floor/at": "bare-size"}),
    (ANY, "_BLOCK", "[(", {"TEXT": "unknown-kind", "action": "missing-closing-parenthesis", ANY: "missing-kind"}),
    ("+", ANY, "", {"word/kind": "unknown-operation"}),
    ("+/OP/|", ANY, "", {"number": "bare-suffix", ANY: "empty-suffix"}),
    (ANY, "TRANSFORM", "", {"number/WORD": "unknown-action", ")/]": "unmatched-closing", ANY: "missing-action"}),
    ("TRANSFORM/RESIZE", ANY, "", {"number/WORD": "bare-mode", ANY: "missing-modes"}),
    ("(", "MODE", "", {")": "missing-modes"}),
    ("MODE", ",", "", {"=": "extent-of-transform"}),
    ("MODE", "=", "", {":": "colon-for-equals", "number/WORD/,/)": "missing-extent"}),
    ("TWIDDLE", ANY, "", {"action": "missing-comma", "(/number/MODE": "twiddle-modes"}),
    (ANY, ",&$END", "", {")/]": "unmatched-closing", "action": "missing-comma", "arrow": "transition-in-walk"}),
    (ANY, ",&$END", "", {"on": "misplaced-grid", ANY: "text-after-stage"}),
    ("(", "NAME", "", {")": "empty-group"}),
    (ANY, "NAME", "(", {":": "missing-closing-parenthesis", ")": "single-name-group"}),
    (ANY, "NAME&:", "", {"[": "missing-colon", "=": "size-outside-group"}),
    (ANY, "NAME", "", {"number/mixed": "number-for-name", "kind": "reserved-name"}),
    (ANY, "_BLOCK", "", {"arrow/end/+/|": "missing-layout", "TEXT/number": "unknown-kind"}),
    (ANY, "(&[", "", {"number": "bare-size"}),
    ("_BLOCK/_CYCLIC/)", "[", "", {":/word/kind": "reserved-name"}),
    (ANY, ")", "(", {"number/WORD": "missing-comma"}),
    (ANY, ANY, "(", {"(": "nested-parentheses", "=/@/:": "unexpected-mark", ANY: "missing-closing-parenthesis"}),
    (ANY, ANY, "[", {"number": "bare-grid-mode", "TEXT": "letter-for-grid-mode", "kind": "misplaced-kind"}),
    (ANY, ANY, "[", {")": "unmatched-closing", "[": "nested-brackets"}),
    (ANY, ANY, "[", {"=/@/:": "unexpected-mark", ANY: "missing-closing-bracket"}),
    (ANY, ANY, "", {")/]": "unmatched-closing"}),
    (ANY, "$END", "", {"+/|": "repeated-suffix"}),
    (ANY, ":&$END", "", {"end": "transition-in-walk", "action": "missing-colon-before-action"}),
    (ANY, ":&$END", "", {"on": "misplaced-grid", ANY: "text-after-stage"}),
    (ANY, "$END", "", {ANY: "text-after-layout"}),
    (ANY, ANY, "", {ANY: "unexpected-mark"}),
)
_EVERYWHERE = {stands: name for row in _TABLE[:2] for stands, name in row[3].items()}  # wrong wherever it stands


def misplaced(text: str, position: int, taken: list[Token], expected: set[str], walk: bool) -> NotationError:
    """Make the error for what stands at a position of a text, or of a line of a walk, where `expected` is expected."""
    piece = _piece(text, position)
    if text[position - 1 : position + 1] == "=>":  # lark may take the first half
        piece = _piece(text, position - 1)
    taken = [token for token in taken if token.position < piece.position]  # the last may be the one that is refused

    if walk and (wrong := _in_grid(text)):
        return mistake(wrong[0], text, wrong[1].position, wrong[1].text)

    # Only the side of an arrow, or what follows the grid of a stage, matters.
    begin = next((i + 1 for i in reversed(range(len(taken))) if taken[i].type in ("->", "GRID")), 0)
    start = taken[begin - 1].position + len(taken[begin - 1].text) if begin else 0
    stop = Stop(text, start, taken[begin:], expected, walk)

    if begin and piece.type == "arrow" and not walk:
        piece = piece._replace(type="secondarrow")
    name, token = _named(piece, stop)
    return mistake(name, text, token.position, token.text, _detail(name, token.text, stop))


def _piece(text: str, position: int) -> Token:
    """Cut one piece out of a text, at a position or behind the white space there."""
    position = len(text) - len(text[position:].lstrip(SPACE))
    match = _PIECE.match(text, position)
    assert match is not None  # the end of the text is a piece too
    if match.lastgroup == "end":
        position = len(text.rstrip(SPACE))

    type_ = match.group() if match.lastgroup == "mark" else match.lastgroup or ""
    return Token(type_, match.group(), position)


def _after(token: Token, text: str) -> Token:
    """The piece behind a token."""
    return _piece(text, token.position + len(token.text))


def _named(piece: Token, stop: Stop) -> tuple[str, Token]:
    """The name of the mistake by the table, and then by the text around; with the token that is to blame."""
    if stop.walk:
        for comma, taken in pairwise(stop.side):  # an action's name, read as a mode: its parenthesis is still open
            if comma.type == "," and taken.type == "MODE" and taken.text in {*ACTIONS} - stop.names:
                return "missing-closing-parenthesis", taken
        piece = _in_stage(piece, stop)

    name = _looked_up(piece, stop)
    if stop.part == "view" and piece.type not in _EVERYWHERE:
        name, piece = _before_brackets(name, piece, stop)
    if name == "missing-modes" and stop.action in RESIZES:
        name = "missing-extent"

    # A parenthesis or a comma may be wrong because an earlier parenthesis is not closed.
    may_be_unclosed = name == "nested-parentheses" or (name == "leading-comma" and stop.part != "actions")
    if may_be_unclosed and stop.opened.endswith("(") and _unclosed(piece, stop):
        name = "missing-closing-parenthesis"
    return name, piece


def _looked_up(piece: Token, stop: Stop) -> str:
    """The mistake of the first row of the table that fits."""
    classes = {ANY, piece.type}
    if piece.type in ("word", "mixed", "kind"):
        classes.add("WORD")
        if piece.type != "kind":
            classes |= {"TEXT", piece.text}
        if piece.text in ACTIONS:
            classes.add("action")
        elif piece.text in stop.names:
            classes.add("MODE")

    last, opened, expects = stop.last, stop.opened, {ANY, *stop.expected}
    for before, expected, innermost, cases in _TABLE:
        follows = before == ANY or last in before.split("/")
        if follows and expects.issuperset(expected.split("&")) and opened.endswith(innermost):
            for stands, name in cases.items():
                if not classes.isdisjoint(stands.split("/")):
                    return name

    raise AssertionError("the last place is any, and anything stands there")


def _in_grid(text: str) -> tuple[str, Token] | None:
    """The mistake in the grid of a stage. ``on`` may also be the first name of a view; then no digits follow it."""
    first = _piece(text, 0)
    grid = _after(first, text)
    third = _after(grid, text)
    if first.text != "on" or grid.type in ("word", ":") or (grid.type == "(" and third.type != "number"):
        return None

    if grid.type not in ("number", "mixed", "leadingzero"):
        return _EVERYWHERE.get(grid.type) or ("wrong-grid" if grid.type == "(" else "missing-grid"), grid

    spaced = third.text in ("x", "X") and _after(third, text).type == "number"
    if spaced or third.type in (",", "number", "mixed") or third.text in ("*", "\u00d7"):
        return "wrong-grid", third
    return None


def _in_stage(piece: Token, stop: Stop) -> Token:
    """Classify a piece of a stage: what follows the layout is an end, and among actions a name may be an action."""
    action = piece.text in ACTIONS
    if stop.part == "actions":
        if action:
            return piece._replace(type="action")
        return piece._replace(type="arrow") if piece.type in _ARROWS else piece

    # Behind a bracket that is not closed, a colon and an action are to begin the actions of the stage.
    unclosed = "]" not in stop.text[piece.position :]
    if stop.part == "brackets" and stop.last == ":" and action and unclosed:
        return Token("action", ":", stop.side[-1].position)

    following = _after(piece, stop.text)
    if piece.type == ":" and stop.part == "suffixes":
        ends = following.type == "word" or not stop.opened.endswith("(")
    else:
        ends = piece.type in _ARROWS or (piece.type == ":" and following.text in ACTIONS and unclosed)

    return piece._replace(type="end") if ends else piece


def _before_brackets(name: str, piece: Token, stop: Stop) -> tuple[str, Token]:
    """Look ahead for what is missing: left of the brackets, one unexpected piece can have several causes."""
    side = _side(piece, stop)
    if stop.walk and not stop.side and piece.type == "end" and piece.text:
        return (name if piece.text == ":" else "transition-in-walk"), piece
    first = _piece(stop.text, stop.begin)
    if stop.walk and first.text in ACTIONS and not {"[", ":"} & set(side):
        return "missing-layout", first
    if name == "missing-layout":
        return name, piece

    before, bracket, _ = side.partition("[")
    if not bracket:
        return "missing-opening-bracket", piece
    if ":" in before:
        return name, piece

    # No colon: the word before the bracket is a kind with a slip, or the end of a view.
    if before.rstrip(SPACE).endswith(")"):
        before = before[: max(before.rfind("("), 0)]
    word = re.search(r"(?<![0-9A-Za-z_])[0-9]*[A-Za-z_][0-9A-Za-z_]*(?=[ \t\r\n]*$)", before)  # in the place of a kind
    kinds = ("block", "cyclic")
    if word and word.group() not in kinds and get_close_matches(word.group().lower(), kinds):
        return "unknown-kind", Token("word", word.group(), stop.begin + word.start())

    return "missing-colon" if name == "reserved-name" else name, piece


def _side(piece: Token, stop: Stop) -> str:
    """The text of this side of an arrow, also behind the piece."""
    end = piece.position if piece.type == "end" else stop.text.find("->", piece.position)
    return stop.text[stop.begin : end if end >= 0 else None]


def _unclosed(piece: Token, stop: Stop) -> bool:
    """Say whether a parenthesis is still open at the next bracket or arrow; else the piece has one too many."""
    side, at = _side(piece, stop), piece.position - stop.begin

    rest = re.search(r"[\[\]]", side[at + 1 :])
    side = side[: at + 1 + rest.start()] if rest else side
    return side.count("(") > side.count(")")


# How the hints write each terminal, in the order in which they list them.
_WRITTEN = {
    **dict.fromkeys(NUMBERS, "a number"),
    "MODE": "a number or a name",
    "NAME": "a name",
    "_BLOCK": "block",
    "_CYCLIC": "cyclic",
    "_AT": "at",
    "ROUNDING": "ceil or floor",
}
_ORDER = ("(", *NUMBERS, "MODE", "NAME", "_BLOCK", "_CYCLIC", "_AT", "ROUNDING", *"[@:=,)]")


def _detail(name: str, word: str, stop: Stop) -> str:
    """What the hint of a mistake says of this place; of a mistake in an action, that is the action."""
    match name:
        case "unknown-character" if "block-cyclic" in stop.text:
            return "cyclic(4) for block-cyclic parts of 4"
        case "unknown-character":
            return "only ASCII letters, digits, spaces and the marks [ ] ( ) , : = + | @ ->"
        case "unknown-kind":
            kinds = f"block({word})" if word in ROUNDINGS else KINDS_TO_WRITE
            return nearest(word.lower(), ("block", "cyclic"), f"write {kinds}")
        case "unknown-operation":
            return nearest(word, OPS, "write sum, max, min or prod")
        case "letter-for-size":
            if "ROUNDING" in stop.expected:
                return nearest(word, ROUNDINGS, "write a number")
            words = ("at",) if "_AT" in stop.expected else ()
            return nearest(word, words, "write a number")
        case "unknown-action":
            return _action_to_write(word.lower())
        case "doubled-comma":
            return ", or write () for a whole mode" if stop.opened == "[" else ""
        case "bare-size":
            return "at=2" if word == "at" else word
        case "leading-zero":
            return word.lstrip("0")[:20] or "0"
        case "unexpected-mark":
            return " or ".join(dict.fromkeys(_WRITTEN.get(t, t) for t in _ORDER if t in stop.expected))
        case "repeated-suffix":
            return "one operation, as in +max(1,2)" if word == "+" else "all roots together, as in |(1,2@3)"
    return stop.action


def _action_to_write(word: str) -> str:
    """The hint for an unknown action: what other libraries call one has its name here."""
    name = word.removeprefix("i")
    if name in ("dct", "dst"):
        return f"write {name}1, {name}2, {name}3 or {name}4"
    if name != word and name[:3] in ("dct", "dst") and name in TRANSFORMS:
        inverse = name[:3] + {"2": "3", "3": "2"}.get(name[3], name[3])
        return f"write {inverse}, the inverse of {name} but for its scale"

    if word in ("pad", "crop"):
        return "write resize, or resample for the middle of a spectrum"
    if word in ("truncate", "dealias"):
        return "write resample, or resize for the end of a mode"
    return nearest(word, ACTIONS, f"write one of {', '.join(ACTIONS)}")
