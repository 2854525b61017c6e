"""Contractions run on ranks: what a rank computes with its blocks, and the moves that it asks for between.

A walk is all that one rank does. It leaves the moves to its caller, who makes them with the other ranks: here over a
communicator, in `rote.simulate` between lists of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...caches import memoized
from ...compiler.plan import Plan
from ...errors import LayoutError, counted
from ...layout.distribution import Distribution, distribute
from ...layout.grid import Grid, check_grid, integers
from ...layout.indexset import Ints
from ...layout.layout import Layout, as_layout
from ...machines.machine import DEFAULT
from ...runtime.comm.agreement import CHECKS, agree, collective_errors
from ...runtime.comm.cache import cached
from ...runtime.comm.protocol import BoundToRun, Comm
from ...runtime.placement import check_blocks
from ...runtime.plans import bind
from ...simulate import run as simulate
from ..distributed import Array, Distributed, changed, check_out, comm_of
from ..moves import Implicit, agree_on_call, attribution, record_move, records_open, refuse_copies
from .diagonals import diagonal
from .local import add_product, multiply, squeezed
from .operands import common_operands, largest_grid, lettered
from .plan import Contraction, contraction_of, way_of
from .stages import Move, Product, uses
from .subscripts import Subscripts, spanning
from .tree import Request

__all__ = ["BoundContraction", "BoundTensors", "bind_contraction", "bound_to", "contract"]
__all__ += ["planned", "simulated", "walk_of"]

_CACHE_SIZE = 64  # contractions that one communicator keeps

Path = tuple[tuple[int, ...], ...]
Placed = Sequence[tuple[Distribution, np.dtype[Any]]]

T = TypeVar("T")
Blocks = list[Any]
Pending = tuple[T, Blocks]
Fixed = dict[int, Any]
Call = Callable[[Blocks], Iterable[Pending[T]]]
"""Appends the block that a stage makes. What it yields are moves that it asks for; see `walk_of`."""


def contract(
    operands: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    result: Sequence[Any],
    cause: str,
    layout: Layout | str | None = None,
    grid: Grid | None = None,
    max_bytes: int | None = None,
    path: Path | None = None,
    plan: Contraction | None = None,
) -> Any:
    """Sum the products of operands over all labels that the result lacks. Collective.

    Args:
        operands: at least one tensor, and arrays that are the same on all ranks.
        terms: per operand, a label for each mode. Modes of one label have equal extents, or one element.
        result: the labels of the result's modes, each once.
        cause: the function that contracts.
        layout: the layout of the result; None follows the operands, and is never partial; "cheapest" costs least.
        grid: the grid of the products and of the layout; that of the largest operand if None.
        max_bytes, path: see `Request`.
        plan: the contraction of operands that lie as it says; None to plan it.
    """
    tensors, subscripts = common_operands(operands), _letters(tuple(terms), result)
    comm = tensors[0].comm
    if grid is not None:
        check_grid(grid, comm.size)
    placed = [(x.distribution, x.local.dtype) for x in tensors]

    def make() -> tuple[BoundContraction, list[_Move]]:
        contraction = plan or planned(subscripts, placed, cause, layout, grid, max_bytes, path)
        explicit = layout is not None or grid is not None or plan is not None
        moves = _moves(contraction, explicit)
        if moves:  # before any rank refuses the plan, all must have made this call
            agree_on_call(comm)

        if plan is not None:
            # Other letters are the same contraction, so both are compared in letters by their order.
            of_plan, of_call = [lettered(*text.terms, text.result) for text in (plan.subscripts, subscripts)]
            if of_plan != of_call:
                raise LayoutError(
                    f"the plan is for {plan.subscripts}, not for {subscripts}\nplan it by rote.compile_einsum"
                )
            _check_operands(plan, placed)
        return bind_contraction(contraction, comm), moves

    key = (cause, subscripts, layout, grid, max_bytes, path, plan, *placed)
    bound, moves = cached(comm, "calls of contractions", key, make, _CACHE_SIZE)
    if moves:
        agree_on_call(comm)  # the call may be of another function, with arguments of its own
        for move in moves:
            _announce(bound.plan, move, tensors, cause)
    return tensors[0]._on(bound([x.local for x in tensors]), bound.plan.result)


def planned(
    subscripts: Subscripts,
    placed: Placed,
    cause: str,
    layout: Layout | str | None = None,
    grid: Grid | None = None,
    max_bytes: int | None = None,
    path: Path | None = None,
) -> Contraction:
    """The contraction that `contract` runs, of operands with these distributions and dtypes."""
    dists, dtypes = zip(*placed, strict=True)
    shapes = tuple([dist.shape for dist in dists])
    extents, on = subscripts.extents(shapes, cause), largest_grid(dists) if grid is None else grid

    target, cheapest = None, layout == "cheapest"
    if layout is not None and not cheapest:
        target = distribute(as_layout(layout), tuple([extents[letter] for letter in subscripts.result]), on)

    plan = contraction_of(Request(subscripts, shapes, dtypes, dists, on, target, cheapest, max_bytes, DEFAULT, path))
    if CHECKS:
        plan.verify()
    return plan


@memoized(256)
def _letters(terms: tuple[Sequence[Any], ...], result: Sequence[Any]) -> Subscripts:
    """The letters of text, or of labels of any kind."""
    *letters, output = map(str, (*terms, result)) if isinstance(result, str) else lettered(*terms, result)
    return Subscripts(tuple(letters), output)


def _check_operands(plan: Contraction, placed: Placed) -> None:
    """Refuse operands that lie otherwise than a plan says."""
    for (name, (dist, dtype)), (actual, actual_dtype) in zip(plan.ends().items(), placed, strict=False):
        if actual.meaning != dist.meaning or actual_dtype != dtype:
            raise LayoutError(
                f"operand {name} is {actual} {actual_dtype}, but the plan takes {dist} {dtype}\n"
                "write x.redistribute(…) first, or plan for what it is by rote.compile_einsum"
            )


# --- moves ------------------------------------------------------------------------------------------------------------


class _Move(NamedTuple):
    """The move of one tensor in a contraction.

    Attributes:
        stage: the number of the stage.
        value: the number of the tensor.
        target: where an operand moves as a whole; None for panels and intermediate tensors.
        text: the way in words.
        nbytes: the most that a rank receives.
        implicit: whether it is an operand or an intermediate tensor, and the call did not ask for it.
    """

    stage: int
    value: int
    target: Distribution | None
    text: str
    nbytes: int
    implicit: bool


def _moves(plan: Contraction, explicit: bool) -> list[_Move]:
    """The moves of all stages; those after the last product are the function's own."""
    if 0 in plan.extents.values():  # every sum is empty, and nothing moves
        return []

    # Per tensor its name: that of an operand stays when it moves, and a product is named by its stage.
    names, moves = [*plan.ends()][:-1], list[_Move]()
    last = max([number for number, stage in enumerate(plan.stages, 1) if isinstance(stage, Product)], default=0)
    for number, stage in enumerate(plan.stages, 1):
        panels = ""
        if isinstance(stage, Move):
            names.append(names[stage.value])
        else:
            names.append(f"product {number} ({','.join(stage.terms)}->{stage.term})")
            panels = f" in {stage.panels}" if stage.panels else ""

        for value, plans in plan.moves(number):
            whole = isinstance(stage, Move) and value < len(plan.operands)
            text = f"{names[value]}{panels}: {way_of(plans[0])}"
            nbytes = sum([move.cost.bytes for move in plans])
            target = plans[0].target if whole else None
            moves.append(_Move(number, value, target, text, nbytes, number <= last and not explicit))
    return moves


def _announce(plan: Contraction, move: _Move, tensors: Sequence[Distributed], cause: str) -> None:
    """Record a move, and warn of it or refuse it if it is implicit."""
    _, value, target, text, nbytes, implicit = move
    work = attribution.get()
    if not implicit or work.of_result:
        record_move(tensors[0], nbytes, text.__str__, cause)
        return
    gathered = 0 if target is None else refuse_copies(tensors[value], target.layout, target.grid, cause)

    def hint() -> str:
        """What to write instead: the whole plan, and the move of the operand."""
        ask = "ask for it by layout=, grid= or plan="
        if target is None:
            return f"{plan}\n{ask}"
        there = "" if target.grid == plan.operands[value].grid else f", grid={target.grid.shape}"
        it = "it" if len(plan.operands) == 1 else f"operand {value + 1}"
        return f"{plan}\nmove {it} by x.redistribute({str(target.layout)!r}{there}) first, {ask}"

    record_move(tensors[0], nbytes, text.__str__, cause, Implicit(work.name or cause, gathered, hint))


# --- walks ------------------------------------------------------------------------------------------------------------


def walk_of(plan: Contraction, rank: int, prepared: Callable[[Plan], T]) -> Callable[..., Iterator[Pending[T]]]:
    """The walk of a rank: what it computes, and the moves that it asks for.

    Args:
        prepared: takes the plan of each move, in the order of the stages, to what stands for it in the walk.

    Returns:
        A function of a list of the rank's blocks of the operands. It appends the block of each stage, the result last,
        and drops those that no later stage takes. Of each pair that it yields, the last block of the list is to be
        moved in place, by the plan that the first one stands for. With a dictionary of blocks that stay the same in
        later walks, it fills in those that are None, and takes the others as they are.
    """
    calls, count = list[tuple[Call[T], list[int]]](), len(plan.operands)
    shape, dtype = plan.result.local_shape(rank), plan.dtype

    if 0 in plan.extents.values():  # every sum is empty
        calls.append((_making(lambda _: np.zeros(shape, dtype)), []))
    else:
        for stage in plan.stages:
            if isinstance(stage, Move):
                call = _moving(stage.value, prepared(stage.plan))
            else:
                call = _multiplying(plan, stage, rank, prepared)
            calls.append((call, [value for value in uses(stage) if value >= count]))  # each tensor is taken once

    def steps(values: Blocks, fixed: Fixed | None = None) -> Iterator[Pending[T]]:
        fixed = {} if fixed is None else fixed
        for number, (call, used) in enumerate(calls, count):
            if fixed.get(number) is not None:
                values.append(fixed[number])
            else:
                yield from call(values)
            if number in fixed:
                fixed[number] = values[-1]

            for value in used:  # its memory is free before the next stage makes anything
                values[value] = None

    return steps


def simulated(plan: Contraction, blocks: Sequence[Sequence[Array]]) -> list[Array]:
    """The blocks of the result, in rank order, from a list of the blocks of all ranks for each operand.

    The walks of all ranks go side by side in this process. They ask for the same moves at the same time.
    """
    if len(blocks) != len(plan.operands):
        raise LayoutError(f"{plan.subscripts} has {counted(len(plan.operands), 'operand')}, not {len(blocks)}")

    operands = [[*map(np.asarray, operand)] for operand in blocks]
    for operand, dist, dtype in zip(operands, plan.operands, plan.dtypes, strict=True):
        check_blocks(operand, dist)
        for block in operand:
            if block.dtype != dtype:
                raise LayoutError(f"the plan is for blocks of {dtype}, not of {block.dtype}")

    # Each walk yields its list of blocks, with the one to move last; all stop at the same move.
    ranks = [[*values] for values in zip(*operands, strict=True)]
    walks = [walk_of(plan, rank, lambda move: move)(values) for rank, values in enumerate(ranks)]
    for moves in zip(*walks, strict=True):
        (move, *_), lists = zip(*moves, strict=True)
        moved = simulate(move, [values.pop() for values in lists])
        for values, block in zip(lists, moved, strict=True):
            values.append(block)

    return [np.array(values[-1], order="C") for values in ranks]


def _moving(value: int, move: T) -> Call[T]:
    def run(values: Blocks) -> Iterable[Pending[T]]:
        values.append(values[value])
        return ((move, values),)

    return run


def _multiplying(plan: Contraction, stage: Product, rank: int, prepared: Callable[[Plan], T]) -> Call[T]:
    """The product of tensors without their modes that broadcast, repeated along letters that only these modes have."""
    dists = [plan.values()[value][0] for value in stage.values]
    if stage.is_diagonal:
        (value,), (letters,), (dist,) = stage.values, stage.terms, dists
        return _making(lambda values: diagonal(values[value], dist, rank, letters))

    # Modes of one element that broadcast would be letters of another extent: they are taken out before the product.
    dtype, extents = plan.dtype, plan.extents
    narrow = [spanning(term, dist.shape, extents) for term, dist in zip(stage.terms, dists, strict=True)]
    term = "".join([letter for letter in stage.term if letter in "".join(narrow)])
    new = tuple([mode for mode, letter in enumerate(stage.term) if letter not in term])  # modes of one element

    def narrowed(blocks: Sequence[Array]) -> Sequence[Array]:
        return blocks if narrow == [*stage.terms] else [*map(squeezed, blocks, stage.terms, narrow)]

    def multiplied(blocks: Sequence[Array], shape: tuple[int, ...] | None) -> Array:
        product = multiply(narrowed(blocks), narrow, term, dtype)
        if not new:
            return product
        product = np.expand_dims(product, new)
        return product if shape is None else np.broadcast_to(product, shape)

    def added(blocks: Sequence[Array], total: Array) -> None:
        if new:
            total += multiplied(blocks, None)
        else:
            add_product(total, narrowed(blocks), narrow, term)

    if stage.panels is not None:
        return _in_panels(plan, stage, rank, prepared, multiplied, added)

    shape = stage.result.local_shape(rank)
    return _making(lambda values: multiplied([values[value] for value in stage.values], shape))


def _making(make: Callable[[Blocks], Array]) -> Call[Any]:
    """A stage that moves nothing."""

    def run(values: Blocks) -> Iterable[Pending[Any]]:
        values.append(make(values))
        return ()

    return run


def _in_panels(
    plan: Contraction,
    stage: Product,
    rank: int,
    prepared: Callable[[Plan], T],
    multiplied: Callable[[Sequence[Array], tuple[int, ...] | None], Array],
    added: Callable[[Sequence[Array], Array], None],
) -> Call[T]:
    """A product in panels, one after the other.

    For each panel:

    1. what the rank has of the operands is packed and moved; an operand without the letter is taken as it is;
    2. the blocks are multiplied;
    3. the product moves into the result, or is its part there; or it is added, if the letter is summed.
    """
    panels, dists = stage.panels, plan.values()
    assert panels is not None

    def selections(dist: Distribution, term: str) -> list[Any]:
        """Per panel, the indices that select it from the rank's block."""
        mode = term.index(panels.letter)
        indices = dist.indices(rank)[mode]
        return [(*(slice(None),) * mode, _as_slice(panels.among(indices, n))) for n in range(panels.count)]

    sides: list[tuple[int, list[T], list[Any]]] = []
    for value, term, plans in zip(stage.values, stage.terms, stage.plans, strict=False):
        sides.append((value, [*map(prepared, plans)], selections(dists[value][0], term) if plans else []))

    # One list of plans more than operands is that of the product, whose panels move away before they are in the result.
    leaving = [*chain(*stage.plans[len(sides) :])]
    away, shapes = [*map(prepared, leaving)], [move.source.local_shape(rank) for move in leaving]
    into = selections(stage.result, stage.term) if panels.letter in stage.term else []
    shape, dtype = stage.result.local_shape(rank), plan.dtype

    def run(values: Blocks) -> Iterator[Pending[T]]:
        total, blocks = np.zeros(shape, dtype), Blocks()
        for panel in range(panels.count):
            for value, moves, selected in sides:
                if moves:
                    blocks.append(values[value][selected[panel]])
                    yield moves[panel % len(moves)], blocks  # one move is for all panels
                else:
                    blocks.append(values[value])

            if away:
                blocks[:] = [multiplied(blocks, shapes[panel % len(away)])]
                yield away[panel % len(away)], blocks
                total[into[panel]] = blocks[-1]
            elif into:
                total[into[panel]] = multiplied(blocks, None)
            else:
                added(blocks, total)
            blocks.clear()

        values.append(total)

    return run


def _as_slice(positions: Ints) -> slice | Ints:
    """Positions as a slice, if they are adjacent."""
    if len(positions) and positions[-1] - positions[0] + 1 == len(positions):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


# --- bound to ranks ---------------------------------------------------------------------------------------------------


def bind_contraction(plan: Contraction, comm: Comm) -> BoundContraction:
    """The contraction, bound to a communicator, which keeps the last ones. Collective if it moves anything."""
    return cached(comm, "contractions", plan, lambda: BoundContraction(plan, comm), _CACHE_SIZE)


class BoundContraction:
    """A contraction bound to a communicator: it takes this rank's blocks of the operands to that of the result.

    Attributes:
        agreed: whether ranks have compared a call of `BoundTensors`.
    """

    __slots__ = ("_shares", "_steps", "agreed", "plan")

    def __init__(self, plan: Contraction, comm: Comm) -> None:
        self.plan: Contraction = plan
        self.agreed: bool = False
        self._steps = walk_of(plan, comm.rank, lambda move: bind(move, comm))
        self._shares = all(len(uses(stage)) == 1 for stage in plan.stages[-1:])  # it may be a view of an operand

    def __call__(self, blocks: Sequence[Array], fixed: Fixed | None = None) -> Array:
        values: Blocks = [*blocks]
        for move, moving in self._steps(values, fixed):
            moving.append(move(moving.pop()))

        made: Array = values[-1]
        if self._shares and any(np.may_share_memory(made, block) for block in blocks):
            made = made.copy()
        return np.asarray(made, order="C")


class BoundTensors(BoundToRun):
    """A contraction bound to the memory of its operands and of its result, by `plan.bound`. Calls are collective.

    Attributes:
        fixed: the numbers of the operands that keep their values from the first call on.
    """

    __slots__ = ("_blocks", "_passing", "_run", "fixed", "operands", "plan", "result")

    def __init__(
        self, plan: Contraction, operands: tuple[Distributed, ...], result: Any, fixed: tuple[int, ...] = ()
    ) -> None:
        self.plan: Contraction = plan
        self.operands: tuple[Distributed, ...] = operands
        self.result: Any = result
        self.fixed: tuple[int, ...] = fixed
        self._run = bind_contraction(plan, operands[0].comm)
        self._blocks: Fixed = dict.fromkeys(_made_of(plan, fixed))
        self._passing: list[int] = [number for number in self._blocks if number not in _taken(plan, self._blocks)]

    def __call__(self, *tensors: Any) -> Any:
        """Fill `result` with the contraction of the current values of the operands, and return it.

        Args:
            tensors: other tensors in the place of the operands that are not fixed, in their order; none for those that
                are bound.
        """
        operands = self._with(tensors) if tensors else self.operands
        cause = "a bound contraction"
        if CHECKS or not self._run.agreed:
            if CHECKS or _moves(self.plan, True):  # the first call; one that moves nothing may be made on a rank alone
                ends = self.plan.subscripts, self.plan.operands, self.plan.result, self.fixed
                agree(self.result.comm, cause, ends)
            self._run.agreed = True

        if records_open.get():
            for move in _moves(self.plan, True):
                if self._moves_again(move):
                    record_move(self.result, move.nbytes, move.text.__str__, cause)

        self.result.local[...] = self._run([x.local for x in operands], self._blocks)
        for number in self._passing:  # no later call takes these blocks
            self._blocks[number] = ()
        if self.result._sharing is not None:
            changed(self.result)
        return self.result

    def _moves_again(self, move: _Move) -> bool:
        """Whether a move is of this call, and not of an earlier one whose block is kept."""
        return self._blocks.get(len(self.operands) + move.stage - 1) is None

    def _with(self, tensors: Sequence[Any]) -> list[Distributed]:
        """The operands with tensors in the place of those that are not fixed."""
        changing = [number for number in range(len(self.operands)) if number not in self.fixed]
        _check_tensors(tensors)
        if len(tensors) != len(changing):
            raise LayoutError(f"{counted(len(changing), 'operand')} may change, and {len(tensors)} were given")

        operands = [*self.operands]
        for number, tensor in zip(changing, tensors, strict=True):
            operands[number] = tensor
        comm_of("a bound contraction", (*operands, self.result))
        _check_operands(self.plan, [(x.distribution, x.local.dtype) for x in operands])
        return operands

    def __repr__(self) -> str:
        return f"BoundTensors({self.plan!r})"


def _made_of(plan: Contraction, fixed: Sequence[int]) -> list[int]:
    """The numbers of tensors that stages make of fixed operands only, so that the first call makes them for all.

    A product in panels moves its operands panel by panel in every call, for the whole would take too much memory.
    """
    made, count = {*fixed}, len(plan.operands)
    for number, stage in enumerate(plan.stages, count):
        if made.issuperset(uses(stage)) and (isinstance(stage, Move) or stage.panels is None):
            made.add(number)
    return sorted(number for number in made if number >= count)


def _taken(plan: Contraction, made: Collection[int]) -> set[int]:
    """The numbers of tensors that are the result, or that a stage takes which does not make one of these."""
    count = len(plan.operands)
    taken = {count + len(plan.stages) - 1}
    for number, stage in enumerate(plan.stages, count):
        if number not in made:
            taken.update(uses(stage))
    return taken


def bound_to(plan: Contraction, tensors: Sequence[Any], out: Any, fixed: Sequence[int]) -> BoundTensors:
    """A contraction bound to tensors; see `Contraction.bound`. Collective."""
    _check_tensors(tensors if out is None else (*tensors, out))
    if len(tensors) != len(plan.operands):
        raise LayoutError(f"{plan.subscripts} takes {counted(len(plan.operands), 'operand')}, not {len(tensors)}")
    numbers = tuple(sorted({*integers(fixed, 0)}))
    if numbers and numbers[-1] >= len(plan.operands):
        raise LayoutError(f"fixed={fixed} names operands by number, and {plan.subscripts} has {len(plan.operands)}")

    first = tensors[0]
    comm_of("a bound contraction", (*tensors, out))
    with collective_errors(first.comm):
        _check_operands(plan, [(x.distribution, x.local.dtype) for x in tensors])
        if out is not None:
            if out.distribution.meaning != plan.result.meaning or out.local.dtype != plan.dtype:
                raise LayoutError(
                    f"out is {out.distribution} {out.local.dtype}, but the plan makes {plan.result} {plan.dtype}"
                )
            check_out(out)
            if any(np.may_share_memory(out.local, tensors[number].local) for number in numbers):
                raise LayoutError(
                    "out is an operand that keeps its values\nleave it out of fixed=, or write into another tensor"
                )

    if out is None:
        out = first._on(np.empty(plan.result.local_shape(first.comm.rank), plan.dtype), plan.result)
    return BoundTensors(plan, tuple(tensors), out, numbers)


def _check_tensors(tensors: Sequence[Any]) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Distributed):
            raise TypeError(
                f"a contraction is bound to tensors, not to {type(tensor).__name__}\nwrite plan.bound(A, B)"
            )
