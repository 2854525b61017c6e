"""What was tuned is taken only where it leads the model's choice as a whole, and as long as it keeps its promise."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from families import numbers
from hurry import hurry

import rote
from rote import DistTensor, wisdom
from rote.fft import FFT, tuning
from rote.fft.kernels import choose as timing
from rote.fft.kernels.backends.library import KernelConfig
from rote.fft.tuning import Confirmed
from rote.runtime.choose import Timed, TimeRatio, choose, time_ratio

SHAPE = (8, 6, 10)


class Rounds:
    """A clock of both transforms: the ratios of their rounds, one after the other, on each rank alike."""

    def __init__(self, monkeypatch):
        self.say(1.0)
        monkeypatch.setattr(tuning, "choose", self)

    def __call__(self, comm, candidates, seconds, progress=None, rounds=5, each=False):
        if isinstance(candidates[0], partial):  # walks
            return choose(comm, candidates, seconds, progress)
        for candidate in candidates:
            candidate(0.0, None)  # it runs, and nobody looks at the clock
        start = self.asked[comm.rank]
        self.asked[comm.rank] += rounds
        ratios = [self.ratios[min(start + n, len(self.ratios) - 1)] for n in range(rounds)]
        ratio = time_ratio(ratios, [1.0] * rounds)
        return Timed((1, 0) if ratio.is_better else (0, 1), ((1.0,) * rounds, tuple(ratios)))

    def say(self, *ratios):
        """Let the next rounds have these ratios, the last one of them from then on."""
        self.ratios, self.asked = [*ratios], [0, 0]


@pytest.fixture
def contests(monkeypatch):
    """One entry per kernel that was timed, on each rank; NumPy is found to be the fastest."""
    timed: list[str] = []

    def best(search, names, seconds):
        timed.append(search.kernel.kind)
        return KernelConfig("numpy", tiled=False)

    monkeypatch.setattr(timing._Search, "best", best)
    return timed


@pytest.fixture
def rounds(tmp_path, monkeypatch, contests):
    """The clock, with wisdom of this test alone and little time for all else."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path))
    hurry(monkeypatch, 0.01, 0.02)
    return Rounds(monkeypatch)


def planned(ranks=2, **more):
    """A tuned transform on ranks of this process: its text, libraries, walks, and the bits of a spectrum."""

    def program(comm):
        f = FFT(SHAPE, comm=comm, **{"tune": "measure", **more})
        X = f.forward(DistTensor.from_global(numbers(SHAPE, "D"), f.input_layout, comm, f.grid))
        return str(f), f.libraries, f.walk, [tried.name for tried in f.tried], X.to_global().tobytes()

    replies = rote.run(program, ranks)
    assert all(reply == replies[0] for reply in replies)
    return replies[0]


def verdicts():
    """The verdicts that are kept."""
    return [Confirmed.of(r.decision) for r in wisdom.records() if r.key.facts["what"] == "transform"]


def test_who_does_not_lead_is_not_taken(rounds):
    """Law: walk, libraries and bits are the model's where what was tuned is slower, or not clearly faster."""
    model = planned(tune="model")
    for ratio, part in ((1.22, "1.22 (1.22 to 1.22)"), (0.99, "0.99 (0.99 to 0.99)")):
        wisdom.forget(all=True)
        rounds.say(ratio)
        text, libraries, walk, tried, bits = planned()
        assert (libraries, walk, bits) == (model[1], model[2], model[4])
        assert f"tuned: {part} of the time by the model, whose choice stays\n" in text
        assert not tried or tried[0] in text.splitlines()[-len(tried)]
        assert verdicts() == [Confirmed(False, TimeRatio(ratio, ratio, ratio))]


def test_who_leads_is_taken(rounds):
    """Law: what was tuned runs where it is clearly faster; and it is right."""
    rounds.say(0.8)
    text, libraries, *_, bits = planned()
    assert libraries == ("numpy",) and "tuned: 0.80 (0.80 to 0.80) of the time by the model\n" in text
    spectrum = np.frombuffer(bits, "D").reshape(SHAPE)
    assert np.allclose(spectrum, np.fft.fftn(numbers(SHAPE, "D")))
    assert verdicts() == [Confirmed(True, TimeRatio(0.8, 0.8, 0.8))]


def test_a_promise_that_is_kept_is_trusted(rounds, contests):
    """Law: one round that keeps the promise is enough, whatever those before; nothing is tuned again."""
    rounds.say(0.8)
    first = planned()
    number = len(contests)
    for ratios, asked in (((0.8,), 1), ((1.3, 0.9, 0.82), 3), ((9.0, 9.0, 9.0, 9.0, 0.7), 5)):
        rounds.say(*ratios)
        assert planned() == first
        assert (rounds.asked, len(contests)) == ([asked] * 2, number)


def test_a_promise_that_is_broken_lastingly_has_all_tuned_again(rounds, contests):
    """Law: five rounds in a row against the verdict end it, on either side; what is found then is kept in its place."""
    rounds.say(0.8)
    planned()
    number = len(contests)
    rounds.say(0.9)  # still faster than the model's choice, but not as fast as it was
    assert planned()[1] == ("numpy",) and len(contests) == 2 * number
    rounds.say(1.2)
    text, *_ = planned()
    assert len(contests) == 3 * number and "whose choice stays" in text
    rounds.say(0.92)  # faster than the model's choice, but not by enough to be taken
    assert planned()[0] == text and len(contests) == 3 * number
    rounds.say(0.7)
    assert planned()[1] == ("numpy",) and len(contests) == 4 * number
    assert verdicts() == [Confirmed(True, TimeRatio(0.7, 0.7, 0.7))]


def test_wisdom_without_a_verdict_is_confirmed_and_not_tuned_again(rounds, contests):
    """Law: what earlier versions kept is still read; it runs beside the model's choice once, and has its verdict."""
    rounds.say(0.8)
    first = planned()
    number = len(contests)
    assert len(wisdom.forget("what=transform")) == 1
    assert planned() == first and len(contests) == number and len(verdicts()) == 1


def test_transforms_that_are_alike_are_not_timed(rounds, monkeypatch):
    """Law: where tuning comes to what the model says, there is nothing to confirm, and the verdict says so."""
    monkeypatch.setattr(timing._Search, "config", lambda search, installed, seconds: search.kernel.config)
    text = planned(layout="block[(0),(),()]", algorithm="slab")[0]
    assert rounds.asked == [0, 0] and "tuned: as by the model" in text
    assert planned(layout="block[(0),(),()]", algorithm="slab")[0] == text


@pytest.mark.parametrize("damage", ["yes", {}, {"taken": 1, "ratio": {}}, {"taken": True, "ratio": {"ratio": -1}}])
def test_a_damaged_verdict_is_ignored(rounds, contests, tmp_path, damage):
    """Law: with one warning; what is kept of walks and kernels serves on."""
    rounds.say(0.8)
    first = planned()
    number = len(contests)
    (path,) = (path for path in tmp_path.glob("*.json") if '"what": "transform"' in path.read_text())
    path.write_text(json.dumps({**json.loads(path.read_text()), "decision": damage}))
    with pytest.warns(wisdom.WisdomWarning, match="a confirmation is|a ratio of|ratios are"):
        assert planned() == first
    assert len(contests) == number
