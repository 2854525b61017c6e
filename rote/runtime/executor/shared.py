"""The transport by shared memory: ranks read each other's blocks, with one barrier per move."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...compiler.step import LOCAL, Step
from ..comm.cache import AtAddresses, DoubleBuffer, InHalves, gathered
from ..comm.protocol import Array
from ..copy.strided import Copy, Factor
from ..exchange.shared import Reading
from .buffers import Memories, Slot, route
from .operations import Operation, Sweep, sweeps

__all__ = ["SharedTransport"]


class SharedTransport:
    """A transport in which blocks lie in the two halves of memory that all ranks share.

    Every move takes the block from one half to the other. So no rank writes where others may still be reading: before
    it comes back to a half, all ranks have read it and come to the next barrier.

    Args:
        operations: the operations of this rank.
        double_buffer: the shared memory; each half can hold the largest block.
    """

    def __init__(self, operations: Sequence[Operation], double_buffer: DoubleBuffer) -> None:
        self._double_buffer, comm = double_buffer, double_buffer.comm
        self._reads: list[_Read] = []
        self._prepared: AtAddresses[tuple[list[Copy], int]] = AtAddresses()
        double_buffer.tenants.add(self)

        def everywhere(numbers: Collection[int]) -> Collection[int]:
            return frozenset.intersection(*gathered(comm, "a bound program", frozenset(numbers)))

        self._sweeps = sweeps(
            _scaled_first(operations), lambda operation: Reading(operation.step, operation.dtype, comm.rank), everywhere
        )

    def leave(self) -> None:
        """Let go of all views, as `Tenant` asks."""
        self._reads = []
        self._prepared.clear()

    def __call__(self, block: Array, out: Array) -> None:
        double_buffer, read = self._double_buffer, self._double_buffer.read
        calls, read = self._prepared((block, out), lambda ends: self._calls(ends[0], ends[1], read), read)
        for call in calls:
            call()
        double_buffer.read = read

    def bound(self, block: Array, out: Array) -> list[Copy]:
        return [InHalves(self._double_buffer, partial(self._calls, block, out))]

    def _calls(self, block: Array, out: Array, read: int) -> tuple[list[Copy], int]:
        """The calls of a run at whose start others may be reading half `read`, and the half they may read after it."""
        double_buffer, calls = self._double_buffer, list[Copy]()
        if not self._reads:
            ways = zip(self._sweeps, route([sweep.in_place for sweep in self._sweeps]), strict=True)
            self._reads = [_Read(sweep, way, double_buffer) for sweep, way in ways]
        turned = int(read == 0)
        halves = double_buffer.halves[double_buffer.comm.rank]
        memories = Memories((halves[turned], halves[1 - turned], block, out))
        for each in self._reads:
            if each.meets:
                calls.append(double_buffer.meet)
                read = each.source.memory ^ turned
            elif each.target.memory ^ turned == read:
                calls.append(double_buffer.meet)
                read = -1
            calls += each.bound(memories, turned)
        return calls, read


def _scaled_first(operations: Sequence[Operation]) -> list[Operation]:
    """The operations, extended so that every move finds its block in shared memory, already multiplied by factors."""
    expanded: list[Operation] = []
    for operation in operations:
        if isinstance(operation.run, Step) and (operation.before or not expanded):
            expanded.append(Operation.multiply(operation.shape, operation.dtype, operation.before))
            operation = replace(operation, before=())
        expanded.append(operation)
    return expanded


class _Read:
    """A sweep in shared memory, bound to everything but the user's blocks.

    Attributes:
        source, target: the places of its block before and after it.
        meets: whether it reads blocks that others have written, so that all ranks must meet before.
    """

    __slots__ = ("_factors", "_peers", "_reading", "_reads", "_run", "meets", "source", "target")

    def __init__(self, sweep: Sweep[Reading], way: tuple[int, int], double_buffer: DoubleBuffer) -> None:
        first, last, mine = sweep.first, sweep.last, double_buffer.halves[double_buffer.comm.rank]
        self.source: Slot = Slot(way[0], first.shape, first.dtype)
        self.target: Slot = Slot(way[1], last.out_shape, last.out_dtype)
        self.meets: bool = sweep.move is not None and sweep.move.step.kind not in LOCAL
        self._reading = sweep.move
        self._run = sweep.bind(mine)
        self._factors: Sequence[Factor] = ()
        self._peers: list[list[Array]] = []  # the blocks of all ranks, with the halves as they are, and swapped
        self._reads: list[Any] = []
        if sweep.move is not None:
            self._factors = [Factor.of(factor, first.out_shape) for factor in first.after]
            for half in (way[0], way[0] ^ 1):
                self._peers.append([halves[half].view(first.dtype) for halves in double_buffer.halves])
        if sweep.reader is not None:
            self._reads = [self._run.reads(blocks) for blocks in self._peers]

    def bound(self, memories: Memories, turned: int) -> list[Copy]:
        """The calls, in order, that do the sweep in given memories; `turned` is 1 if the halves are swapped, else 0."""
        out, copies = self.target.of(memories), list[Copy]()
        if self._reading is None:
            copies = self._run.bound(self.source.of(memories), out)
        elif self._reads:
            copies = self._run.bound(self._reads[turned], out)
        else:
            copies = self._reading.copies(self._peers[turned], out, self._factors)
        return copies
