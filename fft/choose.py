"""Which walk: that of a family, of a text, or the cheapest by the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log2, prod

from rote.compiler.cost import pace
from rote.compiler.explain import in_seconds
from rote.compiler.machine import DEFAULT, Machine
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.errors import LayoutError
from rote.layout.distribution import Distribution
from rote.layout.grid import Grid
from rote.layout.layout import L, Layout, as_layout

from .build import Line, build
from .families import SPLITS, check_algorithm, lines_of, read_lines, start
from .gathered import crowded
from .problem import Problem
from .walk import Walk

__all__ = ["Choice", "best", "choices", "compared", "farther", "ranking", "walk_of", "walks"]


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
    problem: Problem,
    algorithm: str = "auto",
    output: Layout | str | None = None,
    machine: Machine = DEFAULT,
) -> Walk:
    """The walk of an algorithm from where a tensor lies.

    Args:
        source: where the tensor lies.
        problem: what is to be transformed; the text of a walk may say its kinds.
        algorithm: one of `algorithms`, or the text of a walk.
        output: the layout to end in; where the walk ends if None.
        machine: on which "auto" takes the cheapest.

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
        return best(choices(source, problem, output, machine))
    plain = source.layout.view is None
    if algorithm in ("volumetric", "cyclic") and plain and not any(source.splits[a] for a in problem.axes):
        algorithm = "transpose"  # nothing is split, so nothing moves in any family
    return build(source, lines_of(algorithm, source, problem, output), problem)


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


def choices(
    source: Distribution, problem: Problem, output: Layout | str | None = None, machine: Machine = DEFAULT
) -> tuple[Choice, ...]:
    """The walks of all families from where a tensor lies, the cheapest first; then the families without, and why."""
    found = [
        _choice(name, source, problem, output, machine)
        for name in ("transpose", "cyclic", "volumetric", "rows")
        if {"volumetric": source.grid.order > 1, "rows": source.layout.view is not None}.get(name, True)
    ]
    if not any(map(_spread, found)):
        found.append(_choice("ragged", source, problem, output, machine))
    return _ordered(found)


@lru_cache(maxsize=64)
def ranking(
    shape: tuple[int, ...],
    ranks: int,
    problem: Problem,
    grid: Grid | None = None,
    output: Layout | str | None = None,
    machine: Machine = DEFAULT,
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
                found.append(_choice(name, source, problem, output, machine))
    if not any(map(_spread, found)):
        for on in [grid] if grid is not None else _grids(ranks, len(shape)):
            try:
                source = start("ragged", len(shape), on, problem).on(shape, on)
            except LayoutError as error:
                found.append(Choice("ragged", L(*((),) * len(shape)).on(shape, on), inf, None, str(error)))
            else:
                found.append(_choice("ragged", source, problem, output, machine))
    return _ordered(found)


def _spread(choice: Choice) -> bool:
    """Whether there is a walk on which every rank holds its part, and not much more."""
    return choice.walk is not None and not crowded(choice.walk)


def _ordered(found: list[Choice]) -> tuple[Choice, ...]:
    """The choices by their time; behind those that keep a tensor spread over its ranks those that do not."""
    return tuple(sorted(found, key=lambda choice: (choice.walk is None, not _spread(choice), choice.seconds)))


def walks(found: Sequence[Choice]) -> dict[Walk, Choice]:
    """The different walks that may be taken, in order: those that read the tensor as it is, unless all do otherwise.

    Of these, those on which no rank holds much more than its part of the tensor, unless all do.

    Raises:
        LayoutError: there is no walk.
    """
    every: dict[Walk, Choice] = {}
    for choice in found:
        if choice.walk is not None:
            every.setdefault(choice.walk, choice)
    if not every:
        raise LayoutError(found[0].why)
    plain = {w: choice for w, choice in every.items() if w.source.layout.view is None and w.target.layout.view is None}
    spread = {w: choice for w, choice in (plain or every).items() if not crowded(w)}
    return spread or plain or every


def best(found: Sequence[Choice]) -> Walk:
    """The cheapest walk that may be taken.

    Raises:
        LayoutError: there is no walk.
    """
    return next(iter(walks(found)))


def farther(choice: Choice, problem: Problem, output: Layout | str | None, machine: Machine) -> Choice:
    """The same family from the same source, its entries moved to the farthest mode that will do, not the nearest."""
    return _choice(choice.name, choice.source, problem, output, machine, far=True)


def compared(found: Sequence[Choice], walk: Walk) -> list[str]:
    """Why a walk was chosen: what the cheapest of each family would take, or why a family has none."""
    named: dict[str, Choice] = {}
    for choice in found:
        named.setdefault(choice.name, choice)
    taken = next((choice.seconds for choice in found if choice.walk == walk), 0.0)
    lines = []
    for name, choice in named.items():
        if choice.walk is None:
            lines.append(f"  {name} has no walk: {choice.why}")
            continue
        times = "" if choice.walk == walk or not taken else f", {choice.seconds / taken:.2f} times as long"
        held = "" if choice.walk == walk or _spread(choice) else ", but ranks come to hold more than their parts"
        lines.append(f"  {name} on {choice.source.grid}: about {in_seconds(choice.seconds)}{times}{held}")
    return lines


def _choice(
    name: str,
    source: Distribution,
    problem: Problem,
    output: Layout | str | None,
    machine: Machine,
    far: bool = False,
) -> Choice:
    try:
        walk = build(source, lines_of(name, source, problem, output, far), problem)
    except LayoutError as error:
        return Choice(name, source, inf, None, str(error))
    return Choice(name, source, _seconds(walk, machine), walk)


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


def _seconds(walk: Walk, machine: Machine) -> float:
    """The model's time: of the moves, and of the transforms as a quarter of a copy for every doubling of the points."""
    seconds, copy_time = 0.0, max(machine.along(walk.source.grid.order).copy_time)
    for before, after, dtype in walk.ends:
        step = one_step(before, after)
        if step is not None and step.kind not in LOCAL:
            seconds += pace(step, dtype.itemsize, machine).seconds
    for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False):
        points = prod(stage.before.view_shape[m] for action in stage.actions for m in action.modes)
        block_bytes = prod(stage.before.max_local_shape()) * dtype.itemsize
        seconds += block_bytes * log2(max(points, 1)) / 4 * copy_time
    return seconds
