"""A communicator that writes down what its caller sends and hears: to and from whom, and how much.

It wraps any other communicator and hands every call on. Messages are counted as the caller of a collective sees them,
whatever happens inside: from whom something comes, and how much. Sums that all or one get come by the algorithms that
receive least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

REDUCING = ("allreduce", "reduce", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class Call:
    """One collective call of one rank.

    Attributes:
        name: of the method.
        sent, heard: per other rank, numbered as in the communicator that was wrapped first, the elements that go to it
            and that come from it, where there are any. What enters a reduction counts whole, for all whom it reaches.
        buffers: the sizes of the arrays that the caller gave, in elements.
        item: bytes of one of these.
        ranks: how many take part.
    """

    name: str
    sent: dict[int, int] = field(default_factory=dict)
    heard: dict[int, int] = field(default_factory=dict)
    buffers: tuple[int, ...] = ()
    item: int = field(default=0, compare=False)
    ranks: int = field(default=0, compare=False)

    @property
    def messages(self) -> int:
        """How many other ranks the caller hears from."""
        return len(self.heard)

    @property
    def nbytes(self) -> int:
        """Bytes of what the caller gets of others."""
        return self.elements * self.item

    @property
    def elements(self) -> int:
        """What the caller gets of others: all their parts, or fewer where ranks add parts for each other."""
        heard, sent = sum(self.heard.values()), sum(self.sent.values())
        if self.name == "allreduce":  # a part of the contributions of all others, then the other parts of the sum
            return ceil(2 * heard / self.ranks)
        if self.name == "reduce":  # the root gets the sum, in parts that the other ranks have added
            return max(self.heard.values(), default=ceil(sent * (self.ranks - 2) / max(self.ranks - 1, 1)))
        return heard


class Recording:
    """A `Comm` around another. Its splits are recordings too, and all write into one list of calls."""

    def __init__(self, comm, members=None, calls=None):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.calls = [] if calls is None else calls
        self.cache = {}  # of its own: what is kept here are recordings, and programs over them
        self._members = list(range(comm.size)) if members is None else members

    def __repr__(self):
        return f"<recording of {self.comm}>"

    def take(self):
        """The calls since the last time."""
        found = tuple(self.calls)
        self.calls.clear()
        return found

    def split(self, color, key):
        self._note("split")
        part = self.comm.split(color, key)
        return Recording(part, part.allgather_object(self._members[self.rank]), self.calls)

    def barrier(self):
        self._note("barrier")
        self.comm.barrier()

    def alltoallv(self, send, send_counts, recv, recv_counts):
        self._note("alltoallv", send_counts, recv_counts, send, recv)
        self.comm.alltoallv(send, send_counts, recv, recv_counts)

    def allgatherv(self, send, recv, recv_counts):
        self._note("allgatherv", self._all(send.size), recv_counts, send, recv)
        self.comm.allgatherv(send, recv, recv_counts)

    def bcast_in_place(self, buffer, root):
        self._note("bcast", self._all(buffer.size * (self.rank == root)), self._only(root, buffer.size), buffer)
        self.comm.bcast_in_place(buffer, root)

    def allreduce_in_place(self, buffer, op):
        self._note("allreduce", self._all(buffer.size), self._all(buffer.size), buffer)
        self.comm.allreduce_in_place(buffer, op)

    def reduce_in_place(self, buffer, op, root):
        self._note("reduce", self._only(root, buffer.size), self._all(buffer.size * (self.rank == root)), buffer)
        self.comm.reduce_in_place(buffer, op, root)

    def reduce_scatter(self, send, recv, counts, op):
        self._note("reduce_scatter", counts, self._all(counts[self.rank]), send, recv)
        self.comm.reduce_scatter(send, recv, counts, op)

    def allocate_shared(self, nbytes):
        self._note("allocate_shared")  # what is read is no message, so nothing is shared here

    def nodes(self):
        self._note("nodes")
        return self.comm.nodes()

    def share_reference(self, value):
        self._note("share_reference")  # nor here

    def allgather_object(self, value):
        self._note("allgather_object")
        return self.comm.allgather_object(value)

    def _all(self, count):
        """So many elements to or from every rank."""
        return [count] * self.size

    def _only(self, root, count):
        """So many elements to or from one rank."""
        return [count * (rank == root) for rank in range(self.size)]

    def _note(self, name, sent=(), heard=(), *buffers):
        """Write down a call; `sent` and `heard` are per rank of this communicator, the caller itself among them."""
        theirs = (
            {self._members[rank]: int(count) for rank, count in enumerate(counts) if count and rank != self.rank}
            for counts in (sent, heard)
        )
        item = buffers[0].itemsize if buffers else 0
        self.calls.append(Call(name, *theirs, tuple(buffer.size for buffer in buffers), item, self.size))
