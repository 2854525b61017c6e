"""Arrays over the devices of two processes: the same plans, made by each process from texts alone."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import launch

PROGRAM = Path(__file__).with_name("processes.py")
SECONDS = 120


def test_two_processes_run_the_same_plans():
    """Two processes with four devices each move arrays as one with eight does; they end in time, or are ended."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]

    command = [sys.executable, "-W", "error::UserWarning", str(PROGRAM), str(port)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    programs = [subprocess.Popen([*command, str(k)], env=launch.environment(), **options) for k in range(2)]
    try:
        printed = [program.communicate(timeout=SECONDS)[0] for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()
    assert [text.splitlines()[-1] for text in printed] == ["as planned"] * 2, "\n".join(printed)
