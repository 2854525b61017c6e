"""Tensors in layouts that other rooms define: of other libraries, of rounded blocks; and what no tensor is made of."""

from __future__ import annotations

import numpy as np
import pytest
from layout.integers import check_door
from layout.test_layout_rounded import GRID, NEW, SHAPE

import rote
from rote import Distribution, DistTensor
from rote.errors import LayoutError, RoteError


def test_blocks_of_a_distribution():
    """Law: `from_local` of a distribution wraps strided blocks, of Fortran order with a leading dimension, uncopied."""
    whole = np.arange(54.0).reshape(9, 6)

    def program(comm):
        desc, grid, order = (1, 0, 9, 6, 2, 2, 1, 0, 7), (2, 2), "column"
        dist = Distribution.from_scalapack(desc, grid, order)
        rows, columns = dist.local_shape(comm.rank)
        buffer = np.full(desc[8] * columns, -1.0)
        block = buffer.reshape(columns, desc[8]).T[:rows]
        block[...] = whole[np.ix_(*dist.indices(comm.rank))]
        x = DistTensor.from_local(block, dist, comm=comm)
        assert np.shares_memory(x.local, buffer) and x.local.strides == block.strides
        y = x.redistribute("block[(0,1),()]")
        y.redistribute(x.layout, out=x)
        assert np.array_equal(x.to_global(), whole) and (buffer == -1).sum() == buffer.size - block.size
        with pytest.raises(LayoutError, match="holds a block of"):
            DistTensor.from_local(block if comm.rank else block[:-1], dist, comm=comm)
        with pytest.raises(LayoutError, match="shape"):
            DistTensor.from_local(block, dist, (9, 7), comm)
        with pytest.raises(LayoutError, match="shape"):
            DistTensor.from_local(block, dist.layout, comm=comm)

    rote.run(program, 4)


def test_ranks_move_tensors_in_the_new_kinds():
    """In-process ranks hold after a redistribution what a tensor laid out there at once holds."""
    array = np.arange(35.0).reshape(SHAPE)

    def program(comm):
        x = rote.DistTensor.from_global(array, NEW[0], comm, GRID)
        same = True
        for text in (*NEW[1:6], NEW[0]):
            x = x.redistribute(text)
            same &= np.array_equal(x.local, rote.DistTensor.from_global(array, text, comm, GRID).local)
        return same and np.array_equal(x.to_global(), array)

    assert rote.run(program, ranks=6) == [True] * 6


DOORS = {
    "zeros": lambda n: DistTensor.zeros((4, n), "[(0),()]").shape,
    "zeros on a grid": lambda n: DistTensor.zeros((4, 2), "[(0),()]", grid=n).distribution,
}


@pytest.mark.parametrize("door", DOORS)
def test_only_integers_are_taken(door):
    """A bool, a float, a text is refused where a tensor is made; NumPy's integers are plain ones from there on."""
    check_door(DOORS[door], RoteError)


@pytest.mark.parametrize("dtype", ("f2", "U3", "M8[s]", "m8[s]", "O"))
def test_dtypes_that_do_not_move_are_refused_with_a_cure(dtype):
    """Half precision, texts, times and objects are refused wherever a tensor is made, and what to write is said."""
    for make in (
        lambda: rote.DistTensor.zeros((4, 6), "block[(0),()]", dtype=dtype),
        lambda: rote.DistTensor.from_global(np.zeros((4, 6), dtype), "block[(0),()]"),
    ):
        with pytest.raises(rote.PlanError, match=r"^Rote moves bool, .*, not .*\nconvert to one of these") as error:
            make()
        assert f"x.astype('{'i8' if dtype[0] in 'Mm' else 'f4'}')" in str(error.value)


@pytest.mark.parametrize(("layout", "shape"), [("[()]", (4,)), ("[()]", (0,)), ("[]", ())])
def test_tensors_move_on_a_grid_of_order_0(layout, shape):
    """Law: on one process without grid modes a tensor moves as on any, and its plan has a page."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    x = DistTensor.from_global(array, layout, grid=())
    assert np.array_equal(x.redistribute(layout).to_global(), array)
    assert np.array_equal(x.move_to(layout, grid=())().to_global(), array)
    assert rote.compile(x.distribution, x.distribution).to_html()
