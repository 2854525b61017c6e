"""Costs, peaks and proofs are counted with Python's integers where 64 bits may not hold them: no size overflows."""

from __future__ import annotations

import random
from functools import partial
from math import prod

import numpy as np
import pytest
from cases import pick_grid, pick_layout, pick_shape
from hypothesis import given
from strategies import pairs, pairs_across

import rote
from rote.compiler import along, factor, halo, overlaps, volumes
from rote.compiler import movement as movements
from rote.compiler.movement import RECEIVES, SENDS, movement
from rote.compiler.verify import proof, recount

COUNTING = (along, factor, halo, movements, overlaps, proof, recount, volumes)
TIMES = ("latency", "byte_time", "copy_time", "reduce_time", "step_time", "flop_time")


def counted(make, number):
    """What `make` counts, if every number of this size or more counts as one that 64 bits may not hold."""
    with pytest.MonkeyPatch.context() as patch:
        for module in COUNTING:
            patch.setattr(module, "counting", lambda most: np.dtype(np.int64 if most < number else object))
        rote.clear_caches()
        try:
            return make()
        finally:
            rote.clear_caches()


def figures(source, target):
    plan = rote.compile(source, target)
    plan.verify()
    steps = [(step.kind, str(step)) for step in plan.steps]
    return steps, plan.cost, plan.lower_bound


@pytest.mark.parametrize("seed", range(24))
def test_small_counts_are_the_same_by_integers_of_any_size(seed):
    """Law: with Python's integers in place of all or some of 64 bits, plans, costs, proofs and tables are the same."""
    rng = random.Random(seed)
    pick = rng.choice
    grid, shape = pick_grid(pick), pick_shape(pick)
    ends = [pick_layout(pick, shape, grid).on(shape, grid) for _ in range(2)]
    usual = figures(*ends)
    for number in (0, rng.randrange(1, 200)):
        assert counted(partial(figures, *ends), number) == usual


@given(pairs() | pairs_across())
def test_matrices_are_the_same_by_integers_of_any_size(ends):
    """Law: messages between all pairs, and their sums, on one grid and between two."""
    usual = movement(*ends).matrix().tolist()
    assert counted(lambda: movement(*ends).matrix().tolist(), 0) == usual
    for side in (SENDS, RECEIVES):
        sums = [each.tolist() for each in movement(*ends).traffic(side)]
        assert [each.tolist() for each in counted(lambda: movement(*ends).traffic(side), 0)] == sums  # noqa: B023


def shared(held, others):
    """The elements that lie in both of two blocks, which are products of sets."""
    return prod(len(a & b) for a, b in zip(held, others, strict=True))


LARGE = [
    ("block[(0)] -> [(0)]", (2**62,), (2,)),
    ("block[(0)] -> [(0)]", (2**62 + 1,), (2,)),
    ("[(0)] -> block[(0)]", (2**63 - 1,), (2,)),
    ("[(0)] -> block[(0)]", (2**62 - 1,), (3,)),
    ("block[(0),()] -> block[(),(0)]", (2**40, 2**40), (2,)),
    ("block[(0),()] -> [(),(0)]", (2**40 + 3, 2**40 + 5), (3,)),
    ("block[(0),(1)] -> block[(1),(0)]", (2**53 + 1, 2**31), (2, 3)),
    ("block[(0,1),(),()] -> block[(),(0),(1)]", (2**30, 2**31, 2**32), (2, 3)),
    ("block[(0)] -> [()]", (2**62,), (4,)),
    ("[(0),(1)] -> [(),()]", (2**40, 2**41), (2, 2)),
    ("[()] -> block[(0)]", (2**63 - 1,), (4,)),
    ("block[(0)] -> [(0)]", (2**53 * 300 + 1,), (300,)),
    ("cyclic(1152921504606846976)[(0)] -> [(0)]", (2**62,), (300,)),
    ("block[(0)] -> cyclic(9007199254740992)[(0)]", (2**62 + 1,), (512,)),
    ("a b: block[(0),()] -> b a: block[(0),()]", (2**40, 2**41), (2,)),
]


@pytest.mark.parametrize(("text", "shape", "grid"), LARGE)
def test_large_plans_count_what_the_sets_say(text, shape, grid):
    """Law: bytes, peak and bound are those of the index sets, which are made of Python's integers."""
    plan = rote.compile(text, shape=shape, grid=grid, dtype="c16")
    plan.verify()
    if plan.source.layout.view is None and plan.target.layout.view is None and prod(grid) < 10:
        held, wanted = ([*map(end.index_sets, range(prod(grid)))] for end in (plan.source, plan.target))
        needed = [shared(mine, mine) - shared(had, mine) for had, mine in zip(held, wanted, strict=True)]
        assert plan.lower_bound == 16 * max(needed) <= plan.cost.bytes
        ends = [shared(had, had) + shared(mine, mine) for had, mine in zip(held, wanted, strict=True)]
        assert plan.cost.peak_bytes >= 16 * max(ends)
        if len(plan.steps) == 1:
            assert plan.cost.bytes == plan.lower_bound
    assert 0 < plan.cost.seconds < float("inf") and plan.explain()
    assert rote.Plan.from_json(plan.to_json()) == rote.Plan.from_text(str(plan)) == plan


FACTORS = [
    ("block[(0),(1)] -> block[(1),(0)]", (2, 2)),
    ("block[(0),(1)] -> block[(0),()]", (2, 2)),
    ("[(0),()]+(1) -> [(0),(1)]", (2, 2)),
    ("[(0),()]+(1) -> [(0),()]", (2, 2)),
    ("[(0),()]+(1) -> [(0),()]|(1)", (2, 2)),
    ("[(0),()]|(1) -> [(0),()]", (2, 2)),
    ("[(0),()]|(1) -> [(0),(1)]", (2, 2)),
    ("[(0),(1)] -> [(0),()]|(1@1)", (2, 2)),
    ("[(0),()] -> [(0),(1)]", (2, 2)),
    ("[(0),()] -> [(0),()]+(1)", (2, 2)),
    ("block[(0),(1)] -> block[(1,0),()]", (2, 2)),
    ("(a b): block[(0)] -> (b a): block[(0)]", (4,)),
    ("block[(0),()] -> block[(),(0)]", (4,)),
]
BYTES = rote.Machine(latency=0, step_time=0)


@pytest.mark.parametrize(("text", "grid"), FACTORS)
def test_a_larger_tensor_costs_in_proportion(text, grid):
    """Law: of elements 2^16 times as large in both modes, all bytes are 2^32 times as many: of every kind of step."""
    small, large = ((2**14, 2**12), (2**34, 2**32)) if "a b" not in text else ((2**14, 2**12), (2**31, 2**31))
    few, many = (rote.compile(text, shape=shape, grid=grid, machine=BYTES) for shape in (small, large))
    many.verify()
    times = prod(large) // prod(small)
    assert [step.kind for step in many.steps] == [step.kind for step in few.steps]
    for name in ("bytes", "peak_bytes"):
        assert getattr(many.cost, name) == times * getattr(few.cost, name)
    assert many.lower_bound == times * few.lower_bound and many.cost.messages == few.cost.messages
    assert many.cost.seconds == pytest.approx(times * few.cost.seconds)


def test_a_grid_of_order_0_counts_as_one_rank():
    """NumPy makes numbers of arrays of order 0, which have 64 bits again."""
    for shape in ((2**40, 2**40), (2**32, 2**31), (3, 4)):
        alone, turned, one = (
            rote.parse(text).on(shape, grid) for text, grid in (("[(),()]", ()), ("b a: [(),()]", ()), ("[(0),()]", 1))
        )
        for target in (alone, turned, one):
            plan = rote.compile(alone, target)
            plan.verify()
            assert (plan.cost.bytes, plan.cost.peak_bytes, plan.lower_bound) == (0, 16 * prod(shape), 0)


def test_a_mode_that_64_bits_cannot_number_is_refused():
    """Extents of tensors, and of fused modes, are below 2**63; no tensor has 2**512 elements."""
    for text, shape in (("(a b): block[(0)]", (2**33, 2**31)), ("(a b c): [()]", (2**21,) * 3)):
        with pytest.raises(rote.LayoutError, match=rf"a mode of {prod(shape)} indices; extents are below 2\*\*63"):
            rote.parse(text).on(shape, 2)
    with pytest.raises(rote.LayoutError, match=r"below 2\*\*63"):
        rote.parse("block[(0)]").on(2**63, 2)
    with pytest.raises(rote.LayoutError, match=r"fewer than 2\*\*512 elements"):
        rote.parse(f"[{'()' * 9}]").on((2**60,) * 9, 2)
    assert rote.parse("(a b): block[(0)]").on((2**32, 2**30), 2).local_shape(1) == (2**61,)


def test_halos_of_large_tensors_are_priced():
    """Halos that no machine holds have exact figures."""
    dist = rote.parse("block[(0),()]").on((2**34, 2**34), 2)
    plan = halo.HaloPlan(dist, ((1, 1), (0, 0)), (True, False), np.dtype("f8"))
    plan.verify()
    assert plan.cost.bytes == 2 * 2**34 * 8 and plan.cost.peak_bytes > 2**67 * 8


@pytest.mark.parametrize("name", TIMES)
def test_times_of_a_machine_are_numbers_that_can_be_added(name):
    """A time that would make infinite or undefined seconds is refused, by its name."""
    for value in (10**400, 10**5000, 1e308, float("inf"), float("nan"), -1, -(10**30), True, "1"):
        with pytest.raises(
            rote.PlanError, match=rf"the {name} of a machine is a number of seconds from 0 to 1e\+100, not"
        ):
            rote.Machine(**{name: value})


def test_the_largest_times_make_a_number():
    """Of the largest tensor on the slowest machine."""
    machine = rote.Machine(**dict.fromkeys(TIMES, 1e100))
    plan = rote.compile("block[(0),()] -> block[(),(0)]", shape=(2**62, 2**62), grid=4, machine=machine, dtype="c16")
    assert 1e100 < plan.cost.seconds < float("inf")
