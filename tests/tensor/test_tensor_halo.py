"""Ghost cells of any layout of blocks: what arrives, what it costs, its proof and its transpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from launch import RANKS
from tensor.halos import check_all, pick_case

import rote
from rote.compiler.halo import HaloPlan
from rote.compiler.verify.halo import Delivery, verify_deliveries
from rote.errors import LayoutError, PlanError

JOBS = [*(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 4)), 2, 3]


@pytest.mark.parametrize("ranks", RANKS)
def test_halos_are_those_of_the_whole_array(ranks):
    """Law: a halo is the slice of the whole array around the block, wrapped or filled; the transpose is its transpose.

    On layouts of blocks of all kinds, refined, uneven, empty, replicated, rooted; widths beyond a neighbour's block.
    """
    rote.run(check_all, ranks, ((0, 8),))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", (3, 6))
def test_more_halos(ranks):
    """The law above on many more cases."""
    rote.run(check_all, ranks, ((8, 56),))


@pytest.mark.mpi
@pytest.mark.parametrize("job", JOBS, indirect=True)
def test_halos_under_mpi(job):
    """The law above between processes."""
    done = job.run(Path(__file__).with_name("halos.py"), 20, 26)
    assert (done.returncode, done.stdout, done.stderr) == (0, "checked\n", ""), done.stderr


def test_a_wrong_plan_is_refused():
    """A cell that comes twice, never, from who has it not, or is another element; figures that are not so."""
    dist = rote.parse("block[(0),(1)]").on((6, 4), (2, 2))
    plan = HaloPlan(dist, ((1, 1), (1, 0)), (True, False), np.dtype("f8"))
    plan.verify()
    plan.verify(3)
    shape, good = plan.shape(1), plan.deliveries(1)

    def complaint(deliveries, size=shape):
        with pytest.raises(PlanError) as caught:
            verify_deliveries(dist, plan.widths, plan.periodic, {1: (size, tuple(deliveries))})
        return str(caught.value)

    first = good[0]
    assert "arrive 2 times, not 1" in complaint([*good, first])
    for missing in good:
        assert "arrive 0 times, not 1" in complaint([each for each in good if each is not missing])
    assert "but holds" in complaint([Delivery(3 - first.sender, first.places, first.indices), *good[1:]])
    shifted = ((first.indices[0][0] - 1, first.indices[0][1] - 1), first.indices[1])
    assert "is given" in complaint([Delivery(first.sender, first.places, shifted), *good[1:]])
    assert "the halo of rank 1 is of" in complaint(good, (9, 9))
    halos = {rank: (plan.shape(rank), plan.deliveries(rank)) for rank in range(4)}
    figures = tuple((cost.messages, cost.bytes // 8) for cost in (plan.cost, plan.accumulate_cost))
    verify_deliveries(dist, plan.widths, plan.periodic, halos, figures)
    for wrong in ((figures[0], (0, 1)), ((figures[0][0] + 1, figures[0][1]), figures[1])):
        with pytest.raises(PlanError, match="messages and elements"):
            verify_deliveries(dist, plan.widths, plan.periodic, halos, wrong)


def test_figures_of_plans():
    """Law: messages and bytes are the most that a rank receives, counted from its deliveries; seconds follow."""
    rng = np.random.default_rng(3)
    for ranks in (1, 2, 4, 6, 12):
        for _ in range(6):
            dist, widths, periodic = pick_case(rng, ranks)
            plan = HaloPlan(dist, tuple(widths), tuple(periodic), np.dtype("c8"))
            sizes = []
            for rank in range(ranks):
                others = [each for each in plan.deliveries(rank) if each.sender != rank]
                volume = sum(np.prod([b - a for a, b in each.places], dtype=int) for each in others)
                sizes.append((len({each.sender for each in others}), 8 * volume))
            assert (plan.cost.messages, plan.cost.bytes) == tuple(map(max, zip(*sizes, strict=True)))
            assert (plan.cost.seconds > 0) == (plan.cost.bytes > 0) == (plan.accumulate_cost.bytes > 0)
            plan.verify()


@pytest.mark.parametrize("layout", ["[(0),()]", "cyclic(2)[(0),()]", "(a b=2) c: [(0),(),()]", "[(),()]+(0)"])
def test_layouts_without_boxes_are_refused(layout):
    """Cyclic parts, views and contributions have no neighbours around them: all ranks are told what to do."""

    def program(comm):
        x = rote.DistTensor.zeros((8, 4), layout, comm)
        with pytest.raises(LayoutError, match="redistribute to plain blocks"):
            x.halo(1)
        return x.redistribute("block[(0),()]").halo(1).shape

    assert rote.run(program, 2) == [(6, 6)] * 2


@pytest.mark.parametrize("periodic", ["periodic", "pq", b"11", None, 2, 0.5, [True, "no"], [True, None]])
def test_what_is_no_truth_value_is_refused(periodic):
    """A text is not a list of its letters: the refusal shows it, and the right spelling for as many modes."""
    x = rote.DistTensor.zeros((8, 4), "block[(0),()]")
    for refused in (x.halo, x.halo_plan):
        with pytest.raises(LayoutError, match=r"(?s)not .*\nwrite periodic=True, or periodic=\[True, True\]") as error:
            refused(1, periodic)
        assert repr(periodic) in str(error.value)


def test_truth_values_of_any_type_say_which_modes_are_periodic():
    """Python's, NumPy's and 0 or 1, alone, in a list, a tuple or an array, mean the same."""
    x = rote.DistTensor.from_global(np.arange(12).reshape(4, 3), "block[(0),()]")
    expected = np.pad(np.pad(x.local, ((1, 1), (0, 0)), mode="wrap"), ((0, 0), (1, 1)))

    for periodic in ([True, False], (1, 0), np.array([True, False]), [np.True_, np.int8(0)]):
        assert x.halo(1, periodic).tolist() == expected.tolist()
    for periodic in (True, 1, np.True_):
        assert x.halo(1, periodic).tolist() == np.pad(x.local, 1, mode="wrap").tolist()


def test_the_second_halo_is_bound_already():
    """Law: a halo is bound once per layout, width and dtype; from then on a call is one exchange."""

    class Counting:
        def __init__(self, comm):
            self.comm, self.calls = comm, []

        def __getattr__(self, name):
            if name in ("alltoallv", "allgather_object", "barrier", "allgatherv", "bcast_in_place"):
                self.calls.append(name)
            return getattr(self.comm, name)

    def program(comm):
        counting = Counting(comm)
        x = rote.DistTensor.from_global(np.arange(9.0), "block[(0)]", comm)
        x._comm = counting
        calls = []
        for _ in range(2):
            counting.calls.clear()
            x.halo(2)
            calls.append(list(counting.calls))
        return calls

    for first, second in rote.run(program, 3):
        assert len(first) > 1 and second == ["alltoallv"]
