"""Large blocks of new tensors lie where other ranks can read them, from the first move on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensor import lasting


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3, pytest.param(4, marks=pytest.mark.slow)), indirect=True)
def test_new_tensors_lie_in_segments(job):
    """However they are made: large blocks are read there, and what no memory holds is refused."""
    done = job.run(Path(lasting.__file__))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "in segments\n" * job.ranks
