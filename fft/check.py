"""The type check of walks: every line is checked against the digits that the tensor has at that line.

A line is a layout and actions. Its view reads the digits that the lines before have left. The parts of a tile become
modes of the tensor, and so do digits that are fused to one; fused modes of several axes are separated again. A walk is
refused if it transforms a digit that is not whole on a rank, that is transformed already, or that must wait for a more
significant one; if it omits a twiddle, or writes one that is not due; and if it forgets a digit, or leaves an axis in
pieces.

Some actions are no transforms of digits. A real transform may use complex numbers: `complex` begins "rfft", and `fold`
cuts its spectrum to the half that is kept. In the inverse, `fold` pads that half, and `real` ends "irfft". And n points
may be transformed as a convolution with a chirp (Bluestein 1970), on m >= 2n - 1 points that have better factors:
`chirp`, the transform, `convolve`, the inverse transform, `chirp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count, islice, pairwise
from math import prod
from string import ascii_lowercase
from typing import Any, cast

import numpy as np

from rote.errors import LayoutError
from rote.grammar import CONVOLVE, RESIZES, TWIDDLE, StageSyntax
from rote.grammar.nodes import ActionSyntax, CastName, Fuse, Name, ResizeName, Tile
from rote.layout.distribution import Distribution
from rote.layout.expressions import fitting
from rote.layout.grid import Grid
from rote.layout.kinds import block_kind
from rote.layout.kinds import extent as part_extents
from rote.layout.layout import Entry, Layout
from rote.layout.view import View

from .request import TransformRequest
from .transforms import CASTS, COMPLEX, HALVING, KINDS, REAL_TO_REAL, RESAMPLED, RESTORING, Kind, MaybeKind, goes_back
from .walk import Action, Convolve, Resize, Stage, Transform, Twiddle, Walk, dtype_after

__all__ = ["AxisDigit", "Line", "build", "mode_names", "name_modes", "recut"]

# --- the state of a walk: the digits of axes that each mode stands for ------------------------------------------------
#
# An axis of n points is read in digits. A digit of weight w and size m is `index // w % m`. A digit that is whole on a
# rank can be transformed. It becomes the digit of weight n / (w m) of the spectrum's index: the most significant digit
# of the signal becomes the least significant one of the spectrum (Popovici et al. 2019, eq. 5 and 13). So 12 points are
# read as (t s=3), t of weight 3 and size 4, s of weight 1 and size 3, and the spectrum is read as (s t):
#
#            s=0  1  2                      t=0  1  2  3
#     t=0      0  1  2      transform    s=0  0  1  2  3
#     t=1      3  4  5      t, twiddle,  s=1  4  5  6  7
#     t=2      6  7  8      transform s  s=2  8  9 10 11
#     t=3      9 10 11


@dataclass(frozen=True, slots=True)
class AxisDigit:
    """A digit of an axis: `index // weight % size` of the signal, or, if `done`, of the spectrum."""

    axis: int
    weight: int
    size: int
    done: bool = False

    def transformed(self, points: int) -> AxisDigit:
        """The digit after its transform, in an axis of some points."""
        return replace(self, weight=points // (self.weight * self.size), done=True)


Mode = tuple[AxisDigit, ...]
"""The digits that a mode of a tensor stands for, the slowest first."""


def extent(mode: Mode) -> int:
    """The extent of a mode."""
    return prod(digit.size for digit in mode)


def in_words(mode: Mode) -> str:
    """The digits of a mode in words, for errors."""
    words = []
    for digit in mode:
        of_what = "spectrum" if digit.done else "signal"
        words.append(f"{of_what} // {digit.weight} % {digit.size} of axis {digit.axis}")
    return " and ".join(words) or "nothing"


@dataclass(slots=True, eq=False)
class Axis:
    """An axis of a tensor in the middle of a walk.

    Attributes:
        number: its number.
        extent: its present extent.
        requested, length: the kind and the points of its transform in the request; "" and 0 if that names none.
        kind, size: those of `Walk`, once its transform has begun.
        points: those of `Walk`; None until the transform has begun, or its spectrum is resampled.
        by: the kind of the transforms of its digits, once one is transformed.
        chirped: the points that it had before it was padded for a convolution; 0 if it is not.
    """

    number: int
    extent: int
    requested: MaybeKind = ""
    length: int = 0
    kind: MaybeKind = ""
    size: int = 1
    points: int | None = None
    by: MaybeKind = ""
    chirped: int = 0

    def begin(self, kind: Kind, length: int) -> None:
        """Note the transform of some length, unless one is noted already."""
        if not self.kind:
            self.kind, self.size = kind, KINDS[kind].logical_size(length)
        if self.points is None:
            self.points = length


@dataclass(slots=True)
class State:
    """The axes and the dtype of a tensor in the middle of a walk."""

    axes: list[Axis]
    dtype: np.dtype[Any]

    @property
    def padded(self) -> list[Axis]:
        """The axes that chirp has padded for a convolution."""
        return [axis for axis in self.axes if axis.chirped]

    @classmethod
    def of(cls, shape: tuple[int, ...], request: TransformRequest) -> State:
        axes = [Axis(number, n) for number, n in enumerate(shape)]
        for number, kind, points in zip(request.axes, request.kinds, request.points, strict=True):
            axes[number].requested, axes[number].length = kind, points
        return cls(axes, request.dtype)


def fused(modes: list[Mode]) -> Mode:
    """Modes read as one, the first slowest: consecutive digits of an axis become one digit.

    >>> fused([(AxisDigit(0, 4, 2),), (AxisDigit(0, 1, 4),)])
    (AxisDigit(axis=0, weight=1, size=8, done=False),)
    """
    digits: list[AxisDigit] = []
    for digit in chain(*modes):
        last = digits[-1] if digits else None
        if last and (last.axis, last.done, last.weight) == (digit.axis, digit.done, digit.weight * digit.size):
            digits[-1] = replace(digit, size=last.size * digit.size)
        else:
            digits.append(digit)
    return tuple(digits)


def read(view: View | None, modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """The modes of a view of a tensor with these modes.

    Raises:
        LayoutError: a tile does not divide the digits that it cuts.
    """
    if view is None:
        return modes
    viewed: list[Mode] = []
    for item, numbers in zip(view, view.tensor_modes, strict=True):
        if isinstance(item, Tile):
            viewed += _tiled(modes[numbers[0]], [size for _, size in item.parts])
        else:
            viewed.append(fused([modes[m] for m in numbers]))
    return tuple(viewed)


def untiled(
    view: View | None, modes: tuple[Mode, ...], viewed: tuple[Mode, ...]
) -> tuple[View | None, tuple[Mode, ...]]:
    """The tensor after a line, whose blocks are those of the line's view.

    Parts of a tile become modes, and so do modes that are fused to one digit. Other fused modes are separated again.

    Args:
        view, modes: the line's view of the tensor, and the digits of the tensor's modes before the line.
        viewed: the digits of the view's modes after the line's actions.

    Returns:
        The view of the new tensor that reads the same blocks, and the digits of the new tensor's modes.
    """
    if view is None:
        return None, viewed

    parts: dict[int, tuple[Mode, ...]] = {}  # per old mode, the new ones
    number = 0  # the view's mode
    for item, numbers in zip(view, view.tensor_modes, strict=True):
        width = len(item.parts) if isinstance(item, Tile) else 1
        if isinstance(item, Fuse) and len(viewed[number]) > 1:
            parts |= {m: (modes[m],) for m in numbers}
        else:
            parts |= dict.fromkeys(numbers, ())
            parts[min(numbers)] = viewed[number : number + width]
        number += width

    place = count()
    places = {m: [*islice(place, len(parts[m]))] for m in sorted(parts)}  # in the new tensor

    rows: list[list[int]] = []
    for item, numbers in zip(view, view.tensor_modes, strict=True):
        new = [*chain(*(places[m] for m in numbers))]
        rows += [[m] for m in new] if isinstance(item, Tile) else [new]

    return name_modes(rows), tuple(chain(*(parts[m] for m in sorted(parts))))


def name_modes(rows: list[list[int]]) -> View:
    """The view whose modes read these modes of the tensor, several of them fused.

    >>> name_modes([[2, 0], [1]])
    View((Fuse(names=('c', 'a')), Name(name='b')))
    """
    letters = mode_names(sum(map(len, rows)))
    items: list[Fuse | Name] = []
    for row in rows:
        names = tuple([letters[m] for m in row])
        items.append(Fuse(names) if len(names) > 1 else Name(names[0]))
    return View(tuple(items))


def mode_names(order: int) -> list[str]:
    """Names for the modes of a tensor in a view: letters, if there are enough of them.

    >>> mode_names(3), mode_names(100)[-2:]
    (['a', 'b', 'c'], ['m98', 'm99'])
    """
    if order <= len(ascii_lowercase):
        return [*ascii_lowercase[:order]]
    return [f"m{m:02}" for m in range(order)]


def _tiled(mode: Mode, sizes: list[int | None]) -> list[Mode]:
    """A mode cut into parts of some sizes, the slowest first; None takes what the others leave."""
    known = prod(size for size in sizes if size is not None)
    rest, parts = list(mode), list[Mode]()
    for size in reversed(sizes):
        if size is None:
            size = extent(mode) // known

        # The fastest digits that are left make up the part. The last of them may be larger than what the part lacks:
        # it is cut in two, and its slower half stays for the next part.
        part: list[AxisDigit] = []
        left = size
        while left > 1:
            digit = rest.pop()
            if left % digit.size == 0:
                part.insert(0, digit)
                left //= digit.size
            elif digit.size % left == 0:
                part.insert(0, replace(digit, size=left))
                rest.append(replace(digit, weight=digit.weight * left, size=digit.size // left))
                left = 1
            else:
                raise LayoutError(f"a part of {size} cuts through a digit of {digit.size} points of axis {digit.axis}")
        parts.insert(0, fused([tuple(part)]))

    parts[0] = fused([tuple(rest), parts[0]])  # an axis of one point is a digit, too
    return parts


# --- the lines of a walk, checked one after the other -----------------------------------------------------------------


Line = StageSyntax[Layout]
"""A line of a walk as it is written: a layout, its actions, and the grid if it changes."""


def build(source: Distribution, lines: Sequence[Line], request: TransformRequest) -> Walk:
    """The walk of some lines, from a tensor's distribution; it begins with a move if the first line has another one.

    Raises:
        LayoutError: the lines are not a transform of these axes; the text says which line is wrong, and why.
    """
    state = State.of(source.shape, request)
    modes: tuple[Mode, ...] = tuple((AxisDigit(axis, 1, n),) for axis, n in enumerate(source.shape))
    grid, stages = source.grid, list[Stage]()

    for number, line in enumerate(lines, 1):
        grid = Grid(line.grid) if line.grid else grid
        try:
            before = line.layout.on(tuple(map(extent, modes)), grid)
            _check(before, source, line)
            checked = _checked(before, line, list(read(line.layout.view, modes)), state)
        except LayoutError as error:
            raise LayoutError(f"line {number} of the walk, {line.layout}: {error}") from None

        view, modes = untiled(line.layout.view, modes, tuple(checked.viewed))
        after = replace(line.layout, modes=tuple(checked.entries), view=view).on(tuple(map(extent, modes)), grid)
        stages.append(Stage(before, after, tuple(checked.done)))

    if stages[0].before != source:
        stages.insert(0, Stage(source, source))

    _check_ended(state)
    last = stages[-1].after
    target = _natural(last, read(last.layout.view, modes), state, request.axes)

    kinds, sizes = tuple(axis.kind for axis in state.axes), tuple(axis.size for axis in state.axes)
    points = tuple(1 if axis.points is None else axis.points for axis in state.axes)
    return Walk(source, target, tuple(stages), request.dtype, kinds, sizes, points, request.wire)


def _check(before: Distribution, source: Distribution, line: Line) -> None:
    if before.grid.size != source.grid.size:
        raise LayoutError(f"grid {before.grid} is of {before.grid.size} ranks, but there are {source.grid.size}")
    if before.partial and before.layout.op != "sum" and line.actions:
        op = before.layout.op
        raise LayoutError(f"the transform of a {op} is not the {op} of the transforms; reduce the tensor before")


@dataclass(slots=True)
class _Checked:
    """A line, as far as its actions are checked.

    Attributes:
        before: its distribution before the first action.
        entries, viewed: the entries and the digits of its modes after the actions so far.
        done: these actions.
        due: the twiddles that must be written before the line ends.
    """

    before: Distribution
    entries: list[tuple[Entry, ...]]
    viewed: list[Mode]
    done: list[Action] = field(default_factory=list)
    due: list[Twiddle] = field(default_factory=list)


def _checked(before: Distribution, line: Line, viewed: list[Mode], state: State) -> _Checked:
    """Check the actions of a line, from the digits of its modes."""
    checked = _Checked(before, list(line.layout.modes), viewed)
    for action in line.actions:
        _CHECKERS[action.name](action, checked, state)

    if checked.due:
        raise LayoutError("a twiddle is due before the tensor moves on; write twiddle after the transforms")
    return checked


def _check_transform(action: ActionSyntax, line: _Checked, state: State) -> None:
    """A transform, with the extent that it restores, and the twiddles that become due."""
    kind, modes = cast(Kind, action.name), action.modes
    row, dtype = KINDS[kind], state.dtype
    if row.real == "input" and dtype.kind == "c":
        raise LayoutError(f"{kind} takes real numbers, but they are {dtype} by then; write {row.others}")
    if row.real in ("neither", "output") and dtype.kind != "c":
        hint = "begin with a complex dtype" if row.backward else "begin with a complex dtype, or with rfft"
        raise LayoutError(f"{kind} takes complex numbers, but they are {dtype} by then; {hint}")
    state.dtype = dtype_after(kind, dtype)

    for m in modes:
        if line.before.splits[m]:
            names = ", ".join(str(s.grid_mode) for s in line.before.splits[m])
            raise LayoutError(f"mode {m} is not whole on a rank: grid mode {names} splits it")

    real = modes[-1] if row.real in ("input", "output") else None
    for m in sorted(modes, key=lambda m: (m == real) != (row.real == "input")):  # "rfft" begins with the real mode
        along = row.name if m == real else row.others
        line.viewed[m], due = _transformed(along, m, line.viewed, line.due, state)
        line.due += due

        if extent(line.viewed[m]) != line.before.view_shape[m]:
            line.entries[m] = tuple(map(fitting, line.entries[m]))

    length = 0 if real is None else state.axes[line.viewed[real][0].axis].points
    line.done.append(Transform(kind, modes, length or 0))


def _transformed(
    kind: Kind, m: int, viewed: list[Mode], due: list[Twiddle], state: State
) -> tuple[Mode, list[Twiddle]]:
    """The digits of a mode after its transform, and the twiddles that are then due."""
    if len(viewed[m]) != 1:
        raise LayoutError(f"mode {m} is no digit of one axis, but {in_words(viewed[m])}")
    (digit,) = viewed[m]
    if digit.done:
        raise LayoutError(f"mode {m} is already transformed: {in_words(viewed[m])}")

    axis, along = digit.axis, state.axes[digit.axis]
    n = along.extent
    along.by = along.by or kind
    if along.by != kind:
        raise LayoutError(f"mode {m} is a digit of axis {axis}, which {along.by} has begun; write {along.by}")

    if n < 2 and not KINDS[kind].alone:
        others = [row.name for row in KINDS.values() if row.function == KINDS[kind].function and row.alone]
        names = f"{', '.join(others[:-1])} and {others[-1]}"
        raise LayoutError(f"{kind} takes two points or more, but axis {axis} has {n}; {names} take one")
    if kind not in COMPLEX and digit.size != n:
        raise LayoutError(f"{kind} takes a whole axis, but mode {m} is {in_words(viewed[m])}")

    length = n
    if kind in RESTORING:
        if along.requested != kind:
            raise LayoutError(f"{kind} along axis {axis} restores an extent that nothing says; go back with irfftn")
        length = along.length
        if KINDS[kind].taken(length) != n:
            raise LayoutError(f"{kind} along axis {axis} to {length} points takes {length // 2 + 1}, not {n}")

    along.begin(kind, length)
    if kind not in COMPLEX:
        along.extent = KINDS[kind].given(length)
        return (AxisDigit(axis, 1, along.extent, True),), []

    # Every digit of the axis that is still to be transformed is less significant, and needs a twiddle with this one:
    # exp(-2 pi i k j / n), k the place of this digit in the spectrum, j that of the other digit in the signal.
    waiting = []
    for other, mode in enumerate(viewed):
        for k, part in enumerate(mode):
            if part.axis != axis or part.done or part == digit or part.size < 2:
                continue
            if part.weight > digit.weight:  # its transform would mix with this one's twiddles
                raise LayoutError(f"mode {m} waits for a more significant digit of axis {axis}, which mode {other} is")
            waiting.append((other, extent(mode[k + 1 :]), part))
    if any(m == twiddle.other for twiddle in due):
        raise LayoutError(f"a twiddle is due before mode {m} is transformed; write twiddle in between")

    done = digit.transformed(n)
    if digit.size == 1:
        return (done,), []

    back, twiddles = KINDS[kind].backward, []
    for other, weight, part in waiting:
        twiddles.append(Twiddle(m, other, weight, part.size, done.weight * part.weight, n, back))
    return (done,), twiddles


def _check_ended(state: State) -> None:
    """Refuse a walk that ends before the transform of an axis is complete."""
    for axis in state.padded:
        raise LayoutError(
            f"the walk leaves axis {axis.number} padded for a convolution; end it with "
            f"chirp({axis.number}={axis.chirped})"
        )

    for axis in state.axes:
        half = (axis.points or 0) // 2 + 1
        if axis.kind in HALVING and axis.extent != half:
            raise LayoutError(
                f"the walk leaves the whole spectrum of the real axis {axis.number}; end it with "
                f"fold({axis.number}={half})"
            )

        if axis.kind in RESTORING and state.dtype.kind == "c":
            raise LayoutError(f"the walk leaves axis {axis.number} complex; write real after its last transform")


def _natural(last: Distribution, viewed: tuple[Mode, ...], state: State, axes: tuple[int, ...]) -> Distribution:
    """The distribution of a tensor of whole axes that has the blocks of the last stage."""
    for mode in viewed:
        if not mode:
            raise LayoutError("the walk ends with a part of a tile that is no axis, for its extent is 1; leave it out")

        for digit in mode:
            axis = state.axes[digit.axis]
            if digit.size != axis.extent:
                raise LayoutError(
                    f"the walk ends with axis {digit.axis} in pieces, {in_words(mode)}; "
                    "end it with a line that reads its digits as one mode, the last to be done first"
                )

            # A transform of one point changes nothing, so that it may be left out, unless it has a factor.
            if digit.size == 1 and axis.kind not in REAL_TO_REAL:
                continue
            if digit.axis in axes and not digit.done:
                raise LayoutError(f"the walk leaves out axis {digit.axis}")
            if digit.done and digit.axis not in axes:
                raise LayoutError(f"the walk transforms axis {digit.axis}, which is not among the axes {axes}")

    view = name_modes([[digit.axis for digit in mode] for mode in viewed])
    return replace(last.layout, view=view).on(tuple(axis.extent for axis in state.axes), last.grid)


def _check_resize(action: ActionSyntax, line: _Checked, state: State) -> None:
    """Changes of extent of whole axes, whose elements stay on their ranks."""
    for m, new in zip(action.modes, action.extents, strict=True):
        resize = _resized(cast(ResizeName, action.name), m, new, line.viewed, state)
        if line.before.splits[m] and any(isinstance(other, Resize) and other.mode == m for other in line.done):
            raise LayoutError(f"mode {m} is split, and has another extent already; write {action.name} below")

        line.entries[m] = recut(line.before, m, line.entries[m], resize)
        line.viewed[m] = (replace(line.viewed[m][0], size=resize.extents[1]),)
        line.done.append(resize)


def _resized(kind: ResizeName, m: int, new: int, viewed: Sequence[Mode], state: State) -> Resize:
    """A change of extent of a whole axis."""
    mode = viewed[m]
    if len(mode) != 1 or mode[0].size != state.axes[mode[0].axis].extent:
        raise LayoutError(f"{kind} takes a whole axis, but mode {m} is {in_words(mode)}")

    (digit,) = mode
    axis = state.axes[digit.axis]

    resize = Resize(kind, m, axis.extent, new)
    if kind == "chirp":
        resize = _chirp(resize, axis, digit.done, state)
    elif axis.chirped:
        raise LayoutError(f"axis {axis.number} is padded for a convolution; end it with chirp before {kind}")
    elif kind == "resample":
        resize = _resample(resize, axis, state)
    elif kind == "fold":
        _check_fold(resize, axis, digit.done)

    axis.extent = resize.extents[1]
    return resize


def _resample(action: Resize, axis: Axis, state: State) -> Resize:
    begun, number = axis.kind, axis.number
    is_spectrum = axis.requested == "" or (axis.requested in COMPLEX and goes_back(axis.requested))  # from the start
    if begun not in RESAMPLED and (begun or not is_spectrum):
        raise LayoutError(f"resample is of a spectrum along axis {number}; write it after fft or rfft")

    points, half = action.old if axis.points is None else axis.points, begun in HALVING
    if half and action.old != points // 2 + 1:
        raise LayoutError(
            f"resample of a real axis is of half a spectrum; write fold({number}={points // 2 + 1}) before"
        )

    if half and points != action.new and min(points, action.new) % 2 == 0:
        # The real part of Nyquist's term is taken, which another transform would mix with other terms.
        mixed = [other.number for other in state.axes if other is not axis and other.kind in COMPLEX]
        if mixed:
            raise LayoutError(
                f"resample takes the real part of Nyquist's term along axis {number}, which is mixed with others once "
                f"axis {mixed[0]} is transformed; write rfft and resample of axis {number} in front of that"
            )

    axis.points = action.new
    return replace(action, old=points, half=half)


def _check_fold(action: Resize, axis: Axis, done: bool) -> None:
    """Begin the inverse of half a spectrum, or check that there is a whole spectrum to cut."""
    if axis.kind in HALVING and done:
        before = axis.points or 0
        after = before // 2 + 1
    elif axis.requested in RESTORING and not axis.kind:
        after = axis.length
        before = after // 2 + 1
        axis.begin(axis.requested, after)
        axis.by = KINDS[axis.requested].others
    else:
        raise LayoutError(
            f"fold is of the whole spectrum of a real axis, which complex has begun, or of half of one for irfftn; "
            f"axis {axis.number} has neither"
        )

    if action.extents != (before, after):
        raise LayoutError(
            f"fold of axis {axis.number} is from {before} points to {after}, not from {action.old} to {action.new}"
        )


def _chirp(action: Resize, axis: Axis, done: bool, state: State) -> Resize:
    """The start of a convolution with a chirp, or its end."""
    back, points = goes_back(axis.requested), axis.chirped
    if points:  # the end
        if not done or axis.by != "ifft":
            raise LayoutError(f"chirp ends axis {axis.number} once it is transformed, convolved and transformed back")
        if action.new != points:
            raise LayoutError(f"chirp cuts axis {axis.number} to the {points} points that it had, not to {action.new}")
        axis.chirped = 0
        return replace(action, back=back)

    if done or axis.kind not in ("", *HALVING, *RESTORING):
        raise LayoutError(f"chirp begins the transform of axis {axis.number}, but {axis.kind or 'it'} has begun")
    if state.dtype.kind != "c":
        raise LayoutError(f"chirp takes complex numbers, but they are {state.dtype} by then; write complex before")
    if action.new < 2 * action.old - 1:
        raise LayoutError(f"chirp pads {action.old} points to {2 * action.old - 1} or more, not to {action.new}")

    axis.begin("ifft" if back else "fft", action.old)
    axis.by, axis.chirped = "fft", action.old
    return replace(action, back=back)


def _check_convolve(action: ActionSyntax, line: _Checked, state: State) -> None:
    """The convolutions that are due, of axes that were padded for one and transformed; their inverses come next."""
    convolutions, viewed = list[Convolve](), line.viewed
    for axis in state.padded:
        modes = [m for m, mode in enumerate(viewed) if any(digit.axis == axis.number for digit in mode)]
        if axis.by != "fft" or not all(digit.done for digit in chain(*(viewed[m] for m in modes))):
            continue
        if any(len(viewed[m]) > 1 for m in modes):
            raise LayoutError(f"convolve takes axis {axis.number} in digits, each of them a mode of its own")

        modes.sort(key=lambda m: (-viewed[m][0].weight, viewed[m][0].size))
        sizes = tuple(viewed[m][0].size for m in modes)
        convolutions.append(Convolve(tuple(modes), sizes, axis.chirped, goes_back(axis.requested)))

        for m in modes:  # they are transformed back
            viewed[m] = (replace(viewed[m][0], done=False),)
        axis.by = "ifft"

    if not convolutions:
        raise LayoutError("no convolve is due; it stands after the transform of an axis that chirp has padded")
    line.done += convolutions


def _check_twiddle(action: ActionSyntax, line: _Checked, state: State) -> None:
    if not line.due:
        raise LayoutError("no twiddle is due; it stands after the transform of a digit that others wait for")
    line.done += line.due
    line.due = []


def _check_cast(action: ActionSyntax, line: _Checked, state: State) -> None:
    """A change of dtype, for the only axis that is real on one side."""
    name = cast(CastName, action.name)
    axes = {digit.axis for digit in chain(*(line.viewed[m] for m in action.modes))}
    if len(axes) != 1:
        raise LayoutError(f"{name} is for one axis, and names a mode of it, not of axes {sorted(axes)}")

    axis = state.axes[axes.pop()]
    digits = [digit for digit in chain(*line.viewed) if digit.axis == axis.number]

    if name == "complex":
        if state.dtype.kind == "c" or axis.kind or axis.requested not in ("", *HALVING):
            raise LayoutError(
                f"complex begins the rfft of axis {axis.number} of real numbers, but they are {state.dtype} by then, "
                f"and {axis.kind or axis.requested or 'nothing'} is to be done there"
            )
        axis.begin("rfft", axis.extent)
        axis.by = "fft"
    elif axis.kind not in RESTORING or axis.chirped or not all(digit.done for digit in digits):
        raise LayoutError(
            f"real ends the irfft of axis {axis.number}, which fold has begun, once all of it is transformed"
        )

    state.dtype = dtype_after(name, state.dtype)
    line.done.append(Transform(name, action.modes))


_CHECKERS: dict[str, Callable[[ActionSyntax, _Checked, State], None]] = {
    **dict.fromkeys(KINDS, _check_transform),
    **dict.fromkeys(CASTS, _check_cast),
    **dict.fromkeys(RESIZES, _check_resize),
    TWIDDLE: _check_twiddle,
    CONVOLVE: _check_convolve,
}
"""The check of each action by its name: it refuses the action, or adds it to the line and changes the line's digits."""


def recut(before: Distribution, mode: int, entries: tuple[Entry, ...], resize: Resize) -> tuple[Entry, ...]:
    """The entries of a mode after a change of extent, such that every element stays on its rank.

    Raises:
        LayoutError: some elements would have to travel.

    >>> from rote.layout.layout import parse
    >>> dist = parse("block[(0)]").on(16, 4)
    >>> [entry.kind.sizes for entry in recut(dist, 0, dist.layout.modes[0], Resize("resize", 0, 16, 6))]
    [(4, 2, 0, 0)]
    """
    splits, (old, new) = before.splits[mode], resize.extents
    if not splits:
        return tuple(map(fitting, entries))

    period = prod(s.parts for s in splits)
    if all(s.kind.is_cyclic for s in splits):
        if resize.kind != "resample":
            return entries
        if all(s.kind.tile == 1 for s in splits) and not resize.half and (old - new) % period == 0:
            return entries  # so many points fewer, or more, that each frequency stays on its rank
    elif resize.kind != "resample" and new < old and len(splits) == 1:
        (split,) = splits
        if split.kind.tile:
            return entries

        # Blocks of an extent that shrinks are cut at the new end: ranks beyond it have nothing.
        sizes = part_extents(split.kind, period, old, np.arange(period)).tolist()
        ends = (0, *(min(end, new) for end in accumulate(sizes)))
        cut = block_kind(*(b - a for a, b in pairwise(ends)))
        return tuple(Entry(e.grid_mode, cut) if e.grid_mode == split.grid_mode else fitting(e) for e in entries)

    names = ", ".join(str(s.grid_mode) for s in splits)
    where = "whole, or cyclic"
    if resize.kind == "resample":
        where += f" over ranks that divide {abs(old - new)}"
    raise LayoutError(
        f"{resize.kind} of mode {mode} from {old} to {new} would move elements, for grid mode {names} splits it; "
        f"do it where the mode is {where}"
    )
