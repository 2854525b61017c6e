"""How the command line starts and looks: what it imports, Ctrl-C at any time, colours, moving bars and width."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from runner import run

import rote
from rote.cli import doctor, main, output
from rote.plot.text import draw

HEAVY = {"numpy", "rich", "scipy", "mpi4py", "matplotlib", "lark", "pyfftw", "ducc0", "platformdirs"}
START = """
import json, sys
sys.argv = ["rote", *sys.argv[1:]]
from rote.__main__ import start
try:
    start()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted(sys.modules)]))
"""


def python(code: str, *args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A new Python, whose first folder of modules is `cwd`."""
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )


@pytest.mark.parametrize("args", [("--version",), ("--help",), ("-h",), (), ("nothing",)])
def test_a_glance_imports_no_library(args: tuple[str, ...], tmp_path: Path) -> None:
    """Version, help and a command that is none import click and nothing of weight: neither NumPy, rich nor a room."""
    done = python(START, *args, cwd=tmp_path)
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == (0 if args and args[0].startswith("-") else 2)
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()
    own = {name for name in modules if name.startswith("rote.") and name.count(".") == 1}
    names = "__main__ cli host caches errors grammar lazy version"
    assert own <= {f"rote.{name}" for name in names.split()}


def test_the_menu_names_the_commands() -> None:
    """Each entry of the menu loads the command of its name, and nothing but the menu says what the help lists."""
    context = click.Context(main)
    assert isinstance(main, click.Group)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None and command.name == name and command.short_help is None
    assert main.get_command(context, "nothing") is None


@pytest.mark.parametrize("package", ["click", "numpy", "rich"])
def test_an_interrupt_during_imports(package: str, tmp_path: Path) -> None:
    """Ctrl-C while anything is imported ends with one word and status 130."""
    (tmp_path / f"{package}.py").write_text("raise KeyboardInterrupt\n")
    done = python(START, "doctor", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert "Traceback" not in done.stderr
    status = json.loads(done.stdout.splitlines()[-1])[0]
    assert (status, done.stderr.strip()) == (130, "interrupted")


@pytest.mark.parametrize("ranks", [1, 3])
def test_an_interrupt_of_ranks(ranks: int, tmp_path: Path) -> None:
    """Ctrl-C while ranks read ends with one word and status 130, and leaves neither a file nor its draft."""
    np.save(tmp_path / "in.npy", np.zeros((6, 5)))
    code = f"""
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started to ignore it
import rote.tensor
def load(*args, **options):
    sys.stderr.write("ready\\n")  # in one piece, whoever else writes
    while True:
        time.sleep(0.01)
rote.tensor.load = load
sys.argv = ["rote", "fft", "in.npy", "out.npy", "--ranks", "{ranks}"]
from rote.__main__ import start
start()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        try:
            assert job.stderr is not None
            for _ in range(ranks):
                assert job.stderr.readline() == "ready\n"
            job.send_signal(signal.SIGINT)
            _, said = job.communicate(timeout=30)
        finally:
            job.kill()
    assert (said.strip(), job.returncode) == ("interrupted", 130)
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]


# --- terminals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "no_color", "watched", "moves", "paints"),
    [
        ("xterm", None, True, True, True),
        ("xterm", "", True, True, True),
        ("xterm", "1", True, True, False),
        ("dumb", None, True, False, False),
        ("unknown", None, True, False, False),
        ("xterm", None, False, False, False),
    ],
)
def test_colours_and_bars(
    term: str, no_color: str | None, watched: bool, moves: bool, paints: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Colours where somebody watches a terminal that has them, unless NO_COLOR is set; bars unless it is dumb."""
    monkeypatch.setattr(output, "on_terminal", lambda: watched)
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert (output.animated(), output.coloured()) == (moves, paints)
    monkeypatch.setattr("rote.cli.doctor.findings", lambda: [doctor.Finding("FFT", "wrong", "broken", "cure")])
    shown = run("show", "block[(0),()]", color=True).output
    told = run("doctor", color=True).output
    assert ("\x1b[" in shown) is ("\x1b[" in told) is paints


@pytest.mark.parametrize("layout", ["block[(0),(1)]", "[(0),(1),()]", "[(0)]", "[(0,1),(),()]"])
def test_the_width_is_kept(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rote show` takes as many columns as the terminal has, as COLUMNS says, or 100; the text is that of `draw`."""
    shape = "x".join(["40"] * rote.parse(layout).order)
    dist = rote.parse(layout).on((40,) * rote.parse(layout).order, (3, 2))
    for columns in (72, 100, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = run("show", layout, "--shape", shape, "--grid", "3x2").output
        assert text == draw(dist, width=columns) + "\n"
        assert max(map(len, text.splitlines())) <= columns
    monkeypatch.delenv("COLUMNS")
    assert draw(dist) == draw(dist, width=100)


def test_the_doctor_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of the report is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", "60")
    table = run("doctor").output.partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 60


def on_a_terminal(folder: Path, *arguments: str, **more: str) -> str:
    """What `rote` writes on a real terminal."""
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    command = [sys.executable, "-m", "rote", *arguments]
    done = subprocess.Popen(command, stdout=theirs, cwd=folder, env=kept | {"TERM": "xterm"} | more)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert done.wait(60) == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_real_terminal(tmp_path: Path) -> None:
    """On a terminal `rote show` paints, and with NO_COLOR it prints the plain text."""
    line = ("show", "[(0)]", "--shape", "4", "--grid", "2")
    assert "\x1b[" in on_a_terminal(tmp_path, *line)
    assert on_a_terminal(tmp_path, *line, NO_COLOR="1") == draw(rote.parse("[(0)]").on((4,), 2)) + "\n"


@pytest.mark.parametrize(
    "line",
    [
        ("predict", "8x8", "--ranks", "2,4"),
        ("predict", "ik,kj->ij", "--shape", "8x8", "--shape", "8x8", "--ranks", "2"),
        ("explain", "ik,kj->ij", "--shape", "8x8", "--shape", "8x8", "--ranks", "2"),
    ],
)
def test_a_plan_that_is_made_shows_on_a_terminal(line: tuple[str, ...], tmp_path: Path) -> None:
    """A bar says so, and goes; every line of the answer is there as well, and nothing else where nobody watches."""
    shown, told = on_a_terminal(tmp_path, *line), run(*line).output
    assert "plan " in shown and "plan " not in told
    assert all(text in shown for text in told.splitlines())
