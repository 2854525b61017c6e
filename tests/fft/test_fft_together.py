"""What travels together on MPI ranks: components of fields, and lists of tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, pytest.param(3, marks=pytest.mark.slow)), indirect=True)
def test_what_travels_together_comes_out_as_by_itself(job):
    """Law: bits of fields are those of single components by all methods of MPI; bits of lists those of single tensors.

    Lists go through memory that ranks share, and through messages.
    """
    for program, least in (("fft/batches.py", 3 * 10), ("tensor/lists.py", 60)):
        done = job.run(TESTS / program, timeout=90)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert [int(line.split()[-1]) >= least for line in done.stdout.splitlines()] == [True] * job.ranks
