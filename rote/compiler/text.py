"""The text of a plan, read back: its first line from the end, then a line for each step.

    block[(0),()] -> block[(),(0)] of (6, 4) float64 on grid 2
      1. alltoall over 0: block[(0),()] -> block[(),(0)]

Layouts may be written in any way that the language allows; everything else must be exactly as `str(plan)` prints it. A
mistake is shown with a caret, like those in layouts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import NotationError, PlanError
from ..grammar.errors import nearest
from ..layout.distribution import Distribution, distribute
from ..layout.grid import Grid
from ..layout.layout import parse_transition
from .step import Step, as_kind, check_steps, sent_as

__all__ = ["NOTHING", "read_text"]

NOTHING = "  nothing to do: every rank holds its block already"
"""The line in place of the steps of a plan that has none."""

_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_SHAPE = re.compile(rf"\((?:{_NUMBER},|{_NUMBER}(?:, {_NUMBER})+)?\)")
_GRID = re.compile(rf"{_NUMBER}(?:x{_NUMBER})*|\(\)")
_TO = re.compile(r"(.*) to grid ([^ ]*)")
_OVER = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")
# Some types are equal on this machine, such as long and long long; the last one here is read.
_DTYPES = {str(np.dtype(code)): np.dtype(code) for code in "qQgG?bhilBHILfdFD"}


def read_text(text: str) -> tuple[Distribution, Distribution, np.dtype[Any], tuple[Step, ...]]:
    """Source, target, dtype and steps of the plan in a text; the inverse of `Plan.__str__`.

    Raises:
        PlanError: the text is not one that `str` writes, or its steps do not lead from the source to the target.
        NotationError: a layout in it is not in the language.
        LayoutError: a layout in it does not fit the shape or the grid.
    """
    if not isinstance(text, str):
        raise PlanError(f"a plan is read from text, not from {type(text).__name__}; write str(plan)")

    first, *rest = text.removesuffix("\n").split("\n")
    source, target, dtype = _head(first)

    if rest == [NOTHING]:
        return source, target, dtype, ()
    if not rest:
        hint = f"write the steps, or {NOTHING!r}"
        raise _damage(first, len(first), "a plan must say its steps below its first line", hint)

    steps: list[Step] = []
    at = source
    for number, line in enumerate(rest, 1):
        steps.append(_step(number, line, at, dtype))
        at = steps[-1].after

    check_steps(source, target, steps)
    return source, target, dtype, tuple(steps)


def _read_grid(text: str, line: str, end: int) -> Grid:
    """Read a grid whose text ends at position `end` of a line."""
    if not _GRID.fullmatch(text):
        raise _damage(line, end - len(text), f"{text!r} is no grid", "write 2x2, 4, or () for order 0")
    return Grid(tuple(map(int, re.findall(_NUMBER, text))))


def _other_grid(text: str, line: str, end: int, grid: Grid) -> Grid:
    """Read another grid with the same number of ranks, whose text ends at position `end` of a line."""
    other = _read_grid(text, line, end)
    if other == grid:
        hint = "name a grid once, and again where the tensor goes to another one"
        raise _damage(line, end - len(text), f"the tensor lies on grid {grid} already", hint)
    if other.size != grid.size:
        rule = f"grid {other} is of {other.size} ranks, but grid {grid} is of {grid.size}"
        raise _damage(line, end - len(text), rule, f"write a grid of {grid.size} ranks, which a plan stays on")
    return other


def _head(line: str) -> tuple[Distribution, Distribution, np.dtype[Any]]:
    """Read the first line from its end, because the names of a view may be any words."""
    rest, separator, written = line.rpartition(" on grid ")
    if not separator:
        raise _damage(line, len(line), "the first line of a plan must name a grid", "write 'on grid 2x2' at its end")

    first, to, second = written.partition(" to ")
    grid = _read_grid(first, line, len(line) - len(to + second))
    other = _other_grid(second, line, len(line), grid) if to else grid

    rest, _, dtype = rest.rpartition(" ")
    if dtype not in _DTYPES:
        hint = nearest(dtype, tuple(_DTYPES), "write float64, complex128, …")
        raise _damage(line, len(rest) + 1, f"{dtype!r} is no dtype that Rote moves on this machine", hint)

    transition, separator, shape = rest.rpartition(" of ")
    if not separator or not _SHAPE.fullmatch(shape):
        at = len(rest) - len(shape) if separator else len(rest)
        raise _damage(line, at, "the first line of a plan must name a shape", "write 'of (6, 4)', 'of (5,)' or 'of ()'")

    extents = tuple(map(int, re.findall(_NUMBER, shape)))
    source, target = _sides(transition, extents, grid, other)
    return source, target, _DTYPES[dtype]


def _step(number: int, line: str, at: Distribution, dtype: np.dtype[Any]) -> Step:
    """Read the line of a step that starts from distribution `at`."""
    prefix = f"  {number}. "
    if not line.startswith(prefix):
        raise _damage(line, 0, f"line {number + 1} of a plan must begin with {prefix!r}", f"number it as {number}")

    head, separator, transition = line.removeprefix(prefix).partition(": ")
    if not separator:
        raise _damage(line, len(line), "a step must say from where to where", f"write ': {at.layout} -> …'")
    head, _, wire = head.partition(" as ")

    place, grid, to = len(prefix), at.grid, _TO.fullmatch(head)
    if to:
        head, grid = to[1], _other_grid(to[2], line, place + len(head), at.grid)

    name, over, modes = head.partition(" over ")
    with _shown(line, place):
        kind = as_kind(name)

    place += len(name) + len(over)
    if over and not _OVER.fullmatch(modes):
        raise _damage(line, place, f"{modes!r} are no grid modes", "write 'over 0' or 'over 0,1'")

    ends = _sides(transition, at.shape, at.grid, grid)
    with _shown(line, place):
        step = Step(kind, *ends, tuple(map(int, modes.split(","))) if over else ())
    with _shown(line, line.find(" as ") + 4):
        return sent_as(step, wire or None, dtype)


@contextmanager
def _shown(line: str, position: int) -> Iterator[None]:
    """Show where in a line the mistake is that a step is refused for."""
    try:
        yield
    except PlanError as error:
        rule, hint = str(error).split("\n")
        raise _damage(line, position, rule, hint) from None


def _sides(text: str, shape: tuple[int, ...], before: Grid, after: Grid) -> tuple[Distribution, Distribution]:
    if "->" not in text:
        raise _damage(text, len(text), "a plan and its steps go from one layout to another", "write 'A -> B'")
    transition = parse_transition(text)
    return distribute(transition.source, shape, before), distribute(transition.target, shape, after)


def _damage(line: str, position: int, rule: str, hint: str) -> PlanError:
    """The error for a line that `str` would not write, shown with a caret, like mistakes in layouts."""
    return PlanError(str(NotationError("plan-text", line, position, rule, hint)))
