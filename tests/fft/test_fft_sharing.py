"""Memory that ranks share: moves and transforms do without what one rank is refused, and all walks have one."""

from __future__ import annotations

import textwrap

import pytest

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
