"""Tensors and spectra that share memory with what they come from: they come out as if they did not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import overlapping
import pytest
from execute import overlaps

import rote

PROGRAM = Path(overlapping.__file__)


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_in_process_ranks_may_share_buffers(ranks):
    """Blocks and outputs of all ranks lie in one buffer, in any order; rank 0 is late with all that it reads."""
    with overlaps.late(ranks):
        found = rote.run(overlapping.check, ranks, (np.zeros(1 << 15, np.uint8),))
    assert found == [found[0]] * ranks and found[0] >= 2 * len(overlaps.MOVES) + 4


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_mpi_ranks_may_share_buffers(job):
    """The output of a rank lies in its own input, whole or in part, whatever the method."""
    done = job.run(PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= 8 * len(overlaps.MOVES) + 4
