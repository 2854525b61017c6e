"""Ranks that can reach each other's memory read the others' blocks directly: nothing is sent, and nothing is packed.

Threads of one process share references to their blocks (`Direct`). Processes of one node map each other's blocks, or
read messages that are packed in shared memory (`Shared`).

Of several nodes, ranks of one node share memory, and messages go between nodes (`Nodes`). Every node has an outbox and
an inbox in memory that its ranks share. In the outbox, all elements for one other node are contiguous, ordered by
sender and then by receiver, and they have the same order in the inbox of that node. Of two nodes with two ranks each:

    outbox of node 0    0 to 0, 0 to 1, 1 to 0, 1 to 1 | 0 to 2, 0 to 3, 1 to 2, 1 to 3
    inbox of node 1                                      0 to 2, 0 to 3, 1 to 2, 1 to 3

So a pair of nodes needs only one message; but it must wait until the whole node has packed. Else each pair of ranks has
a message.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from ...compiler.step import Step
from ...errors import CommError
from ...layout.indexset import Ints
from ..comm import segments
from ..comm.agreement import ranks_apart
from ..comm.cache import AtAddresses, DoubleBuffer, in_halves
from ..comm.protocol import Array, Comm
from ..copies import Copy, Factor, run
from ..regions import Contribution, Region, read_regions
from .messages import Messages, Method, Transfer, assembled, place
from .point_to_point import Calls

__all__ = ["Direct", "Nodes", "Reading", "Shared"]


NOTHING: Mapping[int, Any] = MappingProxyType({})
"""No factors of any rank."""


class Reading:
    """One step, bound to a rank that reads the elements that it needs from the others' blocks.

    A barrier must come first, after which all blocks are complete. No block may change until all ranks have read. The
    regions to read, one per rank that is read from, are in the order of reduction.
    """

    __slots__ = ("regions", "step")

    def __init__(self, step: Step, rank: int) -> None:
        self.step: Step = step
        self.regions: tuple[Region, ...] = read_regions(step.before, step.after, rank)

    def places(self) -> dict[int, int]:
        """By the ranks of all peers in the whole grid, their ranks along the step's grid modes."""
        step, grid = self.step, self.step.before.grid
        return {part.peer: place(grid, step.grid_modes, grid.coordinates(part.peer)) for part in self.regions}

    def readable(self, scaled: bool) -> list[tuple[int, Region]] | None:
        """The regions to read, with the ranks of their blocks, as in `Move`; None if no kernel can read them."""
        if scaled or self.step.after.partial or any(region.combine for region in self.regions):
            return None
        return [(region.peer, region) for region in self.regions]

    def copies(
        self,
        blocks: Sequence[Array] | Mapping[int, Array],
        out: Array,
        after: Sequence[Factor] = (),
        before: Mapping[int, Sequence[Factor]] = NOTHING,
    ) -> list[Copy]:
        """The copies that read this rank's new block into `out`; they may run repeatedly.

        Args:
            blocks: the blocks of all ranks, or of the peers that are read from.
            out: the new block, C-contiguous.
            after: factors of `out`.
            before: by rank, factors of its block.
        """
        parts = list[Contribution]()
        for region in self.regions:
            parts.append((region, blocks[region.peer], before.get(region.peer, ())))
        return assembled(self.step, parts, out, after)


class Direct(Method):
    """Ranks of one process share references to their blocks, and wait for each other before and after they read."""

    packs = unpacks = False
    reads_blocks = True

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        self._comm = messages.comm
        if self._comm.share_reference(None) is None:
            raise CommError("these ranks are not threads of one process, and cannot read each other's blocks")
        self._reading = Reading(messages.step, messages.rank)
        self._call = (messages.step, messages.dtype)
        self._places = self._reading.places()
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()

    def __call__(self, transfer: Transfer) -> None:
        blocks, factors = self._shown(transfer)

        def made(arrays: list[Array]) -> list[Copy]:
            out, *others = arrays
            return self._reading.copies(dict(zip(blocks, others, strict=True)), out, transfer.after, factors)

        run(self._prepared([transfer.out, *blocks.values()], made))
        self._comm.barrier()

    def bound(self, transfer: Transfer) -> list[Copy]:
        blocks, factors = self._shown(transfer)
        barrier = self._comm.barrier  # called before blocks are read, and after
        return [barrier, *self._reading.copies(blocks, transfer.out, transfer.after, factors), barrier]

    def _shown(self, transfer: Transfer) -> tuple[dict[int, Array], dict[int, Sequence[Factor]]]:
        """The blocks that this rank reads, and their factors; all ranks share references to theirs now."""
        shared = self._comm.share_reference((self._call, transfer.block, transfer.before))
        assert shared is not None, "it was possible when the method was made"
        blocks, factors = dict[int, Array](), dict[int, Sequence[Factor]]()
        for peer, at in self._places.items():
            if not isinstance(shared[at], tuple) or shared[at][0] != self._call:
                raise ranks_apart()  # that rank is in another call, and its block is another's
            _, blocks[peer], factors[peer] = shared[at]
        return blocks, factors


_REFUSED = "blocks of others are refused"  # this key in a communicator's cache says that blocks cannot be mapped


class Shared(Method):
    """Each rank reads the elements that it needs from the others' blocks, between two barriers.

    If some block is small, or others cannot map it, all ranks pack messages in shared memory instead, and unpack them
    there. Then one barrier is enough.
    """

    packs = unpacks = False
    reads_blocks = True

    def __init__(self, messages: Messages) -> None:
        super().__init__(messages)
        comm, step, dtype = messages.comm, messages.step, messages.dtype
        nbytes = sum(messages.sends) * dtype.itemsize
        self.held: int = 2 * nbytes
        double_buffer = DoubleBuffer.of(comm, nbytes)
        if double_buffer is None:
            raise CommError(
                "these ranks cannot share memory: they are on several nodes, or the system refuses it\n"
                "write method='auto', or one that sends messages"
            )
        self._double_buffer = double_buffer
        self._prepared: AtAddresses[list[Copy]] = AtAddresses(double_buffer)
        starts = [0] * comm.size  # where the message to each rank begins
        if step.kind != "allgather":  # in an allgather, one message goes to all
            starts = list(accumulate(messages.sends, initial=0))
        block = prod(step.before.local_shape(messages.rank)) * dtype.itemsize
        others = comm.allgather_object((starts, block))
        self._offsets = [theirs[comm.rank] for theirs, _ in others]
        self._sizes = [size for _, size in others]  # bytes of all blocks
        self._reading: Reading | None = None
        self._places = dict[int, int]()  # by a peer's rank in the whole grid, its rank in the communicator
        if min([size for size in self._sizes if size], default=0) >= segments.LEAST:
            self._reading = Reading(step, messages.rank)
            self._places = self._reading.places()

    def __call__(self, transfer: Transfer) -> None:
        places = self._shown(transfer)  # takes the place of the barrier before reading
        if places is not None:
            blocks = self._reached(places)
            if blocks is not None:
                peers = tuple(blocks)
                run(self._kept(transfer, peers, partial(self._reads, peers), blocks.values()))
            if self._all(blocks is not None):  # takes the place of the barrier after reading
                return
        halves = self._double_buffer.next_half()
        run(self._kept(transfer, self._double_buffer.read, lambda kept, _: self._packs(kept, halves)))

    def bound(self, transfer: Transfer) -> list[Copy]:
        places, barrier, memory = self._shown(transfer), self.messages.comm.barrier, self._double_buffer
        if places is not None:
            blocks = self._reached(places)
            if self._all(blocks is not None) and blocks is not None:
                return [barrier, *self._reads(tuple(blocks), transfer, blocks.values()), barrier]
        return [in_halves(memory, lambda: self._packs(transfer, memory.next_half()))]

    def _kept(
        self,
        transfer: Transfer,
        state: Hashable,
        make: Callable[[Transfer, list[Array]], list[Copy]],
        blocks: Iterable[Array] = (),
    ) -> list[Copy]:
        """The calls of a run, made once for the addresses of its ends and of the others' blocks.

        Addresses alone do not tell whose blocks are read, nor which half is written now; the state does.
        """

        def made(arrays: list[Array]) -> list[Copy]:
            kept = copy(transfer)
            kept.block, kept.out, *others = arrays
            return make(kept, others)

        return self._prepared([transfer.block, transfer.out, *blocks], made, state)

    def _shown(self, transfer: Transfer) -> list[segments.BlockPlace] | None:
        """The places of all ranks' blocks; None if some must be packed. The same on all ranks, and collective."""
        comm, width = self.messages.comm, len(segments.BlockPlace._fields)
        if self._reading is None or _REFUSED in comm.cache:
            return None
        own = None if transfer.before else segments.place_of(transfer.block)
        if own is None:
            segments.expect(transfer.block.nbytes)
        rows = np.empty((comm.size, width), np.int64)
        comm.allgatherv(np.array(own or segments.BlockPlace(), np.int64), rows.reshape(-1), [width] * comm.size)
        places = [segments.BlockPlace(*row) for row in rows.tolist()]
        return places if all(found.pid or not n for found, n in zip(places, self._sizes, strict=True)) else None

    def _reached(self, places: Sequence[segments.BlockPlace]) -> dict[int, Array] | None:
        """The blocks of others that this rank reads, by rank in the whole grid; None if one cannot be mapped."""
        messages, blocks = self.messages, dict[int, Array]()
        try:
            for peer, at in self._places.items():
                if peer != messages.rank:
                    blocks[peer] = segments.reach(places[at])[: self._sizes[at]].view(messages.dtype)
        except OSError:
            return None
        return blocks

    def _all(self, fine: bool) -> bool:
        """Whether a condition holds on all ranks; if not, blocks are refused. All ranks have called when it returns."""
        comm = self.messages.comm
        flag: Any = np.array([fine], np.int64)
        comm.allreduce_in_place(flag, "min")
        if not flag[0]:
            comm.cache[_REFUSED] = True
        return bool(flag[0])

    def _reads(self, peers: Sequence[int], transfer: Transfer, blocks: Iterable[Array]) -> list[Copy]:
        """The copies from this rank's block and those of peers."""
        assert self._reading is not None, "blocks have places where they are read"
        every = {self.messages.rank: transfer.block, **dict(zip(peers, blocks, strict=True))}
        return self._reading.copies(every, transfer.out, transfer.after)

    def _packs(self, transfer: Transfer, halves: Sequence[Array]) -> list[Copy]:
        """The calls that pack all messages, and unpack those to this rank where the others have packed them."""
        comm, dtype, received = self.messages.comm, self.messages.dtype, []
        for region, peer, _ in self.messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(halves[peer][start : start + region.size * dtype.itemsize].view(dtype))
        mine = halves[comm.rank]
        packed = mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype)
        return [*transfer.packing(packed), comm.barrier, *transfer.unpacking(received)]


class _Mail(NamedTuple):
    """A message between nodes: the rank on the other side, and its place in the outbox or the inbox."""

    peer: int
    start: int
    size: int


class Nodes(Method):
    """Shared memory inside nodes, and `MPI_Isend` and `MPI_Irecv` between them.

    If `joined`, a pair of nodes exchanges one message, and the ranks of a node take turns to send to the other nodes.
    Else each pair of ranks has its own message.
    """

    packs = False

    def __init__(self, messages: Messages, joined: bool) -> None:
        super().__init__(messages)
        comm = messages.comm
        self._calls = Calls(messages)
        self._joined = joined
        numbers = np.array(comm.nodes())
        ranks = [np.flatnonzero(numbers == node) for node in range(numbers.max() + 1)]
        home = int(numbers[comm.rank])
        self._node = node = _node_comm(comm, home)
        tables = node.allgather_object((messages.sends, messages.receives))
        sends, receives = np.array(tables, np.int64).swapaxes(0, 1)
        outbox, sent = _starts([sends[:, members] for members in ranks])
        # Elements of the node itself stay in the outbox, where their receivers read them.
        inbox, received = _starts([(receives[:, members] * (k != home)).T for k, members in enumerate(ranks)])
        leaving, coming = np.concatenate(outbox, 1)[node.rank], np.concatenate(inbox)[:, node.rank]
        order = np.argsort(np.concatenate(ranks))  # puts columns, which are listed by nodes, in the order of ranks
        self._leaving = leaving[order].tolist()
        inside = dict(zip(ranks[home].tolist(), outbox[home][:, node.rank].tolist(), strict=True))
        self._near = [part.peer in inside for part in messages.coming]
        self._places = [inside.get(part.peer, coming[order][part.peer]) for part in messages.coming]
        if joined:
            self._outgoing, self._incoming = _carried(ranks, home, node.rank, sent, received)
        else:
            far = np.flatnonzero(numbers != home).tolist()
            begins = coming[order].tolist()
            self._outgoing = [_Mail(r, self._leaving[r], messages.sends[r]) for r in far if messages.sends[r]]
            self._incoming = [_Mail(r, begins[r], messages.receives[r]) for r in far if messages.receives[r]]
        self._sizes = [sum(size for _, size in box) for box in (sent, received)]
        nbytes = sum(self._sizes) * messages.wire.itemsize * (node.rank == 0)  # both boxes are the first rank's memory
        self.held: int = 2 * nbytes
        double_buffer = DoubleBuffer.of(node, nbytes)
        if not all(comm.allgather_object(double_buffer is not None)) or double_buffer is None:
            raise CommError("the ranks of a node cannot share memory\nwrite method='auto', or one that sends messages")
        self._double_buffer = double_buffer

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [in_halves(self._double_buffer, lambda: self._between(transfer, *self._boxes()))]

    def _between(self, transfer: Transfer, outbox: Array, inbox: Array) -> list[Copy]:
        """The calls of a transfer by way of these boxes."""
        packing, started, barrier = list[Copy](), list[Any](), self._node.barrier
        for region, peer, _ in self.messages.leaving:
            at = self._leaving[peer]
            packing += region.bound(transfer.block, outbox[at : at + region.size], before=transfer.before)

        def start() -> None:
            started.clear()
            for peer, at, n in self._incoming:
                started.extend(self._calls.receive(inbox[at : at + n], peer))
            for peer, at, n in self._outgoing:
                started.extend(self._calls.send(outbox[at : at + n], peer))

        def wait() -> None:
            if started:
                started[0].Waitall(started)
            if self._joined:
                barrier()

        boxes = [outbox if near else inbox for near in self._near]
        sizes = [part.region.size for part in self.messages.coming]
        received = [box[at : at + n] for box, at, n in zip(boxes, self._places, sizes, strict=True)]
        # A message of the whole node leaves when all its ranks have packed; that of one rank leaves before.
        first = [barrier, start] if self._joined else [start, barrier]
        return [*packing, *first, *transfer.unpacking_after(wait, received, self._near)]

    def _boxes(self) -> tuple[Array, Array]:
        """The outbox and the inbox of this node, in the next half of the memory of its first rank."""
        dtype, (out, into) = self.messages.wire, self._sizes
        memory = self._double_buffer.next_half()[0][: (out + into) * dtype.itemsize].view(dtype)
        return memory[:out], memory[out:]


def _node_comm(comm: Comm, number: int) -> Comm:
    """The communicator of the ranks of this node; made once per communicator."""
    if "node" not in comm.cache:
        comm.cache["node"] = comm.split(number, comm.rank)
    return cast(Comm, comm.cache["node"])


def _starts(tables: Sequence[Ints]) -> tuple[list[Ints], list[tuple[int, int]]]:
    """Lay out tables of sizes in sequence, row by row: where each entry begins; where each table begins, and its size.

    >>> starts, spans = _starts([np.array([[1, 2], [3, 4]]), np.array([[5]])])
    >>> [each.tolist() for each in starts], spans
    ([[[0, 1], [3, 6]], [[10]]], [(0, 10), (10, 5)])
    """
    starts, spans, at = list[Ints](), list[tuple[int, int]](), 0
    for table in tables:
        ends = np.cumsum(table).reshape(table.shape)
        starts.append(at + ends - table)
        size = int(table.sum())
        spans.append((at, size))
        at += size
    return starts, spans


def _carried(
    ranks: Sequence[Ints], home: int, me: int, sent: Sequence[tuple[int, int]], received: Sequence[tuple[int, int]]
) -> tuple[list[_Mail], list[_Mail]]:
    """The messages between this node and others that one of its ranks sends, and those that it receives.

    The distance between the numbers of the nodes picks the rank on each side, so that the ranks of a node take turns.
    """
    outgoing, incoming = list[_Mail](), list[_Mail]()
    for distance in range(1, len(ranks)):
        to, origin = (home + distance) % len(ranks), (home - distance) % len(ranks)
        for node, (start, size), mails in ((to, sent[to], outgoing), (origin, received[origin], incoming)):
            if size and (distance - 1) % len(ranks[home]) == me:
                mails.append(_Mail(int(ranks[node][(distance - 1) % len(ranks[node])]), start, size))
    return outgoing, incoming
