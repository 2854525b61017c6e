"""Walks chosen by timing: the same on all ranks, in little time and memory, remembered, and right; the machine."""

from __future__ import annotations

import json
import math
import re
import time
import warnings
import weakref
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from families import numbers
from hurry import hurry

import rote
from rote import DistTensor, Machine, wisdom
from rote.fft import FFT, fftn
from rote.fft import tuning as autotune
from rote.fft.families.choose import best, choices_for, reread
from rote.fft.request import Options, as_arguments, as_request, requested_kinds
from rote.fft.tuning import candidates, race
from rote.layout.grid import Grid
from rote.runtime import choose as clock
from rote.runtime import tuning, world
from rote.runtime.choose import SECONDS

SHAPE = (8, 6, 10)
SHORT = {"measure": 0.02, "patient": 0.04}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own for each test, and little time."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "kept"))
    hurry(monkeypatch, *SHORT.values())
    return tmp_path / "kept"


def kept():
    """What is kept of walks."""
    return [entry for entry in wisdom.records() if entry.key.facts["what"] == "walk"]


@pytest.fixture
def races(monkeypatch):
    """How many walks were timed, per race and rank."""
    found: list[int] = []

    def counted(field, *args):
        found.append(len(field))
        return race(field, *args)

    monkeypatch.setattr(autotune, "race", counted)
    return found


def right(f, code):
    """Whether a transform is numpy.fft's there, and leads back."""
    array = numbers(f.shape, code)
    x = DistTensor.from_global(array, f.input_layout, f.comm, f.grid)
    X = f.forward(x)
    want = np.fft.rfftn(array) if code == "d" else np.fft.fftn(array)
    near = np.abs(X.to_global() - want).max() <= 1e-13 * np.abs(want).max()
    return bool(near and np.abs(f.backward(X).to_global() - array).max() <= 1e-13)


# --- the decision -----------------------------------------------------------------------------------------------------


def check(comm):
    """All ranks take one walk, which is right, and the next program that asks for the same takes it as well.

    It is the model's, or was the fastest of those that were timed.
    """
    for code, tune in (("D", "measure"), ("d", "patient")):
        f = FFT(SHAPE, comm=comm, dtype=code, tune=tune)
        assert right(f, code)
        told = comm.allgather_object((str(f), f.grid, f.input_layout, f.output_layout))
        assert all(each == told[0] for each in told)
        timed = [one.seconds for one in f.tried]
        assert timed[1:] == sorted(timed[1:])
        assert not timed or timed[0] == min(timed) or f.walk == FFT(SHAPE, comm=comm, dtype=code).walk
        again = FFT(SHAPE, comm=comm.split(0, comm.rank), dtype=code, tune=tune)
        assert (again.walk, again.tried) == (f.walk, f.tried)
        assert right(again, code)


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_on_ranks_of_this_process(ranks, races):
    """The decision on in-process ranks; each request is timed once, on all ranks, and on one rank never."""
    rote.run(check, ranks)
    assert len(races) == (2 * ranks if ranks > 1 else 0)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", (4,))
def test_on_mpi_ranks(mpirun, ranks, place):
    """The decision on MPI ranks."""
    done = mpirun(ranks, Path(__file__), env={"ROTE_WISDOM": str(place)}, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "right\n")
    assert {entry.key.facts["ranks"] for entry in kept()} == {ranks}


def test_it_is_remembered(races, place):
    """The same request is not timed again, any other is; what was patient serves who measures; models time nothing."""

    def program(comm, **more):
        return str(FFT(SHAPE, comm=comm, **more))

    first = rote.run(lambda comm: program(comm, tune="measure"), 2)
    assert len(races) == 2
    assert rote.run(lambda comm: program(comm, tune="measure"), 2) == first
    assert len(races) == 2
    others = (
        {"dtype": "f8"},
        {"axes": (0, 1)},
        {"layout": "block[(0),(),()]"},
        {"output": "block[(),(0),()]"},
        {"s": (8, 6, 12)},
        {"threads": 2},
        {"tune": "patient"},
    )
    for number, more in enumerate(others, 2):
        rote.run(lambda comm, more=more: program(comm, **{"tune": "measure", **more}), 2)
        assert (len(races), len(kept())) == (2 * number, number)
    patient = rote.run(lambda comm: program(comm, tune="patient"), 2)
    assert rote.run(lambda comm: program(comm, tune="measure"), 2) == patient
    rote.run(lambda comm: program(comm, tune="model"), 2)
    rote.run(lambda comm: program(comm, tune="measure", algorithm="slab"), 2)
    assert len(races) == 2 * (len(others) + 1)


def test_where_nothing_can_be_written_the_communicator_remembers(races, monkeypatch):
    """The second of two equal transforms of one program is not timed."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    rote.run(lambda comm: [FFT(SHAPE, comm=comm, tune="measure") for _ in range(2)] and None, 2)
    assert len(races) == 2


def damages(decision):
    """Decisions that are none, or another's."""
    walk = decision["walk"]
    yield "text"
    yield {}
    yield {**decision, "more": 1}
    yield {**decision, "walk": "[()]"}
    yield {**decision, "walk": []}
    yield {**decision, "walk": [5]}
    yield {**decision, "walk": ["block[(0),(),()]: fft(1, 2"]}
    yield {**decision, "walk": walk[:1]}
    yield {**decision, "walk": [line.replace("0", "1").replace("(1, 2)", "(0, 2)") for line in walk]}
    yield {**decision, "grid": [3]}
    yield {**decision, "grid": ["2"]}
    yield {**decision, "grid": 2}
    yield {**decision, "tried": []}
    yield {**decision, "tried": [["slab", "fast", 1]]}
    yield {**decision, "tried": [["slab", 1]]}


def test_damaged_decisions_are_ignored(races, place):
    """With one warning; the request is timed again, and the decision of that is kept in its place."""

    def program(comm):
        return FFT(SHAPE, "block[(0),(),()]", comm=comm, tune="measure").walk

    walk = rote.run(program, 2)[0]
    path = place / f"{kept()[0].key.name}.json"
    good = json.loads(path.read_text())
    for number, damage in enumerate(damages(good["decision"]), 2):
        path.write_text(json.dumps({**good, "decision": damage}))
        wisdom._ignored.clear()
        with pytest.warns(wisdom.WisdomWarning) as warned:
            found = rote.run(program, 2)
        assert (len(warned), len(races)) == (1, 2 * number), damage
        assert found[0] == found[1] and found[0].source == walk.source
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rote.run(program, 2)
        assert len(races) == 2 * number


def test_only_walks_are_tuned():
    """Law: of one walk nothing is timed or kept but its samples; libraries and bits are those of the model."""

    def program(comm, tune):
        f = FFT(SHAPE, "block[(0),(),()]", comm=comm, algorithm="slab", tune=tune)
        X = f.forward(DistTensor.from_global(numbers(SHAPE, "D"), f.input_layout, comm, f.grid))
        return str(f), f.libraries, f.tried, X.to_global().tobytes()

    model = rote.run(lambda comm: program(comm, "model"), 2)
    assert rote.run(lambda comm: program(comm, "measure"), 2) == model
    assert {entry.key.facts["what"] for entry in wisdom.records()} <= {"speeds"}


def test_what_earlier_versions_kept_is_ignored():
    """Law: decisions on kernels and confirmations, which older programs kept, stay where they are and raise nothing."""
    kernel = {"what": "kernel", "kind": "fft", "axes": [0], "dtype": "<c16", "shapes": [[[8, 2], [8, 2]]]}
    config = {"library": "numpy", "tile": 0, "part": 4096, "tiled": False, "fused": True, "threads": 1, "plans": ""}
    transform = {"what": "transform", **asked_for(2, layout="block[(0),(),()]").facts()}
    confirmed = {"taken": True, "ratio": {"ratio": 0.8, "low": 0.7, "high": 0.9}}
    ranks = {"ranks": 2, "hosts": 1, "tune": "measure", "threads": 1, "method": "auto"}
    for facts, decision in ((kernel, config), (transform, confirmed)):
        wisdom.remember(wisdom.key(facts | ranks), decision)
    before = {entry.key for entry in wisdom.records()}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f, _ = rote.run(lambda comm: right(FFT(SHAPE, "block[(0),(),()]", comm=comm, tune="measure"), "D"), 2)
    assert f and len(before) == 2 and before < {entry.key for entry in wisdom.records()}


def test_what_is_printed(monkeypatch):
    """What was timed stands beside what the model says, the walk that is taken first."""
    monkeypatch.setitem(SECONDS["walk"], "measure", 1.0)
    (text, f), _ = rote.run(lambda comm: (str(f := FFT(SHAPE, comm=comm, tune="measure")), f.tried), 2)
    head, *rows = text.splitlines()[-len(f) - 1 :]
    assert head.split() == ["there", "and", "back", "timed", "by", "the", "model"]
    assert len(rows) > 1 and all(row.startswith(f"    {one.name}") for row, one in zip(rows, f, strict=True))
    model = rote.run(lambda comm: str(FFT(SHAPE, comm=comm)), 2)[0]
    assert "timed" not in model


# --- the race ---------------------------------------------------------------------------------------------------------


def asked_for(ranks, shape=SHAPE, code="D", layout=None, grid=None, output=None, kinds=None, **lengths):
    """A request as FFT makes it."""
    axes, found = requested_kinds(kinds, None, len(shape), code in "df")
    return as_arguments(shape, as_request(shape, axes, found, np.dtype(code), **lengths), ranks, layout, grid, output)


REQUESTS = [
    asked_for(2),
    asked_for(4),
    asked_for(4, code="d"),
    asked_for(4, grid=(2, 2)),
    asked_for(6, (6, 4, 8, 5), "f"),
    asked_for(2, layout="block[(),(0),()]", output="block[(0),(),()]"),
    asked_for(4, layout="[(0),(1),()]", grid=(2, 2), code="d"),
    asked_for(3, kinds="dct2", code="d"),
    asked_for(2, kinds={0: "dst1", 2: "rfft"}, code="d"),
    asked_for(2, s=(9, 6, 12)),
    asked_for(2, resample=(6, 6, 8), code="d"),
]


@pytest.mark.parametrize("arguments", REQUESTS, ids=lambda arguments: str(arguments.facts()))
def test_candidates(arguments):
    """The model's choice is among the first; all differ, are cheap by the model, do what is asked, and read back."""
    found = choices_for(arguments)
    field = candidates(found, 8)
    seconds = [choice.seconds for choice in field.values()]
    assert best(found) == next(iter(field))
    near = [each for each in seconds if each <= 1.1 * min(seconds)]
    assert 1 <= len(field) <= 8 and max(seconds) <= 3 * min(seconds)
    assert {*near} <= {*seconds[: len(near) + 1]} and seconds[len(near) + 1 :] == sorted(seconds[len(near) + 1 :])
    assert len(candidates(found, 1)) == 1
    for walk, choice in field.items():
        assert (walk, walk.source) == (choice.walk, choice.source)
        assert arguments.layout in (None, walk.source.layout)
        assert arguments.output in (None, walk.target.layout)
        assert arguments.grid in (None, walk.source.grid)
        decision = autotune.Decision(walk, (autotune.Tried("one", 1.0, 1.0),)).as_json()
        assert autotune._read(arguments, json.loads(json.dumps(decision))).walk == walk


def test_a_decision_of_another_request_is_refused():
    """A walk that begins, ends or counts otherwise is no answer."""
    arguments = REQUESTS[5]
    walk = best(choices_for(arguments))
    lines = str(walk)
    assert reread(arguments, lines, Grid((2,))) == walk
    for other in (
        replace(arguments, layout=rote.parse("block[(0),(),()]")),
        replace(arguments, output=rote.parse("block[(),(),(0)]")),
        replace(arguments, ranks=4),
        replace(arguments, grid=Grid((2, 1))),
        replace(arguments, request=asked_for(2, kinds="dct2").request),
        replace(arguments, request=asked_for(2, s=(8, 6, 12)).request),
    ):
        with pytest.raises(rote.LayoutError):
            reread(other, lines, Grid((2,)))


def test_it_ends_in_time(monkeypatch):
    """Without time only the first walk has a turn; with some, all in turn, and none much longer than it is worth."""
    arguments = asked_for(2)
    field = [*candidates(choices_for(arguments), 3)]
    told: list[float] = []

    def program(comm, seconds):
        progress = told.append if comm.rank == 0 else None
        timed = race(field, comm, "backward", Options("measure", progress=progress), seconds)
        return [timed.seconds(n) for n in range(len(field))]

    one, other = rote.run(lambda comm: program(comm, 0.0), 2)
    assert one == other and one[0] < math.inf and one[1:] == [math.inf] * (len(field) - 1)
    assert told == sorted(told) and told[-1] == 1
    ticks = count()  # a clock by which no turn takes long, however busy the machine is
    monkeypatch.setattr(clock, "perf_counter", lambda: 0.01 * next(ticks))
    start = time.process_time()
    one, other = rote.run(lambda comm: program(comm, 0.5), 2)
    assert time.process_time() - start < 3
    assert one == other and max(one) < math.inf


def test_one_walk_is_bound_at_a_time(monkeypatch):
    """The workspace of a walk is let go before the next one's is made, without a garbage collection."""
    living: dict[int, list[weakref.ref[object]]] = {0: [], 1: []}

    def bound(walk, comm, *args):
        assert not any(each() for each in living[comm.rank])
        pair = bind_pair(walk, comm, *args)
        living[comm.rank].append(weakref.ref(pair.forward))
        return pair

    bind_pair = autotune.bind_pair
    monkeypatch.setattr(autotune, "bind_pair", bound)
    arguments = asked_for(2)
    field = [*candidates(choices_for(arguments), 3)]
    rote.run(lambda comm: race(field, comm, "backward", Options(), 1.0), 2)
    assert len(living[0]) == len(living[1]) > len(field) > 1


# --- the machine ------------------------------------------------------------------------------------------------------

FAR = Machine(step_time=1.0)  # whatever has the fewest moves
NARROW = Machine(byte_time=1.0)  # whatever sends fewest bytes


def moves_of(comm, **more):
    """How many moves the model's choice makes, of the class and of the function."""
    x = DistTensor.from_global(numbers((16, 16, 16), "D"), "[(0),(1),()]", comm, (2, 2))
    f = FFT((16, 16, 16), "[(0),(1),()]", (2, 2), comm, **more)
    assert np.allclose(fftn(x).to_global(), f.forward(x).to_global())
    return len(f.walk.moves), str(fftn(x).layout)


def test_the_machine_that_was_measured_is_the_one_that_counts(monkeypatch):
    """It chooses the walk, for classes and functions, and is read once per communicator; `machine` overrules it."""
    seen: list[object] = []

    def recalled(comm, *args):
        seen.append(args)
        return measure_recalled(comm, *args)

    measure_recalled = tuning.recalled
    monkeypatch.setattr(tuning, "recalled", recalled)
    far, narrow = (
        rote.run(lambda comm, machine=machine: moves_of(comm, machine=machine)[0], 4)[0] for machine in (FAR, NARROW)
    )
    for machine, moves in ((FAR, far), (NARROW, narrow)):
        rote.run(lambda comm, machine=machine: tuning.keep_machine(comm, machine), 4)
        seen.clear()
        assert {found[0] for found in rote.run(moves_of, 4)} == {moves}
        assert len(seen) == 4
    assert far == 1


def test_a_machine_that_is_kept_is_known_at_once():
    """Also to the communicator that has looked before; where none is kept, it is the usual one."""

    def program(comm):
        before = tuning.known_machine(comm)
        tuning.keep_machine(comm, FAR)
        return before, tuning.known_machine(comm)

    assert rote.run(program, 2) == [(Machine(), FAR)] * 2
    assert rote.run(tuning.known_machine, 3) == [Machine()] * 3


def test_wrong_requests():
    """Threads are counted from one."""
    with pytest.raises(rote.LayoutError, match="one thread or more, not 0"):
        FFT((4, 4), threads=0)


def test_one_rank_reads_the_machine_here_for_all(monkeypatch):
    """Ranks whose file systems differ get rank 0's machine, or its error."""
    reads, load = [], Machine.load

    def noted(name):
        reads.append(name)
        return load(name)

    monkeypatch.setattr(Machine, "load", noted)

    def make(comm):
        try:
            return FFT((8, 8), comm=comm, machine="here").walk.machine
        except rote.PlanError as error:
            return str(error).splitlines()[0]

    assert rote.run(make, ranks=3) == ['nothing is measured for the machine "here"'] * 3
    rote.run(lambda comm: tuning.keep_machine(comm, Machine(latency=7.0)), 2)
    assert rote.run(make, ranks=3) == [Machine(latency=7.0)] * 3
    assert reads == ["here"] * 2
    assert rote.fft.compare((8, 8), 4, machine="here")[0].prediction.machine.name == "here, measured on 2 threads"


if __name__ == "__main__":
    for seconds in SECONDS.values():
        seconds.update(SHORT)
    check(world())
    if world().rank == 0:
        print("right")


@pytest.mark.parametrize(
    ("machine", "phrase"),
    [
        (None, "on the default machine"),
        (rote.Machine(latency=5e-6), "on a machine of latency 5.0 us"),
        (rote.Machine(latency=3.456e-5, byte_time=3e-9), "on a machine of latency 35 us"),
    ],
)
def test_times_of_the_model_have_two_digits_and_a_machine(machine, phrase):
    """Law: what prints seconds of the model prints two digits of them, and names the machine once."""
    shape = (40, 36, 44)
    texts = [*rote.run(lambda comm: str(FFT(shape, comm=comm, machine=machine)), 4)]
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(300, 500), grid=4, machine=machine)
    for text in (texts[0], plan.explain()):
        assert text.count(phrase) == 1 and text.count("machine") == 1
        times = re.findall(r"about ([0-9.]+) (?:s|ms|us)\b", text)
        assert len(times) > 1 and all(len(time.replace(".", "").strip("0")) <= 2 for time in times)
    assert phrase in plan.to_html() and phrase in plan._repr_html_()
