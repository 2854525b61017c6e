"""A walk on ranks that share memory: they read each other's scratch, and meet at one barrier per move.

The block goes from one half of the scratch to the other with every move. So nobody writes where others may still be
reading: they have come to the next barrier by then, and have read before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from rote.compiler.step import LOCAL, Step
from rote.runtime.comm.double_buffer import DoubleBuffer
from rote.runtime.comm.protocol import Comm
from rote.runtime.copy.strided import Factor
from rote.runtime.exchange.reading import Reading

from ..kernels.boxes import Box, boxes, whole
from ..kernels.gather import Gather, Reads, gathers
from ..kernels.kernel import Kernel
from ..kernels.passes import BoundKernel
from .buffers import Slot, ways
from .operations import Multiply, Operation

__all__ = ["ReadWalk"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Turn:
    """Operations that are done in one sweep: one, or a move and the kernel behind it."""

    first: Operation
    last: Operation
    reading: Reading | None = None
    found: tuple[Box, ...] | None = None

    @property
    def in_place(self) -> bool:
        return self.reading is None and self.last.in_place


class ReadWalk:
    """The operations of a walk, bound to memory that ranks share. Collective.

    Args:
        operations: of this rank.
        room: with halves that hold the largest block.
        ortho: whether cosine and sine transforms are orthogonal.
    """

    def __init__(self, operations: Sequence[Operation], double_buffer: DoubleBuffer, ortho: bool) -> None:
        self._double_buffer, self._ortho = double_buffer, ortho
        self._turns = _turns(operations, double_buffer.comm, ortho)
        if self._turns[0].reading is not None:  # others read it, so it must lie in scratch
            first = self._turns[0].first
            copy = Operation(Multiply(), first.shape, first.shape, first.dtype, first.dtype)
            self._turns.insert(0, _Turn(copy, copy))
        self._calls = self._bound()
        double_buffer.tenants.add(self)

    def _bound(self) -> list[list[_Call]]:
        """The calls in the room's halves, by the one in which the block begins."""
        return [_calls(self._turns, begin, self._double_buffer, self._ortho) for begin in (0, 1)]

    def leave(self) -> None:
        """As `Tenant` says."""
        self._calls = []

    def __call__(self, source: Array, target: Array) -> None:
        """Walk a block into another; both are plain."""
        if not self._calls:
            self._calls = self._bound()
        for call in self._calls[self._double_buffer.free]:
            call(self._double_buffer, source, target)


def _turns(operations: Sequence[Operation], comm: Comm, ortho: bool) -> list[_Turn]:
    """The turns of a rank; what is fused is fused on all ranks."""
    moves = {n: one.run for n, one in enumerate(operations) if isinstance(one.run, Step)}
    readings = {n: Reading(step, operations[n].dtype, comm.rank) for n, step in moves.items()}
    found = {}
    for n, reading in readings.items():
        kernel = operations[n + 1].run if n + 1 < len(operations) else None
        if not isinstance(kernel, Kernel) or not gathers(kernel, ortho) or kernel.shape != operations[n].out_shape:
            continue
        if reading.copies:
            found[n] = boxes(((region.peer, region) for region in reading.regions), len(kernel.shape))
    told = comm.allgather_object(frozenset(n for n, some in found.items() if some is not None))
    fused = frozenset.intersection(*told)
    turns: list[_Turn] = []
    for n, one in enumerate(operations):
        if n in readings:
            if one.before:
                early = Operation(Multiply(one.before), one.shape, one.shape, one.dtype, one.dtype)
                turns.append(_Turn(early, early))
            last = operations[n + 1] if n in fused else one
            turns.append(_Turn(one, last, readings[n], found.get(n) if n in fused else None))
        elif n - 1 not in fused:
            turns.append(_Turn(one, one))
    return turns


def _calls(turns: Sequence[_Turn], begin: int, double_buffer: DoubleBuffer, ortho: bool) -> list[_Call]:
    found, moved = list[_Call](), False
    for turn, (here, there) in zip(turns, ways([turn.in_place for turn in turns], begin), strict=True):
        found.append(_Call(turn, here, there, double_buffer, ortho, moved))
        moved = turn.reading is not None and turn.found is None
    return found


class _Call:
    """One turn with its memory, but for the user's own."""

    __slots__ = ("_after", "_here", "_memories", "_reading", "_reads", "_run", "_there")

    def __init__(
        self, turn: _Turn, here: int, there: int, double_buffer: DoubleBuffer, ortho: bool, moved: bool
    ) -> None:
        first, last = turn.first, turn.last
        mine = double_buffer.halves[double_buffer.comm.rank]
        self._here = Slot.make(here, first.shape, first.dtype, mine)
        self._there = Slot.make(there, last.out_shape, last.out_dtype, mine)
        self._reading = turn.reading
        self._memories: list[Array] = []
        self._after: list[Factor] = []
        self._run: Multiply | BoundKernel | Gather | Any = last.run
        if turn.reading is not None:
            self._memories = [halves[here].view(first.dtype) for halves in double_buffer.halves]
            self._after = [Factor.of(one, first.out_shape) for one in first.after]
        self._reads: Reads = []
        if isinstance(last.run, Kernel) and turn.found is not None:
            self._run = gather = Gather(last.run, turn.found, first.after, mine)
            self._reads = gather.reads(self._memories)
        elif isinstance(last.run, Kernel) and moved and gathers(last.run, ortho):
            self._run = Gather(last.run, whole(last.shape), (), mine)
        elif isinstance(last.run, Kernel):
            self._run = BoundKernel(last.run, mine, ortho)

    def __call__(self, double_buffer: DoubleBuffer, source: Array, target: Array) -> None:
        reading, run, out = self._reading, self._run, self._there.of(source, target)
        if reading is not None and reading.step.kind not in LOCAL:
            double_buffer.meet()
            double_buffer.read = self._here.at
        elif self._there.at == double_buffer.read:
            double_buffer.meet()
        if reading is None:
            block = self._here.of(source, target)
            if isinstance(run, Gather):
                run(run.reads([block.reshape(-1)]), out)
            else:
                run(block, out)
        elif isinstance(run, Gather):
            run(self._reads, out)
        else:
            reading.run(self._memories, out, self._after)
