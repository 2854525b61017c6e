"""Starts MPI programs for the tests: each by a start of its own, or many by one. Imports no MPI itself.

`mpirun(ranks, code_or_script, *args)` starts MPI for one program. A `Job(ranks)` starts it once, and its `run` then
does one program after the other on the same ranks.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

from rote.host import launchers
from rote.testing.plugin import launcher_environment as environment
from rote.testing.plugin import mpiexec_command

__all__ = ["RANKS", "Job", "environment", "launchers", "mpirun"]

RANKS = (1, 2, 3, 4, 6)

_OUTSET = environment()  # a job outlives the test that starts it: what this one sets is for its own programs

_MARK = "ROTE_TESTS_LAUNCH"  # in the environment of all that one launch starts, so that all of it can be ended


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
        command = [*mpiexec_command(), "-n", str(ranks), sys.executable, str(script.resolve()), *map(str, args)]
        started = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(), **(env or {}), _MARK: mark},
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


class Job:
    """MPI ranks that run one program after the other: a start of MPI, and of what all import, for all of them.

    Programs share what a process has: imported modules, caches, and world(). One that changes such things for good,
    measures memory, or means to fail, is for `mpirun`. A program that fails or hangs ends the job; the next one that
    is asked for starts another.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def run(
        self, code: str | Path, *args: object, timeout: float = 60, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """As `mpirun` does; output is in the order of ranks, and its status is 0 or 1."""
        if self._folder is None:
            self._start()
        root, self._number = Path(self._folder.name), self._number + 1
        folder = root / f"program{self._number}"
        folder.mkdir()
        script = code if isinstance(code, Path) else folder / "program.py"
        if not isinstance(code, Path):
            script.write_text(code, "utf-8")
        request = {
            "folder": str(folder),
            "program": str(script.resolve()),
            "args": [*map(str, args)],
            "env": env or {},
        }
        for pipe in self._pipes:
            os.write(pipe, json.dumps(request).encode() + b"\n")
        said, until = b"", time.monotonic() + timeout
        while len(said) < self.ranks and b"-" not in said and self._started.poll() is None and time.monotonic() < until:
            if select.select([self._ended], [], [], 0.05)[0]:
                said += os.read(self._ended, self.ranks)
        right = said == b"+" * self.ranks
        if not right:
            _end(self._started, self._mark)
        files = [[Path(f"{folder}.{name}.{rank}") for rank in range(self.ranks)] for name in ("out", "err")]
        out, err = ("".join(path.read_text() for path in each if path.exists()) for each in files)
        if not right:
            hangs = b"-" not in said and time.monotonic() >= until
            more = self.close()
            if hangs:
                raise AssertionError(f"hangs: {self.ranks} ranks after {timeout} s\n{out}\n{err}{more}")
            err += more
        return subprocess.CompletedProcess([str(script), *request["args"]], 0 if right else 1, out, err)

    def _start(self) -> None:
        self._number, self._mark = 0, uuid.uuid4().hex
        self._folder = tempfile.TemporaryDirectory(prefix="rote-")
        root = Path(self._folder.name)
        for name in (*map(str, range(self.ranks)), "ended"):
            os.mkfifo(root / name)
        with open(root / "said", "wb") as said:
            self._started = subprocess.Popen(
                [
                    *mpiexec_command(),
                    "-n",
                    str(self.ranks),
                    sys.executable,
                    str(Path(__file__).with_name("serve.py")),
                    root,
                ],
                cwd=root,
                env={**_OUTSET, _MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        # Opened for both ways, a pipe waits for nobody and has no end while this process lives.
        self._pipes = [os.open(root / str(rank), os.O_RDWR) for rank in range(self.ranks)]
        self._ended = os.open(root / "ended", os.O_RDWR)

    def close(self) -> str:
        """End the ranks, by an end of their requests or by force; what the launcher itself has said."""
        if self._folder is None:
            return ""
        for pipe in (*self._pipes, self._ended):
            os.close(pipe)
        with suppress(subprocess.TimeoutExpired):
            self._started.wait(timeout=10)
        if self._started.poll() is None:
            _end(self._started, self._mark)
            self._started.wait()
        said = Path(self._folder.name, "said").read_text()
        self._folder.cleanup()
        self._folder = None
        return said


def _end(started: subprocess.Popen[str], mark: str) -> None:
    """Let the ranks say where they hang, then kill all: launchers put ranks into process groups of their own."""
    python = os.path.realpath(sys.executable)
    for pid in [pid for pid in _marked(mark) if os.path.realpath(f"/proc/{pid}/exe") == python]:
        _signal([pid], signal.SIGABRT)
        time.sleep(0.02)  # so that the next does not write into what this one says
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
