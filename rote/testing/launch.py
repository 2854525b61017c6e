"""The start of MPI in tests: the launcher, and an environment in which many ranks share few cores."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["find_mpiexec", "launcher_environment", "mpiexec_command"]


def find_mpiexec() -> str | None:
    """The mpiexec beside this Python (of an MPI wheel, which mpi4py also finds first), or the one on the PATH."""
    return shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


@cache
def mpiexec_command() -> list[str]:
    """The mpiexec command with its implementation's options that let many ranks share few cores.

    Raises:
        RuntimeError: there is no mpiexec.
    """
    mpiexec = find_mpiexec()
    if mpiexec is None:
        raise RuntimeError("no mpiexec beside this Python or on the PATH; install one with: pip install mpich")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, env=launcher_environment()).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        return [mpiexec, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return [mpiexec]


def launcher_environment() -> dict[str, str]:
    """This process's environment without the variables of an outer MPI launch, and without mixing of ranks' output."""
    outer = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    quiet = {"OMPI_MCA_osc": "^ucx"}  # else Open MPI's wheel warns of its own UCX at each window
    yielding = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}  # MPICH: waiting ranks sleep
    return {**kept, **as_root, **quiet, **yielding, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
