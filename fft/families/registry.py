"""The families of walks by name, the layout in which each begins, and the lines of a walk's text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, cast

from rote.errors import LayoutError
from rote.grammar import RESIZES, ActionSyntax, parse_walk, unparse
from rote.grammar.nodes import BLOCK, CYCLIC, Kind, ResizeName
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Entry, Layout, as_layout
from rote.layout.refine import fitted

from ..request.request import TransformRequest, components
from ..transforms import FOURIER, ActionKind
from ..walk.typecheck import StageSpec
from ..walk.walk import Resize, Transform
from .cyclic import cyclic
from .ragged import ragged
from .rows import row_layout, rows
from .transpose import transpose

__all__ = ["SPLITS", "algorithms", "check_algorithm", "is_text", "lines_of", "read_lines", "start", "transposed"]

SPLITS = {"slab": 1, "pencil": 2}
"""The number of grid modes over which an algorithm splits by default; a pencil also takes more."""

algorithms: Final = ("auto", "slab", "pencil", "rows", "volumetric", "cyclic", "ragged")
"""The names that `algorithm=` takes. "volumetric" moves one mode at a time, and "cyclic" all at once; "ragged" takes
any number of points, one axis at a time; "auto" compares all families."""


def transposed(splits: int) -> str:
    """The name of the family that transposes tensors split over so many grid modes.

    A slab is split over one grid mode, and a pencil over two or more (Dalcin et al. 2019, eq. 26-32).
    """
    return "slab" if splits < 2 else "pencil"


def start(algorithm: str, shape: tuple[int, ...], grid: Grid, request: TransformRequest) -> Layout:
    """The layout in which an algorithm begins on a grid, if the user gives none.

    Components are split only if the grid has more modes than the other axes can take.

    Raises:
        LayoutError: the algorithm does not take such a grid.

    >>> import numpy as np
    >>> from ..request.request import as_request
    >>> real = as_request((8, 8, 8), (0, 1, 2), "rfft", np.dtype("f8"))
    >>> print(start("volumetric", (8, 8, 8), Grid((2, 2)), real), start("pencil", (8, 8, 8), Grid((2, 2)), real))
    [(0),(1),()] block[(0),(1),()]
    """
    order = len(shape)
    if algorithm == "rows":
        if grid.order != 1:
            raise LayoutError(f"rows takes a grid of order 1, not {grid}")
        return row_layout(tuple(range(order)))
    if algorithm in ("volumetric", "cyclic"):
        split = [a for a in range(order) if a in request.axes and a != request.real][: grid.order]
        if len(split) < grid.order and grid.size > 1:
            whole = "" if request.real is None else f": axis {request.real} is real, and stays whole"
            raise LayoutError(
                f"{algorithm} splits no more than {len(split)} of the axes {request.axes}{whole}; "
                f"the grid {grid} is of order {grid.order}"
            )
        return _laid(order, split)
    if algorithm == "ragged":
        axes = sorted(request.axes, key=lambda a: a == request.real)[: grid.order]
        if len(axes) < grid.order and grid.size > 1:
            raise LayoutError(f"ragged splits the axes {request.axes}; the grid {grid} is of order {grid.order}")
        return _laid(order, axes)
    if (algorithm == "slab" and grid.order != 1) or (algorithm == "pencil" and grid.order < 2):
        wanted = f"1, not {grid}" if algorithm == "slab" else f"2, not {grid}, or of a higher one"
        raise LayoutError(f"a {algorithm} takes a grid of order {wanted}")
    if grid.order >= max(order, 2):
        raise LayoutError(
            f"a tensor of order {order} is transformed on a grid of order {order - 1} or less, not {grid.order}; "
            "give a layout to say otherwise"
        )
    kept = components(shape, request)
    usable = [axis for axis in range(order) if axis not in kept]
    if grid.order >= max(len(usable), 2):
        usable = [*range(order)]
    return _laid(order, usable[: grid.order], BLOCK)


def _laid(order: int, axes: Sequence[int], kind: Kind = CYCLIC) -> Layout:
    """The layout that splits the first of some axes over grid mode 0, the next over grid mode 1, and so on."""
    modes: list[tuple[Entry, ...]] = [()] * order
    for grid_mode, axis in enumerate(axes):
        modes[axis] = (Entry(grid_mode, kind),)
    return Layout(tuple(modes))


def read_lines(text: str) -> list[StageSpec]:
    """The lines of a walk's text.

    Raises:
        NotationError: the text is not a walk; the message says which line is wrong, and where.

    >>> [str(line.layout) for line in read_lines("(t s=4): [(),(0)]: fft(t), twiddle\\n(b r=4) s: [(),(0),()]: fft(s)")]
    ['(t s=4): [(),(0)]', '(b r=4) s: [(),(0),()]']
    """
    lines = []
    for stage in parse_walk(text).stages:
        grid = None if stage.grid is None else Grid(stage.grid)
        done = tuple(chain(*map(_read, stage.actions)))
        lines.append(StageSpec(as_layout(unparse(stage.layout)), done, grid))
    return lines


def _read(action: ActionSyntax) -> list[Transform | Resize]:
    """The actions of a walk for one action in its text."""
    if action.name in RESIZES:
        name = cast(ResizeName, action.name)
        return [Resize(name, mode, 0, extent) for mode, extent in zip(action.modes, action.extents, strict=True)]
    return [Transform(cast(ActionKind, action.name), action.modes)]


def is_text(algorithm: str) -> bool:
    """Whether an algorithm is the text of a walk, rather than a name.

    Raises:
        LayoutError: it is not a string.
    """
    if not isinstance(algorithm, str):
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}, or the text of a walk; not {algorithm!r}")
    return "[" in algorithm


def check_algorithm(algorithm: str, layout: Layout | None = None) -> None:
    """Refuse an unknown algorithm, or one that does not start from a layout.

    Raises:
        LayoutError: the name is unknown, or the layout splits over the wrong number of grid modes.
    """
    if algorithm not in algorithms:
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}; not {algorithm!r}")
    if layout is None or algorithm not in SPLITS:
        return
    splits = len(layout.grid_modes)
    if transposed(splits) != algorithm:
        modes = "1 grid mode" if algorithm == "slab" else "2 grid modes or more"
        raise LayoutError(f"a {algorithm} splits over {modes}, but {layout} names {splits}")


def lines_of(
    name: str, source: Distribution, request: TransformRequest, output: Layout | str | None, far: bool = False
) -> list[StageSpec]:
    """The lines of the named family from a tensor's distribution; for `far` see `transpose`.

    Raises:
        LayoutError: the family does not take such a tensor.
    """
    if name == "ragged":
        return ragged(source, request, output)
    if name == "rows":
        lines = rows(source, request)
    elif name in ("volumetric", "cyclic"):
        if not {*request.kind.values()} <= {*FOURIER}:
            raise LayoutError(
                f"{name} takes fft and rfft, for no other transform is made of transforms of digits; write slab, "
                "pencil or rows"
            )
        lines = _mixed(source, request, together=name == "cyclic")
    else:
        lines = transpose(source, request, far)
    return lines if output is None else [*lines, StageSpec(as_layout(output))]


def _mixed(source: Distribution, request: TransformRequest, together: bool) -> list[StageSpec]:
    """The lines that transform cyclic axes by the volumetric family, and all others by transposes.

    If no axis is cyclic, the first step makes all split axes cyclic.
    """
    if source.layout.view is not None or source.layout.partial or source.layout.rooted:
        raise LayoutError(f"volumetric walks start from plain layouts, not {source.layout}; redistribute first")
    axes, real = request.axes, request.real
    split = [a for a in axes if source.splits[a]]
    if not split:
        return transpose(source, request)
    others = [a for a in split if {s.kind for s in source.splits[a]} != {CYCLIC}]
    if len(others) == len(split):
        modes = list(source.layout.modes)
        for a in split:
            modes[a] = tuple(Entry(e.grid_mode) for e in modes[a])
        start = Layout(tuple(modes)).on(source.shape, source.grid)
        return [StageSpec(source.layout), *cyclic(start, request, together)]
    if others and not request.forward and real is not None and real not in others:
        others.append(real)  # the real axis comes last in an inverse transform
    first = request.of(tuple(a for a in axes if a not in others))
    lines = cyclic(source, first, together)
    if not others:
        return lines
    between = fitted(source, request.after(source.shape, first.axes))
    return [*lines, *transpose(between, request.of(tuple(others)))]
