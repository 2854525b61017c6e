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
from execute.methods import on_nodes

import rote
from rote.fft import FFT
from rote.runtime.exchange.messages import Transfer
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import BoundPlan

SHORT = patch("rote.runtime.regions._LONG", 1)  # bytes of a run: every message of one view is sent as it leaves


class Packings:
    """The times that this rank packs messages while it is on."""

    def __init__(self):
        self.number = 0

    def __enter__(self):
        packing = Transfer.packing

        def packs(transfer, memory):
            self.number += 1
            return packing(transfer, memory)

        self._patch = patch.object(Transfer, "packing", packs)
        self._patch.start()
        return self

    def __exit__(self, *error):
        self._patch.stop()


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
        x = rote.DistTensor.from_function(lambda i, j, k: 100 * i + 10 * j + k, (13, 6, 10), before, comm)
        wanted = x.redistribute(after)
        assert x.redistribute(after, method="alltoallv").local.tobytes() == wanted.local.tobytes()
        plan = rote.compile(x.distribution, wanted.distribution, x.dtype)
        factor = np.arange(1, 1 + x.local.size).reshape(x.local.shape)
        scaled = [BoundPlan(plan, comm, name, (factor,), (3,))(x.local) for name in ("auto", "alltoallv")]
        assert np.array_equal(*scaled) and not np.array_equal(scaled[0], wanted.local)
    for before, after in overlaps.MOVES:
        overlaps.check_move(comm, None, before, after, "alltoallv")


def transforms(comm, shape, **known):
    """The spectrum and the way back by messages and by the usual method, and the times that were packed."""
    known |= {"comm": comm, "dtype": "c16"}
    f, g = (FFT(shape, "block[(0),(),()]", method=name, **known) for name in ("alltoallv", "auto"))
    x = rote.DistTensor.zeros(shape, f.input_layout, comm=comm, dtype="c16")
    x.local[...] = np.random.default_rng(comm.rank).standard_normal(x.local.shape)
    with Packings() as packings:
        spectrum = f.forward(x)
        back = f.backward(spectrum)
    assert spectrum.local.tobytes() == g.forward(x).local.tobytes()
    assert back.local.tobytes() == g.backward(spectrum).local.tobytes()
    return packings.number


if __name__ == "__main__":
    world = rote.runtime.world()
    numbers = [*map(sum, zip(*check_moves(int(sys.argv[1])), strict=True))]
    shapes = (32 * world.size, 32 * world.size, 32), (32, 32, 16)  # runs of 16 KiB and of 4
    numbers += [transforms(world, shape) for shape in shapes]
    with on_nodes(1):
        numbers.append(transforms(world.split(0, 0), shapes[0], machine=rote.Machine(latency=1.0)))
    if world.rank == 0:
        print(*numbers)
