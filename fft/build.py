"""From lines to a walk: every line is checked against the digits that the tensor has by then.

A line says how the tensor lies, and what is done there. Its view reads the digits that the lines before have left: the
parts of a tile stay modes of the tensor from then on, and so do digits that are fused to one; fused modes of several
axes come apart again. Refused is a walk that transforms what is not whole on a rank, what is done already, or what
waits for a more significant digit; that leaves out a twiddle or writes one that is not due; and one that forgets a
digit, or leaves an axis in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Entry, Layout, block

from .digits import Digit, Mode, extent, name_modes, read, untiled, whole
from .kinds import TRIGONOMETRIC, logical_size
from .walk import Action, Stage, Transform, Twiddle, Walk, dtype_after

__all__ = ["TWIDDLE", "Line", "build", "fitting"]

Taken = dict[int, tuple[str, int]]
"""The axes that are transformed by now, each by what, and the logical size of that."""

TWIDDLE = Transform("twiddle", ())
"""The action that applies all twiddles that are due."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a walk: a layout, what is done there, and the grid where it is another than before."""

    layout: Layout
    done: tuple[Transform, ...] = ()
    grid: Grid | None = None


def build(
    source: Distribution, lines: Sequence[Line], axes: tuple[int, ...], dtype: np.dtype[Any], length: int = 0
) -> Walk:
    """The walk that some lines say, from a tensor that lies as `source` does.

    Args:
        source: where the tensor lies; a first line that says otherwise is moved to.
        lines: at least one.
        axes: those that must be done at the end.
        dtype: of the input.
        length: the extent that "irfft" restores.

    Raises:
        LayoutError: the lines make no transform of these axes; the text says which line, and why.
    """
    points = dict(enumerate(source.shape))
    modes = tuple(whole(axis, n) for axis, n in points.items())
    taken: Taken = {}
    now, grid, stages = dtype, source.grid, list[Stage]()
    for number, line in enumerate(lines, 1):
        grid = line.grid or grid
        try:
            before = line.layout.on(tuple(map(extent, modes)), grid)
            _check(before, source, line)
            for action in line.done:
                now = _changed(now, action)
            done, viewed = _done(before, line, list(read(line.layout.view, modes)), points, length, taken)
        except LayoutError as error:
            raise LayoutError(f"line {number} of the walk, {line.layout}: {error}") from None
        view, modes = untiled(line.layout.view, modes, tuple(viewed))
        changed = {m for m, (a, b) in enumerate(zip(before.view_shape, map(extent, viewed), strict=True)) if a != b}
        entries = tuple(tuple(map(fitting, mode)) if m in changed else mode for m, mode in enumerate(line.layout.modes))
        after = replace(line.layout, modes=entries, view=view).on(tuple(map(extent, modes)), grid)
        stages.append(Stage(before, after, done))
    if stages[0].before != source:
        stages.insert(0, Stage(source, source))
    last = stages[-1].after
    target = _natural(last, read(last.layout.view, modes), points, axes, taken)
    found = [taken.get(axis, ("", 1)) for axis in points]
    kinds, sizes = tuple(kind for kind, _ in found), tuple(size for _, size in found)
    return Walk(source, target, tuple(stages), dtype, kinds, sizes)


def _check(before: Distribution, source: Distribution, line: Line) -> None:
    """Refuse a line on other ranks, or one that transforms what is reduced by anything but a sum."""
    if before.grid.size != source.grid.size:
        raise LayoutError(f"grid {before.grid} is of {before.grid.size} ranks, but there are {source.grid.size}")
    if before.partial and before.layout.op != "sum" and line.done:
        op = before.layout.op
        raise LayoutError(f"the transform of a {op} is not the {op} of the transforms; reduce the tensor before")


def _changed(dtype: np.dtype[Any], action: Transform) -> np.dtype[Any]:
    """The dtype behind an action, which must take the one before it."""
    if action.kind == "rfft" and dtype.kind == "c":
        raise LayoutError(f"rfft takes real numbers, but they are {dtype} by then; write fft")
    if action.kind in ("fft", "ifft", "irfft") and dtype.kind != "c":
        raise LayoutError(
            f"{action.kind} takes complex numbers, but they are {dtype} by then; begin with a complex dtype"
            + (", or with rfft" if action.kind == "fft" else "")
        )
    return dtype_after(action.kind, dtype)


def _done(
    before: Distribution, line: Line, viewed: list[Mode], points: dict[int, int], length: int, taken: Taken
) -> tuple[tuple[Action, ...], list[Mode]]:
    """What a line does, with its twiddles, and what the modes of its view stand for afterwards."""
    done: list[Action] = []
    due: list[Twiddle] = []
    for action in line.done:
        if action == TWIDDLE:
            if not due:
                raise LayoutError("no twiddle is due; it stands behind the transform of a digit that others wait for")
            done += due
            due = []
            continue
        for m in action.modes:
            if before.splits[m]:
                names = ", ".join(str(s.grid_mode) for s in before.splits[m])
                raise LayoutError(f"mode {m} is not whole on a rank: grid mode {names} splits it")
        real = action.modes[-1] if action.kind in ("rfft", "irfft") else None
        for m in sorted(action.modes, key=lambda m: (m == real) != (action.kind == "rfft")):
            kind = action.kind if m == real else {"rfft": "fft", "irfft": "ifft"}.get(action.kind, action.kind)
            viewed[m], more = _transformed(kind, m, viewed, points, length, due, taken)
            due += more
        done.append(action)
    if due:
        raise LayoutError("a twiddle is due before the tensor moves on; write twiddle behind the transforms")
    return tuple(done), viewed


def _transformed(
    kind: str, m: int, viewed: list[Mode], points: dict[int, int], length: int, due: list[Twiddle], taken: Taken
) -> tuple[Mode, list[Twiddle]]:
    """What a mode stands for once it is transformed, and the twiddles that are due then."""
    if len(viewed[m]) != 1:
        raise LayoutError(f"mode {m} is no digit of one axis, but {_said(viewed[m])}")
    (digit,) = viewed[m]
    if digit.done:
        raise LayoutError(f"mode {m} is done already: {_said(viewed[m])}")
    axis, n = digit.axis, points[digit.axis]
    if kind == "irfft" and length < 1:
        raise LayoutError(f"irfft along axis {axis} restores an extent that nothing says; transform back with irfftn")
    begun, _ = taken.setdefault(axis, (kind, logical_size(kind, length if kind == "irfft" else n)))
    if begun != kind:
        raise LayoutError(f"mode {m} is a digit of axis {axis}, which {begun} has begun; write {begun}")
    if kind == "dct1" and n < 2:
        raise LayoutError(f"dct1 takes two points or more, but axis {axis} has {n}; dct2, dct3 and dct4 take one")
    if kind not in ("fft", "ifft"):
        if digit.size != n:
            raise LayoutError(f"{kind} takes a whole axis, but mode {m} is {_said(viewed[m])}")
        points[axis] = n // 2 + 1 if kind == "rfft" else length if kind == "irfft" else n
        return (Digit(axis, 1, points[axis], True),), []
    waiting = [
        (other, inner, part)
        for other, mode in enumerate(viewed)
        for inner, part in _with_weights(mode)
        if part.axis == axis and not part.done and part != digit and part.size > 1
    ]
    for other, _, part in waiting:
        if part.weight > digit.weight:
            raise LayoutError(f"mode {m} waits for a more significant digit of axis {axis}, which mode {other} is")
    if any(m == twiddle.other for twiddle in due):
        raise LayoutError(f"a twiddle is due before mode {m} is transformed; write twiddle in between")
    turned = digit.turned(n)
    if digit.size == 1:
        return (turned,), []
    back = kind == "ifft"
    return (turned,), [
        Twiddle(m, other, inner, part.size, turned.weight * part.weight, n, back) for other, inner, part in waiting
    ]


def _with_weights(mode: Mode) -> list[tuple[int, Digit]]:
    """The digits of a mode, each with its weight in the mode's own index."""
    return [(extent(mode[k + 1 :]), digit) for k, digit in enumerate(mode)]


def _natural(
    last: Distribution, viewed: tuple[Mode, ...], points: dict[int, int], axes: tuple[int, ...], taken: Taken
) -> Distribution:
    """The same blocks as those of a tensor of whole axes, if they are."""
    for mode in viewed:
        for digit in mode:
            if digit.size != points[digit.axis]:
                raise LayoutError(
                    f"the walk ends with axis {digit.axis} in pieces, {_said(mode)}; "
                    "end it with a line that reads its digits as one mode, the last to be done first"
                )
            of_one = digit.size == 1 and taken.get(digit.axis, ("", 1))[0] not in TRIGONOMETRIC
            if digit.done != (digit.axis in axes) and not of_one:
                raise LayoutError(
                    f"the walk leaves out axis {digit.axis}"
                    if digit.axis in axes
                    else f"the walk transforms axis {digit.axis}, which is not among the axes {axes}"
                )
    view = name_modes([[digit.axis for digit in mode] for mode in viewed])
    shape = tuple(points[axis] for axis in range(len(points)))
    return replace(last.layout, view=view).on(shape, last.grid)


def fitting(entry: Entry) -> Entry:
    """The entry on a mode of another extent: sizes that were made for one mode give way to balanced blocks."""
    return block(entry.grid_mode) if entry.kind.name == "block" else entry


def _said(mode: Mode) -> str:
    """The digits of a mode in words."""
    return (
        " and ".join(f"{'spectrum' if d.done else 'signal'} // {d.weight} % {d.size} of axis {d.axis}" for d in mode)
        or "nothing"
    )
