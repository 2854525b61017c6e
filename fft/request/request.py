"""Requests: the axes of a transform, their kinds, and their lengths on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rote.errors import LayoutError, counted
from rote.grammar.nodes import exact
from rote.layout.grid import Grid
from rote.layout.layout import Layout

from ..transforms import HALVING, KINDS, RESAMPLED, RESTORING, Kinds, MaybeKind, by_axis, is_forward

__all__ = ["Arguments", "TransformRequest", "as_request", "components", "given_lengths"]


@dataclass(frozen=True, slots=True)
class TransformRequest:
    """A transform of some axes of a tensor.

    Attributes:
        axes: the axes in NumPy's order.
        kinds: the kinds of the axes; "" if the text of a walk gives them.
        dtype: the dtype of the input.
        points: for each of `axes`, the length of its transform: a signal of another extent is cut or padded with zeros
            at its end (NumPy's `s`). For "irfft" it is the extent of the result.
        kept: for each of `axes`, the number of points whose spectrum is kept; equal to `points` if all of it is.
    """

    axes: tuple[int, ...]
    kinds: Kinds
    dtype: np.dtype[Any]
    points: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def kind(self) -> dict[int, MaybeKind]:
        """The kind of each axis."""
        return by_axis(self.kinds, self.axes)

    @property
    def real(self) -> int | None:
        """The axis that is real on one side and complex on the other."""
        return next((axis for axis, kind in self.kind.items() if kind in (*HALVING, *RESTORING)), None)

    @property
    def forward(self) -> bool:
        """Whether the axes are transformed from the last to the first."""
        return is_forward(self.kinds)

    def taken(self, axis: int) -> int:
        """The extent of an axis that its transform takes as input."""
        kind, n = self.kind[axis], self.points[self.axes.index(axis)]
        return KINDS[kind].taken(n) if kind else n

    def given(self, axis: int) -> int:
        """The extent of an axis in the result."""
        kind, n = self.kind[axis], self.kept[self.axes.index(axis)]
        return KINDS[kind].given(n) if kind else n

    def cut(self, axis: int) -> bool:
        """Whether the spectrum along an axis is cut or extended (resampled)."""
        at = self.axes.index(axis)
        return self.points[at] != self.kept[at]

    def of(self, axes: tuple[int, ...]) -> TransformRequest:
        """Restrict the request to some of its axes, in the same order; a real one stays last."""
        places = [n for n, axis in enumerate(self.axes) if axis in axes]
        named = tuple(self.axes[n] for n in places)
        kinds = self.kinds
        if not isinstance(kinds, str):
            kinds = tuple(kinds[n] for n in places)
        elif self.real is not None and self.real not in named:
            kinds = KINDS[kinds].others
        return replace(
            self,
            axes=named,
            kinds=kinds,
            points=tuple(self.points[n] for n in places),
            kept=tuple(self.kept[n] for n in places),
        )

    def after(self, shape: Sequence[int], done: Sequence[int]) -> tuple[int, ...]:
        """The shape after some axes are transformed.

        >>> as_request((4, 6), (0, 1), "rfft", np.dtype("f8"), s=(8, 9)).after((4, 6), (1,))
        (4, 5)
        """
        extents = [*shape]
        for axis in done:
            extents[axis] = self.given(axis)
        return tuple(extents)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a transform on a number of ranks.

    Attributes:
        shape: the shape of the whole tensor.
        request: the transform.
        ranks: the number of ranks.
        layout, grid, output: layout and grid of the input, and layout of the spectrum; None for any.
    """

    shape: tuple[int, ...]
    request: TransformRequest
    ranks: int
    layout: Layout | None = None
    grid: Grid | None = None
    output: Layout | None = None

    def facts(self) -> dict[str, Any]:
        """The facts that a decision depends on, as a JSON value."""
        wanted = self.request
        facts: dict[str, Any] = {
            "shape": self.shape,
            "axes": wanted.axes,
            "kinds": wanted.kinds,
            "dtype": wanted.dtype.name,
        }
        if wanted.points != tuple(self.shape[axis] for axis in wanted.axes):
            facts["s"] = wanted.points
        if wanted.kept != wanted.points:
            facts["resample"] = wanted.kept
        if self.grid is not None:
            facts["grid"] = self.grid.shape
        for name, layout in (("layout", self.layout), ("output", self.output)):
            if layout is not None:
                facts[name] = str(layout)
        return facts


def components(shape: Sequence[int], request: TransformRequest) -> tuple[int, ...]:
    """The axes that hold components of a field rather than points; they are split only on request.

    They are not transformed, and are shorter than some transformed axis; a longer axis is a batch. If only one axis is
    transformed there are no components, because the other axes are then the only good ones to split.

    >>> components((3, 8, 8, 8), as_request((3, 8, 8, 8), (1, 2, 3), "fft", np.dtype("c16")))
    (0,)
    """
    longest = max((shape[axis] for axis in request.axes), default=0)
    others = (axis for axis in range(len(shape)) if axis not in request.axes and shape[axis] < longest)
    return tuple(others) if len(request.axes) > 1 else ()


def as_request(
    shape: Sequence[int],
    axes: tuple[int, ...],
    kinds: Kinds,
    dtype: np.dtype[Any],
    s: Sequence[int] | int | None = None,
    resample: Sequence[int] | int | None = None,
) -> TransformRequest:
    """The request for a tensor of some shape.

    Args:
        s: the lengths of the transforms along `axes`, as in NumPy; -1 keeps an extent. If None, all extents are kept,
            and "irfft" restores an even extent.
        resample: the number of points along `axes` whose spectrum is kept; -1 keeps all of it.

    Raises:
        LayoutError: there are not as many lengths as axes, or one is not positive.

    >>> as_request((4, 6), (0, 1), "irfft", np.dtype("c16")).points
    (4, 10)
    """
    usual = [shape[axis] for axis in axes]
    if s is None and any(kind in RESTORING for kind in by_axis(kinds, axes).values()):
        usual[-1] = 2 * (usual[-1] - 1)
        if usual[-1] < 1:
            raise LayoutError("a spectrum of one point comes from an extent of 1; say so with s=")
    points = _lengths(s, axes, usual, "s")
    kept = _lengths(resample, axes, list(points), "resample")
    request = TransformRequest(axes, kinds, dtype, points, kept)
    for axis, kind in request.kind.items():
        if request.cut(axis) and kind not in RESAMPLED:
            raise LayoutError(f"resample is for fft and rfft, not for {kind or 'a walk that says its kinds'}")
    return request


def _lengths(
    given: Sequence[int] | int | None, axes: tuple[int, ...], usual: Sequence[int], name: str
) -> tuple[int, ...]:
    numbers = given_lengths(given, name)
    if numbers is None:
        return tuple(usual)
    if len(numbers) != len(axes):
        lengths, named = counted(len(numbers), "length"), counted(len(axes), "axis", "axes")
        raise LayoutError(f"{name}={given} is {lengths} for {named}, {axes}")
    numbers = tuple(usual[k] if n == -1 else n for k, n in enumerate(numbers))
    if any(n < 1 for n in numbers):
        raise LayoutError(f"a transform has one point or more; not {name}={given}")
    return numbers


def given_lengths(given: Sequence[int] | int | None, name: str) -> tuple[int, ...] | None:
    """Convert lengths as users write them to integers; None stays None.

    Raises:
        LayoutError: a length is not an integer.
    """
    if given is None:
        return None
    try:
        return tuple(map(exact, given)) if isinstance(given, Sequence | np.ndarray) else (exact(given),)
    except TypeError:
        raise LayoutError(f"{name} is one integer per axis, not {given!r}") from None
