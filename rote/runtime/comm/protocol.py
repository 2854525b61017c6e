"""The `Comm` protocol, through which the ranks of a program communicate.

It has two implementations: `mpi.py` over mpi4py, and `threads.py` over the threads of this process. Everything above
them (plans, tensors, FFTs) uses only the protocol.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...layout.indexset import Strided
from ...layout.layout import Op

__all__ = ["Array", "BoundToRun", "Comm", "MpiHandle", "NativeMpi", "Path", "inside"]

Array = NDArray[Any]
Path = str | os.PathLike[str]
T = TypeVar("T")

# The communicator of the rank of `rote.run` that is running. A context variable, so that every thread has its own.
inside: ContextVar[Comm | None] = ContextVar("rote_inside", default=None)


class BoundToRun:
    """An object that exists once per rank of this run: a copy of it is the object itself, and it cannot be pickled."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is not pickled, for it lives in this run only\n"
            "where the pickle is read, take the communicator that rote.run gives there, and make the rest anew"
        )


@runtime_checkable
class Comm(Protocol):
    """A group of ranks that meet in collective calls.

    Every call below (`rank`, `size` and `cache` apart) is collective: all ranks of the communicator make the same
    calls in the same order. Buffers are 1-D contiguous arrays of one dtype, the same on all ranks: bool, any integer,
    f4, f8, longdouble, c8, c16 or clongdouble. Counts are in elements; offsets are their running sums. Buffers may be
    empty, and belong to the caller again when the call returns. `op` is "sum", "max", "min" or "prod"; on bool, sum
    and max are the logical or, prod and min the logical and; complex numbers have no max or min.

    Calls raise CommError if the ranks make different calls or the buffers do not fit each other. The examples below run
    on in-process ranks and give equal results under MPI.

    Examples
    --------
    >>> import rote
    >>> rote.run(lambda comm: (comm.rank, comm.size, isinstance(comm, rote.runtime.Comm)), ranks=2)
    [(0, 2, True), (1, 2, True)]
    """

    @property
    def rank(self) -> int:
        """The number of this rank, from 0 to size - 1."""
        ...

    @property
    def size(self) -> int:
        """The number of ranks of the group."""
        ...

    @property
    def cache(self) -> dict[Hashable, Any]:
        """Objects that belong to this communicator (sub-communicators, buffers, ...) and are freed with it.

        On a communicator of one rank, every thread has its own cache; others are used by one thread at a time.

        Examples
        --------
        >>> from rote import run
        >>> run(lambda comm: comm.cache.setdefault("mine", comm.rank), ranks=2)
        [0, 1]
        """
        ...

    def split(self, color: int, key: int) -> Comm:
        """The communicator of the ranks that give the same color, ordered by key, then by rank.

        A split costs messages and, with MPI, one of a few thousand communicators: keep the result in `cache`.

        Examples
        --------
        >>> from rote import run
        >>> run(lambda comm: comm.split(color=comm.rank % 2, key=comm.rank).size, ranks=3)
        [2, 1, 2]
        """
        ...

    def barrier(self) -> None:
        """Return when all ranks have made this call.

        Examples
        --------
        >>> from rote import run
        >>> run(lambda comm: comm.barrier(), ranks=2)
        [None, None]
        """
        ...

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array, recv_counts: Sequence[int]) -> None:
        """Send the r-th part of `send` to rank r; the r-th part of `recv` comes from rank r.

        Parameters
        ----------
        send : Array
            The parts for all ranks, one after the other.
        send_counts : Sequence[int]
            Per rank, the elements sent to it.
        recv : Array
            Room for the parts of all ranks.
        recv_counts : Sequence[int]
            Per rank, the elements that come from it.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def transposed(comm):
        ...     received = np.empty(2, int)
        ...     comm.alltoallv(np.array([0, 1]) + 10 * comm.rank, [1, 1], received, [1, 1])
        ...     return received.tolist()
        >>> rote.run(transposed, ranks=2)
        [[0, 10], [1, 11]]
        """
        ...

    def allgatherv(self, send: Array, recv: Array, recv_counts: Sequence[int]) -> None:
        """Gather the `send` of all ranks in `recv`, one after the other.

        Parameters
        ----------
        send : Array
            The elements that this rank gives.
        recv : Array
            Room for the elements of all ranks.
        recv_counts : Sequence[int]
            Per rank, how many elements it gives; the same on all ranks.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def gathered(comm):
        ...     received = np.empty(3, int)
        ...     comm.allgatherv(np.arange(comm.rank + 1), received, [1, 2])
        ...     return received.tolist()
        >>> rote.run(gathered, ranks=2)
        [[0, 0, 1], [0, 0, 1]]
        """
        ...

    def bcast_in_place(self, buffer: Array, root: int) -> None:
        """Copy the root's buffer into the buffer of every rank.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def copied(comm):
        ...     buffer = np.full(2, comm.rank)
        ...     comm.bcast_in_place(buffer, root=1)
        ...     return buffer.tolist()
        >>> rote.run(copied, ranks=2)
        [[1, 1], [1, 1]]
        """
        ...

    def allreduce_in_place(self, buffer: Array, op: Op) -> None:
        """Combine the buffers of all ranks element by element, in place on all; floats of one node in rank order.

        Parameters
        ----------
        buffer : Array
            This rank's elements, replaced by the result.
        op : {'sum', 'max', 'min', 'prod'}
            "sum", "max", "min" or "prod".

        Examples
        --------
        >>> import numpy as np, rote
        >>> def total(comm):
        ...     buffer = np.array([1, comm.rank])
        ...     comm.allreduce_in_place(buffer, "sum")
        ...     return buffer.tolist()
        >>> rote.run(total, ranks=3)
        [[3, 3], [3, 3], [3, 3]]
        """
        ...

    def reduce_in_place(self, buffer: Array, op: Op, root: int) -> None:
        """Combine the buffers of all ranks, as `allreduce_in_place`, in place at the root; the others do not change.

        Parameters
        ----------
        buffer : Array
            This rank's elements, replaced by the result at the root.
        op : {'sum', 'max', 'min', 'prod'}
            "sum", "max", "min" or "prod".
        root : int
            The rank that gets the result.

        Examples
        --------
        >>> import numpy as np, rote
        >>> def largest(comm):
        ...     buffer = np.array([comm.rank])
        ...     comm.reduce_in_place(buffer, "max", root=0)
        ...     return buffer.tolist()
        >>> rote.run(largest, ranks=3)
        [[2], [1], [2]]
        """
        ...

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        """Combine the `send` of all ranks, as `allreduce`; rank r receives the r-th part, of counts[r] elements.

        Parameters
        ----------
        send : Array
            The elements of this rank for all parts.
        recv : Array
            Room for this rank's part.
        counts : Sequence[int]
            Per rank, the elements of its part; the same on all ranks.
        op : {'sum', 'max', 'min', 'prod'}
            "sum", "max", "min" or "prod".

        Examples
        --------
        >>> import numpy as np, rote
        >>> def part(comm):
        ...     received = np.empty(comm.rank + 1, int)
        ...     comm.reduce_scatter(np.array([1, 2, 3]), received, [1, 2], "sum")
        ...     return received.tolist()
        >>> rote.run(part, ranks=2)
        [[2], [4, 6]]
        """
        ...

    def allocate_shared(self, nbytes: int) -> list[Array] | None:
        """Memory of `nbytes` bytes from each rank, in rank order, that all ranks can read and write.

        Writes before a barrier are visible to all ranks after it. The memory lives as long as any rank holds it. The
        result is None on all ranks if some cannot share memory: they run on several nodes, or the system refuses.

        Examples
        --------
        >>> from rote import run
        >>> def neighbour(comm):
        ...     memory = comm.allocate_shared(8)
        ...     memory[comm.rank][:] = comm.rank
        ...     comm.barrier()
        ...     return memory[1 - comm.rank].tolist()[:3]
        >>> run(neighbour, ranks=2)
        [[1, 1, 1], [0, 0, 0]]
        """
        ...

    def nodes(self) -> Sequence[int]:
        """The number of each rank's node, from 0 in the order of ranks. Ranks of one node may share memory.

        Examples
        --------
        >>> from rote import run
        >>> run(lambda comm: list(comm.nodes()), ranks=2)
        [[0, 0], [0, 0]]
        """
        ...

    def share_reference(self, value: T) -> list[T] | None:
        """The values of all ranks, as the very objects, in rank order; None on all if they are not in one process.

        Parameters
        ----------
        value : DistTensor
            This rank's object.

        Examples
        --------
        >>> from rote import run
        >>> first, second = run(lambda comm: comm.share_reference([comm.rank]), ranks=2)
        >>> first[0] is second[0]
        True
        """
        ...

    def allgather_object(self, value: Any) -> list[Any]:
        """A copy of every rank's value, in rank order; of equal values, one copy may serve for all.

        Values are small, and can be pickled.

        Examples
        --------
        >>> from rote import run
        >>> run(lambda comm: comm.allgather_object(f"rank {comm.rank}"), ranks=2)
        [['rank 0', 'rank 1'], ['rank 0', 'rank 1']]
        """
        ...


class NativeMpi(NamedTuple):
    """An MPI communicator as a library in C takes it, and the MPI that it is of.

    Attributes:
        handle: the value of the handle, a number or an address.
        size: the bytes of a handle.
        vendor: the name of the MPI.
        file: the library that this process has mapped; "" if that is unknown.
    """

    handle: int
    size: int
    vendor: str
    file: str


@runtime_checkable
class MpiHandle(Comm, Protocol):
    """The parts of MPI beyond `Comm` that methods of exchange, and libraries, need. Threads do not have them.

    MPI's own objects (communicators, datatypes, windows) are only passed on, so they are not typed here.
    """

    @property
    def handle(self) -> Any:
        """The MPI communicator."""
        ...

    @property
    def native(self) -> NativeMpi:
        """The MPI communicator as a library in C takes it."""
        ...

    def frees(self, holder: object, handle: Any) -> None:
        """Free a handle, by its method `Free`, when its holder is gone: when no other call of MPI is under way."""
        ...

    @property
    def most(self) -> int:
        """The most elements that one call can count; more elements need several calls."""
        ...

    def datatype(self, dtype: np.dtype[Any]) -> Any:
        """MPI's predefined datatype for a dtype."""
        ...

    def product(self, kind: Any, modes: Sequence[tuple[Strided, ...] | Array]) -> Any:
        """The datatype of elements of `kind` that lie at the sums of one offset of each mode, in bytes."""
        ...

    def window(self, nbytes: int) -> tuple[Any, Array]:
        """A new window for one-sided calls, and this rank's memory in it. Collective."""
        ...
