"""Ranks of MPI, of which one alone goes wrong: all raise its error, or the job ends, and in time."""

from __future__ import annotations

from pathlib import Path

import ends
import failing
import numpy as np
import pytest
from calls import MATRIX
from failing import ODD, RANKS
from launch import mpirun
from marks import PARTS
from parts import share

QUICK = ("raises", "exits", "leaves")
SILENT = ("dies", "is killed")  # a process that is gone says nothing; its launcher ends the job


@pytest.mark.mpi
@pytest.mark.parametrize("job", [RANKS], indirect=True)
@pytest.mark.parametrize("part", PARTS)
def test_what_threads_refuse_together_processes_do(job, part, tmp_path, monkeypatch):
    """Law: the first call with an argument that one rank alone gives ends alike on threads and on processes."""
    monkeypatch.chdir(tmp_path)
    np.save("matrix.npy", MATRIX)
    names = []
    for name, case in share(failing.named_cases().items(), part, every=60, first=7, of=40):
        if case.function.name.rpartition(".")[2] in failing.UNSET:
            continue
        if failing.ends_together(case):
            names.append(name)
    assert len(names) > 15
    done = job.run(Path(failing.__file__), *names, timeout=300)
    assert (done.returncode, done.stdout) == (0, "refused\n" * RANKS), done.stderr[-3000:]


@pytest.mark.mpi
@pytest.mark.parametrize("way", [pytest.param(way, marks=[pytest.mark.slow] * (way not in QUICK)) for way in ends.WAYS])
def test_a_rank_that_ends_alone_ends_the_job(way):
    """Law: the other ranks do not wait for it, and what is printed names the rank."""
    done = mpirun(RANKS, Path(ends.__file__), way)
    assert done.returncode != 0, done.stdout
    assert "as if nothing had been" not in done.stdout
    if way not in SILENT and not way.startswith("exits with a"):
        text = "no such station" if way == "exits" else f"raised on rank {ODD} of {RANKS}"
        assert text in done.stderr, done.stderr
