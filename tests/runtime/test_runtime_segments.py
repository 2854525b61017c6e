"""Blocks that other processes can map: memory is taken up again, bounded, and a forked process leaves it alone."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest
from execute import segments as program

import rote
from rote.caches import cache_info
from rote.runtime.comm import segments
from rote.runtime.comm.cache import DoubleBuffer
from rote.runtime.plans import bind

SHAPE, DTYPE = (40, 512), np.dtype("f8")
NBYTES = 40 * 512 * 8


@pytest.fixture
def pool(monkeypatch):
    """A pool of its own, which has learnt nothing."""
    gc.collect()
    fresh = segments._Pool()
    monkeypatch.setattr(segments, "_pool", fresh)
    yield fresh
    gc.collect()
    fresh._settle()
    fresh.cache_clear()


def test_only_what_will_be_read_lies_in_a_segment(pool):
    """Small blocks never; others if one of their size was packed, or if they last and blocks are read here at all."""

    def lies(shape, lasting=False):
        return segments.address_of(segments.empty(shape, DTYPE, lasting)) is not None

    assert [lies(SHAPE), lies(SHAPE, True)] == [False, False]
    segments.expect()
    assert [lies(SHAPE), lies(SHAPE, True), lies((2, 3), True)] == [False, True, False]
    segments.expect(NBYTES)
    segments.expect(48)
    assert [lies(SHAPE), lies((NBYTES // 8,)), lies((41, 512)), lies((2, 3))] == [True, True, False, False]
    for size in range(1000):
        segments.expect(segments.LEAST + size)
    assert len(pool.sizes) <= segments._SIZES and not lies(SHAPE)


def test_views_are_found_and_copies_are_not(pool):
    """A block is an ordinary array; a view of it lies so many bytes behind, and whoever maps the segment sees it."""
    segments.expect()
    block = segments.empty(SHAPE, DTYPE, lasting=True)
    assert type(block) is np.ndarray and block.flags.c_contiguous and block.flags.writeable
    block[...] = np.arange(block.size).reshape(SHAPE)
    for part in (block, block[3:7], block.reshape(-1)[5:], block.view("u1")):
        place = segments.address_of(part)
        seen = segments.reach(place)[: part.nbytes].view(part.dtype)
        assert np.array_equal(seen, part.reshape(-1)) and not np.may_share_memory(seen, part)
        assert segments._pool.pid == place.pid
    for other in (block.copy(), np.empty(SHAPE), np.frombuffer(bytes(80))):
        assert segments.address_of(other) is None
    with pytest.raises(OSError, match="not what another rank has made"):
        segments.reach(place._replace(mark=place.mark ^ 1))
    with pytest.raises(OSError):
        segments.reach(place._replace(fd=10**6))


def test_memory_is_taken_up_again_and_bounded(pool, monkeypatch):
    """The next block lies where the last one did; without blocks, no more stays than lay there at once not long ago.

    When others have come after these, it is a fixed size.
    """
    monkeypatch.setattr(segments, "_IDLE", 3 * NBYTES)
    segments.expect()
    files = len(os.listdir("/proc/self/fd"))

    def take():
        return segments.empty(SHAPE, DTYPE, lasting=True)

    first = take()
    address = first.ctypes.data
    view = first[5:]
    del first
    second = take()
    assert second.ctypes.data != address  # a view of it is held
    second[...] = 1
    del view
    third = take()
    assert third.ctypes.data == address and (second == 1).all()
    blocks = [take() for _ in range(8)]
    assert pool.number == 10 and len({block.ctypes.data for block in blocks}) == 8
    places = [segments.address_of(block) for block in blocks]
    seen = segments.reach(places[-1])
    blocks[-1][...] = 7
    assert seen[:8].view("f8")[0] == 7
    del second, third, blocks
    assert len(pool.idle) == 10 and pool.cache_info()[2] == pool.cache_info()[3] > 3 * NBYTES
    for _ in range(segments._RECENT):
        take()
    assert sum(segment.memory.nbytes for segment in pool.idle) <= 3 * NBYTES
    assert pool.number == len(pool.idle) and pool.in_use == 0
    assert len(os.listdir("/proc/self/fd")) == files + len(pool.idle)
    assert not seen[:8].any()  # its pages are the system's again, though it is mapped here


def test_segments_are_so_many_at_most(pool, monkeypatch):
    """More blocks than segments lie in plain memory; so do all when the system refuses a segment.

    A segment without a block makes room for one of another size.
    """
    monkeypatch.setattr(segments, "_MOST", 2)
    segments.expect()
    blocks = [segments.empty(SHAPE, DTYPE, lasting=True) for _ in range(4)]
    assert [segments.address_of(block) is not None for block in blocks] == [True, True, False, False]

    del blocks
    other = segments.empty((3 * NBYTES,), np.dtype("u1"), lasting=True)
    assert segments.address_of(other) is not None and (pool.number, len(pool.idle)) == (2, 1)

    def refuse(*args):
        raise OSError(errno.EMFILE, "refused by the test")

    monkeypatch.setattr(segments, "_MOST", 9)
    monkeypatch.setattr(os, "memfd_create", refuse)
    assert segments.address_of(segments.empty((2, *SHAPE), DTYPE, lasting=True)) is None and pool.refused


def test_a_forked_process_takes_none_of_its_parents(pool):
    """It sees the blocks, and gives none of them to itself."""
    segments.expect()
    block = segments.empty(SHAPE, DTYPE, lasting=True)
    idle = segments.empty(SHAPE, DTYPE, lasting=True)
    block[...], taken = 5, {block.ctypes.data, idle.ctypes.data}
    del idle
    child = os.fork()
    if not child:
        try:
            right = (block == 5).all() and segments.address_of(block) is None
            del block
            gc.collect()
            segments.expect()
            own = [segments.empty(SHAPE, DTYPE, lasting=True) for _ in range(3)]
            for each in own:
                each[...] = 9
            right = right and segments.address_of(own[0]).pid == os.getpid()
            os._exit(0 if right else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert (block == 5).all()
    assert segments.empty(SHAPE, DTYPE, lasting=True).ctypes.data in taken


def test_blocks_begin_at_a_cache_line(pool, monkeypatch):
    """Law: all blocks but small ones do: in plain memory, in either kind of segment, and what ranks share."""
    monkeypatch.setattr(segments, "_LARGE", NBYTES)
    segments.expect()
    kept = []
    for shape, lasting in (((3, 200), False), ((40, 511), False), ((40, 513), False), (SHAPE, True)):
        kept.append(segments.empty(shape, DTYPE, lasting))
    assert [segments.address_of(block) is not None for block in kept] == [False, False, False, True]

    plan = rote.compile("block[(0),(),()] -> block[(),(),(0)]", shape=(16, 18, 20), grid=3)

    def program(comm):
        block = segments.empty(plan.source.local_shape(comm.rank), DTYPE)
        block[...] = comm.rank
        return [block, bind(plan, comm)(block), *DoubleBuffer.of(comm, 1000).halves[comm.rank]]

    kept += [block for blocks in rote.run(program, 3) for block in blocks]
    assert [block.ctypes.data % segments.LINE for block in kept] == [0] * len(kept)


@pytest.mark.mpi
@pytest.mark.parametrize("job, number", [(3, 12), pytest.param(4, 120, marks=pytest.mark.slow)], indirect=["job"])
def test_what_is_read_where_it_lies_is_what_is_packed(job, number):
    """Blocks in segments, in plain memory, and both; bound and not; refused on one rank; forgotten by their owners."""
    done = job.run(Path(program.__file__), number)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "as packed\n" * job.ranks


def test_large_blocks_of_one_process_take_up_memory_too(pool, monkeypatch):
    """One lies where the last one did, unset; no other process is shown it, and nothing shown lies there."""
    monkeypatch.setattr(segments, "_LARGE", NBYTES)
    small = segments.empty((NBYTES // 8 - 1,), DTYPE)
    assert segments.address_of(small) is None and pool.in_use == 0 and pool.cache_info() == (0, 0, segments._IDLE, 0)
    first = segments.empty(SHAPE, DTYPE)
    first[...] = 3
    address = first.ctypes.data
    assert segments.address_of(first) is None and pool.in_use >= NBYTES
    del first
    segments.expect()
    shown = segments.empty(SHAPE, DTYPE, lasting=True)
    assert segments.address_of(shown) is not None and shown.ctypes.data != address
    again = segments.empty(SHAPE, DTYPE)
    assert again.ctypes.data == address and pool.cache_info()[:2] == (1, 2)
    del again
    assert NBYTES <= pool.cache_info()[3] < NBYTES + segments._GRAIN
    pool.cache_clear()
    assert pool.cache_info() == (0, 0, segments._IDLE, 0) and (shown.fill(1), shown.sum())[1] == shown.size


def test_lent_memory_is_whole_when_it_is_written_to(pool, monkeypatch):
    """What the system may take of memory without a block is what the next block writes, and never its values."""
    monkeypatch.setattr(segments, "_LARGE", 1)
    for turn in range(4):
        block = segments.empty((1 << 20,), DTYPE)  # 8 MiB, several huge pages
        block[...] = turn
        other = segments.empty((1 << 20,), DTYPE)
        other[...] = -1
        del other
        assert (block == turn).all()
        del block
    assert pool.cache_info()[:2] == (6, 2)
    assert "rote.runtime.comm.segments.empty" in cache_info()
