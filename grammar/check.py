"""The check: a text is a layout, or its first mistake is raised by name.

One walk from left to right over the tokens, from place to place (places.py), with a record of what each side of the
arrow has used so far. Its time is linear in the text; it knows nothing of lark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from .diagnostics import KINDS_TO_WRITE, mistake
from .errors import NotationError
from .nodes import MAX_GRID_MODES, MAX_MODES, MAX_NUMBER, MAX_TEXT, OPS, ROUNDINGS
from .states import BEFORE_BRACKETS, GRID_MODE_STATES, KIND_STATES, KIND_WORDS, NEVER, STATES, TILE_STATES, State
from .tokens import SPACE, Token, reaches, scan

_KINDS = ("block", "cyclic")


def check(text: str) -> None:
    """Raises NotationError at the first mistake, from left to right."""
    if len(text) > MAX_TEXT:
        raise mistake("text-too-long", text, MAX_TEXT)
    if not text.strip(SPACE):
        raise mistake("empty-text", text, 0)
    check_tokens(text, scan(text))


def check_tokens(text: str, tokens: list[Token]) -> Side:
    """The check of a text in tokens, the last of which is its end: what the layout, or the target, has used."""
    state, side, order = "start", Side(text), None
    for i, token in enumerate(tokens):
        if state in KIND_STATES and token.text in KIND_WORDS:
            token = tokens[i] = token._replace(type=token.text)
        after = STATES[state].then.get(token.type)
        if after is None:
            raise _wrong(text, tokens, i, state)
        if state == "after" and order is not None and token.type == "end" and side.order != order:
            raise mistake(
                "order-mismatch", text, side.start, hint=f"order {order} on the left, {side.order} on the right"
            )
        if token.type == "->":
            order, side = side.order, Side(text, tokens[i + 1].position)
        else:
            side.take(state, token, tokens[i + 1] if after != "end" else token)
        state = after
    return side


@dataclass(slots=True)
class Side:
    """What one layout of the text has used so far."""

    text: str
    start: int = 0
    names: set[str] = field(default_factory=set)
    grid_modes: set[int] = field(default_factory=set)
    suffixes: set[str] = field(default_factory=set)
    viewed: bool = False
    modes: int = 0  # in the brackets
    view: list[tuple[str, ...]] = field(default_factory=list)  # its modes: the names that each one reads
    tensor_modes: int = 0  # in the view
    group: list[str] = field(default_factory=list)  # the names in it
    free: list[Token] = field(default_factory=list)  # the parts of the group that have no size

    @property
    def order(self) -> int:
        """The order of the tensor."""
        return self.tensor_modes if self.viewed else self.modes

    def take(self, state: str, token: Token, following: Token) -> None:
        """Count a token that may stand at its place; raise if it may not be there once more."""
        if token.type == "number":
            self._number(state, token)
        elif token.type == "word" and state != "plus":
            self._name(state, token, following)
        elif state in BEFORE_BRACKETS:
            self._view_mark(state, token)
        elif token.type == "(" and state in ("modes", "next mode", "comma"):
            self.modes += 1
            if self.modes > MAX_MODES:
                raise self._error("too-many-modes", token)
        elif token.type == "]" and self.viewed and self.modes != len(self.view):
            raise self._error("view-mismatch", token, f"{len(self.view)} modes, the brackets have {self.modes}")
        elif state == "after":
            self._suffix(token)
        elif token.type == "word" and token.text not in OPS:
            raise self._error("unknown-operation", token, nearest(token.text, OPS, "write sum, max, min or prod"))

    def _error(self, name: str, token: Token, hint: str = "") -> NotationError:
        return mistake(name, self.text, token.position, token.text, hint)

    def _number(self, state: str, token: Token) -> None:
        if reaches(token.text, MAX_NUMBER):
            raise self._error("number-too-large", token)
        number = int(token.text)
        if number == 0 and state in TILE_STATES:
            raise self._error("zero-tile", token)
        if state in GRID_MODE_STATES:
            if number >= MAX_GRID_MODES:
                raise self._error("grid-mode-too-large", token)
            if number in self.grid_modes:
                raise self._error("repeated-grid-mode", token)
            self.grid_modes.add(number)

    def _name(self, state: str, token: Token, following: Token) -> None:
        if token.text in self.names:
            raise self._error("repeated-name", token)
        self.names.add(token.text)
        if len(self.names) > MAX_MODES:
            raise self._error("too-many-modes", token)
        if state in ("start", "view"):
            self.view.append((token.text,))
            self.tensor_modes += 1
        else:
            self.group.append(token.text)
            if following.type != "=":
                self.free.append(token)

    def _view_mark(self, state: str, token: Token) -> None:
        if token.type == "(" and state in ("start", "view"):
            self.group, self.free = [], []
        elif token.type == ")" and state.startswith("part"):
            split = len(self.free) < len(self.group)
            if split and len(self.free) > 1:
                raise self._error("two-free-parts", self.free[1])
            self.view += [(name,) for name in self.group] if split else [tuple(self.group)]
            self.tensor_modes += 1 if split else len(self.group)
        elif token.type == ":":
            self.viewed = True

    def _suffix(self, token: Token) -> None:
        if token.type in self.suffixes:
            cure = "one operation, as in +max(1,2)" if token.type == "+" else "all roots together, as in |(1,2@3)"
            raise self._error("repeated-suffix", token, f"write {cure}")
        self.suffixes.add(token.type)


def _wrong(text: str, tokens: list[Token], i: int, state: str) -> NotationError:
    """The mistake that token i is at a place where it may not stand."""
    token = tokens[i]
    name = NEVER.get(token.type) or STATES[state].wrong.get(token.type, STATES[state].default)
    if state in BEFORE_BRACKETS and token.type not in NEVER:
        name, token = _before_brackets(tokens, i, name)
    if name in ("nested-parentheses", "leading-comma") and state != "modes" and not _balanced(tokens, i):
        name = "missing-closing-parenthesis"
    return mistake(name, text, token.position, token.text, _hint(name, token, state))


def _before_brackets(tokens: list[Token], i: int, name: str) -> tuple[str, Token]:
    """Left of the brackets the same token can have several reasons: look ahead for what is not there at all."""
    start, stop = _side(tokens, i)
    types = [token.type for token in tokens[start:stop]]
    if name == "missing-layout":
        return name, tokens[i]
    if "[" not in types:
        return "missing-opening-bracket", tokens[i]
    before = types[: types.index("[")]
    if ":" not in before:
        suspect = _word_before_bracket(tokens, start, start + len(before))
        if suspect is not None and get_close_matches(suspect.text, _KINDS):
            return "unknown-kind", suspect
        if name == "reserved-name":
            return "missing-colon", tokens[i]
    return name, tokens[i]


def _word_before_bracket(tokens: list[Token], start: int, bracket: int) -> Token | None:
    """The word just before the bracket, or before the parentheses before it: where a default kind would stand."""
    j = bracket - 1
    if j > start and tokens[j].type == ")":
        while j > start and tokens[j].type != "(":
            j -= 1
        j -= 1
    return tokens[j] if j >= start and tokens[j].type in ("word", "mixed") else None


def _side(tokens: list[Token], i: int) -> tuple[int, int]:
    """From where to where in the tokens the layout around token i extends."""
    arrows = [j for j, token in enumerate(tokens) if token.type in ("->", "secondarrow", "end")]
    stop = next(j for j in arrows if j >= i)
    return max((j + 1 for j in arrows if j < i), default=0), stop


def _balanced(tokens: list[Token], i: int) -> bool:
    """Whether all parentheses up to the next bracket or arrow are closed: then the one at i is one too many."""
    start, _ = _side(tokens, i)
    depth = 0
    for j, token in enumerate(tokens[start:], start):
        if j > i and token.type in ("[", "]", "->", "secondarrow", "end"):
            break
        depth += (token.type == "(") - (token.type == ")")
    return depth <= 0


def _hint(name: str, token: Token, state: str) -> str:
    if name == "unknown-kind":
        rounded = f"write block({token.text})" if token.text in ROUNDINGS else f"write {KINDS_TO_WRITE}"
        return nearest(token.text, _KINDS, rounded)
    if name == "unknown-operation":
        return nearest(token.text, OPS, "write sum, max, min or prod")
    if name == "doubled-comma" and state == "comma":
        return ", or write () for a whole mode"
    return usual_hint(name, token, STATES[state])


def usual_hint(name: str, token: Token, state: State) -> str:
    """What the error of a mistake says beyond its name, when it is the same in layouts and in walks."""
    if name == "letter-for-size":
        return nearest(token.text, tuple(word for word in KIND_WORDS if word in state.then), "write a number")
    if name == "bare-size":
        return "at=2" if token.text == "at" else token.text
    if name == "leading-zero":
        return token.text.lstrip("0")[:20] or "0"
    if name == "missing-closing-parenthesis":
        return token.text if token.text else "the end"
    return " or ".join(_SAID.get(type_, type_) for type_ in state.then) if name == "unexpected-mark" else ""


_SAID = {"number": "a number", "word": "a name", "end": "nothing more"}


def nearest(found: str, words: tuple[str, ...], otherwise: str) -> str:
    """The word that was meant, as a question; `otherwise`, if none is near."""
    near = get_close_matches(found, words, n=1)
    return f"did you mean {near[0]}?" if near else otherwise
