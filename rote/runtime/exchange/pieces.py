"""Large messages in pieces: each is packed, sent and unpacked before the next, so that most of it stays in cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from ..copy.parts import part_of
from .messages import Messages, Segment, counts

__all__ = ["in_pieces"]

_PIECE = 1 << 22  # bytes of a piece of a message: with half a MiB, MPI takes many times as long
_LEAST = 4  # the fewest pieces that pay


def in_pieces(messages: Messages, copied: bool) -> list[Messages]:
    """The pieces of a rank's messages, which all use the same packed memory in turn; none if the messages are small.

    All ranks have the same number of pieces, and both ends of a message cut it in the same way. Messages that are
    reduced, or that no rank packs or unpacks, stay whole. Collective if some rank has a large block.

    Args:
        copied: whether this rank packs the messages that leave, or unpacks those that come.
    """
    ends = messages.step.before, messages.step.after
    block = max(prod(dist.max_local_shape()) for dist in ends) * messages.dtype.itemsize
    if block < _LEAST * _PIECE or any(dist.partial for dist in ends):
        return []
    largest = max(*messages.sends, *messages.receives) * messages.dtype.itemsize
    sizes, copies = zip(*messages.comm.allgather_object((largest, copied)), strict=True)
    number = max(sizes) // _PIECE
    if number < _LEAST or not any(copies):
        return []
    return [*_cut(messages, number)]


def _cut(messages: Messages, number: int) -> Iterator[Messages]:
    for k in range(number):
        leaving = _parts(messages.leaving, k, number, packs=True)
        coming = _parts(messages.coming, k, number, packs=False)
        sends, receives = (counts(parts, messages.comm.size) for parts in (leaving, coming))
        yield replace(messages, leaving=leaving, coming=coming, kept=None, sends=sends, receives=receives)


def _parts(segments: Sequence[Segment], k: int, number: int, packs: bool) -> tuple[Segment, ...]:
    """Part `k` of each message."""
    cut, start = list[Segment](), 0
    for region, peer, _ in segments:
        mode = next((m for m, n in enumerate(region.shape) if n >= number), None)
        if mode is None:
            mode = max(range(len(region.shape)), key=lambda m: region.shape[m], default=0)
        n = region.shape[mode]
        part = part_of(region, {mode: (n * k // number, n * (k + 1) // number)}, packs)
        if part.size:
            cut.append(Segment(part, peer, slice(start, start + part.size)))
            start += part.size
    return tuple(cut)
