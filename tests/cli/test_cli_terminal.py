"""Terminals: who gets colours and moving bars, and how wide a text may be."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from runner import run

import rote
from rote.cli import doctor, output
from rote.plot.text import draw


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


def test_a_real_terminal(tmp_path: Path) -> None:
    """On a terminal `rote show` paints, and with NO_COLOR it prints the plain text."""
    texts = {}
    for name, more in (("painted", {}), ("plain", {"NO_COLOR": "1"})):
        ours, theirs = pty.openpty()
        kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        command = [sys.executable, "-m", "rote", "show", "[(0)]", "--shape", "4", "--grid", "2"]
        done = subprocess.Popen(command, stdout=theirs, cwd=tmp_path, env=kept | {"TERM": "xterm"} | more)
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
        texts[name] = b"".join(parts).decode().replace("\r\n", "\n")
    assert "\x1b[" in texts["painted"]
    assert texts["plain"] == draw(rote.parse("[(0)]").on((4,), 2)) + "\n"
