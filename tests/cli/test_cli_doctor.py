"""`rote doctor`: it says what is there and what is not, and nothing that is broken can break it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from runner import Runner

import rote
from rote import host as launcher
from rote.cli import doctor as command
from rote.cli import main
from rote.fft.kernels.backends import library
from rote.host import installed

SUBJECTS = [
    *(
        "Python",
        "Rote",
        "NumPy",
        "pyFFTW",
        *["FFTW"] * library("fftw3").loads,
        "mpi4py",
        "MPI",
        "mpiexec",
        "ranks",
        "ScaLAPACK",
        "cores",
        "memory",
    ),
    *("Matplotlib", "Zarr", "HDF5", "xarray", "notation", "plan", "FFT"),
]


def doctor() -> tuple[int, dict[str, tuple[str, str]], str]:
    """The exit status, subject -> (state, found), and what is said below; every finding on one line."""
    done = Runner(env={"COLUMNS": "200"}).invoke(main, ["doctor"])
    assert type(done.exception) in (SystemExit, type(None))
    table, _, below = done.output.partition("\n\n")
    rows = [line.split(maxsplit=2) for line in table.splitlines()]
    return done.exit_code, {subject: (state, found) for state, subject, found in rows}, below


def answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., str]) -> None:
    """Let all commands that are run for their output answer so."""
    for where in ("rote.host.answer", "rote.cli.doctor.answer"):
        monkeypatch.setattr(where, answer)


@pytest.mark.mpi
def test_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing is missing, but the extra `fast`: every subject in its order, whatever MPI the system has beside."""
    programs = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    monkeypatch.setenv("PATH", os.pathsep.join(programs))
    status, found, below = doctor()
    assert list(found) == SUBJECTS
    fast = installed("mkl") != ""
    assert [subject for subject, (state, _) in found.items() if state != "ok"] == ["ScaLAPACK"] * (not fast), found
    says = "nothing is missing" if fast else "to mend ScaLAPACK:\n    pip install mkl"
    assert (status, below.partition("\n\n")[0]) == (0, says)
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
    answers(monkeypatch, no_command)
    monkeypatch.setattr("shutil.which", lambda *args, **more: None)
    status, found, below = doctor()
    assert status == 0
    missing = ["mpi4py", "MPI", "mpiexec", "ScaLAPACK", "Matplotlib", "Zarr", "HDF5"]
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
    command, env = [sys.executable, "-m", "rote", "doctor"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "missing  MPI  " in done.stdout


BESIDE = str(Path(sys.executable).parent)
LAUNCHERS = [  # the MPI that is loaded, the mpiexec of a shell, whether one is beside this Python, and what is said
    ("Open MPI v5.0.11, package: x", "/usr/bin/hydra", False, "is of MPICH, but mpi4py loads Open MPI"),
    ("MPICH Version:      5.0.2", "/usr/bin/mpiexec", True, f"{BESIDE}/mpiexec, beside this Python"),
    ("MPICH Version:      5.0.2", None, True, f"{BESIDE}/mpiexec, beside this Python"),
]


@pytest.mark.parametrize(("library", "shell", "beside", "part"), LAUNCHERS)
def test_an_mpiexec_of_another_mpi(
    library: str, shell: str | None, beside: bool, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks that would each see themselves alone are foreseen; where the right launcher is installed, the cure is the
    PATH."""
    said = {
        (sys.executable, "-m", "mpi4py", "--mpi-lib-version"): library,
        ("/usr/bin/mpiexec", "--version"): "mpirun (Open MPI) 4.1.4",
        ("/usr/bin/hydra", "--version"): "HYDRA build details:\n    Version: 5.0",
        (f"{BESIDE}/mpiexec", "--version"): "HYDRA build details:",
    }
    answers(monkeypatch, lambda *command: said[command])
    there = {BESIDE: f"{BESIDE}/mpiexec" if beside else None}
    monkeypatch.setattr("shutil.which", lambda name, path=None: there.get(path, shell))
    status, found, below = doctor()
    assert (status, found["MPI"][0], found["mpiexec"][0]) == (0, "ok", "missing")
    assert part in " ".join(found["mpiexec"][1].split()) and "to mend mpiexec" in below
    assert (f'to mend mpiexec:\n    export PATH="{BESIDE}:$PATH"\n' in below) is beside
    assert not beside or "pip install mpich" not in below


OTHERS = {
    "MPICH": {"PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
    "Open MPI": {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"},
}
"""Per MPI that is loaded, what the launcher of the other one leaves in the environment of its ranks."""


@pytest.mark.mpi
def test_ranks_of_another_mpis_launcher_are_refused_before_mpi_starts() -> None:
    """Law: what the library would die of is found before it starts, and the error names the command to write."""
    library = command.family(launcher.answer(sys.executable, "-m", "mpi4py", "--mpi-lib-version"))
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {**launcher.alone(), **OTHERS[library], "PATH": programs}
    other = "Open MPI" if library == "MPICH" else "MPICH"
    text = f"the mpiexec of {other} has started this process, but mpi4py loads {library}, which it cannot start"
    code = "import rote; rote.run(print, 2)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "") and f"rote.CommError: {text}\n" in done.stderr, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("write ") and line.endswith(f"mpiexec -n 2 {sys.executable} -c '{code}'"), line
    twice = "import rote\nfor n in 'ab':\n  try: rote.runtime.world()\n  except rote.CommError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", twice], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.count(text) == 2, done.stderr
    done = subprocess.run([sys.executable, "-m", "rote", "doctor"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and text in " ".join(done.stdout.split()), done.stderr
    assert "to mend ranks:\n    " in done.stdout and "-n 2" in done.stdout.partition("to mend ranks:")[2]


@pytest.mark.parametrize(
    ("version", "environment", "refused"),
    [
        ("MPICH Version: 5.0.2\nMPICH configure: --with-pm=hydra", OTHERS["MPICH"], "the mpiexec of Open MPI"),
        ("MPICH Version: 5.0.2\nMPICH configure: --with-pm=hydra", {"PMIX_RANK": "1"}, "the launcher by PMIx"),
        ("MPICH Version: 5.0.2\nMPICH configure: --with-pmix=/usr", OTHERS["MPICH"], ""),
        ("MPICH Version: 5.0.2\nMPICH configure: --with-pm=hydra", OTHERS["Open MPI"], ""),
        ("Open MPI v5.0.11, package: x", OTHERS["Open MPI"], "the mpiexec of MPICH"),
        ("Open MPI v4.1.4, package: x", {"PMI_RANK": "0", "PMI_SIZE": "2", "SLURM_JOBID": "7"}, ""),
        ("Open MPI v5.0.11, package: x", OTHERS["MPICH"], ""),
        ("Some other MPI 1.0", OTHERS["MPICH"], ""),
        ("MPICH Version: 5.0.2", {}, ""),
    ],
)
def test_launchers_that_cannot_start_a_library(
    version: str, environment: dict[str, str], refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PMIx does not start MPICH unless it was built so, and Hydra not Open MPI; what cannot be told is let pass."""
    answers(monkeypatch, lambda *asked: "")
    for name in [*launcher.SIZES, "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = launcher.mismatch(version)
    assert found.startswith(f"{refused} has started") if refused else found == ""


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
    assert command.family(text) == family


def mixed(site: Path, ours_last: bool) -> dict[str, str]:
    """The environment of a Python that finds Rote and another project's `rote` installed in one folder."""
    package, metadata = site / "rote", site / "rote-0.1.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir()
    for source in [
        *Path(rote.__file__).parent.iterdir(),
        *(Path(part.__path__[0]) for part in (rote.grammar, rote.fft)),
    ]:
        if not (package / source.name).exists():
            (package / source.name).symlink_to(source)

    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rote\nVersion: 0.1.0\n")
    (metadata / "RECORD").write_text("rote/__init__.py,,\nrote/session.py,,\n")
    (package / "session.py").write_text("def cache(function): return function\n")
    if not ours_last:
        (package / "__init__.py").unlink()
        (package / "__init__.py").write_text("from .session import cache\n__version__ = '0.1.0'\n")
    return {**os.environ, "PYTHONPATH": str(site)}


def test_another_project_of_the_same_name(tmp_path: Path) -> None:
    """Where the distribution `rote`, another project's, is installed, `rote doctor` says how to remove it."""
    command, env = [sys.executable, "-m", "rote", "doctor"], mixed(tmp_path, ours_last=True)
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "broken   Rote" in done.stdout and "another project, rote 0.1.0" in " ".join(done.stdout.split())
    assert "to mend Rote:\n    pip uninstall -y rote rote-tensor && pip install rote-tensor\n" in done.stdout


def test_no_mixture_of_two_projects(tmp_path: Path) -> None:
    """Where the other project's `rote/__init__.py` has replaced Rote's, nothing of Rote is imported."""
    code = """
for line in ("import rote.array_api as xp", "import rote.cli", "import rote.random", "from rote.fft import fftn",
             "from rote.layout.layout import parse", "from rote.linalg import eigh"):
    try:
        exec(line)
    except ImportError as error:
        print(error)
"""
    env = mixed(tmp_path, ours_last=False)
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("another project's distribution, rote, has replaced files of Rote") == 6
    assert done.stdout.count("write pip uninstall -y rote rote-tensor, then pip install rote-tensor\n") == 6

    done = subprocess.run(
        [sys.executable, "-m", "rote", "doctor"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1 and "pip uninstall -y rote rote-tensor" in done.stderr


def test_what_is_broken_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong FFT is essential: the status is 1, and the other findings are there all the same."""
    monkeypatch.setattr("numpy.fft.fftn", lambda array: array + 1.0)
    status, found, below = doctor()
    assert status == 1
    assert found["FFT"][0] == "broken"
    assert "differs from numpy.fft" in found["FFT"][1]
    assert list(found) == SUBJECTS
    assert "to mend FFT" in below
