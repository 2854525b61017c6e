"""Plans are cheapest among all walks over all layouts that can be written, by the prices of the compiler's steps."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise, permutations, product

import numpy as np
import pytest

import rote
from rote.compiler.cost import duration
from rote.compiler.rules import one_step
from rote.compiler.search import Search
from rote.machines.network import Network

ITEM = 8
MACHINES = {
    "latency": rote.Machine(latency=1e-5, byte_time=1e-12, copy_time=1e-12, reduce_time=1e-12, step_time=1e-6),
    "bytes": rote.Machine(latency=1e-9, byte_time=1e-6, copy_time=1e-7, reduce_time=1e-7, step_time=1e-9),
    "mixed": rote.Machine(latency=2e-6, byte_time=3e-9, copy_time=1e-9, step_time=1e-7),
    "torus": rote.Machine(step_time=0, network=Network("torus", byte_time=1.0, dims=(8, 4, 2), link_time=3.0)),
    "nodes": rote.Machine(network=Network(ranks_per_node=2, near_byte_time=1e-6, byte_time=1.0, latency=1e-5)),
}
ROUNDING = 1 + 1e-9


def texts(order, grid_order, kinds, roles):
    """Every layout in which each grid mode splits in one of the kinds, or is replicated, partial or rooted."""
    for chosen in product(("split", "", *roles), repeat=grid_order):
        split, partial, rooted = ([g for g, role in enumerate(chosen) if role == name] for name in ("split", "+", "|"))
        tail = "".join(
            f"{sign}({','.join(map(str, modes))})" for sign, modes in (("+", partial), ("|", rooted)) if modes
        )
        for row in permutations(split):
            for kind, cuts in product(product(kinds, repeat=len(row)), product(range(len(row) + 1), repeat=order - 1)):
                if list(cuts) == sorted(cuts):
                    entries = [f"{g}:{each}" for g, each in zip(row, kind, strict=True)]
                    lists = [",".join(entries[a:b]) for a, b in pairwise((0, *cuts, len(row)))]
                    yield f"[({'),('.join(lists)})]{tail}"


class World:
    """All layouts of a shape on a grid with these kinds and roles, and the time of the step between each two."""

    def __init__(self, shape, grid, kinds, roles):
        every = [rote.parse(text).on(shape, grid) for text in texts(len(shape), len(grid), kinds, roles)]
        self.dists = [*{dist.meaning: dist for dist in every}.values()]
        self.prices = {
            name: np.array([[self.price(a, b, name) for b in self.dists] for a in self.dists]) for name in MACHINES
        }

    @staticmethod
    def price(a, b, name):
        step = one_step(a, b)
        return 0.0 if step is None else duration(step, ITEM, MACHINES[name]).seconds

    def allowed(self, a, b, alone):
        """Which layouts have only the kinds and roles of the two ends: those of the grid mode if it is `alone`."""
        ends, grid = (doing(self.dists[a]), doing(self.dists[b])), self.dists[a].grid.shape
        changed = [g for g in range(len(grid)) if placed(self.dists[a], g) != placed(self.dists[b], g)]
        may = []
        for g in range(len(grid)):
            own, others = [end[g] for end in ends], [end[k] for end in ends for k in changed]
            may.append({"", *own, *(does for does in others if does != "+" and g in changed and not alone)})
        return [
            all(does in may[g] for g, does in enumerate(doing(dist))) or k in (a, b)
            for k, dist in enumerate(self.dists)
        ]

    def least(self, a, b, name, alone):
        """The time of a cheapest walk from layout a to layout b, by relaxing all steps until nothing gets cheaper."""
        allowed = self.allowed(a, b, alone)
        prices = self.prices[name][np.ix_(allowed, allowed)]
        best = self.prices[name][a][allowed]
        while True:
            shorter = (best[:, None] + prices).min(axis=0)
            if (shorter >= best).all():
                return best[sum(allowed[:b])]
            best = shorter


def doing(dist):
    """What each grid mode does: the kind in which it splits, the sign of its role, or "" if it is replicated."""
    signs = {"replicated": "", "partial": "+", "rooted": "|"}
    kinds = {split.grid_mode: str(split.kind) for mode in dist.splits for split in mode}
    return [kinds.get(g) or signs[role.name] for g, role in enumerate(dist.roles)]


def placed(dist, g):
    """The place of a grid mode's split, with its kind, or its role."""
    return [
        (m, k, split.kind) for m, mode in enumerate(dist.splits) for k, split in enumerate(mode) if split.grid_mode == g
    ] or dist.roles[g]


world = cache(World)
TWO = [("cyclic", "block"), ("+", "|")]
SMALL = [((13,), (2, 3), *TWO), ((4096,), (2, 4), *TWO)]
LARGE = [
    ((64, 60), (4, 2), *TWO),
    ((8, 9), (2, 2), *TWO),
    ((5, 3), (2, 3), *TWO),
    ((6, 5, 4), (2, 2), ("cyclic", "block"), ("+",)),
    ((64, 40, 30), (4, 3), ("block",), ("+", "|")),
    ((1000,), (2, 2, 3), ("cyclic",), ("+", "|")),
    ((64, 48), (2, 3, 2), ("block",), ("|",)),
    ((17, 12), (3, 2, 2), ("cyclic",), ("+",)),
]
WORLDS = [*SMALL, *(pytest.param(*each, marks=pytest.mark.slow) for each in LARGE)]
MOST = 64  # layouts: of more, grid modes keep to their own kinds and roots


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("shape", "grid", "kinds", "roles"), WORLDS)
def test_no_walk_is_cheaper_than_a_plan(shape, grid, kinds, roles, machine):
    """Law: no walk over layouts of the ends' kinds and roles takes less time than a plan that is called optimal.

    In small worlds, grid modes that change take kinds and roots from each other. All pairs; of more than 900, a sample.
    """
    here = world(shape, grid, kinds, roles)
    number, several = len(here.dists), 0
    pairs = [*product(range(number), repeat=2)]
    for a, b in pairs if len(pairs) < 900 else random.Random(1).sample(pairs, 300):
        search = Search(here.dists[a], here.dists[b], ITEM, MACHINES[machine])
        route = search.cheapest()
        least = here.least(a, b, machine, alone=number > MOST)
        assert not search.exact or route.seconds <= least * ROUNDING, (here.dists[a], here.dists[b], route.steps)
        several += len(route.steps) > 1
    assert several


def test_the_comparison_can_fail(monkeypatch):
    """A search that knows the direct step alone is refused."""
    monkeypatch.setattr(Search, "cheapest", Search.direct)
    with pytest.raises(AssertionError):
        test_no_walk_is_cheaper_than_a_plan(*SMALL[0], "mixed")


def test_roots_go_over_to_other_grid_modes():
    """A grid mode may be rooted on the way because another one is so at an end."""
    plan = rote.compile("block[(0)]|(1) -> block[(1)]", shape=13, grid=(2, 3), machine=MACHINES["mixed"])
    assert [step.kind for step in plan.steps] == ["exchange", "broadcast"] and plan.optimality == "optimal"


@pytest.mark.parametrize("machine", MACHINES)
def test_nothing_becomes_partial_on_the_way(machine):
    """Law: a grid mode is partial on the way only if it is so at an end, because zeros that are added have a sign."""
    dists = world(*SMALL[0]).dists
    for source, target in product(dists, repeat=2):
        ends = {*source.layout.partial, *target.layout.partial}
        steps = Search(source, target, ITEM, MACHINES[machine]).cheapest().steps
        assert all(ends.issuperset(step.after.layout.partial) for step in steps), steps


def test_sums_keep_the_sign_of_zeros():
    """Law: contributions that are all -0.0 add up to -0.0 in every plan that the model of a machine may choose."""
    for target, machine in product(("[()]", "[(0)]", "[(1)]", "[(1,0)]"), MACHINES.values()):
        plan = rote.compile(f"[(0)]+(1) -> {target}", shape=13, grid=(2, 3), machine=machine)
        blocks = [np.full(plan.source.local_shape(rank), -0.0) for rank in range(6)]
        assert all(np.signbit(block).all() for block in rote.simulate.run(plan, blocks)), plan
