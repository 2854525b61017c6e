"""Messages in chunks: a chunk travels while the work before the step makes the next, and the work behind it goes on.

The work before a step goes on along one mode of its block, that behind it along one of the new block; either says after
each of its steps how far it is. The first half of what the work behind needs is cut along the mode of the work before,
so that it leaves as it is made; the other half, which leaves when all is made, along the mode of the work behind, so
that this goes on as it arrives. So the slower of link and work is all that counts, but for a chunk at both ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...compiler.movement import components
from ..copy.parts import part_of, reach
from ..copy.regions import Region
from ..copy.strided import Copy
from .messages import Messages, Segment, Transfer, run
from .method import Method, mpi_comm
from .point_to_point import Calls

__all__ = ["Chunks", "Pipelined", "Progress"]

MODE='spin'
Progress = Iterable[tuple[int, Copy]]
"""Work in steps, in order; with each, how far it reaches along the mode of the work: of what it makes, or reads."""

Parts = tuple[int, int, int]  # from which to which of how many equal parts of a mode


class Chunks(NamedTuple):
    """A cut of the messages of a step; the same on all ranks.

    Attributes:
        early: the mode of the block before, along which it is made; None if it is all there at once.
        late: the mode of the block after, along which it is read; None if it is all read at once.
        number: of chunks, at most.
    """

    early: int | None
    late: int | None
    number: int

    def parts(self, messages: Messages) -> list[dict[int, Parts]]:
        """Per chunk, the part of each mode of a message that is cut."""
        found = components(messages.step.before, messages.step.after)
        early, late = (
            next((k for k, part in enumerate(found) if mode is not None and mode in part[side]), None)
            for side, mode in enumerate((self.early, self.late))
        )
        number = self.number
        if early is None or late is None or early == late:
            mode = late if early is None else early
            return [{} if mode is None else {mode: (k, k + 1, number)} for k in range(1 if mode is None else number)]
        half = max(1, number // 2)
        return [
            *({early: (k, k + 1, half), late: (0, 1, 2)} for k in range(half)),
            *({late: (half + k, half + k + 1, 2 * half)} for k in range(half)),
        ]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of all messages of a rank.

    Attributes:
        messages: those of the chunk, which lie in packed memory as one behind the other chunks'.
        ready: how far the work before has to be for it to leave.
        until: how far the work behind can go when this chunk and those before it are here; None is to the end.
    """

    messages: Messages
    ready: int
    until: int | None


class Pipelined(Method):
    """`MPI_Isend` and `MPI_Irecv` of chunk after chunk, between the steps of the work on both sides of the move.

    Args:
        messages: of the step.
        chunks: how they are cut; one chunk if None. What is reduced is not cut.
    """

    __slots__ = ("_calls", "_chunks", "_handle", "_here")
    overlaps = True

    def __init__(self, messages: Messages, chunks: Chunks | None = None) -> None:
        self._calls = Calls(messages, "pipelined")
        self._handle = mpi_comm(messages.comm, "pipelined").handle
        super().__init__(messages.sizes)
        if chunks is None or messages.step.before.partial or messages.step.after.partial:
            chunks = Chunks(None, None, 1)
        early, late = chunks.early, chunks.late
        cut = list(_cut(messages, chunks.parts(messages)))
        lows = [
            min((reach(part.region, late, False)[0] for part in each.coming), default=None)
            for each in cut
            if late is not None
        ]
        untils = [min((low for low in lows[k:] if low is not None), default=None) for k in range(len(lows) + 1)]
        self._here: int | None = untils[0] if late is not None else 0
        self._chunks: list[_Chunk] = []
        for k, each in enumerate(cut):
            ends = [reach(part.region, early, True)[1] for part in each.leaving] if early is not None else []
            until = untils[k + 1] if late is not None else (0 if k + 1 < len(cut) else None)
            self._chunks.append(_Chunk(each, max(ends, default=0), until))

    @property
    def coming(self) -> list[Segment]:
        """All messages that come, in order of chunks."""
        return [part for chunk in self._chunks for part in chunk.messages.coming]

    def __call__(self, transfer: Transfer) -> None:
        self.run(transfer)

    def run(self, transfer: Transfer, before: Progress = (), after: Progress | None = None) -> None:
        """Run the step between the steps of work before and behind it.

        Args:
            transfer: whose four pieces of memory are apart from each other.
            before: makes the block.
            after: reads what arrives, and makes what is behind it; `out` is made if that is None.
        """
        chunks = [(chunk, self._of(transfer, chunk.messages)) for chunk in self._chunks]
        receiving = [
            [
                request
                for number, part in enumerate(each.messages.coming)
                for request in self._calls.receive(*each.arriving(number))
            ]
            for _, each in chunks
        ]
        sending, makes, made = [], iter(before), 0
        for chunk, each in chunks:
            while made < chunk.ready:
                reached = self._step(makes)
                if reached is None:
                    break
                made = reached
            run(each.packing(each.packed))
            for number in range(len(each.messages.leaving)):
                sending += self._calls.send(*each.departing(number))
        while self._step(makes) is not None:
            pass
        arrivals = iter(zip(chunks, receiving, strict=True))
        here = self._here
        if after is None and not transfer.messages.ordered:
            transfer.copy_kept()
        for needed, work in after or ():
            while here is not None and here < needed:
                (chunk, _), requests = next(arrivals)
                self._wait(requests)
                here = chunk.until
            work()
            self._poke()
        for (_, each), requests in arrivals:
            self._wait(requests)
            if after is None and not transfer.messages.ordered:
                run(each.unpacking(each.where()))
        if after is None and transfer.messages.ordered:
            transfer.unpack()
        self._wait(sending)

    def _of(self, transfer: Transfer, messages: Messages) -> Transfer:
        """The part of a transfer that is of some messages."""
        ends = transfer.block, transfer.out, transfer.packed, transfer.arrived
        return Transfer(messages, *ends, transfer.before, transfer.after)

    def _step(self, work: Iterator[tuple[int, Copy]]) -> int | None:
        """Do a step, and say how far it reaches; None if there is none."""
        for reached, step in work:
            step()
            self._poke()
            return reached
        return None

    def _poke(self) -> None:
        """Let MPI go on with what is under way, which it only does when it is called."""
        self._handle.Iprobe()

    def _wait(self, requests: Sequence[object]) -> None:
        import os, time
        mode = MODE
        if not requests:
            return
        if mode == "spin":
            requests[0].Waitall(requests)  # type: ignore[attr-defined]
            return
        while not requests[0].Testall(requests):
            if mode == "yield":
                os.sched_yield()
            else:
                time.sleep(float(mode))


def _cut(messages: Messages, parts: Sequence[dict[int, Parts]]) -> Iterator[Messages]:
    """The messages of each chunk, which lie one behind the other in packed memory; what the rank keeps is in none."""
    starts = [0, 0]
    for part in parts:
        sides = []
        for side, segments in enumerate((messages.leaving, messages.coming)):
            chunk = []
            for region, peer, _ in segments:
                region = part_of(region, _ranges(region, part), packs=side == 0)
                if region.size:
                    chunk.append(Segment(region, peer, slice(starts[side], starts[side] + region.size)))
                    starts[side] += region.size
            sides.append(tuple(chunk))
        counts = [[0] * messages.comm.size, [0] * messages.comm.size]
        for count, chunk in zip(counts, sides, strict=True):
            for region, peer, _ in chunk:
                count[peer] = region.size
        sends, receives = (tuple(each) for each in counts)
        yield replace(messages, leaving=sides[0], coming=sides[1], kept=None, sends=sends, receives=receives)


def _ranges(region: Region, parts: dict[int, Parts]) -> dict[int, tuple[int, int]]:
    """The ranges of a message's modes: both of its ends know its shape, and so cut it alike."""
    return {
        mode: (region.shape[mode] * start // number, region.shape[mode] * stop // number)
        for mode, (start, stop, number) in parts.items()
    }
