"""Messages cut in parts: ranges of a message are messages of their own, and all ranges together are the message."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from compiler.by_messages import packed
from execute import moves

from rote.compiler.movement import movement
from rote.runtime.regions import cut, part_of, range_along, receive_regions, send_regions


def ranges_of(shape, rng):
    """Ranges that cut some modes of a message in two or three, and so all of it, each element in one."""
    parts = [{}]
    for mode, n in enumerate(shape):
        if rng.random() < 0.7:
            edges = sorted({0, n, *rng.integers(0, n + 1, 2).tolist()})
            spans = list(itertools.pairwise(edges)) or [(0, 0)]
            parts = [{**part, mode: span} for part in parts for span in spans]
    return parts


@pytest.mark.parametrize("seed", (0, pytest.param(1, marks=pytest.mark.slow)))
def test_parts_of_messages_are_the_messages(seed):
    """Packed part by part and unpacked part by part, the blocks are those of the whole messages; a part packed is a
    range of the message; and no element lies outside of what `range_along` says, along any mode."""
    rng, cuts = np.random.default_rng(seed), 0
    for source, target, _ in moves.transitions(3, 900 if seed else 150, seed):
        if source.partial or target.partial or source.layout.rooted or target.layout.rooted:
            continue
        array = np.arange(1, 1 + int(np.prod(source.shape)), dtype="i8").reshape(source.shape)
        blocks = [cut(array, source, rank) for rank in range(source.grid.size)]
        messages = {}
        for rank, block in enumerate(blocks):
            for region in send_regions(movement(source, target), rank):
                whole = packed(region, block)
                parts = ranges_of(region.shape, rng)
                taken = [part_of(region, ranges, packs=True) for ranges in parts]
                messages[rank, region.peer] = parts, [packed(part, block) for part in taken]
                cuts += len(parts) > 1
                for ranges, part, message in zip(parts, taken, messages[rank, region.peer][1], strict=True):
                    spans = [slice(*ranges.get(mode, (0, n))) for mode, n in enumerate(region.shape)]
                    assert np.array_equal(message, whole[tuple(spans)])
                    for mode in range(block.ndim) if part.size else ():
                        low, high = range_along(part, mode, packs=True)
                        here = np.isin(block, message).any(tuple(m for m in range(block.ndim) if m != mode))
                        assert [low, high - 1] == np.flatnonzero(here)[[0, -1]].tolist()
        for rank in range(target.grid.size):
            found = np.zeros(target.local_shape(rank), array.dtype)
            for region in receive_regions(movement(source, target), rank):
                for ranges, message in zip(*messages[region.peer, rank], strict=True):
                    part = part_of(region, ranges, packs=False)
                    part.copy(message, found)
                    for mode in range(found.ndim) if part.size else ():
                        low, high = range_along(part, mode, packs=False)
                        here = np.isin(found, message).any(tuple(m for m in range(found.ndim) if m != mode))
                        assert [low, high - 1] == np.flatnonzero(here)[[0, -1]].tolist()
            assert np.array_equal(found, cut(array, target, rank))
    assert cuts > 20
