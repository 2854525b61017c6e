"""A program for any ranks: lists of tensors, redistributed together, against one by one.

Under mpiexec: `python lists.py`. In one process: `rote.run(check, ranks, (number,))`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases import pick_grid, pick_layout, pick_shape

import rote
from rote import DistTensor
from rote.errors import RoteError

DTYPES = ("f8", "c16", "i1", "?", "f4", "i8", "c8", "u2")


def some(comm, number, seed):
    """Tensors of any shapes, dtypes and layouts, some alike, in any order in memory; and layouts to bring them to."""
    choice = random.Random(seed)
    tensors, layouts = [], []
    while len(tensors) < number:
        shape, grid = pick_shape(choice.choice), pick_grid(choice.choice, comm.size)
        source, target = (pick_layout(choice.choice, shape, grid) for _ in range(2))
        dtype = choice.choice(DTYPES)
        copies, order = choice.choice((1, 1, 3)), choice.choice("CF")
        for copy in range(copies):
            dist = source.on(shape, grid)
            numbers = np.random.default_rng((comm.rank, copy)).integers(0, 100, dist.local_shape(comm.rank))
            tensors.append(DistTensor(numbers.astype(dtype, order=order), dist, comm))
            layouts.append(target)
    return tensors, layouts


def check(comm, number):
    """How many tensors lie after they went together as they do after they went one by one."""
    compared = 0
    for seed in range(number):
        tensors, layouts = some(comm, 6, seed)
        pairs = []
        for x, layout in zip(tensors, layouts, strict=True):
            try:
                pairs.append((x, layout, x.redistribute(layout)))
            except RoteError:
                continue  # max of complex numbers, say: all ranks refuse it
        before = [x.local.tobytes() for x, _, _ in pairs]
        for _ in range(2):
            together = rote.redistribute([x for x, _, _ in pairs], [layout for _, layout, _ in pairs])
            for (x, layout, alone), result in zip(pairs, together, strict=True):
                where = f"{x.distribution} {x.dtype} -> {layout}"
                assert (result.distribution, result.dtype) == (alone.distribution, alone.dtype), where
                assert result.local.shape == alone.local.shape, where
                assert result.local.tobytes() == alone.local.tobytes(), where
        assert before == [x.local.tobytes() for x, _, _ in pairs]
        compared += len(pairs)
    return compared


if __name__ == "__main__":
    from rote.runtime import world

    print("compared", check(world(), 24))
