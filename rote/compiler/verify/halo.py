"""The certificate of a halo: from the index sets alone, every ghost cell arrives once, from a rank that holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from ...errors import PlanError
from ...layout.distribution import Distribution
from ...layout.indexset import IndexSet

__all__ = ["Delivery", "verify_deliveries"]

Range = tuple[int, int]


class Delivery(NamedTuple):
    """A box of a rank's halo and the rank that holds its elements.

    Attributes:
        sender: the rank that holds them, which may be the receiver itself.
        places: per mode, the range of the box in the halo.
        indices: per mode, the range of its global indices.
    """

    sender: int
    places: tuple[Range, ...]
    indices: tuple[Range, ...]


def verify_deliveries(
    source: Distribution,
    widths: tuple[Range, ...],
    periodic: tuple[bool, ...],
    halos: Mapping[int, tuple[tuple[int, ...], tuple[Delivery, ...]]],
    claimed: tuple[Range, ...] | None = None,
) -> None:
    """Raise PlanError unless each cell of the halos is delivered once, by a rank that holds it, at the claimed cost.

    Args:
        source, widths, periodic: the definition of the halo.
        halos: per rank, the shape of its halo, and its deliveries.
        claimed: the most messages and elements that any rank receives, and the most that any rank sends.
    """
    received, sent = Counter[int](), Counter[int]()
    from_ranks, to_ranks = Counter[int](), Counter[int]()

    for rank, (shape, deliveries) in halos.items():
        _verify_rank(source, widths, periodic, rank, shape, deliveries)
        volumes = Counter[int]()
        for box in deliveries:
            volumes[box.sender] += prod(stop - start for start, stop in box.places)

        del volumes[rank]  # what a rank copies from its own block is no message
        for sender, volume in volumes.items():
            received[rank] += volume
            sent[sender] += volume
            from_ranks[rank] += 1
            to_ranks[sender] += 1

    most = (_most(from_ranks), _most(received)), (_most(to_ranks), _most(sent))
    if claimed is not None and claimed != most:
        raise PlanError(f"the busiest ranks receive and send {most} messages and elements, not {claimed}")


def _most(counts: Counter[int]) -> int:
    return max(counts.values(), default=0)


def _verify_rank(
    source: Distribution,
    widths: tuple[Range, ...],
    periodic: tuple[bool, ...],
    rank: int,
    shape: tuple[int, ...],
    deliveries: tuple[Delivery, ...],
) -> None:
    """Raise PlanError unless one rank's halo has the right shape, and each cell inside the tensor arrives once."""
    block = source.index_sets(rank)
    right = tuple([len(h) + low + high if h else 0 for h, (low, high) in zip(block, widths, strict=True)])
    if shape != right:
        raise PlanError(f"the halo of rank {rank} is of {shape}, not {right}")

    firsts = tuple(h.start - low for h, (low, _) in zip(block, widths, strict=True))
    for sender, places, ranges in deliveries:
        owned = source.index_sets(sender)
        for mode, (place, indices) in enumerate(zip(places, ranges, strict=True)):
            index, extent = firsts[mode] + place[0], source.shape[mode]
            begin = index % extent if periodic[mode] else index
            if indices != (begin, begin + place[1] - place[0]):
                raise PlanError(f"rank {rank} is given {indices} at {place} of mode {mode}, where index {begin} is")
            if len(owned[mode] & IndexSet.interval(*indices)) != indices[1] - indices[0]:
                raise PlanError(f"rank {sender} is to give {indices} of mode {mode}, but holds {owned[mode]}")

    # Cells beyond the ends of a mode that is not periodic are filled, so nothing arrives there.
    inside = []
    for n, first, extent, around in zip(shape, firsts, source.shape, periodic, strict=True):
        low, high = (0, n) if around else (max(0, -first), max(0, extent - first))
        inside.append((min(low, n), min(high, n)))
    _verify_cover(rank, shape, tuple(inside), [box.places for box in deliveries])


def _verify_cover(rank: int, shape: tuple[int, ...], inside: tuple[Range, ...], boxes: list[tuple[Range, ...]]) -> None:
    """Raise PlanError unless the boxes cover the box `inside` once, and nothing else; counted between their borders."""
    borders = []
    for mode, n in enumerate(shape):
        ends = [end for box in (inside, *boxes) for end in box[mode]]
        borders.append(sorted({0, n, *ends}))

    #     borders 0 1 4 6, a box from 1 to 6: it has the cells 1 and 2 of     |0|  1  | 2 |
    def cells(box: tuple[Range, ...]) -> tuple[slice, ...]:
        along = zip(borders, box, strict=True)
        return tuple([slice(edges.index(start), edges.index(stop)) for edges, (start, stop) in along])

    counts = np.zeros([len(edges) - 1 for edges in borders], np.int64)
    for box in boxes:
        counts[cells(box)] += 1
    expected = np.zeros_like(counts)
    if prod(shape):
        expected[cells(inside)] = 1

    if (counts != expected).any():
        first = tuple(np.argwhere(counts != expected)[0])
        at = tuple(edges[int(k)] for edges, k in zip(borders, first, strict=True))
        raise PlanError(
            f"of the halo of rank {rank} the cells from {at} on arrive {counts[first]} times, not {expected[first]}"
        )
