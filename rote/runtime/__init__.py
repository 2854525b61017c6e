"""The processes: communicators (MPI, in-process), agreement of ranks, and the running of bound plans.

The only package with processes, and `mpi.py` the only file that imports mpi4py. Importing it starts no MPI.
"""

from __future__ import annotations

from .comm.collective_errors import collective_errors
from .comm.protocol import Comm
from .comm.resolve import as_comm, run, world
from .comm.threads import alone

__all__ = ["Comm", "alone", "as_comm", "collective_errors", "run", "world"]
