"""Transforms of blocks that come and go at the same addresses: on threads and under mpiexec.

Under mpiexec: `python readdressed.py`. Blocks of any size lie in segments for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute.addresses import TURNS, recalled

from rote import DistTensor
from rote.fft import fftn
from rote.runtime import Comm, world


def check_transforms(comm: Comm) -> None:
    """Each brings what lies there by then, though memory that ranks share has grown and lies elsewhere in between."""
    rng = np.random.default_rng(5)
    for turn in range(TURNS):
        for shape in ((6, 8, 5), (6, 8, 5), (4 + 2 * turn, 6, 7)):
            array = rng.random(shape) + 1j * rng.random(shape)
            X = fftn(DistTensor.from_global(array, "block[(0),(),()]", comm))
            spectrum = DistTensor.from_global(np.fft.fftn(array), X.layout, comm, X.grid)
            np.testing.assert_allclose(X.local, spectrum.local, rtol=0, atol=1e-10)
            again = fftn(DistTensor.from_global(array, "block[(0),(),()]", comm))
            assert again.local.tobytes() == X.local.tobytes()


if __name__ == "__main__":
    again = recalled(world(), check_transforms)
    if world().rank == 0:
        print("as new" if again else "nothing was prepared")
