"""A walk on ranks that send messages: each has two blocks of scratch of its own.

Messages lie where no block does: in scratch, or in the output as long as the result is not there. A kernel behind a
move reads its block straight out of the messages, if it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rote.compiler.step import Step
from rote.runtime.autotune import chosen
from rote.runtime.comm.protocol import Comm
from rote.runtime.copy.strided import Factor
from rote.runtime.exchange.messages import Taken, Transfer
from rote.runtime.exchange.step import Exchange

from ..kernels.boxes import Box, boxes, whole
from ..kernels.gather import Gather, gathers
from ..kernels.kernel import Kernel
from ..kernels.passes import BoundKernel
from ..tuning import Tuning
from .buffers import FIRST, IN, OUT, SECOND, Slot, ways
from .operations import Cast, Multiply, Operation
from .padding import BoundResize

__all__ = ["SentWalk"]

Array = npt.NDArray[Any]
Scratch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class _Turn:
    """Operations that are done in one sweep: one, or a move and the kernel behind it.

    Attributes:
        first, last: the same, if it is one.
        exchange: what moves.
        found: the boxes that the kernel reads: of the block, which is number 0, and of the messages.
        behind: whether it stands behind a move.
    """

    first: Operation
    last: Operation
    exchange: Exchange | None = None
    found: tuple[Box, ...] | None = None
    behind: bool = False

    @property
    def in_place(self) -> bool:
        """Whether the block may come out where it went in."""
        return self.exchange is None and self.last.in_place

    def apart(self) -> tuple[_Turn, _Turn]:
        """The move by itself, and the kernel behind it."""
        return _Turn(self.first, self.first, self.exchange), _Turn(self.last, self.last, behind=True)

    @property
    def messages(self) -> tuple[int, int]:
        """Bytes of what is packed, and of what has arrived."""
        packed, arrived = (0, 0) if self.exchange is None else self.exchange.sizes
        return packed * self.first.dtype.itemsize, arrived * self.first.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the largest of its blocks and messages."""
        return max(self.first.nbytes, self.last.nbytes, *self.messages)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the block lies before and after a turn, and where its messages are packed and arrive."""

    here: int
    there: int
    packed: int = FIRST
    arrived: int = FIRST


class SentWalk:
    """The operations of a walk, bound to a communicator. Collective.

    Args:
        operations: of this rank.
        comm: of all.
        out: bytes of the output.
        ortho: whether cosine and sine transforms are orthogonal.
        tuning: how it is made fast: by which method messages travel.

    Attributes:
        needed: bytes that each of two blocks of scratch must have; `bind` it to them before the first call.
        held: bytes of memory of their own that the methods of exchange hold.
    """

    def __init__(self, operations: Sequence[Operation], comm: Comm, out: int, ortho: bool, tuning: Tuning) -> None:
        self._ortho = ortho
        turns = _turns(operations, comm, ortho, tuning)
        self._placed = _placed(turns, out)
        self.needed = max(turn.nbytes for turn, _ in self._placed)
        self.held = max((turn.exchange.held for turn in turns if turn.exchange is not None), default=0)
        self._calls: list[_Call] = []

    def bind(self, scratch: Scratch) -> None:
        """Take two blocks of scratch, which other walks of the communicator may have as well."""
        self._calls = [_Call(turn, places, scratch, self._ortho) for turn, places in self._placed]

    def __call__(self, source: Array, target: Array) -> None:
        """Walk a block into another; both are plain."""
        for call in self._calls:
            call(source, target)


class _Call:
    """A turn with its memory, but for the user's own."""

    __slots__ = ("_after", "_arrived", "_before", "_exchange", "_here", "_packed", "_run", "_there")

    def __init__(self, turn: _Turn, places: _Places, scratch: Scratch, ortho: bool) -> None:
        first, last, dtype = turn.first, turn.last, turn.first.dtype
        self._exchange, self._run = turn.exchange, _bound(turn, scratch, ortho)
        self._here = Slot.make(places.here, first.shape, dtype, scratch)
        self._there = Slot.make(places.there, last.out_shape, last.out_dtype, scratch)
        packed, arrived = (0, 0) if turn.exchange is None else turn.exchange.sizes
        self._packed = Slot.make(places.packed, (packed,), dtype, scratch)
        self._arrived = Slot.make(places.arrived, (arrived,), dtype, scratch)
        self._before = [Factor.of(one, first.shape) for one in first.before]
        self._after = [Factor.of(one, first.out_shape) for one in first.after]

    def __call__(self, source: Array, target: Array) -> None:
        block, out = self._here.of(source, target), self._there.of(source, target)
        run, exchange = self._run, self._exchange
        if exchange is None:
            if isinstance(run, Gather):
                run(run.reads([block.reshape(-1)]), out)
            elif run is not None:
                run(block, out)
            return
        buffers = self._packed.of(source, target), self._arrived.of(source, target)
        if isinstance(run, Gather):
            flat = block.reshape(-1)
            taken = Taken(exchange.messages, block, out, *buffers, self._before)
            taken.take = lambda found: run(run.reads([flat, *found]), out)
            exchange.run(taken)
        else:
            exchange.run(Transfer(exchange.messages, block, out, *buffers, self._before, self._after))


def _bound(turn: _Turn, scratch: Scratch, ortho: bool) -> Multiply | Cast | BoundResize | BoundKernel | Gather | None:
    """What is done beside a move, if anything."""
    run = turn.last.run
    if isinstance(run, Step):
        return None
    if not isinstance(run, Kernel):
        return run
    if turn.found is not None:
        return Gather(run, turn.found, turn.first.after, scratch)
    if turn.behind and gathers(run, ortho):
        return Gather(run, whole(run.shape), (), scratch)  # tiles, and so bits, as if it were one with the move
    return BoundKernel(run, scratch, ortho)


def _turns(operations: Sequence[Operation], comm: Comm, ortho: bool, tuning: Tuning) -> list[_Turn]:
    """What is done in one sweep."""
    found, behind = list[_Turn](), False
    rest = iter(enumerate(operations))
    for n, one in rest:
        if not isinstance(one.run, Step):
            found.append(_Turn(one, one, behind=behind))
            behind = False
            continue
        named = tuning.method != "auto"
        method = tuning.method if named else chosen(one.run, one.dtype, comm, tuning.tune)
        exchange = Exchange(one.run, one.dtype, comm, method)
        then = operations[n + 1] if n + 1 < len(operations) else one
        read = _read(exchange, one, then, ortho)
        if read is not None:
            next(rest)
        found.append(_Turn(one, one if read is None else then, exchange, read))
        behind = read is None
    return found


def _read(exchange: Exchange, move: Operation, then: Operation, ortho: bool) -> tuple[Box, ...] | None:
    """What the kernel behind a move reads of the block and of messages; None if it cannot."""
    kernel, messages = then.run, exchange.messages
    if not isinstance(kernel, Kernel) or not gathers(kernel, ortho) or kernel.shape != move.out_shape:
        return None
    if not exchange.unpacks or (move.before and messages.kept is not None):
        return None  # what is read of the block is not packed, where its factors would be multiplied in
    regions = [(number, part.region) for number, part in enumerate(messages.coming, 1)]
    if messages.kept is not None:
        regions.append((0, messages.kept[1]))
    return boxes(regions, len(kernel.shape))


def _placed(turns: Sequence[_Turn], out: int) -> list[tuple[_Turn, _Places]]:
    """Where the blocks and messages of turns lie, if the output has so many bytes.

    Where there is no third place for messages, an exchange carries what a rank keeps along with them: they may arrive
    where the block was then.
    """
    found = list[tuple[_Turn, _Places]]()
    for number, (turn, (here, there)) in enumerate(zip(turns, ways([turn.in_place for turn in turns]), strict=True)):
        packed, arrived = there, FIRST if there != FIRST else SECOND
        if turn.exchange is not None:
            packs, arrives = turn.messages
            tight = here != IN
            if there == OUT:
                packed, arrived = (SECOND, FIRST) if here != SECOND else (FIRST, SECOND)
                if tight and packs <= out:
                    packed, arrived, tight = OUT, packed, False
            elif tight and arrives <= out:
                arrived, tight = OUT, False
            if tight and arrives:
                if turn.found is not None:
                    return _placed([*turns[:number], *turn.apart(), *turns[number + 1 :]], out)
                turn = replace(turn, exchange=turn.exchange.carrying())
        found.append((turn, _Places(here, there, packed, arrived)))
    return found
