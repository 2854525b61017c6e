"""`rote tune` and `rote wisdom`: what is measured, printed and kept, and what may be done with it."""

from __future__ import annotations

import json
import random
import sys
import time
from itertools import product
from math import prod
from pathlib import Path

import pytest
from cli.test_cli_commands import answer
from runner import run

import rote
from rote import wisdom
from rote.cli.output import progress
from rote.cli.tune import moves, spearman
from rote.fft import FFT
from rote.machines.machine import DEFAULT, Machine
from rote.runtime import tuning

TIMES = ["latency", "byte_time", "copy_time", "reduce_time", "step_time", "flop_time", "fft_time"]
FACTORS = ["cache", "cache_factor", "page_factor", "rough_factor"]


def test_a_machine_is_measured_and_kept(place):
    """The times beside the default's, and the folder; what is kept is what was measured."""
    start = time.process_time()
    done = run("tune", "--ranks", 2, "--seconds", 0.2, "--force")
    assert time.process_time() - start < 10
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0], lines[-1]) == (0, "2 ranks in this process", f"kept in {place}")
    assert lines[1].split() == ["measured", "default"]
    assert [line.split()[0] for line in lines[2:-1]] == [*TIMES, *FACTORS]
    assert "2.00 us  of a message" in lines[2]
    (entry,) = wisdom.records()
    assert entry.key.facts == {"what": "machine", "ranks": 2, "hosts": 1}
    assert {*TIMES, "cache"} <= entry.decision.keys() <= {*TIMES, *FACTORS}
    told = answer("tune", "tune", "--ranks", 2, "--seconds", 0.1, "--force")
    assert (told["ranks"], told["mpi"], told["kept"], told["check"]) == (2, None, True, None)
    assert Machine(**told["measured"]) and Machine(**told["default"]) == Machine()
    assert len(wisdom.records()) == 1


def test_a_busy_machine_is_not_kept(place, monkeypatch):
    """Times whose spread says that other work ran are printed, not kept, and do not replace what was kept before;
    --force keeps them."""
    assert run("tune", "--ranks", 2, "--seconds", 0.1, "--force").output.endswith(f"\nkept in {place}\n")
    known = wisdom.records()
    usual = tuning.measure
    monkeypatch.setattr(tuning, "measure", lambda *args: (usual(*args)[0], 57.3))
    for check in ([], ["--check"]):
        done = run("tune", "--ranks", 2, "--seconds", 0.1, *check)
        said = "not kept: the machine is busy, since some calls took 57 times as long as the fastest of their kind\n"
        assert done.exit_code == 0 and said in done.output and "--force keeps" in done.output
        assert wisdom.records() == known
    told = json.loads(run("tune", "--ranks", 2, "--seconds", 0.1, "--json").output)
    assert (told["kept"], told["spread"]) == (False, 57.3) and wisdom.records() == known
    assert run("tune", "--ranks", 2, "--seconds", 0.1, "--force").output.endswith(f"\nkept in {place}\n")
    assert wisdom.records() != known


def test_the_check(place):
    """60 moves, and for both machines how their predictions rank; in little time."""
    start = time.process_time()
    done = run("tune", "--ranks", 2, "--seconds", 0.2, "--check")
    assert time.process_time() - start < 10
    assert done.exit_code == 0
    head, columns, *rows = done.output.splitlines()[-4:]
    assert head == "60 moves of 12288 to 1984000 elements"
    assert columns.split() == [*["Spearman's", "rho", "median", "error", "within", "2", "measured", "/", "predicted"]]
    assert [row.split()[0] for row in rows] == ["default", "measured"]
    assert all(-1 <= float(row.split()[1]) <= 1 for row in rows)


def test_a_machine_is_not_replaced_by_one_whose_check_is_worse(place, monkeypatch):
    """With --check the moves are priced on the machine that is kept as well, and --force does not replace it."""
    args = ("tune", "--ranks", 2, "--seconds", 0.1, "--force")
    assert run(*args).output.endswith(f"\nkept in {place}\n")
    known = wisdom.records()
    usual = tuning.measure
    monkeypatch.setattr(tuning, "measure", lambda *args: (Machine(latency=1.0), usual(*args)[1]))
    done = run(*args, "--check")
    assert "not kept: the machine that is kept predicts these moves better\n" in done.output
    assert [line.split()[0] for line in done.output.splitlines()[-3:]] == ["default", "kept", "measured"]
    assert wisdom.records() == known

    monkeypatch.setattr(tuning, "measure", usual)
    assert run(*args).output.endswith(f"\nkept in {place}\n")  # without a check nothing says which one is worse


def test_a_transform_is_timed_and_kept(place, tmp_path):
    """The plan with its times, as FFT prints it then; listed with its lines, and as good once exported and imported."""
    done = run("tune", "--ranks", 2, "--shape", "4x8x4", "--layout", "[(0),(),()]")
    assert (done.exit_code, done.stderr) == (0, "")
    first, *plan, last = done.output.splitlines()
    assert (first, last) == ("2 ranks in this process", f"kept in {place}")

    def program(comm):
        return str(FFT((4, 8, 4), "[(0),(),()]", comm=comm, tune="measure"))

    def again():
        return rote.run(program, 2)[0].splitlines()

    assert again() == plan and any(line.startswith("  there and back") for line in plan)
    known = wisdom.records()
    (entry,) = (each for each in known if each.key.facts["what"] == "walk")
    walk = [f"    {line.strip()}" for line in plan if ": " in line and "[" in line and "fft" in line]
    listed = run("wisdom", "show").output.splitlines()
    assert listed[-len(walk) - 1 :] == [f"{entry.key}:", *walk]
    assert max(map(len, listed)) < 700
    path = tmp_path / "all.json"
    wisdom.export(path)
    assert len(wisdom.forget("what=walk")) == 1
    wisdom.include(path)
    assert wisdom.records() == known and again() == plan
    assert run("tune", "--ranks", 1, "--shape", 8).output.splitlines()[-1] == "not timed, for there is no other walk"
    timed = answer("tune --shape", "tune", "--ranks", 2, "--shape", "4x4")
    assert timed["kept"] and all(type(tried["seconds"]) is float for tried in timed["tried"])


def test_a_file_keeps_nothing(monkeypatch, tmp_path):
    """Law: where the environment names a file in place of a folder, the answer says that nothing is kept."""
    file = tmp_path / "wisdom.json"
    file.write_text("")
    monkeypatch.setenv("ROTE_WISDOM", str(file))
    with pytest.warns(wisdom.WisdomWarning):
        assert f"not kept: {file} cannot be written to" in run("tune", "--shape", "8x8", "--ranks", 2).output
    assert file.read_text() == ""


def test_where_nothing_is_kept(monkeypatch):
    """It says so, and measures all the same."""
    monkeypatch.setenv("ROTE_WISDOM", "")
    assert run("wisdom", "show").output == "0 decisions nowhere: ROTE_WISDOM is empty\n"
    line = "tune", "--ranks", 1, "--seconds", 0.1, "--force"
    assert run(*line).output.endswith("\nkept nowhere: ROTE_WISDOM is empty\n")
    monkeypatch.setenv("ROTE_WISDOM", "/proc/self/none")
    done = run(*line)
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "not kept: /proc/self/none cannot be written to")


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_moves_are_fixed(ranks):
    """60 different moves between 1e4 and 2e6 elements, the same whenever they are asked for, of many kinds of steps."""
    found = moves(ranks)
    assert found == moves(ranks) and len(set(found)) == 60
    assert all(plan.steps and plan.source.grid.size == ranks for plan in found)
    assert all(1e4 <= prod(plan.source.shape) <= 2e6 for plan in found)
    assert {"alltoall", "allgather", "reduce_scatter", "gather"} <= {step.kind for plan in found for step in plan.steps}
    with pytest.raises(ValueError, match="two ranks or more"):
        moves(1)


def test_spearman_is_the_correlation_of_ranks():
    """SciPy's, where times are equal as well; unmoved by what keeps the order, turned by what turns it."""
    from scipy.stats import spearmanr  # takes a second to import

    draw = random.Random(2)
    for size, pick in product((2, 3, 10, 60), (draw.random, lambda: draw.randrange(4))):
        one, other = ([*(pick() for _ in range(size - 2)), 0.3, 0.7] for _ in range(2))
        rho = spearman(one, other)
        assert rho == pytest.approx(spearmanr(one, other).statistic)
        assert spearman([value**3 for value in one], other) == spearman(other, one) == pytest.approx(rho)
        assert spearman([-value for value in one], other) == pytest.approx(-rho)
        assert spearman(one, one) == pytest.approx(1)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0


def test_progress_is_for_those_who_watch(monkeypatch):
    """A bar on a terminal, of rank 0 alone; nothing elsewhere."""

    def watched(comm):
        with progress(comm, "test") as part:
            for done in (0.0, 0.5, 1.0):
                if part is not None:
                    part(done)
            return part is not None

    assert rote.run(watched, 2) == [False, False]
    monkeypatch.setattr("rote.cli.output.animated", lambda: True)
    assert rote.run(watched, 2) == [True, False]


@pytest.mark.mpi
@pytest.mark.parametrize("job", (2,), indirect=True)
def test_tune_under_mpi(job, place):
    """Rank 0 alone speaks and keeps; decisions are forgotten once."""
    rote, env = Path(sys.executable).with_name("rote"), {"ROTE_WISDOM": str(place)}
    done = job.run(rote, "tune", "--seconds", 0.2, "--force", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 ranks through ") and done.stdout.count("latency") == 1
    assert done.stdout.endswith(f"kept in {place}\n")
    (entry,) = wisdom.records()
    assert json.loads(entry.key.text)["versions"]["mpi"]
    done = job.run(rote, "wisdom", "forget", "--all", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"forgot 1 decision in {place}\n{entry}\n", "")


def test_the_machine_here_is_named_on_the_command_line():
    """Law: the machine that was measured is taken by its name; it is no machine of nodes on which a job might run."""
    line = ["explain", "[(0)] -> [()]", "--shape", "8", "--grid", "4", "--machine", "here"]
    refused = run(*line)
    assert refused.exit_code == 1 and "run `rote tune`" in refused.output
    rote.run(lambda comm: tuning.keep_machine(comm, Machine(latency=1.0)), 2)
    assert "on the machine here, measured on 2 threads" in run(*line).output
    told = json.loads(run("predict", "8x8", "--ranks", "4", "--machine", "here", "--json").output)
    assert told["machine"] == "here, measured on 2 threads"
    assert Machine.load("here") != DEFAULT
    refused = run("predict", "8x8", "--nodes", "2", "--machine", "here")
    assert refused.exit_code == 1 and "a job runs on the nodes of a machine" in refused.output


# --- rote wisdom ------------------------------------------------------------------------------------------------------


@pytest.fixture
def three() -> tuple[wisdom.Record, ...]:
    """Three decisions, as they are listed."""
    for number in range(3):
        wisdom.remember(wisdom.key({"what": "test", "number": number}), number)
    return wisdom.records()


def test_what_is_listed_may_be_anything(place):
    """A decision on a walk that is none is listed as it is, and a long text is cut short."""
    for number, decision in enumerate((1, {}, {"walk": "[()]"})):
        wisdom.remember(wisdom.key({"what": "walk", "number": number}), decision)
    assert run("wisdom", "show").output == "\n".join([f"3 decisions in {place}", *map(str, wisdom.records()), ""])
    wisdom.remember(wisdom.key({"what": "plan"}), {"fftw": "x" * 500})
    assert f'{"x" * 40}..."' in run("wisdom", "show").output and "x" * 41 not in run("wisdom", "show").output


def test_a_damaged_file_is_one_warning(place):
    """On the standard error; the command does what is left to do."""
    wisdom.remember(wisdom.key({}), 1)
    next(place.iterdir()).write_text("torn")
    done = run("wisdom", "show")
    assert (done.exit_code, done.stdout) == (0, f"0 decisions in {place}\n")
    assert done.stderr.startswith("Warning: ") and done.stderr.count("\n") == 1

    Path("other.json").write_text("[]")
    done = run("wisdom", "import", "other.json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: other.json holds no wisdom: ")


OLD = {
    ("--show",): ("show",),
    ("--show", "--json"): ("show", "--json"),
    ("--json", "--show"): ("show", "--json"),
    ("--forget", "number=1"): ("forget", "number=1"),
    ("--forget=number=1",): ("forget", "number=1"),
    ("--forget", "--all"): ("forget", "--all"),
    ("--all", "--forget"): ("forget", "--all"),
    ("--export", "all.json"): ("export", "all.json"),
    ("--force", "--export=there.json"): ("export", "there.json", "--force"),
    ("--import", "there.json"): ("import", "there.json"),
}


@pytest.mark.parametrize(("old", "new"), OLD.items(), ids=" ".join)
def test_old_options_of_tune_go_with_a_warning(old, new, three):
    """Each prints and does what the new command does, and says on the standard error what to write instead."""
    wisdom.export("there.json")
    answers = []
    for command, args in (("tune", old), ("wisdom", new)):
        wisdom.include("there.json")
        Path("all.json").unlink(missing_ok=True)
        done = run(command, *args)
        answers.append((done.exit_code, done.stdout, wisdom.records(), sorted(Path.cwd().iterdir())))
        name = new[0]
        told = f"Warning: rote tune --{name} goes with the next release; write rote wisdom {name}\n"
        assert done.stderr == (told if command == "tune" else "")
    assert answers[0] == answers[1] and answers[0][0] == 0
