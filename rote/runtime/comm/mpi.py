"""MPI ranks: the `Comm` protocol over mpi4py. The only file that imports mpi4py; importing it starts MPI.

Each communicator of the user has one wrapper, over a duplicate, so that Rote's messages never mix with the user's. The
wrapper is stored as an MPI attribute of the user's communicator, and is freed with it.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any, TypeVar, cast

import mpi4py
import numpy as np

from ...caches import memoized
from ...errors import CommError
from ...host import mismatch
from ...layout.indexset import Ints, Strided
from ...layout.layout import Op
from . import segments
from .agreement import in_package, name_ranks
from .cache import CachingComm, cached
from .mpi4py_calls import MPI4PY_CALLS, UFUNCS, checked_operation
from .protocol import Array, NativeMpi
from .reductions import chunks, gather_in_turn, no_operation, reduce_in_order, reduce_in_turn, reduce_scatter_in_order

# MPI is loaded without being started: one that the launcher cannot start ends the process that tries.
_initialize, _finalize = mpi4py.rc.initialize, mpi4py.rc.finalize
mpi4py.rc.initialize, mpi4py.rc.finalize = False, _initialize if _finalize is None else _finalize
from mpi4py import MPI  # noqa: E402

mpi4py.rc.initialize, mpi4py.rc.finalize = _initialize, _finalize
if _initialize and not MPI.Is_initialized():
    if _fault := mismatch(MPI.Get_library_version()):
        raise CommError(_fault)
    if mpi4py.rc.threads:
        MPI.Init_thread(getattr(MPI, f"THREAD_{mpi4py.rc.thread_level.upper()}"))
    else:
        MPI.Init()

__all__ = ["MpiComm", "all_come", "set_abort", "world_size", "wrap"]

T = TypeVar("T")

_OPS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN, "prod": MPI.PROD}
_LOGICAL = {"sum": MPI.LOR, "max": MPI.LOR, "min": MPI.LAND, "prod": MPI.LAND}
_MOST = (1 << 31) - 1 if MPI.Get_version() < (4, 0) else 1 << 62  # elements that one call can count
_wrapping = threading.Lock()
_unused: deque[Any] = deque()  # MPI objects whose holders are gone
_MOMENT = 1.0  # seconds that a rank which ends by an error waits for the others to end by it, too
_FRAME = 64  # bytes in which allgather_object sends a small value in one message
_ON_ONE_THREAD = MPI.Is_initialized() and MPI.Query_thread() < MPI.THREAD_SERIALIZED  # that started MPI


class MpiComm(CachingComm):
    """The `Comm` of one MPI rank. It owns its MPI communicator.

    The communicator is freed when the `MpiComm` is gone, on each rank at its own time: MPICH and Open MPI free
    communicators locally, as the standard expects.
    """

    def __init__(self, owned: MPI.Intracomm, family: list[weakref.ref[MpiComm]] | None = None) -> None:
        super().__init__(owned.Get_rank(), owned.Get_size())
        self._owned = owned
        self._family = [] if family is None else family  # all that descend from one communicator of the user
        self._family[:] = [*(member for member in self._family if member() is not None), weakref.ref(self)]
        self._gone = _when_gone(self, (owned,))
        self._windows: list[MPI.Win] = []
        if self.size > 1:
            segments.expect()

    def __repr__(self) -> str:
        return f"<MPI rank {self.rank} of {self.size}>"

    @property
    def handle(self) -> MPI.Intracomm:
        """The MPI communicator. Raises: CommError when it has been freed, or for a thread that must not call MPI."""
        if _ON_ONE_THREAD:
            _check_thread()
        if self._owned:  # freeing turns it into MPI's null communicator, which is false
            return self._owned
        raise CommError(
            "this communicator has been freed, with the mpi4py communicator that it stood for\n"
            "free a communicator after the tensors and plans that live on it"
        )

    def close(self) -> None:
        """Free the communicator and its whole family: its splits, and theirs."""
        for member in self._family:
            living = member()
            if living is not None:
                living.cache.clear()
                _free_windows(living._windows)
                living._gone()
        _free_unused()

    def split(self, color: int, key: int) -> MpiComm:
        return MpiComm(_made(lambda: cast(MPI.Intracomm, self.handle.Split(color, key))), self._family)

    def Split(self, color: int = 0, key: int = 0) -> MpiComm | None:
        made = _made(lambda: cast(MPI.Intracomm, self.handle.Split(color, key)))
        return None if made == MPI.COMM_NULL else MpiComm(made, self._family)

    def __getattr__(self, name: str) -> Any:
        """mpi4py's own call of a name in `MPI4PY_CALLS`, on this communicator."""
        if name not in MPI4PY_CALLS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        call = getattr(self.handle, name)
        return partial(_reduced, name, call) if name.endswith("educe") else call

    def barrier(self) -> None:
        self.handle.Barrier()

    def alltoallv(self, send: Array, send_counts: Sequence[int], recv: Array, recv_counts: Sequence[int]) -> None:
        kind = _datatype(send.dtype)
        self.handle.Alltoallv([send, (send_counts, None), kind], [recv, (recv_counts, None), kind])

    def allgatherv(self, send: Array, recv: Array, recv_counts: Sequence[int]) -> None:
        if sum(recv_counts) > self.most:
            gather_in_turn(self, send, recv, recv_counts)
            return
        kind = _datatype(send.dtype)
        self.handle.Allgatherv([send, send.size, kind], [recv, (recv_counts, None), kind])

    def bcast_in_place(self, buffer: Array, root: int) -> None:
        for chunk in chunks(buffer, self.most):
            self.handle.Bcast([chunk, chunk.size, _datatype(chunk.dtype)], root)

    def allreduce_in_place(self, buffer: Array, op: Op) -> None:
        if reduce_in_order(self, buffer, op):
            return
        for chunk in chunks(buffer, self.most):
            self.handle.Allreduce(MPI.IN_PLACE, [chunk, chunk.size, _datatype(chunk.dtype)], _op(op, chunk.dtype))

    def reduce_in_place(self, buffer: Array, op: Op, root: int) -> None:
        if reduce_in_order(self, buffer, op, root):
            return
        for chunk in chunks(buffer, self.most):
            data, is_root = [chunk, chunk.size, _datatype(chunk.dtype)], self.rank == root
            self.handle.Reduce(MPI.IN_PLACE if is_root else data, data if is_root else None, _op(op, chunk.dtype), root)

    def reduce_scatter(self, send: Array, recv: Array, counts: Sequence[int], op: Op) -> None:
        if reduce_scatter_in_order(self, send, recv, counts, op):
            return
        if sum(counts) > self.most:
            reduce_in_turn(self, send, recv, counts, op)
            return
        kind = _datatype(send.dtype)
        self.handle.Reduce_scatter([send, send.size, kind], [recv, recv.size, kind], counts, _op(op, send.dtype))

    def allocate_shared(self, nbytes: int) -> list[Array] | None:
        return segments.share(self, nbytes) if len(set(self.nodes())) == 1 else None

    def nodes(self) -> Sequence[int]:
        return cached(self, "nodes", None, self._nodes, 1)

    def _nodes(self) -> tuple[int, ...]:
        node = _made(lambda: self.handle.Split_type(MPI.COMM_TYPE_SHARED))
        firsts = self.handle.allgather(node.bcast(self.rank))
        node.Free()
        number = {first: n for n, first in enumerate(dict.fromkeys(firsts))}
        return tuple(number[first] for first in firsts)

    def share_reference(self, value: T) -> list[T] | None:
        return [value] if self.size == 1 else None

    def allgather_object(self, value: Any) -> list[Any]:
        """Gather a value of every rank: in one message if all pickles fit into a frame, else in two."""
        # A frame:  | length of the pickle, 8 bytes | the pickle, or its first 56 bytes, and zeros |
        # All frames travel in one message. Whole pickles follow in a second one only if some rank's is longer.
        data = pickle.dumps(value)  # of most calls a name and a number, which fit
        length = len(data)

        frame = (length.to_bytes(8, sys.byteorder) + data[: _FRAME - 8]).ljust(_FRAME, b"\0")
        frames = bytearray(_FRAME * self.size)
        self.handle.Allgather([frame, MPI.BYTE], [frames, MPI.BYTE])

        if length <= _FRAME - 8 and frames == frame * self.size:
            return [pickle.loads(data)] * self.size

        lengths = np.frombuffer(frames, np.int64)[:: _FRAME // 8].tolist()
        if max(lengths) <= _FRAME - 8:
            return [pickle.loads(frames[at : at + _FRAME - 8]) for at in range(8, len(frames), _FRAME)]

        whole = bytearray(sum(lengths))
        self.handle.Allgatherv([data, length, MPI.BYTE], [whole, (lengths, None), MPI.BYTE])
        view, ends = memoryview(whole), accumulate(lengths)
        return [pickle.loads(view[end - length : end]) for end, length in zip(ends, lengths, strict=True)]

    @property
    def native(self) -> NativeMpi:
        return NativeMpi(MPI._handleof(self.handle), MPI._sizeof(MPI.Comm), MPI.get_vendor()[0], _mapped())

    def frees(self, holder: object, handle: Any) -> None:
        _when_gone(holder, (handle,))

    @property
    def most(self) -> int:
        return _MOST

    def datatype(self, dtype: np.dtype[Any]) -> MPI.Datatype:
        return _datatype(dtype)

    def product(self, kind: MPI.Datatype, modes: Sequence[tuple[Strided, ...] | Array]) -> Datatype:
        """The datatype of elements at sums of offsets. Its MPI handles are freed with it."""
        _free_unused()
        datatype = Datatype.product(kind, modes)
        _when_gone(datatype, datatype.made)
        return datatype

    def window(self, nbytes: int) -> tuple[MPI.Win, Array]:
        """A new window, and this rank's memory in it; freed with the communicator or at exit. Collective."""
        made = MPI.Win.Allocate(nbytes, 1, comm=self.handle)
        self._windows.append(made)
        atexit.register(_free_windows, self._windows)
        return made, np.frombuffer(cast(Any, made.tomemory()), np.uint8)


def wrap(comm: object = MPI.COMM_WORLD) -> MpiComm:
    """The one wrapper of an mpi4py communicator, by default of MPI's world. Made on first use, collectively.

    Raises: CommError for the null communicator, inter-communicators and objects that are not communicators.
    """
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        kind = "MPI.COMM_NULL" if isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL else type(comm).__name__
        raise CommError(f"this is not an intra-communicator: {kind}\ngive one that this rank is in, as MPI.COMM_WORLD")
    if _ON_ONE_THREAD:
        _check_thread()
    with _wrapping:  # other threads find the wrapper that the first has made
        wrapper = comm.Get_attr(_keyval())
        if not isinstance(wrapper, MpiComm):
            comm.Set_attr(_keyval(), wrapper := MpiComm(_made(comm.Dup)))
    return wrapper


def _mapped() -> str:
    """The MPI library that this process has mapped, from /proc; "" where there is no /proc."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
            path = line.split(maxsplit=5)[-1]
            if os.path.basename(path).startswith(("libmpi.so", "libmpich.so", "libmpi_abi.so")):
                return path
    return ""


def world_size() -> int:
    """The number of ranks of MPI's world. It asks no other rank."""
    return MPI.COMM_WORLD.Get_size()


def _check_thread() -> None:
    """Refuse a call of MPI on a thread that must not make it."""
    if not MPI.Is_thread_main():
        raise CommError(
            "MPI was started for calls of one thread, and another thread calls it\n"
            'write mpi4py.rc.thread_level = "multiple" before the first import of mpi4py.MPI'
        )


def set_abort(error: BaseException) -> None:
    """End the whole MPI job, with the exit status that `error` stands for, when this process ends.

    A program that catches its last error itself, or ends by SystemExit, calls this and then lets the error pass. A
    SystemExit of status 0 does not end the job.
    """
    if MPI.COMM_WORLD.Get_size() > 1:
        import_module("mpi4py.run").set_abort_status(error)
        atexit.unregister(_free_windows)  # freeing windows would wait for the other ranks


@cache  # not `memoized`: with another attribute after `clear_caches`, communicators would have other wrappers
def _keyval() -> int:
    """The MPI attribute that holds a communicator's wrapper. Made when the first one is wrapped."""
    _abort_on_uncaught()
    return MPI.Comm.Create_keyval(delete_fn=lambda comm, keyval, wrapper: wrapper.close())


def _abort_on_uncaught() -> None:
    """From now on an uncaught exception ends the job: the other ranks would wait for this one for ever."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        rank, size, text = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size(), f"{kind.__name__}: {error}"
        if not name_ranks(error, rank, size):  # ranks in different lines have different errors of one text
            text += str([(line.filename, line.lineno) for line in extract_tb(at) if not in_package(line.filename)])
        if rank == 0:
            before(kind, error, at)
            sys.stderr.flush()
        if _ends_as_rank_0(text):
            if rank:
                print(f"rank {rank} of {size} ends with the same {kind.__name__} as rank 0", file=sys.stderr)
        elif rank:
            before(kind, error, at)
        set_abort(error)

    sys.excepthook = hook


def all_come(comm: MPI.Intracomm, seconds: float) -> bool:
    """Whether all ranks of an MPI communicator make this call within `seconds` of this rank.

    It is for a rank that has failed and does not know which others have: they may be waiting in a collective call on
    another communicator. After False, the communicator can only be aborted.
    """
    coming = comm.Ibarrier()
    until = time.monotonic() + seconds
    while not coming.Test():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def _ends_as_rank_0(text: str) -> bool:
    """Whether this rank ends by rank 0's error; False if not all ranks come to their ends in a moment."""
    world = MPI.COMM_WORLD
    try:
        if world.Get_size() == 1 or not all_come(world, _MOMENT):
            return False
        return bool(world.allgather(text)[0] == text)
    except Exception:  # whatever MPI raises after an error of its own
        return False


def _free_windows(windows: list[MPI.Win]) -> None:
    """Free the remaining windows. Collective, so no garbage collector can do it; MPI demands it before it finalizes."""
    while windows and not MPI.Is_finalized():
        window = windows.pop(0)
        if window != MPI.WIN_NULL:
            window.Free()


@memoized(64)
def _datatype(dtype: np.dtype[Any]) -> MPI.Datatype:
    if dtype.isnative and dtype.kind in "biufc" and dtype.char != "e":
        return MPI.Datatype.fromcode(dtype.char)
    raise CommError(f"MPI carries no {dtype} ({dtype.str})\nconvert to a native bool, integer, float or complex dtype")


def _reduced(name: str, call: Callable[..., Any], sent: Any, *args: Any, **options: Any) -> Any:
    """Make a call of mpi4py's that reduces; of buffers also by NumPy's functions, for which it takes MPI's."""
    place = int(name[0].isupper())  # of the operation, behind the buffer that is filled
    op = checked_operation(name, options.get("op", args[place] if len(args) > place else MPI.SUM))
    if place:
        op = next((getattr(MPI, mpi_name) for mpi_name, ufunc in UFUNCS.items() if ufunc is op), op)
    if "op" in options or len(args) <= place:
        options["op"] = op
    else:
        args = (*args[:place], op, *args[place + 1 :])
    return call(sent, *args, **options)


def _op(op: Op, dtype: np.dtype[Any]) -> MPI.Op:
    try:
        return (_LOGICAL if dtype.kind == "b" else _OPS)[op]
    except KeyError:
        raise no_operation(op) from None


# --- freeing what is no longer used -----------------------------------------------------------------------------------

# The garbage collector may run in the middle of any call, on any thread. If mpi4py holds its locks then, freeing a
# communicator would wait for them for ever; and another thread may be in a call of MPI. So handles whose holders are
# gone are only collected, and are freed when the next ones are made.


def _when_gone(holder: object, handles: Iterable[Any]) -> weakref.finalize[[Iterable[Any]], Any]:
    """Collect the handles when their holder is gone; not at exit, where MPI frees them itself."""
    gone = weakref.finalize(holder, _unused.extend, handles)
    gone.atexit = False  # a rank that failed must not wait for others there
    return gone


def _free_unused() -> None:
    with suppress(IndexError):  # there are none, or another thread has taken the last
        while not MPI.Is_finalized():
            handle = _unused.popleft()
            if handle:  # a handle that was freed before is MPI's null handle
                handle.Free()


def _made(make: Callable[[], T]) -> T:
    """Make a communicator. MPICH has 2048; if none is left, free those in garbage cycles and try again.

    Collective. A failure is collective too: a communicator must be unused on all ranks, and each rank collects its
    own garbage.
    """
    _free_unused()
    try:
        return make()
    except MPI.Exception:
        gc.collect()
        _free_unused()
        return make()


# --- datatypes --------------------------------------------------------------------------------------------------------


class Datatype:
    """An MPI datatype of elements at given offsets, in their order, and the datatypes that it is made of.

    As many are made as there are lattices, or runs in one period, that describe the offsets. MPI gets strides; it gets
    lists of offsets only if the transition has no better description.

    Attributes:
        kind: the MPI datatype; at first, that of one element.
        made: all datatypes that were made for it. The holder frees them, the last one first.
        start: the bytes before the first element, which `kind` leaves out.
    """

    __slots__ = ("__weakref__", "kind", "made", "start")

    def __init__(self, kind: Any) -> None:
        self.kind: Any = kind
        self.made: list[Any] = []
        self.start: int = 0

    @classmethod
    def product(cls, kind: Any, modes: Sequence[tuple[Strided, ...] | Ints]) -> Datatype:
        """Elements at the sums of one offset of each mode, in bytes; the last mode runs fastest. Committed.

        The offsets of a mode are a sequence of strided parts, or a list. (MPI_Type_create_darray would cover only
        uniform block-cyclic layouts.)
        """
        datatype, start = cls(kind), 0
        for places in reversed(modes):
            if isinstance(places, np.ndarray):
                start += datatype._list(places)
            else:
                start += datatype._strided(places)
        if start <= _MOST:  # a kind that begins with a gap is 3 times as slow under MPICH
            datatype.start, start = start, 0
        return datatype._commit(start)

    def _strided(self, places: tuple[Strided, ...]) -> int:
        """Repeat the kind at strided offsets, part after part; the offset of the whole."""
        inner = self.kind
        return self._join([(start, self._repeat(inner, shape, steps)) for start, shape, steps in places])

    def _list(self, places: Ints) -> int:
        """Repeat the kind at listed offsets, in as few runs as possible; the offset of the whole."""
        extent = self.kind.Get_extent()[1]
        starts = np.append(0, np.flatnonzero(np.diff(places) != extent) + 1)
        lengths = np.diff(starts, append=len(places))
        self.kind = self._runs(self.kind, (places[starts] - places[0]).tolist(), lengths.tolist(), extent)
        return int(places[0])

    def _runs(self, kind: Any, starts: list[int], lengths: list[int], step: int) -> Any:
        """Repeat a kind in runs with `step` bytes from one copy to the next; the first run starts at 0."""
        if len(starts) == 1:
            return self._repeat(kind, lengths, (step,))
        return self._keep(self._keep(kind.Create_resized(0, step)).Create_hindexed(lengths, starts))

    def _repeat(self, kind: Any, shape: Sequence[int], steps: Sequence[int]) -> Any:
        """Repeat a kind along digits with the extents `shape`; the last digit runs fastest."""
        for n, step in zip(reversed(shape), reversed(steps), strict=True):
            if n != 1:
                together = kind.Get_extent()[1] == step
                kind = self._keep(kind.Create_contiguous(n) if together else kind.Create_hvector(n, 1, step))
        return kind

    def _join(self, parts: list[tuple[int, Any]]) -> int:
        """Join datatypes at offsets, one after the other; the offset of the whole."""
        starts, kinds = zip(*parts, strict=True)
        self.kind = kinds[0]
        if len(parts) > 1:
            offsets = [start - starts[0] for start in starts]
            self.kind = self._keep(type(self.kind).Create_struct([1] * len(parts), offsets, kinds))
        return int(starts[0])

    def _keep(self, kind: Any) -> Any:
        self.made.append(kind)
        return kind

    def _commit(self, start: int) -> Datatype:
        if start:
            self.kind = self._keep(self.kind.Create_hindexed_block(1, [start]))
        if not self.made:
            self.kind = self._keep(self.kind.Dup())
        self.kind.Commit()
        return self
