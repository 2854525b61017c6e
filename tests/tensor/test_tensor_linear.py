"""Contractions, linear algebra and random numbers on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import linear
import pytest
from marks import mpi_parts, parts_of
from parts import SOME, has_parts

import rote

PROGRAM = Path(__file__).with_name("linear.py")


@pytest.mark.parametrize("ranks", (1, 2, pytest.param(3, marks=pytest.mark.slow), 4))  # MPI ranks are 3
@pytest.mark.parametrize(("check", "args"), parts_of(linear.CHECKS))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks every function answers as NumPy does on whole arrays."""
    with rote.config(implicit="allow"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    done = job.run(PROGRAM, part, timeout=150)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    checks = [check for check in linear.CHECKS if part == SOME or has_parts(check)]
    assert done.stdout == f"{len(checks)} checks on {job.ranks} ranks\n"
