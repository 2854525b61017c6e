"""Plans of several tensors that share messages, so that many small tensors cost as many messages as one.

The plans advance together, step by step. In a step, one message carries everything from one rank to another. Each rank
packs the messages of all plans as bytes, ordered by receiver and then by plan. Both sides know all lengths, so no
lengths are sent. Of two plans A and B, and the messages of this rank to ranks 1 and 2:

    packed   | A to 1 | B to 1 | A to 2 | B to 2 |
    sent     |    to rank 1    |    to rank 2    |

The blocks after each plan are bit for bit those of a separate run. Tensors that a collective of MPI reduces, and large
tensors, for which a message of their own is cheap, go separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from ..compiler.plan import Plan
from ..compiler.step import LOCAL
from ..errors import LayoutError
from ..lattice import Shape
from ..layout.grid import check_grid
from .comm.agreement import Difference, agree
from .comm.cache import DoubleBuffer, shared_workspace
from .comm.protocol import Array, Comm
from .copies import run
from .exchange.messages import WHOLE, Messages, Segment, Transfer
from .exchange.registry import same_method
from .plans import bind

__all__ = ["BoundPlans"]

_ALIGNED = 16  # bytes; each message in a bundle starts at a multiple, which suits any dtype
_SMALL = 1 << 18  # the most bytes of a tensor that shares messages
_MOST = 1 << 24  # bytes of the tensors in one bundle, so that workspace does not grow with their number


class BoundPlans:
    """Plans bound to a communicator, called with this rank's blocks before, for its blocks after. Collective.

    Args:
        plans: plans of tensors on these ranks, in the same order on all of them.
        comm: the communicator of the ranks.

    Raises:
        CommError: the communicator and the grid of a plan differ in the number of ranks.
        LayoutError: ranks bind different plans.
    """

    __slots__ = ("_alone", "_bundles", "plans")

    def __init__(self, plans: Sequence[Plan], comm: Comm) -> None:
        self.plans: tuple[Plan, ...] = tuple(plans)
        for plan in plans:
            check_grid(plan.source.grid, comm.size)
        _same_everywhere(plans, comm)

        sharing = [n for n, plan in enumerate(plans) if comm.size > 1 and _shares(plan, comm)]
        self._alone = {n: bind(plan, comm) for n, plan in enumerate(plans) if n not in sharing}
        self._bundles = [_Bundle({n: plans[n] for n in numbers}, comm) for numbers in _in_bundles(sharing, plans)]

    def __call__(self, blocks: Sequence[Array]) -> list[Array]:
        """Run the plans and return new blocks, in the same order; those of equal plans share one array.

        Args:
            blocks: this rank's blocks, one per plan, of its shape and dtype.
        """
        after = list(blocks)
        for bundle in self._bundles:
            bundle(blocks, after)
        for number, program in self._alone.items():
            after[number] = program(blocks[number])
        return after


class _Bundle:
    """Plans that share messages, by their numbers. Equal plans become one, of a field with as many components."""

    __slots__ = ("_members", "_rounds")

    def __init__(self, plans: Mapping[int, Plan], comm: Comm) -> None:
        equal: dict[Plan, list[int]] = {}
        for number, plan in plans.items():
            equal.setdefault(plan, []).append(number)
        self._members = [*equal.values()]

        # A round has one step of each plan, and none of a plan that has no more.
        self._rounds = list[tuple[dict[int, tuple[Messages, Shape]], list[_Exchange]]]()
        steps = zip_longest(*(_bound_steps(plan, len(members), comm) for plan, members in equal.items()))
        for column in steps:
            of_plans = {n: step for n, step in enumerate(column) if step is not None}
            self._rounds.append((of_plans, _exchanges(of_plans)))

    def __call__(self, blocks: Sequence[Array], after: list[Array]) -> None:
        """Run the plans, and put the blocks after them into their places in `after`."""
        current = list[Array]()
        for members in self._members:
            block = np.stack([blocks[n] for n in members]) if len(members) > 1 else blocks[members[0]]
            current.append(np.asarray(block, order="C"))  # a stack keeps the memory order of its blocks

        for of_plans, exchanges in self._rounds:
            received = dict[int, list[Array]]()
            for exchange in exchanges:
                received |= exchange(current)
            for n, (messages, shape) in of_plans.items():
                out, nothing = np.empty(shape, messages.dtype), np.empty(0)
                run(Transfer(messages, current[n], out, nothing, nothing).unpacking(received.get(n, [])))
                current[n] = out

        for members, block in zip(self._members, current, strict=True):
            parts = block if len(members) > 1 else [block]
            for n, part in zip(members, parts, strict=True):
                after[n] = part


class _Exchange:
    """The messages of one step of several plans over one communicator, by the numbers of the plans. Collective."""

    __slots__ = ("_arrived", "_dtypes", "_messages", "_packed", "_receives", "_sends")

    def __init__(self, messages: Mapping[int, Messages]) -> None:
        self._messages, comm = messages, next(iter(messages.values())).comm

        # A separate move of ranks that share memory would round nothing.
        rounds = any(step.wire != step.dtype for step in messages.values()) and DoubleBuffer.of(comm, 1) is None
        self._dtypes = {n: step.wire if rounds else step.dtype for n, step in messages.items()}

        dtypes, ranks = self._dtypes, comm.size
        self._packed, self._sends = _slices({n: step.leaving for n, step in messages.items()}, dtypes, ranks)
        self._arrived, self._receives = _slices({n: step.coming for n, step in messages.items()}, dtypes, ranks)

    def __call__(self, blocks: Sequence[Array]) -> dict[int, list[Array]]:
        """Send the messages of the blocks; those that come, by the numbers of their plans. Collective."""
        comm, sends, receives = next(iter(self._messages.values())).comm, sum(self._sends), sum(self._receives)
        workspace = shared_workspace(comm, sends + receives)
        packed, arrived = workspace[:sends], workspace[sends : sends + receives]

        for n, slices in self._packed.items():
            for segment, at in zip(self._messages[n].leaving, slices, strict=True):
                segment.region.copy(blocks[n], packed[at].view(self._dtypes[n]))
        comm.alltoallv(packed, self._sends, arrived, self._receives)
        return {n: [arrived[at].view(self._dtypes[n]) for at in slices] for n, slices in self._arrived.items()}


def _bound_steps(plan: Plan, count: int, comm: Comm) -> Iterator[tuple[Messages, Shape]]:
    """The messages of each step of a plan, for `count` tensors, and the shape of the block after it. Collective.

    All messages go between pairs of ranks.
    """
    components = (count,) if count > 1 else ()
    for step in plan.steps:
        gathers = step.kind == "allgather"
        sent = replace(step, kind="exchange") if gathers else step
        # The rank's own part of a gathered block is rounded like all copies.
        carried = gathers and step.wire is not None
        messages = Messages.of(sent.of_field(components), plan.dtype, comm, carried)
        yield messages, (*components, *step.after.local_shape(comm.rank))


def _exchanges(of_plans: Mapping[int, tuple[Messages, Shape]]) -> list[_Exchange]:
    """The exchanges of a round: one per communicator, in the same order on every rank."""
    by_ranks: dict[int, dict[int, Messages]] = {}
    for n, (messages, _) in of_plans.items():
        if messages.step.kind not in LOCAL:
            by_ranks.setdefault(id(messages.comm), {})[n] = messages  # a communicator is one object
    return [_Exchange(messages) for messages in by_ranks.values()]


def _slices(
    sides: Mapping[int, Sequence[Segment]], dtypes: Mapping[int, np.dtype[Any]], ranks: int
) -> tuple[dict[int, list[slice]], list[int]]:
    """The bytes of the messages of each plan in packed memory, which is ordered by peer; the bytes per peer."""
    order = [(segment.peer, n, number) for n, side in sides.items() for number, segment in enumerate(side)]
    slices = {n: [slice(0)] * len(side) for n, side in sides.items()}
    counts, start = [0] * ranks, 0
    for peer, n, number in sorted(order):
        nbytes = sides[n][number].region.size * dtypes[n].itemsize
        slices[n][number] = slice(start, start + nbytes)
        padded = -(-nbytes // _ALIGNED) * _ALIGNED
        counts[peer] += padded
        start += padded
    return slices, counts


def _shares(plan: Plan, comm: Comm) -> bool:
    """Whether the messages of a plan are small, and all of them go between pairs of ranks."""
    if any(same_method("auto", step, comm) != "auto" for step in plan.steps):
        return False
    kinds = {step.kind for step in plan.steps}
    return bool(plan.steps) and _nbytes(plan) <= _SMALL and not kinds & {*WHOLE, "reduce_scatter"}


def _in_bundles(numbers: Iterable[int], plans: Sequence[Plan]) -> list[list[int]]:
    """The numbers of the plans of each bundle."""
    bundles, left = list[list[int]](), 0
    for n in numbers:
        nbytes = _nbytes(plans[n])
        if not bundles or nbytes > left:
            bundles.append([])
            left = _MOST
        bundles[-1].append(n)
        left -= nbytes
    return bundles


def _nbytes(plan: Plan) -> int:
    """Bytes of the tensor before the plan, on all ranks."""
    return prod(plan.source.shape) * plan.dtype.itemsize


def _same_everywhere(plans: Sequence[Plan], comm: Comm) -> None:
    """Refuse lists that differ from rank to rank, with the same error on all."""
    moves = [f"{plan.source} of {plan.dtype} -> {plan.target}" for plan in plans]

    def refusal(difference: Difference) -> LayoutError:
        here = f"{difference.first} on rank 0 and {difference.other} on rank {difference.rank}"
        return LayoutError(f"tensors come in the same order on all ranks, but the one at {difference.at} is {here}")

    agree(comm, "redistribute of several tensors", tuple(moves), refusal=refusal)
