"""mpi4py's calls on in-process ranks, by its names, so that a program for mpi4py runs on `rote.run`, too.

Lower-case calls take and return objects, which are pickled: every rank gets its own copy, as under MPI. Upper-case
calls fill buffers: contiguous arrays, or lists that begin with one. All ranks give one dtype, and MPI.IN_PLACE as in
MPI. All calls are made of exchanges, in which each rank brings a value and leaves with the values of all.

mpi4py is not imported: its operations and constants are recognised if the program has imported it. On MPI ranks the
calls of these names are mpi4py's own.
"""

from __future__ import annotations

import operator
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...errors import CommError
from .cache import CachingComm
from .protocol import Array

__all__ = ["MPI4PY_CALLS", "UFUNCS", "Mpi4pyCalls", "checked_operation"]

UFUNCS: dict[str, np.ufunc] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "LAND": np.logical_and,
    "LOR": np.logical_or,
    "LXOR": np.logical_xor,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
"""NumPy's functions for MPI's operations on buffers, by the names of the latter."""


def is_mpi(value: object, name: str) -> bool:
    """Whether a value is the object of this name in mpi4py.MPI, if the program has imported that."""
    module = sys.modules.get("mpi4py.MPI")
    known = getattr(module, name, None)
    return known is not None and type(value) is type(known) and bool(value == known)


def checked_operation(call: str, op: Any) -> Any:
    """The operation of a call that reduces; refused if it is none.

    Raises:
        CommError: it is a text, as for Rote's own calls, or cannot be called.
    """
    if callable(op):
        return op
    name, root = ("reduce", ", root=0") if call.lower() == "reduce" else ("allreduce", "")
    raise CommError(
        f"comm.{call} combines as mpi4py's does, which returns the result; its op is an operation, not {op!r}\n"
        f"write op=MPI.MAX, or op=max where mpi4py is not imported (np.maximum for buffers); "
        f'Rote\'s own call, in place on an array, is comm.{name}_in_place(array, "max"{root})'
    )


def ufunc_of(call: str, op: Any) -> np.ufunc:
    """NumPy's function of two buffers for an operation, which is mpi4py's or such a function.

    Raises:
        CommError: it is neither.
    """
    checked_operation(call, op)
    if isinstance(op, np.ufunc):
        return op
    for name, ufunc in UFUNCS.items():
        if is_mpi(op, name):
            return ufunc
    raise CommError(
        f"comm.{call} combines buffers by MPI's {', '.join(UFUNCS)} or NumPy's functions, as np.maximum; not {op!r}\n"
        f"write comm.{call.lower()}(value, op), which calls op(a, b) for objects"
    )


class Mpi4pyCalls(CachingComm):
    """The calls of a communicator whose ranks exchange values."""

    __slots__ = ()

    def _exchange(self, call: str, value: Any = None) -> list[Any]:
        """The values of all ranks, in rank order, when all have made this call. Collective."""
        raise NotImplementedError

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Barrier(self) -> None:
        self._exchange("Barrier")

    # --- objects ---

    def bcast(self, obj: Any, root: int = 0) -> Any:
        data = self._exchange(f"bcast from {root}", pickle.dumps(obj) if self.rank == root else b"")
        return pickle.loads(data[self._root(root)])

    def allgather(self, sendobj: Any) -> list[Any]:
        return [pickle.loads(data) for data in self._exchange("allgather", pickle.dumps(sendobj))]

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        data = self._exchange(f"gather to {root}", pickle.dumps(sendobj))
        return [pickle.loads(pickled) for pickled in data] if self.rank == self._root(root) else None

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        data = self._exchange(f"scatter from {root}", self._pickles("scatter", sendobj) if self.rank == root else [])
        return pickle.loads(data[self._root(root)][self.rank])

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        pickles = self._exchange("alltoall", self._pickles("alltoall", sendobj))
        return [pickle.loads(data[self.rank]) for data in pickles]

    def reduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = operator.add, root: int = 0) -> Any:
        checked_operation("reduce", op)
        values = self.gather(sendobj, root)
        return None if values is None else reduce(op, values)

    def allreduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = operator.add) -> Any:
        checked_operation("allreduce", op)
        return reduce(op, self.allgather(sendobj))

    # --- buffers ---

    def Bcast(self, buf: Any, root: int = 0) -> None:
        mine = _flat(buf)
        self._fill(mine, self._exchange(f"Bcast from {root}", mine)[self._root(root)])

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = np.add, root: int = 0) -> None:
        receives = self.rank == self._root(root)
        self._reduce_buffers(f"Reduce to {root}", sendbuf, recvbuf, ufunc_of("Reduce", op), receives)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = np.add) -> None:
        self._reduce_buffers("Allreduce", sendbuf, recvbuf, ufunc_of("Allreduce", op), True)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        self._gather_buffers(f"Gather to {root}", sendbuf, recvbuf, self.rank == self._root(root))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        self._gather_buffers("Allgather", sendbuf, recvbuf, True)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        is_root = self.rank == self._root(root)
        theirs = self._exchange(f"Scatter from {root}", _flat(sendbuf) if is_root else None)
        in_place = is_root and is_mpi(recvbuf, "IN_PLACE")
        self._fill(None if in_place else _flat(recvbuf), self._part(theirs[root], self.rank))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        target = _flat(recvbuf)
        theirs = self._exchange("Alltoall", target if is_mpi(sendbuf, "IN_PLACE") else _flat(sendbuf))
        self._fill(target, np.concatenate([self._part(buffer, self.rank) for buffer in theirs]))

    def _reduce_buffers(self, call: str, sendbuf: Any, recvbuf: Any, ufunc: np.ufunc, receives: bool) -> None:
        in_place = is_mpi(sendbuf, "IN_PLACE")
        target = _flat(recvbuf) if receives or in_place else None
        theirs = self._exchange(f"{call} by {ufunc.__name__}", target if in_place else _flat(sendbuf))

        total = None
        if receives:
            total = theirs[0].copy()
            for buffer in theirs[1:]:  # in rank order, so that the result does not depend on timing
                self._same(total, buffer)
                ufunc(total, buffer, out=total, casting="unsafe")  # logical functions give bool
        self._fill(target if receives else None, total)

    def _gather_buffers(self, call: str, sendbuf: Any, recvbuf: Any, receives: bool) -> None:
        target, in_place = _flat(recvbuf) if receives else None, is_mpi(sendbuf, "IN_PLACE")
        mine = self._part(target, self.rank) if in_place and target is not None else _flat(sendbuf)
        theirs = self._exchange(call, mine)
        self._fill(target, np.concatenate(theirs) if receives else None)

    def _root(self, root: int) -> int:
        if 0 <= root < self.size:
            return root
        raise CommError(f"there is no rank {root} of {self.size}\nwrite root=0 to {self.size - 1}")

    def _pickles(self, call: str, objects: Sequence[Any] | None) -> list[bytes]:
        if objects is None or len(objects) != self.size:
            number = "None" if objects is None else f"{len(objects)}"
            raise CommError(f"comm.{call} sends one object to each of {self.size} ranks, not {number}")
        return [pickle.dumps(value) for value in objects]

    def _fill(self, target: Array | None, result: Array | None) -> None:
        """Fill a buffer of this rank as soon as no rank reads any of the buffers that all have given."""
        result = None if target is None or result is None else np.array(result)
        self._exchange("the end of a call of mpi4py's")
        if target is not None and result is not None:
            self._same(target, result)
            target[...] = result

    def _part(self, buffer: Array, rank: int) -> Array:
        count = buffer.size // self.size
        if count * self.size != buffer.size:
            raise CommError(f"a buffer of {buffer.size} elements has no equal parts for {self.size} ranks")
        return buffer[count * rank : count * (rank + 1)]

    def _same(self, mine: Array, other: Array) -> None:
        if (mine.size, mine.dtype) != (other.size, other.dtype):
            raise CommError(
                f"rank {self.rank} has a buffer of {mine.size} {mine.dtype}, for {other.size} {other.dtype}\n"
                "give buffers of one dtype whose sizes fit each other"
            )


MPI4PY_CALLS = tuple([name for name in vars(Mpi4pyCalls) if not name.startswith("_")])
"""The calls whose meaning is mpi4py's on every communicator of Rote."""


def _flat(spec: Any) -> Array:
    """The elements of a buffer: of an array, or of a list that begins with one and may have a count and MPI's type."""
    parts = list(spec) if isinstance(spec, list | tuple) else [spec]
    array = np.asarray(parts[0]) if parts and hasattr(parts[0], "__array_interface__") else None
    if array is None or not (array.flags.c_contiguous or array.flags.f_contiguous):
        what = "None" if spec is None else type(parts[0]).__name__ if array is None else "an array with gaps"
        text = f"a buffer is a contiguous array, or [array, MPI.TYPE]; not {what}"
        raise CommError(f"{text}\nsend np.ascontiguousarray(x)")
    flat = array.reshape(-1, order="A")
    return flat[: parts[1]] if len(parts) > 1 and isinstance(parts[1], int) else flat
