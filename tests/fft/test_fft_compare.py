"""Walks on ranks that need not exist: `compare` puts first what FFT takes, and counts without all pairs of ranks."""

from __future__ import annotations

import re
import tracemalloc
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rote
from rote.compiler import pairs as listed
from rote.compiler.movement import RECEIVES, SENDS, movement
from rote.errors import CommError
from rote.fft import FFT, compare
from rote.fft.families.choose import compared
from rote.units import in_bytes


@pytest.mark.parametrize("layout", [None, "block[(0),(1),()]", "[(),(0),(1)]"])
@pytest.mark.parametrize("dtype", ["c16", "f4"])
def test_the_first_is_what_an_fft_takes(layout: str | None, dtype: str) -> None:
    """On ranks that exist, "auto" takes the walk that `compare` puts first, and finds it as good without them."""
    shape, ranks = (12, 8, 10), 4
    taken = rote.run(lambda comm: FFT(shape, layout, comm=comm, dtype=dtype).walk, ranks)[0]
    every = compare(shape, ranks, layout, dtype=dtype)
    assert every[0].walk == taken
    assert all(choice.why for choice in every if choice.walk is None)
    machine = rote.Machine(step_time=1.0)
    slow = compare(shape, ranks, layout, dtype=dtype, machine=machine)[0]
    assert slow.walk is not None
    assert slow.price.moves == min(choice.price.moves for choice in every if choice.walk is not None and choice.plain)


def test_walks_are_compiled_for_the_machine_that_prices_them() -> None:
    """One machine all the way: the moves of each choice, of its inverse and of an FFT; none costs more than its price,
    for which each move is one step. On a slow network, one step of 63 messages gives way to several of fewer."""
    machine = rote.Machine(latency=5e-6)
    cube, line = (compare((64, 64, 64), 64, grid=grid, machine=machine) for grid in ((4, 4, 4), (64,)))
    for name, every in (("cyclic", cube), ("volumetric", cube), ("slab", line)):
        (walk,) = [choice.walk for choice in every if choice.name == name and choice.walk is not None]
        price = next(choice.price for choice in every if choice.walk is walk)
        moves = [*walk.moves, *walk.inverse().moves]
        assert {plan.machine for plan in moves} == {machine}
        for plan in moves:
            again = rote.compile(plan.source, plan.target, dtype=plan.dtype, machine=machine)
            assert (plan.steps, plan.cost) == (again.steps, again.cost)
        assert sum(plan.cost.seconds for plan in walk.moves) <= price.seconds

    def planned(comm: object, algorithm: str) -> set[rote.Machine]:
        f = FFT((8, 8, 8), comm=comm, algorithm=algorithm, machine=machine)
        return {plan.machine for plan in f.moves}

    for algorithm in ("auto", "slab", "volumetric"):
        assert rote.run(lambda comm, algorithm=algorithm: planned(comm, algorithm), 4) == [{machine}] * 4


def test_all_to_alls_cost_a_message_per_rank() -> None:
    """An FFT of one move among 512 ranks takes 511 latencies, as its messages do, and no fewer."""
    machine = rote.Machine(latency=1.0, byte_time=0, copy_time=0, reduce_time=0, step_time=0, fft_time=0)
    every = compare((1024, 1024), 512, grid=512, machine=machine)
    (slab,) = [choice for choice in every if choice.name == "slab"]
    assert (slab.price.moves, slab.price.seconds) == (1, 511.0)


@pytest.mark.parametrize(
    ("ranks", "dtype"),
    [(8192, "c16"), *(pytest.param(each, "f8", marks=pytest.mark.slow) for each in (8192, 32768))],
)
def test_rows_on_many_ranks_are_priced_without_a_table_of_pairs(
    ranks: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fused rows, of extents that ranks do not divide too, need no table of the square of the ranks: it is refused."""
    rote.clear_caches()
    monkeypatch.setattr(listed, "_LISTED", 2**22)
    every = compare((2048, 2048, 2048), ranks, grid=ranks, dtype=dtype)
    (choice,) = [each for each in every if each.name == "rows"]
    assert choice.walk is not None
    held = -(-2048 * 2048 * (1025 if dtype == "f8" else 2048) // ranks)
    assert 1.7 * held * 16 < choice.price.received <= 2.02 * held * 16


def test_a_grid_may_leave_one_extent_open() -> None:
    """-1 in a grid is found from the number of ranks; a grid of another size, and no ranks, are refused with a cure."""
    assert {str(choice.source.grid) for choice in compare((8, 8, 8), 8, grid=(2, -1))} == {"2x4"}
    with pytest.raises(rote.LayoutError, match=r"grid 2x2 has 4 ranks, not 8\nwrite ranks=4"):
        compare((8, 8, 8), 8, grid=(2, 2))
    with pytest.raises(rote.LayoutError, match=r"on 1 to 4194304 ranks, not 0$"):
        compare((8, 8, 8), 0)


@pytest.mark.parametrize(("points", "ranks"), [(32, 46_656), (30, 720_720), (64, 2**22)])
def test_more_grids_than_can_be_compared_are_refused_with_one_that_fits(points: int, ranks: int) -> None:
    """Numbers with many divisors have very many grids: the error names one, on which the FFT has a walk."""
    with pytest.raises(rote.PlanError, match="more than 8192 grids of up to 6 modes") as refused:
        compare((points,) * 6, ranks)

    named = re.search(r"such as ([0-9x]+),", str(refused.value))
    assert named
    grid = [int(extent) for extent in named[1].split("x")]
    assert prod(grid) == ranks
    assert any(choice.walk for choice in compare((points,) * 6, ranks, grid=grid))


def test_many_ranks_along_one_grid_mode_need_no_table_of_pairs() -> None:
    """A mode that stays where it is, on 2**14 coordinates, is counted in memory of their number, not of its square."""
    tracemalloc.start()
    try:
        compare((4096, 4096, 4096), 2**15, "block[(0),(1),()]", grid=(2, 2**14))
        assert tracemalloc.get_traced_memory()[1] < 2**26  # the square of 2**14 takes 2**31 bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["block", "cyclic(2)", "block(ceil)", "block(7,0,1)"])
@pytest.mark.parametrize("side", [SENDS, RECEIVES])
def test_what_stays_counts_as_it_does_by_pairs(kind: str, side: int) -> None:
    """Of a mode that both sides split alike, a rank gets and gives its own part, whichever peers count: by brute force
    over all pairs of ranks."""
    shape, grid = (8, 5, 6), (3, 2)
    ends = [rote.parse(f"[(0:{kind}),{modes}]").on(shape, grid) for modes in ("(1:block),()", "(),(1:block)")]
    numbers = np.arange(8 * 5 * 6).reshape(shape)
    held = [[{*numbers[np.ix_(*end.indices(rank))].reshape(-1).tolist()} for rank in range(6)] for end in ends]
    pairs = np.array([[len(mine & theirs) for theirs in held[1]] for mine in held[0]])
    np.fill_diagonal(pairs, 0)
    volumes = movement(ends[0], ends[1]).traffic(side)
    axis = 1 if side == SENDS else 0
    for counted, wanted in ((volumes.elements, pairs.sum(axis)), (volumes.messages, (pairs > 0).sum(axis))):
        assert_array_equal(np.broadcast_to(counted, grid).reshape(-1), wanted)


def test_times_per_grid_mode_leave_out_what_goes_by_levels() -> None:
    """A machine with one time per grid mode has none for the finer grids of walks by levels: these say so, the others
    are priced by it."""
    machine = rote.Machine(byte_time=(1e-9, 1e-10))
    every = compare((16, 16, 16), 32, grid=(8, 4), machine=machine)
    assert {choice.name for choice in every if choice.walk is not None} >= {"pencil"}
    (cyclic,) = (choice for choice in every if choice.name == "cyclic")
    assert cyclic.walk is None
    assert "2 times for" in cyclic.why


def test_where_not_all_layouts_are_looked_at_no_answer_claims_so() -> None:
    """`why_not` of a plan on very many ranks says that it has not looked at every plan; on few ranks it has."""
    text = "block[(0),(1),()] -> block[(0),(),(1)]"
    large = rote.compile(text, shape=(4096, 4096, 4096), grid=(128, 256))
    assert "of those that are looked at on so many ranks has a step allgather" in large.why_not("allgather")
    assert rote.compile(text, shape=(64, 64, 64), grid=(4, 4)).why_not("allgather").startswith("allgather over")
    assert (
        rote.compile("block[(0),()] -> block[(),(0)]", shape=(8, 8), grid=2)
        .why_not("reduce")
        .endswith("block[(),(0)] has a step reduce")
    )


@pytest.mark.parametrize(("shape", "dtype"), [((64, 60, 48), "f8"), ((30, 31, 33), "f8"), ((16, 16), "c16")])
def test_the_memory_of_a_choice_is_what_a_run_takes(shape: tuple[int, ...], dtype: str) -> None:
    """Law: `peak_bytes` of a walk is the most that input, spectrum and workspace take on a rank, by either transport.

    As text, a choice says this beside its price.
    """
    choices = [choice for choice in compare(shape, ranks=4, dtype=dtype) if choice.plain]

    def program(comm):
        memory = []
        for choice, method in product(choices, ("auto", "alltoallv")):
            source = choice.source
            f = FFT(shape, source.layout, source.grid, comm, dtype, algorithm=choice.name, method=method)
            blocks = f.empty_input(), f.empty_output()
            memory.append(f.workspace_bytes + sum(block.local.nbytes for block in blocks))
        return memory

    most = [max(of_ranks) for of_ranks in zip(*rote.run(program, 4), strict=True)]
    assert len(choices) >= 2
    assert most == [choice.peak_bytes for choice in choices for _ in range(2)]
    assert all(f" and {in_bytes(choice.peak_bytes)} of memory by a rank" in str(choice) for choice in choices)


@pytest.mark.parametrize("ranks", [64, 100, 128])
def test_ranks_that_hold_nothing_are_counted(ranks: int) -> None:
    """Law: `empty_ranks` is the most ranks whose block is empty in a stage, and a choice says so as text if there are
    some; so does the walk that is taken, beside those that are not."""
    choices = [choice for choice in compare((8, 8, 8), ranks) if choice.walk is not None]
    for choice in choices:
        dists = [stage.before for stage in choice.walk.stages]
        counts = [sum(0 in dist.local_shape(rank) for rank in range(ranks)) for dist in dists]
        assert choice.empty_ranks == max(counts)
        assert (f"; {max(counts)} of {ranks} ranks hold nothing" in str(choice)) == (max(counts) > 0)
        (line,) = [line for line in compared([choice], choice.walk) if line.startswith(f"  {choice.name}")]
        assert (f"; {max(counts)} of {ranks} ranks hold nothing" in line) == (max(counts) > 0)
    assert {choice.empty_ranks > 0 for choice in choices} == ({True, False} if ranks == 64 else {True})


def test_more_ranks_than_there_are() -> None:
    """A choice without a walk prints why; a transform on ranks that are not there says how to plan it."""
    none = compare((8, 8, 8), ranks=8)[-1]
    assert (none.walk, none.peak_bytes, str(none)) == (
        None,
        0,
        f"{none.name} on {none.source.grid}: none, for {none.why}",
    )
    with pytest.raises(CommError, match=r"rote\.fft\.compare\(shape, ranks=16\) needs none"):
        FFT((64, 64, 64), "block[(0),(1),()]", grid=(4, 4))


def test_a_machine_with_levels_ranks_families_on_grids_of_all_orders() -> None:
    """Times per grid mode suit grids of one order only; a network suits all."""
    choices = compare((64, 64, 64), 16, machine=rote.Machine.load("ethernet", 4))
    assert {choice.source.grid.order for choice in choices if choice.walk} == {1, 2, 3}


def test_walks_of_large_tensors_are_priced() -> None:
    """FFTs that no machine holds have exact figures."""
    (choice,) = [each for each in compare((2**33, 2**33), 2, layout="block[(0),()]") if each.name == "slab"]
    assert choice.price.received == 2**66 // 4 * 16 and choice.price.total == 2 * choice.price.received
