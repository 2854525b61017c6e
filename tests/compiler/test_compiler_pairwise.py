"""The certificate of steps from one grid to another: it accepts every right plan, and refuses every wrong one.

Mutations are those of `test_compiler_verify`, where they say something of two grids, and more: there no grid mode tells
who meets whom, so that lists of messages may be wrong though both sides agree on them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from cases import factorings, pick_grids, pick_layout, pick_shape
from test_compiler_verify import (
    ALL_KINDS,
    ON_LISTS,
    certify,
    complex_extremes,
    coordinates_swapped,
    figures,
    first_group,
    joined,
    misclaimed,
    mutate_list,
    refused,
    reordered,
    shifted,
    step_repeated,
    turned_back,
    with_groups,
    with_step,
    wrong_op,
    wrong_root,
)

import rote
from rote.compiler.factor import Group
from rote.compiler.movement import RECEIVES, SENDS, Message, Movement
from rote.errors import LayoutError, PlanError
from rote.lattice import Lattice


def plans(seed, number, steps=1):
    """Seeded right plans, one step per pair of layouts, of which at least one leads from one grid to another."""
    rng = random.Random(seed)
    while number:
        grids, shape = pick_grids(rng.choice, rng.choice([4, 6, 8, 12, 1, 2])), pick_shape(rng.choice)
        way = rng.sample([*grids, *rng.choices(grids, k=steps - 1)], steps + 1)
        plan = joined([pick_layout(rng.choice, shape, grid).on(shape, grid) for grid in way])
        if plan is not None and len(set(way)) > 1:
            number -= 1
            yield plan


def crossing(rng, plan):
    """The place of a step from one grid to another."""
    return rng.choice([k for k, step in enumerate(plan.steps) if step.before.grid != step.after.grid])


@pytest.mark.parametrize("every", (8, pytest.param(2, marks=pytest.mark.slow)))
def test_no_false_alarms(every):
    """Right plans are accepted, at the figures that are counted message by message, which are those that they claim."""
    for plan in (*plans(1, 300 // every), *plans(2, 60 // every, steps=2), *plans(3, 40 // every, steps=3)):
        certify(plan, figures(plan))
        certify(plan, plan.cost)


# Lists that are wrong, though both sides agree on them: a dictionary from (sender, receiver) to what each has listed.


def relisted(change):
    """Change the messages of a step on both sides; of those that bring the same, the first assigns."""

    def mutate(rng, plan, patch):
        step = plan.steps[crossing(rng, plan)]
        ranks = range(step.before.grid.size)
        sent = {(a, m.peer): m for a in ranks for m in step.movement.messages(a, SENDS)}
        heard = {(m.peer, b): m for b in ranks for m in step.movement.messages(b, RECEIVES)}
        lists = {pair: (sent[pair].groups, heard[pair].groups) for pair in sorted(sent)}
        new = change(rng, step, dict(lists)) if lists else None
        if new is None:
            return False
        begun = set()
        told, awaited = {rank: [] for rank in ranks}, {rank: [] for rank in ranks}
        for (a, b), (cut, taken) in sorted(new.items()):
            place = b, *(tuple(p.tolist()) for group in taken for p in group.positions)
            told[a].append(Message(b, cut, place in begun))
            awaited[b].append(Message(a, taken, place in begun))
            begun.add(place)
        whole, lists = Movement.messages, (told, awaited)

        def messages(move, rank, side, peer=None):
            return lists[side][rank] if move is step.movement else whole(move, rank, side, peer)

        patch.setattr(Movement, "messages", messages)
        return True

    return mutate


def beside(rng, dist, rank, along):
    """Another rank, which differs along these grid modes alone; None if there is none."""
    me = dist.grid.coordinates(rank)
    others = [
        other
        for other in range(dist.grid.size)
        if other != rank
        and all(a == b for g, (a, b) in enumerate(zip(me, dist.grid.coordinates(other), strict=True)) if g not in along)
    ]
    return rng.choice(others) if others else None


def along(dist, role):
    return [g for g, found in enumerate(dist.roles) if found.name == role]


def pair_dropped(rng, step, lists):
    del lists[rng.choice([*lists])]
    return lists


def sent_beside(role, copied=False):
    """What a rank sends is sent by one that has another coordinate in a role, as well or instead."""

    def change(rng, step, lists):
        a, b = rng.choice([*lists])
        other = beside(rng, step.before, a, along(step.before, role))
        if other is None or (other, b) in lists:
            return None
        lists[other, b] = lists[a, b]
        if not copied:
            del lists[a, b]
        return lists

    return change


def heard_beside(role, copied=False):
    """What a rank receives is received by one that has another coordinate in a role, as well or instead."""

    def change(rng, step, lists):
        a, b = rng.choice([*lists])
        other = beside(rng, step.after, b, along(step.after, role))
        if other is None or (a, other) in lists:
            return None
        lists[a, other] = lists[a, b]
        if not copied:
            del lists[a, b]
        return lists

    return change


def sent_to_a_stranger(rng, step, lists):
    """A message more, of the same elements, to a rank that needs others, or nothing."""
    ranks = range(step.after.grid.size)
    a, b = rng.choice([*lists])
    others = [rank for rank in ranks if (a, rank) not in lists]
    if not others:
        return None
    lists[a, rng.choice(others)] = lists[a, b]
    return lists


def nothing_sent(rng, step, lists):
    """A message more, of no elements, between ranks that have nothing for each other."""
    free = [pair for pair in product(range(step.before.grid.size), repeat=2) if pair not in lists]
    modes = [(part.before, part.after) for part in step.movement.parts]
    if not free or not modes:
        return None
    lists[rng.choice(free)] = tuple(
        tuple(Group((), (Lattice((0,), ((0, 1),)),), slice(0), slice(0)) for _ in modes) for _ in (0, 1)
    )
    return lists


def elements_exchanged(rng, step, lists):
    """Two messages bring each other's elements."""
    sizes = {pair: [len(group) for group in cut] for pair, (cut, _) in lists.items()}
    equal = [(p, q) for p in lists for q in lists if p < q and sizes[p] == sizes[q] and p[0] == q[0]]
    if not equal:
        return None
    (p, q) = rng.choice(equal)
    lists[p], lists[q] = (lists[q][0], lists[p][1]), (lists[p][0], lists[q][1])
    places = [[group.positions for group in cut] for cut, _ in (lists[p], lists[q])]
    return None if str(places[0]) == str(places[1]) else lists


ON_BOTH = {
    "pair dropped": relisted(pair_dropped),
    "a replica sends as well": relisted(sent_beside("replicated", copied=True)),
    "sent from beside the root": relisted(sent_beside("rooted")),
    "sent by another owner": relisted(sent_beside("split")),
    "a contribution enters elsewhere": relisted(heard_beside("partial")),
    "a contribution enters twice": relisted(heard_beside("partial", copied=True)),
    "heard beside the root": relisted(heard_beside("rooted")),
    "heard beside the root as well": relisted(heard_beside("rooted", copied=True)),
    "a replica not told": relisted(heard_beside("replicated")),
    "a message to a stranger": relisted(sent_to_a_stranger),
    "a message of nothing": relisted(nothing_sent),
    "elements exchanged": relisted(elements_exchanged),
}


def regrouped(change):
    """The groups of one side of a step are wrong, on all ranks alike, wherever they are asked for."""

    def mutate(rng, plan, patch):
        if 0 in plan.source.shape:
            return False  # no message is made of them
        move, wrong = plan.steps[crossing(rng, plan)].movement, rng.choice([SENDS, RECEIVES])
        return with_groups(move, wrong, change, patch)

    return mutate


ON_GROUPS = {
    "group dropped": regrouped(lambda groups: groups[1:] if groups else groups),
    "group doubled": regrouped(lambda groups: (groups[0], *groups) if groups else groups),
    "group shifted": regrouped(first_group(shifted(1))),
    "group reordered": regrouped(first_group(reordered)),
    "group elsewhere": regrouped(coordinates_swapped),
}


# The plan is wrong.


def other_kind(rng, plan):
    k = crossing(rng, plan)
    return with_step(plan, k, kind=rng.choice([kind for kind in ALL_KINDS if kind not in ("exchange", "relayout")]))


def relayout_that_talks(rng, plan):
    k = crossing(rng, plan)
    return with_step(plan, k, kind="relayout") if plan.steps[k].kind == "exchange" else None


def fewer_grid_modes(rng, plan):
    """Not all of the grid; what is no grid mode of it is refused by the step itself."""
    k = crossing(rng, plan)
    modes = plan.steps[k].grid_modes
    return with_step(plan, k, grid_modes=rng.choice([modes[1:], modes[:-1], ()])) if modes else None


def other_grid(rng, plan):
    """One end of the step lies on yet another grid over the same ranks."""
    k, end = crossing(rng, plan), rng.choice(["before", "after"])
    dist = getattr(plan.steps[k], end)
    shapes = [shape for order in range(4) for shape in factorings(dist.grid.size, order) if shape != dist.grid.shape]
    try:
        return with_step(plan, k, **{end: dist.layout.on(dist.shape, rng.choice(shapes))})
    except LayoutError:
        return None


def other_layout(rng, plan):
    k, end = crossing(rng, plan), rng.choice(["before", "after"])
    dist = getattr(plan.steps[k], end)
    new = pick_layout(rng.choice, dist.shape, dist.grid.shape).on(dist.shape, dist.grid)
    return None if new.meaning == dist.meaning else with_step(plan, k, **{end: new})


ON_PLANS = {
    "other kind": other_kind,
    "relayout that talks": relayout_that_talks,
    "fewer grid modes": fewer_grid_modes,
    "other grid": other_grid,
    "other layout": other_layout,
    "wrong op": wrong_op,
    "wrong root": wrong_root,
    "step turned back": turned_back,
    "step repeated": step_repeated,
    "complex extremes": complex_extremes,
}
ON_CLAIMS = {
    "bytes too low": misclaimed("bytes", lambda rng: -1),
    "bytes too high": misclaimed("bytes", lambda rng: 1),
    "messages too few": misclaimed("messages", lambda rng: -1),
    "messages too many": misclaimed("messages", lambda rng: 1),
    "peak too low": misclaimed("peak_bytes", lambda rng: -1),
    "peak too high": misclaimed("peak_bytes", lambda rng: 1),
}


def mutated(name, rng, plan, claimed, patch):
    """The plan and a claim of it after a mutation; None where it would change nothing. `patch` undoes the rest."""
    if name in ON_CLAIMS:
        return plan, ON_CLAIMS[name](rng, plan, claimed)
    if name in ON_PLANS:
        plan = ON_PLANS[name](rng, plan)
    elif name in ON_LISTS:
        part = replace(plan, steps=(plan.steps[crossing(rng, plan)],))
        plan = plan if mutate_list(patch, rng, part, ON_LISTS[name]) else None
    else:
        plan = plan if (ON_BOTH | ON_GROUPS)[name](rng, plan, patch) else None
    return plan and (plan, None)


def test_lists_that_are_told_anew_are_right():
    """What mutations do to lists is accepted if it changes nothing: nothing is refused for how lists are told."""
    rng, same, done = random.Random(8), relisted(lambda rng, step, lists: lists), 0
    for plan in plans(9, 60):
        with pytest.MonkeyPatch.context() as patch:
            done += same(rng, plan, patch)
            certify(plan, figures(plan))
    assert done >= 40


@pytest.mark.parametrize("every", (10, pytest.param(2, marks=pytest.mark.slow)))
def test_every_mutation_is_refused(every):
    """Of 200, or 20, seeded plans of one to three steps, all that are changed in one of 43 ways are refused.

    One rank's list of messages is changed, or the lists of both sides alike, or the groups that they are made of, or
    the plan, or its claim.
    """
    rng = random.Random(4)
    names = (*ON_LISTS, *ON_BOTH, *ON_GROUPS, *ON_PLANS, *ON_CLAIMS)
    assert len(set(names)) == 43
    killed, survived = Counter(), []
    for plan in (*plans(5, 140 // every), *plans(6, 40 // every, steps=2), *plans(7, 20 // every, steps=3)):
        claimed = figures(plan)
        for name in names:
            with pytest.MonkeyPatch.context() as patch:
                mutant = mutated(name, rng, plan, claimed, patch)
                if mutant is None:
                    continue
                if refused(*mutant):
                    killed[name] += 1
                else:
                    survived.append((name, str(mutant[0])))
    assert not survived, (len(survived), survived[:5])
    assert len(killed) >= 38
    assert every > 2 or (set(killed) == set(names) and min(killed.values()) >= 8), killed


def test_the_refusals_name_the_ranks(monkeypatch):
    """Errors say which rank and what is wrong: here two replicas of four send the same, and rank 0 is told so."""
    plan = rote.compile(rote.parse("[()]").on(4, 4), rote.parse("[()]").on(4, (2, 2)))
    assert relisted(lambda rng, step, lists: lists | {(2, 1): lists[1, 1]})(random.Random(0), plan, monkeypatch)
    with pytest.raises(PlanError) as caught:
        certify(plan)
    assert str(caught.value) == (
        "step 1 (relayout over 0 to grid 2x2: [()] -> [()]): "
        "rank 2 sends 2 messages, with ranks [1, 2], not 1, with [2], each once and in ascending order"
    )
