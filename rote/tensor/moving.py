"""Tensors moved to other layouts, one by one or together, and to other sets of ranks.

The compiled plan of a move is bound to the ranks once, and kept by the communicator for the next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic

import numpy as np

from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..errors import LayoutError
from ..functions.distributed import Array, Distributed, T, changed, check_out, comm_of, linked
from ..functions.moves import record_move, records_open
from ..layout.distribution import Distribution, distribute
from ..layout.grid import grid_shape
from ..layout.layout import Layout, as_layout
from ..layout.refine import without_roots
from ..runtime.bundle import BoundPlans
from ..runtime.choose import Tune
from ..runtime.comm import segments
from ..runtime.comm.agreement import CHECKS, agree, collective_errors, floating_errors, floating_errors_raise, gathered
from ..runtime.comm.cache import cached
from ..runtime.comm.protocol import BoundToRun, Comm
from ..runtime.ends import bound_without_overlap, may_overlap, run_without_overlap
from ..runtime.exchange.messages import sub_comm
from ..runtime.placement import GridLike, place, same_everywhere
from ..runtime.plans import BoundPlan, bind
from ..runtime.tuning import tuned

__all__ = ["BoundMove", "bound_move", "from_roots", "grid_comm", "move_into", "on_roots", "program_to", "redistribute"]


_KEPT = 64  # redistributions that one communicator keeps
_KEPT_LISTS = 16  # and redistributions of lists


def program_to(
    name: str,
    x: Distributed,
    layout: Layout | str,
    grid: GridLike,
    method: str,
    tune: Tune,
    wire: str | None,
    into: str,
) -> BoundPlan:
    """The program that moves a tensor's blocks to another layout, for the call of this name. Collective.

    Args:
        into: into what it moves them, in words.
    """
    source, dtype, comm, layout = x._distribution, x._local.dtype, x._comm, as_layout(layout)
    key = (name, source, dtype, layout, method, tune, wire, into)

    def make() -> BoundPlan:
        on = source.grid if grid is None else grid_shape(grid, comm.size)
        plan = compile(source, distribute(layout, source.shape, on), dtype, wire=wire)
        methods = method if method != "auto" or tune == "model" else tuned(plan, comm, tune)
        return bind(plan, comm, methods)

    if grid is not None:
        agree(comm, name, (*key[1:], grid))
        return make()
    return cached(comm, "redistributions", key, make, _KEPT, lambda: (name, key[1:]))


class BoundMove(BoundToRun, Generic[T]):
    """A move from one tensor to another, bound to the memory of both: each call moves the current values.

    `x.move_to(layout)` makes it. A call costs little more than the messages between the ranks. Calls are collective; a
    rank that is alone copies.

    Attributes
    ----------
    source : DistTensor
        The tensor that moves.
    result : DistTensor
        The tensor that each call fills.
    plan : Plan
        The plan that moves the elements.

    Examples
    --------
    >>> from rote import DistTensor
    >>> x = DistTensor.zeros((2, 3), "block[(0),()]")
    >>> move = x.move_to("block[(),(0)]")
    >>> for step in range(3):
    ...     x.local[...] += 1
    ...     y = move()
    >>> y is move.result, float(y.local[0, 0])
    (True, 3.0)
    """

    __slots__ = ("_calls", "_program", "plan", "result", "source")

    plan: Plan
    result: T
    source: T

    def __init__(self, source: T, result: T, program: BoundPlan) -> None:
        self.source, self.result = source, result
        self.plan, self._program = program.plan, program
        overlaps = may_overlap(source.comm, source.local, result.local)
        self._calls = bound_without_overlap(source.comm, program.bound, source.local, result.local, overlaps)

    @property
    def methods(self) -> tuple[str, ...]:
        """The method of `rote.methods` for each step; empty if there was nothing to choose."""
        return self._program.methods

    def __call__(self, x: T | Array | None = None) -> T:
        """Fill `result` with the current values of `source`, or of another tensor if one is given.

        Args:
            x: a tensor of the same distribution and dtype as `source`, or this rank's block of one. Either all ranks
                give it, or none does.

        Returns:
            `result`.

        Raises:
            LayoutError: x has another distribution or dtype than `source`, or another communicator.
        """
        if CHECKS or (self._program.nbytes and (x is None) not in self._program.agreed):
            what = "its source" if x is None else "another tensor"
            agree(self.source.comm, "a move of move_to", (self.plan.source, self.plan.target, self.plan.dtype, what))
            self._program.agreed.add(x is None)

        if records_open.get():
            record_move(self.source, self._program.nbytes, self.plan.__str__, "move_to")

        if x is None:
            _ = self.source._local, self.result._local  # an error if one is an outdated part
            for call in self._calls:
                call()
        else:
            run_without_overlap(self.source.comm, self._program, self._block(x), self.result.local)

        if self.result._sharing is not None:
            changed(self.result)
        return self.result

    def _block(self, x: T | Array) -> Array:
        if isinstance(x, np.ndarray):
            return x
        if not isinstance(x, Distributed):
            raise TypeError(f"a move takes a DistTensor or this rank's block, not {type(x).__name__}")

        if x.comm is not self.source.comm:
            raise LayoutError("the move and the tensor are on different communicators; give both the same comm")
        if (x.distribution, x.local.dtype) != (self.plan.source, self.plan.dtype):
            raise LayoutError(
                f"x is {x.distribution} {x.local.dtype}, but the move takes {self.plan.source} {self.plan.dtype}\n"
                "write x.redistribute(…) first, or x.move_to(…) for a move of its own"
            )
        return x.local

    def __repr__(self) -> str:
        plan = self.plan
        return f"BoundMove({plan.source.shape} {plan.dtype}, {plan.source.layout} -> {plan.target.layout})"


def bound_move(
    x: T, layout: Layout | str, out: T | None, grid: GridLike, method: str, tune: Tune, wire: str | None
) -> BoundMove[T]:
    """The move of a tensor to another layout, bound to the memory of `out` or of a new tensor. Collective."""
    into = "no out" if out is None else "an out"
    program = program_to("move_to", x, layout, grid, method, tune, wire, into)
    target = program.plan.target
    if out is None:
        out = x._on(segments.empty(target.local_shape(x.comm.rank), program.plan.dtype, lasting=True), target)
    with collective_errors(x.comm):
        _check_target(x, out, program.plan)
    return BoundMove(x, out, program)


def move_into(x: Distributed, out: Distributed, program: BoundPlan) -> None:
    """Move a tensor into another; for small ones, the calls are kept for the next time. Collective.

    Raises:
        LayoutError: `out` does not have the program's target distribution and dtype, or is read-only.
    """
    prepared = program.prepared
    if not program.is_small or not prepared.kept:  # on all ranks alike
        with collective_errors(x.comm):
            _check_target(x, out, program.plan)
    if not program.is_small:
        run_without_overlap(x.comm, program, x.local, out.local)
        return

    # Prepared calls are dropped with either of their tensors, so that the ids tell them.
    key = id(x), id(out)
    number, calls = prepared.runs.get(key, (0, []))
    if not number:  # perhaps on this rank alone, so that it asks nobody
        _check_target(x, out, program.plan)

    overlaps = may_overlap(x.comm, x.local, out.local, number)
    if overlaps is not None:
        calls = bound_without_overlap(x.comm, program.bound, x.local, out.local, overlaps)
        # Between threads the comparison was a barrier already, but not for a rank that first copies its block.
        begin = x.comm.share_reference(calls[:1] == [x.comm.barrier])
        if begin is not None and all(begin):
            calls = calls[1:]
        x.comm.cache["prepared"] = last = x.comm.cache.get("prepared", 0) + 1  # no other run has this number
        prepared.keep(key, x, out, (last, calls))

    if program.computes and floating_errors_raise():
        with floating_errors(x.comm, "a move"):
            for call in calls:
                call()
        return
    for call in calls:
        call()


def _check_target(x: Distributed, out: Distributed, plan: Plan) -> None:
    """Refuse an `out` that is no tensor, is on other ranks or not the plan's target and dtype, or is read-only."""
    if not isinstance(out, Distributed):
        raise TypeError(f"out is a DistTensor, not {type(out).__name__}\nwrite out=DistTensor.empty(shape, layout)")
    comm_of("redistribute", (x, out))
    if (out.distribution, out.local.dtype) != (plan.target, plan.dtype):
        raise LayoutError(f"out is {out.distribution} {out.local.dtype}, but {plan.target} {plan.dtype} is asked for")
    check_out(out)


def redistribute(
    tensors: Sequence[T],
    layout: Layout | str | Sequence[Layout | str],
    grid: GridLike = None,
    wire: str | None = None,
) -> list[T]:
    """Move tensors to other layouts together: one message per step goes from a rank to another. Collective.

    A hundred small tensors, of any shapes, dtypes and layouts, cost about as much as one. Each result equals that of
    `x.redistribute(layout)`, bit for bit. Tensors of more than 256 KiB, and those whose elements a collective of MPI
    adds up, are moved separately. The workspace is at most 32 MiB in addition to the tensors.

    Parameters
    ----------
    tensors : Sequence[DistTensor]
        Tensors of one communicator, in the same order on all ranks.
    layout : Layout | str | Sequence[Layout | str]
        One new layout for all tensors, which must have its order; or one for each.
    grid : Grid | Sequence[int] | int, optional
        The grid of the new layouts, over the same ranks, as in `from_global`; if None, each tensor keeps its own.
    wire : str, optional
        "f4" rounds elements to single precision in messages, as in `x.redistribute`; all must be f8 or c16.

    Returns
    -------
    list[DistTensor]
        The new tensors, in the same order.

    Raises
    ------
    LayoutError
        A layout does not fit, there are not as many layouts as tensors, the tensors have several communicators, or
        ranks give them in different orders.
    PlanError, CommError
        As `x.redistribute`; or `wire` is given, and a tensor is not of double precision.
    TypeError
        One of `tensors` is not a tensor.

    See Also
    --------
    rote.DistTensor.redistribute : Move one tensor.

    Examples
    --------
    >>> import numpy as np, rote
    >>> def program(comm):
    ...     weights = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]", comm)
    ...     counts = rote.DistTensor.from_global(np.arange(5), "block[(0)]", comm)
    ...     new = rote.redistribute([weights, counts], ["block[(),(0)]", "[(0)]"])
    ...     return [x.local.tolist() for x in new]
    >>> rote.run(program, ranks=2)[1]
    [[[2.0], [5.0]], [1, 3]]
    """
    if not isinstance(tensors, Sequence):
        raise TypeError("redistribute takes a list of tensors; write x.redistribute(layout) for one")

    if isinstance(layout, Sequence) and not isinstance(layout, str):
        layouts = [*map(as_layout, layout)]
    else:
        layouts = [as_layout(layout)] * len(tensors)
    _check(tensors, layouts)
    if not tensors:
        return []

    comm = tensors[0].comm
    ends = tuple([(x.distribution, x.local.dtype, target) for x, target in zip(tensors, layouts, strict=True)])

    def make() -> BoundPlans:
        plans: list[Plan] = []
        for source, dtype, target in ends:
            on = source.grid if grid is None else grid_shape(grid, comm.size)
            plans.append(compile(source, distribute(target, source.shape, on), dtype, wire=wire))
        return BoundPlans(plans, comm)

    bound = cached(comm, "lists", (ends, wire), make, _KEPT_LISTS) if grid is None else make()

    if CHECKS:
        agree(comm, "redistribute of several tensors", ends)
    if records_open.get():
        for x, plan in zip(tensors, bound.plans, strict=True):
            record_move(x, plan.cost.bytes, plan.__str__)

    blocks = bound([x.local for x in tensors])
    return [tensors[0]._on(block, plan.target) for block, plan in zip(blocks, bound.plans, strict=True)]


def _check(tensors: Sequence[T], layouts: Sequence[Layout]) -> None:
    for number, x in enumerate(tensors):
        if not isinstance(x, Distributed):
            raise TypeError(f"redistribute takes a list of tensors, but the one at {number} is a {type(x).__name__}")
        if x.comm is not tensors[0].comm:
            raise LayoutError(
                f"tensors are redistributed together over one communicator, but the one at {number} has another; "
                "give the same comm to all"
            )
    if len(layouts) != len(tensors):
        raise LayoutError(f"{len(tensors)} tensors want as many layouts, or one for all; not {len(layouts)}")


def grid_comm(x: Distributed, grid_modes: Sequence[int], name: str = "grid_comm") -> Comm:
    """The communicator of the ranks that differ from this one only along some grid modes; of the call of this name."""
    grid = x.distribution.grid
    if any(g not in range(grid.order) for g in grid_modes) or len({*grid_modes}) < len(grid_modes):
        raise LayoutError(f"grid {grid} has the modes {(*range(grid.order),)}, each of them once; not {grid_modes}")
    return sub_comm(x.comm, grid, tuple(sorted(grid_modes)), name)


def on_roots(x: T) -> T | None:
    """The tensor on the communicator of the ranks that hold it; None on all other ranks."""
    dist = x.distribution
    _check_rooted(dist)
    comm = grid_comm(x, _others(dist), "on_roots")
    return linked(x._wrap(x.local, without_roots(dist), comm), x) if dist.holds(x.comm.rank) else None


def from_roots(
    x: Distributed | None, layout: Layout | str, shape: Iterable[int] | int, comm: Comm, grid: GridLike
) -> tuple[Array, Distribution, Comm]:
    """Of a tensor that only some ranks hold: the block of each rank, and the distribution over all of them."""
    with collective_errors(comm):
        dist = place(shape, layout, comm, grid)
        _check_rooted(dist)
        _check_part(x, dist, comm.rank)

    # A rank without a part has an empty block, but of the dtype that the others have.
    dtypes: list[np.dtype[Any] | None] = gathered(comm, "from_roots", None if x is None else x.local.dtype)
    element = next(dtype for dtype in dtypes if dtype is not None)
    block = np.empty(dist.local_shape(comm.rank), element) if x is None else x.local
    same_everywhere(comm, dist, block.dtype)
    return block, dist, comm


def _others(dist: Distribution) -> tuple[int, ...]:
    """The grid modes that are not rooted."""
    rooted = {g for g, _ in dist.layout.rooted}
    return tuple(g for g in range(dist.grid.order) if g not in rooted)


def _check_rooted(dist: Distribution) -> None:
    if not dist.layout.rooted:
        raise LayoutError(
            f"{dist.layout} is not rooted, so all ranks hold a part\n"
            "write a layout such as 'block[(0),()]|(1)', by which only coordinate 0 of grid mode 1 holds data"
        )


def _check_part(x: Distributed | None, dist: Distribution, rank: int) -> None:
    """Refuse a tensor that is not this rank's part of the rooted one, a missing part, and one too many."""
    if not isinstance(x, Distributed | None):
        raise TypeError(f"from_roots takes a DistTensor, or None, not {type(x).__name__}")
    if (x is not None) != dist.holds(rank):
        has, but = ("a part", "none is given") if x is None else ("nothing", "a tensor is given")
        raise LayoutError(f"rank {rank} holds {has} of {dist}, but {but}\nwrite None on the ranks that hold nothing")
    if x is None:
        return

    part = without_roots(dist)
    coordinates = dist.grid.coordinates(rank)
    number = part.grid.rank([coordinates[g] for g in _others(dist)])
    if x.distribution != part or x.comm.rank != number:
        raise LayoutError(
            f"rank {rank} gives {x.distribution} as rank {x.comm.rank} of those that hold it, but {dist} is "
            f"{part} there, as rank {number}"
        )
