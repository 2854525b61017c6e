"""Which walk: the families by name, a walk's own text, and the cheapest of them by the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log2, prod

from rote.compiler.cost import pace
from rote.compiler.explain import in_seconds
from rote.compiler.machine import DEFAULT
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.errors import LayoutError, counted
from rote.grammar import RESIZES, ActionSyntax, parse_walk, unparse
from rote.grammar.nodes import CYCLIC
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Entry, L, Layout, as_layout, block

from .build import Line, build
from .cyclic import cyclic
from .problem import Problem
from .rows import row_layout, rows
from .transpose import refitted, transpose
from .walk import Resize, Transform, Walk

__all__ = [
    "SPLITS",
    "Choice",
    "algorithms",
    "best",
    "check_algorithm",
    "choices",
    "compared",
    "ranking",
    "read_lines",
    "start",
    "walk_of",
]

SPLITS = {"slab": 1, "pencil": 2}
"""The number of grid modes that the layouts of an algorithm name."""

algorithms = ("auto", "slab", "pencil", "rows", "volumetric", "cyclic")
"""The names that `algorithm=` takes: "volumetric" moves each mode by itself, "cyclic" all at once, "auto" compares."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A walk that "auto" may take, and what speaks for it.

    Attributes:
        name: of its family.
        source: where it begins.
        seconds: the model's time of its moves, and of its transforms, on the slowest rank; infinite without a walk.
        walk: itself; or None, and `why` there is none.
    """

    name: str
    source: Distribution
    seconds: float
    walk: Walk | None
    why: str = ""


def walk_of(
    source: Distribution, problem: Problem, algorithm: str = "auto", output: Layout | str | None = None
) -> Walk:
    """The walk of an algorithm from where a tensor lies.

    Args:
        source: where the tensor lies.
        problem: what is to be transformed; the text of a walk may say its kinds.
        algorithm: one of `algorithms`, or the text of a walk.
        output: the layout to end in; where the walk ends if None.

    Raises:
        LayoutError: the algorithm does not take such a tensor; the text says which would.
    """
    if "[" in algorithm:
        lines = read_lines(algorithm)
        walk = build(source, lines if output is None else [*lines, Line(as_layout(output))], problem)
        _check_said(walk, problem)
        return walk
    check_algorithm(algorithm, source.layout)
    if algorithm == "auto":
        return best(choices(source, problem, output))
    plain = source.layout.view is None
    if algorithm in ("volumetric", "cyclic") and plain and not any(source.splits[a] for a in problem.axes):
        algorithm = "transpose"  # nothing is split, so nothing moves in any family
    return build(source, _lines(algorithm, source, problem, output), problem)


def _check_said(walk: Walk, problem: Problem) -> None:
    """Refuse the text of a walk that does something else than it is asked for."""
    for axis, wanted in problem.kind.items():
        done = walk.kinds[axis]
        if wanted and done != wanted and (done or wanted not in ("fft", "ifft")):
            raise LayoutError(f"the walk does {done or 'nothing'} along axis {axis}, where {wanted} is asked for")
        if wanted and done and walk.target.shape[axis] != problem.given(axis):
            raise LayoutError(
                f"the walk ends with {walk.target.shape[axis]} points along axis {axis}, where {problem.given(axis)} "
                "are asked for; write resize in front of the transform, or leave out s"
            )


def choices(source: Distribution, problem: Problem, output: Layout | str | None = None) -> tuple[Choice, ...]:
    """The walks of all families from where a tensor lies, the cheapest first; then the families without, and why."""
    found = [
        _choice(name, source, problem, output)
        for name in ("transpose", "cyclic", "volumetric", "rows")
        if {"volumetric": source.grid.order > 1, "rows": source.layout.view is not None}.get(name, True)
    ]
    return tuple(sorted(found, key=lambda choice: choice.seconds))


@lru_cache(maxsize=64)
def ranking(
    shape: tuple[int, ...],
    ranks: int,
    problem: Problem,
    grid: Grid | None = None,
    output: Layout | str | None = None,
) -> tuple[Choice, ...]:
    """The walks of all families on all grids of so many ranks (or on one grid), the cheapest first; then the rest.

    >>> import numpy as np
    >>> from .problem import problem
    >>> wanted = problem((64, 64, 64), (0, 1, 2), "fft", np.dtype("c16"))
    >>> [choice.name for choice in ranking((64, 64, 64), 4, wanted)][:2]
    ['slab', 'cyclic']
    """
    found: list[Choice] = []
    for on in [grid] if grid is not None else _grids(ranks, len(shape)):
        usual = next((name for name, order in SPLITS.items() if order == on.order), "transpose")
        for name in (usual, "cyclic", "volumetric", "rows") if on.order > 1 else (usual, "cyclic", "rows"):
            try:
                source = start(name, len(shape), on, problem).on(shape, on)
            except LayoutError as error:
                source = L(*((),) * len(shape)).on(shape, on)
                found.append(Choice(name, source, inf, None, str(error)))
            else:
                found.append(_choice(name, source, problem, output))
    return tuple(sorted(found, key=lambda choice: choice.seconds))


def start(algorithm: str, order: int, grid: Grid, problem: Problem) -> Layout:
    """The layout in which an algorithm begins on a grid, where nothing is said.

    Raises:
        LayoutError: the grid is not one for it.

    >>> import numpy as np
    >>> from .problem import problem
    >>> real = problem((8, 8, 8), (0, 1, 2), "rfft", np.dtype("f8"))
    >>> print(start("volumetric", 3, Grid((2, 2)), real), start("pencil", 3, Grid((2, 2)), real))
    [(0),(1),()] block[(0),(1),()]
    """
    if algorithm == "rows":
        if grid.order != 1:
            raise LayoutError(f"rows takes a grid of order 1, not {grid}")
        return row_layout(tuple(range(order)))
    if algorithm in ("volumetric", "cyclic"):
        split = [a for a in range(order) if a in problem.axes and a != problem.real][: grid.order]
        if len(split) < grid.order and grid.size > 1:
            whole = "" if problem.real is None else f": axis {problem.real} is real, and stays whole"
            raise LayoutError(
                f"{algorithm} splits no more than {len(split)} of the axes {problem.axes}{whole}; "
                f"the grid {grid} is of order {grid.order}"
            )
        return L(*(split.index(a) if a in split else () for a in range(order)))
    wanted = SPLITS.get(algorithm, grid.order)
    if grid.order != wanted:
        raise LayoutError(f"a {algorithm} takes a grid of order {wanted}, not {grid}")
    if wanted >= max(order, 2):
        raise LayoutError(
            f"a tensor of order {order} is transformed on a grid of order {order - 1} or less, not {wanted}; "
            "give a layout to say otherwise"
        )
    return L(*(block(m) if m < wanted else () for m in range(order)))


def best(found: Sequence[Choice]) -> Walk:
    """The cheapest walk whose layouts read the tensor as it is, unless all read it otherwise.

    Raises:
        LayoutError: there is no walk.
    """
    walks = [choice.walk for choice in found if choice.walk is not None]
    if not walks:
        raise LayoutError(found[0].why)
    plain = [walk for walk in walks if walk.source.layout.view is None and walk.target.layout.view is None]
    return (plain or walks)[0]


def compared(found: Sequence[Choice], walk: Walk) -> list[str]:
    """Why a walk was chosen: what the cheapest of each family would take, or why a family has none."""
    named: dict[str, Choice] = {}
    for choice in found:
        named.setdefault(choice.name, choice)
    taken = next((choice.seconds for choice in found if choice.walk is walk), 0.0)
    lines = []
    for name, choice in named.items():
        if choice.walk is None:
            lines.append(f"  {name} has no walk: {choice.why}")
            continue
        times = "" if choice.walk is walk or not taken else f", {choice.seconds / taken:.2f} times as long"
        lines.append(f"  {name} on {choice.source.grid}: about {in_seconds(choice.seconds)}{times}")
    return lines


def _choice(name: str, source: Distribution, problem: Problem, output: Layout | str | None) -> Choice:
    try:
        walk = build(source, _lines(name, source, problem, output), problem)
    except LayoutError as error:
        return Choice(name, source, inf, None, str(error))
    return Choice(name, source, _seconds(walk), walk)


def _grids(ranks: int, order: int) -> list[Grid]:
    """The grids of so many ranks and at most so many modes, each of two ranks or more."""
    found: list[tuple[int, ...]] = [()]
    every: list[tuple[int, ...]] = [(ranks,)] if ranks == 1 else []
    for _ in range(order):
        found = [
            (*shape, p) for shape in found for p in range(2, ranks // prod(shape) + 1) if ranks // prod(shape) % p == 0
        ]
        every += [shape for shape in found if prod(shape) == ranks]
    return [Grid(shape) for shape in every]


def read_lines(text: str) -> list[Line]:
    """The lines of a walk's text.

    Raises:
        NotationError: it is none; the text says which line is wrong, and where.

    >>> [str(line.layout) for line in read_lines("(t s=4): [(),(0)]: fft(t), twiddle\\n(b r=4) s: [(),(0),()]: fft(s)")]
    ['(t s=4): [(),(0)]', '(b r=4) s: [(),(0),()]']
    """
    return [
        Line(
            as_layout(unparse(stage.layout)),
            tuple(one for action in stage.actions for one in _read(action)),
            None if stage.grid is None else Grid(stage.grid),
        )
        for stage in parse_walk(text).stages
    ]


def _read(action: ActionSyntax) -> list[Transform | Resize]:
    """What one action of a text stands for."""
    if action.name in RESIZES:
        return [Resize(action.name, m, 0, n) for m, n in zip(action.modes, action.extents, strict=True)]
    return [Transform(action.name, action.modes)]


def check_algorithm(algorithm: str, layout: Layout | None = None) -> None:
    """Refuse an algorithm that is unknown, or that does not start from a layout.

    Raises:
        LayoutError: it is, or does.
    """
    if algorithm not in algorithms:
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}; not {algorithm!r}")
    wanted = SPLITS.get(algorithm)
    if layout is not None and wanted is not None and len(layout.grid_modes) != wanted:
        modes = counted(wanted, "grid mode")
        raise LayoutError(f"a {algorithm} splits over {modes}, but {layout} names {len(layout.grid_modes)}")


def _lines(name: str, source: Distribution, problem: Problem, output: Layout | str | None) -> list[Line]:
    if name == "rows":
        lines = rows(source, problem)
    elif name in ("volumetric", "cyclic"):
        if not {*problem.kind.values()} <= {"fft", "ifft", "rfft", "irfft"}:
            raise LayoutError(
                f"{name} takes fft and rfft, for no other transform is made of transforms of digits; write slab, "
                "pencil or rows"
            )
        lines = _mixed(source, problem, together=name == "cyclic")
    else:
        lines = transpose(source, problem)
    return lines if output is None else [*lines, Line(as_layout(output))]


def _mixed(source: Distribution, problem: Problem, together: bool) -> list[Line]:
    """Axes that lie cyclically by the volumetric family, those that lie otherwise by transposes.

    Where none lies cyclically, all that are split are laid so first.
    """
    if source.layout.view is not None or source.layout.partial or source.layout.rooted:
        raise LayoutError(f"volumetric walks start from plain layouts, not {source.layout}; redistribute first")
    axes, real = problem.axes, problem.real
    split = [a for a in axes if source.splits[a]]
    if not split:
        return transpose(source, problem)
    others = [a for a in split if any(s.kind != CYCLIC for s in source.splits[a])]
    if len(others) == len(split):
        modes = tuple(
            tuple(Entry(e.grid_mode) for e in mode) if a in split else mode
            for a, mode in enumerate(source.layout.modes)
        )
        start = Layout(modes).on(source.shape, source.grid)
        return [Line(source.layout), *cyclic(start, problem, together)]
    if others and not problem.forward and real is not None and real not in others:
        others.append(real)  # it is the last on the way back
    first = problem.of(tuple(a for a in axes if a not in others))
    lines = cyclic(source, first, together)
    if not others:
        return lines
    between = refitted(source, problem.after(source.shape, first.axes))
    return [*lines, *transpose(between, problem.of(tuple(others)))]


def _seconds(walk: Walk) -> float:
    """The model's time: of the moves, and of the transforms as a quarter of a copy for every doubling of the points."""
    seconds = 0.0
    for before, after, dtype in walk.ends:
        step = one_step(before, after)
        if step is not None and step.kind not in LOCAL:
            seconds += pace(step, dtype.itemsize, DEFAULT).seconds
    for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False):
        points = prod(stage.before.view_shape[m] for action in stage.actions for m in action.modes)
        block_bytes = prod(stage.before.max_local_shape()) * dtype.itemsize
        seconds += block_bytes * log2(max(points, 1)) / 4 * DEFAULT.along(1).copy_time[0]
    return seconds
