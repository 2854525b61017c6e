"""Memory that ranks share: what the system refuses is done without, and descriptors are closed."""

from __future__ import annotations

import errno
import os
import warnings
from itertools import pairwise, product

import numpy as np
import pytest

import rote
from rote.host import cores
from rote.runtime import world
from rote.runtime.comm import segments
from rote.runtime.comm.cache import DoubleBuffer
from rote.runtime.comm.threads import alone

REFUSED = OSError(errno.EINVAL, "refused by the test")


def refuse(*args):
    raise REFUSED


@pytest.mark.parametrize("call", ("memfd_create", "posix_fallocate", "open"))
def test_what_one_rank_is_refused_no_rank_has(monkeypatch, call):
    """Where one of three ranks is refused, all get None, at once, and one of them warns, the first time only."""
    real = getattr(os, call)

    def some(*args):
        if world().rank == 1 and str(args[0]).startswith(("rote", "/proc/")) | isinstance(args[0], int):
            refuse()
        return real(*args)

    monkeypatch.setattr(os, call, some)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert rote.run(lambda comm: [segments.share(comm, 100) for _ in range(2)], 3) == [[None] * 2] * 3
    assert [str(each.message) for each in caught] == [
        "ranks send messages, for they cannot share memory: [Errno 22] refused by the test"
    ]


def test_a_system_without_files_in_memory(monkeypatch):
    """Where there is no such call at all, nothing is shared."""
    monkeypatch.delattr(os, "memfd_create")
    with pytest.warns(RuntimeWarning, match="memfd_create"):
        assert rote.run(lambda comm: segments.share(comm, 1), 2) == [None] * 2


def test_cores_are_counted_where_affinity_is_not_told(monkeypatch):
    """A process that may not ask which cores it may use is taken to have all."""
    for name, value in (("refused", refuse), ("absent", None)):
        if name == "absent":
            monkeypatch.delattr(os, "sched_getaffinity")
        else:
            monkeypatch.setattr(os, "sched_getaffinity", value)
        assert cores() == frozenset(range(os.cpu_count()))


def test_memory_is_given_back():
    """Parts are unmapped with the last array on them, and hold no descriptor while they live."""

    def ours():
        with open("/proc/self/maps") as lines:
            return sum("memfd:rote" in line for line in lines)

    before, files = ours(), len(os.listdir("/proc/self/fd"))

    def program(comm):
        parts = segments.share(comm, 10_000)
        found = ours() - before, len(os.listdir("/proc/self/fd")) - files
        comm.barrier()
        last = parts[-1][5:]
        del parts
        comm.barrier()
        last[...] = 1
        return found

    held = rote.run(program, 2)
    assert max(mapped for mapped, _ in held) >= 2 and ours() == before
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("pattern", [*product((True, False), repeat=5)])
def test_no_memory_is_written_that_others_may_be_reading(pattern):
    """Law: of halves and whole pieces in any order; and there is no barrier beside that of each move between halves."""
    memory, waited, read = DoubleBuffer(alone()), 0, np.zeros(0)
    memory.grow([64])
    for halved in pattern:
        before = memory.reading
        waits, (piece,) = memory.next_piece(halved)
        assert piece.nbytes == (64 if halved else 128)
        if waits:
            read = np.zeros(0)
        assert not np.may_share_memory(piece, read)
        waited += len(waits)
        assert waits == [] or before == {0, 1} or not halved
        read = piece  # after a barrier of the move
    assert waited == sum(not all(pair) for pair in pairwise(pattern))
