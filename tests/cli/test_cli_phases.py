"""The phases of `rote fft`: together they are the time that it takes, and each holds what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hurry import hurry
from runner import run

import rote
import rote.cli.transform
import rote.fft.plan
import rote.io.npy
import rote.tensor.files
from rote.cli import output
from rote.cli.output import Watch, progress
from rote.runtime import Comm

PHASES = ["start", "plan", "read", "transform", "write"]
SAID = [*PHASES, "check", "total"]


class Clock:
    """A clock that goes on only by what is said to take time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def during(self, seconds: float, call: Callable[..., object]) -> Callable[..., object]:
        """The call, which takes some seconds."""

        def slow(*args: object, **options: object) -> object:
            result = call(*args, **options)
            self.now += seconds
            return result

        return slow


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the phases, in a folder with in.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("in.npy", np.random.default_rng(1).standard_normal((6, 5, 4)))
    found = Clock()
    monkeypatch.setattr("rote.cli.output.perf_counter", found)
    return found


def test_phases_are_the_time_that_it_takes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, planning, transforming, writing and the check each show what they took, and all of it is accounted for:
    the sum is the time from the beginning of the process to the end."""
    for owner, name, seconds in (
        (rote.io.npy, "read_header", 2.0),  # once for the plan, once to read
        (rote.fft.plan, "FFT", 30.0),
        (rote.tensor, "load", 5.0),
        (rote.fft.FFT, "forward", 7.0),
        (rote.tensor.files, "save", 11.0),
        (rote.cli.transform, "largest_error", 13.0),
    ):
        monkeypatch.setattr(owner, name, clock.during(seconds, getattr(owner, name)))
    done = run("fft", "in.npy", "out.npy", "--check", obj=60.0)
    assert done.exit_code == 0, done.output
    times = dict(line.split()[:2] for line in done.output.splitlines() if line.split() and line.split()[0] in SAID)
    assert times == dict(zip(SAID, ["40.00", "32.00", "7.00", "7.00", "11.00", "13.00", "110.00"], strict=True))
    assert clock.now - 60.0 == 110.0


@pytest.mark.parametrize("ranks", [1, 3])
def test_no_time_is_lost_between_phases(ranks: int, clock: Clock) -> None:
    """Whatever happens between two phases belongs to the later one; nothing is counted twice."""

    def program(comm: Comm) -> dict[str, float]:
        watch = Watch(comm, 90.0)
        for number, name in enumerate(("one", "two", "one")):
            comm.barrier()
            if comm.rank == 0:
                clock.now += 10.0**number
            comm.barrier()
            with watch.phase(name):
                comm.barrier()
                if comm.rank == 0:
                    clock.now += 3 * 10.0**number
        comm.barrier()
        return watch.report()

    for slowest in rote.run(program, ranks):
        assert slowest == {"one": 10.0 + 4.0 + 400.0, "two": 40.0}
    assert clock.now - 90.0 == 454.0


def test_the_plan_shows_on_a_terminal(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Each phase is a bar with its name from when it begins; planning fills it while walks are timed."""
    shown: list[str] = []

    def seen(comm: Comm, name: str):
        shown.append(name)
        return progress(comm, name)

    monkeypatch.setattr(output, "progress", seen)
    monkeypatch.setattr("rote.cli.output.animated", lambda: True)
    hurry(monkeypatch, 0.02, 0.1)
    parts: list[float] = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda bar, task, completed=0.0, **more: parts.append(completed)
    )
    done = run("fft", "in.npy", "out.npy", "--ranks", "2", "--effort", "measure")
    assert done.exit_code == 0, done.output
    assert [name for name in PHASES if name in shown] == PHASES
    assert parts and all(0 <= part <= 1 for part in parts)
