"""The runtime: communicators (MPI, in-process), agreement of ranks, and running of bound plans.

It is the only package that deals with processes, and its `mpi.py` is the only file that imports mpi4py. Importing the
package does not start MPI.
"""

from __future__ import annotations

from .comm.agreement import collective_errors
from .comm.protocol import Comm
from .comm.resolve import as_comm, run, world
from .comm.threads import alone

__all__ = ["Comm", "alone", "as_comm", "collective_errors", "run", "world"]
