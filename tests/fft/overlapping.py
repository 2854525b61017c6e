"""A program for any ranks: tensors and spectra that share memory with what they come from, on any rank of a process.

Under mpiexec: `python overlapping.py`. In one process: `rote.run(check, ranks, (memory,))`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import overlaps
from execute.overlaps import cut, places

import rote
from rote import DistTensor


def redistributed(comm, plan, method, block, out):
    """The move of `overlaps`, by tensors on the two blocks."""
    x, y = DistTensor(block, plan.source, comm), DistTensor(out, plan.target, comm)
    assert x.redistribute(plan.target.layout, out=y, method=method) is y


def check(comm, memory=None):
    """What comes out is the same where the output shares memory with the input. Returns how often; see `overlaps`."""
    return overlaps.check(comm, memory, redistributed) + check_transforms(comm, memory)


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
