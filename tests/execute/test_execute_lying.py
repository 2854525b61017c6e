"""Messages that lie in a few long runs of blocks leave one, and arrive in the other, as they lie there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import pick_layout, pick_shape
from compiler.by_messages import packed
from execute import lying

import rote
from rote.compiler.movement import movement
from rote.runtime.regions import long_runs, receive_regions, send_regions


def _bytes_at(block, places):
    """The bytes of a block at strided offsets, in order, each with those of one element behind it."""
    start, shape, steps = places
    offsets = start + sum(np.indices(shape)[k] * step for k, step in enumerate(steps))
    return block.reshape(-1)[offsets.reshape(-1) // block.itemsize].tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_runs_are_the_message(seed, monkeypatch):
    """Law: where a message lies in runs, the elements at their offsets are the message, in its order."""
    import random

    monkeypatch.setattr("rote.runtime.regions._LONG", 1)
    pick, number = random.Random(seed).choice, 0
    for _ in range(20):
        shape = pick_shape(pick)
        source, target = (pick_layout(pick, shape, (2, 2)).on(shape, (2, 2)) for _ in range(2))
        for rank in range(4):
            block = np.random.default_rng(rank).random(source.local_shape(rank))
            for region in send_regions(movement(source, target), rank):
                places = long_runs(region, 8, packs=True)
                if places is not None:
                    number += 1
                    assert _bytes_at(block, places) == packed(region, block).tobytes(), (source, target, rank)
            for region in receive_regions(movement(source, target), rank):
                places = long_runs(region, 8, packs=False)
                if places is not None:
                    number += 1
                    new = np.zeros(target.local_shape(rank))
                    message = np.random.default_rng(rank).random(region.shape)
                    region.copy(message, new)
                    assert _bytes_at(new, places) == message.tobytes(), (source, target, rank)
    assert number


def test_short_and_many_runs_are_none():
    """Laws: runs shorter than 16 KiB are packed, and so are more than 1024; what is one run is sent, however long."""

    def runs(text, shape):
        before, after = (rote.parse(each).on(shape, 2) for each in text.split(" -> "))
        region = next(region for region in send_regions(movement(before, after), 0) if region.peer == 1)
        return long_runs(region, 8, packs=True)

    swap = "block[(0),()] -> block[(),(0)]"
    assert runs(swap, (8, 4096)) == (8 * 2048, (4, 2048), (8 * 4096, 8))
    assert runs(swap, (8, 4094)) is None
    assert runs(swap, (2 * 1024, 4096)) is not None
    assert runs(swap, (2 * 1025, 4096)) is None
    assert runs("block[(0),()] -> [(0),()]", (8192, 2)) is None


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, pytest.param(3, marks=pytest.mark.slow)), indirect=True)
def test_messages_that_lie_are_right(job):
    """Laws: the blocks are those of all methods, bit for bit; where runs are long, some messages leave the block, and
    arrive in the new one, as they lie there."""
    done = job.run(Path(lying.__file__), 24)
    assert (done.returncode, done.stderr) == (0, "")
    lie, pack, land, unpack = map(int, done.stdout.split())
    assert lie > 1 and pack and land > 1 and unpack
