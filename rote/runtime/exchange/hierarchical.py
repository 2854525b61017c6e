"""Methods for ranks of several nodes: ranks of one node share memory, and messages go between nodes.

Every node has an outbox and an inbox in memory that its ranks share. In the outbox, all elements for one other node are
contiguous, ordered by sender and then by receiver, and they have the same order in the inbox of that node. Of two nodes
with two ranks each:

    outbox of node 0    0 to 0, 0 to 1, 1 to 0, 1 to 1 | 0 to 2, 0 to 3, 1 to 2, 1 to 3
    inbox of node 1                                      0 to 2, 0 to 3, 1 to 2, 1 to 3

So a pair of nodes needs only one message; but it must wait until the whole node has packed. Else each pair of ranks has
a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...errors import CommError
from ...layout.indexset import Ints
from ..comm.cache import DoubleBuffer, InHalves
from ..comm.protocol import Array, Comm
from ..copy.strided import Copy
from .messages import Messages, Method, Transfer
from .point_to_point import Calls

__all__ = ["Nodes"]


class _Mail(NamedTuple):
    """A message between nodes: the rank on the other side, and its place in the outbox or the inbox."""

    peer: int
    start: int
    size: int


class Nodes(Method):
    """Shared memory inside nodes, and `MPI_Isend` and `MPI_Irecv` between them.

    Args:
        messages: the messages of the step.
        joined: whether a pair of nodes exchanges one message, and the ranks of a node take turns to send to the other
            nodes; else each pair of ranks has its own message.
    """

    def __init__(self, messages: Messages, joined: bool) -> None:
        super().__init__(messages)
        self.sizes: tuple[int, int] = 0, 0
        comm = messages.comm
        self._calls = Calls(messages, "two-level" if joined else "nodes")
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
        def calls(read: int) -> tuple[list[Copy], int]:
            return self._between(transfer, *self._boxes()), self._double_buffer.read

        return [InHalves(self._double_buffer, calls)]

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
