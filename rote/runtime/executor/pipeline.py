"""Moves whose messages travel in chunks between the steps of the work on both sides of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod, sqrt
from typing import Any

from ...compiler.cost import flow
from ...compiler.machine import Machine
from ...compiler.step import LOCAL, Step
from ..copy.strided import Copy
from ..exchange.messages import WHOLE, Transfer
from ..exchange.pipelined import Chunks, Pipelined, Progress
from .buffers import Memories
from .operations import LocalWork, Operation

__all__ = ["CHUNKS", "Piped", "chunked"]

CHUNKS = (4, 8)
"""The fewest chunks that are worth their messages, and the most."""

_WHOLE = (*LOCAL, *WHOLE, "allgather", "reduce_scatter")


def chunked(operations: Sequence[Operation], machine: Machine, least: int = 0) -> list[Operation]:
    """Operations in which the messages of each move are in chunks if that pays by the model.

    In n chunks the shorter of link and work counts as its n-th part alone; each chunk costs a message to every peer.
    So n is the root of that time over a chunk's, and there are none if it is less than 2.

    Args:
        machine: its times.
        least: chunks that a move with work beside it has anyway.
    """
    run_list = list(operations)
    for n, operation in enumerate(operations):
        step = operation.run
        if not isinstance(step, Step) or step.kind in _WHOLE or step.before.partial or step.after.partial:
            continue
        early = None
        if n and not (n > 1 and isinstance(operations[n - 2].run, Step)):  # else that move has taken the work
            early = _along(operations[n - 1], operations[n - 1].out_shape == operation.shape)
        late = None
        if n + 1 < len(operations):
            late = _along(operations[n + 1], operations[n + 1].shape == operation.out_shape)
        number = max(least, _number(step, operation.dtype.itemsize, machine))
        if number and (early, late) != (None, None):
            run_list[n] = replace(operation, chunks=Chunks(early, late, number))
    return run_list


def _along(operation: Operation, fits: bool) -> int | None:
    return operation.run.along if fits and isinstance(operation.run, LocalWork) else None


def _number(step: Step, itemsize: int, machine: Machine) -> int:
    """The chunks that pay by the model, the same on all ranks; 0 for none."""
    times = machine.along(step.before.grid.order)
    peers = prod(step.before.grid.shape[g] for g in step.grid_modes) - 1
    block = prod(step.before.max_local_shape()) * itemsize
    link = int(flow(step).elements.max()) * itemsize * max(times.byte_time)
    hidden = min(link, 2 * block * max(times.copy_time))  # a transform takes longer than to read and write its block
    cost = machine.step_time + peers * max(times.latency)
    number = int(sqrt(hidden / cost)) if cost else CHUNKS[1]
    return 0 if number < 2 else min(max(number, CHUNKS[0]), CHUNKS[1])


class Piped:
    """A move in chunks, with the work before it, if that goes on in steps, and the work behind it, if it reads them.

    Args:
        method: of the move.
        transfer: of the messages, between some memories.
        made: the work before between some memories, in steps.
        read: the work behind, in steps.
    """

    __slots__ = ("_made", "_method", "_read", "_transfer")

    def __init__(
        self,
        method: Pipelined,
        transfer: Callable[[Memories], Transfer],
        made: Callable[[Memories], Progress] | None,
        read: Callable[[Any, Any], Progress] | None,
    ) -> None:
        self._method, self._transfer, self._made, self._read = method, transfer, made, read

    def __call__(self, memories: Memories) -> None:
        transfer = self._transfer(memories)
        after = None
        if self._read is not None:
            arrived = [transfer.arrived[part.at] for part in self._method.coming]
            after = self._read([transfer.block.reshape(-1), *arrived], transfer.out)
        self._method.run(transfer, () if self._made is None else self._made(memories), after)

    def bound(self, memories: Memories) -> list[Copy]:
        """The move between the very blocks of some memories."""
        return [partial(self, memories)]
