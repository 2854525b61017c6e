"""Transforms and moves again and again, between two tensors and at the same addresses, on ranks of any kind."""

from __future__ import annotations

from pathlib import Path

import prepared
import pytest
import readdressed
from launch import mpirun
from marks import make_checks, mpi_parts, parts_of

import rote

PROGRAM = Path(__file__).with_name("prepared.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(prepared.CHECKS, 1, 2, 3))
def test_on_ranks_of_this_process(ranks, check, args):
    """Prepared runs on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """Prepared runs on MPI ranks do too."""
    make_checks(job, PROGRAM, prepared.CHECKS, part)


@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_blocks_may_come_and_go_on_threads(ranks):
    """Transforms of new blocks at old addresses take their values, bit for bit."""
    rote.run(readdressed.check_transforms, ranks)


@pytest.mark.mpi
def test_blocks_may_come_and_go_on_processes():
    """The law of threads, where blocks lie in memory that processes share, and calls are prepared more than once."""
    done = mpirun(3, Path(readdressed.__file__))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "as new\n")
