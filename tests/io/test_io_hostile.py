"""Hostile, damaged and odd files and names, on in-process and on MPI ranks: clear errors on all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import hostile_laws
import pytest

from rote.runtime import Comm, run

if TYPE_CHECKING:
    from launch import Job


@pytest.mark.parametrize("check", hostile_laws.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("ranks", (2, pytest.param(1, marks=pytest.mark.slow)))
def test_laws(tmp_path: Path, ranks: int, check: Callable[[Comm, Path], None]) -> None:
    """In-process ranks refuse what the laws say."""
    run(check, ranks, (tmp_path,))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("job", "checks"), [(2, (0, 3, 5)), pytest.param(3, range(9), marks=pytest.mark.slow)], indirect=["job"]
)
def test_mpi_ranks(job: Job, tmp_path: Path, checks: Sequence[int]) -> None:
    """So do MPI ranks."""
    names = [hostile_laws.CHECKS[number].__name__ for number in checks]
    done = job.run(Path(hostile_laws.__file__), tmp_path, *names)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"checks on <MPI rank 0 of {job.ranks}>" in done.stdout
