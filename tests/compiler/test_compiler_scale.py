"""Scale by algebra: large tensors on large grids, all pairs of layouts, thousands of ranks, and what is cached.

What is measured runs in a Python of its own, so that nothing is remembered from other tests, and counts the time of
that process, not of the clock on the wall.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from compiler.exhaustive_search import notation, texts
from effort import calls
from fresh import best
from layout import definition
from marks import PARTS
from parts import REST

import rote

LARGE = [
    "[(0),(1),(2)] -> block[(0),(1),(2)]",
    "block[(0),(1),(2)] -> [(0),(1),(2)]",
    "block[(0),(1),(2)] -> block[(1),(0),(2)]",
    "cyclic(3)[(0),(1),(2)] -> [(0),(1),(2)]",
]
COMPILE = """
plans = [rote.compile(text, shape=(1024,) * 3, grid=(32,) * 3, dtype="c16") for text in given]
for plan in plans:
    plan.verify()
found["costs"] = [[plan.cost.bytes, plan.lower_bound, plan.cost.seconds] for plan in plans]
"""


def test_large_grids():
    """Four transitions of 1024^3 on 32x32x32 ranks are compiled, certified and priced in 5 s and 500 MB, all in all."""
    run = best(COMPILE, LARGE, of="seconds", below=5)
    assert run["seconds"] < 5 and run["megabytes"] < 500
    for bytes_, bound, seconds in run["costs"]:
        assert 0 < bound <= bytes_ and seconds > 0
    # A rank needs 32 indices along each mode, of which it may hold some: where cyclic becomes block, one of them; in a
    # transpose none, off the diagonal; where cyclic(3) becomes cyclic, few.
    dealt = [definition.deal("cyclic", (b,), 32, 1024) for b in (3, 1)]
    few = min(sum(a == b == c for a, b in zip(*dealt, strict=True)) for c in range(32))
    assert [bound for _, bound, _ in run["costs"]] == [16 * (32**3 - kept**3) for kept in (1, 1, 0, few)]


@pytest.mark.parametrize("part", PARTS)
def test_all_pairs(part):
    """Of 2,352 pairs of elementwise cyclic layouts of a matrix on 2x2x2, one of 3 is compiled in 10 s, of 24 in 4 s."""
    code = """
from itertools import permutations
texts, every = given
dists = [rote.parse(text).on((12, 12), (2, 2, 2)) for text in texts]
found["plans"] = len([rote.compile(*ends) for ends in [*permutations(dists, 2)][::every]])
"""
    every, below = (3, 10) if part == REST else (24, 4)
    run = best(code, ([notation(lists) for lists in texts(2, 3)], every), of="seconds", below=below)
    assert run["plans"] == 2352 // every and run["seconds"] < below


def test_a_plan_that_is_known():
    """A cached compile looks the plan up: it makes some twenty calls, whatever the plan."""
    ends = [rote.parse(text).on((64,) * 3, (4, 4)) for text in ("block[(0),(1),()]", "block[(0),(),(1)]")]
    plan = rote.compile(*ends)
    assert rote.compile(*ends) is plan
    assert calls(lambda: rote.compile(*ends)) <= 25


SIMULATE = """
import numpy as np
tests, text, extent, grid = given
array = np.arange(extent**3).reshape((extent,) * 3)
plan = rote.compile(text, shape=array.shape, grid=grid, dtype="i8")
blocks = rote.simulate.scatter(array, plan.source)
clock = time.process_time()
moved = rote.simulate.run(plan, blocks)
found["simulating"] = time.process_time() - clock
found["ranks"] = len(moved)
sys.path.insert(0, tests)
from layout import definition
found["wrong"] = definition.wrong(plan.target.layout, plan.target.grid.shape, moved, array)
"""


@pytest.mark.parametrize(
    "text, extent, grid, seconds",
    [
        ("block[(0),(),()] -> cyclic(3)[(),(),(0)]", 24, (256,), 1),
        ("block[(0),(1),()] -> block[(0),(),(1)]", 24, (16, 16), 1),
        pytest.param("(a b) c: block[(0),()] -> a (b c): [(),(0)]", 64, (512,), 1, marks=pytest.mark.slow),
        pytest.param("[(0),(1),(2)] -> block[(0),(1),(2)]", 64, (16, 16, 16), 10, marks=pytest.mark.slow),
        pytest.param("block[(0),(1),()] -> block[(0),(),(1)]", 64, (64, 64), 10, marks=pytest.mark.slow),
        pytest.param("[(0),(),()]+(1) -> block[(0),(1),()]", 64, (64, 64), 10, marks=pytest.mark.slow),
        pytest.param("block[(0),(),()] -> cyclic(3)[(),(),(0)]", 64, (4096,), 10, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_thousands_of_ranks_are_simulated(text, extent, grid, seconds):
    """`simulate` runs a plan of 64^3 on 512 ranks in 1 s and on 4,096 ranks in 10 s, and every block is right."""
    run = best(SIMULATE, [str(Path(__file__).parents[1]), text, extent, grid], of="simulating", below=seconds)
    assert run["ranks"] == prod(grid) and run["wrong"] == "" and run["simulating"] < seconds


TRANSITIONS = """
def ends(text, shape, before, after):
    return [rote.parse(each).on(shape, grid) for each, grid in zip(text.split(" -> "), (before, after))]
plan = rote.compile(*ends(*given))
plan.verify()
found |= {"steps": [step.kind for step in plan.steps], "messages": plan.cost.messages}
"""
VIEW, SWAP = "(a b) c: block[(0,1),()] -> block[(0),(1),()]", "[(0,1),()] -> [(1,0),()]"
REDUCTION, PARTS_OF = "[(0),()]+(1) -> [(0),(1)]", "[(0:block(floor))] -> [(0:block(ceil))]"
SQUARE, CUBE, LINE = (65536,) * 2, (4096,) * 3, (10**12 + 39,)
FEW, MANY = (256, 128), (1024, 1024)
WIDE = [  # a transition, a shape and two grids; kinds of steps and messages; seconds and megabytes, twice the goal
    (VIEW, CUBE, FEW, FEW, "exchange", 16, 4, 400),
    (VIEW, CUBE, MANY, MANY, "exchange", 4, 16, 1400),
    (VIEW, (2**15, 2**15, 2**10), MANY, MANY, "exchange", 32, 16, 1400),
    (SWAP, SQUARE, FEW, FEW, "alltoall", 1, 4, 400),
    (SWAP, SQUARE, (512, 512), (512, 512), "permute", 1, 16, 1400),
    (SWAP, (2**20,) * 2, MANY, MANY, "permute", 1, 16, 1400),
    ("block" + SWAP.replace("> [", "> block["), (65521,) * 2, (250, 130), (250, 130), "alltoall", 2, 4, 400),
    (REDUCTION, SQUARE, FEW, FEW, "reduce_scatter", 127, 4, 400),
    (REDUCTION, SQUARE, MANY, MANY, "reduce_scatter", 1023, 16, 1400),
    (PARTS_OF, LINE, (12345,), (12345,), "alltoall", 1, 4, 400),
    ("block[(0)] -> [(0)]", (10**7 + 19,), (4096,), (4096,), "alltoall", 2442, 4, 400),
    (PARTS_OF, LINE, (32768,), (32768,), "alltoall", 1, 4, 400),
    pytest.param(PARTS_OF, LINE, (2**20,), (2**20,), "alltoall", 1, 16, 1400, marks=pytest.mark.slow),
    ("block[(0),(),()] -> block[(0),(1),()]", CUBE, (4096,), (64, 64), "exchange", 63, 6, 400),
    ("[(0),()] -> block[(0),(1)]", SQUARE, (4096,), (64, 64), "exchange", 1024, 6, 400),
    ("[(0),()] -> block[(0),(1)]", SQUARE, (32768,), FEW, "exchange", 256, 40, 2000),
    ("block[(),(0)] -> block[(0),(1)]", SQUARE, (32768,), FEW, "exchange", 256, 40, 2000),
]


@pytest.mark.parametrize("text, shape, before, after, kind, messages, seconds, megabytes", WIDE)
def test_transitions_of_up_to_a_million_ranks(text, shape, before, after, kind, messages, seconds, megabytes):
    """Law: a transition over very many ranks is planned and proved by its digits and runs, without a table of pairs."""
    run = best(TRANSITIONS, [text, shape, before, after], of="seconds", below=seconds)
    assert run["steps"] == [kind] and run["messages"] == messages
    assert run["seconds"] < seconds and run["megabytes"] < megabytes


@pytest.mark.slow
def test_choices_for_many_ranks():
    """Law: plans are compared for a hundred thousand ranks and more in seconds, and without a gigabyte."""
    code = 'plans = rote.tradeoff("[(0)]+(1) -> [()]", shape=2**40, grid=(1000, 100))'
    run = best(code, of="seconds", below=2)
    assert run["seconds"] < 2 and run["megabytes"] < 400


@pytest.mark.parametrize(
    "text, n, p",
    [
        ("block(ceil)[(0)] -> block[(0)]", 4095, 1024),
        ("block[(0)] -> cyclic(4)[(0)]", 16, 4),
        ("block(3,3,2)[(0)] -> block[(0)]", 8, 3),
        ("block(2,3)[(0)] -> block(floor)[(0)]", 5, 2),
        ("[(0:cyclic(2,at=1))] -> [(0:block(0,2,1))]", 3, 3),
    ],
)
def test_equal_blocks_by_another_name_stay(text, n, p):
    """Law: between layouts that deal every index out to the same coordinate, there is nothing to do."""
    assert rote.compile(text, shape=n, grid=p).steps == ()


@pytest.mark.parametrize("names", [("cyclic(3)", "block"), ("block(ceil)", "block"), ("cyclic(3)", "block(3)")])
def test_equal_blocks_by_another_name_go_as_they_are(names):
    """Law: collectives of whole blocks take equal blocks by any names."""
    for roles, kind in ((("|(0)", ""), "broadcast"), (("+(0)", ""), "allreduce"), (("+(0)", "|(0)"), "reduce")):
        text = " -> ".join(f"{name}[(1)]{role}" for name, role in zip(names, roles, strict=True))
        plan = rote.compile(text, shape=6, grid=(2, 2))
        assert [step.kind for step in plan.steps] == [kind]


def test_replicas_that_serve_too_many_ranks_are_an_error_that_says_what_to_do():
    """Law: what would count the pairs of very many ranks is refused with a cure, and the other steps are taken."""
    ends = rote.parse("block[(),(0)]").on(SQUARE, MANY), rote.parse("[(0),()]").on(SQUARE, 2**20)
    with pytest.raises(rote.PlanError, match=r"serves its own ranks .* of 1048576 ranks\nsplit along the grid modes"):
        rote.compile(*ends)
