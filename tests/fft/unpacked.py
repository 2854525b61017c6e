"""A program for MPI ranks: transforms whose messages leave a block as they lie there, and how often they are packed.

Under mpiexec: `python unpacked.py`. It prints what was counted on rank 0.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute.methods import on_nodes

import rote
from rote.fft import FFT
from rote.runtime.exchange.messages import Transfer


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
    shapes = (32 * world.size, 32 * world.size, 32), (32, 32, 16)  # runs of 16 KiB and of 4
    numbers = [transforms(world, shape) for shape in shapes]
    with on_nodes(1):
        numbers.append(transforms(world.split(0, 0), shapes[0], machine=rote.Machine(latency=1.0)))
    if world.rank == 0:
        print(*numbers)
