"""Property tests of a layout of one's own, as a user writes them beside a program.

    pytest test_my_layout.py

The program under test subtracts the mean of every column, of a matrix that lies in tiles of two rows and two columns.
"""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import rote
from rote.testing import assert_equal, distributions

LAYOUT = rote.parse("cyclic(2)[(0),(1)]")

SHAPES = st.tuples(st.integers(1, 9), st.integers(0, 9))
GRIDS = st.sampled_from([(1, 1), (2, 2), (3, 1), (1, 4)])


def centred(x):
    """The matrix less the mean of each of its columns."""
    return x - x.mean(axis=0, keepdims=True)


@settings(deadline=None)
@given(SHAPES, GRIDS)
def test_every_element_has_one_owner(shape, grid):
    """The blocks of all ranks are the matrix, each element once."""
    dist = LAYOUT.on(shape, grid)
    owners = np.zeros(shape, int)
    for rank in range(prod(grid)):
        owners[np.ix_(*dist.indices(rank))] += 1
    assert (owners == 1).all()


@settings(deadline=None, max_examples=40)
@given(SHAPES, GRIDS)
def test_columns_are_centred(shape, grid):
    """Whatever the shape and the grid, the result is NumPy's, where the matrix lies."""
    whole = np.arange(float(prod(shape))).reshape(shape) ** 2

    def program(comm):
        x = rote.DistTensor.from_global(whole, LAYOUT, comm, grid)
        with rote.config(implicit="error"):  # nothing moves but the sums
            y = centred(x)
        assert y.layout == LAYOUT
        assert_equal(y, whole - whole.mean(axis=0, keepdims=True), rtol=1e-12)

    rote.run(program, prod(grid))


@settings(deadline=None, max_examples=20)
@given(distributions(SHAPES, GRIDS.map(rote.Grid)))
def test_any_tensor_comes_into_the_layout(dist):
    """From any layout that there is, by a plan that is proved."""
    rote.compile(dist, LAYOUT.on(dist.shape, dist.grid)).verify()
