"""Tensors from the slices that ranks hold: layout and grid are found again, or all ranks are told why there is none."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from cases import all_layouts
from hypothesis import given, settings
from hypothesis import strategies as st
from launch import RANKS, mpirun
from layout.definition import held as brute
from marks import examples
from strategies import distributions

import rote
from rote import DistTensor
from rote.errors import LayoutError
from rote.layout.refine import as_slices
from rote.layout.slices import as_runs, find_layout


def find_distribution(shape, held):
    """The distribution of blocks that are runs."""
    layout, grid = find_layout(shape, held)
    return layout.on(shape, grid)


def runs_of(dist):
    return [as_runs(as_slices(dist, rank), dist.shape) for rank in range(dist.grid.size)]


@pytest.mark.parametrize("grid", [(1,), (3,), (4,), (2, 2), (2, 3)])
def test_every_layout_of_slices_is_found(grid):
    """Law: the distribution that is found of the slices of a distribution has its index sets, on every rank.

    For every layout whose blocks are slices: all kinds, refinements, replicas, roots, empty ranks.
    """
    count = 0
    for shape in ((), (0,), (3,), (4,), (7,), (3, 2))[: 6 if prod(grid) < 5 else 4]:
        for layout in all_layouts(shape, grid, rest=("replicated", "rooted")):
            dist = layout.on(shape, grid)
            try:
                runs = runs_of(dist)
            except LayoutError as error:
                assert "redistribute" in str(error)
                continue
            found = find_distribution(shape, runs)
            for rank, lists in enumerate(brute(found.layout, shape, found.grid.shape)):
                assert lists == brute(layout, shape, grid)[rank], (dist, found, rank)
            count += 1
    assert count > 20


@settings(max_examples=examples(25))
@given(distributions())
def test_slices_say_the_block(dist):
    """Law: `whole[x.slices()]` is `x.local`, and `from_slices` of both is the tensor again; else both are refused."""
    array = np.arange(prod(dist.shape)).reshape(dist.shape)

    def program(comm):
        x = DistTensor.from_global(array, dist.layout, comm, dist.grid)
        try:
            slices = x.slices()
        except LayoutError:
            slices = None
        if any(one is None for one in comm.allgather_object(slices)):
            return False
        if dist.shape:
            np.testing.assert_array_equal(array[slices], x.local)
        y = DistTensor.from_slices(x.local, slices, x.shape, comm)
        assert y.distribution.index_sets(comm.rank) == x.distribution.index_sets(comm.rank)
        assert np.shares_memory(y.local, x.local) or not x.local.size
        np.testing.assert_array_equal(y.to_global(), array)
        return True

    rote.run(program, dist.grid.size)


def parts(n, p):
    """Balanced parts of n, as mpi4py-fft and FFTW make them."""
    ends = [sum(n // p + (c < n % p) for c in range(k)) for k in range(p + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


@settings(max_examples=examples(400))
@given(st.data())
def test_decompositions_of_others(data):
    """Blocks of any grid, its modes in any order over the modes of the tensor, with idle ranks that say (0:0, 0:0).

    As of mpi4py-fft (balanced, C order, one mode whole), 2DECOMP (Fortran order), or of cuts given freely.
    """
    order = data.draw(st.integers(1, 3))
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=order, max_size=order)))
    grid = tuple(data.draw(st.lists(st.integers(1, 3), min_size=order, max_size=order)))
    turns = data.draw(st.permutations(range(order)))
    cut = [parts(n, p) for n, p in zip(shape, grid, strict=True)]
    for mode in range(order):
        if data.draw(st.booleans()):
            ends = sorted(
                data.draw(st.lists(st.integers(0, shape[mode]), min_size=grid[mode] - 1, max_size=grid[mode] - 1))
            )
            cut[mode] = [slice(a, b) for a, b in zip([0, *ends], [*ends, shape[mode]], strict=True)]
        elif data.draw(st.booleans()):
            cut[mode] = [slice(c, None, grid[mode]) for c in range(grid[mode])]
    zeros = data.draw(st.booleans())
    held = []
    for at in product(*(range(grid[mode]) for mode in turns)):
        where = dict(zip(turns, at, strict=True))
        slices = tuple(cut[mode][where[mode]] for mode in range(order))
        runs = as_runs(slices, shape)
        held.append(as_runs((slice(0, 0),) * order, shape) if zeros and any(n == 0 for _, n, _ in runs) else runs)
    found = find_distribution(shape, held)
    for rank, runs in enumerate(held):
        want = [list(range(a, a + n * d, d)) for a, n, d in runs]
        lists = [index.tolist() for index in found.indices(rank)]
        assert lists == want or (not all(want) and not all(lists)), (found, rank)


def test_idle_ranks_that_say_nothing_are_found_their_place():
    """Of 3 x 2 ranks four are idle, and what all but two hold says nothing of the order in which ranks lie."""
    idle = (slice(0, 0), slice(0, 0))
    slices = [idle, (slice(0, 1), slice(0, 1)), (slice(1, 2), slice(0, 1)), idle, idle, idle]
    held = [as_runs(one, (2, 1)) for one in slices]
    found = find_distribution((2, 1), held)
    assert [found.local_shape(rank) for rank in (1, 2)] == [(1, 1), (1, 1)]
    assert [found.indices(rank)[0].tolist() for rank in (1, 2)] == [[0], [1]]
    assert all(0 in found.local_shape(rank) for rank in (0, 3, 4, 5))


@pytest.mark.parametrize("shape", [*product((1, 2), repeat=3)], ids=str)
def test_blocks_of_every_small_grid_are_found(shape):
    """Law: ranks on any grid up to 3 x 3 x 3 are found their blocks, where the idle ones say nothing of their place."""
    for grid in product((1, 2, 3), repeat=3):
        cut = [parts(n, p) for n, p in zip(shape, grid, strict=True)]
        slices = list(product(*cut))
        idle = [any(one.start == one.stop for one in each) for each in slices]
        given = [(slice(0, 0),) * 3 if none else each for each, none in zip(slices, idle, strict=True)]
        found = find_distribution(shape, [as_runs(each, shape) for each in given])
        for rank, (each, none) in enumerate(zip(slices, idle, strict=True)):
            held = [index.tolist() for index in found.indices(rank)]
            assert not all(held) if none else held == [list(range(one.start, one.stop)) for one in each], (grid, found)


def boxes(*ends):
    """Slices of boxes in two modes, each given by its four ends."""
    return [(slice(a, b), slice(c, d)) for a, b, c, d in ends]


GONE = {
    "gap": (boxes((0, 2, 0, 4), (3, 4, 0, 4)), "gap: together they hold 12 of 16"),
    "overlap": (boxes((0, 3, 0, 4), (2, 4, 0, 4)), "ranks 0 and 1 overlap"),
    "strided overlap": ([(slice(0, 4, 2), slice(None)), (slice(0, 4), slice(None))], "ranks 0 and 1 overlap"),
    "bricks": (boxes((0, 2, 0, 4), (2, 4, 0, 1), (2, 4, 1, 4), (0, 0, 0, 0)), "no grid"),
    "rank order": (boxes((0, 2, 0, 2), (2, 4, 2, 4), (0, 2, 2, 4), (2, 4, 0, 2)), "row-major"),
    "digits in another order": (boxes(*((a, a + 1, 0, 4) for a in (0, 2, 1, 3))), ""),
    "line order": (boxes(*((a, a + 1, 0, 4) for a in (0, 2, 3, 1))), "begin at 0, 2, 3, 1 in the order of the ranks"),
}


@pytest.mark.parametrize(("slices", "says"), GONE.values(), ids=GONE)
def test_all_ranks_are_told_why_there_is_no_layout(slices, says):
    """A gap, an overlap, bricks, ranks in another order: the same error on all; digits in another order are found."""

    def program(comm):
        mine = slices[comm.rank]
        local = np.zeros((4, 4))[mine]
        try:
            return str(DistTensor.from_slices(local, mine, (4, 4), comm).layout)
        except LayoutError as error:
            return str(error).partition("raised on")[0]

    answers = set(rote.run(program, len(slices)))
    assert len(answers) == 1
    (answer,) = answers
    assert says in answer and ("no layout gives these blocks" in answer) == bool(says), answer


def test_one_rank_that_errs_is_told_to_all():
    """A block of another shape than its slices, a slice that is none, backwards, too few: refused on all ranks."""
    good = (slice(0, 4), slice(0, 4))
    for wrong, says in (
        ((good, (3, 4)), r"rank 1 gives a block of \(3, 4\), but its slices are of \(4, 4\)"),
        (((slice(4, None, -1), slice(0, 4)), (4, 4)), "backwards"),
        (((slice(0, 4),), (4, 4)), "2 modes, not 1 slices"),
        (((0, slice(0, 4)), (4, 4)), "tuple of slices"),
        (((slice(0.5, 4), slice(0, 4)), (4, 4)), "no slice of integers"),
    ):

        def program(comm, wrong=wrong):
            slices, shape = wrong if comm.rank == 1 else (good, (4, 4))
            DistTensor.from_slices(np.zeros(shape), slices, (4, 4), comm)

        with pytest.raises(LayoutError, match=says):
            rote.run(program, 2)


def test_no_slices():
    """Blocks of views, contributions and several tiles are no slices; the error says what to do."""
    for text, grid in (("(a c=2) b: [(0),(),()]", (2,)), ("[(0:cyclic(2)),()]", (2,)), ("[(0),()]+(1)", (2, 2))):
        with pytest.raises(LayoutError, match="redistribute to plain blocks"):
            as_slices(rote.parse(text).on((8, 3), grid), 0)


def test_the_search_does_not_grow_with_the_tensor():
    """A tensor of 2**50 elements on 1,024 ranks costs what its ranks and modes cost."""
    dist = rote.parse("block[(1),(0),(2:cyclic)]").on((2**20 + 1, 2**15, 2**15), (16, 8, 8))
    assert find_distribution(dist.shape, runs_of(dist)) == dist


FOREIGN = """
import numpy as np
from mpi4py import MPI
import rote

comm = MPI.COMM_WORLD
whole = np.arange(512.0).reshape(8, 8, 8)
grid = MPI.Compute_dims(comm.size, 2)
cart = comm.Create_cart(grid)
at = cart.Get_coords(comm.rank)
for order in ((0, 1), (1, 0), (1, 2), (2, 0)):  # pencils, as a transform of others leaves them, one after the other
    slices = [slice(0, 8)] * 3
    for mode, c, p in zip(order, at, grid):
        slices[mode] = slice(8 * c // p, 8 * (c + 1) // p)
    x = rote.DistTensor.from_slices(whole[tuple(slices)].copy(), tuple(slices), whole.shape, comm)
    np.testing.assert_array_equal(x.to_global(), whole)
    np.testing.assert_array_equal(whole[x.slices()], x.local)
if comm.rank == 0:
    print("found")
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("job", RANKS[-1:], indirect=True)
def test_blocks_of_another_program(job):
    """On MPI ranks, pencils of all alignments, also those whose blocks have equal shapes, hold the right elements."""
    done = job.run(FOREIGN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "found\n", ""), done.stderr


def test_a_rank_copies_its_part_of_a_file_alone():
    """A large array in another byte order, as a mapped file may be, is not made into one of this order as a whole."""
    done = mpirun(
        4,
        """
import tracemalloc
import numpy as np
from rote import DistTensor

whole = np.memmap("volume.raw", ">f8", "w+", shape=(64, 64, 64), order="F")
DistTensor.from_global(whole, "block[(),(),(0)]")
tracemalloc.start()
x = DistTensor.from_global(whole, "block[(0),(),()]")
assert tracemalloc.get_traced_memory()[1] < 0.75 * whole.nbytes and x.dtype.isnative
""",
    )
    assert done.returncode == 0, done.stderr
