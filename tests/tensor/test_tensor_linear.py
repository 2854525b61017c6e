"""Contractions, linear algebra and random numbers on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import linear
import pytest
from marks import make_checks, mpi_parts, parts_of

import rote

PROGRAM = Path(__file__).with_name("linear.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(linear.CHECKS, 1, 2, 4, whole=(3,)))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks every function answers as NumPy does on whole arrays."""
    with rote.config(implicit="allow"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    make_checks(job, PROGRAM, linear.CHECKS, part)
