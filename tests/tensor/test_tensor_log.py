"""The log: a job's plans, choices and files, one line each, and none of calls that find them made."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rote
from rote.runtime.choose import decided
from rote.runtime.comm.protocol import Comm


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines so far, of which none is kept."""
    texts = [record.getMessage() for record in caplog.records if record.name == "rote"]
    caplog.clear()
    return texts


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_plan_has_a_line_once(ranks: int, caplog: pytest.LogCaptureFixture) -> None:
    """Law: rank 0 logs a plan as it is bound, in one line with both layouts; a warm call logs nothing."""

    def program(comm: Comm) -> None:
        x = rote.DistTensor.from_global(np.arange(24.0).reshape(6, 4), "block[(0),()]", comm)
        for _ in range(3):
            x.redistribute("[(),(0)]")

    with caplog.at_level(logging.INFO, "rote"):
        rote.run(program, ranks=ranks, on="threads")
    (line,) = lines(caplog)
    assert line.startswith("plan block[(0),()] -> [(),(0)] of (6, 4) float64 on grid ") and "\n" not in line


def test_a_walk_a_choice_and_a_file_have_lines(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Law: so do a walk as it is chosen, a choice as it is measured, and each file; a second transform logs nothing."""
    path = tmp_path / "x.npy"

    def program(comm: Comm) -> None:
        f = rote.fft.FFT((4, 4), "block[(0),()]", comm=comm)
        x = rote.DistTensor.from_global(np.ones((4, 4), "c16"), "block[(0),()]", comm)
        for _ in range(2):
            f.forward(x)
        for _ in range(2):
            decided(comm, {"what": "test"}, "measure", str, lambda: "a")
        rote.save(path, x)
        rote.load(path, "block[(0),()]", comm=comm)

    with caplog.at_level(logging.INFO, "rote"):
        rote.run(program, ranks=2, on="threads")
    starts = [line.partition(":")[0].split(f" {path}")[0] for line in lines(caplog)]
    assert starts == ["choice of a walk", "measured choice a for {'what'", "saved", "loaded"]


def test_nobody_who_does_not_listen_pays(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Law: nothing is logged below its level, and a program without logging does not import it by this."""
    with caplog.at_level(logging.WARNING, "rote"):
        rote.compile("[(0)] -> [()]", shape=4, grid=1)
        rote.DistTensor.from_global(np.ones(4), "[(0)]").redistribute("[()]")
    assert lines(caplog) == []

    program = (
        "import sys; from types import SimpleNamespace; sys.modules.pop('logging', None)\n"
        "from rote.runtime.log import log; sys.modules.pop('logging', None)\n"
        "log(SimpleNamespace(rank=0), '%s', 1); print('logging' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "False\n", done.stderr
