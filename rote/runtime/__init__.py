"""The processes: communicators (MPI, in-process), agreement of ranks, and the running of bound plans.

The only package with processes, and `mpi.py` the only file that imports mpi4py. Importing it starts no MPI.
"""

from __future__ import annotations

from .comm.collective_errors import collective_errors
from .comm.protocol import Comm
from .comm.resolve import as_comm, run, world

__all__ = ["Comm", "as_comm", "collective_errors", "run", "world"]
