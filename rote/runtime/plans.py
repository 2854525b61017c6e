"""Plans bound to ranks: a plan becomes a program (`program`), which takes a rank's block before to its block after.

Its messages travel by the usual methods of exchange, by named ones, or by those that are the fastest on these ranks.
Plans of several tensors can share their messages: see `bundle`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from operator import mul

import numpy as np
import numpy.typing as npt

from ..compiler.cost import flow
from ..compiler.plan import Plan
from ..compiler.step import Step
from ..errors import CommError, LayoutError
from ..layout.distribution import Distribution
from ..layout.grid import check_grid
from .comm import segments
from .comm.agreement import floating_errors, floating_errors_raise
from .comm.cache import cached
from .comm.protocol import Array, Comm, MpiHandle
from .copies import Copy
from .ends import PreparedRuns, is_small
from .exchange.registry import MemoryUse, check_method, memory_use
from .log import log
from .operations import lowered
from .program import SentProgram

__all__ = ["BoundPlan", "bind"]

_KEPT = 64  # programs that one communicator keeps


def bind(plan: Plan, comm: Comm, method: str | tuple[str, ...] = "auto") -> BoundPlan:
    """Bind a plan to this rank. Collective; the communicator keeps the last programs that it bound.

    Args:
        method: how messages travel, one of `METHODS`, or "auto": the usual one on these ranks; or one for each step.

    Raises:
        CommError: the communicator and the plan's grid differ in the number of ranks, or these ranks do not support
            the method.
    """
    return cached(comm, "programs", (plan, method), lambda: BoundPlan(plan, comm, method), _KEPT)


class BoundPlan:
    """A plan bound to a communicator: it is called with this rank's block before, and returns its block after.

    Its buffers are in workspace that all programs of the communicator share. It needs no more than its most demanding
    step, which the cost of a plan counts as its peak. Where a method with memory of its own would need more, shared
    memory has no halves, or messages go through the workspace.

    Args:
        plan, comm, method: see `bind`.
        before, after: factors of this rank's block before and after the plan, see `lowered`.

    Attributes:
        computes: whether elements are reduced or rounded on their way, so that NumPy may raise floating-point errors.
        nbytes: the most bytes that any one rank receives.
        is_small: whether it pays to prepare runs of it; the same on all ranks.
        prepared: the prepared runs, each with a number that is the same on all ranks.
        agreed: the calls of bound moves that ranks have compared: whether they moved the tensor that they are bound to.
    """

    __slots__ = ("_comm", "_program", "_shapes", "agreed", "computes", "is_small", "nbytes", "plan", "prepared")

    plan: Plan

    def __init__(
        self,
        plan: Plan,
        comm: Comm,
        method: str | tuple[str, ...] = "auto",
        before: Sequence[npt.ArrayLike] = (),
        after: Sequence[npt.ArrayLike] = (),
    ) -> None:
        check_grid(plan.source.grid, comm.size)
        names = (method,) if isinstance(method, str) else method
        for name in names:
            check_method(name)
        if isinstance(method, str):
            names *= len(plan.steps)
        if len(names) != len(plan.steps):
            raise CommError(f"{len(names)} methods are given, but the plan has {len(plan.steps)} steps: one for each")

        names, halved = _within_claim(plan, comm, names)

        following = iter(names)  # by position, because a step may occur twice
        self.plan, self._comm = plan, comm
        self._shapes = plan.source.local_shape(comm.rank), plan.target.local_shape(comm.rank)

        operations = lowered(plan, comm.rank, before, after)
        self._program = SentProgram(operations, comm, lambda _: next(following), tight=False, halved=halved)
        self.computes: bool = bool(plan.source.partial)
        for step in plan.steps:
            self.computes |= step.wire is not None
        self.nbytes: int = plan.cost.bytes
        self.agreed: set[bool] = set()
        self.is_small: bool = is_small((plan.source, plan.dtype), (plan.target, plan.dtype))
        self.prepared: PreparedRuns[tuple[int, list[Copy]]] = PreparedRuns()

        ends, kinds = (plan.source.layout, plan.target.layout), [step.kind for step in plan.steps]
        shape, grid = plan.source.shape, plan.source.grid
        log(comm, "plan %s -> %s of %s %s on grid %s: %s %s", *ends, shape, plan.dtype, grid, kinds, self.methods)

    @property
    def methods(self) -> tuple[str, ...]:
        """The method of each step; empty if a collective of MPI does it, or if no rank needs another."""
        return tuple(move.name for move in self._program.moves)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beside the blocks before and after the plan; their sum is its peak."""
        return sum(self._program.sizes) + self._program.method_bytes

    def __call__(self, block: Array, out: Array | None = None) -> Array:
        """Run the plan and return the block after it, written into `out` if that is given.

        Args:
            block: this rank's block, which is not changed; copied first if it is not C-contiguous.
            out: an array of the shape of the block after the plan; it `overlaps` no rank's block.

        Raises:
            LayoutError: `block` or `out` has another shape or dtype than this rank's block.
        """
        before, after = self._shapes
        self._check(block, before, self.plan.source, "the block")
        if out is None:
            out = segments.empty(after, self.plan.dtype)
        else:
            self._check(out, after, self.plan.target, "out")
        end = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        start = np.asarray(block, order="C")

        if self.computes and floating_errors_raise():
            with floating_errors(self._comm, "a move"):
                self._program(start, end)
        else:
            self._program(start, end)
        if end is not out:
            out[...] = end
        return out

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """Bind the calls, in order, that take `block` to `out`, and may run repeatedly. Binding them is collective.

        Each run uses the block's current values. Arguments and errors are those of a call; the two must not overlap.
        """
        before, after = self._shapes
        self._check(block, before, self.plan.source, "the block")
        self._check(out, after, self.plan.target, "out")
        start = np.asarray(block, order="C")
        end = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        first = [] if start is block else [partial(start.__setitem__, ..., block)]
        last = [] if end is out else [partial(out.__setitem__, ..., end)]
        return [*first, *self._program.bound(start, end), *last]

    def _check(self, block: Array, shape: tuple[int, ...], dist: Distribution, name: str) -> None:
        if block.shape != shape or block.dtype != self.plan.dtype:
            what = f"{name} of rank {self._comm.rank} is {block.shape} {block.dtype}"
            raise LayoutError(f"{what}, but {dist} wants {shape} {self.plan.dtype}")


_SECOND_HALF = 1 << 20  # bytes of a second half that save no time: a barrier takes less than to fill them
_SLACK = 1 << 13  # bytes that a rank may need beyond what its plan claims: to save them costs more than it brings


def _within_claim(plan: Plan, comm: Comm, methods: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Methods by which no rank holds more than the plan claims, and whether shared memory has halves. Collective.

    These are the given ones, but those with memory of their own may give way to "alltoallv": what that needs is what
    the claim counts.
    """
    if not isinstance(comm, MpiHandle) or comm.size == 1:  # threads read from each other, and hold nothing
        return methods, True
    uses = [memory_use(name, step.kind, comm) for name, step in zip(methods, plan.steps, strict=True)]
    most = np.array([_run_bytes(plan, comm.rank, uses, pieces) for pieces in (2, 1)])
    comm.allreduce_in_place(most, "max")

    fits = most <= plan.cost.peak_bytes + _SLACK
    if not fits.any():
        methods = tuple("alltoallv" if any(use.beyond) else name for name, use in zip(methods, uses, strict=True))
    return methods, bool(fits[0] and most[0] - most[1] < _SECOND_HALF)


def _run_bytes(plan: Plan, rank: int, uses: Sequence[MemoryUse], pieces: int) -> int:
    """Bytes that a rank needs to run a plan by methods of these uses, where shared memory has so many pieces.

    Workspace is as large as the most demanding step needs it, and so is the memory that the same ranks share.
    """
    blocks = [prod(dist.local_shape(rank)) for dist in (plan.source, *(step.after for step in plan.steps))]
    between = [0, *blocks[1:-1], 0]

    workspace, memories = 0, dict[Hashable, int]()
    for number, (step, use) in enumerate(zip(plan.steps, uses, strict=True)):
        messages = _buffers(step, rank)
        packed_and_arrived = sum(map(mul, use.workspace, messages))
        workspace = max(workspace, between[number] + between[number + 1] + packed_and_arrived)

        memory, copies = (step.grid_modes, pieces) if use.shared else (number, 1)
        memories[memory] = max(memories.get(memory, 0), copies * sum(map(mul, use.beyond, messages)))
    return (blocks[0] + blocks[-1] + workspace + sum(memories.values())) * plan.dtype.itemsize


def _buffers(step: Step, rank: int) -> tuple[int, int]:
    """The elements that a rank packs in a step, and those that arrive."""
    moved, at = flow(step), step.ranks.coordinates(rank)
    packed = np.broadcast_to(moved.send_buffer, step.ranks.shape)[at]
    arrived = np.broadcast_to(moved.receive_buffer, step.ranks.shape)[at]
    return int(packed), int(arrived)
