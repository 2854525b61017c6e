"""Moves bound to the memory of two tensors, to be called again and again."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..compiler.plan import Plan
from ..errors import LayoutError
from ..functions.distributed import Array, Distributed, changed
from ..functions.moves import announce, implicit_cause, records_open
from ..runtime.comm.agreement import CHECKS, agree
from ..runtime.comm.protocol import BoundToRun
from ..runtime.ends import bound_without_overlap, may_overlap, run_without_overlap
from ..runtime.plans import BoundPlan

__all__ = ["BoundMove"]

T = TypeVar("T", bound=Distributed)


class BoundMove(BoundToRun, Generic[T]):
    """A move from one tensor to another, bound to the memory of both: each call moves the current values.

    `x.move_to(layout)` makes it. A call costs little more than the messages between the ranks. Calls are collective; a
    rank that is alone copies.

    Attributes:
        source, result: the two tensors.
        plan: the plan that moves the elements.

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
        if CHECKS:
            agree(self.source.comm, "move_to", (self.plan.source, self.plan.target, self.plan.dtype, x is None))
        if implicit_cause.get() or records_open.get():
            announce(self.source, self.plan.cost.bytes, self.plan.__str__, "move_to")
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
