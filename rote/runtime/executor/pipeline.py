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

_LEAST = 1 << 20  # bytes that a rank receives: fewer are in the buffers of the link before any work is done

_BUSY = 3
"""Copies of a byte for which a core is busy to send and receive it, by TCP: it does no other work meanwhile.

Measured at 2 and 10 Gbit/s, with 7 to 8 copies and 2 in the time of a byte: chunks save 1.2 to 1.3 of 128 cubed at the
first, and cost 1.1 to 1.2 at the second.
"""

_WHOLE = (*LOCAL, *WHOLE, "allgather", "reduce_scatter")


def chunked(operations: Sequence[Operation], machine: Callable[[], Machine], least: int = 0) -> list[Operation]:
    """Operations in which the messages of each move are in chunks if that pays by the model.

    While a link is slower than the cores that feed it, they wait, and may work meanwhile. In n chunks the shorter of
    this wait and the work counts as its n-th part alone; each chunk costs a message to every peer. So n is the root of
    that time over a chunk's, and there are none if that saves nothing.

    Args:
        machine: makes the machine that the ranks run on, if some move has so much to send that chunks may pay.
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
    """The chunks that pay by the model, the same on all ranks; 0 for none. A rank receives `nbytes` at most."""
    times = machine.along(step.before.grid.order)
    peers = prod(step.before.grid.shape[g] for g in step.grid_modes) - 1
    block = prod(step.before.max_local_shape()) * itemsize
    idle = max(times.byte_time) - _BUSY * max(times.copy_time)
    work = 2 * block * max(times.copy_time)  # a transform takes longer than to read and write its block
    hidden = min(nbytes * idle, work)
    cost = peers * max(times.latency)
    best = int(sqrt(hidden / cost)) if hidden > 0 and cost else CHUNKS[1]
    number = min(max(best, CHUNKS[0]), CHUNKS[1])
    return number if hidden / number + number * cost < hidden else 0


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
        before = () if self._made is None else self._made(memories)
        self._method.run(transfer, before, after)

    def bound(self, memories: Memories) -> list[Copy]:
        """The move between the very blocks of some memories."""
        return [partial(self, memories)]
