"""Plans are cheapest: against an exhaustive search with its own layouts, steps and prices; and laws of the cost."""

from __future__ import annotations

import random
from itertools import islice, pairwise, permutations, product

import numpy as np
import pytest
from compiler.exhaustive_search import notation, world
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import PARTS, examples
from parts import share
from strategies import pairs

import rote
from rote.compiler.cost import at_least, at_least_in_two, duration
from rote.compiler.movement import movement
from rote.compiler.plan import Plan
from rote.compiler.rules import one_step
from rote.compiler.search import Search, layouts
from rote.errors import PlanError

ITEM = 16
MACHINES = {
    "default": rote.Machine(),
    "latency": rote.Machine(latency=1.0, byte_time=0, copy_time=0, reduce_time=0, step_time=0),
    "bytes": rote.Machine(latency=0, byte_time=1.0, copy_time=0, reduce_time=0, step_time=0),
    "mixed": rote.Machine(latency=2e-6, byte_time=3e-9, copy_time=1e-9, step_time=1e-7),
}
GRIDS = [(2, 2), (2, 3), *(pytest.param(grid, marks=pytest.mark.slow) for grid in ((2, 2, 2), (2, 3, 2)))]
SHAPES = [(9, 12), (3, 4, 6)]


def compare(shape, grid, machine):
    """Compile pairs of layouts and compare each with the exhaustive search; how many plans had several steps.

    All pairs; of more than 10,000, one in 97. A search that gives up says so, and finds a cheapest if it may go on.
    """
    exhaustive = world(shape, grid)
    least = exhaustive.least(ITEM, machine)
    dists = [rote.parse(notation(each)).on(shape, grid) for each in exhaustive.lists]
    several = 0
    for (a, source), (b, target) in islice(product(enumerate(dists), repeat=2), 0, None, 97 if len(dists) > 100 else 1):
        search = Search(source, target, ITEM, machine)
        walk = search.cheapest()
        if not search.exact:
            assert walk.seconds >= least[a, b] * (1 - 1e-9), (source, target, walk.steps)
            search = Search(source, target, ITEM, machine, most=10_000)
            walk = search.cheapest()
            assert search.exact
        assert walk.seconds == pytest.approx(least[a, b], rel=1e-9), (source, target, walk.steps)
        if machine == MACHINES["bytes"]:
            assert walk.seconds == movement(source, target).lower_bound * ITEM, (source, target, walk.steps)
        several += len(walk.steps) > 1
    return several


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_plan_is_a_cheapest(shape, grid, machine):
    """Pairs of layouts of order 2 and 3: the seconds of the exhaustive search; if bytes alone count, the bound."""
    several = compare(shape, grid, MACHINES[machine])
    if machine == "mixed" and len(grid) == 3:
        assert several, "where no plan has several steps, the search proves nothing"


def test_the_comparison_can_fail(monkeypatch):
    """A search that knows the direct step alone is found out."""
    monkeypatch.setattr(Search, "cheapest", Search.direct)
    with pytest.raises(AssertionError):
        compare((9, 12), (2, 2, 2), MACHINES["mixed"])


@pytest.mark.parametrize(
    "shape, grid",
    [((5, 7), (2, 2)), ((4, 6, 5), (2, 3)), pytest.param((6, 5), (2, 3, 2), marks=pytest.mark.slow)],
    ids=str,
)
def test_the_cost_is_a_distance(shape, grid):
    """cost(a, a) = 0, cost(a, c) <= cost(a, b) + cost(b, c) on all triples, and the bound never says too much."""
    machine = MACHINES["mixed"]
    dists = [rote.parse(notation(each)).on(shape, grid) for each in world(shape, grid).lists]
    number = range(len(dists))
    cost = np.array([[Search(a, b, ITEM, machine).cheapest().seconds for b in dists] for a in dists])
    steps = np.array([[duration(one_step(a, b), ITEM, machine).seconds if a != b else 0 for b in dists] for a in dists])
    bound = np.array([[at_least(movement(a, b), ITEM, machine) for b in dists] for a in dists])
    assert (np.diag(cost) == 0).all()
    assert (bound <= cost * (1 + 1e-12)).all(), "the bound is admissible"
    for b in number:
        assert (cost <= (cost[:, b, None] + cost[None, b, :]) * (1 + 1e-12)).all()
        assert (bound <= (steps[:, b, None] + bound[None, b, :]) * (1 + 1e-12)).all(), "the bound is consistent"


UNLIKE = {
    "slow mode": rote.Machine(latency=1e-9, byte_time=(5e-9, 1e-10), step_time=1e-9),
    "other slow mode": rote.Machine(latency=1e-9, byte_time=(1e-10, 5e-9), step_time=1e-9),
    "cache": rote.Machine(copy_time=1e-9, cache=20_000.0, cache_factor=4.0, step_time=1e-9),
}


@pytest.mark.parametrize("machine", [*MACHINES, *UNLIKE])
def test_no_plan_of_two_steps_is_below_the_bound(machine):
    """Law: two steps by way of any layout, also one that holds elements twice, take at least `at_least_in_two`.

    Grid modes may differ in their times, and blocks may lie in cache, before or after.
    """
    machine, decided = (MACHINES | UNLIKE)[machine], 0
    for shape, grid in (((64, 60), (2, 2)), ((7, 50, 3), (2, 3))):
        dists = [rote.parse(notation(each)).on(shape, grid) for each in world(shape, grid).lists]
        dists += [rote.parse(text).on(shape, grid) for text in ("block[(0,1)" + ",()" * (len(shape) - 1) + "]",)]
        for source, target in [*permutations(dists, 2)][::7]:
            bound = at_least_in_two(movement(source, target), ITEM, machine)
            direct = Search(source, target, ITEM, machine).direct()
            decided += direct.seconds <= bound
            for between in layouts(source, target)[0]:
                steps = one_step(source, between), one_step(between, target)
                if all(steps):
                    taken = sum(duration(step, ITEM, machine).seconds for step in steps)
                    assert bound <= taken * (1 + 1e-12), (source, between, target)
    assert decided or machine == MACHINES["latency"]  # latency alone: nothing is copied, and any plan may be as quick


def renamed(dist, names):
    """The same layout on the grid whose mode names[g] is mode g of this one."""
    text = notation([[names[e.grid_mode] for e in mode] for mode in dist.layout.modes])
    grid = [0] * len(names)
    for g, name in enumerate(names):
        grid[name] = dist.grid.shape[g]
    return rote.parse(text).on(dist.shape, grid)


@pytest.mark.parametrize("part", PARTS)
def test_grid_modes_have_no_names(part):
    """Renaming the grid modes, with their times, changes no cost, in any of the five ways there are."""
    shape, grid, rng = (6, 5), (2, 3, 2), random.Random(1)
    dists = [rote.parse(notation(each)).on(shape, grid) for each in world(shape, grid).lists]
    times = (1e-6, 3e-6, 9e-6), (1e-9, 5e-9, 2e-9)
    cases = [(names, *rng.sample(dists, 2)) for _ in range(3) for names in list(permutations(range(3)))[1:]]
    for names, a, b in share(cases, part, 8, of=3):
        there = [tuple(each[names.index(g)] for g in range(3)) for each in times]
        costs = [
            Search(*ends, ITEM, rote.Machine(latency, byte_time)).cheapest().seconds
            for ends, (latency, byte_time) in (((a, b), times), ((renamed(a, names), renamed(b, names)), there))
        ]
        assert costs[0] == pytest.approx(costs[1], rel=1e-9), (a, b, names)


def test_slow_directions_are_crossed_with_little():
    """Where one grid mode is slow, an all-gather goes over it first, while blocks are small."""
    machine = rote.Machine(latency=1e-9, byte_time=(1e-10, 1e-8), step_time=0)
    plan = rote.compile("[(0,1),()] -> [(),()]", shape=(64, 64), grid=(4, 4), machine=machine)
    slow_last = rote.compile("[(1,0),()] -> [(),()]", shape=(64, 64), grid=(4, 4), machine=machine)
    assert plan.steps[0].grid_modes == (1,) and slow_last.cost.seconds >= plan.cost.seconds


@settings(max_examples=examples(150))
@given(pairs(), st.sampled_from(sorted(MACHINES)))
def test_memory_is_honoured(ends, name):
    """Every point of the trade-off is the cheapest plan within its peak; below the last, an error says the least."""
    source, target = ends
    machine = MACHINES[name]
    if source.grid.size > 8 or len(source.shape) > 2:
        return
    search = Search(source, target, 8, machine)
    search.front()
    if search.exact:  # known once it has looked
        plans = rote.tradeoff(source, target, machine=machine)
        cheapest = rote.compile(source, target, machine=machine)
        assert plans[0].cost.seconds == pytest.approx(cheapest.cost.seconds, rel=1e-9)
        for fast, lean in pairwise(plans):
            assert fast.cost.seconds <= lean.cost.seconds and fast.cost.peak_bytes > lean.cost.peak_bytes
            within = rote.compile(source, target, machine=machine, max_bytes=fast.cost.peak_bytes - 1)
            assert within.cost.seconds == pytest.approx(lean.cost.seconds, rel=1e-9)
        least = plans[-1].cost.peak_bytes
        if least:
            with pytest.raises(PlanError, match=f"is {least}\n"):
                rote.compile(source, target, machine=machine, max_bytes=least - 1)


@given(pairs(), st.sampled_from(sorted(MACHINES)))
def test_a_plan_takes_the_steps_of_the_search(ends, name):
    """Law: what is shown here of the cheapest walk of a search holds for the plan that `compile` makes of it."""
    machine = MACHINES[name]
    plan = rote.compile(*ends, machine=machine)
    walk = Search(*ends, 8, machine).cheapest()
    assert (plan.steps, plan.machine) == (walk.steps, machine)
    assert plan.cost.seconds == pytest.approx(walk.seconds, rel=1e-9) and plan.cost.peak_bytes == 8 * walk.peak


@pytest.mark.parametrize("call", [rote.compile, rote.tradeoff], ids=lambda call: call.__name__)
@pytest.mark.parametrize("grids", [((3,), (3,)), ((2, 2), (4,))], ids=str)
def test_no_plan_is_made_without_its_proof(monkeypatch, call, grids):
    """Law: `compile` and `tradeoff` prove every plan, so that a test of what they made need not prove it again."""
    ends = [rote.parse(text).on((11, 17), grid) for text, grid in zip(("[(0),()]", "[(),(0)]"), grids, strict=True)]

    def refuse(plan):
        raise PlanError(f"not proved: {plan}")

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "verify", refuse)
        with pytest.raises(PlanError, match="not proved"):
            call(*ends)
    assert call(*ends)


def test_large_grids_take_the_normal_form():
    """Beyond the exact budget the plan says that it is the best found, and is never dearer than one step."""
    grid, shape = (2,) * 7, (16, 16, 16)
    plan = rote.compile("[(0,1),(2,3),(4,5,6)] -> block[(4,5,6),(0,1),(2,3)]", shape=shape, grid=grid)
    assert plan.optimality == "best found" and "best found" in plan.explain()
    assert rote.compile("[(0),()] -> [(),(0)]", shape=(4, 4), grid=2).optimality == "optimal"
    direct = duration(one_step(plan.source, plan.target), 8, plan.machine).seconds
    assert plan.cost.seconds <= direct


def test_why_not():
    """A plan says what the cheapest plan with another step costs more; it knows its own steps, and real names."""
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(64, 64), grid=4)
    assert plan.why_not("allgather").startswith("allgather over 0, slice over 0\n  about ")
    assert "(not " in plan.why_not("allgather") and "the plan has this step" in plan.why_not("alltoall")
    assert "no plan from" in plan.why_not("allreduce")
    with pytest.raises(PlanError, match="did you mean allgather"):
        plan.why_not("allgathr")
