"""MPI is told where the elements of a block lie by digits and runs: that costs as much for any number of elements."""

from __future__ import annotations

from pathlib import Path

import growth
import numpy as np
import pytest
from execute import datatypes


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, pytest.param(3, marks=pytest.mark.slow)), indirect=True)
def test_datatypes_are_right_and_do_not_grow(job):
    """Laws: MPI packs what regions pack; and as many calls and as much memory make datatypes for 64 times as much."""
    done = job.run(Path(datatypes.__file__))
    assert done.returncode == 0, done.stderr
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["37"])


def test_growth_is_seen():
    """The measurement can fail: it sees a list of all places, and a loop over a few of them."""
    with pytest.raises(AssertionError, match="a list: "):
        growth.check(lambda n: lambda: np.arange(n), "a list")
    with pytest.raises(AssertionError, match="a loop: "):
        growth.check(lambda n: lambda: [abs(k) for k in range(n // 16)], "a loop")
