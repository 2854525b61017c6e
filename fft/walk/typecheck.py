"""The type check of walks: every line is checked against the digits that the tensor has at that line.

A line is a layout and actions. Its view reads the digits that the lines before have left. The parts of a tile become
modes of the tensor, and so do digits that are fused to one; fused modes of several axes are separated again. A walk is
refused if it transforms a digit that is not whole on a rank, that is transformed already, or that must wait for a more
significant one; if it omits a twiddle, or writes one that is not due; and if it forgets a digit, or leaves an axis in
pieces. The state of modes and axes is in digits.py; actions other than transforms of digits are in conversions.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rote.errors import LayoutError
from rote.layout.expressions import fitting
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Entry, Layout

from ..request.request import TransformRequest
from ..transforms import CASTS, COMPLEX, HALVING, KINDS, REAL_TO_REAL, RESTORING, Kind
from .conversions import cast, convolved, resized
from .digits import AxisDigit, Mode, State, extent, name_modes, read, said, untiled
from .resize import recut
from .walk import Action, Resize, Stage, Transform, Twiddle, Walk, dtype_after

__all__ = ["CONVOLVE", "TWIDDLE", "StageSpec", "build"]

TWIDDLE = Transform("twiddle", ())
"""The action that applies all twiddles that are due."""

CONVOLVE = Transform("convolve", ())
"""The action that applies all convolutions that are due, each a product with the spectrum of a chirp."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One line of a walk: a layout, its actions, and the grid if it changes."""

    layout: Layout
    done: tuple[Transform | Resize, ...] = ()
    grid: Grid | None = None


def build(source: Distribution, lines: Sequence[StageSpec], request: TransformRequest) -> Walk:
    """The walk that consists of some lines, from a tensor with distribution `source`.

    Args:
        source: the tensor's distribution; if the first line has another one, the walk begins with a move.
        lines: at least one line.
        request: the request, all axes of which must be transformed at the end.

    Raises:
        LayoutError: the lines are not a transform of these axes; the text says which line is wrong, and why.
    """
    state = State(request, dict(enumerate(source.shape)), request.dtype)
    modes: tuple[Mode, ...] = tuple((AxisDigit(axis, 1, n),) for axis, n in state.extents.items())
    grid, stages = source.grid, list[Stage]()
    for number, line in enumerate(lines, 1):
        grid = line.grid or grid
        try:
            before = line.layout.on(tuple(map(extent, modes)), grid)
            _check(before, source, line)
            done, entries, viewed = _done(before, line, list(read(line.layout.view, modes)), state)
        except LayoutError as error:
            raise LayoutError(f"line {number} of the walk, {line.layout}: {error}") from None
        view, modes = untiled(line.layout.view, modes, tuple(viewed))
        after = replace(line.layout, modes=entries, view=view).on(tuple(map(extent, modes)), grid)
        stages.append(Stage(before, after, done))
    if stages[0].before != source:
        stages.insert(0, Stage(source, source))
    _check_ended(state)
    last = stages[-1].after
    target = _natural(last, read(last.layout.view, modes), state)
    axes = tuple(state.extents)
    return Walk(
        source,
        target,
        tuple(stages),
        request.dtype,
        tuple(state.kinds.get(axis, "") for axis in axes),
        tuple(state.sizes.get(axis, 1) for axis in axes),
        tuple(state.points.get(axis, 1) for axis in axes),
    )


def _check(before: Distribution, source: Distribution, line: StageSpec) -> None:
    """Refuse a line on other ranks, or one that transforms partial values of any reduction but the sum."""
    if before.grid.size != source.grid.size:
        raise LayoutError(f"grid {before.grid} is of {before.grid.size} ranks, but there are {source.grid.size}")
    if before.partial and before.layout.op != "sum" and line.done:
        op = before.layout.op
        raise LayoutError(f"the transform of a {op} is not the {op} of the transforms; reduce the tensor before")


def _done(
    before: Distribution, line: StageSpec, viewed: list[Mode], state: State
) -> tuple[tuple[Action, ...], tuple[tuple[Entry, ...], ...], list[Mode]]:
    """The actions of a line, with its twiddles, and the entries and digits of its modes afterwards."""
    done: list[Action] = []
    due: list[Twiddle] = []
    entries = list(line.layout.modes)
    for action in line.done:
        if isinstance(action, Resize):
            resize = resized(action, viewed, state)
            if before.splits[action.mode] and any(isinstance(a, Resize) and a.mode == action.mode for a in done):
                raise LayoutError(
                    f"mode {action.mode} is split, and has another extent already; write {action.kind} below"
                )
            entries[action.mode] = recut(before, action.mode, entries[action.mode], resize)
            viewed[action.mode] = (replace(viewed[action.mode][0], size=resize.extents[1]),)
            done.append(resize)
        elif action == TWIDDLE:
            if not due:
                raise LayoutError("no twiddle is due; it stands behind the transform of a digit that others wait for")
            done += due
            due = []
        elif action == CONVOLVE:
            done += convolved(viewed, state)
        elif action.kind in CASTS:
            done.append(cast(action, viewed, state))
        else:
            done.append(_transform(action, before, viewed, due, state))
            for m in action.modes:
                if len({extent(viewed[m]), before.view_shape[m]}) > 1:
                    entries[m] = tuple(map(fitting, entries[m]))
    if due:
        raise LayoutError("a twiddle is due before the tensor moves on; write twiddle behind the transforms")
    return tuple(done), tuple(entries), viewed


def _transform(
    action: Transform, before: Distribution, viewed: list[Mode], due: list[Twiddle], state: State
) -> Transform:
    """A transform, with the extent that it restores; the twiddles that become due are added to `due`."""
    kind, dtype = action.kind, state.dtype
    row = KINDS[kind]
    if row.real == "input" and dtype.kind == "c":
        raise LayoutError(f"{kind} takes real numbers, but they are {dtype} by then; write {row.others}")
    if row.real in ("neither", "output") and dtype.kind != "c":
        cure = "begin with a complex dtype" if row.backward else "begin with a complex dtype, or with rfft"
        raise LayoutError(f"{kind} takes complex numbers, but they are {dtype} by then; {cure}")
    state.dtype = dtype_after(kind, dtype)
    for m in action.modes:
        if before.splits[m]:
            names = ", ".join(str(s.grid_mode) for s in before.splits[m])
            raise LayoutError(f"mode {m} is not whole on a rank: grid mode {names} splits it")
    real = action.modes[-1] if row.real in ("input", "output") else None
    for m in sorted(action.modes, key=lambda m: (m == real) != (row.real == "input")):
        along = row.name if m == real else row.others
        viewed[m], more = _transformed(along, m, viewed, due, state)
        due += more
    length = 0 if real is None else state.points[viewed[real][0].axis]
    return replace(action, length=length)


def _transformed(
    kind: Kind, m: int, viewed: list[Mode], due: list[Twiddle], state: State
) -> tuple[Mode, list[Twiddle]]:
    """The digits of a mode after its transform, and the twiddles that are then due."""
    if len(viewed[m]) != 1:
        raise LayoutError(f"mode {m} is no digit of one axis, but {said(viewed[m])}")
    (digit,) = viewed[m]
    if digit.done:
        raise LayoutError(f"mode {m} is already transformed: {said(viewed[m])}")
    axis, n = digit.axis, state.extents[digit.axis]
    begun = state.turned.setdefault(axis, kind)
    if begun != kind:
        raise LayoutError(f"mode {m} is a digit of axis {axis}, which {begun} has begun; write {begun}")
    if n < 2 and not KINDS[kind].alone:
        others = [row.name for row in KINDS.values() if row.function == KINDS[kind].function and row.alone]
        names = f"{', '.join(others[:-1])} and {others[-1]}"
        raise LayoutError(f"{kind} takes two points or more, but axis {axis} has {n}; {names} take one")
    if kind not in COMPLEX and digit.size != n:
        raise LayoutError(f"{kind} takes a whole axis, but mode {m} is {said(viewed[m])}")
    length = n
    if kind in RESTORING:
        if state.request.kind.get(axis) != kind:
            raise LayoutError(f"{kind} along axis {axis} restores an extent that nothing says; go back with irfftn")
        length = state.length(axis)
        if KINDS[kind].taken(length) != n:
            raise LayoutError(f"{kind} along axis {axis} to {length} points takes {length // 2 + 1}, not {n}")
    state.begin(axis, kind, length)
    if kind not in COMPLEX:
        state.extents[axis] = KINDS[kind].given(length)
        return (AxisDigit(axis, 1, state.extents[axis], True),), []
    waiting = []
    for other, mode in enumerate(viewed):
        for k, part in enumerate(mode):
            if part.axis != axis or part.done or part == digit or part.size < 2:
                continue
            if part.weight > digit.weight:
                raise LayoutError(f"mode {m} waits for a more significant digit of axis {axis}, which mode {other} is")
            waiting.append((other, extent(mode[k + 1 :]), part))
    if any(m == twiddle.other for twiddle in due):
        raise LayoutError(f"a twiddle is due before mode {m} is transformed; write twiddle in between")
    turned = digit.turned(n)
    if digit.size == 1:
        return (turned,), []
    back, twiddles = KINDS[kind].backward, []
    for other, weight, part in waiting:
        twiddles.append(Twiddle(m, other, weight, part.size, turned.weight * part.weight, n, back))
    return (turned,), twiddles


def _check_ended(state: State) -> None:
    """Refuse a walk that ends before the transform of an axis is complete."""
    for axis, points in state.chirped.items():
        raise LayoutError(f"the walk leaves axis {axis} padded for a convolution; end it with chirp({axis}={points})")
    for axis, kind in state.kinds.items():
        half = state.points[axis] // 2 + 1
        if kind in HALVING and state.extents[axis] != half:
            raise LayoutError(
                f"the walk leaves the whole spectrum of the real axis {axis}; end it with fold({axis}={half})"
            )
        if kind in RESTORING and state.dtype.kind == "c":
            raise LayoutError(f"the walk leaves axis {axis} complex; write real behind its last transform")


def _natural(last: Distribution, viewed: tuple[Mode, ...], state: State) -> Distribution:
    """The distribution of a tensor of whole axes that has the blocks of the last stage."""
    axes = state.request.axes
    for mode in viewed:
        if not mode:
            raise LayoutError("the walk ends with a part of a tile that is no axis, for its extent is 1; leave it out")
        for digit in mode:
            if digit.size != state.extents[digit.axis]:
                raise LayoutError(
                    f"the walk ends with axis {digit.axis} in pieces, {said(mode)}; "
                    "end it with a line that reads its digits as one mode, the last to be done first"
                )
            if digit.size == 1 and state.kinds.get(digit.axis) not in REAL_TO_REAL:
                continue
            if digit.axis in axes and not digit.done:
                raise LayoutError(f"the walk leaves out axis {digit.axis}")
            if digit.done and digit.axis not in axes:
                raise LayoutError(f"the walk transforms axis {digit.axis}, which is not among the axes {axes}")
    view = name_modes([[digit.axis for digit in mode] for mode in viewed])
    return replace(last.layout, view=view).on(tuple(state.extents.values()), last.grid)
