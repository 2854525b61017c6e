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
        for each in deliveries:
            volumes[each.sender] += prod(stop - start for start, stop in each.places)
        for sender, volume in volumes.items():
            if sender != rank:
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
    held = source.index_sets(rank)
    wanted = tuple([len(h) + low + high if h else 0 for h, (low, high) in zip(held, widths, strict=True)])
    if shape != wanted:
        raise PlanError(f"the halo of rank {rank} is of {shape}, not {wanted}")
    firsts = tuple(h.start - low for h, (low, _) in zip(held, widths, strict=True))
    for each in deliveries:
        owned = source.index_sets(each.sender)
        for mode, (place, indices) in enumerate(zip(each.places, each.indices, strict=True)):
            index, extent = firsts[mode] + place[0], source.shape[mode]
            begin = index % extent if periodic[mode] else index
            if indices != (begin, begin + place[1] - place[0]):
                raise PlanError(f"rank {rank} is given {indices} at {place} of mode {mode}, where index {begin} is")
            if len(owned[mode] & IndexSet.interval(*indices)) != indices[1] - indices[0]:
                raise PlanError(f"rank {each.sender} is to give {indices} of mode {mode}, but holds {owned[mode]}")
    inside = []
    for n, first, extent, around in zip(shape, firsts, source.shape, periodic, strict=True):
        low, high = (0, n) if around else (max(0, -first), max(0, extent - first))
        inside.append((min(low, n), min(high, n)))
    _verify_cover(rank, shape, tuple(inside), [each.places for each in deliveries])


def _verify_cover(rank: int, shape: tuple[int, ...], inside: tuple[Range, ...], boxes: list[tuple[Range, ...]]) -> None:
    """Raise PlanError unless the boxes cover the box `inside` once, and nothing else; counted between their borders."""
    borders = []
    for mode, n in enumerate(shape):
        ends = [end for box in (inside, *boxes) for end in box[mode]]
        borders.append(sorted({0, n, *ends}))
    counts = np.zeros([len(each) - 1 for each in borders], np.int64)

    def cells(box: tuple[Range, ...]) -> tuple[slice, ...]:
        along = zip(borders, box, strict=True)
        return tuple([slice(each.index(start), each.index(stop)) for each, (start, stop) in along])

    for box in boxes:
        counts[cells(box)] += 1
    expected = np.zeros_like(counts)
    if prod(shape):
        expected[cells(inside)] = 1
    if (counts != expected).any():
        first = tuple(np.argwhere(counts != expected)[0])
        at = tuple(each[int(k)] for each, k in zip(borders, first, strict=True))
        raise PlanError(
            f"of the halo of rank {rank} the cells from {at} on arrive {counts[first]} times, not {expected[first]}"
        )
