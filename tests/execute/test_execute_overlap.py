"""Outputs that share memory with inputs, as two views of one buffer: they come out as if they did not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execute import overlaps

import rote
from rote.runtime.ends import may_overlap

PROGRAM = Path(overlaps.__file__)


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_in_process_ranks_may_share_buffers(ranks):
    """Blocks and outputs of all ranks lie in one buffer, in any order; rank 0 is late with all that it reads."""
    with overlaps.late(ranks):
        found = rote.run(overlaps.check, ranks, (np.zeros(1 << 15, np.uint8),))
    assert found == [found[0]] * ranks and found[0] >= 2 * len(overlaps.MOVES)


@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_mpi_ranks_may_share_buffers(job):
    """The output of a rank lies in its own input, whole or in part, whatever the method."""
    done = job.run(PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= 8 * len(overlaps.MOVES)


def test_overlap_is_found_by_bounds():
    """As numpy.may_share_memory of all pairs of an output and an input, also where strides are negative or none."""
    rng = np.random.default_rng(3)
    memory = np.zeros((40, 6))

    def view():
        start, stop = sorted(rng.integers(0, 41, 2))
        rows = memory[start:stop]
        return [rows, rows[::-1], rows[::2, 1:4], rows.T[::-1], rows[:0], np.zeros((3, 2))][rng.integers(6)]

    seen = set()
    for _ in range(200):
        blocks, outs = [view() for _ in range(3)], [view() for _ in range(3)]
        want = any(np.may_share_memory(block, out) for block in blocks for out in outs)
        assert rote.run(lambda comm, b=blocks, o=outs: may_overlap(comm, b[comm.rank], o[comm.rank]), 3) == [want] * 3
        seen.add(want)
    assert seen == {True, False}
