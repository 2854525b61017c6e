"""The names of mistakes in which the parser meets a token that it does not expect."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from .counts import ACTIONS, NUMBERS, Counts, check_grid
from .diagnostics import KINDS_TO_WRITE, mistake
from .errors import NotationError, nearest
from .nodes import OPS, RESIZES, ROUNDINGS, TRANSFORMS
from .tokens import ARROWS, Token


class Place(NamedTuple):
    """A place in a text: the types of the tokens that the parser expects there (a mark is its own type), the type of
    the token before it, and the open brackets and parentheses, outermost first."""

    expected: set[str]
    last: str
    opened: str


# Each line has a place, then tokens that may be found there, each with its mistake; the first that fits names it. A
# place is the token before it, the tokens expected there (with &, each of them) and what is open, innermost first. A
# stroke is "or", a star is anything; WORD is any word, TEXT a word that is no kind.
_TABLE = """\
*                *          *   negative negative-number  decimal decimal-number  leadingzero leading-zero
*                *          *   junk unknown-character  secondarrow two-arrows  wrongarrow unknown-arrow
*                GRID       *   ( wrong-grid  * missing-grid
*                NAME&[     *   , unexpected-mark
*                NAME       *   , comma-in-view
,                *          *   , doubled-comma
(/[              *          *   , leading-comma
:                TRANSFORM  *   , leading-comma
,                *          (   ) trailing-comma
,                *          [   ] trailing-comma
,                TRANSFORM  *   end trailing-comma
_AT              *          *   * missing-equals
*                COORDINATE *   WORD letter-for-coordinate  * missing-coordinate
COORDINATE       *          *   , text-after-at
ROUNDING         *          *   number/WORD/, size-of-rounded
TILE             *          *   number too-many-sizes
*                TILE       *   ceil/floor rounded-cyclic  WORD letter-for-size  ) missing-size
*                _AT        *   ceil/floor rounded-cyclic  number too-many-sizes  WORD unknown-option
*                SIZES      *   at at-of-block  ceil/floor size-of-rounded  WORD letter-for-size  ) missing-size
*                PART_SIZE  *   WORD letter-for-size  )/: missing-size
*                EXTENT     *   WORD/action letter-for-size  ,/) missing-extent
*                ROOT       *   WORD letter-for-root  ,/)/@/:/= missing-root
*                GRID_MODE  [(  :/kind missing-grid-mode
(                GRID_MODE  *   ) empty-suffix
*                GRID_MODE  *   WORD letter-for-grid-mode
GRID_MODE        :          [(  kind kind-without-colon
*                (          [(  number/ceil/floor/at bare-size
*                _BLOCK     [(  TEXT unknown-kind  action missing-closing-parenthesis  * missing-kind
+                *          *   word/kind unknown-operation
+/OP/|           *          *   number bare-suffix  * empty-suffix
*                TRANSFORM  *   number/WORD unknown-action  )/] unmatched-closing  * missing-action
TRANSFORM/RESIZE *          *   number/WORD bare-mode  * missing-modes
(                MODE       *   ) missing-modes
*                MODE       *   mixed unknown-mode
MODE             ,          *   = extent-of-transform
MODE             =          *   : colon-for-equals  number/WORD/,/) missing-extent
TWIDDLE          *          *   action missing-comma  (/number/MODE twiddle-modes
*                ,&$END     *   )/] unmatched-closing  action missing-comma  arrow transition-in-walk
*                ,&$END     *   on misplaced-grid  * text-after-stage
(                NAME       *   ) empty-group
*                NAME       (   : missing-closing-parenthesis  ) single-name-group
*                NAME&:     *   [ missing-colon  = size-outside-group
*                NAME       *   number/mixed number-for-name  kind reserved-name
*                _BLOCK     *   ->/end/+/| missing-layout  TEXT/number unknown-kind
*                (&[        *   number bare-size
_BLOCK/_CYCLIC/) [          *   :/word/kind reserved-name
*                )          (   number/WORD missing-comma
*                *          (   ( nested-parentheses  =/@/: unexpected-mark  * missing-closing-parenthesis
*                *          [   number bare-grid-mode  TEXT letter-for-grid-mode  kind misplaced-kind
*                *          [   ) unmatched-closing  [ nested-brackets
*                *          [   =/@/: unexpected-mark  * missing-closing-bracket
*                *          *   )/] unmatched-closing
*                $END       *   +/| repeated-suffix
*                :&$END     *   end transition-in-walk  action missing-colon-before-action
*                :&$END     *   on misplaced-grid  * text-after-stage
*                $END       *   * text-after-layout
*                *          *   * unexpected-mark
"""
_PLACES = [row.split() for row in _TABLE.splitlines()]
_NOWHERE = ("negative", "decimal", "leadingzero", "junk")  # they are wrong everywhere, as are most arrows


def misplaced(text: str, tokens: list[Token], i: int, place: Place, counts: Counts) -> NotationError:
    """Make the error for the unexpected token i of a text at `place`; `counts` covers the tokens before it."""
    if counts.stage:
        grid = _grid(text, tokens, counts)
        tokens, i = tokens[grid:], i - grid
        tokens[i] = _in_stage(tokens, i, place, counts)
    token, name = tokens[i], _name(tokens[i], place, counts)
    if counts.part == "view" and token.type not in (*_NOWHERE, *ARROWS[1:]):
        name, token = _before_brackets(name, tokens, i, counts)
    if name == "missing-modes" and counts.action in RESIZES:
        name = "missing-extent"
    may_be_unclosed = name == "nested-parentheses" or (name == "leading-comma" and counts.part != "actions")
    if may_be_unclosed and place.opened.endswith("(") and _unclosed(tokens, i):
        name = "missing-closing-parenthesis"
    return mistake(name, text, token.position, token.text, _hint(name, token.text, place, counts))


def _name(token: Token, place: Place, counts: Counts) -> str:
    """Find the name of the mistake for a token at a place."""
    classes = {"*", token.type}
    if token.type in ("word", "mixed", "kind"):
        classes.add("WORD")
        if token.type != "kind":
            classes |= {"TEXT", token.text}
        if token.text in ACTIONS:
            classes.add("action")
        elif (token.text,) in counts.modes:
            classes.add("MODE")
    expects = {"*", *place.expected}
    for before, expected, opened, *cases in _PLACES:
        follows = before == "*" or place.last in before.split("/")
        if follows and expects.issuperset(expected.split("&")) and place.opened.endswith(opened.strip("*")):
            for stands, name in zip(cases[::2], cases[1::2], strict=True):
                if not classes.isdisjoint(stands.split("/")):
                    return name
    raise AssertionError("the last place is any, and anything stands there")


def _grid(text: str, tokens: list[Token], counts: Counts) -> int:
    """Count the tokens that give the grid of a stage, 2 or none; raise a mistake in it.

    ``on`` may also be the first name of a view, but then no digits follow it.
    """
    first, grid, behind, last = (*tokens, *tokens[-1:] * 3)[:4]
    if first.text != "on" or grid.type in ("word", ":") or (grid.type == "(" and behind.type != "number"):
        return 0
    if grid.type not in ("number", "mixed", "leadingzero"):
        stands = grid._replace(type="arrow") if grid.type in ARROWS else grid
        raise mistake(_name(stands, Place({"GRID"}, "", ""), counts), text, grid.position, grid.text)
    check_grid(text, grid)
    spaced = behind.text in ("x", "X") and last.type == "number"
    if behind.text[:1] == "." and behind.position == grid.position + len(grid.text):
        raise mistake("decimal-number", text, grid.position + grid.text.rfind("x") + 1)
    if spaced or behind.type in (",", "number", "mixed") or behind.text in ("*", "\u00d7"):
        raise mistake("wrong-grid", text, behind.position)
    return 2


def _in_stage(tokens: list[Token], i: int, place: Place, counts: Counts) -> Token:
    """Classify token i of a stage: the token after the layout is an end, and among actions a name may be an action."""
    token, action = tokens[i], tokens[i].text in ACTIONS
    if counts.part == "actions":
        if action:
            return token._replace(type="action")
        return token._replace(type="arrow") if token.type in ARROWS else token
    unclosed = all(token.type != "]" for token in tokens[i:])
    if counts.part == "brackets" and place.last == ":" and action and unclosed:
        return Token("action", ":", tokens[i - 1].position)
    if token.type == ":" and counts.part == "suffixes":
        ends = tokens[i + 1].type == "word" or not place.opened.endswith("(")
    else:
        ends = token.type in ARROWS or (token.type == ":" and tokens[i + 1].text in ACTIONS and unclosed)
    return token._replace(type="end") if ends else token


def _before_brackets(name: str, tokens: list[Token], i: int, counts: Counts) -> tuple[str, Token]:
    """Look ahead for what is missing: left of the brackets, one unexpected token can have several causes."""
    side = _side(tokens, i)
    types = [token.type for token in side]
    if counts.stage and i == 0 and tokens[0].type == "end" and tokens[0].text:
        return (name if tokens[0].text == ":" else "transition-in-walk"), tokens[0]
    if counts.stage and side and side[0].text in ACTIONS and not {"[", ":"} & set(types):
        return "missing-layout", side[0]
    if name == "missing-layout":
        return name, tokens[i]
    if "[" not in types:
        return "missing-opening-bracket", tokens[i]
    before = side[: types.index("[")]
    if ":" in types[: len(before)]:
        return name, tokens[i]
    if before and before[-1].type == ")":
        before = before[: max((j for j, token in enumerate(before) if token.type == "("), default=0)]
    kind = before[-1] if before and before[-1].type in ("word", "mixed") else None  # it is in the place of a kind
    if kind and get_close_matches(kind.text, ("block", "cyclic")):
        return "unknown-kind", kind
    if name == "reserved-name":
        name = "missing-colon"
    return name, tokens[i]


def _side(tokens: list[Token], i: int) -> list[Token]:
    """Give the tokens of the layout that token i is in."""
    ends = [-1, *(j for j, token in enumerate(tokens) if token.type in ("->", "secondarrow", "end"))]
    return tokens[max(j for j in ends if j < i) + 1 : min(j for j in ends if j >= i)]


def _unclosed(tokens: list[Token], i: int) -> bool:
    """Say whether a parenthesis is still open at the next bracket or arrow; else the one at token i is one too many."""
    side = _side(tokens, i)
    behind = (j for j, token in enumerate(side) if token.type in "[]" and token.position > tokens[i].position)
    types = [token.type for token in side[: next(behind, None)]]
    return types.count("(") > types.count(")")


# How the cures write each terminal, in the order in which they list them.
_SAID = {
    **dict.fromkeys(NUMBERS, "a number"),
    "MODE": "a number or a name",
    "NAME": "a name",
    "_BLOCK": "block",
    "_CYCLIC": "cyclic",
    "_AT": "at",
    "ROUNDING": "ceil or floor",
}
_ORDER = ("(", *NUMBERS, "MODE", "NAME", "_BLOCK", "_CYCLIC", "_AT", "ROUNDING", *"[@:=,)]")


def _hint(name: str, word: str, place: Place, counts: Counts) -> str:
    """The hint in the error of a mistake at `word`."""
    match name:
        case "unknown-kind":
            kinds = f"block({word})" if word in ROUNDINGS else KINDS_TO_WRITE
            return nearest(word, ("block", "cyclic"), f"write {kinds}")
        case "unknown-operation":
            return nearest(word, OPS, "write sum, max, min or prod")
        case "letter-for-size":
            if "ROUNDING" in place.expected:
                return nearest(word, ROUNDINGS, "write a number")
            words = ("at",) if "_AT" in place.expected else ()
            return nearest(word, words, "write a number")
        case "unknown-action":
            return _action_to_write(word.lower())
        case "unknown-mode":
            return counts.modes_to_write(word)
        case "doubled-comma":
            return ", or write () for a whole mode" if place.opened == "[" else ""
        case "bare-size":
            return "at=2" if word == "at" else word
        case "leading-zero":
            return word.lstrip("0")[:20] or "0"
        case "unexpected-mark":
            return " or ".join(dict.fromkeys(_SAID.get(type_, type_) for type_ in _ORDER if type_ in place.expected))
        case "repeated-suffix":
            return "one operation, as in +max(1,2)" if word == "+" else "all roots together, as in |(1,2@3)"
    return counts.action


def _action_to_write(word: str) -> str:
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
