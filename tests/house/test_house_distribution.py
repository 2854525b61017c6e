"""The distribution is called rote-tensor: on PyPI `rote` is another project's, a memoization library."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import ROOT, files, module_name
from packaging.requirements import Requirement

ROOMS = {"rote", "grammar", "fft", "tests", "notebooks", ".ci", ".github"}  # all that lies in the root
PAGES = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE"}
SETTINGS = {"pyproject.toml", "Makefile", ".gitignore", ".pre-commit-config.yaml"}
FOLDERS = ("rote", "grammar", "fft", "docs", "notebooks", "tests", ".ci")
KINDS = {".py", ".md", ".ipynb", ".toml", ".lark", ".sh", ".yml", ".yaml", ".txt", ""}
INSTALL = re.compile(
    r"\b(?:pip3?|pipx|uv pip|uv tool|uv|conda|mamba) (?:install|add|run|download)\b(?P<rest>(?:(?!\\n|&&|\|)[^\n])*)"
)
FOREIGN = re.compile(r"(?<![\w./-])rote(?=\[|[=<>~!]=|[\s`'\"\\;,)]|$)")  # the bare name, with or without extras
EXTRAS = re.compile(r"(?<![\w./$-])rote\[\w")


def foreign(text: str) -> list[str]:
    """The lines that would install a distribution of the name `rote`: commands, and requirements with extras."""
    return [
        line.strip()
        for line in text.splitlines()
        if any(FOREIGN.search(found["rest"]) for found in INSTALL.finditer(line)) or EXTRAS.search(line)
    ]


def texts() -> Iterator[Path]:
    """All files that people or programs read commands from."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in KINDS)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in KINDS and "__pycache__" not in path.parts:
                yield path


def project() -> dict[str, object]:
    """The table `project` of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_every_folder_of_code_is_installed() -> None:
    """The packages that are named are the folders that hold modules: one that is forgotten is missed after install."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    assert sorted(named) == sorted({module_name(path) for path in files() if path.endswith("__init__.py")})


def strangers(tracked: list[str]) -> set[str]:
    """Names in the root that git keeps and that belong to no room: what an example left behind, say."""
    return {path.split("/")[0] for path in tracked} - ROOMS - PAGES - SETTINGS


def test_nothing_is_left_in_the_root() -> None:
    """Examples write files where they are run: none of them is kept by git."""
    assert strangers(["README.md", "rote/errors.py", "run.zarr/0/zarr.json"]) == {"run.zarr"}
    if (ROOT / ".git").exists():  # an unpacked archive has none
        git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
        done = subprocess.run([*git, "ls-files"], capture_output=True, text=True, check=True)
        assert strangers(done.stdout.splitlines()) == set()


def test_the_name() -> None:
    """The distribution is rote-tensor; the command is rote, and the extras that ask for others ask for our own."""
    table = project()
    assert table["name"] == "rote-tensor"
    assert table["scripts"] == {"rote": "rote.__main__:start"}
    extras = table["optional-dependencies"]
    assert isinstance(extras, dict)
    asked = [name for wanted in extras.values() for name in wanted if name.startswith("rote")]
    assert asked and all(name.startswith("rote-tensor[") for name in asked)
    named = {extra.strip() for name in asked for extra in name.split("[")[1].rstrip("]").split(",")}
    assert named <= set(extras)


def test_nobody_is_told_to_install_another_project() -> None:
    """No file of the repository has a command or a requirement that would fetch PyPI's `rote`."""
    seen = [path for path in texts() if path != Path(__file__)]
    told = ("README.md", "pyproject.toml", ".ci/run", "rote/cli/doctor.py")
    assert {ROOT / path for path in told} <= set(seen)
    assert {str(path): lines for path in seen if (lines := foreign(path.read_text("utf-8", "replace")))} == {}


@pytest.mark.parametrize(
    ("platform", "version", "wanted"),
    [
        ("linux", "3.11", {"mpi4py", "pyfftw"}),
        ("darwin", "3.14", {"mpi4py", "pyfftw"}),
        ("win32", "3.14", {"mpi4py", "pyfftw"}),
        ("linux", "3.15", {"mpi4py", "ducc0"}),
        ("emscripten", "3.13", set()),
        ("emscripten", "3.15", set()),
    ],
)
def test_only_what_has_wheels_is_required(platform: str, version: str, wanted: set[str]) -> None:
    """mpi4py and a library of transforms are required where they come as wheels; elsewhere NumPy transforms."""
    needs = project()["dependencies"]
    assert isinstance(needs, list)
    where = {"sys_platform": platform, "python_version": version}
    asked = [Requirement(need) for need in needs]
    compiled = {need.name for need in asked if not need.marker or need.marker.evaluate(where)}
    assert compiled & {"mpi4py", "pyfftw", "ducc0"} == wanted and {"numpy", "lark", "click"} <= compiled
