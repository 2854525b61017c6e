"""A program for mpi4py: it is run on MPI.COMM_WORLD and on the communicator of `rote.run`, with equal results.

Run as a program, under mpiexec, it prints whether the two give equal results.
"""

from __future__ import annotations

import operator
import sys

import numpy as np
from mpi4py import MPI

import rote


def objects(comm):
    """What the calls of objects return."""
    rank, size = comm.Get_rank(), comm.Get_size()
    assert (rank, size) == (comm.rank, comm.size)
    yield comm.bcast({"from": rank}, root=size - 1), comm.bcast([rank])
    yield comm.gather((rank, "a"), root=size - 1), comm.gather(rank), comm.allgather(np.arange(rank))
    yield comm.scatter([f"for {each}" for each in range(size)] if rank == 0 else None, root=0)
    yield comm.scatter([{each} for each in range(size)] if rank == size - 1 else None, size - 1)
    yield comm.alltoall([(rank, each) for each in range(size)])
    yield comm.reduce(rank + 1), comm.reduce(rank + 1, op=MPI.PROD, root=size - 1), comm.reduce([rank], MPI.SUM, 0)
    yield comm.allreduce(rank), comm.allreduce(np.float64(rank), op=MPI.MAX), comm.allreduce(np.arange(3) + rank)
    yield comm.allreduce(rank, MPI.MIN), comm.allreduce(rank, max), comm.allreduce(f"{rank}", operator.add)
    yield comm.allreduce((rank % 2, rank), op=MPI.MAXLOC), comm.allreduce(rank > 0, op=MPI.LAND)
    mutable = [rank]
    assert comm.bcast(mutable, root=rank * 0) is not mutable and comm.allgather(mutable)[rank] is not mutable
    yield comm.barrier(), comm.Barrier()


def buffers(comm):
    """What the calls of buffers leave in them."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for dtype, kind in (("f8", MPI.DOUBLE), ("i4", MPI.INT32_T), ("c16", MPI.C_DOUBLE_COMPLEX)):
        a = (np.arange(6).reshape(2, 3) + 10 * rank).astype(dtype)
        comm.Bcast(a, root=size - 1)
        yield a.copy(), comm.Bcast([a, kind], 0)
        a += rank
        total = np.empty_like(a)
        comm.Allreduce(a, total)
        yield total.copy()
        comm.Allreduce([a, kind], [total, kind], op=MPI.PROD)
        yield total.copy()
        comm.Allreduce(MPI.IN_PLACE, total, MPI.SUM)
        yield total.copy()
        root = comm.rank == size - 1
        comm.Reduce(a, total if root else None, op=MPI.SUM, root=size - 1)
        comm.Reduce(MPI.IN_PLACE if root else a, total if root else None, MPI.SUM, size - 1)
        yield total.copy() if root else None
        every = np.empty((size, 2, 3), dtype)
        comm.Allgather(a, every)
        yield every.copy()
        every[rank] = rank
        comm.Allgather(MPI.IN_PLACE, every)
        yield every.copy()
        comm.Gather([a, kind], every if rank == 0 else None, root=0)
        yield every.copy() if rank == 0 else None
        comm.Scatter(every if rank == 0 else None, a, root=0)
        yield a.copy()
        comm.Alltoall(every + rank, every)
        yield every.copy()
    number = np.array(rank)
    comm.Allreduce(MPI.IN_PLACE, number, op=MPI.MAX)
    flags = np.array([rank, 0, 1])
    for op in (MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR, MPI.MIN):
        found = np.empty_like(flags)
        comm.Allreduce(flags, found, op=op)
        yield found
    yield number


def parts(comm):
    """What splits of a communicator, and splits of these, do."""
    rank, size = comm.Get_rank(), comm.Get_size()
    part = comm.Split(rank % 2, -rank)
    yield part.Get_rank(), part.Get_size(), part.allgather(rank)
    inner = part.Split(key=rank)
    yield inner.rank, inner.allreduce(rank)
    first = comm.Split(0 if rank == 0 else MPI.UNDEFINED)
    yield bool(first), first.Get_size() if rank == 0 else None
    again = comm.Dup()
    yield again.rank, again.bcast(rank, size - 1)
    again.Free()


def results(comm):
    """All results of one rank."""
    return [*objects(comm), *buffers(comm), *parts(comm)]


def equal(first, second):
    """Whether two results are equal, in type and in value."""
    if isinstance(first, list | tuple):
        return type(first) is type(second) and len(first) == len(second) and all(map(equal, first, second))
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return type(first) is type(second) and first == second


def without_mpi4py(comm):
    """The operations that a program without mpi4py uses."""
    total = np.empty(2)
    comm.Allreduce(np.array([1.0, comm.rank]), total, np.maximum)
    comm.Reduce(total.copy(), total if comm.rank == 0 else None, np.add)
    return comm.allreduce(comm.rank, max), comm.reduce(2, operator.mul), total.tolist()


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    wanted = world.allgather(results(world))
    for on in ("auto", "threads"):
        found = rote.run(results, world.size, on=on)
        for rank in range(world.size):
            for number, pair in enumerate(zip(wanted[rank], found[rank], strict=True)):
                assert equal(*pair), (on, rank, number, *pair)
    assert rote.run(without_mpi4py, world.size) == rote.run(without_mpi4py, world.size, on="threads")
    if world.rank == 0:
        print(f"{len(wanted[0])} results on {world.size} ranks", file=sys.stdout)
