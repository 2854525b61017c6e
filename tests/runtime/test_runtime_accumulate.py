"""The transpose of indexed moves: what was fetched by any lists of indices is added where it came from."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote.runtime.indexed import IndexedMove


@pytest.mark.parametrize(
    ("layout", "grid"),
    [("[(0),(1)]", (2, 2)), ("block[(0,1),()]", (2, 2)), ("[(0:cyclic(2)),()]", 4), ("[(0),()]|(1)", (2, 2))],
)
def test_accumulation_is_the_transpose(layout, grid):
    """Law: accumulation is `numpy.add.at` of all ranks' lists, backwards, repeated and with -1 among them."""
    rng = np.random.default_rng(1)

    def program(comm, shape, lists, values):
        dist = rote.parse(layout).on(shape, grid)
        move = IndexedMove(dist, lists[comm.rank], comm)
        block = np.ones(dist.local_shape(comm.rank), np.int64)
        move.accumulate(values[comm.rank], block)
        total = np.zeros([n + 1 for n in shape], np.int64)
        for each, added in zip(lists, values, strict=True):
            np.add.at(total, np.ix_(*each), added)
        held = dist.indices(comm.rank)
        assert np.array_equal(block, 1 + total[np.ix_(*held)])
        out = np.full(move.shape, 9)
        assert move(block, 3, out) is out and np.array_equal(out, move(block, 3))

    for _ in range(5):
        shape = tuple(rng.integers(1, 9, 2).tolist())
        lists = [[rng.integers(-1, n, rng.integers(0, 12)) for n in shape] for _ in range(4)]
        lists[0] = [np.arange(n)[::-1] for n in shape]
        values = [rng.integers(-9, 9, [len(each) for each in both]) for both in lists]
        rote.run(program, 4, (shape, lists, values))
