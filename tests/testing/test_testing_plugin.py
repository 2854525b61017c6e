"""The marker `ranks` runs a test on as many ranks, in this process or under mpiexec, and fails as a rank does."""

from __future__ import annotations

import re
import subprocess
import sys

import launch
import pytest

TESTS = """
import numpy as np, pytest, rote
from rote.testing import assert_equal, dist_tensors
from hypothesis import HealthCheck, given, settings

@pytest.mark.ranks(1, 2, 4)
def test_sum(comm, tmp_path):
    x = rote.DistTensor.from_global(np.arange(5.0), "block[(0)]", comm)
    assert_equal(x, np.arange(5.0))
    assert comm.size in (1, 2, 4) and tmp_path.exists()

@pytest.mark.ranks(2)
@pytest.mark.parametrize("wrong", [1])
def test_one_rank_fails(comm, wrong):
    if comm.rank == wrong:
        raise KeyError(f"only on {comm.rank}")
    comm.barrier()

@pytest.mark.ranks(2)
def test_all_skip(comm, capsys):
    pytest.skip(f"not on {comm.size}")

@pytest.mark.ranks(2)
def test_captured(comm, capsys):
    assert comm.size == 1, "said though captured"

@pytest.fixture
def field(comm):
    return comm.size

@pytest.mark.ranks(2)
def test_fixture_of_ranks(comm, field):
    pass

def test_alone(comm):
    assert comm.size == 1

@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(dist_tensors())
def test_drawn_outside(case):
    case.run(lambda x: assert_equal(x, case.array))
"""

ON_TWO = {
    "test_captured[ranks2]": "FAILED",
    "test_fixture_of_ranks[ranks2]": "ERROR",
    "test_one_rank_fails[ranks2-1]": "FAILED",
}

REFUSED = {
    "@pytest.mark.ranks()\ndef test_it(comm): pass": "names no numbers of ranks",
    "@pytest.mark.ranks(0)\ndef test_it(comm): pass": "names no numbers of ranks",
    "@pytest.mark.ranks(2)\ndef test_it(): pass": "takes no `comm`",
    "@pytest.mark.ranks(2)\n@given(st.integers())\ndef test_it(comm, n): pass": "each rank would draw by itself",
}


def pytest_says(folder, text, *options):
    """What pytest prints of a file of tests, with no plugin but ours."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "rote.testing.plugin", "-p", "no:cacheprovider", "-rA", *options]
    environment = {**launch.environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, "test_it.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


def outcomes(said):
    return dict(
        sorted((name, word) for word, name in re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(\S+)", said, re.M))
    )


def test_on_ranks_of_this_process(tmp_path):
    """Each number of ranks is a test; one rank that raises fails it, and the others, which wait, are let go; fixtures
    and parametrization work as ever, and a test that is not marked runs alone."""
    said = pytest_says(tmp_path, TESTS)
    assert outcomes(said) == {
        "test_alone": "PASSED",
        "test_drawn_outside": "PASSED",
        **ON_TWO,
        **{f"test_sum[ranks{n}]": "PASSED" for n in (1, 2, 4)},
    }, said
    assert "only on 1" in said and "raised on rank 1 of 2" in said
    assert "1 skipped" in said and "not on 2" in said
    assert "the fixture field takes `comm`" in said and "write a function of comm" in said


@pytest.mark.mpi
@pytest.mark.slow
def test_under_mpiexec(tmp_path, mpirun):
    """With --mpi the same test runs in as many processes: it fails, and ends, if one rank raises while others wait.

    It is skipped as it is in this process, and says why it fails, whatever its fixtures capture.
    """
    said = pytest_says(tmp_path, TESTS, "--mpi", "-k", "ranks2")
    assert outcomes(said) == {**ON_TWO, "test_sum[ranks2]": "PASSED"}, said
    assert "rank 1 of 2" in said and "only on 1" in said and "said though captured" in said
    assert "1 skipped" in said and "not on 2" in said


def test_marks_that_mean_nothing_are_refused(tmp_path):
    """No number, one below 1, no `comm`, or drawing inside of ranks: nothing is run, and the text has the cure."""
    header = "import pytest\nfrom hypothesis import given, strategies as st\n"
    for text in REFUSED:
        (tmp_path / f"test_{abs(hash(text))}.py").write_text(header + text)
    said = pytest_says(tmp_path, header, str(tmp_path))
    for complaint in REFUSED.values():
        assert complaint in said, said
    assert "passed" not in said
