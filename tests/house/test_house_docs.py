"""README.md and the guides in notebooks/: every fenced block is run, and prints what the page says.

- ```sh        in README the Quick start, two lines; CI runs them in a fresh clone, since they install the package.
               In guides scripts for clusters, of which the first of two pages is run with a srun of our own
- ```python    a `>>>` session is a doctest; a plain script runs, and prints the ```text block right below, if any;
               "Save it as `name.py`" below it does so, for the commands that follow
- ```console   each `$ command` runs in one temporary folder per page, with this Python's programs first on PATH,
               and prints exactly the lines below it; `...` stands for any text within a line, for times and the
               like, and alone on a line for any lines
- ```text      output or notation, for reading
- ```{eval-rst} names for the book's reference, which Sphinx makes pages of

One page is one session: a name or a file made in one block is there in the next.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import launch
import numpy as np
import pytest
from doctests import compare_whole_errors
from house import ROOT

import rote
from rote.testing.plugin import mpiexec_command

PAGES = [ROOT / "README.md", *sorted((ROOT / "notebooks").rglob("*.md"))]
OF_JAX = ("gpus.md",)  # tests/on_jax runs them, where JAX is installed
COMMANDS = ("cli.md", "install.md", "tuning.md")  # run many commands, each of which starts Python anew
LANGUAGES = {"sh", "python", "console", "text", "{eval-rst}"}
FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page: its language, its text, the line where it starts, what it is said to print, and the
    name of the file that the reader saves it as."""

    language: str
    text: str
    line: int
    output: str | None
    file: str | None


def blocks(page: str) -> list[Block]:
    """All fenced blocks; a text block right below a python one (a blank line between) is that one's output."""
    found = list(FENCE.finditer(page))
    if page.count("\n```") + page.startswith("```") != 2 * len(found):
        raise ValueError("a fence that does not close, or is indented")

    def output(i: int) -> str | None:
        follows = i + 1 < len(found) and not page[found[i].end() : found[i + 1].start()].strip()
        return found[i + 1]["text"] if follows and found[i + 1]["language"] == "text" else None

    def file(i: int) -> str | None:
        below = i + 1 + (output(i) is not None)
        end = found[below].start() if below < len(found) else len(page)
        saved = re.match(r"\s*Save it as `([\w.]+)`", page[found[below - 1].end() : end])
        return saved[1] if saved else None

    return [
        Block(match["language"], match["text"], page.count("\n", 0, match.start()) + 1, output(i), file(i))
        for i, match in enumerate(found)
    ]


def run_python(block: Block, names: dict[str, object]) -> str:
    """Run a python block among `names`; the complaint, empty when all is as the page says."""
    if ">>>" not in block.text:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, f"line {block.line}", "exec"), names)
        wrong = block.output is not None and not matches(printed.getvalue(), block.output)
        return f"line {block.line} printed\n{printed.getvalue()}" if wrong else ""
    compare_whole_errors()
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.text, names, f"line {block.line}", None, block.line)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    return "".join(report)


def commands(text: str) -> list[tuple[str, str]]:
    """The (command, output) pairs of a console block; a command goes on over lines that end in a backslash."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"output before the first command: {parts[0]!r}")
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run_console(block: Block, folder: Path) -> str:
    """Run the commands of a console block in `folder`; the complaint, empty when they print what the page says."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = launch.environment() | {
        "PATH": programs,
        "COLUMNS": "100",
        "TERM": "dumb",
        "PYTHONWARNINGS": "default",
    }
    for command, expected in commands(block.text):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if not matches(done.stdout, expected):
            return f"line {block.line}: $ {command}\nprinted (exit status {done.returncode})\n{done.stdout}"
    return ""


def matches(printed: str, expected: str) -> bool:
    """Equal but for spaces at the ends of lines; `...` matches text within a line, or whole lines where alone."""

    def pattern(line: str) -> str:
        return r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"

    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in text.strip("\n").split("\n")] if text.strip() else []

    wanted = "".join(pattern(line) for line in lines(expected))
    return re.fullmatch(wanted, "".join(line + "\n" for line in lines(printed))) is not None


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.name in COMMANDS))
        for page in PAGES
        if page.name not in OF_JAX
    ],
    ids=lambda page: page.name,
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page, in order, in one session and one folder."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    wrong: list[str] = []
    imported = {*sys.modules}
    for block in blocks(page.read_text("utf-8")):
        if block.language == "python":
            wrong.append(run_python(block, names))
            if block.file:
                (tmp_path / block.file).write_text(block.text, "utf-8")
        elif block.language == "console":
            wrong.append(run_console(block, tmp_path))
        else:
            assert block.language in LANGUAGES, f"line {block.line}: a block of no known language, so nobody runs it"
    for name in {*sys.modules} - imported:
        if getattr(sys.modules[name], "__name__", name) != name:  # a page may give a module another name, for itself
            del sys.modules[name]
    assert not any(wrong), "\n".join(wrong)


def test_the_quick_start_is_two_lines() -> None:
    """README has one sh block of two lines: install and demo, then install and test. CI runs them as they stand."""
    quick = [block.text for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.language == "sh"]
    assert len(quick) == 1
    first, second = quick[0].splitlines()
    assert first.startswith("python3 -m venv .venv && ")
    assert "rote demo" in first
    assert second.rstrip().endswith("pytest")


def test_links_lead_somewhere() -> None:
    """Every relative link of a page names a file of the repository; a comment, of a page still to come, is no link."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"<!--.*?-->", "", page.read_text("utf-8"))):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_code_of_pages_is_narrow() -> None:
    """A line of code has at most 88 characters, so that no column of the book cuts it off."""
    wide = [
        f"{page.name}: {line}"
        for page in PAGES
        for block in blocks(page.read_text("utf-8"))
        if block.language != "{eval-rst}"
        for line in block.text.splitlines()
        if len(line) > 88
    ]
    assert not wide, "\n".join(wide)


# A page of tables that are drawn by a program -> the most words that it may have, where others have 1,800.
LONG = {"papers.md": 2_500}


def test_pages_are_read_in_one_sitting() -> None:
    """No page has over 1,800 words, code and tables included: a longer one is about two things."""
    words = {page.name: len(page.read_text("utf-8").split()) for page in PAGES if page.parent.name == "notebooks"}
    assert not {name: count for name, count in words.items() if count > LONG.get(name, 1_800)}


def test_launchers_keep_their_own_options() -> None:
    """No page, and no text of the command line, shows a launched command with --tune, which Open MPI's mpirun takes for
    an option of its own, wherever it stands; --effort is the same."""
    texts = [page.read_text("utf-8") for page in PAGES] + [
        path.read_text("utf-8")
        for folder in ("rote", "fft", "notebooks")
        for path in (ROOT / folder).rglob("*.*y*")
        if path.suffix in (".py", ".ipynb")
    ]
    launched = [line for text in texts for line in text.splitlines() if re.search(r"\bmpi(exec|run) -", line)]
    assert len(launched) > 5
    assert not [line for line in launched if "--tune" in line]


# --- README and the book name what there is --------------------------------------------------------------------------

TEXTS = {page: page.read_text("utf-8") for page in PAGES}


def first_column(head: str) -> list[list[str]]:
    """The names in the first column of every table with this head, page by page; there is one at least."""
    tables = [text.split(f"\n| {head}")[1].split("\n\n")[0] for text in TEXTS.values() if f"\n| {head}" in text]
    if not tables:
        raise LookupError(f"no page has a table with the head {head}")
    return [
        [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
        for table in tables
    ]


def test_the_book_lists_every_method_and_algorithm() -> None:
    """A table of methods has all that `method=` takes, a table of algorithms all families of walks."""
    for names in first_column("`method=` "):
        assert sorted(names) == sorted({*rote.methods} - {"auto"})
    for names in first_column("`algorithm=` "):
        assert sorted(names) == sorted({*rote.fft.algorithms} - {"auto"})


def test_pages_name_nothing_that_is_not_there() -> None:
    """Every `rote.name` of the README and the guides leads to something."""
    names = {name for text in TEXTS.values() for name in re.findall(r"`(rote(?:\.\w+)+)", text)}
    assert len(names) > 10
    for name in names:
        resolve_name(name)


# --- scripts for clusters ---------------------------------------------------------------------------------------------

PROGRAMS = Path(sys.executable).parent


def scripts() -> list[tuple[str, str]]:
    """The page and the text of every script of the guides."""
    return [
        (page.name, block.text)
        for page in sorted((ROOT / "notebooks").glob("*.md"))
        for block in blocks(page.read_text("utf-8"))
        if block.language == "sh"
    ]


SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec {launcher} -n 2 "$@"
"""


def executable(path: Path, text: str) -> None:
    """Write a program that a shell can run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def run_script(page: str, folder: Path, **variables: str) -> str:
    """Run the first script of a guide in a folder, with this Python's programs first on PATH; what it prints."""
    script = next(script for name, script in scripts() if name == page)
    executable(folder / "script.sh", f"set -e\n{script}")
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAMS), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "script.sh"],
        cwd=folder,
        env=launch.environment() | {"PATH": path, "COLUMNS": "100", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.mpi
def test_the_batch_script_runs(tmp_path: Path) -> None:
    """The first script of the cluster guide, where srun is a program that starts two ranks: they meet, and transform a
    file."""
    executable(tmp_path / "bin" / "srun", SRUN.format(launcher=shlex.join(mpiexec_command())))
    executable(tmp_path / ".venv" / "bin" / "activate", "true\n")
    volume = np.random.default_rng(0).random((8, 6, 4))
    np.save(tmp_path / "volume.npy", volume)
    printed = run_script("cluster.md", tmp_path, SLURM_SUBMIT_DIR=str(tmp_path))
    assert len(re.findall("ok +ranks +2, started by mpiexec", printed)) == 1
    assert np.allclose(np.load(tmp_path / "spectrum.npy"), np.fft.rfftn(volume))


@pytest.mark.slow
@pytest.mark.mpi
def test_the_benchmark_is_repeated(tmp_path: Path) -> None:
    """The benchmark on the page of the command line measures, on a small shape, and says of which libraries."""
    executable(tmp_path / "bin" / "mpiexec", f'exec {shlex.join(mpiexec_command())} "$@"\n')
    printed = run_script("cli.md", tmp_path, SHAPE="8x8x8", ROUNDS="1", ROTE_WISDOM="")
    assert printed.count("slab swaps on 2 threads") == 1
    assert printed.count("transforms forward and backward on 2 MPI ranks") == 2
    assert "the libraries of these figures" in printed
    assert json.loads((tmp_path / "times.json").read_text("utf-8"))
