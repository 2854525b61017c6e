"""Solvers of matrices that are split, without a library: by walks on in-process ranks and on MPI ranks."""

from __future__ import annotations

from pathlib import Path

import matrices
import pytest
from launch import RANKS
from marks import make_checks, mpi_parts, parts_of

import rote

PROGRAM = Path(__file__).with_name("matrices.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(matrices.CHECKS, 2, 4, 6, whole=(3,)))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks every solver is as good as NumPy's."""
    with rote.config(implicit="allow", linalg="walk"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they are, too."""
    make_checks(job, PROGRAM, matrices.CHECKS, part)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("job", RANKS, indirect=True)
def test_drawn_cases_on_mpi_ranks(job):
    """Nor is any of 23 cases of each law that seeds draw worse than NumPy's: 1,035 in all."""
    first = 1000 + 100 * job.ranks
    make_checks(job, PROGRAM, matrices.CHECKS, f"{first}:{first + 23}", timeout=900)
