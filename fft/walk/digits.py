"""The state of a walk: for each mode, the digits of axes that it stands for, between the signal and the spectrum.

An axis of n points is read in digits. A digit of weight w and size m is `index // w % m`. A digit that is whole on a
rank can be transformed. It becomes the digit of weight n / (w m) of the spectrum's index: the most significant digit of
the signal becomes the least significant one of the spectrum (Popovici et al. 2019, eq. 5 and 13). So 12 points are read
as (t s=3), t of weight 3 and size 4, s of weight 1 and size 3, and the spectrum is read as (s t):

           s=0  1  2                      t=0  1  2  3
    t=0      0  1  2      transform    s=0  0  1  2  3
    t=1      3  4  5      t, twiddle,  s=1  4  5  6  7
    t=2      6  7  8      transform s  s=2  8  9 10 11
    t=3      9 10 11
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from math import prod
from string import ascii_lowercase
from typing import Any

import numpy as np

from rote.errors import LayoutError
from rote.grammar.nodes import Fuse, Name, Tile
from rote.layout.view import View

from ..request import TransformRequest
from ..transforms import KINDS, Kind, MaybeKind

__all__ = ["Axis", "AxisDigit", "Mode", "State", "extent", "fused", "in_words", "mode_names", "name_modes", "read"]
__all__ += ["untiled"]


@dataclass(frozen=True, slots=True)
class AxisDigit:
    """A digit of an axis: `index // weight % size` of the signal, or, if `done`, of the spectrum."""

    axis: int
    weight: int
    size: int
    done: bool = False

    def turned(self, points: int) -> AxisDigit:
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
        wanted, length: the kind and the points of its transform in the request; "" and 0 if that names none.
        kind, size: those of `Walk`, once its transform has begun.
        points: those of `Walk`; None until the transform has begun, or its spectrum is resampled.
        turned: the transform of its digits, once one is transformed.
        chirped: the points that it had before it was padded for a convolution; 0 if it is not.
    """

    number: int
    extent: int
    wanted: MaybeKind = ""
    length: int = 0
    kind: MaybeKind = ""
    size: int = 1
    points: int | None = None
    turned: MaybeKind = ""
    chirped: int = 0

    def begin(self, kind: Kind, length: int) -> None:
        """Note the transform of some length, unless one is noted already."""
        if not self.kind:
            self.kind, self.size = kind, KINDS[kind].logical_size(length)
        if self.points is None:
            self.points = length


@dataclass(slots=True)
class State:
    """The axes and the dtype of a tensor in the middle of a walk; `padded` are the axes that chirp has padded."""

    axes: list[Axis]
    dtype: np.dtype[Any]
    padded: list[Axis] = field(default_factory=list)

    @classmethod
    def of(cls, shape: tuple[int, ...], request: TransformRequest) -> State:
        """The state of a tensor before a walk."""
        axes = [Axis(number, n) for number, n in enumerate(shape)]
        for number, kind, points in zip(request.axes, request.kinds, request.points, strict=True):
            axes[number].wanted, axes[number].length = kind, points
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
        view: the line's view of the tensor.
        modes: the digits of the tensor's modes before the line.
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
