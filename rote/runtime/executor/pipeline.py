"""Moves whose messages travel in chunks, interleaved with the steps of the work before and after them."""

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

_LEAST = 1 << 20  # bytes that a rank receives; fewer fit into the buffers of the link before any work is done

_BUSY = 3
"""The time in which a core sends and receives a byte by TCP, in copies of a byte; it does no other work meanwhile.

Measured at 2 and 10 Gbit/s, where a byte takes the time of 7 to 8 copies and of 2: with 128 cubed, chunks save a factor
of 1.2 to 1.3 at the first, and cost 1.1 to 1.2 at the second.
"""

_WHOLE = (*LOCAL, *WHOLE, "allgather", "reduce_scatter")


def chunked(operations: Sequence[Operation], machine: Callable[[], Machine], least: int = 0) -> list[Operation]:
    """The operations, with the messages of each move cut into chunks if the model says that this pays.

    If a link is slower than the cores that feed it, the cores wait, and can work meanwhile. With n chunks, only an n-th
    of the shorter of the wait and the work still counts, and each chunk costs a message to every peer. So n is the root
    of that time over the cost of a chunk; nothing is cut if that saves nothing.

    Args:
        machine: makes the machine of the ranks; called if some move sends so much that chunks may pay.
        least: the fewest chunks of a move with work beside it.
    """
    run_list = list(operations)
    for n, operation in enumerate(operations):
        step = operation.run
        if not isinstance(step, Step) or step.kind in _WHOLE or step.before.partial or step.after.partial:
            continue
        early = None
        if n and not (n > 1 and isinstance(operations[n - 2].run, Step)):  # else the earlier move has taken the work
            early = _along(operations[n - 1], operations[n - 1].out_shape == operation.shape)
        late = None
        if n + 1 < len(operations):
            late = _along(operations[n + 1], operations[n + 1].shape == operation.out_shape)
        if (early, late) == (None, None):
            continue
        nbytes = int(flow(step).elements.max()) * step.sent(operation.dtype.itemsize)
        number = _number(step, operation.dtype.itemsize, nbytes, machine()) if nbytes >= _LEAST else 0
        if max(least, number):
            run_list[n] = replace(operation, chunks=Chunks(early, late, max(least, number)))
    return run_list


def _along(operation: Operation, fits: bool) -> int | None:
    return operation.run.along if fits and isinstance(operation.run, LocalWork) else None


def _number(step: Step, itemsize: int, nbytes: int, machine: Machine) -> int:
    """The number of chunks that pays by the model, 0 for none; the same on all ranks. `nbytes` is the most received."""
    times = machine.along(step.before.grid.order)
    peers = prod(step.before.grid.shape[g] for g in step.grid_modes) - 1
    block = prod(step.before.max_local_shape()) * itemsize
    idle = max(times.byte_time) - _BUSY * max(times.copy_time)
    work = 2 * block * max(times.copy_time)  # at least: a transform takes longer than reading and writing its block
    hidden = min(nbytes * idle, work)
    cost = peers * max(times.latency)
    best = int(sqrt(hidden / cost)) if hidden > 0 and cost else CHUNKS[1]
    number = min(max(best, CHUNKS[0]), CHUNKS[1])
    return number if hidden / number + number * cost < hidden else 0


class Piped:
    """A move in chunks, with the work before it if that runs in steps, and the work behind it if that reads messages.

    Args:
        method: the method of the move.
        transfer: makes the transfer of the messages, for given memories.
        made: makes the work before, in steps, for given memories; None without such work.
        read: makes the work behind, in steps; None without such work.
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
        before = () if self._made is None else self._made(memories)
        self._method.run(transfer, before, after)

    def bound(self, memories: Memories) -> list[Copy]:
        """The calls that do the move between the blocks of given memories."""
        return [partial(self, memories)]
