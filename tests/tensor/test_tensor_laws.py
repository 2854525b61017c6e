"""DistTensor on in-process ranks and on MPI ranks, and its laws on layouts of any kind."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest
import tensors
from hypothesis import given
from marks import PARTS, make_checks, mpi_parts, parts_of
from strategies import distributions, pairs, pairs_across

import rote
from rote import DistTensor

PROGRAM = Path(__file__).with_name("tensors.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(tensors.CHECKS, 1, 2, 3, 4, 6, 8))
def test_on_ranks_of_this_process(ranks, check, args):
    """Tensors on in-process ranks do what they must."""
    rote.run(check, ranks, args)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ranks", (1, 2))
def test_lives_on_ranks_of_this_process(ranks, part):
    """8,000 tensors on in-process ranks leave nothing behind."""
    rote.run(tensors.check_lives, ranks, (part,))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("job", "part"),
    mpi_parts(),
    indirect=["job"],
)
def test_on_mpi_ranks(job, part):
    """Tensors on MPI ranks do too, and 30 or 300 communicators of the user's leave nothing."""
    make_checks(job, PROGRAM, tensors.CHECKS, part)


@pytest.mark.mpi
@pytest.mark.slow
def test_lives_on_mpi_ranks(mpirun):
    """8,000 tensors on two MPI ranks leave nothing behind."""
    done = mpirun(2, PROGRAM, "lives", timeout=150)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 checks on 2 ranks\n", "")


def numbers(shape):
    return np.arange(prod(shape), dtype="i8").reshape(shape) + 1


@given(distributions())
def test_global_local_global(dist):
    """from_global, from_function, from_local and to_global agree, whatever the view, the roots and what is partial."""
    array = numbers(dist.shape)

    def program(comm):
        x = DistTensor.from_global(array, dist.layout, comm, dist.grid)
        np.testing.assert_array_equal(x.to_global(), array)
        y = DistTensor.from_local(x.local, dist.layout, dist.shape, comm, dist.grid)
        np.testing.assert_array_equal(y.to_global(), array)
        weights = [prod(dist.shape[m + 1 :]) for m in range(len(dist.shape))]

        def function(*index):
            return sum((i * w for i, w in zip(index, weights, strict=True)), start=np.int64(1))

        f = DistTensor.from_function(function, dist.shape, dist.layout, comm, dist.grid)
        assert f.distribution == x.distribution == dist
        np.testing.assert_array_equal(f.local, x.local)

    rote.run(program, dist.grid.size)


@given(pairs())
def test_redistribution_is_the_definition(pair):
    """A redistributed tensor is the tensor laid out anew: block for block, or as a reduction if it is partial."""
    source, target = pair
    array = numbers(source.shape)

    def program(comm):
        x = DistTensor.from_global(array, source.layout, comm, source.grid)
        y = x.redistribute(target.layout)
        assert y.distribution == target
        np.testing.assert_array_equal(y.to_global(), array)
        if not target.partial:
            np.testing.assert_array_equal(
                y.local, DistTensor.from_global(array, target.layout, comm, target.grid).local
            )

    rote.run(program, source.grid.size)


@given(pairs_across())
def test_redistribution_to_another_grid_is_the_definition(pair):
    """The same from one grid to another over the same ranks: the tensor lies on the new grid."""
    source, target = pair
    array = numbers(source.shape)

    def program(comm):
        x = DistTensor.from_global(array, source.layout, comm, source.grid)
        y = x.redistribute(target.layout, grid=target.grid)
        assert y.distribution == target and y.grid == target.grid
        np.testing.assert_array_equal(y.to_global(), array)
        if not target.partial:
            want = DistTensor.from_global(array, target.layout, comm, target.grid)
            np.testing.assert_array_equal(y.local, want.local)

    rote.run(program, source.grid.size)


def test_constructors_of_a_class_give_its_tensors(tmp_path):
    """Law: every constructor of a class that inherits makes tensors of that class, on the same blocks."""

    class Field(rote.DistTensor):
        __slots__ = ()

    block, layout = np.arange(6.0).reshape(2, 3), "block[(0),()]"
    np.save(tmp_path / "field.npy", block)
    made = [
        Field.from_global(block, layout),
        Field.from_local(block, layout, (2, 3)),
        Field.from_slices(block, (slice(2), slice(3)), (2, 3)),
        Field.from_function(lambda i, j: 3.0 * i + j, (2, 3), layout),
        Field.load(tmp_path / "field.npy", layout),
    ]
    assert all(type(x) is Field and np.array_equal(x.local, block) for x in made)
    assert type(Field.empty(4, "[(0)]")) is Field and not Field.zeros(4, "[(0)]").local.any()
    assert type(Field.zeros(4, "[(0)]")) is Field


def test_a_wrong_element_is_found():
    """The comparisons can fail: one element on one rank that is off by one is an error."""

    def program(comm):
        x = DistTensor.from_global(tensors.index_array(), "block[(0),()]", comm)
        x.local[-1, -1] += comm.rank == 1
        tensors.same(x.to_global(), tensors.index_array())

    with pytest.raises(AssertionError, match="1 / 30"):
        rote.run(program, 2)
