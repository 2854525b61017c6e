"""A program for MPI ranks: messages that leave a block as they lie there, against those that are packed.

Under mpiexec: `python lying.py number`. It prints what was counted on rank 0.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import factors, moves, overlaps
from layout import definition

import rote
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import BoundPlan, bind

SHORT = patch("rote.runtime.regions._LONG", 1)  # bytes of a run: every message of one view is sent as it leaves
SWAPS = (
    ("block[(0),(),()]", "[(),(),(0)]"),
    ("[(),(),(0:cyclic(2))]", "block[(),(0),()]"),
    ("a b c: block[(0),(),()]", "c b a: block[(0),(),()]"),
)


def check_moves(number):
    """Random moves and factors are right whichever ranks pack and unpack.

    The number of steps on all ranks whose messages lay in the block, and did not; in the new block, and did not.
    """
    made, alltoallv = [], METHODS["alltoallv"]

    def bind(messages):
        made.append(alltoallv(messages))
        return made[-1]

    with SHORT, patch.dict(METHODS, {"alltoallv": bind}):
        comm = rote.runtime.world().split(0, 0)
        moves.check(comm, number, "alltoallv")
        factors.check(comm, number // 2, "alltoallv")
        check_swaps(comm)
    lie = [method._in_block is not None for method in made if sum(method.messages.sends)]
    land = [method._in_new_block is not None for method in made if sum(method.messages.receives)]
    return comm.allgather_object((sum(lie), len(lie) - sum(lie), sum(land), len(land) - sum(land)))


def check_swaps(comm):
    """Messages are right also with factors, and where the output is in the input."""
    for before, after in (*SWAPS, *(pair[::-1] for pair in SWAPS)):
        plan = rote.compile(f"{before} -> {after}", shape=(13, 6, 10), grid=comm.size)
        array, blocks = definition.numbered(plan.source.layout, plan.source.shape, plan.source.grid.shape)
        block = blocks[comm.rank].astype(plan.dtype)
        wanted = definition.blocks(plan.target.layout, plan.target.grid.shape, array)[comm.rank]
        assert np.array_equal(bind(plan, comm, "alltoallv")(block), wanted)

        factor = np.arange(1, 1 + block.size).reshape(block.shape)
        scaled = [BoundPlan(plan, comm, name, (factor,), (3,))(block) for name in ("auto", "alltoallv")]
        assert np.array_equal(*scaled) and not np.array_equal(scaled[0], wanted)
    for before, after in overlaps.MOVES:
        overlaps.check_move(comm, None, before, after, "alltoallv")


if __name__ == "__main__":
    world = rote.runtime.world()
    numbers = [*map(sum, zip(*check_moves(int(sys.argv[1])), strict=True))]
    if world.rank == 0:
        print(*numbers)
