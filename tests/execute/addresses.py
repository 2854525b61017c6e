"""Blocks that come and go at the same addresses, as a function of a communicator: on threads and under mpiexec.

Under mpiexec: `python addresses.py`. Blocks of any size lie in segments for it.
"""

from __future__ import annotations

import random
import sys
import weakref
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_layout, pick_shape

from rote import DistTensor
from rote.fft import fftn
from rote.runtime import Comm, world
from rote.runtime.comm import segments
from rote.runtime.comm.cache import AtAddresses

TURNS = 6


def check_moves(comm: Comm) -> None:
    """New blocks where others have lain: each move brings what lies there by then, and holds neither of its blocks."""
    for seed in range(6):
        rng = random.Random(f"{comm.size} {seed}")
        grid, shape = pick_grid(rng.choice, comm.size), pick_shape(rng.choice)
        first, second = (pick_layout(rng.choice, shape, grid) for _ in range(2))
        for turn in range(TURNS):
            array = np.random.default_rng(seed + turn).random(shape)
            x = DistTensor.from_global(array, first, comm, grid)
            y = x.redistribute(second)
            np.testing.assert_allclose(y.to_global(), array, 1e-12, 0, err_msg=f"{first} -> {second}, turn {turn}")
            blocks = [weakref.ref(each.local) for each in (x, y)]
            del x, y
            comm.barrier()  # others have read
            assert [block() for block in blocks] == [None, None]


def check_transforms(comm: Comm) -> None:
    """So does each transform, though memory that ranks share has grown and lies elsewhere in between."""
    rng = np.random.default_rng(5)
    for turn in range(TURNS):
        for shape in ((6, 8, 5), (6, 8, 5), (4 + 2 * turn, 6, 7)):
            array = rng.random(shape) + 1j * rng.random(shape)
            X = fftn(DistTensor.from_global(array, "block[(0),(),()]", comm))
            spectrum = DistTensor.from_global(np.fft.fftn(array), X.layout, comm, X.grid)
            np.testing.assert_allclose(X.local, spectrum.local, rtol=0, atol=1e-10)
            again = fftn(DistTensor.from_global(array, "block[(0),(),()]", comm))
            assert again.local.tobytes() == X.local.tobytes()


def main(comm: Comm) -> int:
    """Make the checks; how often calls were there already."""
    made = [0, 0]
    prepare = AtAddresses.__call__

    def counted(self, arrays, make, state=None):
        def counts(lying):
            made[1] += 1
            return make(lying)

        made[0] += 1
        return prepare(self, arrays, counts, state)

    with patch.object(AtAddresses, "__call__", counted):
        check_moves(comm)
        check_transforms(comm)
    return made[0] - made[1]


if __name__ == "__main__":
    with patch.object(segments, "LEAST", 1), patch.object(segments, "_GRAIN", 64):
        again = main(world())
    if world().rank == 0:
        print("as new" if again else "nothing was prepared")
