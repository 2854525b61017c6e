"""For all tests of the command line: an empty folder, wisdom of its own, and little time for measuring."""

from __future__ import annotations

from pathlib import Path

import pytest
from hurry import hurry


@pytest.fixture(autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wisdom, beside an empty one in which the test runs."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    monkeypatch.setenv("ROTE_WISDOM", str(folder / "kept"))
    monkeypatch.setattr("rote.bench.cases.SPAN", 0.01)
    monkeypatch.setattr("rote.bench.libraries.SPAN", 0.01)
    monkeypatch.setattr("rote.bench.libraries.LINGER", 0.0)
    hurry(monkeypatch, 0.01, 0.1)
    return folder / "kept"
