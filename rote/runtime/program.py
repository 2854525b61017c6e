"""THE executor: a list of operations between two blocks, bound to a communicator and a transport.

A redistribution is a program of moves, a Fourier transform one of moves and kernels. What a rank does is lowered to
operations (`operations`), fused (`sweeps`), given places (`buffers`) and bound to a transport: ranks that share memory
read each other's blocks there, with one barrier per move (`shared`); others send messages, by the methods of exchange
(`messages`).

Runs between two tensors are prepared the first time and kept for the next, so that a call of small blocks costs little
more than what the ranks do. What is prepared holds views of both blocks, and of workspace: it is let go as soon as one
of the two tensors is, and blocks that are large are not prepared at all.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..compiler.plan import Plan
from ..errors import CommError, LayoutError
from ..layout.grid import check_grid
from ..layout.layout import Distribution
from .comm import segments
from .comm.cache import cached
from .comm.protocol import Array, Comm
from .copy.strided import Copy
from .exchange.registry import check_method
from .executor.messages import MessageTransport
from .executor.operations import lowered

__all__ = ["BoundPlan", "PreparedRuns", "bind", "is_small"]

_KEPT = 64  # programs that one communicator keeps
_MOST = 32  # pairs of tensors
_SMALL = 1 << 23  # bytes of a block: to prepare what moves it takes a hundredth of the time that moving takes

R = TypeVar("R")


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
        is_small: whether runs of it are worth to be prepared; the same on all ranks.
        prepared: those that are, each with a number that all ranks give it.
    """

    __slots__ = ("_comm", "_shapes", "_transport", "is_small", "plan", "prepared")

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
        for name in (method,) if isinstance(method, str) else method:
            check_method(name)
        names = (method,) * len(plan.steps) if isinstance(method, str) else method
        if len(names) != len(plan.steps):
            raise CommError(f"{len(names)} methods are given, but the plan has {len(plan.steps)} steps: one for each")
        following = iter(names)  # by place, for a step may come twice
        self.plan, self._comm = plan, comm
        self._shapes = plan.source.local_shape(comm.rank), plan.target.local_shape(comm.rank)
        operations = lowered(plan, comm.rank, before, after)
        self._transport = MessageTransport(operations, comm, lambda _: next(following), tight=False)
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
        self._transport(np.asarray(block, order="C"), end)
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


def is_small(*ends: tuple[Distribution, np.dtype[Any]]) -> bool:
    """Whether it pays to prepare runs between distributions: no rank has a large block in one; alike on all ranks."""
    return all(prod(dist.max_local_shape()) * dtype.itemsize <= _SMALL for dist, dtype in ends)


class PreparedRuns(Generic[R]):
    """The calls that were prepared for runs between two tensors; of `_MOST` pairs, the oldest go first.

    Attributes:
        runs: by a key that has the `id` of both. That of a pair goes with either of the two.
        kept: how many there were.

    >>> class Tensor: ...
    >>> x, y, prepared = Tensor(), Tensor(), PreparedRuns()
    >>> prepared.keep((id(x), id(y)), x, y, [lambda: None])
    >>> prepared.kept, (id(x), id(y)) in prepared.runs
    (1, True)
    >>> del x
    >>> len(prepared.runs)
    0
    """

    __slots__ = ("_newest", "_watches", "kept", "runs")

    def __init__(self) -> None:
        self.runs: dict[Hashable, R] = {}
        self.kept: int = 0
        self._newest: dict[Hashable, int] = {}  # by key: an `id` comes again when a tensor is gone
        self._watches: dict[int, tuple[Hashable, weakref.ref[object], weakref.ref[object]]] = {}  # beside: no cycle

    def keep(self, key: Hashable, x: object, out: object, run: R) -> None:
        """Keep what was prepared for a run from x into `out`; ranks that keep alike let go alike, whatever the ids."""
        oldest = self.kept - _MOST
        if oldest in self._watches:
            old, *_ = self._watches.pop(oldest)
            if self._newest[old] == oldest:
                del self._newest[old]
                self.runs.pop(old, None)
        forget = partial(self.runs.pop, key)  # called with the reference, which is the answer if there is none
        self._watches[self.kept] = key, weakref.ref(x, forget), weakref.ref(out, forget)
        self._newest[key] = self.kept
        self.runs[key] = run
        self.kept += 1
