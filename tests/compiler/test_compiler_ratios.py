"""Rote's plans against two fixed pipelines, over all pairs of elemental-cyclic layouts of order 2 and 3."""

from __future__ import annotations

import doctest
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pipelines
import pytest
import ratios
from marks import PARTS
from parts import share
from pipelines import gather_walk, layouts, rote_walk
from ratios import BYTES_ONLY, CASES, Case, planned

import rote
from rote.compiler.rules import one_step
from rote.compiler.search import Search

ITEM = 8
ROUNDING = 1 + 1e-12

# On three grid modes a tensor of order 3 has 11,130 pairs.
in_parts = pytest.mark.parametrize("part", PARTS)
every_case = pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (len(case.shape) == len(case.grid) == 3)) for case in CASES],
    ids=lambda case: f"{case.shape}-{case.grid}".replace(" ", ""),
)


def movement(before, after):
    """The one step that a pipeline takes from one distribution to another."""
    return one_step(before, after)


@cache
def seconds(case, before, after):
    """What the step from one layout to another takes on the default machine."""
    ends = case.distributions[before], case.distributions[after]
    return rote.Plan(*ends, np.dtype("f8"), (movement(*ends),)).cost.seconds


def walk_seconds(case, walk):
    """What a walk takes on the default machine: the sum over its steps."""
    return sum(seconds(case, a, b) for a, b in pairwise(walk))


def first_pairs(case):
    """One pair of every class of pairs that differ by names only."""
    return dict.fromkeys(case.alike(*pair) for pair in case.pairs())


@in_parts
@every_case
def test_where_only_bytes_count_a_plan_moves_the_lower_bound(case, part):
    """bytes == lower_bound == max over ranks of |need minus have|, and no pipeline moves less."""
    assert np.array_equal(case.lacks.max(axis=2), case.lacks.max(axis=2).flat[case.classes])
    for a, b in share(first_pairs(case), part, 12, of=3):
        plan = planned(case, a, b)
        assert plan.cost.bytes == plan.lower_bound == ITEM * case.least(a, b), (a, b)
    for a, b in share(case.pairs(), part, 12, of=3):
        assert case.received(rote_walk(a, b)) >= case.least(a, b), (a, b)
        assert case.received(gather_walk(a, b)) >= case.least(a, b), (a, b)


@in_parts
@every_case
def test_no_pipeline_is_faster_than_a_plan(case, part):
    """On the default machine a plan takes no longer than either walk, whose steps are priced like its own."""
    dists, machine = case.distributions, rote.Machine()
    fastest = cache(lambda a, b: Search(dists[a], dists[b], ITEM, machine).cheapest().seconds)
    for a, b in share(case.pairs(), part, 12):
        mine = fastest(*case.alike(a, b))
        assert mine <= walk_seconds(case, rote_walk(a, b)) * ROUNDING, (a, b)
        assert mine <= walk_seconds(case, gather_walk(a, b)) * ROUNDING, (a, b)


@in_parts
@pytest.mark.parametrize("case", [Case((12, 12), (2, 2)), Case((7, 7), (2, 3)), Case((4, 4, 4), (2, 2))], ids=str)
def test_pairs_that_differ_by_names_cost_the_same(case, part):
    """Renaming tensor modes or grid modes of the same extent changes no cost: one pair of each class will do."""

    @cache
    def price(a, b, machine):
        return rote.compile(case.distributions[a], case.distributions[b], "f8", machine=machine).cost

    others = [pair for pair in case.pairs() if pair != case.alike(*pair)]
    assert others
    for machine in (BYTES_ONLY, rote.Machine()):
        for a, b in share(others, part, 8):
            cost, first = price(a, b, machine), price(*case.alike(a, b), machine)
            assert (cost.bytes, cost.seconds) == (first.bytes, pytest.approx(first.seconds, rel=1e-12)), (a, b)


@in_parts
def test_the_seconds_of_a_walk_are_those_of_a_plan_with_its_steps(part):
    """What is added up here of the steps of a pipeline is what a plan of these steps claims, and it is proved."""
    case = Case((7, 5), (2, 3))
    for a, b in share(case.pairs(), part, 4):
        for walk in (rote_walk(a, b), gather_walk(a, b)):
            dists = [case.distributions[layout] for layout in walk]
            steps = tuple(movement(before, after) for before, after in pairwise(dists))
            plan = rote.Plan(dists[0], dists[-1], np.dtype("f8"), steps)
            plan.verify()
            assert plan.cost.seconds == pytest.approx(walk_seconds(case, walk), rel=1e-12)
            assert plan.cost.bytes == ITEM * case.received(walk), walk


@every_case
def test_pipelines_walk_by_collectives(case):
    """From the source to the target; ROTE's steps are slices, all-gathers, all-to-alls and permutes, and never more.

    Gather-then-slice is at most one all-gather and one slice.
    """
    kinds = {}
    for a, b in case.pairs():
        for walk in (rote_walk(a, b), gather_walk(a, b)):
            assert (walk[0], walk[-1]) == (a, b)
            for step in pairwise(walk):
                if step not in kinds:
                    kinds[step] = movement(*(case.distributions[layout] for layout in step)).kind
        assert {kinds[step] for step in pairwise(rote_walk(a, b))} <= {"slice", "allgather", "alltoall", "permute"}
        assert [kinds[step] for step in pairwise(gather_walk(a, b))] in (
            ["allgather", "slice"],
            ["allgather"],
            ["slice"],
        )


def test_what_is_known_of_the_pipeline_of_rote():
    """A transpose on a square grid takes three steps; at order 2 on 2x2x2, 63 % of the walks move too much."""
    transpose = rote_walk(rote.parse("[(0),(1)]"), rote.parse("[(1),(0)]"))
    assert [str(layout) for layout in transpose] == ["[(0),(1)]", "[(),(1,0)]", "[(),(0,1)]", "[(1),(0)]"]
    share = ratios.shares(Case((12, 12), (2, 2, 2)), ratios.by_rote)
    assert round(100 * share.more) == 63
    assert 1.5 < share.mean < 2 and 4 < share.worst < 5


def test_all_layouts_are_there():
    """Each k of the grid modes stand in the lists of d tensor modes in d (d + 1) ... (d + k - 1) ways."""
    assert [len(layouts(order, n)) for order in (2, 3) for n in (2, 3)] == [11, 49, 19, 106]
    assert all(len(set(layouts(order, 3))) == len(layouts(order, 3)) for order in (2, 3))


@pytest.mark.parametrize("module", [pipelines, ratios], ids=lambda module: module.__name__)
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_the_table_has_a_row_per_case_of_legal_numbers():
    """Shares are parts of one, no ratio is below one, and what gathers then slices communicates at most once."""
    for case in CASES[:3]:
        for way in (ratios.ours, ratios.by_rote, ratios.by_gather):
            share = ratios.shares(case, way)
            assert 0 <= share.more <= 1 <= share.mean <= share.worst
            assert share.steps <= (1 if way is ratios.by_gather else 6)
        assert ratios.shares(case, ratios.ours).more == 0


@pytest.mark.slow
def test_the_book_shows_the_table():
    """The rows of ratios in the book are rows of the script's table."""
    head, line, *rows = ratios.table().splitlines()
    page = (Path(__file__).parents[2] / "notebooks" / "coming-from-rote.md").read_text("utf-8")
    shown = page.split(f"{head}\n{line}\n")[1].split("\n\n")[0].splitlines()
    assert len(shown) == 3 and set(shown) <= set(rows)
