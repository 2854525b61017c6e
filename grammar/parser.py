"""The door: text -> syntax, cached."""

from __future__ import annotations

from functools import lru_cache

from .check import check
from .nodes import LayoutSyntax, TransitionSyntax, WalkSyntax
from .walks import check_walk


def parse_syntax(text: str) -> LayoutSyntax | TransitionSyntax:
    """The syntax of a layout or of a transition ``A -> B``.

    Raises NotationError, which names the mistake, shows it and says what to write; TypeError for anything but a str.

    >>> parse_syntax("[(0),()]").modes
    ((Entry(grid_mode=0, kind=Kind(name='cyclic', sizes=(1,), at=0)),), ())
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is written as a str, not as {type(text).__name__}: write for example '[(0),()]'")
    return _parse(text)


def parse_walk(text: str) -> WalkSyntax:
    """The syntax of a walk, one stage per line: ``[on GRID] LAYOUT [: ACTION {, ACTION}]``.

    Blank lines, and comments from ``#`` to the end of a line, say nothing. An action is ``twiddle``, or a transform and
    its modes: ``fft(t)``, ``rfft(0, 1)``, also ifft, irfft, dct1 to dct4, dst1 to dst4, or complex or real; or
    ``resize``, ``resample``, ``fold`` or ``chirp`` with modes and their new extents: ``resize(1=96, 2=96)``; or
    ``convolve``. A mode goes by its name in the line's view, or by its
    number.

    Raises NotationError, which names the mistake, shows its line and says what to write; TypeError for anything but a
    str.

    >>> walk = parse_walk("(t s=4): [(),(0)]: fft(t), twiddle  # one of 4 columns each")
    >>> walk.stages[0].actions
    (ActionSyntax(name='fft', modes=(0,), extents=()), ActionSyntax(name='twiddle', modes=(), extents=()))
    """
    if not isinstance(text, str):
        raise TypeError(
            f"a walk is written as a str, not as {type(text).__name__}: write for example '[(0),()]: fft(1)'"
        )
    return _parse_walk(text)


@lru_cache(maxsize=1024)
def _parse(text: str) -> LayoutSyntax | TransitionSyntax:
    check(text)  # first, and without lark: a wrong text is answered at once, however long or hostile it is
    from .build import build  # imports lark and builds the tables, at the first parse only

    return build(text)


@lru_cache(maxsize=256)
def _parse_walk(text: str) -> WalkSyntax:
    lines = check_walk(text)
    from .build import build_stage

    return WalkSyntax(tuple(build_stage(line.text, line.modes) for line in lines))
