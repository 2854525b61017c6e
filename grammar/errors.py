"""The root of Rote's errors, and the error that points into a text.

RoteError
└── NotationError (ValueError)   a text is neither a layout nor a walk: the mistake, a caret under it, the hint
"""

from __future__ import annotations

from collections.abc import Sequence

_BEFORE, _AFTER = 48, 24  # characters of a long text shown on either side of the caret


class RoteError(Exception):
    """The root of Rote's own errors; where NumPy or Python has one (TypeError, IndexError, OSError), that is raised.

    Examples
    --------
    >>> import rote
    >>> try:
    ...     rote.parse("[(0)")
    ... except rote.RoteError as error:
    ...     print(type(error).__name__, error.mistake)
    NotationError missing-closing-bracket
    """


class NotationError(RoteError, ValueError):
    """A text that is not a layout, a transition or a walk.

    `mistake` is its short name, `text` the whole text, `position` the index in `text` of the character under the
    caret (``len(text)`` for its end), `rule` the rule that it breaks, `hint` what to write instead. In a walk, `text`
    is the wrong line and `line` its number, from 1; otherwise `line` is None.

    Examples
    --------
    >>> import rote
    >>> rote.parse("[(0),1]")
    Traceback (most recent call last):
    rote.NotationError: a mode's grid modes must be in parentheses
        [(0),1]
             ^
    write (0) for one grid mode, () for none
    """

    def __init__(self, mistake: str, text: str, position: int, rule: str, hint: str, line: int | None = None) -> None:
        super().__init__(mistake, text, position, rule, hint, line)  # unchanged: pickle passes these args to __init__
        self.mistake = mistake
        self.text = text
        self.position = position
        self.rule = rule
        self.hint = hint
        self.line = line

    def in_line(self, line: int, text: str) -> NotationError:
        """This error, moved to line number `line` of a walk, which reads `text`; lines are counted from 1.

        Examples
        --------
        >>> from rote import NotationError
        >>> NotationError("empty", "", 0, "there is no layout", "write []").in_line(2, "fft(0)").line
        2
        """
        return NotationError(self.mistake, text, self.position, self.rule, self.hint, line)

    def __str__(self) -> str:
        before, after = _window(self.text, self.position)
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}{self.rule}\n    {before}{after}\n    {' ' * len(before)}^\n{self.hint}"


def shown(text: str) -> str:
    """Write a text on one line, with characters that do not print escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def nearest(word: str, words: Sequence[str], otherwise: str) -> str:
    """Ask whether the nearest of `words` was meant; give `otherwise` if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _window(text: str, position: int) -> tuple[str, str]:
    """Cut a text into the parts that are shown before the caret, and from the caret onwards."""
    if len(text) <= _BEFORE + _AFTER:
        return shown(text[:position]), shown(text[position:])
    before, after = shown(text[max(0, position - _BEFORE) : position]), shown(text[position : position + _AFTER])
    if position > _BEFORE:
        before = "…" + before
    if position + _AFTER < len(text):
        after += "…"
    return before, after
