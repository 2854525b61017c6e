"""What a program takes in a new Python: its CPU seconds, with the import of Rote, and its peak of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

__all__ = ["best", "fresh"]

# VmHWM is the peak of this very process; getrusage, where there is no /proc, may know that of its parent as well.
_BEFORE = """
import json, resource, sys, time, timeit
from pathlib import Path

def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024

given = json.loads(sys.stdin.read())
start = time.process_time()
import rote
found = {}
"""
_AFTER = """
found |= {"seconds": time.process_time() - start, "megabytes": peak()}
print(json.dumps(found))
"""


def fresh(code: str, given: Any = None) -> dict[str, Any]:
    """What a program leaves in `found`, with its CPU seconds and its peak of megabytes, in a new Python."""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + code + _AFTER],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def best(code: str, given: Any = None, *, of: str, below: float) -> dict[str, Any]:
    """The run of a few that is best in something; no more of them than it takes to come below a limit."""
    runs: list[dict[str, Any]] = []
    while len(runs) < 3 and not any(run[of] < below for run in runs):
        runs.append(fresh(code, given))
    return min(runs, key=lambda run: run[of])
