"""Every plan does what the definition says: `simulate` against brute force, and costs against counting."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from cases import all_layouts
from compiler import by_messages
from hypothesis import example, given, settings
from hypothesis import strategies as st
from layout import definition
from marks import PARTS, examples
from parts import SOME, share
from strategies import pairs, pairs_across

import rote
from rote.grammar.nodes import Kind

ITEM = 8


def check_move(source, target, rng):
    """What a plan moves, it moves right: its blocks, its bounds and its cost. Returns the kinds of its steps."""
    plan = rote.compile(source, target, dtype="i8")
    shape, grid = source.shape, source.grid.shape
    array, blocks = definition.numbered(source.layout, shape, grid)
    before = [block.copy() for block in blocks]
    found = rote.simulate.run(plan, blocks)
    assert definition.wrong(target.layout, grid, found, array) == "", (source, target)
    assert all(np.array_equal(block, kept) for block, kept in zip(blocks, before, strict=True)), "the input was changed"
    if source.layout.partial:
        array, blocks = definition.contribute(source.layout, shape, grid, rng)
        found = rote.simulate.run(plan, blocks)
        assert definition.wrong(target.layout, grid, found, array) == "", (source, target)
    check_cost(plan)
    sent = by_messages.run(plan, blocks)
    assert all(np.array_equal(block, other) for block, other in zip(found, sent, strict=True)), (source, target)
    return [step.kind for step in plan.steps]


def check_cost(plan):
    """Costs are counted: never below the bound, and equal to brute force wherever the sender is beyond doubt."""
    source, target = plan.source, plan.target
    cost, grid = plan.cost, source.grid.shape
    assert cost.bytes >= plan.lower_bound and (cost.messages > 0) == (cost.bytes > 0)
    held = [definition.block_indices(dist.layout, source.shape, grid) for dist in (source, target)]
    had, needed = ([set(block.reshape(-1).tolist()) for block in blocks] for blocks in held)
    assert cost.peak_bytes >= ITEM * max(len(a) + len(b) for a, b in zip(had, needed, strict=True))
    if source.partial or target.partial:
        return
    lacking = [need - have for have, need in zip(had, needed, strict=True)]
    assert plan.lower_bound == ITEM * max(map(len, lacking)), plan
    if len(plan.steps) != 1:
        return
    assert cost.bytes == plan.lower_bound, plan
    if any(source.roles[g].name == "replicated" for g in range(len(grid))):
        return
    owner = {element: rank for rank, elements in enumerate(had) for element in elements}
    messages = [{owner[element] for element in elements} for elements in lacking]
    assert cost.messages == max(map(len, messages)), plan
    sent = [sum(owner[e] == rank for elements in lacking for e in elements) for rank in range(len(had))]
    buffers = {
        "allgather": [(len(a), len(b)) for a, b in zip(had, needed, strict=True)],
        "broadcast": [(0, 0)] * len(had),
    }.get(plan.steps[0].kind, [(n, len(c)) for n, c in zip(sent, lacking, strict=True)])
    peak = max(len(a) + len(b) + sum(c) for a, b, c in zip(had, needed, buffers, strict=True))
    assert cost.peak_bytes == ITEM * peak, plan


def mixed(parts, extents):
    """A cyclic and a balanced kind: enough, together, for all pairs."""
    return [Kind("cyclic", (1,)), Kind("block")]


def turning(parts, extents):
    """One kind per number of parts."""
    return [Kind("block") if parts % 2 else Kind("cyclic", (2,))]


CASES = [
    ((), (2, 2), None),
    ((0,), (3,), None),
    ((1,), (3,), None),
    ((5,), (3,), None),
    ((5,), (1, 2), mixed),
    ((5,), (2, 2), mixed),
    ((3, 2), (2,), mixed),
    ((2, 5), (3,), mixed),
    ((3, 2), (2, 3), turning),
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("grid", [(), (1,), (2,), (3,)], ids=str)
def test_every_pair_on_a_line(grid, part):
    """One in thirty pairs of layouts of order <= 2 on grids of order <= 1, all kinds, extents <= 5, does as defined."""
    cases = []
    for shape in (shape for order in (0, 1, 2) for shape in product(range(6), repeat=order)):
        dists = [layout.on(shape, grid) for layout in all_layouts(shape, grid)]
        cases += product(dists, repeat=2)
    assert len(cases) == {(): 43, (1,): 9443, (2,): 14905, (3,): 15915}[grid]
    for source, target in share(cases[::10], part, 10, of=3):
        array, blocks = definition.numbered(source.layout, source.shape, grid)
        found = rote.simulate.run(rote.compile(source, target, dtype="i8"), blocks)
        assert definition.wrong(target.layout, grid, found, array) == "", (source, target)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shape, grid, kinds", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_every_small_pair(shape, grid, kinds, part):
    """Every pair of small layouts, or one in five of many, rooted and partial ones included."""
    rng = np.random.default_rng(0)
    dists = [layout.on(shape, grid) for layout in all_layouts(shape, grid, kinds)]
    seen = set()
    cases, many = list(product(dists, repeat=2)), len(dists) > 40
    for source, target in share(cases[:: 5 if many else 1], part, 3 if many else 2):
        seen.update(check_move(source, target, rng))
    assert len(dists) >= 9 and len(seen) >= 4
    assert part == SOME or ("allreduce" in seen and "broadcast" in seen)


VIEWED = [
    "[(),()]",
    "block[(0),(1)]",
    "[(1),(0)]",
    "(a b): [(0,1)]",
    "(a b): block[(1,0)]",
    "(b a): [(0)]+(1)",
    "b a: cyclic(2)[(0),()]|(1@1)",
    "a (r s=3): [(0),(),(1)]",
    "a (r s=3): block[(),(1),(0)]",
    "(r=2 s) b: [(0),(),(1)]",
    "(r s=1 t=1) b: [(),(0),(1),()]",
    "(r s=1 t=1) b: [(),(),(0),()]",
    "(r s=2) (t u=3 v=2): [(),(),(1),(),(0)]",
]


@pytest.mark.parametrize("part", PARTS)
def test_every_pair_of_views(part):
    """Digits move between views: tiled, fused, permuted, with parts of 1."""
    rng = np.random.default_rng(0)
    cases = []
    for shape, grid in product(((4, 6), (2, 12), (0, 6)), ((2, 2), (2, 3))):
        dists = [rote.parse(text).on(shape, grid) for text in VIEWED]
        cases += product(dists, repeat=2)
    for source, target in share(cases, part, 20, of=3):
        check_move(source, target, rng)


def test_the_check_can_fail(monkeypatch):
    """A movement that swaps two elements is found out: by the definition in the blocks, by counting in the cost."""
    source, target = (rote.parse(text).on((3, 2), (2,)) for text in ("[(0),()]", "[(),(0)]"))
    right = rote.simulate.run

    def swapped(plan, blocks):
        found = right(plan, blocks)
        found[1][[0, 1]] = found[1][[1, 0]]
        return found

    monkeypatch.setattr(rote.simulate, "run", swapped)
    with pytest.raises(AssertionError, match="ranks \\[1\\] hold 5, not 3"):
        check_move(source, target, np.random.default_rng(0))
    plan = rote.compile(source, target, dtype="i4")  # half the bytes that are counted
    with pytest.raises(AssertionError):
        check_cost(plan)


@settings(max_examples=examples(40))
@given(pairs())
def test_every_pair(pair):
    """Any two layouts: mixed kinds, views, partial and rooted, on shapes that do not divide."""
    check_pair(*pair)


@pytest.mark.slow
@settings(max_examples=examples(250))
@given(pairs())
def test_many_more_pairs(pair):
    """The same of more of them."""
    check_pair(*pair)


def check_pair(source, target):
    """Moved right, the same plan when written and read again, few steps, and none where there is nothing to do."""
    check_move(source, target, np.random.default_rng(0))
    plan = rote.compile(source, target)
    assert rote.Plan.from_json(plan.to_json()) == rote.Plan.from_text(str(plan)) == plan
    assert len(plan.steps) <= 3
    if source.digits == target.digits and source.layout == target.layout:
        assert not plan.steps


@settings(max_examples=examples(25))
@given(pairs())
def test_there_and_back(pair):
    """There and back is the identity, on the blocks of a layout that is not partial."""
    source, target = pair
    if source.partial:
        return
    _, blocks = definition.numbered(source.layout, source.shape, source.grid.shape)
    there = rote.simulate.run(rote.compile(source, target, dtype="i8"), blocks)
    back = rote.simulate.run(rote.compile(target, source, dtype="i8"), there)
    assert all(np.array_equal(a, b) for a, b in zip(back, blocks, strict=True))


@example((rote.parse("[(0)]").on(5, 3), rote.parse("[()]").on(5, 3)), "f4", 0)  # rounds what ranks keep, too
@given(st.one_of(pairs(), pairs_across()), st.sampled_from([None, "f4"]), st.integers(0, 99))
def test_a_simulation_has_the_bits_of_the_messages(ends, wire, seed):
    """Law: `simulate` has, bit for bit, what ranks have that send and receive each message, rounded ones too."""
    plan, rng = rote.compile(*ends, wire=wire), np.random.default_rng(seed)
    blocks = [rng.standard_normal(plan.source.local_shape(rank)) for rank in range(plan.source.grid.size)]
    if not plan.source.partial:  # replicas are equal
        blocks = rote.simulate.scatter(rng.standard_normal(plan.source.shape), plan.source)
    found, sent = rote.simulate.run(plan, blocks), by_messages.run(plan, blocks)
    assert [block.tobytes() for block in found] == [np.ascontiguousarray(block).tobytes() for block in sent]


@given(st.one_of(pairs(), pairs_across()), st.sampled_from([None, "f4"]), st.integers(0, 99))
def test_a_simulation_is_as_defined(ends, wire, seed):
    """Law: on one grid or two, `simulate` moves and adds floats as defined; numbers that are short lose no bits."""
    source, target = ends
    plan, grid = rote.compile(source, target, wire=wire), source.grid.shape
    low, high = (1, 3) if source.layout.op == "prod" else (-50, 50)
    contributed = definition.contribute(source.layout, source.shape, grid, np.random.default_rng(seed), low, high)
    for array, blocks in (contributed, definition.numbered(source.layout, source.shape, grid)):
        found = rote.simulate.run(plan, [block.astype("f8") for block in blocks])
        assert definition.wrong(target.layout, target.grid.shape, found, array) == "", ends
