"""The transport by messages: a rank packs, sends by a method of exchange, and unpacks, in its own workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..comm.cache import shared_workspace
from ..comm.protocol import Array, Comm
from ..comm.segments import LINE
from ..copy.regions import Region
from ..copy.strided import Copy, Factor
from ..exchange.messages import Messages, Transfer
from ..exchange.method import Method
from ..exchange.pipelined import Pipelined, Progress
from ..exchange.registry import METHODS, alike, bind_method
from .buffers import FIRST, IN, OUT, SECOND, Memories, Scratch, Slot, route
from .operations import LocalWork, Operation, Sweep, sweeps
from .pipeline import Piped

__all__ = ["MessageMove", "MessageTransport"]


class MessageMove:
    """A step whose messages travel by a method of exchange. Collective.

    Args:
        operation: the operation, whose step moves elements.
        comm: the communicator of the whole grid.
        method: a name of `METHODS`, or "auto". Reductions and broadcasts use MPI's own collectives.

    Attributes:
        messages: the messages of the step.
        name: the name of the method in `METHODS`; empty for MPI's own collectives and for local steps.
        method: the method; it runs the step by transfers of these messages, with workspace of its sizes.

    Raises:
        CommError: the method cannot work on these ranks.
    """

    __slots__ = ("_comm", "messages", "method", "name")

    name: str
    method: Method

    def __init__(self, operation: Operation, comm: Comm, method: str) -> None:
        self._comm = comm
        self.messages: Messages = Messages.of(operation.step, operation.dtype, comm)
        if operation.chunks is None:
            if self.messages.step.wire is not None:
                method = alike(method, self.messages.step, comm)
            self.name, self.method = bind_method(method, self.messages)
        else:
            self.name, self.method = "pipelined", Pipelined(self.messages, operation.chunks)

    def with_kept(self) -> MessageMove:
        """The move with the kept elements as a message to the rank itself, for a method in which messages arrive.

        Not collective: such a method can be made on one rank alone.
        """
        if not self.name:
            return self
        move = object.__new__(MessageMove)
        move._comm, move.name = self._comm, self.name
        move.messages = Messages.of(self.messages.step, self.messages.dtype, self._comm, carried=True)
        move.method = METHODS[self.name](move.messages)
        return move

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the memory for packed messages and for arrived ones, rounded up to whole elements of the block."""
        (packed, arrived), item, sent = self.method.sizes, self.messages.dtype.itemsize, self.messages.wire.itemsize
        return -(-packed * sent // item) * item, -(-arrived * sent // item) * item

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions to read, of messages and of the block (memory 0), as in `Move`; None if no kernel can."""
        messages = self.messages
        if not self.method.unpacks or messages.ordered or (scaled and messages.kept is not None):
            return None  # elements read from the block are not packed, which would multiply them by its factors
        coming = self.method.coming if isinstance(self.method, Pipelined) else messages.coming
        regions = [(number, segment.region) for number, segment in enumerate(coming, 1)]
        return regions if messages.kept is None else [*regions, (0, messages.kept[1])]


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A sweep, with the places of its block before and after it, and of its messages."""

    sweep: Sweep[MessageMove]
    source: Slot
    target: Slot
    packed: Slot
    arrived: Slot


class MessageTransport:
    """A transport in which blocks lie in this rank's own workspace, and messages where no block lies.

    Args:
        operations: the operations of this rank.
        comm: the communicator of all ranks.
        method: gives the method of an operation, a name of `METHODS` or "auto".
        tight: whether messages may lie in the place of the next block and in the output, so that workspace is twice the
            largest block or message; else all have their own places, as the cost of a plan counts them.

    Attributes:
        moves: the moves, in order.
        sizes: bytes of the two pieces of workspace.
        held: further bytes, which methods of exchange hold.
    """

    sizes: tuple[int, int]

    def __init__(
        self, operations: Sequence[Operation], comm: Comm, method: Callable[[Operation], str], tight: bool
    ) -> None:
        swept = sweeps(operations, lambda operation: MessageMove(operation, comm, method(operation)))
        if tight:
            self._placed = _tight(swept, operations[-1].sizes[1])
            size = max(max(_largest(placed.sweep), placed.packed.end, placed.arrived.end) for placed in self._placed)
            self.sizes = size, size
        else:
            self._placed, size = _apart(swept)
            self.sizes = size, 0
        self._comm = comm
        self.moves: list[MessageMove] = [sweep.move for sweep in swept if sweep.move is not None]
        self.held: int = max((move.method.held for move in self.moves), default=0)
        self._scratch: Scratch | None = None
        self._calls: list[_Sent | Piped] = []

    def bind(self, scratch: Scratch) -> None:
        """Plan the work in this workspace for good; without this call, every start takes the communicator's."""
        self._scratch = scratch
        self._calls = self._made(scratch)

    def _made(self, scratch: Scratch) -> list[_Sent | Piped]:
        """The calls of all sweeps. A move whose messages overlap work includes the work before it."""
        calls: list[_Sent | Piped] = []
        for placed in self._placed:
            sent = _Sent(placed, scratch)
            if not sent.overlaps:
                calls.append(sent)
                continue
            before = calls[-1] if calls else None
            made = before.in_steps if isinstance(before, _Sent) else None
            if made is not None:
                calls.pop()
            calls.append(sent.piped(made))
        return calls

    def __call__(self, block: Array, out: Array) -> None:
        """Run from `block` to `out`. Both are C-contiguous, and share no memory with each other or another rank's."""
        calls, memories = self._start(block, out)
        for call in calls:
            call(memories)

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that run between these two blocks, repeatedly. Collective as `Method.bound` is."""
        calls, memories = self._start(block, out)
        return [copy for call in calls for copy in call.bound(memories)]

    def _start(self, block: Array, out: Array) -> tuple[Sequence[_Sent | Piped], Memories]:
        scratch = self._scratch
        if scratch is None:
            workspace = shared_workspace(self._comm, sum(self.sizes))
            scratch = workspace, workspace
            self._calls = self._calls or self._made(scratch)
        return self._calls, Memories((*scratch, block, out))


class _Sent:
    """A sweep in a rank's own workspace."""

    __slots__ = ("_after", "_before", "_move", "_placed", "_reads", "_run")

    def __init__(self, placed: _Placed, scratch: Scratch) -> None:
        sweep, first = placed.sweep, placed.sweep.first
        self._placed, self._move, self._reads = placed, sweep.move, sweep.reader is not None
        self._run = sweep.bind(scratch)
        self._before = [Factor.of(factor, first.shape) for factor in first.before]
        self._after = [Factor.of(factor, first.out_shape) for factor in first.after]

    @property
    def overlaps(self) -> bool:
        """Whether messages travel while other work goes on."""
        return self._move is not None and self._move.method.overlaps

    @property
    def in_steps(self) -> Callable[[Memories], Progress] | None:
        """The work in steps, for a move behind it that overlaps it; None if the work is done at once."""
        sweep, source, target = self._placed.sweep, self._placed.source, self._placed.target
        stepped = isinstance(sweep.last.run, LocalWork) and sweep.last.run.along is not None
        if self._move is not None or sweep.behind or not stepped:
            return None
        return lambda memories: self._run.steps(source.of(memories), target.of(memories))

    def piped(self, made: Callable[[Memories], Progress] | None) -> Piped:
        """The move in chunks, with the work before and behind it."""
        move = self._move
        assert move is not None and isinstance(move.method, Pipelined), "only these overlap"
        return Piped(move.method, partial(self._transfer, move), made, self._read_in_steps if self._reads else None)

    def _read_in_steps(self, memories: Sequence[Array], out: Array) -> Any:
        """The work that reads the arrived messages, in steps."""
        return self._run.steps(self._run.reads(memories), out)

    def __call__(self, memories: Memories) -> None:
        if self._move is None:
            self._run(self._placed.source.of(memories), self._placed.target.of(memories))
        else:
            self._move.method(self._transfer(self._move, memories))

    def bound(self, memories: Memories) -> list[Copy]:
        """The calls that do the sweep between the blocks of given memories. Collective as `Method.bound` is."""
        if self._move is None:
            copies: list[Copy] = self._run.bound(self._placed.source.of(memories), self._placed.target.of(memories))
            return copies
        return self._move.method.bound(self._transfer(self._move, memories))

    def _transfer(self, move: MessageMove, memories: Memories) -> Transfer:
        placed, run = self._placed, self._run
        block, out = placed.source.of(memories), placed.target.of(memories)
        packed, arrived = placed.packed.of(memories), placed.arrived.of(memories)
        transfer = Transfer(move.messages, block, out, packed, arrived, self._before, self._after)
        if self._reads:
            flat = block.reshape(-1)
            transfer.unpacker = lambda messages: run.bound(run.reads([flat, *messages]), out)
        return transfer


def _largest(sweep: Sweep[MessageMove]) -> int:
    """The bytes of a sweep's largest block or message memory."""
    messages = () if sweep.move is None else sweep.move.sizes
    return max(*sweep.first.sizes, *sweep.last.sizes, *messages)


def _tight(swept: Sequence[Sweep[MessageMove]], out: int) -> list[_Placed]:
    """Places in two pieces of workspace, where the output has `out` bytes.

    Messages are packed in the place of the next block. If there is no third place for those that arrive, a rank also
    sends the kept elements to itself: then messages may arrive in the place of the old block.
    """
    placed = list[_Placed]()
    ways = route([sweep.in_place for sweep in swept])
    for number, (sweep, (source, target)) in enumerate(zip(swept, ways, strict=True)):
        if sweep.move is not None and sweep.move.method.overlaps:
            placed.append(_beside(sweep, source, target, [*ways[max(0, number - 1)]], swept))
            continue
        packed, arrived = target, (SECOND if target == FIRST else FIRST)
        if sweep.move is not None:
            packs, arrives = sweep.move.sizes
            tight = source != IN
            if target == OUT:
                packed, arrived = (SECOND, FIRST) if source != SECOND else (FIRST, SECOND)
                if tight and packs <= out:
                    packed, arrived, tight = OUT, packed, False
            elif tight and arrives <= out:
                arrived, tight = OUT, False
            if tight and arrives and sweep.move.messages.step.wire is not None:  # kept elements must not be rounded
                placed.append(_beside(sweep, source, target, (), swept))
                continue
            if tight and arrives:
                if sweep.reader is not None:
                    return _tight([*swept[:number], *sweep.parted(), *swept[number + 1 :]], out)
                sweep = replace(sweep, move=sweep.move.with_kept())
        placed.append(_at(sweep, (source, target, packed, arrived)))
    return placed


def _beside(
    sweep: Sweep[MessageMove], source: int, target: int, before: Sequence[int], swept: Sequence[Sweep[MessageMove]]
) -> _Placed:
    """A move whose messages lie apart from all blocks, as they must if they travel while work on blocks goes on.

    They lie in a piece of workspace without a block, or behind the blocks.
    """
    assert sweep.move is not None
    free = next((piece for piece in (SECOND, FIRST) if piece not in (source, target, *before)), None)
    if free is not None:
        return _at(sweep, (source, target, free, free), (0, 0, 0, _aligned(sweep.move.sizes[0])))
    behind = _aligned(max(max(*each.first.sizes, *each.last.sizes) for each in swept))
    return _at(sweep, (source, target, FIRST, SECOND), (0, 0, behind, behind))


def _aligned(nbytes: int) -> int:
    """A number of bytes, rounded up to whole cache lines."""
    return -(-nbytes // LINE) * LINE


def _apart(swept: Sequence[Sweep[MessageMove]]) -> tuple[list[_Placed], int]:
    """Places in one piece of workspace, and its bytes: blocks alternate between its ends, with messages in between."""
    between = [0, *(sweep.last.sizes[1] for sweep in swept[:-1]), 0]  # bytes of the blocks that lie in the workspace
    messages = [(0, 0) if sweep.move is None else sweep.move.sizes for sweep in swept]
    size = max(sum(pair) + between[n] + between[n + 1] for n, pair in enumerate(messages))
    offsets = [size - nbytes if nbytes and n % 2 else 0 for n, nbytes in enumerate(between)]
    placed = []
    for n, (sweep, (packs, _)) in enumerate(zip(swept, messages, strict=True)):
        left = between[n + n % 2]  # bytes of the block at the left end
        begin, end = (FIRST if n else IN), (OUT if n == len(swept) - 1 else FIRST)
        places = (offsets[n], offsets[n + 1], left, left + packs)
        placed.append(_at(sweep, (begin, end, FIRST, FIRST), places))
    return placed, size


def _at(sweep: Sweep[MessageMove], memories: Sequence[int], offsets: Sequence[int] = (0, 0, 0, 0)) -> _Placed:
    """A sweep with the places of the block before and after it, of packed messages and of arrived ones."""
    first, last = sweep.first, sweep.last
    packed, arrived, wire = 0, 0, first.dtype
    if sweep.move is not None:
        (packed, arrived), wire = sweep.move.method.sizes, sweep.move.messages.wire
    shapes = first.shape, last.out_shape, (packed,), (arrived,)
    dtypes = first.dtype, last.out_dtype, wire, wire
    return _Placed(sweep, *map(Slot, memories, shapes, dtypes, offsets))
