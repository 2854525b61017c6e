"""Ranks in different calls are refused, whichever two public calls these are: no rank waits, and none goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pairs
import pytest
from effort import meetings
from launch import environment, mpirun
from marks import PARTS
from parts import SOME

import rote
from rote.runtime.comm.threads import LocalComm

PROGRAM = Path(pairs.__file__)
CHECK = {"first": {}, "later": {"ROTE_CHECK": "1"}}


@pytest.mark.mpi
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("calls", CHECK)
def test_processes_in_different_calls_are_refused(calls, part):
    """Law: two ranks of MPI in different calls raise an error, in time; by ROTE_CHECK=1 if it is not their first."""
    env = {**CHECK[calls], "PYTHONPATH": str(PROGRAM.parents[1])}
    done = mpirun(2, PROGRAM, calls, "mpi", 2, part, timeout=900, env=env)
    assert (done.returncode, done.stdout) == (0, f"{len(pairs.chosen(part))} pairs refused\n"), done.stderr


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("calls", CHECK)
def test_threads_in_different_calls_are_refused(calls, part, tmp_path):
    """Law: so are ranks that are threads, of which the last makes another call than all others."""
    command = [sys.executable, str(PROGRAM), calls, "threads", "2" if part == SOME else "3", part]
    env = {**environment(), **CHECK[calls], "PYTHONPATH": str(PROGRAM.parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
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


@pytest.mark.parametrize("pair", [("x.sum(axis=0)", "x.sum()"), ("x.sum()", "x.sum(axis=0)")])
def test_a_call_with_more_arguments_on_one_rank_is_refused(pair):
    """Law: the error of a call that ranks give another number of arguments is that of a call with other arguments."""
    errors = pairs.on_threads(2, pair)
    assert all("sum is one call of all ranks" in each and "nothing" in each for each in errors), errors


def test_the_error_names_both_calls():
    """Law: where an operand moves, the error names the functions that move it, or the operands that differ."""
    for pair, texts in {
        ("x + c", "x * c"): ("rank 0 add, rank 1 multiply",),
        ("x.to_global()", "x.redistribute(WHOLE)"): ("rank 0 to_global, rank 1 redistribute",),
        ("x + c", "x + p"): ("add is one call of all ranks", "block[(),(0)] on (8, 6)", "[(),()]+(0) on (8, 6)"),
        ("p + 1", "p + 2"): ("add is one call of all ranks", "rank 0 gives it 1 and rank 1 2"),
        ("p.astype('i8')", "p.astype('f4')"): ("rank 0 gives it dtype=int64 and rank 1 dtype=float32",),
    }.items():
        for error in pairs.on_threads(2, pair):
            assert all(text in error for text in texts), (pair, error)


WARM = """
x + c; p * t; t - p; np.where(m, x, t); np.add(x, c, out=y); x.to_global(); p[1:3]; x.__setitem__(m, t); x.halo(1)
move(); move(y); f.forward(z); f.forward(z, out=spectrum); f.backward(spectrum); contraction(); rote.fft.fftn(x)
"""


def test_what_has_been_compared_is_not_compared_again(monkeypatch):
    """Law: after their first calls ranks compare nothing, whatever numbers are combined with the tensors that move."""
    sent = meetings(monkeypatch, LocalComm, ["allgather_object"])
    calls = WARM.replace("\n", "; ").strip("; ").split("; ")

    def program(comm):
        known, counts = pairs.operands(comm), []
        for number in range(4):
            known["t"] = 1.5 * number
            for call in calls:
                pairs.value(call, known)
            comm.barrier()
            counts.append(sent["allgather_object"])
        return counts

    with rote.config(implicit="allow"):
        first, *later = rote.run(program, 2)[0]
    assert first > len(calls) and later == [first] * 3
