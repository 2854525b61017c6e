"""The files of a contributor's habits agree: the parts of CI, the verbs of make, the hooks, and the version."""

from __future__ import annotations

import re
import subprocess
from datetime import date

import pytest
import yaml
from house import ROOT, files

import rote

VERBS = ["test", "lint", "types", "docs", "bench"]


def parts() -> list[str]:
    """The parts that `.ci/run` takes."""
    line = re.search(r'^parts="(.*)"$', (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert line
    return line[1].split()


def unknown(command: str, matrix: dict[str, list[str]], known: list[str]) -> list[str]:
    """The parts of a `.ci/run` command of the hosted CI, in any cell of its matrix, that are none."""
    program, *words = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda key: " ".join(matrix[key[1]]), command).split()
    return [] if program == ".ci/run" and words and set(words) <= set(known) else words or [command]


def test_every_part_is_a_function() -> None:
    """What `.ci/run` takes, and `all`, are the functions of .ci/parts.sh, and it says so in its head."""
    functions = re.findall(r"^part_(\w+)\(\)", (ROOT / ".ci" / "parts.sh").read_text("utf-8"), re.MULTILINE)
    assert sorted(name.replace("_", "-") for name in functions) == sorted([*parts(), "all"])
    assert f"in that order: {' '.join(parts())}\n" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_ci_refuses_what_is_no_part() -> None:
    """It says which parts there are, before anything is cloned; and its files are valid for bash."""
    done = subprocess.run([ROOT / ".ci" / "run", "stile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"no part is called stile; there are: {' '.join(parts())}\n"
    for name in ("run", "parts.sh", "types"):
        subprocess.run(["bash", "-n", ROOT / ".ci" / name], check=True)


def test_the_hosted_ci_runs_parts_on_every_python() -> None:
    """Each job runs parts that exist, with a limit of time; the matrix has every Python, both systems and both MPIs."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    for job in jobs.values():
        assert job["timeout-minutes"] <= 60
        runs = [step["run"] for step in job["steps"] if "run" in step]
        assert runs
        for run in runs:
            assert unknown(run, job.get("strategy", {}).get("matrix", {}), parts()) == []
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert matrix["system"] == ["ubuntu-latest", "macos-latest"] and matrix["part"] == ["tests", "second-mpi"]


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (".ci/run style", []),
        (".ci/run ${{ matrix.part }}", ["tests", "stile"]),
        ("make lint", ["lint"]),
        (".ci/run", [".ci/run"]),
    ],
)
def test_an_unknown_part_is_seen(command: str, wrong: list[str]) -> None:
    """A misspelt part, in the command or in the matrix, another program, and no part at all."""
    assert unknown(command, {"part": ["tests", "stile"]}, ["style", "tests"]) == wrong


def test_make_and_the_hooks_know_the_verbs() -> None:
    """The Makefile has the five verbs, CONTRIBUTING names each, and hooks fetch nothing and call what is there."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"^(\w+):", makefile, re.MULTILINE) == VERBS
    assert all(f"`make {verb}`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8") for verb in VERBS)
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [each["repo"] for each in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        program, *words = hook["entry"].split()
        assert (program, *words[:1]) in {("make", verb) for verb in VERBS} or (ROOT / words[-1]).exists()
        assert hook["language"] == "system"


def test_the_version_is_in_one_place() -> None:
    """`rote.__version__` is the newest release of the changelog, and no other file says it."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    titles = re.findall(r"^## \[(.*?)\](?: - (.*))?$", changelog, re.MULTILINE)
    assert titles[0] == ("Unreleased", "") and titles[1][0] == rote.__version__
    days = [date.fromisoformat(day) for _, day in titles[1:]]
    assert days == sorted(days, reverse=True)
    saying = [path for path, text in files().items() if f'"{rote.__version__}"' in text]
    assert saying == ["rote/__init__.py"]
    for name in ("pyproject.toml", "CITATION.cff", "README.md"):
        assert f'"{rote.__version__}"' not in (ROOT / name).read_text("utf-8")


def test_the_citation_is_whole() -> None:
    """CITATION.cff has what the format demands, and the papers that README names."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split()).lower()
    for paper in citation["references"]:
        assert paper["title"].lower() in readme and f"({paper['year']})" in readme
        assert all(author["family-names"].lower() in readme for author in paper["authors"])
