"""Programs: moves and local work between two blocks, as a flat list of calls on numbered places.

A redistribution is a program of moves, and a Fourier transform is one of moves and kernels. A rank's work is lowered
to operations and fused into sweeps (`operations`). Each sweep is one call of the program, from place to place: `listed`
numbers the places of the block, and `placed` decides which memory each place is in, and before which calls the ranks
wait for each other. `bound` then makes the Python calls for given blocks.

In a Fourier transform, ranks that share memory read each other's blocks (`ReadProgram`). All others, and every
redistribution, send messages by the methods of exchange (`SentProgram`): then the packed and the arrived messages of a
move need memory as well.

An example: 4 x 4 numbers of 8 bytes move from rows to columns, on two ranks. Rank 0 has the rows a b c d and e f g h,
and rank 1 has i j k l and m n o p. In the program of the redistribution, which sends messages, rank 0 has 64 bytes of
workspace, half of them for messages that leave, and half for those that arrive:

    byte        0    16    32    48    64
    input       | a b   c d   e f   g h |
    workspace   | c d   g h | i j   m n |
    output      | a b   e f   i j   m n |

    1. pack       c d       from input 16         to workspace 0
                  g h       from input 48         to workspace 16
    2. exchange   c d g h   from workspace 0      to rank 1
                  i j m n   from rank 1           to workspace 32
    3. unpack     a b       from input 0          to output 0
                  e f       from input 32         to output 16
                  i j m n   from workspace 32     to output 32

In the program of a Fourier transform that reads, each rank has its 64 bytes in shared memory, and waits for the other.
Then rank 0 copies bytes 0 to 16 and 32 to 48 of both ranks, a b and e f, i j and m n.

>>> import rote
>>> from rote.runtime.plans import bind
>>> plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(4, 4), grid=2)
>>> rote.run(lambda comm: bind(plan, comm, "alltoallv").workspace_bytes, ranks=2)
[64, 64]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
from itertools import chain
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from ..compiler.step import LOCAL, Step
from .comm.agreement import gathered
from .comm.cache import AtAddresses, DoubleBuffer, in_halves, shared_workspace
from .comm.protocol import Array, Comm
from .comm.segments import LINE
from .copies import Copy, Factor, run
from .exchange.messages import Messages, Method, Transfer
from .exchange.point_to_point import Pipelined, WorkInSteps
from .exchange.registry import bind_method, make_method, same_method
from .exchange.shared import DirectRead
from .operations import LocalWork, Operation, Scratch, Sweep, sweeps

__all__ = ["Allocation", "Call", "Memory", "ReadProgram", "SentProgram", "listed", "placed"]


class Memory(IntEnum):
    """The memories of a run: two pieces of workspace, the user's input, and the user's output; they index `Memories`.

    The numbers of the input and of the output are also those of their places.
    """

    FIRST = 0
    SECOND = 1
    INPUT = -2
    OUTPUT = -1


FIRST, SECOND, INPUT, OUTPUT = Memory
Memories = tuple[Array, Array, Array, Array]


class Call(NamedTuple):
    """The places that one call of a program uses, by their numbers, which are equal on all ranks.

    A call works in place if it reads and writes the same place.
    """

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()  # places that it reads in the memory of all ranks


class Allocation(NamedTuple):
    """The memories of places, and when ranks wait."""

    memories: dict[int, int]  # of each place, by its number
    waits: list[bool]  # per call, whether all ranks wait for each other before it
    read: frozenset[int]  # the pieces that other ranks may be reading after the last call


def listed(swept: Sequence[Sweep]) -> list[Call]:
    """The call of each sweep. Work in place keeps its place, and every other sweep writes a new one.

    After the last sweep that does not work in place, the block stays in the output.
    """
    last = max((n for n, sweep in enumerate(swept) if not sweep.in_place), default=0)
    calls, source, new = list[Call](), int(INPUT), 0
    for n, sweep in enumerate(swept):
        if n >= last:
            target = int(OUTPUT)
        elif sweep.in_place and source != INPUT:
            target = source
        else:
            target, new = new, new + 1

        step = sweep.first.run
        if isinstance(step, Step) and step.kind not in LOCAL:
            calls.append(Call((), (target,), (source,)))
        else:
            calls.append(Call((source,), (target,)))
        source = target
    return calls


def placed(calls: Sequence[Call], read: Collection[int] = (), pieces: int = 2) -> Allocation:
    """Decide which piece of workspace each place is in, and before which calls all ranks wait for each other.

    A place keeps its piece from its first to its last use. Between two barriers, no piece that a rank writes is read
    by others. So the ranks wait before they read what has been written, and before they write where others may still
    be reading, unless another piece is free. A chain of moves goes from piece to piece, with one barrier for each move:

        call            piece 0    piece 1    barrier before the call, because
        copy the input  write
        move            others     write      others have written piece 0
        move            write      others     others have written piece 1; and so they have read piece 0

    At the start, other ranks may be reading the pieces in `read`.

    >>> copy, move, back = Call((INPUT,), (4,)), Call((), (5,), (4,)), Call((), (OUTPUT,), (5,))
    >>> first = placed([copy, move, back])
    >>> first.memories[4], first.memories[5], first.waits, sorted(first.read)
    (0, 1, [False, True, True], [1])
    >>> second = placed([copy, move, back], read=first.read)
    >>> second.memories[4], second.memories[5], second.waits, sorted(second.read)
    (0, 1, [False, True, True], [1])
    """
    last = {place: n for n, call in enumerate(calls) for place in chain(*call)}  # the last use
    where: dict[int, int] = {INPUT: INPUT, OUTPUT: OUTPUT}
    waits = list[bool]()
    reading, written = set(read), set[int]()  # pieces that others may be reading, and places written, since the barrier
    for n, call in enumerate(calls):
        in_use = {where[place] for place, end in last.items() if place in where and end >= n}
        free = set(range(pieces)) - in_use
        new = [place for place in call.writes if place not in where]
        for place in new:  # it needs no barrier in a piece that nobody is reading
            where[place] = min(free - reading or free)
            free.discard(where[place])

        wait = not written.isdisjoint(call.peers) or any(where[place] in reading for place in call.writes)
        if wait:
            reading.clear()
            written.clear()
        waits.append(wait)
        written.update(call.writes)
        reading.update(where[place] for place in call.peers)
    return Allocation(where, waits, frozenset(reading))


class ReadProgram:
    """A program of ranks that read each other's blocks, in the two halves of memory that all of them share."""

    def __init__(self, operations: Sequence[Operation], double_buffer: DoubleBuffer) -> None:
        self._double_buffer, comm = double_buffer, double_buffer.comm

        # All ranks must fuse the same moves: where they wait for each other follows from the list.
        def everywhere(numbers: Collection[int]) -> Collection[int]:
            return frozenset.intersection(*gathered(comm, "a bound program", frozenset(numbers)))

        self._sweeps = sweeps(
            _scaled_first(operations), lambda operation: DirectRead(operation.step, comm.rank), everywhere
        )
        self._list = listed(self._sweeps)
        self._reads: AtAddresses[list[_Read]] = AtAddresses(double_buffer)
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()

    def __call__(self, block: Array, out: Array) -> None:
        """Run from `block` to `out`. Both are C-contiguous, and share no memory with each other or another rank's."""
        run(self._prepared((block, out), lambda ends: self.bound(*ends)))

    def bound(self, block: Array, out: Array) -> list[Copy]:
        """The calls, in order, that run between these two blocks, repeatedly."""
        return [in_halves(self._double_buffer, partial(self._calls, block, out))]

    def _calls(self, block: Array, out: Array) -> list[Copy]:
        """The calls of a run; sets the halves that others may be reading after it."""
        double_buffer, calls = self._double_buffer, list[Copy]()
        memories = *double_buffer.halves[double_buffer.comm.rank], block, out
        reads = self._reads((), lambda _: [_Read(sweep, double_buffer) for sweep in self._sweeps])

        where, waits, after = placed(self._list, double_buffer.reading)
        for read, call, wait in zip(reads, self._list, waits, strict=True):
            if wait:
                calls.append(double_buffer.barrier)
            (source,), (target,) = call.reads or call.peers, call.writes
            calls += read.bound(memories, where[source], where[target])
        double_buffer.reading = after
        return calls


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
    """A sweep in shared memory, bound to everything but its places."""

    __slots__ = ("_factors", "_halves", "_run", "_sweep", "_views")

    def __init__(self, sweep: Sweep, double_buffer: DoubleBuffer) -> None:
        self._sweep, self._halves = sweep, double_buffer.halves
        self._run = sweep.bind(self._halves[double_buffer.comm.rank])
        self._factors = [Factor.of(factor, sweep.first.out_shape) for factor in sweep.first.after]
        self._views: dict[int, Any] = {}  # of the blocks of all ranks, by the half that is read

    def bound(self, memories: Memories, source: int, target: int) -> list[Copy]:
        """The calls, in order, that do the sweep from one memory to another."""
        sweep, first = self._sweep, self._sweep.first
        out = Place(target, sweep.last.out_shape, sweep.last.out_dtype).of(memories)
        if sweep.move is not None and source not in self._views:
            blocks = [halves[source].view(first.dtype) for halves in self._halves]
            self._views[source] = blocks if sweep.reader is None else self._run.reads(blocks)

        copies: list[Copy]
        if sweep.move is None:
            copies = self._run.bound(Place(source, first.shape, first.dtype).of(memories), out)
        elif sweep.reader is None:
            copies = sweep.move.copies(self._views[source], out, self._factors)
        else:
            copies = self._run.bound(self._views[source], out)
        return copies


class Place(NamedTuple):
    """Where a block or message is: in which memory, in which shape and dtype, and the bytes in front of it."""

    memory: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int = 0

    def of(self, memories: Memories) -> Array:
        """The block at this place. The user's blocks are contiguous."""
        memory = memories[self.memory]
        if memory.shape == self.shape and memory.dtype == self.dtype and not self.offset:
            return memory
        if not prod(self.shape):  # MPI refuses two buffers at one address
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory, self.offset)


class SentProgram:
    """A program in which blocks and messages are in this rank's own workspace.

    Args:
        method: gives the method of an operation, a name of `METHODS` or "auto".
        tight: whether messages may be in the place of a block and in the output, so that workspace is twice the
            largest block or message; else all have their own places, as the cost of a plan counts them.
        halved: whether messages in shared memory go by halves (see `Messages`).

    Attributes:
        sizes: bytes of the two pieces of workspace.
        method_bytes: bytes of further memory, of the methods of exchange.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        comm: Comm,
        method: Callable[[Operation], str],
        tight: bool,
        halved: bool = True,
    ) -> None:
        swept = sweeps(operations, lambda operation: _method(operation, comm, method(operation), halved))
        self.sizes: tuple[int, int]
        if tight:
            sent, self.sizes = _in_two_pieces(swept, operations[-1].sizes[1], comm)
        else:
            sent, self.sizes = _in_one_piece(swept)

        self._comm = comm
        self.moves: list[Method] = [sweep.move for sweep in sent if sweep.move is not None]
        self.method_bytes: int = _method_bytes(self.moves)
        self._scratch: Scratch | None = None

        # Work in steps, before a move whose messages overlap it, runs within that move.
        self._sweeps = list[_Sent]()
        for sweep in sent:
            if sweep.move is not None and sweep.move.overlaps and self._sweeps and self._sweeps[-1].in_steps:
                sweep.before = self._sweeps.pop()
            self._sweeps.append(sweep)

    def bind(self, scratch: Scratch) -> None:
        """Plan the work in this workspace for good. A tight program needs it; others take the communicator's."""
        self._scratch = scratch
        for sweep in self._sweeps:
            sweep.plan(scratch)

    def __call__(self, block: Array, out: Array) -> None:
        """Run from `block` to `out`. Both are C-contiguous, and share no memory with each other or another rank's."""
        run(self.bound(block, out, once=True))

    def bound(self, block: Array, out: Array, once: bool = False) -> list[Copy]:
        """The calls, in order, that run between these two blocks, repeatedly or `once`.

        To make those that run repeatedly is collective as `Method.bound` is.
        """
        scratch, calls = self._scratch, list[Copy]()
        if scratch is None:
            # One memory is both pieces: if not tight, all places are in the first one, and no work needs scratch.
            assert not self.sizes[1], "a tight program is bound to two pieces"
            scratch = (shared_workspace(self._comm, sum(self.sizes)),) * 2
        for sweep in self._sweeps:
            calls += sweep.bound((*scratch, block, out), once)
        return calls


def _method_bytes(moves: Sequence[Method]) -> int:
    """The bytes of the methods' memories, each as large as the most demanding of its methods needs it."""
    memories: dict[int, int] = {}
    for move in moves:
        key = id(move.memory)
        memories[key] = max(memories.get(key, 0), move.memory_bytes)
    return sum(memories.values())


def _method(operation: Operation, comm: Comm, name: str, halved: bool) -> Method:
    """The method of a step, by a name of `METHODS` or "auto"; reductions use MPI's collectives. Collective."""
    messages = Messages.of(operation.step, operation.dtype, comm, halved=halved)
    if operation.chunks is not None:
        return make_method("pipelined", messages, operation.chunks)
    return bind_method(same_method(name, messages.step, comm), messages)


def _with_kept(method: Method, comm: Comm) -> Method:
    """The method with the kept elements as a message to the rank itself.

    Not collective: a method in which messages arrive in workspace can be made on one rank alone.
    """
    messages = method.messages
    return make_method(method.name, Messages.of(messages.step, messages.dtype, comm, True)) if method.name else method


_Start = tuple[int, int]  # a memory, and the bytes in front


class _Sent:
    """A sweep in a rank's own workspace, with the work before it that its messages overlap, if any."""

    __slots__ = ("_factors", "_places", "_work", "before", "move", "sweep")

    def __init__(
        self, sweep: Sweep, source: _Start, target: _Start, packed: _Start = (FIRST, 0), arrived: _Start = (FIRST, 0)
    ) -> None:
        first, last = sweep.first, sweep.last
        self.sweep, self.before = sweep, cast("_Sent | None", None)
        self.move: Method | None = sweep.move

        before = [Factor.of(factor, first.shape) for factor in first.before]
        self._factors = before, [Factor.of(factor, first.out_shape) for factor in first.after]
        self._work: Any = None

        sizes, wire = ((0, 0), first.dtype) if self.move is None else (self.move.sizes, self.move.messages.wire)
        self._places = (
            Place(source[0], first.shape, first.dtype, source[1]),
            Place(target[0], last.out_shape, last.out_dtype, target[1]),
            Place(packed[0], (sizes[0],), wire, packed[1]),
            Place(arrived[0], (sizes[1],), wire, arrived[1]),
        )

    @property
    def in_steps(self) -> bool:
        """Whether it is work that can go on in steps while messages of the move after it travel."""
        if self.move is not None or self.sweep.after_move:
            return False
        work = self.sweep.last.run
        return isinstance(work, LocalWork) and work.along is not None

    def plan(self, scratch: Scratch) -> None:
        """Plan the work on scratch memory."""
        if self.before is not None:
            self.before.plan(scratch)
        self._work = self.sweep.bind(scratch)

    def bound(self, memories: Memories, once: bool) -> list[Copy]:
        """The calls that do the sweep; see `SentProgram.bound`."""
        move, (source, target, packed, arrived) = self.move, self._places
        if move is None and self._work is None:
            self.plan((memories[FIRST], memories[SECOND]))

        work = self._work
        block, out = source.of(memories), target.of(memories)
        if move is None:
            copies: list[Copy] = work.bound(block, out)
            return copies

        transfer = Transfer(move.messages, block, out, packed.of(memories), arrived.of(memories), *self._factors)
        reads = self.sweep.reader is not None
        if isinstance(move, Pipelined):
            early = () if self.before is None else self.before.steps(memories)
            if not reads:
                return move.bound(transfer, early)
            arrived_messages = [transfer.arrived[segment.at] for segment in move.coming]
            return move.bound(transfer, early, work.steps(work.reads([block.reshape(-1), *arrived_messages]), out))
        if reads:
            flat = block.reshape(-1)
            transfer.unpacker = lambda received: work.bound(work.reads([flat, *received]), out)
        return [partial(move, transfer)] if once else move.bound(transfer)

    def steps(self, memories: Memories) -> WorkInSteps:
        """The calls of work that goes `in_steps`."""
        steps: WorkInSteps = self._work.steps(self._places[0].of(memories), self._places[1].of(memories))
        return steps


def _in_two_pieces(swept: Sequence[Sweep], out_bytes: int, comm: Comm) -> tuple[list[_Sent], tuple[int, int]]:
    """The sweeps with places in two pieces of workspace and in the output, of `out_bytes`; bytes of the pieces.

    If there is no place for the messages of a move, a rank also sends the kept elements to itself: then the old block
    is read no more when messages arrive, and they may take its place.
    """
    calls, sent = listed(swept), list[_Sent]()
    where = placed(calls).memories
    ends = [(where[(call.reads or call.peers)[0]], where[call.writes[0]]) for call in calls]
    largest = max(max(*sweep.first.sizes, *sweep.last.sizes) for sweep in swept)  # work is planned in the pieces, too
    size = largest
    for n, (sweep, (source, target)) in enumerate(zip(swept, ends, strict=True)):
        move = sweep.move
        if move is None:
            sent.append(_Sent(sweep, (source, 0), (target, 0)))
            continue

        free = None if move.overlaps else _free_memories(move, source, target, out_bytes)
        if free is None and not move.overlaps and move.messages.step.wire is None:
            if sweep.reader is not None:  # it would read kept elements from the block; so it becomes two sweeps
                return _in_two_pieces([*swept[:n], *sweep.parted(), *swept[n + 1 :]], out_bytes, comm)
            move = _with_kept(move, comm)
            sweep = replace(sweep, move=move)
            free = _free_memories(move, source, target, out_bytes)

        if free is not None:
            messages = [(memory, 0) for memory in free]
        else:  # messages travel while blocks are in use, or kept elements must not be rounded
            before = ends[n - 1] if n and move.overlaps else ()
            messages = _outside_blocks(move, {source, target, *before}, largest)
        for (memory, offset), nbytes in zip(messages, move.nbytes, strict=True):
            if memory != OUTPUT:
                size = max(size, offset + nbytes)
        sent.append(_Sent(sweep, (source, 0), (target, 0), *messages))
    return sent, (size, size)


def _free_memories(move: Method, source: int, target: int, out_bytes: int) -> tuple[int, int] | None:
    """The memories for the messages that leave and those that come; None if there are too few.

    What is in use at the same time needs different memories; the old block is in use to the end if elements are kept:

        pack       old block   packed
        exchange   (old block) packed   arrived
        unpack     (old block)          arrived   new block
    """
    packs, arrives = move.nbytes
    for arrived in (FIRST, SECOND, OUTPUT):
        in_use = arrived == target or (arrived == source and move.messages.kept is not None)
        if arrives and (in_use or (arrived == OUTPUT and arrives > out_bytes)):
            continue
        for packed in (FIRST, SECOND, OUTPUT):
            if packed not in (source, arrived) and (packed != OUTPUT or packs <= out_bytes):
                return packed, arrived
    return None


def _outside_blocks(move: Method, used: Collection[int], largest: int) -> list[_Start]:
    """Places of messages that share no memory with blocks: in a piece without a block, or past the blocks."""
    for piece in (SECOND, FIRST):
        if piece not in used:
            return [(piece, 0), (piece, _lines(move.nbytes[0]))]
    return [(FIRST, _lines(largest)), (SECOND, _lines(largest))]


def _lines(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE


def _in_one_piece(swept: Sequence[Sweep]) -> tuple[list[_Sent], tuple[int, int]]:
    """The sweeps in one piece of workspace, where no two places overlap; the bytes of the two pieces.

    Blocks alternate between its ends, and the messages of a move are between the blocks before and after it:

        move 1             packed | arrived | block 1
        move 2   block 2 | packed | arrived | block 1
        move 3   block 2 | packed | arrived | block 3
    """
    between = [0, *(sweep.last.sizes[1] for sweep in swept[:-1]), 0]  # bytes of the blocks that are in the workspace
    messages = [(0, 0) if sweep.move is None else sweep.move.nbytes for sweep in swept]
    size = max(sum(pair) + between[n] + between[n + 1] for n, pair in enumerate(messages))
    ends: list[_Start] = [(FIRST, size - nbytes if nbytes and n % 2 else 0) for n, nbytes in enumerate(between)]
    ends[0], ends[-1] = (INPUT, 0), (OUTPUT, 0)

    sent = list[_Sent]()
    for n, (sweep, (packs, _)) in enumerate(zip(swept, messages, strict=True)):
        left = between[n + n % 2]  # bytes of the block at the left end
        sent.append(_Sent(sweep, ends[n], ends[n + 1], (FIRST, left), (FIRST, left + packs)))
    return sent, (size, 0)
