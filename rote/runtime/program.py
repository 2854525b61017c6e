"""THE executor: a list of operations between two blocks, bound to a communicator and a transport.

A redistribution is a program of moves, a Fourier transform one of moves and kernels. What a rank does is lowered to
operations (`operations`), fused (`sweeps`), given places (`buffers`) and bound to a transport: ranks that share memory
read each other's blocks there, with one barrier per move (`shared`); others send messages, by the methods of exchange
(`messages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from ..compiler.plan import Plan
from ..errors import CommError, LayoutError
from ..layout.grid import check_grid
from ..layout.layout import Distribution
from .comm import segments
from .comm.cache import cached
from .comm.collective_errors import floating_errors
from .comm.protocol import Array, Comm
from .copy.strided import Copy
from .exchange.registry import check_method
from .executor.buffers import PreparedRuns, is_small
from .executor.messages import MessageTransport
from .executor.operations import lowered

__all__ = ["BoundPlan", "bind"]

_KEPT = 64  # programs that one communicator keeps


def bind(plan: Plan, comm: Comm, method: str | tuple[str, ...] = "auto") -> BoundPlan:
    """The program of this rank for a plan. Collective; the communicator keeps the last programs it has bound.

    Args:
        plan: of any steps.
        comm: of as many ranks as the plan's grid has.
        method: how messages travel, one of `METHODS`, or "auto": the usual one on these ranks; or one for each step.

    Raises:
        CommError: the grid of the plan has another number of ranks than the communicator, or the ranks cannot have
            the method.
    """
    return cached(comm, "programs", (plan, method), lambda: BoundPlan(plan, comm, method), _KEPT)


class BoundPlan:
    """A plan bound to a communicator: call it with this rank's block before, and get its block after.

    All that it needs beside these lies in workspace that it shares with all others of the communicator: never more
    than the most that one of its steps needs, which is what the cost of a plan counts as its peak.

    Args:
        plan, comm, method: as `bind` has them.
        before, after: factors of this rank's block before and after the plan, as `lowered` has them.

    Attributes:
        plan: itself.
        computes: whether elements are reduced or rounded on their way, so that NumPy may raise floating-point errors.
        is_small: whether runs of it are worth to be prepared; the same on all ranks.
        prepared: those that are, each with a number that all ranks give it.
    """

    __slots__ = ("_comm", "_shapes", "_transport", "computes", "is_small", "plan", "prepared")

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
        following = iter(names)  # by place, for a step may come twice
        self.plan, self._comm = plan, comm
        self._shapes = plan.source.local_shape(comm.rank), plan.target.local_shape(comm.rank)
        operations = lowered(plan, comm.rank, before, after)
        self._transport = MessageTransport(operations, comm, lambda _: next(following), tight=False)
        self.computes: bool = bool(plan.source.partial)
        for step in plan.steps:
            self.computes |= step.wire is not None
        self.is_small: bool = is_small((plan.source, plan.dtype), (plan.target, plan.dtype))
        self.prepared: PreparedRuns[tuple[int, list[Copy]]] = PreparedRuns()

    @property
    def methods(self) -> tuple[str, ...]:
        """By which method each step moves; empty where a collective of MPI's does, or no rank needs another."""
        return tuple(move.name for move in self._transport.moves)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beside the blocks before and after the plan; all three make up its peak."""
        return sum(self._transport.sizes) + self._transport.held

    def __call__(self, block: Array, out: Array | None = None) -> Array:
        """The block after the plan; written into `out` if that is given.

        Args:
            block: this rank's, which stays as it is; copied first if it is not C-contiguous.
            out: of the shape of the block after the plan; it `overlaps` no rank's block.

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
        if self.computes:
            with floating_errors(self._comm, "a move"):
                self._transport(start, end)
        else:
            self._transport(start, end)
        if end is not out:
            out[...] = end
        return out

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that take one very block to another, again and again. Making them is collective.

        Each run takes what lies in the block by then. Arguments and errors as for a call; the two do not overlap.
        """
        before, after = self._shapes
        self._check(block, before, self.plan.source, "the block")
        self._check(out, after, self.plan.target, "out")
        start = np.asarray(block, order="C")
        end = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        first = [] if start is block else [partial(start.__setitem__, ..., block)]
        last = [] if end is out else [partial(out.__setitem__, ..., end)]
        return [*first, *self._transport.bound(start, end), *last]

    def _check(self, block: Array, shape: tuple[int, ...], dist: Distribution, name: str) -> None:
        if block.shape != shape or block.dtype != self.plan.dtype:
            rank, wanted = self._comm.rank, f"{shape} {self.plan.dtype}"
            raise LayoutError(f"{name} of rank {rank} is {block.shape} {block.dtype}, but {dist} wants {wanted}")
