"""The families of walks: a table of the layout in which each begins, and the function that makes its lines.

A family makes the lines of a walk for a request, from the distribution of a tensor: `transpose` has those that
transform whole axes, `shortest` the shortest of these to a given layout, `cyclic` and `ragged` those that transform
digits of axes. `choose` builds and prices the walks of all of them, and says which one "auto" takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rote.errors import LayoutError
from rote.grammar import parse_walk
from rote.grammar.nodes import BLOCK, CYCLIC, Kind
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Entry, Layout, layout_or_none

from ..check import Line
from ..request import TransformRequest, components
from . import cyclic, ragged, shortest, transpose

__all__ = ["FAMILIES", "Family", "algorithms", "check_algorithm", "is_text", "lines_of", "read_lines", "transposed"]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of walks.

    Attributes:
        start: the layout in which it begins, for a shape, a grid, a request and the layout of the spectrum, if the
            user gives none. It raises a LayoutError if the family does not take such a grid.
        lines: the lines of its walk from a tensor's distribution to the layout of the spectrum, or, without one, to
            where the walk ends. It raises a LayoutError if the family does not take such a tensor.
        grid_order: the number of modes of a grid that is not given; None for one per axis.
        symmetric: whether it treats all split axes alike, so that it costs the same whichever grid mode splits which.
    """

    start: Callable[[tuple[int, ...], Grid, TransformRequest, Layout | None], Layout]
    lines: Callable[[Distribution, TransformRequest, Layout | None], list[Line]]
    grid_order: int | None = 1
    symmetric: bool = False


def transposed(splits: int) -> str:
    """The name of the family that transposes tensors split over so many grid modes.

    A slab is split over one grid mode, and a pencil over two or more (Dalcin et al. 2019, eq. 26-32).
    """
    return "slab" if splits < 2 else "pencil"


def _whole_axes(
    name: str, shape: tuple[int, ...], grid: Grid, request: TransformRequest, output: Layout | None
) -> Layout:
    """Blocks of the first axes, or of those from which a batch is nearest to the layout of its spectrum.

    Components are split only if the grid has more modes than other axes can take.
    """
    order = len(shape)
    if (name == "slab" and grid.order != 1) or (name == "pencil" and grid.order < 2):
        orders = f"1, not {grid}" if name == "slab" else f"2, not {grid}, or of a higher one"
        raise LayoutError(f"a {name} takes a grid of order {orders}")
    if grid.order >= max(order, 2):
        raise LayoutError(
            f"a tensor of order {order} is transformed on a grid of order {order - 1} or less, not {grid.order}; "
            "give a layout to say otherwise"
        )

    fields = components(shape, request)
    usable = [axis for axis in range(order) if axis not in fields]
    if grid.order >= max(len(usable), 2):
        usable = [*range(order)]

    first = _split(order, usable[: grid.order], BLOCK)
    if output is None or len(request.axes) == order:
        return first

    starts = [first, *shortest.splits([first, output], grid)]
    starts[1:] = [layout for layout in starts[1:] if not any(layout.modes[axis] for axis in fields)]
    lines = shortest.shortest([layout.on(shape, grid) for layout in starts], request, output)
    return lines[0].layout if lines else first


def _rows(shape: tuple[int, ...], grid: Grid, request: TransformRequest, output: Layout | None) -> Layout:
    if grid.order != 1:
        raise LayoutError(f"rows takes a grid of order 1, not {grid}")
    return transpose.row_layout(tuple(range(len(shape))))


def _cyclic_axes(
    name: str, shape: tuple[int, ...], grid: Grid, request: TransformRequest, output: Layout | None
) -> Layout:
    """The first transformed axes, elementwise cyclic; a real one stays whole."""
    split = [a for a in range(len(shape)) if a in request.axes and a != request.real][: grid.order]
    if len(split) < grid.order and grid.size > 1:
        whole = "" if request.real is None else f": axis {request.real} is real, and stays whole"
        raise LayoutError(
            f"{name} splits no more than {len(split)} of the axes {request.axes}{whole}; "
            f"the grid {grid} is of order {grid.order}"
        )
    return _split(len(shape), split)


def _ragged(shape: tuple[int, ...], grid: Grid, request: TransformRequest, output: Layout | None) -> Layout:
    axes = sorted(request.axes, key=lambda a: a == request.real)[: grid.order]
    if len(axes) < grid.order and grid.size > 1:
        raise LayoutError(f"ragged splits the axes {request.axes}; the grid {grid} is of order {grid.order}")
    return _split(len(shape), axes)


def _split(order: int, axes: Sequence[int], kind: Kind = CYCLIC) -> Layout:
    """The layout that splits the first of some axes over grid mode 0, the next over grid mode 1, and so on."""
    modes: list[tuple[Entry, ...]] = [()] * order
    for grid_mode, axis in enumerate(axes):
        modes[axis] = (Entry(grid_mode, kind),)
    return Layout(tuple(modes))


FAMILIES = {
    "slab": Family(partial(_whole_axes, "slab"), shortest.transpose_to),
    "pencil": Family(partial(_whole_axes, "pencil"), shortest.transpose_to, 2),
    "rows": Family(_rows, transpose.rows),
    "volumetric": Family(partial(_cyclic_axes, "volumetric"), partial(cyclic.volumetric, "volumetric"), None, True),
    "cyclic": Family(partial(_cyclic_axes, "cyclic"), partial(cyclic.volumetric, "cyclic"), None, True),
    "ragged": Family(_ragged, ragged.ragged),
}
"""The families by name: a new one is a row here."""

algorithms: Final = ("auto", *FAMILIES)
"""The names that `algorithm=` takes. "volumetric" moves one mode at a time, and "cyclic" all at once; "ragged" takes
any number of points, one axis at a time; "auto" compares all families."""


def lines_of(name: str, source: Distribution, request: TransformRequest, output: Layout | str | None) -> list[Line]:
    """The lines of the named family from a tensor's distribution, or a LayoutError."""
    return FAMILIES[name].lines(source, request, layout_or_none(output))


def read_lines(text: str) -> list[Line]:
    """The lines of a walk's text; a NotationError says which line is wrong, and where.

    >>> [str(line.layout) for line in read_lines("(t s=4): [(),(0)]: fft(t), twiddle\\n(b r=4) s: [(),(0),()]: fft(s)")]
    ['(t s=4): [(),(0)]', '(b r=4) s: [(),(0),()]']
    """
    return list(parse_walk(text, Layout).stages)


def is_text(algorithm: str) -> bool:
    """Whether an algorithm is the text of a walk, rather than a name; a LayoutError if it is not a string."""
    if not isinstance(algorithm, str):
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}, or the text of a walk; not {algorithm!r}")
    return "[" in algorithm


def check_algorithm(algorithm: str, layout: Layout | None = None) -> None:
    """Refuse an unknown algorithm, or one that takes no layout over so many grid modes."""
    if algorithm not in algorithms:
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}; not {algorithm!r}")
    if layout is None or algorithm not in ("slab", "pencil"):
        return
    splits = len(layout.grid_modes)
    if transposed(splits) != algorithm:
        modes = "1 grid mode" if algorithm == "slab" else "2 grid modes or more"
        raise LayoutError(f"a {algorithm} splits over {modes}, but {layout} names {splits}")
