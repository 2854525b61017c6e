"""A program for MPI ranks: moves of blocks that others read where they lie, those that are packed, and both at once.

Under mpiexec: `python segments.py NUMBER`, of transitions. Blocks of any size lie in segments for it.
"""

from __future__ import annotations

import os
import random
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import claims, moves

import rote
from rote.runtime import world
from rote.runtime.comm import segments
from rote.runtime.exchange import shared as processes
from rote.runtime.plans import bind


def placed(block, lasting):
    """A copy of a block, in a segment if it is to last."""
    copy = segments.empty(block.shape, block.dtype) if lasting else np.empty(block.shape, block.dtype)
    copy[...] = block
    return copy


def check_moves(comm, number):
    """The transitions of all methods, from blocks of which some ranks' lie in segments; results come to lie there."""
    draw, blocks_of, lasting = random.Random(comm.rank), moves.blocks_of, [0, 0]

    def some(source, dtype, seed):
        array, blocks = blocks_of(source, dtype, seed)
        segments.expect(blocks[comm.rank].nbytes)
        mine = blocks[comm.rank] = placed(blocks[comm.rank], draw.random() < 0.7)
        lasting[segments.address_of(mine) is not None] += mine.size > 0
        return array, blocks

    with patch.object(moves, "blocks_of", some):
        moves.check(comm, number, "shared")
    assert min(lasting) > 0 or not sum(lasting), lasting


def check_bound(comm, number):
    """Bound moves take what lies in the block by then, and bring what messages bring, bit for bit."""
    draw = random.Random(comm.rank)
    for seed, plan in enumerate(claims.plans(comm.size, number, seed=7)):
        _, blocks = moves.blocks_of(plan.source, plan.dtype, seed)
        mine = blocks[comm.rank]
        segments.expect(mine.nbytes)
        block = placed(mine, draw.random() < 0.7)
        shape = plan.target.local_shape(comm.rank)
        outs = [np.empty(shape, plan.dtype) for _ in range(2)]
        calls, by_messages = bind(plan, comm, "shared").bound(block, outs[0]), bind(plan, comm, "alltoallv")
        for _ in range(3):
            for call in calls:
                call()
            by_messages(block, outs[1])
            assert moves.same(*outs), f"{plan} of {plan.dtype}, rank {comm.rank}"
            block[...] = mine[..., ::-1] if mine.ndim else mine


def check_refused(comm):
    """Where one rank may not read the segments of others, all pack instead, in the same call and from then on."""
    for bound in (False, True):
        team, tried = comm.split(0, comm.rank), []
        plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(12, 10), grid=comm.size, dtype="f8")
        block = segments.empty(plan.source.local_shape(comm.rank), plan.dtype, lasting=True)
        block[...] = np.arange(block.size).reshape(block.shape) + 1000 * comm.rank

        def refuse(place, tried=tried):
            tried.append(place)
            raise PermissionError("refused by the test")

        program = bind(plan, team, "shared")
        with patch.object(segments, "reach", refuse if comm.rank == 1 else segments.reach):
            out = np.zeros(plan.target.local_shape(comm.rank))
            calls = program.bound(block, out) if bound else [partial(program, block, out)]
            for _ in range(3):
                for call in calls:
                    call()
        assert np.array_equal(out, bind(plan, comm, "alltoallv")(block))
        assert len(tried) == (comm.rank == 1), tried
        assert processes._REFUSED in team.cache


def check_lifetime(comm):
    """An owner may forget or change its block when the call returns, however long others take to read it."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(120, 10 * comm.size), grid=comm.size, dtype="f8")
    program, files, reach = bind(plan, comm, "shared"), [], segments.reach

    def late(place):
        time.sleep(0.02)
        return reach(place)

    for turn in range(12):
        whole = np.add.outer(1e3 * np.arange(120), np.arange(10 * comm.size)) + turn
        ends = [whole[np.ix_(*dist.indices(comm.rank))] for dist in (plan.source, plan.target)]
        block = placed(ends[0], True)
        with patch.object(segments, "reach", late if turn < 3 and comm.rank == comm.size - 1 else reach):
            out = program(block)
        block[...] = np.nan
        del block
        assert np.array_equal(out, ends[1]), turn
        files.append(len(os.listdir("/proc/self/fd")))
    assert files[5] == files[-1], files


def main(number):
    comm = world()
    with (
        patch.object(segments, "LEAST", 1),
        patch.object(segments, "_GRAIN", 64),
        patch.object(segments, "reach", side_effect=segments.reach) as reached,
    ):
        check_moves(comm, number)
        assert reached.call_count > number // 4 or comm.size == 1
        check_bound(comm, number)
        if comm.size > 1:
            check_refused(comm)
            check_lifetime(comm)
    print("as packed")


if __name__ == "__main__":
    main(int(sys.argv[1]))
