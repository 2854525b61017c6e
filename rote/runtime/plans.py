"""Plans bound to ranks: a plan becomes a program (`program`), which takes a rank's block before to its block after.

Its messages travel by the usual methods of exchange, by named ones, or by those that are the fastest on these ranks.

Plans of several tensors advance step by step, so that steps over the same ranks share their messages: many small
tensors cost as many messages as one. The blocks after each plan are bit for bit those of a separate run. Tensors that a
collective of MPI reduces, and large tensors, for which a message of their own is cheap, go separately.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from math import prod
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..compiler.cost import flow
from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import CommError, LayoutError
from ..layout.distribution import Distribution
from ..layout.grid import check_grid
from .comm import segments
from .comm.agreement import Difference, agree, floating_errors, floating_errors_raise
from .comm.cache import DoubleBuffer, cached, shared_workspace
from .comm.protocol import Array, Comm, MpiHandle
from .copies import Copy, run
from .ends import PreparedRuns, is_small
from .exchange.messages import WHOLE, Messages, Segment, Transfer
from .exchange.registry import MemoryUse, alike, check_method, memory_use
from .operations import lowered
from .program import SentProgram
from .regions import Region

__all__ = ["BoundPlan", "BoundPlans", "bind"]

_KEPT = 64  # programs that one communicator keeps
_ALIGNED = 16  # bytes; each message in a bundle starts at a multiple, which suits any dtype
_SMALL = 1 << 18  # the most bytes of a tensor that shares messages
_MOST = 1 << 24  # bytes of the tensors in one group, so that workspace does not grow with their number


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

    @property
    def methods(self) -> tuple[str, ...]:
        """The method of each step; empty if a collective of MPI does it, or if no rank needs another."""
        return tuple(move.name for move in self._program.moves)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that this rank needs beside the blocks before and after the plan; their sum is its peak."""
        return sum(self._program.sizes) + self._program.held

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
            rank, wanted = self._comm.rank, f"{shape} {self.plan.dtype}"
            raise LayoutError(f"{name} of rank {rank} is {block.shape} {block.dtype}, but {dist} wants {wanted}")


_BESIDE = 1 << 13
"""Bytes that a rank may hold beside what its plan claims: to save them would cost more than it brings."""


def _within_claim(plan: Plan, comm: Comm, methods: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Methods by which no rank holds more than the plan claims, and whether shared memory has halves. Collective.

    These are the given ones, but those with memory of their own may give way to "alltoallv": what that needs is what
    the claim counts.
    """
    if not isinstance(comm, MpiHandle) or comm.size == 1:  # threads read from each other, and hold nothing
        return methods, True
    uses = [memory_use(name, step.kind, comm) for name, step in zip(methods, plan.steps, strict=True)]
    most = np.array([_held(plan, comm.rank, uses, pieces) for pieces in (2, 1)])
    comm.allreduce_in_place(most, "max")
    fits = most <= plan.cost.peak_bytes + _BESIDE
    if not fits.any():
        methods = tuple("alltoallv" if any(use.own) else name for name, use in zip(methods, uses, strict=True))
    return methods, bool(fits[0])


def _held(plan: Plan, rank: int, uses: Sequence[MemoryUse], pieces: int) -> int:
    """Bytes that a rank holds to run a plan by methods of these uses, where shared memory has so many pieces.

    Workspace is as large as the most demanding step needs it, and so is the memory that the same ranks share.
    """
    blocks = [prod(dist.local_shape(rank)) for dist in (plan.source, *(step.after for step in plan.steps))]
    between = [0, *blocks[1:-1], 0]
    workspace, own = 0, dict[Hashable, int]()
    for number, (step, use) in enumerate(zip(plan.steps, uses, strict=True)):
        messages = _buffers(step, rank)
        packed_and_arrived = sum(map(mul, use.workspace, messages))
        workspace = max(workspace, between[number] + between[number + 1] + packed_and_arrived)
        memory = step.grid_modes if use.shared else number
        own[memory] = max(own.get(memory, 0), (pieces if use.shared else 1) * sum(map(mul, use.own, messages)))
    return (blocks[0] + blocks[-1] + workspace + sum(own.values())) * plan.dtype.itemsize


def _buffers(step: Step, rank: int) -> tuple[int, int]:
    """The elements that a rank packs in a step, and those that arrive."""
    moved, at = flow(step), step.ranks.coordinates(rank)
    packed, arrived = (
        np.broadcast_to(each, step.ranks.shape)[at] for each in (moved.send_buffer, moved.receive_buffer)
    )
    return int(packed), int(arrived)


# --- plans of several tensors -----------------------------------------------------------------------------------------

# In a step, one message carries everything from one rank to another. Each rank packs the messages of all steps as
# bytes, ordered by receiver and then by step. Both sides know all lengths, so no lengths are sent.


class _Place(NamedTuple):
    """A message of a bundle: the number of its plan, its own number, its region, and its place in packed memory."""

    plan: int
    number: int
    region: Region
    at: slice
    dtype: np.dtype[np.generic]

    def of(self, memory: Array) -> Array:
        """The message, as a view of memory."""
        return memory[self.at].view(self.dtype)


class _Bundle:
    """The messages of a step of several plans over one communicator, by the numbers of the plans. Collective."""

    __slots__ = ("_coming", "_leaving", "_receives", "_sends", "_steps")

    def __init__(self, steps: dict[int, Messages]) -> None:
        self._steps, comm = steps, next(iter(steps.values())).comm
        # A separate move of ranks that share memory would round nothing.
        rounds = any(each.wire != each.dtype for each in steps.values()) and DoubleBuffer.of(comm, 1) is None
        dtypes = {n: each.wire if rounds else each.dtype for n, each in steps.items()}
        self._leaving, self._sends = _places({n: each.leaving for n, each in steps.items()}, dtypes, comm.size)
        self._coming, self._receives = _places({n: each.coming for n, each in steps.items()}, dtypes, comm.size)

    def __call__(self, blocks: Sequence[Array]) -> dict[int, list[Array]]:
        """Send messages of the blocks, by the numbers of their plans; the messages that come. Collective."""
        comm, sends = next(iter(self._steps.values())).comm, sum(self._sends)
        workspace = shared_workspace(comm, sends + sum(self._receives))
        packed, arrived = workspace[:sends], workspace[sends : sends + sum(self._receives)]
        for place in self._leaving:
            place.region.copy(blocks[place.plan], place.of(packed))
        comm.alltoallv(packed, self._sends, arrived, self._receives)
        received = {n: [arrived] * len(each.coming) for n, each in self._steps.items()}
        for place in self._coming:
            received[place.plan][place.number] = place.of(arrived)
        return received


def _places(
    steps: dict[int, tuple[Segment, ...]], dtypes: dict[int, np.dtype[np.generic]], ranks: int
) -> tuple[list[_Place], list[int]]:
    """The places of the messages of all steps, ordered by peer, and the bytes per peer."""
    places, counts, start = list[_Place](), [0] * ranks, 0
    order = sorted((part.peer, plan, number) for plan, parts in steps.items() for number, part in enumerate(parts))
    for peer, plan, number in order:
        region = steps[plan][number].region
        nbytes = region.size * dtypes[plan].itemsize
        places.append(_Place(plan, number, region, slice(start, start + nbytes), dtypes[plan]))
        padded = -(-nbytes // _ALIGNED) * _ALIGNED
        counts[peer] += padded
        start += padded
    return places, counts


class BoundPlans:
    """Plans bound to a communicator, called with this rank's blocks before, for its blocks after. Collective.

    Args:
        plans: plans of tensors on these ranks, in the same order on all of them.
        comm: the communicator of the ranks.

    Raises:
        CommError: the communicator and the grid of a plan differ in the number of ranks.
        LayoutError: ranks bind different plans.
    """

    __slots__ = ("_alone", "_groups", "plans")

    def __init__(self, plans: Sequence[Plan], comm: Comm) -> None:
        self.plans: tuple[Plan, ...] = tuple(plans)
        for plan in plans:
            check_grid(plan.source.grid, comm.size)
        _same_everywhere(plans, comm)
        sharing = [n for n, plan in enumerate(plans) if comm.size > 1 and _shares(plan, comm)]
        self._alone = {n: bind(plans[n], comm) for n in range(len(plans)) if n not in {*sharing}}
        self._groups = [_Group(numbers, plans, comm) for numbers in _groups(sharing, plans)]

    def __call__(self, blocks: Sequence[Array]) -> list[Array]:
        """Run the plans and return new blocks, in the same order; those of equal plans share one array.

        Args:
            blocks: this rank's blocks, one per plan, of its shape and dtype.
        """
        after = list(blocks)
        for group in self._groups:
            group(blocks, after)
        for number, program in self._alone.items():
            after[number] = program(blocks[number])
        return after


class _Group:
    """Plans of these numbers, which share messages. Equal plans become one, of a field with as many components."""

    __slots__ = ("_members", "_rounds")

    def __init__(self, numbers: Sequence[int], plans: Sequence[Plan], comm: Comm) -> None:
        equal: dict[Plan, list[int]] = {}
        for n in numbers:
            equal.setdefault(plans[n], []).append(n)
        self._members = [*equal.values()]
        columns = zip_longest(*(_steps(plan, len(members), comm.rank) for plan, members in equal.items()))
        dtypes = [plan.dtype for plan in equal]
        self._rounds = [_Round(steps, dtypes, comm) for steps in columns]

    def __call__(self, blocks: Sequence[Array], after: list[Array]) -> None:
        """Put the blocks after the plans into their places."""
        current = []
        for members in self._members:
            block = np.stack([blocks[n] for n in members]) if len(members) > 1 else blocks[members[0]]
            current.append(np.asarray(block, order="C"))  # a stack keeps the memory order of its blocks
        for each in self._rounds:
            each(current)
        for members, block in zip(self._members, current, strict=True):
            parts = block if len(members) > 1 else [block]
            for n, part in zip(members, parts, strict=True):
                after[n] = part


_Bound = tuple[Step, tuple[int, ...], bool]
"""A step, the shape of the block after it, and whether kept elements are carried."""


def _steps(plan: Plan, count: int, rank: int) -> list[_Bound]:
    """The steps of a plan, for `count` tensors, as messages between pairs of ranks."""
    components, bound = (count,) if count > 1 else (), list[_Bound]()
    for step in plan.steps:
        gathers = step.kind == "allgather"
        sent = replace(step, kind="exchange") if gathers else step
        shape = (*components, *step.after.local_shape(rank))
        # The rank's own part of a gathered block is rounded like all copies.
        bound.append((sent.of_field(components), shape, gathers and step.wire is not None))
    return bound


class _Round:
    """One step of each of several plans; None for those that have no more. Collective."""

    __slots__ = ("_bundles", "_messages", "_shapes")

    def __init__(self, steps: Iterable[_Bound | None], dtypes: Sequence[np.dtype[Any]], comm: Comm) -> None:
        self._messages, self._shapes = dict[int, Messages](), dict[int, tuple[int, ...]]()
        by_ranks: dict[int, dict[int, Messages]] = {}  # a communicator is one object
        for n, bound in enumerate(steps):
            if bound is not None:
                step, self._shapes[n], carried = bound
                self._messages[n] = messages = Messages.of(step, dtypes[n], comm, carried)
                if step.kind not in LOCAL:
                    by_ranks.setdefault(id(messages.comm), {})[n] = messages
        self._bundles = [_Bundle(each) for each in by_ranks.values()]  # in the same order on every rank

    def __call__(self, current: list[Array]) -> None:
        """Replace each block by the block after its step."""
        received = dict[int, list[Array]]()
        for bundle in self._bundles:
            received |= bundle(current)
        for n, messages in self._messages.items():
            out, nothing = np.empty(self._shapes[n], messages.dtype), np.empty(0)
            run(Transfer(messages, current[n], out, nothing, nothing).unpacking(received.get(n, [])))
            current[n] = out


def _shares(plan: Plan, comm: Comm) -> bool:
    """Whether the messages of a plan are small, and all of them go between pairs of ranks."""
    if any(alike("auto", step, comm) != "auto" for step in plan.steps):
        return False
    kinds = {step.kind for step in plan.steps}
    return bool(plan.steps) and _nbytes(plan) <= _SMALL and not kinds & {*WHOLE, "reduce_scatter"}


def _groups(numbers: Iterable[int], plans: Sequence[Plan]) -> list[list[int]]:
    """The numbers of plans in groups that run at once."""
    groups, left = list[list[int]](), 0
    for n in numbers:
        nbytes = _nbytes(plans[n])
        if not groups or nbytes > left:
            groups.append([])
            left = _MOST
        groups[-1].append(n)
        left -= nbytes
    return groups


def _nbytes(plan: Plan) -> int:
    """Bytes of the tensor before the plan, on all ranks."""
    return prod(plan.source.shape) * plan.dtype.itemsize


def _same_everywhere(plans: Sequence[Plan], comm: Comm) -> None:
    """Refuse lists that differ from rank to rank, with the same error on all."""
    moves = [f"{plan.source} of {plan.dtype} -> {plan.target}" for plan in plans]

    def refusal(found: Difference) -> LayoutError:
        both = f"the one at {found.at} is {found.first} on rank 0 and {found.other} on rank {found.rank}"
        return LayoutError(f"tensors come in the same order on all ranks, but {both}")

    agree(comm, "redistribute of several tensors", tuple(moves), refusal=refusal)
