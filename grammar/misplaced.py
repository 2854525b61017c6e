"""The name of the mistake that a token is where the parser expects others."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from .counts import ACTIONS, Counts, check_grid
from .diagnostics import KINDS_TO_WRITE, mistake
from .errors import NotationError
from .nodes import OPS, RESIZES, ROUNDINGS, TRANSFORMS
from .tokens import ARROWS, Token


class Place(NamedTuple):
    """Where the parser stands: the types of the tokens that it expects, marks as they are; the type of the last one;
    the brackets and parentheses that are open, outermost first."""

    expected: set[str]
    last: str
    opened: str


# One rule a line, the first that fits names the mistake: the mistake; what stands there; what stands before it; what is
# expected (with &, each of them); what is open, from the inside (NONE: nothing). A stroke is "or", a star is anything.
# WORD is any word, TEXT one that is no kind.
_RULES = """
unexpected-mark              ,                *               NAME&[                      *
comma-in-view                ,                *               NAME                        *
doubled-comma                ,                ,               *                           *
leading-comma                ,                (/[             *                           *
leading-comma                ,                :               TRANSFORM                   *
trailing-comma               )                ,               *                           (
trailing-comma               ]                ,               *                           [
trailing-comma               end              ,               TRANSFORM                   *
missing-equals               *                _AT             *                           *
letter-for-coordinate        WORD             *               COORDINATE                  *
missing-coordinate           *                *               COORDINATE                  *
size-of-rounded              number/WORD/,    ROUNDING        *                           *
text-after-at                ,                COORDINATE      *                           *
rounded-cyclic               ceil/floor       *               _AT                         *
at-of-block                  at               *               SIZES                       *
size-of-rounded              ceil/floor       *               SIZES                       *
letter-for-size              WORD             *               SIZES/TILE/PART_SIZE/EXTENT *
letter-for-size              action           *               EXTENT                      *
missing-size                 )                *               SIZES/TILE/PART_SIZE        *
missing-size                 :                *               PART_SIZE                   *
too-many-sizes               number           TILE            *                           *
too-many-sizes               number           *               _AT                         *
unknown-option               WORD             *               _AT                         *
letter-for-root              WORD             *               ROOT                        *
missing-root                 ,/)/@/:/=        *               ROOT                        *
missing-grid-mode            :/kind           *               GRID_MODE                   [(
letter-for-grid-mode         WORD             *               GRID_MODE                   *
empty-suffix                 )                (               GRID_MODE                   *
kind-without-colon           kind             GRID_MODE       :                           [(
bare-size                    number/ceil/floor/at  *          (                           [(
unknown-kind                 TEXT             *               _BLOCK                      [(
missing-closing-parenthesis  action           :               _BLOCK                      [(
missing-kind                 *                *               _BLOCK                      [(
unknown-operation            word/kind        +               *                           *
bare-suffix                  number           +/OP/|          *                           *
empty-suffix                 *                +/OP/|          *                           *
bare-grid-mode               number           *               *                           [
letter-for-grid-mode         TEXT             *               *                           [
misplaced-kind               kind             *               *                           [
nested-brackets              [                *               *                           [
unknown-action               number/WORD      *               TRANSFORM                   *
bare-mode                    number/WORD      TRANSFORM/RESIZE  *                         *
missing-modes                *                TRANSFORM/RESIZE  *                         *
missing-modes                )                (               MODE                        *
unknown-mode                 mixed            *               MODE                        *
extent-of-transform          =                MODE            ,                           *
colon-for-equals             :                MODE            =                           *
missing-extent               number/WORD/,/)  MODE            =                           *
missing-extent               ,/)              *               EXTENT                      *
twiddle-modes                (/number         TWIDDLE         *                           *
missing-comma                action           *               $END                        *
number-for-name              number/mixed     *               NAME                        *
missing-layout               ->/end/+/|       *               _BLOCK                      *
unknown-kind                 TEXT/number      *               _BLOCK                      *
reserved-name                kind             *               NAME                        *
missing-colon                [                *               NAME                        NONE
size-outside-group           =                *               NAME&:                      *
missing-closing-parenthesis  :                *               NAME                        (
empty-group                  )                (               NAME                        *
single-name-group            )                *               NAME                        (
bare-size                    number           *               (&[                         *
reserved-name                :/word/kind      _BLOCK/_CYCLIC/)  [                         *
missing-comma                number/WORD      *               )                           (
unmatched-closing            )                *               *                           NONE/[
unmatched-closing            ]                *               *                           NONE
nested-parentheses           (                *               *                           (
unexpected-mark              =/@/:            *               *                           (/[
missing-closing-parenthesis  *                *               *                           (
missing-closing-bracket      *                *               *                           [
missing-action               *                *               TRANSFORM                   *
text-after-layout            *                *               $END                        *
unexpected-mark              *                *               *                           *
"""
_ROWS = [row.split() for row in _RULES.strip().split("\n")]

# What is wrong wherever it stands.
_NEVER = {
    "negative": "negative-number",
    "decimal": "decimal-number",
    "leadingzero": "leading-zero",
    "secondarrow": "two-arrows",
    "wrongarrow": "unknown-arrow",
    "junk": "unknown-character",
}


def misplaced(text: str, tokens: list[Token], i: int, place: Place, counts: Counts) -> NotationError:
    """Name the mistake that token i of a text is at `place`; `counts` are those of the tokens before it."""
    if counts.stage:
        grid = _grid(text, tokens)
        tokens, i = tokens[grid:], i - grid
        tokens[i] = _in_stage(tokens, i, place, counts)
    token, never = tokens[i], _NEVER.get(tokens[i].type)
    name = never or next(row[0] for row in _ROWS if _fits(row, token, place))
    if counts.part == "view" and not never:
        name, token = _before_brackets(name, tokens, i, counts)
    if name == "text-after-layout":
        name = _after_layout(token, place, counts)
    if name == "missing-modes" and counts.action in RESIZES:
        name = "missing-extent"
    nested = name == "nested-parentheses" or (name == "leading-comma" and counts.part != "actions")
    if nested and place.opened.endswith("(") and _unclosed(tokens, i):
        name = "missing-closing-parenthesis"
    hint = _HINTS[name](token, place, counts) if name in _HINTS else ""
    return mistake(name, text, token.position, token.text, hint)


def _fits(row: list[str], token: Token, place: Place) -> bool:
    """Whether a rule fits a token at a place."""
    classes = {token.type}
    if token.type in ("word", "mixed", "kind"):
        classes |= {"WORD"} if token.type == "kind" else {"WORD", "TEXT", token.text}
    _, stands, before, expected, opened = (cell.split("/") for cell in row)
    return (
        (stands == ["*"] or not classes.isdisjoint(stands))
        and (before == ["*"] or place.last in before)
        and (expected == ["*"] or any(place.expected >= set(types.split("&")) for types in expected))
        and (opened == ["*"] or any((place.opened or "NONE").endswith(marks) for marks in opened))
    )


def _grid(text: str, tokens: list[Token]) -> int:
    """Count the tokens that say the grid of a stage, 2 or none; raise what is wrong with it.

    ``on`` may also be the first name of a view: digits follow it only where it is not one.
    """
    first, grid, behind, last = (*tokens, *tokens[-1:] * 3)[:4]
    if first.text != "on" or grid.type in ("word", ":") or (grid.type == "(" and behind.type != "number"):
        return 0
    if grid.type not in ("number", "mixed", "leadingzero"):
        wrong = "wrong-grid" if grid.type == "(" else "missing-grid"
        name = wrong if grid.type in ARROWS else _NEVER.get(grid.type, wrong)
        raise mistake(name, text, grid.position, grid.text)
    check_grid(text, grid)
    spaced = behind.text in ("x", "X") and last.type == "number"
    if spaced or behind.type in (",", "number", "mixed") or behind.text in ("*", "\u00d7"):
        raise mistake("wrong-grid", text, behind.position)
    return 2


def _in_stage(tokens: list[Token], i: int, place: Place, counts: Counts) -> Token:
    """Tell what token i of a stage is: what ends the layout is an end, the name of an action among actions is one."""
    token, action = tokens[i], tokens[i].text in ACTIONS
    if counts.part == "actions":
        return token._replace(type="action" if action else "arrow" if token.type in ARROWS else token.type)
    unclosed = all(token.type != "]" for token in tokens[i:])
    if counts.part == "brackets" and place.last == ":" and action and unclosed:
        return Token("action", ":", tokens[i - 1].position)
    if token.type == ":" and counts.part == "suffixes":
        ends = tokens[i + 1].type == "word" or not place.opened.endswith("(")
    else:
        ends = token.type in ARROWS or (token.type == ":" and tokens[i + 1].text in ACTIONS and unclosed)
    return token._replace(type="end") if ends else token


def _before_brackets(name: str, tokens: list[Token], i: int, counts: Counts) -> tuple[str, Token]:
    """Look ahead for what is not there at all: left of the brackets the same token can have several reasons."""
    side = _side(tokens, i)
    types = [token.type for token in side]
    if counts.stage and i == 0 and tokens[0].type == "end" and tokens[0].text:
        return "transition-in-walk" if tokens[0].text != ":" else name, tokens[0]
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
    kind = before[-1] if before and before[-1].type in ("word", "mixed") else None  # where one would stand
    if kind and get_close_matches(kind.text, ("block", "cyclic")):
        return "unknown-kind", kind
    return "missing-colon" if name == "reserved-name" else name, tokens[i]


def _after_layout(token: Token, place: Place, counts: Counts) -> str:
    """Name the mistake that a token stands where all could be over."""
    if counts.part == "suffixes" and token.type in ("+", "|"):
        return "repeated-suffix"
    if not counts.stage:
        return "text-after-layout"
    if token.type in ("end", "arrow"):
        return "transition-in-walk"
    if place.last == "TWIDDLE" and (token.text,) in counts.modes:
        return "twiddle-modes"
    if token.text in ACTIONS:
        return "missing-colon-before-action"
    return "misplaced-grid" if token.text == "on" else "text-after-stage"


def _side(tokens: list[Token], i: int) -> list[Token]:
    """Give the tokens of the layout that token i is in."""
    ends = [-1, *(j for j, token in enumerate(tokens) if token.type in ("->", "secondarrow", "end"))]
    return tokens[max(j for j in ends if j < i) + 1 : min(j for j in ends if j >= i)]


def _unclosed(tokens: list[Token], i: int) -> bool:
    """Whether a parenthesis is open at the next bracket or arrow: else the one at token i is one too many."""
    side = _side(tokens, i)
    behind = (j for j, token in enumerate(side) if token.type in "[]" and token.position > tokens[i].position)
    types = [token.type for token in side[: next(behind, None)]]
    return types.count("(") > types.count(")")


def _nearest(word: str, words: tuple[str, ...], otherwise: str) -> str:
    """Ask for the word that was meant; `otherwise`, if none is near."""
    near = get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _kind_to_write(word: str) -> str:
    return _nearest(word, ("block", "cyclic"), f"write {f'block({word})' if word in ROUNDINGS else KINDS_TO_WRITE}")


def _size_to_write(word: str, expected: set[str]) -> str:
    words = (*ROUNDINGS,) if "ROUNDING" in expected else ("at",) if "_AT" in expected else ()
    return _nearest(word, words, "write a number")


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
    return _nearest(word, ACTIONS, f"write one of {', '.join(ACTIONS)}")


# What may be written for a terminal, in the order in which the cures say it.
_SAID = {
    "(": "(",
    **dict.fromkeys(("GRID_MODE", "SIZES", "TILE", "COORDINATE", "ROOT", "PART_SIZE", "EXTENT"), "a number"),
    "MODE": "a number or a name",
    "NAME": "a name",
    "_BLOCK": "block",
    "_CYCLIC": "cyclic",
    "_AT": "at",
    "ROUNDING": "ceil or floor",
    **{mark: mark for mark in "[@:=,)]"},
}

# What the error of a mistake says beyond its name.
_HINTS: dict[str, Callable[[Token, Place, Counts], str]] = {
    "unknown-kind": lambda token, place, counts: _kind_to_write(token.text),
    "unknown-operation": lambda token, place, counts: _nearest(token.text, OPS, "write sum, max, min or prod"),
    "letter-for-size": lambda token, place, counts: _size_to_write(token.text, place.expected),
    "unknown-action": lambda token, place, counts: _action_to_write(token.text.lower()),
    "unknown-mode": lambda token, place, counts: counts.modes_to_write(token.text),
    "doubled-comma": lambda token, place, counts: ", or write () for a whole mode" if place.opened == "[" else "",
    "bare-size": lambda token, place, counts: "at=2" if token.text == "at" else token.text,
    "leading-zero": lambda token, place, counts: token.text.lstrip("0")[:20] or "0",
    "missing-closing-parenthesis": lambda token, place, counts: token.text or "the end",
    "unexpected-mark": lambda token, place, counts: " or ".join(
        dict.fromkeys(said for type_, said in _SAID.items() if type_ in place.expected)
    ),
    "repeated-suffix": lambda token, place, counts: (
        "write one operation, as in +max(1,2)" if token.type == "+" else "write all roots together, as in |(1,2@3)"
    ),
    "missing-modes": lambda token, place, counts: counts.action,
    "missing-extent": lambda token, place, counts: counts.action,
    "extent-of-transform": lambda token, place, counts: counts.action,
    "twiddle-modes": lambda token, place, counts: counts.action,
}
