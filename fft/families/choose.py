"""The choice of a walk: the walk of a family, the one that a text describes, or the cheapest by the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from rote.caches import memoized
from rote.compiler.explain import in_bytes, in_seconds, on_machine
from rote.compiler.machine import DEFAULT, Machine
from rote.compiler.movement.volumes import largest_block
from rote.errors import LayoutError, PlanError, counted
from rote.layout.builder import L
from rote.layout.grid import Grid
from rote.layout.layout import Distribution, Layout, as_layout

from ..request.request import TransformRequest, components
from ..transforms import COMPLEX
from ..walk.price import NONE, Price, Prices
from ..walk.typecheck import StageSpec, build
from ..walk.walk import Walk
from .gathered import crowded, gathered_bytes
from .registry import check_algorithm, is_text, lines_of, read_lines, start, transposed

__all__ = ["Choice", "best", "choices", "compared", "farther", "preferred", "ranking", "walk_of", "walks"]

_ALIKE = 1.1  # walks up to this many times as slow as the cheapest count as equally fast


@dataclass(frozen=True, slots=True)
class Choice:
    """A walk that "auto" may take, with its price; or the reason why a family has no walk.

    Attributes:
        name: the name of its family.
        source: the distribution in which the walk begins.
        price: its price by the cost model.
        walk: the walk; None if there is none, and then `why` gives the reason.
    """

    name: str
    source: Distribution
    price: Price
    walk: Walk | None
    why: str = ""

    @property
    def seconds(self) -> float:
        """The model's time on the slowest rank; infinite if there is no walk."""
        return self.price.seconds

    @property
    def peak_bytes(self) -> int:
        """About how many bytes a run takes on a rank: tensor, spectrum, and twice the largest block between stages.

        Elements that a stage makes and cuts off again, as in resampling real numbers, do not count. 0 without a walk.
        """
        if self.walk is None:
            return 0
        blocks = [largest_block(self.source) * self.walk.dtype.itemsize]
        for stage, dtype in zip(self.walk.stages, self.walk.dtypes()[1:], strict=True):
            blocks.append(largest_block(stage.after) * dtype.itemsize)
        return blocks[0] + blocks[-1] + 2 * max(blocks)

    @property
    def plain(self) -> bool:
        """Whether there is a walk whose input and spectrum both have layouts without a view."""
        return self.walk is not None and self.walk.source.layout.view is None and self.walk.target.layout.view is None

    def __str__(self) -> str:
        if self.walk is None:
            return f"{self.name} on {self.source.grid}: none, for {self.why}"
        received, peak = in_bytes(self.price.received), in_bytes(self.peak_bytes)
        return (
            f"{self.name} on {self.source.grid}, from {self.source.layout}: about {in_seconds(self.seconds)}, "
            f"{counted(self.price.moves, 'move')}, {received} received and {peak} of memory by a rank"
        )


def walk_of(
    source: Distribution,
    request: TransformRequest,
    algorithm: str = "auto",
    output: Layout | str | None = None,
    machine: Machine = DEFAULT,
) -> Walk:
    """The walk of an algorithm from a tensor's distribution.

    Args:
        request: the transform; its kinds may be left to the text of a walk.
        algorithm: one of `algorithms`, or the text of a walk.
        output: the layout of the spectrum; if None, the one in which the walk ends.

    Raises:
        LayoutError: the algorithm does not take such a tensor; the message names one that does.
    """
    if is_text(algorithm):
        lines = read_lines(algorithm)
        if output is not None:
            lines.append(StageSpec(as_layout(output)))
        walk = build(source, lines, request)
        _check_said(walk, request)
        return walk
    check_algorithm(algorithm, source.layout)
    if algorithm == "auto":
        return best(choices(source, request, output, machine))
    plain = source.layout.view is None
    if algorithm in ("volumetric", "cyclic") and plain and not any(source.splits[a] for a in request.axes):
        algorithm = "slab"  # nothing is split, so nothing moves in any family
    return build(source, lines_of(algorithm, source, request, output), request)


def _check_said(walk: Walk, request: TransformRequest) -> None:
    """Refuse a walk, given as text, that does something other than the request."""
    for axis, wanted in request.kind.items():
        done = walk.kinds[axis]
        if wanted and done != wanted and (done or wanted not in COMPLEX):
            raise LayoutError(f"the walk does {done or 'nothing'} along axis {axis}, where {wanted} is asked for")
        if wanted and done and walk.target.shape[axis] != request.given(axis):
            raise LayoutError(
                f"the walk ends with {walk.target.shape[axis]} points along axis {axis}, where {request.given(axis)} "
                "are asked for; write resize in front of the transform, or leave out s"
            )


@memoized(64, once=True)
def choices(
    source: Distribution, request: TransformRequest, output: Layout | str | None = None, machine: Machine = DEFAULT
) -> tuple[Choice, ...]:
    """The walks of all families from a tensor's distribution, in the order of `preferred`."""
    prices = Prices(machine)
    names = [transposed(len(source.layout.grid_modes)), "cyclic", *["volumetric"] * (source.grid.order > 1)]
    if source.layout.view is not None:
        names.append("rows")
    candidates = [_choice(name, source, request, output, prices) for name in names]
    if not any(map(_spread, candidates)):
        candidates.append(_choice("ragged", source, request, output, prices))
    return preferred(candidates)


@memoized(64, once=True)
def ranking(
    shape: tuple[int, ...],
    ranks: int,
    request: TransformRequest,
    grid: Grid | None = None,
    output: Layout | str | None = None,
    machine: Machine = DEFAULT,
) -> tuple[Choice, ...]:
    """The walks of all families on one grid, or on all grids of so many ranks, in the order of `preferred`.

    >>> import numpy as np
    >>> from ..request.request import as_request
    >>> wanted = as_request((64, 64, 64), (0, 1, 2), "fft", np.dtype("c16"))
    >>> [choice.name for choice in ranking((64, 64, 64), 4, wanted)][:2]
    ['slab', 'cyclic']
    """
    candidates: list[Choice] = []
    prices = Prices(machine)
    grids = _grids(ranks, len(shape)) if grid is None else [grid]
    for on in grids:
        for name in (transposed(on.order), "cyclic", *["volumetric"] * (on.order > 1), "rows"):
            candidates.append(_from_start(name, shape, on, request, output, prices))
    if not any(map(_spread, candidates)):
        candidates += [_from_start("ragged", shape, on, request, output, prices) for on in grids]
    return preferred(candidates)


def _spread(choice: Choice) -> bool:
    """Whether there is a walk in which no rank holds much more than its part of the tensor."""
    return choice.walk is not None and not crowded(choice.walk)


def _field(candidates: Sequence[Choice]) -> list[Choice]:
    """The choices that may be taken, in order: those whose ends have no view, unless all have one.

    Of these only the choices that spread the tensor; if none does, those that gather nothing; if all gather, all.
    """
    field = [choice for choice in candidates if choice.plain] or [choice for choice in candidates if choice.walk]
    spread = [choice for choice in field if _spread(choice)]
    return spread or [choice for choice in field if choice.walk and not gathered_bytes(choice.walk)] or field


def preferred(candidates: Sequence[Choice]) -> tuple[Choice, ...]:
    """Sort choices by the preference of "auto", which takes the first.

    The estimates cannot distinguish walks within 10 % of the cheapest. Among these, a walk comes first if its spectrum
    is split by the same kinds as the tensor (block or cyclic); then fewer moves, fewer stages and block layouts decide.
    The rest are sorted by time, and choices without a walk come last. Walks that read modes through a view are a last
    resort; so are walks in which ranks hold much more than their parts, and above all those that gather.
    """
    ranked = sorted(candidates, key=lambda choice: choice.price.order)
    field = _field(ranked)
    near = [choice for choice in field if choice.seconds <= _ALIKE * field[0].seconds]
    near.sort(key=_virtues)
    first = {id(choice) for choice in near}
    return (*near, *(choice for choice in ranked if id(choice) not in first))


def walks(candidates: Sequence[Choice]) -> dict[Walk, Choice]:
    """The distinct walks that "auto" may take, in order.

    Raises:
        LayoutError: there is no walk.
    """
    every: dict[Walk, Choice] = {}
    for choice in _field(candidates):
        if choice.walk is not None:
            every.setdefault(choice.walk, choice)
    if not every:
        raise LayoutError(candidates[0].why)
    return every


def best(candidates: Sequence[Choice]) -> Walk:
    """The walk that "auto" takes from sorted candidates.

    Raises:
        LayoutError: there is no walk.
    """
    return next(iter(walks(candidates)))


def farther(choice: Choice, request: TransformRequest, output: Layout | str | None, machine: Machine) -> Choice:
    """Another walk of a choice's family from its source, in which entries move to the farthest suitable mode."""
    return _choice(choice.name, choice.source, request, output, Prices(machine), far=True)


def compared(candidates: Sequence[Choice], walk: Walk, machine: Machine) -> list[str]:
    """Explain a choice: the time of each family's best walk, or why it has none; the chosen family comes first.

    Args:
        candidates: choices in the order of `preferred`.
        walk: the chosen walk.
        machine: the machine that ranked the candidates.
    """
    taken = next((choice for choice in candidates if choice.walk == walk), None)
    named: dict[str, Choice] = {}
    for choice in sorted(candidates, key=lambda choice: choice is not taken):
        named.setdefault(choice.name, choice)
    lines = []
    for name, choice in named.items():
        if choice.walk is None:
            lines.append(f"  {name} has no walk: {choice.why}")
            continue
        more = "" if not taken or not taken.seconds else f", {choice.seconds / taken.seconds:.2f} times as long"
        if choice is taken:
            more = ", taken"
        elif not choice.plain:
            more += ", if you ask for its view"
        elif not _spread(choice):
            more += ", but ranks come to hold more than their parts"
        if not lines:
            more = f" {on_machine(machine)}{more}"
        lines.append(f"  {name} on {choice.source.grid}: about {in_seconds(choice.seconds)}{more}")
    return lines


def _virtues(choice: Choice) -> tuple[bool, int, int, bool, tuple[float, int]]:
    """The sort key among walks that are about equally fast."""
    assert choice.walk is not None
    ends = choice.walk.source, choice.walk.target
    before, after = ({split.kind.name for split in chain(*end.splits) if split.parts > 1} for end in ends)
    blocks = before | after <= {"block"}
    return before != after, choice.price.moves, len(choice.walk.stages), not blocks, choice.price.order


def _from_start(
    name: str,
    shape: tuple[int, ...],
    grid: Grid,
    request: TransformRequest,
    output: Layout | str | None,
    prices: Prices,
) -> Choice:
    """The choice of a family from its own start on a grid; only a layout of the user's may split components."""
    try:
        source = start(name, shape, grid, request).on(shape, grid)
    except LayoutError as error:
        why = str(error)
    else:
        plain = source.layout.view is None
        split = [axis for axis in components(shape, request) if plain and source.splits[axis]]
        if not split:
            return _choice(name, source, request, output, prices)
        axis = split[0]
        why = f"axis {axis} of {shape[axis]} components would be split; give the layout to say so"
    return Choice(name, L(*((),) * len(shape)).on(shape, grid), NONE, None, why)


def _choice(
    name: str,
    source: Distribution,
    request: TransformRequest,
    output: Layout | str | None,
    prices: Prices,
    far: bool = False,
) -> Choice:
    try:
        walk = build(source, lines_of(name, source, request, output, far), request)
        return Choice(name, source, prices(walk), replace(walk, machine=prices.machine))
    except (LayoutError, PlanError) as error:  # PlanError: levels on a machine with times per grid mode
        return Choice(name, source, NONE, None, str(error))


def _grids(ranks: int, order: int) -> list[Grid]:
    """The grids of so many ranks, with at most `order` modes of two ranks or more; for order 0, one of replicas."""
    shapes: list[tuple[int, ...]] = [()]
    every: list[tuple[int, ...]] = [(ranks,)] if ranks == 1 or order == 0 else []
    for _ in range(order):
        longer = list[tuple[int, ...]]()
        for shape in shapes:
            left = ranks // prod(shape)
            longer += [(*shape, p) for p in range(2, left + 1) if left % p == 0]
        shapes = longer
        every += [shape for shape in shapes if prod(shape) == ranks]
    return [Grid(shape) for shape in every]
