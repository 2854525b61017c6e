"""The arguments of a transform as users write them, checked: axes, kinds and norm, and the walks that would do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from rote.compiler.machine import DEFAULT, Machine
from rote.errors import LayoutError
from rote.grammar.nodes import exact
from rote.layout.distribution import Distribution, distribute
from rote.layout.grid import Grid, grid_shape
from rote.layout.layout import Layout, as_layout
from rote.tensor import DistTensor

from .families.choose import Choice, best, choices, ranking, walk_of
from .families.registry import SPLITS, check_algorithm, read_lines, start
from .request import TransformRequest
from .transforms import HALVING, Kinds, by_axis, in_order
from .walk.walk import Walk

__all__ = [
    "NORMS",
    "Arguments",
    "as_arguments",
    "check_norm",
    "check_tensor",
    "normal_axes",
    "requested_kinds",
    "scale",
]

NORMS = ("backward", "ortho", "forward")


@dataclass(frozen=True, slots=True)
class Arguments:
    """A transform as a user asks for it, on so many ranks.

    Attributes:
        shape: of the whole tensor.
        request: what is to be transformed.
        ranks: how many.
        layout, grid, output: of the input and of the spectrum; None where any will do.
    """

    shape: tuple[int, ...]
    request: TransformRequest
    ranks: int
    layout: Layout | None = None
    grid: Grid | None = None
    output: Layout | None = None

    def choices(self, machine: Machine = DEFAULT) -> tuple[Choice, ...]:
        """The walks of all families, the cheapest on a machine first; then the families without, and why."""
        if self.layout is None:
            return ranking(self.shape, self.ranks, self.request, self.grid, self.output, machine)
        return choices(self._source("auto"), self.request, self.output, machine)

    def walk(self, algorithm: str) -> Walk:
        """The walk of a family, of a text, or the cheapest on the usual machine.

        Raises:
            LayoutError: it does not do what is asked for.
        """
        if algorithm == "auto":
            return best(self.choices())
        return walk_of(self._source(algorithm), self.request, algorithm, self.output)

    def reread(self, text: str, grid: Grid) -> Walk:
        """The walk that was chosen for an equal request before, read from its text.

        Raises:
            LayoutError: it is another's: it does something else, or begins or ends elsewhere.
        """
        walk = walk_of(distribute(read_lines(text)[0].layout, self.shape, grid), self.request, text)
        if grid.size != self.ranks or self.grid not in (None, grid):
            raise LayoutError(f"a walk on grid {grid} is not on the grid that is asked for")
        for asked, begun in ((self.layout, walk.source.layout), (self.output, walk.target.layout)):
            if asked not in (None, begun):
                raise LayoutError(f"the walk is in {begun} where {asked} is asked for")
        return walk

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

    def _source(self, algorithm: str) -> Distribution:
        """The distribution in which the walk starts: the requested layout, or the one in which the algorithm begins."""
        layout, grid = self.layout, self.grid
        if layout is None and "[" in algorithm:
            layout = read_lines(algorithm)[0].layout
        if layout is not None:
            named = max((*layout.grid_modes, 0)) + 1
            return distribute(layout, self.shape, Grid.of(self.ranks, named) if grid is None else grid)
        check_algorithm(algorithm)
        if grid is None:
            split = [axis for axis in self.request.axes if axis != self.request.real]
            grid = Grid.of(self.ranks, {"rows": 1, "ragged": 1, **SPLITS}.get(algorithm, max(len(split), 1)))
        return distribute(start(algorithm, self.shape, grid, self.request), self.shape, grid)


def as_arguments(
    shape: tuple[int, ...],
    request: TransformRequest,
    ranks: int,
    layout: Layout | str | None,
    grid: Grid | Sequence[int] | int | None,
    output: Layout | str | None,
) -> Arguments:
    """A request from what users write."""
    where = None if layout is None else as_layout(layout)
    ends = None if output is None else as_layout(output)
    if grid is not None and not isinstance(grid, Grid):
        grid = Grid(grid_shape(grid))
    return Arguments(shape, request, ranks, where, grid, ends)


def scale(norm: str, sizes: Sequence[int], forward: bool) -> np.longdouble:
    """The factor that NumPy's `norm` asks for, as exact as any dtype wants it; the kernels themselves never scale.

    The sizes are the logical ones: the extents of the signal, about twice as many for cosine and sine transforms.

    >>> float(scale("backward", [4, 5], forward=False)), float(scale("ortho", [4], forward=True))
    (0.05, 0.5)
    """
    points = np.longdouble(prod(sizes))
    if norm == "ortho":
        points = np.sqrt(points)
    elif (norm == "forward") != forward:
        points = np.longdouble(1)
    return np.longdouble(1 / points)


def requested_kinds(
    kinds: Mapping[int, str] | str | None, axes: Sequence[int] | int | None, order: int, real: bool
) -> tuple[tuple[int, ...], Kinds]:
    """The axes of a transform in NumPy's order, and their kinds."""
    if isinstance(kinds, Mapping):
        if axes is not None:
            raise LayoutError("kinds says the axes itself; leave out axes, or give one kind for all of them")
        named = normal_axes(tuple(kinds), order)
        return in_order(dict(sorted(zip(named, kinds.values(), strict=True))), real)
    named, kind = normal_axes(axes, order), kinds or ("rfft" if real else "fft")
    if kind in HALVING and not named:
        raise LayoutError("a real transform needs at least one axis")
    return in_order(by_axis(kind, named), real)


def normal_axes(axes: Sequence[int] | int | None, order: int) -> tuple[int, ...]:
    """Axes as numbers from 0, each once.

    Raises:
        LayoutError: an axis is no integer, outside the tensor, or named twice.
    """
    if axes is None:
        return tuple(range(order))
    try:
        named = tuple(exact(a) for a in (axes if isinstance(axes, Iterable) else (axes,)))
    except TypeError:
        raise LayoutError(f"axes are integers, not {axes!r}") from None
    if any(not -order <= a < order for a in named):
        raise LayoutError(f"axes {named} are not all axes of a tensor of order {order}")
    numbered = tuple(a % order for a in named)
    if len(set(numbered)) != len(numbered):
        raise LayoutError(f"axes {named} name an axis twice")
    return numbered


def check_norm(norm: str | None) -> str:
    """A norm by its name; None is "backward"."""
    if norm is not None and norm not in NORMS:
        raise LayoutError(f"norm is one of {', '.join(NORMS)}; not {norm!r}")
    return norm or "backward"


def check_tensor(x: object, name: str) -> None:
    """Refuse what is no tensor where `name` takes one.

    Raises:
        TypeError: it is something else, such as an array.
    """
    if not isinstance(x, DistTensor):
        raise TypeError(
            f"{name} takes a DistTensor, not {type(x).__name__}, which does not say where it lies\n"
            "write DistTensor.from_global(array, layout) if every rank has all of it, or from_local or from_slices if "
            "each has its block"
        )
