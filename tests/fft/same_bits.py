"""A program for any ranks: transforms by every method of exchange give the same bits, and are numpy's.

Under mpiexec: `python same_bits.py some|rest [method ...]`. In one process: `rote.run(check, ranks, (part, names))`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute.methods import absent
from parts import share

from rote import DistTensor
from rote.fft import FFT
from rote.runtime.exchange.registry import METHODS

# shape, dtype, algorithm, order of the grid, what else
REQUESTS = (
    ((12, 10, 8), "c16", "slab", 1, {}),
    ((13, 9, 10), "f8", "slab", 1, {}),
    ((12, 10, 8), "f4", "pencil", 2, {"norm": "ortho"}),
    ((36, 36), "c16", "cyclic", 1, {}),
    ((16, 36, 3), "c8", "volumetric", 1, {}),
    ((12, 10, 8), "c16", "rows", 1, {}),
    ((12, 10, 8), "c16", "slab", 1, {"s": (15, 10, 6), "axes": (0, 1, 2)}),
    ((12, 10, 8), "f8", "slab", 1, {"kinds": {0: "dct2", 1: "fft", 2: "rfft"}}),
)


def grid_of(ranks, order):
    """The ranks in a row, or in two columns if they can be."""
    return (ranks,) if order == 1 else (ranks // 2, 2) if ranks % 2 == 0 else (ranks, 1)


def check(comm, part, names=()):
    """Every request of a part by every method; how many were compared. Raises AssertionError if bits differ."""
    compared = 0
    names = [name for name in names or METHODS if not absent(comm, name)]
    for shape, dtype, algorithm, order, more in share(REQUESTS, part, 1, comm.size):
        blocks = None
        grid = grid_of(comm.size, order)
        if algorithm in ("cyclic", "volumetric") and any(shape[0] % p**2 for p in grid):
            continue
        for name in names:
            f = FFT(shape, grid=grid, comm=comm, dtype=dtype, algorithm=algorithm, method=name, **more)
            array = np.random.default_rng(1).standard_normal((*shape, 2)) @ (1, 1j)
            array = (array.real if f.walk.dtype.kind == "f" else array).astype(dtype)
            x = DistTensor.from_global(array, f.input_layout, comm, f.grid)
            X = f.forward(x)
            y = f.backward(X)
            found = [X.local.tobytes(), y.local.tobytes(), f.backward(f.forward(x)).local.tobytes()]
            assert blocks is None or found == blocks, f"{name} differs from {names[0]}: {shape} {dtype} {algorithm}"
            blocks = found
            compared += 1
        if not more:
            exact = np.fft.rfftn(array) if array.dtype.kind == "f" else np.fft.fftn(array)
            close = 1e-5 if np.dtype(dtype).char in "fF" else 1e-13
            assert np.abs(X.to_global().reshape(exact.shape) - exact).max() <= close * np.abs(exact).max()
    return compared


if __name__ == "__main__":
    from rote.runtime import world

    number = check(world(), sys.argv[1], sys.argv[2:])
    print("compared", number)
