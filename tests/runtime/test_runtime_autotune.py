"""The autotuner's one loop: turns in turn, on the slowest rank, as long as they are worth it; and what is agreed on."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rote
from rote import wisdom
from rote.fft.kernels import timing
from rote.fft.kernels.backends import versions
from rote.fft.kernels.config import KernelConfig
from rote.fft.kernels.kernel import Kernel
from rote.fft.kernels.turns import Position
from rote.fft.request.arguments import Options
from rote.runtime.comm.threads import alone
from rote.runtime.tuning import methods
from rote.runtime.tuning.autotune import decided, middle, ranking, timings
from rote.runtime.tuning.limits import LIMITS, Limits


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own for each test."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))


def raced(seconds, limits, *rows, ranks=2, progress=None):
    """The candidates in the order of their turns, and their times, on each rank; a row has what its turns read."""

    def program(comm):
        turns = []

        def candidate(number, row):
            def turn(share, part):
                turns.append(number)
                return row[min(turns.count(number), len(row)) - 1] * (1 + comm.rank)

            return turn

        told = progress if comm.rank == 0 else None
        times = timings(comm, [candidate(n, row) for n, row in enumerate(rows)], seconds, limits, told)
        return turns, times

    return rote.run(program, ranks)


def test_turns_are_taken_round_after_round():
    """Law: all have as many turns as there are rounds, every other backwards; a reading is that of the slowest rank."""
    turns, times = (first := raced(100.0, Limits({}, rounds=3), [1.0, 2.0, 3.0], [5.0]))[0]
    assert first[1] == first[0]
    assert turns == [0, 1, 1, 0, 0, 1]
    assert times == [[2.0, 4.0, 6.0], [10.0] * 3]


def test_those_behind_are_given_up_but_for_the_first():
    """Law: who is behind by more than the limit has no other turn; the first candidate, the usual one, always has."""
    limits = Limits({}, rounds=4, behind=(3.0, 1.5))
    _, times = raced(100.0, limits, [9.0], [1.0], [2.9, 2.9], [3.1], [math.inf])[0]
    assert [len(row) for row in times] == [4, 4, 2, 1, 1]


@pytest.mark.parametrize(("each", "turns"), [(False, [1, 0, 0]), (True, [1, 1, 1])])
def test_without_time_the_first_has_its_turn_or_all_have(each, turns):
    """Law: time is never so short that there is no answer, and where all are asked for, none for all."""
    _, times = raced(0.0, Limits({}, rounds=4, each=each), [1.0], [1.0], [1.0])[0]
    assert [len(row) for row in times] == turns


def test_what_is_enough_is_enough():
    """Law: after enough rounds only the first and the fastest go on, and no longer than it takes to know who leads."""
    limits = Limits({}, rounds=12, enough=2, better=0.9)
    for rows, turns in (
        (([1.0], [1.0]), [2, 2]),  # nobody is faster than the first
        (([1.0], [0.7], [0.6]), [5, 2, 5]),  # five equal signs
        (([1.0], [0.95], [0.97]), [5, 5, 2]),  # it is faster, but not by enough
        (([1.0], [0.8, 1.2]), [9, 9]),  # one round of one kind, eight of the other
        (([1.0], [0.8, 1.2] * 6), [12, 12]),  # nobody knows
    ):
        _, times = raced(1e9, limits, *rows)[0]
        assert [len(row) for row in times] == turns, rows


def test_progress_goes_on_and_ends():
    """Law: what is told never goes back, and ends with all."""
    parts: list[float] = []
    raced(1e9, Limits({}, rounds=3), [1.0], [1.0], progress=parts.append)
    assert parts == sorted(parts) and parts[-1] == 1
    assert [round(part, 6) for part in parts[:6]] == [round(n / 6, 6) for n in range(1, 7)]


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_the_usual_one_stays_unless_another_is_clearly_faster(limits):
    """Law: less than the limit below the first candidate's time is no reason to leave it; more is, in enough rounds."""
    near, clear = limits.better, 0.99 * limits.better
    assert ranking([[1.0] * 5, [near] * 5, []], limits) == [0, 1]
    assert ranking([[1.0] * 5, [2.0, 2.0], [clear] * 5], limits) == [2, 0, 1]
    assert ranking([[1.0] * 4, [2.0, 2.0], [clear] * 4], limits) == [0, 2, 1]
    assert ranking([[math.inf], [math.inf]], limits)[0] == 0
    assert ranking([[math.inf], [2.0]], limits) == [1, 0]


def test_the_first_reading_does_not_count():
    """Law: it finds the caches cold; where there is no other, it is all that there is."""
    assert (middle([9.0, 1.0, 3.0, 2.0]), middle([9.0]), middle([])) == (2.0, 9.0, math.inf)


def test_ranks_that_find_differently_take_what_the_first_finds():
    """Law: a decision is agreed on, kept once, and the same on all ranks, also where each would have another."""
    facts = {"what": "test"}

    def program(comm):
        return decided(comm, facts, "measure", int, lambda: 7 + comm.rank)

    assert rote.run(program, 3) == [7] * 3
    (record,) = wisdom.records()
    assert record.decision == 7


def test_what_was_kept_is_still_read(monkeypatch):
    """Law: decisions on a method and on a kernel, spelt as they have always been, are taken without timing anything."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(12, 9), grid=3)
    ranks = {"hosts": 1, "tune": "measure"}
    method = {"what": "method", "step": str(plan.steps[0]), "shape": [12, 9], "dtype": plan.dtype.str}
    method |= {"nodes": 1, "grids": [str(plan.source.grid)] * 2, "ranks": 3}
    config = {"library": "numpy", "tile": 0, "part": 4096, "tiled": False, "fused": True, "threads": 1, "plans": ""}
    kernel = {"what": "kernel", "kind": "fft", "axes": [0], "dtype": "<c16", "shapes": [[[8, 2], [8, 2]]]}
    kernel |= {"behind": False, "threads": 1, "libraries": versions(), "ranks": 1}
    wisdom.remember(wisdom.key(method | ranks), "alltoallv")
    wisdom.remember(wisdom.key(kernel | ranks), config)
    for module in (methods, timing):
        monkeypatch.setattr(module, "timings", None)
    assert rote.run(lambda comm: methods.tuned(plan, comm, "measure"), 3) == [("alltoallv",)] * 3
    block = Kernel("fft", (0,), (8, 2), (8, 2), np.dtype("D"))
    (chosen,) = timing.tuned([block], [Position()], alone(), Options("measure"))
    assert chosen.config == KernelConfig(**config, order="columns")
