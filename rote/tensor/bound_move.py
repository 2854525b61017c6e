"""Redistributions: the program that moves a tensor to another layout, and moves that are called again and again."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from ..compiler.compile import compile
from ..compiler.plan import Plan
from ..errors import LayoutError
from ..functions.distributed import Array, Distributed
from ..functions.moves import announce, implicit_cause, records_open
from ..layout.grid import grid_shape
from ..layout.layout import Distribution, Layout, as_layout, distribute
from ..runtime.comm import segments
from ..runtime.comm.cache import cached
from ..runtime.comm.collective_errors import floating_errors
from ..runtime.comm.protocol import BoundToRun, Comm
from ..runtime.executor.aliasing import bound_apart, may_overlap, meet, run_apart
from ..runtime.placement import GridLike
from ..runtime.program import BoundPlan, bind
from ..runtime.tuning.limits import Tune
from ..runtime.tuning.methods import tuned

__all__ = ["BoundMove", "Movable", "move_into", "program_to"]

_KEPT = 64  # redistributions that one communicator keeps

T = TypeVar("T", bound=Distributed)


def program_to(
    source: Distribution,
    dtype: np.dtype[Any],
    comm: Comm,
    layout: Layout | str,
    grid: GridLike,
    method: str,
    tune: Tune,
    wire: str | None = None,
) -> BoundPlan:
    """The program that takes blocks of a distribution and dtype to those in another layout. Collective."""
    layout = as_layout(layout)

    def make() -> BoundPlan:
        on = source.grid if grid is None else grid_shape(grid, comm.size)
        plan = compile(source, distribute(layout, source.shape, on), dtype, wire=wire)
        methods = method if method != "auto" or tune == "model" else tuned(plan, comm, tune)
        return bind(plan, comm, methods)

    if grid is not None:
        return make()
    return cached(comm, "redistributions", (source, dtype, layout, method, tune, wire), make, _KEPT)


def move_into(x: Distributed, out: Distributed, program: BoundPlan) -> None:
    """Move a tensor into another; small ones are prepared for the next time. Collective.

    Raises:
        LayoutError: `out` lies otherwise than the program ends, or is read-only.
    """
    if not program.is_small:
        check_out(out, program.plan)
        run_apart(x.comm, program, x.local, out.local)
        return
    key, prepared = (id(x), id(out)), program.prepared
    number, calls = prepared.runs.get(key, (0, []))
    if not number:
        check_out(out, program.plan)
    meeting = meet(x.comm, x.local, out.local, number)
    if not meeting.agreed:
        calls = bound_apart(x.comm, program.bound, x.local, out.local, meeting.overlaps)
        if meeting.together and calls[0] == x.comm.barrier:
            calls = calls[1:]
        prepared.keep(key, x, out, (prepared.kept + 1, calls))
    if program.computes:
        with floating_errors(x.comm, "a move"):
            for call in calls:
                call()
        return
    for call in calls:
        call()


def check_out(out: Distributed, plan: Plan) -> None:
    """Refuse a tensor to write into that lies otherwise than the plan ends, or is read-only, and what is none."""
    if not isinstance(out, Distributed):
        raise TypeError(f"out is a DistTensor, not {type(out).__name__}\nwrite out=DistTensor.empty(shape, layout)")
    if (out.distribution, out.local.dtype) != (plan.target, plan.dtype):
        raise LayoutError(f"out is {out.distribution} {out.local.dtype}, but {plan.target} {plan.dtype} is asked for")
    if not out.local.flags.writeable:
        raise LayoutError("out cannot be written to: its block is read-only\ngive a tensor of your own, or leave out=")


class BoundMove(BoundToRun, Generic[T]):
    """A move from one tensor to another, bound to the memory of both: a call takes the values that are there by then.

    Made by `x.move_to(layout)`. A call costs little more than what the ranks say to each other. Collective, as the
    move itself; a rank that is alone copies.

    Attributes:
        source, result: the two tensors.
        plan: what moves.

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
        self._calls = bound_apart(source.comm, program.bound, source.local, result.local, overlaps)

    @property
    def methods(self) -> tuple[str, ...]:
        """By which method of `rote.methods` each step moves; empty where nothing is chosen."""
        return self._program.methods

    def __call__(self, x: T | Array | None = None) -> T:
        """Fill `result` with the values of `source` as they are now; with those of another tensor if one is given.

        Args:
            x: a tensor of the same distribution and dtype as `source`, or this rank's block of one. All ranks give one,
                or none does.

        Returns:
            `result`.

        Raises:
            LayoutError: x lies otherwise than `source`, or lives on another communicator.
        """
        if implicit_cause.get() or records_open.get():
            announce(self.source, self.plan.cost.bytes, self.plan.__str__, "move_to")
        if x is None:
            for call in self._calls:
                call()
        else:
            run_apart(self.source.comm, self._program, self._block(x), self.result.local)
        return self.result

    def _block(self, x: T | Array) -> Array:
        if not isinstance(x, Distributed):
            return x
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


class Movable(Distributed):
    """The part of tensors by which they move."""

    __slots__ = ()

    def move_to(
        self: T,
        layout: Layout | str,
        out: T | None = None,
        grid: GridLike = None,
        method: str = "auto",
        tune: Tune = "model",
        wire: str | None = None,
    ) -> BoundMove[T]:
        """Bind the move of this tensor to another layout, to be called again and again. Collective.

        It moves nothing yet. A call of it fills its result with what this tensor holds by then, as
        `x.redistribute(layout, out=result)` does, at a fraction of its cost where blocks are small. It keeps the memory
        of both tensors.

        Args:
            out: the tensor that is filled, which may share this one's memory; a new one if None.
            layout, grid, method, tune, wire: as `redistribute` has them.

        Returns:
            A `BoundMove`, whose `result` is `out` or a new tensor that is not set yet.

        Raises:
            LayoutError: the layout does not fit, or `out` is laid out otherwise.
            PlanError, CommError: the grid has another number of ranks; these ranks have no such method.

        >>> from rote import DistTensor
        >>> x = DistTensor.from_function(lambda i, j: 10 * i + j, (2, 3), "[(0),()]")
        >>> move = x.move_to("[(),(0)]")
        >>> move().to_global().tolist()
        [[0, 1, 2], [10, 11, 12]]
        """
        program = program_to(self.distribution, self.local.dtype, self.comm, layout, grid, method, tune, wire)
        target = program.plan.target
        if out is None:
            out = self._on(segments.empty(target.local_shape(self.comm.rank), program.plan.dtype, lasting=True), target)
        check_out(out, program.plan)
        return BoundMove(self, out, program)
