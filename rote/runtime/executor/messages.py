"""The transport by messages: a rank packs, sends by a method of exchange, and unpacks, in workspace of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..comm.cache import shared_workspace
from ..comm.protocol import Array, Comm
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

_LINE = 64  # bytes of a line of the cache


class MessageMove:
    """A step whose messages travel by a method of exchange. Collective.

    Args:
        step, dtype: what moves.
        comm: of the whole grid.
        method: of `METHODS`, or "auto". What is reduced or broadcast goes by MPI's own collectives.

    Attributes:
        messages: what moves.
        name: how it moves, of `METHODS`; empty where a collective of MPI's does it, or no rank needs another.
        method: itself; it runs the step, with transfers of these messages that have workspace of its sizes.

    Raises:
        CommError: these ranks cannot have the method.
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
        """The move with what the rank keeps in a message to itself; for a method to which messages arrive.

        A rank may do so alone: to make such a method, it needs no other.
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
        """Bytes of what is packed, and of what has arrived before it is unpacked; whole elements of the block."""
        (packed, arrived), item, sent = self.method.sizes, self.messages.dtype.itemsize, self.messages.wire.itemsize
        return -(-packed * sent // item) * item, -(-arrived * sent // item) * item

    @property
    def rounds(self) -> bool:
        """Whether elements are rounded while they travel."""
        return self.messages.wire != self.messages.dtype

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions of the block, memory 0, and of messages that are read, as `Move` says; None if no kernel can."""
        messages = self.messages
        if not self.method.unpacks or messages.ordered or (scaled and messages.kept is not None):
            return None  # what is read of the block is not packed, where its factors would be multiplied in
        coming = self.method.coming if isinstance(self.method, Pipelined) else messages.coming
        regions = [(number, segment.region) for number, segment in enumerate(coming, 1)]
        return regions if messages.kept is None else [*regions, (0, messages.kept[1])]


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A sweep, and where its block lies before and after it, and its messages meanwhile."""

    sweep: Sweep[MessageMove]
    source: Slot
    target: Slot
    packed: Slot
    arrived: Slot


class MessageTransport:
    """Blocks lie in workspace of this rank alone, and messages where no block does.

    Args:
        operations: of this rank.
        comm: of all.
        method: how the messages of an operation travel, a name of `METHODS` or "auto".
        tight: whether messages may lie where the next block will be, and in the output, so that workspace is twice the
            largest block or message; or all have places of their own, as the cost of a plan counts them.

    Attributes:
        moves: in order.
        sizes: bytes of the two pieces of workspace.
        held: bytes beside these that methods of exchange hold.
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
        """Plan the work in workspace that is lent for good; else the communicator's is taken at every start."""
        self._scratch = scratch
        self._calls = self._made(scratch)

    def _made(self, scratch: Scratch) -> list[_Sent | Piped]:
        """The calls; a move whose messages overlap work takes that before it along."""
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
        """Take a block to another; both are C-contiguous, and share no memory with each other or another rank's."""
        calls, memories = self._start(block, out)
        for call in calls:
            call(memories)

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that take one very block to another, again and again. Making them is collective."""
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
    """A sweep in workspace of a rank's own."""

    __slots__ = ("_after", "_before", "_move", "_placed", "_reads", "_run")

    def __init__(self, placed: _Placed, scratch: Scratch) -> None:
        sweep, first = placed.sweep, placed.sweep.first
        self._placed, self._move, self._reads = placed, sweep.move, sweep.reader is not None
        self._run = sweep.bind(scratch)
        self._before = [Factor.of(factor, first.shape) for factor in first.before]
        self._after = [Factor.of(factor, first.out_shape) for factor in first.after]

    @property
    def overlaps(self) -> bool:
        """Whether messages travel while work goes on."""
        return self._move is not None and self._move.method.overlaps

    @property
    def in_steps(self) -> Callable[[Memories], Progress] | None:
        """The work in steps, before a move that overlaps it; None if it is done at once."""
        sweep, source, target = self._placed.sweep, self._placed.source, self._placed.target
        stepped = isinstance(sweep.last.run, LocalWork) and sweep.last.run.along is not None
        if self._move is not None or sweep.behind or not stepped:
            return None
        return lambda memories: self._run.steps(source.of(memories), target.of(memories))

    def piped(self, made: Callable[[Memories], Progress] | None) -> Piped:
        """The move, in chunks, with the work before it and behind it."""
        move = self._move
        assert move is not None and isinstance(move.method, Pipelined), "only these overlap"
        return Piped(move.method, partial(self._transfer, move), made, self._read_in_steps if self._reads else None)

    def _read_in_steps(self, memories: Sequence[Array], out: Array) -> Any:
        """The work that reads what has arrived, in steps."""
        return self._run.steps(self._run.reads(memories), out)

    def __call__(self, memories: Memories) -> None:
        if self._move is None:
            self._run(self._placed.source.of(memories), self._placed.target.of(memories))
        else:
            self._move.method(self._transfer(self._move, memories))

    def bound(self, memories: Memories) -> list[Copy]:
        """The sweep between the very blocks of some memories. Collective."""
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
            transfer.unpacker = lambda messages: run(run.reads([flat, *messages]), out)
        return transfer


def _largest(sweep: Sweep[MessageMove]) -> int:
    """Bytes of the largest of a sweep's blocks and messages."""
    messages = () if sweep.move is None else sweep.move.sizes
    return max(*sweep.first.sizes, *sweep.last.sizes, *messages)


def _tight(swept: Sequence[Sweep[MessageMove]], out: int) -> list[_Placed]:
    """Places in two pieces of workspace, if the output has so many bytes.

    Messages are packed where the next block will be. Where there is no third place for those that arrive, a rank sends
    what it keeps to itself as well: they may arrive where the block was then.
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
            if tight and arrives and sweep.move.rounds:  # what the rank keeps is not to be rounded in a message
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
    """A move whose messages lie where no block does, as if they travel while blocks are worked on.

    That is a piece without any, or the memory behind them.
    """
    assert sweep.move is not None
    free = next((piece for piece in (SECOND, FIRST) if piece not in (source, target, *before)), None)
    if free is not None:
        return _at(sweep, (source, target, free, free), (0, 0, 0, _aligned(sweep.move.sizes[0])))
    behind = _aligned(max(max(*each.first.sizes, *each.last.sizes) for each in swept))
    return _at(sweep, (source, target, FIRST, SECOND), (0, 0, behind, behind))


def _aligned(nbytes: int) -> int:
    """So many bytes, or a few more: whole lines of the cache."""
    return -(-nbytes // _LINE) * _LINE


def _apart(swept: Sequence[Sweep[MessageMove]]) -> tuple[list[_Placed], int]:
    """Places in one piece of workspace, and its bytes: blocks take turns at both ends of it, messages lie between."""
    between = [0, *(sweep.last.sizes[1] for sweep in swept[:-1]), 0]  # bytes of the blocks that lie in the workspace
    messages = [(0, 0) if sweep.move is None else sweep.move.sizes for sweep in swept]
    size = max(sum(pair) + between[n] + between[n + 1] for n, pair in enumerate(messages))
    offsets = [size - nbytes if nbytes and n % 2 else 0 for n, nbytes in enumerate(between)]
    placed = []
    for n, (sweep, (packs, _)) in enumerate(zip(swept, messages, strict=True)):
        left = between[n + n % 2]  # of the two blocks, the one at the left end
        begin, end = (FIRST if n else IN), (OUT if n == len(swept) - 1 else FIRST)
        places = (offsets[n], offsets[n + 1], left, left + packs)
        placed.append(_at(sweep, (begin, end, FIRST, FIRST), places))
    return placed, size


def _at(sweep: Sweep[MessageMove], memories: Sequence[int], offsets: Sequence[int] = (0, 0, 0, 0)) -> _Placed:
    """A sweep with its places: of the block before and after it, of what is packed and of what arrives."""
    first, last = sweep.first, sweep.last
    packed, arrived = (0, 0) if sweep.move is None else sweep.move.method.sizes
    wire = first.dtype if sweep.move is None else sweep.move.messages.wire
    shapes = first.shape, last.out_shape, (packed,), (arrived,)
    dtypes = first.dtype, last.out_dtype, wire, wire
    return _Placed(sweep, *map(Slot, memories, shapes, dtypes, offsets))
