"""Planning of transforms: once for all in-process ranks, and in as many calls as the walks are worth."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from functools import partial

import numpy as np
import pytest

import rote
from rote.compiler.plan import Plan
from rote.fft import FFT, choose, fftn
from rote.fft.problem import problem


@pytest.fixture
def counted(monkeypatch):
    """How often walks are priced and plans are verified, on all threads."""
    found = Counter()

    def counting(name, function, *args, **kwargs):
        found[name] += 1
        return function(*args, **kwargs)

    monkeypatch.setattr(choose, "_choice", partial(counting, "choices", choose._choice))
    verify = Plan.verify
    monkeypatch.setattr(Plan, "verify", lambda plan: counting("plans", verify, plan))
    return found


def together(program, ranks):
    """A program on in-process ranks that begin at the same time."""
    start = threading.Barrier(ranks)

    def begun(comm):
        start.wait()
        return program(comm)

    return rote.run(begun, ranks)


@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_ranks_of_one_process_plan_once(ranks, counted):
    """Law: walks are compared once, and each transition is compiled once, whatever the number of in-process ranks."""
    shape = (8 + ranks, 12, 16)  # of nobody else's plans
    walks = together(lambda comm: FFT(shape, comm=comm).walk, ranks)
    assert len({id(walk) for walk in walks}) == 1
    wanted = problem(shape, (0, 1, 2), "fft", np.dtype("D"))
    asked = choose.ranking(shape, ranks, wanted, None, None, rote.Machine())
    assert 0 < counted["choices"] <= len(asked)
    assert counted["plans"] == len({*walks[0].ends, *walks[0].inverse().ends})
    before = counted.copy()
    together(lambda comm: FFT(shape, comm=comm) and None, ranks)
    assert counted == before


def test_functions_plan_once(counted):
    """Law: so do the functions, for tensors that lie where they lie."""

    def program(comm):
        x = rote.DistTensor.zeros((7, 11, 12), "block[(0),(),()]", comm)
        return str(fftn(x).layout)

    assert len({*together(program, 4)}) == 1
    assert (counted["choices"], counted["plans"]) == (2, 1)


def calls(function):
    """The Python calls that a function makes, and those of all that it calls."""
    found = 0

    def profile(frame, event, arg):
        nonlocal found
        found += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found
