"""Indexed moves: every rank fetches by global index, against NumPy's indexing of the whole array."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote.runtime.indexed import IndexedMove

LAYOUTS = [
    *[("block[(0),()]", 4), ("[(0),(1)]", (2, 2)), ("block[(),(0)]", 4), ("block[(0,1),()]", (2, 2))],
    *[("[(0:cyclic(2)),()]|(1@1)", (2, 2)), ("[(0),()]", (2, 2)), ("[(),()]|(0@3)", 4)],
]


@pytest.mark.parametrize(("layout", "grid"), LAYOUTS)
def test_any_lists_of_any_tensor(layout: str, grid: object) -> None:
    """Law: the result is `whole[numpy.ix_(*lists)]`, whatever each rank asks for, twice over, with fillings at -1."""
    rng = np.random.default_rng(0)

    def program(comm, shape, lists):
        whole = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
        dist = rote.parse(layout).on(shape, grid)
        block = whole[np.ix_(*dist.indices(comm.rank))]
        wanted = lists[comm.rank]
        move = IndexedMove(dist, wanted, comm)
        expected = np.pad(whole, [(0, 1)] * 2, constant_values=-5)[np.ix_(*wanted)]
        for factor in (1, 2):
            assert np.array_equal(move(factor * block, -5 * factor), factor * expected)
        return move.received

    for _ in range(6):
        shape = tuple(rng.integers(0, 9, 2))
        lists = [[rng.integers(-1, n, rng.integers(0, 12)) if n else np.full(2, -1) for n in shape] for _ in range(4)]
        assert len(set(rote.run(program, 4, (shape, lists)))) == 1


def test_nothing_travels_that_a_rank_has() -> None:
    """Law: elements that a rank holds are copied; it is known at once on all ranks whether any travels."""

    def program(comm):
        dist = rote.parse("block[(0)]").on(8, 2)
        (mine,) = dist.indices(comm.rank)
        own = IndexedMove(dist, [mine[::-1]], comm)
        other = IndexedMove(dist, [np.array([7])], comm)
        return own.received, own(mine.astype("d")).tolist(), other.received

    assert rote.run(program, 2) == [(0, [3.0, 2.0, 1.0, 0.0], 1), (0, [7.0, 6.0, 5.0, 4.0], 1)]
