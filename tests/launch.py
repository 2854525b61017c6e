"""Starts MPI programs for the tests: `mpirun(ranks, code_or_script, *args)`. Imports no MPI itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["RANKS", "find_mpiexec", "mpirun"]

RANKS = (1, 2, 3, 4, 6)

_MARK = "ROTE_TESTS_LAUNCH"  # in the environment of all that one launch starts, so that all of it can be ended


def find_mpiexec() -> str | None:
    """The mpiexec beside this Python (a wheel MPI, the one that mpi4py finds first), or that of the PATH."""
    return shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


@cache
def _launcher() -> list[str]:
    """mpiexec with the options of its kind that let many ranks share few cores."""
    mpiexec = find_mpiexec()
    if mpiexec is None:
        raise RuntimeError("no mpiexec beside this Python or on the PATH; install one with: pip install mpich")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, env=_environment()).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        return [mpiexec, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return [mpiexec]


def _environment() -> dict[str, str]:
    """This process's environment, without an outer MPI launch, and without what would mix the lines of ranks."""
    outer = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**kept, **as_root, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}


def mpirun(
    ranks: int, code: str | Path, *args: object, timeout: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python program on `ranks` MPI ranks, from an empty folder, and return its exit status and output.

    `code` is the text of a program, or the path of a script (whose folder it may import from). An MPI start costs about
    a second: put many checks into one program. A program that outlasts `timeout` (seconds) is killed with all that it
    started and raises AssertionError with its output and with where each rank was: a hang is a failure.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="rote-") as folder:
        script = code if isinstance(code, Path) else Path(folder, "program.py")
        if not isinstance(code, Path):
            script.write_text(code, "utf-8")
        command = [*_launcher(), "-n", str(ranks), sys.executable, str(script.resolve()), *map(str, args)]
        started = subprocess.Popen(
            command,
            cwd=folder,
            env={**_environment(), **(env or {}), _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(started, mark)
            out, err = started.communicate()
            raise AssertionError(f"hangs: {ranks} ranks after {timeout} s\n{out}\n{err}") from None
        except BaseException:
            _end(started, mark)
            raise
    return subprocess.CompletedProcess(command, started.returncode, out, err)


def _end(started: subprocess.Popen[str], mark: str) -> None:
    """Let the ranks say where they hang, then kill all: launchers put ranks into process groups of their own."""
    python = os.path.realpath(sys.executable)
    _signal([pid for pid in _marked(mark) if os.path.realpath(f"/proc/{pid}/exe") == python], signal.SIGABRT)
    with suppress(subprocess.TimeoutExpired):
        started.wait(timeout=2)
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    for _ in range(20):
        left = _marked(mark)
        if not left:
            break
        _signal(left, signal.SIGKILL)
        time.sleep(0.1)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _marked(mark: str) -> list[int]:
    """The processes of one launch that still run. Read from /proc; none where there is no /proc."""
    text = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found
