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

_BUSY = 1.3e-9
"""Seconds for which TCP keeps a core busy with a byte that is sent and received; the core does no other work meanwhile.

Measured for 128 cubed on two hosts of two ranks each, two to a core, without a limit of the network.
"""

_BESIDE = 4
"""The time of the work before a move, or of that after it, in copies of the block: half a transform."""

_PIECES = 2
"""How much longer work beside a move takes because it goes by pieces, in copies of the block.

Measured in the same way, where chunks hid nothing: 7 ms for two moves, each of 8 MiB per rank.
"""

_WHOLE = (*LOCAL, *WHOLE, "allgather", "reduce_scatter")


def chunked(operations: Sequence[Operation], machine: Callable[[], Machine], least: int = 0) -> list[Operation]:
    """The operations, with the messages of each move cut into chunks if the model says that this pays.

    If a link is slower than the cores that feed it, the cores wait, and can work meanwhile. With n chunks, only an n-th
    of the shorter of the wait and the work still counts, and each chunk costs a message to every peer. So n is the root
    of that time over the cost of a chunk. Work in pieces takes longer, so nothing is cut if that costs what is saved.

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
        works = (early is not None) + (late is not None)
        number = _number(step, operation.dtype.itemsize, nbytes, works, machine()) if nbytes >= _LEAST else 0
        if max(least, number):
            run_list[n] = replace(operation, chunks=Chunks(early, late, max(least, number)))
    return run_list


def _along(operation: Operation, fits: bool) -> int | None:
    return operation.run.along if fits and isinstance(operation.run, LocalWork) else None


def _number(step: Step, itemsize: int, nbytes: int, works: int, machine: Machine) -> int:
    """The number of chunks that pays by the model, 0 for none; the same on all ranks.

    Args:
        nbytes: the most that a rank receives.
        works: 1 or 2, for work before the move, after it, or both.
    """
    times = machine.along(step.before.grid.order)
    peers = prod(step.before.grid.shape[g] for g in step.grid_modes) - 1
    copied = prod(step.before.max_local_shape()) * itemsize * max(times.copy_time)
    idle = max(times.byte_time) - _BUSY
    hidden = min(nbytes * idle, works * _BESIDE * copied)
    cost = peers * max(times.latency)
    best = int(sqrt(hidden / cost)) if hidden > 0 and cost else CHUNKS[1]
    number = min(max(best, CHUNKS[0]), CHUNKS[1])
    return number if hidden / number + number * cost + _PIECES * copied < hidden else 0


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
