"""What every `Comm` must do, as functions of a communicator: run on in-process ranks and, as a program, under mpiexec.

Every check is collective. Buffers hold values that name their origin, so that a wrong element says where it is from.
Run as a program (folder for files as its argument), it makes all checks on the world and prints one line.
"""

from __future__ import annotations

import itertools
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rote.errors import CommError
from rote.layout.indexset import IndexSet
from rote.runtime import Comm, as_comm, collective_errors, world
from rote.runtime.comm.rawfile import FilePart, transfer

DTYPES = [np.dtype(code) for code in "?bBhHiIlLqQfdgFDG"]
OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def values(dtype: np.dtype[Any], count: int, seed: int) -> NDArray[Any]:
    """Small whole numbers that any dtype holds and that sum exactly, different for every seed."""
    numbers = (np.arange(count) * 7 + seed * 3) % 5
    if dtype.kind == "c":
        return (numbers + 1j * (numbers[::-1] % 3)).astype(dtype)
    return (numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)


def same(got: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert got.dtype == wanted.dtype, (got.dtype, wanted.dtype)
    np.testing.assert_array_equal(got, wanted)


def uneven(size: int, shift: int) -> list[int]:
    """Counts per rank with empty ones among them: 3, 0, 1, 2, 3, 0, ..."""
    return [(rank + shift) * 3 % 4 for rank in range(size)]


def check_identity(comm: Comm, folder: Path) -> None:
    """rank and size number the group; a communicator is its own Rote communicator; the cache is one dict."""
    assert comm.allgather_object((comm.rank, comm.size)) == [(rank, comm.size) for rank in range(comm.size)]
    assert as_comm(comm) is comm and isinstance(comm, Comm)
    comm.cache["key"] = 1
    assert comm.cache.pop("key") == 1
    assert f"{comm.rank} of {comm.size}" in repr(comm)


def check_barrier(comm: Comm, folder: Path) -> None:
    """Nobody leaves a barrier before all have come."""
    path = folder / f"barrier-{comm.rank}"
    path.touch()
    comm.barrier()
    assert all((folder / f"barrier-{rank}").exists() for rank in range(comm.size))
    comm.barrier()
    path.unlink()


def check_alltoallv(comm: Comm, folder: Path) -> None:
    """Rank r receives from s what s has for r, in the order of ranks; uneven, empty and no parts."""
    for dtype, shift in itertools.product(DTYPES, (0, 1)):

        def counts(source: int, shift: int = shift) -> list[int]:
            return uneven(comm.size, source + shift)

        def sent(source: int, dtype: np.dtype[Any] = dtype, shift: int = shift) -> NDArray[Any]:
            return values(dtype, sum(counts(source, shift)), source)

        mine = comm.rank
        recv_counts = [counts(source)[mine] for source in range(comm.size)]
        recv = np.zeros(sum(recv_counts), dtype)
        comm.alltoallv(sent(mine), counts(mine), recv, recv_counts)
        parts = [np.split(sent(source), np.cumsum(counts(source)))[mine] for source in range(comm.size)]
        same(recv, np.concatenate(parts))
    none = [0] * comm.size
    comm.alltoallv(np.empty(0), none, np.empty(0), none)


def check_allgatherv(comm: Comm, folder: Path) -> None:
    """All receive the concatenation in the order of ranks."""
    for dtype in DTYPES:
        for counts in (uneven(comm.size, 1), [0] * comm.size, [5] * comm.size):
            recv = np.zeros(sum(counts), dtype)
            comm.allgatherv(values(dtype, counts[comm.rank], comm.rank), recv, counts)
            same(recv, np.concatenate([values(dtype, count, rank) for rank, count in enumerate(counts)]))


def check_bcast(comm: Comm, folder: Path) -> None:
    """All end with the root's values, whoever the root is."""
    for dtype, count in itertools.product(DTYPES, (0, 1, 7)):
        for root in range(comm.size):
            buffer = values(dtype, count, comm.rank)
            comm.bcast_in_place(buffer, root)
            same(buffer, values(dtype, count, root))


def reductions(size: int, counts: tuple[int, ...]) -> Iterator[tuple[np.dtype[Any], str, int, NDArray[Any]]]:
    """dtype, op, count, and the result that the definition gives."""
    for dtype, (op, ufunc), count in itertools.product(DTYPES, OPS.items(), counts):
        if dtype.kind != "c" or op in ("sum", "prod"):
            stack = np.stack([values(dtype, count, rank) for rank in range(size)])
            yield dtype, op, count, ufunc.reduce(stack, axis=0, dtype=dtype)


def check_allreduce(comm: Comm, folder: Path) -> None:
    """All hold the combination of all; on bool by logic."""
    for dtype, op, count, wanted in reductions(comm.size, (0, 1, 11)):
        buffer = values(dtype, count, comm.rank)
        comm.allreduce_in_place(buffer, op)
        same(buffer, wanted)


def check_reduce(comm: Comm, folder: Path) -> None:
    """The root holds the combination; the other buffers are as they were."""
    for dtype, op, count, wanted in reductions(comm.size, (0, 11)):
        root = count % comm.size
        buffer = values(dtype, count, comm.rank)
        comm.reduce_in_place(buffer, op, root)
        same(buffer, wanted if comm.rank == root else values(dtype, count, comm.rank))


def check_reduce_scatter(comm: Comm, folder: Path) -> None:
    """Rank r holds the r-th part of the combination, and `send` is as it was."""
    counts = uneven(comm.size, 1)
    ends = np.cumsum([0, *counts])
    for dtype, op, count, wanted in reductions(comm.size, (sum(counts),)):
        send = values(dtype, count, comm.rank)
        recv = np.zeros(counts[comm.rank], dtype)
        comm.reduce_scatter(send, recv, counts, op)
        same(recv, wanted[ends[comm.rank] : ends[comm.rank + 1]])
        same(send, values(dtype, count, comm.rank))


def check_share(comm: Comm, folder: Path) -> None:
    """Every rank sees what the others wrote before a barrier, in parts of any size, also of none."""
    for turn in range(3):
        shared = comm.allocate_shared(8 * turn * (comm.rank + 1))
        assert shared is not None and [len(part) for part in shared] == [8 * turn * (r + 1) for r in range(comm.size)]
        mine = shared[comm.rank].view(np.int64)
        mine[...] = comm.rank + 10 * turn
        comm.barrier()
        for rank, part in enumerate(shared):
            assert (part.view(np.int64) == rank + 10 * turn).all()
        comm.barrier()
        right = shared[(comm.rank + 1) % comm.size].view(np.int64)
        right[...] = -comm.rank
        comm.barrier()
        assert (mine == -((comm.rank - 1) % comm.size)).all()
        comm.barrier()


def check_objects(comm: Comm, folder: Path) -> None:
    """Values arrive in rank order, small and large, each a copy of its own; what cannot be pickled is refused."""
    for length in (0, 10, 40, 50, 60, 1000):
        mine = {"rank": comm.rank, "text": "é" * (length * (comm.rank + 1))}
        got = comm.allgather_object(mine)
        assert [each["rank"] for each in got] == list(range(comm.size))
        assert [len(each["text"]) for each in got] == [length * (rank + 1) for rank in range(comm.size)]
    if comm.size > 1:
        mutable = [comm.rank]
        everybody = comm.allgather_object(mutable)
        for each in everybody:
            each.append(-1)
        comm.barrier()
        assert mutable == [comm.rank]
        try:
            comm.allgather_object(lambda: None)
        except (AttributeError, TypeError, pickle.PicklingError):
            pass
        else:
            raise AssertionError("a lambda was carried")


def check_split(comm: Comm, folder: Path) -> None:
    """A split orders by key, then rank; splits nest, work side by side, and leave the parent as it was."""
    even = comm.split(comm.rank % 2, -comm.rank)
    group = [rank for rank in reversed(range(comm.size)) if rank % 2 == comm.rank % 2]
    assert even.allgather_object(comm.rank) == group
    assert (even.size, group[even.rank]) == (len(group), comm.rank)
    tied = comm.split(7, 0)
    assert (tied.rank, tied.size) == (comm.rank, comm.size)
    inner = even.split(even.rank // 2, 0)
    assert inner.allgather_object(comm.rank) == group[even.rank // 2 * 2 :][:2]
    for each in (inner, even, comm, tied, inner):  # each is a world of its own
        total = np.array([comm.rank])
        each.allreduce_in_place(total, "sum")
        assert total[0] == sum(each.allgather_object(comm.rank))
    single = comm.split(comm.rank, 0)
    assert (single.rank, single.size) == (0, 1)
    single.barrier()


Index = tuple[NDArray[np.int64], ...]


def held(indices: NDArray[Any]) -> IndexSet:
    """The set of some ascending indices, one by one or, if they are evenly spaced, by their period."""
    first, *others = indices.tolist() or [0]
    if others and len({*np.diff(indices).tolist()}) == 1:
        return IndexSet.of_runs([(first, first + 1)], others[0] - first, others[-1] + 1)
    return IndexSet.of_runs([(at, at + 1) for at in indices.tolist()], 1000, 1000)


def index_sets(comm: Comm, shape: tuple[int, ...]) -> Iterator[Index]:
    """One rank's index per mode: the last mode cyclic, the first in blocks, block-cyclic, ragged, one rank alone."""
    whole = [np.arange(extent) for extent in shape]
    rank, size = comm.rank, comm.size
    for mode in range(len(shape)):
        at = np.arange(shape[mode])
        ragged = at[(at * at // 3) % size == rank]
        alone = at if rank == size - 1 else at[:0]
        halves = at[at // 2 % size == rank]
        for mine in (at[rank::size], np.array_split(at, size)[rank], halves, ragged, alone):
            yield tuple(mine if m == mode else full for m, full in enumerate(whole))
    if len(shape) >= 2:  # two modes at once, over a grid of size x 1 turned into rows and columns of ranks
        columns = 2 if size % 2 == 0 else 1
        row, column = divmod(rank, columns)
        yield (np.arange(row, shape[0], size // columns), np.arange(shape[1])[column::columns], *whole[2:])


def read(comm: Comm, path: Path | str, offset: int, shape: Any, index: Any, out: NDArray[Any]) -> None:
    """Read this rank's part of an array in a raw file."""
    transfer(comm, lambda: FilePart.at(path, offset, shape, index, out, writing=False))


def write(comm: Comm, path: Path | str, offset: int, shape: Any, index: Any, data: NDArray[Any]) -> None:
    """Write this rank's part of an array into a raw file of its full size."""
    transfer(comm, lambda: FilePart.at(path, offset, shape, index, data, writing=True))


def check_files(comm: Comm, folder: Path) -> None:
    """What ranks write is what the whole array says; what they read back is their part, at any offset and order."""
    path = folder / "file:raw"  # a colon, which some MPIs take for the end of a file system's name
    for number, shape in enumerate([(), (1,), (13,), (0,), (5, 8), (4, 0), (3, 5, 8), (7, 2, 3)]):
        dtype: np.dtype[Any] = np.dtype(("D", "b", ">f8", "f4")[number % 4])
        wanted = (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)
        offset = 3 + number
        for index in index_sets(comm, shape):
            if comm.rank == 0:
                path.write_bytes(bytes(offset + wanted.nbytes) + b"end")
            comm.barrier()
            mine = np.ascontiguousarray(wanted[np.ix_(*index)])
            sets = tuple([held(indices) for indices in index])
            write(comm, path, offset, shape, sets, mine)
            comm.barrier()
            assert path.read_bytes() == bytes(offset) + wanted.tobytes() + b"end", (shape, index)
            out = np.zeros_like(mine)
            read(comm, str(path), offset, shape, sets, out)
            same(out, mine)
            comm.barrier()


def check_files_of_order_0(comm: Comm, folder: Path) -> None:
    """A file of order 0: one rank writes it, all read it, or only one does."""
    path = folder / "scalar"
    if comm.rank == 0:
        path.write_bytes(bytes(10))
    comm.barrier()
    last = comm.rank == comm.size - 1
    write(comm, path, 2, (), (), np.array(2.5) if last else np.empty(0))
    comm.barrier()
    out = np.zeros(())
    read(comm, path, 2, (), (), out)
    assert out == 2.5
    alone = np.zeros(()) if last else np.empty(0)
    read(comm, path, 2, (), (), alone)
    assert alone.tolist() == (2.5 if last else [])


def raised(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def check_file_errors(comm: Comm, folder: Path) -> None:
    """A missing file, a folder, a short file, a block that does not fit: the same error on all ranks."""
    path = folder / "short"
    if comm.rank == 0:
        path.write_bytes(bytes(79))
    comm.barrier()
    index = (held(np.arange(comm.rank, 10, comm.size)),)
    out = np.zeros(len(index[0]))
    assert isinstance(raised(lambda: read(comm, folder / "none", 0, (10,), index, out)), FileNotFoundError)
    assert isinstance(raised(lambda: write(comm, folder / "none", 0, (10,), index, out)), FileNotFoundError)
    assert isinstance(raised(lambda: read(comm, folder, 0, (10,), index, out)), IsADirectoryError)
    for error in (
        raised(lambda: read(comm, path, 0, (10,), index, out)),
        raised(lambda: write(comm, path, 0, (10,), index, out)),
    ):
        assert isinstance(error, CommError) and "79 bytes" in str(error) and "byte 80" in str(error)
    # One rank alone gives a block that does not fit: all raise.
    wrong = np.zeros(99) if comm.rank == comm.size - 1 else np.zeros(len(index[0]), "b")
    error = raised(lambda: read(comm, path, 0, (10,), index, wrong))
    assert "does not fit" in str(error) or "too short" in str(error)
    comm.barrier()


class Awkward(Exception):
    """An error that cannot be pickled and rebuilt."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"awkward {one} {two}")


def check_agreement(comm: Comm, folder: Path) -> None:
    """All ranks raise the lowest failing rank's error, or none does; the failing rank keeps its traceback."""
    with collective_errors(comm):
        pass
    last = comm.size - 1
    for failing in ([0], [last], list(range(comm.size)), list(range(last // 2, comm.size))):
        try:
            with collective_errors(comm):
                if comm.rank in failing:
                    raise FileNotFoundError(2, "no such thing", f"file-{comm.rank}")
        except FileNotFoundError as error:
            assert error.filename == f"file-{failing[0]}" and error.errno == 2
            notes = getattr(error, "__notes__", [])
            ranks = ", ".join(map(str, failing))
            assert comm.size == 1 or [f"rank{'s' * (len(failing) > 1)} {ranks} of {comm.size}" in notes[0]] == [True]
            if comm.rank == failing[0]:
                assert error.__cause__ is None and error.__traceback__ is not None
            else:
                assert "check_agreement" in str(error.__cause__)
        else:
            raise AssertionError("nobody raised")
    for error in (StopIteration("the end"), StopAsyncIteration(3)):  # which generators turn into RuntimeError
        shared = raised(lambda error=error: disagree(comm, last, error))
        assert (type(shared), shared.args) == (type(error), error.args)
    awkward = raised(lambda: disagree(comm, last, Awkward(1, 2)))
    assert "awkward 1 2" in str(awkward)
    assert isinstance(awkward, Awkward if comm.rank == last else CommError)


def disagree(comm: Comm, failing: int, error: Exception) -> None:
    with collective_errors(comm):
        if comm.rank == failing:
            raise error


CHECKS: list[Callable[[Comm, Path], None]] = [check for name, check in globals().items() if name.startswith("check_")]


def check_all(comm: Comm, folder: Path) -> None:
    for check in CHECKS:
        check(comm, folder)


if __name__ == "__main__":
    comm = world()
    check_all(comm, Path(sys.argv[1]))
    if comm.rank == 0:
        print(f"{len(CHECKS)} checks on {comm!r}")
