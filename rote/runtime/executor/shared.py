"""The transport by shared memory: ranks read each other's blocks, with one barrier per move."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ...compiler.step import LOCAL, Step
from ..comm.double_buffer import DoubleBuffer
from ..comm.protocol import Array
from ..copy.strided import Factor
from ..exchange.shared import Reading
from .buffers import Memories, Slot, route
from .operations import Operation, Sweep, sweeps
from .transport import Call, bind_work, step_of

__all__ = ["SharedTransport"]


class SharedTransport:
    """Blocks lie in the two halves of memory that all ranks see.

    The block goes from one half to the other with every move. So nobody writes where others may still be reading: they
    have come to the next barrier by then, and have read before that.

    Args:
        operations: of this rank.
        double_buffer: with halves that hold the largest block.
    """

    def __init__(self, operations: Sequence[Operation], double_buffer: DoubleBuffer) -> None:
        self._double_buffer, comm = double_buffer, double_buffer.comm
        self._calls: list[Call] = []
        double_buffer.tenants.add(self)

        def everywhere(numbers: Collection[int]) -> Collection[int]:
            return frozenset.intersection(*comm.allgather_object(frozenset(numbers)))

        self._sweeps = sweeps(
            _scaled_first(operations),
            lambda operation: Reading(step_of(operation), operation.dtype, comm.rank),
            everywhere,
        )

    def leave(self) -> None:
        """Let go of all views, as `Tenant` asks."""
        self._calls = []

    def start(self, block: Array, out: Array) -> tuple[list[Call], Memories]:
        double_buffer = self._double_buffer
        if not self._calls:
            ways = zip(self._sweeps, route([sweep.in_place for sweep in self._sweeps]), strict=True)
            self._calls = [_Read(sweep, way, double_buffer) for sweep, way in ways]
        halves, free = double_buffer.halves[double_buffer.comm.rank], double_buffer.free
        return self._calls, Memories((halves[free], halves[1 - free], block, out), free)


def _scaled_first(operations: Sequence[Operation]) -> list[Operation]:
    """Operations in which moves find their block in workspace, where others can read it, already multiplied."""
    expanded: list[Operation] = []
    for operation in operations:
        if isinstance(operation.run, Step) and (operation.before or not expanded):
            expanded.append(Operation.multiply(operation.shape, operation.dtype, operation.before))
            operation = replace(operation, before=())
        expanded.append(operation)
    return expanded


class _Read:
    """A sweep in shared memory."""

    __slots__ = ("_double_buffer", "_factors", "_meets", "_peers", "_reading", "_reads", "_run", "_source", "_target")

    def __init__(self, sweep: Sweep[Reading], way: tuple[int, int], double_buffer: DoubleBuffer) -> None:
        first, last, mine = sweep.first, sweep.last, double_buffer.halves[double_buffer.comm.rank]
        self._double_buffer = double_buffer
        self._source = Slot(way[0], first.shape, first.dtype)
        self._target = Slot(way[1], last.out_shape, last.out_dtype)
        self._reading = sweep.move
        self._meets = sweep.move is not None and sweep.move.step.kind not in LOCAL
        self._run = bind_work(sweep, mine)
        self._factors: Sequence[Factor] = ()
        self._peers: list[list[Array]] = []  # all blocks, as the halves are and turned round
        self._reads: list[Any] = []
        if sweep.move is not None:
            self._factors = [Factor.of(factor, first.out_shape) for factor in first.after]
            self._peers = [
                [halves[way[0] ^ turned].view(first.dtype) for halves in double_buffer.halves] for turned in (0, 1)
            ]
        if sweep.reader is not None:
            self._reads = [self._run.reads(blocks) for blocks in self._peers]

    def __call__(self, memories: Memories) -> None:
        double_buffer, reading, out = self._double_buffer, self._reading, self._target.of(memories)
        if self._meets:
            double_buffer.meet()
            double_buffer.read = self._source.memory ^ memories.turned
        elif self._target.memory ^ memories.turned == double_buffer.read:
            double_buffer.meet()
        if reading is None:
            self._run(self._source.of(memories), out)
        elif self._reads:
            self._run(self._reads[memories.turned], out)
        else:
            reading.run(self._peers[memories.turned], out, self._factors)
