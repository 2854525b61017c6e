"""Checks of the arguments of a transform as users write them: axes, kinds, norm, layouts, grid and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from numbers import Real
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rote.compiler.machine import Machine, as_machine
from rote.compiler.step import as_dtype
from rote.errors import CommError, LayoutError
from rote.grammar.nodes import exact
from rote.layout.grid import Grid, check_grid, grid_shape, integer
from rote.layout.layout import Layout, layout_or_none
from rote.runtime.comm.protocol import Comm
from rote.runtime.exchange.registry import check_method
from rote.runtime.tuning.autotune import Progress
from rote.runtime.tuning.calibrate import known_machine
from rote.runtime.tuning.limits import TUNES, Tune
from rote.tensor import DistTensor

from ..transforms import HALVING, Kinds, by_axis, check_kind, in_order
from .request import Arguments, TransformRequest, as_request, given_lengths

__all__ = ["NORMS", "USUAL", "Norm", "Options", "as_arguments", "check_extents", "check_norm", "check_ranks"]
__all__ += ["check_real", "check_tensor", "normal_axes", "planned_request", "requested_kinds", "scale"]

Norm = Literal["backward", "ortho", "forward"]
NORMS: tuple[Norm, ...] = get_args(Norm)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a transform that change only its speed; except that `wire` changes the precision of its result.

    Attributes:
        tune: how walks, kernels and methods are chosen, one of `TUNES`.
        threads: the number of threads for the local transforms of one rank.
        method: how messages travel, one of `rote.runtime.exchange.registry`, or "auto".
        machine: the machine for which moves are compiled, and on which "auto" takes the cheapest walk; if None, the
            default one, or for "auto" the one that was measured with as many ranks.
        progress: called with the fraction that is done, from 0 to 1, while walks are timed.
        tune_seconds: roughly the most time for all timing; None for the usual time.
        wire: "f4" if elements are rounded to single precision in messages.

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
    wire: str | None = None

    def __post_init__(self) -> None:
        if self.tune not in TUNES:
            raise LayoutError(f"tune is one of {', '.join(TUNES)}; not {self.tune!r}")
        if integer(self.threads, "threads") < 1:
            raise LayoutError(f"a rank has one thread or more, not {self.threads}")
        check_method(self.method)
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
        facts: dict[str, object] = {"threads": self.threads, "method": self.method}
        return facts if self.wire is None else facts | {"wire": self.wire}

    def machine_on(self, comm: Comm) -> Machine:
        """The machine that "auto" chooses for: the given one, or the measured one, or the default one. Collective."""
        return self.machine or known_machine(comm)

    def priced_machine(self, comm: Comm) -> Machine:
        """The machine that ranks walks. Collective.

        With `wire`, elements take half as many bytes in messages, so the times per byte are halved.
        """
        machine = self.machine_on(comm)
        if self.wire is None:
            return machine
        times = machine.byte_time
        if isinstance(times, tuple):
            return replace(machine, byte_time=tuple(time / 2 for time in times))
        return replace(machine, byte_time=times / 2)


USUAL = Options()
"""The default options."""


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
    """Refuse a grid whose size is not the number of ranks, and say how to plan without ranks.

    Raises:
        CommError: the numbers differ.
    """
    try:
        check_grid(grid, ranks)
    except CommError as error:
        cure = f"rote.fft.compare(shape, ranks={grid.size}) needs none, and says what walks take in time and memory"
        raise CommError(f"{error}\n{cure}") from None


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


def planned_request(
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    axes: Sequence[int] | int | None,
    kinds: Mapping[int, str] | str | None,
    by_text: bool,
    s: Sequence[int] | int | None,
    resample: Sequence[int] | int | None,
) -> TransformRequest:
    """The request of a planned transform, from arguments as users write them.

    Args:
        by_text: whether the user gives a walk as text, which contains its kinds.

    Raises:
        LayoutError: shape, axes, kinds and lengths do not fit together.
    """
    element = as_dtype(dtype)
    element = element if element.kind in "fc" else np.dtype("f8")
    named, kind = requested_kinds(kinds, axes, len(shape), element.kind == "f")
    s, resample = given_lengths(s, "s"), given_lengths(resample, "resample")
    if isinstance(kinds, Mapping):
        order = normal_axes(tuple(kinds), len(shape))
        s, resample = _reordered(s, order, named), _reordered(resample, order, named)
    check_extents(shape, named, s)
    return as_request(shape, named, "" if by_text and kinds is None else kind, element, s, resample)


def _reordered(
    lengths: tuple[int, ...] | None, axes: tuple[int, ...], named: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Lengths along `axes` in the order of `named`, a permutation; unchanged if there are not as many as axes."""
    if lengths is None or len(lengths) != len(axes):
        return lengths
    return tuple(lengths[axes.index(axis)] for axis in named)


def requested_kinds(
    kinds: Mapping[int, str] | str | None, axes: Sequence[int] | int | None, order: int, real: bool
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
    return in_order(by_axis(kind, named), real)


def normal_axes(axes: Sequence[int] | int | None, order: int, repeated: bool = False) -> tuple[int, ...]:
    """Axes as numbers from 0.

    Args:
        repeated: whether an axis may be named more than once.

    Raises:
        LayoutError: an axis is not an integer, is outside the tensor, or is named twice.
    """
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
    """Refuse an argument of the function `name` that is not a tensor.

    Raises:
        TypeError: it is something else, such as an array.
    """
    if not isinstance(x, DistTensor):
        raise TypeError(
            f"{name} takes a DistTensor, not {type(x).__name__}, which does not say where it lies\n"
            "write DistTensor.from_global(array, layout) if every rank has all of it, or from_local or from_slices if "
            "each has its block"
        )


def check_real(x: DistTensor, name: str) -> None:
    """Refuse an argument that is not a tensor of real numbers.

    Raises:
        TypeError: it is not a tensor.
        LayoutError: its numbers are complex.
    """
    check_tensor(x, name)
    if x.dtype.kind == "c":
        complex_name = name.replace("rfft", "fft").replace("ihfft", "ifft")
        raise LayoutError(f"{name} transforms real tensors, not {x.dtype}; use {complex_name}")


def check_extents(shape: tuple[int, ...], axes: tuple[int, ...], s: Sequence[int] | None) -> None:
    """Refuse to transform along an axis without points, unless lengths `s` pad it."""
    for axis, length in zip(axes, s or (-1,) * len(axes), strict=False):
        if shape[axis] < 1 and length == -1:
            raise LayoutError(f"axis {axis} of shape {shape} has no points to transform; give a length s to pad it to")
