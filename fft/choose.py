"""Which walk: the families by name, a walk's own text, and the cheapest of them by the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log2, prod
from typing import Any

import numpy as np

from rote.compiler.cost import pace
from rote.compiler.explain import in_seconds
from rote.compiler.machine import DEFAULT
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.errors import LayoutError
from rote.grammar import parse_walk, unparse
from rote.grammar.nodes import CYCLIC
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import Entry, L, Layout, as_layout, block

from .build import Line, build
from .cyclic import cyclic
from .kinds import Kinds, by_axis
from .rows import row_layout, rows
from .transpose import transpose
from .walk import Transform, Walk

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
    source: Distribution,
    axes: tuple[int, ...],
    kind: Kinds,
    dtype: np.dtype[Any],
    length: int = 0,
    algorithm: str = "auto",
    output: Layout | str | None = None,
) -> Walk:
    """The walk of an algorithm from where a tensor lies.

    Args:
        source: where the tensor lies.
        axes: those to transform, in NumPy's order.
        kind: "fft", "ifft", "rfft", "irfft", "dct1" to "dst4", "idct1" to "idst4", or a tuple of one for each axis; ""
            takes what the text of a walk says.
        dtype: of the input.
        length: the extent that "irfft" restores.
        algorithm: one of `algorithms`, or the text of a walk.
        output: the layout to end in; where the walk ends if None.

    Raises:
        LayoutError: the algorithm does not take such a tensor; the text says which would.
    """
    if "[" in algorithm:
        lines = read_lines(algorithm)
        walk = build(source, lines if output is None else [*lines, Line(as_layout(output))], axes, dtype, length)
        for axis, wanted in by_axis(kind, axes).items() if kind else ():
            if walk.kinds[axis] != wanted and (walk.kinds[axis] or wanted not in ("fft", "ifft")):
                done = walk.kinds[axis] or "nothing"
                raise LayoutError(f"the walk does {done} along axis {axis}, where {wanted} is asked for")
        return walk
    check_algorithm(algorithm, source.layout)
    if algorithm == "auto":
        return best(choices(source, axes, kind, dtype, length, output))
    plain = source.layout.view is None
    if algorithm in ("volumetric", "cyclic") and plain and not any(source.splits[a] for a in axes):
        algorithm = "transpose"  # nothing is split, so nothing moves in any family
    return build(source, _lines(algorithm, source, axes, kind, length, output), axes, dtype, length)


def choices(
    source: Distribution,
    axes: tuple[int, ...],
    kind: Kinds,
    dtype: np.dtype[Any],
    length: int = 0,
    output: Layout | str | None = None,
) -> tuple[Choice, ...]:
    """The walks of all families from where a tensor lies, the cheapest first; then the families without, and why."""
    found = [
        _choice(name, source, axes, kind, dtype, length, output)
        for name in ("transpose", "cyclic", "volumetric", "rows")
        if name != "rows" or source.layout.view is not None
    ]
    return tuple(sorted(found, key=lambda choice: choice.seconds))


@lru_cache(maxsize=64)
def ranking(
    shape: tuple[int, ...],
    ranks: int,
    axes: tuple[int, ...],
    kind: Kinds,
    dtype: np.dtype[Any],
    grid: Grid | None = None,
    output: Layout | str | None = None,
) -> tuple[Choice, ...]:
    """The walks of all families on all grids of so many ranks (or on one grid), the cheapest first; then the rest.

    >>> [c.name for c in ranking((64, 64, 64), 4, (0, 1, 2), "fft", np.dtype("c16"))][:2]
    ['slab', 'cyclic']
    """
    found: list[Choice] = []
    for on in [grid] if grid is not None else _grids(ranks, len(shape)):
        for name, layout in _starts(shape, on, axes, kind):
            source = layout.on(shape, on)
            found.append(_choice(name, source, axes, kind, dtype, 0, output))
    if not found:
        raise LayoutError(
            f"a tensor of order {len(shape)} is transformed on a grid of order {max(len(shape), 1)} or less, "
            f"not {grid}; give a layout to say otherwise"
        )
    return tuple(sorted(found, key=lambda choice: choice.seconds))


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
    """Why a walk was chosen: what the cheapest of each family would take, of those families that there are."""
    named: dict[str, Choice] = {}
    for choice in found:
        if choice.walk is not None:
            named.setdefault(choice.name, choice)
    taken = next((choice.seconds for choice in found if choice.walk is walk), 0.0)
    return [
        f"  {choice.name} on {choice.source.grid}: about {in_seconds(choice.seconds)}"
        + ("" if choice.walk is walk else f", {choice.seconds / taken:.2f} times as long")
        for choice in named.values()
        if choice.walk is not None and taken
    ]


def _choice(
    name: str,
    source: Distribution,
    axes: tuple[int, ...],
    kind: Kinds,
    dtype: np.dtype[Any],
    length: int,
    output: Layout | str | None,
) -> Choice:
    try:
        walk = build(source, _lines(name, source, axes, kind, length, output), axes, dtype, length)
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


def _starts(shape: tuple[int, ...], grid: Grid, axes: tuple[int, ...], kind: Kinds) -> Iterator[tuple[str, Layout]]:
    """The layouts in which the families begin on a grid, where nothing is said."""
    order = len(shape)
    if grid.order < max(order, 2):
        name = {count: name for name, count in SPLITS.items()}.get(grid.order, "transpose")
        yield name, L(*(block(m) if m < grid.order else () for m in range(order)))
    split = [a for a in range(order) if a in axes and not (kind == "rfft" and a == axes[-1])][: grid.order]
    if len(split) == grid.order:
        layout = L(*((split.index(a),) if a in split else () for a in range(order)))
        yield "cyclic", layout
        if grid.order > 1:
            yield "volumetric", layout
    if grid.order == 1 and order > 2:
        yield "rows", row_layout(tuple(range(order)))


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
            tuple(Transform(action.name, action.modes) for action in stage.actions),
            None if stage.grid is None else Grid(stage.grid),
        )
        for stage in parse_walk(text).stages
    ]


def check_algorithm(algorithm: str, layout: Layout) -> None:
    """Refuse an algorithm that is unknown, or that does not start from a layout.

    Raises:
        LayoutError: it is, or does.
    """
    if algorithm not in algorithms:
        raise LayoutError(f"algorithm is one of {', '.join(algorithms)}; not {algorithm!r}")
    named = len(layout.grid_modes)
    if algorithm in SPLITS and named != SPLITS[algorithm]:
        raise LayoutError(f"a {algorithm} splits over {SPLITS[algorithm]} grid mode(s), but {layout} names {named}")


def _lines(
    name: str, source: Distribution, axes: tuple[int, ...], kind: Kinds, length: int, output: Layout | str | None
) -> list[Line]:
    if name == "rows":
        lines = rows(source, axes, kind, length)
    elif name in ("volumetric", "cyclic"):
        if not isinstance(kind, str) or "fft" not in kind:
            raise LayoutError(
                f"{name} takes fft and rfft, for no other transform is made of transforms of digits; write slab, "
                "pencil or rows"
            )
        lines = _mixed(source, axes, kind, length, together=name == "cyclic")
    else:
        lines = transpose(source, axes, kind, length)
    return lines if output is None else [*lines, Line(as_layout(output))]


def _mixed(source: Distribution, axes: tuple[int, ...], kind: str, length: int, together: bool) -> list[Line]:
    """Axes that lie cyclically by the volumetric family, those that lie otherwise by transposes.

    Where none lies cyclically, all that are split are laid so first.
    """
    if source.layout.view is not None or source.layout.partial or source.layout.rooted:
        raise LayoutError(f"volumetric walks start from plain layouts, not {source.layout}; redistribute first")
    split = [a for a in axes if source.splits[a]]
    if not split:
        return transpose(source, axes, kind, length)
    others = [a for a in split if any(s.kind != CYCLIC for s in source.splits[a])]
    if len(others) == len(split):
        modes = tuple(
            tuple(Entry(e.grid_mode) for e in mode) if a in split else mode
            for a, mode in enumerate(source.layout.modes)
        )
        start = Layout(modes).on(source.shape, source.grid)
        return [Line(source.layout), *cyclic(start, axes, kind, together)]
    first = cyclic(source, tuple(a for a in axes if a not in others), kind, together)
    if not others:
        return first
    if kind == "irfft":
        raise LayoutError(f"irfft does not mix families; redistribute axes {others} to cyclic, or the others to blocks")
    shape = tuple(n // 2 + 1 if kind == "rfft" and a == axes[-1] else n for a, n in enumerate(source.shape))
    return [
        *first,
        *transpose(source.layout.on(shape, source.grid), tuple(others), kind.replace("rfft", "fft"), length),
    ]


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
