"""Whole solvers on several libraries: one energy, and the one that was published."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PUBLISHED = 0.124953117517  # spectralDNS, demo/TG.py, after ten steps of 0.01 from 32 points
IN_STEP = """
import json, sys
sys.path.insert(0, {folder!r})
from solvers import run
for solver, library, steps, plain in {runs!r}:
    result = run(solver, library, {n}, steps, plain)
    if result["rank"] == 0:
        print(json.dumps(result["energy"]))
"""
Run = tuple[str, int, bool]
"""A solver, its steps, and whether it updates whole arrays."""


def on_ranks(library: str, runs: list[Run], n: int, job) -> list[float]:
    """The energies at the end of some solvers, on two MPI ranks."""
    listed = [(solver, library, steps, plain) for solver, steps, plain in runs]
    done = job.run(IN_STEP.format(folder=str(FOLDER), runs=listed, n=n))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.mpi
@pytest.mark.parametrize("job", [2], indirect=True)
def test_all_libraries_have_one_energy(job, monkeypatch):
    """Law: each solver ends with one energy on every library that is installed, and by tiles as by whole arrays."""
    runs = [("taylor-green", 2, False), ("taylor-green", 2, True), ("poisson", 2, False), ("product", 1, False)]
    wanted = on_ranks("rote", runs, 16, job)
    assert wanted[0] == pytest.approx(wanted[1], rel=1e-12, abs=0) and min(wanted) > 0.1
    monkeypatch.syspath_prepend(str(FOLDER))
    solvers = import_module("solvers")
    for library in ("scipy", "ducc0"):
        if find_spec(library):
            serial = [solvers.run(solver, library, 16, steps, plain)["energy"] for solver, steps, plain in runs]
            assert serial == pytest.approx(wanted, rel=1e-12, abs=0), library
    if find_spec("mpi4py_fft"):
        assert on_ranks("mpi4py-fft", runs, 16, job) == pytest.approx(wanted, rel=1e-12, abs=0)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("job", [2], indirect=True)
def test_the_vortex_has_the_published_energy(job):
    """Law: after ten steps from 32 points the energy is the published one, to its 12 digits."""
    (energy,) = on_ranks("rote", [("taylor-green", 10, False)], 32, job)
    assert round(energy, 12) == PUBLISHED
