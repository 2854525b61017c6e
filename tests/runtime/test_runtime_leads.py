"""Contests by a simulated clock, under bursts of other work: the slower is not taken, the clearly faster one is."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

import rote
from rote import wisdom
from rote.runtime.comm.threads import alone
from rote.runtime.tuning import autotune
from rote.runtime.tuning.autotune import decided, ranking, timings
from rote.runtime.tuning.leads import FEWEST, UNKNOWN, Lead, lead
from rote.runtime.tuning.limits import LIMITS, budget

SEEDS = range(30)


class Busy:
    """A machine whose speed drifts by a factor of two, and whose cores are taken away in bursts of 4 ms to 2 s.

    Its clock stands still but for the turns that are taken by it.
    """

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.now = 0.0
        self._phase = self._rng.uniform(0, 2 * math.pi)
        self._free, self._burst = 0.0, 0.0  # until when nothing is taken away, and how long a burst lasts then

    def spend(self, work):
        """Pass the time that some seconds of work take from now on."""
        speed = 1.5 + 0.5 * math.sin(self.now / 20 + self._phase)
        left = work * speed * (1 + abs(self._rng.normal(0, 0.01)))
        start = self.now
        while self.now + left > self._free:
            left -= max(self._free - self.now, 0.0)
            self.now = max(self.now, self._free) + self._burst
            self._free = self.now + self._rng.exponential(0.5)
            self._burst = math.exp(self._rng.uniform(math.log(0.004), math.log(2.0)))
        self.now += left
        return self.now - start


def winner(works, sort, seed, monkeypatch, seconds=None):
    """Who is taken of candidates that want so many seconds of work, and the seconds that this took."""
    machine, limits = Busy(seed), LIMITS[sort]
    monkeypatch.setattr(autotune, "perf_counter", lambda: machine.now)
    turns = [lambda share, progress, work=work: machine.spend(work) for work in works]
    allowed = limits.seconds["measure"] if seconds is None else seconds
    return ranking(timings(alone(), turns, allowed, limits), limits)[0], machine.now


@pytest.mark.parametrize("sort", LIMITS)
@pytest.mark.parametrize("work", [0.002, 0.02, 0.2])
def test_who_is_slower_is_never_taken(sort, work, monkeypatch):
    """Law: under bursts a candidate that is slower than the model's choice by 3 % or more is never taken."""
    field = [work, 1.03 * work, 1.1 * work, 1.22 * work]
    assert {winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS} == {0}


@pytest.mark.parametrize("sort", LIMITS)
def test_the_model_stays_where_nobody_is_clearly_faster(sort, monkeypatch):
    """Law: of candidates that are as fast as the model's choice, or less faster than is asked for, none is taken."""
    better = LIMITS[sort].better
    field = [0.01, 0.01, 0.01, 0.01 * (1 + better) / 2]
    assert {winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS} == {0}


@pytest.mark.parametrize("sort", LIMITS)
def test_who_is_clearly_faster_is_taken(sort, monkeypatch):
    """Law: a candidate that takes three quarters of the time is taken, where there is time for the rounds it needs."""
    field = [0.01, 0.011, 0.0075, 0.01]
    wins = [winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS]
    assert {*wins} <= {0, 2} and wins.count(2) >= 0.9 * len(wins)


@pytest.mark.parametrize("sort", LIMITS)
def test_no_contest_takes_longer_than_it_may(sort, monkeypatch):
    """Law: beyond its seconds a contest takes a turn that was begun, with the burst that met it, and no more."""
    for seed in SEEDS:
        _, took = winner([0.2] * 4, sort, seed, monkeypatch, 3.0)
        assert took <= 3.0 + 0.2 * 2.1 + 5.0


def test_a_turn_is_its_fastest_call(monkeypatch):
    """Law: of eight calls at most, after one that finds the caches cold; of one where there is no time for more."""
    clock, waits = [0.0], [9.0, 3.0, 5.0, 2.0, 4.0, 6.0, 7.0, 8.0, 1.5, 0.1]

    def call():
        clock[0] += calls.pop(0)

    monkeypatch.setattr(autotune, "perf_counter", lambda: clock[0])
    for seconds, left, time in ((100.0, 1, 1.5), (0.0, 8, 3.0), (13.5, 5, 2.0)):
        calls = [*waits]
        assert autotune.fastest(alone(), call, seconds, None) == time
        assert len(calls) == left


def test_large_blocks_may_take_longer():
    """Law: a contest of blocks above 64 MiB may take longer as they grow, up to four times as long."""
    seconds = LIMITS["walk"].seconds["measure"]
    parts = [budget(alone(), "walk", "measure", mib << 20) / seconds for mib in (0, 64, 128, 1 << 20)]
    assert parts == [1, 1, 2, 4]


def test_a_lead_wants_rounds():
    """Law: of fewer than five rounds nothing is sure; of five equal signs it is."""
    for rounds in range(12):
        known = lead([1.0] * rounds, [2.0] * rounds)
        sure = rounds >= FEWEST
        assert (known.low, known.high) == ((0.5, 0.5) if sure else (0.0, math.inf))
        assert known.ratio == (0.5 if rounds else 1.0)
    assert lead([math.inf] * 5, [1.0] * 5) == Lead(math.inf, math.inf, math.inf)


def test_bounds_hold_as_often_as_they_promise():
    """Law: whatever the noise, the true ratio lies beyond a bound in one contest of 32 at most."""
    rng, wrong = np.random.default_rng(7), [0, 0]
    for _ in range(2000):
        noise = np.exp(np.clip(rng.standard_cauchy((2, 9)), -50, 50))
        known = lead((0.9 * noise[0]).tolist(), noise[1].tolist())
        wrong[0] += known.low > 0.9
        wrong[1] += known.high < 0.9
    assert max(wrong) <= 2000 / 32 * 1.4 and min(wrong) > 0


def test_a_lead_is_kept_as_it_is():
    """Law: a lead comes back from its JSON value, and what is no lead is refused."""
    for known in (UNKNOWN, Lead(0.5, 0.25, 0.75), Lead(0.9)):
        assert Lead.of(known.as_json()) == known
    for wrong in (None, [], {"ratio": "fast"}, {"ratio": 0}, {"ratio": True}, {"other": 1.0}, {"low": math.inf}):
        with pytest.raises(ValueError, match=r"a lead is|ratios are"):
            Lead.of(wrong)


# --- decisions that no longer hold ------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of wisdom for one test."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))


def test_a_decision_that_does_not_hold_is_found_anew(place):
    """Law: with all that was decided in the course of it, once, on all ranks alike; what holds is not."""
    numbers, asked = count(), []

    def program(comm, holds):
        def inner():
            return decided(comm, {"what": "inner"}, "measure", int, lambda: next(numbers))

        def outer():
            return [inner(), inner()]

        def stands(value):
            asked.append(value)
            return holds

        return decided(comm, {"what": "outer"}, "measure", list, outer, stands), inner()

    def run(holds):
        replies = rote.run(program, 2, (holds,))
        assert replies[0] == replies[1]
        (first, second), last = replies[0]
        assert first == second == last
        return first

    before = run(True)
    assert not asked  # it was found just now
    assert run(True) == before and asked == [[before, before]] * 2
    after = run(False)
    assert after != before
    assert run(True) == after
    assert sorted(record.decision for record in wisdom.records() if record.key.facts["what"] == "inner") == [after]


def test_what_is_found_anew_replaces_what_was_found_patiently(place):
    """Law: a patient decision that does not hold serves nobody any more."""

    def find(tune, value, holds=True):
        return rote.run(lambda comm: decided(comm, {"what": "x"}, tune, int, lambda: value, lambda known: holds), 2)[0]

    assert find("patient", 1) == find("measure", 2) == 1
    assert find("measure", 3, False) == 3
    assert find("measure", 4) == find("patient", 5) == 3
