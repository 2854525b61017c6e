"""Transforms by every method of exchange: ranks that read each other's scratch, and ranks that send."""

from __future__ import annotations

from pathlib import Path

import pytest
import same_bits
import unpacked
from marks import mpi_parts, parts_on
from parts import SOME

import rote
from rote.errors import CommError
from rote.fft import FFT

PROGRAM = Path(same_bits.__file__)


@pytest.mark.parametrize(("ranks", "part"), parts_on(2, 3, 4))
def test_threads_transform_alike_by_every_method(ranks, part):
    """Law: the bits of a spectrum, and of what it is the spectrum of, do not depend on how messages travel."""
    assert min(rote.run(same_bits.check, ranks, (part,))) >= (2 * 2 if part == SOME else 2 * 4)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_mpi_ranks_transform_alike_by_every_method(job, part):
    """The same, of all that MPI can do."""
    done = job.run(PROGRAM, part, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("compared") == job.ranks


def test_unknown_methods_are_refused():
    """Whether anything moves or not."""
    with pytest.raises(CommError, match=r"method is one of auto, shared, .*; not 'fast'"):
        FFT((4, 4), method="fast")


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, pytest.param(3, marks=pytest.mark.slow)), indirect=True)
def test_messages_that_lie_are_right(job):
    """Laws: spectra are those of the usual method, bit for bit; long runs of one node are not packed, others are."""
    done = job.run(Path(unpacked.__file__))
    assert (done.returncode, done.stderr) == (0, "")
    long, short, apart = map(int, done.stdout.split())
    assert (long, short > 0, apart) == (0, True, 2)
