"""The check of a walk: its lines are stages, or the first mistake is raised by name, with the number of its line.

A stage is read from left to right: the grid, the layout (by check.py), the actions (from place to place, places.py).
Where the layout ends is found first, since its brackets may be what is wrong. It knows nothing of lark.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .check import check_tokens, nearest, usual_hint
from .diagnostics import mistake
from .errors import NotationError
from .nodes import CASTS, CONVOLVE, MAX_GRID_MODES, MAX_NUMBER, MAX_TEXT, MAX_WALK, RESIZES, TRANSFORMS, TWIDDLE
from .states import ACTION_STATES, ARROWS, MODE_STATES, NEVER
from .tokens import SPACE, Token, reaches, scan

# Every action, and what it is among tokens; what a mode is then, once a stage at most.
_ACTIONS = {
    **dict.fromkeys((*TRANSFORMS, *CASTS), "transform"),
    **dict.fromkeys(RESIZES, "resize"),
    **dict.fromkeys((TWIDDLE, CONVOLVE), "twiddle"),
}
_DONE = {
    **dict.fromkeys(TRANSFORMS, "transformed"),
    "complex": "made complex",
    "real": "made real",
    "resize": "resized",
    "resample": "resampled",
    "fold": "folded",
    "chirp": "chirped",
}
_MEANT = {
    **dict.fromkeys(("pad", "crop"), "write resize, or resample for the middle of a spectrum"),
    **dict.fromkeys(("truncate", "dealias"), "write resample, or resize for the end of a mode"),
}
_OF_AN_ACTION = ("missing-modes", "missing-extent", "extent-of-transform", "twiddle-modes")  # mistakes that name it
_NEVER = {type_: name for type_, name in NEVER.items() if type_ not in ARROWS}


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is a stage: its text without the comment, and the names of its layout's modes, None for no name."""

    text: str
    modes: tuple[str | None, ...]


def check_walk(text: str) -> list[Line]:
    """The stages of a text, at least one; raises NotationError at the first mistake, from left to right."""
    lines = text[: MAX_WALK + 1].split("\n")
    stages = []
    for number, whole in enumerate(lines, 1):
        line, code = whole.rstrip(SPACE), whole.partition("#")[0].rstrip(SPACE)
        try:
            if len(text) > MAX_WALK and number == len(lines):
                raise mistake("walk-too-long", whole, max(0, len(whole) - 1))
            if code:
                stages.append(Line(code, _check_line(line, code)))
        except NotationError as error:
            raise error.in_line(number) from None
    if not stages:
        raise mistake("empty-walk", lines[0].rstrip(SPACE), 0).in_line(1)
    return stages


def _check_line(line: str, code: str) -> tuple[str | None, ...]:
    """The check of `line`, which is `code` and a comment: the names of the modes."""
    if len(code) > MAX_TEXT:
        raise mistake("text-too-long", line, MAX_TEXT)
    tokens = scan(code)
    start = _check_grid(line, tokens)
    stop = _end_of_layout(tokens, start)
    after = tokens[stop]
    if start == stop and after.type in ARROWS:
        raise mistake("transition-in-walk", line, after.position)
    layout = [*tokens[start:stop], Token("end", after.text, after.position)]
    try:
        side = check_tokens(line, layout)
    except NotationError as error:
        raise _in_stage(error, layout) from None
    if after.type in ARROWS:
        raise mistake("transition-in-walk", line, after.position)
    modes: list[tuple[str, ...]] = side.view if side.viewed else [()] * side.modes
    if after.type == ":":
        _Actions(line, tokens[stop + 1 :], modes).check()
    return tuple(names[0] if len(names) == 1 else None for names in modes)


# --- the grid -------------------------------------------------------------------------------------------------------


def _check_grid(line: str, tokens: list[Token]) -> int:
    """How many tokens say the grid: 2, or 0 if the line has none.

    ``on`` may also be the first name of a view: digits follow it only where it is not one.
    """
    if tokens[0].text != "on" or tokens[1].type in ("word", ":"):
        return 0
    grid = tokens[1]
    if grid.type == "(" and tokens[2].type != "number":
        return 0
    if grid.type not in ("number", "mixed", "leadingzero"):
        name = {"(": "wrong-grid", **_NEVER}.get(grid.type, "missing-grid")
        raise mistake(name, line, grid.position, grid.text)
    _check_sizes(line, grid)
    then = tokens[2]
    spaced = then.text in ("x", "X") and tokens[3].type == "number"
    if spaced or then.type in (",", "number", "mixed") or then.text in ("*", "\u00d7"):
        raise mistake("wrong-grid", line, then.position)
    return 2


def _check_sizes(line: str, grid: Token) -> None:
    sizes = grid.text.split("x")
    if not all(size.isdigit() for size in sizes):
        raise mistake("wrong-grid", line, grid.position)
    position = grid.position
    for size in sizes:
        if size == "0":
            raise mistake("zero-grid", line, position)
        if size[0] == "0":
            raise mistake("leading-zero", line, position, size, size.lstrip("0")[:20] or "0")
        if reaches(size, MAX_NUMBER):
            raise mistake("number-too-large", line, position)
        position += len(size) + 1
    if len(sizes) > MAX_GRID_MODES:
        raise mistake("too-many-grid-modes", line, grid.position)


# --- the layout -----------------------------------------------------------------------------------------------------


def _end_of_layout(tokens: list[Token], start: int) -> int:
    """The token that ends the layout: the colon before the actions, an arrow, or the end of the line."""
    types = [token.type for token in tokens]
    stop = next(i for i in range(start, len(tokens)) if types[i] in (*ARROWS, "end"))
    if "]" not in types[start:stop]:  # it is missing: the colon is the one that an action follows
        actions = (i for i in range(start, stop) if types[i] == ":" and tokens[i + 1].text in _ACTIONS)
        return next(actions, stop)
    depth, maybe = 0, stop
    for i in range(types.index("]", start), stop):
        depth += (types[i] == "(") - (types[i] == ")")
        if types[i] == ":" and depth <= 0:
            return i
        if types[i] == ":" and types[i + 1] == "word" and maybe == stop:  # if a parenthesis is not closed
            maybe = i
    return maybe


def _in_stage(error: NotationError, tokens: list[Token]) -> NotationError:
    """The mistake that a stage's layout has, as one of a stage: it may be about what should stand around the layout."""
    line, first = error.text, tokens[0]
    if first.text in _ACTIONS and not any(token.type in ("[", ":") for token in tokens):
        return mistake("missing-layout", line, first.position)
    if error.mistake == "view-mismatch" and first.text == "on" and _is_layout(line, tokens[1:]):
        return mistake("missing-grid", line, tokens[1].position)
    if error.mistake == "text-after-layout":
        found = next(token for token in tokens if token.position == error.position)
        return mistake(_after_stage(found.text, "missing-colon-before-action"), line, found.position, found.text)
    return error


def _is_layout(line: str, tokens: list[Token]) -> bool:
    try:
        check_tokens(line, tokens)
    except NotationError:
        return False
    return True


def _after_stage(found: str, action: str) -> str:
    """What it is called that `found` stands after a layout, or after its actions; `action`, if it is one."""
    return action if found in _ACTIONS else "misplaced-grid" if found == "on" else "text-after-stage"


# --- the actions ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Actions:
    """The actions of a stage, and what they have used so far. `modes`: of the layout, the names that each one reads."""

    line: str
    tokens: list[Token]
    modes: list[tuple[str, ...]]
    used: set[tuple[str, int]] = field(default_factory=set)
    action: str = ""  # the last one

    def check(self) -> None:
        state = "actions"
        for token in self.tokens:
            type_ = self._type(state, token)
            after = ACTION_STATES[state].then.get(type_)
            if after is None:
                raise self._wrong(state, token, type_)
            if state in ("actions", "next action"):
                self.action = token.text
            elif after in MODE_STATES:
                self._use(token)
            elif state == "extent":
                self._extent(token)
            state = after

    def _type(self, state: str, token: Token) -> str:
        """An action's name is one of its own, unless a mode of this name may stand here."""
        inside = ACTION_STATES[state].then.get("word") in MODE_STATES
        if inside and (token.text,) in self.modes:
            return token.type
        return _ACTIONS.get(token.text, token.type)

    def _use(self, token: Token) -> None:
        """Count a mode; raise if it is not there, or not any more."""
        if token.type == "word" and (token.text,) not in self.modes:
            raise self._error("unknown-mode", token, self._modes_to_write(token.text))
        if token.type == "number" and reaches(token.text, len(self.modes)):
            raise self._error("mode-out-of-range", token, self._modes_to_write(""))
        mode = int(token.text) if token.type == "number" else self.modes.index((token.text,))
        use = _DONE[self.action], mode
        if use in self.used:
            raise self._error("repeated-mode", token, use[0])
        self.used.add(use)

    def _extent(self, token: Token) -> None:
        if token.text == "0":
            raise self._error("zero-extent", token)
        if reaches(token.text, MAX_NUMBER):
            raise self._error("number-too-large", token)

    def _wrong(self, state: str, token: Token, type_: str) -> NotationError:
        """The mistake that a token is at a place where it may not stand."""
        name = _NEVER.get(type_) or ACTION_STATES[state].wrong.get(type_, ACTION_STATES[state].default)
        types = [token.type for token in self.tokens]
        if name == "nested-parentheses" and types.count("(") > types.count(")"):
            name = "missing-closing-parenthesis"
        if name == "text-after-stage":
            named = state == "twiddle" and (token.text,) in self.modes
            name = "twiddle-modes" if named else _after_stage(token.text, name)
        if name == "unknown-action":
            return self._error(name, token, _action_to_write(token.text))
        if name == "unknown-mode":
            return self._error(name, token, self._modes_to_write(token.text))
        hint = self.action if name in _OF_AN_ACTION else usual_hint(name, token, ACTION_STATES[state])
        return self._error(name, token, hint)

    def _error(self, name: str, token: Token, hint: str = "") -> NotationError:
        return mistake(name, self.line, token.position, token.text, hint)

    def _modes_to_write(self, found: str) -> str:
        """The cure where `found` is not a mode."""
        for number, names in enumerate(self.modes):
            if found in names:
                others = " and ".join(name for name in names if name != found)
                return f"write {number}, the number of the mode that reads {found} as one with {others}"
        words = [names[0] if len(names) == 1 else str(number) for number, names in enumerate(self.modes)]
        if not words:
            return "write no modes: this layout has none"
        if len(words) > 8 or (len(words) > 1 and not any(self.modes)):
            return f"write a number from 0 to {len(words) - 1}"
        return "write " + " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _action_to_write(found: str) -> str:
    """The cure where `found` is not an action."""
    word = found.lower()
    name = word.removeprefix("i")
    if name in ("dct", "dst"):
        return f"write {name}1, {name}2, {name}3 or {name}4"
    if name != word and name[:3] in ("dct", "dst") and name in TRANSFORMS:
        inverse = name[:3] + {"2": "3", "3": "2"}.get(name[3], name[3])
        return f"write {inverse}, the inverse of {name} but for its scale"
    return _MEANT.get(word) or nearest(word, tuple(_ACTIONS), f"write one of {', '.join(_ACTIONS)}")
