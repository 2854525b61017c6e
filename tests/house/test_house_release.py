"""A release: the addresses in one place, README as the package index shows it, and what the sources hold."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
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
    folders = (".github", "notebooks", "recipe", "rote", "grammar", "fft")
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
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(copy)]
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
