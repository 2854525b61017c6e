"""Where the messages of a move are cut into chunks, so that work before and after it goes on while they travel.

Chunks pay where a link is slower than the cores that feed it: the cores wait for it, and can work meanwhile. How a move
goes in chunks is in `exchange.point_to_point`; how many there are is decided here, by the model of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod, sqrt

from ..compiler.cost import flow
from ..compiler.step import LOCAL, Step
from ..machines.machine import TCP_TIME, Machine
from .exchange.messages import WHOLE
from .exchange.point_to_point import Chunks
from .operations import LocalWork, Operation

__all__ = ["CHUNKS", "chunked"]

CHUNKS = (4, 8)
"""The fewest chunks that are worth their messages, and the most."""

_LEAST = 1 << 20  # bytes that a rank receives; fewer fit into the buffers of the link before any work is done
_WORK = 4  # the time of the work before a move, or of that after it, in copies of the block: half a transform
_IN_PIECES = 2  # how much longer all work takes because it goes by pieces, in copies of the block
_NEVER = (*LOCAL, *WHOLE, "allgather", "reduce_scatter")  # kinds of steps that are not cut


def chunked(operations: Sequence[Operation], machine: Callable[[], Machine], least: int = 0) -> list[Operation]:
    """The operations, with the messages of each move cut into chunks if the model of the machine says that this pays.

    A move with work before or after it has at least `least` chunks. `machine` is called only if messages are long.
    """
    cut = list(operations)
    for n, operation in enumerate(operations):
        step = operation.run
        if not isinstance(step, Step) or step.kind in _NEVER or step.before.partial or step.after.partial:
            continue

        early = late = None
        if n and not (n > 1 and isinstance(operations[n - 2].run, Step)):  # else the earlier move has taken the work
            early = _along(operations[n - 1], operations[n - 1].out_shape == operation.shape)
        if n + 1 < len(operations):
            late = _along(operations[n + 1], operations[n + 1].shape == operation.out_shape)
        works = (early is not None) + (late is not None)
        if not works:
            continue

        nbytes = int(flow(step).elements.max()) * step.sent(operation.dtype.itemsize)
        number = _number(step, operation.dtype.itemsize, nbytes, works, machine()) if nbytes >= _LEAST else 0
        if max(least, number):
            cut[n] = replace(operation, chunks=Chunks(early, late, max(least, number)))
    return cut


def _along(operation: Operation, fits: bool) -> int | None:
    return operation.run.along if fits and isinstance(operation.run, LocalWork) else None


def _number(step: Step, itemsize: int, nbytes: int, works: int, machine: Machine) -> int:
    """The number of chunks that pays by the model, 0 for none; the same on all ranks.

    What chunks may hide is the shorter of the wait for the link and the work. With n chunks, an n-th of it still
    counts, and each chunk costs a message to every peer, so n is the root of that time over the cost of a chunk.

    Args:
        nbytes: the most that a rank receives.
        works: 1 for work before or after the move, and 2 for both.
    """
    times = machine.along(step.before.grid)
    peers = prod(step.before.grid.shape[g] for g in step.grid_modes) - 1
    copied = prod(step.before.max_local_shape()) * itemsize * max(times.copy_time)

    wait = nbytes * (max(times.byte_time) - TCP_TIME)
    hidden = min(wait, works * _WORK * copied)
    cost = peers * max(times.latency)

    best = int(sqrt(hidden / cost)) if hidden > 0 and cost else CHUNKS[1]
    number = min(max(best, CHUNKS[0]), CHUNKS[1])
    return number if hidden / number + number * cost + _IN_PIECES * copied < hidden else 0
