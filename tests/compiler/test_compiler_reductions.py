"""Reductions: what any algorithm must receive, found by trying all of them in tiny worlds, and what plans count."""

from __future__ import annotations

from functools import cache, reduce
from itertools import pairwise, product
from math import ceil, prod
from operator import or_

import numpy as np
import pytest
from cases import all_layouts
from layout import definition
from marks import PARTS
from parts import share

import rote
from rote.compiler.cost import at_least, flow, steps_cost
from rote.compiler.movement import movement
from rote.compiler.rules import one_step
from rote.compiler.search import Search
from rote.grammar.nodes import Kind

ITEM = 8
MACHINES = [
    rote.Machine(),
    rote.Machine(latency=0, byte_time=1.0, copy_time=0, reduce_time=0, step_time=0),
    rote.Machine(latency=0, byte_time=(1.0, 3.0), copy_time=0, reduce_time=0.5, step_time=0),
]


def on(text, shape, grid):
    return rote.parse(text).on(shape, grid)


def roles(dist, name):
    return [g for g, role in enumerate(dist.roles) if role.name == name]


def elements(source, target):
    """Per element, the contribution that each rank holds (0 for none), and the ranks that must hold its value.

    A contribution is a bit. Ranks that must hold the value together, since the target is partial, are one set.
    """
    have, need = (
        [set(block.reshape(-1).tolist()) for block in definition.block_indices(d.layout, d.shape, d.grid.shape)]
        for d in (source, target)
    )
    here, there = (definition.coordinates(dist.grid.shape) for dist in (source, target))
    partial, kept = roles(source, "partial"), [g for g in range(target.grid.order) if g not in roles(target, "partial")]
    for element in range(prod(source.shape)):
        numbers = {}
        held = [0] * len(have)
        for rank, block in enumerate(have):
            if element in block:
                at = tuple(here[rank][g] for g in partial)
                held[rank] = 1 << numbers.setdefault(at, len(numbers))
        together = {}
        for rank, block in enumerate(need):
            if element in block:
                together.setdefault(tuple(there[rank][g] for g in kept), []).append(rank)
        yield tuple(held), tuple(sorted(map(tuple, together.values())))


@cache
def fewest(held, together):
    """The fewest receipts, over all ranks, after which each of these sets of ranks knows all contributions.

    Whoever is sent a value then knows all that the sender knew: no algorithm does better, whatever it sends.
    """
    every = 0
    for known in held:
        every |= known

    def done(state):
        return all(every == reduce(or_, [state[rank] for rank in ranks]) for ranks in together)

    level, seen, receipts = {held}, {held}, 0
    while not any(map(done, level)):
        level = {
            (*state[:b], state[a] | state[b], *state[b + 1 :])
            for state in level
            for a, b in product(range(len(held)), repeat=2)
            if state[a] | state[b] != state[b]
        } - seen
        seen |= level
        receipts += 1
    return receipts


def least(source, target):
    """The elements that the busiest rank must receive in any algorithm: its own, or as many as an average rank."""
    own, receipts = np.zeros(source.grid.size, int), 0
    for held, together in elements(source, target):
        receipts += fewest(held, together)
        for rank in [ranks[0] for ranks in together if len(ranks) == 1]:
            own[rank] += held[rank] != reduce(or_, held)
    return max(int(own.max()), ceil(receipts / source.grid.size))


def mixed(parts, extents):
    """A cyclic and a balanced kind."""
    return [Kind("cyclic", (1,)), Kind("block")]


WORLDS = [
    ((), (3,), (3,), None),
    ((0,), (2,), (2,), None),
    ((1,), (3,), (3,), None),
    ((4,), (3,), (3,), None),
    ((3,), (2, 1), (2, 1), mixed),
    ((), (2, 2), (2, 2), None),
    ((1,), (2, 2), (2, 2), mixed),
    ((3,), (2, 2), (2, 2), mixed),
    ((1,), (4,), (2, 2), None),
    ((3,), (2, 2), (4,), mixed),
    ((2, 3), (2,), (1, 2), mixed),
]


def reductions(shape, grid, other, kinds):
    """All pairs of layouts of which the first is partial, and the second is of the same operation if it is partial."""
    sources, targets = ([layout.on(shape, g) for layout in all_layouts(shape, g, kinds)] for g in (grid, other))
    for source, target in product(sources, targets):
        if source.partial and (not target.partial or source.layout.op == target.layout.op):
            yield source, target


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"{world[:3]}")
def test_no_algorithm_receives_less_than_the_bound(world):
    """Law: the bound is what the best of all algorithms receives, or less where the target is partial."""
    tight = number = 0
    for source, target in reductions(*world):
        bound, true = movement(source, target).lower_bound, least(source, target)
        assert bound <= true and (bound == true or target.partial), (source, target)
        number, tight = number + 1, tight + (bound == true)
    assert tight > 0.7 * number > 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"{world[:3]}")
def test_no_plan_goes_below_the_bounds(world, part):
    """Law: every plan that the search may choose receives the bound or more, and takes the bound's seconds or more."""
    _, grid, other, _ = world
    pairs = [*reductions(*world)]
    for source, target in share(pairs[:: len(pairs) // 150 + 1], part, 2):
        for machine in MACHINES if len(grid) == len(other) == 2 else MACHINES[:2]:
            bytes_, seconds = (
                ITEM * movement(source, target).lower_bound,
                at_least(movement(source, target), ITEM, machine),
            )
            for route in Search(source, target, ITEM, machine).front():
                cost = steps_cost(source, target, route.steps, ITEM, machine)
                assert cost.bytes >= bytes_ and cost.seconds >= seconds * (1 - 1e-12), (source, target, route.steps)


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_one_step_receives_the_bound(op):
    """Law: blocks of one size are reduced in one step at the lower bound, over grid modes of any number, by any op."""
    sign = "+" if op == "sum" else f"+{op}"
    for (modes, grid), extent in product(
        (("0", (6,)), ("0,1", (3, 2)), ("1,0", (2, 3)), ("0", (6, 1))), (0, 1, 5, 6, 36)
    ):
        for text in ("[()]", f"[({modes})]", f"block[({modes})]")[: 1 if extent % 6 else 3]:
            source, target = on(f"[()]{sign}({modes})", (extent,), grid), on(text, (extent,), grid)
            cost = steps_cost(source, target, (one_step(source, target),), ITEM, MACHINES[0])
            passes = 2 if text == "[()]" else 1
            assert cost.bytes == ITEM * movement(source, target).lower_bound == ITEM * ceil(passes * extent * 5 / 6)


@pytest.mark.parametrize("ranks", range(2, 8))
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 12, 13])
def test_an_algorithm_receives_what_is_counted(n, ranks):
    """Sums that pass along chains of ranks, and back, arrive in the numbers of a reduce and an allreduce."""
    given = np.random.default_rng(0).integers(0, 99, (ranks, n))
    for text, root in (("[()]", None), ("[()]|(0@1)", 1)):
        source, target = on("[()]+(0)", (n,), (ranks,)), on(text, (n,), (ranks,))
        received, held = np.zeros(ranks, int), given.copy()
        for element in range(n):
            others = [rank for rank in range(ranks) if rank != root]
            if root is None:  # the first and the last rank are next to each other on a ring, two further each time
                chain = [(2 * element - k) % ranks for k in range(ranks)]
            else:
                chain = [*np.roll(others, element), root]
            hops = [*pairwise(chain)]
            for a, b in hops:
                held[b, element] += held[a, element]
                received[b] += 1
            for b, a in reversed(hops if root is None else []):
                held[b, element] = held[a, element]
                received[b] += 1
        wanted = held if root is None else held[[root]]
        assert (wanted == given.sum(axis=0)).all()
        counted = np.broadcast_to(flow(one_step(source, target)).elements, ranks)
        assert received.max() == counted.max() == movement(source, target).lower_bound, (received, counted)
        assert (received <= counted).all()


def test_cost_and_limit_say_the_same():
    """The example of Chan et al.: each of 256 ranks receives 255/256 of its contribution."""
    plan = rote.compile("[(),()]+(0) -> block[(0),()]", shape=(256, 256), grid=256)
    assert plan.cost.bytes == plan.lower_bound == 255 * 256 * 8 == 522_240
    plan.verify()
    rote.expect(plan, max_bytes=522_240)
    with pytest.raises(AssertionError):
        rote.expect(plan, max_bytes=522_239)
