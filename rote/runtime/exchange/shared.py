"""Ranks that can reach each other's memory read the others' blocks directly: nothing is sent, and nothing is packed.

Threads of one process share references to their blocks (`Direct`). Processes of one node map each other's blocks, or
read messages that are packed in shared memory (`Shared`).

Of several nodes, ranks of one node share memory, and messages go between nodes (`Nodes`). Each rank has a box in memory
that its node shares: what it sends within the node, what it sends to other nodes, and what comes from them. If a pair
of nodes has one message, it is in the box of the rank that carries it, ordered by sender and then by receiver, and must
wait until the whole node has packed. Of two nodes with two ranks each, of which ranks 0 and 2 carry messages:

    box of rank 0    0 to 0, 0 to 1 | 0 to 2, 0 to 3, 1 to 2, 1 to 3 | 2 to 0, 2 to 1, 3 to 0, 3 to 1
    box of rank 1    1 to 0, 1 to 1

Else each pair of ranks has a message:

    box of rank 0    0 to 0, 0 to 1 | 0 to 2, 0 to 3 | 2 to 0, 3 to 0
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
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
from ..comm.agreement import calls_differ
from ..comm.cache import AtAddresses, DoubleBuffer, in_halves
from ..comm.protocol import Array, Comm
from ..copies import Copy, Factor, run
from ..regions import Contribution, Region, read_regions
from .messages import Messages, Method, Transfer, assembled, rank_within
from .point_to_point import Calls

__all__ = ["Direct", "DirectRead", "Nodes", "Shared"]


_NO_FACTORS: Mapping[int, Any] = MappingProxyType({})  # of any rank


class DirectRead:
    """One step, bound to a rank that reads the elements that it needs from the others' blocks.

    A barrier must come first, after which all blocks are complete. No block may change until all ranks have read. The
    regions to read, one per rank that is read from, are in the order of reduction.
    """

    __slots__ = ("regions", "step")

    def __init__(self, step: Step, rank: int) -> None:
        self.step: Step = step
        self.regions: tuple[Region, ...] = read_regions(step.movement, rank)

    def places(self) -> dict[int, int]:
        """By the ranks of all peers in the whole grid, their ranks along the step's grid modes."""
        grid, modes = self.step.before.grid, self.step.grid_modes
        return {region.peer: rank_within(grid, modes, grid.coordinates(region.peer)) for region in self.regions}

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
        before: Mapping[int, Sequence[Factor]] = _NO_FACTORS,
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
        self._reading = DirectRead(messages.step, messages.rank)
        self._call = (messages.step, messages.dtype)
        self._places = self._reading.places()
        self._prepared: AtAddresses[list[Copy]] = AtAddresses()

    def __call__(self, transfer: Transfer) -> None:
        blocks, factors = self._shared_blocks(transfer)

        def made(arrays: list[Array]) -> list[Copy]:
            out, *others = arrays
            return self._reading.copies(dict(zip(blocks, others, strict=True)), out, transfer.after, factors)

        run(self._prepared([transfer.out, *blocks.values()], made))
        self._comm.barrier()

    def bound(self, transfer: Transfer) -> list[Copy]:
        blocks, factors = self._shared_blocks(transfer)
        barrier = self._comm.barrier  # called before blocks are read, and after
        return [barrier, *self._reading.copies(blocks, transfer.out, transfer.after, factors), barrier]

    def _shared_blocks(self, transfer: Transfer) -> tuple[dict[int, Array], dict[int, Sequence[Factor]]]:
        """The blocks that this rank reads, and their factors; all ranks share references to theirs now."""
        shared = self._comm.share_reference((self._call, transfer.block, transfer.before))
        assert shared is not None, "it was possible when the method was made"
        blocks, factors = dict[int, Array](), dict[int, Sequence[Factor]]()
        for peer, at in self._places.items():
            if not isinstance(shared[at], tuple) or shared[at][0] != self._call:
                raise calls_differ()  # that rank is in another call, and its block is another's
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
        self.memory_bytes: int = 2 * nbytes if messages.halved else nbytes
        double_buffer = DoubleBuffer.of(comm, nbytes, messages.halved)
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

        self._reading: DirectRead | None = None
        self._places = dict[int, int]()  # by a peer's rank in the whole grid, its rank in the communicator
        if min([size for size in self._sizes if size], default=0) >= segments.LEAST:
            self._reading = DirectRead(step, messages.rank)
            self._places = self._reading.places()

    @property
    def memory(self) -> object:
        return self._double_buffer

    def __call__(self, transfer: Transfer) -> None:
        addresses = self._block_addresses(transfer)  # takes the place of the barrier before reading
        if addresses is not None:
            blocks = self._reached(addresses)
            if blocks is not None:
                peers = tuple(blocks)
                run(self._kept(transfer, peers, partial(self._reads, peers), blocks.values()))
            if self._all(blocks is not None):  # takes the place of the barrier after reading
                return
        waits, memories = self._double_buffer.next_piece(self.messages.halved)
        state = len(waits), self._double_buffer.reading
        run(self._kept(transfer, state, lambda between, _: self._packs(between, waits, memories)))

    def bound(self, transfer: Transfer) -> list[Copy]:
        barrier, double_buffer = self.messages.comm.barrier, self._double_buffer
        addresses = self._block_addresses(transfer)
        if addresses is not None:
            blocks = self._reached(addresses)
            if self._all(blocks is not None) and blocks is not None:
                return [barrier, *self._reads(tuple(blocks), transfer, blocks.values()), barrier]

        halved = self.messages.halved
        return [in_halves(double_buffer, lambda: self._packs(transfer, *double_buffer.next_piece(halved)))]

    def _kept(
        self,
        transfer: Transfer,
        state: Hashable,
        make: Callable[[Transfer, list[Array]], list[Copy]],
        blocks: Iterable[Array] = (),
    ) -> list[Copy]:
        """The calls of a run, made once for the addresses of its ends and of the others' blocks.

        Addresses alone do not tell whose blocks are read, nor which memory is written now; the state does.
        """

        def made(arrays: list[Array]) -> list[Copy]:
            block, out, *others = arrays
            return make(replace(transfer, block=block, out=out), others)

        return self._prepared([transfer.block, transfer.out, *blocks], made, state)

    def _block_addresses(self, transfer: Transfer) -> list[segments.BlockAddress] | None:
        """The addresses of all ranks' blocks; None if some must be packed. The same on all ranks, and collective."""
        comm, width = self.messages.comm, len(segments.BlockAddress._fields)
        if self._reading is None or _REFUSED in comm.cache:
            return None
        address = None if transfer.before else segments.address_of(transfer.block)
        if address is None:
            segments.expect(transfer.block.nbytes)

        rows = np.empty((comm.size, width), np.int64)
        comm.allgatherv(np.array(address or segments.BlockAddress(), np.int64), rows.reshape(-1), [width] * comm.size)
        addresses = [segments.BlockAddress(*row) for row in rows.tolist()]
        can_be_read = [address.pid or not size for address, size in zip(addresses, self._sizes, strict=True)]
        return addresses if all(can_be_read) else None

    def _reached(self, addresses: Sequence[segments.BlockAddress]) -> dict[int, Array] | None:
        """The blocks of others that this rank reads, by rank in the whole grid; None if one cannot be mapped."""
        messages, blocks = self.messages, dict[int, Array]()
        try:
            for peer, at in self._places.items():
                if peer != messages.rank:
                    blocks[peer] = segments.reach(addresses[at])[: self._sizes[at]].view(messages.dtype)
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

    def _packs(self, transfer: Transfer, waits: list[Copy], memories: Sequence[Array]) -> list[Copy]:
        """The calls that pack all messages, and unpack those to this rank where the others have packed them."""
        comm, dtype, received = self.messages.comm, self.messages.dtype, []
        for region, peer, _ in self.messages.coming:
            start = self._offsets[peer] * dtype.itemsize
            received.append(memories[peer][start : start + region.size * dtype.itemsize].view(dtype))

        mine = memories[comm.rank]
        packed = mine[: len(mine) // dtype.itemsize * dtype.itemsize].view(dtype)
        return [*waits, *transfer.packing(packed), comm.barrier, *transfer.unpacking(received)]


class _Mail(NamedTuple):
    """A message between nodes: the rank on the other side, and its place in this rank's box."""

    peer: int
    start: int
    size: int


class Nodes(Method):
    """Shared memory inside nodes, and `MPI_Isend` and `MPI_Irecv` between them.

    If `joined`, a pair of nodes exchanges one message, and the ranks of a node take turns to carry them. Else each pair
    of ranks has its own message.
    """

    packs = False

    def __init__(self, messages: Messages, joined: bool) -> None:
        super().__init__(messages)
        comm = messages.comm
        self._calls, self._joined = Calls(messages), joined
        numbers = np.array(comm.nodes())
        home = int(numbers[comm.rank])
        self._node = node = _node_comm(comm, home)
        tables = np.array(node.allgather_object((messages.sends, messages.receives)), np.int64)
        leaving, coming, self._sizes = _boxes(numbers, home, tables, joined)

        me, mates = node.rank, np.flatnonzero(numbers == home).tolist()
        self._leaving = leaving[:, me].T.tolist()
        self._near = [segment.peer in mates for segment in messages.coming]
        self._places = [
            leaving[:, mates.index(segment.peer), comm.rank].tolist() if near else coming[:, me, segment.peer].tolist()
            for segment, near in zip(messages.coming, self._near, strict=True)
        ]
        if joined:
            self._outgoing, self._incoming = _carried(numbers, home, me, tables, (leaving[1], coming[1]))
        else:
            far, starts = np.flatnonzero(numbers != home).tolist(), coming[1, me].tolist()
            self._outgoing = [_Mail(r, self._leaving[r][1], messages.sends[r]) for r in far if messages.sends[r]]
            self._incoming = [_Mail(r, starts[r], messages.receives[r]) for r in far if messages.receives[r]]

        nbytes = self._sizes[me] * messages.wire.itemsize
        self.memory_bytes: int = 2 * nbytes if messages.halved else nbytes
        double_buffer = DoubleBuffer.of(node, nbytes, messages.halved)
        if not all(comm.allgather_object(double_buffer is not None)) or double_buffer is None:
            raise CommError("the ranks of a node cannot share memory\nwrite method='auto', or one that sends messages")
        self._double_buffer = double_buffer

    @property
    def memory(self) -> object:
        return self._double_buffer

    def bound(self, transfer: Transfer) -> list[Copy]:
        double_buffer, halved = self._double_buffer, self.messages.halved
        return [in_halves(double_buffer, lambda: self._between(transfer, *double_buffer.next_piece(halved)))]

    def _between(self, transfer: Transfer, waits: list[Copy], memories: Sequence[Array]) -> list[Copy]:
        """The calls of a transfer by way of the boxes in these memories of the node's ranks."""
        packing, started, received = list[Copy](), list[Any](), list[Array]()
        barrier, wire = self._node.barrier, self.messages.wire
        boxes = [memory[: n * wire.itemsize].view(wire) for memory, n in zip(memories, self._sizes, strict=True)]
        mine = boxes[self._node.rank]
        for region, peer, _ in self.messages.leaving:
            box, at = self._leaving[peer]
            packing += region.bound(transfer.block, boxes[box][at : at + region.size], before=transfer.before)
        for (box, at), segment in zip(self._places, self.messages.coming, strict=True):
            received.append(boxes[box][at : at + segment.region.size])

        def start() -> None:
            started.clear()
            for peer, at, n in self._incoming:
                started.extend(self._calls.receive(mine[at : at + n], peer))
            for peer, at, n in self._outgoing:
                started.extend(self._calls.send(mine[at : at + n], peer))

        def wait() -> None:
            if started:
                started[0].Waitall(started)
            if self._joined:
                barrier()

        # A message of the whole node leaves when all its ranks have packed; that of one rank leaves before.
        first = [barrier, start] if self._joined else [start, barrier]
        return [*waits, *packing, *first, *transfer.unpacking_after(wait, received, self._near)]


def _node_comm(comm: Comm, number: int) -> Comm:
    """The communicator of the ranks of this node; made once per communicator."""
    if "node" not in comm.cache:
        comm.cache["node"] = comm.split(number, comm.rank)
    return cast(Comm, comm.cache["node"])


def _carrier(start: Any, end: Any, nodes: int, ranks: int) -> Any:
    """The rank, of those of either node, that carries the message from node `start` to node `end`.

    The distance between the numbers of the nodes picks it, so that the ranks of a node take turns.
    """
    return ((end - start) % nodes - 1) % ranks


def _boxes(numbers: Ints, home: int, tables: Ints, joined: bool) -> tuple[Ints, Ints, list[int]]:
    """Whose box each message is in, and where it starts there, per rank of the node and rank of all; sizes of boxes.

    The first array is of messages from the node's ranks, the second of those to them from other nodes.

    Args:
        numbers: the node of each rank.
        tables: per rank of the node, the elements that it sends to each rank, and those that it receives.
    """
    sends, receives = tables.swapaxes(0, 1)
    nodes, ranks, far = int(numbers.max()) + 1, len(sends), numbers != home
    mine, peer = np.indices(sends.shape)
    out, into = mine, mine
    if joined:
        out = np.where(far, _carrier(home, numbers, nodes, ranks), mine)
        into = np.broadcast_to(_carrier(numbers, home, nodes, ranks), mine.shape)

    # Messages are ordered by box, by its three parts, by node, by sender and by receiver.
    part, node = np.broadcast_to(far, mine.shape), np.broadcast_to(numbers, mine.shape)
    pairs = [(peer, mine), (mine, peer), (node, node), (part, np.full_like(mine, 2)), (out, into)]
    keys = [np.concatenate(pair, axis=None) for pair in pairs]
    sizes = np.concatenate((sends, receives * far), axis=None)
    order, box = np.lexsort(keys), keys[-1]

    ends = np.zeros_like(sizes)
    ends[order] = np.cumsum(sizes[order])
    totals = np.bincount(box, sizes, ranks).astype(np.int64)
    starts = ends - sizes - (np.cumsum(totals) - totals)[box]
    leaving, coming = np.stack((box, starts)).reshape(2, 2, *mine.shape).swapaxes(0, 1)
    return leaving, coming, totals.tolist()


def _carried(
    numbers: Ints, home: int, me: int, tables: Ints, starts: tuple[Ints, Ints]
) -> tuple[list[_Mail], list[_Mail]]:
    """The messages to other nodes that a rank of this node carries, and those from other nodes."""
    mails: tuple[list[_Mail], list[_Mail]] = [], []
    nodes = int(numbers.max()) + 1
    for distance in range(1, nodes):
        for side, node in enumerate(((home + distance) % nodes, (home - distance) % nodes)):
            ranks, ends = np.flatnonzero(numbers == node), (node, home) if side else (home, node)
            size = int(tables[:, side, ranks].sum())
            if size and me == _carrier(*ends, nodes, len(tables)):
                peer = int(ranks[_carrier(*ends, nodes, len(ranks))])
                mails[side].append(_Mail(peer, int(starts[side][0, ranks[0]]), size))
    return mails
