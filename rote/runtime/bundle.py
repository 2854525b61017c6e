"""Plans of several tensors that advance step by step, so that steps over the same ranks share their messages.

So many small tensors cost as many messages as one. The blocks after each plan are bit for bit those of a separate run.
Tensors that a collective of MPI reduces, and large tensors, for which a message of their own is cheap, go separately.

In a step, one message carries everything from one rank to another. Each rank packs the messages of all steps as bytes,
ordered by receiver and then by step. Both sides know all lengths, so no lengths are sent. Ranks that share memory
unpack directly from the sender's memory; others send the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..compiler.plan import Plan
from ..compiler.step import LOCAL, Step
from ..errors import LayoutError
from ..layout.grid import check_grid
from .comm.agreement import Difference, agree
from .comm.cache import DoubleBuffer, shared_workspace
from .comm.protocol import Array, Comm
from .copy.strided import run
from .exchange.messages import WHOLE, Messages, Segment, Transfer
from .exchange.registry import alike
from .plans import bind

__all__ = ["BoundPlans", "Bundle"]


_ALIGNED = 16  # bytes; each message starts at a multiple, which suits any dtype


class _Place(NamedTuple):
    """The place of a message: its step and number, the bytes before it, its size in bytes, and its dtype."""

    step: int
    number: int
    start: int
    nbytes: int
    dtype: np.dtype[np.generic]

    def of(self, memory: Array) -> Array:
        """The message, as a view of memory."""
        return memory[self.start : self.start + self.nbytes].view(self.dtype)


class Bundle:
    """The messages of several steps on one rank. Collective.

    Args:
        steps: the messages of each step, all over one communicator. They go between different ranks: elements that a
            rank keeps are not among them.
    """

    __slots__ = ("_coming", "_double_buffer", "_leaving", "_offsets", "_receives", "_sends", "_steps")

    def __init__(self, steps: Sequence[Messages]) -> None:
        self._steps = tuple(steps)
        comm = steps[0].comm
        self._place([each.dtype for each in steps])
        starts = list(accumulate(self._sends, initial=0))
        self._offsets = [theirs[comm.rank] for theirs in comm.allgather_object(starts)]
        self._double_buffer = DoubleBuffer.of(comm, sum(self._sends))
        if self._double_buffer is None:
            self._place([each.wire for each in steps])

    def _place(self, dtypes: Sequence[np.dtype[np.generic]]) -> None:
        ranks = self._steps[0].comm.size
        self._leaving, self._sends = _places([each.leaving for each in self._steps], dtypes, ranks)
        self._coming, self._receives = _places([each.coming for each in self._steps], dtypes, ranks)

    def __call__(self, transfers: Sequence[Transfer]) -> None:
        """Run the steps, each from block to block. The transfers need no memory for messages. Collective."""
        comm, double_buffer = self._steps[0].comm, self._double_buffer
        sends, receives = sum(self._sends), sum(self._receives)
        if double_buffer is None:
            workspace = shared_workspace(comm, sends + receives)
            packed, arrived = workspace[:sends], workspace[sends : sends + receives]
        else:
            halves = double_buffer.next_half()
            packed = halves[comm.rank]
        for place in self._leaving:
            region = self._steps[place.step].leaving[place.number].region
            region.copy(transfers[place.step].block, place.of(packed))
        if double_buffer is None:
            comm.alltoallv(packed, self._sends, arrived, self._receives)
        else:
            comm.barrier()
        received: list[list[Array]] = [[np.empty(0, each.dtype)] * len(each.coming) for each in self._steps]
        begins = list(accumulate(self._receives, initial=0))
        for place in self._coming:
            peer = self._steps[place.step].coming[place.number].peer
            if double_buffer is None:
                memory = arrived
            else:
                memory = halves[peer][self._offsets[peer] :]
                place = place._replace(start=place.start - begins[peer])
            received[place.step][place.number] = place.of(memory)
        for transfer, arrays in zip(transfers, received, strict=True):
            run(transfer.unpacking(arrays))


def _places(
    steps: Sequence[Sequence[Segment]], dtypes: Sequence[np.dtype[np.generic]], ranks: int
) -> tuple[list[_Place], list[int]]:
    """The places of the messages of all steps, ordered by peer, and the bytes per peer."""
    places, counts, start = list[_Place](), [0] * ranks, 0
    order = sorted((part.peer, step, n) for step, parts in enumerate(steps) for n, part in enumerate(parts))
    for peer, step, number in order:
        nbytes = steps[step][number].region.size * dtypes[step].itemsize
        places.append(_Place(step, number, start, nbytes, dtypes[step]))
        padded = -(-nbytes // _ALIGNED) * _ALIGNED
        counts[peer] += padded
        start += padded
    return places, counts


_SMALL = 1 << 18  # the most bytes of a tensor that shares messages
_ROOM = 1 << 24  # bytes of the tensors in one group, so that workspace does not grow with their number


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
    """Plans that share their messages. Equal plans become one plan, of a field with as many components.

    Args:
        numbers: the numbers of these plans, among all.
    """

    __slots__ = ("_members", "_rounds")

    def __init__(self, numbers: Sequence[int], plans: Sequence[Plan], comm: Comm) -> None:
        equal: dict[Plan, list[int]] = {}
        for n in numbers:
            equal.setdefault(plans[n], []).append(n)
        self._members = [*equal.values()]
        columns = zip_longest(*(_steps(plan, len(members), comm.rank) for plan, members in equal.items()))
        dtypes = [plan.dtype for plan in equal]
        self._rounds = []
        for steps in columns:
            self._rounds.append(_Round({n: step for n, step in enumerate(steps) if step}, dtypes, comm))

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


class _Bound(NamedTuple):
    """A step, the shape of this rank's block after it, and whether the rank's own part is rounded like all copies."""

    step: Step
    shape: tuple[int, ...]
    rounds_kept: bool


def _steps(plan: Plan, count: int, rank: int) -> list[_Bound]:
    """The steps of a plan, for `count` tensors, as messages between pairs of ranks."""
    components = (count,) if count > 1 else ()
    bound = []
    for step in plan.steps:
        gathers = step.kind == "allgather"
        sent = replace(step, kind="exchange") if gathers else step
        shape = (*components, *step.after.local_shape(rank))
        bound.append(_Bound(sent.of_field(components), shape, gathers and step.wire is not None))
    return bound


class _Round:
    """One step of each of several plans, by the numbers of the plans. Collective."""

    __slots__ = ("_bundles", "_local", "_messages", "_shapes")

    def __init__(self, steps: dict[int, _Bound], dtypes: Sequence[np.dtype[Any]], comm: Comm) -> None:
        self._messages = {n: Messages.of(step, dtypes[n], comm, kept) for n, (step, _, kept) in steps.items()}
        self._shapes = {n: bound.shape for n, bound in steps.items()}
        self._local = [n for n, bound in steps.items() if bound.step.kind in LOCAL]
        by_ranks: dict[int, list[int]] = {}  # a communicator is one object; the order is the same on every rank
        for n in steps:
            if n in self._local:
                continue
            by_ranks.setdefault(id(self._messages[n].comm), []).append(n)
        self._bundles = []
        for ns in by_ranks.values():
            self._bundles.append((ns, Bundle([self._messages[n] for n in ns])))

    def __call__(self, current: list[Array]) -> None:
        """Replace each block by the block after its step."""
        transfers = {}
        for n, messages in self._messages.items():
            empty = np.empty(0, messages.dtype)
            transfers[n] = Transfer(messages, current[n], np.empty(self._shapes[n], messages.dtype), empty, empty)
        for numbers, bundle in self._bundles:
            bundle([transfers[n] for n in numbers])
        for n in self._local:
            run(transfers[n].unpacking())
        for n, transfer in transfers.items():
            current[n] = transfer.out


def _shares(plan: Plan, comm: Comm) -> bool:
    """Whether the messages of a plan are small, and all of them go between pairs of ranks."""
    if any(alike("auto", step, comm) != "auto" for step in plan.steps):
        return False
    kinds = {step.kind for step in plan.steps}
    nbytes = prod(plan.source.shape) * plan.dtype.itemsize
    return bool(plan.steps) and nbytes <= _SMALL and not kinds & {*WHOLE, "reduce_scatter"}


def _groups(numbers: Iterable[int], plans: Sequence[Plan]) -> list[list[int]]:
    """The numbers of plans in groups that run at once."""
    groups, room = list[list[int]](), 0
    for n in numbers:
        nbytes = prod(plans[n].source.shape) * plans[n].dtype.itemsize
        if not groups or nbytes > room:
            groups.append([])
            room = _ROOM
        groups[-1].append(n)
        room -= nbytes
    return groups


def _same_everywhere(plans: Sequence[Plan], comm: Comm) -> None:
    """Refuse lists that differ from rank to rank, with the same error on all."""
    moves = [f"{plan.source} of {plan.dtype} -> {plan.target}" for plan in plans]

    def refusal(found: Difference) -> LayoutError:
        both = f"the one at {found.at} is {found.first} on rank 0 and {found.other} on rank {found.rank}"
        return LayoutError(f"tensors come in the same order on all ranks, but {both}")

    agree(comm, "redistribute of several tensors", tuple(moves), refusal=refusal)
