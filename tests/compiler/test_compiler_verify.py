"""The certificate: it accepts every right plan, refuses every wrong one, and does not grow with the tensor.

Plans are made here of one step per pair of layouts, so that they have as many steps as the test says.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from cases import pick_grid, pick_layout, pick_shape
from compiler import exhaustive_verify
from layout import definition
from marks import PARTS
from parts import REST, SOME, share

import rote
from rote.compiler import peers
from rote.compiler.factor import Factor
from rote.compiler.movement import RECEIVES, SENDS, Movement
from rote.compiler.plan import Plan
from rote.compiler.rules import one_step
from rote.compiler.step import LOCAL
from rote.compiler.verify import certificate, proof
from rote.errors import PlanError
from rote.lattice import Lattice
from rote.runtime.plans import bind

ALL_KINDS = (*LOCAL, *certificate.ROLES, "permute", "exchange")


def joined(dists):
    """The plan that goes from each distribution to the next in one step; None if there is nothing to do somewhere."""
    steps = tuple(one_step(a, b) for a, b in pairwise(dists))
    return Plan(dists[0], dists[-1], np.dtype("f8"), steps) if all(steps) else None


def plan_of(text, shape, grid):
    """The plan of one step of a transition."""
    transition = rote.parse_transition(text)
    return joined([transition.source.on(shape, grid), transition.target.on(shape, grid)])


def plans(seed, number, grid=None, steps=1):
    """Seeded right plans of all kinds: views, partial, rooted, ragged, empty ranks; of one step or of several."""
    rng = random.Random(seed)
    while number:
        shape, on = pick_shape(rng.choice), grid or pick_grid(rng.choice)
        plan = joined([pick_layout(rng.choice, shape, on).on(shape, on) for _ in range(steps + 1)])
        if plan is not None:
            number -= 1
            yield plan


def certify(plan, claimed=None):
    """What `plan.verify()` does, with any claim or none."""
    claim = claimed if claimed is None or callable(claimed) else lambda: claimed
    certificate.verify(plan.source, plan.target, plan.steps, plan.dtype, claim)


def refused(plan, claimed=None):
    try:
        certify(plan, claimed)
    except PlanError as error:
        assert str(error), "an error says something"
        return True
    return False


def figures(plan):
    """Bytes, messages and peak bytes of a plan, counted message by message."""
    return exhaustive_verify.figures(plan.source, plan.target, plan.steps, plan.dtype.itemsize)


@pytest.mark.parametrize("part", PARTS)
def test_no_false_alarms(part):
    """Every right plan is accepted: all kinds of steps, one to three of them."""
    seen = Counter()
    for plan in share((*plans(1, 1400), *plans(2, 200, steps=2), *plans(9, 100, steps=3)), part, 5, of=3):
        certify(plan)
        seen.update(step.kind for step in plan.steps)
    assert set(seen) == set(ALL_KINDS) and min(seen.values()) >= {SOME: 1, REST: 5}[part], seen


# What one rank sends or receives, changed. A change gives None where it would change nothing.


def dropped(rng, messages, plan, rank):
    return messages[1:] if rng.random() < 0.5 else messages[:-1]


def doubled(rng, messages, plan, rank):
    return sorted([*messages, rng.choice(messages)], key=lambda m: m.peer)


def peers_swapped(rng, messages, plan, rank):
    peers = [m.peer for m in messages]
    found = [replace(m, peer=peer) for m, peer in zip(messages, peers[1:] + peers[:1], strict=True)]
    return sorted(found, key=lambda m: m.peer) if len(messages) > 1 and differ(messages, found) else None


def misdirected(rng, messages, plan, rank):
    others = sorted(set(range(plan.source.grid.size)) - {m.peer for m in messages})
    if not others:
        return None
    k = rng.randrange(len(messages))
    found = [*messages[:k], replace(messages[k], peer=rng.choice(others)), *messages[k + 1 :]]
    return sorted(found, key=lambda m: m.peer)


def out_of_order(rng, messages, plan, rank):
    return messages[::-1] if len(messages) > 1 else None


def rows_of(group, change):
    """A group whose local indices are changed, run by run or list by list: `change` takes a shape and a number."""
    if group.listed:
        (number,), (begin, step) = change((len(group),), (0, 1))
        picked = begin + step * np.arange(number)
        inside = np.clip(picked, 0, max(len(group) - 1, 0))
        rows = [(start, table[inside]) for start, table in group.lattices[0].rows]
        rows[group.own] = [(start, table + picked - inside) for start, table in rows[group.own]]
        return replace(group, lattices=(Lattice((number,), tuple(rows)),))
    runs = []
    for run in group.lattices:
        shape, rows = run.shape, list(run.rows)
        for k in range(len(rows))[group.own]:
            shape, rows[k] = change(run.shape, rows[k])
        if shape != run.shape:
            for k in range(len(rows))[group.opposite]:
                rows[k] = change(run.shape, rows[k])[1]
        runs.append(Lattice(shape, tuple(rows)))
    return replace(group, lattices=tuple(runs))


def shifted(by):
    return lambda shape, row: (shape, (row[0] + by, *row[1:]))


def reordered(shape, row):
    """Along the first digit that has several values, the other way round."""
    for axis, n in enumerate(shape):
        if n > 1:
            begin = row[0] + row[axis + 1] * (n - 1)
            return shape, (begin, *row[1 : axis + 1], -row[axis + 1], *row[axis + 2 :])
    return shape, row


def shortened(shape, row):
    """Without the first value of the first digit."""
    if not shape:
        return (0,), (row[0], 1)
    return (shape[0] - 1, *shape[1:]), (row[0] + row[1], *row[1:])


def repeated(shape, row):
    return shape, (row[0], *(0 for _ in shape))


def regrouped(change):
    """A change of the local indices of one group of one message."""

    def mutated(rng, messages, plan, rank):
        k = rng.randrange(len(messages))
        if not messages[k].groups:
            return None
        i = rng.randrange(len(messages[k].groups))
        group = messages[k].groups[i]
        new = rows_of(group, change)
        if all(map(np.array_equal, new.positions, group.positions)) or not len(group):
            return None
        groups = (*messages[k].groups[:i], new, *messages[k].groups[i + 1 :])
        return [*messages[:k], replace(messages[k], groups=groups), *messages[k + 1 :]]

    return mutated


def combine_flipped(rng, messages, plan, rank):
    k = rng.randrange(len(messages))
    return [*messages[:k], replace(messages[k], combine=not messages[k].combine), *messages[k + 1 :]]


def differ(messages, others):
    """Whether any receiver is meant for other elements, once messages are compared peer by peer."""
    at = {m.peer: m for m in messages}
    return any(
        m.combine != at[m.peer].combine
        or any(
            not np.array_equal(p, q)
            for g, h in zip(m.groups, at[m.peer].groups, strict=True)
            for p, q in zip(g.positions, h.positions, strict=True)
        )
        for m in others
    )


ON_LISTS = {
    "message dropped": dropped,
    "message doubled": doubled,
    "peers swapped": peers_swapped,
    "message misdirected": misdirected,
    "messages out of order": out_of_order,
    "positions shifted": regrouped(shifted(1)),
    "elements reordered": regrouped(reordered),
    "elements dropped": regrouped(shortened),
    "elements repeated": regrouped(repeated),
    "combine flipped": combine_flipped,
}


def mutate_list(monkeypatch, rng, plan, change):
    """Change the list of one rank of one step, on one side; whether that was possible."""
    wrong = RECEIVES if change is combine_flipped else rng.choice([RECEIVES, SENDS])
    wrong_move = rng.choice(plan.steps).movement
    lists = {rank: wrong_move.messages(rank, wrong) for rank in range(plan.source.grid.size)}
    ranks = [rank for rank, messages in lists.items() if messages]
    if not ranks:
        return False
    changed = rng.choice(ranks)
    found = change(rng, lists[changed], plan, changed)
    if found is None:
        return False
    right = Movement.messages

    def messages(move, rank, side, peer=None):
        same = move is wrong_move and (rank, side) == (changed, wrong)
        return found if same else right(move, rank, side, peer)

    monkeypatch.setattr(Movement, "messages", messages)
    return True


# The movement itself is wrong, on all ranks alike: lists that agree with each other and with the factors.


def meets_flipped(rng, plan, monkeypatch):
    """Two coordinates meet that should not, or do not meet that should: a wrong root, a wrong replica, or none."""
    step = rng.choice(plan.steps)
    g = rng.randrange(plan.source.grid.order) if plan.source.grid.order else None
    if g is None:
        return False
    p, roles = plan.source.grid.shape[g], (step.before.roles[g], step.after.roles[g])
    wrong, right = rng.choice([{"sender": rng.randrange(p)}, {"receiver": rng.randrange(p)}, {}]), peers.peer_rule

    def mutated(source, target, changes, number):
        met = right(source, target, changes, number)
        if (source, target, number) == (*roles, p):
            met = met._replace(**(wrong or {"equal": not met.equal}))
            same = (met.table(range(p)) == right(source, target, changes, number).table(range(p))).all()
            rule = right(source, target, changes, number)
            elsewhere = target.name == "partial" and "receiver" in wrong and rule.receiver is not None
            harmless.append(same or elsewhere)  # any one coordinate may accumulate
        return met

    harmless = []
    mutated(*roles, step.before.layout.op != step.after.layout.op, p)
    if harmless[0]:
        return False
    monkeypatch.setattr(peers, "peer_rule", mutated)
    monkeypatch.setattr(Movement, "rules", lambda move, side: peers.peer_rules(*move.ends)[side])  # none are kept
    return True


def groups_changed(change):
    """The groups of one side of a step, as they are put together to messages."""

    def mutate(rng, plan, monkeypatch):
        if 0 in plan.source.shape:
            return False  # no message is made of them
        return with_groups(rng.choice(plan.steps).movement, rng.choice([SENDS, RECEIVES]), change, monkeypatch)

    return mutate


def with_groups(move, wrong, change, patch):
    """Change the groups of one side of the factors of a movement; whether that changes any."""
    right, factors_of, done = Factor.at, {part.factor for part in move.parts}, []

    def mutated(factor, side, own, only=()):
        found = right(factor, side, own)
        new = change(found) if side == wrong and factor in factors_of else found
        done.append(new is not found)
        return new

    mine = move.ends[wrong]
    for rank, part in product(range(mine.grid.size), move.parts):
        if mine.holds(rank):
            me = mine.grid.coordinates(rank)
            mutated(part.factor, wrong, tuple(me[g] for g in part.over[wrong]))
    patch.setattr(Factor, "at", mutated)
    return any(done)


def first_group(change):
    def mutate(groups):
        if not groups or not len(groups[0]):
            return groups
        new = rows_of(groups[0], change)
        same = all(map(np.array_equal, new.positions, groups[0].positions))
        return groups if same else (new, *groups[1:])

    return mutate


def coordinates_swapped(groups):
    if len(groups) < 2:
        return groups
    return (
        replace(groups[0], coordinates=groups[1].coordinates),
        replace(groups[1], coordinates=groups[0].coordinates),
        *groups[2:],
    )


def overlaps_changed(change):
    """The boxes of elements from which all messages of a component are made, on both sides alike."""

    def mutate(rng, plan, monkeypatch):
        parts = rng.choice(plan.steps).movement.parts
        if not parts:
            return False
        wrong, right = rng.choice(parts).factor, Factor.lattices
        at, (before, after) = [range(rows.start, rows.stop) for rows in wrong.rows], map(len, wrong.sides)
        end, last = at[1].stop, at[1].stop + before
        places = at, (range(end, last), range(last, last + after))  # of the rows of both sides

        found = wrong.lattices
        new = found if any(box.listed for box in found) else change(rng, found, places)
        if new is found:
            return False
        lattices = property(lambda factor: new if factor is wrong else right.fget(factor))
        monkeypatch.setattr(Factor, "lattices", lattices)
        monkeypatch.setattr(Factor, "_near", lambda factor, side, at: range(len(factor.lattices)))
        for place, name in ((Factor, "at"), (proof, "_proof")):
            monkeypatch.setattr(place, name, getattr(place, name).__wrapped__)
        return True

    return mutate


def one_box(change):
    """A change of one number of one side of one box."""

    def mutated(rng, boxes, places):
        if not boxes:
            return boxes
        k, side = rng.randrange(len(boxes)), rng.randrange(2)
        new = change(rng, boxes[k], *(rows[side] for rows in places))
        return boxes if new is None else (*boxes[:k], new, *boxes[k + 1 :])

    return mutated


def with_row(box, k, row):
    return Lattice(box.shape, (*box.rows[:k], row, *box.rows[k + 1 :]))


def box_shifted(rng, box, at, local):
    k = rng.choice(local)
    return with_row(box, k, (box.rows[k][0] + rng.choice((-1, 1)), *box.rows[k][1:]))


def box_reversed(rng, box, at, local):
    """One of several values of a digit stand the other way round on one side."""
    axes = [axis for axis, n in enumerate(box.shape) if n > 1]
    if not axes:
        return None
    axis = rng.choice(axes)
    for k in (*at, *local):
        row = box.rows[k]
        end = row[0] + row[axis + 1] * (box.shape[axis] - 1)
        box = with_row(box, k, (end, *row[1 : axis + 1], -row[axis + 1], *row[axis + 2 :]))
    return box


def box_elsewhere(rng, box, at, local):
    """At the next coordinate."""
    if not at:
        return None
    k = rng.choice(at)
    return with_row(box, k, (box.rows[k][0] + rng.choice((-1, 1)), *box.rows[k][1:]))


def box_lost(rng, boxes, places):
    k = rng.randrange(len(boxes)) if boxes else 0
    return (*boxes[:k], *boxes[k + 1 :]) if boxes else boxes


def box_twice(rng, boxes, places):
    return (*boxes, rng.choice(boxes)) if boxes else boxes


def box_for_another(rng, boxes, places):
    """One box as often as there are boxes of its size: the number of elements is right."""
    pairs = [
        (a, b) for a in range(len(boxes)) for b in range(len(boxes)) if a != b and boxes[a].shape == boxes[b].shape
    ]
    if not pairs:
        return boxes
    a, b = rng.choice(pairs)
    return (*boxes[:a], boxes[b], *boxes[a + 1 :])


ON_MOVEMENT = {
    "meets flipped": meets_flipped,
    "group dropped": groups_changed(lambda groups: groups[1:] if groups else groups),
    "group doubled": groups_changed(lambda groups: (groups[0], *groups) if groups else groups),
    "group shifted": groups_changed(first_group(shifted(1))),
    "group reordered": groups_changed(first_group(reordered)),
    "group elsewhere": groups_changed(coordinates_swapped),
    "group of another rank": groups_changed(first_group(shifted(-1))),
    "group shortened": groups_changed(first_group(shortened)),
    "box shifted": overlaps_changed(one_box(box_shifted)),
    "box reversed": overlaps_changed(one_box(box_reversed)),
    "box elsewhere": overlaps_changed(one_box(box_elsewhere)),
    "box lost": overlaps_changed(box_lost),
    "box twice": overlaps_changed(box_twice),
    "box for another": overlaps_changed(box_for_another),
}


# The plan itself is wrong.


def named(dist):
    return exhaustive_verify.meaning(dist)


def met_over(step):
    """The grid modes along which some message goes from one coordinate to another, message by message."""
    grid = step.before.grid
    return {
        g
        for rank in range(grid.size)
        for message in step.movement.messages(rank, RECEIVES)
        for g, (a, b) in enumerate(zip(grid.coordinates(rank), grid.coordinates(message.peer), strict=True))
        if a != b
    }


def with_step(plan, k, **changes):
    step = plan.steps[k]
    if "before" in changes and changes["before"].grid != step.before.grid:
        changes["grid_modes"] = tuple(range(changes["before"].grid.order))
    return replace(plan, steps=(*plan.steps[:k], replace(step, **changes), *plan.steps[k + 1 :]))


def unless_joined(plan):
    """A plan, unless its steps join up all the same: then a change of their order has changed nothing."""
    ends = [plan.source, *(end for step in plan.steps for end in (step.before, step.after)), plan.target]
    return None if all(named(a) == named(b) for a, b in zip(ends[::2], ends[1::2], strict=True)) else plan


def step_dropped(rng, plan):
    k = rng.randrange(len(plan.steps))
    return unless_joined(replace(plan, steps=plan.steps[:k] + plan.steps[k + 1 :]))


def step_repeated(rng, plan):
    step = rng.choice(plan.steps)
    return replace(plan, steps=tuple(s for t in plan.steps for s in ([t, t] if t is step else [t])))


def steps_reordered(rng, plan):
    return unless_joined(replace(plan, steps=tuple(rng.sample(plan.steps, len(plan.steps)))))


def layout_between(rng, plan):
    """The layout between two steps, replaced on both sides of it by another one, for which these are the wrong steps.

    The same steps may be right there too; then they have other figures than the plan claims, or nothing is changed.
    """
    if len(plan.steps) < 2:
        return None
    k, shape, grid = rng.randrange(len(plan.steps) - 1), plan.source.shape, plan.source.grid.shape
    new = pick_layout(rng.choice, shape, grid).on(shape, grid)
    mutant = with_step(with_step(plan, k, after=new), k + 1, before=new)
    return mutant if figures(mutant) != figures(plan) else None


def turned_back(rng, plan):
    k = rng.randrange(len(plan.steps))
    return with_step(plan, k, before=plan.steps[k].after, after=plan.steps[k].before)


def fewer_grid_modes(rng, plan):
    k = rng.randrange(len(plan.steps))
    step = plan.steps[k]
    met = met_over(step) if step.kind not in LOCAL else set()
    return with_step(plan, k, grid_modes=tuple(set(step.grid_modes) - {min(met)})) if met else None


def idle_grid_modes(rng, plan):
    """A collective of all ranks of a sub-grid over a grid mode along which nobody meets."""
    grid = plan.source.grid
    idle = [
        (k, tuple(sorted((*step.grid_modes, g))))
        for k, step in enumerate(plan.steps)
        for g in range(grid.order)
        if step.kind in certificate.TOGETHER and g not in step.grid_modes and grid.shape[g] > 1
    ]
    if not idle:
        return None
    k, grid_modes = rng.choice(idle)
    return with_step(plan, k, grid_modes=grid_modes)


def other_layout(rng, plan):
    k, shape, grid = rng.randrange(len(plan.steps)), plan.source.shape, plan.source.grid.shape
    end = rng.choice(["before", "after"])
    new = pick_layout(rng.choice, shape, grid).on(shape, grid)
    same = getattr(plan.steps[k], end).meaning == new.meaning
    return None if same else with_step(plan, k, **{end: new})


def wrong_op(rng, plan):
    k = rng.randrange(len(plan.steps))
    end = rng.choice(["before", "after"])
    dist = getattr(plan.steps[k], end)
    if not dist.partial:
        return None
    op = rng.choice([op for op in ("sum", "max", "min", "prod") if op != dist.layout.op])
    return with_step(plan, k, **{end: replace(dist.layout, op=op).on(dist.shape, dist.grid)})


def wrong_root(rng, plan):
    k = rng.randrange(len(plan.steps))
    end = rng.choice(["before", "after"])
    dist = getattr(plan.steps[k], end)
    rooted = [(g, at) for g, at in dist.layout.rooted if dist.grid.shape[g] > 1]
    if not rooted:
        return None
    new = tuple((g, (at + 1) % dist.grid.shape[g]) for g, at in rooted)
    return with_step(plan, k, **{end: replace(dist.layout, rooted=new).on(dist.shape, dist.grid)})


def complex_extremes(rng, plan):
    ends = [dist for step in plan.steps for dist in (step.before, step.after)]
    extreme = any(dist.partial and dist.layout.op in ("max", "min") for dist in ends)
    return replace(plan, dtype=np.dtype("c16")) if extreme else None


ON_PLANS = {
    "step dropped": step_dropped,
    "step repeated": step_repeated,
    "steps reordered": steps_reordered,
    "layout between": layout_between,
    "step turned back": turned_back,
    "fewer grid modes": fewer_grid_modes,
    "idle grid modes": idle_grid_modes,
    "other layout": other_layout,
    "wrong op": wrong_op,
    "wrong root": wrong_root,
    "complex extremes": complex_extremes,
}


# The claim is wrong.


def misclaimed(name, change):
    """A figure changed by so many elements or messages."""

    def mutate(rng, plan, claimed):
        unit = 1 if name == "messages" else plan.dtype.itemsize
        return replace(claimed, **{name: getattr(claimed, name) + change(rng) * unit})

    return mutate


def of_another_plan(rng, plan, claimed):
    """The claims of the same layouts under another dtype: all counts are right, but not their bytes."""
    item = rng.choice([size for size in (1, 4, 16) if size != plan.dtype.itemsize])
    new = exhaustive_verify.figures(plan.source, plan.target, plan.steps, item)
    return new if new != claimed else None


def of_a_part(rng, plan, claimed):
    """The claims of the plan without one of its steps."""
    k = rng.randrange(len(plan.steps))
    new = figures(replace(plan, steps=plan.steps[:k] + plan.steps[k + 1 :]))
    return new if new != claimed else None


ON_CLAIMS = {
    "bytes too low": misclaimed("bytes", lambda rng: -1),
    "bytes too high": misclaimed("bytes", lambda rng: 1),
    "bytes doubled or more": misclaimed("bytes", lambda rng: rng.randrange(2, 100)),
    "messages too few": misclaimed("messages", lambda rng: -1),
    "messages too many": misclaimed("messages", lambda rng: 1),
    "peak too low": misclaimed("peak_bytes", lambda rng: -1),
    "peak too high": misclaimed("peak_bytes", lambda rng: 1),
    "claims of another dtype": of_another_plan,
    "claims of fewer steps": of_a_part,
}


def mutated(name, rng, plan, claimed, patch):
    """The plan and the claim after a mutation, or None where it would change nothing; `patch` undoes the rest of it."""
    if name in ON_CLAIMS:
        claimed = ON_CLAIMS[name](rng, plan, claimed)
    elif name in ON_PLANS:
        plan = ON_PLANS[name](rng, plan)
    elif not (
        mutate_list(patch, rng, plan, ON_LISTS[name]) if name in ON_LISTS else ON_MOVEMENT[name](rng, plan, patch)
    ):
        return None
    return None if plan is None or claimed is None else (plan, claimed)


@pytest.mark.parametrize("every", (10, pytest.param(1, marks=pytest.mark.slow)))
def test_every_mutation_is_refused(every):
    """Of 500, or 50, seeded plans of one to three steps, all that are changed in one of 44 ways are refused.

    A list of messages, the movement, the plan or its claim is changed; 20 of them are tried on each plan.
    """
    rng = random.Random(3)
    names = (*ON_LISTS, *ON_MOVEMENT, *ON_PLANS, *ON_CLAIMS)
    assert len(names) == 44
    killed, survived = Counter(), []
    made = (*plans(4, 250 // every), *plans(5, 150 // every, steps=2), *plans(10, 100 // every, steps=3))
    assert len(made) == 500 // every
    for plan in made:
        claimed = figures(plan)
        certify(plan, claimed)
        for name in rng.sample(names, 20):
            with pytest.MonkeyPatch.context() as patch:
                mutant = mutated(name, rng, plan, claimed, patch)
                if mutant is None:
                    continue
                # The layouts between steps are free: what is wrong is then in the figures, if the steps can do it.
                if refused(*mutant) if name in ON_CLAIMS or name == "layout between" else refused(mutant[0]):
                    killed[name] += 1
                else:
                    survived.append((name, str(mutant[0])))
    assert not survived, (len(survived), survived[:5])
    assert len(killed) >= 41
    assert every > 1 or (set(killed) == set(names) and min(killed.values()) >= 5), killed


@pytest.mark.parametrize("every", (10, pytest.param(1, marks=pytest.mark.slow)))
def test_it_counts_as_one_does_message_by_message(every):
    """Bytes, messages and peak of plans of none to four steps, and of steps under other names, are those of a count."""
    seen = Counter()
    for steps, number in ((1, 300), (2, 60), (3, 40), (4, 20)):
        for plan in plans(11 + steps, number // every, steps=steps):
            certify(plan, figures(plan))
            certify(plan, lambda plan=plan: figures(plan))
            nothing = replace(plan, target=plan.source, steps=())
            certify(nothing, figures(nothing))
            for kind in ALL_KINDS if steps == 1 else ():
                other = with_step(plan, 0, kind=kind)
                if not refused(other):
                    certify(other, figures(other))
                    seen[kind] += 1
    assert len(seen) >= 9 and (every > 1 or set(seen) == set(ALL_KINDS)), seen


def test_figures_by_hand():
    """Each rank of a line of three gets the two others' rows, and the terms of the part of a sum that it adds."""
    for text, bytes_, messages, peak in (
        ("[(0),()] -> [(),()]", 64, 2, 32 + 96 + 32 + 96),
        ("[(),()]+(0) -> [(),()]", 2 * 64, 2, 96 + 96),
        ("[(),()]+(0) -> [(0),()]", 64, 2, 96 + 32 + 96 + 32),
        ("[(),()]+(0) -> [(),()]|(0@1)", 96, 2, 96 + 96),
        ("[(),()]|(0) -> [(),()]", 96, 1, 96 + 96),
        ("[(),()]|(0) -> [(0),()]", 32, 1, 96 + 32 + 64),
        ("[(0),()] -> [(),()]|(0)", 64, 2, 32 + 96 + 64),
        ("[(),()] -> [(0),()]", 0, 0, 96 + 32),
    ):
        right = exhaustive_verify.Figures(bytes_, messages, peak)
        plan = plan_of(text, (3, 4), (3,))
        assert figures(plan) == right, text
        certify(plan, right)


def test_it_says_which_figure_is_wrong():
    """The error names the figure, what is claimed and what it is."""
    plan = plan_of("[(0),(1)] -> [(1),(0)]", (6, 6), (2, 3))
    right = figures(plan)
    for name in ("bytes", "messages", "peak_bytes"):
        said = getattr(right, name) + 8
        with pytest.raises(PlanError, match=f"claims {name}={said}, but its steps make it {said - 8}$"):
            certify(plan, replace(right, **{name: said}))


@pytest.mark.parametrize("part", PARTS)
def test_it_agrees_with_looking_at_every_element(part):
    """On lists right and wrong, the algebra and the element by element certificate accept and refuse alike."""
    rng = random.Random(6)
    seen_by_both = [name for name in ON_LISTS if name != "messages out of order"]  # elements know no order of messages
    answers = Counter()
    for plan in share(plans(7, 240), part, 4):
        exhaustive_verify.verify(plan.source, plan.target, plan.steps)
        for name in rng.sample(seen_by_both, 2):
            with pytest.MonkeyPatch.context() as patch:
                mutate_list(patch, rng, plan, ON_LISTS[name])
                found = refused(plan)
                try:
                    exhaustive_verify.verify(plan.source, plan.target, plan.steps)
                    also = False
                except (PlanError, IndexError, ValueError):
                    also = True
                assert found == also, (name, str(plan), found, also)
                answers[found] += 1
    assert answers[True] >= {SOME: 20, REST: 60}[part] and answers[False] >= {SOME: 1, REST: 4}[part], answers


@pytest.mark.parametrize("text", ["d c (a b): [(),(0),()]", "(a b) c d: block[(0),(),()]"])
def test_plans_of_tensors_without_elements_are_proved(text):
    """No rank sends anything, whichever of the modes is empty, and in whichever component it is."""
    for shape in product((0, 1, 3), repeat=4):
        for end in ("block[(),(),(0),()]", "[(0),(),(),()]", "[(),(),(),(0)]"):
            rote.compile(rote.parse(text).on(shape, 2), rote.parse(end).on(shape, 2)).verify()


# One plan of each kind, and what is said when it is given another name, other grid modes or other neighbours.
SAID = [
    (
        "[(0),(1)] -> [(1),(0)]",
        {"kind": "slice"},
        "exchange data over grid modes [0, 1], which are not in the step's sub-grid",
    ),
    (
        "[(0),(1)] -> [(1),(0)]",
        {"grid_modes": (0,)},
        "exchange data over grid modes [1], which are not in the step's sub-grid",
    ),
    ("[(0),(1)] -> [(1),(0)]", {"kind": "permute"}, "blocks must go whole to one rank, not cut or copied"),
    (
        "[(0),(1)] -> [(1),(0)]",
        {"kind": "allgather"},
        "mode 0 (split to split), 1 (split to split) is not split to rep",
    ),
    ("[(0),()] -> [(),()]", {"kind": "alltoall"}, "grid mode 0 (split to replicated) is not split to split"),
    ("[(0),()] -> [(),()]", {"kind": "permute"}, "not cut or copied"),
    ("[(0),()] -> [(),()]", {"grid_modes": (0, 1)}, "1 (replicated to replicated) is not split to replicated"),
    ("[(),()]|(1) -> [(),()]|(1@2)", {"kind": "alltoall"}, "grid mode 1 (rooted to rooted) is not split to split"),
    (
        "[(),()]+(1) -> [(),()]",
        {"kind": "broadcast"},
        "grid mode 1 (partial to replicated) is not rooted to replicated",
    ),
    ("[(),()]+(1) -> b a: [(),()]", {"kind": "allreduce"}, "blocks are not to be rearranged"),
    ("[(),()]|(1) -> b a: [(),()]", {"kind": "broadcast"}, "blocks are not to be rearranged"),
    (
        "[(0),()]+(1) -> [(),(0,1)]",
        {"kind": "reduce_scatter", "grid_modes": (0, 1)},
        "0 (split to split) is not partial",
    ),
    ("[(0),()] -> block[(0),()]", {"kind": "gather"}, "grid mode 0 (split to split) is not split to rooted"),
    ("[(),()] -> b a: [(),()]", {"kind": "scatter"}, "no grid mode is rooted to split"),
    ("[(),()] -> [(0),()]", {"kind": "zero_fill"}, "a zero_fill, and no slice, makes tensors partial"),
    ("[(),()] -> [(),()]+(0)", {"kind": "slice"}, "a zero_fill, and no slice, makes tensors partial"),
]


NO_STEP = [
    ({"grid_modes": (7,)}, PlanError, "grid 2x3 has order 2, and (7,) are not ascending grid modes of it"),
    ({"grid_modes": (-1, 0)}, PlanError, "(-1, 0) are not ascending grid modes of it"),
    ({"grid_modes": (1, 0)}, PlanError, "(1, 0) are not ascending grid modes of it"),
    ({"grid_modes": (0, 0)}, PlanError, "(0, 0) are not ascending grid modes of it"),
    ({"grid_modes": (0, 1, 2)}, PlanError, "(0, 1, 2) are not ascending grid modes of it"),
    ({"grid_modes": ("0",)}, TypeError, "the grid modes of a step are integers, not ('0',)"),
    ({"grid_modes": 0}, TypeError, "the grid modes of a step are integers, not 0"),
    ({"kind": "swap"}, PlanError, "'swap' is no kind of step\nwrite one of slice"),
    ({"after": rote.parse("[(0),()]").on((6, 5), (2, 3))}, PlanError, "a step keeps the shape and the ranks"),
    ({"before": rote.parse("[(0),()]").on((6, 4), (2, 4))}, PlanError, "a step keeps the shape and the ranks"),
]


@pytest.mark.parametrize("changes, error, said", NO_STEP, ids=map(str, range(len(NO_STEP))))
def test_what_is_no_step_is_refused_at_once(changes, error, said):
    """Law: a step of a kind, of sides or of grid modes that cannot be is no value, so nothing is counted for it."""
    (step,) = plan_of("[(0),(1)] -> [(1),(0)]", (6, 4), (2, 3)).steps
    with pytest.raises(error) as caught:
        replace(step, **changes)
    assert said in str(caught.value)


@pytest.mark.parametrize("text, changes, said", SAID, ids=[f"{text} as {changes}" for text, changes, _ in SAID])
def test_it_says_what_is_wrong_with_a_step(text, changes, said):
    """Errors name the step, the grid mode or the ranks, and the rule."""
    plan = plan_of(text, (6, 4), (2, 3))
    certify(plan)
    with pytest.raises(PlanError) as caught:
        certify(with_step(plan, 0, **changes))
    assert str(caught.value).startswith("step 1 (") and said in str(caught.value), str(caught.value)


def test_it_says_what_is_wrong_with_a_message(monkeypatch):
    """Errors name the ranks and the first element that goes astray."""
    plan = plan_of("[(0),()] -> [(),(0)]", (6, 4), (2,))
    right = Factor.lattices

    def reordered(factor):
        found = right.fget(factor)
        if [len(side[0].splits) for side in factor.sides] == [1, 0]:  # the mode that is split before
            (box,) = found
            start, step, *others = box.rows[1]  # the local index before, after the coordinate
            found = (with_row(box, 1, (start + step * (box.shape[0] - 1), -step, *others)),)
        return found

    monkeypatch.setattr(Factor, "lattices", property(reordered))
    rote.clear_caches()
    with pytest.raises(PlanError) as caught:
        certify(plan)
    rote.clear_caches()
    assert "from rank 0 to rank 0 go elements, (4,) first of modes (0,), not the same in the same" in str(caught.value)


def test_the_steps_join_up():
    """Each step starts where the one before ends, and the last one ends in the target."""
    plan = plan_of("[(0),(1)] -> [(1),(0)]", (6, 6), (2, 3))
    (step,) = plan.steps
    back = replace(step, before=step.after, after=step.before)
    wrong = {
        "step 1 starts from [(1),(0)] on (6, 6), grid 2x3, but the tensor lies as [(0),(1)]": (back,),
        "step 2 starts from [(0),(1)]": (step, step),
        "the plan ends in [(0),(1)] on (6, 6), grid 2x3, not in [(1),(0)]": (step, back),
        "the plan ends in [(0),(1)]": (),
    }
    for text, steps in wrong.items():
        with pytest.raises(PlanError) as caught:
            certify(replace(plan, steps=steps))
        assert str(caught.value).startswith(text), str(caught.value)
    certify(replace(plan, steps=(step, back, step)))


def runs_right(plan, rng):
    """Whether ranks that run a plan end with what the definition says."""
    layout, shape, grid = plan.source.layout, plan.source.shape, plan.source.grid.shape
    array, blocks = definition.contribute(layout, shape, grid, rng, low=1, high=4)
    found = rote.run(lambda comm: bind(plan, comm)(blocks[comm.rank]), ranks=plan.source.grid.size)
    return definition.wrong(plan.target.layout, grid, found, array) == ""


@pytest.mark.parametrize("part", PARTS)
def test_every_kind_relabelled(part):
    """A step under another name is refused, unless the collective of that name does the same; then it runs right."""
    accepted, refusals = Counter(), Counter()
    rng = np.random.default_rng(0)
    for plan in share(plans(8, 150, grid=(2, 2)), part, 2, of=2):
        plan = replace(plan, dtype=np.dtype("i8"))
        (step,) = plan.steps
        for kind in ALL_KINDS:
            mutant = replace(plan, steps=(replace(step, kind=kind),))
            if refused(mutant):
                refusals[step.kind, kind] += 1
                assert kind not in (step.kind, "exchange")
            else:
                accepted[step.kind, kind] += bool(met_over(step))
                assert runs_right(mutant, rng), str(mutant)
    wide = {"exchange", "relayout"}
    odd = {
        (was, now)
        for (was, now), times in accepted.items()
        if times and was != now and now not in wide and was not in wide
    }
    assert odd <= {("alltoall", "permute"), ("permute", "alltoall")}, odd
    assert len(refusals) >= {SOME: 60, REST: 80}[part], refusals
    assert sum(refusals.values()) > 5 * sum(accepted.values()), (refusals, accepted)


SCALE = [
    "block[(0),(1),(2)] -> [(0),(1),(2)]",
    "[(0),(1),(2)] -> block[(0),(1),(2)]",
    "block[(0),(1),(2)] -> block[(),(0,1),(2)]",
    "cyclic(3)[(0),(1),(2)] -> [(0),(1),(2)]",
]


def claims_at_scale(text):
    """What the plan of one of these transitions claims: in the third by hand, else mode by mode from the owners."""
    if text == SCALE[2]:  # a column for two columns' worth of coordinates: 32 senders, and nothing is there already
        return exhaustive_verify.Figures(32**3 * 8, 32, 4 * 32**3 * 8)
    ends = rote.parse_transition(text)
    before, after = (layout.on((1024,) * 3, (32,) * 3) for layout in (ends.source, ends.target))
    index = np.arange(1024)
    here, there = (dist.locate(0, index)[0][0] for dist in (before, after))  # all modes are alike
    sent, wanted, kept = np.bincount(here), np.bincount(there), np.bincount(there[here == there], minlength=32)
    senders = np.array([len(set(here[there == c])) for c in range(32)])
    had, block, own, peers = (np.einsum("i,j,k->ijk", x, x, x) for x in (sent, wanted, kept, senders))
    peak = had + block + (had - own) + (block - own)
    return exhaustive_verify.Figures(int((block - own).max()) * 8, int((peers - (own > 0)).max()), int(peak.max()) * 8)


@pytest.mark.parametrize(
    "text", [*SCALE[1:2], *(pytest.param(text, marks=pytest.mark.slow) for text in (SCALE[0], *SCALE[2:]))]
)
def test_it_does_not_grow_with_the_tensor(text):
    """A thousand million elements on 32,768 ranks are proved and counted, or found out, in seconds."""
    plan = plan_of(text, (1024,) * 3, (32,) * 3)
    claimed = claims_at_scale(text)
    start = time.process_time()
    certify(plan, claimed)
    with pytest.raises(PlanError, match="claims peak_bytes="):
        certify(plan, replace(claimed, peak_bytes=claimed.peak_bytes - 8))
    with pytest.raises(PlanError, match="not in the step's sub-grid"):
        certify(with_step(plan, 0, grid_modes=()))
    assert time.process_time() - start < 20  # about 1 s on an idle core


@pytest.mark.parametrize("text", [SCALE[0], pytest.param(SCALE[2], marks=pytest.mark.slow)])
def test_it_needs_little_memory(text):
    """A proof holds indices along modes, not elements; the longest list that it reads has a message for every rank."""
    plan, claimed = plan_of(text, (1024,) * 3, (32,) * 3), claims_at_scale(text)
    tracemalloc.start()
    try:
        certify(plan, claimed)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
