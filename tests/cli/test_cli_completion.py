"""Tab completion: what is offered is what there is, and the installation writes it once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import Result
from runner import run

import rote
from rote.cli import main
from rote.cli.completion import SHELLS, script
from rote.compiler.step import KINDS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for each test."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    return tmp_path


def install(*args: str) -> Result:
    """`rote completion install`, which must succeed."""
    done = run("completion", "install", *args)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done


def offered(*words: str) -> list[str]:
    """The completions of the last word of a command line."""
    found = BashComplete(main, {}, "rote", "_ROTE_COMPLETE").get_completions([*words[:-1]], words[-1])
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in found]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("bench", "--method", ""), [*rote.methods]),
        (("bench", "--method", "is"), ["isend", "isend-32"]),
        (("fft", "--algorithm", ""), [*rote.fft.algorithms]),
        (("explain", "--why-not", ""), [*KINDS]),
        (("explain", "--dtype", "c"), ["c8", "c16"]),
        (("tune", "--dtype", ""), ["f4", "f8", "c8", "c16"]),
        (("completion", "install", ""), [*SHELLS]),
        (("wisdom", ""), ["show", "forget", "export", "import"]),
        (("tune", "--s"), ["--seconds", "--shape"]),
        (("fft", ""), ["<file>"]),
        (("show", "[(0)]", "--plot", ""), ["<file>"]),
        (("explain", "--w"), ["--why-not", "--why", "--wire"]),
        (("con",), ["contents"]),
        (("",), main.list_commands(click.Context(main))),
    ],
)
def test_values_are_offered(words: tuple[str, ...], values: list[str]) -> None:
    """Names of methods, algorithms, kinds, dtypes, shells, options and commands, as the library has them; files."""
    assert sorted(offered(*words)) == sorted(values)


@pytest.mark.parametrize(
    ("shell", "written"),
    [
        ("bash", [".bashrc", ".local/share/rote/completion.bash"]),
        ("zsh", [".local/share/rote/completion.zsh", ".zshrc"]),
        ("fish", [".config/fish/completions/rote.fish"]),
    ],
)
def test_installed_once(shell: str, written: list[str], home: Path) -> None:
    """It says what it wrote; again it writes nothing; and nothing that was there is lost, a torn last line included."""
    mine = [home / name for name in (".bashrc", ".zshrc")]
    for path in mine:
        path.write_text("alias ll='ls -l'\nexport A=1")
    said = install(shell).output
    assert [str(home / name) for name in written] == sorted(
        line.removeprefix("wrote ") for line in said.splitlines() if line.startswith("wrote ")
    )
    before = {path: path.read_text() for path in home.rglob("*") if path.is_file()}
    assert sorted(before) == sorted({*mine, *(home / name for name in written)})
    assert all(before[path].startswith("alias ll='ls -l'\nexport A=1") for path in mine)
    again = install(shell).output
    assert "wrote" not in again and "up to date" in again
    assert before == {path: path.read_text() for path in home.rglob("*") if path.is_file()}


def test_what_moved_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another place for scripts replaces the line of the old one, and a script of another version is written anew."""
    install("bash")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "with space"))
    install("bash")
    lines = (home / ".bashrc").read_text().splitlines()
    assert len(lines) == 1 and str(home / "with space") in lines[0]
    path = home / "with space" / "rote" / "completion.bash"
    path.write_text("old")
    assert install("bash").output.startswith(f"wrote {path}\nnew shells")
    assert path.read_text() == script("bash")


def test_the_usual_shell_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of SHELL; where it is none that completes, the command to write is said."""
    assert str(home / ".zshrc") in install().output
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = run("completion", "install")
    assert (done.exit_code, done.stdout) == (2, "") and "rote completion install bash" in done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_show_writes_nothing(shell: str, home: Path) -> None:
    """--show prints the script that would be written, which asks `rote` itself."""
    assert install(shell, "--show").output == script(shell)
    assert f"_ROTE_COMPLETE={shell}_complete" in script(shell)
    assert [*home.iterdir()] == []


def test_a_real_bash_completes(home: Path) -> None:
    """A new bash, which reads what was installed, offers what the command offers; a name of files is left to it."""
    install("bash")
    bash = shutil.which("bash")
    assert bash is not None
    code = (
        f'PATH="{Path(sys.executable).parent}:$PATH"; . ~/.bashrc; complete -p rote; COMP_WORDS=(rote tune --dtype f)'
        "; COMP_CWORD=3; _rote_completion rote; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run([bash, "-c", code], env={**os.environ, "HOME": str(home)}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["complete -o nosort -F _rote_completion rote", "f4 f8"], done.stderr
