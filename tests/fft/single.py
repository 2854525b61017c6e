"""A program for any ranks: transforms whose numbers travel in single precision, by every method of exchange.

Under mpiexec: `python single.py some|rest`. In one process: `rote.run(check, ranks, (part,))`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute.methods import absent, on_nodes
from parts import share
from same_bits import REQUESTS, grid_of

import rote
from rote import DistTensor
from rote.errors import PlanError
from rote.fft import FFT, fftn, ifftn, irfftn, rfftn
from rote.runtime.exchange.registry import METHODS

UNIT = 2.0**-24
DOUBLE = [(shape, dtype, *more) for shape, dtype, *more in REQUESTS if dtype in ("f8", "c16")]
DOUBLE += [((12, 10, 8), "f8", "pencil", 2, {"norm": "ortho"}), ((16, 36, 3), "c16", "volumetric", 1, {})]
SMALL = (12, 10, 8), "c16", "slab", 1, {"resample": (1, 10, 8)}  # what arrives has no room where the result will be


def norm_of(array):
    """The 2-norm of all its elements."""
    return float(np.linalg.norm(array.reshape(-1)))


def check(comm, part, names=()):
    """Spectra of a part of the requests, and what they are of: as near as is said, alike by all that send messages.

    Returns how many were compared.
    """
    names = [name for name in names or METHODS if name != "alltoallw" and not absent(comm, name)]
    compared = 0
    for shape, dtype, algorithm, order, more in [SMALL, *share(DOUBLE, part, 1, comm.size)]:
        grid = grid_of(comm.size, order)
        if algorithm in ("cyclic", "volumetric") and any(shape[0] % p**2 for p in grid):
            continue
        rng = np.random.default_rng(1)
        array = rng.standard_normal(shape) + 1j * rng.standard_normal(shape) * (dtype == "c16")
        array = array.astype(dtype) if dtype == "c16" else array.real
        usual = dict(shape=shape, grid=grid, comm=comm, dtype=dtype, algorithm=algorithm, **more)
        f = FFT(**usual)
        x = DistTensor.from_global(array, f.input_layout, comm, f.grid)
        exact = f.forward(x)
        sent = {}
        for name in names:
            g = FFT(**usual, method=name, wire="f4")
            X = g.forward(x)
            y = g.backward(exact)
            what = f"{name}: {shape} {dtype} {algorithm} {more}"
            if name in ("alltoallv", "pipelined"):
                field = DistTensor.from_global(np.stack([array] * 2), g.empty_input((2,)).layout, comm, g.grid)
                pair = g.forward(field)
                assert pair.local[1].tobytes() == X.local.tobytes(), what
            if name == "shared":
                assert X.local.tobytes() == exact.local.tobytes(), what
                continue
            sent[X.local.tobytes(), y.local.tobytes()] = name
            difference = norm_of((X - exact).to_global())
            bound = len(g.moves) * UNIT * (1.01 if dtype == "c16" and not more else 2)  # of half or cut spectra, more
            assert difference <= bound * norm_of(exact.to_global()), what
            assert (difference > 0) == any(plan.cost.bytes for plan in g.moves), what
            assert norm_of((y - f.backward(exact)).to_global()) <= bound * norm_of(array), what
            assert [2 * plan.cost.bytes for plan in g.moves] == [plan.cost.bytes for plan in f.moves], what
            compared += 1
        assert len(sent) <= 1, f"{[*sent.values()]} differ: {shape} {dtype} {algorithm} {more}"
    return compared


def check_functions(comm):
    """The errors of fftn and its kin in 2-norm, on ranks that send; what is not of double precision is refused."""
    array = np.random.default_rng(0).random((6, 5, 4))
    x = DistTensor.from_global(array, "block[(0),(),()]", comm)
    X, half = fftn(x, wire="f4"), rfftn(x, wire="f4")
    try:
        fftn(x.astype("c8"), wire="f4")
    except PlanError as error:
        assert "and the elements are complex64" in str(error)
    else:
        raise AssertionError("single precision is not refused")
    pairs = (
        (X, np.fft.fftn(array)),
        (ifftn(X, wire="f4"), array),
        (half, np.fft.rfftn(array)),
        (irfftn(half, wire="f4"), array),
    )
    return [norm_of(y.to_global() - right) / norm_of(right) for y, right in pairs]


if __name__ == "__main__":
    part, world = sys.argv[1], rote.runtime.world()
    number = check(world, part)
    with on_nodes(2):
        several = world.split(0, world.rank)
        number += check(several, part, ("auto", "two-level"))
        errors = check_functions(several)
    assert min(errors) > 1e-10 and max(errors) < 1.5e-7
    print("compared", number)
