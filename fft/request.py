"""What a user asks of a transform: a request, the ranks and layouts that go with it, and options of its speed.

A request names the axes of a transform, their kinds, and their lengths on both sides. It is a value, and the same for
all ranks. The functions below make these values from arguments as users write them, and refuse what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rote.compiler.step import as_dtype, as_wire
from rote.errors import CommError, LayoutError, counted
from rote.grammar.nodes import exact
from rote.layout.grid import Grid, check_grid, grid_shape, integer
from rote.layout.layout import Layout, layout_or_none
from rote.machines.machine import Machine, as_machine
from rote.runtime.arrays import refuse_remote
from rote.runtime.choose import TUNES, Progress, Tune
from rote.runtime.comm.protocol import Comm
from rote.runtime.exchange.registry import check_method
from rote.runtime.tuning import known_machine
from rote.tensor import DistTensor

from .transforms import (
    FUNCTIONS,
    HALVING,
    KINDS,
    RESAMPLED,
    RESTORING,
    Kinds,
    MaybeKind,
    check_kind,
    in_order,
    kinds_along,
)

__all__ = ["NORMS", "USUAL", "Arguments", "Axes", "Lengths", "Norm", "Options", "TransformRequest", "as_arguments"]
__all__ += ["as_request"]
__all__ += ["check_extents", "check_norm", "check_ranks", "check_real", "check_tensor", "components", "given_length"]
__all__ += ["given_lengths", "normal_axes", "planned_request", "requested_kinds", "scale"]

Norm = Literal["backward", "ortho", "forward"]
NORMS: tuple[Norm, ...] = get_args(Norm)

Axes = Sequence[int] | int | None
Lengths = Sequence[int] | int | None


@dataclass(frozen=True, slots=True)
class TransformRequest:
    """A transform of some axes of a tensor.

    Attributes:
        axes: the axes in NumPy's order.
        kinds: the kind of each axis; "" if the text of a walk gives it.
        dtype: the dtype of the input.
        points: for each of `axes`, the length of its transform: a signal of another extent is cut or padded with zeros
            at its end (NumPy's `s`). For "irfft" it is the extent of the result.
        kept: for each of `axes`, the number of points whose spectrum is kept; equal to `points` if all of it is.
        forward: whether the axes are transformed from the last to the first, so that the way back ends where it began.
        wire: "f4" if elements are rounded to single precision while they travel.
    """

    axes: tuple[int, ...]
    kinds: Kinds
    dtype: np.dtype[Any]
    points: tuple[int, ...]
    kept: tuple[int, ...]
    forward: bool = True
    wire: str | None = None

    @property
    def kind(self) -> dict[int, MaybeKind]:
        return dict(zip(self.axes, self.kinds, strict=True))

    @property
    def real(self) -> int | None:
        """The axis that is real on one side and complex on the other."""
        return next((axis for axis, kind in self.kind.items() if kind in (*HALVING, *RESTORING)), None)

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
        return replace(
            self,
            axes=tuple(self.axes[n] for n in places),
            kinds=tuple(self.kinds[n] for n in places),
            points=tuple(self.points[n] for n in places),
            kept=tuple(self.kept[n] for n in places),
        )

    def after(self, shape: Sequence[int], done: Sequence[int]) -> tuple[int, ...]:
        """The shape after some axes are transformed."""
        extents = [*shape]
        for axis in done:
            extents[axis] = self.given(axis)
        return tuple(extents)


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


@dataclass(frozen=True, slots=True)
class Arguments:
    """A transform of a tensor on some ranks: layout and grid of the input, and layout of the spectrum; None for any."""

    shape: tuple[int, ...]
    request: TransformRequest
    ranks: int
    layout: Layout | None = None
    grid: Grid | None = None
    output: Layout | None = None

    def facts(self) -> dict[str, Any]:
        """The facts that a decision depends on, as a JSON value."""
        request = self.request
        facts: dict[str, Any] = {
            "shape": self.shape,
            "axes": request.axes,
            "kinds": request.kinds,
            "dtype": request.dtype.name,
        }

        if request.points != tuple(self.shape[axis] for axis in request.axes):
            facts["s"] = request.points
        if request.kept != request.points:
            facts["resample"] = request.kept
        if request.wire is not None:
            facts["wire"] = request.wire

        if self.grid is not None:
            facts["grid"] = self.grid.shape
        for name, layout in (("layout", self.layout), ("output", self.output)):
            if layout is not None:
                facts[name] = str(layout)
        return facts


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a transform that change only its speed, as for `FFT`.

    Raises:
        LayoutError: `tune` is unknown, a number is not positive, or `tune_seconds` limits a `tune` that times nothing.
        CommError: the method is unknown.
    """

    tune: Tune = "model"
    threads: int = 1
    method: str = "auto"
    machine: Machine | None = None
    progress: Progress | None = None
    tune_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.tune not in TUNES:
            raise LayoutError(f"tune is one of {', '.join(TUNES)}; not {self.tune!r}")
        if integer(self.threads, "threads") < 1:
            raise LayoutError(f"a rank has one thread or more, not {self.threads}")
        check_method(self.method)
        if self.progress is not None and not callable(self.progress):
            raise LayoutError(f"progress is called with numbers from 0 to 1; {self.progress!r} cannot be")
        as_machine(self.machine)

        if self.tune_seconds is None:
            return
        if not isinstance(self.tune_seconds, Real) or not 0 < self.tune_seconds < inf:
            raise LayoutError(f"tune_seconds is a number of seconds, more than 0; not {self.tune_seconds!r}")
        if self.tune == "model":
            raise LayoutError("tune_seconds limits what is timed, and tune='model' times nothing; write tune='measure'")

    def untuned(self) -> Options:
        """These options without timing, so that the model chooses."""
        return replace(self, tune="model", tune_seconds=None)

    def facts(self) -> dict[str, object]:
        """The facts that a decision depends on, as a JSON value."""
        return {"threads": self.threads, "method": self.method}

    def machine_on(self, comm: Comm) -> Machine:
        """The machine that "auto" chooses for: the given one, or the measured one, or the default one. Collective."""
        return self.machine or known_machine(comm)


USUAL = Options()
"""The default options."""


def planned_request(
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    axes: Axes,
    kinds: Mapping[int, str] | str | None,
    by_text: bool,
    s: Lengths,
    resample: Lengths,
    wire: str | None = None,
) -> TransformRequest:
    """The request of a planned transform, from arguments as users write them; `by_text` if a walk is given as text."""
    element = as_dtype(dtype)
    element = element if element.kind in "fc" else np.dtype("f8")
    named, kind = requested_kinds(kinds, axes, len(shape), element.kind == "f")
    s, resample = given_lengths(s, "s"), given_lengths(resample, "resample")
    if isinstance(kinds, Mapping):
        order = normal_axes(tuple(kinds), len(shape))
        s, resample = _reordered(s, order, named), _reordered(resample, order, named)
    check_extents(shape, named, s)
    return as_request(shape, named, "" if by_text and kinds is None else kind, element, s, resample, wire)


def _reordered(
    lengths: tuple[int, ...] | None, axes: tuple[int, ...], named: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Lengths along `axes` in the order of `named`, a permutation; unchanged if there are not as many as axes."""
    if lengths is None or len(lengths) != len(axes):
        return lengths
    return tuple(lengths[axes.index(axis)] for axis in named)


def requested_kinds(
    kinds: Mapping[int, str] | str | None, axes: Axes, order: int, real: bool
) -> tuple[tuple[int, ...], Kinds]:
    """The axes of a transform in NumPy's order, and their kinds."""
    if isinstance(kinds, Mapping):
        if axes is not None:
            raise LayoutError("kinds already names the axes; leave out axes, or give one kind for all of them")
        named = normal_axes(tuple(kinds), order)
        return in_order(dict(sorted(zip(named, kinds.values(), strict=True))), real)
    if kinds is not None:
        check_kind(kinds)
    named, kind = normal_axes(axes, order), kinds or ("rfft" if real else "fft")
    if kind in HALVING and not named:
        raise LayoutError("a real transform needs at least one axis")
    return in_order(dict(zip(named, kinds_along(kind, len(named)), strict=True)), real)


def as_request(
    shape: Sequence[int],
    axes: tuple[int, ...],
    kinds: str | Kinds,
    dtype: np.dtype[Any],
    s: Lengths = None,
    resample: Lengths = None,
    wire: str | None = None,
) -> TransformRequest:
    """The request for a tensor of some shape; `s`, `resample` and `wire` are as for `FFT`.

    `kinds` are one per axis, or a key of `FUNCTIONS` for all; "" leaves them to the text of a walk. Without `s`, all
    extents are kept, and "irfft" restores an even one.

    Raises:
        LayoutError: there are not as many lengths as axes, or one is not positive.
        PlanError: `wire` is another value, or `dtype` is not of double precision.

    >>> as_request((4, 6), (0, 1), "irfft", np.dtype("c16")).points
    (4, 10)
    """
    usual = [shape[axis] for axis in axes]
    forward = True
    if isinstance(kinds, str):
        forward = not kinds or not FUNCTIONS[kinds].backward
        kinds = kinds_along(kinds, len(axes))

    if s is None and any(kind in RESTORING for kind in kinds):
        usual[-1] = 2 * (usual[-1] - 1)
        if usual[-1] < 1:
            raise LayoutError("a spectrum of one point comes from an extent of 1; say so with s=")

    points = _lengths(s, axes, usual, "s")
    resampled = _lengths(resample, axes, list(points), "resample")
    as_wire(wire, dtype)

    request = TransformRequest(axes, kinds, dtype, points, resampled, forward, wire)
    for axis, kind in request.kind.items():
        if request.cut(axis) and kind not in RESAMPLED:
            raise LayoutError(f"resample is for fft and rfft, not for {kind or 'a walk that says its kinds'}")
    return request


def _lengths(lengths: Lengths, axes: tuple[int, ...], usual: Sequence[int], name: str) -> tuple[int, ...]:
    numbers = given_lengths(lengths, name)
    if numbers is None:
        return tuple(usual)
    if len(numbers) != len(axes):
        number, of_axes = counted(len(numbers), "length"), counted(len(axes), "axis", "axes")
        raise LayoutError(f"{name}={lengths} is {number} for {of_axes}, {axes}")
    numbers = tuple(usual[k] if n == -1 else n for k, n in enumerate(numbers))
    if any(n < 1 for n in numbers):
        raise LayoutError(f"a transform has one point or more; not {name}={lengths}")
    return numbers


def given_lengths(lengths: Lengths, name: str) -> tuple[int, ...] | None:
    """Convert lengths as users write them to integers; None stays None."""
    if lengths is None:
        return None
    try:
        return tuple(map(exact, lengths)) if isinstance(lengths, Sequence | np.ndarray) else (exact(lengths),)
    except TypeError:
        raise LayoutError(f"{name} is one integer per axis, not {lengths!r}") from None


def given_length(n: int | None) -> int | None:
    """Convert the length of one axis to an integer; None stays None. As in NumPy and SciPy, -1 is no length here."""
    if n is None:
        return None
    try:
        length = exact(n)
    except TypeError:
        raise LayoutError(f"n is an integer, not {n!r}") from None
    if length < 1:
        raise LayoutError(f"a transform has one point or more; not n={length}\nleave out n to keep the extent")
    return length


def normal_axes(axes: Axes, order: int, repeated: bool = False) -> tuple[int, ...]:
    """Axes as numbers from 0, which may be `repeated`; a LayoutError if they are not axes of the tensor."""
    if axes is None:
        return tuple(range(order))
    try:
        named = tuple(map(exact, axes)) if isinstance(axes, Iterable) else (exact(axes),)
    except TypeError:
        raise LayoutError(f"axes are integers, not {axes!r}") from None

    if any(not -order <= a < order for a in named):
        raise LayoutError(f"axes {named} are not all axes of a tensor of order {order}")
    numbered = tuple(a % order for a in named)
    if not repeated and len(set(numbered)) != len(numbered):
        raise LayoutError(f"axes {named} name an axis twice")
    return numbered


def check_norm(norm: str | None) -> Norm:
    """A norm by its name; None is "backward"."""
    for known in NORMS:
        if norm in (None, known):
            return known
    raise LayoutError(f"norm is one of {', '.join(NORMS)}; not {norm!r}")


def check_tensor(x: object, name: str) -> None:
    """Refuse an argument of the function `name` that is not a tensor."""
    if not isinstance(x, DistTensor):
        refuse_remote(x)
        raise TypeError(
            f"{name} takes a DistTensor, not {type(x).__name__}, which does not say where it lies\n"
            "write DistTensor.from_global(array, layout) if every rank has all of it, or from_local or from_slices if "
            "each has its block"
        )


def check_real(x: DistTensor, name: str) -> None:
    """Refuse an argument that is not a tensor of real numbers."""
    check_tensor(x, name)
    if x.dtype.kind == "c":
        complex_name = name.replace("rfft", "fft").replace("ihfft", "ifft")
        raise LayoutError(f"{name} transforms real tensors, not {x.dtype}; use {complex_name}")


def check_extents(shape: tuple[int, ...], axes: tuple[int, ...], s: Sequence[int] | None) -> None:
    """Refuse to transform along an axis without points, unless lengths `s` pad it."""
    for axis, length in zip(axes, s or (-1,) * len(axes), strict=False):
        if shape[axis] < 1 and length == -1:
            raise LayoutError(f"axis {axis} of shape {shape} has no points to transform; give a length s to pad it to")


def as_arguments(
    shape: tuple[int, ...],
    request: TransformRequest,
    ranks: int,
    layout: Layout | str | None,
    grid: Grid | Sequence[int] | int | None,
    output: Layout | str | None,
) -> Arguments:
    """Convert arguments as users write them to `Arguments`."""
    where = layout_or_none(layout)
    ends = layout_or_none(output)
    if grid is not None and not isinstance(grid, Grid):
        grid = Grid(grid_shape(grid, ranks))
    return Arguments(shape, request, ranks, where, grid, ends)


def check_ranks(grid: Grid, ranks: int) -> None:
    """Refuse a grid whose size is not the number of ranks, and say how to plan without ranks."""
    try:
        check_grid(grid, ranks)
    except CommError as error:
        hint = f"rote.fft.compare(shape, ranks={grid.size}) needs none, and says what walks take in time and memory"
        raise CommError(f"{error}\n{hint}") from None


def scale(norm: Norm, sizes: Sequence[int], forward: bool) -> np.longdouble:
    """The factor of NumPy's `norm`, precise enough for every dtype; the kernels themselves never scale.

    The sizes are the logical ones: the extents of the signal, and about twice that for cosine and sine transforms.

    >>> float(scale("backward", [4, 5], forward=False)), float(scale("ortho", [4], forward=True))
    (0.05, 0.5)
    """
    points = np.longdouble(prod(sizes))
    if norm == "ortho":
        points = np.sqrt(points)
    elif (norm == "forward") != forward:
        points = np.longdouble(1)
    return np.longdouble(1 / points)
