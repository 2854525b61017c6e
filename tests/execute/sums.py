"""A program for any ranks: sums and products of floats are rounded in rank order, by every method of exchange.

Under mpiexec: `python sums.py`. In one process: `rote.run(check, ranks)`.
"""

from __future__ import annotations

import sys
from functools import reduce
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from execute.methods import absent

import rote
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import bind

UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum}
OPS = (("sum", "f8"), ("sum", "c16"), ("sum", "f4"), ("prod", "f8"), ("max", "f8"))
SIZES = (7, 600, 90_000)  # every rank adds all; each a part; more than one tile of shared memory
TARGETS = ("[()]", "[()]|(0)", "block[(0)]", "[(0)]")  # allreduce, reduce and reduce_scatter
ON_GRID = ("[(),()]+(0,1) -> [(0),(1)]", "[(0),()]+(1) -> [(1),(0)]", "[(),()]+(0,1) -> [(),()]")


def contributions(plan, seed):
    """A block of every rank whose sum depends on the order; of maxima, one has a NaN."""
    draw = np.random.default_rng(seed)
    blocks = []
    for rank in range(plan.source.grid.size):
        shape = plan.source.local_shape(rank)
        block = draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 3, shape)
        if plan.dtype.kind == "c":
            block = block + 1j * draw.standard_normal(shape)
        blocks.append(block.astype(plan.dtype))
    if plan.source.layout.op == "max":
        blocks[0].flat[:1] = np.nan
    return blocks


def plans(ranks):
    """Reductions along one grid mode and along two, of floats of all kinds."""
    for size in SIZES:
        for target in TARGETS:
            for op, dtype in OPS if size == SIZES[1] else OPS[:2]:
                yield rote.compile(f"[()]+{op}(0) -> {target}", shape=size, grid=ranks, dtype=dtype)
    if ranks % 2 == 0:
        for text in ON_GRID:
            yield rote.compile(text, shape=(9, 10), grid=(ranks // 2, 2), dtype="f8")


def check(comm):
    """All methods give the bits of `simulate`, which are those of the definition. Returns how many plans they ran."""
    names = ["auto", *(name for name in METHODS if not absent(comm, name))]
    number = 0
    for number, plan in enumerate(plans(comm.size), 1):
        blocks = contributions(plan, number)
        right = rote.simulate.run(plan, blocks)
        if plan.source.grid.order == 1:
            whole = reduce(UFUNCS[plan.source.layout.op], blocks)
            wanted = rote.simulate.scatter(whole, plan.target)[comm.rank]
            assert right[comm.rank].tobytes() == wanted.tobytes(), f"simulate: {plan}"
        for name in names:
            found = bind(plan, comm, name)(blocks[comm.rank])
            assert found.tobytes() == right[comm.rank].tobytes(), f"rank {comm.rank}, by {name}: {plan}"
    return number


if __name__ == "__main__":
    here = rote.runtime.world()
    found = check(here.split(0, 0))
    if here.rank == 0:
        print(found)
