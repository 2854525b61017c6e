"""What is written into tensors, on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
import written
from marks import make_checks, mpi_parts, parts_of

import rote

PROGRAM = Path(__file__).with_name("written.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(written.CHECKS, 1, 2, 3, 4))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks all that writes follows one rule."""
    with rote.config(implicit="allow"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3), indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks it does too."""
    make_checks(job, PROGRAM, written.CHECKS, part)
