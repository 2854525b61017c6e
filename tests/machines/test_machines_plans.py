"""Plans on machines with levels: their bounds hold where the grid changes, and levels decide which plan is cheapest."""

from __future__ import annotations

from itertools import product

import pytest

import rote
from rote.compiler.cost import at_least, duration
from rote.compiler.movement import movement
from rote.compiler.rules import one_step
from rote.compiler.search import Search
from rote.layout.grid import Grid
from rote.machines.machine import Machine
from rote.machines.network import Network

ITEM = 8
MACHINES = {
    "torus": Machine(0, 0, 0, 0, 0, network=Network("torus", byte_time=1.0, dims=(8, 4, 2), link_time=9.0)),
    "nodes": Machine(0, 0, 0, 0, 0, network=Network(ranks_per_node=2, near_byte_time=1e-6, byte_time=1.0)),
    "caches": Machine(0, 0, 1.0, 0, 0, cache=6000, cache_factor=8, network=Network(byte_time=0.5)),
    "groups": Machine(network=Network("fat tree", byte_time=1e-3, group=2, far_time=1.0, latency=1.0, far_latency=5.0)),
}
LAYOUTS = {
    (8,): ["block[(0),(),()]", "block[(),(0),()]", "[(),(),(0)]", "[(),(),()]"],
    (4, 2): ["block[(0),(1),()]", "block[(1),(0),()]", "[(),(0,1),()]", "[(),(1),(0)]", "[(),(1),()]"],
    (2, 4): ["block[(0),(1),()]", "[(0,1),(),()]", "block[(),(1),(0)]", "[(),(),(0)]"],
}


def ends(shape, grid):
    return [rote.parse(text).on(shape, grid) for text in LAYOUTS[grid]]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("one", "other"), [(a, b) for a in LAYOUTS for b in LAYOUTS if a != b])
def test_bounds_hold_where_the_grid_changes(one, other, name):
    """Law: at_least(a, c) <= duration(a -> b) + at_least(b, c), for b on the grid of a or on that of c."""
    machine, shape = MACHINES[name], (8, 16, 24)
    sources, targets = ends(shape, one), ends(shape, other)
    for a, c in product(sources, targets):
        for b in sources + targets:
            step = one_step(a, b)
            taken = duration(step, ITEM, machine).seconds if step else 0.0
            assert (
                at_least(movement(a, c), ITEM, machine)
                <= (taken + at_least(movement(b, c), ITEM, machine)) * (1 + 1e-9) + 1e-15
            )


@pytest.mark.parametrize("name", MACHINES)
def test_plans_are_as_cheap_as_any_two_steps(name):
    machine, shape = MACHINES[name], (8, 16, 24)
    for source, target in product(ends(shape, (4, 2)), repeat=2):
        plan = rote.compile(source, target, machine=machine)
        for between in Search(source, target, ITEM, machine)._all():
            steps = [one_step(source, between), one_step(between, target)]
            if None not in steps:
                two = sum(duration(step, ITEM, machine).seconds for step in steps)
                assert plan.cost.seconds <= two * (1 + 1e-9)


def test_ranks_of_a_node_make_the_mode_inside_it_cheap():
    """The same two moves along mode 0 and along mode 1: the order of ranks says which one is fast."""
    moves = ["block[(0),(1),()] -> block[(),(1),(0)]", "block[(0),(1),()] -> block[(0),(),(1)]"]
    profile = Machine.load("fat-tree").profile
    times = {}
    for order in ("block", "cyclic"):
        machine = Machine.of(profile, 8, 1, order)
        plans = [rote.compile(move, shape=(512,) * 3, grid=(8, 8), machine=machine) for move in moves]
        times[order] = [plan.cost.seconds for plan in plans]
    assert times["block"][1] < times["block"][0] and times["block"] == pytest.approx(times["cyclic"][::-1])


def test_ranks_of_a_node_share_its_injection():
    """A byte takes each of them longer than it takes a rank alone."""
    shared, alone = (Machine.load("ethernet", ranks).along(Grid((16,))).byte_time[0] for ranks in (4, 1))
    assert shared > 3 * alone
