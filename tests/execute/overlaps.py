"""A program for any ranks: outputs that share memory with inputs, on the same rank or, in one process, on another.

Under mpiexec: `python overlaps.py`. In one process: `rote.run(check, ranks, (memory,))`.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import methods

import rote
from rote import DistTensor

# one step on all ranks, one on sub-grids, several steps, none, and reductions; each on a grid of order 2
MOVES = (
    ("block[(0,1),()]", "block[(),(0,1)]"),
    ("block[(0),(1),()]", "block[(0),(),(1)]"),
    ("[(0),(1)]", "[(1),(0)]"),
    ("block[(0),()]+(1)", "block[(),(0)]"),
    ("block[(0,1),()]", "block[(0,1),()]"),
    ("[()]+(0,1)", "[()]"),
)


def check(comm, memory=None):
    """What comes out is the same where the output shares memory with the input, by every method. Returns how often.

    Args:
        memory: of all ranks of this process, which blocks are cut from in every order; this rank's own if None.
    """
    done = 0
    for name in ("auto", *methods.METHODS):
        if name == "auto" or not methods.absent(comm, name):
            for here, there in MOVES:
                done += check_move(comm, memory, here, there, name)
    done += check_transforms(comm, memory)
    return done


def cut(comm, memory, shape, dtype, turn, gap):
    """A block in memory that all ranks cut, this rank's number `turn` places further on, `gap` items behind it."""
    everybody = memory is not None
    memory = np.zeros(1 << 14, np.uint8) if memory is None else memory
    each = len(memory) // (comm.size if everybody else 1) // 16 * 16
    start = each * ((comm.rank + turn) % comm.size) * everybody + gap * np.dtype(dtype).itemsize
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    return memory[start : start + nbytes].view(dtype).reshape(shape)


def places(comm, memory):
    """The turns and gaps of outputs that are tried; inputs have none."""
    return ((0, 0), (0, 1), (1, 0), (comm.size - 1, 2)) if memory is not None and comm.size > 1 else ((0, 0), (0, 3))


def check_move(comm, memory, here, there, method):
    grid = rote.Grid.of(comm.size, 2)
    order = len(rote.parse(here).modes)
    shape = (8, 9, 10)[:order] if order > 1 else (40,)
    whole = (np.arange(prod(shape)).reshape(shape) + 1.0) * 3
    own = np.zeros(1 << 14, np.uint8) if memory is None else memory
    for turn, gap in places(comm, memory):
        start = DistTensor.from_global(whole, here, comm, grid)
        want = start.redistribute(there, method=method).local.copy()
        comm.barrier()
        x = DistTensor(cut(comm, own, start.local.shape, "d", 0, 0), start.distribution, comm)
        target = start.redistribute(there).distribution
        out = DistTensor(cut(comm, own, want.shape, "d", turn, gap), target, comm)
        x.local[...] = start.local
        comm.barrier()
        assert x.redistribute(there, out=out, method=method) is out
        comm.barrier()
        assert np.array_equal(out.local, want), (comm.rank, method, here, there, turn, gap)
        comm.barrier()
    return 1


def check_transforms(comm, memory):
    own = np.zeros(1 << 14, np.uint8) if memory is None else memory
    done = 0
    for layout in ("block[(0),(),()]", "[(),(),()]"):
        for method in ("auto", "alltoallv"):
            f = rote.fft.FFT((4, 6, 5), layout, (comm.size,), comm, method=method)
            for turn, gap in places(comm, memory):
                values = np.random.default_rng(7).standard_normal((4, 6, 5)) + 0j
                first = DistTensor.from_global(values, layout, comm, (comm.size,))
                second = f.forward(first)
                for run, begin, end in ((f.forward, first, second), (f.backward, second, first)):
                    want = run(begin).local.copy()
                    comm.barrier()
                    x = DistTensor(cut(comm, own, begin.local.shape, "D", 0, 0), begin.distribution, comm)
                    out = DistTensor(cut(comm, own, want.shape, "D", turn, gap), end.distribution, comm)
                    x.local[...] = begin.local
                    comm.barrier()
                    assert run(x, out=out) is out
                    comm.barrier()
                    assert np.array_equal(out.local, want), (comm.rank, method, layout, turn, gap)
                    comm.barrier()
            done += 1
    return done


if __name__ == "__main__":
    ranks = rote.runtime.world()
    number = check(ranks)
    if ranks.rank == 0:
        print(number)
