"""Plans from one grid to another over the same ranks: as defined, counted by brute force, and certified.

The definition says who holds what. `expected` adds the one rule that it leaves open, who sends to whom; it reads
nothing of a layout but its fields, so that `simulate`, the matrix and the costs have something to be compared with.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice, pairwise, product
from math import prod

import numpy as np
import pytest
from cases import all_layouts, pick_grids, pick_layout, pick_shape
from compiler import exhaustive_verify
from hypothesis import given, settings
from hypothesis import strategies as st
from layout import definition
from marks import PARTS, examples
from parts import REST, SOME, share
from strategies import pairs_across

import rote
from rote.compiler.cost import at_least, duration, flow
from rote.compiler.movement import RECEIVES, SENDS, movement
from rote.compiler.plan import Plan
from rote.compiler.rules import one_step
from rote.compiler.step import KINDS
from rote.errors import LayoutError, PlanError
from rote.grammar.nodes import Kind
from rote.runtime import world
from rote.runtime.plans import bind

ITEM = 8
MACHINES = {
    "default": rote.Machine(),
    "latency": rote.Machine(latency=1.0, byte_time=0, copy_time=0, reduce_time=0, step_time=0),
    "bytes": rote.Machine(latency=0, byte_time=1.0, copy_time=0, reduce_time=0, step_time=0),
    "reducing": rote.Machine(latency=1e-6, byte_time=1e-9, copy_time=0, reduce_time=1.0, step_time=0),
    "free": rote.Machine(latency=0, byte_time=0, copy_time=0, reduce_time=0, step_time=0),
}


def on(text, shape, grid):
    return rote.parse(text).on(shape, grid)


def held(dist):
    """Per rank, the elements that it holds, by the definition."""
    blocks = definition.block_indices(dist.layout, dist.shape, dist.grid.shape)
    return [set(block.reshape(-1).tolist()) for block in blocks]


def idle(layout, order):
    """The grid modes that a layout does not name: along them all hold the same."""
    named = {e.grid_mode for mode in layout.modes for e in mode} | {*layout.partial} | {g for g, _ in layout.rooted}
    return [g for g in range(order) if g not in named]


def expected(source, target):
    """Elements from each rank (row) to each rank (column), by brute force; on the diagonal those that it keeps.

    A rank hears from those that hold what it needs. Of replicas it hears from the one at its own coordinates along the
    grid modes over which they are replicas; contributions enter at coordinate 0 of what is partial afterwards.
    """
    have, need = held(source), held(target)
    here, there = (definition.coordinates(dist.grid.shape) for dist in (source, target))
    same = idle(source.layout, source.grid.order)
    found = np.zeros((len(have), len(need)), np.int64)
    for a, b in product(range(len(have)), repeat=2):
        if all(here[a][g] == here[b][g] for g in same) and not any(there[b][h] for h in target.layout.partial):
            found[a, b] = len(have[a] & need[b])
    return found


def wrong(plan, rng, contributions):
    """What is wrong with the blocks that a plan leads to: "" if nothing. Contributions are random, or all at 0."""
    args = plan.source.layout, plan.source.shape, plan.source.grid.shape
    array, blocks = definition.contribute(*args, rng, 1, 4) if contributions else definition.numbered(*args)
    before = [block.copy() for block in blocks]
    found = rote.simulate.run(plan, blocks)
    assert all(map(np.array_equal, blocks, before)), "the input was changed"
    return definition.wrong(plan.target.layout, plan.target.grid.shape, found, array)


def check_move(plan, rng):
    """A plan moves as defined, and costs what is counted message by message. Returns its kinds of steps."""
    assert plan.source.grid != plan.target.grid
    for contributions in (False, True) if plan.source.partial else (False,):
        assert wrong(plan, rng, contributions) == "", plan
    assert exhaustive_verify.figures(plan.source, plan.target, plan.steps, ITEM) == exhaustive_verify.Figures(
        plan.cost.bytes, plan.cost.messages, plan.cost.peak_bytes
    ), plan
    assert plan.cost.bytes >= plan.lower_bound
    return [step.kind for step in plan.steps]


def check_cost(plan):
    """The bound and, of one step, bytes, messages and memory are those of the elements of the definition."""
    source, target = plan.source, plan.target
    matrix = expected(source, target)
    others = matrix - np.diag(matrix.diagonal())
    assert np.array_equal(movement(source, target).matrix(), matrix), plan
    have, need = held(source), held(target)
    needs = max(min(others[:, rank].sum(), len(need[rank])) for rank in range(len(need)))
    elements = len(set().union(*have))
    given, left = (prod(dist.grid.shape[g] for g in dist.partial) for dist in (source, target))
    receipts = elements * max(given - left, 0) if source.partial else 0
    if source.partial and left == 1:  # of each element: to bring it together, elsewhere if no rank of it has a part
        in_place = sum(len(a & b) for a, b in zip(have, need, strict=True))
        receipts += sum(map(len, need)) - elements + max(elements - in_place, 0)
    least = max(0 if target.partial else needs, -(-receipts // len(have)))
    assert plan.lower_bound == ITEM * least, plan
    if not (source.partial or target.partial):
        lacking = [len(b - a) for a, b in zip(have, need, strict=True)]
        assert others.sum(axis=0).tolist() == lacking and plan.lower_bound == ITEM * max(lacking), plan
    if len(plan.steps) > 1:
        return
    (step,) = plan.steps
    assert step.kind == ("exchange" if others.any() else "relayout"), plan
    come, heard, gone = others.sum(axis=0), (others > 0).sum(axis=0), others.sum(axis=1)
    moved, cost = flow(step), plan.cost
    claims = moved.elements, moved.messages, moved.send_buffer, moved.receive_buffer
    for claim, count in zip(claims, (come, heard, gone, come), strict=True):
        assert np.array_equal(np.broadcast_to(claim, step.ranks.shape).reshape(-1), count), plan
    blocks = np.array([len(a) + len(b) for a, b in zip(have, need, strict=True)])
    assert (cost.bytes, cost.messages) == (ITEM * come.max(), heard.max()), plan
    assert cost.peak_bytes == ITEM * (blocks + come + gone).max(), plan
    if not (source.partial or target.partial):
        assert cost.bytes == plan.lower_bound, plan


# --- every pair -----------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(pairs_across(), st.sampled_from(sorted(MACHINES)), st.integers(0, 99))
def test_any_pair(pair, machine, seed):
    """Law: on any machine the plan does what the definition says, at the cost that it says, and is certified."""
    plan = rote.compile(*pair, dtype="i8", machine=MACHINES[machine])
    check_move(plan, np.random.default_rng(seed))
    check_cost(plan)


@settings(max_examples=examples(150))
@given(pairs_across())
def test_the_matrix_is_the_messages(pair):
    """Law: both sides list the messages of the brute force, and rows and columns of the matrix add up to the counts."""
    source, target = pair
    matrix, lists = expected(source, target), np.zeros((2, source.grid.size, source.grid.size), np.int64)
    for rank in range(source.grid.size):
        for message in movement(source, target).messages(rank, SENDS):
            lists[0, rank, message.peer] += len(message)
        for message in movement(source, target).messages(rank, RECEIVES):
            lists[1, message.peer, rank] += len(message)
    assert np.array_equal(lists, [matrix, matrix]) and np.array_equal(movement(source, target).matrix(), matrix)
    np.fill_diagonal(matrix, 0)
    for side, axis in ((SENDS, 1), (RECEIVES, 0)):
        ranks = source.grid.refine(target.grid).shape
        traffic = movement(source, target).traffic(side)
        elements, messages = (np.broadcast_to(each, ranks).reshape(-1) for each in traffic)
        assert np.array_equal(elements, matrix.sum(axis=axis))
        assert np.array_equal(messages, (matrix > 0).sum(axis=axis))


@settings(max_examples=examples(150))
@given(pairs_across(), st.sampled_from(["?", "i4", "f8", "c16"]), st.sampled_from(sorted(MACHINES)))
def test_text_and_json_are_read_back(pair, dtype, machine):
    """Law: what a plan prints, and its JSON, are the plan; it explains itself; and says of which grids."""
    kind, machine = dtype, MACHINES[machine]
    if any(dist.layout.op in ("max", "min") for dist in pair):
        kind = "f8"  # complex numbers have no max
    plan = rote.compile(*pair, dtype=kind, machine=machine)
    assert Plan.from_text(str(plan), machine) == Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(plan.to_json()).optimality == plan.optimality
    source, target = pair
    head = f" on grid {source.grid} to {target.grid}"
    assert str(plan).split("\n")[0].endswith(head) and plan.explain().split("\n")[0].endswith(head)
    for step in plan.steps:
        assert (f" to grid {step.after.grid}: " in str(step)) == (step.before.grid != step.after.grid)


@settings(max_examples=examples(100))
@given(pairs_across(), st.sampled_from(sorted(MACHINES)))
def test_the_best_found(pair, name):
    """A plan is the "best found", or "optimal" where no two steps could be faster than its one; `tradeoff` agrees."""
    source, target = pair
    machine = MACHINES[name]
    plan, one = rote.compile(source, target, machine=machine), one_step(source, target)
    alone = duration(one, ITEM, machine).seconds
    two = machine.step_time + at_least(movement(source, target), ITEM, machine)
    assert plan.optimality == ("best found" if alone > two * (1 + 1e-12) else "optimal")
    assert plan.cost.seconds <= alone * (1 + 1e-12) and at_least(movement(source, target), ITEM, machine) <= alone * (
        1 + 1e-12
    )
    if plan.optimality == "optimal":
        assert plan.steps == (one,)
    fastest, *others = rote.tradeoff(source, target, machine=machine)
    assert fastest.cost.seconds == pytest.approx(plan.cost.seconds)
    for faster, leaner in pairwise((fastest, *others)):
        assert leaner.cost.peak_bytes < faster.cost.peak_bytes
        assert rote.compile(source, target, machine=machine, max_bytes=leaner.cost.peak_bytes).steps == leaner.steps


@pytest.mark.parametrize("part", PARTS)
def test_steps_before_and_after_the_change_of_grids(part):
    """Where reducing costs most, or messages do, plans reduce on the old grid and spread on the new one."""
    rng, seen, cases = random.Random(5), Counter(), []
    for _ in range(250):
        grids, shape = pick_grids(rng.choice), pick_shape(rng.choice)
        cases.append([pick_layout(rng.choice, shape, grid).on(shape, grid) for grid in grids])
    for source, target in share(cases, part, 2):
        for machine in (MACHINES["latency"], MACHINES["reducing"]):
            plan = rote.compile(source, target, "i8", machine=machine)
            if len(plan.steps) > 1:
                check_move(plan, np.random.default_rng(0))
                check_cost(plan)
                (at,) = (k for k, step in enumerate(plan.steps) if step.before.grid != step.after.grid)
                seen["before"] += at > 0
                seen["after"] += at < len(plan.steps) - 1
                seen["both"] += len(plan.steps) > 2
    assert min(seen[name] for name in ("before", "after", "both")) >= {SOME: 1, REST: 3}[part], seen


@settings(max_examples=examples(60))
@given(st.data())
def test_the_bound_is_consistent(data):
    """Law: at_least(a, c) <= duration(a -> b) + at_least(b, c), wherever the grid changes."""

    def pick(options):
        return data.draw(st.sampled_from(options))

    one, other = pick_grids(pick)
    shape = pick_shape(pick)
    grids = pick([(one, other, one), (one, one, other), (one, other, other)])
    a, b, c = (pick_layout(pick, shape, grid).on(shape, grid) for grid in grids)
    for machine in MACHINES.values():
        step = one_step(a, b)
        taken = duration(step, ITEM, machine).seconds if step else 0.0
        assert (
            at_least(movement(a, c), ITEM, machine)
            <= (taken + at_least(movement(b, c), ITEM, machine)) * (1 + 1e-9) + 1e-15
        )


def mixed(parts, extents):
    """A cyclic and a balanced kind: enough, together, for all pairs."""
    return [Kind("cyclic", (1,)), Kind("block")]


CASES = [
    ((), (1,), (), None, 1),
    ((3,), (1,), (), None, 1),
    ((2, 3), (), (1, 1), None, 1),
    ((), (4,), (2, 2), None, 1),
    ((), (2, 2), (4, 1), None, 1),
    ((5,), (2,), (1, 2), None, 3),
    ((0,), (2, 2), (4,), mixed, 1),
    ((3,), (4,), (2, 2), None, 4),
    ((5,), (2, 2), (4,), mixed, 1),
    ((3,), (2, 2), (1, 4), mixed, 5),
    ((3, 2), (4,), (2, 2), mixed, 1),
    ((2, 3), (6,), (3, 2), mixed, 2),
    ((2, 3), (2, 3), (3, 2), mixed, 11),
    ((2, 5), (2, 2, 2), (8,), mixed, 29),
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shape, one, other, kinds, stride", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_every_small_pair(shape, one, other, kinds, stride, part):
    """Every pair of small layouts on two grids, or one of so many, rooted and partial ones included."""
    rng = np.random.default_rng(0)
    dists = [[layout.on(shape, grid) for layout in all_layouts(shape, grid, kinds)] for grid in (one, other)]
    seen = set()
    for source, target in share(islice(product(*dists), 0, None, stride), part, 11, of=3):
        plan = rote.compile(source, target, "i8")
        seen.update(check_move(plan, rng))
        check_cost(plan)
    kinds = {"exchange", "relayout"} if 0 not in shape and max((0, *one)) > 1 else {"relayout"}
    assert seen == kinds or (part == SOME and seen and seen < kinds)


def test_the_check_can_fail(monkeypatch):
    """Two elements that change places are found by the definition, a wrong rank or figure by counting."""
    rng = np.random.default_rng(0)
    source, target = on("[(0),()]", (4, 3), (4,)), on("block[(0),(1)]", (4, 3), (2, 2))
    plan, whole = rote.compile(source, target, "i8"), rote.simulate.run
    check_move(plan, rng)
    check_cost(plan)

    def swapped(plan, blocks):
        found = whole(plan, blocks)
        found[1][[0, 1]] = found[1][[1, 0]]
        return found

    with monkeypatch.context() as patch:
        patch.setattr(rote.simulate, "run", swapped)
        with pytest.raises(AssertionError, match="ranks \\[1\\] hold 7, not 4"):
            check_move(plan, rng)
    with pytest.raises(AssertionError):
        check_cost(rote.compile(source, target, "i4"))
    replicas = rote.compile(on("[()]", (4,), (4,)), on("[(0)]", (4,), (2, 2)))
    check_cost(replicas)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "idle", lambda layout, order: [])
        with pytest.raises(AssertionError):
            check_cost(replicas)


# --- what is refused ------------------------------------------------------------------------------------------------


def test_other_numbers_of_ranks_are_refused():
    """The text says both grids and how many ranks they have."""
    source, target = on("[(0)]", (6,), (4,)), on("[(0)]", (6,), (2, 3))
    for call in (rote.compile, rote.tradeoff):
        with pytest.raises(PlanError) as caught:
            call(source, target)
        assert str(caught.value) == (
            "a plan stays on its ranks: the source is on grid 4 of 4, the target on grid 2x3 of 6"
        )
    with pytest.raises(PlanError, match="a tensor keeps its shape"):
        rote.compile(source, on("[(0)]", (7,), (2, 2)))


@pytest.mark.parametrize("text", ["[()]+(0) -> [(0)]", "[(0)] -> [()]+(0)", "[(0)] -> [(0)]"])
@pytest.mark.parametrize("times", [(1e-6,), (1e-6, 2e-6), (1e-6,) * 3])
def test_times_per_grid_mode_do_not_suit_grids_of_two_orders(text, times):
    """Whatever the number of times, and whichever plan were cheapest: they are refused with what to write."""
    layouts = rote.parse_transition(text)
    for one, other in (((4,), (2, 2)), ((2, 2), (4,))):
        source, target = layouts.source.on((12,), one), layouts.target.on((12,), other)
        for call in (rote.compile, rote.tradeoff):
            with pytest.raises(PlanError) as caught:
                call(source, target, machine=rote.Machine(latency=times))
            rule, cure = str(caught.value).split("\n")
            order = next(len(grid) for grid in (one, other) if len(grid) != len(times))
            number = f"{len(times)} time{'s' * (len(times) != 1)}"
            assert rule == f"the machine has {number} for latency, but a grid of the plan has order {order}"
            assert cure == "write one number, or one per grid mode; for grids of different orders, one number"


def test_times_per_grid_mode_suit_grids_of_one_order():
    """Between the grids all messages go at the pace of the slowest mode, for no mode tells who is far from whom."""
    source, target = on("[(0)]", (12,), (2, 3)), on("[(0,1)]", (12,), (3, 2))
    slow, uneven = (rote.compile(source, target, machine=rote.Machine(latency=t)) for t in (1.0, (1e-6, 1.0)))
    assert slow.cost == uneven.cost and slow.steps == uneven.steps
    assert uneven.explain() and Plan.from_json(uneven.to_json()) == uneven


# --- text and JSON --------------------------------------------------------------------------------------------------

HEAD = "block[(0),()] -> block[(0),(1)] of (6, 4) float64 on grid 4 to 2x2"
STEP = "  1. exchange over 0 to grid 2x2: block[(0),()] -> block[(0),(1)]"
NOTHING = "  nothing to do: every rank holds its block already"


def test_the_text_is_as_documented():
    """The first line names both grids, and the step that leads to the second one says so."""
    plan = rote.compile(on("block[(0),()]", (6, 4), (4,)), on("block[(0),(1)]", (6, 4), (2, 2)))
    assert str(plan) == f"{HEAD}\n{STEP}"
    assert plan.explain().startswith(HEAD.replace(" of (", "   ("))
    none = rote.compile(on("[()]", (3,), ()), on("[()]", (3,), (1,)))
    assert str(none).startswith("[()] -> [()] of (3,) float64 on grid () to 1\n  1. relayout to grid 1: ")
    assert Plan.from_text(str(none)) == none


DAMAGED = [
    ("4 to 2x2", "4", "names grid mode 1, but the grid 4 has order 1"),
    ("4 to 2x2", "2x2", "the tensor lies on grid 2x2 already"),
    ("4 to 2x2", "4 to ", "'' is no grid"),
    ("4 to 2x2", "4 TO 2x2", "'4 TO 2x2' is no grid"),
    ("4 to 2x2", "4 to two", "'two' is no grid"),
    ("4 to 2x2", "4 to 2x2 ", "'2x2 ' is no grid"),
    ("4 to 2x2", "4 to 2x2 to 2x2", "'2x2 to 2x2' is no grid"),
    ("4 to 2x2", "four to 2x2", "'four' is no grid"),
    ("4 to 2x2", "04 to 2x2", "'04' is no grid"),
    ("4 to 2x2", "4 to 4", "the tensor lies on grid 4 already"),
    ("4 to 2x2", "4 to 2x3", "grid 2x3 is of 6 ranks, but grid 4 is of 4"),
    ("4 to 2x2", "4 to ()", "grid () is of 1 ranks, but grid 4 is of 4"),
    (
        "4 to 2x2",
        "4 to 4x1",
        "the steps end in block[(0),(1)] on grid 2x2, but the plan is to block[(0),(1)] on grid 4x1",
    ),
    (" to grid 2x2", "", "names grid mode 1, but the grid 4 has order 1"),
    (" to grid 2x2", " to grid", "'0 to grid' are no grid modes"),
    (" to grid 2x2", " to grid ", "'' is no grid"),
    (" to grid 2x2", " to 2x2", "'0 to 2x2' are no grid modes"),
    (" to grid 2x2", " to grid 2X2", "'2X2' is no grid"),
    (" to grid 2x2", " to grid 4", "the tensor lies on grid 4 already"),
    (" to grid 2x2", " to grid 2x3", "grid 2x3 is of 6 ranks, but grid 4 is of 4"),
    (" to grid 2x2", " to grid 4x1", "on grid 4x1, but the plan is to block[(0),(1)] on grid 2x2"),
    (" to grid 2x2", " to grid 2x2 to grid 2x2", "'0 to grid 2x2' are no grid modes"),
    ("over 0 to grid 2x2", "to grid 2x2 over 0", "'exchange to grid 2x2' is no kind of step"),
    ("over 0", "over 1", "grid 4 has order 1"),
    ("over 0", "over", "'exchange over' is no kind of step"),
    ("exchange", "xchange", "did you mean exchange?"),
    (STEP, f"{STEP}\n{STEP.replace('1.', '2.')}", "the tensor lies on grid 2x2 already"),
    ("2x2: block[(0),()] -> block[(0),(1)]", "2x2: block[(0),()] -> block[(1),(0)]", "the steps end in block[(1),(0)]"),
]


@pytest.mark.parametrize(("whole", "damaged", "says"), DAMAGED)
def test_a_damaged_text_is_refused(whole, damaged, says):
    """Every other wording of the grids: what is wrong, and what to write."""
    assert whole in f"{HEAD}\n{STEP}"
    with pytest.raises((PlanError, LayoutError)) as found:
        Plan.from_text(f"{HEAD}\n{STEP}".replace(whole, damaged))
    assert says in str(found.value)
    assert isinstance(found.value, LayoutError) or len(str(found.value).split("\n")) > 1, "a cure"


@pytest.mark.parametrize(("whole", "damaged"), [("4 to 2x2", "4 to 2x3"), ("grid 2x2:", "grid 2x3:")])
def test_the_caret_stands_under_the_grid(whole, damaged):
    """Under the one that is wrong, in the line where it stands."""
    with pytest.raises(PlanError) as found:
        Plan.from_text(f"{HEAD}\n{STEP}".replace(whole, damaged))
    _, line, caret, cure = str(found.value).split("\n")
    assert line[caret.index("^") :].startswith("2x3") and cure.startswith("write a grid of 4 ranks")


@settings(max_examples=examples(200))
@given(pairs_across(), st.data())
def test_damage_never_passes_for_another_answer(pair, data):
    """A character less or another one: one of Rote's errors, or a plan that prints itself so that it is read back."""
    text = str(rote.compile(*pair))
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.sampled_from(["", " ", "0", "1", "x", "(", "\n", "é"])) + text[place + 1 :]
    try:
        plan = Plan.from_text(damaged)
    except rote.RoteError:
        return
    assert Plan.from_text(str(plan)) == plan and plan.cost.bytes >= 0


def as_json(change):
    """The JSON of the documented plan after a change."""
    tree = json.loads(rote.Plan.from_text(f"{HEAD}\n{STEP}").to_json())
    assert (tree["grid"], tree["target_grid"], tree["steps"][0]["grid"]) == ([4], [2, 2], [2, 2])
    change(tree)
    return json.dumps(tree)


BROKEN = [
    (lambda tree: tree.update(target_grid=[2, 3]), "a plan stays on its ranks"),
    (lambda tree: tree.update(grid=[5]), "a step keeps the shape and the ranks"),
    (lambda tree: tree["steps"][0].update(grid=[2, 1]), "a step keeps the shape and the ranks"),
    (lambda tree: tree["steps"][0].update(grid=[4]), "no plan"),
    (lambda tree: tree["steps"][0].update(grid="2x2"), "no plan"),
    (lambda tree: tree["steps"][0].update(grid=4), "no plan"),
    (lambda tree: tree.update(target_grid=None), "no plan"),
    (lambda tree: tree.update(target_grid=[2, -2]), "no plan"),
    (lambda tree: tree.pop("target_grid"), "no plan"),
    (lambda tree: tree["steps"][0].pop("grid"), "no plan"),
]


@pytest.mark.parametrize(("change", "says"), BROKEN)
def test_a_damaged_json_is_refused(change, says):
    """Grids that are none, that layouts do not fit, or of other numbers of ranks."""
    with pytest.raises(PlanError, match=says):
        Plan.from_json(as_json(change))


def test_a_json_of_another_grid_is_refused():
    """A step that leads to another grid than the plan."""
    for change in (lambda tree: tree["steps"][0].update(grid=[4, 1]), lambda tree: tree.update(target_grid=[4, 1])):
        with pytest.raises(PlanError, match="the steps end in"):
            Plan.from_json(as_json(change))


def test_a_json_of_another_format_is_refused():
    """A plan that another version has written is never misread."""
    for change in (lambda tree: tree.pop("format"), lambda tree: tree.update(format=2)):
        with pytest.raises(PlanError, match="and this version of Rote reads format 1\ncompile it again"):
            Plan.from_json(as_json(change))


ENDS_ON_NO_MODES = [
    ("[()]", "[()]", (4,)),
    ("[(),()]", "(a b): [()]", (4, 6)),
    ("[]", "[]", ()),
    ("[()]", "[()]", (0,)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after", "shape"), ENDS_ON_NO_MODES)
def test_every_kind_of_step_on_a_grid_of_order_0(kind, before, after, shape):
    """Law: a step between distributions on one process is proved, and then does nothing, or refused with a reason."""
    text = f"{before} -> {after} of {shape} float64 on grid ()\n  1. {kind}: {before} -> {after}"
    plan = Plan.from_text(text)
    assert Plan.from_json(plan.to_json()) == Plan.from_text(str(plan)) == plan
    assert plan.cost.messages == plan.lower_bound == 0 and rote.predict(plan).seconds > 0
    assert kind in plan.explain()
    if kind not in ("slice", "relayout", "alltoall", "permute", "exchange"):
        with pytest.raises(PlanError, match="step 1"):
            plan.verify()
        return
    plan.verify()
    assert plan.cost.bytes == 0
    array = np.arange(prod(shape), dtype="f8").reshape(shape)
    (block,) = rote.simulate.run(plan, rote.simulate.scatter(array, plan.source))
    assert np.array_equal(block.reshape(-1), array.reshape(-1))
    assert np.array_equal(bind(plan, world())(array), block)


@pytest.mark.parametrize(("before", "after", "shape"), ENDS_ON_NO_MODES)
def test_compiled_plans_on_a_grid_of_order_0(before, after, shape):
    """Law: what is compiled for one process is proved, written and explained as any plan."""
    plan = rote.compile(on(before, shape, ()), on(after, shape, ()))
    plan.verify()
    assert Plan.from_json(plan.to_json()) == plan and plan.explain()
