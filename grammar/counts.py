"""The rules that the grammars cannot express: limits on counts and on numbers, and names that must be unique."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .diagnostics import mistake
from .errors import NotationError
from .nodes import (
    CASTS,
    CONVOLVE,
    MAX_GRID_MODES,
    MAX_MODES,
    MAX_NUMBER,
    RESIZES,
    TRANSFORMS,
    TWIDDLE,
    ViewItem,
    modes_read,
)
from .tokens import NUMBER, SPACE, Token

ACTIONS = (*TRANSFORMS, *CASTS, *RESIZES, TWIDDLE, CONVOLVE)

# The effect of an action on a mode. Each effect may occur at most once per mode and stage.
_EFFECTS = ("made complex", "made real", "resized", "resampled", "folded", "chirped")
_DONE = {**dict.fromkeys(TRANSFORMS, "transformed"), **dict(zip((*CASTS, *RESIZES), _EFFECTS, strict=True))}
NUMBERS = ("GRID_MODE", "SIZES", "TILE", "COORDINATE", "ROOT", "PART_SIZE", "EXTENT")  # terminals


@dataclass(slots=True)
class Counts:
    """A record of the tokens read so far, from left to right; `stage` says whether they are a line of a walk."""

    text: str
    stage: bool = False
    part: str = "view"  # the part that is being read: view, brackets, suffixes, actions
    depth: int = 0  # of parentheses
    names: set[str] = field(default_factory=set)
    sized: bool = False  # whether a part of the last group of names has a size
    free: list[Token] = field(default_factory=list)  # the parts of that group without a size
    written: int = 0  # the number of modes in the brackets
    modes: list[tuple[str, ...]] = field(default_factory=list)  # the layout's modes, each with the names that it reads
    grid_modes: set[str] = field(default_factory=set)
    action: str = ""  # the last action
    done: set[tuple[str, int]] = field(default_factory=set)

    def take(self, token: Token, nodes: list[Any]) -> Counts:
        """Count a token that the grammar allows after `nodes`, and return the counts for the next token.

        Raises:
            NotationError: the token breaks a rule.
        """
        if token.type in NUMBERS:
            self._take_number(token)
        if token.type == "->" and not self.stage:
            return Counts(self.text)
        if self.part == "view":
            self._take_view(token)
        elif self.part == "brackets":
            self._take_brackets(token, nodes)
        else:
            self._take_action(token)
        return self

    def modes_to_write(self, name: str) -> str:
        """Say what to write where `name` is not a mode."""
        for number, names in enumerate(self.modes):
            if name in names:
                others = " and ".join(other for other in names if other != name)
                return f"write {number}, the number of the mode that reads {name} as one with {others}"
        if not self.modes:
            return "write no modes: this layout has none"
        *most, last = [names[0] if len(names) == 1 else str(number) for number, names in enumerate(self.modes)]
        if len(most) > 7 or (most and not any(self.modes)):
            return f"write a number from 0 to {len(most)}"
        return f"write {', '.join(most)} or {last}" if most else f"write {last}"

    def _error(self, name: str, token: Token, hint: str = "") -> NotationError:
        return mistake(name, self.text, token.position, token.text, hint)

    def _take_number(self, token: Token) -> None:
        for number in NUMBER.finditer(token.text):  # a SIZES token has several numbers
            if _reaches(number.group(), MAX_NUMBER):
                raise mistake("number-too-large", self.text, token.position + number.start())
        if token.text == "0" and token.type in ("TILE", "PART_SIZE", "EXTENT"):
            raise self._error("zero-extent" if token.type == "EXTENT" else "zero-tile", token)
        if token.type == "GRID_MODE":
            if int(token.text) >= MAX_GRID_MODES:
                raise self._error("grid-mode-too-large", token)
            if token.text in self.grid_modes:
                raise self._error("repeated-grid-mode", token)
            self.grid_modes.add(token.text)

    def _take_view(self, token: Token) -> None:
        """Count a token before the brackets, which belongs to the grid, the view or the default kind."""
        if token.type == "GRID":
            check_grid(self.text, token)
        elif token.type == "NAME":
            if token.text in self.names:
                raise self._error("repeated-name", token)
            self.names.add(token.text)
            if len(self.names) > MAX_MODES:
                raise self._error("too-many-modes", token)
            self.free.append(token)
        elif token.type == "PART_SIZE":
            self.free.pop()
            self.sized = True
        elif token.type == "(":
            self.free, self.sized = [], False
        elif token.type == ")" and self.sized and len(self.free) > 1:
            raise self._error("two-free-parts", self.free[1])
        elif token.type == "[":
            self.part = "brackets"

    def _take_brackets(self, token: Token, nodes: list[Any]) -> None:
        self.depth += (token.type == "(") - (token.type == ")")
        if token.type == "(" and self.depth == 1:
            self.written += 1
            if self.written > MAX_MODES:
                raise self._error("too-many-modes", token)
        elif token.type == "]":
            views = [node for node in nodes if isinstance(node, tuple) and node and isinstance(node[0], ViewItem)]
            self.part = "suffixes"
            self.modes = modes_read(views[0]) if views else [()] * self.written
            if self.stage and self.modes[:1] == [("on",)] and len(self.modes) == self.written + 1 > 1:
                raise mistake("missing-grid", self.text, behind(self.text, self.text.index("on") + len("on")))
            if self.written != len(self.modes):
                hint = f"{len(self.modes)} modes, the brackets have {self.written}"
                raise self._error("view-mismatch", token, hint)

    def _take_action(self, token: Token) -> None:
        if token.type == ":":
            self.part = "actions"
        elif token.type in ("TRANSFORM", "RESIZE", "TWIDDLE"):
            self.action = token.text
        elif token.type == "MODE":
            use = _DONE[self.action], self._mode(token)
            if use in self.done:
                raise self._error("repeated-mode", token, use[0])
            self.done.add(use)

    def _mode(self, token: Token) -> int:
        if token.text.isdigit():
            if _reaches(token.text, len(self.modes)):
                raise self._error("mode-out-of-range", token, self.modes_to_write(""))
            return int(token.text)
        if (token.text,) in self.modes:
            return self.modes.index((token.text,))
        if token.text in ACTIONS and self.text[: token.position].rstrip(SPACE).endswith(","):
            raise self._error("missing-closing-parenthesis", token)
        raise self._error("unknown-mode", token, self.modes_to_write(token.text))


def check_grid(text: str, grid: Token) -> None:
    """Raise the first mistake in the sizes of a grid, which are written ``4x256``."""
    sizes, position = grid.text.split("x"), grid.position
    if not all(size.isdigit() for size in sizes):
        raise mistake("wrong-grid", text, position)
    for size in sizes:
        if size[0] == "0":
            name = "zero-grid" if size == "0" else "leading-zero"
            raise mistake(name, text, position, size, size.lstrip("0")[:20] or "0")
        if _reaches(size, MAX_NUMBER):
            raise mistake("number-too-large", text, position)
        position += len(size) + 1
    if len(sizes) > MAX_GRID_MODES:
        raise mistake("too-many-grid-modes", text, grid.position)


def behind(text: str, position: int) -> int:
    """Skip white space from a position onwards."""
    return len(text) - len(text[position:].lstrip(SPACE))


def _reaches(number: str, limit: int) -> bool:
    """Compare a number without leading zeros with a limit, as text: Python refuses int() of a very long text."""
    return len(number) > len(str(limit)) or int(number) >= limit
