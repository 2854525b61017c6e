"""What a rank program may say to the other ranks: the `Comm` protocol, and the two doors to one.

Two implementations speak it: `mpi.py` over mpi4py, and `local.py` over the threads of this process. Everything
above them (plans, tensors, FFTs) is written against the protocol alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, cast, runtime_checkable

from numpy.typing import NDArray

from ..errors import CommError

__all__ = ["Array", "Comm", "Path", "as_comm", "inside", "world"]

Array = NDArray[Any]
Path = str | os.PathLike[str]

# Set while a rank of `rote.run` runs: its communicator. A context variable, so that every thread has its own.
inside: ContextVar[Comm | None] = ContextVar("rote_inside", default=None)

# What MPI launchers leave in the environment, and which of it states the number of ranks.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_LAUNCHED = (*_SIZES, "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID")

# Types found to speak the protocol: asking an object for all its methods takes 10 µs.
_speakers: set[type] = set()

_CURE = 'install one with: pip install "rote[mpi]"'


@runtime_checkable
class Comm(Protocol):
    """A group of ranks that meet in collective calls.

    Every call below (`rank`, `size` and `cache` apart) is collective: all ranks of the communicator make the same
    calls in the same order. Buffers are 1-D contiguous arrays of one dtype, the same on all ranks: bool, any integer,
    f4, f8, longdouble, c8, c16 or clongdouble. Counts are in elements; offsets are their running sums. Buffers may be
    empty, and belong to the caller again when the call returns. `op` is "sum", "max", "min" or "prod"; on bool, sum
    and max are the logical or, prod and min the logical and; complex numbers have no max or min.
    """

    @property
    def rank(self) -> int:
        """Who this rank is, from 0 to size - 1."""
        ...

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        ...

    @property
    def cache(self) -> dict[Hashable, Any]:
        """What is bound to this communicator (sub-communicators, buffers, ...). It dies with the communicator."""
        ...

    def split(self, color: int, key: int) -> Comm:
        """The communicator of the ranks that give the same color, ordered by key, then by rank.

        A split costs messages and, with MPI, one of a few thousand communicators: keep what it returns in `cache`.
        """
        ...

    def barrier(self) -> None:
        """Return when all ranks have called."""
        ...

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array, recv_counts: Sequence[int]) -> None:
        """Send the r-th part of `send` to rank r; the r-th part of `recv` comes from rank r."""
        ...

    def allgatherv(self, send: Array, recv: Array, recv_counts: Sequence[int]) -> None:
        """Put the `send` of all ranks one after the other into `recv`."""
        ...

    def bcast(self, buffer: Array, root: int) -> None:
        """Copy the root's buffer into every rank's."""
        ...

    def allreduce(self, buffer: Array, op: str) -> None:
        """Combine the buffers of all ranks element by element, in place on all."""
        ...

    def reduce(self, buffer: Array, op: str, root: int) -> None:
        """Combine the buffers of all ranks, in place at the root; the others' are left as they were."""
        ...

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: str) -> None:
        """Combine the `send` of all ranks; rank r receives the r-th part, of counts[r] elements."""
        ...

    def allgather_object(self, value: Any) -> list[Any]:
        """A copy of every rank's value, in rank order. For small values that can be pickled."""
        ...

    def read(self, path: Path, offset: int, shape: Sequence[int], index: Sequence[Array], out: Array) -> None:
        """Read this rank's part of the array of `shape` that lies in C order from byte `offset` of a raw file.

        index[m] holds the sorted, unique positions along mode m that this rank reads. `out` is C-contiguous, of
        shape `tuple(len(i) for i in index)` and of the file's dtype. A rank that reads nothing (an empty index, or
        an empty `out` where the order is 0) takes part all the same.

        Raises: OSError when the file cannot be opened, CommError when it is too short; the same on all ranks.
        """
        ...

    def write(self, path: Path, offset: int, shape: Sequence[int], index: Sequence[Array], data: Array) -> None:
        """Write this rank's part, as `read` reads it, into a file that already has its full size.

        The ranks write disjoint elements. Raises as `read` does.
        """
        ...


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
    if "mpi4py.MPI" in sys.modules or _launched():
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
def _launched() -> bool:
    """Was this process started by an MPI launcher?"""
    return any(name in os.environ for name in _LAUNCHED)


@cache
def _alone() -> Comm:
    """This process as the only rank."""
    from .local import alone

    return alone()


def _mpi_world() -> Comm:
    """MPI's world, after a check that launcher and library are of one mind about its size."""
    launched = max((int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdecimal()), default=None)
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
