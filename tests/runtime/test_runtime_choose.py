"""The one chooser: turns in turn, on the slowest rank, as long as they are worth it; and what is agreed on and kept.

Candidates are also timed by a simulated clock, under bursts of other work: the slower is not taken, the clearly faster
one is.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import rote
from rote import wisdom
from rote.runtime import choose as module
from rote.runtime import tuning
from rote.runtime.choose import (
    BETTER,
    FEWEST,
    SECONDS,
    TimeRatio,
    budget,
    choose,
    collective_call,
    decided,
    middle,
    time_ratio,
    timings,
)
from rote.runtime.comm.threads import alone

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


def raced(seconds, *rows, ranks=2, progress=None, **limits):
    """The candidates in the order of their turns, and their times, on each rank; a row has what its turns read."""

    def program(comm):
        turns = []

        def candidate(number, row):
            def turn(share, part):
                turns.append(number)
                return row[min(turns.count(number), len(row)) - 1] * (1 + comm.rank)

            return turn

        told = progress if comm.rank == 0 else None
        times = timings(comm, [candidate(n, row) for n, row in enumerate(rows)], seconds, told, **limits)
        return turns, times

    return rote.run(program, ranks)


def test_turns_are_taken_round_after_round():
    """Law: all have as many turns as there are rounds, every other backwards; a reading is that of the slowest rank."""
    turns, times = (first := raced(100.0, [1.0, 2.0, 3.0], [5.0], rounds=3))[0]
    assert first[1] == first[0]
    assert turns == [0, 1, 1, 0, 0, 1]
    assert times == [[2.0, 4.0, 6.0], [10.0] * 3]


def test_those_behind_are_given_up_but_for_the_first():
    """Law: who is behind by more than the limit has no other turn; the first candidate, the usual one, always has."""
    _, times = raced(100.0, [9.0], [1.0], [2.9, 2.9], [3.1], [math.inf], rounds=4, narrow=True)[0]
    assert [len(row) for row in times] == [4, 4, 2, 1, 1]


@pytest.mark.parametrize(("each", "turns"), [(False, [1, 0, 0]), (True, [1, 1, 1])])
def test_without_time_the_first_has_its_turn_or_all_have(each, turns):
    """Law: time is never so short that there is no answer, and where all are asked for, none for all."""
    _, times = raced(0.0, [1.0], [1.0], [1.0], rounds=4, each=each)[0]
    assert [len(row) for row in times] == turns


def test_what_is_enough_is_enough():
    """Law: after enough rounds only the first and the fastest go on, and no longer than it takes to know which wins."""
    for rows, turns in (
        (([1.0], [1.0]), [3, 3]),  # nobody is faster than the first
        (([1.0], [0.7], [0.6]), [5, 3, 5]),  # five equal signs
        (([1.0], [0.95], [0.97]), [5, 5, 3]),  # it is faster, but not by enough
        (([1.0], [0.8, 1.2]), [9, 9]),  # one round of one kind, eight of the other
        (([1.0], [0.8, 1.2] * 6), [12, 12]),  # nobody knows
    ):
        _, times = raced(1e9, *rows, rounds=12, narrow=True)[0]
        assert [len(row) for row in times] == turns, rows


def test_progress_goes_on_and_ends():
    """Law: what is told never goes back, and ends with all."""
    parts: list[float] = []
    raced(1e9, [1.0], [1.0], rounds=3, progress=parts.append)
    assert parts == sorted(parts) and parts[-1] == 1
    assert [round(part, 6) for part in parts[:6]] == [round(n / 6, 6) for n in range(1, 7)]


def order(*rows, rounds=5):
    """The order of candidates whose turns always take so many seconds."""
    turns = [lambda share, progress, row=row: row for row in rows]
    return [*choose(alone(), turns, 1e9, rounds=rounds).order]


def test_the_usual_one_stays_unless_another_is_clearly_faster():
    """Law: less than the limit below the first candidate's time is no reason to leave it; more is, in enough rounds."""
    near, clear = 1.01 * BETTER, 0.99 * BETTER
    assert order(1.0, near) == [0, 1]
    assert order(1.0, 2.0, clear) == [2, 0, 1]
    assert order(1.0, 2.0, clear, rounds=4) == [0, 2, 1]
    assert order(math.inf, math.inf)[0] == 0
    assert order(math.inf, 2.0) == [1, 0]
    assert order() == []


def winner(works, sort, seed, monkeypatch, seconds=None):
    """Who is taken of candidates that want so many seconds of work, and the seconds that this took."""
    machine = Busy(seed)
    monkeypatch.setattr(module, "perf_counter", lambda: machine.now)
    turns = [lambda share, progress, work=work: machine.spend(work) for work in works]
    allowed = SECONDS[sort]["measure"] if seconds is None else seconds
    return choose(alone(), turns, allowed).best, machine.now


@pytest.mark.parametrize("sort", SECONDS)
@pytest.mark.parametrize("work", [0.002, 0.02, 0.2])
def test_who_is_slower_is_never_taken(sort, work, monkeypatch):
    """Law: under bursts a candidate that is slower than the model's choice by 3 % or more is never taken."""
    field = [work, 1.03 * work, 1.1 * work, 1.22 * work]
    assert {winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS} == {0}


@pytest.mark.parametrize("sort", SECONDS)
def test_the_model_stays_where_nobody_is_clearly_faster(sort, monkeypatch):
    """Law: of candidates that are as fast as the model's choice, or less faster than is asked for, none is taken."""
    field = [0.01, 0.01, 0.01, 0.01 * (1 + BETTER) / 2]
    assert {winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS} == {0}


@pytest.mark.parametrize("sort", SECONDS)
def test_who_is_clearly_faster_is_taken(sort, monkeypatch):
    """Law: a candidate that takes three quarters of the time is taken, where there is time for the rounds it needs."""
    field = [0.01, 0.011, 0.0075, 0.01]
    wins = [winner(field, sort, seed, monkeypatch)[0] for seed in SEEDS]
    assert {*wins} <= {0, 2} and wins.count(2) >= 0.9 * len(wins)


@pytest.mark.parametrize("sort", SECONDS)
def test_no_choice_takes_longer_than_it_may(sort, monkeypatch):
    """Law: beyond its seconds a choice takes a turn that was begun, with the burst that met it, and no more."""
    for seed in SEEDS:
        _, took = winner([0.2] * 4, sort, seed, monkeypatch, 3.0)
        assert took <= 3.0 + 0.2 * 2.1 + 5.0


def test_a_turn_is_its_fastest_call(monkeypatch):
    """Law: of eight calls at most, after one that finds the caches cold; of one where there is no time for more."""
    clock, waits = [0.0], [9.0, 3.0, 5.0, 2.0, 4.0, 6.0, 7.0, 8.0, 1.5, 0.1]

    def call():
        clock[0] += calls.pop(0)

    monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    for seconds, left, time in ((100.0, 1, 1.5), (0.0, 8, 3.0), (13.5, 5, 2.0)):
        calls = [*waits]
        assert collective_call(alone(), call)(seconds, None) == time
        assert len(calls) == left


def test_large_blocks_may_take_longer():
    """Law: a choice for blocks above 64 MiB may take longer as they grow, up to four times as long."""
    seconds = SECONDS["walk"]["measure"]
    parts = [budget(alone(), "walk", "measure", mib << 20) / seconds for mib in (0, 64, 128, 1 << 20)]
    assert parts == [1, 1, 2, 4]


def test_the_first_reading_does_not_count():
    """Law: it finds the caches cold; where there is no other, it is all that there is."""
    assert (middle([9.0, 1.0, 3.0, 2.0]), middle([9.0]), middle([])) == (2.0, 9.0, math.inf)


def test_a_ratio_wants_rounds():
    """Law: of fewer than five rounds nothing is sure; of five equal signs it is."""
    for rounds in range(12):
        known = time_ratio([1.0] * rounds, [2.0] * rounds)
        sure = rounds >= FEWEST
        assert (known.low, known.high) == ((0.5, 0.5) if sure else (0.0, math.inf))
        assert known.ratio == (0.5 if rounds else 1.0)
    assert time_ratio([math.inf] * 5, [1.0] * 5) == TimeRatio(math.inf, math.inf, math.inf)


def test_bounds_hold_as_often_as_they_promise():
    """Law: whatever the noise, the true ratio lies beyond a bound in one choice of 32 at most."""
    rng, wrong = np.random.default_rng(7), [0, 0]
    for _ in range(2000):
        noise = np.exp(np.clip(rng.standard_cauchy((2, 9)), -50, 50))
        known = time_ratio((0.9 * noise[0]).tolist(), noise[1].tolist())
        wrong[0] += known.low > 0.9
        wrong[1] += known.high < 0.9
    assert max(wrong) <= 2000 / 32 * 1.4 and min(wrong) > 0


# --- decisions -------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of wisdom for one test."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))


def test_ranks_that_find_differently_take_what_the_first_finds(place):
    """Law: a decision is agreed on, kept once, and the same on all ranks, also where each would have another."""
    facts = {"what": "test"}

    def program(comm):
        return decided(comm, facts, "measure", int, lambda: 7 + comm.rank)

    assert rote.run(program, 3) == [7] * 3
    (record,) = wisdom.records()
    assert record.decision == 7


def test_what_is_kept_is_read(place, monkeypatch):
    """Law: a decision on a method is taken without timing anything."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(12, 9), grid=3)
    ranks = {"hosts": 1, "tune": "measure"}
    method = {"what": "method", "step": str(plan.steps[0]), "shape": [12, 9], "dtype": plan.dtype.str}
    method |= {"nodes": 1, "grids": [str(plan.source.grid)] * 2, "ranks": 3}
    wisdom.remember(wisdom.key(method | ranks), "alltoallv")
    monkeypatch.setattr(tuning, "choose", None)
    assert rote.run(lambda comm: tuning.tuned(plan, comm, "measure"), 3) == [("alltoallv",)] * 3
