"""`rote wisdom`: decisions are listed, forgotten, exported and imported; `rote tune` still does it, with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from runner import Runner, refused

from rote import wisdom
from rote.cli import main


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """A folder of its own for each test, which runs in another."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("ROTE_WISDOM", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def three() -> tuple[wisdom.Record, ...]:
    """Three decisions, as they are listed."""
    for number in range(3):
        wisdom.remember(wisdom.key({"what": "test", "number": number}), number)
    return wisdom.records()


def run(*args: object, command: str = "wisdom") -> Result:
    """The command, in this process."""
    return Runner().invoke(main, [command, *map(str, args)], prog_name="rote")


def test_decisions_are_listed_exported_forgotten_and_imported(place, three):
    """Each command prints what it did, and of every decision that it lists or forgets the line."""
    assert run("show").output == "\n".join([f"3 decisions in {place}", *map(str, three), ""])
    assert run("export", "all.json").output == "wrote all.json, with 3 decisions\n"
    assert "--force overwrites it" in run("export", "all.json").output
    assert run("export", "all.json", "--force").exit_code == 0

    assert run("forget", "number=1").output == f"forgot 1 decision in {place}\n{three[1]}\n"
    assert wisdom.records() == (three[0], three[2])
    done = run("forget", "--all")
    assert {*done.output.splitlines()} == {f"forgot 2 decisions in {place}", str(three[0]), str(three[2])}
    assert run("show").output == f"0 decisions in {place}\n"

    assert run("import", "all.json").output == f"kept 3 decisions in {place}\n"
    assert wisdom.records() == three


def test_what_is_listed_may_be_anything(place):
    """A decision on a walk that is none is listed as it is, and a long text is cut short."""
    for number, decision in enumerate((1, {}, {"walk": "[()]"})):
        wisdom.remember(wisdom.key({"what": "walk", "number": number}), decision)
    assert run("show").output == "\n".join([f"3 decisions in {place}", *map(str, wisdom.records()), ""])
    wisdom.remember(wisdom.key({"what": "plan"}), {"fftw": "x" * 500})
    assert f'{"x" * 40}..."' in run("show").output and "x" * 41 not in run("show").output


def test_a_damaged_file_is_one_warning(place):
    """On the standard error; the command does what is left to do."""
    wisdom.remember(wisdom.key({}), 1)
    next(place.iterdir()).write_text("torn")
    done = run("show")
    assert (done.exit_code, done.stdout) == (0, f"0 decisions in {place}\n")
    assert done.stderr.startswith("Warning: ") and done.stderr.count("\n") == 1

    Path("other.json").write_text("[]")
    done = run("import", "other.json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: other.json holds no wisdom: ")


@pytest.mark.parametrize(
    ("args", "status", "part"),
    [
        (("forget",), 2, "write a TEXT"),
        (("forget", ""), 2, "write a TEXT"),
        (("forget", "number", "--all"), 2, "not both"),
        (("show", "number"), 2, "number"),
        (("export",), 2, "Missing argument 'FILE'"),
        (("import", "none.json"), 1, "none.json: No such file or directory"),
        (("export", "none/all.json"), 1, "none: there is no such folder"),
    ],
)
def test_wrong_uses(args, status, part, three):
    """One text, and nothing is written or forgotten."""
    refused(run(*args), status, part)
    assert wisdom.records() == three and not [*Path.cwd().iterdir()]


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
        done = run(*args, command=command)
        answers.append((done.exit_code, done.stdout, wisdom.records(), sorted(Path.cwd().iterdir())))
        name = new[0]
        told = f"Warning: rote tune --{name} goes with the next release; write rote wisdom {name}\n"
        assert done.stderr == (told if command == "tune" else "")
    assert answers[0] == answers[1] and answers[0][0] == 0


@pytest.mark.parametrize(
    "args",
    [
        ("--show", "--check"),
        ("--forget",),
        ("--forget", "--all", "--export", "x.json"),
        ("--import", "x", "--ranks", "2"),
    ],
)
def test_old_options_go_with_nothing_else(args, three):
    """What no command takes is refused, and nothing is measured, written or forgotten."""
    refused(run(*args, command="tune"), 2, "try: rote wisdom")
    assert wisdom.records() == three and not [*Path.cwd().iterdir()]
