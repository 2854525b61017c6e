"""The help of each command: examples that run as they stand, the exit status, and names that mean one thing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from runner import run

from rote.cli import main
from rote.cli.options import PictureFile

# Seconds each, and their commands have quick tests of their own.
LONG = {(), ("bench",), ("demo",), ("doctor",)}
MAKERS = ("rote demo ", "rote wisdom export ")  # make the files that examples of other commands read


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, and every command of these."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, (*path, name))


COMMANDS = dict(walk(main))


def block(path: tuple[str, ...], title: str) -> list[str]:
    """The lines of a block of a command's help."""
    text = run(*path, "--help").output
    assert f"\n  {title}:\n" in text, path
    lines = text.split(f"\n  {title}:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


EXAMPLES = {path: block(path, "Examples") for path in COMMANDS}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path in LONG)) for path in COMMANDS],
    ids=lambda path: "-".join(["rote", *path]),
)
def test_examples_run(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each example of a help, in its order and as printed, from an empty folder on, ends with status 0 and leaves no
    word on standard error."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for line in EXAMPLES[path]:
        if line.startswith("mpiexec "):
            continue
        program, *args = shlex.split(line)
        done = run(*args)
        assert (program, done.exit_code, done.stderr) == ("rote", 0, ""), (line, done.output)


PROGRAM = """
import os, shlex, sys
from contextlib import ExitStack
from unittest.mock import patch
import rote.bench.cases, rote.bench.libraries
from rote.cli import main
from rote.runtime.choose import SECONDS
os.chdir(sys.argv[1])
with ExitStack() as changed:  # until the next program on these ranks
    for seconds in SECONDS.values():
        changed.enter_context(patch.dict(seconds, measure=0.01, patient=0.1))
    changed.enter_context(patch.object(rote.bench.cases, "SPAN", 0.01))
    changed.enter_context(patch.object(rote.bench.libraries, "LINGER", 0.0))
    for line in sys.argv[2:]:
        try:
            main(shlex.split(line)[4:])
        except SystemExit as ended:
            assert ended.code == 0, line
"""


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("job", (4,), indirect=True)
def test_examples_of_mpi_run(job, place):
    """The examples that `mpiexec -n 4` starts, on four ranks of MPI, after the demos that make their files."""
    every = dict.fromkeys(line for path in EXAMPLES if path != ("demo",) for line in EXAMPLES[path])
    for line in every:
        if line.startswith(MAKERS):
            assert run(*shlex.split(line)[1:]).exit_code == 0
    lines = [line for lines in EXAMPLES.values() for line in lines if line.startswith("mpiexec ")]
    assert all(line.startswith("mpiexec -n 4 rote ") for line in lines) and len(lines) > 5
    done = job.run(PROGRAM, Path.cwd(), *lines, timeout=120, env={"ROTE_WISDOM": str(place)})
    assert (done.returncode, done.stderr) == (0, "")


def test_every_help_fits() -> None:
    """No help is wider than 100 columns, and each has examples of its own command, after one that makes their files."""
    for path in COMMANDS:
        assert max(map(len, run(*path, "--help").output.splitlines())) <= 100
        first, *_ = lines = EXAMPLES[path]
        if path and first.startswith(MAKERS) and not first.startswith(" ".join(("rote", *path))):
            lines = lines[1:]
        starts = {shlex.split(line.removeprefix("mpiexec -n 4 "))[0] for line in lines}
        assert starts == {"rote"}
        if path:
            words = [shlex.split(line.removeprefix("mpiexec -n 4 "))[1 : 1 + len(path)] for line in lines]
            assert {*map(tuple, words)} == {path}


def test_names_mean_one_thing() -> None:
    """An option of several commands takes values of one kind in all of them, and pictures are left by --plot."""
    kinds: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for option in command.params:
            for name in option.opts if isinstance(option, click.Option) else ():
                flag = "flag" if option.is_flag else option.type.name
                kinds.setdefault(name, set()).add(flag)
    several = {name: found for name, found in kinds.items() if len(found) > 1}
    assert several == {"--json": {"flag", "path"}, "--dtype": {"text", "choice"}}  # bench may name a file, and lists
    assert all(isinstance(p.type, PictureFile) for c in COMMANDS.values() for p in c.params if "--plot" in p.opts)


def test_the_exit_statuses_are_listed() -> None:
    """0, 1, 2 and 130 are all that there is, with what ends a command so."""
    said = {int(line.split()[0]): line for line in block((), "Exit status")}
    words = {0: "", 1: "error difference broken", 2: "command option argument", 130: "interrupt"}
    assert [*said] == [*words], said
    assert all(word in said[status] for status, some in words.items() for word in some.split())
