"""`rote.save` and `rote.load` on MPI ranks: the laws of all formats, and restarts from and to in-process ranks."""

from __future__ import annotations

from pathlib import Path

import file_laws
import pytest
from file_laws import STATE, SUFFIXES, plain, read_state, write_state
from launch import Job

from rote.runtime import run

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("job", "count"),
    [(3, 3), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 3), (2, 3), (4, 25)))],
    indirect=["job"],
)
def test_laws(job: Job, tmp_path: Path, count: int) -> None:
    """MPI ranks save and load as the laws say; they read what in-process ranks wrote, and these what they did."""
    (tmp_path / "checks").mkdir()
    for suffix in SUFFIXES:
        run(write_state, 4, (tmp_path / f"state{suffix}", "[(0),(),(1)]"))
    done = job.run(Path(file_laws.__file__), tmp_path, count)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"checks on <MPI rank 0 of {job.ranks}>" in done.stdout
    for suffix in SUFFIXES:
        assert (plain(tmp_path / f"state{suffix}") == STATE).all()
        run(read_state, 3, (tmp_path / f"state{suffix}",))
