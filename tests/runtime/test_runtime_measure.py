"""What is measured, and how it is kept: wisdom that is found again, loses nothing, and trusts no file; the machine."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import warnings
from itertools import count
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import rote
from rote import wisdom
from rote.compiler.cost import duration
from rote.runtime import tuning
from rote.runtime.choose import medians, recalled
from rote.runtime.comm.agreement import from_root
from rote.runtime.comm.threads import LocalComm
from rote.runtime.tuning import BUSY, as_machine, keep_machine, machine_key, measure, recalled_machine

FACTS = {"what": "walk", "shape": [64, 64], "grid": [2]}
DECISIONS = [None, True, 3, -1.5e-7, "block[(0),()] é", [1, [2.0, {}]], {"a": {"b": [None]}, "ü": "\n"}]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own for each test; it does not exist yet."""
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "kept" / "here"))
    return tmp_path / "kept" / "here"


# --- remembering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS)
def test_what_is_remembered_is_recalled(place, decision):
    """recall(key) is what remember(key) was given last, and nothing for another key; a file holds it, and no other."""
    key = wisdom.key(FACTS)
    assert wisdom.recall(key) is None
    assert wisdom.remember(key, "another") and wisdom.remember(key, decision)
    assert wisdom.recall(key) == decision
    assert wisdom.recall(wisdom.key(FACTS | {"grid": [3]})) is wisdom.recall(wisdom.key(FACTS, "MPI 5")) is None
    assert [path.name for path in place.iterdir()] == [f"{key.name}.json"]
    (entry,) = wisdom.records()
    assert (entry.key, entry.decision) == (key, decision)
    assert hash(entry) == hash(wisdom.Record(key, entry.text))


def test_a_key_has_one_spelling():
    """Neither the order of facts nor tuples make another key; every value does, and its type."""
    key = wisdom.key({"a": (1, 2), "b": "x"})
    assert key == wisdom.key({"b": "x", "a": [1, 2]})
    assert key.facts == {"a": [1, 2], "b": "x"}
    others = [{"a": (1, 2)}, {"a": (2, 1), "b": "x"}, {"a": (1.0, 2), "b": "x"}, {"a": (1, 2), "b": "y"}]
    assert len({key.name, *(wisdom.key(facts).name for facts in others)}) == 5


def test_a_key_has_machine_and_versions(monkeypatch):
    """Another processor, other cores and other versions are other keys; the line of an entry says them."""
    key = wisdom.key(FACTS, "MPI 5")
    for part in (
        f"rote {rote.__version__}",
        "numpy ",
        "pyfftw ",
        "mpi MPI 5",
        f"{os.cpu_count()} cores",
        "what=walk grid=[2]",
    ):
        assert part in str(key)
    monkeypatch.setattr(wisdom, "installed", lambda package: "0.0")
    newer = wisdom.key(FACTS, "MPI 5")
    monkeypatch.setattr(wisdom, "processor", lambda: "abacus")
    assert len({key.name, newer.name, wisdom.key(FACTS, "MPI 5").name}) == 3


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), float("inf"), 1j])
def test_only_json_is_remembered(place, value):
    """What would not come back is refused, as a fact and as a decision."""
    with pytest.raises((TypeError, ValueError)):
        wisdom.key({"a": value})
    with pytest.raises((TypeError, ValueError)):
        wisdom.remember(wisdom.key(FACTS), value)
    assert not place.exists()


WRITER = """
import sys
from rote import wisdom

print("ready", flush=True)
sys.stdin.readline()
for number in range(50):
    assert wisdom.remember(wisdom.key({"who": sys.argv[1], "number": number}), [sys.argv[1], number])
    assert wisdom.remember(wisdom.key({"who": "both"}), [sys.argv[1], number])
    assert wisdom.recall(wisdom.key({"who": "both"})) is not None
"""


def test_processes_lose_nothing_of_each_other(place):
    """Two that keep 50 decisions each at the same time leave 100, and one of theirs for the key that both write."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for who in "ab"
    ]
    for program in programs:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
    for program in programs:
        program.communicate("go\n", timeout=60)
    assert [program.returncode for program in programs] == [0, 0]
    for who in "ab":
        for number in range(50):
            assert wisdom.recall(wisdom.key({"who": who, "number": number})) == [who, number]
    assert wisdom.recall(wisdom.key({"who": "both"})) in (["a", 49], ["b", 49])
    assert len([*place.iterdir()]) == len(wisdom.records()) == 101


# --- files that are not ours ------------------------------------------------------------------------------------------


def good() -> dict[str, object]:
    """What the file of a decision holds."""
    key = wisdom.key(FACTS)
    return {"rote wisdom": 1, **json.loads(key.text), "decision": 5}


DAMAGED = {
    "empty": b"",
    "text": b"no json",
    "latin": b'"\xff"',
    "cut": json.dumps(good()).encode()[:-1],
    "list": b"[]",
    "nothing": b"{}",
    "deep": b"[" * 100_000,
    "digits": b"9" * 10_000,
    "nan": json.dumps(good() | {"decision": float("nan")}).encode(),
    "huge": json.dumps(good()).replace(": 5", ": 1e999").encode(),
    "edition": json.dumps(good() | {"rote wisdom": 2}).encode(),
    "no mark": json.dumps({name: part for name, part in good().items() if name != "rote wisdom"}).encode(),
    "less": json.dumps({name: part for name, part in good().items() if name != "decision"}).encode(),
    "more": json.dumps(good() | {"more": 1}).encode(),
    "types": json.dumps(good() | {"facts": [1]}).encode(),
    "machine": json.dumps(good() | {"machine": {}}).encode(),
    "surrogate": json.dumps(good() | {"facts": {"a": "\ud800"}}).encode(),
    "another's": json.dumps(good() | {"facts": {"a": 1}}).encode(),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_ignored(place, content):
    """A file that holds no decision, or that of another key, is nothing, with one warning however often it is met."""
    key = wisdom.key(FACTS)
    place.mkdir(parents=True)
    path = place / f"{key.name}.json"
    path.write_bytes(content)
    with pytest.warns(wisdom.WisdomWarning) as warned:
        assert wisdom.recall(key) is wisdom.recall(key) is None
        assert wisdom.records() == ()
        assert wisdom.forget("x") == ()
    assert len(warned) == 1 and str(path) in str(warned[0].message)
    assert wisdom.remember(key, 7) and wisdom.recall(key) == 7


def test_a_good_file_is_read(place):
    """What the test above breaks is whole."""
    place.mkdir(parents=True)
    (place / f"{wisdom.key(FACTS).name}.json").write_text(json.dumps(good()))
    assert wisdom.recall(wisdom.key(FACTS)) == 5


def test_a_decision_that_the_caller_does_not_understand_is_ignored():
    """What `read` refuses is as if it were not there, with one warning; what it makes is what is recalled."""
    key = wisdom.key(FACTS)
    wisdom.remember(key, {"grid": [2, 2]})
    assert wisdom.recall(key, lambda found: tuple(found["grid"])) == (2, 2)

    def refuse(found):
        raise rote.LayoutError("no such grid")

    with pytest.warns(wisdom.WisdomWarning, match="no such grid") as warned:
        assert wisdom.recall(key, refuse) is None
        assert wisdom.recall(key, lambda found: found["grod"]) is wisdom.recall(key, int) is None
    assert len(warned) == 1


def test_other_things_in_the_folder_are_left_alone(place):
    """Files of other names, and a folder or a pipe under the name of a decision, are neither read nor waited for."""
    (place / f"{wisdom.key(FACTS).name}.json").mkdir(parents=True)
    (place / "notes.json").write_text("mine")
    os.mkfifo(place / "abc.json")
    assert wisdom.recall(wisdom.key(FACTS)) is None
    assert not wisdom.remember(wisdom.key(FACTS), 1)
    assert wisdom.records() == ()
    assert {path.name for path in place.iterdir()} == {f"{wisdom.key(FACTS).name}.json", "notes.json", "abc.json"}


def test_in_process_ranks_warn_once(place):
    """All ranks meet the damaged file at once; the user reads of it once."""
    place.mkdir(parents=True)
    (place / f"{wisdom.key(FACTS).name}.json").write_text("torn")
    with pytest.warns(wisdom.WisdomWarning) as warned:
        assert rote.run(lambda comm: wisdom.recall(wisdom.key(FACTS)), 4) == [None] * 4
    assert len(warned) == 1


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_read_only_folder_keeps_nothing(tmp_path, monkeypatch):
    """Without an error or a warning."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for folder in ("/proc/self", "/proc/self/new", *([closed, closed / "new"] if os.geteuid() else [])):
        monkeypatch.setenv("ROTE_WISDOM", str(folder))
        assert not wisdom.remember(wisdom.key(FACTS), 1)
        assert wisdom.recall(wisdom.key(FACTS)) is None
        assert (wisdom.records(), wisdom.forget(all=True)) == ((), ())


def test_a_full_disk_keeps_nothing(place, monkeypatch):
    """What could not be written to its end is not left behind, and what was there stays."""
    key = wisdom.key(FACTS)
    wisdom.remember(key, 1)

    def full(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not wisdom.remember(key, 2)
    assert (wisdom.recall(key), len([*place.iterdir()])) == (1, 1)


def test_an_empty_variable_keeps_nothing(tmp_path, monkeypatch):
    """And nothing is known."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    monkeypatch.chdir(tmp_path)
    assert wisdom.folder() is None
    assert not wisdom.remember(wisdom.key(FACTS), 1)
    assert wisdom.recall(wisdom.key(FACTS)) is None
    assert (wisdom.records(), wisdom.forget(all=True)) == ((), ())
    assert (wisdom.export("none.json"), wisdom.include("none.json")) == (0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["none.json"]


def test_a_file_in_place_of_the_folder(tmp_path, monkeypatch):
    """One warning says that it is a folder that the variable names."""
    (tmp_path / "wisdom.json").write_text("{}")
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "wisdom.json"))
    with pytest.warns(wisdom.WisdomWarning, match="kept in a folder") as warned:
        assert wisdom.recall(wisdom.key(FACTS)) is wisdom.recall(wisdom.key({})) is None
        assert not wisdom.remember(wisdom.key(FACTS), 1)
    assert len(warned) == 1


def test_the_usual_folder(monkeypatch):
    """The user's cache folder; without a home there is none."""
    monkeypatch.delenv("ROTE_WISDOM")
    assert wisdom.folder() == platformdirs.user_cache_path("rote", appauthor=False) / "wisdom"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *names, **more: Path("~/.cache/rote"))
    assert wisdom.folder() is None


# --- moving it --------------------------------------------------------------------------------------------------------


def test_export_then_include(tmp_path):
    """Another folder that includes what this one exports knows the same, and keeps what it knew besides."""
    for number, decision in enumerate(DECISIONS):
        wisdom.remember(wisdom.key({"number": number}), decision)
    known, path = wisdom.records(), tmp_path / "all.json"
    assert wisdom.export(path) == len(DECISIONS) == len(known)
    with pytest.MonkeyPatch.context() as other:
        other.setenv("ROTE_WISDOM", str(tmp_path / "other"))
        assert wisdom.include(path) == len(DECISIONS)
        assert wisdom.records() == known
        wisdom.remember(wisdom.key({"number": 0}), "mine")
        wisdom.remember(wisdom.key({"number": -1}), "mine")
        assert wisdom.include(path) == len(DECISIONS)
        assert len(wisdom.records()) == len(DECISIONS) + 1
        assert wisdom.recall(wisdom.key({"number": 0})) == DECISIONS[0]


@pytest.mark.parametrize("content", [*DAMAGED.values(), json.dumps({"rote wisdom": 1, "entries": [1]}).encode()])
def test_including_another_file_includes_nothing(tmp_path, place, content):
    """An error that names the file, and nothing kept; a good entry beside a damaged one makes no difference."""
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(rote.RoteError, match=r"some\.json holds no wisdom: .*\ngive what rote wisdom export wrote"):
        wisdom.include(path)
    assert not place.exists()


def test_files_that_users_name_raise(tmp_path):
    """What cannot be read or written under a name that the user gave is an error."""
    with pytest.raises(FileNotFoundError):
        wisdom.include(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        wisdom.export(tmp_path / "none" / "all.json")


def test_forget(place):
    """What has a text in its line, or all, with what writers left behind when they were killed; it is told what."""
    for grid in (2, 3, 4):
        wisdom.remember(wisdom.key({"grid": grid}), grid)
    known = wisdom.records()
    assert wisdom.forget("grid=3") == (known[1],)
    assert wisdom.records() == (known[0], known[2])
    left, damaged = place / ".rote-left.tmp", place / f"{'0' * 32}.json"
    left.write_text("")
    damaged.write_text("torn")
    theirs = {"notes.json", "data.json", "abc.json", ".vim.tmp", "deadbeef.json", f"{'0' * 32}.json.bak"}
    for name in theirs:
        (place / name).write_text("mine")
    with pytest.warns(wisdom.WisdomWarning):
        assert set(wisdom.forget(all=True)) == {known[0], known[2], left, damaged}
    assert {path.name for path in place.iterdir()} == theirs


@pytest.mark.parametrize(("args", "all"), [((), False), (("",), False), (("grid",), True)])
def test_forget_says_what(args, all):
    """Nothing is forgotten by a call that does not say what, or says two things."""
    wisdom.remember(wisdom.key({"grid": 2}), 2)
    with pytest.raises(rote.RoteError, match="say what to forget"):
        wisdom.forget(*args, all=all)
    assert len(wisdom.records()) == 1


# --- the machine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_measured_machine(ranks):
    """Every time is positive and finite, the machine the same on all ranks, and the time that was given is kept."""
    parts: list[float] = []

    def program(comm):
        return measure(comm, 0.3, parts.append if comm.rank == 0 else None)

    start = time.process_time()
    (first, spread), *others = rote.run(program, ranks)
    assert time.process_time() - start < 10
    assert others == [(first, spread)] * (ranks - 1) and spread >= 1
    assert all(math.isfinite(each) and each > 0 for each in first.as_dict().values())
    assert parts[0] > 0 and parts == sorted(parts) and parts[-1] <= 1
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=ranks, machine=first)
    assert ranks == 1 or plan.cost.seconds > 0


@pytest.mark.parametrize("every", [2, 5])
def test_the_spread_tells_a_busy_machine(monkeypatch, every):
    """Where some exchanges wait for a core, as if other work had it, the spread passes the limit: every second one, so
    that most rounds of a call differ little from each other, or every fifth."""
    number, usual = count(1), LocalComm.share_reference

    def delayed(comm, *args):
        if comm.rank == 0 and next(number) % every == 0:
            time.sleep(0.005)
        return usual(comm, *args)

    monkeypatch.setattr(LocalComm, "share_reference", delayed)
    (_, spread), _ = rote.run(lambda comm: measure(comm, 0.5), 2)
    assert spread > 2 * BUSY


def test_the_model_takes_as_long_as_what_was_measured(monkeypatch):
    """Law: on the machine that is found, the plans that were timed take their measured times."""
    moving, sizes = {}, tuning._SIZES
    times = iter([5e-6, 1e-4, 1e-3, 1e-2, 4e-2, *[1e-3] * 3, *[1e-4] * 2, *(1e-11 * n for n in sizes[:-1])])
    last = iter([1e-10 * sizes[-1], 3e-10 * sizes[-1], 1e-3])  # of the largest copy, the one by rows, and the product

    def timed(comm, calls, seconds, progress):
        found = [[next(times, None) or next(last)] for _ in calls] if comm.rank == 0 else []
        moving.update({time: call for (time,), call in zip(found, calls, strict=False) if hasattr(call, "plan")})
        return from_root(comm, lambda: found)

    monkeypatch.setattr(tuning, "rounds", timed)
    machine, _ = rote.run(measure, 2)[0]
    assert (machine.step_time, machine.cache) == pytest.approx((5e-6, 2 * sizes[-2]), rel=1e-3)
    assert machine.copy_time == pytest.approx(3e-10, rel=1e-3)
    assert [*moving] == [5e-6, 1e-4, 1e-3, 1e-2, 4e-2]
    for seconds, move in [*moving.items()][1:]:
        (task,) = move.plan.tasks().every
        assert duration(task.step, task.item, machine).seconds == pytest.approx(seconds, rel=1e-2)


def test_products_are_measured_by_their_operations(monkeypatch):
    """The time of an operation is that of a product over its multiplications and additions; no other time grows."""
    usual = np.matmul

    def delayed(*args, **keywords):
        time.sleep(0.02)
        return usual(*args, **keywords)

    monkeypatch.setattr(np, "matmul", delayed)
    machine, spread = rote.run(lambda comm: measure(comm, 0.0), 1)[0]
    assert 0.02 <= machine.flop_time * 2 * 512**3 < 10 and machine.step_time < 0.1 and spread >= 1


def test_medians_are_of_the_slowest_rank():
    """Each call's own, in the order of the calls, the same on all ranks."""

    def program(comm):
        return medians(comm, [lambda: None, lambda: time.sleep(0.02 * comm.rank), lambda: time.sleep(0.001)], 0.2)

    found = rote.run(program, 3)
    assert found == [found[0]] * 3
    nothing, slow, quick = found[0]
    assert nothing < slow >= 0.04 and quick >= 0.001


def test_one_round_is_always_made():
    """Without time there is still an answer, and the calls were made alike on all ranks."""
    made = [0, 0]

    def program(comm):
        def call():
            made[comm.rank] += 1

        return medians(comm, [call], 0.0)

    assert min(min(found) for found in rote.run(program, 2)) > 0
    assert made[0] == made[1] > 0


def test_a_machine_is_kept():
    """What was kept is recalled, on all ranks, by as many ranks again and by no other number."""
    machine = rote.Machine(latency=3e-6, byte_time=(1e-10, 2e-10))
    assert rote.run(lambda comm: keep_machine(comm, machine), 2) == [True, True]
    assert rote.run(recalled_machine, 2) == [machine, machine]
    assert rote.run(recalled_machine, 3) == [None] * 3


@pytest.mark.parametrize(
    "decision",
    [
        *(5, [], {}, {"latency": 1e-6}, {**rote.Machine().as_dict(), "x": 1}),
        *(rote.Machine().as_dict() | {"latency": wrong} for wrong in ("low", [], {}, None)),
    ],
)
def test_a_machine_that_is_none_is_ignored(decision):
    """On all ranks, with one warning."""

    def program(comm):
        key = machine_key(comm)
        if comm.rank == 0:
            wisdom.remember(key, decision)
        return recalled_machine(comm)

    with pytest.warns(wisdom.WisdomWarning) as warned:
        assert rote.run(program, 2) == [None, None]
    assert len(warned) == 1
    with pytest.raises((ValueError, rote.PlanError)):
        as_machine(decision)


def test_all_ranks_recall_what_rank_0_does():
    """Even where their folders differ, or a warning is an error."""
    key = wisdom.key(FACTS)
    wisdom.remember(key, [1, 2])
    assert rote.run(lambda comm: recalled(comm, key, tuple), 3) == [(1, 2)] * 3
    with warnings.catch_warnings(), pytest.raises(wisdom.WisdomWarning):
        warnings.simplefilter("error")
        rote.run(lambda comm: recalled(comm, key, int), 3)


MPI = """
import sys
from rote import wisdom

from rote.runtime import world
from rote.runtime.choose import mpi_library
from rote.runtime.tuning import keep_machine, machine_key, measure, recalled_machine
comm = world()
machine, spread = measure(comm, 0.2)
assert comm.allgather_object((machine, spread)) == [(machine, spread)] * comm.size
assert min(machine.as_dict().values()) > 0
assert keep_machine(comm, machine) and recalled_machine(comm) == machine
assert mpi_library(comm).startswith(("MPICH", "Open MPI", "Intel")), mpi_library(comm)
assert mpi_library(comm) in str(machine_key(comm))
if comm.rank == 0:
    print(len(wisdom.records()))
"""


@pytest.mark.mpi
def test_a_machine_under_mpi(mpirun, place):
    """The same laws on MPI's ranks; the library is in the key."""
    done = mpirun(2, MPI, env={"ROTE_WISDOM": str(place)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert rote.run(recalled_machine, 2) == [None, None]


def test_the_end_of_a_search_is_no_latency():
    """Where what is known takes all of the time of the move, the usual latency stays; bytes may take none."""

    def program(comm):
        move = tuning._Move(comm, "block[(0),()] -> block[(),(0)]", 64)
        known = tuning._NOTHING | {"step_time": 1.0}
        return [
            tuning._solved(known, name, move, seconds) for name in ("latency", "byte_time") for seconds in (0.5, 3.0)
        ]

    none, some, no_byte, byte = rote.run(program, 2)[0]
    assert none == rote.Machine().latency and some == pytest.approx(2.0)
    assert no_byte < 1e-12 < byte
