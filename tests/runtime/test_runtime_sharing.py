"""Memory that ranks share: what the system refuses is done without, descriptors are closed, and all walks have one."""

from __future__ import annotations

import errno
import os
import textwrap
import warnings

import pytest

import rote
from rote.host import cores
from rote.runtime import world
from rote.runtime.comm import segments

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


PROGRAM = """
import ctypes, errno, os, sys, warnings
import numpy as np
import rote
from rote import DistTensor
from rote.runtime.comm import segments
from rote.runtime import world

comm = world()
array = np.random.default_rng(1).standard_normal((7, 5, 6))

def use(team):
    x = DistTensor.from_global(array, "block[(0),(),()]", team)
    assert np.array_equal(x.redistribute("[(),(0),()]").to_global(), array)
    assert np.allclose(rote.fft.rfftn(x).to_global(), np.fft.rfftn(array))
    f = rote.fft.FFT(array.shape, x.layout, comm=team, dtype="f8")
    assert np.allclose(f.backward(f.forward(x)).to_global(), array)
    return team.cache["double buffer"]

def refused(*args):
    raise OSError(errno.ENOSPC, "no room")

def failing(*args):
    ctypes.set_errno(errno.EINVAL)
    return ctypes.c_void_p(-1).value

# One rank alone is refused something: all send messages, and one warns, once.
system = segments._system()
for place, name, instead, said in (
    (os, "memfd_create", refused, 1), (os, "posix_fallocate", refused, 1), (os, "open", refused, 1),
    (system, "mmap", failing, 1), (system, "madvise", failing, 0),
):
    segments._warned.__dict__.clear()
    team, kept = comm.split(0, comm.rank), getattr(place, name)
    if comm.rank == 1:
        setattr(place, name, instead)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        room = use(team)
    setattr(place, name, kept)
    assert (room is None) == bool(said), name
    texts = [str(each.message) for each in caught if "cannot share" in str(each.message)]
    counts = comm.allgather_object(len(texts))
    assert counts == [0, said, 0], (name, counts)

# All walks of a communicator, and what moves by messages, have one mapping per rank, and no descriptor.
def maps():
    with open("/proc/self/maps") as lines:
        return sum("memfd:rote" in line for line in lines)

team = comm.split(0, comm.rank)
use(team)
before, files = maps(), len(os.listdir("/proc/self/fd"))
transforms = []
for turn in range(2):  # the second time in the room that has grown, and in the order in which it has not
    for n in range(3, 11):
        values = np.random.default_rng(n).standard_normal((n, 5, 7))
        x = DistTensor.from_global(values, "block[(0),(),()]", team)
        assert np.allclose(rote.fft.rfftn(x).to_global(), np.fft.rfftn(values))
        if not turn:
            transforms.append(rote.fft.FFT(values.shape, x.layout, comm=team, dtype="f8"))
        f = transforms[n - 3]
        assert np.allclose(f.backward(f.forward(x)).to_global(), values)
        assert np.array_equal(x.redistribute("[(),(0),()]").to_global(), values)
assert maps() <= max(before, comm.size), (before, maps())
assert len(os.listdir("/proc/self/fd")) == files
print("shared")
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_mpi_ranks_do_without_what_one_is_refused(mpirun):
    """Refusals on one rank of three; one mapping per communicator and rank for 16 walks, and no open descriptor."""
    done = mpirun(3, textwrap.dedent(PROGRAM))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "shared\n" * 3
