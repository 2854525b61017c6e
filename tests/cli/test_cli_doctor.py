"""`rote doctor`: it says what is there and what is not, and nothing that is broken can break it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from runner import Runner

import rote
from rote.cli import doctor as command
from rote.cli import main

SUBJECTS = [
    *("Python", "Rote", "NumPy", "pyFFTW", "mpi4py", "MPI", "mpiexec", "ranks", "cores", "memory", "Matplotlib"),
    *("Zarr", "HDF5", "xarray", "notation", "plan", "FFT"),
]


def doctor() -> tuple[int, dict[str, tuple[str, str]], str]:
    """The exit status, subject -> (state, found), and what is said below; every finding on one line."""
    done = Runner(env={"COLUMNS": "200"}).invoke(main, ["doctor"])
    assert type(done.exception) in (SystemExit, type(None))
    table, _, below = done.output.partition("\n\n")
    rows = [line.split(maxsplit=2) for line in table.splitlines()]
    return done.exit_code, {subject: (state, found) for state, subject, found in rows}, below


@pytest.mark.mpi
def test_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing is missing: every subject in its order, with its version; whatever MPI the system has beside."""
    programs = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    monkeypatch.setenv("PATH", os.pathsep.join(programs))
    status, found, below = doctor()
    assert list(found) == SUBJECTS
    assert {state for state, _ in found.values()} == {"ok"}, found
    assert (status, below.partition("\n\n")[0]) == (0, "nothing is missing")
    assert found["Rote"][1] == rote.__version__
    assert found["NumPy"][1] == version("numpy")
    assert "double" in found["pyFFTW"][1]
    assert found["HDF5"][1].endswith(("MPI, so that ranks write at once", "without MPI: ranks write in turn"))
    assert ("Open MPI" in found["MPI"][1]) == ("Open MPI" in found["mpiexec"][1])


def test_what_is_missing_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mpi4py, an MPI, mpiexec, Matplotlib, Zarr and h5py the status is 0; each command is named once."""

    def known(name: str) -> str:
        if name in ("mpi4py", "matplotlib", "zarr"):
            raise PackageNotFoundError(name)
        return version(name)

    def no_command(*command: str) -> str:
        raise rote.RoteError(f"{command[0]} does not run")

    monkeypatch.setattr(command, "version", known)
    monkeypatch.setattr(command, "_run", no_command)
    monkeypatch.setattr("shutil.which", lambda *args, **more: None)
    status, found, below = doctor()
    assert status == 0
    missing = ["mpi4py", "MPI", "mpiexec", "Matplotlib", "Zarr", "HDF5"]
    assert [subject for subject, (state, _) in found.items() if state == "missing"] == missing
    assert [subject for subject, (state, _) in found.items() if state == "ok"] == [
        s for s in SUBJECTS if s not in missing
    ]
    assert below.count("pip install mpich") == 1
    assert "to mend MPI, mpiexec:\n    pip install mpich\n" in below
    assert "to mend Matplotlib:\n    pip install matplotlib\n" in below
    assert "to mend HDF5:\n    pip install h5py\n" in below


def test_an_mpi_that_does_not_load(tmp_path: Path) -> None:
    """MPI is looked at from another process, so one that kills whoever loads it is only missing."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "__main__.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = subprocess.run(
        [sys.executable, "-m", "rote", "doctor"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "missing  MPI  " in done.stdout


def test_an_mpiexec_of_another_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that would each see themselves alone are foreseen."""
    said = {"--mpi-lib-version": "Open MPI v5.0.11, package: x", "--version": "HYDRA build details:\n    Version: 5.0"}
    monkeypatch.setattr(command, "_run", lambda *command: said[command[-1]])
    monkeypatch.setattr("shutil.which", lambda *args, **more: "/somewhere/mpiexec")
    status, found, below = doctor()
    assert status == 0
    assert found["MPI"] == ("ok", "Open MPI v5.0.11")
    assert found["mpiexec"][0] == "missing"
    assert "is of MPICH, but mpi4py loads Open MPI" in found["mpiexec"][1]
    assert "to mend mpiexec" in below


@pytest.mark.parametrize("shell", ["/usr/bin/mpiexec", None])
def test_the_mpiexec_beside_this_python_is_named(shell: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the right launcher is installed but a shell takes another one, or none, the cure is the PATH."""
    programs = str(Path(sys.executable).parent)
    said = {
        (sys.executable, "-m", "mpi4py", "--mpi-lib-version"): "MPICH Version:      5.0.2",
        ("/usr/bin/mpiexec", "--version"): "mpirun (Open MPI) 4.1.4",
        (f"{programs}/mpiexec", "--version"): "HYDRA build details:",
    }
    monkeypatch.setattr(command, "_run", lambda *command: said[command])
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"{programs}/mpiexec" if path == programs else shell)
    status, found, below = doctor()
    assert status == 0 and found["MPI"][0] == "ok" and found["mpiexec"][0] == "missing"
    assert f"{programs}/mpiexec, beside this Python" in " ".join(found["mpiexec"][1].split())
    assert f'to mend mpiexec:\n    export PATH="{programs}:$PATH"\n' in below
    assert "pip install mpich" not in below


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("MPICH Version:      5.0.2", "MPICH"),
        ("HYDRA build details:", "MPICH"),
        ("mpiexec (Open MPI) 5.0.11", "Open MPI"),
        ("mpirun (OpenRTE) 4.1.0", "Open MPI"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14", "Intel MPI"),
        ("something else", ""),
    ],
)
def test_families(text: str, family: str) -> None:
    """Library and launcher of one MPI are told to be so by their own texts."""
    assert command._family(text) == family


def test_what_is_broken_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong FFT is essential: the status is 1, and the other findings are there all the same."""
    monkeypatch.setattr("numpy.fft.fftn", lambda array: array + 1.0)
    status, found, below = doctor()
    assert status == 1
    assert found["FFT"][0] == "broken"
    assert "differs from numpy.fft" in found["FFT"][1]
    assert list(found) == SUBJECTS
    assert "to mend FFT" in below
