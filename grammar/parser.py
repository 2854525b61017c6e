"""The public functions that parse: text -> syntax, cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from .diagnostics import mistake
from .errors import NotationError
from .nodes import MAX_TEXT, MAX_WALK, SPACE, LayoutClass, LayoutSyntax, TransitionClass, TransitionSyntax, WalkSyntax


def parse_syntax(text: str) -> LayoutSyntax | TransitionSyntax:
    """The syntax of a text, which is a layout or a transition ``A -> B``.

    Raises
    ------
    NotationError
        The text is neither; the error names the mistake, shows it and says what to write.
    TypeError
        `text` is not a str.

    Examples
    --------
    >>> from rote.grammar import parse_syntax
    >>> parse_syntax("[(0),()]").modes
    ((Entry(grid_mode=0, kind=Kind(name='cyclic', sizes=(1,), at=0)),), ())
    """
    return _parse(text) if isinstance(text, str) else parse_as(text, LayoutSyntax, TransitionSyntax)


def parse_as(text: str, layout: type[LayoutClass], transition: type[TransitionClass]) -> LayoutClass | TransitionClass:
    """The value of a text, of classes that are derived from the nodes: a layout is its own syntax node.

    Raises:
        NotationError, TypeError: as `parse_syntax`.

    >>> parse_as("[(0),()]", LayoutSyntax, TransitionSyntax) == parse_syntax("[(0),()]")
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is written as a str, not as {type(text).__name__}: write for example '[(0),()]'")
    if len(text) > MAX_TEXT:
        raise mistake("text-too-long", text, MAX_TEXT)
    if not text.strip(SPACE):
        raise mistake("empty-text", text, 0)

    from .build import build  # imports lark and builds the tables, at the first parse only

    return build(text, layout, transition)


def parse_walk(text: str, layout: Callable[..., LayoutSyntax] = LayoutSyntax) -> WalkSyntax:
    """The syntax of a walk's text, one stage per line: ``[on GRID] LAYOUT [: ACTION {, ACTION}]``.

    Blank lines, and comments from ``#`` to the end of a line, are ignored. An action is ``twiddle`` or ``convolve``;
    or one of ``rote.grammar.TRANSFORMS``, ``complex`` or ``real``, with its modes: ``fft(t)``, ``rfft(0, 1)``; or
    ``resize``, ``resample``, ``fold`` or ``chirp`` with modes and their new extents: ``resize(1=96, 2=96)``. A mode
    is given by its name in the line's view, or by its number. `layout` is the class of the stages' layouts.

    Raises
    ------
    NotationError
        The text is not a walk; the error names the mistake, shows its line and says what to write.
    TypeError
        `text` is not a str.

    Examples
    --------
    >>> from rote.grammar import parse_walk
    >>> walk = parse_walk("(t s=4): [(),(0)]: fft(t), twiddle  # one of 4 columns each")
    >>> walk.stages[0].actions
    (ActionSyntax(name='fft', modes=(0,), extents=()), ActionSyntax(name='twiddle', modes=(), extents=()))
    """
    if not isinstance(text, str):
        raise TypeError(
            f"a walk is written as a str, not as {type(text).__name__}: write for example '[(0),()]: fft(1)'"
        )

    lines = text[: MAX_WALK + 1].split("\n")  # of a text too long, up to the first character that is too many
    stages = []
    for number, whole in enumerate(lines, 1):
        line, code = whole.rstrip(SPACE), whole.partition("#")[0].rstrip(SPACE)
        try:
            if len(text) > MAX_WALK and number == len(lines):
                line = whole
                raise mistake("walk-too-long", line, max(0, len(line) - 1))
            if len(code) > MAX_TEXT:
                raise mistake("text-too-long", line, MAX_TEXT)

            if code:
                from .build import build_stage

                stages.append(build_stage(code, layout))
        except NotationError as error:
            raise error.in_line(number, line) from None

    if not stages:
        raise mistake("empty-walk", "", 0).in_line(1, lines[0].rstrip(SPACE))
    return WalkSyntax(tuple(stages))


@lru_cache(maxsize=1024)
def _parse(text: str) -> LayoutSyntax | TransitionSyntax:
    return parse_as(text, LayoutSyntax, TransitionSyntax)
