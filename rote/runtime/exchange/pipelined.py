"""Messages in chunks: while one chunk travels, the work before the step makes the next, and the work after it goes on.

The work before a step proceeds along one mode of its block, and the work after it along one mode of the new block; both
report their progress. The half of the elements that the later work needs first is cut along the mode of the earlier
work, and each chunk leaves as soon as it is made. The other half leaves when everything is made. It is cut along the
mode of the later work, which goes on as chunks arrive. So the time is that of the slower of link and work, plus one
chunk at either end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...compiler.movement.components import components
from ..copy.parts import part_of, reach
from ..copy.regions import Region
from ..copy.strided import Copy, run
from .messages import Messages, Segment, Transfer, counts
from .method import Method, mpi_comm
from .point_to_point import Calls

__all__ = ["Chunks", "Pipelined", "Progress"]

Progress = Iterable[tuple[int, Copy]]
"""Work in steps, in order. The number says how far along its mode the work has made, or reads, its block by then."""

Parts = tuple[int, int, int]  # first part, end, and number of equal parts of a mode

_END = 1 << 62  # an index beyond every element


class Chunks(NamedTuple):
    """The way in which the messages of a step are cut; the same on all ranks.

    Attributes:
        early: the mode along which the block before is made; None if it is made at once.
        late: the mode along which the block after is read; None if it is read at once.
        number: the most chunks.
    """

    early: int | None
    late: int | None
    number: int

    def parts(self, messages: Messages) -> list[dict[int, Parts]]:
        """For each chunk, its part of each mode that is cut."""
        both = components(messages.step.before, messages.step.after)
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
    """A chunk of all messages of a rank.

    Attributes:
        messages: the messages of the chunk; in packed memory, chunks are contiguous and in order.
        ready: how far the work before must be before the chunk can leave.
        until: how far the work behind can go once this chunk and those before it have arrived.
    """

    messages: Messages
    ready: int
    until: int


class Pipelined(Method):
    """`MPI_Isend` and `MPI_Irecv` of chunk after chunk, between the steps of the work before and behind the move.

    Args:
        messages: the messages of the step.
        chunks: how they are cut; one chunk if None. Messages that are reduced are not cut.
    """

    overlaps = True

    def __init__(self, messages: Messages, chunks: Chunks | None = None) -> None:
        self._calls = Calls(messages, "pipelined")
        self._handle = mpi_comm(messages.comm, "pipelined").handle
        self.sizes: tuple[int, int] = messages.sizes
        if chunks is None or messages.step.before.partial or messages.step.after.partial:
            chunks = Chunks(None, None, 1)
        early, late = chunks.early, chunks.late
        cut = list(_cut(messages, chunks.parts(messages)))
        lows = [0] * len(cut)
        if late is not None:
            for k, each in enumerate(cut):
                lows[k] = min([reach(part.region, late, False)[0] for part in each.coming], default=_END)
        untils = [*accumulate(reversed(lows), min, initial=_END)][::-1]
        self._begun: int = untils[0]
        self._chunks: list[_Chunk] = []
        for each, until in zip(cut, untils[1:], strict=True):
            ready = _END if each.leaving else 0
            if early is not None:
                ready = max([reach(part.region, early, True)[1] for part in each.leaving], default=0)
            self._chunks.append(_Chunk(each, ready, until))

    @property
    def coming(self) -> list[Segment]:
        """All messages that come, in the order of chunks."""
        return [*chain(*(chunk.messages.coming for chunk in self._chunks))]

    def bound(self, transfer: Transfer) -> list[Copy]:
        return [partial(self.run, transfer)]

    def run(self, transfer: Transfer, before: Progress = (), after: Progress | None = None) -> None:
        """Run the step, together with the work before and behind it.

        Args:
            transfer: its four pieces of memory must not overlap.
            before: the work that makes the block.
            after: the work that reads the messages and writes `out`; if None, the messages are unpacked into `out`.
        """
        parts = [self._of(transfer, chunk.messages) for chunk in self._chunks]
        receiving = []
        for part in parts:
            requests = list[Any]()
            for number in range(len(part.messages.coming)):
                requests += self._calls.receive(*part.arriving(number))
            receiving.append(requests)
        sending = self._leave(parts, iter(before))
        arrivals = self._arrivals(parts, receiving)
        if after is not None:
            self._work(after, arrivals)
        elif transfer.messages.ordered:
            deque(arrivals, maxlen=0)
            run(transfer.unpacking())
        else:
            run(transfer.keeping())
            for _, part in arrivals:
                run(part.unpacking(part.where()))
        self._wait(sending)

    def _leave(self, parts: Sequence[Transfer], before: Iterator[tuple[int, Copy]]) -> list[Any]:
        """Do all of the work before, and send each chunk when it is made."""
        sending, made = list[Any](), 0
        for chunk, part in zip(self._chunks, parts, strict=True):
            while made < chunk.ready and (step := next(before, None)):
                made = step[0]
                self._do(step[1])
            run(part.packing(part.packed))
            for number in range(len(part.messages.leaving)):
                sending += self._calls.send(*part.departing(number))
        for _, work in before:
            self._do(work)
        return sending

    def _arrivals(
        self, parts: Sequence[Transfer], receiving: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[_Chunk, Transfer]]:
        """The chunks in order, each when it has arrived."""
        for chunk, part, requests in zip(self._chunks, parts, receiving, strict=True):
            self._wait(requests)
            yield chunk, part

    def _work(self, after: Progress, arrivals: Iterator[tuple[_Chunk, Transfer]]) -> None:
        """Do each step of the work behind the move as soon as the messages that it reads have arrived."""
        until = self._begun
        for needed, work in after:
            while until < needed:
                until = next(arrivals)[0].until
            self._do(work)
        deque(arrivals, maxlen=0)

    def _do(self, work: Copy) -> None:
        """Do a step of work, then call MPI, which makes progress with messages only while it is called."""
        work()
        self._handle.Iprobe()

    def _of(self, transfer: Transfer, messages: Messages) -> Transfer:
        """The part of a transfer that concerns some messages."""
        ends = transfer.block, transfer.out, transfer.packed, transfer.arrived
        return Transfer(messages, *ends, transfer.before, transfer.after)

    def _wait(self, requests: Sequence[Any]) -> None:
        if requests:
            requests[0].Waitall(requests)


def _cut(messages: Messages, parts: Sequence[dict[int, Parts]]) -> Iterator[Messages]:
    """The messages of each chunk, contiguous in packed memory. No chunk has the elements that the rank keeps."""
    starts = [0, 0]
    for part in parts:
        sides = []
        for side, segments in enumerate((messages.leaving, messages.coming)):
            cut = list[Segment]()
            for region, peer, _ in segments:
                region = part_of(region, _ranges(region, part), packs=side == 0)
                if region.size:
                    cut.append(Segment(region, peer, slice(starts[side], starts[side] + region.size)))
                    starts[side] += region.size
            sides.append(tuple(cut))
        leaving, coming = sides
        sends, receives = (counts(chunk, messages.comm.size) for chunk in sides)
        yield replace(messages, leaving=leaving, coming=coming, kept=None, sends=sends, receives=receives)


def _ranges(region: Region, parts: dict[int, Parts]) -> dict[int, tuple[int, int]]:
    """The ranges of a message's modes in a chunk. Both ends know its shape, and so cut it in the same way."""
    ranges: dict[int, tuple[int, int]] = {}
    for mode, (start, stop, number) in parts.items():
        extent = region.shape[mode]
        ranges[mode] = extent * start // number, extent * stop // number
    return ranges
