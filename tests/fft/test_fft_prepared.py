"""Transforms and moves between two tensors again and again, on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import prepared
import pytest
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
