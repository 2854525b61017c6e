"""`rote wisdom`: decisions are listed, forgotten, exported and imported; `rote tune` still does it, with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from runner import run

from rote import wisdom


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
