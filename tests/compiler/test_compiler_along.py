"""One mode split on both sides over one long grid mode: volumes and proofs from ranges, never from a table of pairs."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from compiler.test_compiler_pairs import sizes
from compiler.test_compiler_verify import ON_MOVEMENT, certify, figures, plan_of, refused
from hypothesis import given
from hypothesis import strategies as st

import rote
from rote.compiler import factor
from rote.compiler.along import along_of
from rote.compiler.movement import movement
from rote.compiler.overlaps import overlaps, splits_of
from rote.compiler.verify import proof
from rote.compiler.verify.ranges import ranges_of

TRANSITIONS = (
    "block[(0)] -> [(0)]",
    "[(0)] -> block[(0)]",
    "block[(0)] -> cyclic(16)[(0)]",
    "[(0)] -> cyclic(16)[(0)]",
    "cyclic(3)[(0)] -> cyclic(5)[(0)]",
)
BOXES = ("box shifted", "box reversed", "box elsewhere", "box lost", "box twice")


@st.composite
def pairs(draw):
    """The readings of a mode on both sides: blocks of all kinds, cyclic tiles, and a first tile anywhere."""
    p = draw(st.integers(2, 9))
    n = draw(st.integers(0, 60) | st.integers(0, 3000) | st.integers(0, 40).map(p.__mul__))
    cuts = sorted(draw(st.lists(st.integers(0, n), min_size=p - 1, max_size=p - 1)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    kinds = st.sampled_from(
        ["block", "block(ceil)", "block(floor)", "cyclic", f"block({-(-n // p) + 2})", f"block{(*sizes,)}"]
    )
    tiles = st.builds("cyclic({},at={})".format, st.integers(1, 12), st.integers(0, p - 1))
    ends = [rote.parse(f"[(0:{draw(kinds | tiles)})]").on((n,), (p,)) for _ in range(2)]
    return movement(*ends).parts[0].factor.sides


FUSED = ("(a b) c", "(b a) c", "(a c) b", "(c a) b", "(b c) a", "(a b c)", "(c b a)")
EXTENTS = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 12, 16])


@given(
    st.lists(st.sampled_from(FUSED), min_size=2, max_size=2), st.integers(2, 16), st.tuples(*[EXTENTS] * 3), st.data()
)
def test_counts_of_fused_modes_along_one_grid_mode_are_those_of_the_table(views, p, shape, data):
    """Law: the same for modes that are read differently, by the runs of their coordinates."""
    kind = st.sampled_from(["block", "block", "block(ceil)", "cyclic", "cyclic(3)"])
    texts = [f"{view}: [(0:{data.draw(kind)}){',()' if view[-1] != ')' else ''}]" for view in views]
    source, target = (rote.parse(text).on(shape, (p,)) for text in texts)
    for part in movement(source, target).parts:
        sides = part.factor.sides
        if len(splits_of(*sides)) == 2:
            counts = along_of(*sides)
            table = sizes(*sides)
            if counts is not None:
                assert counts.sent.tolist() == np.count_nonzero(table, axis=1).tolist()
                assert counts.received.tolist() == np.count_nonzero(table, axis=0).tolist()
                assert counts.kept.tolist() == table.diagonal().tolist()


@given(pairs())
def test_counts_along_one_grid_mode_are_those_of_the_table(sides):
    """Law: messages and kept elements of each coordinate are sums over the table of pairs, which no long grid makes."""
    counts, table = along_of(*sides), sizes(*sides)
    if counts is not None:
        assert counts.sent.tolist() == np.count_nonzero(table, axis=1).tolist()
        assert counts.received.tolist() == np.count_nonzero(table, axis=0).tolist()
        assert counts.kept.tolist() == table.diagonal().tolist()


@given(pairs())
def test_ranges_of_pairs_are_those_of_the_table(sides):
    """Law: what the proof counts from ranges is what all pairs, one by one, add up to."""
    lattices, table = overlaps(*sides), sizes(*sides)
    if any(lattice.listed for lattice in lattices):
        return
    counted = ranges_of(lattices, len(table), table.dtype)
    if counted is None:  # more than a few ranges per coordinate
        return
    for axis in (0, 1):
        assert counted.elements[axis].tolist() == table.sum(axis=1 - axis).tolist()
        assert counted.peers[axis].tolist() == np.count_nonzero(table, axis=1 - axis).tolist()
    assert counted.kept.tolist() == table.diagonal().tolist()


@pytest.mark.parametrize("text", [TRANSITIONS[4], *(pytest.param(t, marks=pytest.mark.slow) for t in TRANSITIONS[:4])])
def test_memory_grows_in_proportion_to_the_ranks(text):
    """Law: four times the ranks take less than six times the bytes to plan and to prove."""
    most = []
    for ranks in (8, 260, 1040):
        rote.clear_caches()
        tracemalloc.start()
        rote.compile(text, shape=(10**9 + 7,), grid=(ranks,)).verify()
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[2] < 6 * most[1]


@pytest.mark.parametrize("text", TRANSITIONS[:3])
def test_ranges_prove_the_figures_of_all_pairs(text, monkeypatch):
    """Law: the claim that message lists make is accepted if pairs are counted as ranges, and any other is refused."""
    plan = plan_of(text, (24 * 240,), (24,))
    claimed = figures(plan)
    monkeypatch.setattr(proof, "_MANY", 16)
    rote.clear_caches()
    ends = plan.source, plan.target
    assert proof.prove(ends, *movement(*ends).parts).proof.ranges is not None
    certify(plan, claimed)
    for name in ("bytes", "messages"):
        assert refused(plan, replace(claimed, **{name: getattr(claimed, name) - 1}))
    rote.clear_caches()


def test_ranges_prove_steps_between_grids(monkeypatch):
    """Law: on another grid, coordinates along a mode of the same length belong to other ranks, and are counted so."""
    source, target = (
        rote.parse(text).on((24 * 100 + 5,), grid)
        for text, grid in (("[(1)]|(2)", (2, 24, 2)), ("block[(1)]", (1, 24, 4)))
    )
    plan = rote.compile(source, target)
    claimed = figures(plan)
    monkeypatch.setattr(proof, "_MANY", 16)
    rote.clear_caches()
    step = next(step for step in plan.steps if step.across)
    ends = step.before, step.after
    assert proof.prove(ends, *movement(*ends).parts).proof.ranges is not None
    certify(plan, claimed)
    rote.clear_caches()


@pytest.mark.parametrize("lost", ["received", "kept"])
def test_a_wrong_claim_of_a_long_grid_mode_is_refused(lost, monkeypatch):
    """Law: the proof counts again: volumes that are wrong are no claim that it accepts."""

    right = factor.along_of

    def wrong(*sides):
        counts = right(*sides)
        changed = getattr(counts, lost) - 1
        return counts._replace(**{lost: changed})

    rote.clear_caches()
    monkeypatch.setattr(factor, "along_of", wrong)
    with pytest.raises(rote.PlanError, match="the plan claims"):
        rote.compile("block[(0)] -> [(0)]", shape=(2**28,), grid=(1024,)).verify()
    rote.clear_caches()


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("text", ["block[(0)] -> [(0)]", "cyclic(2)[(0)] -> block[(0)]"])
def test_a_wrong_box_of_many_coordinates_is_refused(text, name):
    """Law: shifted sets of more coordinates than are looked at one by one prove right boxes, and no others."""
    rng, tried = random.Random(5), 0
    plan = plan_of(text, (2**30 + 100,), (96,))
    certify(plan)
    for _ in range(6):
        with pytest.MonkeyPatch.context() as patch:
            if ON_MOVEMENT[name](rng, plan, patch):
                tried += 1
                assert refused(plan)
    assert tried
