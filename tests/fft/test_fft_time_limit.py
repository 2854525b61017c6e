"""A limit of the time that tuning takes: kept by all ranks alike, and what is found within it is right."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hurry import hurry

import rote
from rote import DistTensor, LayoutError
from rote.fft import FFT
from rote.runtime.choose import allowed, time_limit

SHAPE = (12, 10, 8)
NUMBERS = np.random.default_rng(4).standard_normal(SHAPE)


@pytest.fixture(autouse=True)
def _forgetful(tmp_path, monkeypatch):
    """Wisdom of this test alone, and usual times that no test could wait for."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    hurry(monkeypatch, 1e4, 1e5)


def transformed(f, comm):
    """Whether a transform is NumPy's."""
    X = f.forward(DistTensor.from_global(NUMBERS, f.input_layout, comm, f.grid).astype(f.input_dtype))
    return bool(np.allclose(X.to_global(), np.fft.fftn(NUMBERS)))


@pytest.mark.parametrize("seconds", (1e-9, 0.2))
def test_all_ranks_stop_alike(seconds):
    """Law: whatever is left, no contest goes on, all ranks take the same walk, and it is right."""

    def program(comm):
        f = FFT(SHAPE, comm=comm, tune="measure", tune_seconds=seconds)
        return str(f.walk), [tried.name for tried in f.tried], transformed(f, comm)

    walks, tried, right = zip(*rote.run(program, 4), strict=True)
    assert len({*walks}) == 1 and all(names == tried[0] for names in tried) and all(right)
    assert not tried[0] or seconds > 0.1  # in which a busy machine may try nothing


@pytest.mark.slow
def test_what_is_found_in_a_hurry_serves_nobody_else(monkeypatch):
    """Law: a decision within a limit is kept for the same limit alone; and one that had all its time serves all."""

    def news(seconds):
        """How many decisions a plan on two ranks adds to the wisdom."""
        before = decisions()
        rote.run(lambda comm: FFT(SHAPE, comm=comm, tune="measure", tune_seconds=seconds), 2)
        return len(decisions() - before)

    def decisions():
        return {record.key for record in rote.wisdom.records() if "tune" in record.key.facts}

    hurried = [news(0.3) for _ in range(8)]  # each goes on where time was over
    assert sum(hurried) > 0 and hurried[-1] == 0, hurried
    assert sum(news(0.25) for _ in range(3)) > 0
    hurry(monkeypatch, 0.05, 0.1)
    assert news(None) > 0
    assert news(0.4) == 0


def test_what_is_left_is_what_the_latest_rank_has():
    """Law: contests may take half of what is left by the clock that is latest; inner limits do not widen outer ones."""

    def program(comm):
        with time_limit(10.0):
            if comm.rank == 1:
                time.sleep(0.2)
            first = allowed(comm, 60.0)
            with time_limit(1e6):
                return first, allowed(comm, 60.0), allowed(comm, 1.0)

    replies = rote.run(program, 3)
    assert len({*replies}) == 1 and 0 < replies[0][1] <= replies[0][0] <= 4.9 and replies[0][2] == 1.0
    assert rote.run(lambda comm: allowed(comm, 60.0), 2) == [60.0, 60.0]


def test_no_time_is_refused():
    """A limit is a number of seconds, and of something that is timed."""
    for wrong in (0, -1.0, float("inf"), float("nan"), "3"):
        with pytest.raises(LayoutError, match="tune_seconds is a number of seconds, more than 0"):
            FFT(4, tune="measure", tune_seconds=wrong)
    with pytest.raises(LayoutError, match="times nothing; write tune='measure'"):
        FFT(4, tune_seconds=1.0)
