"""Ranks in different calls are refused, whichever two public calls these are: no rank waits, and none goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pairs
import pytest
from launch import environment, mpirun
from marks import PARTS

PROGRAM = Path(pairs.__file__)


@pytest.mark.mpi
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("calls", ("first", "later"))
def test_processes_in_different_calls_are_refused(calls, part):
    """Law: two ranks of MPI in different calls raise an error, in time; by ROTE_CHECK=1 if it is not their first."""
    check = {"ROTE_CHECK": "1"} if calls == "later" else {}
    done = mpirun(2, PROGRAM, calls, "mpi", part, timeout=300, env={**check, "PYTHONPATH": str(PROGRAM.parents[1])})
    assert (done.returncode, done.stdout) == (0, f"{len(pairs.chosen(part))} pairs refused\n"), done.stderr


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("calls", ("first", "later"))
def test_threads_in_different_calls_are_refused(calls, part, tmp_path):
    """Law: so are two ranks that are threads."""
    check = {"ROTE_CHECK": "1"} if calls == "later" else {}
    command = [sys.executable, str(PROGRAM), calls, "threads", part]
    env = {**environment(), **check, "PYTHONPATH": str(PROGRAM.parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{len(pairs.chosen(part))} pairs refused\n"), done.stderr


DIFFERS = """
import numpy as np, rote

def program(comm):
    same, array = np.arange(12.0).reshape(3, 4).T, np.arange(12.0).reshape(3, 4).T + (comm.rank == 2) * 1e-9
    for layout in ("[(),()]", "block[(0),()]"):
        assert rote.DistTensor.from_global(same, layout, comm).shape == (4, 3)
        assert rote.DistTensor.from_global(np.array(2.0), "[]", comm).shape == ()
        try:
            rote.DistTensor.from_global(array, layout, comm)
        except rote.LayoutError as error:
            assert "those of ranks 0 and 2 differ" in str(error), error
        else:
            raise AssertionError("not refused")

rote.run(program, 3)
"""


def test_an_array_that_differs_between_ranks_is_found_by_the_check():
    """Law: with ROTE_CHECK=1, `from_global` refuses, on all ranks, an array that is not the same on all."""
    command, env = [sys.executable, "-c", DIFFERS], {**environment(), "ROTE_CHECK": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("pair", [("sum", "total"), ("total", "sum")])
def test_a_call_with_more_arguments_on_one_rank_is_refused(pair):
    """Law: the error of a call that ranks give another number of arguments is that of a call with other arguments."""
    errors = pairs.on_threads(pair, later=False)
    assert all("sum is one call of all ranks" in each and "nothing" in each for each in errors), errors
