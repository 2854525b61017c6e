"""A release: the addresses in one place, README as the package index shows it, and what the sources hold."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from house import ROOT

from rote import __version__

ADDRESSES = runpy.run_path(str(ROOT / ".ci" / "addresses.py"))
WHOLE = runpy.run_path(str(ROOT / "setup.py"))["absolute"]


def copied(folder: Path) -> Path:
    """The files that have addresses, and the script, in a folder."""
    for name in (".ci/addresses.py", *ADDRESSES["FILES"]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a copy."""
    command = [sys.executable, str(folder / ".ci" / "addresses.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_no_release_at_placeholders(tmp_path: Path) -> None:
    """The script refuses addresses of example.org, and passes when each one is changed everywhere."""
    folder = copied(tmp_path)
    names = ("Documentation", "Repository", "Issues", "Authors")
    ADDRESSES["change"]("Issues", "https://example.org/rote/issues", folder)

    undecided = script(folder)
    assert undecided.returncode == 1 and "not decided" in undecided.stderr
    assert all(name in undecided.stderr for name in names)

    assert script(folder, *(f"{name}=https://rote.test/{name}" for name in names)).returncode == 0
    assert script(folder).returncode == 0
    assert ADDRESSES["addresses"](folder) == {name: f"https://rote.test/{name}" for name in names}
    assert all("example.org" not in (folder / name).read_text("utf-8") for name in ADDRESSES["FILES"])


def test_addresses_are_those_of_the_project() -> None:
    """A file of the repository that names the place has one of the four addresses, and the script knows the file."""
    known = ADDRESSES["addresses"](ROOT)
    place = known["Repository"].split("/")[2]
    folders = (".github", "notebooks", "paper", "recipe", "rote", "grammar", "fft")
    paths = [*ROOT.iterdir(), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]

    for path in paths:
        if path.suffix not in (".md", ".cff", ".toml", ".yml", ".yaml", ".bib", ".py", ".html") or not path.is_file():
            continue
        text = path.read_text("utf-8")
        for address in known.values():
            text = text.replace(address, "")
        assert place not in text, f"{path.name} has an address that pyproject.toml has not"
        if text != path.read_text("utf-8"):
            assert path.relative_to(ROOT).as_posix() in ADDRESSES["FILES"], path.name


@pytest.mark.parametrize(
    ("link", "whole"),
    [
        ("[a](notebooks/a.md)", "[a](https://h.test/r/blob/v1/notebooks/a.md)"),
        ("[a](notebooks/a.md#b-c)", "[a](https://h.test/r/blob/v1/notebooks/a.md#b-c)"),
        ("![a, b](pictures/walk.svg)", "![a, b](https://h.test/r/raw/v1/pictures/walk.svg)"),
        ("[a](#b)", "[a](#b)"),
        ("[a](https://else.test/x)", "[a](https://else.test/x)"),
        ("[a](mailto:x@else.test)", "[a](mailto:x@else.test)"),
        ("`f(a)[0](1)` [a](b)", "`f(a)[0](1)` [a](https://h.test/r/blob/v1/b)"),
    ],
)
def test_links_of_readme_are_made_whole(link: str, whole: str) -> None:
    """A relative link or picture gets the repository's address and the tag; all else stays as it is."""
    assert WHOLE(f"see {link}.", "https://h.test/r", "1") == f"see {whole}."


def test_citation_says_this_version() -> None:
    """CITATION has the version, the addresses, and a date that the changelog has for this version."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r"^([\w-]+): \"?(.*?)\"?$", text, re.MULTILINE))
    known = ADDRESSES["addresses"](ROOT)

    assert fields["version"] == __version__
    assert (fields["url"], fields["repository-code"]) == (known["Documentation"], known["Repository"])
    assert f"## [{__version__}] - {fields['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.slow
def test_the_sources_build_and_test_themselves(tmp_path: Path) -> None:
    """The source archive has tests, the book and the documents; a part of the tests runs from it, unpacked.

    The wheel that is built from it shows README with whole addresses only.
    """
    copy = tmp_path / "copy"
    leave = shutil.ignore_patterns(".git", ".*venv", ".*cache", ".hypothesis", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=leave)
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(copy)]
    subprocess.run(build, check=True, capture_output=True, text=True, timeout=300)

    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    sources = tmp_path / f"rote_tensor-{__version__}"
    documents = ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "tests/cases.py", "notebooks/index.md")
    assert [name for name in documents if not (sources / name).is_file()] == []

    tests = ["tests/grammar", "tests/layout/test_layout_kinds.py", "tests/house/test_house_walls.py"]
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-n", "0", *tests]
    done = subprocess.run(pytest_here, cwd=sources, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    unpack = [sys.executable, "-m", "zipfile", "-e", str(next(tmp_path.glob("*.whl"))), str(tmp_path / "wheel")]
    subprocess.run(unpack, check=True, timeout=60)
    (metadata,) = (tmp_path / "wheel").glob("*.dist-info/METADATA")
    links = re.findall(r"\]\(([^)\s]+)\)", metadata.read_text("utf-8").partition("\n# Rote\n")[2])
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert tomllib.loads((sources / "pyproject.toml").read_text("utf-8"))["project"]["name"] == "rote-tensor"


# --- what the hosts of repository, book and packages read -------------------------------------------------------------


def test_actions_are_pinned() -> None:
    """Every action of every workflow is named by the hash of a commit, with its version beside it."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert {path.stem for path in workflows} == {"ci", "nightly", "release"}
    for path in workflows:
        yaml.safe_load(path.read_text("utf-8"))
        used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
        assert used and [use for use in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_a_release_passes_the_script() -> None:
    """The workflow of a release checks the addresses before it builds, and publishes only what was built."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    steps = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert steps.index("python .ci/addresses.py") < steps.index("python -m build")
    assert (jobs["publish"]["needs"], jobs["publish"]["permissions"]) == ("build", {"id-token": "write"})


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_are_forms(path: Path) -> None:
    """A form has a name, a description and a body, whose fields have names of their own."""
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.stem == "config":
        assert [sorted(link) for link in form["contact_links"]] == [["about", "name", "url"]]
    else:
        fields = [field["id"] for field in form["body"]]
        assert {"name", "description", "body"} <= set(form) and len({*fields}) == len(fields)


def recipe() -> dict[str, Any]:
    """The conda recipe, with the version in its places."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text("utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    assert table["context"] == {"version": __version__}
    return table


def test_the_recipe_asks_for_what_the_wheel_asks() -> None:
    """The conda package runs with what the wheel requires, but for MPI, which it only constrains."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {need.partition(";")[0].strip().replace(">=", " >=") for need in project["dependencies"]}
    needs = recipe()["requirements"]
    run = {*needs["run"]} - {f"python {project['requires-python']}"}
    assert run == {need for need in required if not need.startswith(("mpi4py", "ducc0"))}
    assert {*needs["run_constraints"]} == {need for need in required if need.startswith("mpi4py")}


@pytest.mark.slow
def test_the_tests_of_the_recipe_pass(tmp_path: Path) -> None:
    """What conda runs after it has built the package, with this Python's programs first on PATH."""
    imports, commands = recipe()["tests"]
    lines = [f'python -c "import {name}"' for name in imports["python"]["imports"]] + commands["script"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for line in lines:
        subprocess.run(["bash", "-c", line], check=True, cwd=tmp_path, env={**os.environ, "PATH": path}, timeout=120)


def test_the_paper_cites_what_it_lists() -> None:
    """Every citation has an entry and every entry a citation; the parts that the journal asks for are there."""
    paper = (ROOT / "paper" / "paper.md").read_text("utf-8")
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE)
    assert sorted({*re.findall(r"(?<!\w)@([A-Z]\w+\d{4})", paper)}) == sorted(entries)
    assert {"# Summary", "# Statement of need", "# References"} <= {*paper.splitlines()}
