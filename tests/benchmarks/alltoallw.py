"""The swap of slabs by one `Alltoallw` of subarrays, as Dalcin, Mortensen and Keyes (2019), listings 2 and 3, have it.

`rote bench --moves` measures Rote against it. Alone, it prints the seconds of a swap per round, the most of any rank:

    mpiexec -n 2 python tests/benchmarks/alltoallw.py 256x256x256 c16 ROUNDS
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI
from mpi4py.util import dtlib

__all__ = ["Swap"]

Array = npt.NDArray[Any]


class Swap:
    """From blocks of mode 0 to blocks of mode 1; the datatypes are made once."""

    def __init__(self, comm: MPI.Intracomm, shape: Sequence[int], dtype: npt.DTypeLike) -> None:
        n0, n1, *rest = shape
        rank, ranks = comm.Get_rank(), comm.Get_size()
        rows, columns = (self.ends(n, ranks) for n in (n0, n1))
        self.comm = comm
        self.before = (rows[rank + 1] - rows[rank], n1, *rest)
        self.after = (n0, columns[rank + 1] - columns[rank], *rest)
        element = dtlib.from_numpy_dtype(dtype)
        self.sends = [self.subarray(element, self.before, 1, columns[r], columns[r + 1]) for r in range(ranks)]
        self.receives = [self.subarray(element, self.after, 0, rows[r], rows[r + 1]) for r in range(ranks)]
        self.one_each = ([1] * ranks, [0] * ranks)

    @staticmethod
    def ends(extent: int, parts: int) -> list[int]:
        """Where balanced blocks begin and end: the first ones hold one more."""
        return [part * (extent // parts) + min(part, extent % parts) for part in range(parts + 1)]

    @staticmethod
    def subarray(element: MPI.Datatype, shape: tuple[int, ...], mode: int, start: int, stop: int) -> MPI.Datatype:
        """The part of a block between two indices of a mode; nothing, where that is empty."""
        part = [stop - start if m == mode else n for m, n in enumerate(shape)]
        if 0 in part:
            return element.Create_contiguous(0).Commit()
        return element.Create_subarray(shape, part, [start * (m == mode) for m in range(len(shape))]).Commit()

    def __call__(self, source: Array, target: Array) -> None:
        """Move a block of shape `before` into one of shape `after`. Collective."""
        self.comm.Alltoallw([source, self.one_each, self.sends], [target, self.one_each, self.receives])

    def free(self) -> None:
        """Free the datatypes."""
        for datatype in (*self.sends, *self.receives):
            datatype.Free()


def main(points: str, dtype: str, rounds: str) -> None:
    """Time it."""
    comm = MPI.COMM_WORLD
    swap = Swap(comm, [int(n) for n in points.split("x")], dtype)
    source, target = np.zeros(swap.before, dtype), np.zeros(swap.after, dtype)
    for number in range(int(rounds) + 1):  # the first one warms up
        comm.Barrier()
        start = MPI.Wtime()
        swap(source, target)
        seconds = comm.allreduce(MPI.Wtime() - start, MPI.MAX)
        if comm.Get_rank() == 0 and number:
            print(f"{seconds:.9g}")
    swap.free()


if __name__ == "__main__":
    main(*sys.argv[1:])
