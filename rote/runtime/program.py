"""Running a plan on real ranks: bind it to a communicator once, then execute it.

Binding finds this rank's messages and makes the sub-communicators; executing is one exchange per step.

All that a program needs beside the blocks at its two ends lies in one piece of memory, its workspace: the blocks
between two steps take turns at both ends of it, the packed messages of a step lie between them. So a program never
holds more than the most that one of its steps needs, which is what the cost of a plan counts as its peak.

Factors (twiddles, scales) are multiplied in while elements are packed or unpacked, which costs no sweep of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.plan import Plan
from ..errors import CommError, LayoutError, PlanError
from ..layout.distribution import Distribution
from ..layout.grid import Grid
from .comm.cache import cached, shared_workspace
from .comm.protocol import Comm
from .copy.regions import whole
from .copy.strided import Factor
from .exchange.messages import Transfer
from .exchange.registry import check_method
from .exchange.step import Exchange

__all__ = ["Program", "bind", "check_grid"]

Array = npt.NDArray[Any]
_KEPT = 64  # programs that one communicator keeps


def bind(plan: Plan, comm: Comm, method: str | tuple[str, ...] = "auto") -> Program:
    """The program of this rank for a plan. Collective; the communicator keeps the last programs it has bound.

    Args:
        plan: of any steps.
        comm: of as many ranks as the plan's grid has.
        method: how messages travel, one of `METHODS`, or "auto": the usual one on these ranks; or one for each step.

    Raises:
        CommError: the grid of the plan has another number of ranks than the communicator, or the ranks cannot have
            the method.
    """
    return cached(comm, "programs", (plan, method), lambda: Program(plan, comm, method), _KEPT)


def check_grid(grid: Grid, comm: Comm) -> None:
    """Refuse a grid that has another number of ranks than the communicator."""
    if grid.size != comm.size:
        raise CommError(
            f"grid {grid} has {grid.size} ranks, but the communicator has {comm.size}; "
            f"start {grid.size} ranks or give another grid"
        )


class Program:
    """A plan bound to a communicator: call it with this rank's block before, and get its block after.

    Its workspace is shared by all programs of the communicator; results are new arrays, or `out`.
    """

    __slots__ = ("_comm", "_held", "_plan", "_shapes", "_sizes", "_steps", "_workspace")

    def __init__(self, plan: Plan, comm: Comm, method: str | tuple[str, ...] = "auto") -> None:
        check_grid(plan.source.grid, comm)
        for name in (method,) if isinstance(method, str) else method:
            check_method(name)
        names = (method,) * len(plan.steps) if isinstance(method, str) else method
        self._plan = plan
        self._comm = comm
        self._steps = [Exchange(step, plan.dtype, comm, name) for step, name in zip(plan.steps, names, strict=True)]
        self._shapes = [plan.source.local_shape(comm.rank)]  # of the blocks before, between and after the steps
        self._shapes += [step.after.local_shape(comm.rank) for step in plan.steps]
        self._sizes = [0, *(prod(shape) for shape in self._shapes[1:-1]), 0]  # of those in the workspace
        needed = zip(self._steps, pairwise(self._sizes), strict=False)  # without steps there is nothing between
        self._held = max((exchange.held for exchange in self._steps), default=0)
        self._workspace = max((sum(exchange.sizes) + sum(ends) for exchange, ends in needed), default=0)

    @property
    def methods(self) -> tuple[str, ...]:
        """By which method each step moves; empty where a collective of MPI's does, or no rank needs another."""
        return tuple(exchange.method for exchange in self._steps)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beside the blocks before and after the plan; all three make up its peak."""
        return self._workspace * self._plan.dtype.itemsize + self._held

    def __call__(
        self,
        block: Array,
        out: Array | None = None,
        *,
        before: Sequence[npt.ArrayLike] = (),
        after: Sequence[npt.ArrayLike] = (),
    ) -> Array:
        """The block after the plan; written into `out` if that is given.

        Args:
            block: this rank's, which stays as it is; copied first if it is not C-contiguous.
            out: of the shape of the block after the plan; it `overlaps` no rank's block.
            before: factors of the tensor; each is broadcast to this rank's block before the plan, and multiplied in
                as that is packed. Of the plan's dtype and C-contiguous they are used as they are, else copied.
            after: the same of the block after the plan, multiplied in as that is unpacked.

        Raises:
            LayoutError: `block` or `out` has another shape or dtype than this rank's block, or a factor does not fit.
            PlanError: a factor is for a partial tensor that is not a sum.
        """
        source, target, dtype = self._plan.source, self._plan.target, self._plan.dtype
        self._check(block, self._shapes[0], source, "the block")
        if out is None:
            out = np.empty(self._shapes[-1], dtype)
        else:
            self._check(out, self._shapes[-1], target, "out")
        first = self._factors(before, self._shapes[0], source, "before")
        last = self._factors(after, self._shapes[-1], target, "after")
        block = np.asarray(block, order="C")
        end = out if out.flags.c_contiguous else np.empty(out.shape, dtype)
        if not self._steps:
            whole(end.shape).copy(block, end, before=first, after=last)
        workspace = shared_workspace(self._comm, "workspace", self._workspace, dtype)
        for number, exchange in enumerate(self._steps, 1):
            ends = number == len(self._steps)
            result = end if ends else self._between(workspace, number)
            at, (send, receive) = self._sizes[number - number % 2], exchange.sizes
            buffers = _cut(workspace, at, send), _cut(workspace, at + send, receive)
            factors = first if number == 1 else (), last if ends else ()
            exchange.run(Transfer(exchange.messages, block, result, *buffers, *factors))
            block = result
        if end is not out:
            out[...] = end
        return out

    def _between(self, workspace: Array, number: int) -> Array:
        """The block after the step of some number: at the left end of the workspace if even, at the right if odd."""
        size = self._sizes[number]
        part = workspace[len(workspace) - size :] if number % 2 else workspace[:size]
        return part.reshape(self._shapes[number])

    def _check(self, block: Array, shape: tuple[int, ...], dist: Distribution, name: str) -> None:
        if block.shape != shape or block.dtype != self._plan.dtype:
            rank, wanted = self._comm.rank, f"{shape} {self._plan.dtype}"
            raise LayoutError(f"{name} of rank {rank} is {block.shape} {block.dtype}, but {dist} wants {wanted}")

    def _factors(
        self, arrays: Sequence[npt.ArrayLike], shape: tuple[int, ...], dist: Distribution, name: str
    ) -> list[Factor]:
        """Factors of a block of some shape, in the plan's dtype."""
        if not len(arrays):
            return []
        if isinstance(arrays, np.ndarray):
            raise LayoutError(f"`{name}` is a sequence of factors, not an array; write {name}=(array,)")
        if dist.partial and dist.layout.op != "sum":
            raise PlanError(
                f"`{name}` multiplies each contribution, which is right for sums only, and {dist.layout} is not one; "
                "multiply where the tensor is not partial"
            )
        factors = []
        for number, array in enumerate(map(np.asarray, arrays)):
            fault = ""
            if not np.can_cast(array.dtype, self._plan.dtype, "same_kind"):
                fault = f"is no factor of {self._plan.dtype}; convert it first"
            elif not _broadcasts(array.shape, shape):
                fault = f"does not broadcast to the block of {shape} in {dist}"
            if fault:
                rank = self._comm.rank
                raise LayoutError(f"{name}[{number}] of rank {rank} is {array.shape} {array.dtype}, which {fault}")
            factors.append(Factor.of(np.asarray(array, self._plan.dtype), shape))
        return factors


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another."""
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in zip(shape[::-1], wanted[::-1], strict=False))


def _cut(buffer: Array, start: int, size: int) -> Array:
    """A part of a buffer. MPI refuses two at one address, and in NumPy the empty ones begin where the buffer does."""
    return buffer[start : start + size] if size else np.empty(0, buffer.dtype)
