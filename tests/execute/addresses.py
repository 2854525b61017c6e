"""Blocks that come and go at the same addresses, as a function of a communicator: on threads and under mpiexec.

Under mpiexec: `python addresses.py`. Blocks of any size lie in segments for it.
"""

from __future__ import annotations

import random
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_layout, pick_shape
from layout import definition

import rote
from rote.runtime import Comm, world
from rote.runtime.comm import segments
from rote.runtime.comm.cache import AtAddresses
from rote.runtime.plans import bind

TURNS = 6


def check_moves(comm: Comm) -> None:
    """New blocks where others have lain: each move brings what lies there by then, and holds neither of its blocks."""
    for seed in range(6):
        choice = random.Random(f"{comm.size} {seed}").choice
        grid, shape = pick_grid(choice, comm.size), pick_shape(choice)
        plan = rote.compile(*(pick_layout(choice, shape, grid).on(shape, grid) for _ in range(2)))
        for turn in range(TURNS):
            rng = np.random.default_rng(seed + turn)
            blocks = definition.contribute(plan.source.layout, shape, grid, rng)[1]
            blocks = [np.array(block, plan.dtype) for block in blocks]
            right = rote.simulate.run(plan, blocks)[comm.rank]
            block = blocks[comm.rank].copy()
            out = bind(plan, comm)(block)
            assert out.tobytes() == right.tobytes(), f"{plan}, turn {turn}"

            ends = [weakref.ref(end) for end in (block, out)]
            del block, out
            comm.barrier()  # others have read
            assert [end() for end in ends] == [None, None]


def recalled(comm: Comm, *checks: Callable[[Comm], None]) -> int:
    """Make checks of blocks of any size in segments; how often calls were there already."""
    made = [0, 0]
    prepare = AtAddresses.__call__

    def counted(self, arrays, make, state=None):
        def counts(lying):
            made[1] += 1
            return make(lying)

        made[0] += 1
        return prepare(self, arrays, counts, state)

    with (
        patch.object(segments, "LEAST", 1),
        patch.object(segments, "_GRAIN", 64),
        patch.object(AtAddresses, "__call__", counted),
    ):
        for check in checks:
            check(comm)
    return made[0] - made[1]


if __name__ == "__main__":
    again = recalled(world(), check_moves)
    if world().rank == 0:
        print("as new" if again else "nothing was prepared")
