"""Jobs that write one file at the same time, killed ones among them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
from file_laws import plain
from io_laws import raised
from launch import mpirun

import rote
from rote.errors import RoteError
from rote.io import lock
from rote.runtime import Comm, run


def tensor(comm: Comm, value: float = 1.0) -> rote.DistTensor:
    return rote.DistTensor.from_global(np.full((4, 6), value), "block(ceil)[(0),()]", comm)


def lock_of(path: Path) -> Path:
    """The lock file of a path, as the error of a save says."""
    with lock.locked(path, rote.runtime.world()):
        (found,) = path.parent.glob(".rote-*.lock")
    return found


@pytest.mark.parametrize("suffix", (".h5", ".xdmf", ".zarr"))
@pytest.mark.parametrize("who", ("another host", "this host", "nobody"))
def test_a_held_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, who: str) -> None:
    """A file that another job writes is saved by nobody else: the error names that job, and the file to delete if it
    has ended. When it is deleted, the file is saved."""
    path = tmp_path / f"x{suffix}"
    locked = lock_of(path.with_suffix(".h5") if suffix == ".xdmf" else path)
    host = {"another host": "n17", "this host": os.uname().nodename, "nobody": ""}[who]
    locked.write_text(f"{host}\nprocess 5 on {host}, since noon\n" if host else "")
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    who = f"process 5 on {host}, since noon" if host else "another process"

    def fails(comm: Comm) -> None:
        x = tensor(comm)
        for step in (None, 3):
            call = lambda: rote.save(path, x, step=step)  # noqa: B023, E731
            raised(comm, call, RoteError, path.stem, f"is being written by {who}", f"delete {locked}")

    with open(locked) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run(fails, 2)
    assert os.listdir(tmp_path) == [locked.name]
    locked.unlink()
    run(lambda comm: rote.save(path, tensor(comm), step=3), 2)
    assert rote.contents(path).steps == (3,) and not locked.exists()


def test_waiting_for_a_lock(tmp_path: Path) -> None:
    """A job waits for another one, which ends soon; `.npy` files, which are saved as a whole, need no lock."""
    path = tmp_path / "x.h5"
    locked = lock_of(path)
    locked.write_text("n17\nprocess 5 on n17\n")
    timer = threading.Timer(0.2, locked.unlink)
    timer.start()
    run(lambda comm: tensor(comm).save(path), 2)
    assert (plain(path) == 1).all()
    timer.join()
    lock_of(tmp_path / "x.npy").touch()
    run(lambda comm: tensor(comm).save(tmp_path / "x.npy"), 2)


@pytest.mark.parametrize("length", (1, 200, 252))
def test_names_of_any_length_are_locked(tmp_path: Path, length: int) -> None:
    """The lock of a file has a short name."""
    path = tmp_path / f"{'x' * length}.h5"
    run(lambda comm: tensor(comm).save(path), 2)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", (".h5", ".xdmf"))
def test_a_program_that_knows_no_locks(tmp_path: Path, suffix: str) -> None:
    """What h5py adds to a file while a step is added to a copy of it is not lost: the step is refused."""
    data = tmp_path / "x.h5"

    def adds(part: float) -> None:
        with h5py.File(data, "a") as file:
            file.require_dataset("mine", (3,), "f8")[...] = 7

    def fails(comm: Comm) -> None:
        call = lambda: rote.save(tmp_path / f"x{suffix}", {"u": tensor(comm)}, step=1, progress=adds)  # noqa: E731
        raised(
            comm, call, RoteError, "x.h5 was changed by another program while step 1 was added", "save the step again"
        )

    for _ in ("a file that is not there yet", "a file that is there"):
        run(fails, 2)
        with h5py.File(data) as file:
            assert list(file) == ["mine"] and file["mine"][0] == 7
    assert os.listdir(tmp_path) == ["x.h5"]
    run(lambda comm: rote.save(tmp_path / f"x{suffix}", {"u": tensor(comm)}, step=1), 2)
    assert plain(data, "mine")[0] == 7 and plain(data, "1/u")[0, 0] == 1


KILLED = """
    import os, signal, sys
    import numpy as np
    import rote
    path, steps = sys.argv[1], int(sys.argv[2])
    def ends(part):
        if part < 1:
            os.kill(os.getpid(), signal.SIGKILL)
    def program(comm):
        x = rote.DistTensor.from_global(np.full((40, 60), 5.0), "block(ceil)[(0),()]", comm)
        rote.save(path, {"u": x, "v": x}, step=steps, progress=ends)
    rote.run(program, 2)
"""


@pytest.mark.parametrize("suffix", (".h5", pytest.param(".zarr", marks=pytest.mark.slow), ".xdmf"))
def test_a_killed_job(tmp_path: Path, suffix: str) -> None:
    """A job that is killed in the middle of a save leaves the old file, and no lock that others wait for."""
    path = tmp_path / f"x{suffix}"
    for steps in range(2):
        code = [sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(steps)]
        done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL, done
        assert steps == 0 or rote.contents(path).steps == (0,)
        run(lambda comm: rote.save(path, {"u": tensor(comm)}, step=steps), 2)  # noqa: B023
        assert rote.contents(path).steps == tuple(range(steps + 1))
        assert not [*tmp_path.glob("*.lock"), *tmp_path.glob(".rote-*.lock")]


INTERRUPTED = """
    import os, signal, sys, time
    import numpy as np
    import rote
    from rote.runtime.comm import threads
    threads._MOMENT = 0.1  # the rank below is busy for longer
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started to ignore it
    fsync = os.fsync
    def slow(number):
        os.fsync = fsync
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3)
    os.fsync = slow
    def program(comm):
        x = rote.DistTensor.from_global(np.full((40, 60), 5.0), "block(ceil)[(0),()]", comm)
        rote.save(sys.argv[1], x)
    rote.run(program, int(sys.argv[2]))
"""


@pytest.mark.parametrize("ranks", (1, pytest.param(3, marks=pytest.mark.slow)))
@pytest.mark.parametrize(
    "suffix", (".h5", *[pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".npy", ".zarr", ".xdmf")])
)
def test_an_interrupted_job(tmp_path: Path, suffix: str, ranks: int) -> None:
    """Ctrl-C in the middle of a save leaves the old file as it was, no draft and no lock, though a rank is too busy to
    end by itself."""
    path = tmp_path / f"x{suffix}"
    run(lambda comm: rote.save(path, tensor(comm, 7.0)), 2)
    before = sorted(os.listdir(tmp_path))

    code = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(path), str(ranks)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr, done
    assert sorted(os.listdir(tmp_path)) == before
    assert (rote.load(path).to_global() == 7).all()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", (".h5", ".npy", ".zarr"))
def test_an_interrupted_job_of_mpi(tmp_path: Path, suffix: str) -> None:
    """The same on MPI's processes, of which the one that writes the draft is interrupted."""
    path = tmp_path / f"x{suffix}"
    done = mpirun(2, textwrap.dedent(INTERRUPTED), path, 2)
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr
    assert os.listdir(tmp_path) == []
