"""Actions of a walk other than transforms of digits: changes of extent and of dtype, and convolutions.

A real transform may use complex numbers: `complex` begins "rfft", and `fold` cuts its spectrum to the half that is
kept. In the inverse, `fold` pads that half, and `real` ends "irfft". And n points may be transformed as a convolution
with a chirp (Bluestein 1970), on m >= 2n - 1 points that have better factors: `chirp`, the transform, `convolve`, the
inverse transform, `chirp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from rote.errors import LayoutError

from ..transforms import COMPLEX, HALVING, KINDS, RESAMPLED, RESTORING, Kind, goes_back
from .digits import Mode, State, said
from .walk import Convolve, Resize, Transform, dtype_after

__all__ = ["cast", "convolved", "resized"]


def resized(action: Resize, viewed: Sequence[Mode], state: State) -> Resize:
    """A change of extent with its extents filled in; the state's axis gets its new extent."""
    mode = viewed[action.mode]
    if len(mode) != 1 or mode[0].size != state.extents[mode[0].axis]:
        raise LayoutError(f"{action.kind} takes a whole axis, but mode {action.mode} is {said(mode)}")
    (digit,) = mode
    extent = state.extents[digit.axis]
    if action.kind == "chirp":
        resize = _chirp(replace(action, old=extent), digit.axis, digit.done, state)
    elif digit.axis in state.chirped:
        raise LayoutError(f"axis {digit.axis} is padded for a convolution; end it with chirp before {action.kind}")
    elif action.kind == "resample":
        resize = _resample(replace(action, old=extent), digit.axis, state)
    else:
        resize = replace(action, old=extent)
        if action.kind == "fold":
            _check_fold(resize, digit.axis, digit.done, state)
    state.extents[digit.axis] = resize.extents[1]
    return resize


def _resample(action: Resize, axis: int, state: State) -> Resize:
    begun, wanted = state.kinds.get(axis, ""), state.request.kind.get(axis, "")
    if begun not in RESAMPLED and (begun or not (wanted == "" or (wanted in COMPLEX and goes_back(wanted)))):
        raise LayoutError(f"resample is of a spectrum along axis {axis}; write it behind fft or rfft")
    points, half = state.points.get(axis, action.old), begun in HALVING
    if half and action.old != points // 2 + 1:
        raise LayoutError(f"resample of a real axis is of half a spectrum; write fold({axis}={points // 2 + 1}) before")
    if half and points != action.new and min(points, action.new) % 2 == 0:
        _check_nyquist(axis, state)
    state.points[axis] = action.new
    return replace(action, old=points, half=half)


def _check_nyquist(axis: int, state: State) -> None:
    """Refuse to resample half a spectrum once its terms are mixed: it takes the real part of Nyquist's term."""
    mixed = [other for other, kind in state.kinds.items() if other != axis and kind in COMPLEX]
    if mixed:
        raise LayoutError(
            f"resample takes the real part of Nyquist's term along axis {axis}, which is mixed with others once axis "
            f"{mixed[0]} is transformed; write rfft and resample of axis {axis} in front of that"
        )


def _check_fold(action: Resize, axis: int, done: bool, state: State) -> None:
    """Begin the inverse of half a spectrum, or check that there is a whole spectrum to cut."""
    wanted = state.request.kind.get(axis, "")
    if state.kinds.get(axis) in HALVING and done:
        points = state.points[axis]
        before, after = points, points // 2 + 1
    elif wanted in RESTORING and axis not in state.kinds:
        points = state.length(axis)
        before, after = points // 2 + 1, points
        state.begin(axis, wanted, points)
        state.turned[axis] = KINDS[wanted].others
    else:
        raise LayoutError(
            f"fold is of the whole spectrum of a real axis, which complex has begun, or of half of one for irfftn; "
            f"axis {axis} has neither"
        )
    if action.extents != (before, after):
        raise LayoutError(
            f"fold of axis {axis} is from {before} points to {after}, not from {action.old} to {action.new}"
        )


def _chirp(action: Resize, axis: int, done: bool, state: State) -> Resize:
    """The start of a convolution with a chirp, or its end."""
    back = goes_back(state.request.kind.get(axis, ""))
    if axis in state.chirped:
        points = state.chirped[axis]
        if not done or state.turned[axis] != "ifft":
            raise LayoutError(f"chirp ends axis {axis} once it is transformed, convolved and transformed back")
        if action.new != points:
            raise LayoutError(f"chirp cuts axis {axis} to the {points} points that it had, not to {action.new}")
        del state.chirped[axis]
        return replace(action, back=back)
    if done or state.kinds.get(axis, "") not in ("", *HALVING, *RESTORING):
        raise LayoutError(f"chirp begins the transform of axis {axis}, but {state.kinds.get(axis, 'it')} has begun")
    if state.dtype.kind != "c":
        raise LayoutError(f"chirp takes complex numbers, but they are {state.dtype} by then; write complex before")
    if action.new < 2 * action.old - 1:
        raise LayoutError(f"chirp pads {action.old} points to {2 * action.old - 1} or more, not to {action.new}")
    kind: Kind = "ifft" if back else "fft"
    state.begin(axis, kind, action.old)
    state.turned[axis], state.chirped[axis] = "fft", action.old
    return replace(action, back=back)


def convolved(viewed: list[Mode], state: State) -> list[Convolve]:
    """The convolutions that are due, of axes that were padded for one and transformed; their inverses come next."""
    convolutions: list[Convolve] = []
    for axis, n in state.chirped.items():
        modes = [m for m, mode in enumerate(viewed) if any(digit.axis == axis for digit in mode)]
        if state.turned[axis] != "fft" or not all(digit.done for digit in chain(*(viewed[m] for m in modes))):
            continue
        if any(len(viewed[m]) > 1 for m in modes):
            raise LayoutError(f"convolve takes axis {axis} in digits, each of them a mode of its own")
        modes.sort(key=lambda m: (-viewed[m][0].weight, viewed[m][0].size))
        back = goes_back(state.request.kind.get(axis, ""))
        convolutions.append(Convolve(tuple(modes), tuple(viewed[m][0].size for m in modes), n, back))
        for m in modes:
            viewed[m] = (replace(viewed[m][0], done=False),)
        state.turned[axis] = "ifft"
    if not convolutions:
        raise LayoutError("no convolve is due; it stands behind the transform of an axis that chirp has padded")
    return convolutions


def cast(action: Transform, viewed: Sequence[Mode], state: State) -> Transform:
    """A change of dtype, for the only axis that is real on one side."""
    axes = {digit.axis for digit in chain(*(viewed[m] for m in action.modes))}
    if len(axes) != 1:
        raise LayoutError(f"{action.kind} is for one axis, and names a mode of it, not of axes {sorted(axes)}")
    (axis,) = axes
    digits = [digit for digit in chain(*viewed) if digit.axis == axis]
    if action.kind == "complex":
        if state.dtype.kind == "c" or axis in state.kinds or state.request.kind.get(axis, "") not in ("", *HALVING):
            raise LayoutError(
                f"complex begins the rfft of axis {axis} of real numbers, but they are {state.dtype} by then, and "
                f"{state.kinds.get(axis) or state.request.kind.get(axis) or 'nothing'} is to be done there"
            )
        state.begin(axis, "rfft", state.extents[axis])
        state.turned[axis] = "fft"
    elif state.kinds.get(axis) not in RESTORING or axis in state.chirped or not all(digit.done for digit in digits):
        raise LayoutError(f"real ends the irfft of axis {axis}, which fold has begun, once all of it is transformed")
    state.dtype = dtype_after(action.kind, state.dtype)
    return action
