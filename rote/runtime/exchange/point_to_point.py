"""Messages between pairs of ranks (Duy and Ozaki 2015, section 3.2.1), also in chunks while other work goes on.

In `Pipelined`, the work before the step makes the next chunk while one chunk travels, and the work after it goes on.
The work before a step proceeds along one mode of its block, and the work after it along one mode of the new block; both
report their progress. The half of the elements that the later work needs first is cut along the mode of the earlier
work, and each chunk leaves as soon as it is made. The other half leaves when everything is made. It is cut along the
mode of the later work, which goes on as chunks arrive. So the time is that of the slower of link and work, plus one
chunk at either end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from ..comm.protocol import Array
from ..comm.reductions import chunks
from ..copies import Copy, run
from ..regions import Region, range_along
from .messages import Messages, Method, Segment, Transfer

__all__ = ["Calls", "Chunks", "Isend", "Pipelined", "Waitsome", "WorkInSteps"]


Rounds = list[tuple[list[int], list[int]]]


class Calls:
    """Calls that start to send or receive one message of a step; a large message goes in several parts."""

    __slots__ = ("_handle", "_kind", "_most")

    def __init__(self, messages: Messages) -> None:
        comm = messages.mpi
        self._handle, self._kind, self._most = comm.handle, comm.datatype(messages.wire), comm.most

    def send(self, message: Array, peer: int) -> list[Any]:
        start, kind = self._handle.Isend, self._kind
        return [start([chunk, chunk.size, kind], peer) for chunk in chunks(message, self._most)]

    def receive(self, message: Array, peer: int) -> list[Any]:
        start, kind = self._handle.Irecv, self._kind
        return [start([chunk, chunk.size, kind], peer) for chunk in chunks(message, self._most)]


def rounds(messages: Messages, at_once: int | None) -> Rounds:
    """The numbers of the messages that leave and come in each round, without empty messages.

    In a round, a rank sends to the next `at_once` ranks after it, and receives from as many before it. So both sides
    have a message in the same round, and not all ranks send to one. If `at_once` is None, there is one round.
    """
    ranks, me = messages.comm.size, messages.comm.rank
    step = at_once or ranks

    def by_distance(segments: Sequence[Segment], sign: int) -> list[tuple[int, int]]:
        numbered = enumerate(segments)
        return sorted((sign * (segment.peer - me) % ranks, n) for n, segment in numbered if segment.region.size)

    def within(pairs: list[tuple[int, int]], start: int) -> list[int]:
        return [n for distance, n in pairs if start <= distance < start + step]

    leaving, coming = by_distance(messages.leaving, 1), by_distance(messages.coming, -1)
    every = ((within(leaving, start), within(coming, start)) for start in range(0, ranks, step))
    return [numbers for numbers in every if any(numbers)]


class Isend(Method):
    """`MPI_Isend` and `MPI_Irecv` to and from all ranks, or `at_once` ranks at a time, then `MPI_Waitall`.

    In Duy and Ozaki (2015) these are Isend_Waitall and Isend_Waitall_Block. With one rank at a time, a round is an
    `MPI_Sendrecv`, and as fast.
    """

    def __init__(self, messages: Messages, at_once: int | None = None) -> None:
        super().__init__(messages)
        self._calls = Calls(messages)
        self._rounds = rounds(messages, at_once)

    def carry(self, transfer: Transfer) -> None:
        for leaving, coming in self._rounds:
            started = list[Any]()
            for number in coming:
                started += self._calls.receive(*transfer.arriving(number))
            for number in leaving:
                started += self._calls.send(*transfer.departing(number))
            _wait(started)


class Waitsome(Isend):
    """`MPI_Isend` and `MPI_Irecv`, then `MPI_Waitsome`: messages that have come are unpacked while others travel.

    If the order matters, as in a reduction, or messages are packed in the memory of `out`, it waits for all first. In
    Duy and Ozaki (2015) these are Isend_Waitsome and Isend_Waitsome_Block.
    """

    unpacks = False

    def bound(self, transfer: Transfer) -> list[Copy]:
        if self.messages.ordered or np.may_share_memory(transfer.out, transfer.packed):
            return super().bound(transfer)

        unpacking = [transfer.unpacking_one(number, message) for number, message in enumerate(transfer.where())]
        exchange = partial(self._exchange, transfer, transfer.keeping(), unpacking)
        return [*transfer.packing(transfer.packed), exchange, *transfer.scaling()]

    def _exchange(self, transfer: Transfer, keeping: list[Copy], unpacking: Sequence[list[Copy]]) -> None:
        """Exchange the packed messages. While they travel, keep what is kept, and unpack each that has come."""
        for leaving, coming in self._rounds:
            receiving = [self._calls.receive(*transfer.arriving(number))[0] for number in coming]
            sending = [self._calls.send(*transfer.departing(number))[0] for number in leaving]
            run(keeping)
            keeping = []

            left = len(receiving)
            while left:
                done = receiving[0].Waitsome(receiving) or ()
                left -= len(done)
                for number in done:
                    run(unpacking[coming[number]])
            _wait(sending)
        run(keeping)  # there was no message


WorkInSteps = Iterable[tuple[int, Copy]]
"""Work in steps, in order. The number says how far along its mode the work has made, or reads, its block by then."""

Cut = tuple[int, int, int]  # first part, end, and number of equal parts of a mode

_END = 1 << 62  # an index beyond every element


class Chunks(NamedTuple):
    """The way in which the messages of a step are cut; the same on all ranks.

    The earlier half along the late mode is cut along the early mode, so that chunks leave while the block is made. The
    rest can only leave when the whole block is made. It is cut along the late mode, so that it is read as it arrives:

                         late mode
                    | chunk 0 |   |   |
        early mode  |---------| 2 | 3 |
                    | chunk 1 |   |   |

    """

    early: int | None  # the mode along which the block before is made; None if it is made at once
    late: int | None  # the mode along which the block after is read; None if it is read at once
    number: int  # the most chunks

    def parts(self, messages: Messages) -> list[dict[int, Cut]]:
        """For each chunk, its part of each mode that is cut."""
        both = messages.step.movement.parts
        early = next((k for k, part in enumerate(both) if self.early in part.before), None)
        late = next((k for k, part in enumerate(both) if self.late in part.after), None)
        number = self.number

        mode = late if early is None else early
        if mode is None:
            return [{}]
        if early is None or late is None or early == late:
            return [{mode: (k, k + 1, number)} for k in range(number)]
        half = max(1, number // 2)
        first = [{early: (k, k + 1, half), late: (0, 1, 2)} for k in range(half)]
        return first + [{late: (k, k + 1, 2 * half)} for k in range(half, 2 * half)]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of all messages of a rank; in packed memory, chunks are contiguous and in order."""

    messages: Messages
    ready: int  # how far the work before must be before the chunk can leave
    until: int  # how far the work after can go once this chunk and those before it have arrived


class Pipelined(Method):
    """`MPI_Isend` and `MPI_Irecv` of chunk after chunk, between the steps of the work before and after the move.

    There is one chunk if `chunks` is None, or if messages are reduced.
    """

    overlaps = True

    def __init__(self, messages: Messages, chunks: Chunks | None = None) -> None:
        super().__init__(messages)
        self._calls, self._handle = Calls(messages), messages.mpi.handle
        if chunks is None or messages.step.before.partial or messages.step.after.partial:
            chunks = Chunks(None, None, 1)
        early, late = chunks.early, chunks.late
        cut, starts = list[Messages](), (0, 0)
        for ranges in chunks.parts(messages):  # in packed memory, chunks are contiguous and in order
            cut.append(messages.cut(partial(_ranges, ranges), starts))
            starts = starts[0] + cut[-1].sizes[0], starts[1] + cut[-1].sizes[1]
        lows = [0] * len(cut)
        if late is not None:
            for k, chunk in enumerate(cut):
                lows[k] = min([range_along(segment.region, late, False)[0] for segment in chunk.coming], default=_END)

        # Work goes on up to the first element of any chunk that is still to come, so minima are taken from the end.
        untils = [*accumulate(reversed(lows), min, initial=_END)][::-1]
        self._begun: int = untils[0]
        self._chunks: list[_Chunk] = []
        for chunk, until in zip(cut, untils[1:], strict=True):
            ready = _END if chunk.leaving else 0
            if early is not None:
                ready = max([range_along(segment.region, early, True)[1] for segment in chunk.leaving], default=0)
            self._chunks.append(_Chunk(chunk, ready, until))

    @property
    def coming(self) -> Sequence[Segment]:
        return [*chain(*(chunk.messages.coming for chunk in self._chunks))]

    def bound(self, transfer: Transfer, before: WorkInSteps = (), after: WorkInSteps | None = None) -> list[Copy]:
        """The calls of the step, among those of the work that makes the block, and of that which reads the messages.

        A chunk leaves as soon as the work before has made it, and the program waits for a chunk as late as possible:

            work  pack 0  send 0  work  pack 1  send 1  wait 0  later work  wait 1  later work

        The four pieces of memory must not overlap. If `after` is None, the messages are unpacked into `out`.
        """
        transfers = [replace(transfer, messages=chunk.messages) for chunk in self._chunks]
        receiving, sending = [list[Any]() for _ in transfers], list[Any]()
        # Requests are new in every run, so the calls share lists of them.
        calls: list[Copy] = [partial(self._receive, transfers, receiving, sending)]

        made, working = 0, iter(before)
        for chunk, chunk_transfer in zip(self._chunks, transfers, strict=True):
            while made < chunk.ready and (step := next(working, None)):
                made = step[0]
                calls.append(partial(self._do, step[1]))
            calls += [*chunk_transfer.packing(chunk_transfer.packed), partial(self._send, chunk_transfer, sending)]
        calls += [partial(self._do, work) for _, work in working]

        waits = [partial(_wait, requests) for requests in receiving]
        if after is not None:
            until, arriving = self._begun, zip(self._chunks, waits, strict=True)
            for needed, work in after:
                while until < needed:
                    chunk, wait = next(arriving)
                    until = chunk.until
                    calls.append(wait)
                calls.append(partial(self._do, work))
            calls += [wait for _, wait in arriving]
        elif transfer.messages.ordered:
            calls += [*waits, *transfer.unpacking()]
        else:
            calls += transfer.keeping()
            for chunk_transfer, wait in zip(transfers, waits, strict=True):
                calls += [wait, *chunk_transfer.unpacking()]
        return [*calls, partial(_wait, sending)]

    def _receive(self, transfers: Sequence[Transfer], receiving: Sequence[list[Any]], sending: list[Any]) -> None:
        sending.clear()
        for chunk_transfer, requests in zip(transfers, receiving, strict=True):
            requests.clear()
            for number in range(len(chunk_transfer.messages.coming)):
                requests += self._calls.receive(*chunk_transfer.arriving(number))

    def _send(self, chunk_transfer: Transfer, sending: list[Any]) -> None:
        for number in range(len(chunk_transfer.messages.leaving)):
            sending += self._calls.send(*chunk_transfer.departing(number))

    def _do(self, work: Copy) -> None:
        """Do a step of work, then call MPI, which makes progress with messages only while it is called."""
        work()
        self._handle.Iprobe()


def _wait(requests: Sequence[Any]) -> None:
    if requests:
        requests[0].Waitall(requests)


def _ranges(parts: dict[int, Cut], region: Region) -> dict[int, tuple[int, int]]:
    ranges: dict[int, tuple[int, int]] = {}
    for mode, (start, stop, number) in parts.items():
        extent = region.shape[mode]
        ranges[mode] = extent * start // number, extent * stop // number
    return ranges
