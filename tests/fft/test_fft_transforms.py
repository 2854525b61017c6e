"""Parallel transforms against numpy.fft, on in-process ranks and on MPI ranks, and their bits on both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transforms
from marks import mpi_parts, parts_of, parts_on

import rote

pytestmark = pytest.mark.filterwarnings("ignore::rote.GatherWarning")  # cosines of one axis

PROGRAM = Path(__file__).with_name("transforms.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(transforms.CHECKS, 1, 2, 3, 4, 6, 8, whole=(1, 2, 3)))
def test_on_ranks_of_this_process(ranks, check, args):
    """Transforms on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Transforms on MPI ranks do too, and give the same bits as in-process ranks: as many ranks, the same kernels."""
    done = job.run(PROGRAM, part, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    said = json.loads(done.stdout)
    assert said["ranks"] == job.ranks and said["checks"] > 4
    assert said["digests"] == rote.run(transforms.digests, job.ranks, (part,))[0]


@pytest.mark.parametrize(("ranks", "part"), parts_on(2, 3))
def test_bits_are_those_of_the_last_time(ranks, part):
    """A transform gives the same bits every time, wherever in memory its blocks lie."""
    kept = [bytearray(size) for size in range(1, 4000, 37)]  # so that blocks come to lie elsewhere
    first = rote.run(transforms.digests, ranks, (part,))
    del kept[::2]
    assert rote.run(transforms.digests, ranks, (part,)) == first


def test_a_wrong_block_is_found():
    """The comparison can fail: one element on one rank that is off by 1e-10 is an error."""

    def program(comm):
        x = rote.DistTensor.from_global(transforms.values((6, 5), "D"), "block[(0),()]", comm)
        X = rote.fft.fftn(x)
        X.local[-1, -1] *= 1 + 1e-10 * (comm.rank == 1)
        transforms.same(X, transforms.reference("fftn", (6, 5), "D", None, None))

    with pytest.raises(AssertionError, match="DistTensor"):
        rote.run(program, 2)
