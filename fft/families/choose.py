"""The choice of a walk: that of a family, the one that a text describes, or the cheapest of all by the cost model.

A choice is a walk with its price, or the reason why a family has none. No plan is compiled for a price: a move is
priced as one step. "auto" prefers walks in which no rank comes to hold much more than its part of the tensor, then the
cheapest. No function here needs a running rank, so walks can be compared for any number of ranks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import inf, prod

import numpy as np
import numpy.typing as npt

from rote.caches import memoized
from rote.compiler.cost import flow
from rote.compiler.plan import on_machine
from rote.compiler.tasks import Transfer, task_seconds
from rote.errors import GatherWarning, LayoutError, PlanError, counted
from rote.grammar import StageSyntax
from rote.grammar.nodes import BLOCK
from rote.layout.distribution import Distribution, distribute
from rote.layout.expressions import L
from rote.layout.grid import MOST_PROCESSES, Grid, divisors, grid_shape, integer, tensor_shape
from rote.layout.kinds import part_extents
from rote.layout.layout import Layout, as_layout
from rote.lazy import late
from rote.machines.machine import DEFAULT, Machine, as_machine
from rote.prediction import Prediction
from rote.runtime.comm.protocol import Comm
from rote.units import in_bytes, in_seconds

from ..check import build
from ..request import Arguments, TransformRequest, as_arguments, components, planned_request
from ..transforms import COMPLEX
from ..walk import Stage, Transform, Walk
from . import FAMILIES, check_algorithm, is_text, lines_of, read_lines, transposed
from .ragged import ragged
from .shortest import CROWDED, copies, fullness

__all__ = ["NONE", "Choice", "Price", "Prices", "best", "choices", "choices_for", "compare", "compared", "crowded"]
__all__ += ["gathered_bytes", "idle", "preferred", "ranking", "reread", "walk_for", "walk_of", "walks"]
__all__ += ["warn_if_gathered"]

_ALIKE = 1.1  # walks up to this many times as slow as the cheapest count as equally fast
_MANY = 64  # grids: of more, those that cost the same are priced once
_MOST = 8192  # grids: of more, none are compared, for they would take minutes and gigabytes


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a walk by the model.

    Attributes
    ----------
    seconds : float
        The model's time of its moves and transforms, on the slowest rank.
    moves : int
        The number of moves in which ranks communicate.
    received : int
        The most bytes that a rank receives in a move, summed over all moves.
    total : int
        Bytes that all ranks receive.

    Examples
    --------
    >>> import rote
    >>> price = rote.fft.compare((64, 64, 64), ranks=4)[0].price
    >>> price.moves, price.received, price.total
    (1, 786432, 3145728)
    """

    seconds: float
    moves: int
    received: int
    total: int

    @property
    def order(self) -> tuple[float, int]:
        """The sort key of walks: the slowest rank's time, as far as it tells them apart, then the total."""
        return float(f"{self.seconds:.9g}"), self.total


NONE = Price(inf, 0, 0, 0)
"""The price if there is no walk."""


class Prices:
    """The prices of walks on one machine; walks that are compared share moves, and each is priced once."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._known: dict[Transfer, tuple[int, int]] = {}

    def __call__(self, walk: Walk) -> Price:
        seconds, moves, received, total = 0.0, 0, 0, 0

        for task in walk.tasks(compiled=False).every:
            seconds += task_seconds([task], self.machine)
            if isinstance(task, Transfer):
                most, of_all = self._volumes(task)
                moves, received, total = moves + 1, received + most, total + of_all

        return Price(seconds, moves, received, total)

    def _volumes(self, move: Transfer) -> tuple[int, int]:
        """The most bytes that a rank receives in a move, and all ranks together."""
        if move not in self._known:
            elements, ranks = flow(move.step).elements, move.step.ranks.size
            received = int(elements.max())

            # The array broadcasts over the ranks; its sum may pass the largest integer of NumPy.
            exact = object if received * elements.size >= 1 << 63 else None
            total = int(elements.sum(dtype=exact)) * (ranks // elements.size)

            sent = move.step.sent(move.item)
            self._known[move] = received * sent, total * sent
        return self._known[move]


@dataclass(frozen=True, slots=True)
class Choice:
    """A walk that "auto" may take, with its price; or the reason why a family has no walk.

    Attributes
    ----------
    name : str
        The name of its family.
    source : Distribution
        The distribution in which the walk begins.
    price : Price
        Its price by the cost model.
    walk : Walk | None
        The walk; None if there is none, and then `why` gives the reason.

    Examples
    --------
    >>> import rote
    >>> choice = rote.fft.compare((64, 64, 64), ranks=4)[0]
    >>> choice.name, choice.price.moves, str(choice.walk.target.layout)
    ('slab', 1, 'block[(),(0),()]')
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
        """About how many bytes a run takes on a rank (see `Walk.peak_bytes`); 0 without a walk."""
        return 0 if self.walk is None else self.walk.peak_bytes

    @property
    def empty_ranks(self) -> int:
        """The most ranks that hold nothing in a stage, since there are more ranks than points; 0 without a walk."""
        return 0 if self.walk is None else _empty_ranks(self.walk)

    @property
    def note(self) -> str:
        """How many ranks hold nothing in a stage, in words; "" if all hold something in all stages."""
        return f"{self.empty_ranks} of {self.source.grid.size} ranks hold nothing" if self.empty_ranks else ""

    @property
    def prediction(self) -> Prediction | None:
        """The seconds by cause and range, and the memory (see `rote.predict`); None if there is no walk.

        Its seconds are those of the price: each move is one step. A plan with more steps may take less.
        """
        if self.walk is None:
            return None
        tasks = self.walk.tasks(compiled=False)
        return Prediction(replace(tasks, name=f"{self.name} {tasks.name}"), self.walk.machine)

    @property
    def plain(self) -> bool:
        """Whether there is a walk whose input and spectrum both have layouts without a view."""
        return self.walk is not None and self.walk.source.layout.view is None and self.walk.target.layout.view is None

    def _repr_html_(self) -> str:
        return str(late("html.walks:choice_card")(self))

    def __str__(self) -> str:
        if self.walk is None:
            return f"{self.name} on {self.source.grid}: none, for {self.why}"
        received, peak = in_bytes(self.price.received), in_bytes(self.peak_bytes)
        note = f"; {self.note}" if self.note else ""
        return (
            f"{self.name} on {self.source.grid}, from {self.source.layout}: about {in_seconds(self.seconds)}, "
            f"{counted(self.price.moves, 'move')}, {received} received and {peak} of memory by a rank{note}"
        )


def walk_of(
    source: Distribution,
    request: TransformRequest,
    algorithm: str = "auto",
    output: Layout | str | None = None,
    machine: Machine = DEFAULT,
) -> Walk:
    """The walk of an algorithm, a name or the text of a walk, from a tensor's distribution.

    Args:
        request: the transform; its kinds may be left to the text of a walk.
        output: the layout of the spectrum; if None, the one in which the walk ends.

    Raises:
        LayoutError: the algorithm does not take such a tensor; the message names one that does.
    """
    if is_text(algorithm):
        lines = read_lines(algorithm)
        if output is not None:
            lines.append(StageSyntax(as_layout(output)))
        walk = build(source, lines, request)
        _check_kinds(walk, request)
        return walk

    check_algorithm(algorithm, source.layout)
    if algorithm == "auto":
        return best(choices(source, request, output, machine))
    return build(source, lines_of(algorithm, source, request, output), request)


def _check_kinds(walk: Walk, request: TransformRequest) -> None:
    """Refuse a walk, given as text, that does something other than the request."""
    for axis, kind in request.kind.items():
        done = walk.kinds[axis]
        if kind and done != kind and (done or kind not in COMPLEX):
            raise LayoutError(f"the walk does {done or 'nothing'} along axis {axis}, where {kind} is asked for")

        if kind and done and walk.target.shape[axis] != request.given(axis):
            raise LayoutError(
                f"the walk ends with {walk.target.shape[axis]} points along axis {axis}, where {request.given(axis)} "
                "are asked for; write resize in front of the transform, or leave out s"
            )


def choices_for(arguments: Arguments, machine: Machine = DEFAULT) -> tuple[Choice, ...]:
    """The walks of all families in order of preference on a machine; then the families without one, and why."""
    if arguments.layout is None:
        return ranking(arguments, machine)
    return choices(_source(arguments, "auto"), arguments.request, arguments.output, machine)


def walk_for(arguments: Arguments, algorithm: str) -> Walk:
    """The walk of a family or of a text, or the cheapest on the default machine; a LayoutError if it does not fit."""
    if algorithm == "auto":
        return best(choices_for(arguments))
    return walk_of(_source(arguments, algorithm), arguments.request, algorithm, arguments.output)


def reread(arguments: Arguments, text: str, grid: Grid) -> Walk:
    """Read the text of a walk that was chosen earlier for equal arguments; a LayoutError if it does not fit them."""
    walk = walk_of(distribute(read_lines(text)[0].layout, arguments.shape, grid), arguments.request, text)
    if grid.size != arguments.ranks or arguments.grid not in (None, grid):
        raise LayoutError(f"a walk on grid {grid} is not on the grid that is asked for")

    for asked, layout in ((arguments.layout, walk.source.layout), (arguments.output, walk.target.layout)):
        if asked not in (None, layout):
            raise LayoutError(f"the walk is in {layout} where {asked} is asked for")
    return walk


def _source(arguments: Arguments, algorithm: str) -> Distribution:
    """The distribution in which the walk starts: the requested layout, or the one in which the algorithm begins."""
    layout, grid, shape, request = arguments.layout, arguments.grid, arguments.shape, arguments.request
    if layout is None and is_text(algorithm):
        layout = read_lines(algorithm)[0].layout
    if layout is not None:
        if grid is None:
            grid = Grid.of(arguments.ranks, max((*layout.grid_modes, 0)) + 1)
        return distribute(layout, shape, grid)

    check_algorithm(algorithm)
    family = FAMILIES[algorithm]
    if grid is None:
        split = [axis for axis in request.axes if axis != request.real]
        grid = Grid.of(arguments.ranks, family.grid_order or max(len(split), 1))
    return distribute(family.start(shape, grid, request, arguments.output), shape, grid)


@memoized(64, once=True)
def choices(
    source: Distribution, request: TransformRequest, output: Layout | str | None = None, machine: Machine = DEFAULT
) -> tuple[Choice, ...]:
    """The walks of all families from a tensor's distribution, in the order of `preferred`."""
    prices = Prices(machine.on(source.grid.size))
    names = [transposed(len(source.layout.grid_modes)), "cyclic", *["volumetric"] * (source.grid.order > 1)]
    if source.layout.view is not None:
        names.append("rows")

    candidates = [_choice(name, source, request, output, prices) for name in names]
    if not any(map(_spread, candidates)):
        candidates.append(_choice("ragged", source, request, output, prices))
    return preferred(candidates)


@memoized(64, once=True)
def ranking(arguments: Arguments, machine: Machine = DEFAULT, views: bool = True) -> tuple[Choice, ...]:
    """The walks of all families from their own starts, on the grid or on all grids, in the order of `preferred`.

    Without `views` there are none that read modes through a view, which are a last resort.

    >>> import numpy as np
    >>> from ..request import as_request
    >>> wanted = as_request((64, 64, 64), (0, 1, 2), "fft", np.dtype("c16"))
    >>> [choice.name for choice in ranking(Arguments((64, 64, 64), wanted, 4))][:2]
    ['slab', 'rows']
    """
    machine = machine.on(arguments.ranks)
    shape, prices = arguments.shape, Prices(machine)
    grids = _grids(arguments.ranks, shape) if arguments.grid is None else [arguments.grid]
    if machine.network is not None and not machine.network.holds(arguments.ranks):
        grids = grids[:1]  # each says why there is no room

    candidates = list[Choice]()
    many = len(grids) > _MANY and arguments.output is None
    first: dict[object, Grid] = {}  # of grids that differ only in the order of their modes
    for grid in grids:
        names = [transposed(grid.order), "cyclic"]
        if grid.order > 1:
            names.append("volumetric")
        if views:
            names.append("rows")

        for name in names:
            alike = _alike(name, arguments, grid, machine) if many else None
            if alike is None or first.setdefault(alike, grid) == grid:
                candidates.append(_from_start(name, arguments, grid, prices))
            else:
                candidates.append(_without_walk(name, shape, grid, f"it costs as much as on {first[alike]}"))

    # Ragged walks move more and are taken only where all others crowd some ranks.
    if not any(map(_spread, candidates)):
        candidates += [_from_start("ragged", arguments, grid, prices) for grid in grids]
    return preferred(candidates)


def _alike(name: str, arguments: Arguments, grid: Grid, machine: Machine) -> object:
    """What grids have in common on which a family costs the same; None if nothing is known.

    It is the extents and the times of their modes, in any order, if the family treats alike the axes that they split.
    """
    shape, request = arguments.shape, arguments.request
    split = [axis for axis in request.axes if axis != request.real]
    like = {(shape[axis], request.kind[axis]) for axis in split}
    same = request.points == request.kept == tuple([shape[axis] for axis in request.axes])
    if not FAMILIES[name].symmetric or len(like) != 1 or not same:
        return None

    try:
        times = machine.along(grid)
    except PlanError:
        return None
    return name, tuple(sorted(zip(grid.shape, times.latency, times.byte_time, times.copy_time, strict=True)))


def _from_start(name: str, arguments: Arguments, grid: Grid, prices: Prices) -> Choice:
    """The choice of a family from its own start on a grid; only a layout of the user's may split components."""
    shape, request = arguments.shape, arguments.request
    try:
        source = _source(replace(arguments, grid=grid), name)
    except LayoutError as error:
        return _without_walk(name, shape, grid, str(error))

    for axis in components(shape, request) if source.layout.view is None else ():
        if source.splits[axis]:
            why = f"axis {axis} of {shape[axis]} components would be split; give the layout to say so"
            return _without_walk(name, shape, grid, why)

    return _choice(name, source, request, arguments.output, prices)


def _without_walk(name: str, shape: tuple[int, ...], grid: Grid, why: str) -> Choice:
    """A family that has no walk on a grid; its distribution says nothing but the grid."""
    return Choice(name, L(*((),) * len(shape)).on(shape, grid), NONE, None, why)


def _choice(
    name: str,
    source: Distribution,
    request: TransformRequest,
    output: Layout | str | None,
    prices: Prices,
) -> Choice:
    try:
        walk = build(source, lines_of(name, source, request, output), request)
        return Choice(name, source, prices(walk), replace(walk, machine=prices.machine))
    except (LayoutError, PlanError) as error:  # PlanError: levels on a machine with times per grid mode
        return Choice(name, source, NONE, None, str(error))


def _grids(ranks: int, shape: tuple[int, ...]) -> list[Grid]:
    """The grids of so many ranks, with up to a mode of two ranks or more per axis; one of replicas without axes.

    Raises:
        PlanError: they are more than can be compared in seconds.
    """
    order = len(shape)
    shapes: list[tuple[int, ...]] = [(ranks,)] if ranks == 1 or order == 0 else []
    shapes += islice(chain.from_iterable(_factored(ranks, number) for number in range(1, order + 1)), _MOST + 1)
    if len(shapes) > _MOST:
        even = [Grid.of(ranks, number) for number in range(1, order + 1)]
        example = next((grid for grid in even if grid.shape[0] <= max(shape)), even[-1])
        raise PlanError(
            f"{ranks} ranks have more than {_MOST} grids of up to {order} modes, which is too many to compare\n"
            f"give a grid, such as {example}, or a number of ranks with fewer divisors"
        )
    return [Grid(shape) for shape in shapes]


def _factored(ranks: int, number: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as a product of so many factors of 2 or more, in ascending order."""
    if number == 1 and ranks > 1:
        yield (ranks,)
    for first in divisors(ranks)[1:-1] if number > 1 else ():
        for others in _factored(ranks // first, number - 1):
            yield (first, *others)


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

    # Sorted stably, so that walks that nothing tells apart stay in the order of their prices.
    near = [choice for choice in field if choice.seconds <= _ALIKE * field[0].seconds]
    near.sort(key=_near_order)

    first = {id(choice) for choice in near}
    return (*near, *(choice for choice in ranked if id(choice) not in first))


def walks(candidates: Sequence[Choice]) -> dict[Walk, Choice]:
    """The distinct walks that "auto" may take, in order; a LayoutError if there is none."""
    distinct: dict[Walk, Choice] = {}
    for choice in _field(candidates):
        if choice.walk is not None:
            distinct.setdefault(choice.walk, choice)

    if not distinct:
        raise LayoutError(candidates[0].why)
    return distinct


def best(candidates: Sequence[Choice]) -> Walk:
    """The walk that "auto" takes from sorted candidates; a LayoutError if there is none."""
    return next(iter(walks(candidates)))


def _near_order(choice: Choice) -> tuple[bool, int, int, bool, tuple[float, int]]:
    """The sort key among walks that are about equally fast."""
    assert choice.walk is not None
    ends = choice.walk.source, choice.walk.target
    before, after = ({split.kind.name for split in chain(*end.splits) if split.parts > 1} for end in ends)
    blocks = before | after <= {BLOCK.name}
    return before != after, choice.price.moves, len(choice.walk.stages), not blocks, choice.price.order


def compared(candidates: Sequence[Choice], walk: Walk) -> list[str]:
    """Explain a choice: the time of each family's best walk, or why it has none; the chosen family comes first.

    Args:
        candidates: choices in the order of `preferred`, as the walk's machine ranked them.
        walk: the chosen walk.
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
        if choice.note:
            more += f"; {choice.note}"

        if not lines:
            more = f" {on_machine(walk.machine)}{more}"
        lines.append(f"  {name} on {choice.source.grid}: about {in_seconds(choice.seconds)}{more}")
    return lines


def compare(
    shape: Sequence[int] | int,
    ranks: int | None = None,
    layout: Layout | str | None = None,
    grid: Grid | Sequence[int] | int | None = None,
    dtype: npt.DTypeLike = "c16",
    axes: Sequence[int] | int | None = None,
    output: Layout | str | None = None,
    kinds: Mapping[int, str] | str | None = None,
    s: Sequence[int] | int | None = None,
    resample: Sequence[int] | int | None = None,
    machine: Machine | str | None = None,
    nodes: int | None = None,
) -> tuple[Choice, ...]:
    """Compare the walks of all families of FFTs on any number of ranks, which need not exist.

    If neither layout nor grid is given, all grids of so many ranks are compared, which takes seconds for tens of
    thousands of ranks. More than 8192 grids are refused: then give one.

    Parameters
    ----------
    shape : Sequence[int] | int
        The shape of the whole tensor.
    ranks : int, optional
        The number of ranks. Give either it or `nodes`.
    layout : Layout | str, optional
        As for `FFT`.
    grid : Grid | Sequence[int] | int, optional
        As for `FFT`.
    dtype : DTypeLike, default 'c16'
        As for `FFT`.
    axes : Sequence[int] | int, optional
        As for `FFT`.
    output : Layout | str, optional
        As for `FFT`.
    kinds : Mapping[int, str] | str, optional
        As for `FFT`.
    s : Sequence[int] | int, optional
        As for `FFT`.
    resample : Sequence[int] | int, optional
        As for `FFT`.
    machine : Machine | str, optional
        The machine whose times price the walks, and for which their moves are compiled; the default one if None.
    nodes : int, optional
        The number of nodes of a machine with a profile, each with its ranks.

    Returns
    -------
    tuple[Choice, ...]
        One `Choice` per family and grid; the first is the one that "auto" takes. Its attributes are `name`, `source`
        (the distribution in which it begins), `price` (`seconds`, `moves`, `received` and `total` bytes), `peak_bytes`
        (approximate memory on a rank), `empty_ranks` (the most that hold nothing in a stage) and `walk`, whose `moves`
        are the plans and whose `plot()` draws it. If a family has no walk, `walk` is None and `why` gives the reason;
        these come last.

    Raises
    ------
    LayoutError
        Shape, ranks, layout, grid, axes and kinds do not fit together.
    PlanError
        There are too many grids.

    See Also
    --------
    rote.fft.scaling : Compare numbers of ranks.
    rote.fft.job : Choose ranks and threads for some nodes.

    Examples
    --------
    >>> import rote
    >>> for choice in rote.fft.compare((64, 64, 64), ranks=4)[:3]:
    ...     print(choice.name, choice.source.grid, choice.price.moves, choice.price.received)
    slab 4 1 786432
    rows 4 1 786432
    pencil 2x2 2 1048576
    """
    times = as_machine(machine)
    if (ranks is None) == (nodes is None) or (ranks is None and times.network is None):
        raise LayoutError(
            "FFTs are compared for ranks, or for nodes of a machine with a profile; give ranks=… or nodes=…"
        )

    if nodes is not None and times.network is not None:
        ranks = integer(nodes, "the number of nodes") * times.network.ranks_per_node
    extents, size = tensor_shape(shape), integer(ranks or 0, "the number of ranks")
    if not 1 <= size <= MOST_PROCESSES:
        hint = "\ngive each rank several threads, or compare fewer ranks" * (size > MOST_PROCESSES)
        raise LayoutError(f"FFTs are compared on 1 to {MOST_PROCESSES} ranks, not {size}{hint}")

    on = None if grid is None else Grid(grid_shape(grid, size))
    if on is not None and on.size != size:
        raise LayoutError(f"grid {on} has {on.size} ranks, not {size}\nwrite ranks={on.size}, or -1 in the grid")

    request = planned_request(extents, dtype, axes, kinds, False, s, resample)
    arguments = as_arguments(extents, request, size, layout, on, output)
    return choices_for(arguments, times)


def crowded(walk: Walk) -> bool:
    """Whether a walk gathers a split axis on every rank, or fills some rank to more than twice what it has at first."""
    before = max(fullness(walk.source), 1.0)
    fullest = max((fullness(stage.before) for stage in walk.stages if _transforms(stage)), default=0.0)
    return fullest > CROWDED * before or gathered_bytes(walk) > 0


def idle(walk: Walk) -> bool:
    """Whether some ranks have nothing to do in a stage, since there are fewer points along a mode than ranks."""
    return _empty_ranks(walk) > 0


def _empty_ranks(walk: Walk) -> int:
    """The most ranks that hold nothing in a stage."""
    most = 0
    for dist in (stage.before for stage in walk.stages):
        holding = dist.grid.size
        for splits, extent in zip(dist.splits, dist.view_shape, strict=True):
            extents = part_extents(splits, extent)
            holding = holding * int(np.count_nonzero(extents)) // extents.size

        most = max(most, dist.grid.size - holding)
    return most


def gathered_bytes(walk: Walk) -> int:
    """The most bytes per rank while an axis is whole on every rank that had a part of it; 0 if none ever is."""
    before, block, most = copies(walk.source), prod(walk.source.max_local_shape()), 0

    for stage, dtype in zip(walk.stages, walk.dtypes(), strict=False):
        larger = prod(stage.before.max_local_shape())
        if larger > block and _transforms(stage) and copies(stage.before) > before:
            most = max(most, larger * dtype.itemsize)

    return most


def warn_if_gathered(walk: Walk, request: TransformRequest, comm: Comm, depth: int) -> None:
    """Warn on rank 0 if a walk gathers, and say how to avoid it; `depth` counts the calls from the user's to this."""
    nbytes = gathered_bytes(walk)
    if not nbytes or comm.rank:
        return

    block = prod(walk.source.max_local_shape()) * walk.dtype.itemsize
    warnings.warn(
        f"each of {counted(comm.size, 'rank')} comes to hold {in_bytes(nbytes)} of {walk.source}, a whole axis of "
        f"it, in place of its {in_bytes(block)}; {_advice(walk.source, request)}",
        GatherWarning,
        stacklevel=depth + 2,
    )


def _advice(source: Distribution, request: TransformRequest) -> str:
    try:
        ragged(source, request)
    except LayoutError as error:
        whole = [a for a in range(len(source.shape)) if a not in request.axes]
        another = f"with axis {whole[0]} over the ranks" if whole else "as a part of a tensor of more axes"
        return f"{error}; on 1 rank, or {another}, nothing is gathered"
    return 'algorithm="ragged", or "auto", gathers nothing, for any number of points and of ranks'


def _transforms(stage: Stage) -> bool:
    return any(isinstance(action, Transform) for action in stage.done)
