"""Traces of an MPI launcher in the processes that it starts: environment variables and cores. Starts no MPI."""

from __future__ import annotations

import os
from functools import cache

__all__ = ["SIZES", "alone", "cores", "launched"]

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
