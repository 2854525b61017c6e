"""Two-phase transfers of `.npy` files: the laws, on in-process and on MPI ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import staging_laws
from launch import RANKS

from rote.runtime import run

if TYPE_CHECKING:
    from launch import Job

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("ranks", "count"), [(4, 8), *[pytest.param(ranks, 60, marks=SLOW) for ranks in RANKS]], ids=str
)
def test_in_process_ranks(tmp_path: Path, ranks: int, count: int) -> None:
    """Laws: contents, pieces, requests, errors and progress are as `staging_laws` says."""
    with staging_laws.small():
        run(staging_laws.run_checks, ranks, (tmp_path, count))


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2, pytest.param(4, marks=SLOW)), indirect=True)
def test_mpi_ranks(job: Job, tmp_path: Path) -> None:
    """Laws: so they are on MPI ranks."""
    done = job.run(Path(staging_laws.__file__), tmp_path, 5)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "all as staged\n")
