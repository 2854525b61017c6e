"""A program for any ranks: outputs that share memory with inputs, on the same rank or, in one process, on another.

Under mpiexec: `python overlaps.py`. In one process: `rote.run(check, ranks, (memory,))`.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from math import prod
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import methods
from layout import definition

import rote
from rote.runtime.copies import StridedCopy
from rote.runtime.ends import bound_without_overlap, may_overlap
from rote.runtime.plans import bind

# one step on all ranks, one on sub-grids, several steps, none, and reductions; each on a grid of order 2
MOVES = (
    ("block[(0,1),()]", "block[(),(0,1)]"),
    ("block[(0),(1),()]", "block[(0),(),(1)]"),
    ("[(0),(1)]", "[(1),(0)]"),
    ("block[(0),()]+(1)", "block[(),(0)]"),
    ("block[(0,1),()]", "block[(0,1),()]"),
    ("[()]+(0,1)", "[()]"),
)


def bound(comm, plan, method, block, out):
    """A move from a block to an output, either of which may share memory with the other."""
    program = bind(plan, comm, method)
    for call in bound_without_overlap(comm, program.bound, block, out, may_overlap(comm, block, out)):
        call()


def check(comm, memory=None, move=bound):
    """What comes out is the same where the output shares memory with the input, by every method. Returns how often.

    Args:
        memory: of all ranks of this process, which blocks are cut from in every order; this rank's own if None.
        move: takes a block to an output, as `bound` does.
    """
    done = 0
    for name in ("auto", *methods.METHODS):
        if name == "auto" or not methods.absent(comm, name):
            for here, there in MOVES:
                done += check_move(comm, memory, here, there, name, move)
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


def check_move(comm, memory, here, there, method, move=bound):
    """A plan brings to each place of an output what its target has, also where the output lies in some input."""
    grid = rote.Grid.of(comm.size, 2)
    order = len(rote.parse(here).modes)
    shape = (8, 9, 10)[:order] if order > 1 else (40,)
    plan = rote.compile(f"{here} -> {there}", shape=shape, grid=grid)
    array, blocks = definition.numbered(plan.source.layout, shape, grid.shape)
    mine = blocks[comm.rank].astype("d")
    wanted = definition.blocks(plan.target.layout, grid.shape, array)[comm.rank].astype("d")

    own = np.zeros(1 << 14, np.uint8) if memory is None else memory
    for turn, gap in places(comm, memory):
        block = cut(comm, own, mine.shape, "d", 0, 0)
        out = cut(comm, own, wanted.shape, "d", turn, gap)
        block[...] = mine
        comm.barrier()
        move(comm, plan, method, block, out)
        comm.barrier()
        assert np.array_equal(out, wanted), (comm.rank, method, here, there, turn, gap)
        comm.barrier()
    return 1


@contextmanager
def late(ranks):
    """Let rank 0 of several in one process be late with all that it reads."""
    bind_copy = StridedCopy.bound

    def bound_late(self, *ends):
        copy = bind_copy(self, *ends)

        def run():
            if ranks > 1 and rote.runtime.world().rank == 0:
                time.sleep(2e-5)
            copy()

        return run

    with patch.object(StridedCopy, "bound", bound_late):
        yield


if __name__ == "__main__":
    ranks = rote.runtime.world()
    number = check(ranks)
    if ranks.rank == 0:
        print(number)
