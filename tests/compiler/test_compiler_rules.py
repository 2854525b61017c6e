"""Each rule's law (`compiler.laws`) holds for many steps, and not for those of other rules; and what they imply."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from cases import all_layouts
from compiler.exhaustive_search import notation, texts
from compiler.laws import I8, LAWS, key, see
from hypothesis import given, settings
from layout import definition
from marks import PARTS, examples
from parts import REST, SOME, share
from strategies import pairs

import rote
from rote.compiler.movement import RECEIVES, movement
from rote.compiler.rules import ANY, RULES, one_step, rule_of
from rote.compiler.step import LOCAL
from rote.grammar.nodes import Kind


def mixed(parts, extents):
    return [Kind("cyclic", (1,)), Kind("block")]


def turning(parts, extents):
    return [Kind("block") if parts % 2 else Kind("cyclic", (2,))]


WORLDS = [
    ((5,), (2, 2), mixed),
    ((3, 2), (2, 3), turning),
    ((2, 3), (2, 2), mixed),
    ((4, 5), (3,), None),
    ((7,), (2, 2, 2), turning),
]
VIEWED = [
    "[(),()]",
    "b a: [(),()]",
    "[(),()]|(1@2)",
    "b a: [(0),()]",
    "(a b): [(0,1)]",
    "(b a): block[(1)]+(0)",
    "(a b): [()]|(0@1)+(1)",
    "a (r s=3): block[(0),(),(1)]",
    "a (r s=3): [(1),(),()]|(0)",
    "(r=2 s) b: [(),(1),()]+max(0)",
]
ON_GRIDS = [
    *(("block[(0),(1)]", grid) for grid in ((2, 3), (3, 2), (6, 1))),
    *(("[(0),()]+(1)", grid) for grid in ((2, 3), (3, 2))),
    *(("[(0),()]|(1@1)", grid) for grid in ((2, 3), (3, 2))),
    *(("[(),()]", grid) for grid in ((6,), (2, 3))),
]
MOST = 150  # steps of a rule, a third of them quick


@cache
def steps():
    """Per rule, steps that go by it: between all layouts of small worlds, as many of them as will do, and views."""
    worlds = [[layout.on(shape, grid) for layout in all_layouts(shape, grid, kinds)] for shape, grid, kinds in WORLDS]
    worlds += [[rote.parse(text).on(shape, (2, 3)) for text in VIEWED] for shape in ((4, 6), (2, 3))]
    worlds += [[rote.parse(text).on((3, 4), grid) for text, grid in ON_GRIDS]]
    found = {rule: [] for rule in RULES}
    for dists in worlds:
        here = {rule: [] for rule in RULES}
        for ends in product(dists, repeat=2):
            step = one_step(*ends)
            if step is not None:
                here[rule_of(step)].append(step)
        for rule, those in here.items():
            found[rule] += random.Random(0).sample(those, min(len(those), MOST // 3))
    return {rule: random.Random(0).sample(those, min(len(those), MOST)) for rule, those in found.items()}


@cache
def seen(part):
    """Per rule, what its steps do."""
    rng = np.random.default_rng(0)
    return {rule: [see(step, rng) for step in share(those, part, 1)] for rule, those in steps().items()}


in_parts = pytest.mark.parametrize("part", PARTS)
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.kind}-{rule.before}-{rule.after}")


@in_parts
@by_rule
def test_the_law_of_a_rule(rule, part):
    """The table's text is the law's, and the law holds for many steps; the tensor is right after each."""
    holds = LAWS[key(rule)]
    assert holds.__doc__ == rule.law
    assert len(seen(part)[rule]) >= {SOME: 25, REST: 50}[part] and any(any(each.have) for each in seen(part)[rule])
    for each in seen(part)[rule]:
        assert rule_of(each.step) is rule and each.wrong == "", each.step
        assert holds(each), each.step


@by_rule
def test_the_roles_of_a_rule(rule):
    """Every changed grid mode goes as the table says; in a local step, in the ways of its kind."""
    ways = {(other.before, other.after) for other in RULES if other.kind == rule.kind}
    for step in steps()[rule] if rule.before != ANY else ():
        found = {(step.before.roles[g].name, step.after.roles[g].name) for g in step.grid_modes}
        assert (rule.before, rule.after) in found, step
        assert found <= ways if rule.kind in LOCAL else len(found) == 1, step


@in_parts
@by_rule
def test_a_law_can_fail(rule, part):
    """Steps of several other rules break it."""
    others = [other for other in RULES if other.kind != rule.kind]
    if rule.kind == "exchange":  # this law holds for every step: messages have to be tampered with
        assert all(LAWS[key(rule)](each) for other in others for each in seen(part)[other])
        return
    broken = [other for other in others if not all(LAWS[key(rule)](each) for each in seen(part)[other])]
    assert len(broken) >= 8, [key(other) for other in broken]


@in_parts
def test_each_element_arrives_once_and_no_more(part):
    """The law of the exchange sees a message that is missing, doubled, misled, or made for another step."""
    holds = LAWS["exchange", ANY, ANY]
    all_seen = [each for those in seen(part).values() for each in those if any(each.arrivals)]
    for each in all_seen:
        rank, heard = next((rank, heard) for rank, heard in enumerate(each.arrivals) if heard)
        (element, contribution), *rest = heard
        for wrong in (rest, [*heard, heard[0]], [(-1, contribution), *rest], [(element, "nobody's"), *rest]):
            assert not holds(replace(each, arrivals=[*each.arrivals[:rank], wrong, *each.arrivals[rank + 1 :]]))
    others = 0
    for each, other in pairwise(all_seen):
        if each.step.after.grid == other.step.after.grid and not each.step.after.partial + other.step.after.partial:
            others += each.need != other.need
            assert each.need == other.need or not holds(replace(each, arrivals=other.arrivals)), each.step
    assert others >= {SOME: 50, REST: 100}[part]


def test_every_rule_has_a_law():
    """And every law a rule."""
    assert list(LAWS) == [key(rule) for rule in RULES]


@settings(max_examples=examples(150))
@given(pairs())
def test_the_law_of_any_step(ends):
    """Mixed kinds, views, partial and rooted, ragged: the one step between two layouts, and each step of their plan."""
    rng = np.random.default_rng(0)
    for step in {one_step(*ends), *rote.compile(*ends).steps} - {None}:
        each = see(step, rng)
        assert each.wrong == "" and LAWS[key(rule_of(step))](each), step


# --- what the table leaves unsaid -----------------------------------------------------------------------------------


def obeys(step, kinds, grid_modes):
    """The step is of one of these kinds over these grid modes alone, obeys its law, and moves what is lacked only."""
    each = see(step, np.random.default_rng(0))
    assert step.kind in kinds and step.grid_modes == grid_modes, step
    assert each.wrong == "" and LAWS[key(rule_of(step))](each), step
    lacked = max(len(need - have) for have, need in zip(each.have, each.need, strict=True))
    plan = rote.Plan(step.before, step.after, I8, (step,))
    assert plan.cost.bytes == plan.lower_bound == I8.itemsize * lacked, step


@in_parts
@pytest.mark.parametrize("kind", ["cyclic", "cyclic(2)", "block"])
def test_suffixes_move_whatever_the_extents(kind, part):
    """Nothing has to divide: the last k grid modes of any list go behind any other list in one all-to-all over them."""
    grid = (2, 3, 2)
    moves = [(lists, m, k + 1) for lists in texts(2, 3) for m in (0, 1) for k in range(len(lists[m]))]
    assert len(moves) == 6 + 2 * 18 + 3 * 24
    for shape, (lists, m, k) in share(product(((7, 5), (1, 4), (0, 3)), moves), part, 7):
        left, suffix = lists[m][:-k], lists[m][-k:]
        after = (left, lists[1] + suffix) if m == 0 else (lists[0] + suffix, left)
        ends = (rote.parse(kind + notation(each)).on(shape, grid) for each in (lists, after))
        obeys(one_step(*ends), ("alltoall", "permute"), tuple(sorted(suffix)))


@pytest.mark.parametrize("kind", ["cyclic", "cyclic(2)", "block"])
@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("[(0,1),(2),()] -> [(0,2),(1),()]", (1, 2)),
        ("[(0,1),(2),()] -> [(2),(),(0,1)]", (0, 1, 2)),
        ("[(0),(1),(2)] -> [(1),(2),(0)]", (0, 1, 2)),
        ("[(0,1),(),(2)] -> [(0),(2),(1)]", (1, 2)),
        ("[(2,0,1),(),()] -> [(2),(0),(1)]", (0, 1)),
        ("[(),(2,1),(0)] -> [(0,1,2),(),()]", (0, 1, 2)),
    ],
)
def test_several_modes_move_at_once(kind, text, over):
    """Suffixes of several lists go to several others in one all-to-all over all of them."""
    ends = (rote.parse(kind + each).on((5, 4, 3), (2, 3, 2)) for each in text.split(" -> "))
    obeys(one_step(*ends), ("alltoall",), over)


DIGITS = ["cyclic", "cyclic(2)", "cyclic(3)", "cyclic(4)", "block", "block(7)"]


@pytest.mark.parametrize("p", [2, 3, 4])
def test_kinds_change_into_each_other(p):
    """cyclic(b), block and block(b) change into each other by an all-to-all over their grid mode; others stay out."""
    for a, b in permutations(DIGITS, 2):
        for n in (12, 7, 1, 0):
            ends = [rote.parse(f"[(0:{kind}),(1)]").on((n, 3), (p, 2)) for kind in (a, b)]
            kinds = [end.layout.modes[0][0].kind for end in ends]
            if definition.deal(kinds[0].name, kinds[0].sizes, p, n) == definition.deal(
                kinds[1].name, kinds[1].sizes, p, n
            ):
                assert one_step(*ends) is None  # the same blocks by another name
                continue
            obeys(one_step(*ends), ("alltoall",), (0,))


@pytest.mark.parametrize("p, b, k", [(2, 1, 2), (4, 1, 2), (4, 3, 2), (4, 1, 4), (6, 2, 3), (6, 1, 2), (3, 2, 3)])
def test_digits_move_where_they_divide(p, b, k):
    """cyclic(b) <-> cyclic(kb), k a divisor of p: one digit of k changes hands, so that k ranks send the same to each.

    Balanced blocks are the case kb = n/p; where k = p no digit is shared, and every rank hears from all.
    """
    n = k * b * p
    for fine, coarse in product((f"[(0:cyclic({b}))]",), (f"[(0:cyclic({k * b}))]", "block[(0)]")):
        for ends in permutations(rote.parse(text).on(n, p) for text in (fine, coarse)):
            for rank in range(p):
                heard = [len(message) for message in movement(*ends).messages(rank, RECEIVES)]
                assert heard == [n // p // k] * k, (ends, rank)


ROOTS = ["", "|(0)", "|(0@1)", "|(1)", "|(1@2)", "|(0,1)", "|(0@1,1@2)", "|(0,1@1)"]


@pytest.mark.parametrize("rest", ["[(),()]", "[(),(2)]", "block[(2),()]+max(3)"])
def test_roots_change(rest):
    """Roots come (slice), go (broadcast) and change (permute), several at once; of mixtures one exchange is made."""

    def ways(ends):
        for g in range(2):
            before, after = (dict(dist.layout.rooted).get(g) for dist in ends)
            if before != after:
                yield g, "broadcast" if after is None else "slice" if before is None else "permute"

    dists = [rote.parse(rest + root).on((3, 4), (2, 3, 2, 2)) for root in ROOTS]
    kinds = Counter()
    for ends in permutations(dists, 2):
        over, names = zip(*ways(ends), strict=True)
        step = one_step(*ends)
        assert step.grid_modes == over and step.kind == (names[0] if len(set(names)) == 1 else "exchange")
        each = see(step, np.random.default_rng(0))
        assert each.wrong == "" and LAWS[key(rule_of(step))](each), step
        kinds[step.kind] += 1
    assert set(kinds) == {"slice", "broadcast", "permute", "exchange"} and min(kinds.values()) >= 10
